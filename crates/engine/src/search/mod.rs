//! One search from start to end: a thread a worker, and one collector that verifies, counts and reports.
//!
//! A worker that hits something sends it and waits for the verdict: go on, or start over from a new origin. So
//! no origin gives two matches, and a flood of hits from an easy pattern cannot pile up.
//!
//! Where all cores are busy that wait is milliseconds. So a worker whose origin was retired once has a spare one: with the
//! next key that likely matches it goes on from there at once, and the collector makes another.

mod collector;
mod found;
mod job;
mod sift;
mod verify;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, Sender, TryRecvError, bounded};
use warpsmith_chain::Recipe;
use warpsmith_pattern::Filter;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::selftest::prove_program;
use crate::space::Space;
use crate::stats::Progress;
use crate::steady::Track;
use crate::worker::{Fault, Hit, Search, Start, Worker, suits};
use collector::{Collector, Desk};
pub use found::{Match, Solution, Why};
pub use job::{Job, Wanted};
use sift::Sift;

/// What a search reports while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// A verified match. It is the receiver's: nobody else keeps its key.
    Match(Box<Match>),
    /// How it goes.
    Progress(&'a Progress),
    /// Something a person should know; the search goes on.
    Warning(String),
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The number of matches, or the score, asked for was reached.
    Count,
    /// The time was up.
    TimeLimit,
    /// Every candidate has been tested.
    Exhausted,
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
    /// Addresses a second after the first launches; none if the search was too short for that.
    pub steady_rate: Option<f64>,
    /// Processor time this program took then, as a share of one core.
    pub host_cpu: Option<f64>,
}

/// What a worker tells the collector.
enum Message {
    Report {
        worker: usize,
        hits: Vec<Hit>,
        done: bool,
        /// Whether the worker went on from its spare start and waits for no answer.
        moved_on: bool,
    },
    Lost {
        worker: usize,
        fault: Fault,
    },
}

/// What the collector answers.
enum Answer {
    GoOn,
    StartOver(Start),
    /// No answer to a report: where to go on after the next likely match.
    Spare(Start),
}

/// Answers a worker may not have read: one, and a spare start.
const UNREAD: usize = 2;

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

/// A device that takes part, and what it is to find.
struct Plan {
    device: usize,
    filter: Filter,
}

/// A search whose matches are published, or only counted.
pub(crate) fn run_with(
    job: &Job<'_>,
    devices: &Devices,
    interrupt: &AtomicBool,
    sink: &mut Sink<'_>,
    rule: Rule,
) -> Result<Outcome> {
    let recipe = job.subject.recipe();
    let mut failed = None;
    let mut plans = Vec::new();
    let mut unfit = 0;
    for (at, device) in devices.list.iter().enumerate() {
        let filter = job.wanted.filter(device.max_false(&recipe), 0);
        let search = Search::new(&recipe, &filter);
        if let Err(why) = suits(device.as_ref(), &search, job.wanted.odds(0)) {
            unfit += 1;
            sink(Event::Warning(format!("{} is not used: {why}", device.id()))).map_err(Error::Sink)?;
            continue;
        }
        match prove_program(device.as_ref(), job.subject, &search) {
            Ok(()) => plans.push(Plan { device: at, filter }),
            Err(error) => {
                sink(Event::Warning(format!("{error}; it is not used"))).map_err(Error::Sink)?;
                failed = Some(error);
            }
        }
    }
    if plans.is_empty() {
        if unfit > 0 && unfit == devices.list.len() && devices.are_cards() {
            let (cpu, says) = devices.processor_instead()?;
            sink(Event::Warning(says)).map_err(Error::Sink)?;
            return run_with(job, &cpu, interrupt, sink, rule);
        }
        return Err(failed.unwrap_or_else(|| Error::NoDevice("none was selected".to_owned())));
    }

    let total: usize = plans.iter().map(|plan| devices.list[plan.device].workers()).sum();
    let mut space = Space::new(job.subject, job.split, total)?;
    let (desks, workers) = hire(job, &recipe, &plans, devices, &mut space, sink)?;
    let counters: Vec<AtomicU64> = workers.iter().map(|_| AtomicU64::new(0)).collect();
    let tracks: Vec<Track> = workers.iter().map(|_| Track::default()).collect();
    let stop = AtomicBool::new(false);
    let best = AtomicU32::new(0);
    let sift = Sift::new(job);
    let (sender, receiver) = bounded(2 * workers.len());
    let started = Instant::now();
    thread::scope(|scope| {
        for (id, hand) in workers.into_iter().enumerate() {
            let (sender, stop, best) = (sender.clone(), &stop, &best);
            let tally = Tally { started, counter: &counters[id], track: &tracks[id], sift: &sift };
            let report = sender.clone();
            let run = move || work(id, hand, sender, tally, best, stop);
            if let Err(error) = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run) {
                let fault = format!("it got no thread: {error}");
                drop(report.send(Message::Lost { worker: id, fault }));
            }
        }
        drop(sender);
        let mut collector =
            Collector::new(job, rule, devices, &plans, space, desks, &counters, &best, started, sink);
        let ended = collector.collect(&receiver, interrupt);
        stop.store(true, Ordering::Relaxed);
        let host_cpu = collector.host_cpu();
        let ended = ended.and_then(|ended| match ended {
            Ended::TimeLimit | Ended::Interrupted => collector.drain(&receiver).map(|()| ended),
            Ended::Count | Ended::Exhausted => Ok(ended),
        });
        let (matches, false_hits) = collector.close();
        drop(receiver);
        ended.map(|ended| (ended, matches, false_hits, host_cpu))
    })
    .map(|(ended, matches, false_hits, host_cpu)| Outcome {
        ended,
        tried: counters.iter().map(|c| c.load(Ordering::Relaxed)).sum(),
        matches,
        false_hits: false_hits + sift.dropped(),
        elapsed: started.elapsed(),
        steady_rate: tracks.iter().map(Track::rate).sum(),
        host_cpu,
    })
}

