//! One search from start to end: a thread a worker, threads that verify, and one collector that counts and reports.
//!
//! Each lane of a worker walks from an origin of its own. With a key that likely matches the worker's thread retires that
//! origin, gives the lane a spare one and goes on (`claims`); the claim is verified by another thread (`judge`), and told by
//! the collector. So no origin gives two matches, nobody waits for a verdict, and since all channels are bounded a flood of hits
//! from an easy pattern cannot pile up.

mod claims;
mod collector;
mod found;
mod job;
mod judge;
mod progress;
mod steady;
mod thread;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use warpsmith_chain::Recipe;
use warpsmith_pattern::Filter;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origins::{Maker, Spare};
use crate::run::clock::Clock;
use crate::run::report::{self, Ended, Event};
use crate::run::roster::{Refusal, Roster, ask_all};
use crate::run::threads::spawn;
use crate::selftest::prove_program;
use crate::space::{Salts, Start, Subject};
use crate::worker::{Backend, Fault, Search, Worker, suits};
use claims::{Roots, Sift, Spares, make_spares};
use collector::{Collector, Slot};
pub use found::{Match, Solution, Why};
pub use job::{Job, Wanted};
pub(crate) use judge::found as found_of;
use judge::{Facts, judge};
pub use progress::{Progress, time_to};
use steady::Track;
use thread::{Message, Ports, Tally, WorkerThread, work};

/// How a search ended.
///
/// See [`run`](run()).
#[derive(Debug)]
pub struct Outcome {
    /// Why.
    pub ended: Ended,
    /// Addresses tested, each once.
    pub tried: u64,
    /// Matches reported.
    pub matches: u64,
    /// Hits that passed a filter and matched nothing, of keys behind a lane's match too, which are not among those tested.
    pub false_hits: u64,
    /// Keys that likely matched and were left alone, since another key of the same origin had just been found: they would be
    /// related to it. They are not among the addresses tested.
    pub passed_over: u64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Addresses a second after the first launches; none if the search was too short for that.
    pub steady_rate: Option<f64>,
    /// Processor time this program took then, as a share of one core.
    pub host_cpu: Option<f64>,
}

/// Receives what a search tells.
type Sink<'s> = report::Sink<'s, Match, Progress>;

/// Runs a search until a stop rule holds, `interrupt` is set, or the sink fails.
///
/// Devices that fail their self-test are dropped with a warning; if none is left, that is the error.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use warpsmith_chain::nostr::Npub;
/// use warpsmith_engine::{Devices, Ended, Event, Job, Subject, Wanted, run};
/// use warpsmith_pattern::{Options, compile};
///
/// let patterns = compile(["qq"], &Npub, &Options::default())?;
/// let job = Job { count: Some(2), ..Job::new(Subject::Key(&Npub), Wanted::Patterns(&patterns)) };
/// let outcome = run(&job, &Devices::cpu()?, &AtomicBool::new(false), &mut |event| {
///     match event {
///         Event::Found(found) => found.iter().for_each(|found| println!("{}", found.address)),
///         Event::Progress(progress) => eprintln!("{:.3e} keys/s", progress.rate),
///         Event::Warning(text) => eprintln!("{text}"),
///     }
///     Ok(())
/// })?;
/// assert_eq!((outcome.ended, outcome.matches), (Ended::Count, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    let mut salts = match job.subject {
        Subject::Salt(target) => Some(Salts::new(target.salted().salt, total)?),
        Subject::Key(_) => None,
    };
    let maker = Maker::new(job.split);
    // One batch of spare origins waits, and one is in the making.
    let (give, spares) = bounded(1);
    let spares = (rule == Rule::Publish).then_some(spares);
    let made = Workshop { recipe: &recipe, plans: &plans, devices, maker: &maker, spares }
        .workers(&mut salts, sink)?;
    let counters: Vec<AtomicU64> = made.iter().map(|_| AtomicU64::new(0)).collect();
    let tracks: Vec<Track> = made.iter().map(|_| Track::default()).collect();
    let (mut slots, mut facts, mut workers) = (Vec::new(), Vec::new(), Vec::new());
    for (slot, fact, worker) in made {
        slots.push(slot);
        facts.push(fact);
        workers.push(worker);
    }
    let stop = AtomicBool::new(false);
    let best = AtomicU32::new(0);
    let sift = Sift::new(job, &best);
    let judges = devices.thread_count().min(MOST_JUDGES);
    let (sender, receiver) = bounded(2 * (workers.len() + judges));
    let (claims, claimed) = bounded(2 * judges);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for (id, worker) in workers.into_iter().enumerate() {
            let ports = Ports { claims: claims.clone(), collector: sender.clone() };
            let (stop, best, report) = (&stop, &best, sender.clone());
            let tally = Tally { started, counter: &counters[id], track: &tracks[id], sift: &sift };
            spawn(
                scope,
                move || work(id, worker, ports, tally, best, stop),
                |fault| drop(report.send(Message::Lost { worker: id, fault })),
            );
        }
        for n in 0..judges {
            let (facts, claimed, sender, report) = (&facts, claimed.clone(), sender.clone(), sender.clone());
            spawn(
                scope,
                move || judge(job, rule, facts, &claimed, &sender),
                // One of them is enough.
                |fault| drop((n == 0).then(|| report.send(Message::Failed(Error::NoDevice(fault))))),
            );
        }
        if salts.is_none() && rule == Rule::Publish {
            let (maker, sender, report) = (&maker, sender.clone(), sender.clone());
            let make = move || {
                if let Err(error) = make_spares(maker, &give) {
                    drop(sender.send(Message::Failed(error)));
                }
            };
            spawn(scope, make, |fault| drop(report.send(Message::Failed(Error::NoDevice(fault)))));
        }
        drop((sender, claims, claimed));
        let clock = Clock::new(interrupt, started, job.time_limit, job.interval);
        let mut collector = Collector::new(job, devices, &plans, salts, slots, &counters, &best, clock, sink);
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
        passed_over: sift.passed_over(),
        elapsed: started.elapsed(),
        steady_rate: tracks.iter().map(Track::rate).sum(),
        host_cpu,
    })
}

