//! The client: a state of hints, which it spends one by one, and never one twice.
//!
//! The state is a file and its journal. Before a query leaves, the journal says durably which slot it spends, and the state
//! file that the journal says so; the same query can be sent again, byte for byte, after a crash or a lost connection, but
//! no other can be made from that hint. Neither file can be put back or cut short without the other.

mod head;
mod journal;
mod mark;
mod snapshot;
mod table;

use std::path::{Path, PathBuf};

use warpsmith_files::{self as files, Locked, Sharing, is_at, with_suffix};
use warpsmith_hash::Lanes;

use self::head::Head;
use self::journal::{Journal, Record, stale};
use self::mark::Mark;
use self::snapshot::Saved;
use self::table::Table;
use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::params::{Params, Place};
use crate::prf::{Key, Prf};
use crate::random::{self, Random};
use crate::two_server;
use crate::version::Version;
use crate::wire::{Query, Update, queries_body, read_answers};

/// A client.
pub struct Client {
    path: PathBuf,
    /// The state file: as long as it is held, no other process can open it.
    state: Locked,
    /// Which of its two marks is the newest.
    newest_mark: usize,
    head: Head,
    table: Table,
    journal: Journal,
    /// Entries whose changes the journal holds: opening the state repeats the work for each.
    changes: u64,
    /// An error left the journal in doubt: nothing more may be sent.
    broken: bool,
}

/// Queries that may be sent: they are in the journal.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The body of the request.
    pub body: Vec<u8>,
    /// A number for each query, in order.
    queries: Vec<Sent>,
}

#[derive(Clone, Copy, Debug)]
enum Sent {
    Hint {
        query: u64,
    },
    /// No hint held the entry; what was sent is random.
    Miss,
}

impl Asked {
    /// How many queries.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }
}

/// An entry that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its bytes.
    pub entry: Vec<u8>,
    /// The slot whose hint was made from it: what [`Client::spoil`] takes when the entry proves wrong.
    pub slot: usize,
}

/// Changed entries in the journal from which on the state is written anew: each takes as long as a query when the state is
/// opened.
const MOST_CHANGES: u64 = 64;

/// A place for a new state: an empty file beside it, which is gone with this.
pub struct Reservation(PathBuf);

