//! What a server does with a query: add up the entries of either colour.
//!
//! SEC: every query touches one entry of every block, and no step depends on what the entries or the colours are.

use warpsmith_hash::Lanes;

use crate::params::Params;
use crate::wide::{Sum, Work, dispatch};
use crate::wire::{Picks, Update};

/// The answer to a query: the parity of colour 0, then that of colour 1. `bytes` are all blocks, full.
///
/// # Panics
///
/// When the database or the picks are not of the parameters' shape.
pub fn answer(params: &Params, lanes: Lanes, bytes: &[u8], picks: &Picks) -> Vec<u8> {
    let c = params.blocks() as usize;
    assert_eq!(bytes.len(), c * params.block_bytes());
    assert_eq!((picks.colours.len(), picks.offsets.len()), (c, c));
    let size = params.entry_size();
    let mut answer = vec![0; 2 * size];
    // Numbers of entries have 32 bits: as many blocks at a time as they can count.
    let window = (u32::MAX / params.block_size()) as usize;
    let mut numbers = [Vec::with_capacity(c / 2), Vec::with_capacity(c / 2)];
    for (i, bytes) in bytes.chunks(window * params.block_bytes()).enumerate() {
        let blocks = i * window..c.min((i + 1) * window);
        numbers.iter_mut().for_each(Vec::clear);
        for (start, block) in (0..).step_by(params.block_size() as usize).zip(blocks) {
            numbers[picks.colours[block] as usize & 1].push(start + picks.offsets[block]);
        }
        for (numbers, sum) in numbers.iter().zip(answer.chunks_exact_mut(size)) {
            assert!(numbers.iter().all(|&number| (number as usize) < bytes.len() / size));
            dispatch(lanes, AddUp { sum, bytes, numbers, size });
        }
    }
    answer
}

/// Sums of entries whose numbers were checked.
struct AddUp<'a> {
    sum: &'a mut [u8],
    bytes: &'a [u8],
    numbers: &'a [u32],
    size: usize,
}

impl Work for AddUp<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Sum>(self) {
        // SAFETY: the only caller checked that all numbers lie within `bytes` and that `sum` has `size` bytes.
        unsafe { S::add(self.sum.as_mut_ptr(), self.bytes.as_ptr(), self.numbers, self.size, self.size) }
    }
}

/// Takes an update back from an answer, which then is of the epoch before.
///
/// SEC: looks at every change of the update, whether the query touches it or not, and writes either way.
pub fn take_back(params: &Params, picks: &Picks, update: &Update, answer: &mut [u8]) {
    let (size, w) = (params.entry_size(), u64::from(params.block_size()));
    for (index, delta) in update.changes(size) {
        let (block, offset) = ((index / w) as usize, (index % w) as u32);
        let touched = 0u8.wrapping_sub(u8::from(picks.offsets[block] == offset));
        let side = &mut answer[picks.colours[block] as usize * size..][..size];
        for (sum, byte) in side.iter_mut().zip(delta) {
            *sum ^= byte & touched;
        }
    }
}
