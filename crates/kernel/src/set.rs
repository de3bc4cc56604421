//! The buffer of the SET filter: a bitmap over the computed top word, and sorted intervals of the top 64 bits.
//!
//! Mirrors `c/filter/set.h`. The bitmap is widened by the bounds of [`abi`](crate::abi), so that the walk lets too much
//! survive, never too little; the intervals are exact, and the second kernel decides by them.

use crate::abi::{Bound, FINE, FINE_KEYS, TOP, TOP_KEYS};

const HEADER: usize = 8;

/// Pairs of all ones behind those of the intervals: the device reads four from a bucket's start on.
const BEHIND: usize = 4;

/// The bitmap of a small set has `2^NEAR_BITS` bits: 16 KiB of shared memory.
pub const NEAR_BITS: u32 = 17;

/// A filter buffer, and what it does.
#[derive(Clone, Debug)]
pub struct Set {
    /// The buffer.
    pub words: Vec<u32>,
    /// The share of keys that survive the bitmap.
    pub survive: f64,
    /// A bound of the share whose top word is within its error of an interval.
    pub candidates: f64,
}

/// The filter buffer for these inclusive intervals of the top 64 bits of x. Order and overlaps do not matter. With
/// `far_bits` the bitmap has `2^far_bits` bits and stays in global memory (`near: false`); without, `2^NEAR_BITS`.
///
/// # Panics
///
/// When `far_bits` is not within 7 to 32, or an interval ends before it begins.
pub fn build(intervals: &[(u64, u64)], far_bits: Option<u32>) -> Set {
    let bits = far_bits.unwrap_or(NEAR_BITS);
    assert!((7..=32).contains(&bits), "no bitmap of 2^{bits} bits");
    let (Bound { below, above }, keys) = if far_bits.is_some() { (FINE, FINE_KEYS) } else { (TOP, TOP_KEYS) };
    let shift = 32 - bits;
    let mut bitmap = vec![0u32; 1 << (bits - 5)];
    let mut sorted = Vec::with_capacity(intervals.len());
    for &(first, last) in intervals {
        assert!(first <= last, "an interval from {first} to {last}");
        sorted.push((first, last));
        // computed = true - (true - computed), and that lies within -below..=above.
        for (from, to) in wrapped((first >> 32) as u32, (last >> 32) as u32, above, below) {
            for bit in from >> shift..=to >> shift {
                bitmap[(bit >> 5) as usize] |= 1 << 31 >> (bit & 31);
            }
        }
    }
    sorted.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    // Half an interval a bucket: few have more than the device reads at once.
    let bucket_bits = (merged.len().next_power_of_two().trailing_zeros() + 1).clamp(2, 24);
    let bucket_shift = 32 - bucket_bits;
    let mut at = 0;
    let buckets: Vec<u32> = (0..1u64 << bucket_bits)
        .map(|bucket| {
            while at < merged.len() && merged[at].1 < bucket << bucket_shift << 32 {
                at += 1;
            }
            at as u32 & !1
        })
        .collect();
    let buckets_at = HEADER + bitmap.len();
    // A multiple of four, as all before it: the device reads two pairs as one.
    let pairs_at = buckets_at + buckets.len();
    let intervals_at = pairs_at + 2 * (merged.len() + BEHIND);
    let offset = |words: usize| u32::try_from(words).expect("a filter buffer of less than 16 GiB");
    let mut words = vec![shift, bucket_shift, offset(buckets_at), offset(intervals_at), offset(merged.len())];
    words.extend([offset(pairs_at), 0, 0]);
    // Words near an interval that may be its own, of the kind of keys with the most.
    let room = keys.map(|key| 1.0 + f64::from(key.below + key.above) / 32.0).into_iter().fold(0.0, f64::max);
    let within: f64 = merged.iter().map(|&(first, last)| ((last >> 32) - (first >> 32)) as f64 + room).sum();
    let ones: u64 = bitmap.iter().map(|word| u64::from(word.count_ones())).sum();
    words.extend(bitmap);
    words.extend(buckets);
    words.extend(merged.iter().flat_map(|&(first, last)| [(first >> 32) as u32, (last >> 32) as u32]));
    words.extend([u32::MAX; 2 * BEHIND]);
    for (first, last) in merged {
        words.extend([(first >> 32) as u32, first as u32, (last >> 32) as u32, last as u32]);
    }
    let survive = ones as f64 / 2f64.powi(bits as i32);
    Set { words, survive, candidates: (within / 2f64.powi(32)).min(survive) }
}

/// The interval of top words with so much room on both sides, in two parts when it goes around.
fn wrapped(first: u32, last: u32, below: u32, above: u32) -> Vec<(u32, u32)> {
    let mut parts = vec![(first.saturating_sub(below), last.saturating_add(above))];
    if first < below {
        parts.push((first.wrapping_sub(below), u32::MAX));
    }
    if last > u32::MAX - above {
        parts.push((0, last.wrapping_add(above)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Level 1 of the device, in Rust.
    fn survives(words: &[u32], top: u32) -> bool {
        let bit = top >> words[0];
        words[HEADER + (bit >> 5) as usize] << (bit & 31) >> 31 == 1
    }

    /// Level 3 of the device, in Rust.
    fn holds(words: &[u32], top: u64) -> bool {
        let at = words[words[2] as usize + ((top >> 32) as u32 >> words[1]) as usize];
        let join = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        (at..words[4])
            .map(|i| &words[words[3] as usize + 4 * i as usize..][..4])
            .take_while(|w| join(w[0], w[1]) <= top)
            .any(|w| top <= join(w[2], w[3]))
    }

    const WANTED: [(u64, u64); 6] = [
        (0, 0),
        (5, 9),
        (u64::MAX, u64::MAX),
        (1 << 40, 1 << 41),
        (7 << 60, (7 << 60) + 3),
        ((9 << 60) - 1, 9 << 60),
    ];

    #[test]
    fn everything_within_the_bound_survives() {
        for far_bits in [None, Some(7), Some(16), Some(27)] {
            let set = build(&WANTED, far_bits);
            let Bound { below, above } = if far_bits.is_none() { TOP } else { FINE };
            for truth in WANTED.iter().flat_map(|&(first, last)| [(first >> 32) as u32, (last >> 32) as u32])
            {
                for computed in [truth.wrapping_sub(above), truth, truth.wrapping_add(below)] {
                    assert!(survives(&set.words, computed), "{truth:x} as {computed:x}");
                }
            }
            if far_bits == Some(27) {
                assert!(!survives(&set.words, (7 << 28) + 64));
                assert!(set.survive < 20.0 / 2f64.powi(27) && set.candidates <= set.survive);
            }
        }
    }

    #[test]
    fn intervals_hold_what_was_wanted_and_nothing_else() {
        let set = build(&WANTED, None);
        for &(first, last) in &WANTED {
            assert!(holds(&set.words, first) && holds(&set.words, last));
            for outside in [first.wrapping_sub(1), last.wrapping_add(1)] {
                let wanted = WANTED.iter().any(|&(a, b)| (a..=b).contains(&outside));
                assert_eq!(holds(&set.words, outside), wanted, "{outside:x}");
            }
        }
        assert!(!holds(&set.words, 1 << 50));
    }
}
