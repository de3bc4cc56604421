//! All jobs and all workers: who gets what, and what becomes of whom. No network, and no clock of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::blocklist::Blocked;
use crate::book::{Book, Taken, Wrong};
use crate::error::Result;
use crate::id::JobId;
use crate::leases::Holder;
use crate::pace::plausible;
use crate::proof::{Record, Trust, UnitVerdict};
use crate::scan::Scanned;
use crate::wire::{Answer, Ask, Report, VERSION, Verdict};

/// How a fleet is led.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How long a unit shall take.
    pub unit_time: Duration,
    /// So many units of a new worker, of its full size, are done twice.
    pub repeat_first: u64,
    /// One in so many units of others is.
    pub repeat_one_in: u32,
    /// Shares that are verified of a unit whose worker is in good standing, by lot. Of others, and where this is 0, all are.
    pub sample: usize,
}

impl Default for Policy {
    /// Units of a minute, so that leases of three end within twice the longest unit.
    fn default() -> Policy {
        Policy { unit_time: Duration::from_secs(60), repeat_first: 10, repeat_one_in: 50, sample: 8 }
    }
}

/// Units of its full size after which a worker of whom nothing was seen that is wrong is in good standing.
pub const GOOD_STANDING: f64 = 32.0;

/// Devices of one worker, at most.
pub const MOST_SLOTS: u16 = 64;

/// Time between two heartbeats of a device at work. In a fleet of many workers it is longer.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Longest time between two heartbeats, however many workers there are.
const MAX_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);

/// Time between heartbeats for each worker of the fleet: the coordinator answers 500 a second.
const HEARTBEAT_COST: Duration = Duration::from_millis(2);

/// Heartbeats after which a worker that was not heard of is away.
const MISSED_HEARTBEATS: u32 = 4;

/// Time that a device has to prepare for a job it was called to, before another one is called.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known of a device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// What its worker calls it.
    pub device: String,
    /// The job it does.
    pub job: Option<JobId>,
    /// Candidates a second, as it says, within what is plausible.
    pub rate: f64,
    /// When it was last heard of.
    pub seen: Duration,
}

/// What is known of a worker.
#[derive(Clone, Debug, Default)]
pub struct WorkerInfo {
    /// Statistics of its shares, and what is thought of it.
    pub record: Record,
    /// Its devices.
    pub devices: BTreeMap<u16, DeviceInfo>,
    /// Candidates of units that count.
    pub keys: u128,
    /// Seconds of devices that these took, by the coordinator's clock.
    pub seconds: f64,
    /// Units that were refused.
    pub refused: u64,
    /// When it was first heard of.
    pub since: Option<Duration>,
    /// Whether it was put out.
    pub removed: bool,
}

impl WorkerInfo {
    /// When it was last heard of.
    pub fn seen(&self) -> Duration {
        self.devices.values().map(|device| device.seen).max().or(self.since).unwrap_or_default()
    }
}

/// Everything a coordinator has.
pub struct Coordinator {
    books: Vec<Book>,
    workers: BTreeMap<u32, WorkerInfo>,
    policy: Policy,
    /// Workers that were set aside since [`Coordinator::take_blocked`].
    blocked: Vec<Blocked>,
}

impl Coordinator {
    /// Without jobs.
    pub fn new(policy: Policy) -> Coordinator {
        Coordinator { books: Vec::new(), workers: BTreeMap::new(), policy, blocked: Vec::new() }
    }

    /// How it is led.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Takes a job on. It begins with as much of the fleet behind it as the one that had least. Whoever was caught before is set
    /// aside again.
    pub fn add(&mut self, mut book: Book) {
        book.served = self.open_books().map(|other| other.served).fold(f64::INFINITY, f64::min);
        book.served = if book.served.is_finite() { book.served } else { 0.0 };
        for worker in book.ledger().revoked() {
            let why = "it was caught before";
            self.workers.entry(*worker).or_default().record.set_aside(why);
            self.blocked.push(Blocked { worker: *worker, why: why.to_owned() });
        }
        self.books.push(book);
    }

