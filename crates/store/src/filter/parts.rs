//! The parts of a filter: each of the keys of one range, so that one is made at a time and a large filter needs little memory.
//!
//! Digests are spread evenly, so ranges of equal width hold about as many keys each. Where they are not (a list made by hand), a
//! part may hold more than it should: it is right all the same, and takes more memory while it is made.

use xorf::{BinaryFuse8, BinaryFuse16};

use super::{Fingerprints, Width};
use crate::Error;

/// The most keys that a part is meant to hold. Making one takes 29 bytes each: 8 for the key, 21 while the crate `xorf` works.
pub(super) const MOST_TOGETHER: u64 = 1 << 26;

/// Parts begin at multiples of so many fingerprints, so that a device reads whole words of them.
const ALIGNED: u64 = 64;

/// What is needed to look a key up in a part, see the formula of [`Filter`](super::Filter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPart {
    /// The number of its first fingerprint, a multiple of 64.
    pub first: u64,
    /// Added to a key before it is mixed.
    pub seed: u64,
    /// Fingerprints of a segment, a power of two.
    pub segment_length: u32,
    /// Fingerprints of all segments but the last two.
    pub segment_count_length: u32,
}

impl FilterPart {
    /// How many fingerprints it has. The formula's largest index is below this.
    pub(super) fn fingerprints(&self) -> u64 {
        u64::from(self.segment_count_length) + 2 * u64::from(self.segment_length)
    }

    /// Where the next part begins.
    pub(super) fn end(&self) -> u64 {
        (self.first + self.fingerprints()).next_multiple_of(ALIGNED)
    }
}

/// How many parts a filter of so many keys has, of `most` each at the most.
pub(super) fn parts_of(keys: u64, most: u64) -> u32 {
    u32::try_from(keys.div_ceil(most).max(1)).expect("fewer keys than a machine holds")
}

/// The part that has this key.
pub(super) fn part_of(key: u64, parts: usize) -> usize {
    (((key >> 32) * parts as u64) >> 32) as usize
}

/// A filter in the making.
pub(super) struct Growing {
    parts: Vec<FilterPart>,
    fingerprints: Fingerprints,
    keys: u64,
}

impl Growing {
    /// An empty one, with room for so many fingerprints.
    pub fn new(width: Width, room: u64) -> Growing {
        let room = room as usize;
        let fingerprints = match width {
            Width::Fuse8 => Fingerprints::Bytes(Vec::with_capacity(room)),
            Width::Fuse16 => Fingerprints::Words(Vec::with_capacity(room)),
        };
        Growing { parts: Vec::new(), fingerprints, keys: 0 }
    }

    /// Adds the next part, of these keys. They are sorted, and those that come twice are dropped: one hash may have several
    /// kinds, and duplicates make the construction slow or impossible.
    pub fn add(&mut self, keys: &mut Vec<u64>) -> Result<(), Error> {
        keys.sort_unstable();
        keys.dedup();
        let failed = |reason: &str| Error::Filter { keys: keys.len() as u64, reason: reason.to_owned() };
        // Fingerprints of a part are numbered by 32 bits, and there are 1.125 a key and three segments of 2^18 at most.
        if keys.len() > 3_800_000_000 {
            return Err(failed("more than 3.8 billion do not fit one part of a filter"));
        }
        let first = self.parts.last().map_or(0, FilterPart::end);
        let descriptor = match &mut self.fingerprints {
            Fingerprints::Bytes(bytes) => {
                let part = BinaryFuse8::try_from(keys.as_slice()).map_err(failed)?;
                bytes.resize(first as usize, 0);
                bytes.extend_from_slice(&part.fingerprints);
                part.descriptor
            }
            Fingerprints::Words(words) => {
                let part = BinaryFuse16::try_from(keys.as_slice()).map_err(failed)?;
                words.resize(first as usize, 0);
                words.extend_from_slice(&part.fingerprints);
                part.descriptor
            }
        };
        self.parts.push(FilterPart {
            first,
            seed: descriptor.seed,
            segment_length: descriptor.segment_length,
            segment_count_length: descriptor.segment_count_length,
        });
        self.keys += keys.len() as u64;
        keys.clear();
        Ok(())
    }

    /// Parts, fingerprints, and how many different keys are in them.
    pub fn finish(self) -> (Vec<FilterPart>, Fingerprints, u64) {
        (self.parts, self.fingerprints, self.keys)
    }
}
