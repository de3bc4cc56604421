//! The newest entries: a checked copy in memory, or the file of a database and what changed since.

use std::collections::BTreeMap;

use warpsmith_hash::Lanes;

use crate::answer::answer;
use crate::database::{Database, SEGMENT_BYTES};
use crate::error::Result;
use crate::wire::{Picks, Update};

/// Where the newest entries are.
pub(super) enum Entries {
    /// All blocks.
    Memory(Vec<u8>),
    /// In the file; the entries that changed since, each as old XOR newest.
    File(BTreeMap<u64, Vec<u8>>),
}

fn add(sum: &mut [u8], other: &[u8]) {
    sum.iter_mut().zip(other).for_each(|(sum, byte)| *sum ^= byte);
}

impl Entries {
    /// Those of the file, as it is.
    pub(super) fn in_file() -> Entries {
        Entries::File(BTreeMap::new())
    }

    /// Those of the file, all of them compared with their digests.
    pub(super) fn load(
        base: &Database,
        in_memory: bool,
        tell: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Entries> {
        let length = base.description().data_bytes();
        let mut seen = 0;
        // Asked for first, since a vector of zeros that does not fit ends the process.
        let fits = || usize::try_from(length).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
        let mut copy = (in_memory && fits()).then(|| vec![0; length as usize]);
        base.stream(&mut |segment| {
            if let Some(copy) = &mut copy {
                copy[seen as usize..][..segment.len()].copy_from_slice(segment);
            }
            seen += segment.len() as u64;
            tell(seen)
        })?;
        Ok(copy.map_or_else(Entries::in_file, Entries::Memory))
    }

    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Entries::Memory(blocks) => Some(blocks),
            Entries::File(_) => None,
        }
    }

    /// Brings them to the next epoch.
    pub(super) fn apply(&mut self, size: usize, update: &Update) {
        for (index, delta) in update.changes(size) {
            match self {
                Entries::Memory(blocks) => add(&mut blocks[index as usize * size..][..size], delta),
                Entries::File(changed) => {
                    add(changed.entry(index).or_insert_with(|| vec![0; size]), delta);
                }
            }
        }
    }

    /// The newest value of an entry that is there.
    pub(super) fn entry(&self, base: &Database, index: u64) -> Result<Vec<u8>> {
        let size = base.description().params.entry_size();
        match self {
            Entries::Memory(blocks) => Ok(blocks[index as usize * size..][..size].to_vec()),
            Entries::File(changed) => {
                let mut entry = vec![0; size];
                base.read(index * size as u64, &mut entry)?;
                changed.get(&index).into_iter().for_each(|delta| add(&mut entry, delta));
                Ok(entry)
            }
        }
    }

    /// The answer to a query, as [`answer()`] gives it.
    ///
    /// SEC: reads one entry of every block, whatever they are and of whichever colour.
    pub(super) fn answer(&self, base: &Database, lanes: Lanes, picks: &Picks) -> Result<Vec<u8>> {
        let params = &base.description().params;
        let changed = match self {
            Entries::Memory(blocks) => return Ok(answer(params, lanes, blocks, picks)),
            Entries::File(changed) => changed,
        };
        let (size, w) = (params.entry_size(), u64::from(params.block_size()));
        let (mut sums, mut entry) = (vec![0; 2 * size], vec![0; size]);
        for (block, (&offset, &colour)) in (0..).zip(picks.offsets.iter().zip(&picks.colours)) {
            let index = block * w + u64::from(offset);
            base.read_before_check(index * size as u64, &mut entry)?;
            let sum = &mut sums[colour as usize * size..][..size];
            add(sum, &entry);
            changed.get(&index).into_iter().for_each(|delta| add(sum, delta));
        }
        base.check_unchanged()?;
        Ok(sums)
    }
}

/// All entries of the newest epoch.
pub struct Newest<'a> {
    base: &'a Database,
    entries: &'a Entries,
    length: u64,
}

