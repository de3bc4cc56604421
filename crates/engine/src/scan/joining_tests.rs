//! Scans that begin on the processor while a card is still being prepared: every planted key comes back once, whoever covers it.

use std::collections::BTreeSet;
use std::result::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use warpsmith_chain::{Form, Recipe};
use warpsmith_curve::Scalar;
use warpsmith_store::{Interval, Job, Map, Order, U256};

use super::tests::{list, number};
use super::*;
use crate::cpu::Cpu;
use crate::prefilter::ScanFilter;
use crate::run::report::{Ended, Event};
use crate::simd;
use crate::worker::scanner::{Proof, Scanner, Survivor, small};
use crate::worker::{Backend, Fault, Program, Runner, Search, Worker};
use warpsmith_device::drivers_are_busy;

/// Keys of a batch of the processor, and of the card.
const OF_CPU: u64 = 500;
const OF_CARD: u64 = 1300;

/// The processor as itself or as a card, with batches that are known.
struct Fake {
    card: bool,
    inner: Cpu,
    most: u64,
    /// How often a survivor is told.
    copies: usize,
    /// What its scanners wait for.
    gate: Option<Receiver<()>>,
    /// Called with the number of each batch of the scan, which fails if it says so.
    on_batch: Box<dyn Fn(u32) -> Result<(), Fault> + Send + Sync>,
    begun: AtomicU32,
}

impl Fake {
    fn cpu(on_batch: impl Fn(u32) -> Result<(), Fault> + Send + Sync + 'static) -> Fake {
        let (inner, begun) = (Cpu::new(simd::detect(), 2), AtomicU32::new(0));
        Fake { card: false, inner, most: OF_CPU, copies: 1, gate: None, on_batch: Box::new(on_batch), begun }
    }

    fn card(
        gate: Option<Receiver<()>>,
        on_batch: impl Fn(u32) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Fake {
        Fake { card: true, inner: Cpu::new(simd::detect(), 1), most: OF_CARD, gate, ..Fake::cpu(on_batch) }
    }
}

struct FakeScanner<'a> {
    inner: Box<dyn Scanner + 'a>,
    fake: &'a Fake,
    fault: Option<Fault>,
}

impl Scanner for FakeScanner<'_> {
    fn most(&self) -> u64 {
        self.fake.most
    }
    fn seams(&self) -> Vec<u64> {
        self.inner.seams()
    }
    fn begin(&mut self, first: Scalar, count: u64) -> Result<(), Fault> {
        self.inner.begin(first, count)?;
        // Self-tests scan keys elsewhere.
        if small(first).is_some() {
            let batch = self.fake.begun.fetch_add(1, Ordering::Relaxed);
            self.fault = (self.fake.on_batch)(batch).err();
        }
        Ok(())
    }
    fn go_on(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        let (keys, survivors) = self.inner.go_on()?;
        match self.fault.take() {
            // What it has covered by now is lost with it.
            Some(fault) => Err(fault),
            None => Ok((keys, survivors.repeat(self.fake.copies))),
        }
    }
    fn proof(&mut self) -> Result<Option<Proof>, Fault> {
        self.inner.proof()
    }
    fn flip(&mut self, lane: u32, bit: u32) {
        self.inner.flip(lane, bit);
    }
}

impl Backend for Fake {
    fn id(&self) -> String {
        if self.card { "card:0".to_owned() } else { "cpu".to_owned() }
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn runner(&self) -> Runner {
        self.inner.runner()
    }
    fn is_card(&self) -> bool {
        self.card
    }
    fn workers(&self) -> usize {
        self.inner.workers()
    }
    fn max_false(&self, recipe: &Recipe) -> f64 {
        self.inner.max_false(recipe)
    }
    fn program(&self, search: &Search<'_>) -> Program {
        self.inner.program(search)
    }
    fn worker<'a>(&'a self, search: &Search<'_>) -> Result<Box<dyn Worker + 'a>, Fault> {
        self.inner.worker(search)
    }
    fn scanner<'a>(
        &'a self,
        forms: &'a [Form],
        filter: &'a ScanFilter,
    ) -> Result<Box<dyn Scanner + 'a>, Fault> {
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        Ok(Box::new(FakeScanner { inner: self.inner.scanner(forms, filter)?, fake: self, fault: None }))
    }
}

