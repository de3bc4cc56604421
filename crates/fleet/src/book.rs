//! One job as the coordinator has it: what to give out next, and what comes of a report. No network and no clock of its own.

mod checking;
mod comparing;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use warpsmith_engine::{KeyUnit, Subject};

pub use self::checking::{Taken, Wrong};
use self::comparing::Repeat;
use crate::duty::{Duty, Found, SALTS};
use crate::error::{Error, Result};
use crate::folder::{FOUND, FoundAt, Wishes, read_found};
use crate::id::{JobId, JobIdError};
use crate::job::{Descriptor, Search};
use crate::leases::{Held, Holder, Leases};
use crate::ledger::Ledger;
use crate::pace::Pace;
use crate::secrets::Master;
use crate::wire::{Lease, Ready, Report, Work};

/// Shares that a unit is cut for, at least; at most twice as many.
const SHARES: f64 = 64.0;
/// Numbers that are marked as given away at a time.
const AHEAD: u64 = 64;

/// One job.
pub struct Book {
    id: JobId,
    descriptor: Descriptor,
    duty: Duty,
    wishes: Wishes,
    master: Master,
    ledger: Ledger,
    leases: Leases,
    /// Numbers that were given and came to nothing.
    open: Vec<(u64, u64)>,
    /// The lowest number that was never given.
    next: u64,
    /// The last number there is.
    last: u64,
    repeats: BTreeMap<u64, Repeat>,
    /// Measured speeds of devices.
    paces: HashMap<Holder, Pace>,
    found: Vec<FoundAt>,
    found_path: PathBuf,
    base: [u8; 32],
    beat: u32,
    /// Seconds of devices it was given, by its priority.
    pub served: f64,
    /// Whether somebody ended it.
    pub cancelled: bool,
    expired_at: Duration,
    /// When all was done but what is done twice.
    all_done_at: Option<Duration>,
    /// Whether any device was ready for it under this coordinator.
    attended: bool,
    /// When a device was last called to it that has not arrived.
    called_at: Option<Duration>,
}

impl Book {
    /// The job in this folder, for a coordinator of this epoch.
    pub fn open(folder: &Path, epoch: u64, now: Duration, unit_time: Duration) -> Result<Book> {
        let text_path = folder.join("job.json");
        let read = |path: &Path| std::fs::read_to_string(path).map_err(Error::io(path));
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id: JobId =
            name.parse().map_err(|error: JobIdError| Error::corrupt(folder, error.to_string()))?;
        let descriptor = Descriptor::read(&read(&text_path)?, &id)?;
        let wishes = Wishes::read(folder)?;
        let master = Master::open(&folder.join("master"), id)?;
        let duty = Duty::open(folder, &descriptor, &master)?;
        let ledger = Ledger::open(&folder.join("ledger"), id, epoch)?;
        let found_path = folder.join(FOUND);
        // The owner's side says which lines are damaged: those that can be read are enough here.
        let found: Vec<FoundAt> =
            read_found(&found_path)?.records.into_iter().map(|(_, found)| found).collect();
        let last = duty.numbers().unwrap_or(u64::MAX);
        let beat = found.iter().filter_map(|found| found.score).max().unwrap_or(0);
        let next = ledger.standing().marked.saturating_add(1);
        // Salts have no secret. This only keeps two jobs from doing the same ones.
        let base = id.0;
        let mut book = Book {
            id,
            descriptor,
            duty,
            wishes,
            master,
            ledger,
            leases: Leases::default(),
            open: Vec::new(),
            next,
            last,
            repeats: BTreeMap::new(),
            paces: HashMap::new(),
            found,
            found_path,
            base,
            beat,
            served: 0.0,
            cancelled: folder.join("cancelled").exists(),
            expired_at: Duration::ZERO,
            all_done_at: None,
            attended: false,
            called_at: None,
        };
        // What a coordinator before this one gave away may still come back.
        let until = now + 3 * unit_time;
        for (first, count) in book.gaps() {
            book.leases.give(first, Held { holder: None, count, until, candidates: 0.0 });
        }
        Ok(book)
    }

    /// Numbers that were given away and are not done.
    fn gaps(&self) -> Vec<(u64, u64)> {
        let (mut gaps, mut from) = (Vec::new(), 1);
        while let Some((first, count)) = self.ledger.standing().gap(from, self.next.saturating_sub(1)) {
            gaps.push((first, count));
            from = first + count;
        }
        gaps
    }

    /// The name.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// What it is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// What was asked for besides.
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// What it is at home.
    pub fn duty(&self) -> &Duty {
        &self.duty
    }

