//! A few hints recomputed by the processor, from the same entries, beside whoever made them.

use super::cutoff;
use crate::error::{Error, Result};
use crate::hints::{Hints, INVALID, Skeleton};
use crate::params::{GROUP, Params, Place};
use crate::prf::Prf;
use crate::random::Random;

/// An entry that a sum wants.
#[derive(Clone, Copy)]
struct Pick {
    /// Its first byte in the database.
    at: u64,
    /// Which sum.
    sum: u32,
}

/// A hint of the sample: its place among the cutoffs, and its sums.
struct Sampled {
    hint: usize,
    cutoff: u32,
    /// Whether it has an extra in its lower half, where none may be.
    is_low: bool,
}

/// Some groups of hints, chosen at random, and their parities as far as the stream has come.
pub(crate) struct Sample {
    size: usize,
    hints: Vec<Sampled>,
    /// In the order of the database.
    picks: Vec<Pick>,
    next: usize,
    /// Two for each hint: the lower half, for a regular hint with its extra, and the upper.
    sums: Vec<u8>,
}

impl Sample {
    /// A sample of so many groups of regular hints, and as many of pairs. The skeleton has its extras.
    pub fn new(prf: &Prf, params: &Params, skeleton: &Skeleton, groups: usize) -> Result<Sample> {
        let mut random = Random::new();
        let regular = skeleton.regular_len();
        let mut sample = Sample {
            size: params.entry_size(),
            hints: Vec::new(),
            picks: Vec::new(),
            next: 0,
            sums: Vec::new(),
        };
        for (first, ids) in [(0, &skeleton.regular), (regular, &skeleton.backups)] {
            let all = (ids.end - ids.start) / GROUP;
            for _ in 0..groups.min(all as usize) {
                let group = u64::from(random.below(all as u32)?);
                let hint = first + (group * GROUP) as usize;
                sample.add(prf, params, ids.start / GROUP + group, hint, skeleton.extras.get(hint..));
            }
        }
        sample.picks.sort_unstable_by_key(|pick| pick.at);
        sample.sums = vec![0; 2 * sample.hints.len() * sample.size];
        Ok(sample)
    }

    /// How many hints.
    pub fn len(&self) -> usize {
        self.hints.len()
    }

    /// Adds a group, with the extras of its hints and all later ones if it has any.
    fn add(&mut self, prf: &Prf, params: &Params, group: u64, hint: usize, extras: Option<&[Place]>) {
        let first = group * GROUP;
        let cutoffs = cutoff::cutoffs(prf, params.blocks(), first..first + GROUP, 1);
        let sum = 2 * self.hints.len() as u32;
        let pick = |place: Place, sum| {
            let index = u64::from(place.block) * u64::from(params.block_size()) + u64::from(place.offset);
            (index < params.entries()).then_some(Pick { at: index * params.entry_size() as u64, sum })
        };
        for start in (0..params.blocks()).step_by(16) {
            let blocks = std::array::from_fn(|lane| start + lane as u32);
            let draw = prf.draw(&[group; 16], &blocks);
            for lane in 0..16.min((params.blocks() - start) as usize) {
                for (i, &cutoff) in cutoffs.iter().enumerate().filter(|(_, cutoff)| **cutoff != INVALID) {
                    let id = first + i as u64;
                    let low = prf.is_below(draw.choices()[i][lane], cutoff, id, blocks[lane]);
                    let offset = draw.offsets()[i][lane] & prf.offset_mask();
                    let place = Place { block: blocks[lane], offset };
                    self.picks.extend(pick(place, sum + 2 * i as u32 + u32::from(!low)));
                }
            }
        }
        for (i, cutoff) in cutoffs.into_iter().enumerate() {
            let extra = extras.and_then(|extras| extras.get(i)).filter(|_| cutoff != INVALID);
            self.picks.extend(extra.and_then(|extra| pick(*extra, sum + 2 * i as u32)));
            let is_low = extra.is_some_and(|extra| prf.is_low(first + i as u64, cutoff, extra.block));
            self.hints.push(Sampled { hint: hint + i, cutoff, is_low });
        }
    }

    /// Takes the bytes of the database from byte `at` on; they follow those taken before.
    pub fn push(&mut self, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        let size = self.size as u64;
        // An entry may come in several pieces: each is added where it belongs.
        for pick in &self.picks[self.next..] {
            if pick.at >= end {
                break;
            }
            let (from, to) = (pick.at.max(at), (pick.at + size).min(end));
            if from < to {
                let sum = &mut self.sums[pick.sum as usize * self.size..][..self.size];
                let entry = &bytes[(from - at) as usize..(to - at) as usize];
                add(&mut sum[(from - pick.at) as usize..], entry);
            }
        }
        self.next += self.picks[self.next..].partition_point(|pick| pick.at + size <= end);
    }

    /// Takes each entry that is wanted from a function of its first byte's place.
    pub fn take(&mut self, mut entry: impl FnMut(u64, &mut [u8])) {
        let mut bytes = vec![0; self.size];
        for pick in &self.picks {
            entry(pick.at, &mut bytes);
            add(&mut self.sums[pick.sum as usize * self.size..][..self.size], &bytes);
        }
    }

    /// Compares with what a device made.
    pub fn check(&self, device: &str, hints: &Hints) -> Result<()> {
        let regular = hints.skeleton.regular_len();
        let same = |made: &[u8], place: usize, sum: usize| {
            made[place * self.size..][..self.size] == self.sums[sum * self.size..][..self.size]
        };
        for (i, &Sampled { hint, cutoff, is_low }) in self.hints.iter().enumerate() {
            let what = if hints.skeleton.cutoffs[hint] != cutoff {
                format!("the cutoff of hint {hint}")
            } else if is_low {
                format!("the extra of hint {hint}")
            } else if hint < regular {
                if same(&hints.parities, hint, 2 * i) {
                    continue;
                }
                format!("the parity of hint {hint}")
            } else {
                let pair = hint - regular;
                if same(&hints.low, pair, 2 * i) && same(&hints.high, pair, 2 * i + 1) {
                    continue;
                }
                format!("a parity of pair {pair}")
            };
            return Err(Error::Wrong { device: device.to_owned(), what });
        }
        Ok(())
    }
}

/// Compares so many groups of regular hints, and as many of pairs, chosen by lot, with what the processor makes of the same entries;
/// `entry` reads the bytes from one of an entry's first bytes on.
///
/// # Errors
///
/// When they differ, or the system gives no random bytes.
pub fn compare(
    prf: &Prf,
    params: &Params,
    hints: &Hints,
    groups: usize,
    maker: &str,
    entry: impl FnMut(u64, &mut [u8]),
) -> Result<()> {
    let mut sample = Sample::new(prf, params, &hints.skeleton, groups)?;
    sample.take(entry);
    sample.check(maker, hints)
}

fn add(sum: &mut [u8], entry: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(entry) {
        *sum ^= byte;
    }
}