/// A flag that threads wait for.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
    fn wait(&self) {
        while !self.0.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What a scan reported: keys with their devices, warnings and notes.
#[derive(Default)]
struct Reported {
    found: Vec<(u64, String)>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

impl Reported {
    /// The keys found, in order.
    fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.found.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys
    }

    fn devices(&self) -> BTreeSet<&str> {
        self.found.iter().map(|(_, device)| device.as_str()).collect()
    }
}

const FIRST: u64 = (1 << 40) + 777;
const LAST: u64 = FIRST + 40_000;

/// Keys at both ends of the range, and around every place where a batch of the processor may begin.
fn planted() -> Vec<u64> {
    let around = (FIRST..LAST).step_by(OF_CPU as usize).flat_map(|key| [key - 1, key, key + 1]);
    let keys: BTreeSet<u64> = around.chain([LAST - 1, LAST]).filter(|key| *key >= FIRST).collect();
    keys.into_iter().collect()
}

/// Scans for these keys with a processor, and with cards that are found later; ends when `enough` says so, or by itself.
fn scan_for(
    keys: &[u64],
    last: u64,
    cpu: Fake,
    cards: impl FnOnce() -> Vec<Arc<dyn Backend>> + Send + 'static,
    mut enough: impl FnMut(&Reported) -> bool,
) -> (Outcome, Reported, Map) {
    let targets = ScanTargets::list(&list(keys.iter().copied()), &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    let range = Interval::new(U256::from(FIRST), U256::from(last)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
    let devices = Devices::with_later(vec![Arc::new(cpu)], cards);
    let job = ScanJob { interval: Duration::from_millis(10), ..ScanJob::new(&targets) };
    let (mut reported, interrupt) = (Reported::default(), AtomicBool::new(false));
    let outcome = scan(&job, &mut ledger, &devices, &interrupt, &mut |event| {
        match event {
            Event::Found(findings) => {
                reported.found.extend(findings.iter().map(|found| (number(found), found.device.clone())))
            }
            Event::Warning(text) => reported.warnings.push(text),
            Event::Note(text) => reported.notes.push(text),
            Event::Progress(_) => {}
        }
        interrupt.store(enough(&reported), Ordering::Relaxed);
        Ok(())
    });
    (outcome.expect("scanned"), reported, ledger.0)
}

/// Scans the whole range for all planted keys, and checks that each comes back once.
fn scan_whole(
    cpu: Fake,
    cards: impl FnOnce() -> Vec<Arc<dyn Backend>> + Send + 'static,
    mut look: impl FnMut(&Reported),
) -> Reported {
    let keys = planted();
    let (outcome, reported, map) = scan_for(&keys, LAST, cpu, cards, |reported| {
        look(reported);
        false
    });
    assert_eq!((outcome.ended, outcome.tried), (Ended::Exhausted, LAST - FIRST + 1));
    assert_eq!(reported.keys(), keys);
    assert!(map.is_complete());
    reported
}

#[test]
fn the_processor_begins_and_a_card_joins() {
    let (release, gate) = bounded::<()>(0);
    let release = std::sync::Mutex::new(Some(release));
    let joined = Flag::default();
    let wait = joined.clone();
    let cpu = Fake::cpu(move |batch| {
        match batch {
            // The card is ready in the midst of a batch.
            2 => drop(release.lock().expect("no panic").take()),
            3.. => wait.wait(),
            _ => {}
        }
        Ok(())
    });
    let card = Fake::card(Some(gate), move |_| {
        joined.set();
        Ok(())
    });
    let reported = scan_whole(cpu, || vec![Arc::new(card)], |_| ());
    assert_eq!(reported.devices(), BTreeSet::from(["card:0", "cpu"]));
    assert!(reported.notes[0].starts_with("card:0 joins after "), "{:?}", reported.notes);
    assert_eq!(reported.warnings, Vec::<String>::new());
}

#[test]
fn a_card_that_fails_its_self_test_takes_nothing_along() {
    let refused = Flag::default();
    let wait = refused.clone();
    let cpu = Fake::cpu(move |batch| {
        if batch >= 3 {
            wait.wait();
        }
        Ok(())
    });
    let card = Fake { copies: 2, ..Fake::card(None, |_| Ok(())) };
    let reported = scan_whole(
        cpu,
        || vec![Arc::new(card)],
        |reported| {
            if !reported.warnings.is_empty() {
                refused.set();
            }
        },
    );
    assert!(reported.warnings[0].contains("self-test failed on card:0"), "{:?}", reported.warnings);
    assert_eq!(reported.devices(), BTreeSet::from(["cpu"]));
}

#[test]
fn the_batch_of_a_card_that_dies_is_scanned_by_the_processor() {
    let died = Flag::default();
    let wait = died.clone();
    let cpu = Fake::cpu(move |batch| {
        if batch >= 3 {
            wait.wait();
        }
        Ok(())
    });
    let card = Fake::card(None, move |batch| {
        if batch < 4 {
            return Ok(());
        }
        died.set();
        Err("it fell off the bus".to_owned())
    });
    let reported = scan_whole(cpu, || vec![Arc::new(card)], |_| ());
    let says = "card:0 was dropped: it fell off the bus; the others go on";
    assert_eq!(reported.warnings, [says]);
    assert_eq!(reported.devices(), BTreeSet::from(["card:0", "cpu"]));
}

/// Both threads of the processor fail before the card is ready.
#[test]
fn a_card_goes_on_alone_where_the_processor_is_lost() {
    let (release, gate) = bounded::<()>(0);
    let release = std::sync::Mutex::new(Some(release));
    let cpu = Fake::cpu(move |batch| {
        if batch < 3 {
            return Ok(());
        }
        if batch == 4 {
            drop(release.lock().expect("no panic").take());
        }
        Err("it broke".to_owned())
    });
    let card = Fake::card(Some(gate), |_| Ok(()));
    let reported = scan_whole(cpu, || vec![Arc::new(card)], |_| ());
    assert_eq!(reported.warnings.len(), 2, "{:?}", reported.warnings);
    assert!(reported.warnings[1].starts_with("cpu was dropped: it broke"), "{:?}", reported.warnings);
    assert_eq!(reported.devices(), BTreeSet::from(["card:0", "cpu"]));
}

/// Neither a compiler nor a driver is waited for at the end of the range.
#[test]
fn a_scan_ends_while_a_card_is_prepared() {
    let (release, gate) = bounded::<()>(0);
    let card = Fake::card(Some(gate), |_| Ok(()));
    let reported = scan_whole(Fake::cpu(|_| Ok(())), || vec![Arc::new(card)], |_| ());
    assert!(drivers_are_busy());
    assert_eq!((reported.notes.len(), reported.warnings.len()), (0, 0));
    drop(release);

    let (release, held) = bounded::<()>(0);
    let find = move || {
        let _ = held.recv();
        Vec::new()
    };
    let reported = scan_whole(Fake::cpu(|_| Ok(())), find, |_| ());
    assert!(drivers_are_busy());
    assert_eq!((reported.notes.len(), reported.warnings.len()), (0, 0));
    drop(release);
}

#[test]
fn a_scan_is_interrupted_while_its_only_card_compiles() {
    let (release, gate) = bounded::<()>(0);
    let devices = Devices::of(vec![Arc::new(Fake::card(Some(gate), |_| Ok(())))]);
    let targets = ScanTargets::list(&list([FIRST].into_iter()), &[]).expect("targets");
    let range = Interval::new(U256::from(FIRST), U256::from(LAST)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &["p2pkh"], *targets.identity()), Order::Sequential));
    let interrupt = AtomicBool::new(true);
    let outcome =
        scan(&ScanJob::new(&targets), &mut ledger, &devices, &interrupt, &mut |_| Ok(())).expect("ended");
    assert_eq!((outcome.ended, outcome.tried, outcome.elapsed), (Ended::Interrupted, 0, Duration::ZERO));
    drop(release);
}

/// What the processor had begun when it stepped aside counts as far as it came, and the rest is given back.
#[test]
fn the_processor_steps_aside_where_it_adds_nothing() {
    let keys: Vec<u64> = (0..3000).map(|at| FIRST + 997 * at).collect();
    let cpu = Fake::cpu(|_| {
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    });
    let cpu = Fake { most: 20, ..cpu };
    let card = Fake { most: 50_000, ..Fake::card(None, |_| Ok(())) };
    let stepped = |reported: &Reported| reported.notes.iter().any(|note| note.contains("steps aside"));
    let (outcome, reported, map) = scan_for(&keys, u64::MAX, cpu, || vec![Arc::new(card)], stepped);
    assert_eq!(outcome.ended, Ended::Interrupted);
    assert_eq!(reported.notes.len(), 2, "{:?}", reported.notes);
    assert!(reported.notes[1].starts_with("cpu steps aside"), "{:?}", reported.notes);
    assert_eq!(map.covered(), U256::from(outcome.tried), "each once");
    let covered: Vec<u64> = keys.into_iter().filter(|key| map.is_covered(U256::from(*key))).collect();
    assert_eq!(reported.keys(), covered);
}
