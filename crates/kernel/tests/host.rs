//! The joined text as host C under sanitizers, against independent arithmetic: num-bigint for the field,
//! k256 for the curve.

mod support;

use std::collections::HashSet;

use k256::Scalar;
use num_bigint::BigUint;
use support::{HostProgram, Point, Random, beta, from_limbs, lambda, limbs, p, point};
use warpsmith_kernel::abi::{self, Entry, Record};
use warpsmith_kernel::{Filter, Spec, Stage, Table, join, join_field, set};

const CAPACITY: u32 = 8192;

/// A program with the kernels of one spec.
struct Program {
    host: HostProgram,
    group: u32,
}

impl Program {
    /// The search.
    fn build(spec: Spec) -> Self {
        let spec = Spec { ptx: false, table: Table::Global, ..spec };
        Self::compile(&spec, "", &join(&spec).text)
    }

    /// The field by itself.
    fn build_field(spec: Spec) -> Self {
        let spec = Spec { ptx: false, ..spec };
        Self::compile(&spec, "#define FIELD_PROGRAM 1\n", &join_field(&spec).text)
    }

    fn compile(spec: &Spec, define: &str, text: &str) -> Self {
        let driver = include_str!("host/driver.c");
        Self { host: HostProgram::build(&format!("{define}{text}"), driver), group: spec.group }
    }

    fn field(&self, op: u32, pairs: &[(BigUint, BigUint)]) -> Vec<[u32; 8]> {
        let mut request = vec![0, op, pairs.len() as u32, 0, 0, 0, 0, 0];
        pairs.iter().for_each(|(a, _)| request.extend(limbs(a)));
        pairs.iter().for_each(|(_, b)| request.extend(limbs(b)));
        self.host.run(&request).chunks_exact(8).map(|w| w.try_into().unwrap()).collect()
    }

