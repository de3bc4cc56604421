//! The GPU worker on OpenCL for the processor: planted keys, hits that do not fit, lanes that meet their table.

use std::collections::HashSet;
use std::sync::Arc;

use warpsmith_chain::coin::{AddressType, BITCOIN, CoinAddress};
use warpsmith_chain::nostr::Npub;
use warpsmith_chain::{Form, KeyTarget, Recipe, find};
use warpsmith_device::{CardOptions, Inline};
use warpsmith_pattern::{Interval, Options as PatternOptions, compile};

use super::*;
use crate::worker::measure::Measure;
use crate::worker::trial::{assert_lanes_begin_anew, key_at, place, small, starts};
use crate::worker::{Backend, Search, Start, Worker};

use crate::gpu::CAPACITY;
use crate::gpu::tests::{assert_faults_are_found, assert_flood, pocl};
use crate::origin::public_point;
use crate::samples::Sample;
use crate::selftest::prove;
use crate::space::Subject;

/// Prefixes by this walk; what is decided elsewhere by the point walk, which the device turns to.
#[test]
fn npubs_and_untweaked_taproot_keys_prove_themselves_on_the_processor() {
    let Some(gpu) = pocl() else { return };
    static RAWTR: CoinAddress = BITCOIN.main(AddressType::Rawtr);
    for (name, target) in [("npub", &Npub as &'static dyn KeyTarget), ("btc-rawtr", &RAWTR)] {
        let mut cases = 0;
        prove(&gpu, &Sample { name, subject: Subject::Key(target) }, &mut |test| {
            assert!(test.planted > 5, "{test:?}");
            cases += 1;
        })
        .expect("planted keys come back");
        assert!(cases >= 7, "prefix, suffix, both, contains, wildcard, regex, many prefixes");
    }
}

#[test]
fn hits_that_do_not_fit_are_found_by_walking_again() {
    let Some(gpu) = pocl() else { return };
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["q"], target, &PatternOptions::default()).expect("possible");
    let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
    let mut worker = worker(&gpu, &filter).expect("a worker");
    let (origins, points) = starts(worker.shape.lanes, None);
    worker.start(Start::Points(&points)).expect("started");
    // Ten steps of 64 lanes and 291 keys hold about 5,800 keys that begin with q: more than the buffer.
    worker.flights.steps = 10;
    worker.take_off().expect("launched");
    let batch = worker.land().expect("landed");
    assert_flood(&batch, 1.0 / 32.0);
    let numbering = worker.numbering().expect("a walk");
    for hit in batch.hits.iter().step_by(97) {
        let key = key_at(&origins, &place(hit), numbering.half);
        let text = target.encode(&target.digest(&public_point(&key.public_key())));
        assert!(text.starts_with("npub1q"), "{text}");
    }
    // And the walk goes on from where the launch ended.
    let next = worker.step().expect("a step");
    assert!(next.hits.iter().all(|h| place(h).step == 10));
}

/// A lane whose centre meets the table is walked on the processor, and all lanes go on rightly.
#[test]
fn lanes_that_meet_their_table_are_made_good() {
    let Some(gpu) = pocl() else { return };
    steps_agree_with_the_portable_walk(&gpu, &["qq"], None);
}

/// The same with a set, whose survivors and candidates are settled by a second kernel.
#[test]
fn a_set_agrees_with_the_portable_walk() {
    let Some(gpu) = pocl() else { return };
    steps_agree_with_the_portable_walk(&gpu, &SIX, None);
}

/// And when they do not fit: the lists are too short for a step of one block.
#[test]
fn survivors_that_do_not_fit_are_found_by_walking_again() {
    let Some(gpu) = pocl() else { return };
    steps_agree_with_the_portable_walk(&gpu, &SIX, Some((3, u32::MAX)));
    steps_agree_with_the_portable_walk(&gpu, &SIX, Some((u32::MAX, 3)));
}

