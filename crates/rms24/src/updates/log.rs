//! The file of a database's updates.
//!
//! ```text
//! 0      head: "WPIRUPDS", version u32, lineage of the database [32], of version 3: first epoch u64; zeros, sum [8]
//! 512    mark 0, 1024 mark 1: count u64, end u64, zeros, sum [8] of the lineage and the mark
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
//!
//! The updates say of themselves which epochs they lead to, and may begin before the database's file does: a fold first puts a
//! newer file in the place of the old one, and then ([`Log::trim`]) a shorter list in the place of this one. In version 3 the
//! list says after which epoch it begins; in version 2, which those have that were never made shorter, its first update does.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use warpsmith_files::{self as files, Locked, Sharing, is_at, with_suffix};

use super::stream::Stream;
use crate::database::Description;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::wire::{Update, checksum, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"WPIRUPDS";
/// A list that begins with the file that was built, and one that says where it begins.
const WHOLE: u32 = 2;
const TRIMMED: u32 = 3;
/// Bytes of the head and of a mark. A disk writes so many at once, or not at all.
const SECTOR: usize = 512;
/// Where updates begin.
pub(super) const START: usize = 3 * SECTOR;

/// The file, as far as it was read.
pub(super) struct Log {
    path: PathBuf,
    lineage: [u8; 32],
    /// The lineages whose place this one took: the list of one may be there still.
    predecessors: Vec<[u8; 32]>,
    /// The epoch of the database's file.
    base: u64,
    /// Whether the database's file was made of another.
    folded: bool,
    /// Which file was read: its device and number.
    seen: Option<(u64, u64)>,
    /// The epoch before its first update.
    first: u64,
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
    fn to_bytes(self, lineage: &[u8; 32]) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.end.to_le_bytes());
        let sum = checksum(&[lineage, &bytes[..SECTOR - 8]]);
        bytes[SECTOR - 8..].copy_from_slice(&sum);
        bytes
    }

    fn read(bytes: &[u8], lineage: &[u8; 32]) -> Option<Mark> {
        let mark = Mark { count: u64_at(bytes, 0), end: u64_at(bytes, 8) };
        (mark.to_bytes(lineage) == bytes).then_some(mark)
    }
}

/// What head and marks of a file say.
struct Marks {
    /// The epoch before its first update, where that is known without a look at it.
    first: Option<u64>,
    newest: Mark,
    /// One of them does not fit its sum.
    one_is_bad: bool,
}

/// The confirmed updates of a file, which stay what they are also when others are appended or the file is replaced.
pub(super) struct Survey {
    pub(super) file: File,
    pub(super) first: Option<u64>,
    pub(super) end: u64,
}

fn id_of(file: &File) -> std::io::Result<(u64, u64)> {
    file.metadata().map(|facts| (facts.dev(), facts.ino()))
}

impl Log {
    pub(super) fn new(database: &Path, description: &Description) -> Log {
        Log {
            path: with_suffix(database, ".updates"),
            lineage: description.lineage(),
            predecessors: description.predecessors.clone(),
            base: description.epoch,
            folded: description.origin.is_some() || !description.predecessors.is_empty(),
            seen: None,
            first: description.epoch,
            count: 0,
            read: 0,
            heal: false,
        }
    }

    /// The epoch before the first update of the file that was read; that of the database where there is none.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The updates that were not read before. Where the file is another than before, all of it: some of them were seen already.
    pub(super) fn news(&mut self, params: &Params) -> Result<Vec<Update>> {
        loop {
            let mut file = match File::open(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound && self.read == 0 => return Ok(Vec::new()),
                other => other.map_err(Error::io(&self.path))?,
            };
            if self.has_all_of(&file).map_err(Error::io(&self.path))? {
                return Ok(Vec::new());
            }
            // Whoever writes has it for himself; after that, all is durable.
            file.lock_shared().map_err(Error::io(&self.path))?;
            // A fold may have put a shorter one in its place meanwhile.
            if is_at(&file, &self.path) {
                return if self.is_left_over(&file)? {
                    Ok(Vec::new())
                } else {
                    self.read_on(&mut file, params)
                };
            }
        }
    }

