//! Intervals of numbers and sets of them: exact arithmetic on what a scan has covered.
//!
//! Numbers are 256 bits wide and start at 1, as private keys do. So no count of numbers exceeds 2^256 - 1, and all sums
//! here are exact. Knows nothing of jobs and files.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

pub use ethnum::U256;

const ONE: U256 = U256::ONE;

/// All numbers from one to another, both included. Neither empty nor with a zero in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    first: U256,
    last: U256,
}

impl Interval {
    /// From `first` to `last`; `None` when `first` is zero or beyond `last`.
    pub fn new(first: U256, last: U256) -> Option<Self> {
        (first != U256::ZERO && first <= last).then_some(Self { first, last })
    }

    /// So many numbers from `first` on; `None` where that is no interval of numbers of 256 bits.
    pub fn starting(first: U256, count: U256) -> Option<Self> {
        Self::new(first, first.checked_add(count.checked_sub(ONE)?)?)
    }

    /// The first number.
    pub fn first(&self) -> U256 {
        self.first
    }

    /// The last number.
    pub fn last(&self) -> U256 {
        self.last
    }

    /// How many numbers there are.
    pub fn count(&self) -> U256 {
        // first is at least 1, so the count is at most 2^256 - 1.
        self.last - self.first + ONE
    }

    /// Whether a number lies in it.
    pub fn contains(&self, number: U256) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// Whether all of another lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// What two have in common.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        Self::new(self.first.max(other.first), self.last.min(other.last))
    }
}

impl fmt::Display for Interval {
    /// Both ends in hexadecimal digits: `1f:ffff`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.first, self.last)
    }
}

/// A set of numbers as the fewest intervals: they are in order, and between two lies a number that is in neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet {
    /// Last numbers by first numbers.
    intervals: BTreeMap<U256, U256>,
}

impl IntervalSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all numbers of an interval. Returns how many were not in the set before.
    pub fn insert(&mut self, added: Interval) -> U256 {
        let (mut first, mut last) = (added.first, added.last);
        let mut known = U256::ZERO;
        // What touches or overlaps becomes one interval. Those lie among the ones that begin at or before last + 1; from
        // the highest down they end at or after first - 1 until the first that does not.
        loop {
            let reach = Bound::Included(last.saturating_add(ONE));
            let below = self.intervals.range((Bound::Unbounded, reach)).next_back();
            let Some((&other_first, &other_last)) = below else { break };
            if other_last < first - ONE {
                break;
            }
            self.intervals.remove(&other_first);
            let other = Interval { first: other_first, last: other_last };
            known += other.intersection(&added).map_or(U256::ZERO, |common| common.count());
            (first, last) = (first.min(other_first), last.max(other_last));
        }
        self.intervals.insert(first, last);
        added.count() - known
    }

    /// Takes all numbers of an interval out.
    pub fn remove(&mut self, removed: Interval) {
        loop {
            let below = self.intervals.range(..=removed.last).next_back();
            let Some((&first, &last)) = below else { break };
            if last < removed.first {
                break;
            }
            self.intervals.remove(&first);
            if last > removed.last {
                self.intervals.insert(removed.last + ONE, last);
            }
            if first < removed.first {
                self.intervals.insert(first, removed.first - ONE);
                break;
            }
        }
    }

    /// Adds all numbers of another set.
    pub fn extend(&mut self, other: &Self) {
        for interval in other.iter() {
            self.insert(interval);
        }
    }

    /// The intervals in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Interval> + '_ {
        self.intervals.iter().map(|(&first, &last)| Interval { first, last })
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// How many numbers there are.
    pub fn total(&self) -> U256 {
        // The intervals are disjoint and without zero, so the sum is below 2^256.
        self.iter().fold(U256::ZERO, |sum, interval| sum + interval.count())
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: U256) -> bool {
        self.at_or_below(number).is_some_and(|interval| interval.contains(number))
    }

    /// Whether all numbers of an interval are in the set.
    pub fn covers(&self, interval: &Interval) -> bool {
        self.at_or_below(interval.first).is_some_and(|known| known.covers(interval))
    }

    /// How many numbers of an interval are in the set.
    pub fn count_in(&self, within: &Interval) -> U256 {
        within.count() - self.gaps(*within).fold(U256::ZERO, |sum, gap| sum + gap.count())
    }

    /// The lowest numbers of `within` that are not in the set, up to the next that is.
    pub fn first_gap(&self, within: &Interval) -> Option<Interval> {
        let first = match self.at_or_below(within.first) {
            Some(known) if known.last >= within.first => known.last.checked_add(ONE)?,
            _ => within.first,
        };
        let next = self.intervals.range(first..).next();
        let last = next.map_or(within.last, |(&next, _)| within.last.min(next - ONE));
        Interval::new(first, last)
    }

    /// The numbers of `within` that are not in the set, as the fewest intervals in ascending order.
    pub fn gaps(&self, within: Interval) -> impl Iterator<Item = Interval> + '_ {
        let mut rest = Some(within);
        std::iter::from_fn(move || {
            let gap = self.first_gap(&rest?)?;
            rest = gap.last.checked_add(ONE).and_then(|next| Interval::new(next, within.last));
            Some(gap)
        })
    }

    /// The interval that begins last at or below a number.
    fn at_or_below(&self, number: U256) -> Option<Interval> {
        self.intervals.range(..=number).next_back().map(|(&first, &last)| Interval { first, last })
    }
}

