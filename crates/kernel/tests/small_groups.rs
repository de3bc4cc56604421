//! The kernels as host C in groups of 13 and 199 elements: every centre there is with every entry, sign, orbit and image, at
//! every step. Half of all groups and more hold points that meet: these must be reported, and spoil no other lane.
//!
//! Shapes: `2 group + 1` is less than the order, so that neither table nor step hold infinity. With order 13 the orbit walk
//! has centres that meet no image of an entry only for one entry; the others leave every lane to the host, and say so.
//! Infinity is no centre of a kernel: the walk reports the step before it.

use std::collections::{HashMap, HashSet};

use crate::small::{Coordinates, Small};
use crate::support::{
    HostProgram, PointsPrograms, PointsRequest, SCAN_WALK, address, beta, from_limbs, limbs, p, words,
};
use num_bigint::BigUint;
use warpsmith_kernel::abi::{self, Hit, Record};
use warpsmith_kernel::digest_filter::{Wanted, build};
use warpsmith_kernel::points::{self, Digest};
use warpsmith_kernel::scan::{self, ScanPart};
use warpsmith_kernel::{Program, Spec, XTest, set};

const CAPACITY: u32 = 1 << 17;
const BLOCK: u32 = 4;

/// Every element but infinity, as many times as fill whole blocks.
fn starts(group: &Small) -> Vec<i64> {
    let lanes = (group.order as u32 - 1).next_multiple_of(BLOCK);
    (0..i64::from(lanes)).map(|lane| lane % (group.order - 1) + 1).collect()
}

fn point(group: &Small, k: i64) -> &Coordinates {
    group.point(k).expect("not infinity")
}

fn centres(group: &Small, starts: &[i64]) -> Vec<u32> {
    let at = |w: usize, k: i64| {
        let (x, y) = point(group, k);
        if w < 8 { limbs(x)[w] } else { limbs(y)[w - 8] }
    };
    (0..16).flat_map(|w| starts.iter().map(move |k| at(w, *k))).collect()
}

/// The elements that centres are; each is a point of the group.
fn elements(group: &Small, words: &[u32], lanes: usize) -> Vec<i64> {
    let known: HashMap<&Coordinates, i64> = (1..group.order).map(|k| (point(group, k), k)).collect();
    let number = |lane: usize, at: usize| from_limbs((at..at + 8).map(|w| words[w * lanes + lane]));
    (0..lanes).map(|lane| known[&(number(lane, 0), number(lane, 8))]).collect()
}

/// The element a hit speaks of.
fn element(group: &Small, centre: i64, hit: &Hit) -> i64 {
    let entry = group.image(hit.index.into(), hit.orbit);
    let sum = group.image(if hit.minus { centre - entry } else { centre + entry }, hit.image);
    if hit.negate { -sum } else { sum }
}

/// One walk of a search in a small group.
struct Search<'s> {
    group: &'s Small,
    half: u32,
    steps: u32,
    /// Whether it has orbits, and meets images of its entries.
    orbits: bool,
    /// Keys of a lane in a step.
    keys: u64,
}