    /// Whether there is nothing in a file that was not read, by its length. A number may be given to another file later, so the
    /// beginning is compared too.
    fn has_all_of(&self, file: &File) -> std::io::Result<bool> {
        if self.read == 0 || file.metadata()?.len() != self.read || self.seen != Some(id_of(file)?) {
            return Ok(false);
        }
        let mut head = [0; SECTOR];
        file.read_exact_at(&mut head, 0)?;
        Ok(u32_at(&head, 8) != TRIMMED || u64_at(&head, 44) == self.first)
    }

    /// Waits until no other process writes. Makes the file where there is none.
    pub(super) fn writer(&mut self) -> Result<Writer<'_>> {
        loop {
            let file = match OpenOptions::new().read(true).write(true).open(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound && self.read == 0 => {
                    self.create()?;
                    continue;
                }
                other => other.map_err(Error::io(&self.path))?,
            };
            file.lock().map_err(Error::io(&self.path))?;
            if !is_at(&file, &self.path) {
                continue;
            }
            if self.is_left_over(&file)? {
                self.begin_anew()?;
                continue;
            }
            return Ok(Writer { log: self, file });
        }
    }

    /// Whether a file is the list of a lineage whose place this one took: of no use, since a crash came before it was replaced.
    fn is_left_over(&self, file: &File) -> Result<bool> {
        if self.predecessors.is_empty() || self.read > 0 {
            return Ok(false);
        }
        let mut head = [0; SECTOR];
        match file.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io(&self.path)(error)),
            Ok(()) => Ok(head[..8] == *MAGIC
                && self.predecessors.iter().any(|lineage| head[12..44] == *lineage)
                && checksum(&[&head[..SECTOR - 8]]) == head[SECTOR - 8..]),
        }
    }

    /// Keeps others from appending for as long as the file is held; all can read it.
    pub(super) fn freeze(&mut self) -> Result<File> {
        drop(self.writer()?);
        loop {
            let file = File::open(&self.path).map_err(Error::io(&self.path))?;
            file.lock_shared().map_err(Error::io(&self.path))?;
            if is_at(&file, &self.path) {
                return Ok(file);
            }
        }
    }

    /// Puts an empty list in the place of whatever is there.
    pub(super) fn begin_anew(&self) -> Result<()> {
        files::replace(&self.path, 0o644, |to| to.write_all(&self.empty()))?;
        Ok(())
    }

    fn empty(&self) -> Vec<u8> {
        let none = Mark { count: 0, end: START as u64 }.to_bytes(&self.lineage);
        [self.head(self.folded.then_some(self.base)), none, none].concat()
    }

    /// Makes a file without updates. It has its name only when it is whole, so that no crash leaves less of it.
    fn create(&self) -> Result<()> {
        let made = Locked::create(&self.path, Sharing::Readable, |to| to.write_all(&self.empty()));
        match made {
            // Another process was faster.
            Ok(_) | Err(files::Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn head(&self, first: Option<u64>) -> [u8; SECTOR] {
        let mut head = [0; SECTOR];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&if first.is_some() { TRIMMED } else { WHOLE }.to_le_bytes());
        head[12..44].copy_from_slice(&self.lineage);
        head[44..52].copy_from_slice(&first.unwrap_or(0).to_le_bytes());
        let sum = checksum(&[&head[..SECTOR - 8]]);
        head[SECTOR - 8..].copy_from_slice(&sum);
        head
    }

    pub(super) fn damaged(&self, reason: impl std::fmt::Display) -> Error {
        let advice = "put the file back as it was, or build the database anew";
        Error::damaged(&self.path, format!("{reason}; {advice}"))
    }

    /// Head and marks of a file of `length` bytes.
    fn marks(&self, file: &File, length: u64) -> Result<Marks> {
        let mut start = vec![0; START.min(usize::try_from(length).unwrap_or(START))];
        file.read_exact_at(&mut start, 0).map_err(Error::io(&self.path))?;
        let is_of_version_1 = start.starts_with(MAGIC) && start.get(8..40) == Some(&self.lineage);
        if start.len() < START && !is_of_version_1 {
            return Err(self.damaged(format!("it has {length} bytes, and its head alone {START}")));
        }
        let said = (!is_of_version_1 && u32_at(&start, 8) == TRIMMED).then(|| u64_at(&start, 44));
        if is_of_version_1 || start[..SECTOR] != self.head(said) {
            let reason = if is_of_version_1 {
                "it was written in version 1 of the format, in which an update that was damaged could not be told from one \
                 that was never finished; build the database anew"
            } else if start[..8] != *MAGIC {
                "this is not a list of a database's updates"
            } else if checksum(&[&start[..SECTOR - 8]]) != start[SECTOR - 8..SECTOR] {
                return Err(self.damaged("its head (the first 512 bytes) does not fit its sum"));
            } else if !(WHOLE..=TRIMMED).contains(&u32_at(&start, 8)) {
                "it is of another version of the format than this program knows"
            } else {
                "these updates belong to another database"
            };
            return Err(Error::format(self.path.display().to_string(), reason));
        }
        // Nothing was ever left out beside a file that was built.
        let first = said.or((!self.folded).then_some(self.base));
        let mark = |number: usize| Mark::read(&start[number * SECTOR..][..SECTOR], &self.lineage);
        let (newest, one_is_bad) = match (mark(1), mark(2)) {
            (None, None) => {
                return Err(self.damaged("both of its marks (bytes 512 to 1535) do not fit their sums"));
            }
            (Some(one), Some(two)) if one.count >= two.count => (one, false),
            (Some(_), Some(two)) => (two, false),
            (Some(newest), None) | (None, Some(newest)) => (newest, true),
        };
        if newest.end > length {
            let reason = format!(
                "it was cut short: update {} ends at byte {}, and the file at {length}",
                newest.count, newest.end
            );
            return Err(self.damaged(reason));
        }
        Ok(Marks { first, newest, one_is_bad })
    }

    /// Reads on from where the last reading ended, or from the start of another file.
    fn read_on(&mut self, file: &mut File, params: &Params) -> Result<Vec<Update>> {
        let facts = file.metadata().map_err(Error::io(&self.path))?;
        let (length, id) = (facts.len(), (facts.dev(), facts.ino()));
        let known = self.first + self.count;
        if self.seen == Some(id) && length < self.read {
            return Err(self.damaged("it is shorter than it was: updates that were given out are gone"));
        }
        let Marks { first, newest, one_is_bad } = self.marks(file, length)?;
        let is_same = self.seen == Some(id) && first.is_none_or(|first| first == self.first);
        let (count, read, heal) = if is_same { (self.count, self.read, self.heal) } else { (0, 0, false) };
        let from = read.max(START as u64);
        // Seen before: the update behind the end counts, and the bad mark is still there.
        let is_ahead = one_is_bad && heal && newest.end < from;
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
        let (mut updates, mut at) = (Vec::<Update>::new(), 0);
        let mut first = if is_same { Some(self.first) } else { first };
        let mut take = |part: &[u8], at: &mut usize| -> Result<()> {
            let expected = first.map(|first| first + count + updates.len() as u64 + 1);
            let number = expected.map_or("the first update".to_owned(), |number| format!("update {number}"));
            let place = format!("{number}, from byte {} on,", from + *at as u64);
            let (update, length) = Update::read(params, &part[*at..])
                .map_err(|error| self.damaged(format!("{place} is not what was written: {error}")))?;
            if expected.is_some_and(|expected| expected != update.number) || update.number == 0 {
                return Err(self.damaged(format!("{place} has number {}", update.number)));
            }
            first.get_or_insert(update.number - 1);
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
        let first = first.unwrap_or(self.base);
        let count = count + updates.len() as u64;
        let heal = is_ahead || at > confirmed;
        if count != newest.count + u64::from(heal) {
            let reason = format!("there are {count} updates, and its mark says {}", newest.count);
            return Err(self.damaged(reason));
        }
        if first + count < known.max(self.base) {
            let reason =
                format!("it ends with epoch {}, and epoch {} was there", first + count, known.max(self.base));
            return Err(self.damaged(reason));
        }
        // A writer that was killed may have left whole updates that are not durable yet. Nobody is told of them before.
        if !updates.is_empty() {
            file.sync_data().map_err(Error::io(&self.path))?;
        }
        (self.seen, self.first) = (Some(id), first);
        (self.count, self.read, self.heal) = (count, from + at as u64, heal);
        Ok(updates)
    }

    /// The updates that are confirmed by now; none where there is no file.
    pub(super) fn survey(&self) -> Result<Option<Survey>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(Error::io(&self.path))?,
        };
        file.lock_shared().map_err(Error::io(&self.path))?;
        if self.is_left_over(&file)? {
            return Ok(None);
        }
        let length = file.metadata().map_err(Error::io(&self.path))?.len();
        let Marks { first, newest, .. } = self.marks(&file, length)?;
        // Somebody else may have written it and been killed: what is built on it must not outlive it.
        file.sync_data().and_then(|()| file.unlock()).map_err(Error::io(&self.path))?;
        Ok(Some(Survey { file, first, end: newest.end }))
    }

    /// Puts a list in the place of this one that begins after the epoch `first`, whose successor's update begins at byte `at` of
    /// the file that was surveyed. At any moment there is the one list or the other, whole.
    pub(super) fn trim(&self, surveyed: &File, first: u64, at: u64, params: &Params) -> Result<()> {
        let io = |error| Error::io(&self.path)(error);
        let file = OpenOptions::new().read(true).write(true).open(&self.path).map_err(io)?;
        file.lock().map_err(io)?;
        // Somebody else has just trimmed it, who knew as much as we do.
        if !is_at(&file, &self.path) || id_of(&file).map_err(io)? != id_of(surveyed).map_err(io)? {
            return Ok(());
        }
        let length = file.metadata().map_err(io)?.len();
        let Marks { newest: Mark { mut end, .. }, one_is_bad, .. } = self.marks(&file, length)?;
        let mut stream = Stream::new(self.path.clone(), file.try_clone().map_err(io)?, at..length, params)?;
        let mut next = first;
        while stream.at() < end || (one_is_bad && stream.at() == end && end < length) {
            let seen = stream.pass_over().map_err(|error| self.damaged(error))?;
            if seen.number != next + 1 {
                return Err(self.damaged(format!("update {} does not follow {next}", seen.number)));
            }
            next += 1;
        }
        end = end.max(stream.at());
        let mark = Mark { count: next - first, end: START as u64 + (end - at) }.to_bytes(&self.lineage);
        files::replace(&self.path, 0o644, |to| {
            to.write_all(&[self.head(Some(first)), mark, mark].concat())?;
            let mut rest = file.try_clone()?;
            rest.seek(SeekFrom::Start(at))?;
            std::io::copy(&mut rest.take(end - at), to).map(drop)
        })?;
        Ok(())
    }
}

impl Writer<'_> {
    /// As [`Log::first`].
    pub(super) fn first(&self) -> u64 {
        self.log.first()
    }

    /// As [`Log::news`].
    pub(super) fn news(&mut self, params: &Params) -> Result<Vec<Update>> {
        self.log.read_on(&mut self.file, params)
    }

    /// Appends durably, after all updates there are: the caller has read them.
    pub(super) fn append(&mut self, update: &[u8]) -> Result<()> {
        let Log { path, lineage, count, read, heal, .. } = &*self.log;
        let mark = Mark { count: count + 1, end: read + update.len() as u64 };
        let write = || {
            // What is behind was cut short.
            self.file.set_len(*read)?;
            self.file.write_all_at(update, *read)?;
            let put = |mark: Mark| {
                // What it tells of is durable before.
                self.file.sync_data()?;
                self.file.write_all_at(&mark.to_bytes(lineage), SECTOR as u64 * (1 + mark.count % 2))
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