    /// Lets go of a job.
    pub fn remove(&mut self, id: JobId) -> Option<Book> {
        let at = self.books.iter().position(|book| book.id() == id)?;
        Some(self.books.remove(at))
    }

    /// All jobs.
    pub fn books(&self) -> &[Book] {
        &self.books
    }

    /// One job.
    pub fn book(&self, id: JobId) -> Option<&Book> {
        self.books.iter().find(|book| book.id() == id)
    }

    fn book_mut(&mut self, id: JobId) -> Option<&mut Book> {
        self.books.iter_mut().find(|book| book.id() == id)
    }

    /// All workers that were heard of.
    pub fn workers(&self) -> &BTreeMap<u32, WorkerInfo> {
        &self.workers
    }

    fn open_books(&self) -> impl Iterator<Item = &Book> {
        self.books.iter().filter(|book| !book.is_over())
    }

    /// Ends a job. Says whether there is one.
    pub fn cancel(&mut self, id: JobId) -> bool {
        self.book_mut(id).map(|book| book.cancelled = true).is_some()
    }

    /// A device asks for work.
    pub fn get(&mut self, worker: u32, ask: &Ask, now: Duration) -> Answer {
        let refuse = |why: &str| Answer::Refused { why: why.to_owned() };
        if ask.version != VERSION {
            return Answer::Refused {
                why: format!(
                    "this fleet speaks version {VERSION}, the worker {}: use the same program",
                    ask.version
                ),
            };
        }
        if ask.slot >= MOST_SLOTS {
            return refuse("a worker has at most 64 devices; start another worker for more");
        }
        let info = self.workers.entry(worker).or_default();
        if info.removed {
            return refuse("it was put out of the fleet");
        }
        info.since.get_or_insert(now);
        if let Trust::Aside(why) = info.record.trust() {
            return Answer::Refused { why: format!("set aside: {why}") };
        }
        let rate = ask.ready.map_or(0.0, |ready| plausible(ready.rate));
        let mut device = ask.device.clone();
        device.retain(|letter| letter.is_ascii_graphic() || letter == ' ');
        device.truncate(64);
        let job = ask.ready.map(|ready| ready.job);
        info.devices.insert(ask.slot, DeviceInfo { device, job, rate, seen: now });
        if let Some(book) = job.and_then(|job| self.book_mut(job)) {
            book.attend();
        }
        if ask.busy {
            return self.heartbeat(worker, ask, now);
        }
        self.tick(now);
        // What was given to it and never arrived, or belongs to a job that it has left.
        let holder = Holder { worker, slot: ask.slot };
        for book in &mut self.books {
            book.keep_only(holder, if Some(book.id()) == job { &ask.holding } else { &[] });
        }
        // One that has a unit to begin with is called by the answer to its heartbeat.
        if ask.holding.is_empty()
            && let Some(called) = self.calling(worker, ask, now)
        {
            return Answer::Prepare { job: called };
        }
        let able = |book: &&Book| !ask.unable.contains(&book.id()) && book.has_unit_for(worker);
        let Some(least) = self.open_books().filter(able).min_by(|a, b| a.served.total_cmp(&b.served)) else {
            return Answer::Wait { ms: 1000 };
        };
        // To prepare for a job takes seconds: a device stays with its own until that has had two units more than its share.
        let unit_time = self.policy.unit_time;
        let slack = 2.0 * unit_time.as_secs_f64();
        let own = job.and_then(|job| self.book(job)).filter(|book| !book.is_over() && able(book));
        let chosen = own
            .filter(|own| own.served <= least.served + slack / own.wishes().priority)
            .unwrap_or(least)
            .id();
        let Some(ready) = ask.ready.filter(|ready| ready.job == chosen) else {
            return Answer::Prepare { job: chosen };
        };
        let Some(book) = self.book_mut(chosen) else { return Answer::Wait { ms: 1000 } };
        match book.lease(holder, &ready, &ask.holding, now, unit_time) {
            Some(lease) => {
                book.answer_call();
                let seconds = book.seconds(&lease, unit_time);
                book.served += seconds / book.wishes().priority.max(1e-3);
                Answer::Lease(Box::new(lease))
            }
            None => Answer::Wait { ms: 500 },
        }
    }

