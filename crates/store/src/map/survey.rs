//! What a map says of itself at a glance, however large its job is: gaps, pieces of a random order, and speed.

use super::Map;
use crate::interval::{Interval, U256};
use crate::order::Order;

/// What of a range is not covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// How many stretches of keys.
    pub count: usize,
    /// The largest of them, the first where several are; none where all is covered.
    pub largest: Option<Interval>,
    /// The first of them in the order of keys, as many as were asked for.
    pub first: Vec<Interval>,
}

/// The pieces of a random order. What is left beyond the last whole piece is one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// How many keys a piece has.
    pub keys: U256,
    /// How many pieces there are.
    pub all: U256,
    /// Those that are covered.
    pub done: U256,
    /// Those of which a part is.
    pub begun: U256,
}

impl Map {
    /// The most pieces of a random order of which the gaps are told as keys: more are a list that nobody reads.
    const LISTED: u64 = 1 << 16;

    /// The last speed is taken over at least so many seconds of work, where there are: what a stretch of one second says is chance.
    const RECENT: u64 = 10;

    /// What is not covered, with the first `most` gaps. None for a random order in more pieces than are worth a list: then
    /// [`Map::pieces`] says how it stands.
    pub fn survey(&self, most: usize) -> Option<Gaps> {
        if self.order == Order::Sequential {
            return Some(Gaps::of(self.covered.gaps(self.job.range), most));
        }
        let gaps = self.covered.gaps(self.job.range);
        let pieces = gaps.fold(U256::ZERO, |sum, gap| sum + self.order.pieces_in(&gap));
        let listed = (pieces <= U256::from(Self::LISTED)).then(|| self.gaps());
        Some(Gaps::of(listed?.ok()?.iter(), most))
    }

    /// How the pieces of a random order stand; none where there are no pieces.
    pub fn pieces(&self) -> Option<Pieces> {
        let Order::Random { piece, .. } = self.order else { return None };
        let (range, one) = (self.job.range, U256::ONE);
        let all = (range.count() - one) / piece + one;
        let (mut done, mut begun, mut last_begun) = (U256::ZERO, U256::ZERO, None);
        for covered in self.covered.iter() {
            // Behind the last of them, counted from the first position.
            let (start, end) = (covered.first() - range.first(), covered.last() - range.first() + one);
            let is_last = end == range.count();
            let (first_whole, end_whole) = (
                start / piece + U256::from(start % piece != U256::ZERO),
                if is_last { all } else { end / piece },
            );
            done += end_whole.saturating_sub(first_whole);
            let cut_start = (start % piece != U256::ZERO).then(|| start / piece);
            let cut_end = (end % piece != U256::ZERO && !is_last).then(|| end / piece);
            for number in [cut_start, cut_end].into_iter().flatten() {
                // Intervals ascend, so a piece that was counted is the last one.
                begun += U256::from(last_begun.replace(number) != Some(number));
            }
        }
        Some(Pieces { keys: piece, all, done, begun })
    }

    /// Keys a second over all that was worked; none before a second of it.
    pub fn rate(&self) -> Option<f64> {
        self.rate_of(u64::MAX)
    }

    /// Keys a second over the last stretches that are ten seconds or more together; none before a second of work.
    pub fn last_rate(&self) -> Option<f64> {
        self.rate_of(Self::RECENT)
    }

    /// Over the newest stretches, as many as have so many seconds. Those under a second count too: whole seconds of one clock are
    /// right on average.
    fn rate_of(&self, enough: u64) -> Option<f64> {
        let (mut seconds, mut keys) = (0u64, 0.0);
        for stretch in self.history.iter().rev() {
            if seconds >= enough {
                break;
            }
            seconds = seconds.saturating_add(stretch.seconds);
            keys += stretch.keys.as_f64();
        }
        (seconds > 0).then(|| keys / seconds as f64)
    }
}

impl Gaps {
    fn of(gaps: impl Iterator<Item = Interval>, most: usize) -> Self {
        let mut all = Self { count: 0, largest: None, first: Vec::new() };
        for gap in gaps {
            all.count += 1;
            if all.first.len() < most {
                all.first.push(gap);
            }
            if all.largest.is_none_or(|largest| largest.count() < gap.count()) {
                all.largest = Some(gap);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
