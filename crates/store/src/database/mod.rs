//! The address database: one file of sorted records in chunks, each with a checksum, that never changes once it is built.
//!
//! Read without trust: by positioned reads and never through a map of memory, so that a file cut short or a failing disk is
//! an error and not a signal; and a chunk is checked each time it is read, so that a look-up is right or an error. The
//! format is described in `layout.rs`.
//!
//! In memory is the index, the first digest of each chunk: 98 MB for a billion addresses. A look-up reads one chunk.

mod about;
mod build;
mod coins;
mod diff;
mod entries;
mod layout;
mod lmdb;
mod scratch;
mod snapshot;
mod sort;
mod together;
mod write;

pub use about::About;
pub use build::{BuildOptions, Built, Progress, Stage};
pub use coins::ScriptCoins;
pub use diff::{Difference, Differences};
pub use snapshot::Snapshot;
pub use together::Databases;

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use warpsmith_chain::AddressKind;

use crate::map::{Source, Targets};
use crate::record::{Entry, key_of};
use crate::{Error, Record};
use about::Summary;
use entries::Entries;
use layout::{HEAD, Head, Layout, MAGIC, SUM, Section, Seed, read_amount};

/// What messages call it.
pub(crate) const WHAT: &str = "address database";

/// An address database, open for reading by any number of threads.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    file: File,
    about: About,
    layout: Layout,
    seed: Seed,
    /// The first digest of each chunk.
    index: Vec<u8>,
}

impl Database {
    /// Opens a database that [`Database::build`] made. Head and index are checked; each chunk is when it is read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let facts = fs::metadata(path).map_err(Error::io("read", path))?;
        if !facts.is_file() {
            let reason = match lmdb::folder_of(path) {
                Some(_) => {
                    "it is a folder with an LMDB tree, as BitcoinAddressFinder makes it; make one from it: \
                     warpsmith db build NEW OLD"
                }
                None => "it is no regular file",
            };
            return Err(Error::NotADatabase { path: path.to_owned(), reason: reason.to_owned() });
        }
        let failed = || Error::io("read", path);
        let file = File::open(path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let mut head = Vec::with_capacity(HEAD);
        (&file).take(HEAD as u64).read_to_end(&mut head).map_err(failed())?;
        let Head { about, layout, index: sum } = Head::read(path, &head, length)?;
        let seed = Seed::new(&about.identity);
        let mut index = vec![0; layout.index_bytes];
        let database = Self { path: path.to_owned(), file, about, layout, seed, index: Vec::new() };
        database.read_at(&mut index, database.layout.index_place())?;
        if seed.index(&index) != sum {
            return Err(database.corrupt("its index is not as it was written (another checksum)".to_owned()));
        }
        Ok(Self { index, ..database })
    }

    /// Whether what lies there begins as a database does.
    pub fn is_at(path: &Path) -> bool {
        let mut magic = [0; MAGIC.len()];
        let is_file = fs::metadata(path).is_ok_and(|facts| facts.is_file());
        is_file
            && File::open(path).and_then(|file| file.read_exact_at(&mut magic, 0)).is_ok()
            && magic == *MAGIC
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What a map names it by. A database built again from the same addresses has the same name.
    pub fn targets(&self) -> Targets {
        Targets { source: Source::Database, count: self.about.records, digest: self.about.addresses }
    }

    /// Bytes on disk.
    pub fn size(&self) -> u64 {
        self.layout.length
    }

    /// A view for one thread to look addresses up.
    pub fn reader(&self) -> Reader<'_> {
        Reader { database: self, held: RefCell::new((None, vec![0; self.layout.chunk as usize])) }
    }

