//! Taproot outputs as host C under sanitizers: every key of small groups, and every entry of the table, against k256 and the
//! `sha2` crate.

use std::collections::HashSet;

use crate::support::{HostProgram, Point, Random, from_limbs, lambda, limbs, point, scalar, top, words};
use k256::Scalar;
use num_bigint::BigUint;
use warpsmith_kernel::abi::{self, Hit, Record};
use warpsmith_kernel::digest_filter::{DigestTest, Term, Wanted, build};
use warpsmith_kernel::points::{self, Digest};
use warpsmith_kernel::{Program, Spec, taproot};

const CAPACITY: u32 = 8192;

struct Walk {
    host: HostProgram,
    spec: Spec,
    bits: u32,
}

struct Answer {
    ends: Vec<Point>,
    count: u32,
    records: Vec<Record>,
    tweaks: Vec<u32>,
}

/// What becomes of a key.
struct Output {
    digest: Vec<u8>,
    /// Whether some sum on the way has the x coordinate of what is added to it.
    meets: bool,
}

impl Walk {
    fn build(bits: u32, filter: DigestTest, spec: Spec) -> Self {
        let program = Program::Points { digest: Digest::Taproot { bits }, filter };
        let spec = Spec { program, ..spec };
        Self { host: HostProgram::search(spec, include_str!("host/taproot.c")), spec, bits }
    }

    /// What is added for digit 1 of a window.
    fn unit(&self, window: u32) -> Scalar {
        (0..self.bits * window).fold(Scalar::ONE, |power, _| power + power)
    }

    fn run(&self, starts: &[Scalar], steps: u32, filter: &[u32]) -> Answer {
        let (lanes, group, bits) = (starts.len() as u32, self.spec.group, self.bits);
        let small = taproot::small_bits(bits);
        let mut request = vec![lanes, steps, filter.len() as u32, CAPACITY, 0, small, 0, 0];
        let centres: Vec<Point> = starts.iter().map(point).collect();
        for w in 0..16 {
            request.extend(centres.iter().map(|(x, y)| if w < 8 { limbs(x)[w] } else { limbs(y)[w - 8] }));
        }
        let entry = |k: &Scalar| {
            let (x, y) = point(k);
            points::entry(&limbs(&x), &limbs(&y))
        };
        request
            .extend((0..=group).flat_map(|i| entry(&Scalar::from(if i == 0 { 2 * group + 1 } else { i }))));
        request.extend(filter);
        let windows = taproot::windows(bits);
        for window in 0..windows {
            for digit in 1..=taproot::half(bits) {
                let known = digit < 1 << small;
                let multiple = self.unit(window) * Scalar::from(digit);
                request.extend(if known { entry(&multiple) } else { [0; taproot::ENTRY_WORDS] });
            }
        }
        for window in 0..windows {
            for k in 1..=taproot::giants(bits) {
                request.extend(entry(&(self.unit(window) * Scalar::from(k << small))));
            }
        }
        let answer = self.host.run(&request);
        let (centres, rest) = answer.split_at(abi::centres_words(lanes));
        let (hits, tweaks) = rest.split_at(abi::hits_words(CAPACITY));
        let n = lanes as usize;
        let word = |lane: usize, at: usize| from_limbs((at..at + 8).map(|w| centres[w * n + lane]));
        let written = hits[0].min(CAPACITY) as usize;
        let records = hits[abi::HITS_HEADER..].chunks_exact(abi::HIT_WORDS).take(written);
        Answer {
            ends: (0..n).map(|lane| (word(lane, 0), word(lane, 8))).collect(),
            count: hits[0],
            records: records.map(|r| Record::read(r.try_into().unwrap())).collect(),
            tweaks: tweaks.to_vec(),
        }
    }