impl Search<'_> {
    /// Holds what a launch reported against how all lanes must have fared: faults, ends, and every key once, about which
    /// `is_right` decides, given its point. Returns how many keys and faults there were.
    fn judge(&self, answer: &[u32], is_right: impl Fn(&Coordinates, &Hit) -> bool) -> (u64, u64) {
        let (group, starts) = (self.group, starts(self.group));
        let (ends, hits) = answer.split_at(abi::centres_words(starts.len() as u32));
        assert!(hits[0] <= CAPACITY && hits[abi::HITS_LOST] == 0);
        let records = hits[abi::HITS_HEADER..].chunks_exact(abi::HIT_WORDS).take(hits[0] as usize);
        let (mut faults, mut found) = (HashSet::new(), HashMap::new());
        for record in records {
            match Record::read(record.try_into().unwrap()) {
                Record::Fault { lane, step } => assert!(faults.insert((lane, step))),
                Record::Hit(hit) => {
                    let keys: &mut HashSet<Hit> = found.entry((hit.lane, hit.step)).or_default();
                    assert!(keys.insert(Hit { top: 0, ..hit }), "{hit:?} twice");
                    let centre =
                        starts[hit.lane as usize] + i64::from(hit.step) * (2 * i64::from(self.half) + 1);
                    let k = element(group, centre, &hit);
                    assert!(is_right(point(group, k), &hit), "{hit:?} around {centre} is not {k}");
                }
            }
        }
        let (mut tested, mut met) = (0, 0);
        for ((lane, start), end) in (0..).zip(&starts).zip(elements(group, ends, starts.len())) {
            let (walked, fault) = group.fare(*start, self.half, self.steps, self.orbits);
            for step in (0..).zip(&walked).map(|(step, _)| step) {
                let keys = found.remove(&(lane, step)).map_or(0, |keys| keys.len() as u64);
                assert_eq!(keys, self.keys, "lane {lane}, step {step}");
                tested += keys;
            }
            if let Some(step) = fault {
                assert!(
                    faults.remove(&(lane, step)),
                    "lane {lane} met its table in step {step} and did not say so"
                );
                met += 1;
            }
            // It stays where it met its table.
            let steps = walked.len() as i64;
            assert_eq!(end, (start + steps * (2 * i64::from(self.half) + 1)).rem_euclid(group.order));
        }
        assert!(found.is_empty() && faults.is_empty(), "{found:?} {faults:?}");
        (tested, met)
    }
}

/// The table of the orbit walk.
fn orbit_table(group: &Small, half: u32) -> Vec<u32> {
    let (x, y) = point(group, 2 * i64::from(half) + 1);
    let mut words = abi::step_entry(&limbs(x), &limbs(y)).to_vec();
    for i in 1..=half {
        let (t, y) = point(group, i.into());
        let square = t * t % p();
        let entry = abi::Entry {
            y: limbs(y),
            t: limbs(t),
            beta_t: limbs(&(t * beta() % p())),
            square: limbs(&square),
            beta_square: limbs(&(&square * beta() % p())),
            cube: limbs(&(&square * t % p())),
        };
        words.extend(entry.words());
    }
    words
}

/// The table of walks over points.
fn table(group: &Small, half: u32) -> Vec<u32> {
    let entries = (0..=half).map(|i| point(group, if i == 0 { 2 * i64::from(half) + 1 } else { i.into() }));
    entries.flat_map(|(x, y)| points::entry(&limbs(x), &limbs(y))).collect()
}

fn top(x: &BigUint) -> u32 {
    limbs(x)[7]
}

#[test]
fn the_orbit_walk_is_right_at_every_element() {
    // A few ranges, and a set with its second kernel, which has other words.
    for filter in [XTest::Range { count: 1 }, XTest::Set { near: false }] {
        for half in [1, 8] {
            let spec = Spec { group: half, block: BLOCK, filter, ..Spec::default() };
            let program = HostProgram::search(spec, include_str!("host/driver.c"));
            let (everything, bound) = match filter {
                XTest::Range { .. } => (abi::range_words(&[(0, u64::MAX)]), abi::TOP),
                XTest::Set { .. } => (set::build(&[(0, u64::MAX)], Some(10)).words, abi::FINE),
            };
            for group in Small::both().iter().filter(|group| 2 * i64::from(half) + 1 < group.order) {
                let steps = if group.order == 13 { 6 } else { 3 };
                let (starts, filter_words) = (starts(group), everything.len() as u32);
                let mut request = vec![1, starts.len() as u32, steps, filter_words, CAPACITY, 4096, 8192, 0];
                request.extend(centres(group, &starts));
                request.extend(orbit_table(group, half));
                request.extend(&everything);
                if let XTest::Set { .. } = filter {
                    request.extend((1..=half).flat_map(|i| {
                        let (t, y) = point(group, i.into());
                        let beta_t = t * beta() % p();
                        let beta2_t = &beta_t * beta() % p();
                        abi::point_words(&limbs(t), &limbs(&beta_t), &limbs(&beta2_t), &limbs(y))
                    }));
                }
                let search = Search { group, half, steps, orbits: true, keys: abi::keys_per_step(half) };
                let counted = search.judge(&program.run(&request), |(x, _), hit| {
                    let error = top(x).wrapping_sub(hit.top) as i32;
                    (-(bound.below as i32)..=bound.above as i32).contains(&error)
                });
                assert!(counted.0 > 0 && counted.1 > 0, "{counted:?}");
            }
        }
    }
}

