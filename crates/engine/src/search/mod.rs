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
mod progress;
mod sift;
mod steady;
mod thread;
mod verify;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use warpsmith_chain::Recipe;
use warpsmith_pattern::Filter;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::run::clock::Clock;
use crate::run::roster::{Refusal, Roster, ask_all};
use crate::run::threads::spawn;
use crate::selftest::prove_program;
use crate::space::Space;
use crate::worker::{Backend, Search, suits};
use collector::{Collector, Slot};
pub use found::{Match, Solution, Why};
pub use job::{Job, Wanted};
pub use progress::Progress;
use sift::Sift;
use steady::Track;
use thread::{Message, Tally, UNREAD, WorkerThread, work};

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
    let plan = |at: usize, device: &dyn Backend| {
        let filter = job.wanted.filter(device.max_false(&recipe), 0);
        let search = Search::new(&recipe, &filter);
        suits(device, &search, job.wanted.odds(0)).map_err(Refusal::Unable)?;
        prove_program(device, job.subject, &search).map_err(Refusal::Failed)?;
        Ok(Plan { device: at, filter })
    };
    let plans = match ask_all(devices, plan, |text| sink(Event::Warning(text)).map_err(Error::Sink))? {
        Roster::Ready(plans) => plans,
        Roster::Processor(cpu) => return run_with(job, &cpu, interrupt, sink, rule),
        Roster::Nobody(failed) => {
            return Err(failed.unwrap_or_else(|| Error::NoDevice("none was selected".to_owned())));
        }
    };
    let total: usize = plans.iter().map(|plan| devices.list[plan.device].workers()).sum();
    let mut space = Space::new(job.subject, job.split, total)?;
    let (slots, workers) = make_workers(job, &recipe, &plans, devices, &mut space, sink)?;
    let counters: Vec<AtomicU64> = workers.iter().map(|_| AtomicU64::new(0)).collect();
    let tracks: Vec<Track> = workers.iter().map(|_| Track::default()).collect();
    let stop = AtomicBool::new(false);
    let best = AtomicU32::new(0);
    let sift = Sift::new(job);
    let (sender, receiver) = bounded(2 * workers.len());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for (id, worker) in workers.into_iter().enumerate() {
            let (sender, stop, best) = (sender.clone(), &stop, &best);
            let tally = Tally { started, counter: &counters[id], track: &tracks[id], sift: &sift };
            let report = sender.clone();
            spawn(
                scope,
                move || work(id, worker, sender, tally, best, stop),
                |fault| drop(report.send(Message::Lost { worker: id, fault })),
            );
        }
        drop(sender);
        let clock = Clock::new(interrupt, started, job.time_limit, job.interval);
        let mut collector =
            Collector::new(job, rule, devices, &plans, space, slots, &counters, &best, clock, sink);
        let ended = collector.collect(&receiver);
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

/// Makes the workers of all plans and gives each its first start. Devices that cannot are dropped with a warning.
fn make_workers<'d>(
    job: &Job<'_>,
    recipe: &Recipe,
    plans: &[Plan],
    devices: &'d Devices,
    space: &mut Space,
    sink: &mut Sink<'_>,
) -> Result<(Vec<Slot>, Vec<WorkerThread<'d>>)> {
    let (mut slots, mut workers, mut failed) = (Vec::new(), Vec::new(), None);
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
                    slots.push(Slot::new(plan.device, worker.numbering(), source, answer));
                    workers.push(WorkerThread { worker, answers, exact });
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
    Ok((slots, workers))
}

#[cfg(test)]
mod bitcoin_tests;
#[cfg(test)]
mod salt_tests;
#[cfg(test)]
mod tests;
