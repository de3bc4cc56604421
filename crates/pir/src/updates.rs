//! A database that goes on: the file of one epoch, and the changes since, which are kept beside it.
//!
//! Changes are XOR deltas, numbered by epoch and appended to `FILE.updates` before they count. Queries name their epoch;
//! one for an older epoch is answered from the newest entries, and the changes since are taken back.
//!
//! Several processes may have a database open: whoever appends holds the file's lock, and the others see what is new when
//! they [`refresh`](Live::refresh).

mod entries;
mod history;
mod log;
mod room;

use std::path::Path;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use warpsmith_hash::Lanes;

use self::entries::Entries;
pub use self::entries::Newest;
use self::log::Log;
use crate::answer::take_back;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::wire::{Picks, Update, answers_body, read_queries, updates_body};

/// A database with its updates, from which queries are answered.
pub struct Live {
    base: Database,
    lanes: Lanes,
    log: Mutex<Log>,
    now: RwLock<Now>,
    /// Changes that may be taken back for one query: beyond, the client must update first.
    most_taken_back: u64,
}

/// The newest entries.
struct Now {
    entries: Entries,
    epoch: u64,
    /// All changes since the file, in order.
    updates: Vec<Arc<Update>>,
    /// How many changes happened up to each epoch, the file's first.
    changes: Vec<u64>,
}

impl Now {
    fn apply(&mut self, params: &Params, update: Update) {
        self.entries.apply(params.entry_size(), &update);
        self.epoch = update.number;
        let before = self.changes.last().copied().unwrap_or(0);
        self.changes.push(before + update.indices.len() as u64);
        self.updates.push(Arc::new(update));
    }
}

impl Live {
    /// Opens a database and applies the updates kept beside it. A last one that was cut short by a crash does not count.
    ///
    /// Entries stay in the file: each MiB is compared with its digest the first time any of it is read. Whoever answers
    /// queries is faster after [`Live::load`].
    ///
    /// # Errors
    ///
    /// When a file is damaged or belongs to another database.
    pub fn open(path: &Path, lanes: Lanes, most_taken_back: u64) -> Result<Live> {
        let base = Database::open(path)?;
        let epoch = base.description().epoch;
        let now = Now { entries: Entries::in_file(), epoch, updates: Vec::new(), changes: vec![0] };
        let log = Mutex::new(Log::new(path, base.description()));
        let live = Live { base, lanes, log, now: RwLock::new(now), most_taken_back };
        live.refresh()?;
        Ok(live)
    }

    /// Whether a copy of the entries, with some to spare, has room in the memory that is free now.
    pub fn has_room(&self) -> bool {
        self.base.description().data_bytes() <= room::free() / 4 * 3
    }

    /// Reads all entries and compares them with their digests, so that what is damaged already is found before anything is
    /// answered. With `in_memory` a copy stays in memory: then nothing that happens to the file changes an answer. Without,
    /// or when the system gives no memory, entries are read from the file. `tell` gets the bytes read so far.
    ///
    /// # Errors
    ///
    /// When the file is damaged or cannot be read, or `tell` fails.
    pub fn load(&mut self, in_memory: bool, tell: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let now = self.now.get_mut().expect("no update failed half-way");
        now.entries = Entries::load(&self.base, in_memory, tell)?;
        let size = self.base.description().params.entry_size();
        now.updates.iter().for_each(|update| now.entries.apply(size, update));
        Ok(())
    }

