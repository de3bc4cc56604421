//! The point walk on OpenCL for the processor: planted keys, hits that do not fit, lanes that meet their table.

use std::collections::HashSet;

use warpsmith_chain::Target;
use warpsmith_pattern::{Feature, Options, compile};

use warpsmith_chain::coin::{AddressType, BITCOIN};
use warpsmith_chain::ethereum::{Account, Contract};
use warpsmith_chain::{KeyTarget, PublicPoint, Recipe};

use super::*;
use crate::gpu::tests::{assert_faults_are_found, assert_flood, pocl};
use crate::origin::public_point;
use crate::samples::Sample;
use crate::selftest::prove;
use crate::space::Subject;
use crate::worker::trial::{assert_lanes_begin_anew, key_at, place, small, starts};
use crate::worker::{Backend, Start, Worker};

/// A worker for one prefix.
fn worker<'a>(gpu: &'a Gpu, target: &dyn KeyTarget, prefix: &str) -> (PointsWorker<'a>, Filter) {
    let patterns = compile([prefix], target, &Options::default()).expect("possible");
    let recipe = Recipe::Key(target.form());
    let filter = patterns.filter(gpu.max_false(&recipe));
    let search = Search::new(&recipe, &filter);
    (super::worker(gpu, &search).expect("a worker"), filter)
}