    /// The output of the key a hit speaks of, from the scalar of its lane's first centre.
    fn output(&self, start: &Scalar, hit: &Hit) -> Output {
        use sha2::Digest as _;
        let centre = start + Scalar::from(hit.step) * Scalar::from(2 * self.spec.group + 1);
        let index = Scalar::from(hit.index);
        let key = lambda(hit.image) * if hit.minus { centre - index } else { centre + index };
        let (x, y) = point(&key);
        let even = if y.bit(0) { -key } else { key };
        let bytes: Vec<u8> = limbs(&x).into_iter().rev().flat_map(u32::to_be_bytes).collect();
        let tag = sha2::Sha256::digest(b"TapTweak");
        let hash = sha2::Sha256::digest([tag.as_slice(), tag.as_slice(), &bytes].concat());
        let tweak = BigUint::from_bytes_be(&hash);
        let digest = limbs(&point(&(even + scalar(&tweak))).0).into_iter().rev().flat_map(u32::to_be_bytes);
        // Digits from the lowest, those above half less a whole turn.
        let (mut rest, mut sum, mut meets) = (tweak, even, false);
        for window in 0..taproot::windows(self.bits) {
            let digit = (&rest % (1u32 << self.bits)).to_u32_digits().first().copied().unwrap_or(0);
            let minus = digit > taproot::half(self.bits);
            let size = if minus { (1 << self.bits) - digit } else { digit };
            rest = (rest + if minus { size } else { 0 }) >> self.bits;
            let added = self.unit(window) * Scalar::from(size);
            meets |= size > 0 && (sum == added || sum == -added);
            sum += if minus { -added } else { added };
        }
        assert_eq!(rest, BigUint::ZERO);
        Output { digest: digest.collect(), meets }
    }

    /// Every place of a launch.
    fn places(&self, lanes: u32, steps: u32) -> Vec<Hit> {
        let mut places = Vec::new();
        for lane in 0..lanes {
            for step in 0..steps {
                for index in 0..=self.spec.group {
                    for minus in [false, true].into_iter().take(if index == 0 { 1 } else { 2 }) {
                        for image in 0..3 {
                            let (negate, open) = (false, false);
                            places.push(Hit {
                                lane,
                                step,
                                index,
                                minus,
                                orbit: 0,
                                image,
                                negate,
                                open,
                                top: 0,
                            });
                        }
                    }
                }
            }
        }
        places
    }
}

fn place(hit: &Hit) -> Hit {
    Hit { top: 0, open: false, ..*hit }
}

fn starts(seed: u64, count: u32) -> Vec<Scalar> {
    let mut random = Random(seed);
    (0..count).map(|_| random.scalar()).collect()
}

fn everything() -> (DigestTest, Vec<u32>) {
    build(&Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() }, 8)
}

/// Every key once, with its digest, or where a sum meets what is added as one for the host; returns how many those are.
fn every_key_is_tested_once(bits: u32, starts: &[Scalar], spec: Spec, steps: u32) -> usize {
    let (shape, filter) = everything();
    let walk = Walk::build(bits, shape, spec);
    let lanes = starts.len() as u32;
    let answer = walk.run(starts, steps, &filter);
    let keys = points::keys_per_step(Digest::Taproot { bits }, spec.group);
    assert_eq!(u64::from(answer.count), u64::from(lanes * steps) * keys);
    let mut open = 0;
    let mut seen = HashSet::new();
    for record in &answer.records {
        let Record::Hit(hit) = record else { panic!("{record:?}") };
        assert!(seen.insert(place(hit)), "{hit:?} twice");
        let output = walk.output(&starts[hit.lane as usize], hit);
        assert_eq!(hit.open, output.meets, "{hit:?}");
        open += usize::from(hit.open);
        let told = if hit.open { 0 } else { words(&output.digest)[0] };
        assert_eq!(hit.top, told, "{hit:?}");
    }
    assert_eq!(seen, walk.places(lanes, steps).into_iter().collect());
    for (start, end) in starts.iter().zip(answer.ends) {
        assert_eq!(end, point(&(start + Scalar::from(steps * (2 * spec.group + 1)))));
    }
    for (i, entry) in answer.tweaks.chunks_exact(taproot::ENTRY_WORDS).enumerate() {
        let (window, digit) = (i as u32 / taproot::half(bits), i as u32 % taproot::half(bits) + 1);
        let (x, y) = point(&(walk.unit(window) * Scalar::from(digit)));
        assert_eq!(entry, points::entry(&limbs(&x), &limbs(&y)), "{digit} of window {window}");
    }
    open
}

