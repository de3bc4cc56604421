//! The collector: counts what was verified, tells it, and hands out salts.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::judge::Judged;
use super::progress::{Progress, eta_50, probability};
use super::steady::HostCpu;
use super::thread::Message;
use super::{Ended, Event, Job, Match, Plan, Sink, Solution, Wanted, Why};
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::run::clock::{Clock, NAP, Tick};
use crate::run::rates::Rates;
use crate::secret::wiping_stack;
use crate::space::{Lease, Salts};
use crate::worker::Fault;

/// The most matches that are told together, and how many at first. A group that is full is followed by one of up to twice as
/// many: who writes them down has seen how much that may be.
pub(super) const GROUP: usize = 256;
const FIRST_GROUP: usize = 4;

/// What the collector knows of one worker.
pub(super) struct Slot {
    device: usize,
    /// The salts it has, where it searches those.
    lease: Option<Lease>,
    /// How much it claimed until its lease was done, where it waits for another.
    done: Option<u64>,
    /// How much of what it claimed was verified.
    judged: u64,
    leases: Sender<Lease>,
    lost: bool,
}

impl Slot {
    pub fn new(device: usize, lease: Option<Lease>, leases: Sender<Lease>) -> Slot {
        Slot { device, lease, done: None, judged: 0, leases, lost: false }
    }

    /// Whether it waits for salts, and all it claimed of those before was verified.
    fn waits(&self) -> bool {
        self.done.is_some_and(|claimed| claimed == self.judged)
    }
}

pub(super) struct Collector<'c, 's, 'j> {
    job: &'c Job<'j>,
    devices: &'c Devices,
    plans: &'c [Plan],
    /// What is left to hand out; none of keys.
    salts: Option<Salts>,
    slots: Vec<Slot>,
    counters: &'c [AtomicU64],
    /// The best score published; workers look at it.
    best: &'c AtomicU32,
    clock: Clock<'c>,
    rates: Rates<'c>,
    matches: u64,
    false_hits: u64,
    tried_at_match: u64,
    /// Matches that are to be told, and how many of them together.
    group: Vec<Match>,
    together: usize,
    /// Salts published: a lease that was given back is searched again.
    published: HashSet<[u8; 32]>,
    host_cpu: HostCpu,
    sink: &'c mut Sink<'s>,
}

impl<'c, 's, 'j> Collector<'c, 's, 'j> {
    #[expect(clippy::too_many_arguments, reason = "it holds everything a search has")]
    pub fn new(
        job: &'c Job<'j>,
        devices: &'c Devices,
        plans: &'c [Plan],
        salts: Option<Salts>,
        slots: Vec<Slot>,
        counters: &'c [AtomicU64],
        best: &'c AtomicU32,
        clock: Clock<'c>,
        sink: &'c mut Sink<'s>,
    ) -> Self {
        let rates = Rates::new(devices, clock.started());
        Collector {
            job,
            devices,
            plans,
            salts,
            slots,
            counters,
            best,
            clock,
            rates,
            matches: 0,
            false_hits: 0,
            tried_at_match: 0,
            group: Vec::new(),
            together: FIRST_GROUP,
            published: HashSet::new(),
            host_cpu: HostCpu::default(),
            sink,
        }
    }

    /// Processor time this program took once the search had settled, as a share of one core.
    pub fn host_cpu(&self) -> Option<f64> {
        self.host_cpu.share()
    }

    /// Ends all workers that wait for an answer; returns matches and false hits.
    pub fn close(&mut self) -> (u64, u64) {
        // They see their channel close.
        self.slots.clear();
        (self.matches, self.false_hits)
    }

