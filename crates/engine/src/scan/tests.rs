//! Whole scans with several devices: every planted key once, whoever covers it, and the map exact.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use warpsmith_chain::{AddressKind, Form};
use warpsmith_store::{Interval, Job, Map, Order, Record, Report, TargetList, U256};

use warpsmith_curve::Scalar;

use super::*;
use crate::cpu::Cpu;
use crate::devices::Devices;
use crate::error::Error;
use crate::gpu::tests::pocl;
use crate::origin::{Secret, public_point};
use crate::prefilter::ScanFilter;
use crate::run::pause::Pause;
use crate::run::report::{Ended, Event};
use crate::simd::{self, Simd};
use crate::worker::scanner::{Proof, Scanner, Survivor, small};
use crate::worker::{Backend, Fault};

/// The addresses of these keys, as hashes of the compressed key and accounts in turn.
pub(super) fn list(keys: impl Iterator<Item = u64>) -> TargetList {
    let record = |key: u64| {
        let secret = Secret::from_bytes(&Scalar::from_u64(key).to_be_bytes()).expect("a key");
        let point = public_point(&secret.public_key());
        let (kind, form) = if key.is_multiple_of(2) {
            (AddressKind::P2PKH, Form::Hash160)
        } else {
            (AddressKind::ETHEREUM, Form::Account)
        };
        Record { kind, digest: form.reference(&point), amount: None }
    };
    TargetList { records: keys.map(record).collect(), report: Report::default() }
}

/// The number of a key that was found.
pub(super) fn number(finding: &Finding) -> u64 {
    u64::from_be_bytes(finding.secret().as_bytes()[24..].try_into().expect("eight bytes"))
}

/// Scans a range and returns the keys found, with what was said, after checking that all of it is covered.
fn scan_all(devices: &Devices, first: u64, last: u64, list: &TargetList) -> (Vec<u64>, Vec<String>) {
    let targets = ScanTargets::list(list, &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    let range = Interval::new(U256::from(first), U256::from(last)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
    let job = ScanJob::new(&targets);
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    let outcome = scan(&job, &mut ledger, devices, &AtomicBool::new(false), &mut |event| {
        match event {
            Event::Found(findings) => found.extend(findings.iter().map(number)),
            Event::Warning(text) => warnings.push(text),
            Event::Progress(_) | Event::Note(_) => {}
        }
        Ok(())
    })
    .expect("scanned");
    assert_eq!(outcome.ended, Ended::Exhausted);
    assert!(ledger.0.is_complete());
    assert_eq!(ledger.0.covered(), U256::from(last - first + 1));
    // Each once: what a device did in vain does not count.
    assert_eq!(outcome.tried, last - first + 1);
    (found, warnings)
}

/// A device whose scanners fail after some batches, keep what they find to themselves, or tell it twice.
struct Failing {
    id: &'static str,
    inner: Arc<dyn Backend>,
    left: AtomicU32,
    /// How often what was found is told.
    copies: usize,
    /// The most keys of a batch.
    most: u64,
    /// How many batches of a scan it is given before one in which a bit of a centre flips.
    flip: AtomicU32,
    /// Does nothing in a scan until this one's bit has flipped.
    after: Option<Arc<Failing>>,
}

impl Failing {
    fn new(inner: &Arc<dyn Backend>) -> Failing {
        let (left, flip) = (AtomicU32::new(u32::MAX), AtomicU32::new(u32::MAX));
        Failing { id: "failing", inner: Arc::clone(inner), left, copies: 1, most: 4000, flip, after: None }
    }
}

struct FailingScanner<'a> {
    inner: Box<dyn Scanner + 'a>,
    failing: &'a Failing,
}

impl Scanner for FailingScanner<'_> {
    fn most(&self) -> u64 {
        self.inner.most().min(self.failing.most)
    }
    fn seams(&self) -> Vec<u64> {
        self.inner.seams()
    }
    fn begin(&mut self, first: Scalar, count: u64) -> std::result::Result<(), Fault> {
        self.inner.begin(first, count)?;
        // Self-tests scan keys elsewhere.
        if small(first).is_some() {
            let flip = &self.failing.flip;
            match flip.load(Ordering::Relaxed) {
                u32::MAX => {}
                0 => {
                    self.inner.flip(0, 300);
                    flip.store(u32::MAX, Ordering::Relaxed);
                }
                batches => flip.store(batches - 1, Ordering::Relaxed),
            }
            while self.failing.after.as_ref().is_some_and(|f| f.flip.load(Ordering::Relaxed) != u32::MAX) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
    fn go_on(&mut self) -> std::result::Result<(u64, Vec<Survivor>), Fault> {
        let Failing { left, copies, .. } = self.failing;
        if left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err("it broke".to_owned());
        }
        let (keys, survivors) = self.inner.go_on()?;
        Ok((keys, survivors.repeat(*copies)))
    }
    fn proof(&mut self) -> std::result::Result<Option<Proof>, Fault> {
        self.inner.proof()
    }
    fn flip(&mut self, lane: u32, bit: u32) {
        self.inner.flip(lane, bit);
    }
}

impl Backend for Failing {
    fn id(&self) -> String {
        self.id.to_owned()
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn runner(&self) -> crate::worker::Runner {
        self.inner.runner()
    }
    fn workers(&self) -> usize {
        1
    }
    fn max_false(&self, recipe: &warpsmith_chain::Recipe) -> f64 {
        self.inner.max_false(recipe)
    }
    fn program(&self, search: &crate::worker::Search<'_>) -> crate::worker::Program {
        self.inner.program(search)
    }
    fn worker<'a>(
        &'a self,
        search: &crate::worker::Search<'_>,
    ) -> std::result::Result<Box<dyn crate::worker::Worker + 'a>, Fault> {
        self.inner.worker(search)
    }
    fn scanner<'a>(
        &'a self,
        forms: &'a [Form],
        filter: &'a ScanFilter,
    ) -> std::result::Result<Box<dyn Scanner + 'a>, Fault> {
        let inner = self.inner.scanner(forms, filter)?;
        Ok(Box::new(FailingScanner { inner, failing: self }))
    }
}

fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_unstable();
    keys
}

#[test]
fn the_processor_and_a_card_share_a_range() {
    let Some(card) = pocl() else { return };
    let devices = Devices::of(vec![Arc::new(Cpu::new(simd::detect(), 1)), Arc::new(card)]);
    let (first, last) = ((1u64 << 40) + 12345, (1u64 << 40) + 12345 + 600_000);
    // Both ends, and everywhere between.
    let keys: BTreeSet<u64> = (first..=last).step_by(997).chain([first, first + 1, last - 1, last]).collect();
    let (found, warnings) = scan_all(&devices, first, last, &list(keys.iter().copied()));
    assert_eq!(sorted(found), keys.into_iter().collect::<Vec<_>>());
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_device_that_fails_is_dropped_and_its_batch_done_by_another() {
    let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(simd::detect(), 1));
    // Enough for the self-test, and one or two batches.
    let failing = Failing { left: AtomicU32::new(3), ..Failing::new(&cpu) };
    let devices = Devices::of(vec![Arc::new(failing), Arc::new(Cpu::new(Simd::Portable, 1))]);
    let (first, last) = (5u64, 1_000_000);
    let keys: BTreeSet<u64> = (first..=last).step_by(4999).chain([last]).collect();
    let (found, warnings) = scan_all(&devices, first, last, &list(keys.iter().copied()));
    assert_eq!(sorted(found), keys.into_iter().collect::<Vec<_>>());
    assert!(warnings.iter().any(|text| text.contains("failing was dropped: it broke")), "{warnings:?}");
}

/// A walk that goes astray in the middle of a scan: its batch does not count and is done again by another device, which finds
/// what lies there.
#[test]
fn a_batch_whose_walk_went_astray_is_scanned_again() {
    let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(simd::detect(), 1));
    // The third of many batches of the processor, and the first of the card, which is next to all there is.
    let mut cases = vec![(Arc::clone(&cpu), 4000, 2, 20_000u64)];
    if let Some(card) = pocl() {
        cases.push((Arc::new(card), u64::MAX, 0, 60_000));
    }
    for (inner, most, batches, count) in cases {
        let failing = || Failing { most, flip: AtomicU32::new(batches), ..Failing::new(&inner) };
        let (first, last) = ((1u64 << 40) + 777, (1u64 << 40) + 776 + count);
        let keys: BTreeSet<u64> = (first..=last).step_by(499).chain([last]).collect();
        // The other one keeps at most one small batch from it.
        let astray = Arc::new(failing());
        let other = Failing { id: "other", after: Some(Arc::clone(&astray)), ..Failing::new(&cpu) };
        let devices = Devices::of(vec![astray, Arc::new(other)]);
        let (found, warnings) = scan_all(&devices, first, last, &list(keys.iter().copied()));
        assert_eq!(sorted(found), keys.iter().copied().collect::<Vec<_>>());
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let says = "failing was dropped: its walk did not end where it must: 1 of ";
        assert!(warnings[0].starts_with(says) && warnings[0].ends_with("the others go on"), "{warnings:?}");
        // Alone it is the error, and nothing it did in vain is in the map.
        let error = astray_alone(failing(), first, last, 4000 * u64::from(batches));
        assert!(error.to_string().contains("its walk did not end where it must: 1 of "), "{error}");
    }
}

