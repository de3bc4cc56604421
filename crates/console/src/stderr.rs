//! Messages on stderr: redacted, wrapped to the terminal, and kept apart from the block that is drawn there.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::redact::redacted;
use crate::{human, terminal};

/// Prints a message as a line, without possible secrets. A closed stderr is ignored.
pub fn report(text: &str) {
    let mut line = redacted(text);
    if std::io::stderr().is_terminal() {
        line = human::fitted(&line, usize::from(terminal::size().0).max(20));
    }
    line.push('\n');
    let _ = terminal::aside(|| std::io::stderr().write_all(line.as_bytes()));
}

/// Prints a warning.
pub fn warn(text: &str) {
    report(&format!("warning: {text}"));
}

static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Enables [`verbose`], as `--verbose` asks for.
pub fn set_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// Returns whether `--verbose` was given.
pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Prints a detail if `--verbose` was given.
pub fn verbose(text: impl FnOnce() -> String) {
    if is_verbose() {
        report(&format!("verbose: {}", text()));
    }
}
