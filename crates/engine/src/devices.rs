//! Which devices there are, and which of them a person asked for.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use warpsmith_device::{Busy, CardOptions, Device, Inline, Preparing, Refusal, Selector, choose, defaults};

use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, carries_ptx};
use crate::later::Later;
use crate::simd::{self, Simd};
use crate::worker::{Backend, Runner};

/// One device of this machine.
///
/// See [`survey`].
#[derive(Clone, Debug)]
pub struct Found {
    /// What a person calls it.
    pub id: String,
    /// One line about it.
    pub description: String,
    /// Whether a search without `--device` uses it.
    pub default: bool,
    /// Where a card is, `pci:0000:65:00.0`; none of processors, and where the driver does not tell.
    pub identity: Option<String>,
}

/// What this machine has, and why it lacks the rest.
///
/// See [`survey`].
#[derive(Clone, Debug)]
pub struct Survey {
    /// Usable devices.
    pub found: Vec<Found>,
    /// Interfaces without a usable device, with the reason.
    pub missing: Vec<(String, String)>,
}

/// Looks around.
///
/// ```
/// use warpsmith_engine::survey;
///
/// let survey = survey();
/// assert!(survey.found.iter().any(|found| found.id == "cpu"));
/// for (interface, reason) in survey.missing {
///     println!("{interface}: {reason}");
/// }
/// ```
pub fn survey() -> Survey {
    let gpus = warpsmith_device::survey();
    let mut missing = gpus.missing;
    let mut found = Vec::new();
    let by_default = defaults(&gpus.devices, &usable);
    for (device, &default) in gpus.devices.iter().zip(&by_default) {
        let info = device.info();
        let mut description = Gpu::new(Arc::clone(device), Inline::Auto).describe();
        if let Some(twin) = &info.same_as {
            description += &format!("; the same card as {twin}");
        }
        match usable(device.as_ref()) {
            Ok(()) => found.push(Found {
                id: info.id.clone(),
                description,
                default,
                identity: info.identity.clone(),
            }),
            Err(why) => missing.push((info.id.clone(), format!("{description}: {why}"))),
        }
    }
    let any = by_default.contains(&true);
    for simd in simd::available() {
        let cpu = Cpu::new(simd, threads(None));
        let default = simd == simd::detect() && !any;
        found.push(Found { id: cpu.id(), description: cpu.describe(), default, identity: None });
    }
    if !Simd::Avx512Ifma.is_available() {
        let why = format!("this processor lacks AVX-512 IFMA; {} is used", simd::detect());
        missing.push(("cpu:avx512ifma".to_owned(), why));
    }
    Survey { found, missing }
}

/// Whether a device can run a search: it can compile, or this build carries PTX that stands in for a compiler.
fn usable(device: &dyn Device) -> std::result::Result<(), Refusal> {
    let Err(why) = device.can_build() else { return Ok(()) };
    if carries_ptx(device) {
        return Ok(());
    }
    let ptx = if device.takes_ptx() { "; this build carries no PTX that could stand in for it" } else { "" };
    Err(Refusal(format!("{why}{ptx}")))
}

fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| available_parallelism().map_or(1, |n| n.get()))
}

/// As many cards as a machine may have.
const SOME_CARDS: usize = 16;

/// What the choice of a scan's filter depends on.
///
/// See [`Devices::filter_room`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterRoom {
    /// Bytes that a filter may take on every device.
    pub memory: u64,
    /// Digests that all devices together test in a second, roughly.
    pub tests_per_second: f64,
    /// Bytes that a filter may take in the machine's own memory: half of what is free.
    pub host: u64,
}

/// Bytes of memory that programs can have, as the system says; a usual amount where it does not.
fn free_memory() -> u64 {
    let about = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = about.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kib| kib.trim().parse().ok());
    kib.map_or(8 << 30, |kib: u64| kib << 10)
}

/// The devices of a search.
///
/// ```
/// use warpsmith_engine::Devices;
///
/// // Every GPU, or else the processor; the processor alone; what a person named.
/// let auto = Devices::auto()?;
/// let cpu = Devices::cpu()?;
/// let named = Devices::open(&["cpu".parse().unwrap()], Some(2))?;
/// assert_eq!(cpu.describe().len(), named.describe().len());
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub struct Devices {
    pub(crate) list: Vec<Arc<dyn Backend>>,
    /// The number of threads asked for, should the processor have to step in.
    pub(crate) threads: Option<usize>,
    /// How cards are used.
    pub(crate) cards: CardOptions,
    /// Cards that are being looked for, where the processor begins without them.
    later: Option<Later>,
}

impl Devices {
    pub(crate) fn of(list: Vec<Arc<dyn Backend>>) -> Devices {
        Devices { list, threads: None, cards: CardOptions::default(), later: None }
    }

    #[cfg(test)]
    pub(crate) fn with_later(
        list: Vec<Arc<dyn Backend>>,
        cards: impl FnOnce() -> Vec<Arc<dyn Backend>> + Send + 'static,
    ) -> Devices {
        Devices { later: Some(Later::look(cards)), ..Devices::of(list) }
    }
}

impl Devices {
    /// Every GPU of this machine; without one, its processor.
    pub fn auto() -> Result<Devices> {
        Devices::open(&[], None)
    }