/// Scans with a device whose walk goes astray once so many keys are covered. Another device takes what the map lacks and
/// finds what was missed.
fn astray_alone(failing: Failing, first: u64, last: u64, right: u64) -> Error {
    let list = list([first, first + right, last].into_iter());
    let targets = ScanTargets::list(&list, &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    let range = Interval::new(U256::from(first), U256::from(last)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
    let job = ScanJob::new(&targets);
    let mut found = BTreeSet::new();
    let mut sink = |event: Event<'_, Finding>| {
        if let Event::Found(findings) = event {
            assert!(findings.iter().map(number).all(|key| found.insert(key)), "twice");
        }
        Ok(())
    };
    let failing = Devices::of(vec![Arc::new(failing)]);
    let never = AtomicBool::new(false);
    let error = scan(&job, &mut ledger, &failing, &never, &mut sink).expect_err("it is the only one");
    assert_eq!(ledger.0.covered(), U256::from(right), "what it did in vain is not covered");
    let cpu = Devices::of(vec![Arc::new(Cpu::new(Simd::Portable, 1))]);
    let rest = scan(&job, &mut ledger, &cpu, &never, &mut sink).expect("scanned");
    assert_eq!(rest.tried + right, last - first + 1, "each once");
    assert_eq!(found, BTreeSet::from([first, first + right, last]));
    error
}

/// Each form and all together, by list and by both filters; and a device that keeps keys to itself, or tells them twice, fails.
#[test]
fn every_kind_of_scan_is_proved() {
    let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(simd::detect(), 1));
    let mut cases = Vec::new();
    selftest_scans(&Devices::of(vec![Arc::clone(&cpu)]), &mut |test| {
        assert!(test.target == "scan" && test.planted > 0, "{test:?}");
        cases.push(test.case.clone());
    })
    .expect("all found");
    assert_eq!(cases.len(), 3 * (Form::SCANNED.len() + 1) + 2);
    assert!(
        ["p2pkh, list", "eth, fuse8", "all types, fuse16", "all types, fuse8 in parts"]
            .iter()
            .all(|case| cases.iter().any(|c| c == case)),
        "{cases:?}"
    );

    for copies in [0, 2] {
        let failing = Failing { copies, ..Failing::new(&cpu) };
        let error = selftest_scans(&Devices::of(vec![Arc::new(failing)]), &mut |_| ()).expect_err("not once");
        let says = format!("scan, npub, list: a key planted for its self-test came back {copies} times");
        assert!(error.to_string().contains(&says), "{error}");
    }
}

