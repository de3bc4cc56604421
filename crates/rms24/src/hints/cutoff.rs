//! Cutoffs, fast: the exact middle of c orders for sixteen hints at a time.
//!
//! The upper halves of all orders are kept, two bytes each, and the middle one is found by counting how many lie below a
//! guess: the counts are known to lie close to a straight line, so few guesses do. Only for the blocks that share the
//! middle's upper half (one, and c / 65536 others) the lower halves are computed.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{INVALID, NEVER};
use crate::params::GROUP;
use crate::prf::Prf;
use crate::wide::{Sum, Work, dispatch};

/// The cutoffs of the hints with these ids, which begin and end at multiples of sixteen.
///
/// # Panics
///
/// When they do not.
pub fn cutoffs(prf: &Prf, blocks: u32, ids: Range<u64>, threads: usize) -> Vec<u32> {
    let mut cutoffs = vec![INVALID; (ids.end - ids.start) as usize];
    fill(prf, blocks, ids, &mut cutoffs, threads, &NEVER);
    cutoffs
}

/// Bytes that [`fill`] needs beside the cutoffs.
pub(super) fn scratch_bytes(blocks: u32, threads: usize) -> u64 {
    threads.max(1) as u64 * 16 * 2 * u64::from(blocks.next_multiple_of(16))
}

/// Puts cutoffs in their places. Ends early, with some of them missing, when `stop` is raised.
pub(super) fn fill(
    prf: &Prf,
    blocks: u32,
    ids: Range<u64>,
    cutoffs: &mut [u32],
    threads: usize,
    stop: &AtomicBool,
) {
    assert!(ids.start.is_multiple_of(GROUP) && ids.end.is_multiple_of(GROUP), "whole groups");
    assert_eq!(cutoffs.len() as u64, ids.end - ids.start, "a place for each");
    let groups = ids.start / GROUP..ids.end / GROUP;
    let share = (groups.end - groups.start).div_ceil(threads.max(1) as u64).max(1);
    std::thread::scope(|scope| {
        let mut shares =
            cutoffs.chunks_mut((share * GROUP) as usize).zip((groups.start..).step_by(share as usize));
        let own = shares.next();
        for (cutoffs, first) in shares {
            scope.spawn(move || dispatch(prf.lanes(), Groups { prf, blocks, first, cutoffs, stop }));
        }
        if let Some((cutoffs, first)) = own {
            dispatch(prf.lanes(), Groups { prf, blocks, first, cutoffs, stop });
        }
    });
}

/// The cutoffs of consecutive groups.
struct Groups<'a> {
    prf: &'a Prf,
    blocks: u32,
    first: u64,
    cutoffs: &'a mut [u32],
    stop: &'a AtomicBool,
}

impl Work for Groups<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Sum>(self) {
        let Groups { prf, blocks, first, cutoffs, stop } = self;
        let c = blocks as usize;
        let row = c.next_multiple_of(16);
        // Row i: the upper halves of the orders of hint i of a group.
        let mut upper = vec![0u16; 16 * row];
        for (group, cutoffs) in (first..).zip(cutoffs.chunks_exact_mut(16)) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            for block in (0..c).step_by(16) {
                let mut sixteen = [0; 16];
                for lane in 0..16 {
                    sixteen[lane] = (block + lane) as u32;
                }
                let words = prf.draw_choices(&[group; 16], &sixteen);
                for i in 0..16 {
                    let to = &mut upper[i * row + block..][..16];
                    for lane in 0..16 {
                        to[lane] = (words[i][lane] >> 16) as u16;
                    }
                }
            }
            for i in 0..16 {
                let upper = &upper[i * row..][..c];
                cutoffs[i] = settle(prf, group * GROUP + i as u64, upper, middle(upper));
            }
        }
    }
}

/// The value of rank half in the sorted list, and how many lie below it.
#[inline(always)]
fn middle(values: &[u16]) -> (u16, usize) {
    let half = values.len() / 2;
    // below(low) <= half < below(high), where below counts the values less than its argument.
    let (mut low, mut below_low) = (0u32, 0);
    let (mut high, mut below_high) = (1u32 << 16, values.len());
    while high - low > 1 {
        let guess = if below_high - below_low < 32 {
            low.midpoint(high)
        } else {
            // Where the value of rank half is expected, pushed across by two standard deviations from the end that is
            // nearer: then most likely the farther end moves close. Each guess cuts off a sixteenth at least.
            let (before, after) = ((half - below_low) as f32, (below_high - half) as f32);
            let push = 2.0 * before.min(after).sqrt();
            let part = (if before < after { before + push } else { before - push }) / (before + after);
            (low + (part.clamp(0.0625, 0.9375) * (high - low) as f32) as u32).clamp(low + 1, high - 1)
        };
        let below = count_below(values, guess as u16);
        if below <= half {
            (low, below_low) = (guess, below);
        } else {
            (high, below_high) = (guess, below);
        }
    }
    (low as u16, below_low)
}

/// How many values are less than the bound.
#[inline(always)]
fn count_below(values: &[u16], bound: u16) -> usize {
    let mut total = 0;
    // One counter of the values' own width, which the compiler keeps in registers of many: it cannot overflow.
    for part in values.chunks(usize::from(u16::MAX)) {
        let mut below = 0u16;
        for &value in part {
            below += u16::from(value < bound);
        }
        total += usize::from(below);
    }
    total
}

/// The cutoff, given the upper half of the middle order and how many upper halves lie below it.
fn settle(prf: &Prf, id: u64, upper: &[u16], (middle, below): (u16, usize)) -> u32 {
    let mut low: Vec<u32> = Vec::new();
    // Most stretches have none: look at many values at a time.
    for (stretch, values) in upper.chunks(64).enumerate() {
        if values.iter().fold(false, |any, &value| any | (value == middle)) {
            for (i, _) in values.iter().enumerate().filter(|(_, value)| **value == middle) {
                low.push(prf.low_order(id, (64 * stretch + i) as u32));
            }
        }
    }
    low.sort_unstable();
    let rank = upper.len() / 2 - below;
    if rank > 0 && low[rank - 1] == low[rank] {
        return INVALID;
    }
    u32::from(middle) << 16 | low[rank]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_all_kinds_of_lists() {
        let mut state = 1u64;
        for length in (2..200).step_by(2).chain([4096, 40_000, 65_536, 70_000]) {
            for bits in [0, 1, 3, 8, 16] {
                for skew in [false, true] {
                    let values: Vec<u16> = (0..length)
                        .map(|_| {
                            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                            let value = (state >> 40) as u16 & (((1u32 << bits) - 1) as u16);
                            if skew { u16::MAX - value / 2 } else { value }
                        })
                        .collect();
                    let mut sorted = values.clone();
                    sorted.sort_unstable();
                    let expected = sorted[length / 2];
                    let below = sorted.partition_point(|v| *v < expected);
                    assert_eq!(middle(&values), (expected, below), "{length} values of {bits} bits, {skew}");
                }
            }
        }
    }
}
