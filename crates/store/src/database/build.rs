//! Building a database: lines to entries on all threads, sorted runs beside the database, one merge into LMDB.
//!
//! All of it happens in a folder of another name, which gets its own when everything is on disk. So a database is whole
//! or not there, and what a kill leaves behind is cleared away by the next build.
//!
//! Memory is bounded by [`BuildOptions::memory`] and a few megabytes. Disk: about 22 bytes an address for the runs (30
//! with amounts) besides the database's 32 (40).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded};
use heed::{EnvFlags, EnvOpenOptions, PutFlags};

use super::about::Summary;
use super::sort::Runs;
use super::{ABOUT, About, DATA, Database, RECORDS, Table, foreign};
use crate::Error;
use crate::durable::{Lock, sync_folder_of, with_suffix};
use crate::input::{BadLine, Block, Line, Report, read_blocks, read_line};
use crate::record::Entry;

/// How to build a database.
pub struct BuildOptions<'a> {
    /// Whether a line that is no address ends the build.
    pub strict: bool,
    /// Threads that read lines and sort.
    pub threads: usize,
    /// Bytes for sorting, over all threads.
    pub memory: usize,
    /// Ends the build soon when set.
    pub stop: &'a AtomicBool,
    /// Is told now and then how far the build is, by any thread.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How much of it is done: bytes of the sources while reading, addresses while writing.
    pub done: u64,
    /// Of how much.
    pub total: u64,
    /// Addresses read so far.
    pub addresses: u64,
}

/// What a build is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading sources.
    Reading,
    /// Writing the database.
    Writing,
}

/// A database that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// What is in it.
    pub about: About,
    /// What became of the sources' lines.
    pub report: Report,
}

/// Records in one transaction of LMDB: what it keeps in memory before it writes.
const TRANSACTION: u64 = 1 << 20;

/// What workers are given.
enum Work {
    Lines(Block),
    /// Of a database, and the numbers of those that are none.
    Entries(PathBuf, Vec<Entry>, Vec<u64>),
}

impl Database {
    /// Builds a database at `path`, where nothing may be yet, from files of addresses (one a line, or with an amount in a
    /// second column; gzip and Zstandard too) and from databases of BitcoinAddressFinder and our own. Of addresses that
    /// occur more than once the largest amount is kept.
    pub fn build(path: &Path, sources: &[PathBuf], options: &BuildOptions) -> Result<Built, Error> {
        let lock = Lock::take(path)?;
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        let part = with_suffix(path, ".part");
        let clear = || match fs::remove_dir_all(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &part)(error))
            }
            _ => Ok(()),
        };
        clear()?;
        fs::create_dir(&part).map_err(Error::io("make the folder", &part))?;
        let built = fill(&part, sources, options).and_then(|built| {
            fs::rename(&part, path).map_err(Error::io("name the database", path))?;
            sync_folder_of(path)?;
            Ok(built)
        });
        if built.is_err() {
            // The first error is the one to tell.
            let _ = clear();
        }
        drop(lock);
        built
    }
}

fn fill(part: &Path, sources: &[PathBuf], options: &BuildOptions) -> Result<Built, Error> {
    let runs = Runs::new(part);
    let mut report = read(&runs, sources, options)?;
    if report.addresses == 0 {
        let path = sources.first().cloned().unwrap_or_else(|| part.to_owned());
        return Err(Error::NoAddress { path });
    }
    let (about, duplicates) = write(part, runs, report.addresses - report.duplicates, options)?;
    report.duplicates += duplicates;
    // LMDB forced its file to disk; now its name.
    sync_folder_of(&part.join(DATA))?;
    Ok(Built { about, report })
}

/// Reads all sources into sorted runs.
fn read(runs: &Runs, sources: &[PathBuf], options: &BuildOptions) -> Result<Report, Error> {
    let total = sources.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum();
    let (done, addresses) = (AtomicU64::new(0), AtomicU64::new(0));
    let threads = options.threads.max(1);
    // The first error of any thread; the others end early then.
    let failure = Mutex::new(None);
    let fail = |error: Error| {
        failure.lock().expect("no thread panics with it").get_or_insert(error);
    };
    let is_over = || {
        options.stop.load(Ordering::Relaxed) || failure.lock().expect("no thread panics with it").is_some()
    };
    let capacity = (options.memory / threads / size_of::<Entry>()).max(1 << 10);
    let (sender, receiver) = bounded(2 * threads);
    let report = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let receiver = receiver.clone();
                let (addresses, fail) = (&addresses, &fail);
                scope.spawn(move || work(receiver, runs, capacity, options.strict, addresses, fail))
            })
            .collect();
        drop(receiver);
        let send = |work: Work| {
            let (done, addresses) = (done.load(Ordering::Relaxed), addresses.load(Ordering::Relaxed));
            (options.progress)(Progress { stage: Stage::Reading, done, total, addresses });
            // It fails when all workers have ended, and then something else did before.
            !is_over() && sender.send(work).is_ok()
        };
        for path in sources {
            if is_over() {
                break;
            }
            let read = |count| _ = done.fetch_add(count, Ordering::Relaxed);
            feed(path, read, send).unwrap_or_else(&fail);
        }
        drop(sender);
        let mut report = Report::default();
        for worker in workers {
            report.add(worker.join().expect("a worker does not panic"));
        }
        report
    });
    match failure.into_inner().expect("no thread panics with it") {
        Some(error) => Err(error),
        None if options.stop.load(Ordering::Relaxed) => Err(Error::Stopped),
        None => Ok(report),
    }
}

