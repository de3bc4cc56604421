//! A client that is killed at any moment sends no hint twice.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use warpsmith_pir::Choice;

mod support;
use support::{Bench, Dice, open};

const STATE: &str = "WARPSMITH_PIR_TEST_STATE";

/// The client that is killed: asks for ever, and writes what it sends to a file, as a server would see it.
#[test]
fn child() {
    let Ok(state) = std::env::var(STATE) else { return };
    let state = std::path::Path::new(&state);
    let folder = state.parent().unwrap();
    let mut sent = std::fs::OpenOptions::new().append(true).create(true).open(folder.join("sent")).unwrap();
    let live =
        warpsmith_pir::updates::Live::open(&folder.join("data"), warpsmith_hash::Lanes::detect(), 1000)
            .unwrap();
    let mut client = open(state);
    let mut dice = Dice::new();
    let mut asked = client.resend().unwrap();
    loop {
        // A line in one write: whole or not there at all, also when killed.
        let ids = client.spent_ids();
        if !ids.is_empty() {
            let body: String = asked.body.iter().map(|byte| format!("{byte:02x}")).collect();
            sent.write_all(format!("{ids:?} {body}\n").as_bytes()).unwrap();
            let answers = live.answer(&asked.body, 10).unwrap();
            for result in client.receive(&asked, &answers).unwrap() {
                result.unwrap();
            }
        }
        if dice.below(5) == 0 {
            client.compact().unwrap();
        }
        if client.remaining() < 3 {
            return;
        }
        let indices: Vec<u64> = (0..1 + dice.below(3)).map(|_| dice.below(200)).collect();
        asked = client.ask(&indices).unwrap();
    }
}

#[test]
fn no_hint_is_sent_twice_by_a_client_that_is_killed() {
    let mut dice = Dice::new();
    let bench =
        Bench::new(Choice { lambda: 60, block_size: Some(16), backups: Some(4000), ..Choice::new(200, 40) });
    drop(bench.client());
    for _ in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(STATE, bench.state())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(20_000 + dice.below(150_000)));
        // SIGKILL.
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    }
    let sent = std::fs::read_to_string(bench.folder.path().join("sent")).unwrap();
    let mut by_id = std::collections::HashMap::new();
    let mut batches = 0;
    for line in sent.lines() {
        let (ids, body) = line.rsplit_once(' ').unwrap();
        batches += 1;
        for id in ids.trim_matches(['[', ']']).split(", ") {
            let earlier = by_id.insert(id.to_owned(), body.to_owned());
            assert!(
                earlier.is_none_or(|earlier| earlier == body),
                "hint {id} was sent in two different queries"
            );
        }
    }
    println!("{batches} batches, {} hints", by_id.len());
    assert!(batches > 25, "the children did next to nothing: {batches}");
    // And the state still gives right answers.
    let mut client = open(&bench.state());
    let waiting = client.resend().unwrap();
    let answers = bench.live.answer(&waiting.body, 10).unwrap();
    client.receive(&waiting, &answers).unwrap();
    for index in 0..20 {
        if client.remaining() > 0 {
            bench.fetch(&mut client, &[index * 7]);
        }
    }
}
