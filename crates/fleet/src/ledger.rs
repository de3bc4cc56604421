//! The ledger: which units of a job are done, and by whom. The one truth of a job.
//!
//! Units are numbers from 1 on; what is done is an interval set, as in the map of a scan. On disk it is a journal of records of
//! [`RECORD`] bytes, each with a CRC-32, appended and forced to disk before anybody is told that a unit counts. A record that was
//! torn or damaged is left out, it alone: what it said is done again, and [`Standing::damage`] says where. The next record is found
//! wherever it begins, so that bytes that are missing cost no more. `docs/formats/ledger.md` has the format.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use warpsmith_files::{Locked, Sharing};
use warpsmith_store::{Interval, IntervalSet, U256};

use crate::error::{Error, Result};
use crate::id::JobId;

/// Bytes of a record, and of the head.
pub const RECORD: usize = 48;

/// Records of a journal, at most: 50 MB. When it is longer, the older half of it becomes intervals, of which nobody knows any more who
/// did what: a worker that is caught after that keeps what it did so long ago.
const MOST_RECORDS: u64 = 1 << 20;

const MAGIC: &[u8; 8] = b"wsfleet2";

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// Units are done.
    Done { worker: u32, first: u64, count: u64, keys: u64, epoch: u64 },
    /// Nothing that this worker did before counts.
    Revoked { worker: u32, epoch: u64 },
    /// A coordinator begins. Records of lower epochs that follow were written by one that had been replaced, and do not count.
    Began { epoch: u64 },
    /// Numbers up to this one may be in somebody's hands.
    Marked { upto: u64, epoch: u64 },
    /// Units were done so long ago that nobody knows by whom.
    Settled { first: u64, count: u64, keys: u128, epoch: u64 },
}

/// The most candidates of one record of settled units: 96 bits.
const MOST_KEYS: u128 = (1 << 96) - 1;

impl Entry {
    fn bytes(&self, job: JobId) -> [u8; RECORD] {
        let (kind, worker, first, count, keys, epoch) = match *self {
            Entry::Done { worker, first, count, keys, epoch } => (1, worker, first, count, keys, epoch),
            Entry::Revoked { worker, epoch } => (2, worker, 0, 0, 0, epoch),
            Entry::Began { epoch } => (3, 0, 0, 0, 0, epoch),
            Entry::Marked { upto, epoch } => (4, 0, upto, 0, 0, epoch),
            Entry::Settled { first, count, keys, epoch } => (5, 0, first, count, keys as u64, epoch),
        };
        let mut bytes = [0; RECORD];
        if let Entry::Settled { keys, .. } = self {
            bytes[40..44].copy_from_slice(&((keys >> 64) as u32).to_le_bytes());
        }
        bytes[..4].copy_from_slice(&u32::to_le_bytes(kind));
        bytes[4..8].copy_from_slice(&worker.to_le_bytes());
        for (at, number) in [(8, first), (16, count), (24, keys), (32, epoch)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        seal(job, &mut bytes);
        bytes
    }

    fn read(job: JobId, bytes: &[u8]) -> Option<Entry> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        // Most of what is none shows here, without its checksum.
        if !(1..=5).contains(&word(0)) || checksum(job, bytes) != word(RECORD - 4) {
            return None;
        }
        let (worker, first, count, keys, epoch) = (word(4), long(8), long(16), long(24), long(32));
        let is_interval = first > 0 && count > 0 && first.checked_add(count - 1).is_some();
        match word(0) {
            1 if is_interval => Some(Entry::Done { worker, first, count, keys, epoch }),
            2 => Some(Entry::Revoked { worker, epoch }),
            3 => Some(Entry::Began { epoch }),
            4 => Some(Entry::Marked { upto: first, epoch }),
            5 if is_interval => {
                let keys = u128::from(word(40)) << 64 | u128::from(keys);
                Some(Entry::Settled { first, count, keys, epoch })
            }
            _ => None,
        }
    }
}

