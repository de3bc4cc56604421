//! Exit statuses and failures of commands.
//!
//! A failure is sorted by its exit code, as scripts see it; its message names the input, what was expected and what to do. Conversions
//! from the errors of libraries belong to the programs. SEC: no message may carry a secret.

use std::error::Error as StdError;
use std::{fmt, io};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Found, or done.
    Done,
    /// Ended without a match.
    NoMatch,
    /// Stopped by the user or the system.
    Interrupted,
    /// Failed with this code; the message has been shown.
    Failed(u8),
}

impl ExitStatus {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Done => 0,
            ExitStatus::NoMatch => 1,
            ExitStatus::Interrupted => 130,
            ExitStatus::Failed(code) => code,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Invalid arguments or input.
    Usage(String),
    /// No usable device, or one that cannot be trusted.
    Device(String),
    /// A malformed file or message. As the input of a command, that is wrong usage.
    Malformed(String),
    /// Disk, randomness, stdout and so on.
    Other(String),
    /// The reader of stdout has had enough, as in `| head -1`. No failure to the user.
    ReaderGone,
    /// Interrupted by the user or the system, with nothing left half done.
    Interrupted,
}

impl Failure {
    /// Returns the failure for an error, prefixed with the flag or file it is about. A missing file was named wrongly, in every
    /// command; for all other errors a different command line would change nothing.
    pub fn of(about: &str, error: &(dyn StdError + 'static)) -> Failure {
        let text = if about.is_empty() { error.to_string() } else { format!("{about}: {error}") };
        match is_missing(error) {
            true => Failure::Usage(format!("{text}; give the name of one that is there")),
            false => Failure::Other(text),
        }
    }

    /// Returns the failure for an error of the system about a file named by the user.
    pub fn of_file(file: &dyn fmt::Display, error: &io::Error) -> Failure {
        Failure::of(&file.to_string(), error)
    }

    /// Returns this failure as one of a command that reads its input, where malformed data is wrong usage.
    pub fn of_input(self) -> Failure {
        match self {
            Failure::Malformed(text) => Failure::Usage(text),
            other => other,
        }
    }

    /// Returns the exit status of a command that fails with this.
    pub fn status(&self) -> ExitStatus {
        match self {
            Failure::ReaderGone => ExitStatus::Done,
            Failure::Interrupted => ExitStatus::Interrupted,
            Failure::Usage(_) => ExitStatus::Failed(2),
            Failure::Device(_) => ExitStatus::Failed(3),
            Failure::Malformed(_) | Failure::Other(_) => ExitStatus::Failed(4),
        }
    }
}

/// Returns whether the root cause of an error is a file that does not exist.
pub fn is_missing(error: &(dyn StdError + 'static)) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::NotFound)
}

/// Iterates over an error and its sources.
pub fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_wrong_usage_and_the_rest_is_not() {
        let io = |kind| io::Error::new(kind, "read");
        for (failure, code) in [
            (Failure::of("--keys", &io(io::ErrorKind::NotFound)), 2),
            (Failure::of("--keys", &io(io::ErrorKind::PermissionDenied)), 4),
            (Failure::Malformed(String::new()), 4),
            (Failure::Malformed(String::new()).of_input(), 2),
            (Failure::Device(String::new()), 3),
            (Failure::Interrupted, 130),
            (Failure::ReaderGone, 0),
        ] {
            assert_eq!(failure.status().code(), code, "{failure:?}");
        }
    }
}
