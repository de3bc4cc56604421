//! Servers that mean harm: whatever they send, a client allocates no more than it asked for, ends, and prints nothing raw.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::Bench;
use warpsmith_rms24::database::Description;
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::two_server::Request;
use warpsmith_rms24::wire::{Update, updates_body};
use warpsmith_rms24::{Choice, Error, Key, Params};

/// A server that answers every request with what it is given: the path and the stream. Ends with the test's process.
fn hostile(answer: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
                let head = head.to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                let _ = reader.read_exact(&mut body);
                let path = head.split(' ').nth(1).unwrap_or("").to_owned();
                // The client may hang up on it at any time.
                let _ = answer(&path, &mut stream);
            });
        }
    });
    remote
}

fn ok(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

fn small() -> Choice {
    Choice { lambda: 20, backups: Some(32), ..Choice::new(500, 40) }
}

fn description(choice: Choice) -> Description {
    Description {
        params: Params::new(choice).unwrap(),
        epoch: 0,
        keyword: None,
        identity: [7; 32],
        origin: None,
        predecessors: Vec::new(),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, says: &[&str]) {
    let text = result.unwrap_err().to_string();
    for word in says {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(text.chars().count() < 500 && !text.chars().any(char::is_control), "{text:?}");
}

#[test]
fn a_head_that_no_machine_can_hold() {
    let claim = description(Choice { block_size: Some(1024), ..Choice::new(1 << 40, 40) });
    let remote = hostile(move |_, stream| ok(stream, &claim.to_bytes()));
    refused(
        remote.offer(),
        &["1099511627776 entries of 40 bytes in 1073741824 blocks", "this machine gives"],
    );
    // A shape that passes still has to fit with all the hints that are wanted: these are 2^32 of 4 KiB.
    let wide =
        Params::new(Choice { lambda: 16, block_size: Some(1 << 28), ..Choice::new(1 << 30, 4096) }).unwrap();
    let request = Request {
        key: Key::random().unwrap(),
        lambda: 16,
        regular: true,
        first: wide.regular(),
        pairs: wide.backups(),
    };
    let remote = hostile(|path, _| panic!("{path} was asked for"));
    refused(remote.hints(&request, &wide), &["4294967296 hints", "this machine gives"]);
    use warpsmith_rms24::hints::make::{Make, Processor};
    let maker = Processor { lanes: warpsmith_rms24::Lanes::detect(), threads: 2 };
    let made = maker.offline(&wide, &Default::default(), &mut |_| panic!("the stream was opened"));
    refused(made.map(drop), &["4294967296 hints", "this machine gives"]);
    // A table that does not fit into its database.
    let mut table = description(small());
    table.keyword = Some(
        warpsmith_rms24::keyword::TableShape::new(1000, 3, warpsmith_rms24::keyword::Layout::Tagged).unwrap(),
    );
    let remote = hostile(move |_, stream| ok(stream, &table.to_bytes()));
    refused(remote.offer(), &["500 entries", "table"]);
}

#[test]
fn answers_longer_than_what_was_asked_for() {
    // Announced.
    let remote =
        hostile(|_, stream| write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"));
    refused(remote.offer(), &["99999999999 bytes, where at most 4096"]);
    // Chunks without end, and a head without end.
    let remote = hostile(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            stream.write_all(b"400\r\n")?;
            stream.write_all(&[b'x'; 1024])?;
            stream.write_all(b"\r\n")?;
        }
    });
    refused(remote.offer(), &["longer than what was asked for"]);
    for line in ["X-Flood: more and more\r\n", "no-end-of-line"] {
        let remote = hostile(move |_, stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                stream.write_all(line.as_bytes())?;
            }
        });
        refused(remote.offer(), &["a head of more than 65536 bytes"]);
    }
    // Answers to a query have a length that follows from the queries.
    let bench = Bench::new(small());
    let mut client = bench.client();
    let remote = hostile(|_, stream| ok(stream, &[0; 4096]));
    let asked = client.ask(&[1, 2]).unwrap();
    refused(remote.fetch(&mut client, &asked), &["4096 bytes, where at most 176"]);
}