#[test]
fn a_scan_that_ends_early_loses_nothing_of_what_it_covered() {
    let devices = Devices::of(vec![Arc::new(Cpu::new(simd::detect(), 2))]);
    let (first, last) = (1_000_000, 1_300_000u64);
    // Several in one batch, and some far from all others.
    let planted: BTreeSet<u64> =
        [0, 1, 2, 3, 500, 501, 100_000, 299_999, 300_000].map(|at| first + at).into();
    let list = list(planted.iter().copied());
    let targets = ScanTargets::list(&list, &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    let range = Interval::new(U256::from(first), U256::from(last)).expect("a range");
    for until_found in [false, true] {
        let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
        let (mut found, mut runs) = (Vec::new(), 0);
        // Each run ends after a match or more; the next goes on from there. How far threads have gone by then is the
        // machine's affair: a slow one may cover all in one run.
        while !ledger.0.is_complete() && found.len() < planted.len() {
            let job = ScanJob { count: Some(1), until_found, ..ScanJob::new(&targets) };
            let before = found.len();
            let outcome = scan(&job, &mut ledger, &devices, &AtomicBool::new(false), &mut |event| {
                if let Event::Found(findings) = event {
                    found.extend(findings.iter().map(number));
                }
                Ok(())
            })
            .expect("scanned");
            assert_eq!(outcome.matches, (found.len() - before) as u64);
            assert!(outcome.matches > 0 || outcome.ended == Ended::Exhausted, "{outcome:?}");
            runs += 1;
        }
        found.sort_unstable();
        assert_eq!(found, planted.iter().copied().collect::<Vec<_>>(), "each once, in {runs} runs");
    }
    // All at once, far from the end of a range that nobody reaches.
    let range = Interval::new(U256::from(first), U256::from(u64::MAX)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
    let job = ScanJob { until_found: true, ..ScanJob::new(&targets) };
    let outcome =
        scan(&job, &mut ledger, &devices, &AtomicBool::new(false), &mut |_| Ok(())).expect("scanned");
    assert_eq!(
        (outcome.ended, outcome.all_found, outcome.matches),
        (Ended::Count, true, planted.len() as u64)
    );
    assert!(planted.iter().all(|key| ledger.0.is_covered(U256::from(*key))));
}

/// What an earlier run found is known from the map, by address and not by key.
#[test]
fn a_scan_ends_when_the_last_address_is_found_that_earlier_runs_did_not() {
    let devices = Devices::of(vec![Arc::new(Cpu::new(simd::detect(), 1))]);
    let (first, here, elsewhere) = (1_000_000u64, 1_000_500, 500);
    let (list, other) = (list([here, elsewhere].into_iter()), list([elsewhere].into_iter()));
    let targets = ScanTargets::list(&list, &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    // A range that nobody comes to the end of.
    let range = Interval::new(U256::from(first), U256::from(u64::MAX)).expect("a range");
    let mut map = Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential);
    let address = |record: &Record| record.kind.text(&record.digest);
    map.note_match(&address(&other.records[0]), 77);
    map.note_match("1NobodyAskedForThis", 78);
    let mut ledger = Unkept(map);
    let job = ScanJob { until_found: true, ..ScanJob::new(&targets) };
    let run = |ledger: &mut Unkept| {
        scan(&job, ledger, &devices, &AtomicBool::new(false), &mut |_| Ok(())).expect("scanned")
    };
    let outcome = run(&mut ledger);
    assert_eq!((outcome.ended, outcome.all_found, outcome.matches), (Ended::Count, true, 1));
    assert!(outcome.tried > 500 && ledger.0.is_covered(U256::from(here)));
    let found: BTreeSet<&str> = ledger.0.matches().map(|(address, _)| address).collect();
    let expected: BTreeSet<String> = list.records.iter().map(address).collect();
    assert!(found.len() == 3 && expected.iter().all(|address| found.contains(address.as_str())), "{found:?}");
    // Nothing is left to be found.
    let outcome = run(&mut ledger);
    assert_eq!((outcome.ended, outcome.all_found), (Ended::Count, true));
    assert_eq!((outcome.matches, outcome.tried), (0, 0));
    // A finding that was not taken is none, and the batch it lies in is not covered.
    let mut untold = Unkept(Map::new(ledger.0.job().clone(), Order::Sequential));
    let refuse = &mut |event: Event<'_, Finding>| match event {
        Event::Found(_) => Err("the disk is full".into()),
        _ => Ok(()),
    };
    assert!(scan(&job, &mut untold, &devices, &AtomicBool::new(false), refuse).is_err());
    assert!(untold.0.matches().len() == 0 && !untold.0.is_covered(U256::from(here)));
}

#[test]
fn a_scan_that_is_held_covers_every_key_once_all_the_same() {
    let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(simd::detect(), 2));
    let list = list([5, 250_000].into_iter());
    let targets = ScanTargets::list(&list, &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    let range = Interval::new(U256::from(1u64), U256::from(300_000u64)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
    let pause = Pause::default();
    pause.set(true);
    let job = ScanJob { pause: Some(&pause), interval: Duration::from_millis(10), ..ScanJob::new(&targets) };
    let (mut reports, mut found) = (0, Vec::new());
    let outcome = scan(&job, &mut ledger, &Devices::of(vec![cpu]), &AtomicBool::new(false), &mut |event| {
        match event {
            Event::Progress(progress) if pause.is_on() => {
                assert_eq!((progress.tried, progress.elapsed), (0, Duration::ZERO), "it is held");
                reports += 1;
                pause.set(reports < 20);
            }
            Event::Found(findings) => found.extend(findings.iter().map(number)),
            _ => {}
        }
        Ok(())
    })
    .expect("scanned");
    found.sort_unstable();
    assert_eq!((outcome.ended, outcome.tried, found), (Ended::Exhausted, 300_000, vec![5, 250_000]));
    assert!(ledger.0.is_complete());
}
