//! Whole scans with several devices: every planted key once, whoever covers it, and the map exact.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use warpsmith_store::{Interval, Job, Kind, Map, Order, Record, Report, TargetList, U256};

use super::*;
use crate::device::Devices;
use crate::origin::{Secret, public_point};
use crate::simd::Simd;
use crate::worker::Backend;
use crate::worker::cpu::Cpu;
use crate::worker::gpu::tests::pocl;

/// The addresses of these keys, as hashes of the compressed key and accounts in turn.
fn list(keys: impl Iterator<Item = u64>) -> TargetList {
    let record = |key: u64| {
        let secret = Secret::from_bytes(Scalar::from_u64(key).to_be_bytes()).expect("a key");
        let point = public_point(&secret.public_key());
        let (kind, form) = if key.is_multiple_of(2) {
            (Kind::P2pkh, Form::Compressed)
        } else {
            (Kind::Ethereum, Form::Account)
        };
        Record { kind, digest: form.digest(&point), amount: None }
    };
    TargetList { records: keys.map(record).collect(), report: Report::default() }
}

/// Scans a range and returns the keys found, with what was said, after checking that all of it is covered.
fn scan_all(devices: &Devices, first: u64, last: u64, list: &TargetList) -> (Vec<u64>, Vec<String>) {
    let targets = ScanTargets::list(list, &[]).expect("targets");
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name()).collect();
    let range = Interval::new(U256::from(first), U256::from(last)).expect("a range");
    let mut ledger = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
    let job = ScanJob { targets: &targets, time_limit: None, interval: Duration::from_secs(1) };
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    let outcome = scan(&job, &mut ledger, devices, &AtomicBool::new(false), &mut |event| {
        match event {
            ScanEvent::Found(finding) => {
                let bytes: [u8; 8] = finding.secret.as_bytes()[24..].try_into().expect("eight bytes");
                found.push(u64::from_be_bytes(bytes));
            }
            ScanEvent::Warning(text) => warnings.push(text),
            ScanEvent::Progress(_) => {}
        }
        Ok(())
    })
    .expect("scanned");
    assert_eq!(outcome.ended, ScanEnded::Complete);
    assert!(ledger.0.is_complete());
    assert_eq!(ledger.0.covered(), U256::from(last - first + 1));
    (found, warnings)
}

/// A device whose scanners fail after some batches, keep what they find to themselves, or tell it twice.
struct Failing {
    inner: Arc<dyn Backend>,
    left: AtomicU32,
    /// How often what was found is told.
    copies: usize,
}

struct FailingScanner<'a> {
    inner: Box<dyn Scanner + 'a>,
    left: &'a AtomicU32,
    /// How often what was found is told.
    copies: usize,
}

impl Scanner for FailingScanner<'_> {
    fn most(&self) -> u64 {
        self.inner.most().min(4000)
    }
    fn seams(&self) -> Vec<u64> {
        self.inner.seams()
    }
    fn begin(&mut self, first: Scalar, count: u64) -> std::result::Result<(), Fault> {
        self.inner.begin(first, count)
    }
    fn go_on(&mut self) -> std::result::Result<(u64, Vec<Survivor>), Fault> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err("it broke".to_owned());
        }
        self.left.store(left - 1, Ordering::Relaxed);
        let (keys, survivors) = self.inner.go_on()?;
        Ok((keys, survivors.repeat(self.copies)))
    }
}

impl Backend for Failing {
    fn id(&self) -> String {
        "failing".to_owned()
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn workers(&self) -> usize {
        1
    }
    fn max_false(&self, recipe: &warpsmith_target::Recipe) -> f64 {
        self.inner.max_false(recipe)
    }
    fn field(
        &self,
        op: warpsmith_curve::field::chains::Op,
        time: Duration,
    ) -> std::result::Result<crate::bench::field::FieldRate, Fault> {
        self.inner.field(op, time)
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
        sieve: &'a AnySieve,
    ) -> std::result::Result<Box<dyn Scanner + 'a>, Fault> {
        let (inner, left, copies) = (self.inner.scanner(forms, sieve)?, &self.left, self.copies);
        Ok(Box::new(FailingScanner { inner, left, copies }))
    }
}

fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_unstable();
    keys
}

#[test]
fn the_processor_and_a_card_share_a_range() {
    let Some(card) = pocl() else { return };
    let devices = Devices::of(vec![Arc::new(Cpu::new(Simd::detect(), 1)), Arc::new(card)]);
    let (first, last) = ((1u64 << 40) + 12345, (1u64 << 40) + 12345 + 600_000);
    // Both ends, and everywhere between.
    let keys: BTreeSet<u64> = (first..=last).step_by(997).chain([first, first + 1, last - 1, last]).collect();
    let (found, warnings) = scan_all(&devices, first, last, &list(keys.iter().copied()));
    assert_eq!(sorted(found), keys.into_iter().collect::<Vec<_>>());
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_device_that_fails_is_dropped_and_its_batch_done_by_another() {
    let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(Simd::detect(), 1));
    // Enough for the self-test, and one or two batches.
    let failing = Failing { inner: Arc::clone(&cpu), left: AtomicU32::new(3), copies: 1 };
    let devices = Devices::of(vec![Arc::new(failing), Arc::new(Cpu::new(Simd::Portable, 1))]);
    let (first, last) = (5u64, 1_000_000);
    let keys: BTreeSet<u64> = (first..=last).step_by(4999).chain([last]).collect();
    let (found, warnings) = scan_all(&devices, first, last, &list(keys.iter().copied()));
    assert_eq!(sorted(found), keys.into_iter().collect::<Vec<_>>());
    assert!(warnings.iter().any(|text| text.contains("failing was dropped: it broke")), "{warnings:?}");
}

/// Each form and all together, by list and by both filters; and a device that keeps keys to itself, or tells them twice, fails.
#[test]
fn every_kind_of_scan_is_proved() {
    let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(Simd::detect(), 1));
    let mut cases = Vec::new();
    selftest_scans(&Devices::of(vec![Arc::clone(&cpu)]), &mut |test| {
        assert!(test.target == "scan" && test.planted > 0, "{test:?}");
        cases.push(test.case.clone());
    })
    .expect("all found");
    assert_eq!(cases.len(), 3 * (Form::ALL.len() + 1));
    assert!(
        ["p2pkh, list", "eth, fuse8", "all types, fuse16"].iter().all(|case| cases.iter().any(|c| c == case)),
        "{cases:?}"
    );

    for copies in [0, 2] {
        let failing = Failing { inner: Arc::clone(&cpu), left: AtomicU32::new(u32::MAX), copies };
        let error = selftest_scans(&Devices::of(vec![Arc::new(failing)]), &mut |_| ()).expect_err("not once");
        let says = format!("scan, rawtr, list: a key planted for its self-test came back {copies} times");
        assert!(error.to_string().contains(&says), "{error}");
    }
}
