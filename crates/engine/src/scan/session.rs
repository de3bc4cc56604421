//! One scan from start to end: scanners that take batches from a planner (`shared`), and one collector that confirms,
//! publishes and keeps the map.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use warpsmith_chain::{AddressKind, Digest, Form, KeyType};
use warpsmith_device::{Busy, Preparing};
use warpsmith_store::{KeyMask, Map, MapFile, Record, U256};
use zeroize::Zeroizing;

use super::prove::{Unproved, prove, prove_mask};
use super::shared::{Done, Message, Shared};
use super::{Finding, ScanTargets};
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origin::{Secret, public_point};
use crate::prefilter::ScanFilter;
use crate::run::clock::{Clock, Tick};
use crate::run::pause::Pause;
use crate::run::rates::Rates;
use crate::run::report::{Ended, Event, Sink};
use crate::run::roster::{Refusal, Roster, ask_all};
use crate::run::threads::spawn;
use crate::secret::wiping_stack;
use crate::worker::scanner::{Scanner, Survivor};
use crate::worker::{Backend, Fault};

/// How long what was covered may wait for the map to be written: batches of a processor with many cores, and pieces of a small
/// range, come more often than a disk can be waited for.
const UNSAVED: Duration = Duration::from_millis(100);

/// A map and where it is kept.
///
/// See [`scan`](scan()).
pub trait Ledger {
    /// The map.
    fn map(&self) -> &Map;
    /// The map, to note what was done.
    fn map_mut(&mut self) -> &mut Map;
    /// Makes durable what was noted.
    fn save(&mut self) -> Result<()>;
}

impl Ledger for MapFile {
    fn map(&self) -> &Map {
        MapFile::map(self)
    }
    fn map_mut(&mut self) -> &mut Map {
        MapFile::map_mut(self)
    }
    fn save(&mut self) -> Result<()> {
        Ok(MapFile::save(self)?)
    }
}

/// A map that is forgotten at the end.
///
/// See [`scan`](scan()).
pub struct Unkept(pub Map);

