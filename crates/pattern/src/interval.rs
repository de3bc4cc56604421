//! Digests as filters read them, and ranges of their top bits.

/// A digest as a filter reads it: 256 bits, word 0 first, most significant bit of word 0 first.
/// A shorter digest fills the leading bits; the rest is zero.
pub type Words = [u64; 4];

/// An inclusive range of the 64 most significant digest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The smallest accepted value.
    pub first: u64,
    /// The largest accepted value.
    pub last: u64,
}

/// Sorted, disjoint and not adjacent.
pub(crate) fn merge(mut intervals: Vec<Interval>) -> Vec<Interval> {
    if !intervals.is_sorted() {
        intervals.sort_unstable();
    }
    // `kept` intervals at the front are final but for the last, which may still grow.
    let mut kept = 0;
    for i in 0..intervals.len() {
        let next = intervals[i];
        if kept > 0 && next.first <= intervals[kept - 1].last.saturating_add(1) {
            intervals[kept - 1].last = intervals[kept - 1].last.max(next.last);
        } else {
            intervals[kept] = next;
            kept += 1;
        }
    }
    intervals.truncate(kept);
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(first: u64, last: u64) -> Interval {
        Interval { first, last }
    }

    #[test]
    fn merging_joins_overlaps_and_neighbours_up_to_both_ends() {
        let merged = merge(vec![
            interval(7, 9),
            interval(0, 1),
            interval(2, 2),
            interval(8, 12),
            interval(14, u64::MAX),
            interval(u64::MAX, u64::MAX),
        ]);
        assert_eq!(merged, [interval(0, 2), interval(7, 12), interval(14, u64::MAX)]);
        assert!(merge(Vec::new()).is_empty());
    }
}