/// Hands on one source.
fn feed(path: &Path, read: impl Fn(u64), send: impl Fn(Work) -> bool) -> Result<(), Error> {
    match foreign::folder_of(path) {
        Some(folder) => {
            foreign::read(&folder, |entries, wrong| send(Work::Entries(path.to_owned(), entries, wrong)))
        }
        None => read_blocks(path, read, |block| send(Work::Lines(block))),
    }
}

/// Turns what it is given into entries, and entries into runs.
fn work(
    receiver: Receiver<Work>,
    runs: &Runs,
    capacity: usize,
    strict: bool,
    addresses: &AtomicU64,
    fail: &dyn Fn(Error),
) -> Report {
    let mut report = Report::default();
    let mut buffer: Vec<Entry> = Vec::new();
    let mut handle = |work: Work, report: &mut Report| {
        let before = report.addresses;
        let bad = |report: &mut Report, path: &Path, line, reason| {
            let bad = BadLine { path: path.to_owned(), line, reason };
            if strict {
                return Err(Error::BadLine(bad));
            }
            report.add_bad(bad);
            Ok(())
        };
        let mut keep = |report: &mut Report, entry| {
            buffer.push(entry);
            report.addresses += 1;
            if buffer.len() >= capacity {
                report.duplicates += runs.spill(&mut buffer)?;
            }
            Ok(())
        };
        match work {
            Work::Lines(block) => {
                for (number, line) in block.lines() {
                    match read_line(number, line) {
                        Line::Record(record) => keep(report, Entry::new(&record))?,
                        Line::Script => report.scripts += 1,
                        Line::Nothing => {}
                        Line::Bad(reason) => bad(report, &block.path, number, reason)?,
                    }
                }
            }
            Work::Entries(path, entries, wrong) => {
                for entry in entries {
                    keep(report, entry)?;
                }
                for number in wrong {
                    bad(report, &path, number, "this record is none of the database's layout".into())?;
                }
            }
        }
        addresses.fetch_add(report.addresses - before, Ordering::Relaxed);
        Ok(())
    };
    for work in receiver {
        if let Err(error) = handle(work, &mut report) {
            fail(error);
            return report;
        }
    }
    match runs.spill(&mut buffer) {
        Ok(duplicates) => report.duplicates += duplicates,
        Err(error) => fail(error),
    }
    report
}

/// Merges the runs into an LMDB environment. `most` is how many records there can be.
fn write(part: &Path, runs: Runs, most: u64, options: &BuildOptions) -> Result<(About, u64), Error> {
    let failed = || Error::lmdb("write", part);
    // A record takes 64 bytes at most in a full page (8 of LMDB's, 33 and 16 of ours, 2 in the page's index, rounded up,
    // and its share of the page's head); pages of the levels above and pages not yet reused take less than the rest.
    let size = most * 80 + (64 << 20);
    let mut env = EnvOpenOptions::new().read_txn_without_tls();
    env.map_size(size.next_multiple_of(1 << 20) as usize).max_dbs(2);
    // SAFETY: the folder is new and ours by the lock, so no other process has it open. Without syncing, a crash of the
    // system may leave anything in it; it has its temporary name until everything is synced.
    let env = unsafe { env.flags(EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC | EnvFlags::NO_LOCK).open(part) };
    let env = env.map_err(failed())?;
    let mut txn = env.write_txn().map_err(failed())?;
    let records: Table = env.create_database(&mut txn, Some(RECORDS)).map_err(failed())?;
    let about: Table = env.create_database(&mut txn, Some(ABOUT)).map_err(failed())?;

    let mut summary = Summary::default();
    let (sender, receiver) = bounded(8);
    // The merge and LMDB take about as long, so each has a thread.
    let (mut txn, duplicates) = std::thread::scope(|scope| {
        let merge = scope.spawn(move || merge(runs, sender));
        for chunk in receiver {
            for entry in chunk {
                // Each key is above all before, so pages fill up one after the other.
                records
                    .put_with_flags(&mut txn, PutFlags::APPEND, entry.key(), entry.value())
                    .map_err(failed())?;
                summary.add(&entry);
                if summary.count() % TRANSACTION == 0 {
                    txn.commit().map_err(failed())?;
                    txn = env.write_txn().map_err(failed())?;
                }
            }
            if options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let (done, total) = (summary.count(), most);
            (options.progress)(Progress { stage: Stage::Writing, done, total, addresses: most });
        }
        let duplicates = merge.join().expect("the merge does not panic")?;
        Ok((txn, duplicates))
    })?;

    let mut identity = [0; 16];
    getrandom::fill(&mut identity)
        .map_err(|error| Error::io("get random bits for", part)(std::io::Error::other(error)))?;
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let found = summary.finish(identity, created);
    about.put(&mut txn, ABOUT.as_bytes(), found.write().as_bytes()).map_err(failed())?;
    txn.commit().map_err(failed())?;
    env.force_sync().map_err(failed())?;
    env.prepare_for_closing().wait();
    Ok((found, duplicates))
}

/// Sends merged entries in chunks. Ends early when nobody receives any more.
fn merge(runs: Runs, sender: Sender<Vec<Entry>>) -> Result<u64, Error> {
    const CHUNK: usize = 1 << 13;
    let mut chunk = Vec::with_capacity(CHUNK);
    let duplicates = runs.merge(|entry| {
        chunk.push(entry);
        if chunk.len() == CHUNK {
            let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK));
            // Whoever received has an error of its own to tell.
            sender.send(full).map_err(|_| Error::Stopped)?;
        }
        Ok(())
    })?;
    sender.send(chunk).map_err(|_| Error::Stopped)?;
    Ok(duplicates)
}
