//! A worker: any number of devices, each with a thread that prepares, asks, works and goes on, until it is stopped.
//!
//! What came of a unit is written to the spool before it is sent, and stays there until the coordinator has said that it is on
//! disk: so a worker that is killed, a server that is restarted or a coordinator that is away cost no finished unit.
//!
//! While a device is at work, heartbeats report it. So a coordinator that has just begun knows it within seconds, and can call it
//! to a job that waits for a device.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::connection::State;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use warpsmith_engine::{
    Covered, Devices, KeyUnit, Outfit, RangeRunner, RangeStart, RangeUnit, SaltUnit, Secret, Unit, UnitRunner,
};

use super::connect::as_worker_watched;
use super::home::Invitation;
use super::text::fetch;
use crate::coordinator::HEARTBEAT_INTERVAL;
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::{Descriptor, Search, Task};
use crate::scan::{MOST_FOUND, ScanTask};
use crate::wire::{Answer, Ask, Lease, MOST_BYTES, Ready, Report, VERSION, Verdict};

/// How long an answer may take before it is asked for again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time without an answer after which a worker says so.
const SILENT: Duration = Duration::from_secs(10);
/// How long a device waits after a lease that it refuses.
const REFUSED: Duration = Duration::from_secs(1);
/// How long a device is measured before its first unit.
const MEASURED: Duration = Duration::from_millis(500);

/// What a worker tells whoever started it.
#[derive(Clone, Debug)]
pub enum Told {
    /// Something to know.
    Note(String),
    /// A unit counts: of this device, with so many candidates, and shares of it.
    Unit {
        /// The device.
        device: String,
        /// Candidates.
        candidates: f64,
        /// Shares.
        shares: usize,
        /// How long it took.
        time: Duration,
    },
}

/// Works until it is stopped, or sent away. `spool` is a folder of its own.
pub fn work(
    invitation: &Invitation,
    devices: &Devices,
    spool: &Path,
    stop: &AtomicBool,
    tell: &(dyn Fn(Told) + Sync),
) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(spool).map_err(Error::io(spool))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Error::Network(format!("no threads: {error}")))?;
    let (report, messages) = tokio::sync::mpsc::unbounded_channel();
    let mut last = String::new();
    let client = loop {
        let report = report.clone();
        let watch = move |text| drop(report.send(text));
        match runtime.block_on(as_worker_watched(invitation, watch)) {
            Ok(client) => break client,
            Err(error) if stop.load(Ordering::Relaxed) => return Err(error),
            Err(error) => {
                let text = format!("{error}; trying again");
                if text != last {
                    tell(Told::Note(text.clone()));
                    last = text;
                }
                pause(stop, Duration::from_secs(2));
            }
        }
    };
    let spool = spool.to_owned();
    let silence = Mutex::default();
    let worker = Worker { client, runtime, id: invitation.id, spool, stop, tell, silence };
    let devices: Vec<Devices> = devices.each().collect();
    let slots: Vec<Slot> = devices.iter().map(|_| Slot::default()).collect();
    let is_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (worker, slots, is_ended) = (&worker, &slots, &is_ended);
        scope.spawn(move || worker.watch(slots, messages, is_ended));
        worker.send_spooled();
        let threads: Vec<_> = devices
            .iter()
            .zip(slots)
            .zip(0..)
            .map(|((device, slot), number)| scope.spawn(move || worker.device(device, slot, number)))
            .collect();
        let mut ended = Ok(());
        for thread in threads {
            let one = thread
                .join()
                .unwrap_or_else(|_| Err(Error::Network("a device's thread panicked".to_owned())));
            ended = ended.and(one);
        }
        worker.send_spooled();
        is_ended.store(true, Ordering::Relaxed);
        ended
    })
}

/// Waits, but not when stopped.
fn pause(stop: &AtomicBool, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20).min(time));
    }
}

struct Worker<'w> {
    client: Client,
    runtime: Runtime,
    id: u32,
    spool: PathBuf,
    stop: &'w AtomicBool,
    tell: &'w (dyn Fn(Told) + Sync),
    silence: Mutex<Silence>,
}

