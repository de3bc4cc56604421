//! Many ranges of the top 64 bits of x, up to millions, in levels:
//!
//! 1. a Bloom filter (see `field::bloom`) for a private cache, asked with the word of every key. Where it lets more than
//!    very few pass its entries overlap: with eight bits of table a range 5 % of all keys do, where a single bit a key
//!    would let 12 % pass;
//! 2. a larger table of entries of their own, for the shared cache;
//! 3. beside each entry of that, so that it comes with it, one more for the ten bits after the word;
//! 4. the ranges themselves.
//!
//! Words and tops come with an error; the tables are made from ranges widened by it. Each level may accept too
//! much, none ever too little.

use std::sync::Arc;

use super::pages::Pages;
use super::range::Range;
use crate::field::bloom::{self, EMPTY, Marked, WITHIN};
use crate::field::leading::SHORT;

/// How far a sum of three tops may be off: each short, or where one is times beta^2, minus the sum of two, over by twice
/// that.
pub(super) const SLACK: u64 = 6 * SHORT + 64;

/// How far the word of a key, a sum of three words of tops, can lie below the leading half of the sum of the tops:
/// three fractions of at most 1 (see `bloom::words`) were cut off. It is never above.
const BELOW: u64 = 3;
/// How far it can lie below what the sum should be.
const BELOW_WORD: u64 = (BELOW << 32) + SLACK;

/// A first level that lets less than this share of keys pass is sparse: of one entry of eight lanes in ten a key does. With
/// twice as many the other way is 3 to 8 % faster.
const SPARSE: f64 = 1.0 / 1500.0;

/// Many ranges of the top 64 bits of x.
///
/// A copy has a first level of its own and shares the rest: each thread should have one. What a thread's core has to fetch
/// again because the cache lost it takes longer where another core reads the same (docs/measurements/npub-cpu.md), while copies of
/// the rest, tens of megabytes, would push each other out of the cache that all cores share.
#[derive(Clone)]
pub struct Bits {
    /// The first level: 2^coarse_log2 bytes in entries of their own where it is sparse; elsewhere an entry begins with
    /// every byte but three more at the end.
    coarse: Pages<u8>,
    coarse_log2: u32,
    sparse: bool,
    rest: Arc<Rest>,
}

/// The levels after the first.
struct Rest {
    /// The second and the third level.
    fine: Pages<[[u8; 4]; 2]>,
    fine_log2: u32,
    /// Ranges sorted by value, and where those of each leading 16 bits begin.
    ranges: Vec<Range>,
    starts: Vec<u32>,
}

/// Calls back for the part of the circle from `first - below` to `last + above` that each of 2^log2 entries covers:
/// its number, and the first and the last value of the `within` bits that follow.
fn pieces(
    range: &Range,
    below: u64,
    above: u64,
    log2: u32,
    within: u32,
    mut piece: impl FnMut(usize, u64, u64),
) {
    // Counted from one turn up, so that what reaches below zero stays positive.
    let shift = 64 - log2 - within;
    let first = ((1u128 << 64) + range.first as u128 - below as u128) >> shift;
    let last = ((1u128 << 64) + range.last as u128 + above as u128) >> shift;
    let (from, to) = ((first >> within) as u64, (last >> within) as u64);
    let inside = (1u64 << within) - 1;
    let turn = (1u64 << log2) - 1;
    for entry in from..=to {
        // More than a turn of entries comes by the first one again, with the rest of what it covers.
        let low = if entry == from { first as u64 & inside } else { 0 };
        let high = if entry == to { last as u64 & inside } else { inside };
        piece((entry & turn) as usize, low, high);
    }
}

/// Sets the marks of `first..=last` of the bits that choose one; all of them by letting everything pass.
fn set(entry: &mut [u8; 4], first: u64, last: u64, bits: u32) {
    if last - first >= (1 << bits) - 1 {
        *entry = [0; 4];
        return;
    }
    for ten in first..=last {
        bloom::set(entry, ten as u32);
    }
}

/// The first level in 2^log2 bytes.
fn first_level<const STRIDE: usize>(ranges: &[Range], log2: u32) -> Pages<u8> {
    let mut table = Pages::new(EMPTY, (1 << log2) + 4 - STRIDE);
    let bits = bloom::after(STRIDE);
    for range in ranges {
        pieces(range, BELOW_WORD, SLACK, log2 - STRIDE.ilog2(), bits, |at, first, last| {
            let entry = table[at * STRIDE..].first_chunk_mut().expect("the last entry has four bytes");
            // The last bits of the number of an entry that overlaps others are the first of its marks'.
            let leading = (at as u64) << bits;
            set(entry, leading | first, leading | last, bits);
        });
    }
    table
}

/// The share of all words that a table of entries of their own lets pass, by sixteen for each.
fn share(table: &[u8]) -> f64 {
    let (entries, _) = table.as_chunks();
    let mut passed = 0u64;
    for (at, &entry) in entries.iter().enumerate() {
        for i in 0..16 {
            // Numbers without pattern; the low bits of a product by an odd one would repeat in neighbouring entries.
            let ten = ((at as u32) << 4 | i).wrapping_mul(0x9e37_79b9) >> (32 - WITHIN);
            passed += u64::from(bloom::holds(entry, ten));
        }
    }
    passed as f64 / (16 * entries.len()) as f64
}

