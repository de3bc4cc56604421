//! What protects servers from their clients, clients from their servers, and keys from those between.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use warpsmith_trials::free_port;

use crate::harness::{Desk, Server, pir};

const TOKEN: &str = "s3cret-token-of-the-test-0123456789";

/// A file that only its owner may read.
fn secret(desk: &Desk, name: &str, content: &str) -> String {
    let path = desk.write(name, content);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn hints_are_made_for_those_who_have_the_token() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 1000);
    let token = secret(&desk, "token", &format!("{TOKEN}\n"));
    let maker = Server::start(&database, &["--hint-maker", "--device", "cpu", "--token-file", &token]);
    let hint = |state: &str, more: &[&str]| {
        let state = desk.path(state);
        pir(&[&["hint", "--hint-maker", &maker.url, "--state", &state, "--queries", "16"], more].concat())
    };
    let run = hint("none", &[]).code(4).says(&["401", "--token-file"]);
    assert!(!run.stderr.contains(TOKEN));
    let wrong = secret(&desk, "wrong", "another-token-of-the-test");
    let run = hint("wrong.state", &["--token-file", &wrong]).code(4).says(&["401"]);
    assert!(!run.stderr.contains("another-token"));
    let run = hint("state", &["--token-file", &token]).code(0);
    assert!(!run.stderr.contains(TOKEN) && !run.stdout.contains(TOKEN));
    pir(&[
        "hint",
        "--hint-maker",
        &maker.url,
        "--state",
        &desk.path("state"),
        "--top-up",
        "16",
        "--token-file",
        &token,
    ])
    .code(0);
    // A file that others may read, and one without a token, are refused on both sides, and not repeated.
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let short = secret(&desk, "short", "tiny-word");
    for (file, code, why) in [(&token, 4, "chmod 600"), (&short, 2, "16 to 512")] {
        let run = hint("other", &["--token-file", file]).code(code).says(&["--token-file", why]);
        assert!(!run.stderr.contains(TOKEN) && !run.stderr.contains("tiny-word"));
        let serve = [
            "serve",
            &database,
            "--listen",
            "127.0.0.1:0",
            "--hint-maker",
            "--device",
            "cpu",
            "--token-file",
            file,
        ];
        let run = pir(&serve).code(code).says(&["--token-file", why]);
        assert!(!run.stderr.contains(TOKEN) && !run.stderr.contains("tiny-word"));
    }
    pir(&["serve", &database, "--listen", "127.0.0.1:0", "--token-file", &token])
        .code(2)
        .says(&["--hint-maker"]);
    let (code, said) = maker.stop("INT");
    assert!(code == Some(130) && !said.contains(TOKEN), "{said}");
}

#[test]
fn keys_do_not_travel_in_clear() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 1000);
    let maker = Server::listen(&database, "0.0.0.0:0", &["--hint-maker", "--device", "cpu"]);
    let port = maker.address().port();
    let state = desk.path("state");
    let hint = |url: &str, more: &[&str]| {
        pir(&[&["hint", "--hint-maker", url, "--state", &state, "--queries", "16"], more].concat())
    };
    // An address that leads here, and does not look like it.
    let elsewhere = format!("http://0.0.0.0:{port}");
    for url in [&elsewhere[..], "http://maker.example.org:8081", "http://127.0.0.1.example.org"] {
        hint(url, &[]).code(2).says(&["in clear", "https://", "--allow-plain-http"]);
    }
    assert!(!desk.names().contains(&"state".to_owned()), "{:?}", desk.names());
    hint(&elsewhere, &["--allow-plain-http"]).code(0);
    fs::remove_file(&state).unwrap();
    fs::remove_file(format!("{state}.journal")).unwrap();
    hint(&format!("http://localhost:{port}"), &[]).code(0);
    // Who only streams a database sends no key, and is told that the flags are not for him.
    for flags in [&["--allow-plain-http"][..], &["--token-file", "x"], &["--top-up", "16"]] {
        let hint = ["hint", "--server", &elsewhere, "--state", &desk.path("x")];
        pir(&[&hint[..], flags].concat()).code(2).says(&["--server", flags[0]]);
    }
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 1000);
    let plain = Server::start(&database, &[]);
    assert!(get(plain.address(), "/metrics").starts_with("HTTP/1.1 404"));
    let free = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let watched = Server::start(&database, &["--metrics", &free.to_string()]);
    assert!(get(watched.address(), "/metrics").starts_with("HTTP/1.1 404"));
    let text = get(free, "/metrics");
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("warpsmith_pir_epoch 0"), "{text}");
    assert!(get(free, "/v1/info").starts_with("HTTP/1.1 404"));
    let taken = free.to_string();
    pir(&["serve", &database, "--listen", "127.0.0.1:0", "--metrics", &taken])
        .code(4)
        .says(&["--metrics", "free port"]);
}

