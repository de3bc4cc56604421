//! A run as its collector sees it: its clock, the workers that have joined, how fast their devices go, who is left, and when the
//! processor steps aside for cards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::clock::{Clock, Tick};
use super::pause::NAP;
use super::rates::Meter;
use super::report::Progress;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::worker::{Backend, Fault};

/// The share of the whole below which the processor steps aside, and how long cards and processor are looked at first.
const WORTHWHILE: f64 = 0.02;
const SEEN: Duration = Duration::from_secs(3);

/// A worker that joins.
pub(crate) struct Member {
    pub device: String,
    is_card: bool,
    /// One line about the device.
    about: String,
    joined: Instant,
    /// Candidates it has tested.
    pub counter: Arc<AtomicU64>,
    /// Whether it is to end: it was lost, or stepped aside.
    pub dismissed: Arc<AtomicBool>,
    lost: bool,
}

impl Member {
    /// A worker of this device that begins now.
    pub fn new(device: &dyn Backend) -> Member {
        Member {
            device: device.id(),
            is_card: device.is_card(),
            about: device.describe(),
            joined: Instant::now(),
            counter: Arc::default(),
            dismissed: Arc::default(),
            lost: false,
        }
    }

    /// When it began.
    pub fn joined(&self) -> Instant {
        self.joined
    }

    fn tried(&self) -> u64 {
        self.counter.load(Ordering::Relaxed)
    }

    fn is_gone(&self) -> bool {
        self.dismissed.load(Ordering::Relaxed)
    }
}

/// A device with workers here.
struct Device {
    id: String,
    is_card: bool,
    joined: Instant,
    meter: Meter,
}

/// See the module's documentation.
pub(crate) struct Session<'c> {
    pub clock: Clock<'c>,
    /// Whether cards may join that nobody asked for.
    joinable: bool,
    /// Whether all have joined that will.
    settled: bool,
    members: Vec<Member>,
    devices: Vec<Device>,
    /// The last worker lost, and why.
    loss: Option<(String, Fault)>,
}

impl<'c> Session<'c> {
    /// A run of these devices, none of which has joined.
    pub fn new(devices: &Devices, clock: Clock<'c>) -> Self {
        let joinable = devices.later().is_some();
        Session { clock, joinable, settled: false, members: Vec::new(), devices: Vec::new(), loss: None }
    }

    /// Whether a worker has joined, which starts the clock.
    pub fn has_begun(&self) -> bool {
        !self.members.is_empty()
    }

    /// What it is time for. Before the first worker only an interrupt ends the run.
    pub fn tick(&mut self, now: Instant) -> Tick {
        match self.has_begun() || self.clock.is_interrupted() {
            true => self.clock.tick(now),
            false => Tick::Wait(NAP),
        }
    }

    /// Takes a worker in, and returns a note if a card joins that nobody asked for.
    pub fn join(&mut self, member: Member) -> Option<String> {
        if self.members.is_empty() {
            self.clock.restart(member.joined);
        }
        let mut note = None;
        if !self.devices.iter().any(|device| device.id == member.device) {
            if self.joinable && member.is_card {
                let after = member.joined.duration_since(self.clock.started()).as_secs_f64();
                note = Some(format!("{} joins after {after:.1} s: {}", member.device, member.about));
            }
            let joined = self.clock.time(member.joined);
            let (id, is_card, meter) = (member.device.clone(), member.is_card, Meter::new(joined));
            self.devices.push(Device { id, is_card, joined, meter });
        }
        self.members.push(member);
        note
    }

    /// Every device has joined or was refused. An error if nobody is left.
    pub fn settle(&mut self) -> Result<()> {
        self.settled = true;
        self.check_left()
    }

    /// The device of a worker.
    pub fn device(&self, worker: usize) -> &str {
        &self.members[worker].device
    }

    /// What a worker has tested.
    pub fn counter(&self, worker: usize) -> &AtomicU64 {
        &self.members[worker].counter
    }

    /// Whether a worker failed: nothing that comes from it counts.
    pub fn is_lost(&self, worker: usize) -> bool {
        self.members[worker].lost
    }

