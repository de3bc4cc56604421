//! The orbit walk as host C under sanitizers, against k256.

use std::collections::HashSet;

use crate::support::{HostProgram, Point, Random, beta, from_limbs, lambda, limbs, p, point};
use k256::Scalar;
use num_bigint::BigUint;
use warpsmith_kernel::abi::{self, Entry, Record};
use warpsmith_kernel::{Spec, Stage, TablePlace, XTest, join, set};

const CAPACITY: u32 = 8192;

/// A program with the kernels of one spec.
struct Program {
    host: HostProgram,
    group: u32,
    is_set: bool,
}

/// What a walk did.
struct Walked {
    /// The centres after it.
    ends: Vec<Point>,
    /// Records counted.
    count: u32,
    /// Blocks of a set whose survivors did not fit.
    lost: u32,
    /// The records there was room for.
    records: Vec<Record>,
}

impl Program {
    /// The search.
    fn build(spec: Spec) -> Self {
        let spec = Spec { ptx: false, table: TablePlace::Global, ..spec };
        let host = HostProgram::build(&join(&spec).text, include_str!("host/driver.c"));
        Self { host, group: spec.group, is_set: matches!(spec.filter, XTest::Set { .. }) }
    }

    /// Runs the walk, and for a set what settles its survivors.
    fn walk(&self, starts: &[Point], steps: u32, filter: &[u32], capacity: u32) -> Walked {
        self.walk_with_lists(starts, steps, filter, capacity, (CAPACITY, CAPACITY))
    }

    /// The same with room for so many survivors and candidates a block.
    fn walk_with_lists(
        &self,
        starts: &[Point],
        steps: u32,
        filter: &[u32],
        capacity: u32,
        (survivors, candidates): (u32, u32),
    ) -> Walked {
        let lanes = starts.len() as u32;
        let mut request = vec![1, lanes, steps, filter.len() as u32, capacity, survivors, candidates, 0];
        for w in 0..16 {
            request.extend(starts.iter().map(|(x, y)| if w < 8 { limbs(x)[w] } else { limbs(y)[w - 8] }));
        }
        request.extend(table(self.group));
        request.extend(filter);
        if self.is_set {
            request.extend(set_points(self.group));
        }
        let answer = self.host.run(&request);
        let (centres, hits) = answer.split_at(abi::centres_words(lanes));
        let n = lanes as usize;
        let word = |lane: usize, at: usize| from_limbs((at..at + 8).map(|w| centres[w * n + lane]));
        let ends = (0..n).map(|lane| (word(lane, 0), word(lane, 8))).collect();
        assert_eq!(hits.len(), abi::hits_words(capacity));
        let written = hits[0].min(capacity) as usize;
        let records = hits[abi::HITS_HEADER..].chunks_exact(abi::HIT_WORDS).take(written);
        let records = records.map(|r| Record::read(r.try_into().unwrap())).collect();
        Walked { ends, count: hits[0], lost: hits[abi::HITS_LOST], records }
    }
}

fn table(group: u32) -> Vec<u32> {
    let (x, y) = point(&Scalar::from(2 * group + 1));
    let mut words = abi::step_entry(&limbs(&x), &limbs(&y)).to_vec();
    for i in 1..=group {
        let (t, y) = point(&Scalar::from(i));
        let square = &t * &t % p();
        let entry = Entry {
            y: limbs(&y),
            t: limbs(&t),
            beta_t: limbs(&(&t * beta() % p())),
            square: limbs(&square),
            beta_square: limbs(&(&square * beta() % p())),
            cube: limbs(&(&square * &t % p())),
        };
        words.extend(entry.words());
    }
    words
}

/// The points a set's second kernel reads.
fn set_points(group: u32) -> Vec<u32> {
    let words = (1..=group).flat_map(|i| {
        let (t, y) = point(&Scalar::from(i));
        let beta_t = &t * beta() % p();
        let beta2_t = &beta_t * beta() % p();
        abi::point_words(&limbs(&t), &limbs(&beta_t), &limbs(&beta2_t), &limbs(&y))
    });
    words.collect()
}

