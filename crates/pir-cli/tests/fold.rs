//! Databases that are folded under a running server, with clients that ask all the while.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{BINARY, Desk, PATIENCE, Server, assert_entries, pir, text};

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
        let told = || {
            server
                .get(&behind, &["17", "--no-new-hints"])
                .code(4)
                .says(&["epoch 0 is not known any more", "new hints"])
        };
        // Once the server has seen the last fold.
        let begin = Instant::now();
        while !told().stderr.contains("there are 3 to 6") {
            assert!(begin.elapsed() < PATIENCE, "{:?}", told());
        }
        assert_eq!(pir(&["info", &behind, "--json"]).code(0).json()[0]["remaining"], 64);
        // Or has new hints at once, as many as before.
        let renewed = server.get(&behind, &["17", "2999"]);
        assert!(
            renewed.stderr.contains("new hints are made") && renewed.stderr.contains("epoch 6"),
            "{renewed:?}"
        );
        assert_entries(renewed, &[17, 2999], &bytes);
        let state = pir(&["info", &behind, "--json"]).code(0).json().remove(0);
        assert_eq!((&state["epoch"], &state["remaining"]), (&6.into(), &62.into()));
        let (code, said) = server.stop("INT");
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains("the file is of epoch 6 now"), "{said}");
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
    server.hint(&mine, &["--lambda", "60", "--queries", "64"]).code(0);
    let (mut killed, mut delay) = (0, Duration::from_millis(1));
    for round in 1..=12usize {
        change(&desk, &database, &mut bytes, round);
        let mut fold = Command::new(BINARY);
        let mut fold = fold
            .args(["fold", &database, "--quiet", "--keep", "20"])
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

/// More keys than a table has places for: it grows, its server goes over to it, and clients make new hints.
#[test]
fn a_table_grows_and_its_clients_are_told() {
    let desk = Desk::new();
    let pairs: String = (0..40u32).map(|i| format!("{:06x} {:08x}\n", i * 977, i)).collect();
    let (database, input) = (desk.path("keys.pir"), desk.write("pairs.txt", pairs));
    pir(&["build", &database, &input]).code(0);
    let before = pir(&["info", &database, "--json"]).code(0).json().remove(0);
    let server = Server::start(&database, &[]);
    let state = desk.path("state");
    server.hint(&state, &["--queries", "600"]).code(0);
    let changes: String = (40..300u32).map(|i| format!("{:06x} {:08x}\n", i * 977, i)).collect();
    let run = pir(&["update", &database, &desk.write("changes", changes), "--json"]).code(0);
    let run = run.says(&["a new key has no place", "clients must make new hints"]);
    let lines = run.json();
    assert_eq!(
        (text(&lines[0], "event"), &lines[0]["epoch"], &lines[0]["keys"]),
        ("grown", &1.into(), &40.into())
    );
    assert_eq!((text(&lines[1], "event"), &lines[1]["epoch"]), ("updated", &2.into()));
    let after = pir(&["info", &database, "--json", "--verify"]).code(0).json().remove(0);
    assert!(
        after["entries"].as_u64() > before["entries"].as_u64() && after["identity"] != before["identity"]
    );
    assert_eq!((&after["epoch"], &after["newest_epoch"]), (&1.into(), &2.into()));
    server.wait_for_epoch(2);
    // The old hints are told from the new ones, and nothing is asked with them.
    let keys = ["000000", "0094d7", "04751b", "ffffff"];
    server
        .get(&state, &[&keys[..], &["--no-new-hints"]].concat())
        .code(4)
        .says(&["larger table", "new hints"]);
    let run = server.get(&state, &keys).code(1).says(&["larger table", "new hints are made"]);
    let expected = ["00000000", "00000027", "0000012b"];
    let lines = run.json();
    for (line, value) in lines.iter().zip(expected) {
        assert_eq!((text(line, "value"), &line["found"]), (value, &true.into()), "{line}");
    }
    assert_eq!(lines[3]["found"], false);
    let (code, said) = server.stop("INT");
    assert_eq!(code, Some(130), "{said}");
    // Values in many chunks find room at once, and nothing moves twice.
    let (pages, page) = (desk.path("pages.pir"), "x".repeat(5000));
    let few: String = (0..20).map(|i| format!("page {i}\t{page}\n")).collect();
    pir(&["build", &pages, &desk.write("pages.tsv", few), "--format", "text"]).code(0);
    let many: String = (0..300).map(|i| format!("new {i}\t{page}{i}\n")).collect();
    let lines = pir(&["update", &pages, &desk.write("many.tsv", many), "--json"]).code(0).json();
    let events: Vec<&str> = lines.iter().map(|line| text(line, "event")).collect();
    assert_eq!(events, ["grown", "updated"]);
    // Records of a state move by the list of their names, and not without it.
    let (listed, bare) = (desk.path("listed.pir"), desk.path("bare.pir"));
    pir(&["build", &listed, "--synthetic", "60", "--names"]).code(0);
    pir(&["build", &bare, "--synthetic", "60"]).code(0);
    let changes: String = (1..200u32).map(|i| format!("0x{i:040x} {i},1,0\n")).collect();
    let changes = desk.write("accounts", changes);
    pir(&["update", &bare, &changes]).code(4).says(&[
        "accounts:",
        "there is no place for this new key",
        "--names",
    ]);
    pir(&["update", &listed, &changes]).code(0).says(&["all keys move to a larger table"]);
    let server = Server::start(&listed, &[]);
    let state = desk.path("listed.state");
    server.hint(&state, &["--queries", "900"]).code(0);
    let wanted: Vec<String> = (1..200u32).map(|i| format!("0x{i:040x}")).collect();
    let lines = server.get(&state, &wanted.iter().map(String::as_str).collect::<Vec<_>>()).code(0).json();
    for (line, i) in lines.iter().zip(1u32..) {
        assert_eq!((text(line, "balance"), &line["nonce"]), (&i.to_string()[..], &1.into()));
    }
}

/// Many changes, of a database for which new hints are next to no work: the cheaper way is taken, and told.
#[test]
fn the_cheaper_way_to_the_newest_epoch_is_taken_and_told() {
    let desk = Desk::new();
    let (database, mut bytes) = desk.flat("data.pir", 3000);
    let server = Server::start(&database, &[]);
    let (few, many) = (desk.path("few.state"), desk.path("many.state"));
    server.hint(&few, &["--queries", "64"]).code(0);
    // With so many hints that a change takes its time.
    server.hint(&many, &["--lambda", "2000", "--queries", "60000"]).code(0);
    change(&desk, &database, &mut bytes, 1);
    server.wait_for_epoch(1);
    let run = server.get(&few, &["1"]);
    assert!(run.stderr.contains("from epoch 0 to 1 by 3 changes, 96 bytes; new ones take 72,096"), "{run:?}");
    let done = run.stdout.lines().last().unwrap().parse::<serde_json::Value>().unwrap();
    let caught_up = &done["caught_up"];
    assert_eq!((text(caught_up, "by"), &caught_up["from_epoch"]), ("updates", &0.into()));
    assert_eq!((&caught_up["changes"], &caught_up["update_bytes"]), (&3.into(), &96.into()));
    // Each changes every entry, some forty times the blocks.
    for round in 0..6usize {
        let mut lines = String::new();
        for index in 0..3000usize {
            let value: Vec<u8> = (0..24).map(|i| (round * 7 + index + i) as u8).collect();
            bytes[24 * index..][..24].copy_from_slice(&value);
            lines += &format!("{index} {}\n", const_hex::encode(&value));
        }
        pir(&["update", &database, &desk.write("changes", lines)]).code(0);
    }
    server.wait_for_epoch(7);
    let run = server.get(&many, &["5", "2999"]);
    assert!(run.stderr.contains("changes are left") && run.stderr.contains("new hints are made"), "{run:?}");
    let done = run.stdout.lines().last().unwrap().parse::<serde_json::Value>().unwrap();
    let caught_up = &done["caught_up"];
    assert_eq!((text(caught_up, "by"), &caught_up["epoch"]), ("hints", &7.into()));
    let number = |name: &str| caught_up[name].as_f64().unwrap();
    assert!(number("hints_s") < number("update_s") && number("changes") > 10_000.0, "{done}");
    assert_entries(run, &[5, 2999], &bytes);
    assert_entries(server.get(&many, &["17"]), &[17], &bytes);
    let about = pir(&["info", &many, "--json"]).code(0).json().remove(0);
    assert_eq!((&about["epoch"], &about["remaining"]), (&7.into(), &59_997.into()));
    // Unless that is not wanted.
    assert_entries(server.get(&few, &["17", "--no-new-hints"]), &[17], &bytes);
}

/// An update folds what has become too much, and only then; entries and states stay good.
#[test]
fn updates_fold_by_themselves() {
    let desk = Desk::new();
    let (database, mut bytes) = desk.flat("data.pir", 3000);
    let server = Server::start(&database, &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &["--queries", "64"]).code(0);
    for round in 1..=5u8 {
        let index = 100 * usize::from(round);
        bytes[24 * index..][..48].fill(round);
        let value = const_hex::encode([round; 24]);
        let changes = desk.write("changes", format!("{index} {value}\n{} {value}\n", index + 1));
        let lines = pir(&["update", &database, &changes, "--fold-after", "4", "--json"]).code(0).json();
        let events: Vec<&str> = lines.iter().map(|line| text(line, "event")).collect();
        // Two changes each: four of them with every second.
        let wanted: &[&str] = if round % 2 == 0 { &["updated", "folded"] } else { &["updated"] };
        assert_eq!(events, wanted, "{round}");
    }
    let about = pir(&["info", &database, "--json", "--verify"]).code(0).json().remove(0);
    assert_eq!((&about["epoch"], &about["newest_epoch"]), (&4.into(), &5.into()));
    server.wait_for_epoch(5);
    assert_entries(
        server.get(&mine, &["100", "201", "300", "501", "502"]),
        &[100, 201, 300, 501, 502],
        &bytes,
    );
}
