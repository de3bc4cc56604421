//! Every candidate of a step against the target's own code, for every recipe that hashes or tweaks points.

use std::collections::BTreeMap;

use warpsmith_curve::Scalar;
use warpsmith_pattern::{Filter, Interval, Options, compile};

use super::*;
use crate::origin::Secret;
use crate::recover::recompute;
use crate::samples::samples;
use crate::space::{Root, Subject};
use crate::worker::Start;
use crate::worker::trial::{assert_lanes_begin_anew, place, small, starts};

/// All candidates of the first steps from origins of which the first is known: each once, and those looked at with the right
/// digest.
fn check(simd: Simd, name: &str, subject: Subject<'_>, secret: Secret, steps: u64, stride: usize) {
    let recipe = subject.recipe();
    let cpu = Cpu::new(simd, 1);
    let everything = Filter { top: vec![Interval { first: 0, last: u64::MAX }], ..Filter::default() };
    let mut worker = cpu.worker(&Search::new(&recipe, &everything)).expect("a worker");
    let numbering = worker.numbering().expect("a walk");
    let (origins, points) = starts(numbering.lanes, Some(secret));
    worker.start(Start::Points(&points)).expect("started");
    let (mut seen, mut tried) = (BTreeMap::new(), 0);
    for _ in 0..steps {
        let batch = worker.step().expect("a step");
        tried += batch.tried;
        for hit in batch.hits {
            assert_eq!(seen.insert(hit.spot, hit), None, "{simd} {name}: {:?} twice", hit.spot);
        }
    }
    assert_eq!(tried, seen.len() as u64, "{simd} {name}");
    // Infinity, met by small origins only, is no key.
    let keys = numbering.keys_per_step() * steps;
    assert!(tried <= keys && keys - tried <= 6, "{simd} {name}: {tried} of {keys}");
    for hit in seen.values().step_by(stride) {
        let source = Root::Origin(origins.of(place(hit).lane).expect("a lane"));
        let expected = recompute(&source, Some(&numbering), hit, subject);
        let (digest, _) = expected.unwrap_or_else(|e| panic!("{simd} {name}: {e}"));
        assert_eq!(hit.digest, Some(digest), "{simd} {name}: {:?}", hit.spot);
    }
}

#[test]
fn candidates_have_the_digests_of_their_targets() {
    for simd in simd::available() {
        for sample in samples() {
            let Subject::Key(target) = sample.subject else { continue };
            if target.form() == Form::X {
                continue;
            }
            // Every lane, sign and image over the list: the stride is no divisor of anything.
            let stride = if dispatch::lane_count(simd) > 1 { 31 } else { 7 };
            check(simd, sample.name, sample.subject, Secret::random().expect("random"), 2, stride);
        }
    }
}

#[test]
fn candidates_around_the_table_and_infinity_are_exact() {
    let minus = |k: u64| Secret::from_bytes(&Scalar::from_u64(k).negate().to_be_bytes()).expect("a key");
    let half = u64::from(HALF);
    for simd in simd::available() {
        for sample in samples().into_iter().filter(|sample| sample.name.starts_with("btc")) {
            if sample.subject.recipe() == Recipe::Key(Form::X) {
                continue;
            }
            // A centre on an entry, one beside infinity, and one whose next centre is infinity.
            for secret in [small(1), small(half), minus(3), minus(2 * half + 1)] {
                check(simd, sample.name, sample.subject, secret, 2, 331);
            }
        }
    }
}

/// A bit of a centre that flips on the way is found by every kind of walk at its next check, and by no walk without one.
#[test]
fn a_walk_that_goes_astray_is_found_out() {
    let nothing = Filter { top: vec![Interval { first: 0, last: 0 }], ..Filter::default() };
    for simd in simd::available() {
        let cpu = Cpu::new(simd, 1);
        let lanes = cpu.numbering().lanes;
        for (n, recipe) in [Recipe::Key(Form::X), Recipe::Key(Form::Account), Recipe::Key(Form::Taproot)]
            .into_iter()
            .enumerate()
        {
            let mut worker = cpu.worker(&Search::new(&recipe, &nothing)).expect("a worker");
            let start = |worker: &mut dyn Worker| {
                let (_, points) = starts(lanes, None);
                worker.start(Start::Points(&points)).expect("started");
            };
            start(worker.as_mut());
            let step = worker.step().expect("a step").tried;
            assert_eq!((worker.check(), worker.unproved()), (Ok(()), step));
            // The third step is the first to be checked: steps of an origin left behind are among those.
            start(worker.as_mut());
            worker.flip(lanes - 1, 100 + 200 * n as u32, 3);
            worker.step().expect("not looked at yet");
            assert_eq!(worker.unproved(), 2 * step);
            let told = worker.step().expect_err("a bit was flipped");
            assert!(told.contains(&format!("1 of {lanes} lane")), "{simd} {recipe:?}: {told}");
            assert_eq!(worker.check(), Err(told));
        }
    }
}

/// Lanes that begin anew after each of their hits, by a walk of each kind.
#[test]
fn lanes_begin_anew() {
    for simd in simd::available() {
        let cpu = Cpu::new(simd, 1);
        for (name, prefix, start) in
            [("npub", "qq", "npub1qq"), ("npub", "qqq", "npub1qqq"), ("eth", "7e78", "0x7")]
        {
            let target = warpsmith_chain::find(name).expect("a target");
            let patterns = compile([prefix], target, &Options::default()).expect("possible");
            let recipe = Recipe::Key(target.form());
            let filter = patterns.filter(0.0);
            let mut worker = cpu.worker(&Search::new(&recipe, &filter)).expect("a worker");
            assert_lanes_begin_anew(worker.as_mut(), target, (start, patterns.odds()), |worker| {
                worker.run().expect("honest")
            });
        }
    }
}

/// A check that finds everything right confirms what was tried before it.
#[test]
fn checks_come_by_themselves_and_confirm() {
    let nothing = Filter { top: vec![Interval { first: 0, last: 0 }], ..Filter::default() };
    let cpu = Cpu::new(simd::detect(), 1);
    let mut worker = cpu.worker(&Search::new(&Recipe::Key(Form::X), &nothing)).expect("a worker");
    let (_, points) = starts(cpu.numbering().lanes, None);
    worker.start(Start::Points(&points)).expect("started");
    let mut unproved = vec![0];
    while unproved.len() < 2 || unproved[unproved.len() - 1] > 0 {
        let tried = worker.step().expect("a step").tried;
        unproved.push(worker.unproved());
        let [before, now] = unproved[unproved.len() - 2..] else { unreachable!() };
        assert!(now == 0 || now == before + tried);
        assert!(unproved.len() < 2000, "no check in so many steps");
    }
}