impl Ledger for Unkept {
    fn map(&self) -> &Map {
        &self.0
    }
    fn map_mut(&mut self) -> &mut Map {
        &mut self.0
    }
    fn save(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What a person asked for.
///
/// See [`scan`](scan()).
pub struct ScanJob<'a> {
    /// What is looked for.
    pub targets: &'a ScanTargets,
    /// Whose candidates the numbers of the map are, counted from 1; none where they are keys themselves.
    pub mask: Option<&'a Arc<KeyMask>>,
    /// Stop then.
    pub time_limit: Option<Duration>,
    /// Stop once so many are found. What was found with the last of them is told too: its keys count as covered, and nobody would
    /// find it again.
    pub count: Option<u64>,
    /// Stop when every address of a list is found, in this run or by the map in an earlier one.
    pub until_found: bool,
    /// How often progress is reported.
    pub interval: Duration,
    /// What holds it and lets it go on.
    pub pause: Option<&'a Pause>,
}

impl<'a> ScanJob<'a> {
    /// A scan that goes on to the end of its range and reports progress every second. Other wishes are said as
    /// `ScanJob { time_limit: Some(limit), ..ScanJob::new(&targets) }`.
    pub fn new(targets: &'a ScanTargets) -> ScanJob<'a> {
        let interval = Duration::from_secs(1);
        ScanJob {
            targets,
            mask: None,
            time_limit: None,
            count: None,
            until_found: false,
            interval,
            pause: None,
        }
    }
}

/// Where a scan stands.
///
/// See [`scan`](scan()).
#[derive(Clone, Debug)]
pub struct ScanProgress {
    /// Keys tested since the start of this run, each once.
    pub tried: u64,
    /// Keys a second, over the last seconds.
    pub rate: f64,
    /// Since the first key of this run.
    pub elapsed: Duration,
    /// The covered share of the range, 0 to 1; what is being scanned is not in it.
    pub share: f64,
    /// Until the rest is covered, at this rate.
    pub left: Option<Duration>,
    /// Findings of this run.
    pub matches: u64,
    /// Each device and its rate.
    pub devices: Vec<(String, f64)>,
}

/// How a scan ended.
///
/// See [`scan`](scan()).
#[derive(Clone, Debug)]
pub struct ScanOutcome {
    /// Why.
    pub ended: Ended,
    /// Keys tested in this run.
    pub tried: u64,
    /// Findings of this run.
    pub matches: u64,
    /// Whether every address of a list was found, in this run or by the map in an earlier one.
    pub all_found: bool,
    /// Digests that passed the filter and were none of the targets'.
    pub false_hits: u64,
    /// How long this run took, from its first key to its last.
    pub elapsed: Duration,
}

/// Receives what a scan tells; a batch of which it failed to take a finding does not count as covered.
type ScanSink<'s> = Sink<'s, Finding, ScanProgress>;

/// A scanner and the number of its device.
type Numbered<'s> = (usize, Box<dyn Scanner + 's>);

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
    sink: &mut ScanSink<'_>,
) -> Result<ScanOutcome> {
    if job.until_found && job.targets.has_all(ledger.map()) {
        let (ended, elapsed) = (Ended::Count, Duration::ZERO);
        return Ok(ScanOutcome { ended, tried: 0, matches: 0, all_found: true, false_hits: 0, elapsed });
    }
    let (forms, filter) = (job.targets.forms(), job.targets.filter());
    let prove = |at: usize, device: &dyn Backend| {
        // From its proof to its first key.
        let open = device.hold();
        let _busy = Busy::with(Preparing::Proving, Some(device.id()));
        let proved = match job.mask {
            None => prove(device, &forms, filter),
            Some(mask) => prove_mask(device, &forms, filter, mask),
        };
        match proved {
            Ok(_) => Ok((at, open)),
            Err(Unproved::Unable(why)) => Err(Refusal::Unable(why)),
            Err(Unproved::Failed(what)) => {
                Err(Refusal::Failed(Error::SelfTest { device: device.id(), what }))
            }
        }
    };
    let mut open = Vec::new();
    let mut able = vec![false; devices.list.len()];
    match ask_all(devices, prove, |text| sink(Event::Warning(text)).map_err(Error::Sink))? {
        Roster::Ready(ready) => ready.into_iter().for_each(|(at, held)| {
            able[at] = true;
            open.push(held);
        }),
        Roster::Processor(cpu) => return scan(job, ledger, &cpu, interrupt, sink),
        // What the map lacks, if anything, decides whether that is an error.
        Roster::Nobody => {}
    }
    ledger.map_mut().begin(now());
    let started = Instant::now();
    let found = job.targets.found_in(ledger.map());
    let mut collector = Collector {
        ledger,
        devices,
        sink,
        clock: Clock::new(interrupt, job.pause, started, job.time_limit, job.interval),
        until: started,
        rates: Rates::new(devices, started),
        able,
        matches: 0,
        found,
        most: job.count.unwrap_or(u64::MAX),
        sought: job.targets.count(),
        until_found: job.until_found,
        mask: job.mask,
        fault: None,
        save_by: None,
    };
    let shared = Shared::new(job, collector.ledger.map(), devices.list.len());
    let mut first = true;
    let ended = loop {
        if collector.ledger.map().is_complete() {
            break Ok(Ended::Exhausted);
        }
        let round = collector.scanners(&shared, &forms, filter).and_then(|scanners| {
            // What devices need before the first key is, like their self-test, no part of the run.
            if std::mem::take(&mut first) {
                open.clear();
                collector.start();
            }
            collector.round(&shared, scanners)
        });
        // A batch that a failing scanner gave back when the others had ended is taken up by another round.
        match round {
            Ok(None) => {}
            Ok(Some(ended)) => break Ok(ended),
            Err(error) => break Err(error),
        }
    };
    // What was confirmed is kept whatever ended the scan.
    let saved = collector.ledger.save();
    let (ended, matches, all_found) = (ended?, collector.matches, collector.has_all());
    saved?;
    Ok(ScanOutcome {
        ended,
        tried: shared.tried.iter().map(|count| count.load(Ordering::Relaxed)).sum(),
        matches,
        all_found,
        false_hits: shared.false_hits.load(Ordering::Relaxed),
        elapsed: collector.clock.elapsed(collector.until),
    })
}