/// More points than wait for one inversion, and groups that end before it is due.
#[test]
fn outputs_are_tested_once_each() {
    let spec = Spec { group: 18, block: 2, ..Spec::default() };
    assert_eq!(every_key_is_tested_once(8, &starts(7, 2), spec, 2), 0);
    let alone = Spec { group: 2, block: 1, shared_inversion: false, ..Spec::default() };
    assert_eq!(every_key_is_tested_once(11, &starts(8, 3), alone, 3), 0);
    assert_eq!(
        every_key_is_tested_once(5, &starts(9, 8), Spec { group: 1, block: 8, ..Spec::default() }, 1),
        0
    );
}

/// Among small keys some run into the table: with digits of 2 or 3 bits the keys 1 and 2, with 4 bits 2 and, in its second
/// digit, 81. Lane 0 has the keys 1, 2 and 3, lane 1 those around 81.
#[test]
fn sums_that_meet_the_table_are_left_to_the_host() {
    let spec = Spec { group: 1, block: 2, ..Spec::default() };
    let starts = [2u32, 81].map(Scalar::from);
    for bits in [2, 3, 4] {
        assert_eq!(every_key_is_tested_once(bits, &starts, spec, 1), 2, "{bits} bits");
    }
}

/// Each key, planted by all bits of its digest, comes back alone.
#[test]
fn planted_outputs_come_back_through_every_filter() {
    let (spec, bits, steps) = (Spec { group: 4, block: 2, ..Spec::default() }, 8, 2);
    let starts = starts(11, 4);
    let probe = Walk::build(bits, everything().0, spec);
    let mut places = probe.places(4, steps);
    // First and last lane and entry with all images and signs, and the centre.
    places.retain(|p| [0, 3].contains(&p.lane) && [0, 1, 4].contains(&p.index));
    let all: Vec<(Hit, Vec<u8>)> =
        places.iter().map(|p| (*p, probe.output(&starts[p.lane as usize], p).digest)).collect();
    for by_terms in [true, false] {
        let mut wanted = Wanted::default();
        if by_terms {
            let term = |d: &Vec<u8>| Term { mask: [u32::MAX; 8], value: words(d), parities: Vec::new() };
            wanted.terms = all.iter().map(|(_, d)| term(d)).collect();
        } else {
            wanted.intervals = all.iter().map(|(_, d)| (top(d), top(d))).collect();
        }
        let (shape, filter) = build(&wanted, 8);
        let answer = Walk::build(bits, shape, spec).run(&starts, steps, &filter);
        let found: HashSet<Hit> = answer
            .records
            .iter()
            .map(|record| if let Record::Hit(hit) = record { place(hit) } else { panic!("{record:?}") })
            .collect();
        assert_eq!(found, all.iter().map(|p| p.0).collect(), "by terms: {by_terms}");
        assert_eq!(answer.count as usize, all.len());
    }
}

#[test]
fn meeting_points_are_reported_and_spoil_no_other_lane() {
    let (shape, filter) = everything();
    let spec = Spec { group: 8, block: 4, ..Spec::default() };
    let walk = Walk::build(8, shape, spec);
    let mut starts = starts(3, 4);
    // A table point, and a centre whose second group begins on the step point's negative.
    starts[1] = Scalar::from(5u32);
    starts[2] = -Scalar::from(2 * 17u32);
    let answer = walk.run(&starts, 2, &filter);
    let mut faults = HashSet::new();
    let mut hits = [0; 4];
    for record in &answer.records {
        match record {
            Record::Fault { lane, step } => assert!(faults.insert((*lane, *step)), "{record:?} twice"),
            Record::Hit(hit) => {
                hits[hit.lane as usize] += 1;
                let output = walk.output(&starts[hit.lane as usize], hit);
                assert_eq!(hit.top, words(&output.digest)[0]);
            }
        }
    }
    assert_eq!(faults, HashSet::from([(1, 0), (2, 1)]));
    let keys = points::keys_per_step(Digest::Taproot { bits: 8 }, 8);
    assert_eq!(hits, [2 * keys, 0, keys, 2 * keys]);
}
