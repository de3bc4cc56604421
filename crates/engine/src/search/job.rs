//! What a person asks of a search.

use std::time::Duration;

use secp256k1::PublicKey;
use warpsmith_pattern::{Filter, Patterns, Ranking};

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
/// use warpsmith_pattern::{Feature, Ranking};
///
/// let zeros = Ranking::new(Feature::LeadingZeros);
/// let best = Wanted::best(&zeros);
/// // A better one than three zero bytes at the start has four of them or more.
/// assert_eq!(best.odds(3), zeros.odds(4));
/// ```
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// Texts that match one of these.
    Patterns(&'a Patterns),
    /// The best there is.
    Best {
        /// What counts, and what has to match.
        ranking: &'a Ranking,
        /// Which of them are results.
        show: Show,
        /// Stop when this is reached.
        enough: Option<u32>,
    },
}

/// What is a result where scores count.
///
/// ```
/// use warpsmith_engine::Show;
///
/// assert_ne!(Show::Ties, Show::Better);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// What is better than all before it.
    Better,
    /// What is as good as the best before it, or better.
    Ties,
    /// Everything that scores so much or more.
    AtLeast(u32),
}

impl<'a> Wanted<'a> {
    /// The best there is: each result is better than all before it, and none is enough.
    pub fn best(ranking: &'a Ranking) -> Self {
        Wanted::Best { ranking, show: Show::Better, enough: None }
    }

    /// What has to match.
    pub fn patterns(&self) -> Option<&'a Patterns> {
        match self {
            Wanted::Patterns(patterns) => Some(patterns),
            Wanted::Best { ranking, .. } => ranking.patterns(),
        }
    }
}

impl Wanted<'_> {
    /// The filter that finds it. `best` is the score to beat.
    pub(crate) fn filter(&self, max_false: f64, best: u32) -> Filter {
        match self {
            Wanted::Patterns(patterns) => patterns.filter(max_false),
            Wanted::Best { ranking, show, .. } => {
                // Where a device cannot tell all that has to match, the best that it sees may be none.
                let each = ranking.patterns().is_some() || *show != Show::Better;
                ranking.filter(max_false, self.demand(best), each)
            }
        }
    }

    /// The least score that is a result where this is the best; 0 where none counts.
    pub(crate) fn demand(&self, best: u32) -> u32 {
        match self {
            Wanted::Patterns(_) => 0,
            Wanted::Best { show: Show::Better, .. } => best + 1,
            Wanted::Best { show: Show::Ties, .. } => best.max(1),
            Wanted::Best { show: Show::AtLeast(score), .. } => *score,
        }
    }

    /// The share of candidates that are wanted. `best` is the score to beat, where scores count.
    pub fn odds(&self, best: u32) -> f64 {
        match self {
            Wanted::Patterns(patterns) => patterns.odds(),
            Wanted::Best { ranking, .. } => ranking.odds(self.demand(best)),
        }
    }
}
