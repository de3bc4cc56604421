//! How a command ends: the exit codes, and failures with the words for them.
//!
//! A failure is sorted by its exit code, as scripts see it; its message says what was given, what is allowed and
//! what to do. SEC: no message may carry a secret.

use std::error::Error as StdError;
use std::fmt;

use warpsmith::search;

use crate::telling::tell;

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
    /// Disk, randomness, stdout and so on.
    Other(String),
    /// The reader of stdout has had enough, as in `| head -1`. Not a failure to anybody.
    ReaderGone,
    /// A person or the system ended it, and nothing was left half done.
    Interrupted,
}

impl Failure {
    /// Says what happened on stderr.
    pub fn report(self) -> Ending {
        let code = match self {
            Failure::ReaderGone => return Ending::Done,
            Failure::Interrupted => return Ending::Interrupted,
            Failure::Usage(_) => 2,
            Failure::Device(_) => 3,
            Failure::Other(_) => 4,
        };
        tell(&format!("error: {self}"));
        Ending::Failed(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Device(text) | Failure::Other(text) => f.write_str(text),
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
            warpsmith::Error::Retrieval(error) => error.into(),
            warpsmith::Error::Pattern(_) | warpsmith::Error::Range(_) => Failure::Usage(error.to_string()),
            other => Failure::Other(other.to_string()),
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
