//! The point walk as host C under sanitizers: every key of small groups against k256 and the crates `sha3`, `sha2` and
//! `ripemd`.

use std::collections::HashSet;

use crate::support::{
    Point, PointsPrograms, PointsRequest, Random, address, create, from_limbs, hash160, lambda, limbs, point,
    top, words,
};
use k256::Scalar;
use warpsmith_kernel::abi::{self, Hit, Record};
use warpsmith_kernel::digest_filter::{Count, DigestTest, Score, Term, Wanted, build};
use warpsmith_kernel::points::{self, Digest};
use warpsmith_kernel::{Program, Spec};

const CAPACITY: u32 = 8192;

/// A program with the walk of one spec.
struct Walk {
    host: PointsPrograms,
    spec: Spec,
    digest: Digest,
    nonce: u64,
}

struct Answer {
    ends: Vec<Point>,
    count: u32,
    best: u32,
    records: Vec<Record>,
}

impl Walk {
    fn build(digest: Digest, filter: DigestTest, spec: Spec) -> Self {
        let spec = Spec { program: Program::Points { digest, filter }, ..spec };
        // As many threads that test as lanes, and where blocks allow it three times as many.
        let parts = if spec.group.is_multiple_of(2) { 1 } else { 3 };
        Self { host: PointsPrograms::build(spec, parts), spec, digest, nonce: 0 }
    }

    fn run(&self, starts: &[Scalar], steps: u32, filter: &[u32], capacity: u32, best: u32) -> Answer {
        let (lanes, group) = (starts.len() as u32, self.spec.group);
        let points: Vec<Point> = starts.iter().map(point).collect();
        let (mut centres, mut table) = (Vec::new(), Vec::new());
        for w in 0..16 {
            centres.extend(points.iter().map(|(x, y)| if w < 8 { limbs(x)[w] } else { limbs(y)[w - 8] }));
        }
        for i in 0..=group {
            let (x, y) = point(&Scalar::from(if i == 0 { 2 * group + 1 } else { i }));
            table.extend(points::entry(&limbs(&x), &limbs(&y)));
        }
        let params = &points::create_words(self.nonce);
        let request = PointsRequest { centres: &centres, table: &table, params, filter, capacity, best };
        let answer = self.host.run(lanes, steps, &request);
        let (centres, hits) = answer.split_at(abi::centres_words(lanes));
        let n = lanes as usize;
        let word = |lane: usize, at: usize| from_limbs((at..at + 8).map(|w| centres[w * n + lane]));
        let written = hits[0].min(capacity) as usize;
        let records = hits[abi::HITS_HEADER..].chunks_exact(abi::HIT_WORDS).take(written);
        Answer {
            ends: (0..n).map(|lane| (word(lane, 0), word(lane, 8))).collect(),
            count: hits[0],
            best: hits[abi::HITS_BEST],
            records: records.map(|r| Record::read(r.try_into().unwrap())).collect(),
        }
    }

    /// The digest of the key a hit speaks of, from the scalar of its lane's first centre.
    fn digest(&self, start: &Scalar, hit: &Hit) -> Vec<u8> {
        let centre = start + Scalar::from(hit.step) * Scalar::from(2 * self.spec.group + 1);
        let index = Scalar::from(hit.index);
        let key = lambda(hit.image) * if hit.minus { centre - index } else { centre + index };
        let (x, y) = point(&if hit.negate { -key } else { key });
        let bytes: Vec<u8> =
            [x, y].iter().flat_map(|a| limbs(a).into_iter().rev().flat_map(u32::to_be_bytes)).collect();
        // The key of this x whose y has the parity told.
        let compressed = [&[2 + u8::from(hit.negate)], &bytes[..32]].concat();
        match self.digest {
            Digest::X => bytes[..32].to_vec(),
            Digest::Account => address(&bytes).to_vec(),
            Digest::Contract => create(&address(&bytes), self.nonce).to_vec(),
            Digest::Hash160 => hash160(&compressed).to_vec(),
            Digest::ScriptHash160 => hash160(&[&[0, 20], hash160(&compressed).as_slice()].concat()).to_vec(),
            Digest::Hash160Uncompressed => hash160(&[&[4], bytes.as_slice()].concat()).to_vec(),
            Digest::Taproot { .. } => unreachable!("tests/taproot.rs has its own walk"),
        }
    }

