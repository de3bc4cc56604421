//! The file of a database's updates.
//!
//! ```text
//! 0      head: "WPIRUPDS", version u32 (2), identity of the database [32], zeros, sum [8]
//! 512    mark 0, 1024 mark 1: count u64, end u64, zeros, sum [8] of the identity and the mark
//! 1536   one update after the other, each with a sum of its own
//! ```
//!
//! A mark says how many updates there are and where they end. Appending needs the file's lock: the update is written and
//! forced to disk, then the older of the two marks is written anew and forced to disk, and only then is anybody told. The file
//! is made with its head and marks, whole. So:
//! - Whatever lies before the end is whole. If it is not, it was damaged or cut short, and that is told.
//! - Whatever lies behind the end was never confirmed to anyone: an append that a crash cut short. Readers do not count it,
//!   and the next writer writes over it.
//! - A mark that does not fit its sum is one that a crash cut short, or is damaged. Its update was durable before, so if it was
//!   the newer mark, the update is found whole behind the other mark's end, and counts. If nothing is there, it was the
//!   older mark, which is of no consequence. Anything else is damage.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use warpsmith_files::{self as files, Locked, Sharing, with_suffix};

use crate::database::Description;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::wire::{Update, checksum, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"WPIRUPDS";
const VERSION: u32 = 2;
/// Bytes of the head and of a mark. A disk writes so many at once, or not at all.
const SECTOR: usize = 512;
/// Where updates begin.
const START: usize = 3 * SECTOR;

/// The file, as far as it was read.
pub(super) struct Log {
    path: PathBuf,
    identity: [u8; 32],
    /// Updates read, and where they end; 0 before the file was seen.
    count: u64,
    read: u64,
    /// The newer mark did not fit its sum, and must be written again before the other one is touched.
    heal: bool,
}

/// The file while this process alone may write it.
pub(super) struct Writer<'a> {
    log: &'a mut Log,
    file: File,
}

/// How many updates there are, and where they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    count: u64,
    end: u64,
}

impl Mark {
    fn to_bytes(self, identity: &[u8; 32]) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end.to_le_bytes());
        let sum = checksum(&[identity, &bytes[..SECTOR - 8]]);
        bytes[SECTOR - 8..].copy_from_slice(&sum);
        bytes
    }

    fn read(bytes: &[u8], identity: &[u8; 32]) -> Option<Mark> {
        let mark = Mark { count: u64_at(bytes, 0), end: u64_at(bytes, 8) };
        (mark.to_bytes(identity) == bytes).then_some(mark)
    }
}

/// What the marks of a file say.
struct Marks {
    newest: Mark,
    /// One of them does not fit its sum.
    one_is_bad: bool,
}

impl Log {
    pub(super) fn new(database: &Path, description: &Description) -> Log {
        Log {
            path: with_suffix(database, ".updates"),
            identity: description.identity,
            count: 0,
            read: 0,
            heal: false,
        }
    }

