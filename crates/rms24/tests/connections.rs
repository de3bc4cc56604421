//! Connections that want nothing, or never end: they are in nobody's way, and one word ends the server all the same.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::running::{get, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use warpsmith_hash::Lanes;
use warpsmith_rms24::Key;
use warpsmith_rms24::hints::make::Processor;
use warpsmith_rms24::server::{Limits, Role};
use warpsmith_rms24::two_server::Request;

/// The time within which a server ends, five seconds, and what a slow machine needs beside. One that waits for its clients never ends.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Room for many connections, both ends of which are in this process.
fn many_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers lead to a `rlimit` of this function.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max.min(8192);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
    assert!(limit.rlim_cur >= 4096, "this test needs 4096 open files; the system gives {}", limit.rlim_cur);
}

async fn connect(to: SocketAddr, from: [u8; 4]) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// An HTTP/2 connection that answers pings and asks for nothing; says when it ended.
async fn only_pings(
    to: SocketAddr,
    from: [u8; 4],
) -> Option<(h2::client::SendRequest<bytes::Bytes>, tokio::task::JoinHandle<()>)> {
    let stream = connect(to, from).await.ok()?;
    let (sender, connection) = h2::client::handshake(stream).await.ok()?;
    Some((sender, tokio::spawn(async move { drop(connection.await) })))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// More than a thousand connections of one address that only answer pings: others are served, and the server ends in time.
#[test]
fn a_thousand_connections_of_one_address_block_nobody() {
    many_files();
    let server = start(Role::Library, Limits::default());
    let mut client = server.client("state");
    let address = server.address;
    runtime().block_on(async {
        let mut held = Vec::new();
        for _ in 0..1024 {
            held.extend(only_pings(address, [127, 0, 0, 2]).await);
        }
        // What is over the limit was closed at once.
        let begin = Instant::now();
        while held.iter().filter(|(_, task)| !task.is_finished()).count() > 64 {
            assert!(begin.elapsed() < Duration::from_secs(300), "they are all still open");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let alive = held.iter().filter(|(_, task)| !task.is_finished()).count();
        assert_eq!(alive, 64);
        let text = String::from_utf8(get(server.metrics, "/metrics", "").body).unwrap();
        assert!(text.contains("warpsmith_pir_turned_away_total 960"), "{text}");
        // Another address is served meanwhile (this one too, by what it has); the connections answer pings all the time.
        let others = tokio::task::spawn_blocking(move || {
            server.fetch(&mut client, &[1, 2, 3]);
            server
        });
        let server = others.await.unwrap();
        let took = tokio::task::spawn_blocking(move || server.end()).await.unwrap();
        assert!(took < ENDS_WITHIN, "{took:?}");
    });
}

/// The limit for all together: one more connection takes the place of the one that has been idle longest.
#[test]
fn over_the_limit_of_all_an_idle_connection_makes_room() {
    let server = start(Role::Library, Limits { connections: 3, ..Limits::default() });
    let address = server.address;
    let mut held: Vec<_> = (1..=3u8)
        .map(|host| {
            let mut stream = runtime()
                .block_on(async { connect(address, [127, 0, 1, host]).await.unwrap().into_std().unwrap() });
            stream.set_nonblocking(false).unwrap();
            // An answer says that it has its place.
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            assert!(stream.read(&mut [0; 512]).unwrap() > 0);
            stream
        })
        .collect();
    let health = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut fourth = std::net::TcpStream::connect(address).unwrap();
    fourth.write_all(health).unwrap();
    assert!(fourth.read(&mut [0; 512]).unwrap() > 0, "it is answered");
    // The first has been idle longest, and was closed; the others go on.
    let mut first = held.remove(0);
    first.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let ended = first.read(&mut [0; 512]);
    assert!(
        matches!(&ended, Ok(0)) || ended.as_ref().is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock),
        "{ended:?}"
    );
    for stream in &mut held {
        stream.write_all(health).unwrap();
        assert!(stream.read(&mut [0; 512]).unwrap() > 0);
    }
}

/// Pings are no requests: a connection without any is closed, and one that asks stays.
#[test]
fn connections_without_requests_are_closed_though_they_answer_pings() {
    let idle = Duration::from_secs(3);
    let server = start(Role::Library, Limits { idle, rate: 1e6, burst: 1e6, ..Limits::default() });
    runtime().block_on(async {
        // The server counts from when it takes the connection, which is later.
        let begin = Instant::now();
        let (_sender, quiet) = only_pings(server.address, [127, 0, 0, 2]).await.unwrap();
        let (mut sender, _) = only_pings(server.address, [127, 0, 0, 3]).await.unwrap();
        while !quiet.is_finished() {
            assert!(begin.elapsed() < Duration::from_secs(300), "it is still open");
            let request = http::Request::get("http://x/v1/info").body(()).unwrap();
            assert_eq!(sender.send_request(request, true).unwrap().0.await.unwrap().status(), 200);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(begin.elapsed() >= idle);
        // A connection that says nothing at all, or begins and does not go on.
        for start in ["", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /v1/info HT"] {
            let mut stream = connect(server.address, [127, 0, 0, 4]).await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            let end =
                tokio::time::timeout(Duration::from_secs(300), stream.read_to_end(&mut Vec::new())).await;
            assert!(end.is_ok(), "{start:?} stays open");
        }
    });
}

/// The time for a request begins with its head: a connection that is kept for the next one stays open as long as `idle` says.
#[test]
fn a_kept_connection_outlives_the_time_for_a_request() {
    let (request_time, idle) = (Duration::from_millis(300), Duration::from_secs(3600));
    let server = start(Role::Library, Limits { request_time, idle, ..Limits::default() });
    runtime().block_on(async {
        let mut stream = connect(server.address, [127, 0, 0, 2]).await.unwrap();
        for _ in 0..3 {
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"ok\n") {
                assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "it was closed");
            }
            tokio::time::sleep(4 * request_time).await;
        }
    });
}

