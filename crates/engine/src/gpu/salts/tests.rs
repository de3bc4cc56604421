//! The search for salts on OpenCL for the processor: planted salts, leases that begin and end anywhere, hits that do
//! not fit.

use std::collections::BTreeSet;

use warpsmith_chain::ethereum::Account;
use warpsmith_chain::{Digest, Encoding, Error, Recipe, SaltMask, SaltTarget, Target};
use warpsmith_pattern::{Feature, Interval, Score};

use super::*;
use crate::gpu::tests::pocl;
use crate::samples::Sample;
use crate::selftest::prove;
use crate::space::Subject;

/// Whatever a factory may do, by the target crate's own code.
struct Any(Salted);

impl Target for Any {
    fn name(&self) -> &'static str {
        "any"
    }

    fn encoding(&self) -> &'static Encoding {
        Account.encoding()
    }

    fn encode(&self, digest: &Digest) -> String {
        Account.encode(digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        Account.decode(text)
    }
}

impl SaltTarget for Any {
    fn salted(&self) -> &Salted {
        &self.0
    }

    fn digest(&self, salt: &[u8; 32]) -> Digest {
        Digest::new(&self.0.steps(salt).address)
    }

    fn explain(&self, _salt: &[u8; 32]) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// With a guard that hashes so many bytes before the salt and behind it.
fn salted(mask: &str, guard: Option<(u8, u8)>, create: bool) -> Salted {
    let hashed = |(before, after)| {
        let (before, after) = ((1..=before).collect(), (0x80..0x80 + after).collect());
        Guard::Hashed(Hashed { before, salt: 0..32, after })
    };
    Salted {
        guard: guard.map_or(Guard::None, hashed),
        deployer: std::array::from_fn(|i| 0x40 + i as u8),
        code_hash: std::array::from_fn(|i| 0x90 + i as u8),
        create,
        salt: SaltMask::parse(mask).expect("a mask"),
    }
}

/// A mask with these bytes free and the others fixed.
fn mask(free: &[usize]) -> String {
    (0..32).map(|i| if free.contains(&i) { "??".to_owned() } else { format!("{i:02x}") }).collect()
}

/// Everything a worker finds in a lease, by runs and by single steps; each salt must come once.
fn search(gpu: &Gpu, salted: &Salted, filter: &Filter, lease: Lease) -> BTreeSet<u64> {
    let recipe = Recipe::Salted(salted.clone());
    let search = Search::new(&recipe, filter);
    let mut worker = SaltsWorker::new(gpu, salted, &search).expect("a worker");
    let mut ways = Vec::new();
    for by_step in [true, false] {
        worker.start(Start::Salts(lease)).expect("started");
        let (mut found, mut tried) = (BTreeSet::new(), 0);
        loop {
            let batch = if by_step { worker.step() } else { worker.run() }.expect("it runs");
            tried += u128::from(batch.tried);
            for hit in batch.hits {
                let Spot::Salt(counter) = hit.spot else { panic!("{hit:?} is no salt") };
                assert!(found.insert(counter), "{counter} twice");
            }
            if batch.done {
                break;
            }
        }
        assert_eq!(tried, u128::from(lease.last) - u128::from(lease.first) + 1);
        assert!(worker.run().is_ok_and(|b| b.done && b.tried == 0), "the lease is done");
        ways.push(found);
    }
    assert_eq!(ways[0], ways[1]);
    ways.swap_remove(0)
}

fn expected(salted: &Salted, filter: &Filter, lease: Lease) -> BTreeSet<u64> {
    let passes = |&counter: &u64| {
        let salt = salted.salt.fill(&lease.base, counter);
        filter.accepts(&Digest::new(&salted.steps(&salt).address).words())
    };
    (lease.first..=lease.last).filter(passes).collect()
}

/// About one digest in `share`.
fn one_in(share: u64) -> Filter {
    Filter { top: vec![Interval { first: 0, last: u64::MAX / share }], ..Filter::default() }
}

#[test]
fn salts_prove_themselves_on_the_processor() {
    let Some(gpu) = pocl() else { return };
    let any = |mask: &str, guard, create| Box::leak(Box::new(Any(salted(mask, guard, create))));
    let all = "??".repeat(32);
    let behind = any(&all, Some((20, 32)), false);
    for (name, target) in [
        ("create2", any(&all, None, false)),
        ("create3", any(&all, Some((52, 0)), true)),
        ("create2", behind),
    ] {
        let mut cases = 0;
        prove(&gpu, &Sample { name, subject: Subject::Salt(target) }, &mut |test| {
            assert!(test.planted > 2, "{test:?}");
            cases += 1;
        })
        .expect("planted salts come back");
        assert!(cases >= 10, "{cases} kinds of patterns and scores");
    }
}

#[test]
fn every_salt_of_a_lease_is_tested_once_wherever_it_begins_and_ends() {
    let Some(gpu) = pocl() else { return };
    let base = std::array::from_fn(|i| 0xe0 + i as u8);
    let all: Vec<usize> = (0..32).collect();
    let filter = one_in(64);
    let cases: [(&[usize], u64, u64); 7] = [
        (&all, 0, 40_000),
        (&all, 255, 256),
        (&all, u64::MAX - 20_000, u64::MAX),
        (&all, 0x1234_5678_9abc_ffff, 0x1234_5678_9abc_ffff + 16_384),
        (&[3], 0, 255),
        (&[0, 30], 77, 65_535),
        (&[1, 9, 17], 0xff_8000, 0xff_ffff),
    ];
    for (free, first, last) in cases {
        let salted = salted(&mask(free), None, false);
        let lease = Lease { base, first, last };
        let found = search(&gpu, &salted, &filter, lease);
        assert_eq!(found, expected(&salted, &filter, lease), "{first}..={last} in {free:?}");
    }
}

/// A factory that takes fewer bytes than CREATE2 does, at the end of a word or at its start.
#[test]
fn a_part_of_the_salt_is_hashed_where_the_factory_takes_no_more() {
    let Some(gpu) = pocl() else { return };
    for (own, before, after) in [(20..32, 20, 0), (0..12, 5, 32)] {
        let hashed = Hashed { before: vec![0xbe; before], salt: own.clone(), after: vec![0xaf; after] };
        let salt = SaltMask::within(&[0; 32], own);
        let salted = Salted { guard: Guard::Hashed(hashed), salt, ..salted(&"??".repeat(32), None, false) };
        let lease = Lease { base: [7; 32], first: 65_000, last: 75_000 };
        let filter = one_in(64);
        assert_eq!(search(&gpu, &salted, &filter, lease), expected(&salted, &filter, lease));
    }
}

#[test]
fn hits_that_do_not_fit_are_found_in_pieces() {
    let Some(gpu) = pocl() else { return };
    let salted = salted(&mask(&[5, 6, 7, 8]), Some((20, 0)), false);
    let lease = Lease { base: [7; 32], first: 1_000_003, last: 1_000_003 + 50_000 };
    // Every salt passes, or every second one: more than a launch has room for, and more than a piece.
    for share in [1, 2] {
        let filter = one_in(share);
        assert_eq!(search(&gpu, &salted, &filter, lease), expected(&salted, &filter, lease));
    }
}

#[test]
fn a_search_for_the_best_tells_the_best_and_what_is_raised_stays_raised() {
    let Some(gpu) = pocl() else { return };
    let salted = salted(&mask(&[29, 30, 31]), None, true);
    let lease = Lease { base: [9; 32], first: 13, last: 30_000 };
    let recipe = Recipe::Salted(salted.clone());
    let score = |counter: u64| {
        let salt = salted.salt.fill(&lease.base, counter);
        Score::from(Feature::Zeros).of(&Digest::new(&salted.steps(&salt).address))
    };
    let best = (lease.first..=lease.last).map(score).max().expect("some");
    for at_least in [1, best, best + 1] {
        let filter = Filter::scored(Feature::Zeros, at_least);
        let search = Search::new(&recipe, &filter);
        let mut worker = SaltsWorker::new(&gpu, &salted, &search).expect("a worker");
        worker.start(Start::Salts(lease)).expect("started");
        let mut told = BTreeSet::new();
        loop {
            let batch = worker.step().expect("a step");
            for hit in &batch.hits {
                let Spot::Salt(counter) = hit.spot else { panic!("{hit:?}") };
                assert_eq!(hit.score, score(counter));
                assert!(hit.score >= at_least && told.insert(hit.score), "{hit:?}");
            }
            if batch.done {
                break;
            }
        }
        assert_eq!(told.last().copied(), (best >= at_least).then_some(best));
        worker.raise(best + 1).expect("raised");
        worker.start(Start::Salts(lease)).expect("started");
        assert!(worker.run().expect("it runs").hits.is_empty());
    }
}