    /// Every place of a launch.
    fn places(&self, lanes: u32, steps: u32) -> Vec<Hit> {
        let mut places = Vec::new();
        for lane in 0..lanes {
            for step in 0..steps {
                for index in 0..=self.spec.group {
                    for minus in [false, true] {
                        for image in 0..3 {
                            for negate in [false, true] {
                                let is_key = (index > 0 || !minus) && (!negate || self.digest != Digest::X);
                                let open = false;
                                let hit =
                                    Hit { lane, step, index, minus, orbit: 0, image, negate, open, top: 0 };
                                places.extend(is_key.then_some(hit));
                            }
                        }
                    }
                }
            }
        }
        places
    }
}

fn place(record: &Record) -> Hit {
    match record {
        Record::Hit(hit) => Hit { top: 0, ..*hit },
        Record::Fault { .. } => panic!("{record:?}"),
    }
}

fn starts(seed: u64, count: u32) -> Vec<Scalar> {
    let mut random = Random(seed);
    (0..count).map(|_| random.scalar()).collect()
}

fn everything() -> (DigestTest, Vec<u32>) {
    build(&Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() }, 5)
}

fn every_key_is_tested_once(digest: Digest, nonce: u64, spec: Spec, blocks: u32) {
    let (shape, filter) = everything();
    let mut walk = Walk::build(digest, shape, spec);
    walk.nonce = nonce;
    let (lanes, steps) = (spec.block * blocks, 3);
    let starts = starts(nonce + 7, lanes);
    let answer = walk.run(&starts, steps, &filter, CAPACITY, 0);
    let keys = points::keys_per_step(digest, spec.group);
    assert_eq!(u64::from(answer.count), u64::from(lanes * steps) * keys);
    let seen: HashSet<Hit> = answer.records.iter().map(place).collect();
    assert_eq!(seen, walk.places(lanes, steps).into_iter().collect());
    assert_eq!(seen.len(), answer.records.len());
    for record in &answer.records {
        let Record::Hit(hit) = record else { panic!("{record:?}") };
        let digest = walk.digest(&starts[hit.lane as usize], hit);
        assert_eq!(hit.top, words(&digest)[0], "{hit:?}");
    }
    for (start, end) in starts.iter().zip(answer.ends) {
        assert_eq!(end, point(&(start + Scalar::from(steps * (2 * spec.group + 1)))));
    }
}

#[test]
fn accounts_are_tested_once_each() {
    every_key_is_tested_once(Digest::Account, 0, Spec { group: 3, block: 4, ..Spec::default() }, 2);
}

#[test]
fn accounts_are_tested_once_each_without_a_shared_inversion() {
    let spec = Spec { group: 2, block: 1, shared_inversion: false, ..Spec::default() };
    every_key_is_tested_once(Digest::Account, 0, spec, 3);
}

#[test]
fn bitcoin_hashes_are_tested_once_each() {
    for digest in [Digest::Hash160, Digest::ScriptHash160, Digest::Hash160Uncompressed] {
        every_key_is_tested_once(digest, 0, Spec { group: 3, block: 4, ..Spec::default() }, 2);
        let alone = Spec { group: 2, block: 1, shared_inversion: false, ..Spec::default() };
        every_key_is_tested_once(digest, 0, alone, 3);
    }
}

#[test]
fn x_coordinates_are_tested_once_each() {
    every_key_is_tested_once(Digest::X, 0, Spec { group: 5, block: 2, ..Spec::default() }, 2);
}

