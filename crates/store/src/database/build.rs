//! Building a database: lines to entries on all threads, sorted runs in a scratch file, one merge into the database.
//!
//! It is written under another name and gets its own when all of it is on disk, and the scratch file has no name at all. So a
//! database is whole or not there, and what a kill leaves behind is cleared away by the next build. Adding to a database is
//! building another from it, which takes its place.
//!
//! Memory is bounded by [`BuildOptions::memory`], a few megabytes, and the index (98 MB for a billion addresses). Disk:
//! about 22 bytes an address for the runs (30 with amounts) besides the database's 20 (27).

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded};
use warpsmith_files::{Draft, with_suffix};

use super::about::Summary;
use super::layout::{CHUNK, amount_bytes};
use super::scratch::scratch_file;
use super::snapshot::{By, Snapshot};
use super::sort::{Amounts, Runs};
use super::write::Writer;
use super::{About, Database, coins, lmdb, snapshot};
use crate::Error;
use crate::input::{BadLine, Block, Line, Report, blocks_of, read_line, unpacked};
use crate::record::Entry;

/// How to build a database.
pub struct BuildOptions<'a> {
    /// Whether a line that is no address ends the build.
    pub strict: bool,
    /// Threads that read lines and sort.
    pub threads: usize,
    /// Bytes for sorting, over all threads. Adding up the coins of a UTXO set takes half as much besides.
    pub memory: usize,
    /// Ends the build soon when set.
    pub stop: &'a AtomicBool,
    /// Is told now and then how far the build is, by any thread.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// Every line must be an address, every core sorts, in 256 MiB.
impl Default for BuildOptions<'_> {
    fn default() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let threads = available_parallelism().map_or(1, |n| n.get());
        BuildOptions { strict: true, threads, memory: 256 << 20, stop: &NEVER, progress: &|_| () }
    }
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
    /// The UTXO sets among the sources.
    pub snapshots: Vec<(PathBuf, Snapshot)>,
}

/// Entries of a database handed to a worker together.
const ENTRIES: usize = 1 << 14;

/// What workers are given.
enum Work {
    Lines(Block),
    /// Of a database, and the numbers of those that are none.
    Entries(PathBuf, Vec<Entry>, Vec<u64>),
}

impl Database {
    /// Builds a database at `path`, where nothing may be yet, from files of addresses (one address per line, or with an amount in a
    /// second column; gzip and Zstandard too), from databases of ours, from LMDB folders of BitcoinAddressFinder, and
    /// from UTXO sets that Bitcoin Core dumped. Of addresses that occur more than once the largest amount is kept; coins of one UTXO
    /// set are added up.
    pub fn build(path: &Path, sources: &[PathBuf], options: &BuildOptions) -> Result<Built, Error> {
        Self::build_with(path, sources, options, CHUNK)
    }

    /// The same with chunks of another size.
    pub(super) fn build_with(
        path: &Path,
        sources: &[PathBuf],
        options: &BuildOptions,
        chunk: u32,
    ) -> Result<Built, Error> {
        let draft = Draft::begin(path, &with_suffix(path, ".part"), 0o644)?;
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        let built = make(&draft, path, None, sources, options, chunk)?;
        draft.place_new()?;
        Ok(built)
    }

    /// Adds to the database at `path` what these sources have, as [`Self::build`] reads them. A new database is made beside it
    /// and takes its place when all of it is on disk; until then, and whatever happens, the old one is there and whole. Where
    /// the sources have nothing new it stays as it is. What is reported is of the sources alone.
    ///
    /// Filters of the old database are known by its identity, and made anew when they are next asked for.
    pub fn add(path: &Path, sources: &[PathBuf], options: &BuildOptions) -> Result<Built, Error> {
        let failed = || Error::io("read", path);
        // Where a link leads, so that the file is replaced and not the link.
        let path = &fs::canonicalize(path).map_err(failed())?;
        let draft = Draft::begin(path, &with_suffix(path, ".part"), 0o600)?;
        // Only now: another process may have replaced it until we had the draft.
        let old = Database::open(path)?;
        let facts = old.file.metadata().map_err(failed())?;
        draft.file().set_permissions(facts.permissions()).map_err(Error::io("write", path))?;
        let built = make(&draft, path, Some(&old), sources, options, CHUNK)?;
        if (built.about.addresses, built.about.amounts) == (old.about.addresses, old.about.amounts) {
            return Ok(Built { about: old.about, ..built });
        }
        draft.place()?;
        Ok(built)
    }
}

