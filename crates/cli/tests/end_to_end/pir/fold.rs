//! Databases that are folded under a running server, with clients that ask all the while.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Desk, Server, assert_entries, pir};
use crate::harness::{BINARY, text};

/// Appends an epoch in which some entries have a new value, and takes them over.
fn change(desk: &Desk, database: &str, bytes: &mut [u8], round: usize) {
    let mut lines = String::new();
    for index in [round % 3000, 2999, 17 * round % 3000] {
        let value: Vec<u8> = (0..24).map(|i| (round * 31 + index + i) as u8).collect();
        bytes[24 * index..][..24].copy_from_slice(&value);
        lines += &format!("{index} {}\n", const_hex::encode(&value));
    }
    pir(&["update", database, &desk.write("changes", lines)]).code(0);
}

#[test]
fn every_answer_is_right_before_during_and_after_a_fold() {
    for place in ["memory", "file"] {
        let desk = Desk::new();
        let (database, mut bytes) = desk.flat("data.pir", 3000);
        let server = Server::start(&database, &["--entries", place]);
        let (mine, behind) = (desk.path("mine.state"), desk.path("behind.state"));
        server.hint(&mine, &[]).code(0);
        server.hint(&behind, &["--queries", "64"]).code(0);
        let nothing = pir(&["fold", &database, "--json"]).code(0).json().remove(0);
        assert_eq!((&nothing["epoch"], &nothing["changes"]), (&0.into(), &0.into()));
        for round in 1..=3usize {
            change(&desk, &database, &mut bytes, 2 * round);
            change(&desk, &database, &mut bytes, 2 * round + 1);
            server.wait_for_epoch(2 * round as u64);
            assert_entries(server.get(&mine, &["17", "2999", "5"]), &[17, 2999, 5], &bytes);
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let asking = scope.spawn(|| {
                    let mut asked = 0;
                    while !done.load(Ordering::Relaxed) || asked < 2 {
                        assert_entries(server.get(&mine, &["2999", "6", "0"]), &[2999, 6, 0], &bytes);
                        asked += 1;
                    }
                });
                let folded = pir(&["fold", &database, "--keep", "3", "--keep-changes", "0", "--json"]);
                let folded = folded.code(0).json().remove(0);
                assert_eq!((text(&folded, "event"), &folded["epoch"]), ("folded", &(2 * round).into()));
                assert_eq!((&folded["from_epoch"], &folded["changes"]), (&(2 * round - 2).into(), &6.into()));
                assert_eq!(folded["oldest_epoch"], (2 * round).saturating_sub(3));
                done.store(true, Ordering::Relaxed);
                asking.join().unwrap();
            });
            let about = pir(&["info", &database, "--json", "--verify"]).code(0).json().remove(0);
            assert_eq!((&about["epoch"], &about["newest_epoch"]), (&(2 * round).into(), &(2 * round).into()));
            assert_eq!(about["oldest_epoch"], (2 * round).saturating_sub(3));
            // Who comes new has the same entries, from the new file.
            let new = desk.path(&format!("{round}.state"));
            let made = server.hint(&new, &["--queries", "16"]).code(0).json().remove(0);
            assert_eq!(made["epoch"], 2 * round);
            assert_entries(server.get(&new, &["17", "2999", "6"]), &[17, 2999, 6], &bytes);
            let state = pir(&["info", &new, "--json"]).code(0).json().remove(0);
            assert_eq!(text(&state, "database_identity"), text(&about, "origin"));
        }
        // Who is too far behind is told, and what to do; the state is as it was.
        let told = server.get(&behind, &["17"]).code(4);
        told.says(&["epoch 0 is not known any more; there are 3 to 6", "pir hint"]);
        assert_eq!(pir(&["info", &behind, "--json"]).code(0).json()[0]["remaining"], 64);
        let (code, said) = server.stop("INT");
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains("the file is of epoch 6 now; clients can come from epoch 3 on"), "{said}");
        // And started again from the new file.
        let server = Server::start(&database, &["--entries", place]);
        change(&desk, &database, &mut bytes, 100);
        server.wait_for_epoch(7);
        assert_entries(server.get(&mine, &["100", "2999"]), &[100, 2999], &bytes);
        assert_eq!(
            desk.names().iter().filter(|name| name.starts_with("data.pir")).collect::<Vec<_>>(),
            ["data.pir", "data.pir.updates"]
        );
    }
}

/// SIGKILL at any moment: the server goes on, and the next fold does what this one did not.
#[test]
fn a_fold_that_is_killed_is_of_no_consequence() {
    let desk = Desk::new();
    // Of some megabytes, so that it takes a moment.
    let entries = 400_000;
    let mut bytes: Vec<u8> = (0..entries * 24u64).map(|i| (i * i * 31 + i / 7) as u8).collect();
    let (database, input) = (desk.path("data.pir"), desk.write("input.bin", &bytes));
    pir(&["build", &database, &input, "--entry-size", "24"]).code(0);
    let server = Server::start(&database, &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &["--lambda", "20", "--queries", "64"]).code(0);
    let (mut killed, mut delay) = (0, Duration::from_millis(1));
    for round in 1..=12usize {
        change(&desk, &database, &mut bytes, round);
        let mut fold = Command::new(BINARY);
        let mut fold = fold
            .args(["pir", "fold", &database, "--quiet", "--keep", "20"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(delay);
        let is_running = fold.try_wait().unwrap().is_none();
        fold.kill().unwrap();
        fold.wait().unwrap();
        killed += u32::from(is_running);
        // Later and later, until one gets to its end; then from the beginning.
        delay = if is_running { delay * 3 / 2 } else { Duration::from_millis(1) };
        server.wait_for_epoch(round as u64);
        assert_entries(server.get(&mine, &["2999", "1", "399999"]), &[2999, 1, 399_999], &bytes);
        pir(&["info", &database, "--verify"]).code(0);
    }
    assert!(killed >= 4, "{killed} were still at work when they were killed");
    assert_eq!(pir(&["fold", &database, "--json"]).code(0).json()[0]["epoch"], 12);
    assert_entries(server.get(&mine, &["2999", "12"]), &[2999, 12], &bytes);
    assert_eq!(
        desk.names().iter().filter(|name| name.starts_with("data.pir")).collect::<Vec<_>>(),
        ["data.pir", "data.pir.updates"]
    );
}
