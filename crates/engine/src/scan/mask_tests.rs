//! Scans by masks, on every processor path and on OpenCL: each planted candidate once, wherever batches begin and end.

use std::collections::BTreeMap;
use std::result::Result;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warpsmith_chain::{AddressKind, Digest, Form};
use warpsmith_curve::Scalar;
use warpsmith_store::{Filter, Job, KeyMask, Map, Order, Record, Report, TargetList, U256, Width};

use warpsmith_trials::replaced;

use super::*;
use crate::cpu::Cpu;
use crate::devices::Devices;
use crate::gpu::tests::pocl;
use crate::prefilter::{Fuse, ScanFilter, TopList};
use crate::run::report::{Ended, Event};
use crate::simd;
use crate::worker::scanner::{Survivor, digest_of, small};
use crate::worker::{Backend, Fault};

const KEY: &str = "6cfe83c1d97b40a2e5f1088ab3c7d45e9f20116a3b4c5d6e7f8091a2b3c4d5e6";

/// The mask of a text with some of its characters replaced.
fn with(text: &str, places: &[(usize, &str)]) -> Arc<KeyMask> {
    Arc::new(KeyMask::parse(&replaced(text, places), 0).expect("a mask"))
}

/// Masks of some thousand candidates: digits apart, together, in pairs and sets, at both ends of the keys.
fn masks() -> Vec<(&'static str, Arc<KeyMask>)> {
    let zero = "0".repeat(64);
    let last = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    vec![
        ("apart", with(KEY, &[(3, "?"), (17, "?"), (40, "?"), (62, "?")])),
        ("together", with(KEY, &[(30, "?"), (31, "?"), (32, "?"), (33, "?")])),
        ("at the end", with(KEY, &[(60, "?"), (61, "?"), (62, "?"), (63, "?")])),
        ("pairs", with(KEY, &[(5, "[08]"), (6, "[1c]"), (20, "?"), (33, "[ef]"), (50, "?"), (51, "?")])),
        ("sets", with(KEY, &[(5, "[07a]"), (20, "?"), (41, "?"), (50, "?"), (60, "[2468a]")])),
        ("few", with(KEY, &[(9, "[12]"), (10, "[345]")])),
        // 0 is no key, nor is what lies beyond the last; both lie among the candidates.
        ("from 0", with(&zero, &[(60, "?"), (61, "?"), (62, "?"), (63, "?")])),
        ("around n", with(last, &[(60, "?"), (61, "?"), (62, "?"), (63, "?")])),
    ]
}

fn devices() -> Vec<Arc<dyn Backend>> {
    let processors = simd::available().map(|simd| Arc::new(Cpu::new(simd, 1)) as Arc<dyn Backend>);
    processors.chain(pocl().map(|gpu| Arc::new(gpu) as Arc<dyn Backend>)).collect()
}

/// The survivors that candidates would be; those that are no keys are none.
fn expected(mask: &KeyMask, candidates: impl Iterator<Item = u64>, forms: &[Form]) -> Vec<Survivor> {
    let of = |candidate: u64| {
        let key = mask.key_at(U256::from(candidate)).and_then(|key| Scalar::from_be_bytes(&key));
        let survivor = move |form: &Form| {
            let digest = digest_of(key?, *form)?;
            Some(Survivor { key: Scalar::from_u64(candidate), form: *form, digest })
        };
        forms.iter().filter_map(survivor).collect::<Vec<_>>()
    };
    candidates.flat_map(of).collect()
}

/// Scans candidates in batches of so many, and returns what passed, in order.
fn run(
    device: &dyn Backend,
    mask: &Arc<KeyMask>,
    forms: &[Form],
    filter: &ScanFilter,
    (first, count): (u64, u64),
    batch: u64,
) -> Result<Vec<Survivor>, Fault> {
    let mut scanner = device.scanner(forms, filter)?;
    scanner.follow(mask)?;
    let (mut at, mut all) = (first, Vec::new());
    while at < first + count {
        let batch = batch.min(first + count - at);
        scanner.begin(Scalar::from_u64(at), batch)?;
        let mut done = 0;
        while done < batch {
            let (keys, survivors) = scanner.go_on()?;
            assert!(keys > 0 && keys <= batch - done);
            for survivor in &survivors {
                let offset = small(survivor.key).expect("small") - at;
                assert!((done..done + keys).contains(&offset), "outside of what was covered");
            }
            done += keys;
            all.extend(survivors);
        }
        if let Some(proof) = scanner.proof()? {
            proof()?;
        }
        at += batch;
    }
    all.sort_unstable_by_key(|survivor| (small(survivor.key), survivor.form));
    Ok(all)
}

