//! Hints of private retrieval by machines of one's own: the ids of a client's hints cut into units.
//!
//! Each worker has the database in a file of its own, and makes hints of the ids it is given by the key that each lease tells. Whoever has
//! that key and sees the queries can read them, so this is for workers and a server that are the submitter's own; `submit` says so.
//! What a worker returns is read whole, and of every unit some groups of hints, chosen by lot when it is there, are made again at home
//! from the same entries. What was found right lies in the job's folder until all is there, and becomes a client's state once.

use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use warpsmith_engine::Runner;
use warpsmith_pir::hints::make::{Make, Order, Processor};
use warpsmith_pir::hints::{Hints, Skeleton, compare};
use warpsmith_pir::updates::Live;
use warpsmith_pir::{Choice, GROUP, Key, Lanes, Params, Prf, Version, two_server};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::secrets::Master;
use crate::wire::{Lease, Work};

/// Bytes of the hints of one report at most: in base64, with the lease, a message stays below [`crate::wire::MOST_BYTES`].
const MOST_BODY: u64 = 44 << 10;
/// Groups of regular hints, and of pairs, that are made again of a unit: of a worker that is new, and of one in good standing.
const LOOKED_AT: (usize, usize) = (4, 1);
/// What the body of a unit has besides hints.
const AROUND: u64 = 64;

/// Which hints of which database, as workers are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HintOrder {
    /// The database's identity, hex.
    pub database: String,
    /// Its epoch.
    pub epoch: u64,
    /// Its entries.
    pub entries: u64,
    /// Bytes an entry.
    pub entry_size: u32,
    /// Entries a block.
    pub block_size: u32,
    /// Hints for each offset of a block.
    pub lambda: u32,
    /// Backup pairs.
    pub pairs: u64,
}

impl HintOrder {
    /// Hints of this shape of a database as it is now.
    pub fn new(version: Version, params: &Params) -> HintOrder {
        HintOrder {
            database: const_hex::encode(version.database),
            epoch: version.epoch,
            entries: params.entries(),
            entry_size: params.entry_size() as u32,
            block_size: params.block_size(),
            lambda: params.lambda(),
            pairs: params.backups(),
        }
    }
}

/// The key of the hints, in a lease. SEC: shows nothing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText(Zeroizing<String>);

impl KeyText {
    fn new(key: &Key) -> KeyText {
        KeyText(Zeroizing::new(const_hex::encode(key.expose())))
    }

    fn key(&self) -> Option<Key> {
        let mut bytes = Zeroizing::new([0; 32]);
        const_hex::decode_to_slice(self.0.as_bytes(), &mut *bytes).ok()?;
        Some(Key::from_bytes(*bytes))
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText([redacted])")
    }
}

/// What makes hints on a device, beside which this processor does its part.
pub type MakerOf = fn(Runner, Processor) -> Arc<dyn Make>;

/// What a worker has for hints: databases, and what makes hints of them on its devices.
pub struct Library {
    /// Those on this machine.
    pub databases: Vec<Live>,
    /// What makes hints.
    pub maker_of: MakerOf,
}

/// The hints of a job, as workers and home know them.
pub struct HintTask {
    version: Version,
    params: Params,
}

impl HintTask {
    /// What such an order is, everything in it checked.
    pub fn open(order: &HintOrder) -> Result<HintTask> {
        let bad = |why: String| Error::Usage(why);
        let mut database = [0; 32];
        const_hex::decode_to_slice(&order.database, &mut database)
            .map_err(|_| bad("a database is named by 64 hex digits".to_owned()))?;
        let HintOrder { entries, entry_size, lambda, block_size, pairs, .. } = *order;
        let choice =
            Choice { entries, entry_size, lambda, block_size: Some(block_size), backups: Some(pairs) };
        let params = Params::new(choice).map_err(|error| bad(error.to_string()))?;
        let task = HintTask { version: Version { database, epoch: order.epoch }, params };
        if task.group_bytes() + AROUND > MOST_BODY {
            return Err(bad(format!(
                "sixteen hints of entries of {entry_size} bytes are more than a message holds; a fleet makes hints of smaller \
                 entries, and `warpsmith pir hint` of all"
            )));
        }
        Ok(task)
    }

    /// The shape.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The database and its epoch.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Groups of hints: the numbers of its units.
    pub fn groups(&self) -> u64 {
        (self.params.regular() + self.params.backups()) / GROUP
    }

    /// The most bytes that a group takes in a report.
    fn group_bytes(&self) -> u64 {
        let size = self.params.entry_size() as u64;
        GROUP * (12 + size).max(4 + 2 * size)
    }

    /// (hint, block) pairs of a group.
    fn group_pairs(&self) -> u64 {
        GROUP * u64::from(self.params.blocks())
    }

    /// Groups of a unit of about so many pairs: no more than one report holds.
    pub fn numbers_of(&self, pairs: f64) -> u64 {
        let wished = (pairs / self.group_pairs() as f64).max(1.0) as u64;
        wished.min((MOST_BODY - AROUND) / self.group_bytes())
    }