/// The checksum of a record: of the job's name and of all bytes before it. A record of another job is none of this one.
fn checksum(job: JobId, record: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(job.as_bytes());
    sum.update(&record[..RECORD - 4]);
    sum.finalize()
}

fn seal(job: JobId, record: &mut [u8; RECORD]) {
    let sum = checksum(job, record);
    record[RECORD - 4..].copy_from_slice(&sum.to_le_bytes());
}

/// Stretches of bytes that are no records, of which no more than this are named.
const MAX_NAMED: usize = 8;

/// Bytes of a ledger that are no records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of stretches of them.
    pub stretches: u64,
    /// The first stretches: where each begins in the file, and how long it is.
    pub named: Vec<(u64, u64)>,
}

impl Damage {
    fn add(&mut self, at: u64, length: u64) {
        self.stretches += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push((at, length));
        }
    }

    /// Returns a sentence about a damaged file; none if it is whole.
    pub fn text(&self, path: &Path) -> Option<String> {
        if self.stretches == 0 {
            return None;
        }
        let named: Vec<String> =
            self.named.iter().map(|(at, length)| format!("{length} bytes from byte {at} on")).collect();
        let more = self.stretches - self.named.len() as u64;
        let more = if more > 0 { format!(" and {more} other places") } else { String::new() };
        Some(format!(
            "{}: {}{more} are damaged; the units recorded there are done again, all others count",
            path.display(),
            named.join(", ")
        ))
    }
}

/// What a job has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    done: IntervalSet,
    /// Units that are done.
    pub units: u64,
    /// Candidates of units that are done.
    pub keys: u128,
    /// Numbers up to this one may be in somebody's hands.
    pub marked: u64,
    /// Of the last coordinator.
    pub epoch: u64,
    /// What could not be read.
    pub damage: Damage,
}

fn interval(first: u64, count: u64) -> Interval {
    Interval::starting(U256::from(first), U256::from(count)).expect("units are numbers from 1 on")
}

impl Standing {
    /// Whether a unit is done.
    pub fn is_done(&self, unit: u64) -> bool {
        unit > 0 && self.done.contains(U256::from(unit))
    }

    /// Whether any of so many units from this one on is done.
    pub fn is_any_done(&self, first: u64, count: u64) -> bool {
        first > 0 && count > 0 && self.done.count_in(&interval(first, count)) != U256::ZERO
    }

    /// The units that are done, as the fewest intervals, both ends included.
    pub fn intervals(&self) -> impl Iterator<Item = (u64, u64)> {
        self.done.iter().map(|known| (known.first().as_u64(), known.last().as_u64()))
    }

    /// The lowest units from `from` to `last` that are not done: where they begin, and how many in a row.
    pub fn gap(&self, from: u64, last: u64) -> Option<(u64, u64)> {
        let within = Interval::new(U256::from(from), U256::from(last))?;
        let gap = self.done.first_gap(&within)?;
        Some((gap.first().as_u64(), gap.count().as_u64()))
    }
}

/// Reads a journal. What a worker did before it was revoked does not count, so that is found out first.
struct Replay {
    standing: Standing,
    /// The position of the last revocation of each worker.
    revoked: HashMap<u32, u64>,
    /// Records after the head.
    records: u64,
    /// Where the last whole record ends.
    end: u64,
}

impl Replay {
    fn of(file: &mut File, path: &Path, job: JobId) -> Result<Replay> {
        Replay::until(file, path, job, u64::MAX)
    }

    /// The same of the records up to this one. What a worker did does not count if it was revoked later, either.
    fn until(file: &mut File, path: &Path, job: JobId, last: u64) -> Result<Replay> {
        let (standing, revoked) = (Standing::default(), HashMap::new());
        let mut replay = Replay { standing, revoked, records: 0, end: 0 };
        let mut epoch = 0;
        let scanned = records(file, path, job, |at, entry| {
            replay.records = at;
            if let Entry::Revoked { worker, epoch: of } = entry
                && of >= epoch
            {
                replay.revoked.insert(worker, at);
            }
            if let Entry::Began { epoch: of } = entry {
                epoch = epoch.max(of);
            }
        })?;
        (replay.standing.damage, replay.end) = (scanned.damage, scanned.end);
        records(file, path, job, |at, entry| {
            if at <= last {
                replay.take(at, entry);
            }
        })?;
        Ok(replay)
    }

