//! How a command ends: the exit codes, and failures with the words for them.
//!
//! A failure is sorted by its exit code, as scripts see it; its message says what was given, what is allowed and
//! what to do. SEC: no message may carry a secret.

use std::error::Error as StdError;
use std::{fmt, io};

use serde::Serialize;
use warpsmith::{search, store};

use crate::stdout::Stdout;
use crate::telling::{discreet, tell};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Found, or done.
    Done,
    /// Ended without a match.
    NoMatch,
    /// Stopped by a person or the system.
    Interrupted,
    /// Failed; the message has been shown.
    Failed(u8),
}

impl Ending {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::NoMatch => 1,
            Ending::Interrupted => 130,
            Ending::Failed(code) => code,
        }
    }
}

/// Why a command could not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was given cannot be done.
    Usage(String),
    /// No usable device, or one that cannot be trusted.
    Device(String),
    /// A file or a message is not what it ought to be. Where it is the input of a command, that is wrong usage.
    Malformed(String),
    /// Disk, randomness, stdout and so on.
    Other(String),
    /// The reader of stdout has had enough, as in `| head -1`. Not a failure to anybody.
    ReaderGone,
    /// A person or the system ended it, and nothing was left half done.
    Interrupted,
}

/// The last document of a command that failed, where it prints JSON.
#[derive(Serialize)]
struct ErrorLine {
    event: &'static str,
    message: String,
    code: u8,
}

impl Failure {
    /// A failure of this error, behind the flag or the file it is about. What is not there was named wrongly, in whatever
    /// command, and so was a list that cannot be read as one; all else is nothing that another command line would change.
    pub fn of(about: &str, error: &(dyn StdError + 'static)) -> Failure {
        let text = if about.is_empty() { error.to_string() } else { format!("{about}: {error}") };
        if is_missing(error) {
            Failure::missing(&text)
        } else if is_bad_list(error) {
            Failure::Usage(text)
        } else {
            Failure::Other(text)
        }
    }

    /// A failure while a command reads its input: what is malformed there is wrong usage.
    pub fn of_input(self) -> Failure {
        match self {
            Failure::Malformed(text) => Failure::Usage(text),
            other => other,
        }
    }

    /// The same of a file that the system was asked for by name.
    pub fn of_file(file: &dyn fmt::Display, error: &io::Error) -> Failure {
        Failure::of(&file.to_string(), error)
    }

    fn missing(text: &str) -> Failure {
        Failure::Usage(format!("{text}; give the name of one that is there"))
    }

    /// Says what happened: on stderr, and as a document where those are asked for.
    pub fn report(self, json: bool) -> Ending {
        let ending = match self {
            Failure::ReaderGone => return Ending::Done,
            Failure::Interrupted => Ending::Interrupted,
            Failure::Usage(_) => Ending::Failed(2),
            Failure::Device(_) => Ending::Failed(3),
            Failure::Malformed(_) | Failure::Other(_) => Ending::Failed(4),
        };
        let text = self.to_string();
        if json {
            tell_json(&text, ending.code());
        }
        if ending != Ending::Interrupted {
            tell(&format!("error: {text}"));
        }
        ending
    }
}

/// Says on stdout, as a document, what went wrong. A stdout that cannot be written is what went wrong, or does not matter more.
pub(crate) fn tell_json(message: &str, code: u8) {
    let line = ErrorLine { event: "error", message: discreet(message), code };
    let _ = Stdout::open().and_then(|mut stdout| stdout.show_json(&line));
}

/// Whether the system says that there is no such file, at the bottom of this error.
pub(crate) fn is_missing(error: &(dyn StdError + 'static)) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::NotFound)
}

/// Whether a file that was given as a list of addresses is none.
fn is_bad_list(error: &(dyn StdError + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<store::Error>()).any(|cause| {
        matches!(
            cause,
            store::Error::BadLine(_) | store::Error::NotLines { .. } | store::Error::NoAddress { .. }
        )
    })
}

/// An error and what it comes from.
fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text)
            | Failure::Device(text)
            | Failure::Malformed(text)
            | Failure::Other(text) => f.write_str(text),
            Failure::ReaderGone => f.write_str("the reader of stdout is gone"),
            Failure::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl StdError for Failure {}

impl From<warpsmith::Error> for Failure {
    fn from(error: warpsmith::Error) -> Failure {
        match error {
            warpsmith::Error::Search(error) => error.into(),
            warpsmith::Error::Pattern(_) | warpsmith::Error::Range(_) => Failure::Usage(error.to_string()),
            other => Failure::of("", &other),
        }
    }
}

impl From<search::Error> for Failure {
    fn from(error: search::Error) -> Failure {
        match error {
            search::Error::NoDevice(_) => Failure::Device(format!(
                "{error}\n`warpsmith devices` lists what this machine has; --device cpu always works"
            )),
            search::Error::SelfTest { .. } => Failure::Device(format!(
                "{error}\nnothing this device says can be trusted; try another one with --device, and \
                 `warpsmith selftest` for the details"
            )),
            search::Error::Scan(text) => Failure::Usage(text),
            search::Error::DevicesLost { .. } => Failure::Device(error.to_string()),
            // Our own sinks fail with a `Failure`, which passes through the engine unchanged.
            search::Error::Sink(inner) => match inner.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(inner) => Failure::Other(inner.to_string()),
            },
            other => Failure::Other(other.to_string()),
        }
    }
}
