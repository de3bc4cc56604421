//! The collector: counts what was verified, tells it, and hands out salts.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::judge::Judged;
use super::progress::Progress;
use super::steady::{HostCpu, Track};
use super::thread::Message;
use super::{Ended, Event, Job, Match, Show, Sink, Solution, Wanted, Why};
use crate::error::{Error, Result};
use crate::run::clock::{Clock, Tick};
use crate::run::pause::NAP;
use crate::run::rates::Meter;
use crate::secret::wiping_stack;
use crate::space::{Lease, Salts};
use crate::worker::{Backend, Fault};

/// The most matches that are told together, and how many at first. A group that is full is followed by one of up to twice as
/// many: who writes them down has seen how much that may be.
pub(super) const GROUP: usize = 256;
const FIRST_GROUP: usize = 4;

/// What the collector knows of one worker.
pub(super) struct Slot {
    device: String,
    is_card: bool,
    /// One line about the device.
    about: String,
    counter: Arc<AtomicU64>,
    track: Arc<Track>,
    /// The salts it has, where it searches those.
    lease: Option<Lease>,
    /// How much it claimed until its lease was done, where it waits for another.
    done: Option<u64>,
    /// How much of what it claimed was verified.
    judged: u64,
    leases: Sender<Lease>,
    joined: Instant,
    lost: bool,
    /// Whether it was told to step back. What it claimed before counts.
    retired: bool,
}

impl Slot {
    /// A worker that joins, and that waits for salts where those are searched.
    pub fn new(
        device: &dyn Backend,
        counter: Arc<AtomicU64>,
        track: Arc<Track>,
        leases: Sender<Lease>,
        joined: Instant,
    ) -> Slot {
        Slot {
            device: device.id(),
            is_card: device.is_card(),
            about: device.describe(),
            counter,
            track,
            lease: None,
            done: Some(0),
            judged: 0,
            leases,
            joined,
            lost: false,
            retired: false,
        }
    }

    /// Whether it waits for salts, and all it claimed of those before was verified.
    fn waits(&self) -> bool {
        self.done.is_some_and(|claimed| claimed == self.judged)
    }

    /// Whether it searches no more.
    fn is_gone(&self) -> bool {
        self.lost || self.retired
    }

    fn tried(&self) -> u64 {
        self.counter.load(Ordering::Relaxed)
    }
}

/// A device with workers here.
struct Member {
    device: String,
    is_card: bool,
    joined: Instant,
    meter: Meter,
}

/// What is left of a search.
pub(super) struct Closed {
    pub matches: u64,
    pub false_hits: u64,
    /// When the first worker joined, and what was rested since.
    started: Option<(Instant, Duration)>,
    pub counters: Vec<Arc<AtomicU64>>,
    pub tracks: Vec<Arc<Track>>,
}

impl Closed {
    /// How long it took up to now, rests left out.
    pub fn elapsed(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |(started, rested)| started.elapsed().saturating_sub(rested))
    }
}

/// The share of the whole below which the processor steps back, and how long cards and processor are looked at first.
const WORTHWHILE: f64 = 0.02;
const SEEN: Duration = Duration::from_secs(3);

pub(super) struct Collector<'c, 's, 'j> {
    job: &'c Job<'j>,
    /// Whether cards may join that nobody asked for.
    joinable: bool,
    /// Whether all have joined that will.
    settled: bool,
    /// What is left to hand out; none of keys.
    salts: Option<Salts>,
    slots: Vec<Slot>,
    members: Vec<Member>,
    /// The best score published; workers look at it.
    best: &'c AtomicU32,
    clock: Clock<'c>,
    matches: u64,
    false_hits: u64,
    tried_at_match: u64,
    /// Matches that are to be told, and how many of them together.
    group: Vec<Match>,
    together: usize,
    /// Salts published: a lease that was given back is searched again.
    published: HashSet<[u8; 32]>,
    host_cpu: HostCpu,
    /// The last worker lost, and why.
    loss: Option<(String, Fault)>,
    sink: &'c mut Sink<'s>,
}