#[test]
fn a_hint_maker_says_what_it_gives() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 1000);
    let maker = Server::start(
        &database,
        &["--hint-maker", "--device", "cpu", "--memory", "4M", "--request-memory", "1M"],
    );
    let hint = |state: &str, queries: &str| {
        pir(&["hint", "--hint-maker", &maker.url, "--state", &desk.path(state), "--queries", queries])
    };
    hint("large", "1000000").code(4).says(&["413", "one request may take 1048576"]);
    hint("small", "16").code(0);
    let (_, said) = maker.stop("INT");
    assert!(said.contains("memory 4.2 MB, of one request 1.0 MB, of one address 2.1 MB"), "{said}");
    let serve = ["serve", &database, "--listen", "127.0.0.1:0", "--memory"];
    pir(&[&serve[..], &["12"]].concat()).code(2).says(&["from 1M to"]);
    pir(&[&serve[..], &["1000T"]].concat()).code(2).says(&["more than this machine gives"]);
}

/// One signal, with many connections that want nothing, and others that want something and do not take it.
#[test]
fn one_signal_ends_a_server_whatever_is_connected() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 1000);
    let server = Server::start(&database, &["--address-connections", "1000"]);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    let starts: [&[u8]; 4] =
        [preface, b"", b"GET /v1/info HTTP/1.1\r\nHost", b"GET /v1/blocks HTTP/1.1\r\nHost: x\r\n\r\n"];
    let mut held: Vec<TcpStream> = (0..400)
        .map(|i| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(starts[i % 4]).unwrap();
            stream
        })
        .collect();
    // The last of them has an answer: all are in.
    held[399].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert!(held[399].read(&mut [0; 16]).unwrap() > 0);
    let begin = Instant::now();
    let (code, said) = server.stop("INT");
    let took = begin.elapsed();
    assert_eq!(code, Some(130), "{said}");
    // Five seconds, and what a slow machine needs beside.
    assert!(took < Duration::from_secs(9), "{took:?}");
}

/// A server that writes escape sequences, one that claims more than anyone can hold, and one that leads elsewhere.
#[test]
fn nothing_a_server_says_is_printed_raw() {
    let desk = Desk::new();
    for (answer, says) in [
        ("HTTP/1.1 500 X\r\nContent-Length: 24\r\n\r\n\u{1b}]0;owned\u{7}\u{1b}[2Jtrust me\r\n", "trust me"),
        ("HTTP/1.1 301 X\r\nLocation: http://evil/\u{9b}2J\r\nContent-Length: 0\r\n\r\n", "not followed"),
        ("HTTP/1.1 301 X\r\nLocation: http://evil/\u{1b}[2J\r\nContent-Length: 0\r\n\r\n", "no HTTP"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let run = pir(&["hint", "--server", &url, "--state", &desk.path("state"), "--device", "cpu"]).code(4);
        let run = run.says(&[says]);
        assert!(!run.stderr.trim_end().chars().any(|c| c.is_control() && c != '\n'), "{run:?}");
        assert!(run.stderr.lines().count() <= 2, "{run:?}");
    }
}
