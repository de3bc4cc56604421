//! The map of a scan: which job it is, what of it is covered, what was found, and how fast it went.
//!
//! Knows keys as numbers, and targets by a digest. What a key has to go through before it counts as covered is for the
//! scan to say: it calls [`Map::complete`] when a batch's hits are confirmed and written.

mod file;
mod matches;
mod plan;
mod survey;
mod text;

pub use file::MapFile;
pub use plan::{Batch, Planner};
pub use survey::{Gaps, Pieces};

use std::fmt;

use matches::Matches;

use crate::Error;
use crate::interval::{Interval, IntervalSet, U256};
use crate::mask::KeyMask;
use crate::order::Order;

/// What a person asked for. Two maps belong together when their jobs are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    range: Interval,
    types: Vec<String>,
    targets: Targets,
    /// What the numbers of the range are candidates of, by its digest; none where they are keys.
    mask: Option<[u8; 32]>,
}

/// What keys are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Where they come from.
    pub source: Source,
    /// How many there are.
    pub count: u64,
    /// SHA-256 over all of them in order.
    pub digest: [u8; 32],
}

/// Where targets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Files of addresses.
    Addresses,
    /// An address database.
    Database,
}

impl Source {
    /// The word for it in maps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::Database => "database",
        }
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.source.name(), self.count)?;
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Job {
    /// A scan of these keys for targets of these types. Types are words of lower-case letters, digits and hyphens; their
    /// order does not matter.
    ///
    /// # Panics
    ///
    /// When a type is no such word.
    pub fn new(range: Interval, types: &[&str], targets: Targets) -> Self {
        let mut types: Vec<String> = types.iter().map(|name| (*name).to_owned()).collect();
        types.sort();
        types.dedup();
        assert!(types.iter().all(|name| is_type(name)), "types are words: {types:?}");
        Self { range, types, targets, mask: None }
    }

    /// The same of the candidates of a mask, which the numbers of the range then are.
    pub fn by_mask(self, mask: &KeyMask) -> Self {
        Self { mask: Some(*mask.digest()), ..self }
    }

    /// The digest of the mask whose candidates the numbers are; none where they are keys.
    pub fn mask(&self) -> Option<&[u8; 32]> {
        self.mask.as_ref()
    }

    /// The keys to scan.
    pub fn range(&self) -> Interval {
        self.range
    }

    /// The types of addresses, in order.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// What keys are compared with.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// In what `self`, the job of a map, differs from the job asked for.
    pub fn differences(&self, asked: &Self) -> Vec<String> {
        let difference = |what: &str, of_map: String, of_asked: String| {
            (of_map != of_asked).then(|| format!("{what}: the map has {of_map}, asked for is {of_asked}"))
        };
        let kinds = |job: &Self| job.types.join(",");
        let mask = |job: &Self| match &job.mask {
            None => "no mask".to_owned(),
            // SEC: enough to tell two apart.
            Some(digest) => {
                let digits: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
                format!("mask {digits}")
            }
        };
        [
            difference("keys", mask(self), mask(asked)),
            difference("range", self.range.to_string(), asked.range.to_string()),
            difference("types", kinds(self), kinds(asked)),
            difference("targets", self.targets.to_string(), asked.targets.to_string()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn is_type(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(fits)
}

/// A time of work on a job, and what it covered: a whole run, or about an hour of one. In a long history neighbours
/// become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// For how long the job ran, in seconds: less than the time that passed where two stretches became one.
    pub seconds: u64,
    /// How many keys were covered.
    pub keys: U256,
}

impl Stretch {
    /// After so many seconds a run begins a new stretch.
    const LENGTH: u64 = 3600;
    /// With more stretches than this, neighbours become one.
    const MOST: usize = 512;

    /// Keys a second; none of what took less than one.
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0).then(|| self.keys.as_f64() / self.seconds as f64)
    }
}

/// The map of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    job: Job,
    order: Order,
    /// Positions of the order, see [`Order`].
    covered: IntervalSet,
    history: Vec<Stretch>,
    matches: Matches,
    /// Up to when the last stretch counts time; `None` before this run has begun.
    counted_to: Option<u64>,
}

