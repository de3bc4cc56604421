//! A database that goes on: the file of one epoch, and the changes since, which are kept beside it.
//!
//! Changes are XOR deltas, numbered by epoch and appended to `FILE.updates` before they count. Queries name their epoch;
//! one for an older epoch is answered from the newest entries, and the changes since are taken back.
//!
//! Several processes may have a database open: whoever appends holds the file's lock, and the others see what is new when
//! they [`refresh`](Live::refresh). Now and then a [`fold`](fold()) puts a file of a newer epoch in the place of the old one, and
//! leaves the changes out that nobody is likely to need any more. Epochs go on as before. A table that is full can
//! [`grow`](Live::grow).

mod change;
mod entries;
mod fold;
mod former;
mod grow;
mod history;
mod log;
mod room;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::time::Instant;

use warpsmith_hash::Lanes;

pub use self::change::{Change, entries_of_changes, entries_of_changes_moving, standing};
use self::entries::Entries;
pub use self::entries::Newest;
pub use self::fold::{Folded, Keep, fold, worth_keeping};
use self::former::Former;
use self::log::Log;
use crate::answer::take_back;
use crate::database::{Database, Description};
use crate::error::{Error, Result};
use crate::keyword::RecordLayout;
use crate::params::Params;
use crate::wire::{Picks, Update, answers_body, epoch_of, read_queries, updates_body};

/// A database with its updates, from which queries are answered.
pub struct Live {
    path: PathBuf,
    lanes: Lanes,
    log: Mutex<Log>,
    now: RwLock<Now>,
    /// A file that came into the place of the one that is open and cannot be taken, and why: it is not read again and again.
    refused: Mutex<Option<(FileId, String)>>,
    /// Changes that may be taken back for one query: beyond, the client must update first.
    most_taken_back: u64,
    /// Tells whose records are that carry no tag.
    records: Option<&'static dyn RecordLayout>,
}

/// Whether a copy of the entries, with some to spare, has room in the memory that is free now.
fn has_room(base: &Database) -> bool {
    base.description().data_bytes() <= room::free() / 4 * 3
}

/// What tells a file from another.
type FileId = (u64, (i64, i64));

/// The newest entries.
struct Now {
    base: Arc<Database>,
    /// The files before it, for those who are still reading them.
    former: Former,
    entries: Entries,
    epoch: u64,
    /// The oldest epoch that is known.
    first: u64,
    /// All changes since that one, in order.
    updates: Vec<Arc<Update>>,
    /// How many changes happened up to each epoch, from the oldest on.
    changes: Vec<u64>,
}

impl Now {
    /// The entries of a file and its list of updates as they are.
    fn open(path: &Path) -> Result<(Now, Log)> {
        loop {
            let base = Database::open(path)?;
            let description = base.description();
            let (params, epoch) = (description.params, description.epoch);
            let mut log = Log::new(path, description);
            let news = match log.news(&params) {
                // Another took its place, and began the list anew, between the one reading and the other.
                Err(_) if !base.is_in_its_place() => continue,
                news => news?,
            };
            if log.first() > epoch {
                // Folded between the one reading and the other.
                if !base.is_in_its_place() {
                    continue;
                }
                let reason = format!(
                    "it is of epoch {epoch}, and the updates beside it begin after epoch {}: it is an older copy; put the newer \
                     file back, or build the database anew",
                    log.first()
                );
                return Err(Error::damaged(path, reason));
            }
            let (base, entries) = (Arc::new(base), Entries::in_file());
            let (updates, changes) = (Vec::new(), vec![0]);
            let mut now =
                Now { base, former: Former::default(), entries, epoch, first: log.first(), updates, changes };
            for update in news {
                // Those before the file only tell where others come from.
                if update.number > epoch {
                    now.entries.apply(params.entry_size(), &update);
                    now.epoch = update.number;
                }
                now.remember(update);
            }
            return Ok((now, log));
        }
    }

    fn params(&self) -> &Params {
        &self.base.description().params
    }

    fn apply(&mut self, update: Update) {
        self.entries.apply(self.base.description().params.entry_size(), &update);
        self.epoch = update.number;
        self.remember(update);
    }

    fn remember(&mut self, update: Update) {
        let before = self.changes.last().copied().unwrap_or(0);
        self.changes.push(before + update.indices.len() as u64);
        self.updates.push(Arc::new(update));
    }