#[test]
fn contracts_of_every_length_of_nonce_are_tested_once_each() {
    let (shape, filter) = everything();
    let mut walk = Walk::build(Digest::Contract, shape, Spec { group: 1, block: 1, ..Spec::default() });
    let start = starts(3, 1);
    let mut nonces: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1]).collect();
    nonces.extend([0, 0x7f, 0x80, 0xff, 0x100, 1 << 32, u64::MAX - 1]);
    for nonce in nonces {
        walk.nonce = nonce;
        let answer = walk.run(&start, 1, &filter, 64, 0);
        assert_eq!(answer.count, 18);
        for record in &answer.records {
            let Record::Hit(hit) = record else { panic!("{record:?}") };
            assert_eq!(hit.top, words(&walk.digest(&start[0], hit))[0], "{hit:?} at nonce {nonce}");
        }
    }
}

#[test]
fn planted_accounts_contracts_and_x_come_back_through_every_filter() {
    planted_keys_come_back_through_every_filter(&[Digest::Account, Digest::Contract, Digest::X]);
}

#[test]
fn planted_bitcoin_hashes_come_back_through_every_filter() {
    let all = [Digest::Hash160, Digest::ScriptHash160, Digest::Hash160Uncompressed];
    planted_keys_come_back_through_every_filter(&all);
}

/// Each key, planted in every kind of filter by all bits of its digest, comes back alone.
fn planted_keys_come_back_through_every_filter(digests: &[Digest]) {
    let spec = Spec { group: 4, block: 2, ..Spec::default() };
    let starts = starts(11, 4);
    let steps = 2;
    for &digest in digests {
        let words_of_digest = digest.words();
        let mut random = Random(5);
        let probe = Walk::build(digest, everything().0, spec);
        let mut places = probe.places(4, steps);
        // First and last lane, step and entry with all images and signs, and the centre.
        places.retain(|p| [0, 3].contains(&p.lane) && [0, 1, 4].contains(&p.index));
        let all: Vec<(Hit, Vec<u8>)> =
            places.iter().map(|p| (*p, probe.digest(&starts[p.lane as usize], p))).collect();
        for kind in ["ranges", "set", "terms"] {
            let chunk = if kind == "ranges" { 4 } else { all.len() };
            let mut walk = None;
            for planted in all.chunks(chunk) {
                let mut wanted = Wanted::default();
                if kind == "terms" {
                    wanted.terms = planted
                        .iter()
                        .map(|(_, d)| Term {
                            mask: std::array::from_fn(|i| if i < words_of_digest { u32::MAX } else { 0 }),
                            value: words(d),
                            parities: Vec::new(),
                        })
                        .collect();
                } else {
                    wanted.intervals = planted.iter().map(|(_, d)| (top(d), top(d))).collect();
                }
                if kind == "set" {
                    wanted.intervals.extend((0..1000).map(|_| {
                        let top = u64::from(random.next()) << 32 | u64::from(random.next());
                        (top, top)
                    }));
                }
                let (shape, filter) = build(&wanted, words_of_digest);
                let walk = walk.get_or_insert_with(|| Walk::build(digest, shape, spec));
                if walk.spec.program != (Program::Points { digest, filter: shape }) {
                    continue; // the last, shorter chunk of ranges
                }
                let answer = walk.run(&starts, steps, &filter, CAPACITY, 0);
                let found: HashSet<Hit> = answer.records.iter().map(place).collect();
                assert_eq!(found, planted.iter().map(|p| p.0).collect(), "{digest:?} by {kind}");
                assert_eq!(answer.count as usize, planted.len());
            }
        }
    }
}

#[test]
fn full_hit_buffer_is_counted_past_and_not_written_past() {
    let (shape, filter) = everything();
    let walk = Walk::build(Digest::X, shape, Spec { group: 2, block: 1, ..Spec::default() });
    let answer = walk.run(&starts(1, 1), 1, &filter, 5, 0);
    assert_eq!(u64::from(answer.count), points::keys_per_step(Digest::X, 2));
    assert_eq!(answer.records.len(), 5);
}