impl Map {
    /// The most pieces that are listed one by one, for showing keys of a map in random order or giving it another one:
    /// a gigabyte of them.
    pub const MOST_PIECES: u64 = 1 << 24;

    /// The map of a job of which nothing is done.
    ///
    /// # Panics
    ///
    /// When the order is not one of the job's range; [`Order::random`] makes one that is.
    pub fn new(job: Job, order: Order) -> Self {
        assert!(order.fits(&job.range), "the order is for another range");
        let (covered, history, matches) = (IntervalSet::new(), Vec::new(), Matches::default());
        Self { job, order, covered, history, matches, counted_to: None }
    }

    /// The map that a text is, for one that is not in a file; [`MapFile`] is for those that are.
    pub fn from_text(bytes: &[u8]) -> Result<Self, Error> {
        text::read(std::path::Path::new("the map"), bytes)
    }

    /// The map as text.
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    /// Whose map it is.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// In which order keys are taken.
    pub fn order(&self) -> Order {
        self.order
    }

    /// How many keys are covered.
    pub fn covered(&self) -> U256 {
        self.covered.total()
    }

    /// How many keys are not.
    pub fn remaining(&self) -> U256 {
        self.job.range.count() - self.covered()
    }

    /// The covered share of the range, 0 to 1.
    pub fn share(&self) -> f64 {
        self.covered().as_f64() / self.job.range.count().as_f64()
    }

    /// Whether every key is covered.
    pub fn is_complete(&self) -> bool {
        self.covered.covers(&self.job.range)
    }

    /// Whether a key is covered.
    pub fn is_covered(&self, key: U256) -> bool {
        let Some(key) = Interval::new(key, key).filter(|key| self.job.range.covers(key)) else {
            return false;
        };
        self.covered.covers(&self.order.positions_of(&self.job.range, &key).0)
    }

    /// The covered keys. In a random order they are many intervals; more than [`Map::MOST_PIECES`] are refused.
    pub fn covered_keys(&self) -> Result<IntervalSet, Error> {
        let pieces =
            self.covered.iter().fold(U256::ZERO, |sum, interval| sum + self.order.pieces_in(&interval));
        self.keys_of(self.covered.iter(), pieces)
    }

    /// The keys that are not covered, as [`Map::covered_keys`].
    pub fn gaps(&self) -> Result<IntervalSet, Error> {
        let gaps = || self.covered.gaps(self.job.range);
        let pieces = gaps().fold(U256::ZERO, |sum, interval| sum + self.order.pieces_in(&interval));
        self.keys_of(gaps(), pieces)
    }

    /// What was worked when, oldest first.
    pub fn history(&self) -> &[Stretch] {
        &self.history
    }

    /// Begins a run: time is counted from now on, in seconds since 1970.
    pub fn begin(&mut self, now: u64) {
        self.counted_to = Some(now);
        // A run that ended before its first batch leaves no trace.
        self.history.pop_if(|stretch| stretch.keys == U256::ZERO);
        self.history.push(Stretch { began: now, seconds: 0, keys: U256::ZERO });
        self.shorten_history();
    }

    /// Counts a batch as done: its hits are confirmed and written. `now` is in seconds since 1970. Returns how many keys were
    /// not covered before.
    pub fn complete(&mut self, batch: &Batch, now: u64) -> U256 {
        let keys = self.covered.insert(batch.positions());
        let Some(counted_to) = self.counted_to else {
            self.begin(now);
            self.add_to_history(0, keys);
            return keys;
        };
        // Whole seconds of one clock: what is cut off now is counted with a later batch. A clock put back counts nothing.
        self.counted_to = Some(now.max(counted_to));
        let seconds = now.saturating_sub(counted_to);
        if self
            .history
            .last()
            .is_some_and(|stretch| stretch.seconds.saturating_add(seconds) > Stretch::LENGTH)
        {
            self.history.push(Stretch { began: counted_to, seconds: 0, keys: U256::ZERO });
        }
        self.add_to_history(seconds, keys);
        self.shorten_history();
        keys
    }

