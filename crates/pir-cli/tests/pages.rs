//! The commands in the README and in `docs/` are run as they stand there.

use std::fs;
use std::path::Path;

use warpsmith_trials::programs::{check_commands, check_flags};

use crate::harness::PROGRAM;

/// What the pages take for granted.
fn furnish(folder: &Path) {
    fs::write(folder.join("entries.bin"), [7; 4000]).unwrap();
}

#[test]
fn commands_do_what_the_pages_say() {
    let run = check_commands(&PROGRAM, furnish);
    assert!(run > 1, "{run}");
}

#[test]
fn commands_that_cannot_be_run_here_have_flags_that_there_are() {
    let read = check_flags(&PROGRAM, "info data.pir");
    assert!(read > 5, "{read}");
}
