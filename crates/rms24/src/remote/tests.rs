//! Addresses of servers, and what travels to them in clear.

use super::*;
use crate::hints;
use crate::params::Choice;

#[test]
fn addresses() {
    for (url, authority, prefix) in [
        ("http://a", "a:80", ""),
        ("http://a:81/", "a:81", ""),
        ("http://[::1]:9/x/y/", "[::1]:9", "/x/y"),
        ("http://[::1]/x", "[::1]:80", "/x"),
        ("https://a", "a:443", ""),
        ("https://a:80/x", "a:80", "/x"),
    ] {
        let remote = Remote::new(url).unwrap();
        assert_eq!((&remote.authority[..], &remote.prefix[..]), (authority, prefix), "{url}");
        assert_eq!(remote.secure, url.starts_with("https"));
    }
    for url in [
        "",
        "a:80",
        "ftp://a",
        "https://",
        "http://",
        "http:///x",
        "http://a b",
        "http://a\r\nX: y",
        "http://u@a",
        "http://a|b",
    ] {
        assert!(Remote::new(url).is_err(), "{url}");
    }
    let through = |proxy: &str| Remote::new("http://a").unwrap().through(proxy);
    for proxy in ["socks5://127.0.0.1:9050", "socks5h://tor:9050/", "socks5://[::1]:9050"] {
        assert!(through(proxy).is_ok(), "{proxy}");
    }
    for proxy in [
        "",
        "127.0.0.1:9050",
        "http://127.0.0.1:9050",
        "socks5://127.0.0.1",
        "socks5://:9050",
        "socks5://me:secret@tor:9050",
        "socks5://tor:9050/x",
        "socks5://tor:99999",
    ] {
        let refused = through(proxy).unwrap_err().to_string();
        assert!(refused.contains("socks5://HOST:PORT"), "{refused}");
    }
}

#[test]
fn keys_travel_in_clear_only_within_this_machine() {
    let is_private = |url: &str| Remote::new(url).unwrap().is_private();
    for url in [
        "https://a",
        "http://localhost",
        "http://LOCALHOST:81/x",
        "http://127.0.0.1:80",
        "http://127.9.8.7",
        "http://[::1]:9/x",
        "http://[::1]",
    ] {
        assert!(is_private(url), "{url}");
    }
    for url in [
        "http://a",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org:80",
        "http://128.0.0.1",
        "http://10.0.0.1:8081",
        "http://[2001:db8::1]",
        "http://[::2]:80",
        "http://0.0.0.0",
    ] {
        assert!(!is_private(url), "{url}");
    }
    // Through a proxy nothing is local, but an onion service is reached encrypted.
    let through = |url: &str, proxy: &str| Remote::new(url).unwrap().through(proxy).unwrap().is_private();
    let (tor, elsewhere) = ("socks5://127.0.0.1:9050", "socks5://10.0.0.1:9050");
    assert!(through("https://a", elsewhere) && through("http://abc.onion", tor));
    for (url, proxy) in
        [("http://localhost", tor), ("http://abc.onion", elsewhere), ("http://abc.onion.to", tor)]
    {
        assert!(!through(url, proxy), "{url} through {proxy}");
    }
    let (key, params) = (crate::Key::random().unwrap(), Params::new(Choice::new(10, 8)).unwrap());
    let request = Request { key, lambda: 80, regular: true, first: params.regular(), pairs: 16 };
    // A port where nobody listens would be another error.
    let refused = Remote::new("http://192.0.2.1:9").unwrap().hints(&request, &params).unwrap_err();
    assert!(refused.to_string().contains("in clear"), "{refused}");
}

/// A server that always has one epoch more: what came until then is kept, and it is told.
#[test]
fn a_client_is_not_held_for_ever() {
    use std::io::{BufRead, Write};
    let params = Params::new(Choice { lambda: 2, backups: Some(16), ..Choice::new(100, 8) }).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
            while !line.ends_with("\r\n\r\n") && reader.read_line(&mut line).unwrap() > 0 {}
            let after = line.split(['/', ' ']).find_map(|word| word.parse::<u64>().ok()).unwrap();
            let update = Update { number: after + 1, indices: vec![1, 2, 3], deltas: vec![1; 24] };
            let body = wire::updates_body(&params, [&update.to_bytes(8)[..]].into_iter());
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let (lanes, version) = (crate::Lanes::detect(), crate::Version { database: [1; 32], epoch: 0 });
    let (key, made) = hints::offline(&params, lanes, 1, |push| push(&[0; 800])).unwrap();
    let path = folder.path().join("state");
    let mut client = Client::create(&path, params, version, key, made, lanes).unwrap();
    for (epochs, changes, reached) in [(4, 1000, 5), (1000, 10, 9)] {
        let told = remote.synchronise_within(&mut client, epochs, changes).unwrap_err().to_string();
        assert!(told.contains("may have more") && told.contains("new hints"), "{told}");
        assert_eq!(client.version().epoch, reached);
    }
}