    /// Workers of whom nothing counts.
    fn revoked(&self) -> Vec<u32> {
        let mut workers: Vec<u32> = self.revoked.keys().copied().collect();
        workers.sort_unstable();
        workers
    }

    fn take(&mut self, at: u64, entry: Entry) {
        let standing = &mut self.standing;
        match entry {
            Entry::Began { epoch } => standing.epoch = standing.epoch.max(epoch),
            Entry::Done { worker, first, count, keys, epoch } if epoch >= standing.epoch => {
                if self.revoked.get(&worker).is_none_or(|revoked| *revoked < at) {
                    note(standing, first, count, u128::from(keys));
                }
            }
            Entry::Marked { upto, epoch } if epoch >= standing.epoch => {
                standing.marked = standing.marked.max(upto);
            }
            Entry::Settled { first, count, keys, .. } => note(standing, first, count, keys),
            Entry::Done { .. } | Entry::Marked { .. } | Entry::Revoked { .. } => {}
        }
    }
}

/// Adds units that are done; what is known counts once.
fn note(standing: &mut Standing, first: u64, count: u64, keys: u128) {
    let new = standing.done.insert(interval(first, count)).as_u64();
    standing.units += new;
    if new == count {
        standing.keys += keys;
    }
    standing.marked = standing.marked.max(first + (count - 1));
}

/// What reading all records of a file came to.
struct Scanned {
    damage: Damage,
    /// Where the last whole record ends.
    end: u64,
    /// Whether the head was there.
    has_head: bool,
}

/// Reads every record after the head, each with its position among them. Where bytes are no record, the next one is looked for byte by
/// byte. What is left of a record at the end of the file is no damage: it was never acknowledged.
fn records(file: &mut File, path: &Path, job: JobId, mut take: impl FnMut(u64, Entry)) -> Result<Scanned> {
    let head = head(job);
    file.seek(SeekFrom::Start(0)).map_err(Error::io(path))?;
    let mut reader = std::io::BufReader::with_capacity(1 << 16, file);
    let mut scanned = Scanned { damage: Damage::default(), end: 0, has_head: false };
    // What is looked at, how much of it is filled, and where in the file it begins.
    let (mut bytes, mut filled, mut start, mut position) = ([0; RECORD], 0, 0, 0);
    loop {
        while filled < RECORD {
            match reader.read(&mut bytes[filled..]).map_err(Error::io(path))? {
                0 => break,
                more => filled += more,
            }
        }
        if filled < RECORD {
            break;
        }
        let entry = Entry::read(job, &bytes);
        let is_head = !scanned.has_head && position == 0 && bytes == head;
        if entry.is_none() && !is_head {
            bytes.copy_within(1.., 0);
            (filled, start) = (RECORD - 1, start + 1);
            continue;
        }
        if start > scanned.end {
            scanned.damage.add(scanned.end, start - scanned.end);
        }
        scanned.has_head |= is_head;
        if let Some(entry) = entry {
            position += 1;
            take(position, entry);
        }
        start += RECORD as u64;
        (scanned.end, filled) = (start, 0);
    }
    let length = start + filled as u64;
    if length - scanned.end >= RECORD as u64 {
        scanned.damage.add(scanned.end, length - scanned.end);
    } else if !scanned.has_head && scanned.damage.stretches == 0 {
        scanned.damage.add(0, RECORD as u64);
    }
    Ok(scanned)
}