/// An answer that is not taken ends its connection.
#[test]
fn answers_that_are_not_taken_are_given_up() {
    let server = start(Role::Library, Limits { idle: Duration::from_secs(3), ..Limits::default() });
    let metric = || {
        let text = String::from_utf8(get(server.metrics, "/metrics", "").body).unwrap();
        let line = text.lines().find(|line| line.starts_with("warpsmith_pir_connections ")).unwrap();
        line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap()
    };
    runtime().block_on(async {
        // The digests are short enough for their time to be over soon; HTTP/2 with a window of nothing holds them back.
        let stream = connect(server.address, [127, 0, 0, 2]).await.unwrap();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(0);
        let (mut sender, connection) = builder.handshake::<_, bytes::Bytes>(stream).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        let request = http::Request::get("http://x/v1/digests").body(()).unwrap();
        let response = sender.send_request(request, true).unwrap().0.await.unwrap();
        assert_eq!(response.status(), 200);
        tokio::time::timeout(Duration::from_secs(300), connection).await.expect("it ends").unwrap();
    });
    // Its own connection is the one that is left.
    let begin = Instant::now();
    while metric() > 1 {
        assert!(begin.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One word ends the server within its time: slow readers, half-open HTTP/2, requests that never end, hints being made.
#[test]
fn it_ends_whatever_is_connected() {
    let make = Processor { lanes: Lanes::detect(), threads: 1 };
    let maker = start(Role::HintMaker(Arc::new(make)), Limits::default());
    // Far more than can be made in the time.
    let first = maker.live.params().regular();
    let long = Request { key: Key::random().unwrap(), lambda: 80, regular: false, first, pairs: 1 << 22 };
    let library = start(Role::Library, Limits::default());
    runtime().block_on(async {
        let mut held = Vec::new();
        let body = long.to_bytes();
        let mut stream = connect(maker.address, [127, 0, 0, 2]).await.unwrap();
        let head = format!("POST /v1/hints HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body[..]].concat()).await.unwrap();
        held.push(stream);
        for start in [
            "",
            "GET /v1/blocks HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nWPQ1",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "PRI * HTT",
            "GET /v1/in",
        ] {
            let mut stream = connect(library.address, [127, 0, 0, 2]).await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            held.push(stream);
        }
        let pinging = only_pings(library.address, [127, 0, 0, 3]).await.unwrap();
        let ends = [library, maker].map(|server| tokio::task::spawn_blocking(move || server.end()));
        for end in ends {
            let took = end.await.unwrap();
            assert!(took < ENDS_WITHIN, "{took:?}");
        }
        drop((held, pinging));
    });
}
