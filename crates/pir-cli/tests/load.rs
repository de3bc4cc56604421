//! A server under load: a thousand connections, slow readers and writers among them, limits; and `load` itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::harness::{Desk, PATIENCE, Server, assert_entries, pir, text};

/// The bytes of a body that comes slowly. They are no queries, which the server sees when it has them all.
const SLOW_BODY: usize = 16_000;

/// A connection for somebody slow, and what he sends at first.
fn slow(server: &Server, begun: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // Else the system would keep more and more for who does not read, as its settings allow.
    let room: libc::c_int = 64 << 10;
    // SAFETY: the pointer leads to an integer of this function, which is read, and the length is that integer's.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw const room).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    // Each byte goes by itself.
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(begun.as_bytes()).unwrap();
    stream
}

/// The most bytes that the system keeps on the way from a server to one who is [`slow`] and does not read: what it takes from the server,
/// by its settings, and a mebibyte, which is more than it keeps at the other end.
fn most_on_the_way() -> usize {
    let settings = fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap();
    let most: usize = settings.split_whitespace().next_back().unwrap().parse().unwrap();
    most + (1 << 20)
}

/// Everything is answered, and right, while others send their requests a byte at a time or do not take their answers. They are answered
/// too, once they have sent all, or read on.
#[test]
fn a_thousand_connections_are_answered_beside_slow_ones() {
    let desk = Desk::new();
    // More than the system takes from a server for somebody who does not read: the rest the server has to keep.
    let on_the_way = most_on_the_way();
    let (database, bytes) = desk.flat("data.pir", (on_the_way + (4 << 20)) as u64 / 24);
    let limits = ["--connections", "2000", "--address-connections", "2000", "--rate", "1000000"];
    // After a moment in which nothing ran, many come at once; and the slow ones have as long as the test may take.
    let patience = ["--working", "2000", "--request-time", "20m", "--idle", "20m"];
    let server = Server::start(&database, &[&limits[..], &patience].concat());
    let state = desk.path("my.state");
    server.hint(&state, &["--queries", "64"]).code(0);
    // They ask for all blocks, see that they come, and take none of them.
    let mut readers: Vec<TcpStream> = (0..16)
        .map(|_| {
            let mut stream = slow(&server, "GET /v1/blocks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 200");
            stream
        })
        .collect();
    // One half is slow with heads, the other with bodies.
    let mut writers: Vec<TcpStream> = (0..84)
        .map(|n| {
            let (line, last) = match n % 2 {
                0 => ("GET /v1/info", "X-Slow: ".to_owned()),
                _ => ("POST /v1/query", format!("Content-Length: {SLOW_BODY}\r\n\r\n")),
            };
            slow(&server, &format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{last}"))
        })
        .collect();
    let plan = ["--connections", "1000", "--rate", "500", "--time", "3s", "--database", &database, "--json"];
    let done = AtomicBool::new(false);
    let (run, sent) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut sent = 0;
            // The last byte of a body waits for the end of the load, however long that takes.
            while !done.load(Ordering::Relaxed) && sent + 1 < SLOW_BODY {
                writers.iter_mut().for_each(|stream| stream.write_all(b"x").unwrap());
                sent += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
            sent
        });
        let run = pir(&[&["load", &server.url], &plan[..]].concat());
        done.store(true, Ordering::Relaxed);
        (run, writing.join().unwrap())
    });
    let line = run.code(0).json().remove(0);
    assert_eq!((text(&line, "event"), text(&line, "server")), ("load", &*server.url));
    assert_eq!((&line["connections"], &line["compared"]), (&1000.into(), &true.into()));
    assert_eq!((&line["asked"], &line["answered"]), (&1500.into(), &1500.into()), "{line}");
    let ms = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!(ms("p50_ms") <= ms("p99_ms") && ms("p99_ms") <= ms("p999_ms") && ms("p999_ms") <= ms("max_ms"));
    assert_entries(server.get(&state, &["0", "2999"]), &[0, 2999], &bytes);
    // All the while the server had more for each of the readers than the system takes, and it comes when they read on.
    for stream in &mut readers {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.len() > on_the_way, "{} bytes fit on the way", rest.len());
        let head = rest.windows(4).position(|end| end == b"\r\n\r\n").expect("a head ends") + 4;
        assert!(rest[head..].starts_with(&bytes), "the blocks are not those of the database");
    }
    for (n, stream) in writers.iter_mut().enumerate() {
        let (rest, status) = match n % 2 {
            0 => (b"\r\n\r\n".to_vec(), "HTTP/1.1 200 "),
            _ => (vec![b'x'; SLOW_BODY - sent], "HTTP/1.1 400 "),
        };
        stream.write_all(&rest).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(status.as_bytes()), "{}", String::from_utf8_lossy(&answer));
    }
}

/// What an address may not do is refused, and that is told; nothing of it is wrong or lost.
#[test]
fn what_is_too_much_is_refused_and_told() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 3000);
    let server = Server::start(&database, &["--rate", "1", "--burst", "5"]);
    let run = pir(&["load", &server.url, "--connections", "20", "--rate", "400", "--time", "1s", "--json"]);
    let line = run.code(1).json().remove(0);
    let number = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
    assert_eq!((number("asked"), number("failed"), number("wrong")), (400, 0, 0));
    assert_eq!(number("answered") + number("refused"), 400);
    assert!(number("refused") > 100 && line["compared"] == false, "{line}");
    let said =
        pir(&["load", &server.url, "--connections", "5", "--rate", "100", "--time", "1s"]).code(1).stdout;
    assert!(said.contains("with 429") && said.contains("failed       0"), "{said}");
}

#[test]
fn loads_that_cannot_be_are_refused_with_words() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 300);
    let (other, _) = desk.flat("other.pir", 301);
    let server = Server::start(&database, &[]);
    pir(&["load", &server.url, "--database", &other]).code(2).says(&["--database", "another"]);
    pir(&["load", "https://127.0.0.1:1"]).code(2).says(&["https://127.0.0.1:1", "http://HOST:PORT"]);
    pir(&["load", "http://127.0.0.1:1/there"]).code(2).says(&["path"]);
    pir(&["load", "http://127.0.0.1:1"]).code(4).says(&["127.0.0.1:1"]);
    let maker = Server::start(&database, &["--hint-maker", "--device", "cpu"]);
    pir(&["load", &maker.url]).code(2).says(&["answers no queries"]);
}
