//! Scanning: every key of a range once, compared with targets, and a map of what was covered.
//!
//! ```text
//! Map -> planner -> batches -> scanners -> survivors of the filter -> exact look-up -> libsecp256k1 -> sink -> Map
//! ```
//!
//! A key counts as covered when its batch was found to have been walked to its end and everything it hit was confirmed and
//! handed to the sink, not before. What is out when a scan ends is given out again by the next. Devices join as they become ready
//! (`join`); a batch goes to one scanner at a time (`thread`), and what a scanner gives back goes to whoever is there.

mod collector;
mod finding;
mod given;
mod job;
mod join;
mod ledger;
mod prove;
mod targets;
mod thread;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::bounded;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::run::clock::Clock;
use crate::run::pool::{PoolEvent, run_pool};
use crate::run::report::{self, Outcome};
use crate::run::session::Session;
use crate::run::threads::spawn;
use collector::Collector;
pub use finding::Finding;
pub use given::GivenKeys;
pub use job::ScanJob;
use join::ScanWork;
pub use ledger::{Ledger, Unkept};
pub use prove::selftest_scans;
pub(crate) use prove::{Unproved, prove};
pub use targets::ScanTargets;
use thread::{Message, Shared};

/// Receives the events of a scan; a batch of which it failed to take a finding does not count as covered.
type Sink<'s> = report::Sink<'s, Finding>;

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Scans what the map lacks, until all is covered, time is up or `interrupt` is raised. Where nothing is left to be found that was
/// asked for, it ends at once.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use std::time::Duration;
/// use warpsmith_engine::{Devices, Ended, Event, ScanJob, ScanTargets, Unkept, scan};
/// use warpsmith_store::{Job as MapJob, Map, Order, TargetList, parse_range};
///
/// let targets = ScanTargets::list(&TargetList::of(&["1M92tSqNmQLYw33fuBvjmeadirh1ysMBxK".to_owned()])?, &[])?;
/// let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
/// let map = Map::new(MapJob::new(parse_range("80:ff")?, &names, *targets.identity()), Order::Sequential);
/// let outcome = scan(&ScanJob::new(&targets), &mut Unkept(map), &Devices::cpu()?, &AtomicBool::new(false), &mut |event| {
///     if let Event::Found(found) = event {
///         assert!(found.iter().all(|found| found.secret().as_bytes()[31] == 0xe0));
///     }
///     Ok(())
/// })?;
/// assert_eq!((outcome.ended, outcome.tried, outcome.matches), (Ended::Exhausted, 128, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn scan(
    job: &ScanJob<'_>,
    ledger: &mut dyn Ledger,
    devices: &Devices,
    interrupt: &AtomicBool,
    sink: &mut Sink<'_>,
) -> Result<Outcome> {
    let clock = Clock::new(interrupt, job.pause, Instant::now(), job.time_limit, job.interval);
    let (forms, workers) = (job.targets.forms(), devices.most_workers());
    let mut collector = Collector::new(job, Session::new(devices, clock), ledger, sink);
    if let Some(ended) = collector.is_done() {
        return Ok(collector.outcome(ended, 0));
    }
    collector.begin();
    let shared = Shared::new(job, collector.map());
    let (sender, receiver) = bounded(2 * workers);
    // Nobody sends anything: it closes when the scan ends.
    let (end, over) = bounded(0);
    let ended = std::thread::scope(|scope| {
        let report = sender.clone();
        let work = ScanWork { job, forms: &forms, shared: &shared, collector: sender };
        let stop = &shared.stop;
        spawn(
            scope,
            move || run_pool(&work, devices, stop, &over),
            |fault| drop(report.send(Message::Pool(PoolEvent::Failed(Error::NoDevice(fault))))),
        );
        drop(report);
        let ended = collector.collect(&shared, &receiver);
        shared.end();
        drop(end);
        // What scanners have covered until they hear of the end is still taken in.
        let ended = ended.and_then(|ended| collector.drain(&shared, &receiver).map(|()| ended));
        drop(receiver);
        ended
    });
    // What was confirmed is kept whatever ended the scan.
    let saved = collector.save();
    let ended = ended?;
    saved?;
    Ok(collector.outcome(ended, shared.false_hits.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod joining_tests;
#[cfg(test)]
mod mask_tests;
#[cfg(test)]
mod tests;