/// Writes the database for `path` from sources, and from what another has. Counted are the sources.
fn make(
    draft: &Draft,
    path: &Path,
    old: Option<&Database>,
    sources: &[PathBuf],
    options: &BuildOptions,
    chunk: u32,
) -> Result<Built, Error> {
    let scratch = with_suffix(path, ".runs");
    let runs = Runs::new(scratch_file(&scratch)?, &scratch, Amounts::Largest);
    let (mut report, snapshots) = read(&runs, &with_suffix(path, ".coins"), old, sources, options)?;
    let known = old.map_or(0, |old| old.about.records);
    if report.addresses == known {
        let path = sources.first().cloned().unwrap_or_else(|| path.to_owned());
        return Err(Error::NoAddress { path, report: Box::new(report) });
    }
    let most = report.addresses - report.duplicates;
    let (about, duplicates) = write(draft, path, chunk, runs, most, options)?;
    report.duplicates += duplicates;
    report.addresses -= known;
    Ok(Built { about, report, snapshots })
}

/// The UTXO sets that were read.
type Snapshots = Vec<(PathBuf, Snapshot)>;

/// Reads all sources into sorted runs, and another database before them. `scratch` is for what is sorted before that.
fn read(
    runs: &Runs,
    scratch: &Path,
    old: Option<&Database>,
    sources: &[PathBuf],
    options: &BuildOptions,
) -> Result<(Report, Snapshots), Error> {
    let sizes = sources.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len());
    let total = sizes.chain(old.map(Database::size)).sum();
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
    let (report, snapshots) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let receiver = receiver.clone();
                let (addresses, fail) = (&addresses, &fail);
                scope.spawn(move || work(receiver, runs, capacity, options.strict, addresses, fail))
            })
            .collect();
        drop(receiver);
        let goes_on = || {
            let (done, addresses) = (done.load(Ordering::Relaxed), addresses.load(Ordering::Relaxed));
            (options.progress)(Progress { stage: Stage::Reading, done, total, addresses });
            !is_over()
        };
        // It fails when all workers have ended, and then something else did before.
        let send = |work: Work| goes_on() && sender.send(work).is_ok();
        let read = |count| _ = done.fetch_add(count, Ordering::Relaxed);
        let mut snapshots = Vec::new();
        if let Some(old) = old {
            feed_database(old, read, send).unwrap_or_else(&fail);
        }
        for path in sources {
            if is_over() {
                break;
            }
            let add_up = |source: &mut dyn Read| {
                let hand_on = |entries| send(Work::Entries(path.to_owned(), entries, Vec::new()));
                coins::add_up(path, source, By::Address, scratch, options, &goes_on, hand_on)
            };
            match feed(path, read, send, add_up) {
                Ok(snapshot) => snapshots.extend(snapshot.map(|snapshot| (path.to_owned(), snapshot))),
                Err(error) => fail(error),
            }
        }
        drop(sender);
        let mut report = Report::default();
        for worker in workers {
            report.add(worker.join().expect("a worker does not panic"));
        }
        report.scripts += snapshots.iter().map(|(_, snapshot)| snapshot.scripts).sum::<u64>();
        (report, snapshots)
    });
    match failure.into_inner().expect("no thread panics with it") {
        Some(error) => Err(error),
        None if options.stop.load(Ordering::Relaxed) => Err(Error::Stopped),
        None => Ok((report, snapshots)),
    }
}

