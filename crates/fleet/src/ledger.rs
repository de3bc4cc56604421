//! The ledger: which units of a job are done, and by whom. The one truth of a job.
//!
//! Units are numbers from 1 on; what is done is an interval set, as in the map of a scan. On disk it is a journal of records of
//! [`RECORD`] bytes, each with a CRC-32, appended and forced to disk before anybody is told that a unit counts. A record that was
//! torn or damaged is left out, it alone: what it said is done again. `docs/formats/ledger.md` has the format.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use warpsmith_files::{Locked, Sharing};
use warpsmith_store::{Interval, IntervalSet, U256};

use crate::error::{Error, Result};
use crate::job::JobId;

/// Bytes of a record, and of the head.
pub const RECORD: usize = 48;

const MAGIC: &[u8; 8] = b"wsfleet1";

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
}

impl Entry {
    fn bytes(&self) -> [u8; RECORD] {
        let (kind, worker, first, count, keys, epoch) = match *self {
            Entry::Done { worker, first, count, keys, epoch } => (1, worker, first, count, keys, epoch),
            Entry::Revoked { worker, epoch } => (2, worker, 0, 0, 0, epoch),
            Entry::Began { epoch } => (3, 0, 0, 0, 0, epoch),
            Entry::Marked { upto, epoch } => (4, 0, upto, 0, 0, epoch),
        };
        let mut bytes = [0; RECORD];
        bytes[..4].copy_from_slice(&u32::to_le_bytes(kind));
        bytes[4..8].copy_from_slice(&worker.to_le_bytes());
        for (at, number) in [(8, first), (16, count), (24, keys), (32, epoch)] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[..RECORD - 4]);
        bytes[RECORD - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Entry> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if crc32fast::hash(&bytes[..RECORD - 4]) != word(RECORD - 4) {
            return None;
        }
        let (worker, first, count, keys, epoch) = (word(4), long(8), long(16), long(24), long(32));
        match word(0) {
            1 if first > 0 && count > 0 && first.checked_add(count - 1).is_some() => {
                Some(Entry::Done { worker, first, count, keys, epoch })
            }
            2 => Some(Entry::Revoked { worker, epoch }),
            3 => Some(Entry::Began { epoch }),
            4 => Some(Entry::Marked { upto: first, epoch }),
            _ => None,
        }
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
    /// Records that could not be read.
    pub damaged: u64,
}

fn interval(first: u64, count: u64) -> Interval {
    Interval::starting(U256::from(first), U256::from(count)).expect("units are numbers from 1 on")
}

impl Standing {
    /// Whether a unit is done.
    pub fn is_done(&self, unit: u64) -> bool {
        unit > 0 && self.done.contains(U256::from(unit))
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

/// Reads a journal from its second record on. What a worker did before it was revoked does not count, so that is found out first.
struct Replay {
    standing: Standing,
    /// The position of the last revocation of each worker.
    revoked: HashMap<u32, u64>,
}

impl Replay {
    fn of(file: &mut File, path: &Path) -> Result<(Standing, Vec<u32>)> {
        let mut replay = Replay { standing: Standing::default(), revoked: HashMap::new() };
        let mut epoch = 0;
        records(file, path, |at, entry| {
            if let Some(Entry::Revoked { worker, epoch: of }) = entry
                && of >= epoch
            {
                replay.revoked.insert(worker, at);
            }
            if let Some(Entry::Began { epoch: of }) = entry {
                epoch = epoch.max(of);
            }
        })?;
        records(file, path, |at, entry| replay.take(at, entry))?;
        let mut workers: Vec<u32> = replay.revoked.into_keys().collect();
        workers.sort_unstable();
        Ok((replay.standing, workers))
    }

    fn take(&mut self, at: u64, entry: Option<Entry>) {
        let standing = &mut self.standing;
        match entry {
            None => standing.damaged += 1,
            Some(Entry::Began { epoch }) => standing.epoch = standing.epoch.max(epoch),
            Some(Entry::Done { worker, first, count, keys, epoch }) if epoch >= standing.epoch => {
                if self.revoked.get(&worker).is_none_or(|revoked| *revoked < at) {
                    note(standing, first, count, keys);
                }
            }
            Some(Entry::Marked { upto, epoch }) if epoch >= standing.epoch => {
                standing.marked = standing.marked.max(upto);
            }
            Some(Entry::Done { .. } | Entry::Marked { .. } | Entry::Revoked { .. }) => {}
        }
    }
}

/// Adds units that are done; what is known counts once.
fn note(standing: &mut Standing, first: u64, count: u64, keys: u64) -> bool {
    let new = standing.done.insert(interval(first, count)).as_u64();
    standing.units += new;
    if new == count {
        standing.keys += u128::from(keys);
    }
    standing.marked = standing.marked.max(first + (count - 1));
    new == count
}

/// Every record after the head with its position; none where it cannot be read. A torn end is none too.
fn records(file: &mut File, path: &Path, mut take: impl FnMut(u64, Option<Entry>)) -> Result<()> {
    file.seek(SeekFrom::Start(RECORD as u64)).map_err(Error::io(path))?;
    let mut reader = std::io::BufReader::with_capacity(1 << 16, file);
    for at in 1.. {
        let mut bytes = [0; RECORD];
        let mut filled = 0;
        while filled < RECORD {
            match reader.read(&mut bytes[filled..]).map_err(Error::io(path))? {
                0 => break,
                more => filled += more,
            }
        }
        match filled {
            0 => break,
            RECORD => take(at, Entry::read(&bytes)),
            _ => take(at, None),
        }
    }
    Ok(())
}

/// The ledger of one job, held by one coordinator.
#[derive(Debug)]
pub struct Ledger {
    held: Locked,
    path: PathBuf,
    standing: Standing,
    /// Workers of whom nothing counts.
    revoked: Vec<u32>,
    /// Records that are not on disk yet.
    unsynced: Vec<u8>,
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
        let mut found = [0; RECORD];
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut found)).map_err(Error::io(path))?;
        if found[..8] != *MAGIC {
            return Err(Error::corrupt(path, "it is no ledger of a fleet"));
        }
        if found != head {
            return Err(Error::corrupt(path, "it is the ledger of another job, or its head is damaged"));
        }
        let (standing, revoked) = Replay::of(&mut file, path)?;
        if standing.epoch >= epoch {
            return Err(Error::corrupt(
                path,
                format!("a coordinator of epoch {} has had it, this one is of {epoch}", standing.epoch),
            ));
        }
        // A torn end would put all that follows out of place.
        let length = file.seek(SeekFrom::End(0)).map_err(Error::io(path))?;
        let whole = length - length % RECORD as u64;
        file.set_len(whole).map_err(Error::io(path))?;
        let mut ledger = Ledger { held, path: path.to_owned(), standing, revoked, unsynced: Vec::new() };
        ledger.standing.epoch = epoch;
        ledger.unsynced.extend(Entry::Began { epoch }.bytes());
        ledger.sync()?;
        Ok(ledger)
    }