impl FromIterator<Interval> for IntervalSet {
    fn from_iter<I: IntoIterator<Item = Interval>>(intervals: I) -> Self {
        let mut set = Self::new();
        for interval in intervals {
            set.insert(interval);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Where carries and ends of the number line lie: around these the sets are compared with plain sets.
    fn bases() -> Vec<U256> {
        let order = crate::key_order();
        vec![
            ONE,
            (ONE << 64) - U256::new(40),
            (ONE << 128) - U256::new(40),
            (ONE << 192) - U256::new(40),
            order - U256::new(80),
            U256::MAX - U256::new(79),
        ]
    }

    fn interval(base: U256, from: u64, to: u64) -> Interval {
        Interval::new(base + U256::from(from.min(to)), base + U256::from(from.max(to))).unwrap()
    }

    proptest! {
        /// 80 numbers around each base, against a set of single numbers: no gap, no overlap, sums exact.
        #[test]
        fn sets_are_those_of_single_numbers(
            base in 0..6usize,
            steps in prop::collection::vec((any::<bool>(), 0..80u64, 0..80u64), 1..40),
            probe in (0..80u64, 0..80u64),
        ) {
            let base = bases()[base];
            let (mut set, mut naive) = (IntervalSet::new(), BTreeSet::new());
            for (is_added, from, to) in steps {
                let numbers = from.min(to)..=from.max(to);
                if is_added {
                    let before = naive.len();
                    naive.extend(numbers);
                    let new = set.insert(interval(base, from, to));
                    prop_assert_eq!(new, U256::new((naive.len() - before) as u128));
                } else {
                    naive.retain(|number| !numbers.contains(number));
                    set.remove(interval(base, from, to));
                }
                prop_assert_eq!(set.total(), U256::new((naive.len()) as u128));
                let mut end: Option<U256> = None;
                for known in set.iter() {
                    // In order and apart by at least one number.
                    prop_assert!(end.is_none_or(|end| known.first() > end && known.first() - end > ONE));
                    end = Some(known.last());
                }
                for number in 0..80u64 {
                    prop_assert_eq!(set.contains(base + U256::from(number)), naive.contains(&number));
                }
            }
            let within = interval(base, probe.0, probe.1);
            let missing: Vec<u64> =
                (probe.0.min(probe.1)..=probe.0.max(probe.1)).filter(|number| !naive.contains(number)).collect();
            let mut gaps = Vec::new();
            for gap in set.gaps(within) {
                prop_assert!(within.covers(&gap));
                let (from, to) = ((gap.first() - base).as_u64(), (gap.last() - base).as_u64());
                gaps.extend(from..=to);
            }
            prop_assert_eq!(&gaps, &missing);
            prop_assert_eq!(set.covers(&within), missing.is_empty());
            prop_assert_eq!(set.count_in(&within), within.count() - U256::new((missing.len()) as u128));
            prop_assert_eq!(set.iter().collect::<IntervalSet>(), set.clone());
        }

        /// Covered and gaps of any intervals fill the whole line, to the last number.
        #[test]
        fn covered_and_gaps_fill_the_line(ends in prop::collection::vec((any::<[u128; 2]>(), any::<[u128; 2]>()), 0..30)) {
            let mut set = IntervalSet::new();
            let mut new = U256::ZERO;
            for (a, b) in ends {
                let (a, b) = (U256(a).max(ONE), U256(b).max(ONE));
                new += set.insert(Interval::new(a.min(b), a.max(b)).unwrap());
            }
            prop_assert_eq!(set.total(), new);
            let all = Interval::new(ONE, U256::MAX).unwrap();
            let gaps: IntervalSet = set.gaps(all).collect();
            prop_assert_eq!(gaps.total() + set.total(), U256::MAX);
            let mut whole = gaps.clone();
            whole.extend(&set);
            prop_assert_eq!(whole.iter().collect::<Vec<_>>(), vec![all]);
            for interval in gaps.iter() {
                whole.remove(interval);
            }
            prop_assert_eq!(whole, set);
        }
    }

    #[test]
    fn an_interval_has_an_end_at_or_after_a_start_that_is_not_zero() {
        let number = |value: u64| U256::from(value);
        assert_eq!(Interval::new(number(0), number(5)), None);
        assert_eq!(Interval::new(number(6), number(5)), None);
        assert_eq!(Interval::starting(number(6), number(0)), None);
        assert_eq!(Interval::starting(U256::MAX, number(2)), None);
        assert_eq!(Interval::starting(U256::MAX, ONE).unwrap().count(), ONE);
        assert_eq!(Interval::new(ONE, U256::MAX).unwrap().count(), U256::MAX);
        assert_eq!(Interval::new(number(0x1f), number(0xffff)).unwrap().to_string(), "1f:ffff");
    }
}
