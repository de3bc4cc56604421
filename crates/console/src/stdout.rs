//! Unbuffered results on stdout, with every failed write reported.
//!
//! A key that was found and could not be printed is lost, so a failed write is never ignored, with one exception: a reader that
//! leaves after it has had a result (`| head -1`) simply ends the command. There is no buffer, so that a result is out when a write
//! returns and no copy of a secret stays behind in one.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use serde::Serialize;
use warpsmith_text::is_unprintable;

use crate::exit::Failure;
use crate::redact::escaped;
use crate::terminal;

/// stdout, for results and documents.
pub struct Stdout {
    file: File,
    is_terminal: bool,
    /// Whether a result has been written.
    delivered: bool,
}

impl Stdout {
    /// Opens stdout.
    pub fn open() -> Result<Stdout, Failure> {
        let fd = std::io::stdout().as_fd().try_clone_to_owned();
        let fd = fd.map_err(|error| Failure::Other(format!("stdout cannot be used: {error}")))?;
        let file = File::from(fd);
        Ok(Stdout { is_terminal: file.is_terminal(), file, delivered: false })
    }

    /// Fails if stdout was closed when the program started, before work begins whose result could not be delivered.
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

    /// Writes reproducible output; a reader that is gone ends the command quietly.
    pub fn show(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Other(format!("stdout could not be written: {error}")),
        })
    }

    /// Writes reproducible text for people, escaped, since untrusted text may be part of it.
    pub fn show_text(&mut self, text: &str) -> Result<(), Failure> {
        self.show(escaped(text).as_bytes())
    }

    /// Writes a reproducible JSON document.
    pub fn show_json(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.show(&json_line(line))
    }

    /// Returns a buffer for many lines of reproducible output.
    pub fn buffered(&mut self) -> BufferedLines<'_> {
        BufferedLines { stdout: self, bytes: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// With `json`, writes the last document of a command: event `done` with the fields of this summary.
    pub fn done(&mut self, json: bool, summary: &impl Serialize) -> Result<(), Failure> {
        match json {
            true => self.show_json(&Done { event: "done", summary }),
            false => Ok(()),
        }
    }

    /// Writes a JSON document that precedes a result: without its reader, the result has none either.
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
        // Only a terminal has a block that is in the way, and anything else may block the writer.
        if self.is_terminal {
            terminal::aside(|| self.file.write_all(bytes))
        } else {
            self.file.write_all(bytes)
        }
    }
}

/// Bytes of lines that are written together.
const BUFFER_BYTES: usize = 1 << 16;

/// Buffer of lines for stdout. Lines that were added and not flushed are not written.
pub struct BufferedLines<'s> {
    stdout: &'s mut Stdout,
    bytes: Vec<u8>,
}

impl BufferedLines<'_> {
    /// Adds a line, which includes its end.
    pub fn add(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.bytes.extend_from_slice(line);
        if self.bytes.len() < BUFFER_BYTES { Ok(()) } else { self.flush() }
    }

    /// Adds a JSON document.
    pub fn add_json(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        self.add(&json_line(line))
    }

    /// Writes the buffered lines.
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
    summary: &'a T,
}

/// Empty summary of a command that is done.
#[derive(Serialize)]
pub struct NoSummary {}

/// Version of the JSON documents: it changes when a field changes its meaning or is removed, not when one is added.
pub const JSON_VERSION: u32 = 1;

/// A document with its version, in each line, since files of results are appended to over years.
#[derive(Serialize)]
struct Versioned<'a, T: Serialize> {
    #[serde(flatten)]
    line: &'a T,
    version: u32,
}

/// Returns a document as a line. Control and invisible characters of untrusted text are escaped, which leaves the values as they
/// are.
fn json_line(line: &impl Serialize) -> Vec<u8> {
    let line = Versioned { line, version: JSON_VERSION };
    let mut text = serde_json::to_string(&line).expect("our lines have text keys and plain values");
    if text.contains(is_unprintable) {
        text = escaped_json(&text);
    }
    text.push('\n');
    text.into_bytes()
}

/// Writes the unprintable characters of JSON, which occur in strings only, as `\uXXXX`.
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

/// Whether stdout was closed when the program started. Rust opens `/dev/null` in its place before `main`, after which every write
/// succeeds into nothing; so a function called by the loader checks before that.
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

/// Other systems are not checked.
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