    /// A unit from number `first` on, which are counted from 1.
    fn work(&self, key: &Key, first: u64, count: u64) -> Work {
        Work::Hints { key: KeyText::new(key), first: first - 1, count, blocks: self.params.blocks() }
    }

    /// The ids of a unit: of regular hints, and of pairs.
    fn ids(&self, first: u64, count: u64) -> Option<(Range<u64>, Range<u64>)> {
        let end = first.checked_add(count).filter(|end| count > 0 && *end <= self.groups())?;
        let (ids, m) = (first * GROUP..end * GROUP, self.params.regular());
        Some((ids.start.min(m)..ids.end.min(m), ids.start.max(m)..ids.end.max(m)))
    }

    /// Whether this is the database, as the job wants it.
    pub fn fits(&self, live: &Live) -> bool {
        live.base().description().lineage() == self.version.database && live.epoch() == self.version.epoch
    }

    /// Makes the hints of a unit, as a report has them; none if it is no unit of this job.
    pub fn make(
        &self,
        live: &Live,
        make: &dyn Make,
        work: &Work,
        stop: &AtomicBool,
    ) -> Result<Option<String>> {
        let Work::Hints { key, first, count, .. } = work else { return Ok(None) };
        let Some((key, (regular, backups))) = key.key().zip(self.ids(*first, *count)) else {
            return Ok(None);
        };
        let order = Order { params: &self.params, key: &key, regular, backups, stop };
        let made = live.with_entries(|epoch, entries| {
            if epoch != self.version.epoch {
                return Err(Error::Usage(format!(
                    "the database is at epoch {epoch} by now, and the job is for epoch {}",
                    self.version.epoch
                )));
            }
            let hints = match entries.in_memory() {
                Some(entries) => make.hints_of(&order, self.version, entries),
                None => make.hints(&order, &mut |push| entries.stream(push)),
            };
            Ok(hints?)
        });
        match made {
            Ok(hints) => {
                let body = Zeroizing::new(two_server::body(self.version.epoch, &hints));
                Ok(Some(BASE64.encode(&*body)))
            }
            Err(Error::Pir(warpsmith_pir::Error::Stopped)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// (hint, block) pairs that so many groups by a random key take: to be timed.
    pub fn trial(&self, live: &Live, make: &dyn Make, groups: u64, stop: &AtomicBool) -> Result<Option<f64>> {
        let groups = groups.min(self.numbers_of(f64::MAX)).min(self.groups());
        let work = self.work(&Key::random()?, 1, groups);
        Ok(self.make(live, make, &work, stop)?.map(|_| (groups * self.group_pairs()) as f64))
    }

    /// The hints of a report, with their ids, if they are as many as they should be.
    fn read(&self, first: u64, count: u64, body: &[u8]) -> Option<Hints> {
        let (regular, backups) = self.ids(first, count)?;
        let (epoch, hints) = two_server::read(&self.params, body).ok()?;
        let length = |ids: &Range<u64>| (ids.end - ids.start) as usize;
        let counts = (hints.skeleton.regular_len(), hints.skeleton.backups_len());
        let fits = epoch == self.version.epoch && counts == (length(&regular), length(&backups));
        fits.then_some(Hints { skeleton: Skeleton { regular, backups, ..hints.skeleton }, ..hints })
    }
}

/// Where the folder of a job says its database is.
pub const DATABASE: &str = "database";
/// Where it keeps what was made, and that a state was made of it.
const MADE: &str = "hints";
const TAKEN: &str = "taken";

/// The hints of a job at home: with the database to compare, and what is done.
pub struct HintHome {
    task: HintTask,
    live: Live,
    key: Key,
    folder: PathBuf,
}

impl HintHome {
    /// The job in this folder.
    pub fn open(folder: &Path, task: HintTask, master: &Master) -> Result<HintHome> {
        let path = folder.join(DATABASE);
        let database = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        let live = Live::open(Path::new(&database), Lanes::detect(), 0)?;
        if !task.fits(&live) {
            return Err(Error::Usage(format!(
                "{database} is not the database of this job any more, or at epoch {} instead of {}: cancel the job and submit it anew",
                live.epoch(),
                task.version.epoch
            )));
        }
        let key = Key::from_bytes(*master.hints());
        Ok(HintHome { task, live, key, folder: folder.join(MADE) })
    }

    /// Which hints.
    pub fn task(&self) -> &HintTask {
        &self.task
    }

    /// The key they are made by. SEC: for the client's state.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// A unit from this number on.
    pub fn work(&self, first: u64, count: u64) -> Work {
        self.task.work(&self.key, first, count)
    }

    /// The bytes of a report, compared by lot with what its entries give here; else what is wrong with it.
    pub fn check(
        &self,
        lease: &Lease,
        told: Option<&str>,
        is_trusted: bool,
    ) -> std::result::Result<Zeroizing<Vec<u8>>, String> {
        let bytes = told.and_then(|text| BASE64.decode(text).ok()).map(Zeroizing::new);
        let bytes = bytes.ok_or("it has no hints")?;
        let hints = self.task.read(lease.unit - 1, lease.count, &bytes).ok_or("it has other hints")?;
        let (params, prf) = (&self.task.params, Prf::new(&self.key, &self.task.params, Lanes::detect()));
        let groups = if is_trusted { LOOKED_AT.1 } else { LOOKED_AT.0 };
        let size = params.entry_size() as u64;
        let mut failed = None;
        let compared =
            compare(&prf, params, &hints, groups, "a worker", |at, bytes| match self.live.entry(at / size) {
                Ok(entry) => bytes.copy_from_slice(&entry),
                Err(error) => failed = Some(error),
            });
        match (failed, compared) {
            (Some(error), _) => Err(format!("it cannot be compared: {error}")),
            (None, Err(_)) => Err("a hint is false".to_owned()),
            (None, Ok(())) => Ok(bytes),
        }
    }

    /// Keeps the hints of a unit, on disk when this returns.
    pub fn keep(&self, worker: u32, lease: &Lease, bytes: &[u8]) -> Result<()> {
        let folder = &self.folder;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::io(folder))?;
        let path = folder.join(format!("{}-{}-{worker}", lease.unit, lease.count));
        warpsmith_files::replace(&path, 0o600, |file| file.write_all(bytes))?;
        Ok(())
    }

    /// What is kept: the first number, how many, by whom, and where.
    fn kept(&self) -> Result<Vec<(u64, u64, u32, PathBuf)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(&self.folder)(error)),
        };
        let read = |path: PathBuf| {
            let name = path.file_name()?.to_str()?;
            let mut parts = name.split('-');
            let (first, count) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let worker = parts.next()?.parse().ok()?;
            parts.next().is_none().then_some((first, count, worker, path))
        };
        Ok(entries.flatten().filter_map(|entry| read(entry.path())).collect())
    }

    /// Forgets what a worker made.
    pub fn forget(&self, worker: u32) -> Result<()> {
        for (.., path) in self.kept()?.into_iter().filter(|(_, _, by, _)| *by == worker) {
            std::fs::remove_file(&path).map_err(Error::io(&path))?;
        }
        Ok(())
    }

    /// All hints, once they are all there: for one state, and never again.
    pub fn take(&self) -> Result<Hints> {
        let (params, size) = (&self.task.params, self.task.params.entry_size());
        let (m, q) = (params.regular(), params.backups());
        let mut all = Hints {
            skeleton: Skeleton {
                regular: 0..m,
                backups: m..m + q,
                cutoffs: vec![0; (m + q) as usize],
                extras: vec![warpsmith_pir::Place { block: 0, offset: 0 }; m as usize],
            },
            parities: vec![0; m as usize * size],
            low: vec![0; q as usize * size],
            high: vec![0; q as usize * size],
        };
        let mut is_there = vec![false; self.task.groups() as usize];
        for (first, count, _, path) in self.kept()? {
            let bytes = warpsmith_files::read_secret(&path, MOST_BODY)?;
            let damaged = || Error::corrupt(&path, "it does not hold the hints that were made");
            let number = first.checked_sub(1).ok_or_else(damaged)?;
            let part = self.task.read(number, count, &bytes).ok_or_else(damaged)?;
            let Skeleton { regular, backups, cutoffs, extras } = &part.skeleton;
            let (own, (r, b)) =
                (part.skeleton.regular_len(), (regular.start as usize, backups.start as usize));
            all.skeleton.cutoffs[r..][..own].copy_from_slice(&cutoffs[..own]);
            all.skeleton.cutoffs[b..][..cutoffs.len() - own].copy_from_slice(&cutoffs[own..]);
            all.skeleton.extras[r..][..own].copy_from_slice(extras);
            all.parities[r * size..][..part.parities.len()].copy_from_slice(&part.parities);
            let b = b - m as usize;
            all.low[b * size..][..part.low.len()].copy_from_slice(&part.low);
            all.high[b * size..][..part.high.len()].copy_from_slice(&part.high);
            is_there[number as usize..(number + count) as usize].fill(true);
        }
        if let Some(missing) = is_there.iter().position(|is_there| !is_there) {
            let why = format!("the hints of group {missing} are missing");
            return Err(Error::corrupt(&self.folder, why));
        }
        let taken = self.taken();
        warpsmith_files::create(&taken).map_err(|_| {
            Error::Usage("a state was made of these hints already: submit the job anew".to_owned())
        })?;
        warpsmith_files::sync_folder_of(&taken)?;
        Ok(all)
    }

    fn taken(&self) -> PathBuf {
        self.folder.with_file_name(TAKEN)
    }

    /// Removes what was made, once a state holds it.
    pub fn clear(&self) -> Result<()> {
        for (.., path) in self.kept()? {
            std::fs::remove_file(&path).map_err(Error::io(&path))?;
        }
        Ok(())
    }
}

/// Whether a state was made of what the job in this folder made, or it was given up.
pub fn is_used(folder: &Path) -> bool {
    folder.join(TAKEN).exists() || folder.join("cancelled").exists()
}

#[cfg(test)]
mod tests;
