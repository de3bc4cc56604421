//! The offline phase: cutoffs and extras, which need no database, then parities, for which it is streamed once.
//!
//! Each piece exists twice: [`mod@reference`] is meant to be read, the other is fast ([`cutoff`], [`parity`]), and both give
//! the same bytes. Devices make both pieces with kernels of their own, in the module `device`.
//!
//! A hint holds the c/2 blocks whose order lies below its cutoff, one entry of each. A regular hint holds one entry more,
//! its extra, from a block of the other half. A backup is a pair: the parity of each half, so that one of them can be
//! completed by an entry of the other.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use warpsmith_hash::Lanes;

use crate::error::{Error, Result};
use crate::params::{GROUP, Params, Place};
use crate::prf::{Key, Prf};
use crate::random::Random;

pub(crate) use sample::Sample;
pub use sample::compare;

pub mod cutoff;
pub mod make;
pub mod measure;
pub mod parity;
pub mod reference;
mod sample;

/// The cutoff of a hint whose two middle orders are equal, so that no cutoff divides its blocks in halves. No order lies
/// below it. It happens to one hint of 2^32 / c; such hints are skipped by all.
pub const INVALID: u32 = 0;

/// For those who never stop half-way.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// The error of work that was stopped, if it was.
pub(crate) fn unless_stopped(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

/// Bytes of so many regular hints and backup pairs, as [`Hints`] holds them.
pub fn bytes(params: &Params, regular: u64, pairs: u64) -> u64 {
    let size = params.entry_size() as u64;
    // Cutoff, extra and parity; cutoff and two parities.
    (4 + 8 + size).saturating_mul(regular).saturating_add((4 + 2 * size).saturating_mul(pairs))
}

/// The most bytes that the processor holds at once while it makes so many: known before any is allocated.
pub fn making_bytes(params: &Params, regular: u64, pairs: u64, threads: usize) -> u64 {
    let skeleton = (4 + 8) * regular + 4 * pairs;
    let drawing = skeleton + cutoff::scratch_bytes(params.blocks(), threads);
    drawing.max(bytes(params, regular, pairs).saturating_add(parity::working_bytes(params, regular)))
}

/// What hints hold, before any entry is known: all that parities are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skeleton {
    /// Ids of regular hints; both ends are multiples of sixteen.
    pub regular: Range<u64>,
    /// Ids of backup pairs; likewise.
    pub backups: Range<u64>,
    /// Cutoffs, first of the regular hints, then of the pairs.
    pub cutoffs: Vec<u32>,
    /// Extras of the regular hints; of an invalid hint the first entry, which counts for nothing.
    pub extras: Vec<Place>,
}

impl Skeleton {
    /// The skeleton of a whole offline phase: all regular hints, and the backups after them.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn new(prf: &Prf, params: &Params, threads: usize) -> Result<Skeleton> {
        let (m, q) = (params.regular(), params.backups());
        Skeleton::of_ids(prf, params, 0..m, m..m + q, threads)
    }

    /// The skeleton of some ids: what a hint maker is asked for later.
    ///
    /// # Errors
    ///
    /// When a range is not of whole groups, or the system gives no random bytes.
    pub fn of_ids(
        prf: &Prf,
        params: &Params,
        regular: Range<u64>,
        backups: Range<u64>,
        threads: usize,
    ) -> Result<Skeleton> {
        Skeleton::unless_stopped(prf, params, regular, backups, threads, &NEVER)
    }

    /// The same; an error soon after `stop` is raised.
    pub(crate) fn unless_stopped(
        prf: &Prf,
        params: &Params,
        regular: Range<u64>,
        backups: Range<u64>,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<Skeleton> {
        for end in [regular.start, regular.end, backups.start, backups.end] {
            if !end.is_multiple_of(GROUP) {
                return Err(Error::params(format!("hints come in groups of sixteen; {end} is no multiple")));
            }
        }
        let count = |ids: &Range<u64>| (ids.end - ids.start) as usize;
        let mut cutoffs = vec![INVALID; count(&regular) + count(&backups)];
        let (of_regular, of_backups) = cutoffs.split_at_mut(count(&regular));
        cutoff::fill(prf, params.blocks(), regular.clone(), of_regular, threads, stop);
        unless_stopped(stop)?;
        let extras = draw(prf, params, regular.start, of_regular, threads, stop)?;
        cutoff::fill(prf, params.blocks(), backups.clone(), of_backups, threads, stop);
        unless_stopped(stop)?;
        Ok(Skeleton { regular, backups, cutoffs, extras })
    }

    /// Regular hints.
    pub fn regular_len(&self) -> usize {
        (self.regular.end - self.regular.start) as usize
    }

    /// Backup pairs.
    pub fn backups_len(&self) -> usize {
        (self.backups.end - self.backups.start) as usize
    }
}

