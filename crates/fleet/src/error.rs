//! What can go wrong in a fleet, sorted by what a person does about it.

use std::path::PathBuf;

/// The result of a fleet operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A fleet error. No message holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was given cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The salts of a job cannot be searched as asked.
    #[error(transparent)]
    Salts(#[from] warpsmith_chain::ethereum::Refusal),
    /// The server listens on every address, and the one that workers connect to is missing.
    #[error(
        "{host} means every address of this machine, so workers cannot connect to it; the address that they reach it at is \
         missing"
    )]
    NoAddress {
        /// What the server listens on.
        host: String,
        /// The port.
        port: u16,
    },
    /// There is no nats-server on the PATH.
    #[error(
        "there is no nats-server on the PATH; install it: `apt install nats-server` on Debian and Ubuntu, \
         `brew install nats-server` on macOS, or from https://nats.io/download"
    )]
    NoServer,
    /// A file of the fleet's folder cannot be used.
    #[error(transparent)]
    Files(#[from] warpsmith_files::Error),
    /// Reading or writing failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// How.
        source: std::io::Error,
    },
    /// A file does not hold what it must.
    #[error("{path}: {why}", path = path.display())]
    Corrupt {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The search itself.
    #[error(transparent)]
    Engine(#[from] warpsmith_engine::Error),
    /// The operating system gave no random bytes.
    #[error("{0}, and no key can be made without them")]
    Randomness(#[from] warpsmith_entropy::Error),
    /// The server cannot be reached, or refused.
    #[error("{0}")]
    Network(String),
}

impl Error {
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), source }
    }

    pub(crate) fn corrupt(path: &std::path::Path, why: impl Into<String>) -> Error {
        Error::Corrupt { path: path.to_owned(), why: why.into() }
    }
}
