//! What can go wrong, sorted by what a caller does about it.

use std::path::{Path, PathBuf};

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of private retrieval.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Parameters that cannot be.
    #[error("{0}")]
    Params(String),
    /// There is no such entry.
    #[error("there is no entry {index}: the database has {entries}, counted from 0")]
    Index {
        /// The index asked for.
        index: u64,
        /// The entries there are.
        entries: u64,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file or a message is not what it should be.
    #[error("{what}: {reason}")]
    Format {
        /// Which file or message.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file is damaged, or was changed or cut short by somebody.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where, and what to do.
        reason: String,
    },
    /// A file that must be private cannot be used, or must not be.
    #[error(transparent)]
    File(#[from] warpsmith_files::Error),
    /// A client's state must not be used: it could send a hint a second time.
    #[error("{path}: {reason}", path = path.display())]
    Stale {
        /// The state file.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// All backup pairs are used up.
    #[error("all {0} queries of this state are spent; run the offline phase again")]
    Exhausted(u64),
    /// No hint holds the entry: the query was sent all the same, and the answer is of no use.
    #[error(
        "no hint holds this entry (a chance of 2^{log2_chance:.0}); ask again after the next offline phase"
    )]
    Miss {
        /// The binary logarithm of the chance of this.
        log2_chance: f64,
    },
    /// The only hint for the entry was spoilt by an answer that was lost or wrong.
    #[error("the hint for this entry was spoilt by an answer that never came or was wrong")]
    Poisoned,
    /// A server cannot be reached, or does not do what it should.
    #[error("{server}: {reason}")]
    Remote {
        /// Its address.
        server: String,
        /// What happened.
        reason: String,
    },
    /// Two keys of a table are the same, or have the same name.
    #[error("a key occurs twice, or two keys have the same name (of their SHA-256)")]
    SameKey([u8; 14]),
    /// All places of a new key are taken, and nothing in them can move: the table must grow.
    #[error("change {0}: there is no place for this new key; the table must grow")]
    Full(usize),
    /// More memory than this machine has: a server's word is not believed before that is looked at.
    #[error("{what} takes {needed} bytes of memory, and this machine gives {machine}; {advice}")]
    Memory {
        /// What takes it.
        what: String,
        /// The bytes it takes.
        needed: u64,
        /// The bytes there are.
        machine: u64,
        /// What to do.
        advice: &'static str,
    },
    /// Whoever watched the work ended it.
    #[error("stopped")]
    Stopped,
    /// A device that makes hints does not do its part; the processor still can.
    #[cfg(feature = "device")]
    #[error(transparent)]
    Device(#[from] warpsmith_device::Error),
    /// A device made hints that differ from the processor's.
    #[error("{device}: {what} is not what the processor computes; do not use this device")]
    Wrong {
        /// The device's id.
        device: String,
        /// What differs.
        what: String,
    },
    /// State, query, answer or update are of different databases, versions or epochs.
    #[error("{0}")]
    Mismatch(String),
}

impl Error {
    /// An error of parameters that cannot be.
    pub fn params(reason: impl Into<String>) -> Error {
        Error::Params(reason.into())
    }

    /// An error of a file or a message, and what is wrong with it.
    pub fn format(what: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Format { what: what.into(), reason: reason.into() }
    }

    /// An error of a damaged file, and where it is damaged.
    pub fn damaged(path: &Path, reason: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// Makes an error of this file of what the system says.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }
}