    /// Whether a worker failed or stepped aside.
    pub fn is_gone(&self, worker: usize) -> bool {
        self.members[worker].is_gone()
    }

    /// Candidates tested by all workers.
    pub fn tried(&self) -> u64 {
        self.members.iter().map(Member::tried).sum()
    }

    /// Goes on without a worker that failed, and returns the warning; an error if it was the last and nobody is to come.
    pub fn lose(&mut self, worker: usize, what: Fault) -> Result<String> {
        let member = &mut self.members[worker];
        member.lost = true;
        member.dismissed.store(true, Ordering::Relaxed);
        let device = member.device.clone();
        self.loss = Some((device.clone(), what.clone()));
        self.check_left()?;
        let is_left = |member: &Member| !member.is_gone() && member.device == device;
        let who = match self.members.iter().any(is_left) {
            true => format!("a thread of {device}"),
            false => device,
        };
        Ok(format!("{who} was dropped: {what}; the others go on"))
    }

    /// An error if nobody is left, and nobody to come.
    fn check_left(&mut self) -> Result<()> {
        let gone = self.members.iter().all(Member::is_gone);
        match self.loss.take_if(|_| gone && self.settled) {
            Some((device, what)) => Err(Error::DevicesLost { device, what }),
            None => Ok(()),
        }
    }

    /// The rate of each device that still works. This and what follows have their time from the clock.
    fn rates(&mut self, now: Instant) -> Vec<(String, f64)> {
        let members = &self.members;
        let of = |device: &mut Device| {
            let own = || members.iter().filter(|member| member.device == device.id);
            let rate = device.meter.rate(now, own().map(Member::tried).sum());
            own().any(|member| !member.is_gone()).then(|| (device.id.clone(), rate))
        };
        self.devices.iter_mut().filter_map(of).collect()
    }

    /// Has the processor step aside where cards that joined it leave it next to nothing to add. Returns the workers that end, whose
    /// results count, and a note.
    pub fn step_aside(&mut self, now: Instant) -> Option<(Vec<usize>, String)> {
        let seen = |device: &Device| device.is_card && now.duration_since(device.joined) > SEEN;
        if !self.joinable || !self.devices.iter().any(seen) {
            return None;
        }
        let rates = self.rates(now);
        let whole: f64 = rates.iter().map(|(_, rate)| rate).sum();
        let of_cards: f64 = rates.iter().filter(|(id, _)| self.is_card(id)).map(|(_, rate)| rate).sum();
        // Of the rest there is one, the processor.
        let (cpu, rate) = rates.into_iter().find(|(id, _)| !self.is_card(id))?;
        if of_cards == 0.0 || rate >= WORTHWHILE * whole {
            return None;
        }
        let own = |(_, member): &(usize, &Member)| member.device == cpu && !member.is_gone();
        let workers: Vec<usize> = self.members.iter().enumerate().filter(own).map(|(at, _)| at).collect();
        for worker in &workers {
            self.members[*worker].dismissed.store(true, Ordering::Relaxed);
        }
        Some((workers, format!("{cpu} steps aside: it adds less than 2 % to the cards")))
    }

    fn is_card(&self, id: &str) -> bool {
        self.devices.iter().any(|device| device.id == id && device.is_card)
    }

    /// The progress of all devices, without what is known of searches or scans alone.
    pub fn progress(&mut self, now: Instant, matches: u64, wanted: Option<u64>) -> Progress {
        let devices = self.rates(now);
        Progress {
            tried: self.tried(),
            rate: devices.iter().map(|(_, rate)| rate).sum(),
            elapsed: now.saturating_duration_since(self.clock.started()),
            matches,
            wanted,
            eta: None,
            probability: None,
            best: None,
            coverage: None,
            devices,
        }
    }

    /// How long the run took up to `until`, pauses left out; nothing where nobody joined.
    pub fn elapsed(&self, until: Instant) -> Duration {
        if self.has_begun() { self.clock.elapsed(until) } else { Duration::ZERO }
    }
}
