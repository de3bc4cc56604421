//! What a person asks of a search.

use std::time::Duration;

use secp256k1::PublicKey;
use warpsmith_pattern::{Filter, Patterns, Score};

use crate::run::pause::Pause;
use crate::space::Subject;

/// What a person asked for.
///
/// See [`run`](crate::run()).
pub struct Job<'a> {
    /// What is searched: keys or salts, and what is made of them.
    pub subject: Subject<'a>,
    /// What its text shall look like.
    pub wanted: Wanted<'a>,
    /// Mine from this public key; no private key exists here then.
    pub split: Option<PublicKey>,
    /// Stop after so many matches; none: never.
    pub count: Option<u64>,
    /// Stop then.
    pub time_limit: Option<Duration>,
    /// How often progress is reported.
    pub interval: Duration,
    /// What holds it and lets it go on.
    pub pause: Option<&'a Pause>,
}

impl<'a> Job<'a> {
    /// A search that goes on until it is interrupted and reports progress every second. Other wishes are said as
    /// `Job { count: Some(1), ..Job::new(subject, wanted) }`.
    pub fn new(subject: Subject<'a>, wanted: Wanted<'a>) -> Job<'a> {
        let interval = Duration::from_secs(1);
        Job { subject, wanted, split: None, count: None, time_limit: None, interval, pause: None }
    }
}

/// What a person likes.
///
/// ```
/// use warpsmith_engine::Wanted;
/// use warpsmith_pattern::Score;
///
/// let best = Wanted::Best { score: Score::LeadingZeros, enough: Some(2) };
/// ```
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// Texts that match one of these.
    Patterns(&'a Patterns),
    /// The best there is: each result is better than all before it.
    Best {
        /// What counts.
        score: Score,
        /// Stop when this is reached.
        enough: Option<u32>,
    },
}

impl Wanted<'_> {
    /// The filter that finds it. `best` is the score to beat.
    pub(crate) fn filter(&self, max_false: f64, best: u32) -> Filter {
        match self {
            Wanted::Patterns(patterns) => patterns.filter(max_false),
            Wanted::Best { score, .. } => Filter::scored(*score, best + 1),
        }
    }

    /// The share of candidates that are wanted. `best` is the score to beat, where scores count.
    pub fn odds(&self, best: u32) -> f64 {
        match self {
            Wanted::Patterns(patterns) => patterns.odds(),
            Wanted::Best { score, .. } => score.odds(best + 1),
        }
    }
}
