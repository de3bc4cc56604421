//! Errors of this crate, sorted by what a caller does about them.

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done. The texts say what was given, what is allowed and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Private retrieval failed: a file, a server, a device.
    #[error(transparent)]
    Retrieval(#[from] warpsmith_rms24::Error),
    /// Queries were sent and got no answer. They wait in the state and are sent again, as they are,
    /// when it is next opened: that tells the server nothing new.
    #[error("{0}\nthe queries wait in the state, and are sent again as they are when it is next opened")]
    Unanswered(warpsmith_rms24::Error),
    /// The database or the server has not what was asked for.
    #[error("{0}")]
    Query(String),
    /// A database does not say of which chain and block it is.
    #[error("the database does not say of which chain and block it is")]
    NoHead,
    /// A file is not a database of codes.
    #[error("this is no database of codes of contracts")]
    NotCodes,
    /// The chain has taken back more blocks than the database's updates go back.
    #[error(
        "the chain has taken back more blocks than the database's updates hold (a fold keeps some, and a table that grows \
         begins anew), or it is another chain; build the database anew"
    )]
    TooFarBack,
    /// A new key has no place, and the names of the records are not known, so that neither they can
    /// move nor the table grow.
    #[error(
        "a new key has no place, and the table cannot grow without the list of its names (.names); build it anew with that \
         list, or with more room"
    )]
    NoNames,
    /// The database of codes could not be updated.
    #[error("database of codes: {0}")]
    Codes(warpsmith_rms24::Error),
}
