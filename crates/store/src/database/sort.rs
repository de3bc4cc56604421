//! Sorting more than fits in memory: sorted runs in one scratch file, merged at the end.
//!
//! A run is a row of entries, each as kind and digest, one byte for how long the amount is, and the amount. Its checksum is
//! kept in memory, so that what a disk changes meanwhile is noticed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use twox_hash::xxhash3_128::Hasher;

use warpsmith_chain::AddressKind;

use crate::Error;
use crate::record::{ByKind, Entry, KEY_BYTES};

/// Bytes written and read at a time.
const BUFFER: usize = 1 << 18;

/// Bytes that all readers of runs have together, but for a page each.
const READING: usize = 1 << 27;

/// What becomes of the amounts of one address that comes more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amounts {
    /// The largest is kept: of what sources say of one address, which may be the same coins.
    Largest,
    /// They are added up: of the coins in one set.
    Sum,
}

impl Amounts {
    /// What stays of two entries with one key, the second not below the first.
    fn join(self, first: &Entry, second: &Entry) -> Entry {
        match self {
            Self::Largest => *second,
            Self::Sum => first.plus(second),
        }
    }
}

/// Sorted runs of entries in a file.
pub(super) struct Runs {
    amounts: Amounts,
    file: File,
    /// For messages.
    path: PathBuf,
    state: Mutex<Sorting>,
}

struct Sorting {
    /// Where the next run begins.
    end: u64,
    runs: Vec<Run>,
    largest: ByKind<Option<u128>>,
}

/// Where a run lies, and its checksum.
struct Run {
    begin: u64,
    end: u64,
    sum: u128,
}

impl Runs {
    /// Runs in this file, which is empty and nobody else's.
    pub fn new(file: File, path: &Path, amounts: Amounts) -> Self {
        Self {
            amounts,
            file,
            path: path.to_owned(),
            state: Mutex::new(Sorting { end: 0, runs: Vec::new(), largest: [None; 256] }),
        }
    }

    /// Sorts entries and writes them as a run; the vector is empty after. Entries with one key become one. Returns how many
    /// there were besides.
    pub fn spill(&self, entries: &mut Vec<Entry>) -> Result<u64, Error> {
        if entries.is_empty() {
            return Ok(0);
        }
        entries.sort_unstable();
        let before = entries.len();
        // The last of equal keys has the largest amount; `dedup` keeps the first of what it is shown.
        entries.dedup_by(|next, kept| {
            let is_same = next.key() == kept.key();
            if is_same {
                *kept = self.amounts.join(kept, next);
            }
            is_same
        });
        let duplicates = (before - entries.len()) as u64;
        let length: u64 =
            entries.iter().map(|entry| (entry.key().len() + 1 + entry.value().len()) as u64).sum();
        let begin = {
            let mut state = self.state();
            let begin = state.end;
            state.end += length;
            for entry in &*entries {
                let known = &mut state.largest[entry.kind_number()];
                *known = (*known).max(entry.amount());
            }
            begin
        };
        let sum = self.write(begin, entries).map_err(Error::io("write", &self.path))?;
        self.state().runs.push(Run { begin, end: begin + length, sum });
        entries.clear();
        Ok(duplicates)
    }

    fn write(&self, begin: u64, entries: &[Entry]) -> io::Result<u128> {
        let (mut at, mut hash) = (begin, Hasher::new());
        let mut buffer = Vec::with_capacity(BUFFER + KEY_BYTES + 17);
        for (number, entry) in entries.iter().enumerate() {
            let (key, value) = (entry.key(), entry.value());
            buffer.extend_from_slice(key);
            buffer.push(value.len() as u8);
            buffer.extend_from_slice(value);
            if buffer.len() >= BUFFER || number + 1 == entries.len() {
                hash.write(&buffer);
                self.file.write_all_at(&buffer, at)?;
                at += buffer.len() as u64;
                buffer.clear();
            }
        }
        Ok(hash.finish_128())
    }

    /// The largest amount of each kind in any run, by its byte.
    pub fn largest(&self) -> ByKind<Option<u128>> {
        self.state().largest
    }

    /// Gives out all entries in order, each key once, until `take` fails. Returns how many there were besides.
    pub fn merge(self, mut take: impl FnMut(Entry) -> Result<(), Error>) -> Result<u64, Error> {
        let Self { amounts, file, path, state } = self;
        let state = state.into_inner().expect("no thread panics with the list");
        let buffer = (READING / state.runs.len().max(1)).clamp(1 << 12, BUFFER);
        let reader =
            |run| BufReader::with_capacity(buffer, RunReader { file: &file, run, hash: Hasher::new() });
        let mut runs: Vec<_> = state.runs.into_iter().map(reader).collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            let entry = read_entry(run).map_err(Error::io("read", &path))?;
            heads.extend(entry.map(|entry| Reverse((entry, number))));
        }
        let mut duplicates = 0;
        let mut held: Option<Entry> = None;
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((entry, run)) = *head;
            match read_entry(&mut runs[run]).map_err(Error::io("read", &path))? {
                Some(entry) => *head = Reverse((entry, run)),
                None => drop(std::collections::binary_heap::PeekMut::pop(head)),
            }
            held = Some(match held {
                Some(before) if before.key() == entry.key() => {
                    duplicates += 1;
                    amounts.join(&before, &entry)
                }
                Some(before) => {
                    take(before)?;
                    entry
                }
                None => entry,
            });
        }
        held.map_or(Ok(()), take)?;
        Ok(duplicates)
    }

    fn state(&self) -> MutexGuard<'_, Sorting> {
        self.state.lock().expect("no thread panics with the list")
    }
}

