//! What can go wrong in a search, sorted by what a caller does about it.

use std::error::Error as StdError;

/// The result of an engine operation; [`Error`] shows one.
pub type Result<T> = std::result::Result<T, Error>;

/// An engine error.
///
/// ```
/// use warpsmith_engine::{Devices, Error};
///
/// let asked = Devices::open(&["cuda:9".parse().unwrap()], None);
/// assert!(matches!(asked, Err(Error::NoDevice(text)) if text.contains("cuda:9")));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No device that was asked for can be used.
    #[error("no usable device: {0}")]
    NoDevice(String),
    /// A device did not find what was planted for it, so nothing it says can be trusted.
    #[error("self-test failed on {device}: {what}")]
    SelfTest {
        /// The device.
        device: String,
        /// What came back wrong.
        what: String,
    },
    /// All devices were lost during the search.
    #[error("every device was lost; the last one, {device}: {what}")]
    DevicesLost {
        /// The last device.
        device: String,
        /// What happened to it.
        what: String,
    },
    /// The operating system gave no random bytes. There is no second source.
    #[error("{0}, and no key can be made without them")]
    Randomness(warpsmith_entropy::Error),
    /// The receiver of results failed; the search stopped there.
    #[error("{0}")]
    Sink(Box<dyn StdError + Send + Sync>),
    /// A scan that cannot be done as it was asked for.
    #[error("{0}")]
    Scan(String),
    /// What a scan keeps on disk failed.
    #[error(transparent)]
    Store(#[from] warpsmith_store::Error),
    /// A split result and a secret key do not belong together.
    #[error("{0}")]
    Join(String),
}