#[test]
fn accounts_and_contracts_prove_themselves_on_the_processor() {
    let Some(gpu) = pocl() else { return };
    let contract = Box::leak(Box::new(Contract::new(300).expect("possible")));
    for (name, target) in [("eth", &Account as &'static dyn KeyTarget), ("contract", contract)] {
        let mut cases = 0;
        prove(&gpu, &Sample { name, subject: Subject::Key(target) }, &mut |test| {
            assert!(test.planted >= 5, "{test:?}");
            cases += 1;
        })
        .expect("planted keys come back");
        assert!(cases >= 10, "{cases} kinds of patterns and scores");
    }
}

#[test]
fn walks_that_go_astray_are_found_out() {
    let Some(gpu) = pocl() else { return };
    let (mut worker, _) = worker(&gpu, &Account, "7777777777");
    assert_faults_are_found(&mut worker, |worker| worker.flights.steps = 1);
}

#[test]
fn lanes_begin_anew_while_launches_are_under_way() {
    let Some(gpu) = pocl() else { return };
    let (mut worker, _) = worker(&gpu, &Account, "7e");
    worker.watch.every(1);
    assert_lanes_begin_anew(&mut worker, &Account, ("0x7", 2f64.powi(-8)), |worker| {
        worker.flights.steps = 2;
        worker.run().expect("honest")
    });
}

#[test]
fn hits_that_do_not_fit_are_found_by_walking_again() {
    let Some(gpu) = pocl() else { return };
    let (mut worker, _) = worker(&gpu, &Account, "7");
    let (origins, points) = starts(worker.shape.lanes, None);
    worker.start(Start::Points(&points)).expect("started");
    // Eight steps of 64 lanes and 198 keys hold about 6,300 accounts that begin with 7: more than the buffer.
    worker.flights.steps = 8;
    worker.take_off().expect("launched");
    let batch = worker.land().expect("landed");
    assert_flood(&batch, 1.0 / 16.0);
    let numbering = worker.numbering().expect("a walk");
    for hit in batch.hits.iter().step_by(97) {
        let key = key_at(&origins, &place(hit), numbering.half);
        let text = Account.encode(&Account.digest(&public_point(&key.public_key())));
        assert!(text.starts_with("0x7"), "{text}");
    }
    // And the walk goes on from where the launch ended.
    let next = worker.step().expect("a step");
    assert!(!next.hits.is_empty() && next.hits.iter().all(|h| place(h).step == 8));
}

/// Every key of some lanes and steps that the filter accepts, by the target's own code.
fn reference(
    gpu: &Gpu,
    target: &dyn KeyTarget,
    points: &[Affine],
    lanes: &[u32],
    steps: u64,
    filter: &Filter,
) -> HashSet<Place> {
    let mut found = HashSet::new();
    let mut at = Lanes::new(gpu);
    at.begin(points);
    let signs = target.form().signs();
    for &lane in lanes {
        for step in 0..steps {
            let centre = at.centre(lane, step);
            for index in 0..=gpu.shape.spec.group {
                for minus in [false, true] {
                    if index == 0 && minus {
                        continue;
                    }
                    let way = group::multiply(Scalar::from_u64(u64::from(index)), Some(Affine::G));
                    let way = if minus { way.map(Affine::negate) } else { way };
                    let Some(point) = group::add(centre, way) else { continue };
                    for image in 0..3 {
                        for negate in [false, true].into_iter().take(if signs { 2 } else { 1 }) {
                            let key = point.endomorphism(image);
                            let key = if negate { key.negate() } else { key };
                            let point = PublicPoint { x: key.x.to_be_bytes(), y: key.y.to_be_bytes() };
                            if filter.accepts(&target.digest(&point).words()) {
                                found.insert(Place { lane, step, index, minus, orbit: 0, image, negate });
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

/// A lane whose centre meets the table is walked on the processor, and all lanes go on rightly.
#[test]
fn lanes_that_meet_their_table_are_made_good() {
    let Some(gpu) = pocl() else { return };
    let (mut worker, filter) = worker(&gpu, &Account, "ab");
    // Lane 0 begins at 5 G, an entry of its own table.
    let (_, points) = starts(worker.shape.lanes, Some(small(5)));
    worker.start(Start::Points(&points)).expect("started");
    let mut hits = Vec::new();
    for _ in 0..2 {
        hits.extend(worker.step().expect("a step").hits);
    }
    // Two launches in flight, of two steps each.
    worker.start(Start::Points(&points)).expect("started");
    worker.flights.steps = 2;
    worker.take_off().expect("launched");
    worker.take_off().expect("launched");
    let together = worker.land().expect("landed");
    assert_eq!(together.tried, 4 * u64::from(worker.shape.lanes) * worker.quest.keys());
    hits.extend(worker.step().expect("a step").hits.into_iter().filter(|h| place(h).step < 2));
    let found: HashSet<Place> = together.hits.iter().map(place).collect();
    assert_eq!(found.len(), together.hits.len(), "each once");
    let expected = reference(&gpu, &Account, &points, &[0, 1, 63], 4, &filter);
    let of = |lane: u32, places: &HashSet<Place>| -> HashSet<Place> {
        places.iter().copied().filter(|p| p.lane == lane).collect()
    };
    for lane in [0, 1, 63] {
        assert_eq!(of(lane, &found), of(lane, &expected), "lane {lane}");
    }
    let first: HashSet<Place> = hits.iter().map(place).collect();
    let early = |places: &HashSet<Place>| -> HashSet<Place> {
        places.iter().copied().filter(|p| p.step < 2).collect()
    };
    assert_eq!(early(&first), early(&found), "step by step or together");
}

/// Where even a block of lanes overflows, and where a search for the best has to walk a lane on the processor.
#[test]
fn the_processor_finds_what_the_device_leaves() {
    let Some(gpu) = pocl() else { return };
    let recipe = Recipe::Key(Form::Account);
    let filter = Filter::scored(Feature::Zeros, 1);
    let mut worker = super::worker(&gpu, &Search::new(&recipe, &filter)).expect("a worker");
    let (_, points) = starts(worker.shape.lanes, Some(small(5)));
    worker.start(Start::Points(&points)).expect("started");
    let hits = worker.step().expect("a step").hits;
    let scores: HashSet<u32> = hits.iter().map(|h| h.score).collect();
    let best = *scores.iter().max().expect("some account has a zero byte");
    // Lane 0 is the processor's: its best is among them, or a lane of the device has a better one.
    let lane = reference(&gpu, &Account, &points, &[0], 1, &Filter::scored(Feature::Zeros, 0));
    assert_eq!(lane.len() as u64, worker.quest.keys() - 6, "all but the point at infinity");
    let known = reference(&gpu, &Account, &points, &[0], 1, &Filter::scored(Feature::Zeros, best + 1));
    assert!(known.is_empty(), "{known:?} beat {best}");
    worker.raise(21).expect("raised");
    assert!(worker.step().expect("a step").hits.is_empty(), "no account has 21 zero bytes");
}

/// Every key of some lanes that a Bitcoin filter accepts comes back once, with the sign whose address it is: by the device,
/// and where a lane meets its table by the processor.
#[test]
fn bitcoin_addresses_are_found_with_their_signs() {
    let Some(gpu) = pocl() else { return };
    let many = ["1A", "1C", "1E", "1G", "1K"];
    let cases: [(AddressType, &[&str]); 8] = [
        (AddressType::P2pkh, &["1B"]),
        (AddressType::P2pkh, &many),
        (AddressType::P2wpkh, &["bc1qq"]),
        (AddressType::P2wpkh, &["..7"]),
        (AddressType::P2pkhUncompressed, &["1B"]),
        (AddressType::P2sh, &["3A"]),
        (AddressType::P2tr, &["bc1pq"]),
        (AddressType::P2tr, &["..7"]),
    ];
    for (address_type, patterns) in cases {
        let target = BITCOIN.main(address_type);
        let compiled = compile(patterns, &target, &Options::default()).expect("possible");
        let recipe = Recipe::Key(target.form());
        let filter = compiled.filter(gpu.max_false(&recipe));
        let search = Search::new(&recipe, &filter);
        let mut worker = super::worker(&gpu, &search).expect("a worker");
        // Lane 0 meets its table from the first start.
        for scalar in [5, 0x1234_5678_9abc] {
            let (_, points) = starts(worker.shape.lanes, Some(small(scalar)));
            worker.start(Start::Points(&points)).expect("started");
            let mut found = HashSet::new();
            for _ in 0..2 {
                let batch = worker.step().expect("a step");
                assert_eq!(batch.tried, u64::from(worker.shape.lanes) * worker.quest.keys());
                for hit in &batch.hits {
                    assert!(found.insert(place(hit)), "{hit:?} twice");
                }
            }
            let lanes = [0, 1, worker.shape.lanes - 1];
            let expected = reference(&gpu, &target, &points, &lanes, 2, &filter);
            assert!(expected.len() > 3, "{patterns:?}: {}", expected.len());
            let of_lanes = found.into_iter().filter(|p| lanes.contains(&p.lane)).collect();
            assert_eq!(expected, of_lanes, "{address_type:?} {patterns:?} from {scalar}");
        }
    }
}