    /// What the job has come to; what is not on disk yet is in it.
    pub fn standing(&self) -> &Standing {
        &self.standing
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
        note(&mut self.standing, first, count, keys);
        self.unsynced.extend(Entry::Done { worker, first, count, keys, epoch }.bytes());
        true
    }

    /// Notes that numbers up to this one may be in somebody's hands, so that a coordinator after this one begins behind them.
    pub fn mark(&mut self, upto: u64) {
        if upto > self.standing.marked {
            self.standing.marked = upto;
            self.unsynced.extend(Entry::Marked { upto, epoch: self.standing.epoch }.bytes());
        }
    }

    /// Nothing that this worker did counts any more: its units are open again. Reads the whole journal, which is as rare as it is
    /// that somebody cheats.
    pub fn revoke(&mut self, worker: u32) -> Result<()> {
        let (marked, epoch) = (self.standing.marked, self.standing.epoch);
        self.unsynced.extend(Entry::Revoked { worker, epoch }.bytes());
        self.sync()?;
        let mut file = self.held.file().try_clone().map_err(Error::io(&self.path))?;
        (self.standing, self.revoked) = Replay::of(&mut file, &self.path)?;
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
        self.unsynced.clear();
        Ok(())
    }
}

fn head(job: JobId) -> [u8; RECORD] {
    let mut head = [0; RECORD];
    head[..8].copy_from_slice(MAGIC);
    head[8..40].copy_from_slice(job.as_bytes());
    let sum = crc32fast::hash(&head[..RECORD - 4]);
    head[RECORD - 4..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// What a ledger says, without taking it from whoever has it.
pub fn look(path: &Path, job: JobId) -> Result<Standing> {
    let mut file = warpsmith_files::open(path, Sharing::Secret)?;
    let mut found = [0; RECORD];
    file.read_exact(&mut found).map_err(Error::io(path))?;
    if found != head(job) {
        return Err(Error::corrupt(path, "it is the ledger of another job, or its head is damaged"));
    }
    Ok(Replay::of(&mut file, path)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId([3; 32]);

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        (folder, path)
    }

    fn state(ledger: &Ledger) -> (u64, u128, Vec<(u64, u64)>) {
        let standing = ledger.standing();
        (standing.units, standing.keys, standing.intervals().collect())
    }

    #[test]
    fn what_was_synced_is_there_again() {
        let (_folder, path) = folder();
        let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
        assert!(ledger.done(7, 1, 1, 100) && ledger.done(8, 3, 2, 200) && ledger.done(7, 2, 1, 100));
        assert!(!ledger.done(9, 3, 1, 50), "each counts once");
        assert!(!ledger.done(9, 4, 2, 50), "not even in part");
        ledger.mark(900);
        ledger.sync().expect("synced");
        let before = state(&ledger);
        assert_eq!(before, (4, 400, vec![(1, 4)]));
        assert!(Ledger::open(&path, JOB, 2).is_err(), "held");
        assert_eq!(look(&path, JOB).expect("read").units, 4);
        drop(ledger);
        let again = Ledger::open(&path, JOB, 2).expect("opened");
        assert_eq!(state(&again), before);
        assert_eq!((again.standing().marked, again.standing().damaged), (900, 0));
        assert_eq!(again.standing().gap(1, 10), Some((5, 6)));
        drop(again);
        let why = Ledger::open(&path, JOB, 2).unwrap_err().to_string();
        assert!(why.contains("epoch 2"), "{why}");
        assert!(Ledger::open(&path, JobId([4; 32]), 9).unwrap_err().to_string().contains("another job"));
    }

    /// Cut anywhere and flipped anywhere, a journal loses the records that were hit and no others.
    #[test]
    fn damage_costs_what_it_hits() {
        let (_folder, path) = folder();
        let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
        for unit in 1..=40 {
            ledger.done(1, 2 * unit, 1, 1);
        }
        ledger.sync().expect("synced");
        drop(ledger);
        let whole = std::fs::read(&path).expect("there");
        assert_eq!(whole.len(), (1 + 1 + 40) * RECORD);
        for cut in (RECORD..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..cut]).expect("written");
            let mut ledger = Ledger::open(&path, JOB, 2).expect("opened");
            let kept = (cut / RECORD).saturating_sub(2) as u64;
            assert_eq!(ledger.standing().units, kept, "cut at {cut}");
            // And it goes on from there.
            assert!(ledger.done(1, 1001, 1, 1));
            ledger.sync().expect("synced");
            drop(ledger);
            assert_eq!(look(&path, JOB).expect("read").units, kept + 1);
        }
        for at in (2 * RECORD..whole.len()).step_by(11) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).expect("written");
            let standing = look(&path, JOB).expect("read");
            assert_eq!((standing.units, standing.damaged), (39, 1), "flipped at {at}");
        }
        std::fs::write(&path, b"something else, quite long enough to be a head of one").expect("written");
        assert!(Ledger::open(&path, JOB, 3).unwrap_err().to_string().contains("no ledger"));
    }

    /// A million units of two hundred devices, done out of order: neither ledger nor leases grow.
    #[test]
    fn memory_is_flat() {
        use crate::leases::{Held, Holder, Leases};
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
        };
        let (_folder, path) = folder();
        let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
        let mut leases = Leases::default();
        let mut before = 0;
        for unit in 1..=1_000_000u64 {
            let holder = Some(Holder { worker: (unit % 200) as u32, slot: 0 });
            leases.give(unit, Held { holder, count: 1, until: std::time::Duration::ZERO });
            // The one of 200 before comes back, odd ones before even ones.
            if let Some(done) = (unit ^ 1).checked_sub(200).filter(|done| *done > 0) {
                leases.release(done, 1);
                assert!(ledger.done((done % 200) as u32, done, 1, 1));
            }
            if unit % 10_000 == 0 {
                ledger.sync().expect("synced");
            }
            if unit == 100_000 {
                before = resident();
            }
        }
        assert!(leases.len() <= 202 && ledger.standing().intervals().count() <= 3);
        let grown = resident().saturating_sub(before);
        // Other tests run beside this one.
        assert!(grown < 64 << 20, "{grown} bytes");
    }

    #[test]
    fn a_coordinator_that_was_replaced_writes_nothing_that_counts() {
        let (_folder, path) = folder();
        let mut ledger = Ledger::open(&path, JOB, 5).expect("made");
        ledger.done(1, 1, 1, 1);
        ledger.sync().expect("synced");
        drop(ledger);
        drop(Ledger::open(&path, JOB, 6).expect("opened"));
        // As one would that was paused before it was replaced, and has the file open.
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("there");
        let late = Entry::Done { worker: 1, first: 2, count: 1, keys: 1, epoch: 5 };
        file.write_all(&late.bytes()).expect("written");
        assert_eq!(look(&path, JOB).expect("read").intervals().collect::<Vec<_>>(), [(1, 1)]);
    }

    #[test]
    fn what_a_cheat_did_is_open_again_and_what_others_did_is_not() {
        let (_folder, path) = folder();
        let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
        for unit in 1..=100 {
            ledger.done((unit % 4) as u32, unit, 1, 10);
        }
        ledger.revoke(2).expect("revoked");
        assert_eq!((ledger.standing().units, ledger.standing().keys), (75, 750));
        assert_eq!(ledger.standing().gap(1, 100), Some((2, 1)));
        assert!(!ledger.done(2, 2, 1, 10), "and nothing it does later counts");
        assert!(ledger.done(3, 2, 1, 10), "another can do it");
        ledger.sync().expect("synced");
        drop(ledger);
        let ledger = Ledger::open(&path, JOB, 2).expect("opened");
        assert_eq!((ledger.standing().units, ledger.revoked()), (76, &[2][..]));
        assert!(ledger.standing().marked >= 100);
    }
}
