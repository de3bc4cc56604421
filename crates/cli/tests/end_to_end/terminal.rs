//! A terminal for the binary: what it asks there is answered, and what it shows there is kept.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::harness::{BINARY, Run};
use crate::openpty::{command_it, pair};

/// Runs the binary on a terminal of its own, and answers each question in turn. What the terminal showed comes with the run.
pub fn answer(args: &[&str], answers: &[(&str, &str)]) -> (Run, String) {
    let (master, slave) = pair(80, 24);
    let mut command = Command::new(BINARY);
    command.args(args).stdin(slave.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command_it(&mut command);
    let child = command.spawn().unwrap();
    drop(command);
    let mut terminal = File::from(master);
    let mut shown = Vec::new();
    let mut from = 0;
    for (question, typed) in answers {
        let text = |shown: &[u8]| String::from_utf8_lossy(shown).into_owned();
        while !text(&shown[from..]).contains(question) {
            let mut byte = [0];
            let got = terminal.read(&mut byte).unwrap_or(0);
            assert_eq!(got, 1, "'{question}' was not asked: {}", text(&shown));
            shown.push(byte[0]);
        }
        from = shown.len();
        terminal.write_all(format!("{typed}\r").as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(slave);
    // Ends with an error where the other side is closed.
    let _ = terminal.read_to_end(&mut shown);
    (output.into(), String::from_utf8_lossy(&shown).into_owned())
}