    /// How much of it is done, of a job that has an end, and of each of so many equal parts of it.
    pub fn coverage(&self, parts: u32) -> Option<(f64, Vec<f64>)> {
        let last = (self.last != u64::MAX).then_some(self.last)? as f64;
        let mut cells = vec![0.0; parts as usize];
        let width = last / f64::from(parts);
        for (first, end) in self.ledger.standing().intervals() {
            let (from, to) = ((first - 1) as f64, end as f64);
            let cell = |at: f64| ((at / width) as usize).min(cells.len() - 1);
            for at in cell(from)..=cell(to) {
                let (low, high) = (at as f64 * width, (at + 1) as f64 * width);
                cells[at] += ((to.min(high) - from.max(low)) / width).max(0.0);
            }
        }
        Some((self.ledger.standing().units as f64 / last, cells))
    }

    /// What is done.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Who has what.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// What was found.
    pub fn found(&self) -> &[FoundAt] {
        &self.found
    }

    /// Whether there is nothing left to give out, for good.
    pub fn is_over(&self) -> bool {
        let enough = self.wishes.enough.is_some_and(|enough| self.beat >= enough);
        let all = self.is_all_done() && self.repeats.is_empty();
        self.cancelled || enough || all || self.wishes.count.is_some_and(|count| self.matches() >= count)
    }

    /// Whether every unit there is is done. What somebody left out may show when one is done twice.
    fn is_all_done(&self) -> bool {
        self.last != u64::MAX && self.ledger.standing().units >= self.last
    }

    /// Takes back what was not returned in time. Comparisons that nobody is there for are not waited for longer than a lease.
    pub fn tick(&mut self, now: Duration, unit_time: Duration) {
        if now < self.expired_at {
            return;
        }
        self.expired_at = now + unit_time / 100;
        for (first, held) in self.leases.expire(now) {
            if let Some(pace) = held.holder.and_then(|holder| self.paces.get_mut(&holder)) {
                pace.missed(held.candidates);
            }
            self.open.push((first, held.count));
        }
        self.take_back_repeats(now);
        self.all_done_at = self.is_all_done().then(|| self.all_done_at.unwrap_or(now));
        let is_late = self.all_done_at.is_some_and(|since| now >= since + 3 * unit_time);
        if is_late {
            self.repeats.retain(|_, repeat| repeat.is_given());
        }
    }

    /// Whether there is a unit to give to this worker now.
    pub fn has_unit_for(&self, worker: u32) -> bool {
        let is_comparable = |repeat: &Repeat| repeat.is_free_for(worker);
        !self.open.is_empty() || self.next <= self.last || self.repeats.values().any(is_comparable)
    }

    /// Whether this worker's device should drop its unit of another job for this one: because no device has been at it yet, or
    /// because all that is left of it is a comparison by another worker. A device that was called has `within` to arrive.
    pub fn is_calling(&self, worker: u32, now: Duration, within: Duration) -> bool {
        let is_waiting = !self.attended || (self.is_all_done() && !self.leases.is_any_held());
        let is_called = self.called_at.is_some_and(|called| now < called + within);
        is_waiting && !is_called && !self.is_over() && self.has_unit_for(worker)
    }

    /// Notes that a device was called to it.
    pub fn call(&mut self, now: Duration) {
        self.called_at = Some(now);
    }

    /// Notes that a device that was called has a unit.
    pub fn answer_call(&mut self) {
        self.called_at = None;
    }

    /// Notes that a device is ready for it.
    pub fn attend(&mut self) {
        self.attended = true;
    }

    /// Takes back what a device has of it, but for these units.
    pub fn keep_only(&mut self, holder: Holder, units: &[u64]) -> bool {
        let lost = self.leases.keep_only(holder, units);
        let has_lost = !lost.is_empty();
        self.open.extend(lost);
        self.give_up_repeats(holder, units);
        has_lost
    }

    /// Matches so far: what counts towards the wish.
    pub fn matches(&self) -> u64 {
        self.found.len() as u64
    }