/// A coordinator that does not answer.
#[derive(Default)]
struct Silence {
    /// When the first request stayed without an answer; none since the last answer.
    since: Option<Instant>,
    is_reported: bool,
}

/// A device as its heartbeats report it.
#[derive(Default)]
struct Slot {
    /// Ends the unit under way.
    halt: AtomicBool,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    /// The heartbeat to send; none while it is not at work.
    heartbeat: Option<Ask>,
    /// The job it was called to.
    called: Option<JobId>,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins work: from here on heartbeats are sent.
    fn begin(&self, ask: &Ask) {
        let heartbeat = Some(Ask { busy: true, ..ask.clone() });
        *self.state() = SlotState { heartbeat, called: None };
        self.halt.store(false, Ordering::Relaxed);
    }

    /// Ends work. Returns the job that it was called to meanwhile.
    fn end(&self) -> Option<JobId> {
        std::mem::take(&mut *self.state()).called
    }

    /// Halts the work that this heartbeat was of, for another job or to be told why it is refused.
    fn halt(&self, heartbeat: &Ask, called: Option<JobId>) {
        let mut state = self.state();
        if state.heartbeat.as_ref() == Some(heartbeat) {
            state.called = called;
            self.halt.store(true, Ordering::Relaxed);
        }
    }
}

/// A device that is ready for one job.
struct Prepared<'p> {
    runner: Runner<'p>,
    ready: Ready,
}

/// What a device does units by.
enum Runner<'p> {
    Search(Box<UnitRunner<'p>>),
    Scan(RangeRunner<'p>, &'p ScanTask),
}

impl Runner<'_> {
    fn id(&self) -> String {
        match self {
            Runner::Search(runner) => runner.id(),
            Runner::Scan(runner, _) => runner.id(),
        }
    }

    /// Returns why this device cannot do a lease, if it cannot.
    fn refusal(&self, lease: &Lease) -> Option<String> {
        let no_unit = || "it is no unit of this job".to_owned();
        match self {
            Runner::Search(runner) => match lease.work.unit() {
                Some(unit) => runner.refusal(&unit),
                None => Some(no_unit()),
            },
            Runner::Scan(_, task) => lease.work.range().zip(task.wanted(&lease.work)).is_none().then(no_unit),
        }
    }

    /// Does what a lease says; none if it was stopped, or is no unit of this job.
    fn run(&mut self, lease: &Lease, stop: &AtomicBool) -> Result<Option<Covered>> {
        let tried = AtomicU64::new(0);
        match self {
            Runner::Search(runner) => match lease.work.unit() {
                Some(unit) => Ok(runner.run(&unit, lease.bits, lease.beat, stop, &tried)?),
                None => Ok(None),
            },
            Runner::Scan(runner, task) => match lease.work.range().zip(task.wanted(&lease.work)) {
                Some((unit, wanted)) => {
                    let spots = runner.run(&unit, &wanted, stop, &tried)?;
                    Ok(spots.map(|mut matches| {
                        matches.truncate(MOST_FOUND);
                        Covered { shares: Vec::new(), matches }
                    }))
                }
                None => Ok(None),
            },
        }
    }
}

