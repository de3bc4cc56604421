//! Damaged files, as those who run the program meet them: told with their place, and never the end of a server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::harness::{Desk, Server, assert_entries, pir, signal};

#[test]
fn damaged_databases_are_told_with_their_place() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    let (state, changes) = (desk.path("state"), desk.write("changes", format!("7 {}\n", "00".repeat(24))));
    let good = fs::read(&database).unwrap();
    let before = desk.names();
    for (at, place) in [(20, "the head"), (5000, "segment 0 of the entries"), (good.len() - 1, "the digests")]
    {
        let mut bad = good.clone();
        bad[at] ^= 4;
        fs::write(&database, bad).unwrap();
        for args in [
            &["hint", "--database", &database, "--state", &state, "--device", "cpu", "--threads", "1"][..],
            &["info", &database, "--verify"],
            &["serve", &database, "--listen", "127.0.0.1:0"],
            &["update", &database, &changes],
        ] {
            let run = pir(args).code(4).says(&["damaged", place]);
            assert!(run.stdout.is_empty(), "{run:?}");
            assert_eq!(desk.names(), before, "{args:?}");
        }
    }
    fs::write(&database, &good).unwrap();
    pir(&["update", &database, &changes]).code(0);
    let log = desk.path("data.pir.updates");
    let mut updates = fs::read(&log).unwrap();
    *updates.last_mut().unwrap() ^= 1;
    fs::write(&log, &updates).unwrap();
    pir(&["info", &database]).code(4).says(&["data.pir.updates is damaged", "update 1, from byte 1536 on"]);
    *updates.last_mut().unwrap() ^= 1;
    fs::write(&log, &updates).unwrap();
    pir(&["hint", "--database", &database, "--state", &state, "--device", "cpu", "--threads", "1"]).code(0);
    let server = Server::start(&database, &[]);
    assert_entries(server.get(&state, &["1", "999"]), &[1, 999], &bytes);
    // The journal alone, cut short or put back.
    let journal = desk.path("state.journal");
    let records = fs::read(&journal).unwrap();
    assert_entries(server.get(&state, &["2"]), &[2], &bytes);
    fs::write(&journal, &records).unwrap();
    server.get(&state, &["2"]).code(4).says(&["put back", "offline phase again"]);
}

#[test]
fn a_server_whose_database_is_cut_short_goes_on_and_stops_when_told_to() {
    for place in ["memory", "file"] {
        let desk = Desk::new();
        let (database, bytes) = desk.flat("data.pir", 20_000);
        let state = desk.path("state");
        let mut server = Server::start(&database, &["--entries", place]);
        server.hint(&state, &["--queries", "64"]).code(0);
        assert_entries(server.get(&state, &["17"]), &[17], &bytes);
        let file = fs::OpenOptions::new().write(true).open(&database).unwrap();
        file.set_len(4096).unwrap();
        file.write_all_at(b"?", 0).unwrap();
        // It says so, once.
        let mut stderr = BufReader::new(server.child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("data.pir is damaged") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the server ended without a word");
        }
        assert!(line.contains("it has 4096 bytes, and had"), "{line}");
        if place == "memory" {
            assert_entries(server.get(&state, &["18"]), &[18], &bytes);
        }
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"GET /v1/blocks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 503"), "{reply}");
        std::thread::sleep(Duration::from_millis(2200));
        signal(&server.child, "INT");
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(server.child.wait().unwrap().code(), Some(130), "{rest}");
        assert!(!rest.contains("is damaged") && rest.contains("stopped"), "{rest}");
    }
}