    /// Whether the entries are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.read().entries.in_memory().is_some()
    }

    /// The most memory that handing over all entries takes: none where they are in memory already.
    pub fn reading_bytes(&self) -> u64 {
        if self.is_in_memory() { 0 } else { self.base.reading_bytes() }
    }

    /// Takes over what another process appended meanwhile. Says how many epochs that were.
    ///
    /// # Errors
    ///
    /// When the file of the updates is damaged or was replaced, or the database turned out damaged meanwhile; then the entries
    /// stay as they are.
    pub fn refresh(&self) -> Result<usize> {
        let news = {
            let mut log = self.log.lock().expect("no update failed half-way");
            let news = log.news(self.params(), self.epoch() + 1)?;
            self.take_over(news)
        };
        match news {
            0 => self.base.check().map(|()| 0),
            news => Ok(news),
        }
    }

    fn take_over(&self, news: Vec<Update>) -> usize {
        let count = news.len();
        let mut now = self.now.write().expect("no update failed half-way");
        news.into_iter().for_each(|update| now.apply(self.params(), update));
        count
    }

    /// The file the updates started from.
    pub fn base(&self) -> &Database {
        &self.base
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.base.description().params
    }

    /// The newest epoch.
    pub fn epoch(&self) -> u64 {
        self.read().epoch
    }

    /// Changes since the file, in all epochs together.
    pub fn changes(&self) -> u64 {
        self.read().changes.last().copied().unwrap_or(0)
    }

    /// Bytes of the longest update there is.
    pub fn longest_update(&self) -> u64 {
        let most = self.read().changes.windows(2).map(|pair| pair[1] - pair[0]).max();
        most.map_or(0, |changes| 24 + changes * (8 + self.params().entry_size() as u64))
    }

    fn read(&self) -> RwLockReadGuard<'_, Now> {
        // A panic while it was written would leave half an update: then nothing may be answered.
        self.now.read().expect("no update failed half-way")
    }

    /// Makes the next epoch: durable first, then visible.
    ///
    /// # Errors
    ///
    /// When it is not the next one, names an entry that is not there, or cannot be written.
    pub fn update(&self, update: Update) -> Result<()> {
        let params = self.params();
        let size = params.entry_size();
        if update.deltas.len() != update.indices.len() * size {
            return Err(Error::Mismatch(format!(
                "update {} is not of entries of {size} bytes",
                update.number
            )));
        }
        update.indices.iter().try_for_each(|&index| params.place(index).map(drop))?;
        let mut log = self.log.lock().expect("no update failed half-way");
        let mut writer = log.writer()?;
        // Another process may have been faster.
        self.take_over(writer.news(params, self.epoch() + 1)?);
        let epoch = self.epoch();
        if update.number != epoch + 1 {
            return Err(Error::Mismatch(format!("update {} does not follow epoch {epoch}", update.number)));
        }
        writer.append(&update.to_bytes(size))?;
        self.take_over(vec![update]);
        Ok(())
    }

    /// The update that gives some entries new values.
    ///
    /// # Errors
    ///
    /// When there is no such entry or a value has the wrong size.
    pub fn difference(&self, values: &[(u64, Vec<u8>)]) -> Result<Update> {
        let size = self.params().entry_size();
        let now = self.read();
        let mut update = Update { number: now.epoch + 1, indices: Vec::new(), deltas: Vec::new() };
        let mut changed = std::collections::BTreeMap::new();
        for (index, value) in values {
            self.params().place(*index)?;
            if value.len() != size {
                return Err(Error::format("value", format!("{} bytes instead of {size}", value.len())));
            }
            changed.insert(*index, value);
        }
        for (index, value) in changed {
            let old = now.entries.entry(&self.base, index)?;
            update.indices.push(index);
            update.deltas.extend(old.iter().zip(value).map(|(old, new)| old ^ new));
        }
        Ok(update)
    }

    /// Calls `with` with the newest epoch and all its entries, without those that only fill the last blocks. Updates wait
    /// until it returns.
    pub fn with_entries<T>(&self, with: impl FnOnce(u64, &Newest<'_>) -> T) -> T {
        let now = self.read();
        with(now.epoch, &Newest::new(&self.base, &now.entries))
    }

    /// The newest value of an entry.
    ///
    /// # Errors
    ///
    /// When there is no such entry, or it cannot be read.
    pub fn entry(&self, index: u64) -> Result<Vec<u8>> {
        self.params().place(index)?;
        self.read().entries.entry(&self.base, index)
    }

    /// The body with all updates after an epoch, as many as fit in `limit` bytes, but at least one if there is any.
    ///
    /// # Errors
    ///
    /// When the epoch lies before the file's or after the newest.
    pub fn updates_after(&self, epoch: u64, limit: usize) -> Result<Vec<u8>> {
        let updates = {
            let now = self.read();
            let first = self.position(&now, epoch)?;
            now.updates[first..].to_vec()
        };
        let size = self.params().entry_size();
        let mut room = limit;
        let mut parts = Vec::new();
        for update in &updates {
            let length = 24 + update.indices.len() * (8 + size);
            if length > room && !parts.is_empty() {
                break;
            }
            room = room.saturating_sub(length);
            parts.push(update.to_bytes(size));
        }
        Ok(updates_body(self.params(), parts.iter().map(Vec::as_slice)))
    }

    /// Where the updates after an epoch begin.
    fn position(&self, now: &Now, epoch: u64) -> Result<usize> {
        let first = self.base.description().epoch;
        if epoch < first || epoch > now.epoch {
            return Err(Error::Mismatch(format!(
                "epoch {epoch} is not known; there are {first} to {}",
                now.epoch
            )));
        }
        Ok((epoch - first) as usize)
    }

    /// Answers a batch of queries, all against the epoch it names.
    ///
    /// # Errors
    ///
    /// When the body is malformed, has more queries than `most`, or its epoch is unknown or too old; and when the entries
    /// are in a file that turns out damaged.
    pub fn answer(&self, body: &[u8], most: usize) -> Result<Vec<u8>> {
        let params = self.params();
        let (epoch, queries) = read_queries(params, body)?;
        if queries.len() > most {
            return Err(Error::format("queries", format!("{} at once; at most {most}", queries.len())));
        }
        let picks = queries.map(|query| Picks::read(params, query)).collect::<Result<Vec<Picks>>>()?;
        let now = self.read();
        let first = self.position(&now, epoch)?;
        let behind = now.changes[now.changes.len() - 1] - now.changes[first];
        if behind > self.most_taken_back {
            return Err(Error::Mismatch(format!(
                "epoch {epoch} is {behind} changes behind; update the hints first"
            )));
        }
        let mut answers = Vec::with_capacity(picks.len());
        for picks in &picks {
            let mut sums = now.entries.answer(&self.base, self.lanes, picks)?;
            for update in &now.updates[first..] {
                take_back(params, picks, update, &mut sums);
            }
            answers.push(sums);
        }
        Ok(answers_body(epoch, &answers))
    }
}