/// A lane that meets its table in a launch whose hits do not fit is put back as well: it goes on where it belongs, and the
/// device is not blamed for where it stood.
#[test]
fn lanes_that_meet_their_table_are_put_back_when_hits_do_not_fit() {
    let Some(gpu) = pocl() else { return };
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["q"], target, &PatternOptions::default()).expect("possible");
    let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
    let mut worker = worker(&gpu, &filter).expect("a worker");
    // Lane 0 begins at 5 G, an entry of its own table.
    let (_, points) = starts(worker.shape.lanes, Some(small(5)));
    worker.start(Start::Points(&points)).expect("started");
    worker.flights.steps = 10;
    worker.take_off().expect("launched");
    worker.take_off().expect("launched");
    assert!(worker.land().expect("landed").hits.len() > CAPACITY as usize);
    let (hits, step) = (worker.step().expect("a step").hits, worker.lanes.step() - 1);
    assert_eq!(worker.check(), Ok(()));
    let mut walk = Walk::new(gpu.table(), &[worker.lanes.centre(0, step)]);
    let mut expected = Vec::new();
    walk.group(&sieve(&filter), &mut expected);
    let expected: HashSet<Place> = expected.iter().map(|h| Place { lane: 0, step, ..h.place }).collect();
    let found: HashSet<Place> = hits.iter().map(place).filter(|p| p.lane == 0).collect();
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
}

/// More than are compared one by one.
const SIX: [&str; 6] = ["qq", "pp", "2z", "rr", "7l", "mu"];

/// Walks some steps from a point whose lane 0 meets its table at once, with lists of these lengths in place of the usual.
fn steps_agree_with_the_portable_walk(gpu: &Gpu, prefixes: &[&str], lists: Option<(u32, u32)>) {
    let target = find("npub").expect("npub is a target");
    let patterns = compile(prefixes.iter().copied(), target, &PatternOptions::default()).expect("possible");
    let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
    let mut worker = super::worker(gpu, &filter).expect("a worker");
    if let (Some((survivors, candidates)), Some(settle)) = (lists, &mut worker.quest.settle) {
        settle.shorten(survivors, candidates);
    }
    // Lane 0 begins at 5 G, an entry of its own table.
    let (_, points) = starts(worker.shape.lanes, Some(small(5)));
    worker.start(Start::Points(&points)).expect("started");
    let mut hits = Vec::new();
    let mut tried = 0;
    for _ in 0..4 {
        let batch = worker.step().expect("a step");
        tried += batch.tried;
        hits.extend(batch.hits);
    }
    assert_eq!(tried, 4 * u64::from(worker.shape.lanes) * worker.quest.keys());
    let found: HashSet<Place> = hits.iter().map(place).collect();
    assert_eq!(found.len(), hits.len(), "each once");
    // The portable walk of some lanes as the reference.
    for lane in [0u32, 1, 8, worker.shape.lanes - 1] {
        let mut walk = Walk::new(gpu.table(), &[Some(points[lane as usize])]);
        let mut expected = Vec::new();
        for _ in 0..4 {
            walk.group(&sieve(&filter), &mut expected);
        }
        let expected: HashSet<Place> = expected.iter().map(|h| Place { lane, ..h.place }).collect();
        let got: HashSet<Place> = found.iter().copied().filter(|p| p.lane == lane).collect();
        assert_eq!(got, expected, "lane {lane}");
    }
}

#[test]
fn walks_that_go_astray_are_found_out() {
    let Some(gpu) = pocl() else { return };
    let target = find("npub").expect("npub is a target");
    // With a few ranges, and with a set, which has a second kernel.
    for prefixes in [&["qqqqqqqq"][..], &["qqqqqqq", "ppppppp", "2222222", "rrrrrrr", "7777777"]] {
        let patterns =
            compile(prefixes.iter().copied(), target, &PatternOptions::default()).expect("possible");
        let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
        let mut worker = worker(&gpu, &filter).expect("a worker");
        assert_faults_are_found(&mut worker, |worker| worker.flights.steps = 2);
    }
}

/// With launches of a few steps, two of them under way; with a set, which has a second kernel; and with so many hits that
/// launches are done again.
#[test]
fn lanes_begin_anew_while_launches_are_under_way() {
    let Some(gpu) = pocl() else { return };
    let target = find("npub").expect("npub is a target");
    for (prefixes, steps) in [(&["qq"][..], 3), (&["qqp", "qqz", "qqr", "qqy", "qq9"], 7), (&["q"], 10)] {
        let patterns =
            compile(prefixes.iter().copied(), target, &PatternOptions::default()).expect("possible");
        let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
        let mut worker = worker(&gpu, &filter).expect("a worker");
        worker.watch.every(1);
        let start = format!("npub1{}", if steps == 10 { "q" } else { "qq" });
        assert_lanes_begin_anew(&mut worker, target, (&start, patterns.odds()), |worker| {
            worker.flights.steps = steps;
            worker.run().expect("honest")
        });
    }
}