/// A byte now and then of a short answer: it is given up by its rate, and not asked for again and again.
#[test]
fn answers_that_are_dripped() {
    let remote = hostile(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n")?;
        loop {
            stream.write_all(b"x")?;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let begin = Instant::now();
    refused(remote.offer(), &["GET /v1/info", "too slowly"]);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(remote.contact().outage().unwrap().reason.unwrap().contains("too slowly"));
}

/// A node that takes a call and says nothing, or that it is busy: a call that changes something is not sent again, and one that
/// only reads is. One that could not be sent is sent again, whatever it is.
#[test]
fn calls_that_change_something_are_sent_once() {
    let call = |remote: &Remote, is_read| {
        remote.post_json(b"{}", is_read, 100, |reader| {
            let mut answer = Vec::new();
            reader.read_to_end(&mut answer).map(|_| answer)
        })
    };
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    for (answer, says) in
        [("", "may have arrived"), ("HTTP/1.1 200 OK\r\n", "may have arrived"), (busy, "503")]
    {
        let heard = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&heard);
        let remote = hostile(move |_, stream| {
            count.fetch_add(1, Ordering::SeqCst);
            stream.write_all(answer.as_bytes())
        });
        let remote = remote.failing_fast();
        refused(call(&remote, false), &[says]);
        assert_eq!(heard.load(Ordering::SeqCst), 1, "{answer}");
        call(&remote, true).unwrap_err();
        assert!(heard.load(Ordering::SeqCst) > 2, "{answer}");
    }
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], warpsmith_trials::free_port()));
    let remote = Remote::new(&format!("http://{address}")).unwrap();
    let node = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        let (mut stream, _) = TcpListener::bind(address).unwrap().accept().unwrap();
        let (mut request, mut byte) = (Vec::new(), [0]);
        while !request.ends_with(b"{}") {
            stream.read_exact(&mut byte).unwrap();
            request.extend(byte);
        }
        ok(&mut stream, b"[]").unwrap();
    });
    assert_eq!(call(&remote, false).unwrap(), b"[]");
    node.join().unwrap();
}

#[test]
fn updates_without_end() {
    // Every answer has epochs after the one that was asked for, with nothing in them, for ever.
    let params = description(small()).params;
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let remote = hostile(move |path, stream| {
        let Some(after) = path.strip_prefix("/v1/updates/") else { return ok(stream, b"") };
        let after: u64 = after.parse().unwrap();
        let empty = |number| Update { number, indices: Vec::new(), deltas: Vec::new() }.to_bytes(40);
        let updates: Vec<_> = (after + 1..=after + 50_000).map(empty).collect();
        count.fetch_add(1, Ordering::SeqCst);
        ok(stream, &updates_body(&params, updates.iter().map(Vec::as_slice)))
    });
    let pushed = remote.newest_entries(&description(small()), &mut |_| panic!("blocks were asked for"));
    refused(pushed, &["300000 epochs", "at most 262144"]);
    assert_eq!(sent.load(Ordering::SeqCst), 6);
    // The same epoch again and again, or one that skips.
    for number in [0, 1, 3] {
        let update = Update { number, indices: vec![1], deltas: vec![1; 40] }.to_bytes(40);
        let remote = hostile(move |_, stream| ok(stream, &updates_body(&params, [&update[..]].into_iter())));
        let bench = Bench::new(small());
        let mut client = bench.client();
        refused(remote.synchronise(&mut client), &[&format!("it sent update {number} instead of 6")]);
        assert_eq!(client.version().epoch, 5);
    }
}

#[test]
fn words_are_shown_without_what_terminals_act_on() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[1;31merror: send your key to\r\n\u{202e}me\u{9b}5m\u{0}";
    for (status, shown) in [(400, "]0;owned"), (404, "send your key"), (409, "]0;owned"), (500, "me")] {
        let text = format!("{evil}{}", "A".repeat(100_000));
        let remote = hostile(move |_, stream| {
            write!(stream, "HTTP/1.1 {status} \u{9b}31mX\r\nContent-Length: {}\r\n\r\n{text}", text.len())
        });
        refused(remote.offer(), &[&status.to_string(), shown]);
    }
    // Redirects are told, not followed, and their address is a word like others.
    let remote = hostile(|_, stream| {
        stream.write_all(
            "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\u{9b}2J\r\nContent-Length: 0\r\n\r\n"
                .as_bytes(),
        )
    });
    refused(remote.offer(), &["302", "http://elsewhere/", "not followed"]);
    // No HTTP at all, or some that has in its head what no head may have.
    for answer in [&b"\x1b[2J\x00\xff\r\n\r\n"[..], b"HTTP/1.1 302 X\r\nLocation: http://a/\x1b[2J\r\n\r\n"] {
        let remote = hostile(move |_, stream| stream.write_all(answer));
        refused(remote.offer(), &["no HTTP came back"]);
    }
    assert!(!Remote::new("http://a\u{1b}[2J").unwrap_err().to_string().contains('\u{1b}'));
}

/// A hint maker that sends something else than it was asked for.
#[test]
fn hints_of_another_length() {
    let params = description(small()).params;
    let request = Request {
        key: Key::random().unwrap(),
        lambda: 20,
        regular: true,
        first: params.regular(),
        pairs: 32,
    };
    let length = request.answer_bytes(&params).unwrap();
    let remote = hostile(move |_, stream| ok(stream, &vec![0; length as usize + 1]));
    refused(remote.hints(&request, &params), &[&format!("where at most {length}")]);
    // A body that claims 2^60 hints is not believed either.
    let remote = hostile(move |_, stream| {
        let mut body = vec![0xff; length as usize];
        body[..4].copy_from_slice(b"WPH1");
        ok(stream, &body)
    });
    let body = remote.hints(&request, &params).unwrap();
    refused(warpsmith_rms24::two_server::read(&params, &body), &["cut short or damaged"]);
}