impl Drop for Reservation {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Client {
    /// Makes sure that a new state can be written there, before the work on its hints begins.
    ///
    /// # Errors
    ///
    /// When there is a state already, or no file can be written.
    pub fn reserve(path: &Path) -> Result<Reservation> {
        vacant(path)?;
        let place = with_suffix(path, ".new");
        match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&place)(error));
            }
            _ => {}
        }
        files::create(&place)?;
        Ok(Reservation(place))
    }

    /// Writes a new state with fresh hints. The key must be the one the hints were made with.
    ///
    /// # Errors
    ///
    /// When there is a state at that path already, the hints do not fit, or the files cannot be written.
    pub fn create(
        path: &Path,
        params: Params,
        version: Version,
        key: Key,
        hints: Hints,
        lanes: Lanes,
    ) -> Result<Client> {
        vacant(path)?;
        let prf = Prf::new(&key, &params, lanes);
        let table = Table::new(params, prf, hints)?;
        let mut state_id = [0; 16];
        random::fill(&mut state_id)?;
        let head = Head {
            database: version.database,
            epoch: version.epoch,
            state_id,
            generation: 1,
            next_query: 1,
            key,
        };
        let mut sum = [0; 32];
        let state = Locked::create(path, Sharing::Secret, |to| {
            sum = snapshot::write(to, &head, &table)?;
            Ok(())
        })?;
        // After a crash in between, the state says of itself that nothing was sent, and opening it begins a journal.
        let journal = match Journal::create(path, &head, sum) {
            Ok(journal) => journal,
            Err(error) => {
                let _ = state.remove();
                return Err(error);
            }
        };
        Ok(Client::begin(state, head, table, journal))
    }

    /// A client at the beginning of a journal.
    fn begin(state: Locked, head: Head, table: Table, journal: Journal) -> Client {
        let path = state.path().to_owned();
        Client { path, state, newest_mark: 0, head, table, journal, changes: 0, broken: false }
    }

    /// Opens a state and repeats what its journal says.
    ///
    /// # Errors
    ///
    /// When a file is missing, damaged, in use, or the state file is older than its journal.
    pub fn open(path: &Path, lanes: Lanes) -> Result<Client> {
        let state = Locked::open(path, Sharing::Secret)?;
        let saved = snapshot::read(state.file(), path, lanes)?;
        let Saved { mut head, mut table, sum, marks } = saved;
        // Of this generation nothing was sent, so this file holds all there is to know.
        let is_fresh = marks.newest == Mark::first(&head) && !marks.one_is_bad;
        let found = Journal::find(path)?;
        if let Some(found) = &found {
            if found.state_id != head.state_id {
                return Err(stale(path, "its journal belongs to another state"));
            }
            if found.generation > head.generation {
                return Err(stale(path, "it is an older copy: its journal has gone on since"));
            }
        }
        let found = match found.filter(|found| found.generation == head.generation) {
            // A crash after the state was written and before its journal was begun.
            None if is_fresh => {
                let journal = Journal::create(path, &head, sum)?;
                return Ok(Client::begin(state, head, table, journal));
            }
            None => {
                return Err(stale(
                    path,
                    "its journal is missing or an older copy, so nobody knows which hints were sent already",
                ));
            }
            Some(found) => found,
        };
        if found.base != sum {
            return Err(stale(path, "its journal was begun for another version of it"));
        }
        let (journal, records) = found.open(path, &head, &marks)?;
        let mut changes = 0;
        for record in &records {
            changes += apply(&mut head, &mut table, record)?;
        }
        let mut client =
            Client { newest_mark: marks.number, changes, ..Client::begin(state, head, table, journal) };
        if marks.one_is_bad || client.journal.end() != marks.newest {
            // What the mark did not tell of yet counts from now on, also when the journal is cut short later.
            client.mark(true)?;
        }
        Ok(client)
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.table.params
    }

    /// The database and the epoch the hints are of.
    pub fn version(&self) -> Version {
        Version { database: self.head.database, epoch: self.head.epoch }
    }

    /// Queries that were recorded and have no answer yet.
    pub fn waiting(&self) -> usize {
        self.table.pending.len()
    }

    /// Queries made so far, those without an answer included.
    pub fn made(&self) -> u64 {
        self.head.next_query - 1
    }

    /// Bytes of the journal.
    pub fn journal_bytes(&self) -> u64 {
        self.journal.end().length
    }

    /// Queries that can still be made.
    pub fn remaining(&self) -> u64 {
        self.table.remaining()
    }

    /// The id of the next pair to ask a hint maker for, and the key to make it with.
    ///
    /// SEC: the key is for the hint maker of the two-server mode only.
    pub fn next_pair(&self) -> (u64, &Key) {
        (self.table.pairs.first + self.table.pairs.cutoffs.len() as u64, &self.head.key)
    }

    /// Whether a hint holds an entry: the search alone that every query begins with, for measurements. Spends nothing.
    ///
    /// # Errors
    ///
    /// When there is no such entry.
    pub fn holds(&self, index: u64) -> Result<bool> {
        Ok(self.table.find(self.params().place(index)?).is_some())
    }

    /// Makes queries for some entries and records them durably; then they may be sent. An entry may be asked for twice.
    ///
    /// # Errors
    ///
    /// When an index is too large, too few queries remain, or the journal cannot be written. Then nothing may be sent.
    pub fn ask(&mut self, indices: &[u64]) -> Result<Asked> {
        self.check()?;
        let places = indices.iter().map(|&i| self.params().place(i)).collect::<Result<Vec<Place>>>()?;
        if (indices.len() as u64) > self.remaining() {
            return Err(Error::Exhausted(self.params().backups()));
        }
        let mut random = Random::new();
        // From here to the record's end memory is ahead of the journal.
        self.broken = true;
        let (mut records, mut queries, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        for (&index, place) in indices.iter().zip(places) {
            let query = self.head.next_query;
            self.head.next_query += 1;
            let flip = random.coin()?;
            match self.table.find(place) {
                Some(slot) => {
                    self.table.spend(query, slot, place, flip)?;
                    records.push(Record::Spent { query, slot: slot as u64, index, flip });
                    queries.push(self.table.query(query)?);
                    sent.push(Sent::Hint { query });
                }
                None => {
                    // SEC: a miss looks like any other query.
                    records.push(Record::Missed { query });
                    queries.push(Query::random(self.params(), &mut random)?);
                    sent.push(Sent::Miss);
                }
            }
        }
        self.record(&records)?;
        Ok(Asked { body: queries_body(self.params(), self.head.epoch, &queries), queries: sent })
    }

    /// The queries that wait for an answer, as they were sent, byte for byte: to be sent again after a crash or a
    /// failure of the network.
    ///
    /// # Errors
    ///
    /// When the state is in doubt.
    pub fn resend(&self) -> Result<Asked> {
        self.check()?;
        let numbers: Vec<u64> = self.table.pending.keys().copied().collect();
        let queries = numbers.iter().map(|&query| self.table.query(query)).collect::<Result<Vec<Query>>>()?;
        let sent = numbers.into_iter().map(|query| Sent::Hint { query }).collect();
        Ok(Asked { body: queries_body(self.params(), self.head.epoch, &queries), queries: sent })
    }

    /// Takes the answers to what was asked: for each query the entry, or why there is none.
    ///
    /// # Errors
    ///
    /// When the body is not the answers to these queries; then they still wait.
    pub fn receive(&mut self, asked: &Asked, body: &[u8]) -> Result<Vec<Result<Fetched>>> {
        self.check()?;
        let (epoch, answers) = read_answers(self.params(), body)?;
        if epoch != self.head.epoch || answers.len() != asked.len() {
            let reason = format!(
                "{} answers of epoch {epoch} to {} queries of epoch {}",
                answers.len(),
                asked.len(),
                self.head.epoch
            );
            return Err(Error::Mismatch(reason));
        }
        let numbers: Vec<u64> = asked
            .queries
            .iter()
            .filter_map(|sent| match sent {
                Sent::Hint { query } => Some(*query),
                Sent::Miss => None,
            })
            .collect();
        self.table.check_order(&numbers)?;
        self.broken = true;
        let (mut records, mut results) = (Vec::new(), Vec::new());
        for (sent, answer) in asked.queries.iter().zip(answers) {
            let Sent::Hint { query } = *sent else {
                results.push(Err(Error::Miss { log2_chance: self.params().log2_miss() }));
                continue;
            };
            let entry = self.table.decode(query, answer)?;
            let slot = self.table.pending[&query].slot;
            self.table.settle(query, entry.as_deref())?;
            records.push(Record::Settled { query, entry: entry.clone() });
            results.push(entry.map(|entry| Fetched { entry, slot }).ok_or(Error::Poisoned));
        }
        self.record(&records)?;
        Ok(results)
    }

    /// Gives up on all queries that wait. The hints that took their places are worthless, but stay where they are: an
    /// entry that only they hold cannot be read until the next offline phase.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written.
    pub fn abandon(&mut self) -> Result<usize> {
        self.check()?;
        let numbers: Vec<u64> = self.table.pending.keys().copied().collect();
        self.broken = true;
        let mut records = Vec::new();
        for &query in &numbers {
            self.table.settle(query, None)?;
            records.push(Record::Settled { query, entry: None });
        }
        self.record(&records)?;
        Ok(numbers.len())
    }

    /// Declares a fetched entry wrong, as its tag or proof says: the hint made from it is worthless.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written.
    pub fn spoil(&mut self, fetched: &Fetched) -> Result<()> {
        self.check()?;
        self.table.spoil(fetched.slot)?;
        self.record(&[Record::Spoilt { slot: fetched.slot as u64 }])
    }

    /// Brings the hints to the next epoch.
    ///
    /// # Errors
    ///
    /// When it is not the next one, a query waits for an answer, or the journal cannot be written.
    pub fn update(&mut self, update: &Update) -> Result<()> {
        self.check()?;
        let bytes = update.to_bytes(self.params().entry_size());
        let record = Record::Updated(bytes);
        self.changes += apply(&mut self.head, &mut self.table, &record)?;
        self.record(&[record])
    }

    /// Adds pairs a hint maker made, in the body it sends.
    ///
    /// # Errors
    ///
    /// When they are not the next ones or of another epoch, or the journal cannot be written.
    pub fn top_up(&mut self, body: &[u8]) -> Result<()> {
        self.check()?;
        let record = Record::Pairs(body.to_vec());
        apply(&mut self.head, &mut self.table, &record)?;
        self.record(&[record])
    }

    /// Goes over to other hints, of another epoch or of another database: nothing is left of those there were. The key must be the
    /// one the new ones were made with.
    ///
    /// # Errors
    ///
    /// When queries wait for answers, the hints do not fit, or a file cannot be written.
    pub fn renew(
        &mut self,
        params: Params,
        version: Version,
        key: Key,
        hints: Hints,
        lanes: Lanes,
    ) -> Result<()> {
        self.check()?;
        if !self.table.pending.is_empty() {
            return Err(Error::Mismatch("queries wait for answers: receive or abandon them first".into()));
        }
        // SEC: the key is another, so no hint of before can be sent again. State and generation go on, so that after a crash the
        // journal of before is known to be older.
        let table = Table::new(params, Prf::new(&key, &params, lanes), hints)?;
        let head = Head { database: version.database, epoch: version.epoch, key, ..self.head.clone() };
        self.rewrite(head, Some(table))
    }

    /// Writes the state anew and begins an empty journal.
    ///
    /// # Errors
    ///
    /// When queries wait for answers, or a file cannot be written.
    pub fn compact(&mut self) -> Result<()> {
        self.check()?;
        if !self.table.pending.is_empty() {
            return Err(Error::Mismatch("queries wait for answers: receive or abandon them first".into()));
        }
        if self.journal.is_empty() {
            return Ok(());
        }
        self.rewrite(self.head.clone(), None)
    }

    /// Writes a state of the next generation, with other hints if there are any, and begins its journal.
    fn rewrite(&mut self, mut head: Head, hints: Option<Table>) -> Result<()> {
        head.generation += 1;
        self.broken = true;
        let (mut sum, table) = ([0; 32], hints.as_ref().unwrap_or(&self.table));
        self.state.replace(|to| {
            sum = snapshot::write(to, &head, table)?;
            Ok(())
        })?;
        if let Some(table) = hints {
            self.table = table;
        }
        self.newest_mark = 0;
        self.journal = Journal::create(&self.path, &head, sum)?;
        self.head = head;
        self.changes = 0;
        self.broken = false;
        Ok(())
    }

    /// Does [`Client::compact`] where the journal has become so long that opening the state takes much longer for it, and
    /// no query waits. Says whether it was done.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn tidy(&mut self) -> Result<bool> {
        let long =
            self.changes > MOST_CHANGES || self.journal.end().length > self.params().storage_bytes() / 8;
        let due = long && self.waiting() == 0;
        if due {
            self.compact()?;
        }
        Ok(due)
    }

    /// The ids of the hints that queries which wait have spent: for tests of what is sent.
    pub fn spent_ids(&self) -> Vec<u64> {
        self.table.pending.keys().filter_map(|&query| self.table.spent_id(query)).collect()
    }

    fn check(&self) -> Result<()> {
        if self.broken {
            return Err(stale(&self.path, "writing it failed before; open it again"));
        }
        Ok(())
    }

    fn record(&mut self, records: &[Record]) -> Result<()> {
        // Until it is known to be durable, memory is ahead of the file.
        self.broken = true;
        self.journal.append(records)?;
        self.mark(records.iter().any(Record::is_binding))?;
        self.broken = false;
        Ok(())
    }

    /// Tells the state file how far the journal goes; durably where a query is about to leave.
    fn mark(&mut self, durably: bool) -> Result<()> {
        if !is_at(self.state.file(), &self.path) {
            let reason = "somebody moved, replaced or removed it while it was in use; nothing was sent";
            return Err(Error::damaged(&self.path, reason));
        }
        // Never over the newest: if this is cut short, that one still counts.
        self.newest_mark = 1 - self.newest_mark;
        let written = self.journal.end().write(&self.head, self.state.file(), self.newest_mark);
        let forced = written.and_then(|()| if durably { self.state.file().sync_data() } else { Ok(()) });
        forced.map_err(Error::io(&self.path))
    }
}