fn sorted(mut survivors: Vec<Survivor>) -> Vec<Survivor> {
    survivors.sort_unstable_by_key(|survivor| (small(survivor.key), survivor.form));
    survivors
}

fn list(survivors: &[Survivor]) -> ScanFilter {
    ScanFilter::List(TopList::new(survivors.iter().map(|survivor| survivor.digest.words()[0])))
}

/// Every candidate, in one form and in all: each once, in batches of any size.
#[test]
fn every_candidate_of_a_mask_comes_once() {
    let devices = devices();
    for (name, mask) in masks() {
        let count = mask.count().as_u64();
        let one = [Form::Hash160];
        // Every one of some, and of others each 37th.
        let every = if count <= 1 << 12 || name == "apart" { 1 } else { 37 };
        let wanted = expected(&mask, (0..count).step_by(every), &one);
        // A part from the middle on, in every form.
        let (from, part) = (count / 3, count / 2 - 1);
        let mut places: Vec<u64> =
            [0, 1, part / 2, part.saturating_sub(2), part - 1].map(|at| from + at).into();
        places.sort_unstable();
        places.dedup();
        let in_part = expected(&mask, places.into_iter().filter(|at| *at < from + part), &Form::SCANNED);
        let in_part = sorted(in_part);
        for device in &devices {
            for batch in [count, 4096 + 777] {
                let found = run(device.as_ref(), &mask, &one, &list(&wanted), (0, count), batch);
                assert!(found.as_ref() == Ok(&wanted), "{}, {name}, by {batch}", device.id());
            }
            let found = run(device.as_ref(), &mask, &Form::SCANNED, &list(&in_part), (from, part), part);
            assert_eq!(found.as_ref(), Ok(&in_part), "{}, {name}", device.id());
        }
    }
}

/// A coarse filter lets so much pass that a card's records do not fit.
#[test]
fn a_flood_of_candidates_loses_none() {
    let (name, mask) = masks().swap_remove(0);
    let count = mask.count().as_u64();
    let forms = [Form::Hash160, Form::Account];
    let wanted = sorted(expected(&mask, 0..count, &forms));
    let tops: Vec<u64> = wanted.iter().map(|survivor| survivor.digest.words()[0]).collect();
    let mut distinct = tops.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let fuse = Filter::of_tops(&distinct, Width::ALL[0], 1).expect("a filter");
    for filter in [list(&wanted), ScanFilter::Fuse(Box::new(Fuse { first: fuse, second: None }))] {
        for device in devices() {
            let found = run(device.as_ref(), &mask, &forms, &filter, (0, count), count).expect("scanned");
            assert!(found == wanted, "{}, {name}: {} of {}", device.id(), found.len(), wanted.len());
        }
    }
}

/// A bit of a lane that turns over is noticed before its candidates count.
#[test]
fn a_lane_that_goes_astray_is_noticed() {
    let mask = with(KEY, &[(3, "?"), (17, "?"), (40, "?"), (62, "?")]);
    let filter = list(&[]);
    for device in devices() {
        for (lane, bit) in [(0, 3), (0, 300)] {
            let mut scanner = device.scanner(&[Form::Hash160], &filter).expect("a scanner");
            scanner.follow(&mask).expect("followed");
            scanner.begin(Scalar::ZERO, mask.count().as_u64()).expect("begun");
            scanner.flip(lane, bit);
            let mut scan = || -> Result<(), Fault> {
                scanner.go_on()?;
                scanner.proof()?.map_or(Ok(()), |proof| proof())
            };
            assert!(scan().is_err(), "{}, bit {bit}", device.id());
        }
    }
}

/// The addresses of some keys, one form each.
fn addresses(keys: &[[u8; 32]]) -> TargetList {
    let record = |(at, key): (usize, &[u8; 32])| {
        let key = Scalar::from_be_bytes(key).expect("a key");
        let (kind, form) = match at % 2 {
            0 => (AddressKind::P2PKH, Form::Hash160),
            _ => (AddressKind::ETHEREUM, Form::Account),
        };
        Record { kind, digest: digest_of(key, form).expect("a key"), amount: None }
    };
    TargetList { records: keys.iter().enumerate().map(record).collect(), report: Report::default() }
}