impl Bits {
    /// The levels of sorted, disjoint ranges; the first has 2^log2 bits, 5 to 27.
    pub fn new(ranges: &[Range], log2: u32) -> Bits {
        assert!((5..=27).contains(&log2), "a table has 2^5 to 2^27 bits, not 2^{log2}");
        let coarse_log2 = (log2 - 3).max(3);
        let coarse = first_level::<4>(ranges, coarse_log2);
        let sparse = share(&coarse) < SPARSE;
        let coarse = if sparse { coarse } else { first_level::<1>(ranges, coarse_log2) };
        // At most half a range an entry while words have the bits for it, and enough entries to look further than the
        // first level does.
        let fine_log2 = (ranges.len().max(1).next_power_of_two().ilog2() + 1).clamp(coarse_log2.min(22), 22);
        let mut fine = Pages::new([[EMPTY; 4]; 2], 1 << fine_log2);
        for range in ranges {
            pieces(range, BELOW_WORD, SLACK, fine_log2, WITHIN, |at, first, last| {
                set(&mut fine[at][0], first, last, WITHIN)
            });
            // The third level skips the bits up to 32, which the second has read; values of them are kept apart.
            let within = 32 - fine_log2 + WITHIN;
            pieces(range, SLACK, SLACK, fine_log2, within, |at, first, last| {
                set(&mut fine[at][1], first, last, WITHIN)
            });
        }
        let mut starts = vec![0; (1 << 16) + 1];
        for (at, start) in starts.iter_mut().enumerate() {
            *start = ranges.partition_point(|r| r.last >> 48 < at as u64) as u32;
        }
        let rest = Rest { fine, fine_log2, ranges: ranges.to_vec(), starts };
        Bits { coarse, coarse_log2, sparse, rest: Arc::new(rest) }
    }

    /// The first level: its entries are four bytes apart if it is sparse, else one.
    pub(super) fn coarse<const STRIDE: usize>(&self) -> Marked<STRIDE> {
        assert_eq!(STRIDE, if self.sparse { 4 } else { 1 });
        Marked { table: self.coarse.as_ptr(), log2: self.coarse_log2 - STRIDE.ilog2() }
    }

    /// The second level: entries eight bytes apart.
    pub(super) fn fine(&self) -> Marked<8> {
        Marked { table: self.rest.fine.as_ptr().cast(), log2: self.rest.fine_log2 }
    }

    /// The third level: an entry after each of the second.
    pub(super) fn third(&self) -> Marked<8> {
        let second = self.fine();
        // SAFETY: an entry of the second level is four bytes, and the third's is beside it.
        Marked { table: unsafe { second.table.add(4) }, ..second }
    }

    /// Whether the first level lets next to nothing pass.
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Whether the second level lets a word pass.
    #[inline(always)]
    pub(super) fn may_hold(&self, word: u32) -> bool {
        // SAFETY: the table is ours, and an entry begins every eight bytes.
        unsafe { self.fine().holds(word) }
    }

    /// Whether the third level lets a computed top pass.
    #[inline(always)]
    pub(super) fn near(&self, top: u64) -> bool {
        // SAFETY: the table has an entry for every number the shift leaves.
        let entry = unsafe { self.rest.fine.get_unchecked((top >> (64 - self.rest.fine_log2)) as usize)[1] };
        bloom::holds(entry, (top >> (32 - WITHIN)) as u32)
    }

    /// Whether the first level lets a word pass.
    fn admits(&self, word: u32) -> bool {
        // SAFETY: the table is ours.
        unsafe { if self.sparse { self.coarse::<4>().holds(word) } else { self.coarse::<1>().holds(word) } }
    }

    /// Whether a key whose top bits are known lies in a range. The first level first: most keys end there.
    pub(super) fn holds_exactly(&self, top: u64) -> bool {
        self.admits((top >> 32) as u32) && self.holds(top, 1)
    }

    /// Whether an x whose top bits are within the slack of `top` can lie in a range.
    pub(super) fn holds(&self, top: u64, slack: u64) -> bool {
        self.range_near(top, slack).is_some()
    }