#[test]
fn meeting_points_are_reported_and_spoil_no_other_lane() {
    let (shape, filter) = everything();
    let spec = Spec { group: 8, block: 4, ..Spec::default() };
    let walk = Walk::build(Digest::Account, shape, spec);
    let mut starts = starts(3, 4);
    // A table point, and a centre whose second group begins on the step point's negative.
    starts[1] = Scalar::from(5u32);
    starts[2] = -Scalar::from(2 * 17u32);
    let answer = walk.run(&starts, 3, &filter, CAPACITY, 0);
    let mut faults = HashSet::new();
    let mut hits = [0; 4];
    for record in &answer.records {
        match record {
            Record::Fault { lane, step } => assert!(faults.insert((*lane, *step)), "{record:?} twice"),
            Record::Hit(hit) => {
                hits[hit.lane as usize] += 1;
                let digest = walk.digest(&starts[hit.lane as usize], hit);
                assert_eq!(hit.top, words(&digest)[0]);
            }
        }
    }
    assert_eq!(faults, HashSet::from([(1, 0), (2, 1)]));
    let keys = points::keys_per_step(Digest::Account, 8);
    assert_eq!(hits, [3 * keys, 0, keys, 3 * keys]);
    assert_eq!(answer.ends[1], point(&starts[1]));
    assert_eq!(answer.ends[2], point(&-Scalar::from(17u32)));
}

/// A flood: the best is told, what is told only rises, ties and what does not beat the start are not told.
#[test]
fn scores_rise_to_the_best_of_all_keys() {
    let spec = Spec { group: 8, block: 8, ..Spec::default() };
    let (starts, steps) = (starts(21, 16), 2);
    let zeros = |d: &[u8]| d.iter().filter(|&&b| b == 0).count() as u32;
    let leading_zeros = |d: &[u8]| d.iter().take_while(|&&b| b == 0).count() as u32;
    let run_of = |digit: u8, d: &[u8]| {
        d.iter().flat_map(|b| [b >> 4, b & 15]).take_while(|&n| n == digit).count() as u32
    };
    for kind in [Count::Zeros, Count::LeadingZeros, Count::Leading(0xa), Count::Leading(0), Count::Letters] {
        let (shape, filter) = build(&Wanted { score: Some(Score::best(kind)), ..Wanted::default() }, 5);
        let walk = Walk::build(Digest::Account, shape, spec);
        let score = |hit: &Hit| {
            let digest = walk.digest(&starts[hit.lane as usize], hit);
            match kind {
                Count::Zeros => zeros(&digest),
                Count::LeadingZeros => leading_zeros(&digest),
                Count::Leading(digit) => run_of(digit, &digest),
                _ => digest.iter().flat_map(|b| [b >> 4, b & 15]).filter(|&n| n > 9).count() as u32,
            }
        };
        let best = walk.places(16, steps).iter().map(score).max().unwrap();
        assert!(best > 0);
        for start in [0, best - 1, best, 100] {
            let answer = walk.run(&starts, steps, &filter, 64, start);
            let told: Vec<u32> = answer.records.iter().map(|r| score(&place(r))).collect();
            let same = |(record, &score): (&Record, &u32)| matches!(record, Record::Hit(h) if h.top == score);
            assert!(answer.records.iter().zip(&told).all(same), "records say the score");
            let distinct: HashSet<u32> = told.iter().copied().collect();
            assert_eq!(distinct.len(), told.len(), "each score once: {told:?}");
            assert!(told.iter().all(|&s| s > start));
            assert_eq!(told.iter().copied().max().unwrap_or(start), best.max(start), "{kind:?} from {start}");
            assert_eq!(answer.best, best.max(start));
            assert_eq!(answer.count as usize, told.len());
        }
    }
}