/// The key a hit speaks of, from the scalar of its lane's first centre.
fn key(start: &Scalar, group: u32, hit: &abi::Hit) -> Scalar {
    let offset = lambda(hit.orbit) * Scalar::from(hit.index);
    let centre = start + Scalar::from(hit.step) * Scalar::from(2 * group + 1);
    lambda(hit.image) * if hit.minus { centre - offset } else { centre + offset }
}

/// A filter that accepts everything.
fn all_keys() -> Vec<u32> {
    abi::range_words(&[(0, u64::MAX)])
}

fn top(x: &BigUint) -> u32 {
    limbs(x)[7]
}

#[test]
fn shortened_searches_walk_all_the_same() {
    // What they report means nothing, but their centres must move as those of the whole search.
    let mut random = Random(17);
    let starts: Vec<Scalar> = (0..4).map(|_| random.scalar()).collect();
    let points: Vec<Point> = starts.iter().map(point).collect();
    for stage in [Stage::Walk, Stage::Words] {
        let spec = Spec { group: 4, block: 2, stage, ..Spec::default() };
        let Walked { ends, count, .. } = Program::build(spec).walk(&points, 3, &all_keys(), CAPACITY);
        // One report a sign and entry, and the centre's three.
        assert_eq!(count, 4 * 3 * (2 * 4 + 3));
        for (start, end) in starts.iter().zip(ends) {
            assert_eq!(end, point(&(start + Scalar::from(3 * 9u32))));
        }
    }
}

/// What the true top word minus the computed one may be.
fn bound(filter: XTest) -> std::ops::RangeInclusive<i32> {
    let abi::Bound { below, above } = match filter {
        XTest::Set { near: false } => abi::FINE,
        _ => abi::TOP,
    };
    -(below as i32)..=above as i32
}

fn every_key_is_tested_once(spec: Spec, blocks: u32, everything: &[u32]) {
    let program = Program::build(spec);
    let (lanes, steps) = (spec.block * blocks, 3);
    let mut random = Random(u64::from(spec.group) * 977 + 5);
    let starts: Vec<Scalar> = (0..lanes).map(|_| random.scalar()).collect();
    let points: Vec<Point> = starts.iter().map(point).collect();
    let Walked { ends, count, records, .. } = program.walk(&points, steps, everything, CAPACITY);
    assert_eq!(u64::from(count), u64::from(lanes * steps) * abi::keys_per_step(spec.group));
    let mut seen = HashSet::new();
    for record in records {
        let Record::Hit(hit) = record else { panic!("{record:?}") };
        assert!(
            seen.insert((hit.lane, hit.step, hit.index, hit.minus, hit.orbit, hit.image)),
            "{hit:?} twice"
        );
        let (x, _) = point(&key(&starts[hit.lane as usize], spec.group, &hit));
        let error = top(&x).wrapping_sub(hit.top) as i32;
        assert!(bound(spec.filter).contains(&error), "{hit:?}: {error}");
    }
    for (start, end) in starts.iter().zip(ends) {
        assert_eq!(end, point(&(start + Scalar::from(steps * (2 * spec.group + 1)))));
    }
}

#[test]
fn walk_tests_every_key_once() {
    every_key_is_tested_once(Spec { group: 4, block: 1, ..Spec::default() }, 3, &all_keys());
}

#[test]
fn walk_by_rows_tests_every_key_once() {
    let spec = Spec { group: 3, block: 2, count_carries: false, unroll_signs: true, ..Spec::default() };
    every_key_is_tested_once(Spec { shared_inversion: false, ..spec }, 1, &all_keys());
}

#[test]
fn walk_with_set_filter_tests_every_key_once() {
    for (near, blocks) in [(false, 1), (true, 3)] {
        let spec = Spec { group: 4, block: 2, filter: XTest::Set { near }, ..Spec::default() };
        every_key_is_tested_once(spec, blocks, &everything(near));
    }
}