struct Collector<'c, 's> {
    ledger: &'c mut dyn Ledger,
    devices: &'c Devices,
    sink: &'c mut ScanSink<'s>,
    clock: Clock<'c>,
    /// When the last keys were taken in: giving memory back takes a card a tenth of a second.
    until: Instant,
    rates: Rates<'c>,
    /// Devices that are in use.
    able: Vec<bool>,
    matches: u64,
    /// Addresses that were found, by earlier runs too, and how many there are; none where they are in a database.
    found: HashSet<(AddressKind, Digest)>,
    sought: Option<usize>,
    /// Findings after which it ends, and whether it ends when all are found.
    most: u64,
    until_found: bool,
    mask: Option<&'c Arc<KeyMask>>,
    /// The last fault of a device.
    fault: Option<(String, Fault)>,
    /// When the map is to be written, if it holds anything new.
    save_by: Option<Instant>,
}

impl<'c> Collector<'c, '_> {
    /// The run begins.
    fn start(&mut self) {
        self.until = Instant::now();
        self.clock.restart(self.until);
        self.rates = Rates::new(self.devices, self.until);
    }

    /// Whether every address of a list was found.
    fn has_all(&self) -> bool {
        self.sought.is_some_and(|sought| self.found.len() >= sought)
    }

    /// Whether what was asked for is there.
    fn is_enough(&self) -> bool {
        self.matches >= self.most || (self.until_found && self.has_all())
    }

    /// Scanners of all devices in use, at least one, each with the number of its device.
    fn scanners<'s>(
        &mut self,
        shared: &Shared<'_>,
        forms: &'s [Form],
        filter: &'s ScanFilter,
    ) -> Result<Vec<Numbered<'s>>>
    where
        'c: 's,
    {
        let (mut scanners, mut lost) = (Vec::new(), Vec::new());
        let devices: &'c Devices = self.devices;
        for (at, device) in devices.list.iter().enumerate().filter(|(at, _)| self.able[*at]) {
            for _ in 0..device.scanners() {
                let followed = device.scanner(forms, filter).and_then(|mut scanner| {
                    self.mask.map_or(Ok(()), |mask| scanner.follow(mask))?;
                    Ok(scanner)
                });
                match followed {
                    Ok(scanner) => scanners.push((at, scanner)),
                    Err(fault) => {
                        lost.push(Message::Lost { device: at, fault });
                        break;
                    }
                }
            }
        }
        for message in lost {
            self.take(shared, message)?;
        }
        if scanners.is_empty() {
            return Err(match self.fault.take() {
                Some((device, what)) => Error::DevicesLost { device, what },
                None => Error::NoDevice("none of those selected can scan for these targets".to_owned()),
            });
        }
        Ok(scanners)
    }

    /// Runs scanners until there are no batches left. Returns why the scan ends, if it does.
    fn round(&mut self, shared: &Shared<'_>, scanners: Vec<Numbered<'_>>) -> Result<Option<Ended>> {
        let (sender, receiver) = bounded(2 * scanners.len());
        thread::scope(|scope| {
            for (device, scanner) in scanners {
                let sender = sender.clone();
                let lost = sender.clone();
                spawn(
                    scope,
                    move || shared.work(device, scanner, &sender),
                    |fault| drop(lost.send(Message::Lost { device, fault })),
                );
            }
            drop(sender);
            let ended = self.collect(shared, &receiver);
            shared.stop.store(true, Ordering::Relaxed);
            let drained = match ended {
                // What scanners have covered until they hear of the end is still taken in.
                Ok(_) => receiver.iter().try_for_each(|message| self.take(shared, message)),
                Err(_) => Ok(()),
            };
            drop(receiver);
            let ended = ended?;
            drained?;
            shared.stop.store(ended.is_some(), Ordering::Relaxed);
            Ok(ended)
        })
    }

    fn collect(&mut self, shared: &Shared<'_>, receiver: &Receiver<Message>) -> Result<Option<Ended>> {
        loop {
            let now = Instant::now();
            let wait = match self.clock.tick(now) {
                Tick::Interrupted => return Ok(Some(Ended::Interrupted)),
                Tick::TimeUp => return Ok(Some(Ended::TimeLimit)),
                Tick::Report => {
                    self.progress(shared, self.clock.time(now))?;
                    continue;
                }
                Tick::Wait(time) => time,
            };
            match receiver.recv_timeout(wait) {
                Ok(message) => {
                    self.take(shared, message)?;
                    // Others may have come meanwhile: one writing of the map serves all.
                    receiver.try_iter().try_for_each(|message| self.take(shared, message))?;
                    if self.is_enough() {
                        return Ok(Some(Ended::Count));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Every scanner has ended.
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            if self.save_by.is_some_and(|by| by <= Instant::now()) {
                self.ledger.save()?;
                self.save_by = None;
            }
        }
    }

    fn take(&mut self, shared: &Shared<'_>, message: Message) -> Result<()> {
        match message {
            Message::Done(Done { device, batch, keys, hits, proof, dropped }) => {
                // What a scanner did after a batch that was not right does not count either: it may be one walk.
                let right =
                    if dropped.load(Ordering::Relaxed) { None } else { Some(proof.map_or(Ok(()), |p| p())) };
                if let Some(Ok(())) = right {
                    // What was found is written at once: nobody wants it delivered twice.
                    let wait = if hits.is_empty() { UNSAVED } else { Duration::ZERO };
                    for (survivor, wanted) in hits {
                        wiping_stack(|| self.confirm(device, &survivor, wanted))?;
                    }
                    self.ledger.map_mut().complete(&batch, now());
                    self.until = Instant::now();
                    let by = self.until + wait;
                    self.save_by = Some(self.save_by.map_or(by, |sooner| sooner.min(by)));
                    return Ok(());
                }
                dropped.store(true, Ordering::Relaxed);
                shared.take_back(device, batch, keys);
                match right {
                    Some(Err(fault)) => self.take(shared, Message::Lost { device, fault }),
                    _ => Ok(()),
                }
            }
            Message::Lost { device, fault } => {
                let id = self.devices.list[device].id();
                let first = std::mem::replace(&mut self.able[device], false);
                self.fault = Some((id.clone(), fault.clone()));
                if self.able.iter().any(|able| *able) && first {
                    let text = format!("{id} was dropped: {fault}; the others go on");
                    (self.sink)(Event::Warning(text)).map_err(Error::Sink)?;
                }
                Ok(())
            }
            Message::Broken(error) => Err(error),
        }
    }

    /// Recomputes a key by libsecp256k1 and the reference code, publishes it and notes its address.
    fn confirm(
        &mut self,
        device: usize,
        survivor: &Survivor,
        wanted: Vec<(&'static KeyType, Record)>,
    ) -> Result<()> {
        let id = self.devices.list[device].id();
        let wrong = |what: &str| Error::SelfTest { device: id.clone(), what: what.to_owned() };
        let number = survivor.key.to_be_bytes();
        let key = match self.mask {
            None => Some(number),
            Some(mask) => mask.key_at(U256::from_be_bytes(number)),
        };
        let secret = key.and_then(|key| Secret::from_bytes(&Zeroizing::new(key)));
        let secret = secret.ok_or_else(|| wrong("it found something that is no key"))?;
        if survivor.form.reference(&public_point(&secret.public_key())) != survivor.digest {
            return Err(wrong("a key it found does not have the digest it computed"));
        }
        for (found_as, record) in wanted {
            self.found.insert((record.kind, record.digest));
            let finding = Finding::new(&secret, &survivor.digest, (found_as, record), &id);
            self.matches += 1;
            (self.sink)(Event::Found(vec![finding])).map_err(Error::Sink)?;
            // Delivered, and its batch not yet covered. As it was asked for: an address that is a bare hash is found under others.
            self.ledger.map_mut().note_match(&record.kind.text(&record.digest), now());
        }
        Ok(())
    }

    /// Reports; `now` is the clock's time.
    fn progress(&mut self, shared: &Shared<'_>, now: Instant) -> Result<()> {
        let able = &self.able;
        let devices = self.rates.of(now, |at| shared.tried[at].load(Ordering::Relaxed), |at| able[at]);
        let rate: f64 = devices.iter().map(|(_, rate)| rate).sum();
        let map = self.ledger.map();
        let seconds = map.remaining().as_f64() / rate;
        let progress = ScanProgress {
            tried: shared.tried.iter().map(|count| count.load(Ordering::Relaxed)).sum(),
            rate,
            elapsed: now.saturating_duration_since(self.clock.started()),
            share: map.share(),
            left: (seconds.is_finite() && seconds < 1e18).then(|| Duration::from_secs_f64(seconds)),
            matches: self.matches,
            devices,
        };
        (self.sink)(Event::Progress(&progress)).map_err(Error::Sink)
    }
}
