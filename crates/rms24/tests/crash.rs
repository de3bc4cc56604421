//! A client that is killed at any moment sends no hint twice.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use warpsmith_rms24::Choice;

use crate::support::{Bench, Dice, open};

const STATE: &str = "WARPSMITH_PIR_TEST_STATE";
/// What a line of the file of what was sent ends with.
const WHOLE: &str = " whole";

/// The client that is killed: asks for ever, and writes what it sends to a file, as a server would see it.
#[test]
fn child() {
    let Ok(state) = std::env::var(STATE) else { return };
    let state = std::path::Path::new(&state);
    let folder = state.parent().unwrap();
    let mut sent = std::fs::OpenOptions::new().append(true).create(true).open(folder.join("sent")).unwrap();
    let live =
        warpsmith_rms24::updates::Live::open(&folder.join("data"), warpsmith_hash::Lanes::detect(), 1000)
            .unwrap();
    let mut client = open(state);
    let mut dice = Dice::new();
    let mut asked = client.resend().unwrap();
    loop {
        // A kill can cut a line off where it crosses a page; then it was not sent.
        let ids = client.spent_ids();
        if !ids.is_empty() {
            let body: String = asked.body.iter().map(|byte| format!("{byte:02x}")).collect();
            sent.write_all(format!("\n{ids:?} {body}{WHOLE}").as_bytes()).unwrap();
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
        Bench::new(Choice { lambda: 60, block_size: Some(16), backups: Some(8000), ..Choice::new(200, 40) });
    drop(bench.client());
    let sent = bench.folder.path().join("sent");
    let written = || std::fs::metadata(&sent).map_or(0, |file| file.len());
    let mut killed = 0;
    for round in 0..25 {
        let (started, before) = (Instant::now(), written());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--nocapture"])
            .env(STATE, bench.state())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // From any moment of the start on, or of the work, however long the start takes.
        while round % 2 == 1 && written() == before && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(300), "the client does not get anywhere");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(dice.below(50_000)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        // SIGKILL.
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    }
    let sent = std::fs::read_to_string(&sent).unwrap();
    let mut by_id = std::collections::HashMap::new();
    let mut batches = 0;
    for line in sent.lines().filter_map(|line| line.strip_suffix(WHOLE)) {
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
    println!("{batches} batches, {} hints, {killed} killed", by_id.len());
    assert!(killed >= 12, "{killed} of the children were still at work when they were killed");
    assert!(batches >= 12, "the children did next to nothing: {batches}");
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
