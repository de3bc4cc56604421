//! How far a journal went, told by the state file: so neither of the two can be cut short or put back without the other.
//!
//! ```text
//! at 512 and at 1024 of the state file: steps u64, length u64, link [16], zeros, sum [8] of state id, generation and mark
//! ```
//!
//! After a step of the journal is durable, the older of the two marks is written anew, and forced to disk before a query of
//! that step leaves. At any moment of a crash then:
//! - The step is not whole: it is cut off, and its query never left.
//! - The step is whole and the mark does not tell of it: its query never left. It counts as spent all the same, and leaves as
//!   it was recorded when it is sent again.
//! - The mark tells of it: the step is there. If it is not, somebody cut the journal short or put an older one in its
//!   place, and the state is refused.
//!
//! A mark has 512 bytes, which a disk writes at once or not at all; where one does not fit its sum, the other still says how
//! far the journal went one step before.

use std::fs::File;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::head::Head;
use crate::wire::{checksum, u64_at};

/// Bytes of a journal before its first step.
pub(super) const HEAD: usize = 8 + 4 + 16 + 8 + 32 + 8;

/// What ties a step to all before it.
pub(super) type Link = [u8; 16];

/// Bytes of a mark, and where the first is.
pub(super) const SECTOR: usize = 512;

/// A place in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Steps before it, and their bytes with the journal's head.
    pub(super) steps: u64,
    pub(super) length: u64,
    /// What ties it to all of them.
    pub(super) link: Link,
}

impl Mark {
    /// The beginning of a generation's journal.
    pub(super) fn first(head: &Head) -> Mark {
        Mark { steps: 0, length: HEAD as u64, link: first_link(&head.state_id, head.generation) }
    }

    /// One step on.
    pub(super) fn after(&self, length: u64, link: Link) -> Mark {
        Mark { steps: self.steps + 1, length: self.length + length, link }
    }

    pub(super) fn to_bytes(self, head: &Head) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&self.steps.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.link);
        let sum = checksum(&[&head.state_id, &head.generation.to_le_bytes(), &bytes[..SECTOR - 8]]);
        bytes[SECTOR - 8..].copy_from_slice(&sum);
        bytes
    }

    fn read(bytes: &[u8; SECTOR], head: &Head) -> Option<Mark> {
        let link = *bytes[16..].first_chunk()?;
        let mark = Mark { steps: u64_at(bytes, 0), length: u64_at(bytes, 8), link };
        (mark.to_bytes(head) == *bytes).then_some(mark)
    }

    /// Writes it as mark number 0 or 1 of a state file.
    pub(super) fn write(self, head: &Head, file: &File, number: usize) -> std::io::Result<()> {
        file.write_all_at(&self.to_bytes(head), SECTOR as u64 * (1 + number as u64))
    }
}

/// What the two marks of a state file say.
pub(super) struct Marks {
    pub(super) newest: Mark,
    /// Which of the two it is.
    pub(super) number: usize,
    /// The other one does not fit its sum.
    pub(super) one_is_bad: bool,
}

impl Marks {
    /// None where neither fits its sum.
    pub(super) fn read(pair: &[[u8; SECTOR]; 2], head: &Head) -> Option<Marks> {
        let (newest, number, one_is_bad) = match pair.each_ref().map(|bytes| Mark::read(bytes, head)) {
            [Some(one), Some(two)] if one.steps >= two.steps => (one, 0, false),
            [Some(_), Some(two)] => (two, 1, false),
            [Some(one), None] => (one, 0, true),
            [None, Some(two)] => (two, 1, true),
            [None, None] => return None,
        };
        Some(Marks { newest, number, one_is_bad })
    }
}

/// The link of the first step's predecessor.
fn first_link(state_id: &[u8; 16], generation: u64) -> Link {
    let mut hash = Sha256::new();
    hash.update(state_id);
    hash.update(generation.to_le_bytes());
    shortened(hash)
}

pub(super) fn shortened(hash: Sha256) -> Link {
    let digest: [u8; 32] = hash.finalize().into();
    *digest.first_chunk().expect("a digest has 32 bytes")
}
