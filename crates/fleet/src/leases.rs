//! Leases: who has which unit, and until when. They live in memory; after a restart what may be in somebody's hands is known by
//! the ledger's mark, and counts as leased to nobody known until it comes back or its time is over.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// One device of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The worker.
    pub worker: u32,
    /// Which of its devices.
    pub slot: u16,
}

/// How many a device may have at a time: one that it does, and one that waits so that it need not.
pub const MOST: usize = 2;

/// A unit in somebody's hands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Whose; none where a coordinator before this one gave it away.
    pub holder: Option<Holder>,
    /// Numbers from this unit on.
    pub count: u64,
    /// When it is given to another.
    pub until: Duration,
    /// Candidates of it; 0 where that is not known.
    pub candidates: f64,
}

/// The leases of one job.
#[derive(Debug, Default)]
pub struct Leases {
    held: BTreeMap<u64, Held>,
    by_holder: HashMap<Holder, Vec<u64>>,
    /// Units whose time was over.
    pub expired: u64,
}

impl Leases {
    /// Gives a unit away.
    pub fn give(&mut self, first: u64, held: Held) {
        self.take_back(first);
        if let Some(holder) = held.holder {
            self.by_holder.entry(holder).or_default().push(first);
        }
        self.held.insert(first, held);
    }

    /// Ends a lease; what it was.
    pub fn take_back(&mut self, first: u64) -> Option<Held> {
        let held = self.held.remove(&first)?;
        if let Some(holder) = held.holder
            && let Some(units) = self.by_holder.get_mut(&holder)
        {
            units.retain(|unit| *unit != first);
            if units.is_empty() {
                self.by_holder.remove(&holder);
            }
        }
        Some(held)
    }

    /// Ends what is held of these numbers, and no more: the rest of a lease that reaches further stays.
    pub fn release(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        let mut at = first;
        while at < end {
            let Some((from, held)) = self.is_held(at) else {
                match self.next_after(at) {
                    Some(next) if next < end => at = next,
                    _ => break,
                }
                continue;
            };
            self.take_back(from);
            let to = from + held.count;
            if from < first {
                self.give(from, Held { count: first - from, ..held });
            }
            if to > end {
                self.give(end, Held { count: to - end, ..held });
            }
            at = to;
        }
    }

    /// Ends all that are over by now, and returns them.
    pub fn expire(&mut self, now: Duration) -> Vec<(u64, Held)> {
        let is_over = |(_, held): &(&u64, &Held)| held.until <= now;
        let over: Vec<(u64, Held)> =
            self.held.iter().filter(is_over).map(|(first, held)| (*first, *held)).collect();
        for (first, _) in &over {
            self.take_back(*first);
            self.expired += 1;
        }
        over
    }

    /// Ends all of a device that are not among these: their numbers.
    pub fn keep_only(&mut self, holder: Holder, units: &[u64]) -> Vec<(u64, u64)> {
        let all = self.by_holder.get(&holder).cloned().unwrap_or_default();
        let lost = all.into_iter().filter(|first| !units.contains(first));
        lost.filter_map(|first| self.take_back(first).map(|held| (first, held.count))).collect()
    }

    /// Ends all of a worker: their numbers.
    pub fn take_all(&mut self, worker: u32) -> Vec<(u64, u64)> {
        let of = |held: &Held| held.holder.is_some_and(|holder| holder.worker == worker);
        let all: Vec<u64> = self.held.iter().filter(|(_, held)| of(held)).map(|(at, _)| *at).collect();
        all.into_iter().filter_map(|first| self.take_back(first).map(|held| (first, held.count))).collect()
    }

    /// Whether any device has one.
    pub fn is_any_held(&self) -> bool {
        !self.by_holder.is_empty()
    }

    /// How many a device has.
    pub fn count_of(&self, holder: Holder) -> usize {
        self.by_holder.get(&holder).map_or(0, Vec::len)
    }

    /// Whether a unit is in somebody's hands.
    pub fn is_held(&self, unit: u64) -> Option<(u64, Held)> {
        let (first, held) = self.held.range(..=unit).next_back()?;
        (unit - first < held.count).then_some((*first, *held))
    }

    /// The first held unit at or after this one.
    pub fn next_after(&self, unit: u64) -> Option<u64> {
        self.held.range(unit..).next().map(|(first, _)| *first)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_end_by_coming_back_or_by_time() {
        let mut leases = Leases::default();
        let (a, b) = (Holder { worker: 1, slot: 0 }, Holder { worker: 2, slot: 3 });
        let held = |holder, seconds| Held {
            holder: Some(holder),
            count: 5,
            until: Duration::from_secs(seconds),
            candidates: 5.0,
        };
        leases.give(10, held(a, 100));
        leases.give(20, held(a, 50));
        leases.give(30, held(b, 70));
        assert_eq!((leases.count_of(a), leases.count_of(b), leases.len()), (2, 1, 3));
        assert_eq!(leases.is_held(14).map(|(first, _)| first), Some(10));
        assert_eq!((leases.is_held(15), leases.next_after(15)), (None, Some(20)));
        leases.expire(Duration::from_secs(60));
        assert_eq!((leases.count_of(a), leases.expired), (1, 1));
        // Given again to another while the first still has it: the first's coming back late ends nothing of it.
        leases.give(30, held(a, 90));
        assert_eq!((leases.count_of(a), leases.count_of(b)), (2, 0));
        assert_eq!(leases.take_all(1), [(10, 5), (30, 5)]);
        assert!(leases.is_empty() && leases.by_holder.is_empty());
        // What a coordinator before gave away comes back piece by piece.
        leases.give(1, Held { holder: None, count: 100, until: Duration::from_secs(9), candidates: 0.0 });
        leases.release(50, 1);
        leases.release(1, 2);
        leases.release(99, 10);
        let over: Vec<_> =
            leases.expire(Duration::from_secs(9)).iter().map(|(at, held)| (*at, held.count)).collect();
        assert_eq!(over, [(3, 47), (51, 48)]);
    }
}