/// Refuses a file that is no ledger of this job. A damaged head alone is none of these: each record belongs to its job.
fn refuse_others(file: &mut File, path: &Path, job: JobId) -> Result<()> {
    let mut found = [0; RECORD];
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut found));
    if read.is_ok() && found == head(job) {
        return Ok(());
    }
    // The head of another job holds its own checksum.
    let other: Option<JobId> = found[8..40].try_into().ok().map(JobId);
    let is_others = other.is_some_and(|other| found == head(other));
    if is_others {
        return Err(Error::corrupt(path, "it is the ledger of another job"));
    }
    match records(file, path, job, |_, _| {})?.end {
        0 => Err(Error::corrupt(path, "it is no ledger of this job: it has no record of it")),
        _ => Ok(()),
    }
}

/// The ledger of one job, held by one coordinator.
#[derive(Debug)]
pub struct Ledger {
    held: Locked,
    path: PathBuf,
    job: JobId,
    standing: Standing,
    /// Workers of whom nothing counts.
    revoked: Vec<u32>,
    /// Records that are not on disk yet.
    unsynced: Vec<u8>,
    /// Records that are.
    records: u64,
    /// How many there may be, and how many there were when it was made short.
    most: u64,
    shortened: u64,
}

impl Ledger {
    /// The ledger at this path, made if there is none, for a coordinator of this epoch. Refused if it is of another job, if another
    /// process has it, or if a coordinator of this epoch or a later one has had it.
    pub fn open(path: &Path, job: JobId, epoch: u64) -> Result<Ledger> {
        let head = head(job);
        let held = match Locked::create(path, Sharing::Secret, |file| file.write_all(&head)) {
            Ok(held) => held,
            Err(warpsmith_files::Error::Exists { .. }) => Locked::open(path, Sharing::Secret)?,
            Err(error) => return Err(error.into()),
        };
        let mut file = held.file().try_clone().map_err(Error::io(path))?;
        refuse_others(&mut file, path, job)?;
        let replay = Replay::of(&mut file, path, job)?;
        let revoked = replay.revoked();
        let Replay { standing, records, end, .. } = replay;
        if standing.epoch >= epoch {
            return Err(Error::corrupt(
                path,
                format!("a coordinator of epoch {} has had it, this one is of {epoch}", standing.epoch),
            ));
        }
        // A record that was cut short by a crash goes; what is longer is damage, and stays to be looked at.
        let length = file.seek(SeekFrom::End(0)).map_err(Error::io(path))?;
        if length - end < RECORD as u64 {
            file.set_len(end).map_err(Error::io(path))?;
        }
        let mut ledger = Ledger {
            held,
            path: path.to_owned(),
            job,
            standing,
            revoked,
            unsynced: Vec::new(),
            records,
            most: MOST_RECORDS,
            shortened: 0,
        };
        ledger.standing.epoch = epoch;
        ledger.unsynced.extend(Entry::Began { epoch }.bytes(job));
        ledger.sync()?;
        Ok(ledger)
    }

    /// How many records it may have before it is made short.
    pub fn keep_at_most(&mut self, records: u64) {
        self.most = records.max(2);
    }

    /// What the job has come to; what is not on disk yet is in it.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Returns what of the file is damaged, as a sentence; none if it is whole.
    pub fn damage(&self) -> Option<String> {
        self.standing.damage.text(&self.path)
    }

    /// Workers of whom nothing counts.
    pub fn revoked(&self) -> &[u32] {
        &self.revoked
    }

    /// Notes that units are done. Nobody may be told before [`Ledger::sync`]. Says whether that is new; if it is not, nothing is
    /// noted.
    pub fn done(&mut self, worker: u32, first: u64, count: u64, keys: u64) -> bool {
        let known = self.standing.done.count_in(&interval(first, count));
        if known != U256::ZERO || self.revoked.contains(&worker) {
            return false;
        }
        let epoch = self.standing.epoch;
        note(&mut self.standing, first, count, u128::from(keys));
        self.unsynced.extend(Entry::Done { worker, first, count, keys, epoch }.bytes(self.job));
        true
    }