    /// Reads every record and checks it: that each chunk is as it was written, that records are in order, and that counts and
    /// digests are those the database says. `progress` is told how many were read.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<(), Error> {
        let mut summary = Summary::default();
        let mut last: Option<Entry> = None;
        for entry in self.entries() {
            let entry = entry?;
            if last.is_some_and(|last| last.key() >= entry.key()) {
                return Err(self.corrupt(format!("record {} is out of order", summary.count() + 1)));
            }
            last = Some(entry);
            summary.add(&entry);
            if summary.count() % (1 << 20) == 0 {
                progress(summary.count());
            }
        }
        progress(summary.count());
        match self.about.difference(&summary.finish(self.about.identity, self.about.created)) {
            None => Ok(()),
            Some(difference) => Err(self.corrupt(difference)),
        }
    }

    /// All records, by kind and digest. Ends with the first error.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, Error>> + '_ {
        self.entries().map(|entry| entry.map(|entry| entry.record()))
    }

    /// The records of these kinds, of all where none are given; in the order of [`Self::records`].
    pub fn records_of(&self, kinds: &[AddressKind]) -> impl Iterator<Item = Result<Record, Error>> + '_ {
        let mut wanted: Vec<AddressKind> = self.about.kinds.iter().map(|(kind, _)| *kind).collect();
        wanted.retain(|kind| kinds.is_empty() || kinds.contains(kind));
        // Nothing is read after a kind that could not be read to its end.
        let mut is_over = false;
        let entries = wanted.into_iter().flat_map(|kind| self.entries_of(kind));
        entries
            .map(|entry| entry.map(|entry| entry.record()))
            .take_while(move |record| !std::mem::replace(&mut is_over, record.is_err()))
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries::new(self, &self.layout.sections)
    }

    /// The records of one kind.
    pub(crate) fn entries_of(&self, kind: AddressKind) -> Entries<'_> {
        let sections = &self.layout.sections;
        let section = sections.iter().position(|section| section.kind == kind);
        Entries::new(self, section.map_or(&[], |at| &sections[at..=at]))
    }

    /// Reads chunks that follow each other, from a section's chunk `first` on, and checks them.
    fn read_chunks(&self, section: &Section, first: u64, into: &mut [u8]) -> Result<(), Error> {
        let number = section.first_chunk + first;
        self.read_at(into, self.layout.place(number))?;
        for (chunk, bytes) in (first..).zip(into.chunks_exact(self.layout.chunk as usize)) {
            self.check(section, chunk, bytes)?;
        }
        Ok(())
    }

    /// Whether a section's chunk is as it was written, and the one the index means.
    fn check(&self, section: &Section, chunk: u64, bytes: &[u8]) -> Result<(), Error> {
        let (body, sum) = bytes.split_at(bytes.len() - SUM);
        let number = section.first_chunk + chunk;
        let reason = if self.seed.chunk(number, body) != *sum {
            "is not as it was written (another checksum)"
        } else if !body.starts_with(self.first_of(section, chunk)) {
            "does not begin as the index says"
        } else {
            return Ok(());
        };
        let first = chunk * section.per_chunk;
        Err(self.corrupt(format!(
            "chunk {} of {}, with the records {} to {} of {} of kind {}, {reason}",
            number + 1,
            self.layout.chunks,
            first + 1,
            first + section.records_in(chunk),
            section.records,
            section.kind.name(),
        )))
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> Result<(), Error> {
        self.file.read_exact_at(into, at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let reason = format!("it ends before byte {}", at + into.len() as u64);
                Error::Truncated { path: self.path.clone(), what: WHAT, reason }
            }
            _ => Error::io("read", &self.path)(error),
        })
    }

    /// The first digest of a section's chunk, as the index has it.
    fn first_of(&self, section: &Section, chunk: u64) -> &[u8] {
        let bytes = section.kind.digest_bytes();
        let at = section.index_at + chunk as usize * bytes;
        &self.index[at..at + bytes]
    }

    /// The chunk of a section that has this digest, if any has: the last that begins at or below it.
    fn chunk_of(&self, section: &Section, digest: &[u8]) -> Option<u64> {
        let is_below = |chunk: u64| self.first_of(section, chunk) <= digest;
        // Digests are spread evenly, so their first bits say where to look; from there in steps that double.
        let guess = ((u128::from(key_of(digest)) * u128::from(section.chunks)) >> 64) as u64;
        let (mut low, mut high, mut step) = (0, section.chunks, 1);
        if is_below(guess) {
            low = guess;
            while low + step < section.chunks {
                if !is_below(low + step) {
                    high = low + step;
                    break;
                }
                low += step;
                step *= 2;
            }
        } else {
            high = guess;
            while let Some(probe) = high.checked_sub(step) {
                if is_below(probe) {
                    low = probe;
                    break;
                }
                high = probe;
                step *= 2;
            }
        }
        // Below `low` all begin at or below the digest, from `high` on none does.
        while low < high {
            let middle = low + (high - low) / 2;
            if is_below(middle) { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    fn entry(&self, section: &Section, record: &[u8]) -> Result<Entry, Error> {
        let (digest, amount) = record.split_at(section.kind.digest_bytes());
        let amount = read_amount(amount).ok_or_else(|| {
            self.corrupt(format!("an amount of kind {} is beyond 2^128", section.kind.name()))
        })?;
        Ok(Entry::from_parts(section.kind, digest, amount))
    }

    fn corrupt(&self, reason: String) -> Error {
        Error::Corrupt { path: self.path.clone(), what: WHAT, reason }
    }
}

/// A view of a database for one thread.
pub struct Reader<'a> {
    database: &'a Database,
    /// The chunk read last, and its bytes; `None` when they are no whole chunk.
    held: RefCell<(Option<u64>, Vec<u8>)>,
}

impl Reader<'_> {
    /// The record of this kind with this digest. An error where the chunk that would have it is damaged.
    pub fn find(&self, kind: AddressKind, digest: &[u8]) -> Result<Option<Record>, Error> {
        let database = self.database;
        let section = database.layout.sections.iter().find(|section| section.kind == kind);
        let Some(section) = section.filter(|_| digest.len() == kind.digest_bytes()) else { return Ok(None) };
        let Some(chunk) = database.chunk_of(section, digest) else { return Ok(None) };
        let mut held = self.held.borrow_mut();
        let (number, bytes) = &mut *held;
        if *number != Some(section.first_chunk + chunk) {
            *number = None;
            database.read_chunks(section, chunk, bytes)?;
            *number = Some(section.first_chunk + chunk);
        }
        let width = section.width();
        let record = |at: usize| &bytes[at * width..(at + 1) * width];
        let (mut low, mut high) = (0, section.records_in(chunk) as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            match record(middle)[..digest.len()].cmp(digest) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return Ok(Some(database.entry(section, record(middle))?.record()));
                }
            }
        }
        Ok(None)
    }

    /// The records of any of these kinds with this digest: for what a device found, those of its type.
    pub fn find_any(&self, kinds: &[AddressKind], digest: &[u8]) -> Result<Vec<Record>, Error> {
        let mut found = Vec::new();
        for kind in kinds {
            found.extend(self.find(*kind, digest)?);
        }
        Ok(found)
    }

    /// The records of an address: of its kind, and what is known of its hash without a kind. For a hash without a kind: the
    /// records of every kind that has it.
    pub fn find_address(&self, address: &Record) -> Result<Vec<Record>, Error> {
        let digest = address.digest.as_bytes();
        let mut found = self.find_any(&[address.kind], digest)?;
        if address.kind == AddressKind::HASH160 {
            let sections = self.database.layout.sections.iter().map(|section| section.kind);
            let others: Vec<_> =
                sections.filter(|kind| kind.is_hash160() && *kind != AddressKind::HASH160).collect();
            found.extend(self.find_any(&others, digest)?);
        } else if address.kind.is_hash160() {
            found.extend(self.find(AddressKind::HASH160, digest)?);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;
