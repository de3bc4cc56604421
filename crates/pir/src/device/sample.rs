//! A few hints recomputed by the processor beside the device, from the same entries.

use super::super::hints::cutoff;
use crate::error::{Error, Result};
use crate::hints::{Hints, INVALID, Skeleton};
use crate::params::{GROUP, Params, Place};
use crate::prf::Prf;
use crate::random::Random;

/// An entry that a sum wants.
#[derive(Clone, Copy)]
pub(super) struct Pick {
    /// Its first byte in the database.
    pub at: u64,
    /// Which sum.
    sum: u32,
}

/// A hint of the sample: its place among the cutoffs, and its sums.
struct Sampled {
    hint: usize,
    cutoff: u32,
}

/// Some groups of hints, chosen at random, and their parities as far as the stream has come.
pub(super) struct Sample {
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
            if let Some(&extra) = extras.and_then(|extras| extras.get(i)).filter(|_| cutoff != INVALID) {
                self.picks.extend(pick(extra, sum + 2 * i as u32));
            }
            self.hints.push(Sampled { hint: hint + i, cutoff });
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
        for (i, &Sampled { hint, cutoff }) in self.hints.iter().enumerate() {
            let what = if hints.skeleton.cutoffs[hint] != cutoff {
                format!("the cutoff of hint {hint}")
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

fn add(sum: &mut [u8], entry: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(entry) {
        *sum ^= byte;
    }
}
