//! stdout, where results go: unbuffered, and every failure to write noticed.
//!
//! A key that was found and could not be printed is lost, so such a failure is never ignored, with one
//! exception: a reader that leaves after it has had a result (`| head -1`) simply ends the command. There is no
//! buffer, so that a result is out when a write returns and no copy of a secret stays behind in one.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use serde::Serialize;
use warpsmith::chain::is_unprintable;

use crate::ending::Failure;
use crate::screen::terminal;
use crate::telling::escaped;

pub(crate) struct Stdout {
    file: File,
    is_terminal: bool,
    /// Whether a result has been written.
    delivered: bool,
}

impl Stdout {
    pub fn open() -> Result<Stdout, Failure> {
        let fd = std::io::stdout().as_fd().try_clone_to_owned();
        let fd = fd.map_err(|error| Failure::Other(format!("stdout cannot be used: {error}")))?;
        let file = File::from(fd);
        Ok(Stdout { is_terminal: file.is_terminal(), file, delivered: false })
    }

    /// Refuses to start work whose result would go nowhere.
    pub fn require_open(&self) -> Result<(), Failure> {
        match at_start::is_closed() {
            false => Ok(()),
            true => Err(Failure::Other(
                "stdout is closed, so a result could not be delivered; leave stdout open or give --output FILE"
                    .to_owned(),
            )),
        }
    }

    /// Writes a result that exists nowhere else.
    pub fn deliver(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe if self.delivered => Failure::ReaderGone,
            ErrorKind::BrokenPipe => Failure::Other(
                "stdout is closed; the result could not be delivered and is lost. Keep the reader of stdout \
                 open, or give --output FILE"
                    .to_owned(),
            ),
            _ => Failure::Other(format!(
                "stdout could not be written ({error}); a result that was not shown in full is lost. Free \
                 space where stdout goes, or give --output FILE"
            )),
        })?;
        self.delivered = true;
        Ok(())
    }

    /// Writes what can be had again; a reader that is gone ends the command quietly.
    pub fn show(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Other(format!("stdout could not be written: {error}")),
        })
    }

    /// Writes a text for people that can be had again. What others wrote may be part of it, so it is escaped.
    pub fn show_text(&mut self, text: &str) -> Result<(), Failure> {
        self.show(escaped(text).as_bytes())
    }

    /// Writes one JSON document that can be had again.
    pub fn show_json(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.show(&json_line(line))
    }

    /// For lines that can be had again and are too many to be written one by one.
    pub fn gathered(&mut self) -> Gathered<'_> {
        Gathered { stdout: self, bytes: Vec::with_capacity(TOGETHER) }
    }

    /// Ends what a command prints as JSON: it is done, and this is how it went.
    pub fn done(&mut self, json: bool, how: &impl Serialize) -> Result<(), Failure> {
        match json {
            true => self.show_json(&Done { event: "done", how }),
            false => Ok(()),
        }
    }

    /// Writes one JSON document that precedes a result: without its reader, the result has none either.
    pub fn progress_json(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.write(&json_line(line)).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe if self.delivered => Failure::ReaderGone,
            _ => Failure::Other(format!(
                "stdout could not be written ({error}), so a result could not be delivered either; the search was \
                 stopped. Keep the reader of stdout open"
            )),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        // Only a terminal has a block that is in the way, and what is no terminal may keep a writer waiting.
        if self.is_terminal {
            terminal::aside(|| self.file.write_all(bytes))
        } else {
            self.file.write_all(bytes)
        }
    }
}

/// So many bytes of lines are written together.
const TOGETHER: usize = 1 << 16;

/// Lines on their way to stdout, many of them at a time. What was added and not flushed is not written.
pub(crate) struct Gathered<'s> {
    stdout: &'s mut Stdout,
    bytes: Vec<u8>,
}

impl Gathered<'_> {
    /// Adds a line with its end.
    pub fn add(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.bytes.extend_from_slice(line);
        if self.bytes.len() < TOGETHER { Ok(()) } else { self.flush() }
    }

    /// Adds a JSON document.
    pub fn add_json(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.add(&json_line(line))
    }

    /// Writes what was added.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let written = self.stdout.show(&self.bytes);
        self.bytes.clear();
        written
    }
}

/// The last document of a command.
#[derive(Serialize)]
struct Done<'a, T: Serialize> {
    event: &'static str,
    #[serde(flatten)]
    how: &'a T,
}

/// Where there is nothing to say of how it went, but that it did.
#[derive(Serialize)]
pub(crate) struct AsAsked {}

/// What documents of ours are called by those who read them: it changes when a field changes its meaning or goes, not when one
/// is added.
pub(crate) const JSON_VERSION: u32 = 1;

/// A document with its version: files of results are added to over years, so each line says it.
#[derive(Serialize)]
struct Versioned<'a, T: Serialize> {
    #[serde(flatten)]
    line: &'a T,
    version: u32,
}

/// A document without secrets, and the end of its line. Characters of untrusted text that a terminal would obey or not show are
/// escaped, which leaves the values as they are.
fn json_line(line: &impl Serialize) -> Vec<u8> {
    let line = Versioned { line, version: JSON_VERSION };
    let mut text = serde_json::to_string(&line).expect("our lines have text keys and plain values");
    if text.contains(is_unprintable) {
        text = escaped_json(&text);
    }
    text.push('\n');
    text.into_bytes()
}

/// JSON whose unprintable characters, which occur in texts alone, are written as `\uXXXX`.
fn escaped_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        match is_unprintable(character) {
            true => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(out, "\\u{unit:04x}");
            }),
            false => out.push(character),
        }
    }
    out
}

/// Whether stdout was closed when the program started. Rust opens `/dev/null` in its place before `main`, after
/// which every write succeeds into nothing; so the look is taken before that, by a function the loader calls.
#[cfg(target_os = "linux")]
mod at_start {
    use std::sync::atomic::{AtomicBool, Ordering};

    static CLOSED: AtomicBool = AtomicBool::new(false);

    // SAFETY: the section holds pointers to functions that are called once before `main`; this is one, and it
    // needs nothing of the runtime that is not there yet.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: F_GETFD only asks for a descriptor's flags; it fails if the descriptor is closed.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        CLOSED.store(closed, Ordering::Relaxed);
    }

    pub fn is_closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }
}

/// Elsewhere nobody looks.
#[cfg(not(target_os = "linux"))]
mod at_start {
    pub fn is_closed() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_hide_nothing_and_mean_the_same() {
        let text = "a\u{202e}b\u{9b}c\u{e0041}\u{7f}é\n";
        let line = String::from_utf8(json_line(&serde_json::json!({ "said": text }))).unwrap();
        assert!(line.contains(r"a\u202eb\u009bc\udb40\udc41\u007fé\n"), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["said"], text);
    }
}