    /// The range in which an x whose top bits are within the slack of `top` can lie.
    pub(super) fn range_near(&self, top: u64, slack: u64) -> Option<Range> {
        // The ranges that end in the bucket of `top` or later, up to one that begins after it; and, where the slack
        // reaches into a neighbouring bucket, those of that one.
        let in_bucket = |value: u64| {
            let bucket = (value >> 48) as usize;
            let to = (self.rest.starts[bucket + 1] as usize + 1).min(self.rest.ranges.len());
            let candidates = &self.rest.ranges[self.rest.starts[bucket] as usize..to];
            let after = candidates.partition_point(|r| r.first <= top.saturating_add(slack));
            candidates[after.saturating_sub(2)..(after + 1).min(candidates.len())]
                .iter()
                .copied()
                .find(|r| r.holds(top, slack))
        };
        let (low, high) = (top.wrapping_sub(slack), top.wrapping_add(slack));
        in_bucket(low).or_else(|| if low >> 48 != high >> 48 { in_bucket(high) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::random;

    /// Every level lets pass whatever lies in a range, with every error a word or a top can have.
    fn check(ranges: &[Range], log2: u32) {
        let bits = Bits::new(ranges, log2);
        let mut tops = vec![0, u64::MAX, 1 << 63];
        for r in ranges {
            tops.extend([r.first, r.last, r.first + (r.last - r.first) / 2]);
        }
        for top in tops {
            let held = ranges.iter().any(|r| (r.first..=r.last).contains(&top));
            assert_eq!(bits.holds(top, 0), held, "{top:x}");
            if !held {
                continue;
            }
            assert!(bits.holds_exactly(top));
            for computed in [top.wrapping_sub(SLACK), top.wrapping_sub(1), top, top.wrapping_add(SLACK)] {
                assert!(
                    bits.near(computed) && bits.holds(computed, SLACK),
                    "{computed:x} for {top:x}, 2^{log2} bits"
                );
                for below in 0..=BELOW as u32 {
                    let word = ((computed >> 32) as u32).wrapping_sub(below);
                    assert!(bits.admits(word), "{word:x} for {top:x}, 2^{log2} bits");
                    assert!(bits.may_hold(word), "{word:x} for {top:x}, 2^{log2} bits");
                }
            }
        }
    }

    #[test]
    fn no_level_holds_a_key_of_a_range_back() {
        let mut state = 7;
        let end = u64::MAX;
        for log2 in [5, 6, 10, 17] {
            check(&[Range { first: 0, last: end }], log2);
            check(&[Range { first: 0, last: 0 }, Range { first: end, last: end }], log2);
            check(&[Range { first: 1 << 63, last: end }], log2);
            check(&[Range { first: 5, last: end - 5 }], log2);
            for width in [0, 9, 20, 33, 45, 53] {
                let mut firsts: Vec<u64> = (0..500).map(|_| random(&mut state) >> width << width).collect();
                firsts.sort_unstable();
                firsts.dedup();
                let ranges: Vec<Range> = firsts
                    .into_iter()
                    .map(|first| Range { first, last: first | ((1u64 << width) - 1) })
                    .collect();
                check(&ranges, log2);
            }
        }
    }

    #[test]
    fn the_levels_let_pass_what_their_size_promises() {
        let mut state = 1;
        let mut firsts: Vec<u64> = (0..1 << 17).map(|_| random(&mut state)).collect();
        firsts.sort_unstable();
        let ranges: Vec<Range> = firsts.into_iter().map(|first| Range { first, last: first }).collect();
        let bits = Bits::new(&ranges, 20);
        let keys = 1 << 20;
        let (mut first, mut second, mut third, mut fourth) = (0, 0, 0, 0);
        for _ in 0..keys {
            let top = random(&mut state);
            let one = bits.admits((top >> 32) as u32);
            let two = one && bits.may_hold((top >> 32) as u32);
            first += one as u32;
            second += two as u32;
            let three = two && bits.near(top);
            third += three as u32;
            fourth += (three && bits.holds(top, SLACK)) as u32;
        }
        // Eight bits of table a range: 5 %; then below 1 %, then next to nothing; and of the ranges, which are
        // single values widened by the slack, a sixteenth of one is met on average.
        assert!((keys / 25..keys / 18).contains(&first), "{first}");
        assert!(second < keys / 100, "{second}");
        assert!(third < keys / 10_000, "{third}");
        assert!(fourth <= 2, "{fourth}");
    }

    /// Each thread has a first level of its own, and of the others there is one.
    #[test]
    fn copies_share_all_but_the_first_level() {
        let ranges: Vec<Range> = (0..5000).map(|i| Range { first: i << 50, last: i << 50 | 9 }).collect();
        let bits = Bits::new(&ranges, 16);
        let copy = bits.clone();
        assert!(Arc::ptr_eq(&bits.rest, &copy.rest));
        assert_ne!(bits.coarse.as_ptr(), copy.coarse.as_ptr());
        assert_eq!(bits.coarse[..], copy.coarse[..]);
        drop(bits);
        assert!(ranges.iter().all(|r| copy.holds_exactly(r.first) && copy.holds_exactly(r.last)));
    }

    /// The two ways are chosen as the tests of planted keys, and the sizes of tables, take for granted.
    #[test]
    fn roomy_tables_are_sparse_and_small_ones_are_not() {
        let mut state = 3;
        for (count, log2, sparse) in [
            (300, 18, true),
            (10_000, 21, true),
            (16_384, 21, true),
            (16_384, 20, false),
            (30_000, 18, false),
        ] {
            let mut firsts: Vec<u64> = (0..count).map(|_| random(&mut state)).collect();
            firsts.sort_unstable();
            let ranges: Vec<Range> = firsts.into_iter().map(|first| Range { first, last: first }).collect();
            assert_eq!(Bits::new(&ranges, log2).is_sparse(), sparse, "{count} ranges in 2^{log2} bits");
        }
    }
}