/// Random keys hardly reach the bound of the finer top words: of 327,680, tried once, 85 were six units off, some of them here.
#[test]
fn finer_top_words_are_as_far_off_as_known_and_within_their_bound() {
    let filter = XTest::Set { near: false };
    let spec = Spec { group: 8, block: 4, filter, ..Spec::default() };
    let mut random = Random(4711);
    let starts: Vec<Scalar> = (0..64).map(|_| random.scalar()).collect();
    // Where those keys were: a start, and how many groups on from it.
    let far = [(0, 25), (1, 9), (1, 23), (2, 13), (3, 12), (4, 6), (55, 37), (55, 38)];
    let centres = far.map(|(start, step)| starts[start] + Scalar::from(step * (2 * spec.group + 1)));
    let points: Vec<Point> = centres.iter().map(point).collect();
    let walked = Program::build(spec).walk(&points, 1, &everything(false), CAPACITY);
    let errors = walked.records.iter().map(|record| {
        let Record::Hit(hit) = record else { panic!("{record:?}") };
        let (x, _) = point(&key(&centres[hit.lane as usize], spec.group, hit));
        top(&x).wrapping_sub(hit.top) as i32
    });
    let errors: Vec<i32> = errors.collect();
    assert!(errors.iter().all(|error| bound(filter).contains(error)), "{errors:?}");
    assert_eq!(
        (errors.iter().min(), errors.iter().max()),
        (Some(&-6), Some(&2)),
        "the walk computes otherwise: look for the farthest keys again"
    );
}

/// A set filter that accepts every key.
fn everything(near: bool) -> Vec<u32> {
    set::build(&[(0, u64::MAX)], (!near).then_some(10)).words
}

/// Keys at every sign, orbit and image, at the first and the last entry and at the centre itself.
fn planted(lanes: u32, steps: u32, group: u32) -> Vec<abi::Hit> {
    let mut plants = Vec::new();
    for (n, index) in [1, group, 0].into_iter().cycle().take(18 * 3).enumerate() {
        let (n, kind) = (n as u32, n as u32 / 3);
        let (minus, orbit, image) =
            (index > 0 && kind % 2 == 1, if index > 0 { kind / 2 % 3 } else { 0 }, kind / 6);
        let (lane, step) = (n % lanes, n / 2 % steps);
        let plant = abi::Hit { lane, step, index, minus, orbit, image, negate: false, open: false, top: 0 };
        plants.push(plant);
    }
    plants.sort();
    plants.dedup();
    plants
}

#[test]
fn set_filter_finds_every_key_it_is_made_of() {
    for near in [false, true] {
        let spec = Spec { group: 8, block: 4, filter: XTest::Set { near }, ..Spec::default() };
        let program = Program::build(spec);
        let mut random = Random(4711);
        let starts: Vec<Scalar> = (0..8).map(|_| random.scalar()).collect();
        let points: Vec<Point> = starts.iter().map(point).collect();
        let hits = |words: &[u32]| -> HashSet<abi::Hit> {
            let walked = program.walk(&points, 3, words, CAPACITY);
            assert_eq!((walked.count as usize, walked.lost), (walked.records.len(), 0));
            let hit = |record: &Record| match record {
                Record::Hit(hit) => *hit,
                Record::Fault { .. } => panic!("{record:?}"),
            };
            walked.records.iter().map(hit).collect()
        };
        let all = hits(&everything(near));
        assert_eq!(all.len() as u64, 8 * 3 * abi::keys_per_step(8));
        // As many words as that are apart: each key is found through its own, however far the computed one is off.
        let words = |x: &BigUint| u64::from(limbs(x)[7]) << 32 | u64::from(limbs(x)[6]);
        let exact = all.iter().map(|hit| words(&point(&key(&starts[hit.lane as usize], spec.group, hit)).0));
        let intervals: Vec<(u64, u64)> = exact.map(|top| (top, top)).collect();
        assert_eq!(hits(&set::build(&intervals, (!near).then_some(27)).words), all);
    }
}