    /// A unit for a device; none if nothing is left for now.
    pub fn lease(
        &mut self,
        holder: Holder,
        ready: &Ready,
        holding: &[u64],
        now: Duration,
        unit_time: Duration,
    ) -> Option<Lease> {
        self.tick(now, unit_time);
        // What was given and never arrived, or was refused.
        let has_lost = self.keep_only(holder, holding);
        if self.leases.count_of(holder) >= crate::leases::MOST {
            return None;
        }
        let until = now + 3 * unit_time;
        let pace = self.paces.entry(holder).or_default();
        // SEC: who drops a unit and reports it all the same would have no time measured, or too little.
        if has_lost {
            pace.stop();
        } else if self.leases.count_of(holder) == 0 {
            pace.start(now);
        }
        let keys = pace.size(ready.rate, unit_time);
        if let Some(lease) = self.repeat_for(holder, keys, until) {
            return Some(lease);
        }
        let (keys, wished) = match &self.duty {
            Duty::Scan(scan) => (keys, scan.numbers_of(keys)),
            Duty::Search(search) => {
                // About one match in a unit at most: of a unit only one is used.
                let keys = keys.min(1.0 / search.wanted().odds(self.beat)).max(1.0);
                (keys, search.salts().map_or(1, |_| (keys / SALTS as f64).round().max(1.0) as u64))
            }
        };
        let (unit, count) = self.numbers(wished)?;
        let work = match &self.duty {
            Duty::Scan(scan) => scan.work(&self.master, unit, count),
            Duty::Search(search) => match search.salts() {
                Some(salts) => {
                    let first = (unit - 1) * SALTS;
                    let last = (u128::from(unit - 1 + count) * u128::from(SALTS)).min(salts) - 1;
                    Some(Work::Salts { base: const_hex::encode(self.base), first, last: last as u64 })
                }
                None => self.keys(search, unit, ready, keys),
            },
        };
        let candidates = work.as_ref().and_then(Work::candidates);
        let (Some(work), Some(candidates)) = (work, candidates) else {
            // A device that says nonsense of itself: another will do them.
            self.open.push((unit, count));
            return None;
        };
        let bits = (candidates as f64 / SHARES).log2().floor().clamp(1.0, 60.0) as u32;
        self.leases.give(unit, Held { holder: Some(holder), count, until, candidates: candidates as f64 });
        let lease = Lease {
            job: self.id,
            unit,
            count,
            epoch: self.ledger.standing().epoch,
            worker: holder.worker,
            slot: holder.slot,
            bits,
            beat: self.beat,
            ms: (3 * unit_time).as_millis() as u64,
            work,
            token: String::new(),
        };
        Some(lease.signed(&self.master))
    }

    /// The next numbers to give out: at most so many in a row.
    fn numbers(&mut self, most: u64) -> Option<(u64, u64)> {
        while let Some((first, count)) = self.open.pop() {
            // Some of them may have come back late, in the middle too: what lies behind those stays open.
            let last = first + (count - 1);
            let Some((first, free)) = self.ledger.standing().gap(first, last) else { continue };
            let taken = free.min(most);
            if last - first >= taken {
                self.open.push((first + taken, last - first - taken + 1));
            }
            return Some((first, taken));
        }
        let (first, count) = (self.next, most.min(self.last.checked_sub(self.next)?.saturating_add(1)));
        if count == 0 {
            return None;
        }
        self.next += count;
        if self.next - 1 > self.ledger.standing().marked {
            self.ledger.mark((self.next - 1 + AHEAD).min(self.last));
        }
        Some((first, count))
    }

    fn keys(&self, search: &Search, unit: u64, ready: &Ready, keys: f64) -> Option<Work> {
        let secret = self.master.unit(unit).public_key();
        let point = match &search.split {
            Some(owner) => owner.combine(&secret).ok()?,
            None => secret,
        };
        // SEC: which keys are candidates follows from the target. A worker that chose would have keys counted twice, or have units that
        // nobody else can do and so nobody compares.
        let Subject::Key(target) = search.subject() else { return None };
        let (orbits, signs) = KeyUnit::relatives(target.form());
        let half = ready.half;
        let sample = KeyUnit { point, half, orbits, signs, steps: 1 };
        if !sample.is_sound() || !half.is_power_of_two() {
            return None;
        }
        // Whole multiples of what a device does side by side, where a unit is as large as that.
        let grain = ready.grain.clamp(1, 1 << 24);
        let steps = (keys / sample.keys_of_step() as f64).round().max(1.0) as u64;
        let steps = if steps >= grain { steps / grain * grain } else { steps };
        let steps = steps.min(KeyUnit::MOST_STEPS);
        Some(Work::Keys { point: const_hex::encode(point.serialize()), half, orbits, signs, steps })
    }

    /// Takes back what a worker has that left for good. What it did counts.
    pub fn take_back(&mut self, worker: u32) {
        let lost = self.leases.take_all(worker);
        self.open.extend(lost);
        self.paces.retain(|holder, _| holder.worker != worker);
        self.repeats.values_mut().for_each(|repeat| repeat.take_back(worker));
    }

