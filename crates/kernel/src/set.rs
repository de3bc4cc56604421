//! The buffer of the SET filter: a bitmap over the top word, and sorted intervals of the top 64 bits.
//!
//! Mirrors `c/filter/set.h`. Widens what the caller wants by the bounds of [`abi`](crate::abi), so that the
//! device may accept too often, never too seldom.

use crate::abi::{TOP_ABOVE, TOP_BELOW, WIDE_ABOVE, WIDE_BELOW};

const HEADER: usize = 8;

/// The words of the filter buffer for these inclusive intervals of the top 64 bits of x, with a bitmap of
/// `2^bitmap_bits` bits. Order and overlaps do not matter.
///
/// # Panics
///
/// When `bitmap_bits` is not within 5 to 32, or an interval ends before it begins.
pub fn words(intervals: &[(u64, u64)], bitmap_bits: u32) -> Vec<u32> {
    assert!((5..=32).contains(&bitmap_bits), "no bitmap of 2^{bitmap_bits} bits");
    let shift = 32 - bitmap_bits;
    let mut bitmap = vec![0u32; 1 << (bitmap_bits - 5)];
    let mut wide = Vec::with_capacity(intervals.len() + 2);
    for &(first, last) in intervals {
        assert!(first <= last, "an interval from {first} to {last}");
        // computed = true - (true - computed), which lies within -BELOW..=ABOVE.
        push_wrapping(&mut wide, first, last, WIDE_ABOVE, WIDE_BELOW);
        let (first, last) = ((first >> 32) as u32, (last >> 32) as u32);
        for (from, to) in wrapped(first, last) {
            for bit in from >> shift..=to >> shift {
                bitmap[(bit >> 5) as usize] |= 1 << (bit & 31);
            }
        }
    }
    wide.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(wide.len());
    for (first, last) in wide {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    let bucket_bits = (merged.len().next_power_of_two().trailing_zeros() + 1).min(24);
    let bucket_shift = 32 - bucket_bits;
    let mut at = 0;
    let buckets: Vec<u32> = (0..1u64 << bucket_bits)
        .map(|bucket| {
            while at < merged.len() && merged[at].1 < bucket << bucket_shift << 32 {
                at += 1;
            }
            at as u32
        })
        .collect();
    let buckets_at = HEADER + bitmap.len();
    let intervals_at = buckets_at + buckets.len();
    let offset = |words: usize| u32::try_from(words).expect("a filter buffer of less than 16 GiB");
    let mut words = vec![shift, bucket_shift, offset(HEADER), offset(buckets_at), offset(intervals_at)];
    words.extend([offset(merged.len()), 0, 0]);
    words.extend(bitmap);
    words.extend(buckets);
    for (first, last) in merged {
        words.extend([(first >> 32) as u32, first as u32, (last >> 32) as u32, last as u32]);
    }
    words
}

/// Pushes the widened interval, in two parts when it goes around, whole when it covers everything.
fn push_wrapping(to: &mut Vec<(u64, u64)>, first: u64, last: u64, below: u64, above: u64) {
    to.push((first.saturating_sub(below), last.saturating_add(above)));
    if first < below {
        to.push((first.wrapping_sub(below), u64::MAX));
    }
    if last > u64::MAX - above {
        to.push((0, last.wrapping_add(above)));
    }
}

/// The same for top words, as ranges.
fn wrapped(first: u32, last: u32) -> Vec<(u32, u32)> {
    let (below, above) = (TOP_ABOVE, TOP_BELOW);
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

    /// The device's two levels, in Rust.
    fn accepts(words: &[u32], top: u64) -> bool {
        let high = (top >> 32) as u32;
        let bit = high >> words[0];
        if words[words[2] as usize + (bit >> 5) as usize] >> (bit & 31) & 1 == 0 {
            return false;
        }
        let at = words[words[3] as usize + (high >> words[1]) as usize];
        (at..words[5]).any(|i| {
            let w = &words[words[4] as usize + 4 * i as usize..][..4];
            let join = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
            (join(w[0], w[1])..=join(w[2], w[3])).contains(&top)
        })
    }

    #[test]
    fn everything_within_the_bound_is_accepted() {
        let wanted = [(0, 0), (5, 9), (u64::MAX, u64::MAX), (1 << 40, 1 << 41), (7 << 60, (7 << 60) + 3)];
        for bits in [5, 16, 20] {
            let words = words(&wanted, bits);
            for (first, last) in wanted {
                for truth in [first, last] {
                    for computed in [truth.wrapping_sub(WIDE_ABOVE), truth, truth.wrapping_add(WIDE_BELOW)] {
                        assert!(accepts(&words, computed), "{truth:x} as {computed:x}");
                    }
                }
            }
            assert!(!accepts(&words, 1 << 50));
            assert!(!accepts(&words, (1 << 41) + WIDE_BELOW + 1));
        }
    }
}
