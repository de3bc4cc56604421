//! Sets of prefixes in the walk: whatever the tables and queues between do, the hits are those of the ranges.

use std::collections::BTreeMap;

use warpsmith_curve::field::dispatch;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::{Bits, Hit, Place, Range, Sieve, Table, Term, Walk};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_simd::Simd;

use crate::common::available;

/// Random numbers that are the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

fn starts(simd: Simd, seed: u64) -> Vec<Point> {
    let start = |lane| Scalar::LAMBDA.mul(Scalar::from_u64(seed * 1000 + lane));
    (1..=dispatch::lane_count(simd) as u64).map(|l| group::multiply(start(l), Some(Affine::G))).collect()
}

/// Prefixes of some bits, sorted and disjoint.
fn prefixes(tops: impl IntoIterator<Item = u64>, bits: u32) -> Vec<Range> {
    let mut firsts: Vec<u64> = tops.into_iter().map(|t| t >> (64 - bits) << (64 - bits)).collect();
    firsts.sort_unstable();
    firsts.dedup();
    firsts
        .into_iter()
        .map(|first| Range { first, last: first | u64::MAX.checked_shr(bits).unwrap_or(0) })
        .collect()
}

fn hits(table: &Table, starts: &[Point], sieve: &Sieve, groups: u64) -> Vec<Hit> {
    let mut walk = Walk::new(table, starts);
    let mut hits = Vec::new();
    let keys: u64 = (0..groups).map(|_| walk.group(sieve, &mut hits)).sum();
    assert!(keys > 0);
    hits
}

/// The top 64 bits of every key of some groups, from x in full.
fn tops(table: &Table, starts: &[Point], groups: u64) -> BTreeMap<Place, u64> {
    let all = Term { mask: [0; 4], value: [0; 4], equations: vec![] };
    let sieve = Sieve { terms: vec![all], ..Sieve::default() };
    let hits = hits(table, starts, &sieve, groups);
    hits.into_iter().map(|h| (h.place, h.x.expect("formed").to_words()[0])).collect()
}

/// Walks with a set and compares with the tops of all keys: each key of a range once, and no other but one beside it. Where
/// x was formed it is that of the key.
fn check(
    table: &Table,
    starts: &[Point],
    groups: u64,
    tops: &BTreeMap<Place, u64>,
    ranges: &[Range],
    log2: u32,
) {
    let sieve = Sieve { bits: Some(Bits::new(ranges, log2)), ..Sieve::default() };
    let what = format!("{}, half {}, {} ranges, 2^{log2} bits", table.simd(), table.half(), ranges.len());
    let holds = |top: u64, slack: u64| {
        ranges.iter().any(|r| {
            top.wrapping_sub(r.first).wrapping_add(slack) <= (r.last - r.first).saturating_add(2 * slack)
        })
    };
    let mut found = BTreeMap::new();
    for hit in hits(table, starts, &sieve, groups) {
        *found.entry(hit.place).or_insert(0) += 1;
        let top = hit.x.map(|x| x.to_words()[0]);
        assert!(top.is_none_or(|top| Some(&top) == tops.get(&hit.place)), "{what}: {hit:?}");
    }
    for (place, &top) in tops {
        match found.get(place) {
            Some(&count) => {
                assert_eq!(count, 1, "{what}: {place:?} {count} times");
                assert!(holds(top, 1), "{what}: {place:?} has {top:x}");
            }
            None => assert!(!holds(top, 0), "{what}: missed {place:?}, {top:x}"),
        }
    }
    assert!(found.keys().all(|place| tops.contains_key(place)), "{what}: a place that is none");
}

