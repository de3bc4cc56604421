//! Why a file is not used, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// The result of an operation on a file.
pub type Result<T> = std::result::Result<T, Error>;

/// A file that could not be used, or must not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("could not {doing} {path}: {source}{}", advice(source), path = path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Using it would be unsafe.
    #[error("{path} {reason}; {advice}", path = path.display())]
    Unsafe {
        /// The file, or the folder it is in.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        advice: String,
    },
    /// Another process holds it.
    #[error("{path} is in use by another process; wait for it, or give another name", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("{path} is there already and was left as it is; give another name, or remove it first", path = path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// Longer than any file of its kind.
    #[error("{path} is longer than {most} bytes, the most that is read of such a file", path = path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit.
        most: u64,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    pub(crate) fn unsafe_to_use(path: &Path, reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Unsafe { path: path.to_owned(), reason: reason.into(), advice: advice.into() }
    }

    /// Whether the file is simply not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            " (what was there before is unchanged; make room and run it again)"
        }
        _ => "",
    }
}