#[test]
fn set_filter_finds_its_keys_and_no_others() {
    for near in [false, true] {
        let spec = Spec { group: 8, block: 4, filter: XTest::Set { near }, ..Spec::default() };
        let program = Program::build(spec);
        let mut random = Random(2024);
        let starts: Vec<Scalar> = (0..8).map(|_| random.scalar()).collect();
        let points: Vec<Point> = starts.iter().map(point).collect();
        let plants = planted(8, 3, 8);
        // Neighbours of the planted keys, each one unit off in the last of 64 bits, must not be found.
        let mut intervals: Vec<(u64, u64)> =
            (0..500).map(|_| u64::from(random.next()) << 32).map(|a| (a, a)).collect();
        let mut decoys = Vec::new();
        for plant in &plants {
            let (x, _) = point(&key(&starts[plant.lane as usize], spec.group, plant));
            let x = limbs(&x);
            let top = u64::from(x[7]) << 32 | u64::from(x[6]);
            intervals.push((top, top));
            decoys.push((top ^ 1, top ^ 1));
        }
        let plants: HashSet<abi::Hit> = plants.into_iter().collect();
        // A coarse bitmap lets nearly all keys survive, which the second kernel must sort out.
        let sizes = if near { vec![None] } else { vec![Some(8), Some(20), Some(27)] };
        for far_bits in sizes {
            let walked = program.walk(&points, 3, &set::build(&intervals, far_bits).words, CAPACITY);
            let found: HashSet<abi::Hit> = walked
                .records
                .iter()
                .map(|r| match r {
                    Record::Hit(hit) => abi::Hit { top: 0, ..*hit },
                    Record::Fault { .. } => panic!("{r:?}"),
                })
                .collect();
            assert_eq!(found, plants);
            assert_eq!((walked.count as usize, walked.lost), (plants.len(), 0));
            let nothing = program.walk(&points, 3, &set::build(&decoys, far_bits).words, CAPACITY);
            assert_eq!((nothing.count, nothing.lost), (0, 0));
        }
    }
}

#[test]
fn full_lists_of_a_set_are_reported_and_not_written_past() {
    let spec = Spec { group: 2, block: 2, filter: XTest::Set { near: false }, ..Spec::default() };
    let program = Program::build(spec);
    let mut random = Random(77);
    let points: Vec<Point> = (0..4).map(|_| point(&random.scalar())).collect();
    // Two lanes of a block with two entries and two signs each: eight survivors a step, two more places show that there
    // are no more, and 144 candidates in two steps.
    for (lists, lost) in
        [((2, 144), 2), ((8, 144), 2), ((9, 144), 2), ((10, 143), 2), ((10, 144), 0), ((11, 500), 0)]
    {
        let walked = program.walk_with_lists(&points, 2, &everything(false), CAPACITY, lists);
        let keys = u64::from(2 - lost) * 4 * abi::keys_per_step(2);
        assert_eq!((walked.lost, u64::from(walked.count)), (lost, keys), "{lists:?}");
    }
    // An empty set, and lists it leaves empty.
    let walked = program.walk_with_lists(&points, 1, &set::build(&[], Some(10)).words, CAPACITY, (2, 0));
    assert_eq!((walked.lost, walked.count), (0, 0));
}

#[test]
fn walk_with_shared_inversion_tests_every_key_once() {
    let filter = XTest::Range { count: 4 };
    let spec = Spec { group: 8, block: 4, filter, count_carries: true, ..Spec::default() };
    let ranges = [(5 << 32, 12 << 32), (0, u64::MAX), (0, 0), (1 << 32, 2 << 32)];
    every_key_is_tested_once(spec, 2, &abi::range_words(&ranges));
}