impl Worker<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn note(&self, text: String) {
        (self.tell)(Told::Note(text));
    }

    /// Asks the coordinator; none if it does not answer.
    fn request<T: serde::de::DeserializeOwned>(&self, subject: &str, payload: Vec<u8>) -> Option<T> {
        let answer = self.runtime.block_on(self.ask_once(subject, payload));
        self.note_silence(answer.is_some(), || {
            "no coordinator answers: `warpsmith fleet submit` starts one; asking on".to_owned()
        });
        answer
    }

    /// Reports once that answers fail to come, while the connection itself is there.
    fn note_silence(&self, is_answered: bool, text: impl FnOnce() -> String) {
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let is_connected = self.client.connection_state() == State::Connected;
        if is_answered || !is_connected {
            *silence = Silence::default();
        } else if silence.since.get_or_insert_with(Instant::now).elapsed() >= SILENT && !silence.is_reported {
            silence.is_reported = true;
            self.note(text());
        }
    }

    async fn ask_once<T: serde::de::DeserializeOwned>(&self, subject: &str, payload: Vec<u8>) -> Option<T> {
        let subject = format!("{subject}.{}", self.id);
        let asked = tokio::time::timeout(PATIENCE, self.client.request(subject, payload.into())).await;
        serde_json::from_slice(&asked.ok()?.ok()?.payload).ok()
    }

    /// Sends heartbeats and reports the connection's messages, until the devices have ended. Halts all units when the worker is
    /// stopped.
    fn watch(&self, slots: &[Slot], mut messages: UnboundedReceiver<String>, is_ended: &AtomicBool) {
        let ended = async {
            while !is_ended.load(Ordering::Relaxed) {
                if self.is_stopped() {
                    slots.iter().for_each(|slot| slot.halt.store(true, Ordering::Relaxed));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reports = async {
            while let Some(text) = messages.recv().await {
                self.note(text);
            }
        };
        self.runtime.block_on(async {
            tokio::select! {
                () = ended => {}
                () = async { tokio::join!(reports, self.heartbeats(slots)).0 } => {}
            }
        });
    }

    async fn heartbeats(&self, slots: &[Slot]) {
        let mut interval = HEARTBEAT_INTERVAL;
        loop {
            tokio::time::sleep(interval).await;
            for slot in slots {
                let Some(heartbeat) = slot.state().heartbeat.clone() else { continue };
                let payload = serde_json::to_vec(&heartbeat).expect("plain values");
                match self.ask_once("req.get", payload).await {
                    Some(Answer::Prepare { job }) => slot.halt(&heartbeat, Some(job)),
                    Some(Answer::Refused { .. }) => slot.halt(&heartbeat, None),
                    Some(Answer::Wait { ms }) => {
                        interval = Duration::from_millis(ms.min(60_000)).max(HEARTBEAT_INTERVAL);
                    }
                    Some(Answer::Lease(_)) | None => {}
                }
            }
        }
    }

    /// One device, from job to job.
    fn device(&self, device: &Devices, slot: &Slot, number: u16) -> Result<()> {
        let name = device.describe().first().map(|(id, _)| id.clone()).unwrap_or_default();
        let mut ask = Ask {
            version: VERSION,
            slot: number,
            device: name.clone(),
            ready: None,
            unable: Vec::new(),
            holding: Vec::new(),
            busy: false,
        };
        let mut next = None;
        while !self.is_stopped() {
            let job = match next.take() {
                Some(job) => job,
                None => match self.ask(&ask)? {
                    Some(Answer::Prepare { job }) => job,
                    _ => continue,
                },
            };
            let task = match self.task(job) {
                Ok(Some(task)) => task,
                Ok(None) => continue,
                // Of a later version, for one: others may have work.
                Err(error) => {
                    self.note(format!("{name} cannot do job {}: {error}", job.short()));
                    ask.unable.push(job);
                    continue;
                }
            };
            slot.begin(&ask);
            let prepared = prepare(job, &task, device, self.stop);
            slot.end();
            match prepared {
                Ok(prepared) => {
                    self.note(format!(
                        "{name}: job {}, {:.3e} candidates a second",
                        job.short(),
                        prepared.ready.rate
                    ));
                    next = self.units(prepared, slot, &mut ask)?;
                }
                Err(_) if self.is_stopped() => break,
                Err(error) => {
                    self.note(format!("{name} cannot do job {}: {error}", job.short()));
                    ask.unable.push(job);
                }
            }
            (ask.ready, ask.holding) = (None, Vec::new());
        }
        Ok(())
    }

    /// Asks for work, with patience: none where the coordinator has nothing, or does not answer.
    fn ask(&self, ask: &Ask) -> Result<Option<Answer>> {
        match self.request("req.get", serde_json::to_vec(ask).expect("plain values")) {
            Some(Answer::Refused { why }) => {
                Err(Error::Network(format!("the fleet refuses this worker: {why}")))
            }
            Some(Answer::Wait { ms }) => {
                pause(self.stop, Duration::from_millis(ms.min(60_000)));
                Ok(None)
            }
            None => {
                // A coordinator that is away is not asked by all at once when it comes back.
                let mut lot = [0; 1];
                warpsmith_entropy::fill(&mut lot)?;
                pause(self.stop, Duration::from_millis(500 + 4 * u64::from(lot[0])));
                Ok(None)
            }
            answer => Ok(answer),
        }
    }

    /// The job of that name, if it can be had by now. SEC: the text is taken only if its hash is the name.
    fn task(&self, job: JobId) -> Result<Option<Task>> {
        let asked = async { tokio::time::timeout(PATIENCE, fetch(&self.client, self.id, job)).await };
        let text = self.runtime.block_on(asked);
        match text {
            Ok(Ok(Some(text))) => Ok(Some(Descriptor::read(&text, &job)?.open()?)),
            _ => {
                self.note_silence(false, || {
                    format!("the text of job {} cannot be had; asking on", job.short())
                });
                pause(self.stop, Duration::from_millis(500));
                Ok(None)
            }
        }
    }

    /// Unit after unit of one job, until another is to be prepared.
    fn units(&self, mut prepared: Prepared<'_>, slot: &Slot, ask: &mut Ask) -> Result<Option<JobId>> {
        let mut waiting: Option<Lease> = None;
        while !self.is_stopped() {
            ask.ready = Some(prepared.ready);
            ask.holding = waiting.iter().map(|lease| lease.unit).collect();
            let lease = match waiting.take() {
                Some(lease) => lease,
                None => match self.ask(ask)? {
                    Some(Answer::Lease(lease)) => *lease,
                    Some(Answer::Prepare { job }) => return Ok(Some(job)),
                    _ => continue,
                },
            };
            // The next one is here before this one is done.
            ask.holding = vec![lease.unit];
            if let Some(Answer::Lease(next)) =
                self.request("req.get", serde_json::to_vec(&ask).expect("plain values"))
            {
                ask.holding.push(next.unit);
                waiting = Some(*next);
            }
            // SEC: whoever runs the server can make leases up: one that no coordinator gives is not done, and ends nothing.
            let why =
                lease.refusal(self.id, ask.slot, &prepared.ready).or_else(|| prepared.runner.refusal(&lease));
            if let Some(why) = why {
                self.note(format!("unit {} is not done: {why}", lease.unit));
                waiting = None;
                pause(self.stop, REFUSED);
                continue;
            }
            slot.begin(ask);
            let is_done = self.unit(&mut prepared, lease, &slot.halt)?;
            if let Some(job) = slot.end() {
                return Ok(Some(job));
            }
            // One that is refused is told so when it asks.
            waiting = waiting.filter(|_| is_done);
        }
        Ok(None)
    }

    /// Does a unit and sends what came of it. Returns whether it was done, not halted.
    fn unit(&self, prepared: &mut Prepared<'_>, lease: Lease, halt: &AtomicBool) -> Result<bool> {
        let started = Instant::now();
        let Some(covered) = prepared.runner.run(&lease, halt)? else { return Ok(false) };
        let time = started.elapsed();
        let candidates = lease.work.candidates().unwrap_or(0) as f64;
        prepared.ready.rate = candidates / time.as_secs_f64().max(1e-6);
        let shares = covered.shares.len();
        let (shares_told, matches, ms) = (covered.shares, covered.matches, time.as_millis() as u64);
        let report = Report { lease, shares: shares_told, matches, ms };
        let path = self.keep(&report)?;
        if let Some(Verdict::Counted) = self.send(&path, &report) {
            let device = prepared.runner.id();
            (self.tell)(Told::Unit { device, candidates, shares, time });
        }
        Ok(true)
    }

    /// Writes a report to the spool.
    fn keep(&self, report: &Report) -> Result<PathBuf> {
        let Lease { job, unit, slot, .. } = &report.lease;
        let path = self.spool.join(format!("{}-{unit}-{slot}.json", job.short()));
        let bytes = serde_json::to_vec(report).expect("plain values");
        warpsmith_files::replace(&path, 0o600, |file| file.write_all(&bytes))?;
        Ok(path)
    }

    /// Sends a report until it is answered, and takes it from the spool then.
    fn send(&self, path: &Path, report: &Report) -> Option<Verdict> {
        let payload = serde_json::to_vec(report).expect("plain values");
        if payload.len() > MOST_BYTES {
            let _ = std::fs::remove_file(path);
            return None;
        }
        for attempt in 0u64.. {
            if let Some(verdict) = self.request("req.put", payload.clone()) {
                if let Verdict::Refused { why } = &verdict {
                    self.note(format!("unit {} was refused: {why}", report.lease.unit));
                }
                let _ = std::fs::remove_file(path);
                return Some(verdict);
            }
            if self.is_stopped() {
                break;
            }
            pause(self.stop, Duration::from_millis((250 << attempt.min(6)).min(10_000)));
        }
        None
    }

    /// Sends what a run before this one could not.
    fn send_spooled(&self) {
        let Ok(entries) = std::fs::read_dir(&self.spool) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let report =
                std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Report>(&bytes).ok());
            if let Some(report) = report {
                self.send(&path, &report);
            }
        }
    }
}