    /// Notes that numbers up to this one may be in somebody's hands, so that a coordinator after this one begins behind them.
    pub fn mark(&mut self, upto: u64) {
        if upto > self.standing.marked {
            self.standing.marked = upto;
            self.unsynced.extend(Entry::Marked { upto, epoch: self.standing.epoch }.bytes(self.job));
        }
    }

    /// Nothing that this worker did counts any more: its units are open again. Reads the whole journal, which is as rare as it is
    /// that somebody cheats.
    pub fn revoke(&mut self, worker: u32) -> Result<()> {
        let (marked, epoch) = (self.standing.marked, self.standing.epoch);
        self.unsynced.extend(Entry::Revoked { worker, epoch }.bytes(self.job));
        self.sync()?;
        let mut file = self.held.file().try_clone().map_err(Error::io(&self.path))?;
        let replay = Replay::of(&mut file, &self.path, self.job)?;
        (self.revoked, self.standing) = (replay.revoked(), replay.standing);
        self.standing.marked = self.standing.marked.max(marked);
        Ok(())
    }

    /// Forces to disk what was noted since the last time: many units at once cost as much as one.
    pub fn sync(&mut self) -> Result<()> {
        if self.unsynced.is_empty() {
            return Ok(());
        }
        let mut file = self.held.file();
        let at = file.seek(SeekFrom::End(0)).map_err(Error::io(&self.path))?;
        let written = file.write_all(&self.unsynced).and_then(|()| file.sync_data());
        if let Err(source) = written {
            // What was written in part is taken back, so that records stay in place.
            let _ = file.set_len(at);
            return Err(Error::Io { path: self.path.clone(), source });
        }
        self.records += (self.unsynced.len() / RECORD) as u64;
        self.unsynced.clear();
        // Where intervals take most of it, it is not tried again at once.
        if self.records > self.most && self.records > 2 * self.shortened {
            self.shorten()?;
        }
        Ok(())
    }

    /// Makes intervals of the older half of the journal. The new one takes the old one's place whole, or not at all.
    fn shorten(&mut self) -> Result<()> {
        let mut file = self.held.file().try_clone().map_err(Error::io(&self.path))?;
        let last = self.records - self.most / 2;
        let before = Replay::until(&mut file, &self.path, self.job, last)?;
        let Standing { marked, epoch, .. } = before.standing;
        let mut bytes: Vec<u8> = head(self.job).to_vec();
        bytes.extend(Entry::Began { epoch }.bytes(self.job));
        // All candidates are told with the first interval: which has how many, nobody asks.
        let mut keys = before.standing.keys.min(MOST_KEYS);
        for (first, end) in before.standing.intervals() {
            let keys = std::mem::take(&mut keys);
            bytes.extend(Entry::Settled { first, count: end - first + 1, keys, epoch }.bytes(self.job));
        }
        bytes.extend(Entry::Marked { upto: marked, epoch }.bytes(self.job));
        // What was revoked among the newer records is said there.
        for (&worker, _) in before.revoked.iter().filter(|(_, at)| **at <= last) {
            bytes.extend(Entry::Revoked { worker, epoch }.bytes(self.job));
        }
        records(&mut file, &self.path, self.job, |at, entry| {
            if at > last {
                bytes.extend(entry.bytes(self.job));
            }
        })?;
        self.held.replace(|file| file.write_all(&bytes))?;
        self.records = (bytes.len() / RECORD) as u64 - 1;
        self.shortened = self.records;
        Ok(())
    }
}

fn head(job: JobId) -> [u8; RECORD] {
    let mut head = [0; RECORD];
    head[..8].copy_from_slice(MAGIC);
    head[8..40].copy_from_slice(job.as_bytes());
    seal(job, &mut head);
    head
}

/// What a ledger says, without taking it from whoever has it.
pub fn look(path: &Path, job: JobId) -> Result<Standing> {
    let mut file = warpsmith_files::open(path, Sharing::Secret)?;
    refuse_others(&mut file, path, job)?;
    Ok(Replay::of(&mut file, path, job)?.standing)
}

#[cfg(test)]
mod tests;