#[test]
fn planted_key_is_found_exactly_once() {
    let spec = Spec { group: 8, block: 2, ..Spec::default() };
    let program = Program::build(spec);
    let (lanes, steps) = (4, 3);
    let mut random = Random(99);
    let starts: Vec<Scalar> = (0..lanes).map(|_| random.scalar()).collect();
    let points: Vec<Point> = starts.iter().map(point).collect();
    let mut plants = Vec::new();
    for (lane, step, index) in [(0, 0, 1), (3, 2, 8), (1, 1, 4), (2, 2, 0)] {
        for minus in [false, true] {
            for orbit in 0..3 {
                for image in 0..3 {
                    if index > 0 || (!minus && orbit == 0) {
                        plants.push(abi::Hit {
                            lane,
                            step,
                            index,
                            minus,
                            orbit,
                            image,
                            negate: false,
                            open: false,
                            top: 0,
                        });
                    }
                }
            }
        }
    }
    for plant in plants {
        let (x, _) = point(&key(&starts[plant.lane as usize], spec.group, &plant));
        let words = limbs(&x);
        let top = u64::from(words[7]) << 32 | u64::from(words[6]);
        let Walked { count, records, .. } =
            program.walk(&points, steps, &abi::range_words(&[(top, top)]), 16);
        // Level 2 leaves nothing but the planted key.
        assert_eq!(records.len(), 1);
        assert_eq!(count as usize, records.len());
        let same = |r: &&Record| matches!(r, Record::Hit(hit) if abi::Hit { top: 0, ..*hit } == plant);
        assert_eq!(records.iter().filter(same).count(), 1, "{plant:?}");
    }
}

#[test]
fn full_hit_buffer_is_counted_past_and_not_written_past() {
    let spec = Spec { group: 2, block: 1, ..Spec::default() };
    let start = point(&Scalar::from(123_456_789u32));
    // The sanitizer sees a write past the buffer; the count tells the host that records are missing.
    let Walked { count, records, .. } = Program::build(spec).walk(&[start], 1, &all_keys(), 5);
    assert_eq!(u64::from(count), abi::keys_per_step(2));
    assert_eq!(records.len(), 5);
}

#[test]
fn meeting_points_are_reported_and_spoil_no_other_lane() {
    for filter in [XTest::Range { count: 1 }, XTest::Set { near: false }, XTest::Set { near: true }] {
        let everything = match filter {
            XTest::Range { .. } => all_keys(),
            XTest::Set { near } => everything(near),
        };
        meet(Spec { group: 8, block: 4, filter, ..Spec::default() }, &everything);
    }
}

fn meet(spec: Spec, everything: &[u32]) {
    let program = Program::build(spec);
    let mut random = Random(3);
    let mut starts: Vec<Scalar> = (0..4).map(|_| random.scalar()).collect();
    // An image of a table point, and a centre whose second group begins on the step point's negative.
    starts[1] = lambda(1) * Scalar::from(5u32);
    starts[2] = -Scalar::from(2 * 17u32);
    let points: Vec<Point> = starts.iter().map(point).collect();
    let Walked { ends, records, .. } = program.walk(&points, 3, everything, CAPACITY);
    let faults: HashSet<(u32, u32)> = records
        .iter()
        .filter_map(|r| match r {
            Record::Fault { lane, step } => Some((*lane, *step)),
            Record::Hit(_) => None,
        })
        .collect();
    assert_eq!(faults, HashSet::from([(1, 0), (2, 1)]));
    assert_eq!(ends[1], points[1]);
    assert_eq!(ends[2], point(&-Scalar::from(17u32)));
    let mut hits = [0u64; 4];
    for record in &records {
        let Record::Hit(hit) = record else { continue };
        hits[hit.lane as usize] += 1;
        let (x, _) = point(&key(&starts[hit.lane as usize], 8, hit));
        let error = top(&x).wrapping_sub(hit.top) as i32;
        assert!(bound(spec.filter).contains(&error), "{hit:?}: {error}");
    }
    let keys = abi::keys_per_step(8);
    assert_eq!(hits, [3 * keys, 0, keys, 3 * keys]);
}
