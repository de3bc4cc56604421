//! Reading a database without trust: by positioned reads, and nothing is handed over before its digest fits.
//!
//! The file is not mapped. A mapped file that somebody cuts short ends the process with SIGBUS, and no look at its length
//! beforehand can rule that out; a read of it is an error that a server tells and survives.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use sha2::{Digest, Sha256};

use super::{Description, HEAD_BYTES, SEGMENT_BYTES};
use crate::error::{Error, Result};

/// Threads that read and hash ahead of whoever takes the entries; one alone hashes slower than a card makes hints.
const READERS: usize = 8;

/// An open database file.
pub struct Database {
    description: Description,
    path: PathBuf,
    file: File,
    digests: Vec<u8>,
    /// What the file was when it was opened.
    facts: Facts,
    /// Segments that were compared with their digests since.
    checked: Box<[AtomicBool]>,
    /// Why the first reading failed that did.
    trouble: OnceLock<String>,
}

/// What changes with every write to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Facts {
    length: u64,
    modified: (i64, i64),
}

impl Facts {
    fn of(file: &File) -> std::io::Result<Facts> {
        let facts = file.metadata()?;
        Ok(Facts { length: facts.len(), modified: (facts.mtime(), facts.mtime_nsec()) })
    }
}

impl Database {
    /// Opens a database: its head and digests are read and compared with its identity, its entries are not read yet.
    ///
    /// # Errors
    ///
    /// When it is not one, is damaged or cut short.
    pub fn open(path: &Path) -> Result<Database> {
        let file = File::open(path).map_err(Error::io(path))?;
        let facts = Facts::of(&file).map_err(Error::io(path))?;
        let mut head = vec![0; HEAD_BYTES.min(usize::try_from(facts.length).unwrap_or(HEAD_BYTES))];
        file.read_exact_at(&mut head, 0).map_err(Error::io(path))?;
        let description = Description::read(&path.display().to_string(), &head)?;
        let entries_end = HEAD_BYTES as u64 + description.data_bytes();
        let expected = entries_end + 32 * description.segments();
        if facts.length != expected {
            let reason = format!("it has {} bytes instead of {expected}; {ANEW}", facts.length);
            return Err(Error::damaged(path, reason));
        }
        let mut digests = vec![0; 32 * description.segments() as usize];
        file.read_exact_at(&mut digests, entries_end).map_err(Error::io(path))?;
        if description.identity != description.identity_of(&digests) {
            let reason =
                format!("the digests (bytes {entries_end} to {}) do not fit the head; {ANEW}", expected - 1);
            return Err(Error::damaged(path, reason));
        }
        let checked = (0..description.segments()).map(|_| AtomicBool::new(false)).collect();
        let trouble = OnceLock::new();
        Ok(Database { description, path: path.to_owned(), file, digests, facts, checked, trouble })
    }

