//! One search from start to end: a thread a worker, threads that verify, and one collector that counts and reports. Devices join
//! as they become ready (`join`).
//!
//! Each lane of a worker walks from an origin of its own. With a key that likely matches the worker's thread retires that
//! origin, gives the lane a spare one and goes on (`claims`); the claim is verified by another thread (`judge`), and told by
//! the collector. So no origin gives two matches, nobody waits for a verdict, and since all channels are bounded a flood of hits
//! from an easy pattern cannot pile up.

mod claims;
mod collector;
mod found;
mod job;
mod join;
mod judge;
mod message;
mod progress;
mod steady;
mod thread;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use crossbeam_channel::bounded;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origins::Maker;
use crate::run::clock::Clock;
use crate::run::pool::{PoolEvent, run_pool};
use crate::run::report::{self, Ended, Event, Outcome};
use crate::run::session::Session;
use crate::run::threads::spawn;
use crate::space::{Salts, Subject};
use claims::{Sift, make_spares};
use collector::Collector;
pub use found::{Match, Solution, Why};
pub use job::{Job, Show, Wanted};
use join::SearchWork;
pub(crate) use judge::found as found_of;
use judge::judge;
use message::Message;
pub use progress::time_to;

/// Receives the events of a search.
type Sink<'s> = report::Sink<'s, Match>;

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
    let clock = Clock::new(interrupt, job.pause, Instant::now(), job.time_limit, job.interval);
    let mut collector = Collector::new(job, Session::new(devices, clock), salts, &best, sink);
    let failed = |error| Message::Pool(PoolEvent::Failed(error));
    let ended = std::thread::scope(|scope| {
        for n in 0..judges {
            let (claimed, sender, report) = (claimed.clone(), sender.clone(), sender.clone());
            spawn(
                scope,
                move || judge(job, rule, &claimed, &sender),
                // One of them is enough.
                |fault| drop((n == 0).then(|| report.send(failed(Error::NoDevice(fault))))),
            );
        }
        if spares.is_some() {
            let (maker, sender, report) = (&maker, sender.clone(), sender.clone());
            let make = move || {
                if let Err(error) = make_spares(maker, &give) {
                    drop(sender.send(failed(error)));
                }
            };
            spawn(scope, make, |fault| drop(report.send(failed(Error::NoDevice(fault)))));
        }
        let report = sender.clone();
        let work = SearchWork {
            job,
            recipe: &recipe,
            maker: &maker,
            spares,
            sift: &sift,
            stop: &stop,
            over: over.clone(),
            claims,
            collector: sender,
        };
        let stop = &stop;
        spawn(
            scope,
            move || run_pool(&work, devices, stop, &over),
            |fault| drop(report.send(failed(Error::NoDevice(fault)))),
        );
        drop((report, claimed));
        let ended = collector.collect(&receiver);
        stop.store(true, Ordering::Relaxed);
        drop(end);
        let host_cpu = collector.host_cpu();
        let ended = ended.and_then(|ended| match ended {
            Ended::TimeLimit | Ended::Interrupted => collector.drain(&receiver).map(|()| ended),
            Ended::Count | Ended::Exhausted => Ok(ended),
        });
        collector.close();
        drop(receiver);
        ended.map(|ended| (ended, host_cpu))
    });
    ended.map(|(ended, host_cpu)| collector.outcome(ended, &sift, host_cpu))
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