/// A worker, and how it hears of the collector.
struct Hand<'d> {
    worker: Box<dyn Worker + 'd>,
    answers: Receiver<Answer>,
    /// Whether most of what it hits matches.
    exact: bool,
}

type Hired<'d> = (Vec<Desk>, Vec<Hand<'d>>);

/// Makes the workers of all plans and gives each its first start. Devices that cannot are dropped with a warning.
fn hire<'d>(
    job: &Job<'_>,
    recipe: &Recipe,
    plans: &[Plan],
    devices: &'d Devices,
    space: &mut Space,
    sink: &mut Sink<'_>,
) -> Result<Hired<'d>> {
    let (mut desks, mut workers, mut failed) = (Vec::new(), Vec::new(), None);
    for plan in plans {
        let device = &devices.list[plan.device];
        let search = Search::new(recipe, &plan.filter);
        let exact = 2.0 * job.wanted.odds(0) > plan.filter.share();
        for _ in 0..device.workers() {
            // A small space may hold less than every worker a share.
            let Some((source, start)) = space.next()? else { break };
            let ready = device.worker(&search).and_then(|mut worker| worker.start(&start).map(|()| worker));
            match ready {
                Ok(worker) => {
                    let (answer, answers) = bounded(UNREAD);
                    desks.push(Desk::new(plan.device, worker.shape(), source, answer));
                    workers.push(Hand { worker, answers, exact });
                }
                Err(what) => {
                    space.give_back(source);
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
    Ok((desks, workers))
}

/// Where a worker counts, and what it looks at itself.
struct Tally<'t> {
    started: Instant,
    counter: &'t AtomicU64,
    track: &'t Track,
    sift: &'t Sift<'t>,
}

/// A worker's stack. The lanes of a build without optimisation keep every value of a walk on it.
pub(crate) const STACK: usize = 16 << 20;

/// A worker's thread: search, count, report, obey.
fn work(
    id: usize,
    Hand { mut worker, answers, exact }: Hand<'_>,
    sender: Sender<Message>,
    tally: Tally<'_>,
    best: &AtomicU32,
    stop: &AtomicBool,
) {
    let (mut beaten, mut spare) = (0, None);
    // Of what was counted, what no check of its walk has confirmed: it does not count any more once the worker is lost.
    let mut unproved = 0;
    let faulty = |fault, unproved| {
        tally.counter.fetch_sub(unproved, Ordering::Relaxed);
        drop(sender.send(Message::Lost { worker: id, fault }));
    };
    while !stop.load(Ordering::Relaxed) {
        match answers.try_recv() {
            Ok(Answer::Spare(start)) => spare = Some(start),
            Ok(Answer::GoOn | Answer::StartOver(_)) => unreachable!("nobody asked"),
            Err(TryRecvError::Empty) => {}
            // Nobody listens any more: what it reported last was wrong.
            Err(TryRecvError::Disconnected) => return,
        }
        let best = best.load(Ordering::Relaxed);
        if best > beaten {
            beaten = best;
            if let Err(fault) = worker.raise(best + 1) {
                return faulty(fault, unproved);
            }
        }
        let mut batch = match worker.run() {
            Ok(batch) => batch,
            Err(fault) => return faulty(fault, unproved),
        };
        unproved = worker.unproved();
        let tried = tally.counter.fetch_add(batch.tried, Ordering::Relaxed) + batch.tried;
        tally.track.note(tally.started, Instant::now(), tried);
        let likely = tally.sift.sift(&mut batch.hits, exact);
        if batch.hits.is_empty() && !batch.done {
            continue;
        }
        let next = if likely { spare.take() } else { None };
        let report =
            Message::Report { worker: id, hits: batch.hits, done: batch.done, moved_on: next.is_some() };
        if sender.send(report).is_err() {
            return;
        }
        let next = match next {
            Some(_) => next,
            None => match verdict(&answers, &mut spare) {
                Ok(next) => next,
                Err(RecvError) => return,
            },
        };
        if let Some(start) = next
            && let Err(fault) = worker.start(&start)
        {
            return faulty(fault, unproved);
        }
    }
}

/// Waits for the answer to a report: where to start over, if so.
fn verdict(
    answers: &Receiver<Answer>,
    spare: &mut Option<Start>,
) -> std::result::Result<Option<Start>, RecvError> {
    loop {
        match answers.recv()? {
            Answer::GoOn => return Ok(None),
            Answer::StartOver(start) => return Ok(Some(start)),
            Answer::Spare(start) => *spare = Some(start),
        }
    }
}

#[cfg(test)]
mod bitcoin_tests;
#[cfg(test)]
mod salt_tests;
#[cfg(test)]
mod tests;