/// Whole scans with a map, by two devices, stopped and taken up again: what was planted comes back once, as the keys themselves.
#[test]
fn masks_are_scanned_and_taken_up_again() {
    let wif = "KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617";
    let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let mut all = masks();
    all.push(("wif", with(wif, &[(12, "?"), (40, "[abcdxYZ]"), (50, "?")])));
    all.push(("nsec", with(nsec, &[(12, "?"), (33, "?"), (58, "?")])));
    all.push(("missing", Arc::new(KeyMask::parse(&wif[..51], 1).expect("a mask"))));
    let mut devices: Vec<Arc<dyn Backend>> = vec![Arc::new(Cpu::new(simd::detect(), 2))];
    devices.extend(pocl().map(|gpu| Arc::new(gpu) as Arc<dyn Backend>));
    let devices = Devices::of(devices);
    for (name, mask) in all {
        let count = mask.count().as_u64();
        let planted: Vec<[u8; 32]> = match mask.texts() {
            // The right one, and what else has a checksum that fits.
            Some(texts) => {
                let mut keys = Vec::new();
                texts.visit(0, count, &mut |_, key| keys.push(*key));
                keys
            }
            None => {
                let places = [0, 1, count / 2 - 1, count / 2, count - 2, count - 1];
                places.iter().filter_map(|at| mask.key_at(U256::from(*at))).collect()
            }
        };
        assert!(!planted.is_empty(), "{name}");
        let mut planted = planted;
        planted.sort_unstable();
        planted.dedup();
        let list = addresses(&planted);
        let targets = ScanTargets::list(&list, &[]).expect("targets");
        let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
        let job = Job::new(mask.numbers(), &names, *targets.identity());
        let mut ledger = Unkept(Map::new(job, Order::Sequential));
        let mut found: BTreeMap<[u8; 32], u32> = BTreeMap::new();
        // Ends at the first match, and goes on.
        let mut runs = 0;
        while !ledger.0.is_complete() {
            let job = ScanJob { mask: Some(&mask), count: Some(1), ..ScanJob::new(&targets) };
            let outcome = scan(&job, &mut ledger, &devices, &AtomicBool::new(false), &mut |event| {
                if let Event::Found(findings) = event {
                    findings.iter().for_each(|f| *found.entry(*f.secret().as_bytes()).or_default() += 1);
                }
                Ok(())
            })
            .expect("scanned");
            assert!(outcome.matches > 0 || outcome.ended == Ended::Exhausted);
            runs += 1;
        }
        assert_eq!(ledger.0.covered(), mask.count(), "{name}");
        let expected: BTreeMap<[u8; 32], u32> = planted.iter().map(|key| (*key, 1)).collect();
        assert_eq!(found, expected, "{name}, in {runs} runs");
    }
}

/// A digest nobody planted.
#[test]
fn a_mask_without_its_key_finds_nothing() {
    let mask = with(KEY, &[(3, "?"), (17, "?"), (40, "?")]);
    let filter = ScanFilter::List(TopList::new([Digest::new(&[7; 20]).words()[0]]));
    for device in devices() {
        let found = run(device.as_ref(), &mask, &Form::SCANNED, &filter, (0, 4096), 4096);
        assert_eq!(found, Ok(Vec::new()), "{}", device.id());
    }
}

/// Where a checksum leaves few, every key it leaves is found, without an address; elsewhere one has to be given.
#[test]
fn a_checksum_alone_finds_the_key() {
    let wif = "KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617";
    let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let devices = Devices::of(vec![Arc::new(Cpu::new(simd::detect(), 2)) as Arc<dyn Backend>]);
    for (text, marks) in [(wif, [(12, "?"), (40, "?"), (50, "?")]), (nsec, [(12, "?"), (33, "?"), (58, "?")])]
    {
        let mask = with(text, &marks);
        let targets = ScanTargets::every_key(&mask).expect("few");
        let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
        let map = Map::new(Job::new(mask.numbers(), &names, *targets.identity()), Order::Sequential);
        let mut found = Vec::new();
        let job = ScanJob { mask: Some(&mask), until_found: true, ..ScanJob::new(&targets) };
        let outcome = scan(&job, &mut Unkept(map), &devices, &AtomicBool::new(false), &mut |event| {
            if let Event::Found(findings) = event {
                found.extend(findings.iter().map(|finding| finding.export().to_string()));
            }
            Ok(())
        });
        assert_eq!(outcome.expect("scanned").ended, Ended::Exhausted);
        assert_eq!(found, [text]);
    }
    let refusal = |mask: &KeyMask| ScanTargets::every_key(mask).map(|_| ()).expect_err("not few").to_string();
    let many = refusal(&with(wif, &[12, 13, 14, 15, 16, 17, 18].map(|at| (at, "?"))));
    assert!(many.contains("some 514 of its candidates"), "{many}");
    assert!(refusal(&with(KEY, &[(3, "?")])).contains("give its address, its public key or a database"));
}