    /// The job that needs this device more than the one it has, if there is any.
    fn calling(&mut self, worker: u32, ask: &Ask, now: Duration) -> Option<JobId> {
        // Devices of other jobs may be at work, and unheard of by a coordinator that has just begun.
        if now < 2 * self.heartbeat_interval() {
            return None;
        }
        let own = ask.ready.map(|ready| ready.job);
        let is_calling = |book: &&mut Book| {
            let is_able = Some(book.id()) != own && !ask.unable.contains(&book.id());
            is_able && book.is_calling(worker, now, CALL_TIMEOUT)
        };
        let book = self.books.iter_mut().find(is_calling)?;
        book.call(now);
        Some(book.id())
    }

    /// Answers a device at work: it continues, unless its job is over and there is another, or another job calls it.
    fn heartbeat(&mut self, worker: u32, ask: &Ask, now: Duration) -> Answer {
        let wait = Answer::Wait { ms: self.heartbeat_interval().as_millis() as u64 };
        let Some(ready) = ask.ready else { return wait };
        let is_open = self.book(ready.job).is_some_and(|book| !book.is_over());
        let able = |book: &&Book| !ask.unable.contains(&book.id()) && book.has_unit_for(worker);
        let least = || self.open_books().filter(able).min_by(|a, b| a.served.total_cmp(&b.served));
        let other = if is_open { None } else { least().map(Book::id) };
        let Some(job) = self.calling(worker, ask, now).or(other) else { return wait };
        if let Some(book) = self.book_mut(ready.job) {
            book.keep_only(Holder { worker, slot: ask.slot }, &[]);
        }
        Answer::Prepare { job }
    }

    /// Time between two heartbeats of a device.
    pub fn heartbeat_interval(&self) -> Duration {
        (HEARTBEAT_COST * self.workers.len() as u32).clamp(HEARTBEAT_INTERVAL, MAX_HEARTBEAT_INTERVAL)
    }

    /// Whether a worker or device that was last heard of then has stopped, or lost its connection.
    pub fn is_away(&self, seen: Duration, now: Duration) -> bool {
        seen + MISSED_HEARTBEATS * self.heartbeat_interval() <= now
    }

    /// A report comes. The answer may be sent after [`Coordinator::sync`]. `seconds` is since this coordinator began, as for
    /// [`Coordinator::get`].
    pub fn put(&mut self, worker: u32, report: &Report, seconds: f64) -> Result<Verdict> {
        let refuse = |why: &str| Ok(Verdict::Refused { why: why.to_owned() });
        let policy = self.policy;
        let info = self.workers.entry(worker).or_default();
        if info.record.is_aside() {
            return refuse("set aside");
        }
        if info.removed {
            return refuse("it was put out of the fleet");
        }
        let Some(book) = self.books.iter_mut().find(|book| book.id() == report.lease.job) else {
            return refuse("no such job");
        };
        // Of who is new, is flagged or is compared with another, everything is looked at.
        let is_trusted = info.record.full_units() >= GOOD_STANDING && *info.record.trust() == Trust::Honest;
        let repeated = is_trusted && policy.repeat_one_in > 0 && lot()?.is_multiple_of(policy.repeat_one_in);
        let sample = (is_trusted && !repeated && policy.sample > 0).then_some(policy.sample);
        let now = Duration::from_secs_f64(seconds.max(0.0));
        match book.check(worker, report, sample) {
            Err(Wrong::Refused(why)) => {
                info.refused += 1;
                Ok(Verdict::Refused { why })
            }
            Err(Wrong::False(why)) => {
                self.set_aside(worker, &why)?;
                Ok(Verdict::Refused { why })
            }
            Ok(Taken::Known) => Ok(Verdict::Known),
            Ok(Taken::Same) => {
                book.lap(&report.lease, now);
                Ok(Verdict::Known)
            }
            Ok(Taken::Differs { short }) => {
                book.lap(&report.lease, now);
                for worker in short {
                    self.set_aside(worker, "it lacks shares that another found in the same unit")?;
                }
                Ok(Verdict::Known)
            }
            Ok(Taken::Scanned(Scanned { found, numbers })) => {
                for spot in found {
                    book.keep(&report.lease, spot, seconds)?;
                }
                info.record.count(report.lease.work.candidates().unwrap_or(0));
                let is_whole = numbers == report.lease.count;
                if !book.count(worker, report, numbers) {
                    return Ok(Verdict::Known);
                }
                self.counted(worker, report, is_whole, repeated, now)
            }
            Ok(Taken::True { parts, candidates }) => {
                // A true match is one whatever else is thought of the worker.
                for spot in &report.matches {
                    book.keep(&report.lease, *spot, seconds)?;
                }
                let verdict = info.record.take(&parts, candidates, report.lease.bits);
                if let Trust::Aside(why) = info.record.trust().clone() {
                    self.set_aside(worker, &why)?;
                    return Ok(Verdict::Refused { why });
                }
                if verdict != UnitVerdict::Fine {
                    info.refused += 1;
                    book.give_back(&report.lease);
                    return refuse("its shares are too few, or a part of it has none: it is done again");
                }
                if !book.count(worker, report, report.lease.count) {
                    return Ok(Verdict::Known);
                }
                self.counted(worker, report, true, repeated, now)
            }
        }
    }