    /// Whether the name it was opened by still leads to it: a fold puts another file there. One that was removed is missed by
    /// nobody who has it open.
    pub(crate) fn is_in_its_place(&self) -> bool {
        let id = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(open), Ok(there)) => id(open) == id(there),
            _ => true,
        }
    }

    /// What a file is told from others by that may come into its place.
    pub(crate) fn id(&self) -> (u64, (i64, i64)) {
        (self.file.metadata().map_or(0, |facts| facts.ino()), self.facts.modified)
    }

    /// What its head says.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The segments' digests, 32 bytes each.
    pub fn digests(&self) -> &[u8] {
        &self.digests
    }

    /// Reads bytes of the blocks. A segment is compared with its digest the first time any of it is read; the file must not
    /// have been written to since.
    ///
    /// # Errors
    ///
    /// When the file is damaged, was changed, or cannot be read.
    ///
    /// # Panics
    ///
    /// When the blocks end before.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.read_before_check(at, into)?;
        self.check_unchanged()
    }

    /// As [`Database::read`], for many reads in a row: what they gave counts only after [`Database::check_unchanged`].
    pub(crate) fn read_before_check(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let end = at + into.len() as u64;
        assert!(end <= self.description.data_bytes());
        let segments = at / SEGMENT_BYTES as u64..end.div_ceil(SEGMENT_BYTES as u64);
        for segment in segments {
            if !self.checked[segment as usize].load(Ordering::Relaxed) {
                self.segment(segment, &mut Vec::new())?;
            }
        }
        self.read_at(at, into)
    }

    /// Whether nobody has written to the file since it was opened.
    ///
    /// # Errors
    ///
    /// When somebody has.
    pub fn check_unchanged(&self) -> Result<()> {
        let facts = Facts::of(&self.file).map_err(Error::io(&self.path))?;
        if facts == self.facts {
            return Ok(());
        }
        let what = match facts.length == self.facts.length {
            true => "somebody wrote to it".to_owned(),
            false => format!("it has {} bytes, and had {}", facts.length, self.facts.length),
        };
        let advice = format!("a database never changes: {ANEW}, and start again with it");
        Err(self.troubled(format!("{what} after it was opened; {advice}")))
    }

    /// Reads a segment and compares it with its digest.
    fn segment(&self, number: u64, buffer: &mut Vec<u8>) -> Result<()> {
        let start = number * SEGMENT_BYTES as u64;
        let length = (self.description.data_bytes() - start).min(SEGMENT_BYTES as u64);
        buffer.resize(length as usize, 0);
        self.read_at(start, buffer)?;
        if Sha256::digest(&*buffer)[..] != self.digests[32 * number as usize..][..32] {
            let first = HEAD_BYTES as u64 + start;
            let last = first + length - 1;
            return Err(self.troubled(format!(
                "segment {number} of the entries (bytes {first} to {last}) does not fit its digest; {ANEW}"
            )));
        }
        self.checked[number as usize].store(true, Ordering::Relaxed);
        Ok(())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let at = HEAD_BYTES as u64 + at;
        self.file.read_exact_at(into, at).map_err(|error| {
            let end = at + into.len() as u64;
            self.troubled(match error.kind() {
                ErrorKind::UnexpectedEof => format!("it was cut short: it ends before byte {end}; {ANEW}"),
                _ => format!("bytes {at} to {} cannot be read: {error}; {ANEW}", end - 1),
            })
        })
    }

    fn troubled(&self, reason: String) -> Error {
        Error::damaged(&self.path, self.trouble.get_or_init(|| reason))
    }

    /// Whether nothing was wrong with the file so far, as far as it was read, and nobody has written to it.
    ///
    /// # Errors
    ///
    /// When there was: the first thing, with its place.
    pub fn check(&self) -> Result<()> {
        match self.trouble.get() {
            Some(reason) => Err(Error::damaged(&self.path, reason)),
            None => self.check_unchanged(),
        }
    }

    /// Threads that [`Database::stream`] has.
    fn readers(&self) -> u64 {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(READERS);
        (threads as u64).min(self.description.segments())
    }

    /// The most memory that [`Database::stream`] takes: a reader fills a segment while another is ready and a third is given
    /// back, and whoever takes them may hold a changed copy of one.
    pub(crate) fn reading_bytes(&self) -> u64 {
        (3 * self.readers() + 2).min(self.description.segments() + 2) * SEGMENT_BYTES as u64
    }

    /// Hands over all blocks in order, a segment at a time, each compared with its digest. Threads read ahead.
    ///
    /// # Errors
    ///
    /// When a segment is damaged, the message says which; it and those after it are not handed over. And when `take` fails.
    pub fn stream(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let segments = self.description.segments();
        let threads = self.readers();
        std::thread::scope(|scope| {
            // Each has every so many segments, and at most two of them ready.
            let readers: Vec<_> = (0..threads)
                .map(|first| {
                    let (send, ready) = sync_channel(1);
                    let (give_back, empty) = sync_channel::<Vec<u8>>(4);
                    scope.spawn(move || {
                        for number in (first..segments).step_by(threads as usize) {
                            let mut buffer = empty.try_recv().unwrap_or_default();
                            let read = self.segment(number, &mut buffer).map(|()| buffer);
                            let ends = read.is_err();
                            // Nobody waits for it any more after an error.
                            if send.send(read).is_err() || ends {
                                return;
                            }
                        }
                    });
                    (ready, give_back)
                })
                .collect();
            for number in 0..segments {
                let (ready, give_back) = &readers[(number % threads) as usize];
                let segment = ready.recv().expect("a reader ends after its last segment or an error")?;
                take(&segment)?;
                let _ = give_back.try_send(segment);
            }
            Ok::<(), Error>(())
        })?;
        self.check_unchanged()
    }

    /// All blocks.
    ///
    /// # Errors
    ///
    /// As for [`Database::stream`].
    pub fn read_all(&self) -> Result<Vec<u8>> {
        let mut blocks = Vec::with_capacity(self.description.data_bytes() as usize);
        self.stream(&mut |segment| {
            blocks.extend_from_slice(segment);
            Ok(())
        })?;
        Ok(blocks)
    }

    /// Reads everything and compares it with the digests.
    ///
    /// # Errors
    ///
    /// When a segment is damaged; the message says which.
    pub fn verify(&self) -> Result<()> {
        self.stream(&mut |_| Ok(()))
    }
}

/// What to do about a damaged file.
const ANEW: &str = "get the file again, or build it anew";