/// Makes a device ready for a job: it proves itself, and is measured.
fn prepare<'p>(job: JobId, task: &'p Task, device: &'p Devices, stop: &AtomicBool) -> Result<Prepared<'p>> {
    match task {
        Task::Search(search) => prepare_search(job, search, device, stop),
        Task::Scan(scan) => prepare_scan(job, scan, device, stop),
    }
}

fn prepare_scan<'p>(
    job: JobId,
    task: &'p ScanTask,
    device: &'p Devices,
    stop: &AtomicBool,
) -> Result<Prepared<'p>> {
    let mut runner = RangeRunner::new(device, task.forms())?;
    let start = RangeStart::Point(Secret::random()?.public_key());
    let rate = measure(1 << 14, |keys| {
        let (unit, tried) = (RangeUnit { start, count: keys }, AtomicU64::new(0));
        // Nothing is looked for: only the speed counts.
        let done = runner.run(&unit, &Default::default(), stop, &tried)?;
        Ok(done.map(|_| keys as f64))
    })?;
    let outfit = Outfit { half: 0, orbits: 0, signs: false, grain: 1 };
    Ok(Prepared { runner: Runner::Scan(runner, task), ready: Ready::new(job, outfit, rate) })
}

/// Candidates a second: of more and more until it takes long enough. `run` does so many and says how many candidates those are; none
/// if it was stopped.
fn measure(mut size: u64, mut run: impl FnMut(u64) -> Result<Option<f64>>) -> Result<f64> {
    let mut rate = 1.0;
    loop {
        let started = Instant::now();
        let Some(candidates) = run(size)? else { return Err(Error::Network("stopped".to_owned())) };
        let time = started.elapsed();
        rate = f64::max(rate, candidates / time.as_secs_f64().max(1e-6));
        if time >= MEASURED || size > 1 << 40 {
            return Ok(rate);
        }
        size *= 4;
    }
}

fn prepare_search<'p>(
    job: JobId,
    task: &'p Search,
    device: &'p Devices,
    stop: &AtomicBool,
) -> Result<Prepared<'p>> {
    let mut runner = UnitRunner::new(device, task.subject(), task.wanted())?;
    let outfit = runner.outfit();
    let point = Secret::random()?.public_key();
    let sample = |size: u64| match outfit {
        Outfit { half: 0, grain, .. } => {
            Unit::Salts(SaltUnit { base: [0; 32], first: 0, last: (grain * size).min(1 << 40) - 1 })
        }
        Outfit { half, orbits, signs, grain } => {
            Unit::Keys(KeyUnit { point, half, orbits, signs, steps: grain * size })
        }
    };
    let rate = measure(1, |size| {
        let (unit, tried) = (sample(size.min(1 << 30)), AtomicU64::new(0));
        // A score nobody reaches: only the speed counts.
        let done = runner.run(&unit, 40, 30, stop, &tried)?;
        Ok(done.map(|_| unit.candidates() as f64))
    })?;
    Ok(Prepared { runner: Runner::Search(Box::new(runner)), ready: Ready::new(job, outfit, rate) })
}