#[test]
fn sets_sparse_dense_and_full_find_each_key_once() {
    let mut random = Random(1);
    for simd in available() {
        // Around the number of entries between two pauses and twice that, around those that are kept, and few alone.
        for half in [1, 2, 3, 13, 14, 15, 16, 17, 28, 29, 33] {
            let table = Table::new(simd, half);
            let starts = starts(simd, half as u64);
            let tops = tops(&table, &starts, 2);
            let some: Vec<u64> = tops.values().copied().step_by(7).collect();
            let everything = [Range { first: 0, last: u64::MAX }];
            let halves = [Range { first: 0, last: u64::MAX / 2 }];
            // An eighth of all: of eight lanes' 144 keys as often a few more than sixteen pass as a few less, and of one
            // lane's 18 as often more than four.
            let edges =
                [Range { first: 0, last: 1 << 60 }, Range { first: u64::MAX - (1 << 60), last: u64::MAX }];
            let dense = prefixes((0..1 << 12).map(|_| random.next()), 16);
            let sparse = prefixes((0..300).map(|_| random.next()).chain(some.iter().copied().take(20)), 50);
            let planted = prefixes(some, 64);
            for ranges in [&everything[..], &halves, &edges, &dense, &sparse, &planted] {
                for log2 in [5, 12, 18] {
                    check(&table, &starts, 2, &tops, ranges, log2);
                }
            }
        }
    }
}

#[test]
fn keys_planted_among_a_million_come_back_once_from_every_place() {
    planted_come_back(1 << 20, 23);
}

#[test]
fn keys_planted_among_thirty_thousand_come_back_once_from_every_place() {
    // A table as small as the program makes it, by the same way as a million.
    planted_come_back(30_000, 18);
}

#[test]
fn keys_planted_among_ten_thousand_come_back_once_from_every_place() {
    // So few that next to nothing passes the first table: another sieve.
    planted_come_back(10_000, 21);
}

fn planted_come_back(others: usize, log2: u32) {
    let half = 33;
    let mut random = Random(2);
    let others: Vec<u64> = (0..others).map(|_| random.next()).collect();
    for simd in available() {
        let table = Table::new(simd, half);
        let starts = starts(simd, 3);
        let tops = tops(&table, &starts, 2);
        // Every lane, sign, orbit and image of the first, the last and some entries between, and of the centre.
        let chosen = |p: &Place| [0, 1, 2, 16, 17, 32, 33].contains(&p.index);
        let planted: BTreeMap<Place, u64> = tops.into_iter().filter(|(p, _)| chosen(p)).collect();
        for bits in [64, 55, 40] {
            let ranges = prefixes(others.iter().chain(planted.values()).copied(), bits);
            let sieve = Sieve { bits: Some(Bits::new(&ranges, log2)), ..Sieve::default() };
            let found = hits(&table, &starts, &sieve, 2);
            for place in planted.keys() {
                let count = found.iter().filter(|h| h.place == *place).count();
                assert_eq!(count, 1, "{simd}, {bits} bits: {place:?} came back {count} times");
            }
        }
    }
}

#[test]
fn a_lane_that_leaves_the_formulas_is_tested_once() {
    for simd in available() {
        let table = Table::new(simd, 17);
        for meets in [None, Some(Affine::G), group::multiply(Scalar::from_u64(35), Some(Affine::G))] {
            let mut starts = starts(simd, 9);
            for lane in [0, starts.len() - 1] {
                starts[lane] = meets;
                let tops = tops(&table, &starts, 2);
                let ranges = prefixes(tops.values().copied().step_by(3), 60);
                check(&table, &starts, 2, &tops, &ranges, 12);
                check(&table, &starts, 2, &tops, &[Range { first: 0, last: u64::MAX }], 12);
            }
        }
    }
}

#[test]
fn a_sparse_set_in_a_large_group_finds_each_key_once() {
    for simd in available() {
        let table = Table::new(simd, 4097);
        let starts = starts(simd, 5);
        let tops = tops(&table, &starts, 1);
        let ranges = prefixes(tops.values().copied().step_by(tops.len() / 20), 60);
        check(&table, &starts, 1, &tops, &ranges, 16);
    }
}