#[test]
fn the_walk_over_points_is_right_at_every_element() {
    let wanted = Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() };
    for digest in [Digest::X, Digest::Account] {
        let (shape, filter) = build(&wanted, digest.words());
        let half = 5;
        let program = Program::Points { digest, filter: shape };
        let spec = Spec { group: half, block: BLOCK, program, ..Spec::default() };
        let program = PointsPrograms::build(spec, 2);
        for group in &Small::both() {
            let (starts, steps) = (starts(group), 3);
            let request = PointsRequest {
                centres: &centres(group, &starts),
                table: &table(group, half),
                params: &points::create_words(0),
                filter: &filter,
                capacity: CAPACITY,
                best: 0,
            };
            let answer = program.run(starts.len() as u32, steps, &request);
            let search =
                Search { group, half, steps, orbits: false, keys: points::keys_per_step(digest, half) };
            let counted = search.judge(&answer, |(x, y), hit| {
                let bytes = [x, y]
                    .map(|a| limbs(a).into_iter().rev().flat_map(u32::to_be_bytes).collect::<Vec<u8>>());
                hit.top == if digest == Digest::X { top(x) } else { words(&address(&bytes.concat()))[0] }
            });
            assert!(counted.0 > 0 && counted.1 > 0, "{counted:?}");
        }
    }
}

/// Both coordinates of every point a scan writes down; a lane that met its table says so in every step, as scans launch
/// them one by one, and stays where it is.
#[test]
fn the_walk_of_a_scan_is_right_at_every_element() {
    let (half, steps) = (5, 3u32);
    let spec = Spec {
        group: half,
        block: BLOCK,
        program: Program::Scan(ScanPart::Walk { keep_y: true }),
        ..Spec::default()
    };
    let program = HostProgram::search(spec, SCAN_WALK);
    for group in &Small::both() {
        let starts = starts(group);
        let (lanes, step) = (starts.len(), 2 * i64::from(half) + 1);
        let mut request = vec![lanes as u32, steps, CAPACITY, 0];
        request.extend(centres(group, &starts));
        request.extend(table(group, half));
        let answer = program.run(&request);
        let (rest, faults) = answer.split_at(answer.len() - scan::hits_words(CAPACITY));
        let (points, ends) = rest.split_at(rest.len() - abi::centres_words(lanes as u32));
        let records = faults[abi::HITS_HEADER..].chunks_exact(scan::RECORD_WORDS).take(faults[0] as usize);
        let records = records.map(|record| match scan::ScanRecord::read(record.try_into().unwrap()) {
            Some(scan::ScanRecord::Fault { lane, step }) => (lane, step),
            other => panic!("{other:?}"),
        });
        let mut faults: HashSet<(u32, u32)> = records.collect();
        let mut right = 0;
        for ((lane, start), end) in starts.iter().enumerate().zip(elements(group, ends, lanes)) {
            let (walked, fault) = group.fare(*start, half, steps, false);
            for (n, centre) in walked.iter().enumerate() {
                let points = &points[n * points.len() / steps as usize..];
                for at in 0..2 * half + 1 {
                    // The centre, then both signs of each entry from the last down.
                    let entry = i64::from(half) - (i64::from(at) - 1) / 2;
                    let k = match (at, at % 2) {
                        (0, _) => *centre,
                        (_, 1) => centre + entry,
                        _ => centre - entry,
                    };
                    let word = |w: usize| points[((at as usize * 4 + w / 4) * lanes + lane) * 4 + w % 4];
                    let number = |first: usize| from_limbs((first..first + 8).rev().map(word));
                    assert_eq!(&(number(0), number(8)), point(group, k), "lane {lane}, step {n}, point {at}");
                    right += 1;
                }
            }
            for step in fault.unwrap_or(steps)..steps {
                assert!(faults.remove(&(lane as u32, step)), "lane {lane} met its table in step {step}");
            }
            assert_eq!(end, (start + walked.len() as i64 * step).rem_euclid(group.order));
        }
        assert!(faults.is_empty() && right > 0);
    }
}
