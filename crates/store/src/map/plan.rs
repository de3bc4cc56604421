//! Which keys to scan next: batches of what is neither covered nor being scanned.

use super::Map;
use crate::interval::{Interval, IntervalSet, U256};
use crate::order::Order;

/// Keys that follow each other, given out to be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    positions: Interval,
    keys: Interval,
}

impl Batch {
    /// The keys to scan.
    pub fn keys(&self) -> Interval {
        self.keys
    }

    /// Where they lie in the map's order.
    pub(super) fn positions(&self) -> Interval {
        self.positions
    }
}

/// Gives out the keys of a map that are not covered, each once. Any number of batches may be out at a time. What is out
/// when a scan ends is given out again by the planner of the next.
#[derive(Clone, Debug)]
pub struct Planner {
    range: Interval,
    order: Order,
    /// Positions covered or out.
    taken: IntervalSet,
}

impl Planner {
    /// Plans what a map lacks.
    pub fn new(map: &Map) -> Self {
        Self { range: map.job().range(), order: map.order(), taken: map.covered.clone() }
    }

    /// The next batch of at most so many keys, `None` when all are covered or out. At the end of a piece or before
    /// something covered it has fewer.
    ///
    /// # Panics
    ///
    /// When `most` is zero.
    pub fn next(&mut self, most: U256) -> Option<Batch> {
        let gap = self.taken.first_gap(&self.range)?;
        let asked =
            Interval::starting(gap.first(), most.min(gap.count())).expect("a batch has at least one key");
        let (keys, count) = self.order.keys_at(&self.range, &asked);
        let positions = Interval::starting(gap.first(), count).expect("a run lies within what was asked");
        self.taken.insert(positions);
        Some(Batch { positions, keys })
    }

    /// Takes a batch back that was not scanned, to be given out again.
    pub fn give_back(&mut self, batch: Batch) {
        self.taken.remove(batch.positions);
    }

    /// Takes a batch back of which only the first `done` keys were scanned. Returns the part that was, to be completed.
    pub fn split(&mut self, batch: Batch, done: U256) -> Option<Batch> {
        if done >= batch.keys.count() {
            return Some(batch);
        }
        let rest = Interval::new(batch.positions.first() + done, batch.positions.last());
        self.taken.remove(rest.expect("less than the batch is done"));
        let positions = Interval::starting(batch.positions.first(), done)?;
        let keys = Interval::starting(batch.keys.first(), done)?;
        Some(Batch { positions, keys })
    }
}