    /// A unit counts: credits it, and has it done again by another where that is due.
    fn counted(
        &mut self,
        worker: u32,
        report: &Report,
        is_whole: bool,
        repeated: bool,
        now: Duration,
    ) -> Result<Verdict> {
        let is_other = |(id, info): (&u32, &WorkerInfo)| {
            let is_out = info.removed || info.record.is_aside();
            *id != worker && !is_out && !self.is_away(info.seen(), now)
        };
        let (policy, others) = (self.policy, self.workers.iter().any(is_other));
        let time = self.book_mut(report.lease.job).and_then(|book| book.proven(&report.lease, now));
        let info = self.workers.entry(worker).or_default();
        info.keys += report.lease.work.candidates().unwrap_or(0);
        info.seconds += time.unwrap_or(Duration::from_millis(report.ms)).as_secs_f64();
        let is_watched = info.record.full_units() <= policy.repeat_first as f64
            || matches!(info.record.trust(), Trust::Flagged(_))
            || repeated;
        let is_repeated = others && is_watched && is_whole && policy.repeat_one_in > 0;
        if is_repeated && let Some(book) = self.book_mut(report.lease.job) {
            book.repeat(report);
        }
        Ok(Verdict::Counted)
    }

    /// Puts a worker out: it gets and gives nothing any more, and what it has is given to others at once. What it did counts.
    pub fn put_out(&mut self, worker: u32) {
        let info = self.workers.entry(worker).or_default();
        if !std::mem::replace(&mut info.removed, true) {
            info.devices.clear();
            self.books.iter_mut().for_each(|book| book.take_back(worker));
        }
    }

    /// Nothing of a worker counts any more, in any job: its units are done again.
    pub fn set_aside(&mut self, worker: u32, why: &str) -> Result<()> {
        self.workers.entry(worker).or_default().record.set_aside(why);
        self.blocked.push(Blocked { worker, why: why.to_owned() });
        self.books.iter_mut().try_for_each(|book| book.forget(worker))
    }

    /// Returns workers that were set aside since the last call, to be kept in the fleet's folder.
    pub fn take_blocked(&mut self) -> Vec<Blocked> {
        std::mem::take(&mut self.blocked)
    }

    /// Takes back what was not returned in time.
    pub fn tick(&mut self, now: Duration) {
        let unit_time = self.policy.unit_time;
        self.books.iter_mut().for_each(|book| book.tick(now, unit_time));
    }

    /// Forces all ledgers to disk.
    pub fn sync(&mut self) -> Result<()> {
        self.books.iter_mut().try_for_each(Book::sync)
    }
}

/// A number nobody can foresee.
fn lot() -> Result<u32> {
    let mut bytes = [0; 4];
    warpsmith_entropy::fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests;