impl<'a> Newest<'a> {
    pub(super) fn new(base: &'a Database, entries: &'a Entries) -> Newest<'a> {
        let params = &base.description().params;
        Newest { base, entries, length: params.entries() * params.entry_size() as u64 }
    }

    /// The entries one after the other, where they are in memory.
    pub fn in_memory(&self) -> Option<&'a [u8]> {
        self.entries.in_memory().map(|blocks| &blocks[..self.length as usize])
    }

    /// Hands them over in order, a MiB at a time. What comes from the file is compared with its digest before.
    ///
    /// # Errors
    ///
    /// When the file is damaged, or `take` fails.
    pub fn stream(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let changed = match self.entries {
            Entries::Memory(_) => {
                let all = self.in_memory().expect("it is in memory");
                return all.chunks(SEGMENT_BYTES).try_for_each(take);
            }
            Entries::File(changed) => changed,
        };
        let (mut start, mut newest) = (0, Vec::new());
        self.base.stream(&mut |segment| {
            let end = start + segment.len() as u64;
            let part = &segment[..(self.length.min(end).saturating_sub(start)) as usize];
            let of = start;
            start = end;
            if part.is_empty() {
                return Ok(());
            }
            if changed.is_empty() {
                return take(part);
            }
            newest.clear();
            newest.extend_from_slice(part);
            self.add_changes(changed, of, &mut newest);
            take(&newest)
        })
    }

    /// Adds what changed to bytes of the file from `start` on; entries may begin before and end after them.
    fn add_changes(&self, changed: &BTreeMap<u64, Vec<u8>>, start: u64, bytes: &mut [u8]) {
        let size = self.base.description().params.entry_size() as u64;
        let end = start + bytes.len() as u64;
        for (index, delta) in changed.range(start / size..end.div_ceil(size)) {
            let at = index * size;
            let (from, to) = (at.max(start), (at + size).min(end));
            let part = &mut bytes[(from - start) as usize..(to - start) as usize];
            add(part, &delta[(from - at) as usize..(to - at) as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Builder;
    use crate::hints::measure::pseudorandom;
    use crate::params::Choice;
    use crate::random::Random;
    use crate::wire::Query;

    /// Whatever is asked, the file gives what the copy in memory gives: entries across the ends of segments too.
    #[test]
    fn the_file_and_the_copy_in_memory_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let (entries, size) = (60_001, 40usize);
        let mut builder = Builder::new(&path, Choice::new(entries, size as u32), 0, None).unwrap();
        builder.push(&pseudorandom(entries as usize * size)).unwrap();
        builder.finish().unwrap();
        let base = Database::open(&path).unwrap();
        let mut told = 0;
        let mut tell = |seen| {
            told = seen;
            Ok(())
        };
        let mut memory = Entries::load(&base, true, &mut tell).unwrap();
        assert_eq!(told, base.description().data_bytes());
        assert!(memory.in_memory().is_some());
        let mut file = Entries::load(&base, false, &mut |_| Ok(())).unwrap();
        assert!(file.in_memory().is_none());
        // The entry that lies across the end of the first segment, the first, the last, some twice.
        let across = (SEGMENT_BYTES / size) as u64;
        for number in 1..=3 {
            let indices = vec![across, 0, entries - 1, across, 7 * number];
            let deltas: Vec<u8> = (0..indices.len() * size).map(|i| (i as u64 * number) as u8).collect();
            let update = Update { number, indices, deltas };
            memory.apply(size, &update);
            file.apply(size, &update);
        }
        let all = |entries: &Entries| {
            let mut all = Vec::new();
            let mut take = |part: &[u8]| {
                all.extend_from_slice(part);
                Ok(())
            };
            Newest::new(&base, entries).stream(&mut take).unwrap();
            all
        };
        assert_eq!(all(&memory).len(), entries as usize * size);
        assert!(all(&memory) == all(&file));
        for index in [0, 7, across - 1, across, across + 1, entries - 1] {
            assert_eq!(memory.entry(&base, index).unwrap(), file.entry(&base, index).unwrap());
        }
        let params = base.description().params;
        let (mut random, half) = (Random::new(), params.blocks() as usize / 2);
        for _ in 0..50 {
            let colours: Vec<bool> = (0..2 * half).map(|block| block % 2 == 1).collect();
            let offsets: Vec<u32> = (0..half).map(|_| random.below(params.block_size()).unwrap()).collect();
            let picks = Picks::read(&params, Query::new(&params, &colours, &offsets).bytes()).unwrap();
            let lanes = Lanes::detect();
            assert_eq!(
                memory.answer(&base, lanes, &picks).unwrap(),
                file.answer(&base, lanes, &picks).unwrap()
            );
        }
    }
}
