//! One search from start to end: a thread a worker, and one collector that verifies, counts and reports.
//!
//! A worker that hits something sends it and waits for the verdict: go on, or start over from a new origin. So
//! no origin gives two matches, and a flood of hits from an easy pattern cannot pile up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use secp256k1::PublicKey;
use warpsmith_curve::Affine;
use warpsmith_curve::walk::Hit;
use warpsmith_pattern::{Filter, Patterns};
use warpsmith_target::{KeyTarget, Recipe};
use zeroize::Zeroizing;

use crate::device::{Devices, Selector};
use crate::error::{Error, Result};
use crate::join::Split;
use crate::origin::{Origin, Secret};
use crate::selftest;
use crate::stats::{Meter, Progress, eta_50, probability};
use crate::verify::{Confirmed, Verdict, verify};
use crate::worker::{Fault, Shape, Worker};

/// What a person asked for.
pub struct Job<'a> {
    /// What is made of a public key.
    pub target: &'a dyn KeyTarget,
    /// What its text shall look like.
    pub patterns: &'a Patterns,
    /// Mine from this public key; no private key exists here then.
    pub split: Option<PublicKey>,
    /// Stop after so many matches; none: never.
    pub count: Option<u64>,
    /// Stop then.
    pub time_limit: Option<Duration>,
    /// How often progress is reported.
    pub interval: Duration,
}

