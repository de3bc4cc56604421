//! The quick look at a digest: may it be one that is wanted? Lets nothing wanted go by.

use warpsmith_hash::keccak::Word8;
use warpsmith_store::Filter;

/// The first 64 bits of digests, looked up.
pub(crate) trait MayHold: Sync {
    /// Whether everything passes: then stretches are short, since all of it is held.
    fn holds_all(&self) -> bool {
        false
    }

    /// Whether a wanted digest may begin with these 64 bits.
    fn may_hold(&self, top: u64) -> bool;

    /// The same of eight: bit i is set where a wanted digest may begin with the i-th. Asked for through a `dyn`, so that walks are
    /// compiled once for all filters.
    fn may_hold_of(&self, tops: &Word8) -> u8 {
        (0..8).fold(0, |held, lane| held | u8::from(self.may_hold(tops[lane])) << lane)
    }
}

/// Whichever a scan has.
pub(crate) enum ScanFilter {
    List(TopList),
    Fuse(Box<Fuse>),
    /// None: every digest is looked up.
    Open,
}

/// The filter of a database.
pub(crate) struct Fuse {
    /// What devices test.
    pub first: Filter,
    /// A finer one, by which the processor tests what a card lets pass before it is looked up: where the card has no room for it
    /// and would have to wait for the look-ups.
    pub second: Option<Filter>,
}

impl Fuse {
    /// Whether what passed the first filter passes the second.
    #[inline]
    pub fn passes_second(&self, top: u64) -> bool {
        self.second.as_ref().is_none_or(|second| second.contains_key(top))
    }
}

impl MayHold for ScanFilter {
    fn may_hold(&self, top: u64) -> bool {
        match self {
            ScanFilter::List(list) => list.may_hold(top),
            ScanFilter::Fuse(filter) => filter.may_hold(top),
            ScanFilter::Open => Everything.may_hold(top),
        }
    }
}

impl MayHold for Fuse {
    #[inline(always)]
    fn may_hold(&self, top: u64) -> bool {
        self.first.contains_key(top) && self.passes_second(top)
    }
}

/// Lets everything pass.
pub(crate) struct Everything;

impl MayHold for Everything {
    fn holds_all(&self) -> bool {
        true
    }

    fn may_hold(&self, _: u64) -> bool {
        true
    }
}

/// Some thousand digests: a bitmap by their leading bits, then the exact list.
pub(crate) struct TopList {
    bits: Vec<u64>,
    shift: u32,
    /// Sorted.
    tops: Vec<u64>,
}

/// The largest bitmap: half a mebibyte stays in the second-level cache.
const MAX_LOG2: u32 = 22;

impl TopList {
    pub fn new(tops: impl IntoIterator<Item = u64>) -> TopList {
        let mut tops: Vec<u64> = tops.into_iter().collect();
        tops.sort_unstable();
        tops.dedup();
        // About one bit in 256 set.
        let log2 = (tops.len().max(1).ilog2() + 8).clamp(12, MAX_LOG2);
        let mut list = TopList { bits: vec![0; 1 << (log2 - 6)], shift: 64 - log2, tops: Vec::new() };
        for &top in &tops {
            let at = top >> list.shift;
            list.bits[(at >> 6) as usize] |= 1 << (at & 63);
        }
        list.tops = tops;
        list
    }

    /// What it was made of, in rising order.
    pub fn tops(&self) -> &[u64] {
        &self.tops
    }
}

impl MayHold for TopList {
    #[inline(always)]
    fn may_hold(&self, top: u64) -> bool {
        let at = top >> self.shift;
        self.bits[(at >> 6) as usize] >> (at & 63) & 1 == 1 && self.tops.binary_search(&top).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_it_was_made_of_and_nothing_else() {
        for count in [0u64, 1, 2, 1000, 300_000] {
            let top = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i << 40).rotate_left(13);
            let edges = [0, u64::MAX, 1 << 63];
            let list = TopList::new((0..count).map(top).chain(edges));
            for at in (0..count).map(top).chain(edges) {
                assert!(list.may_hold(at));
                for near in [at.wrapping_add(1), at.wrapping_sub(1), at ^ 1 << 63] {
                    assert_eq!(list.may_hold(near), list.tops.binary_search(&near).is_ok());
                }
            }
        }
        assert!(!TopList::new([]).may_hold(0));
    }
}