/// Hands on one source. A UTXO set is added up first, by `add_up`.
fn feed(
    path: &Path,
    read: impl Fn(u64),
    send: impl Fn(Work) -> bool,
    add_up: impl FnOnce(&mut dyn Read) -> Result<Snapshot, Error>,
) -> Result<Option<Snapshot>, Error> {
    if let Some(folder) = lmdb::folder_of(path) {
        lmdb::read(&folder, |entries, wrong| send(Work::Entries(path.to_owned(), entries, wrong)))?;
        return Ok(None);
    }
    if Database::is_at(path) {
        feed_database(&Database::open(path)?, read, send)?;
        return Ok(None);
    }
    let mut source = unpacked(path, read)?;
    let mut head = Vec::with_capacity(snapshot::HEAD);
    source.by_ref().take(snapshot::HEAD as u64).read_to_end(&mut head).map_err(Error::io("read", path))?;
    if snapshot::is_old(&head) {
        return Err(snapshot::old(path));
    }
    let is_snapshot = head.starts_with(snapshot::MAGIC);
    // No text has zeros, and the heads of both do: lines of a damaged one would only be counted as bad.
    if !is_snapshot && head.contains(&0) {
        let reason = "it is no text (UTF-8) either, but a damaged database or UTXO set, or something packed in a way that is not \
                      read";
        return Err(Error::NotADatabase { path: path.to_owned(), reason: reason.to_owned() });
    }
    let mut source = Cursor::new(head).chain(source);
    match is_snapshot {
        true => add_up(&mut source).map(Some),
        false => blocks_of(path, source, |block| send(Work::Lines(block))).map(|()| None),
    }
}

/// Hands on the records of a database.
fn feed_database(database: &Database, read: impl Fn(u64), send: impl Fn(Work) -> bool) -> Result<(), Error> {
    let mut entries = database.entries();
    loop {
        let batch: Vec<Entry> = entries.by_ref().take(ENTRIES).collect::<Result<_, _>>()?;
        read(batch.len() as u64 * database.size() / database.about().records.max(1));
        if batch.is_empty() || !send(Work::Entries(database.path().to_owned(), batch, Vec::new())) {
            return Ok(());
        }
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
        let mut keep = |report: &mut Report, entry| -> Result<(), Error> {
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

/// Merges the runs into the database's file. `most` is how many records there can be.
fn write(
    draft: &Draft,
    path: &Path,
    chunk: u32,
    runs: Runs,
    most: u64,
    options: &BuildOptions,
) -> Result<(About, u64), Error> {
    let mut identity = [0; 16];
    warpsmith_entropy::fill(&mut identity)
        .map_err(|error| Error::io("get random bits for", path)(std::io::Error::other(error)))?;
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let widths = runs.largest().map(amount_bytes);
    let failed = || Error::io("write", path);
    let mut writer = Writer::new(draft.file(), chunk, identity, widths).map_err(failed())?;
    let mut summary = Summary::default();
    let (sender, receiver) = bounded(8);
    // The merge and the writing take about as long, so each has a thread.
    let duplicates = std::thread::scope(|scope| {
        let merge = scope.spawn(move || merge(runs, sender));
        for batch in receiver {
            for entry in batch {
                writer.add(&entry).map_err(failed())?;
                summary.add(&entry);
            }
            if options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let (done, total) = (summary.count(), most);
            (options.progress)(Progress { stage: Stage::Writing, done, total, addresses: most });
        }
        merge.join().expect("the merge does not panic")
    })?;
    let about = summary.finish(identity, created);
    writer.finish(&about).map_err(failed())?;
    Ok((about, duplicates))
}

/// Sends merged entries in batches. Ends early when nobody receives any more.
fn merge(runs: Runs, sender: Sender<Vec<Entry>>) -> Result<u64, Error> {
    const BATCH: usize = 1 << 13;
    let mut batch = Vec::with_capacity(BATCH);
    let duplicates = runs.merge(|entry| {
        batch.push(entry);
        if batch.len() == BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            // Whoever received has an error of its own to tell.
            sender.send(full).map_err(|_| Error::Stopped)?;
        }
        Ok(())
    })?;
    sender.send(batch).map_err(|_| Error::Stopped)?;
    Ok(duplicates)
}
