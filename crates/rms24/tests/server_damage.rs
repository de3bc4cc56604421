//! A server whose files are cut short or damaged under it: it says so, answers what it can, refuses the rest, and stops when
//! it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use warpsmith_hash::Lanes;
use warpsmith_rms24::hints::make::Processor;
use warpsmith_rms24::server::{Limits, Role, Server};
use warpsmith_rms24::two_server::Request;
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Choice, Error, Key};

use crate::support::Bench;

/// The status of a reply and its text.
fn exchange(address: SocketAddr, head: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let head =
        format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let status = String::from_utf8_lossy(&reply[..end]).split(' ').nth(1).unwrap().parse().unwrap();
    (status, reply[end + 4..].to_vec())
}

/// Ends the server, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// What happens to a server's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Cut,
    Flip,
    CutUpdates,
}

fn run(role: Role, in_memory: bool, harm: Harm) {
    let bench = Bench::new(Choice { lambda: 20, backups: Some(64), ..Choice::new(60_000, 40) });
    let path = bench.folder.path().join("data");
    bench.live.update(bench.live.difference(&[(7, vec![7; 40])]).unwrap()).unwrap();
    let mut live = Live::open(&path, Lanes::detect(), 1000).unwrap();
    live.load(in_memory, &mut |_| Ok(())).unwrap();
    assert_eq!(live.is_in_memory(), in_memory);
    let is_library = matches!(role, Role::Library);
    let mut client = bench.client();
    let asked = client.ask(&[1, 59_999]).unwrap();
    let expected = bench.live.answer(&asked.body, 10).unwrap();
    let request = Request {
        key: Key::random().unwrap(),
        lambda: 20,
        regular: false,
        first: bench.params.regular(),
        pairs: 16,
    };

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, troubles) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let stopping = Stop(&stop);
        let server = Server::new(Arc::new(live), role, Limits::default());
        let running = scope.spawn(|| {
            server.run(listener, &stop, &|news| {
                if let Err(error) = news {
                    troubles.lock().unwrap().push(error);
                }
            })
        });
        let blocks = || exchange(address, "GET /v1/blocks", b"");
        let query = || exchange(address, "POST /v1/query", &asked.body);
        let hints = || exchange(address, "POST /v1/hints", &request.to_bytes()).0;
        match is_library {
            true => assert!(blocks().0 == 200 && query() == (200, expected.clone())),
            false => assert_eq!(hints(), 200),
        }
        let file = |name: &str| {
            std::fs::OpenOptions::new().read(true).write(true).open(bench.folder.path().join(name)).unwrap()
        };
        match harm {
            // Everything but the first page: what was mapped there before is gone.
            Harm::Cut => file("data").set_len(4096).unwrap(),
            Harm::Flip => std::os::unix::fs::FileExt::write_all_at(&file("data"), b"?", 5000).unwrap(),
            Harm::CutUpdates => file("data.updates").set_len(100).unwrap(),
        }
        let of_database = harm != Harm::CutUpdates;
        for _ in 0..3 {
            let refused = |(status, text): (u16, Vec<u8>)| {
                let text = String::from_utf8(text).unwrap();
                assert_eq!(status, 503, "{text}");
                assert!(text.contains("damaged") && !text.contains('/'), "{text}");
            };
            match (is_library, of_database, in_memory) {
                (true, false, _) => assert!(blocks().0 == 200 && query() == (200, expected.clone())),
                (true, true, true) => {
                    refused(blocks());
                    assert_eq!(query(), (200, expected.clone()));
                }
                (true, true, false) => {
                    refused(blocks());
                    refused(query());
                }
                (false, of_database, in_memory) => {
                    assert_eq!(hints(), if of_database && !in_memory { 503 } else { 200 });
                }
            }
        }
        let begin = Instant::now();
        while troubles.lock().unwrap().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(300), "nobody was told");
            std::thread::sleep(Duration::from_millis(20));
        }
        let name = if of_database { "data" } else { "data.updates" };
        let expected = bench.folder.path().join(name);
        for trouble in troubles.lock().unwrap().iter() {
            assert!(matches!(trouble, Error::Damaged { path, .. } if *path == expected), "{trouble}");
        }
        assert_eq!(exchange(address, "GET /health", b"").0, 200);
        drop(stopping);
        running.join().unwrap().unwrap();
    });
}

#[test]
fn a_server_survives_the_loss_of_its_files() {
    for harm in [Harm::Cut, Harm::Flip, Harm::CutUpdates] {
        for in_memory in [true, false] {
            run(Role::Library, in_memory, harm);
        }
    }
}

#[test]
fn a_hint_maker_survives_the_loss_of_its_files() {
    for (in_memory, harm) in [(true, Harm::Cut), (false, Harm::Cut), (false, Harm::Flip)] {
        let make = Processor { lanes: Lanes::detect(), threads: 1 };
        run(Role::HintMaker(Arc::new(make)), in_memory, harm);
    }
}
