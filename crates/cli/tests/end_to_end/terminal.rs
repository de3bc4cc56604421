//! A terminal for the binary: what it asks there is answered, and what it shows there is kept.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::harness::{BINARY, Run};

/// Runs the binary on a terminal of its own, and answers each question in turn. What the terminal showed comes with the run.
pub fn answer(args: &[&str], answers: &[(&str, &str)]) -> (Run, String) {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: writes two descriptors to places of ours; the other arguments may be null.
    let made = unsafe {
        libc::openpty(
            &mut master,
            &mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(made, 0, "a terminal");
    // SAFETY: both were just made and belong to nobody else.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut command = Command::new(BINARY);
    command.args(args).stdin(slave.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: two system calls, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
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