    /// Judges what workers report until the search ends; returns why.
    pub fn collect(&mut self, receiver: &Receiver<Message>) -> Result<Ended> {
        loop {
            let now = Instant::now();
            self.host_cpu.look(self.clock.started(), now);
            let wait = match self.clock.tick(now) {
                Tick::Interrupted => return Ok(Ended::Interrupted),
                Tick::TimeUp => return Ok(Ended::TimeLimit),
                Tick::Report => {
                    let progress = self.progress(now);
                    self.tell(Event::Progress(&progress))?;
                    continue;
                }
                Tick::Wait(time) => time,
            };
            let ended = match receiver.recv_timeout(wait) {
                Ok(message) => self.hear(message, receiver)?,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(NAP);
                    None
                }
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Hears the workers out once they were told to stop: the batch each of them was at counts as tried, so what it
    /// held must not be lost.
    pub fn drain(&mut self, receiver: &Receiver<Message>) -> Result<()> {
        loop {
            // Who waits for salts has nothing more to tell: closing the channel ends its thread.
            for slot in self.slots.iter_mut().filter(|slot| slot.done.is_some()) {
                slot.leases = bounded(1).0;
            }
            // The channel closes when the last worker has ended, and all it claimed was verified.
            let Ok(message) = receiver.recv() else { return Ok(()) };
            if self.hear(message, receiver)?.is_some() {
                return Ok(());
            }
        }
    }

    /// Takes a message, and others that are there already, so that matches that come together are told together. Returns why
    /// the search ends, if it does.
    fn hear(&mut self, message: Message, receiver: &Receiver<Message>) -> Result<Option<Ended>> {
        let mut next = Some(message);
        while let Some(message) = next {
            match message {
                Message::Judged { worker, verdicts } => self.note(worker, verdicts)?,
                Message::Done { worker, claimed } => self.slots[worker].done = Some(claimed),
                Message::Lost { worker, fault } => self.lose(worker, fault)?,
                Message::Failed(error) => return Err(error),
            }
            next = if self.group.len() < self.together { receiver.try_recv().ok() } else { None };
        }
        while !self.group.is_empty() {
            // SEC: what delivery leaves of keys on the stack.
            if wiping_stack(|| self.publish())? {
                return Ok(Some(Ended::Count));
            }
        }
        self.assign()
    }

    fn tell(&mut self, event: Event<'_, Match, Progress>) -> Result<()> {
        (self.sink)(event).map_err(Error::Sink)
    }

    fn tried(&self) -> u64 {
        self.counters.iter().map(|c| c.load(Ordering::Relaxed)).sum()
    }

    /// The best score so far; 0 where nothing is scored.
    fn best(&self) -> u32 {
        self.best.load(Ordering::Relaxed)
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let (slots, counters, plans) = (&self.slots, self.counters, self.plans);
        let counted = |at: usize| {
            let counts = slots.iter().zip(counters).filter(|(slot, _)| slot.device == at);
            counts.map(|(_, count)| count.load(Ordering::Relaxed)).sum()
        };
        let devices = self.rates.of(now, counted, |at| plans.iter().any(|plan| plan.device == at));
        let rate = devices.iter().map(|(_, rate)| rate).sum();
        let odds = self.job.wanted.odds(self.best());
        let tried = self.tried();
        Progress {
            tried,
            rate,
            elapsed: self.clock.started().elapsed(),
            eta_50: eta_50(self.job.count.map_or(1, |count| count.saturating_sub(self.matches)), odds, rate),
            probability: match self.job.count {
                Some(count) => probability(odds, tried as f64, count),
                // Less than at the last match where a worker was lost meanwhile and what it did last does not count.
                None => probability(odds, tried.saturating_sub(self.tried_at_match) as f64, 1),
            },
            matches: self.matches,
            wanted: self.job.count,
            best: matches!(self.job.wanted, Wanted::Best { .. }).then(|| self.best()),
            devices,
        }
    }

    /// Counts what became of a worker's claims.
    fn note(&mut self, worker: usize, verdicts: Vec<Judged>) -> Result<()> {
        let slot = &mut self.slots[worker];
        slot.judged += verdicts.len() as u64;
        for verdict in verdicts {
            if self.slots[worker].lost {
                // It did not know yet.
                return Ok(());
            }
            match verdict {
                Judged::Match(found) => self.group.push(*found),
                Judged::Counted => self.matches += 1,
                Judged::False => self.false_hits += 1,
                Judged::Wrong(what) => {
                    let noun = if self.salts.is_some() { "salt" } else { "key" };
                    self.lose(worker, format!("it reported a {noun} that is not there: {what}"))?;
                }
            }
        }
        Ok(())
    }

    /// Gives every waiting worker more salts. When none are left and all wait, everything has been tested.
    fn assign(&mut self) -> Result<Option<Ended>> {
        let Some(salts) = &mut self.salts else { return Ok(None) };
        for slot in self.slots.iter_mut().filter(|slot| !slot.lost && slot.waits()) {
            // What it had is done, whether there is more or not.
            slot.lease = salts.next();
            if let Some(lease) = slot.lease {
                slot.done = None;
                // A thread that is gone has said so.
                let _ = slot.leases.send(lease);
            }
        }
        let resting = |slot: &Slot| slot.lost || slot.waits();
        Ok(self.slots.iter().all(resting).then_some(Ended::Exhausted))
    }

    /// Tells a group of the matches that have come together; returns whether the last one wanted was among them.
    fn publish(&mut self) -> Result<bool> {
        let rest = self.group.split_off(self.group.len().min(self.together));
        let mut group = std::mem::replace(&mut self.group, rest);
        if group.len() == self.together {
            self.together = (2 * self.together).min(GROUP);
        }
        let (tried, elapsed, mut enough) = (self.tried(), self.clock.started().elapsed(), false);
        group.retain_mut(|found| {
            if enough || !self.is_new(found) {
                return false;
            }
            (found.tried, found.elapsed) = (tried, elapsed);
            self.matches += 1;
            enough = self.job.count.is_some_and(|count| self.matches >= count);
            if let (Wanted::Best { enough: Some(wanted), .. }, Some(score)) =
                (&self.job.wanted, found.score())
            {
                enough |= score >= *wanted;
            }
            true
        });
        if !group.is_empty() {
            self.tried_at_match = tried;
            self.tell(Event::Found(group))?;
        }
        Ok(enough)
    }

    /// Whether a match is none that was told, and in a search for the best better than all that were.
    fn is_new(&mut self, found: &Match) -> bool {
        match (&found.why, &found.solution) {
            (Why::Score(score), _) => self.best.fetch_max(*score, Ordering::Relaxed) < *score,
            (Why::Pattern(_), Solution::Salt(salt)) => self.published.insert(*salt),
            (Why::Pattern(_), _) => true,
        }
    }

    /// Goes on without a worker; an error if it was the last.
    fn lose(&mut self, worker: usize, what: Fault) -> Result<()> {
        if self.slots[worker].lost {
            return Ok(());
        }
        let device = self.devices.list[self.slots[worker].device].id();
        let slot = &mut self.slots[worker];
        slot.lost = true;
        // Closing the channel ends the worker's thread.
        slot.leases = bounded(1).0;
        if let (Some(salts), Some(lease)) = (&mut self.salts, slot.lease.take()) {
            salts.give_back(lease);
        }
        if self.slots.iter().all(|d| d.lost) {
            return Err(Error::DevicesLost { device, what });
        }
        let rest = self.slots.iter().filter(|d| !d.lost && d.device == self.slots[worker].device).count();
        let who = if rest > 0 { format!("a thread of {device}") } else { device };
        self.tell(Event::Warning(format!("{who} was dropped: {what}; the others go on")))
    }
}
