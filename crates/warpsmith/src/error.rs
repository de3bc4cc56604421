//! What can go wrong, for callers who do not care in which crate.

/// The result of an operation of this library.
///
/// ```
/// use warpsmith::{Devices, mine, npub};
///
/// fn best() -> warpsmith::Result<String> {
///     Ok(mine(npub(), ["q"]).on(Devices::cpu()?).first()?.address)
/// }
/// assert!(best()?.starts_with("npub1q"));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done. The texts say what was given, what is allowed and what to do.
///
/// ```
/// use warpsmith::{Error, mine, npub};
///
/// let error = mine(npub(), ["bob"]).first().unwrap_err();
/// assert!(matches!(error, Error::Pattern(_)));
/// assert!(error.to_string().contains("Try '808'"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pattern that no text of this chain can match, or one that is not written as patterns are.
    #[error(transparent)]
    Pattern(#[from] warpsmith_pattern::Error),
    /// Devices, self-tests, randomness: what ends a search or a scan.
    #[error(transparent)]
    Search(#[from] warpsmith_engine::Error),
    /// A range of keys that is none.
    #[error(transparent)]
    Range(#[from] warpsmith_store::RangeError),
    /// A list of addresses, an address database, a filter or a map.
    #[error(transparent)]
    Store(#[from] warpsmith_store::Error),
    /// A search ended before it found anything.
    #[error("nothing was found among {tried} candidates; give it more time, or an easier pattern")]
    NoMatch {
        /// How many were tested.
        tried: u64,
    },
    /// The operating system gave no thread.
    #[error("the search got no thread: {0}")]
    Thread(std::io::Error),
}