impl<'c, 's, 'j> Collector<'c, 's, 'j> {
    pub fn new(
        job: &'c Job<'j>,
        joinable: bool,
        salts: Option<Salts>,
        best: &'c AtomicU32,
        clock: Clock<'c>,
        sink: &'c mut Sink<'s>,
    ) -> Self {
        Collector {
            job,
            joinable,
            settled: false,
            salts,
            slots: Vec::new(),
            members: Vec::new(),
            best,
            clock,
            matches: 0,
            false_hits: 0,
            tried_at_match: 0,
            group: Vec::new(),
            together: FIRST_GROUP,
            published: HashSet::new(),
            host_cpu: HostCpu::default(),
            loss: None,
            sink,
        }
    }

    /// Processor time this program took once the search had settled, as a share of one core.
    pub fn host_cpu(&self) -> Option<f64> {
        self.host_cpu.share()
    }

    /// Ends all workers that wait for an answer; returns what is left.
    pub fn close(&mut self) -> Closed {
        // They see their channel close.
        let slots = std::mem::take(&mut self.slots);
        let (matches, false_hits) = (self.matches, self.false_hits);
        let (now, started) = (Instant::now(), self.clock.started());
        let rested = now - self.clock.time(now);
        let started = (!slots.is_empty()).then_some((started, rested));
        let (counters, tracks) = slots.into_iter().map(|slot| (slot.counter, slot.track)).unzip();
        Closed { matches, false_hits, started, counters, tracks }
    }