/// The most threads that verify: at some ten thousand matches a second and thread, more than anybody writes down.
const MOST_JUDGES: usize = 32;

/// What workers are made of.
struct Workshop<'w, 'd> {
    recipe: &'w Recipe,
    plans: &'w [Plan],
    devices: &'d Devices,
    maker: &'w Maker,
    /// Where spare origins come from; none where none are retired.
    spares: Option<Receiver<Vec<Spare>>>,
}

/// A worker, and what the collector and those who verify know of it.
type Made<'w, 'd> = (Slot, Facts<'w>, WorkerThread<'d>);

impl<'w, 'd> Workshop<'w, 'd> {
    /// The workers of all plans, each started. Devices that cannot are dropped with a warning.
    fn workers(self, salts: &mut Option<Salts>, sink: &mut Sink<'_>) -> Result<Vec<Made<'w, 'd>>> {
        let (mut workers, mut failed) = (Vec::new(), None);
        for plan in self.plans {
            let device = &self.devices.list[plan.device];
            let search = Search::new(self.recipe, &plan.filter);
            for _ in 0..device.workers() {
                let lease = salts.as_mut().map(Salts::next);
                // A small space may hold less than every worker a share.
                if lease == Some(None) {
                    break;
                }
                let lease = lease.flatten();
                let made = device.worker(&search).map(|mut worker| match lease {
                    Some(lease) => {
                        let started = worker.start(Start::Salts(lease));
                        Ok(started.map(|()| (worker, Roots::Salts(lease))))
                    }
                    None => self.begin(worker),
                });
                match made.unwrap_or_else(|fault| Ok(Err(fault)))? {
                    Ok((worker, roots)) => {
                        let (answer, leases) = bounded(1);
                        let (device, numbering) = (device.id(), worker.numbering());
                        let facts = Facts { device, numbering, filter: &plan.filter };
                        let thread = WorkerThread { worker, roots, leases };
                        workers.push((Slot::new(plan.device, lease, answer), facts, thread));
                    }
                    Err(what) => {
                        if let (Some(salts), Some(lease)) = (salts.as_mut(), lease) {
                            salts.give_back(lease);
                        }
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
        Ok(workers)
    }

    /// Draws the origins of a worker's lanes and gives it their points. An error only where none can be drawn.
    fn begin(&self, mut worker: Box<dyn Worker + 'd>) -> Result<std::result::Result<Begun<'d>, Fault>> {
        let lanes = worker.numbering().map_or(0, |numbering| numbering.lanes as usize);
        let (origins, points) = self.maker.ledger(lanes)?;
        let spares = self.spares.clone().map(Spares::new);
        let started = worker.start(Start::Points(&points));
        Ok(started.map(|()| (worker, Roots::Keys { origins, spares })))
    }
}

/// A worker that has its start.
type Begun<'d> = (Box<dyn Worker + 'd>, Roots);

#[cfg(test)]
mod bitcoin_tests;
#[cfg(test)]
mod salt_tests;
#[cfg(test)]
mod tests;