/// Hints with their parities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// What they hold.
    pub skeleton: Skeleton,
    /// Parities of the regular hints, an entry each.
    pub parities: Vec<u8>,
    /// Parities of the pairs' lower halves.
    pub low: Vec<u8>,
    /// Parities of the pairs' upper halves.
    pub high: Vec<u8>,
}

impl Hints {
    /// Clears what belongs to invalid hints, so that all makers of hints give the same bytes.
    fn clear_invalid(&mut self, entry_size: usize) {
        let regular = self.skeleton.regular_len();
        for (i, &cutoff) in self.skeleton.cutoffs.iter().enumerate() {
            if cutoff != INVALID {
                continue;
            }
            if i < regular {
                self.parities[i * entry_size..][..entry_size].fill(0);
            } else {
                let at = (i - regular) * entry_size;
                self.low[at..][..entry_size].fill(0);
                self.high[at..][..entry_size].fill(0);
            }
        }
    }
}

/// The whole offline phase: a fresh key, and hints from a stream of the database. `stream` is called once and hands over the
/// entries in order, in pieces of any size.
///
/// # Errors
///
/// When the stream fails or has the wrong length, or the system gives no random bytes.
pub fn offline(
    params: &Params,
    lanes: Lanes,
    threads: usize,
    stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<(Key, Hints)> {
    let key = Key::random()?;
    let prf = Prf::new(&key, params, lanes);
    let skeleton = Skeleton::new(&prf, params, threads)?;
    let mut parities = parity::Parities::new(&prf, params, skeleton, threads);
    stream(&mut |bytes| parities.push(bytes))?;
    Ok((key.clone(), parities.finish()?))
}

/// A uniform entry of a uniform block of the upper half, for each of the regular hints from `first` on.
///
/// SEC: from the system's randomness, never from the PRF or anything public.
///
/// # Errors
///
/// When the system gives no random bytes.
pub fn extras(prf: &Prf, params: &Params, first: u64, cutoffs: &[u32], threads: usize) -> Result<Vec<Place>> {
    draw(prf, params, first, cutoffs, threads, &NEVER)
}

fn draw(
    prf: &Prf,
    params: &Params,
    first: u64,
    cutoffs: &[u32],
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<Place>> {
    let mut extras = vec![Place { block: 0, offset: 0 }; cutoffs.len()];
    let share = cutoffs.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let shares = cutoffs.chunks(share).zip(extras.chunks_mut(share)).zip((first..).step_by(share));
        let others: Vec<_> = shares
            .map(|((cutoffs, extras), first)| {
                scope.spawn(move || draw_extras(prf, params, first, cutoffs, extras, stop))
            })
            .collect();
        others.into_iter().try_for_each(|other| other.join().expect("drawing extras does not panic"))
    })?;
    Ok(extras)
}

/// One thread's extras.
fn draw_extras(
    prf: &Prf,
    params: &Params,
    first: u64,
    cutoffs: &[u32],
    extras: &mut [Place],
    stop: &AtomicBool,
) -> Result<()> {
    let mut random = Random::new();
    // Draw for sixteen hints at once; those that drew a block of the lower half draw again.
    let mut waiting = (0..cutoffs.len()).filter(|&i| cutoffs[i] != INVALID);
    let mut again: Vec<usize> = Vec::with_capacity(16);
    loop {
        while again.len() < 16 {
            let Some(next) = waiting.next() else { break };
            again.push(next);
        }
        if again.is_empty() {
            return Ok(());
        }
        unless_stopped(stop)?;
        let (mut ids, mut blocks) = ([0; 16], [0; 16]);
        for (lane, &hint) in again.iter().enumerate() {
            ids[lane] = first + hint as u64;
            blocks[lane] = random.below(params.blocks())?;
        }
        let choices = prf.choices_of_ids(&ids, &blocks);
        for (lane, hint) in std::mem::take(&mut again).into_iter().enumerate() {
            if prf.is_below(choices[lane], cutoffs[hint], ids[lane], blocks[lane]) {
                again.push(hint);
            } else {
                let offset = random.below(params.block_size())?;
                extras[hint] = Place { block: blocks[lane], offset };
            }
        }
    }
}
