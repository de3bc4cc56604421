//! Events, progress and outcome of a run, a search and a scan alike.

use std::error::Error as StdError;
use std::time::Duration;

/// An event of a run. What is found are the [`Match`](crate::Match)es of a search, or the [`Finding`](crate::Finding)s of a scan.
///
/// See [`run`](crate::run()) and [`scan`](crate::scan()).
#[derive(Debug)]
pub enum Event<'a, F> {
    /// What was found and confirmed, one at least: what came together. It is the receiver's, nobody else keeps the keys, and it
    /// counts as delivered when the receiver returns.
    Found(Vec<F>),
    /// How it goes.
    Progress(&'a Progress),
    /// Something a person should know; the run goes on.
    Warning(String),
    /// Something a person may like to know, such as a device that joins.
    Note(String),
}

/// Receives events; an error ends the run.
pub type Sink<'s, F> =
    dyn FnMut(Event<'_, F>) -> std::result::Result<(), Box<dyn StdError + Send + Sync>> + 's;

/// How far a run is.
///
/// See [`run`](crate::run()) and [`scan`](crate::scan()).
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Candidates tested so far, each once: addresses of a search, keys of a scan.
    pub tried: u64,
    /// Candidates a second, over the last seconds.
    pub rate: f64,
    /// Time since the first device began, pauses left out.
    pub elapsed: Duration,
    /// Matches so far.
    pub matches: u64,
    /// Matches that are wanted; none: without end.
    pub wanted: Option<u64>,
    /// Time to the end at this rate. Of a scan: until the rest of its range is covered. Of a search, which has no memory: until all
    /// matches that are wanted, or one where there is no end, are as likely there as not; it shrinks by matches, not by waiting.
    pub eta: Option<Duration>,
    /// In a search, how likely all matches that are wanted were within what has been tested; where there is no end, how likely
    /// one was since the last one.
    pub probability: Option<f64>,
    /// The best score so far, in a search for the best.
    pub best: Option<u32>,
    /// In a scan, the covered share of its range, 0 to 1; batches under way are not in it.
    pub coverage: Option<f64>,
    /// Each device and its rate.
    pub devices: Vec<(String, f64)>,
}

/// How a run ended.
///
/// See [`run`](crate::run()) and [`scan`](crate::scan()).
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why.
    pub ended: Ended,
    /// Candidates tested, each once: addresses of a search, keys of a scan.
    pub tried: u64,
    /// Matches reported.
    pub matches: u64,
    /// Candidates that passed a filter and matched nothing. Of a search also keys behind a lane's match, which are not among those
    /// tested.
    pub false_hits: u64,
    /// Keys that likely matched and were left alone, since another key of the same origin had just been found: they would be
    /// related to it. They are not among the addresses tested. A scan leaves none alone.
    pub passed_over: u64,
    /// Whether every address of a scan's list was found, in this run or by the map in an earlier one.
    pub all_found: bool,
    /// Time since the first device began; of a scan up to its last key.
    pub elapsed: Duration,
    /// Addresses a second of a search after its first launches; none if it was too short for that.
    pub steady_rate: Option<f64>,
    /// Processor time this program took then, as a share of one core.
    pub host_cpu: Option<f64>,
}

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
