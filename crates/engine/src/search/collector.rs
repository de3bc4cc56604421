//! The collector: counts what was verified, tells it, and hands out salts.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::claims::Sift;
use super::message::{Judged, Message, Slot};
use super::steady::HostCpu;
use super::{Ended, Event, Job, Match, Show, Sink, Solution, Wanted, Why};
use crate::error::{Error, Result};
use crate::run::clock::Tick;
use crate::run::pause::NAP;
use crate::run::pool::PoolEvent;
use crate::run::report::{Outcome, Progress};
use crate::run::session::{Member, Session};
use crate::secret::wiping_stack;
use crate::space::Salts;
use crate::worker::Fault;

/// The most matches that are told together, and how many at first. A group that is full is followed by one of up to twice as
/// many: who writes them down has seen how much that may be.
pub(super) const GROUP: usize = 256;
const FIRST_GROUP: usize = 4;

pub(super) struct Collector<'c, 's, 'j> {
    job: &'c Job<'j>,
    session: Session<'c>,
    /// What is left to hand out; none of keys.
    salts: Option<Salts>,
    slots: Vec<Slot>,
    /// The best score published; workers look at it.
    best: &'c AtomicU32,
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
    pub fn new(
        job: &'c Job<'j>,
        session: Session<'c>,
        salts: Option<Salts>,
        best: &'c AtomicU32,
        sink: &'c mut Sink<'s>,
    ) -> Self {
        Collector {
            job,
            session,
            salts,
            slots: Vec::new(),
            best,
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

    /// Ends all workers that wait for salts.
    pub fn close(&mut self) {
        self.slots.iter_mut().for_each(Slot::close);
    }

    /// The outcome, once every worker has ended.
    pub fn outcome(&self, ended: Ended, sift: &Sift<'_>, host_cpu: Option<f64>) -> Outcome {
        Outcome {
            ended,
            tried: self.session.tried(),
            matches: self.matches,
            false_hits: self.false_hits + sift.dropped(),
            passed_over: sift.passed_over(),
            all_found: false,
            elapsed: self.session.elapsed(Instant::now()),
            steady_rate: self.slots.iter().map(|slot| slot.track.rate()).sum(),
            host_cpu,
        }
    }

    /// Judges what workers report until the search ends; returns why.
    pub fn collect(&mut self, receiver: &Receiver<Message>) -> Result<Ended> {
        loop {
            let now = Instant::now();
            if self.session.has_begun() {
                self.host_cpu.look(self.session.clock.started(), now);
            }
            let wait = match self.session.tick(now) {
                Tick::Interrupted => return Ok(Ended::Interrupted),
                Tick::TimeUp => return Ok(Ended::TimeLimit),
                Tick::Report => {
                    let now = self.session.clock.time(now);
                    self.step_aside(now)?;
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
            self.slots.iter_mut().filter(|slot| slot.done.is_some()).for_each(Slot::close);
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
                Message::Joined(joined) => self.take_in(*joined)?,
                Message::Pool(PoolEvent::Settled) => self.session.settle()?,
                Message::Pool(PoolEvent::Warning(text)) => self.tell(Event::Warning(text))?,
                Message::Pool(PoolEvent::Note(text)) => self.tell(Event::Note(text))?,
                Message::Pool(PoolEvent::Failed(error)) => return Err(error),
                Message::Judged { worker, verdicts } => self.note(worker, verdicts)?,
                Message::Done { worker, claimed } => self.slots[worker].done = Some(claimed),
                Message::Lost { worker, fault } => self.lose(worker, fault)?,
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

    fn tell(&mut self, event: Event<'_, Match>) -> Result<()> {
        (self.sink)(event).map_err(Error::Sink)
    }

    /// Goes on with one worker more.
    fn take_in(&mut self, (member, slot): (Member, Slot)) -> Result<()> {
        self.slots.push(slot);
        match self.session.join(member) {
            Some(note) => self.tell(Event::Note(note)),
            None => Ok(()),
        }
    }

    /// Has the processor step aside where it adds next to nothing to cards.
    fn step_aside(&mut self, now: Instant) -> Result<()> {
        let Some((workers, note)) = self.session.step_aside(now) else { return Ok(()) };
        workers.into_iter().for_each(|worker| self.release(worker));
        self.tell(Event::Note(note))
    }

    /// Gives the salts of a worker to others.
    fn release(&mut self, worker: usize) {
        let slot = &mut self.slots[worker];
        slot.close();
        if let (Some(salts), Some(lease)) = (&mut self.salts, slot.lease.take()) {
            salts.give_back(lease);
        }
    }

    /// The best score so far; 0 where nothing is scored.
    fn best(&self) -> u32 {
        self.best.load(Ordering::Relaxed)
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let odds = self.job.wanted.odds(self.best());
        let best = matches!(self.job.wanted, Wanted::Best { .. }).then(|| self.best());
        let progress = self.session.progress(now, self.matches, self.job.count);
        Progress { best, ..progress }.with_odds(odds, self.tried_at_match)
    }

    /// Counts what became of a worker's claims.
    fn note(&mut self, worker: usize, verdicts: Vec<Judged>) -> Result<()> {
        self.slots[worker].judged += verdicts.len() as u64;
        for verdict in verdicts {
            if self.session.is_lost(worker) {
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
        let session = &self.session;
        let left = self.slots.iter_mut().enumerate().filter(|(worker, _)| !session.is_gone(*worker));
        for (_, slot) in left.filter(|(_, slot)| slot.waits()) {
            // What it had is done, whether there is more or not.
            slot.lease = salts.next();
            if let Some(lease) = slot.lease {
                slot.done = None;
                // A thread that is gone has said so.
                let _ = slot.leases.send(lease);
            }
        }
        let rests = |(worker, slot): (usize, &Slot)| session.is_gone(worker) || slot.waits();
        let all = !self.slots.is_empty() && self.slots.iter().enumerate().all(rests);
        Ok((all && !salts.is_left()).then_some(Ended::Exhausted))
    }

    /// Tells a group of the matches that have come together; returns whether the last one wanted was among them.
    fn publish(&mut self) -> Result<bool> {
        let rest = self.group.split_off(self.group.len().min(self.together));
        let mut group = std::mem::replace(&mut self.group, rest);
        if group.len() == self.together {
            self.together = (2 * self.together).min(GROUP);
        }
        let (tried, elapsed, mut enough) =
            (self.session.tried(), self.session.clock.elapsed(Instant::now()), false);
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
        if self.session.is_gone(worker) {
            return Ok(());
        }
        self.release(worker);
        let warning = self.session.lose(worker, what)?;
        self.tell(Event::Warning(warning))
    }
}