/// A state is never written over, nor is the journal of one.
fn vacant(path: &Path) -> Result<()> {
    let journal = Journal::path_of(path);
    let there = [path, &journal].into_iter().find(|path| path.symlink_metadata().is_ok());
    there.map_or(Ok(()), |path| {
        let reason = "there is a file already; a state and its journal are never written over: give another name, or \
                      remove both if no query shall be made with them any more";
        Err(Error::format(path.display().to_string(), reason))
    })
}

/// Does what a record says. Says how many changed entries that were.
fn apply(head: &mut Head, table: &mut Table, record: &Record) -> Result<u64> {
    match record {
        Record::Spent { query, slot, index, flip } => {
            let place = table.params.place(*index)?;
            table.spend(*query, *slot as usize, place, *flip)?;
            head.next_query = query + 1;
        }
        Record::Missed { query } => head.next_query = query + 1,
        Record::Settled { query, entry } => table.settle(*query, entry.as_deref())?,
        Record::Spoilt { slot } => table.spoil(*slot as usize)?,
        Record::Updated(bytes) => {
            let (update, _) = Update::read(&table.params, bytes)?;
            if update.number != head.epoch + 1 {
                let reason = format!(
                    "the hints are of epoch {}; an update to {} does not follow",
                    head.epoch, update.number
                );
                return Err(Error::Mismatch(reason));
            }
            table.update(&update)?;
            head.epoch = update.number;
            return Ok(update.indices.len() as u64);
        }
        Record::Pairs(body) => {
            let (epoch, hints) = two_server::read(&table.params, body)?;
            if epoch != head.epoch {
                return Err(Error::Mismatch(format!(
                    "pairs of epoch {epoch} for hints of epoch {}",
                    head.epoch
                )));
            }
            table.top_up(&hints)?;
        }
    }
    Ok(0)
}
