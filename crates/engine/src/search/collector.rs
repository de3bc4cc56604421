//! The collector: the one place where hits become matches.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warpsmith_chain::{Form, Recipe};
use warpsmith_pattern::Filter;
use zeroize::Zeroizing;

use super::progress::{Progress, eta_50, probability};
use super::steady::HostCpu;
use super::thread::{Answer, Message};
use super::verify::{Confirmed, Verdict, verify};
use super::{Ended, Event, Job, Match, Plan, Rule, Sink, Solution, Wanted, Why};
use crate::details::Details;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origin::{Recovered, public_point};
use crate::recover::Candidate;
use crate::run::clock::{Clock, NAP, Tick};
use crate::run::rates::Rates;
use crate::secret::wiping_stack;
use crate::space::{Source, Space, Subject};
use crate::worker::{Fault, Hit, Numbering};

/// What the collector knows of one worker.
pub(super) struct Slot {
    device: usize,
    numbering: Option<Numbering>,
    /// Where its hits lead back to; none while it waits for a new start.
    source: Option<Source>,
    /// Where its hits will lead back to once it has moved on.
    spare: Option<Source>,
    answer: Sender<Answer>,
    lost: bool,
}

impl Slot {
    pub fn new(device: usize, numbering: Option<Numbering>, source: Source, answer: Sender<Answer>) -> Slot {
        Slot { device, numbering, source: Some(source), spare: None, answer, lost: false }
    }
}

pub(super) struct Collector<'c, 's, 'j> {
    job: &'c Job<'j>,
    rule: Rule,
    devices: &'c Devices,
    plans: &'c [Plan],
    space: Space,
    slots: Vec<Slot>,
    counters: &'c [AtomicU64],
    /// The best score published; workers look at it.
    best: &'c AtomicU32,
    clock: Clock<'c>,
    rates: Rates<'c>,
    matches: u64,
    false_hits: u64,
    tried_at_match: u64,
    /// Salts published: a lease that was given back is searched again.
    salts: HashSet<[u8; 32]>,
    host_cpu: HostCpu,
    sink: &'c mut Sink<'s>,
}

impl<'c, 's, 'j> Collector<'c, 's, 'j> {
    #[expect(clippy::too_many_arguments, reason = "it holds everything a search has")]
    pub fn new(
        job: &'c Job<'j>,
        rule: Rule,
        devices: &'c Devices,
        plans: &'c [Plan],
        space: Space,
        slots: Vec<Slot>,
        counters: &'c [AtomicU64],
        best: &'c AtomicU32,
        clock: Clock<'c>,
        sink: &'c mut Sink<'s>,
    ) -> Self {
        let rates = Rates::new(devices, clock.started());
        let (matches, false_hits, tried_at_match, salts) = (0, 0, 0, HashSet::new());
        Collector {
            job,
            rule,
            devices,
            plans,
            space,
            slots,
            counters,
            best,
            clock,
            rates,
            matches,
            false_hits,
            tried_at_match,
            salts,
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
                Ok(Message::Report { worker, hits, done, moved_on }) => {
                    self.judge(worker, hits, done, moved_on)?
                }
                Ok(Message::Lost { worker, fault }) => {
                    self.lose(worker, fault)?;
                    self.assign()?
                }
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
            // Who waits for a start has nothing more to tell: closing the channel ends its thread.
            for slot in self.slots.iter_mut().filter(|slot| slot.source.is_none()) {
                slot.answer = bounded(1).0;
            }
            // The channel closes when the last worker has ended.
            let Ok(message) = receiver.recv() else { return Ok(()) };
            if let Message::Report { worker, hits, done, moved_on } = message
                && self.judge(worker, hits, done, moved_on)?.is_some()
            {
                return Ok(());
            }
        }
    }