    /// Runs the walk; returns the centres after it, the count of records, and the records there was room for.
    fn walk(
        &self,
        starts: &[Point],
        steps: u32,
        filter: &[u32],
        capacity: u32,
    ) -> (Vec<Point>, u32, Vec<Record>) {
        let lanes = starts.len() as u32;
        let mut request = vec![1, lanes, steps, filter.len() as u32, capacity, 0, 0, 0];
        for w in 0..16 {
            request.extend(starts.iter().map(|(x, y)| if w < 8 { limbs(x)[w] } else { limbs(y)[w - 8] }));
        }
        request.extend(table(self.group));
        request.extend(filter);
        let answer = self.host.run(&request);
        let (centres, hits) = answer.split_at(abi::centres_words(lanes));
        let n = lanes as usize;
        let word = |lane: usize, at: usize| from_limbs((at..at + 8).map(|w| centres[w * n + lane]));
        let ends = (0..n).map(|lane| (word(lane, 0), word(lane, 8))).collect();
        assert_eq!(hits.len(), abi::hits_words(capacity));
        let written = hits[0].min(capacity) as usize;
        let records = hits[abi::HITS_HEADER..].chunks_exact(abi::HIT_WORDS).take(written);
        (ends, hits[0], records.map(|r| Record::read(r.try_into().unwrap())).collect())
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

/// 0, 1, around p and 2^256, each limb saturated or alone empty.
fn edges() -> Vec<BigUint> {
    let one = BigUint::from(1u32);
    let full: BigUint = (&one << 256) - 1u32;
    let mut edges = vec![BigUint::ZERO, one.clone(), 2u32.into(), 977u32.into(), p() - 1u32, p(), p() + 1u32];
    edges.extend([
        full.clone(),
        &full - 1u32,
        &one << 255,
        (&one << 32) + 976u32,
        (&one << 32) + 977u32,
        beta(),
    ]);
    for i in 0..8 {
        let limb = BigUint::from(u32::MAX) << (32 * i);
        edges.push(&full - &limb);
        edges.push(limb);
        edges.push(&one << (32 * i));
    }
    edges
}

fn pairs(random: usize) -> Vec<(BigUint, BigUint)> {
    let edges = edges();
    let mut pairs: Vec<_> = edges.iter().flat_map(|a| edges.iter().map(|b| (a.clone(), b.clone()))).collect();
    let mut source = Random(0x9e37_79b9_7f4a_7c15);
    pairs.extend((0..random).map(|_| (source.number(), source.number())));
    pairs
}

#[test]
fn field_operations_agree_with_big_integers() {
    let pairs = pairs(3000);
    for count_carries in [false, true] {
        let program = Program::build_field(Spec { block: 4, count_carries, ..Spec::default() });
        type Operation = fn(&BigUint, &BigUint) -> BigUint;
        let operations: [(u32, &str, Operation); 6] = [
            (0, "mul", |a, b| a * b),
            (1, "sqr", |a, _| a * a),
            (2, "add", |a, b| a + b),
            (3, "sub", |a, b| a + p() - b % p()),
            (5, "norm", |a, _| a.clone()),
            (6, "mul_inc", |a, b| a * b + 1u32),
        ];
        for (op, name, expected) in operations {
            for ((a, b), out) in pairs.iter().zip(program.field(op, &pairs)) {
                let out = from_limbs(out.into_iter());
                assert_eq!(&out % p(), expected(a, b) % p(), "{name} of {a:x} and {b:x}");
                assert!(name != "norm" || out < p());
            }
        }
        let few: Vec<_> = pairs.iter().step_by(37).cloned().collect();
        for ((a, _), out) in few.iter().zip(program.field(4, &few)) {
            let expected = if (a % p()) == BigUint::ZERO { 0u32 } else { 1 };
            assert_eq!(from_limbs(out.into_iter()) * a % p(), expected.into(), "inv of {a:x}");
        }
    }
}

#[test]
fn timed_chains_end_where_powers_say() {
    let program = Program::build_field(Spec { block: 4, ..Spec::default() });
    let full: BigUint = (BigUint::from(1u32) << 256) - 1u32;
    for (start, by) in [(beta(), p() - 1u32), (full.clone() - 50u32, full - 50u32)] {
        for (op, count) in [(0, 0), (0, 2), (0, 1000), (1, 2), (1, 300)] {
            let mut request = vec![1, op, count, 2, 0, 0, 0, 0];
            request.extend(limbs(&start).into_iter().chain(limbs(&by)));
            let ends = program.host.run(&request);
            assert_eq!(ends.len(), 2 * 4 * 8);
            for (lane, end) in ends.chunks_exact(8).enumerate() {
                let (x, y) = (&start + lane, &by + lane);
                let expected = match op {
                    0 => x * y.modpow(&count.into(), &p()),
                    _ => x.modpow(&(BigUint::from(1u32) << count), &p()),
                };
                assert_eq!(from_limbs(end.iter().copied()) % p(), expected % p(), "lane {lane}");
            }
        }
    }
}

#[test]
fn shortened_searches_walk_all_the_same() {
    // What they report means nothing, but their centres must move as those of the whole search.
    let mut random = Random(17);
    let starts: Vec<Scalar> = (0..4).map(|_| random.scalar()).collect();
    let points: Vec<Point> = starts.iter().map(point).collect();
    for stage in [Stage::Walk, Stage::Words] {
        let spec = Spec { group: 4, block: 2, wide: false, stage, ..Spec::default() };
        let (ends, count, _) = Program::build(spec).walk(&points, 3, &all_keys(), CAPACITY);
        // One report a sign and entry, and the centre's three.
        assert_eq!(count, 4 * 3 * (2 * 4 + 3));
        for (start, end) in starts.iter().zip(ends) {
            assert_eq!(end, point(&(start + Scalar::from(3 * 9u32))));
        }
    }
}

#[test]
fn top_words_of_products_stay_within_their_bound() {
    let program = Program::build_field(Spec { block: 4, ..Spec::default() });
    let pairs = pairs(5000);
    let one = BigUint::from(1u32);
    for ((a, b), out) in pairs.iter().zip(program.field(7, &pairs)) {
        // Both products of abi's argument: 8 limbs, and 9 limbs with one factor taken off.
        let values = [a * b, (a + (&one << 257) - 1u32) * b];
        for (value, word, below, above) in [(&values[0], out[0], 0, 9), (&values[1], out[1], 1, 11)] {
            let fraction: BigUint = ((value % p()) << 64) / p();
            let fraction: u64 = fraction.try_into().unwrap();
            let error = fraction.wrapping_sub(u64::from(word) << 32) as i64;
            assert!((-below << 32..above << 32).contains(&error), "{a:x} * {b:x}: {error:x}");
        }
        let fraction: BigUint = ((&values[1] % p()) << 80) / p();
        let fraction: u128 = fraction.try_into().unwrap();
        let wide = u128::from(out[5]) << 48 | u128::from(out[4]) << 16;
        let error = fraction.wrapping_sub(wide) as i128;
        let error = (error << 48) >> 48;
        assert!((-1 << 16..9 << 16).contains(&error), "{a:x} * {b:x}: {error:x}, wide");
        assert_eq!(&out[2..4], &[abi::digits(&limbs(b))[8], abi::digits(&limbs(b))[7]]);
    }
}

#[test]
fn digits_leave_less_than_one_unit_of_the_last() {
    let mut random = Random(7);
    let numbers = edges().into_iter().filter(|a| *a < p()).chain((0..1000).map(|_| random.number() % p()));
    for a in numbers {
        let found = from_limbs(abi::digits(&limbs(&a)).into_iter().rev());
        let rest = (&a << 352) - found * p();
        assert!(rest < p() + (p() >> 90), "{a:x}");
    }
}

fn every_key_is_tested_once(spec: Spec, blocks: u32, everything: &[u32]) {
    let program = Program::build(spec);
    let (lanes, steps) = (spec.block * blocks, 3);
    let mut random = Random(u64::from(spec.group) * 977 + 5);
    let starts: Vec<Scalar> = (0..lanes).map(|_| random.scalar()).collect();
    let points: Vec<Point> = starts.iter().map(point).collect();
    let (ends, count, records) = program.walk(&points, steps, everything, CAPACITY);
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
        assert!((-(abi::TOP_BELOW as i32)..=abi::TOP_ABOVE as i32).contains(&error), "{hit:?}: {error}");
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
    let spec = Spec { group: 4, block: 2, filter: Filter::Set, ..Spec::default() };
    every_key_is_tested_once(spec, 1, &set::words(&[(0, u64::MAX)], 10));
}

#[test]
fn set_filter_finds_its_keys_and_no_others() {
    let spec = Spec { group: 8, block: 4, filter: Filter::Set, ..Spec::default() };
    let program = Program::build(spec);
    let mut random = Random(2024);
    let starts: Vec<Scalar> = (0..4).map(|_| random.scalar()).collect();
    let points: Vec<Point> = starts.iter().map(point).collect();
    let mut plants = HashSet::new();
    let mut intervals: Vec<(u64, u64)> =
        (0..500).map(|_| u64::from(random.next()) << 32).map(|a| (a, a)).collect();
    for orbit in 0..3 {
        for image in 0..3 {
            for (minus, index) in [(false, 1), (true, 8), (false, 0)] {
                if index == 0 && orbit > 0 {
                    continue;
                }
                let (lane, step) = (random.next() % 4, random.next() % 3);
                let plant = abi::Hit { lane, step, index, minus, orbit, image, negate: false, top: 0 };
                let (x, _) = point(&key(&starts[lane as usize], spec.group, &plant));
                let x = limbs(&x);
                let top = u64::from(x[7]) << 32 | u64::from(x[6]);
                intervals.push((top, top));
                plants.insert(plant);
            }
        }
    }
    // A coarse bitmap lets nearly all keys through to level 2, which must sort them out.
    for bits in [8, 20] {
        let (_, count, records) = program.walk(&points, 3, &set::words(&intervals, bits), CAPACITY);
        let found: HashSet<abi::Hit> = records
            .iter()
            .map(|r| match r {
                Record::Hit(hit) => abi::Hit { top: 0, ..*hit },
                Record::Fault { .. } => panic!("{r:?}"),
            })
            .collect();
        assert_eq!(found, plants);
        assert_eq!(count as usize, plants.len());
    }
}

#[test]
fn walk_with_shared_inversion_tests_every_key_once() {
    let filter = Filter::Range { count: 4 };
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
        let (_, count, records) = program.walk(&points, steps, &abi::range_words(&[(top, top)]), 16);
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
    let (_, count, records) = Program::build(spec).walk(&[start], 1, &all_keys(), 5);
    assert_eq!(u64::from(count), abi::keys_per_step(2));
    assert_eq!(records.len(), 5);
}

#[test]
fn meeting_points_are_reported_and_spoil_no_other_lane() {
    let spec = Spec { group: 8, block: 4, ..Spec::default() };
    let program = Program::build(spec);
    let mut random = Random(3);
    let mut starts: Vec<Scalar> = (0..4).map(|_| random.scalar()).collect();
    // An image of a table point, and a centre whose second group begins on the step point's negative.
    starts[1] = lambda(1) * Scalar::from(5u32);
    starts[2] = -Scalar::from(2 * 17u32);
    let points: Vec<Point> = starts.iter().map(point).collect();
    let (ends, _, records) = program.walk(&points, 3, &all_keys(), CAPACITY);
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
        assert!((-(abi::TOP_BELOW as i32)..=abi::TOP_ABOVE as i32).contains(&error));
    }
    let keys = abi::keys_per_step(8);
    assert_eq!(hits, [3 * keys, 0, keys, 3 * keys]);
}
