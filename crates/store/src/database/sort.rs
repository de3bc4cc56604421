//! Sorting more than fits in memory: sorted runs in files, merged at the end.
//!
//! A run is a row of entries, each as kind and digest, one byte for how long the amount is, and the amount.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::record::{Entry, KEY_BYTES};
use crate::{Error, Kind};

/// Sorted runs of entries in a folder.
pub(super) struct Runs<'a> {
    folder: &'a Path,
    files: Mutex<Vec<PathBuf>>,
}

impl<'a> Runs<'a> {
    pub fn new(folder: &'a Path) -> Self {
        Self { folder, files: Mutex::default() }
    }

    /// Sorts entries and writes them as a run; the vector is empty after. Of entries with one key that with the largest
    /// amount stays. Returns how many there were besides.
    pub fn spill(&self, entries: &mut Vec<Entry>) -> Result<u64, Error> {
        if entries.is_empty() {
            return Ok(0);
        }
        entries.sort_unstable();
        let path = {
            let mut files = self.files.lock().expect("no thread panics with the list");
            let path = self.folder.join(format!("run-{}", files.len()));
            files.push(path.clone());
            path
        };
        let mut duplicates = 0;
        let mut write = || {
            let mut file = BufWriter::with_capacity(1 << 18, File::create(&path)?);
            for (index, entry) in entries.iter().enumerate() {
                if entries.get(index + 1).is_some_and(|next| next.key() == entry.key()) {
                    duplicates += 1;
                    continue;
                }
                let (key, value) = (entry.key(), entry.value());
                file.write_all(key)?;
                file.write_all(&[value.len() as u8])?;
                file.write_all(value)?;
            }
            file.flush()
        };
        write().map_err(Error::io("write", &path))?;
        entries.clear();
        Ok(duplicates)
    }

    /// Gives out all entries in order, each key once with its largest amount, until `take` fails. Returns how many there
    /// were besides.
    pub fn merge(self, mut take: impl FnMut(Entry) -> Result<(), Error>) -> Result<u64, Error> {
        let paths = self.files.into_inner().expect("no thread panics with the list");
        let mut runs = Vec::new();
        for path in &paths {
            let file = File::open(path).map_err(Error::io("read", path))?;
            // Nobody needs the name from now on, and the space is free once the run is read.
            std::fs::remove_file(path).map_err(Error::io("remove", path))?;
            runs.push(BufReader::with_capacity(1 << 18, file));
        }
        let mut next = |run: usize| read_entry(&mut runs[run]).map_err(Error::io("read", &paths[run]));
        let mut heads = BinaryHeap::with_capacity(paths.len());
        for run in 0..paths.len() {
            heads.extend(next(run)?.map(|entry| Reverse((entry, run))));
        }
        let mut duplicates = 0;
        let mut held: Option<Entry> = None;
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((entry, run)) = *head;
            match next(run)? {
                Some(entry) => *head = Reverse((entry, run)),
                None => drop(std::collections::binary_heap::PeekMut::pop(head)),
            }
            match held.replace(entry) {
                Some(before) if before.key() == entry.key() => duplicates += 1,
                Some(before) => take(before)?,
                None => {}
            }
        }
        held.map_or(Ok(()), take)?;
        Ok(duplicates)
    }
}

/// The next entry of a run, `None` at its end.
fn read_entry(run: &mut impl Read) -> io::Result<Option<Entry>> {
    let wrong = || io::Error::new(ErrorKind::InvalidData, "a temporary file was changed");
    let mut key = [0; KEY_BYTES + 1];
    let mut value = [0; 16];
    if run.read(&mut key[..1])? == 0 {
        return Ok(None);
    }
    let length = 1 + Kind::from_byte(key[0]).ok_or_else(wrong)?.digest_bytes();
    run.read_exact(&mut key[1..=length])?;
    let value = value.get_mut(..usize::from(key[length])).ok_or_else(wrong)?;
    run.read_exact(value)?;
    Entry::read(&key[..length], value).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any entries in any runs come out as a map of the standard library has them.
        #[test]
        fn merging_is_sorting(
            runs in prop::collection::vec(prop::collection::vec((0..10usize, 0..4u8, prop::option::of(0..3u128)), 0..40), 0..6),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let sorter = Runs::new(folder.path());
            let mut expected: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
            let (mut count, mut duplicates) = (0, 0);
            for run in runs {
                let mut entries = Vec::new();
                for (kind, fill, amount) in run {
                    let kind = Kind::ALL[kind];
                    let amount = amount.map(|amount| amount << 63);
                    let entry = Entry::from_parts(kind, &vec![fill; kind.digest_bytes()], amount);
                    entries.push(entry);
                    count += 1;
                    let known = expected.entry(entry.key().to_vec()).or_insert(entry);
                    *known = (*known).max(entry);
                }
                duplicates += sorter.spill(&mut entries).unwrap();
                prop_assert!(entries.is_empty());
            }
            let mut merged = Vec::new();
            duplicates += sorter.merge(|entry| {
                merged.push(entry);
                Ok(())
            }).unwrap();
            prop_assert!(merged == expected.into_values().collect::<Vec<_>>());
            prop_assert_eq!(merged.len() as u64 + duplicates, count);
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
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
    }
}