/// A verified result.
#[derive(Debug)]
pub struct Match {
    /// The target's name.
    pub target: &'static str,
    /// The pattern as it was written.
    pub pattern: String,
    /// The text that matches.
    pub address: String,
    /// The compressed public key.
    pub public_key: [u8; 33],
    /// The private key, unless the search was split.
    pub secret: Option<Secret>,
    /// The private key as its users import it.
    pub export: Option<Zeroizing<String>>,
    /// How the private key follows from the user's, if the search was split.
    pub split: Option<Split>,
    /// Where it was found.
    pub device: String,
    /// Addresses tested until then.
    pub tried: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

/// What a search reports while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// A verified match.
    Match(&'a Match),
    /// How it goes.
    Progress(&'a Progress),
    /// Something a person should know; the search goes on.
    Warning(String),
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The number of matches asked for was reached.
    Count,
    /// The time was up.
    TimeLimit,
    /// It was interrupted.
    Interrupted,
}

/// How a search ended.
#[derive(Debug)]
pub struct Outcome {
    /// Why.
    pub ended: Ended,
    /// Addresses tested, each once.
    pub tried: u64,
    /// Matches reported.
    pub matches: u64,
    /// Hits that passed a filter and matched nothing.
    pub false_hits: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

/// What a worker tells the collector.
enum Message {
    Hits { worker: usize, hits: Vec<Hit> },
    Lost { worker: usize, fault: Fault },
}

/// What the collector answers.
enum Answer {
    GoOn,
    StartOver(Affine),
}

/// What the collector knows of one worker.
struct Desk {
    device: usize,
    shape: Shape,
    origin: Origin,
    answer: Sender<Answer>,
    lost: bool,
}

/// Receives events; an error ends the search.
pub type Sink<'s> =
    dyn FnMut(Event<'_>) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> + 's;

/// Runs a search until a stop rule holds, `interrupt` is set, or the sink fails.
///
/// Devices that fail their self-test are dropped with a warning; if none is left, that is the error.
pub fn run(job: &Job<'_>, devices: &Devices, interrupt: &AtomicBool, sink: &mut Sink<'_>) -> Result<Outcome> {
    run_with(job, devices, interrupt, sink, Rule::Publish)
}

/// What becomes of matches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Each is reported and retires its origin.
    Publish,
    /// Each is verified and counted, its key forgotten, and the walk goes on: for benchmarks.
    Count,
}

/// A search whose matches are published, or only counted.
pub(crate) fn run_with(
    job: &Job<'_>,
    devices: &Devices,
    interrupt: &AtomicBool,
    sink: &mut Sink<'_>,
    rule: Rule,
) -> Result<Outcome> {
    if job.target.recipe() != Recipe::X {
        return Err(Error::NoDevice(format!("no device computes {} yet", job.target.name())));
    }
    let mut failed = None;
    let mut plans = Vec::new();
    let mut unfit = 0;
    for (at, device) in devices.list.iter().enumerate() {
        let filter = job.patterns.filter(device.max_false());
        if let Err(why) = device.supports(&filter) {
            unfit += 1;
            sink(Event::Warning(format!("{} is not used: {why}", device.id()))).map_err(Error::Sink)?;
            continue;
        }
        match selftest::short(device.as_ref(), job.target, filter.top.len()) {
            Ok(()) => plans.push((at, filter)),
            Err(error) => {
                sink(Event::Warning(format!("{error}; it is not used"))).map_err(Error::Sink)?;
                failed = Some(error);
            }
        }
    }
    if plans.is_empty() {
        // The processor can test anything: better slow than not at all.
        if unfit > 0 && unfit == devices.list.len() {
            let cpu = Devices::open(&[Selector::Cpu(None)], devices.threads)?;
            let says = cpu.describe().into_iter().map(|(id, line)| format!("{id}: {line}"));
            let says = says.collect::<Vec<_>>().join(", ");
            sink(Event::Warning(format!("the processor searches instead ({says})"))).map_err(Error::Sink)?;
            return run_with(job, &cpu, interrupt, sink, rule);
        }
        return Err(failed.unwrap_or_else(|| Error::NoDevice("none was selected".to_owned())));
    }

    let total: usize = plans.iter().map(|(at, _)| devices.list[*at].workers()).sum();
    let counters: Vec<AtomicU64> = (0..total).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let (sender, receiver) = bounded(2 * total);
    let mut desks = Vec::new();
    let mut workers: Vec<(Box<dyn Worker + '_>, Receiver<Answer>)> = Vec::new();
    for (at, filter) in &plans {
        let device = &devices.list[*at];
        for _ in 0..device.workers() {
            let (origin, point) = fresh(job.split)?;
            let ready = device.worker(filter).and_then(|mut worker| worker.start(point).map(|()| worker));
            match ready {
                Ok(worker) => {
                    let (answer, answers) = bounded(1);
                    desks.push(Desk { device: *at, shape: worker.shape(), origin, answer, lost: false });
                    workers.push((worker, answers));
                }
                Err(what) => {
                    let device = device.id();
                    sink(Event::Warning(format!("{device} is not used: {what}"))).map_err(Error::Sink)?;
                    failed = Some(Error::DevicesLost { device, what });
                }
            }
        }
    }
    if workers.is_empty() {
        return Err(failed.unwrap_or_else(|| Error::NoDevice("none was selected".to_owned())));
    }

    let started = Instant::now();
    thread::scope(|scope| {
        for (id, (worker, answers)) in workers.into_iter().enumerate() {
            let (sender, counters, stop) = (sender.clone(), &counters, &stop);
            scope.spawn(move || work(id, worker, answers, sender, &counters[id], stop));
        }
        drop(sender);
        let mut collector = Collector {
            job,
            rule,
            devices,
            filters: plans.iter().map(|(at, filter)| (*at, filter)).collect(),
            desks,
            counters: &counters,
            started,
            meters: devices.list.iter().map(|_| Meter::new(Instant::now())).collect(),
            matches: 0,
            false_hits: 0,
            tried_at_match: 0,
            sink,
        };
        let ended = collector.collect(&receiver, interrupt);
        stop.store(true, Ordering::Relaxed);
        // Workers that wait for an answer see their channel close.
        collector.desks.clear();
        let (matches, false_hits) = (collector.matches, collector.false_hits);
        drop(receiver);
        ended.map(|ended| (ended, matches, false_hits))
    })
    .map(|(ended, matches, false_hits)| Outcome {
        ended,
        tried: counters.iter().map(|c| c.load(Ordering::Relaxed)).sum(),
        matches,
        false_hits,
        elapsed: started.elapsed(),
    })
}

/// A new origin and its point.
fn fresh(split: Option<PublicKey>) -> Result<(Origin, Affine)> {
    loop {
        let origin = Origin::fresh(split)?;
        if let Some(point) = origin.point() {
            return Ok((origin, point));
        }
    }
}

/// A worker's thread: walk, count, report, obey.
fn work(
    id: usize,
    mut worker: Box<dyn Worker + '_>,
    answers: Receiver<Answer>,
    sender: Sender<Message>,
    counter: &AtomicU64,
    stop: &AtomicBool,
) {
    let faulty = |fault| drop(sender.send(Message::Lost { worker: id, fault }));
    while !stop.load(Ordering::Relaxed) {
        let batch = match worker.run() {
            Ok(batch) => batch,
            Err(fault) => return faulty(fault),
        };
        counter.fetch_add(batch.tried, Ordering::Relaxed);
        if batch.hits.is_empty() {
            continue;
        }
        if sender.send(Message::Hits { worker: id, hits: batch.hits }).is_err() {
            return;
        }
        match answers.recv() {
            Ok(Answer::GoOn) => {}
            Ok(Answer::StartOver(point)) => {
                if let Err(fault) = worker.start(point) {
                    return faulty(fault);
                }
            }
            Err(_) => return,
        }
    }
}

/// The one place where hits become matches.
struct Collector<'c, 's, 'j> {
    job: &'c Job<'j>,
    rule: Rule,
    devices: &'c Devices,
    filters: Vec<(usize, &'c Filter)>,
    desks: Vec<Desk>,
    counters: &'c [AtomicU64],
    started: Instant,
    meters: Vec<Meter>,
    matches: u64,
    false_hits: u64,
    tried_at_match: u64,
    sink: &'c mut Sink<'s>,
}

/// How long the collector sleeps at most: an interrupt is noticed within this time.
const NAP: Duration = Duration::from_millis(50);

impl Collector<'_, '_, '_> {
    fn collect(&mut self, receiver: &Receiver<Message>, interrupt: &AtomicBool) -> Result<Ended> {
        let deadline = self.job.time_limit.map(|limit| self.started + limit);
        let mut report = Instant::now() + self.job.interval;
        loop {
            let now = Instant::now();
            if interrupt.load(Ordering::Relaxed) {
                return Ok(Ended::Interrupted);
            }
            if deadline.is_some_and(|d| now >= d) {
                return Ok(Ended::TimeLimit);
            }
            if now >= report {
                report = now + self.job.interval;
                let progress = self.progress(now);
                self.tell(Event::Progress(&progress))?;
            }
            let wake = deadline.map_or(report, |d| d.min(report));
            match receiver.recv_timeout(wake.saturating_duration_since(now).min(NAP)) {
                Ok(Message::Hits { worker, hits }) => {
                    if self.judge(worker, &hits)? {
                        return Ok(Ended::Count);
                    }
                }
                Ok(Message::Lost { worker, fault }) => self.lose(worker, fault)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(NAP),
            }
        }
    }

    fn tell(&mut self, event: Event<'_>) -> Result<()> {
        (self.sink)(event).map_err(Error::Sink)
    }

    fn tried(&self) -> u64 {
        self.counters.iter().map(|c| c.load(Ordering::Relaxed)).sum()
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let mut devices = Vec::new();
        for (at, device) in self.devices.list.iter().enumerate() {
            if !self.filters.iter().any(|(used, _)| *used == at) {
                continue;
            }
            let counts = self.desks.iter().zip(self.counters).filter(|(desk, _)| desk.device == at);
            let tried = counts.map(|(_, count)| count.load(Ordering::Relaxed)).sum();
            devices.push((device.id(), self.meters[at].rate(now, tried)));
        }
        let rate = devices.iter().map(|(_, rate)| rate).sum();
        let odds = self.job.patterns.odds();
        let tried = self.tried();
        Progress {
            tried,
            rate,
            elapsed: self.started.elapsed(),
            eta_50: eta_50(odds, rate),
            probability: probability(odds, tried - self.tried_at_match),
            matches: self.matches,
            devices,
        }
    }

    /// Verifies a worker's hits up to the first match. Returns whether that was the last one wanted.
    fn judge(&mut self, worker: usize, hits: &[Hit]) -> Result<bool> {
        let desk = &self.desks[worker];
        let filter = self.filters.iter().find(|(at, _)| *at == desk.device).map(|(_, filter)| *filter);
        let Some(filter) = filter else { return Ok(false) };
        let (target, patterns) = (self.job.target, self.job.patterns);
        let mut found = None;
        for hit in hits {
            match verify(&desk.origin, &desk.shape, hit, target, patterns, filter) {
                Verdict::Match(_) if self.rule == Rule::Count => self.matches += 1,
                Verdict::Match(confirmed) => {
                    found = Some(confirmed);
                    break;
                }
                Verdict::False => self.false_hits += 1,
                Verdict::Wrong(what) => {
                    self.lose(worker, format!("it reported a key that is not there: {what}"))?;
                    return Ok(false);
                }
            }
        }
        let Some(confirmed) = found else {
            drop(self.desks[worker].answer.send(Answer::GoOn));
            return Ok(false);
        };
        self.publish(worker, *confirmed)?;
        if self.job.count.is_some_and(|count| self.matches >= count) {
            return Ok(true);
        }
        // SEC: the origin is retired with its match, so two matches of one run are unrelated.
        let (origin, point) = fresh(self.job.split)?;
        let desk = &mut self.desks[worker];
        desk.origin = origin;
        drop(desk.answer.send(Answer::StartOver(point)));
        Ok(false)
    }

    fn publish(&mut self, worker: usize, confirmed: Confirmed) -> Result<()> {
        self.matches += 1;
        self.tried_at_match = self.tried();
        let target = self.job.target;
        let found = Match {
            target: target.name(),
            pattern: self.job.patterns.text(confirmed.pattern).to_owned(),
            address: confirmed.address,
            public_key: confirmed.public_key.serialize(),
            export: confirmed.secret.as_ref().map(|s| target.export(s.as_bytes())),
            secret: confirmed.secret,
            split: confirmed.split,
            device: self.devices.list[self.desks[worker].device].id(),
            tried: self.tried_at_match,
            elapsed: self.started.elapsed(),
        };
        self.tell(Event::Match(&found))
    }

    /// Goes on without a worker; an error if it was the last.
    fn lose(&mut self, worker: usize, what: Fault) -> Result<()> {
        let device = self.devices.list[self.desks[worker].device].id();
        let desk = &mut self.desks[worker];
        desk.lost = true;
        // Closing the channel ends the worker's thread, should it still wait for an answer.
        desk.answer = bounded(1).0;
        if self.desks.iter().all(|d| d.lost) {
            return Err(Error::DevicesLost { device, what });
        }
        let rest = self.desks.iter().filter(|d| !d.lost && d.device == self.desks[worker].device).count();
        let who = if rest > 0 { format!("a thread of {device}") } else { device };
        self.tell(Event::Warning(format!("{who} was dropped: {what}; the others go on")))
    }
}

#[cfg(test)]
mod tests;