    /// The updates that were not read before; the first has number `next`.
    pub(super) fn news(&mut self, params: &Params, next: u64) -> Result<Vec<Update>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.read == 0 => return Ok(Vec::new()),
            other => other.map_err(Error::io(&self.path))?,
        };
        if self.read > 0 && file.metadata().map_err(Error::io(&self.path))?.len() == self.read {
            return Ok(Vec::new());
        }
        // Whoever writes has it for himself; after that, all is durable.
        file.lock_shared().map_err(Error::io(&self.path))?;
        self.read_on(&mut file, params, next)
    }

    /// Waits until no other process writes. Makes the file where there is none.
    pub(super) fn writer(&mut self) -> Result<Writer<'_>> {
        let file = loop {
            match OpenOptions::new().read(true).write(true).open(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound && self.read == 0 => self.create()?,
                other => break other.map_err(Error::io(&self.path))?,
            }
        };
        file.lock().map_err(Error::io(&self.path))?;
        Ok(Writer { log: self, file })
    }

    /// Makes a file without updates. It has its name only when it is whole, so that no crash leaves less of it.
    fn create(&self) -> Result<()> {
        let none = Mark { count: 0, end: START as u64 }.to_bytes(&self.identity);
        let made = Locked::create(&self.path, Sharing::Readable, |to| {
            to.write_all(&[self.head(), none, none].concat())
        });
        match made {
            // Another process was faster.
            Ok(_) | Err(files::Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn head(&self) -> [u8; SECTOR] {
        let mut head = [0; SECTOR];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..44].copy_from_slice(&self.identity);
        let sum = checksum(&[&head[..SECTOR - 8]]);
        head[SECTOR - 8..].copy_from_slice(&sum);
        head
    }

    fn damaged(&self, reason: impl std::fmt::Display) -> Error {
        let advice = "put the file back as it was, or build the database anew";
        Error::damaged(&self.path, format!("{reason}; {advice}"))
    }

    /// The marks of a file of `length` bytes.
    fn marks(&self, file: &File, length: u64) -> Result<Marks> {
        let mut start = vec![0; START.min(usize::try_from(length).unwrap_or(START))];
        file.read_exact_at(&mut start, 0).map_err(Error::io(&self.path))?;
        let is_of_version_1 = start.starts_with(MAGIC) && start.get(8..40) == Some(&self.identity);
        if start.len() < START && !is_of_version_1 {
            return Err(self.damaged(format!("it has {length} bytes, and its head alone {START}")));
        }
        if is_of_version_1 || start[..SECTOR] != self.head() {
            let reason = if is_of_version_1 {
                "it was written in version 1 of the format, in which an update that was damaged could not be told from one \
                 that was never finished; build the database anew"
            } else if start[..8] != *MAGIC {
                "this is not a list of a database's updates"
            } else if checksum(&[&start[..SECTOR - 8]]) != start[SECTOR - 8..SECTOR] {
                return Err(self.damaged("its head (the first 512 bytes) does not fit its sum"));
            } else if u32_at(&start, 8) != VERSION {
                "it is of another version of the format than this program knows"
            } else {
                "these updates belong to another database"
            };
            return Err(Error::format(self.path.display().to_string(), reason));
        }
        let mark = |number: usize| Mark::read(&start[number * SECTOR..][..SECTOR], &self.identity);
        let marks = match (mark(1), mark(2)) {
            (None, None) => {
                return Err(self.damaged("both of its marks (bytes 512 to 1535) do not fit their sums"));
            }
            (Some(one), Some(two)) if one.count >= two.count => Marks { newest: one, one_is_bad: false },
            (Some(_), Some(two)) => Marks { newest: two, one_is_bad: false },
            (Some(newest), None) | (None, Some(newest)) => Marks { newest, one_is_bad: true },
        };
        let newest = marks.newest;
        if newest.end > length {
            let reason = format!(
                "it was cut short: update {} ends at byte {}, and the file at {length}",
                newest.count, newest.end
            );
            return Err(self.damaged(reason));
        }
        Ok(marks)
    }

    /// Reads on from where the last reading ended.
    fn read_on(&mut self, file: &mut File, params: &Params, next: u64) -> Result<Vec<Update>> {
        let length = file.metadata().map_err(Error::io(&self.path))?.len();
        if length < self.read {
            return Err(self.damaged("it is shorter than it was: updates that were given out are gone"));
        }
        let Marks { newest, one_is_bad } = self.marks(file, length)?;
        let from = self.read.max(START as u64);
        // Seen before: the update behind the end counts, and the bad mark is still there.
        let is_ahead = one_is_bad && self.heal && newest.end < from;
        if newest.end < from && !is_ahead {
            return Err(
                self.damaged("it says of itself less than before: updates that were given out are gone")
            );
        }
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(Error::io(&self.path))?;
        let confirmed = newest.end.saturating_sub(from);
        let confirmed = usize::try_from(confirmed).unwrap_or(usize::MAX).min(bytes.len());
        let (mut updates, mut at) = (Vec::new(), 0);
        let mut take = |part: &[u8], at: &mut usize| -> Result<()> {
            let expected = next + updates.len() as u64;
            let place = format!("update {expected}, from byte {} on,", from + *at as u64);
            let (update, length) = Update::read(params, &part[*at..])
                .map_err(|error| self.damaged(format!("{place} is not what was written: {error}")))?;
            if update.number != expected {
                return Err(self.damaged(format!("{place} has number {}", update.number)));
            }
            updates.push(update);
            *at += length;
            Ok(())
        };
        while at < confirmed {
            take(&bytes[..confirmed], &mut at)?;
        }
        if one_is_bad && !is_ahead && at < bytes.len() {
            take(&bytes, &mut at)?;
        }
        let count = self.count + updates.len() as u64;
        let heal = is_ahead || at > confirmed;
        if count != newest.count + u64::from(heal) {
            let reason = format!("there are {count} updates, and its mark says {}", newest.count);
            return Err(self.damaged(reason));
        }
        // A writer that was killed may have left whole updates that are not durable yet. Nobody is told of them before.
        if !updates.is_empty() {
            file.sync_data().map_err(Error::io(&self.path))?;
        }
        (self.count, self.read, self.heal) = (count, from + at as u64, heal);
        Ok(updates)
    }
}

impl Writer<'_> {
    /// As [`Log::news`].
    pub(super) fn news(&mut self, params: &Params, next: u64) -> Result<Vec<Update>> {
        self.log.read_on(&mut self.file, params, next)
    }

    /// Appends durably, after all updates there are: the caller has read them.
    pub(super) fn append(&mut self, update: &[u8]) -> Result<()> {
        let Log { path, identity, count, read, heal } = &*self.log;
        let mark = Mark { count: count + 1, end: read + update.len() as u64 };
        let write = || {
            // What is behind was cut short.
            self.file.set_len(*read)?;
            self.file.write_all_at(update, *read)?;
            let put = |mark: Mark| {
                // What it tells of is durable before.
                self.file.sync_data()?;
                self.file.write_all_at(&mark.to_bytes(identity), SECTOR as u64 * (1 + mark.count % 2))
            };
            if *heal {
                put(Mark { count: *count, end: *read })?;
            }
            put(mark)?;
            self.file.sync_data()
        };
        write().map_err(Error::io(path))?;
        (self.log.count, self.log.read, self.log.heal) = (mark.count, mark.end, false);
        Ok(())
    }
}