    fn tell(&mut self, event: Event<'_>) -> Result<()> {
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
            eta_50: eta_50(odds, rate),
            // Less than at the last match where a worker was lost meanwhile and what it did last does not count.
            probability: probability(odds, tried.saturating_sub(self.tried_at_match)),
            matches: self.matches,
            best: matches!(self.job.wanted, Wanted::Best { .. }).then(|| self.best()),
            devices,
        }
    }

    fn filter(&self, slot: &Slot) -> Option<&'c Filter> {
        self.plans.iter().find(|plan| plan.device == slot.device).map(|plan| &plan.filter)
    }

    /// Verifies a worker's hits and answers it. Returns why the search ends, if it does.
    fn judge(
        &mut self,
        worker: usize,
        mut hits: Vec<Hit>,
        done: bool,
        moved_on: bool,
    ) -> Result<Option<Ended>> {
        if self.slots[worker].lost {
            // It had moved on before it heard of it.
            return Ok(None);
        }
        if matches!(self.job.wanted, Wanted::Best { .. }) {
            // The best first: one of a batch is enough, and floods at the start cost one verification each.
            hits.sort_by_key(|hit| std::cmp::Reverse(hit.score));
            hits.truncate(1);
            hits.retain(|hit| hit.score > self.best());
        }
        let mut retired = false;
        for hit in &hits {
            let slot = &self.slots[worker];
            let (Some(source), Some(filter)) = (&slot.source, self.filter(slot)) else { break };
            let verdict = verify(source, &self.space, slot.numbering.as_ref(), hit, self.job, filter);
            match verdict {
                Verdict::Match(_) if self.rule == Rule::Count => self.matches += 1,
                Verdict::Match(confirmed) => {
                    // SEC: the origin of a key is retired with its match, so two matches of one run are unrelated.
                    retired = confirmed.salt().is_none();
                    if wiping_stack(|| self.publish(worker, *confirmed))? {
                        return Ok(Some(Ended::Count));
                    }
                    if retired {
                        break;
                    }
                }
                Verdict::False => self.false_hits += 1,
                Verdict::Wrong(what) => {
                    self.lose(worker, format!("it reported a {} that is not there: {what}", self.noun()))?;
                    return self.assign();
                }
            }
        }
        if moved_on {
            // Whatever became of its hits, it is elsewhere.
            let slot = &mut self.slots[worker];
            slot.source = slot.spare.take();
            self.spare(worker)?;
            return Ok(None);
        }
        if retired || done {
            self.slots[worker].source = None;
            let ended = self.assign()?;
            self.spare(worker)?;
            return Ok(ended);
        }
        drop(self.slots[worker].answer.send(Answer::GoOn));
        Ok(None)
    }

    /// Gives a worker whose origin was retired another for the next time. Salts are handed out once, so of these nobody
    /// has any to spare.
    fn spare(&mut self, worker: usize) -> Result<()> {
        let slot = &mut self.slots[worker];
        if matches!(self.space, Space::Keys { .. })
            && slot.spare.is_none()
            && let Some((source, start)) = self.space.next()?
        {
            slot.spare = Some(source);
            drop(slot.answer.send(Answer::Spare(start)));
        }
        Ok(())
    }

    fn noun(&self) -> &'static str {
        match self.space {
            Space::Keys { .. } => "key",
            Space::Salts(_) => "salt",
        }
    }

    /// Gives every waiting worker a new start. When none is left and all wait, everything has been tested.
    fn assign(&mut self) -> Result<Option<Ended>> {
        for slot in self.slots.iter_mut().filter(|d| !d.lost && d.source.is_none()) {
            let Some((source, start)) = self.space.next()? else { break };
            slot.source = Some(source);
            drop(slot.answer.send(Answer::StartOver(start)));
        }
        let resting = |slot: &Slot| slot.lost || slot.source.is_none();
        Ok(self.slots.iter().all(resting).then_some(Ended::Exhausted))
    }

    /// Reports a match; returns whether it was the last one wanted.
    fn publish(&mut self, worker: usize, confirmed: Confirmed) -> Result<bool> {
        let tried = self.tried();
        let target = self.job.subject.target();
        let (why, enough) = match (&self.job.wanted, confirmed.why) {
            (Wanted::Patterns(patterns), which) => {
                (Why::Pattern(patterns.text(which as usize).to_owned()), false)
            }
            (Wanted::Best { enough, .. }, score) => {
                self.best.store(score, Ordering::Relaxed);
                (Why::Score(score), enough.is_some_and(|enough| score >= enough))
            }
        };
        let Some((solution, details, public_details)) = self.solution(confirmed.candidate) else {
            return Ok(false);
        };
        let nonce = match self.job.subject.recipe() {
            Recipe::Key(Form::Contract { nonce }) => Some(nonce),
            _ => None,
        };
        let found = Match {
            target: target.name(),
            variant: target.variant(),
            address: confirmed.address,
            why,
            solution,
            nonce,
            details,
            public_details,
            device: self.devices.list[self.slots[worker].device].id(),
            tried,
            elapsed: self.clock.started().elapsed(),
        };
        self.matches += 1;
        self.tried_at_match = tried;
        self.tell(Event::Match(Box::new(found)))?;
        Ok(enough || self.job.count.is_some_and(|count| self.matches >= count))
    }

    /// What leads to the address, with its details and those that hold no secret; none for a salt that was published before.
    fn solution(&mut self, candidate: Candidate) -> Option<(Solution, Details, Details)> {
        match (candidate, self.job.subject) {
            (Candidate::Salt(salt), Subject::Salt(target)) => {
                if !self.salts.insert(salt) {
                    return None;
                }
                let details = target.explain(&salt).into_iter();
                let details: Details = details.map(|(name, text)| (name, Zeroizing::new(text))).collect();
                Some((Solution::Salt(salt), details.clone(), details))
            }
            (Candidate::Key(recovered), Subject::Key(target)) => {
                let key = recovered.public_key();
                let (point, public_key) = (public_point(&key), key.serialize());
                let public_details = target.explain(&point, None);
                match recovered {
                    Recovered::Key(secret) => {
                        let export = target.export(secret.as_bytes());
                        let details = target.explain(&point, Some(secret.as_bytes()));
                        Some((Solution::Key { public_key, secret, export }, details, public_details))
                    }
                    Recovered::Split { split, .. } => {
                        let details = public_details.clone();
                        Some((Solution::Split { public_key, split }, details, public_details))
                    }
                }
            }
            (Candidate::Salt(_), Subject::Key(_)) | (Candidate::Key(_), Subject::Salt(_)) => {
                unreachable!("a candidate is recomputed as what the job searches")
            }
        }
    }

    /// Goes on without a worker; an error if it was the last.
    fn lose(&mut self, worker: usize, what: Fault) -> Result<()> {
        let device = self.devices.list[self.slots[worker].device].id();
        let slot = &mut self.slots[worker];
        slot.lost = true;
        // Closing the channel ends the worker's thread, should it still wait for an answer.
        slot.answer = bounded(1).0;
        if let Some(source) = slot.source.take() {
            self.space.give_back(source);
        }
        slot.spare = None;
        if self.slots.iter().all(|d| d.lost) {
            return Err(Error::DevicesLost { device, what });
        }
        let rest = self.slots.iter().filter(|d| !d.lost && d.device == self.slots[worker].device).count();
        let who = if rest > 0 { format!("a thread of {device}") } else { device };
        self.tell(Event::Warning(format!("{who} was dropped: {what}; the others go on")))
    }
}