    /// The processor, with a thread for each of its cores.
    pub fn cpu() -> Result<Devices> {
        Devices::open(&[Selector::Cpu(None)], None)
    }

    /// Opens what was asked for; without a wish every GPU found, else the processor. A device that was named
    /// and is not there is an error, not a silent change of plan.
    pub fn open(selectors: &[Selector], thread_count: Option<usize>) -> Result<Devices> {
        Devices::open_with(selectors, thread_count, CardOptions::default())
    }

    /// The same, with a say in how cards are used.
    pub fn open_with(
        selectors: &[Selector],
        thread_count: Option<usize>,
        cards: impl Into<CardOptions>,
    ) -> Result<Devices> {
        let cards = cards.into();
        let chosen = choose(selectors, &usable).map_err(|error| match error {
            warpsmith_device::Error::NoDevice(why) => Error::NoDevice(why),
            other => Error::NoDevice(other.to_string()),
        })?;
        let gpus = chosen.cards.into_iter();
        let mut list: Vec<_> = gpus.map(|gpu| Arc::new(Gpu::new(gpu, cards)) as Arc<dyn Backend>).collect();
        if let Some(simd) = chosen.processor {
            list.push(Arc::new(Cpu::new(simd, threads(thread_count).max(1))));
        }
        Ok(Devices { list, threads: thread_count, cards, later: None })
    }

    /// The processor at once, and every GPU as soon as it has been found, has compiled and has proved itself: for searches, which
    /// others can join. The processor steps back where it adds next to nothing.
    pub fn at_once(thread_count: Option<usize>, cards: impl Into<CardOptions>) -> Devices {
        let cards = cards.into();
        let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(simd::detect(), threads(thread_count).max(1)));
        let look = move || {
            let _busy = Busy::with(Preparing::Finding, None);
            let found = warpsmith_device::survey().devices;
            let chosen = defaults(&found, &usable);
            let chosen = found.into_iter().zip(chosen).filter(|(_, chosen)| *chosen);
            chosen.map(|(device, _)| Arc::new(Gpu::new(device, cards)) as Arc<dyn Backend>).collect()
        };
        Devices { list: vec![cpu], threads: thread_count, cards, later: Some(Later::look(look)) }
    }

    /// Cards that are being looked for.
    pub(crate) fn later(&self) -> Option<&Later> {
        self.later.as_ref()
    }

    /// Each device alone.
    pub fn each(&self) -> impl Iterator<Item = Devices> {
        let alone = |device| Devices { list: vec![Arc::clone(device)], later: None, ..*self };
        self.list.iter().map(alone)
    }

    /// Threads of the processor that a run may use: as many as were asked for, or one for each core.
    pub(crate) fn thread_count(&self) -> usize {
        threads(self.threads).max(1)
    }

    /// The most workers of all devices, roughly where cards may be found yet.
    pub(crate) fn most_workers(&self) -> usize {
        let later = if self.later.is_some() { SOME_CARDS } else { 0 };
        self.list.iter().map(|device| device.workers()).sum::<usize>() + later
    }

    /// Whether there is nothing but cards.
    pub(crate) fn are_cards(&self) -> bool {
        self.list.iter().all(|device| device.is_card())
    }

    /// Whether there is a card among them.
    pub fn has_cards(&self) -> bool {
        self.list.iter().any(|device| device.is_card())
    }

    /// The processor, for what no card can do (better slow than not at all), and the words that tell a person.
    pub(crate) fn processor_instead(&self) -> Result<(Devices, String)> {
        let cpu = Devices::open(&[Selector::Cpu(None)], self.threads)?;
        let says = cpu.describe().into_iter().map(|(id, line)| format!("{id}: {line}"));
        let says = says.collect::<Vec<_>>().join(", ");
        Ok((cpu, format!("the processor searches instead ({says})")))
    }

    /// What the devices leave a scan's filter, and how many digests they may test in a second, roughly.
    pub fn filter_room(&self) -> FilterRoom {
        let host = free_memory() / 2;
        let memory = |device: &Arc<dyn Backend>| match device.runner() {
            Runner::Card(card) => card.info().largest_buffer.min(card.info().memory / 2),
            Runner::Processor { .. } => host,
        };
        FilterRoom {
            memory: self.list.iter().map(memory).min().unwrap_or(0),
            tests_per_second: self.tests_per_second(),
            host,
        }
    }

    /// Digests that all devices together test in a second, roughly.
    pub(crate) fn tests_per_second(&self) -> f64 {
        let of_device = |device: &Arc<dyn Backend>| match device.runner() {
            // H200, 132 units: 5.5 to 6.5 G digests a second.
            Runner::Card(card) => f64::from(card.info().units) * 45e6,
            Runner::Processor { .. } => device.scanners() as f64 * 2e7,
        };
        self.list.iter().map(of_device).sum()
    }

    /// What each device is called, with a line about it.
    pub fn describe(&self) -> Vec<(String, String)> {
        self.list.iter().map(|d| (d.id(), d.describe())).collect()
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().map(|device| device.id())).finish()
    }
}

impl Devices {
    /// What each device is called, a line about it, and what it runs work on.
    pub fn runners(&self) -> Vec<(String, String, Runner)> {
        self.list.iter().map(|device| (device.id(), device.describe(), device.runner())).collect()
    }
}