/// A lane that met its table stands still until it is put where it belongs: its end is not held against the device.
#[test]
fn lanes_that_meet_their_table_are_not_astray() {
    let Some(gpu) = pocl() else { return };
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["qqqqqqqq"], target, &PatternOptions::default()).expect("possible");
    let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
    let mut worker = worker(&gpu, &filter).expect("a worker");
    worker.watch.every(1);
    // Lane 0 begins at 5 G, an entry of its own table.
    let (_, points) = starts(worker.shape.lanes, Some(small(5)));
    worker.start(Start::Points(&points)).expect("started");
    for _ in 0..6 {
        worker.flights.steps = 1;
        worker.run().expect("honest");
    }
    assert_eq!(worker.check(), Ok(()));
}

/// Helpers out of line are the same search.
#[test]
fn helpers_out_of_line_find_the_same() {
    let Some(gpu) = pocl() else { return };
    let gpu = Gpu::with_shape(Arc::clone(&gpu.device), gpu.shape, Inline::No);
    assert!(!gpu.shape.spec.inline && gpu.describe().contains("out of line"));
    // The programs that hash are made of the same helpers, and on a processor their self-tests take minutes.
    let mut cases = 0;
    prove(&gpu, &Sample { name: "npub", subject: Subject::Key(&Npub) }, &mut |test| {
        cases += usize::from(test.planted > 0);
    })
    .expect("planted keys come back");
    assert!(cases >= 4);
}

/// Launches are as long as was asked for: a thousandth of a second has fewer steps than a whole one.
#[test]
fn launches_are_as_long_as_asked_for() {
    let Some(gpu) = pocl() else { return };
    let steps = [1, 1000].map(|launch_ms| {
        let options = CardOptions { launch_ms, ..CardOptions::default() };
        let gpu = Gpu::with_shape(Arc::clone(&gpu.device), gpu.shape, options);
        let nothing = Filter { top: vec![Interval { first: 0, last: 0 }], ..Filter::default() };
        let mut worker = worker(&gpu, &nothing).expect("a worker");
        let (_, points) = starts(worker.shape.lanes, None);
        worker.start(Start::Points(&points)).expect("started");
        (0..4).for_each(|_| drop(worker.run().expect("honest")));
        worker.flights.steps
    });
    assert!(steps[0] < steps[1], "{steps:?}");
}

#[test]
fn the_parts_of_a_search_are_told_apart() {
    let Some(gpu) = pocl() else { return };
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["qqqqqq"], target, &PatternOptions::default()).expect("possible");
    let filter = patterns.filter(gpu.max_false(&Recipe::Key(Form::X)));
    let search = Search::new(&Recipe::Key(Form::X), &filter);
    let profile = gpu.profile(&search).expect("a card").expect("measured");
    let names: Vec<&str> = profile.parts.iter().map(|part| part.name).collect();
    assert_eq!(names, ["walk", "words", "filter"]);
    assert!(profile.parts[0].picoseconds > 0.0 && profile.launch_ms > 0.0, "{profile:?}");
    assert_eq!(profile.occupancy(), None, "OpenCL does not tell");
    // A set is one program whole, and what hashes points is two.
    let many: Vec<String> =
        (0..9).map(|n| format!("q{}pq", "qpzry9x8g".chars().nth(n).expect("nine"))).collect();
    let set = compile(many.iter().map(String::as_str), target, &PatternOptions::default()).expect("possible");
    let set = set.filter(gpu.max_false(&Recipe::Key(Form::X)));
    let profile = gpu.profile(&Search::new(&Recipe::Key(Form::X), &set)).expect("a card").expect("measured");
    assert_eq!(profile.parts.len(), 1, "{profile:?}");
    let accounts = Recipe::Key(Form::Account);
    let profile = gpu.profile(&Search::new(&accounts, &filter)).expect("a card").expect("measured");
    let names: Vec<&str> = profile.parts.iter().map(|part| part.name).collect();
    assert_eq!(names, ["walk", "hash"]);
}