    /// Forgets the updates up to an epoch.
    fn forget(&mut self, first: u64) {
        if first > self.first {
            let gone = (first - self.first) as usize;
            self.updates.drain(..gone);
            self.changes.drain(..gone);
            self.first = first;
        }
    }

    /// The updates after an epoch, and where they begin.
    fn since(&self, epoch: u64) -> Result<usize> {
        if epoch < self.first {
            return Err(Error::Mismatch(format!(
                "epoch {epoch} is not known any more; there are {} to {}: make a state with new hints",
                self.first, self.epoch
            )));
        }
        if epoch > self.epoch {
            return Err(Error::Mismatch(format!(
                "epoch {epoch} is not known; there are {} to {}",
                self.first, self.epoch
            )));
        }
        Ok((epoch - self.first) as usize)
    }

    /// The entries as the same epoch has them, with another file under them.
    fn move_to(&mut self, base: Database, first: u64) {
        let (epoch, size) = (base.description().epoch, base.description().params.entry_size());
        if let Entries::File(_) = self.entries {
            self.entries = Entries::in_file();
            for update in self.updates.iter().filter(|update| update.number > epoch) {
                self.entries.apply(size, update);
            }
        }
        let former = std::mem::replace(&mut self.base, Arc::new(base));
        self.former.add(former, Instant::now());
        self.forget(first.min(epoch));
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
        let (now, log) = Now::open(path)?;
        let (log, now) = (Mutex::new(log), RwLock::new(now));
        let refused = Mutex::default();
        Ok(Live { path: path.to_owned(), lanes, log, now, refused, most_taken_back, records: None })
    }

    /// Adds the layout of an application's records: without it those of [`Layout::Records`](crate::keyword::Layout::Records) can be served
    /// and folded, but not changed, and no head is known.
    #[must_use]
    pub fn with_records(self, layout: &'static dyn RecordLayout) -> Live {
        Live { records: Some(layout), ..self }
    }

    /// Whether a copy of the entries, with some to spare, has room in the memory that is free now.
    pub fn has_room(&self) -> bool {
        has_room(&self.base())
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
        load(now, in_memory, tell)
    }