    /// Nothing that a worker did counts: its units are open again.
    pub fn forget(&mut self, worker: u32) -> Result<()> {
        self.repeats.retain(|_, repeat| repeat.lease.worker != worker);
        self.repeats.values_mut().for_each(|repeat| repeat.take_back(worker));
        self.leases.take_all(worker);
        self.ledger.revoke(worker)?;
        let gaps = self.gaps();
        self.open.clear();
        for (first, count) in gaps {
            // But for what others have.
            let (mut at, end) = (first, first + count);
            while at < end {
                match self.leases.is_held(at) {
                    Some((from, held)) => at = from + held.count,
                    None => {
                        let to = self.leases.next_after(at).map_or(end, |next| next.min(end));
                        self.open.push((at, to - at));
                        at = to;
                    }
                }
            }
        }
        Ok(())
    }

    /// Stops the clock for a device, which begins with its next unit: how long it was at this one, where that is known. SEC: for reports
    /// that were verified only, or a worker would have its time measured from a report that is none.
    pub fn lap(&mut self, lease: &Lease, now: Duration) -> Option<Duration> {
        self.paces.get_mut(&lease.holder())?.lap(now)
    }

    /// Takes note of a unit that counts; returns how long it took, where that is known.
    pub fn proven(&mut self, lease: &Lease, now: Duration) -> Option<Duration> {
        let candidates = lease.work.candidates().unwrap_or(0) as f64;
        let time = self.lap(lease, now);
        self.paces.entry(lease.holder()).or_default().proven(candidates, time);
        time
    }

    /// Returns the seconds that a unit should take a device: by its measured rate, or a unit's time where there is none.
    pub fn seconds(&self, lease: &Lease, unit_time: Duration) -> f64 {
        let rate = self.paces.get(&lease.holder()).and_then(Pace::rate);
        let candidates = lease.work.candidates().unwrap_or(0) as f64;
        let unit_time = unit_time.as_secs_f64();
        rate.map_or(unit_time, |rate| (candidates / rate).min(3.0 * unit_time))
    }

    /// Takes the first so many numbers of a unit as done, and the rest back. Says whether that is new.
    pub fn count(&mut self, worker: u32, report: &Report, numbers: u64) -> bool {
        let Lease { unit, count, work, .. } = &report.lease;
        self.leases.release(*unit, *count);
        if numbers < *count {
            self.open.push((unit + numbers, count - numbers));
        }
        let all = work.candidates().unwrap_or(0).min(u128::from(u64::MAX)) as u64;
        let keys = match &self.duty {
            Duty::Scan(scan) => scan.keys_of(numbers).min(all),
            Duty::Search(_) => all,
        };
        numbers > 0 && self.ledger.done(worker, *unit, numbers, keys)
    }

    /// Gives a unit back whose report is not believed.
    pub fn give_back(&mut self, lease: &Lease) {
        self.leases.release(lease.unit, lease.count);
        self.open.push((lease.unit, lease.count));
    }

    /// Keeps a match, on disk when this returns. Of a unit only one is kept, since its keys are related; of scores only better ones.
    pub fn keep(&mut self, lease: &Lease, spot: u64, seconds: f64) -> Result<bool> {
        // Keys of one unit of a search are related.
        let is_alone = matches!(&self.duty, Duty::Search(search) if search.salts().is_none());
        let is_taken = is_alone && self.found.iter().any(|found| found.lease.unit == lease.unit);
        let is_same = self.found.iter().any(|found| found.lease.unit == lease.unit && found.spot == spot);
        if is_taken || is_same || self.is_over() {
            return Ok(false);
        }
        let Ok(found) = self.settle(lease, spot) else { return Ok(false) };
        let score = found.iter().find_map(|found| match found {
            Found::Match(found) => found.score(),
            Found::Finding(_) => None,
        });
        let is_better = score.is_none_or(|score| score > self.beat);
        if !is_better {
            return Ok(false);
        }
        // The same key or salt may lie in another unit of another length, after one was done again.
        let address = found.first().map(|found| found.address().to_owned());
        if address.is_some() && self.found.iter().any(|found| found.address == address) {
            return Ok(false);
        }
        let tried = self.ledger.standing().keys;
        let lease = Lease { work: lease.work.place(), ..lease.clone() };
        let found = FoundAt { lease, spot, tried, seconds, score, address };
        found.append(&self.found_path)?;
        self.beat = self.beat.max(score.unwrap_or(0));
        self.found.push(found);
        Ok(true)
    }

    /// What lies at a spot.
    pub fn settle(&self, lease: &Lease, spot: u64) -> Result<Vec<Found>> {
        self.duty.settle(&self.master, lease, spot)
    }

    /// Forces the ledger to disk.
    pub fn sync(&mut self) -> Result<()> {
        self.ledger.sync()
    }
}
