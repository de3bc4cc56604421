//! What can go wrong with a device, sorted by what a caller does about it.
//!
//! Each message says what was tried, what came back, and what to do where that is known.

/// The result of a device operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a name, an option or a device is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// A device error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library that is needed cannot be used.
    #[error("{name}: {reason}")]
    Library {
        /// Which: `cuda`, `nvrtc` or `opencl`.
        name: &'static str,
        /// What was tried, what was found, what to do.
        reason: String,
    },
    /// The device is there no more, or its interface shows none.
    #[error("no usable device: {0}")]
    NoDevice(String),
    /// The compiler refused the text.
    #[error("{device}: the kernel does not compile with {compiler}:\n{log}")]
    Compile {
        /// The device's id.
        device: String,
        /// The compiler and its version.
        compiler: String,
        /// The compiler's whole log.
        log: String,
    },
    /// A program has no such entry point or symbol.
    #[error("{device}: the program has no {what} '{name}'")]
    Missing {
        /// The device's id.
        device: String,
        /// `kernel` or `symbol`.
        what: &'static str,
        /// The name that was asked for.
        name: String,
    },
    /// There is not enough memory.
    #[error("{device}: {}{}; ask for less, or end other programs that use the device",
            if *asked == 0 { "the driver ran out of memory".to_owned() } else { format!("{asked} bytes do not fit") },
            free.map(|f| format!(" ({f} bytes are available)")).unwrap_or_default())]
    Memory {
        /// The device's id.
        device: String,
        /// The bytes asked for; 0 when the driver ran out of memory for its own purposes.
        asked: u64,
        /// What was free, or the most the device gives in one piece.
        free: Option<u64>,
    },
    /// The driver refused a launch; the device itself is well.
    #[error("{device}: kernel '{kernel}' cannot be launched as {groups} x {block}: {reason}")]
    Launch {
        /// The device's id.
        device: String,
        /// The kernel's name.
        kernel: String,
        /// Blocks.
        groups: u32,
        /// Threads a block.
        block: u32,
        /// The driver's reason.
        reason: String,
    },
    /// A kernel crashed or the device fell away: nothing of this queue can be trusted any more.
    #[error("{device} is lost: {reason}; its queues must be dropped and opened anew")]
    Lost {
        /// The device's id.
        device: String,
        /// The driver's reason.
        reason: String,
    },
    /// The caller asked for something that cannot be: a foreign handle, a range outside a buffer.
    #[error("{device}: {reason}")]
    Usage {
        /// The device's id.
        device: String,
        /// What is wrong with the request.
        reason: String,
    },
    /// Any other code of the driver.
    #[error("{device}: {call} returned {name} ({code}){}", if text.is_empty() { String::new() } else { format!(": {text}") })]
    Code {
        /// The device's id or the interface's name.
        device: String,
        /// The driver's function.
        call: String,
        /// The code's name, or "an unknown code".
        name: String,
        /// The code.
        code: i32,
        /// The driver's own explanation, if it gives one.
        text: String,
    },
}

/// Why a library or a device cannot be used, and what to do about it.
#[cfg(any(feature = "cuda", feature = "opencl"))]
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unusable(pub String);

#[cfg(any(feature = "cuda", feature = "opencl"))]
impl Error {
    /// A refusal of what the caller asked for.
    pub(crate) fn usage(device: &str, reason: impl Into<String>) -> Error {
        Error::Usage { device: device.to_owned(), reason: reason.into() }
    }
}
