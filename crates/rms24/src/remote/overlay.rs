//! Changes that are applied to a stream of entries as it goes by.

use std::collections::{BTreeMap, btree_map};
use std::ops::Range;

use crate::wire::Update;

/// Changes of many epochs, added up for each entry.
pub(super) struct Overlay {
    size: usize,
    deltas: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    pub(super) fn new(size: usize) -> Overlay {
        Overlay { size, deltas: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, update: &Update) {
        for (index, delta) in update.changes(self.size) {
            let sum = self.deltas.entry(index).or_insert_with(|| vec![0; self.size]);
            sum.iter_mut().zip(delta).for_each(|(sum, byte)| *sum ^= byte);
        }
    }

    /// Bytes it takes, about: an entry's change, and its place in the tree.
    pub(super) fn bytes(&self) -> u64 {
        self.deltas.len() as u64 * (self.size as u64 + 64)
    }

    /// The entries of which any byte is in this part.
    fn within(&self, part: &Range<u64>) -> btree_map::Range<'_, u64, Vec<u8>> {
        let size = self.size as u64;
        self.deltas.range(part.start / size..part.end.div_ceil(size))
    }

    /// Whether anything of a part is changed.
    pub(super) fn reaches(&self, part: &Range<u64>) -> bool {
        self.within(part).next().is_some()
    }

    /// Changes a part of the entries' bytes, which begins anywhere, also within an entry.
    pub(super) fn apply(&self, at: u64, bytes: &mut [u8]) {
        let part = at..at + bytes.len() as u64;
        for (index, delta) in self.within(&part) {
            for (place, byte) in (index * self.size as u64..).zip(delta) {
                if part.contains(&place) {
                    bytes[(place - at) as usize] ^= byte;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_reach_every_byte_of_their_entries_wherever_a_stream_is_cut() {
        let mut overlay = Overlay::new(5);
        overlay.add(&Update { number: 1, indices: vec![0, 3, 9], deltas: (1..=15).collect() });
        overlay.add(&Update {
            number: 2,
            indices: vec![3, 3],
            deltas: vec![0x80, 0, 0, 0, 1, 0, 0, 0, 0, 2],
        });
        let mut expected = vec![0; 50];
        expected[..5].copy_from_slice(&[1, 2, 3, 4, 5]);
        expected[15..20].copy_from_slice(&[6 ^ 0x80, 7, 8, 9, 10 ^ 3]);
        expected[45..].copy_from_slice(&[11, 12, 13, 14, 15]);
        for piece in 1..=50 {
            let mut bytes = vec![0; 50];
            for (i, bytes) in bytes.chunks_mut(piece).enumerate() {
                let at = (i * piece) as u64;
                let part = at..at + bytes.len() as u64;
                let before = bytes.to_vec();
                overlay.apply(at, bytes);
                assert!(overlay.reaches(&part) || bytes == before, "{part:?}");
            }
            assert_eq!(bytes, expected, "pieces of {piece}");
        }
        assert!(overlay.reaches(&(19..20)) && !overlay.reaches(&(20..45)) && !overlay.reaches(&(5..15)));
    }
}
