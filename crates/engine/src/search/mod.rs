//! One search from start to end: a thread a worker, threads that verify, and one collector that counts and reports. Devices join
//! as they become ready (`crew`).
//!
//! Each lane of a worker walks from an origin of its own. With a key that likely matches the worker's thread retires that
//! origin, gives the lane a spare one and goes on (`claims`); the claim is verified by another thread (`judge`), and told by
//! the collector. So no origin gives two matches, nobody waits for a verdict, and since all channels are bounded a flood of hits
//! from an easy pattern cannot pile up.

mod claims;
mod collector;
mod crew;
mod found;
mod job;
mod judge;
mod progress;
mod steady;
mod thread;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origins::Maker;
use crate::run::clock::Clock;
use crate::run::report::{self, Ended, Event};
use crate::run::threads::spawn;
use crate::space::{Salts, Subject};
use claims::{Sift, make_spares};
use collector::Collector;
use crew::{Crew, muster};
pub use found::{Match, Solution, Why};
pub use job::{Job, Show, Wanted};
pub(crate) use judge::found as found_of;
use judge::judge;
pub use progress::{Progress, time_to};
use thread::Message;

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
///         Event::Warning(text) | Event::Note(text) => eprintln!("{text}"),
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

/// A search whose matches are published, or only counted.
pub(crate) fn run_with(
    job: &Job<'_>,
    devices: &Devices,
    interrupt: &AtomicBool,
    sink: &mut Sink<'_>,
    rule: Rule,
) -> Result<Outcome> {
    let recipe = job.subject.recipe();
    let workers = devices.most_workers();
    let salts = match job.subject {
        Subject::Salt(target) => Some(Salts::new(target.salted().salt, workers)?),
        Subject::Key(_) => None,
    };
    let maker = Maker::new(job.split);
    // One batch of spare origins waits, and one is in the making.
    let (give, spares) = bounded(1);
    let spares = (rule == Rule::Publish && salts.is_none()).then_some(spares);
    let (stop, best) = (AtomicBool::new(false), AtomicU32::new(0));
    let sift = Sift::new(job, &best);
    let judges = devices.thread_count().min(MOST_JUDGES);
    let (sender, receiver) = bounded(2 * (workers + judges));
    let (claims, claimed) = bounded(2 * judges);
    // Nobody sends anything: it closes when the search ends.
    let (end, over) = bounded(0);
    std::thread::scope(|scope| {
        for n in 0..judges {
            let (claimed, sender, report) = (claimed.clone(), sender.clone(), sender.clone());
            spawn(
                scope,
                move || judge(job, rule, &claimed, &sender),
                // One of them is enough.
                |fault| drop((n == 0).then(|| report.send(Message::Failed(Error::NoDevice(fault))))),
            );
        }
        if spares.is_some() {
            let (maker, sender, report) = (&maker, sender.clone(), sender.clone());
            let make = move || {
                if let Err(error) = make_spares(maker, &give) {
                    drop(sender.send(Message::Failed(error)));
                }
            };
            spawn(scope, make, |fault| drop(report.send(Message::Failed(Error::NoDevice(fault)))));
        }
        let report = sender.clone();
        let crew = Crew {
            job,
            recipe: &recipe,
            maker: &maker,
            spares,
            sift: &sift,
            stop: &stop,
            over,
            claims,
            collector: sender,
            joined: Mutex::new(0),
        };
        spawn(
            scope,
            move || muster(&crew, devices),
            |fault| drop(report.send(Message::Failed(Error::NoDevice(fault)))),
        );
        drop((report, claimed));
        let clock = Clock::new(interrupt, job.pause, Instant::now(), job.time_limit, job.interval);
        let mut collector = Collector::new(job, devices.later().is_some(), salts, &best, clock, sink);
        let ended = collector.collect(&receiver);
        stop.store(true, Ordering::Relaxed);
        drop(end);
        let host_cpu = collector.host_cpu();
        let ended = ended.and_then(|ended| match ended {
            Ended::TimeLimit | Ended::Interrupted => collector.drain(&receiver).map(|()| ended),
            Ended::Count | Ended::Exhausted => Ok(ended),
        });
        let closed = collector.close();
        drop(receiver);
        ended.map(|ended| (ended, closed, host_cpu))
    })
    .map(|(ended, closed, host_cpu)| Outcome {
        ended,
        tried: closed.counters.iter().map(|counter| counter.load(Ordering::Relaxed)).sum(),
        matches: closed.matches,
        false_hits: closed.false_hits + sift.dropped(),
        passed_over: sift.passed_over(),
        elapsed: closed.elapsed(),
        steady_rate: closed.tracks.iter().map(|track| track.rate()).sum(),
        host_cpu,
    })
}

/// The most threads that verify: at some ten thousand matches a second and thread, more than anybody writes down.
const MOST_JUDGES: usize = 32;

#[cfg(test)]
mod bitcoin_tests;
#[cfg(test)]
mod joining_tests;
#[cfg(test)]
mod pause_tests;
#[cfg(test)]
mod salt_tests;
#[cfg(test)]
mod tests;
