//! A server under load: a thousand connections, slow readers and writers among them, limits; and `pir load` itself.

use std::io::Write as _;
use std::net::TcpStream;

use super::{Desk, Server, assert_entries, pir};
use crate::harness::text;

/// Everything is answered, and right, while others send their requests a byte at a time or do not take their answers.
#[test]
fn a_thousand_connections_are_answered_beside_slow_ones() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 3000);
    let limits = ["--connections", "2000", "--address-connections", "2000", "--rate", "1000000"];
    // After a moment in which nothing ran, many come at once.
    let patience = ["--working", "2000", "--request-time", "300s"];
    let server = Server::start(&database, &[&limits[..], &patience].concat());
    let state = desk.path("my.state");
    server.hint(&state, &["--queries", "64"]).code(0);
    let slow: Vec<TcpStream> = (0..100)
        .map(|n| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            let begun: &[u8] = match n % 3 {
                // Never asks; asks for all blocks and takes none of them; begins a query that does not end.
                0 => b"POST /v1/qu",
                1 => b"GET /v1/blocks HTTP/1.1\r\nHost: x\r\n\r\n",
                _ => b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\nWPQ1",
            };
            stream.write_all(begun).unwrap();
            stream
        })
        .collect();
    let plan = ["--connections", "1000", "--rate", "500", "--time", "3s", "--database", &database, "--json"];
    let line = pir(&[&["load", &server.url], &plan[..]].concat()).code(0).json().remove(0);
    assert_eq!((text(&line, "event"), text(&line, "server")), ("load", &*server.url));
    assert_eq!((&line["connections"], &line["compared"]), (&1000.into(), &true.into()));
    assert_eq!((&line["asked"], &line["answered"]), (&1500.into(), &1500.into()), "{line}");
    let ms = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!(ms("p50_ms") <= ms("p99_ms") && ms("p99_ms") <= ms("p999_ms") && ms("p999_ms") <= ms("max_ms"));
    assert_entries(server.get(&state, &["0", "2999"]), &[0, 2999], &bytes);
    drop(slow);
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
