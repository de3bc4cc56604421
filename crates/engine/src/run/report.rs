//! What a run tells while it goes on, and why it ended: the same words for a search and a scan.

use std::error::Error as StdError;

/// What a run reports: of a search [`Match`](crate::Match)es and its [`Progress`](crate::Progress), of a scan
/// [`Finding`](crate::Finding)s and its [`ScanProgress`](crate::ScanProgress).
///
/// See [`run`](crate::run()).
#[derive(Debug)]
pub enum Event<'a, F, P> {
    /// What was found and confirmed, one at least: what came together. It is the receiver's, nobody else keeps the keys, and it
    /// counts as delivered when the receiver returns.
    Found(Vec<F>),
    /// How it goes.
    Progress(&'a P),
    /// Something a person should know; the run goes on.
    Warning(String),
    /// Something a person may like to know, such as a device that joins.
    Note(String),
}

/// Receives events; an error ends the run.
pub type Sink<'s, F, P> =
    dyn FnMut(Event<'_, F, P>) -> std::result::Result<(), Box<dyn StdError + Send + Sync>> + 's;

/// Why a run ended.
///
/// See [`run`](crate::run()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The number of matches, or the score, asked for was reached.
    Count,
    /// The time was up.
    TimeLimit,
    /// Every candidate has been tested, every key of the range is covered.
    Exhausted,
    /// It was interrupted.
    Interrupted,
}