    /// The same coverage in another order. Refused where too many pieces would have to be listed, as in
    /// [`Map::covered_keys`].
    pub fn with_order(&self, order: Order) -> Result<Self, Error> {
        assert!(order.fits(&self.job.range), "the order is for another range");
        if order == self.order {
            return Ok(self.clone());
        }
        let keys = self.covered_keys()?;
        let pieces = keys.iter().fold(U256::ZERO, |sum, interval| sum + order.pieces_in(&interval));
        check_pieces(pieces)?;
        let mut covered = IntervalSet::new();
        for interval in keys.iter() {
            split(
                &self.job.range,
                interval,
                |range, keys| order.positions_of(range, keys),
                |positions| {
                    covered.insert(positions);
                },
            );
        }
        Ok(Self { order, covered, ..self.clone() })
    }

    /// Joins maps of one job: what any of them covers is covered, and what any of them found is found. The order is theirs when they agree, else the keys' own.
    /// `None` for no maps at all; maps of different jobs are told with their differences and the number of the map.
    pub fn merge(maps: &[Self]) -> Result<Option<Self>, MergeError> {
        let Some((first, others)) = maps.split_first() else { return Ok(None) };
        for (index, other) in others.iter().enumerate() {
            let differences = first.job.differences(&other.job);
            if !differences.is_empty() {
                return Err(MergeError::OtherJob { map: index + 2, differences });
            }
        }
        let order =
            if others.iter().all(|map| map.order == first.order) { first.order } else { Order::Sequential };
        let mut joined = first.with_order(order).map_err(MergeError::Order)?;
        for other in others {
            joined.covered.extend(&other.with_order(order).map_err(MergeError::Order)?.covered);
            joined.matches.join(&other.matches);
            joined.history.extend(other.history.iter().filter(|stretch| !first.history.contains(stretch)));
        }
        joined.history.sort_by_key(|stretch| stretch.began);
        joined.history.dedup();
        joined.counted_to = None;
        joined.shorten_history();
        Ok(Some(joined))
    }

    fn keys_of(&self, positions: impl Iterator<Item = Interval>, pieces: U256) -> Result<IntervalSet, Error> {
        if self.order != Order::Sequential {
            check_pieces(pieces)?;
        }
        let mut keys = IntervalSet::new();
        for interval in positions {
            split(
                &self.job.range,
                interval,
                |range, positions| self.order.keys_at(range, positions),
                |run| {
                    keys.insert(run);
                },
            );
        }
        Ok(keys)
    }

    fn add_to_history(&mut self, seconds: u64, keys: U256) {
        if let Some(stretch) = self.history.last_mut() {
            stretch.seconds = stretch.seconds.saturating_add(seconds);
            stretch.keys = stretch.keys.saturating_add(keys);
        }
    }

    fn shorten_history(&mut self) {
        while self.history.len() > Stretch::MOST {
            let joined = |pair: &[Stretch]| match *pair {
                [one, other] => Stretch {
                    began: one.began,
                    seconds: one.seconds.saturating_add(other.seconds),
                    keys: one.keys.saturating_add(other.keys),
                },
                _ => pair[0],
            };
            // The newest stay as they are.
            let old = Stretch::MOST / 2;
            let mut history: Vec<Stretch> = self.history[..old].chunks(2).map(joined).collect();
            history.extend(&self.history[old..]);
            self.history = history;
        }
    }
}

/// Maps that do not go together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// They are of different jobs.
    #[error("map {map} is of another job than the first:\n  {}", differences.join("\n  "))]
    OtherJob {
        /// Which map, counted from 1.
        map: usize,
        /// Each difference in words, the first map being "the map".
        differences: Vec<String>,
    },
    /// Their orders differ and cannot be brought to one.
    #[error(transparent)]
    Order(Error),
}

fn check_pieces(pieces: U256) -> Result<(), Error> {
    if pieces > U256::from(Map::MOST_PIECES) {
        return Err(Error::TooManyPieces { pieces: pieces.to_string(), most: Map::MOST_PIECES });
    }
    Ok(())
}

/// Turns an interval run by run.
fn split(
    range: &Interval,
    interval: Interval,
    turn: impl Fn(&Interval, &Interval) -> (Interval, U256),
    mut take: impl FnMut(Interval),
) {
    let mut rest = Some(interval);
    while let Some(from) = rest {
        let (run, count) = turn(range, &from);
        take(run);
        rest = from.first().checked_add(count).and_then(|next| Interval::new(next, interval.last()));
    }
}

#[cfg(test)]
mod tests;