    /// Whether the entries are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.read().entries.in_memory().is_some()
    }

    /// The most memory that handing over all entries takes: none where they are in memory already.
    pub fn reading_bytes(&self) -> u64 {
        if self.is_in_memory() { 0 } else { self.base().reading_bytes() }
    }

    /// Takes over what another process did meanwhile: epochs that were appended, and a file that a fold put in the place of the one
    /// that is open. Says how many epochs that were.
    ///
    /// # Errors
    ///
    /// When the file of the updates is damaged or was replaced, or the database turned out damaged meanwhile; then the entries
    /// stay as they are.
    pub fn refresh(&self) -> Result<usize> {
        let mut log = self.log.lock().expect("no update failed half-way");
        if self.read().former.is_too_long(Instant::now()) {
            self.now.write().expect("no update failed half-way").former.give_up(Instant::now());
        }
        let before = self.epoch();
        let taken = match log.news(&self.params()) {
            Ok(news) => self.take_over(log.first(), news),
            Err(error) => Err(error),
        };
        let is_behind = matches!(taken, Ok(Taken::Behind));
        if !self.base().is_in_its_place() {
            if self.take_file(&mut log, is_behind)? == Taken::Anew {
                return Ok((self.epoch() - before) as usize);
            }
        } else if is_behind {
            return Err(log.damaged(format!(
                "it begins after epoch {}, and {before} is the newest known",
                log.first()
            )));
        }
        match self.epoch() - before {
            _ if taken.is_err() => taken.map(|_| 0),
            0 => self.base().check().map(|()| 0),
            news => Ok(news as usize),
        }
    }

    /// Takes over updates of the list that begins after the epoch `first`.
    fn take_over(&self, first: u64, news: Vec<Update>) -> Result<Taken> {
        let mut now = self.now.write().expect("no update failed half-way");
        if first > now.epoch {
            return Ok(Taken::Behind);
        }
        for update in news {
            if update.number > now.epoch {
                now.apply(update);
            }
        }
        let base = now.base.description().epoch;
        now.forget(first.min(base));
        Ok(Taken::All)
    }

    /// Goes over to the file that is in the place of the one that is open. All of it is compared with its digests first.
    fn take_file(&self, log: &mut Log, is_behind: bool) -> Result<Taken> {
        let base = Database::open(&self.path)?;
        let mut refused = self.refused.lock().expect("nothing panics with it");
        if let Some((_, reason)) = refused.as_ref().filter(|(id, _)| *id == base.id()) {
            return Err(Error::damaged(&self.path, reason));
        }
        let (lineage, epoch) = (self.base().description().lineage(), self.epoch());
        let is_larger =
            base.description().predecessors.contains(&lineage) && base.description().epoch > epoch;
        let is_same = base.description().lineage() == lineage;
        let refusal = if !is_same && !is_larger {
            Some("another database was put in its place; start again with that one".to_owned())
        } else {
            base.verify().err().map(|error| format!("what was put in its place cannot be taken: {error}"))
        };
        if let Some(reason) = refusal {
            *refused = Some((base.id(), reason.clone()));
            return Err(Error::damaged(&self.path, reason));
        }
        if is_same && !is_behind && base.description().epoch <= epoch {
            self.now.write().expect("no update failed half-way").move_to(base, log.first());
            return Ok(Taken::All);
        }
        // A larger table; or so far behind that the updates in between are gone: from the file on.
        let (mut now, fresh) = Now::open(&self.path)?;
        // The old copy stays until the new one is whole: both must have room, or the entries are read from the file from now on.
        let in_memory = self.is_in_memory() && has_room(&now.base);
        load(&mut now, in_memory, &mut |_| Ok(()))?;
        let mut current = self.now.write().expect("no update failed half-way");
        let old = std::mem::replace(&mut *current, now);
        current.former = old.former;
        current.former.add(old.base, Instant::now());
        drop(current);
        *log = fresh;
        Ok(Taken::Anew)
    }

    /// The file that the entries are of, at present.
    pub fn base(&self) -> Arc<Database> {
        Arc::clone(&self.read().base)
    }

    /// The file with this tag: the present one, or one that a fold took the place of and that somebody was reading until lately.
    pub fn file(&self, tag: &[u8]) -> Option<Arc<Database>> {
        let now = self.read();
        match now.base.description().tag().as_bytes() == tag {
            true => Some(Arc::clone(&now.base)),
            false => now.former.get(tag, Instant::now()),
        }
    }

    /// The parameters.
    pub fn params(&self) -> Params {
        *self.read().params()
    }

    /// The newest epoch.
    pub fn epoch(&self) -> u64 {
        self.read().epoch
    }

    /// The oldest epoch that clients can come from.
    pub fn oldest(&self) -> u64 {
        self.read().first
    }

    /// Returns what the beginning of the file says, the newest epoch, and its head, if the records tell it
    /// ([`RecordLayout::head`]): all of one moment.
    pub fn offer(&self) -> (Description, u64, Option<String>) {
        let now = self.read();
        (now.base.description().clone(), now.epoch, now.head(self.records))
    }

    /// Changes since the file, in all epochs together.
    pub fn changes(&self) -> u64 {
        let now = self.read();
        let until = (now.base.description().epoch - now.first) as usize;
        now.changes.last().copied().unwrap_or(0) - now.changes.get(until).copied().unwrap_or(0)
    }

    /// Changes after an epoch, in all epochs together.
    ///
    /// # Errors
    ///
    /// When the epoch lies before the oldest that is kept, or after the newest.
    pub fn changes_after(&self, epoch: u64) -> Result<u64> {
        let now = self.read();
        Ok(now.changes.last().copied().unwrap_or(0) - now.changes[now.since(epoch)?])
    }

    /// The most bytes that [`Live::updates_after`] gives with this limit: less where there are fewer, more where a single one is longer.
    ///
    /// # Errors
    ///
    /// As for [`Live::changes_after`].
    pub fn updates_bytes(&self, epoch: u64, limit: u64) -> Result<u64> {
        let now = self.read();
        let changes = &now.changes[now.since(epoch)?..];
        let each = 8 + now.params().entry_size() as u64;
        let (mut all, mut longest) = (0, 0);
        for pair in changes.windows(2) {
            let bytes = 24 + (pair[1] - pair[0]) * each;
            (all, longest) = (all + bytes, longest.max(bytes));
        }
        Ok(all.min(limit.max(longest)))
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
        let news = writer.news(&params)?;
        let first = writer.first();
        let taken = self.take_over(first, news)?;
        let epoch = self.epoch();
        if update.number != epoch + 1 || taken == Taken::Behind {
            return Err(Error::Mismatch(format!("update {} does not follow epoch {epoch}", update.number)));
        }
        writer.append(&update.to_bytes(size))?;
        self.take_over(first, vec![update]).map(drop)
    }

    /// The update that gives some entries new values.
    ///
    /// # Errors
    ///
    /// When there is no such entry or a value has the wrong size.
    pub fn difference(&self, values: &[(u64, Vec<u8>)]) -> Result<Update> {
        let now = self.read();
        let size = now.params().entry_size();
        let mut update = Update { number: now.epoch + 1, indices: Vec::new(), deltas: Vec::new() };
        let mut changed = std::collections::BTreeMap::new();
        for (index, value) in values {
            now.params().place(*index)?;
            if value.len() != size {
                return Err(Error::format("value", format!("{} bytes instead of {size}", value.len())));
            }
            changed.insert(*index, value);
        }
        for (index, value) in changed {
            let old = now.entries.entry(&now.base, index)?;
            update.indices.push(index);
            update.deltas.extend(old.iter().zip(value).map(|(old, new)| old ^ new));
        }
        Ok(update)
    }

    /// Calls `with` with the newest epoch and all its entries, without those that only fill the last blocks. Updates wait
    /// until it returns.
    pub fn with_entries<T>(&self, with: impl FnOnce(u64, &Newest<'_>) -> T) -> T {
        let now = self.read();
        with(now.epoch, &Newest::new(&now.base, &now.entries))
    }

    /// The newest value of an entry.
    ///
    /// # Errors
    ///
    /// When there is no such entry, or it cannot be read.
    pub fn entry(&self, index: u64) -> Result<Vec<u8>> {
        let now = self.read();
        now.params().place(index)?;
        now.entries.entry(&now.base, index)
    }

    /// The body with all updates after an epoch, as many as fit in `limit` bytes, but at least one if there is any.
    ///
    /// # Errors
    ///
    /// When the epoch lies before the oldest that is kept, or after the newest.
    pub fn updates_after(&self, epoch: u64, limit: usize) -> Result<Vec<u8>> {
        let (params, updates) = {
            let now = self.read();
            (*now.params(), now.updates[now.since(epoch)?..].to_vec())
        };
        let size = params.entry_size();
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
        Ok(updates_body(&params, parts.iter().map(Vec::as_slice)))
    }

    /// Answers a batch of queries, all against the epoch it names.
    ///
    /// # Errors
    ///
    /// When the body is malformed, has more queries than `most`, or its epoch is unknown or too old; and when the entries
    /// are in a file that turns out damaged.
    pub fn answer(&self, body: &[u8], most: usize) -> Result<Vec<u8>> {
        let now = self.read();
        let params = now.params();
        // Before their length: in a table that has grown since, queries of the one before are longer or shorter.
        now.since(epoch_of(body)?)?;
        let (epoch, queries) = read_queries(params, body)?;
        if queries.len() > most {
            return Err(Error::format("queries", format!("{} at once; at most {most}", queries.len())));
        }
        let picks = queries.map(|query| Picks::read(params, query)).collect::<Result<Vec<Picks>>>()?;
        let first = now.since(epoch)?;
        let behind = now.changes[now.changes.len() - 1] - now.changes[first];
        if behind > self.most_taken_back {
            return Err(Error::Mismatch(format!(
                "epoch {epoch} is {behind} changes behind; update the hints first"
            )));
        }
        let mut answers = Vec::with_capacity(picks.len());
        for picks in &picks {
            let mut sums = now.entries.answer(&now.base, self.lanes, picks)?;
            for update in &now.updates[first..] {
                take_back(params, picks, update, &mut sums);
            }
            answers.push(sums);
        }
        Ok(answers_body(epoch, &answers))
    }
}

/// Whether updates could be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    All,
    /// They begin later than what is known ends.
    Behind,
    /// All was read again, from the file on.
    Anew,
}

/// Reads the entries of the file and compares them with their digests; see [`Live::load`].
fn load(now: &mut Now, in_memory: bool, tell: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
    let (epoch, size) = (now.base.description().epoch, now.params().entry_size());
    now.entries = Entries::load(&now.base, in_memory, tell)?;
    for update in now.updates.iter().filter(|update| update.number > epoch) {
        now.entries.apply(size, update);
    }
    Ok(())
}
