//! Why a key could not be encrypted or decrypted. SEC: no message repeats a key, a password or a part of either.

/// The result of an operation on an encrypted key.
pub type Result<T> = std::result::Result<T, Error>;

/// A key that could not be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing protects nothing.
    #[error("the password is empty; give one that protects something")]
    EmptyPassword,
    /// The key does not come out.
    #[error("the password is wrong, or the {format} was altered")]
    WrongPassword {
        /// Of what.
        format: &'static str,
    },
    /// Not what the standard says.
    #[error("this is no {format}: {why}")]
    Malformed {
        /// What was expected.
        format: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Decrypting it would take more than any key of a person.
    #[error(
        "the {format} asks for {} MiB of memory, or for hours of work; keys of people ask for 4096 MiB at most",
        memory >> 20
    )]
    TooCostly {
        /// Of what.
        format: &'static str,
        /// Bytes.
        memory: u64,
    },
    /// The system does not give the memory that deriving its key takes.
    #[error(
        "the {format} takes {} MiB of memory, which the system does not give; free memory, or raise the limit of this process \
         (`ulimit -v`)",
        memory.div_ceil(1 << 20)
    )]
    NoMemory {
        /// Of what.
        format: &'static str,
        /// Bytes.
        memory: u64,
    },
    /// No salt, no encryption.
    #[error(transparent)]
    Randomness(warpsmith_entropy::Error),
}

impl Error {
    pub(crate) fn malformed(format: &'static str, why: impl Into<String>) -> Self {
        Self::Malformed { format, why: why.into() }
    }
}