    /// Judges what workers report until the search ends; returns why.
    pub fn collect(&mut self, receiver: &Receiver<Message>) -> Result<Ended> {
        loop {
            let now = Instant::now();
            let tick = match (self.slots.is_empty(), self.clock.is_interrupted()) {
                // Nothing is searched yet: only a person's patience ends that.
                (true, false) => Tick::Wait(NAP),
                _ => {
                    self.host_cpu.look(self.clock.started(), now);
                    self.clock.tick(now)
                }
            };
            let wait = match tick {
                Tick::Interrupted => return Ok(Ended::Interrupted),
                Tick::TimeUp => return Ok(Ended::TimeLimit),
                Tick::Report => {
                    let now = self.clock.time(now);
                    self.step_back(now)?;
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
                Message::Joined(slot) => self.take_in(*slot)?,
                Message::Settled => {
                    self.settled = true;
                    self.check_left()?;
                }
                Message::Warning(text) => self.tell(Event::Warning(text))?,
                Message::Note(text) => self.tell(Event::Note(text))?,
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
        self.slots.iter().map(Slot::tried).sum()
    }

    /// Goes on with one worker more.
    fn take_in(&mut self, slot: Slot) -> Result<()> {
        if self.slots.is_empty() {
            self.clock.restart(slot.joined);
        }
        if !self.members.iter().any(|member| member.device == slot.device) {
            if self.joinable && slot.is_card {
                let after = slot.joined.duration_since(self.clock.started()).as_secs_f64();
                self.tell(Event::Note(format!("{} joins after {after:.1} s: {}", slot.device, slot.about)))?;
            }
            let joined = self.clock.time(slot.joined);
            let (device, meter) = (slot.device.clone(), Meter::new(joined));
            self.members.push(Member { device, is_card: slot.is_card, joined, meter });
        }
        self.slots.push(slot);
        Ok(())
    }

    /// What each device that still searches does in a second. This and what follows have their time from the clock.
    fn rates(&mut self, now: Instant) -> Vec<(String, f64)> {
        let slots = &self.slots;
        let of = |member: &mut Member| {
            let own = || slots.iter().filter(|slot| slot.device == member.device);
            let counted = own().map(Slot::tried).sum();
            let rate = member.meter.rate(now, counted);
            own().any(|slot| !slot.is_gone()).then(|| (member.device.clone(), rate))
        };
        self.members.iter_mut().filter_map(of).collect()
    }

    /// Has the processor step back where cards that joined it leave it next to nothing to add.
    fn step_back(&mut self, now: Instant) -> Result<()> {
        let seen = |member: &Member| now.duration_since(member.joined) > SEEN;
        let is_card = |device: &str| self.members.iter().any(|m| m.device == device && m.is_card && seen(m));
        if !self.joinable || !self.members.iter().any(|member| is_card(&member.device)) {
            return Ok(());
        }
        let rates = self.rates(now);
        let whole: f64 = rates.iter().map(|(_, rate)| rate).sum();
        let of_cards: f64 =
            rates.iter().filter(|(device, _)| self.is_card(device)).map(|(_, rate)| rate).sum();
        // Of the rest there is one, the processor.
        let Some((cpu, rate)) = rates.into_iter().find(|(device, _)| !self.is_card(device)) else {
            return Ok(());
        };
        if of_cards == 0.0 || rate >= WORTHWHILE * whole {
            return Ok(());
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.device == cpu && !slot.is_gone()) {
            slot.retired = true;
            slot.leases = bounded(1).0;
            if let (Some(salts), Some(lease)) = (&mut self.salts, slot.lease.take()) {
                salts.give_back(lease);
            }
        }
        self.tell(Event::Note(format!("{cpu} steps back: it adds less than 2 % to the cards")))
    }

    fn is_card(&self, device: &str) -> bool {
        self.members.iter().any(|member| member.device == device && member.is_card)
    }

    /// The best score so far; 0 where nothing is scored.
    fn best(&self) -> u32 {
        self.best.load(Ordering::Relaxed)
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let devices = self.rates(now);
        let rate = devices.iter().map(|(_, rate)| rate).sum();
        let odds = self.job.wanted.odds(self.best());
        let tried = self.tried();
        let progress = Progress {
            tried,
            rate,
            elapsed: now.saturating_duration_since(self.clock.started()),
            eta_50: None,
            probability: 0.0,
            matches: self.matches,
            wanted: self.job.count,
            best: matches!(self.job.wanted, Wanted::Best { .. }).then(|| self.best()),
            devices,
        };
        progress.with_odds(odds, self.tried_at_match)
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
        for slot in self.slots.iter_mut().filter(|slot| !slot.is_gone() && slot.waits()) {
            // What it had is done, whether there is more or not.
            slot.lease = salts.next();
            if let Some(lease) = slot.lease {
                slot.done = None;
                // A thread that is gone has said so.
                let _ = slot.leases.send(lease);
            }
        }
        let resting = |slot: &Slot| slot.is_gone() || slot.waits();
        let all = !self.slots.is_empty() && self.slots.iter().all(resting);
        Ok((all && !salts.is_left()).then_some(Ended::Exhausted))
    }

    /// Tells a group of the matches that have come together; returns whether the last one wanted was among them.
    fn publish(&mut self) -> Result<bool> {
        let rest = self.group.split_off(self.group.len().min(self.together));
        let mut group = std::mem::replace(&mut self.group, rest);
        if group.len() == self.together {
            self.together = (2 * self.together).min(GROUP);
        }
        let (tried, elapsed, mut enough) = (self.tried(), self.clock.elapsed(Instant::now()), false);
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

    /// Whether a match is none that was told, and in a search for the best good enough by now.
    fn is_new(&mut self, found: &Match) -> bool {
        match (&found.why, &found.solution) {
            (Why::Score { score, .. }, solution) => {
                let demand = self.job.wanted.demand(self.best.fetch_max(*score, Ordering::Relaxed));
                let is_wanted = *score >= demand;
                match (self.job.wanted, solution) {
                    (Wanted::Best { show: Show::Better, .. }, _) => is_wanted,
                    (_, Solution::Salt(salt)) => is_wanted && self.published.insert(*salt),
                    _ => is_wanted,
                }
            }
            (Why::Pattern(_), Solution::Salt(salt)) => self.published.insert(*salt),
            (Why::Pattern(_), _) => true,
        }
    }

    /// Goes on without a worker; an error if it was the last.
    fn lose(&mut self, worker: usize, what: Fault) -> Result<()> {
        let slot = &mut self.slots[worker];
        if slot.is_gone() {
            return Ok(());
        }
        slot.lost = true;
        // Closing the channel ends the worker's thread.
        slot.leases = bounded(1).0;
        if let (Some(salts), Some(lease)) = (&mut self.salts, slot.lease.take()) {
            salts.give_back(lease);
        }
        let device = slot.device.clone();
        self.loss = Some((device.clone(), what.clone()));
        self.check_left()?;
        let rest = self.slots.iter().filter(|slot| !slot.is_gone() && slot.device == device).count();
        let who = if rest > 0 { format!("a thread of {device}") } else { device };
        self.tell(Event::Warning(format!("{who} was dropped: {what}; the others go on")))
    }

    /// An error if nobody is left, and nobody to come.
    fn check_left(&mut self) -> Result<()> {
        let gone = self.slots.iter().all(Slot::is_gone);
        match self.loss.take_if(|_| gone && self.settled) {
            Some((device, what)) => Err(Error::DevicesLost { device, what }),
            None => Ok(()),
        }
    }
}