/// Reads a run. Its end is an error if what was read is not what was written.
struct RunReader<'a> {
    file: &'a File,
    /// What is left of it.
    run: Run,
    hash: Hasher,
}

impl Read for RunReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.run.end - self.run.begin).unwrap_or(usize::MAX);
        let room = left.min(buffer.len());
        if room == 0 {
            let is_whole = left > 0 || self.hash.finish_128() == self.run.sum;
            return if is_whole { Ok(0) } else { Err(changed()) };
        }
        let count = self.file.read_at(&mut buffer[..room], self.run.begin)?;
        if count == 0 {
            return Err(changed());
        }
        self.hash.write(&buffer[..count]);
        self.run.begin += count as u64;
        Ok(count)
    }
}

fn changed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the disk did not give back what was written to it")
}

/// The next entry of a run, `None` at its end.
fn read_entry(run: &mut impl Read) -> io::Result<Option<Entry>> {
    let mut key = [0; KEY_BYTES + 1];
    let mut value = [0; 16];
    if run.read(&mut key[..1])? == 0 {
        return Ok(None);
    }
    let length = 1 + AddressKind::from_byte(key[0]).ok_or_else(changed)?.digest_bytes();
    run.read_exact(&mut key[1..=length])?;
    let value = value.get_mut(..usize::from(key[length])).ok_or_else(changed)?;
    run.read_exact(value)?;
    Entry::read(&key[..length], value).map(Some).ok_or_else(changed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry as Slot;

    use proptest::prelude::*;

    use super::*;

    fn runs(amounts: Amounts) -> Runs {
        Runs::new(tempfile::tempfile().unwrap(), Path::new("runs"), amounts)
    }

    proptest! {
        /// Any entries in any runs come out as a map of the standard library has them.
        #[test]
        fn merging_is_sorting(
            runs_of in prop::collection::vec(prop::collection::vec((0..10usize, 0..4u8, prop::option::of(0..3u128)), 0..40), 0..6),
            sum in any::<bool>(),
        ) {
            let sorter = runs(if sum { Amounts::Sum } else { Amounts::Largest });
            let mut expected: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
            let (mut count, mut duplicates) = (0, 0);
            let mut largest = [None; 256];
            for run in runs_of {
                let mut entries = Vec::new();
                for (number, fill, amount) in run {
                    let kind = AddressKind::all().nth(number).unwrap();
                    let amount = amount.map(|amount| amount << 63);
                    let byte = usize::from(kind.byte());
                    largest[byte] = largest[byte].max(amount);
                    let entry = Entry::from_parts(kind, &vec![fill; kind.digest_bytes()], amount);
                    entries.push(entry);
                    count += 1;
                    match expected.entry(entry.key().to_vec()) {
                        Slot::Vacant(slot) => _ = slot.insert(entry),
                        Slot::Occupied(mut slot) => {
                            let known = slot.get().amount();
                            let joint = match (sum, known, amount) {
                                (false, ..) => known.max(amount),
                                (true, Some(one), Some(other)) => Some(one + other),
                                (true, ..) => known.or(amount),
                            };
                            let digest = vec![fill; kind.digest_bytes()];
                            slot.insert(Entry::from_parts(kind, &digest, joint));
                        }
                    }
                }
                duplicates += sorter.spill(&mut entries).unwrap();
                prop_assert!(entries.is_empty());
            }
            prop_assert!(sum || sorter.largest() == largest);
            let mut merged = Vec::new();
            duplicates += sorter.merge(|entry| {
                merged.push(entry);
                Ok(())
            }).unwrap();
            prop_assert!(merged == expected.into_values().collect::<Vec<_>>());
            prop_assert_eq!(merged.len() as u64 + duplicates, count);
        }
    }

    #[test]
    fn a_changed_run_is_noticed() {
        let read = |bytes: &[u8]| read_entry(&mut &bytes[..]);
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[0x77]).is_err());
        assert!(read(&[1; 21]).is_err());
        assert!(read(&[&[1; 21][..], &[200]].concat()).is_err());
        assert!(read(&[&[1; 21][..], &[8], &[0; 7]].concat()).is_err());
        assert!(read(&[&[1; 21][..], &[8], &[0; 8]].concat()).unwrap().is_some());
        // Every byte of a run counts, and so does its end.
        let entries: Vec<Entry> = (0..20)
            .map(|fill| Entry::from_parts(AddressKind::P2PKH, &[fill; 20], Some(fill.into())))
            .collect();
        let length = entries.len() as u64 * 30;
        for at in 0..=length {
            let sorter = runs(Amounts::Largest);
            sorter.spill(&mut entries.clone()).unwrap();
            if at == length {
                sorter.file.set_len(length - 1).unwrap();
            } else {
                let mut byte = [0];
                sorter.file.read_exact_at(&mut byte, at).unwrap();
                sorter.file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            }
            assert!(sorter.merge(|_| Ok(())).is_err(), "byte {at}");
        }
    }
}
