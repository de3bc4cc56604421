//! The walk against k*G of libsecp256k1, key by key.

use std::collections::BTreeMap;

use warpsmith_curve::field::dispatch;
use warpsmith_curve::group;
use warpsmith_curve::walk::{self, Bits, Hit, Place, Range, Sieve, Table, Term, Walk};
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_simd::Simd;

use crate::common::{available, key, offset, point, some_scalar, starts};

fn n_minus(k: u64) -> Scalar {
    Scalar::from_u64(k).negate()
}

/// Everything passes, and x is formed.
fn everything() -> Sieve {
    Sieve { terms: vec![Term { mask: [0; 4], value: [0; 4], equations: vec![] }], ..Sieve::default() }
}

/// Every key of a few groups, by two ways: each place once, each x equal to that of k*G.
fn check_groups(simd: Simd, origin: Scalar, half: u32, groups: u64) {
    let table = Table::new(simd, half);
    let lanes = dispatch::lane_count(simd);
    let mut walk = Walk::new(&table, &starts(origin, half, lanes));
    let mut hits = Vec::new();
    let mut keys = 0;
    for _ in 0..groups {
        keys += walk.group(&everything(), &mut hits);
    }
    assert_eq!(keys, hits.len() as u64, "{simd}: keys counted are keys tested");
    let mut infinite = 0;
    let mut expected = BTreeMap::new();
    for lane in 0..lanes as u32 {
        for step in 0..groups {
            for index in 0..=half {
                for (minus, orbit) in [(false, 0), (true, 0), (false, 1), (true, 1), (false, 2), (true, 2)] {
                    if index == 0 && (minus || orbit > 0) {
                        continue;
                    }
                    for image in 0..3 {
                        let place = Place { lane, step, index, minus, orbit, image, negate: false };
                        match point(key(origin, &place, half)) {
                            Some(p) => drop(expected.insert(place, p.x)),
                            None => infinite += 1,
                        }
                    }
                }
            }
        }
    }
    let per_group = walk::KEYS_PER_CENTRE + walk::KEYS_PER_ENTRY * half as u64;
    assert_eq!(expected.len() as u64 + infinite, per_group * groups * lanes as u64);
    for Hit { place, x } in hits {
        let right = expected.remove(&place).unwrap_or_else(|| panic!("{simd}: {place:?} twice or too many"));
        assert_eq!(x, Some(right), "{simd}: {place:?} from {origin:?}");
    }
    assert!(expected.is_empty(), "{simd}: missed {:?}", expected.keys().next());
}

#[test]
fn every_key_of_a_group_is_right_for_random_origins() {
    for simd in available() {
        for seed in 0..3 {
            check_groups(simd, some_scalar(seed), 5, 2);
        }
    }
}

#[test]
fn groups_at_one_at_n_minus_one_across_n_and_on_the_table_are_exact() {
    for simd in available() {
        for half in [1, 2, 3] {
            for k in 0..=2 * half as u64 + 2 {
                check_groups(simd, Scalar::from_u64(k), half, 2);
                check_groups(simd, n_minus(k), half, 2);
            }
            // The table's images: c = lambda * i, where c^3 = t^3 though c is not t.
            check_groups(simd, Scalar::LAMBDA.mul(Scalar::from_u64(half as u64)), half, 1);
            check_groups(simd, Scalar::lambda_power(2).negate(), half, 1);
        }
    }
}

/// The origin that puts a key into a place.
fn origin_for(key: Scalar, place: &Place, half: u32) -> Scalar {
    // lambda^3 = 1, so lambda^(3 - image) undoes the image.
    Scalar::lambda_power(3 - place.image).mul(key).sub(offset(place, half))
}

fn places(half: u32, lanes: u32, groups: u64) -> Vec<Place> {
    let mut out = Vec::new();
    for lane in [0, lanes / 2, lanes - 1] {
        for step in [0, groups / 2, groups - 1] {
            for index in [0, 1, 2, half / 2, half - 1, half] {
                for minus in [false, true] {
                    for orbit in 0..3 {
                        for image in 0..3 {
                            if index > 0 || (!minus && orbit == 0) {
                                out.push(Place { lane, step, index, minus, orbit, image, negate: false });
                            }
                        }
                    }
                }
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

#[test]
fn planted_keys_come_back_exactly_once_from_every_sieve() {
    let half = 16;
    let groups = 3;
    for simd in available() {
        let lanes = dispatch::lane_count(simd);
        let table = Table::new(simd, half);
        for (n, place) in places(half, lanes as u32, groups).into_iter().enumerate() {
            let wanted = some_scalar(n as u64 + 1000);
            let x = point(wanted).expect("not zero").x;
            let words = x.to_words();
            let top = words[0];
            let range = Range { first: top, last: top };
            let term = Term { mask: [0, 0, 0, u64::MAX], value: [0, 0, 0, words[3]], equations: vec![] };
            let others: Vec<Range> = {
                let mut r: Vec<_> =
                    (0..300u64).map(|i| i.wrapping_mul(0x0123_4567_89ab_cdef)).chain([top]).collect();
                r.sort();
                r.dedup();
                r.into_iter().map(|v| Range { first: v, last: v }).collect()
            };
            // Holds for no key, or next to none.
            let elsewhere = Term { value: [0, 0, 0, !words[3]], ..term.clone() };
            let bits = || Some(Bits::new(&others, 14));
            let sieves = [
                Sieve { ranges: vec![range], ..Sieve::default() },
                Sieve { ranges: vec![Range { first: 5, last: 5 }, range], ..Sieve::default() },
                Sieve { bits: bits(), ..Sieve::default() },
                Sieve { terms: vec![term.clone()], ..Sieve::default() },
                Sieve { ranges: vec![range], terms: vec![term.clone()], ..Sieve::default() },
                Sieve { ranges: vec![range], terms: vec![elsewhere.clone()], ..Sieve::default() },
                Sieve { bits: bits(), terms: vec![term], ..Sieve::default() },
                Sieve { bits: bits(), terms: vec![elsewhere], ..Sieve::default() },
            ];
            let origin = origin_for(wanted, &place, half);
            let starts = starts(origin, half, lanes);
            for (s, sieve) in sieves.iter().enumerate() {
                let mut walk = Walk::new(&table, &starts);
                let mut hits = Vec::new();
                for _ in 0..groups {
                    walk.group(sieve, &mut hits);
                }
                let count = hits.iter().filter(|h| h.place == place).count();
                assert_eq!(count, 1, "{simd}, sieve {s}: {place:?} came back {count} times");
                for hit in &hits {
                    if let Some(hx) = hit.x {
                        assert_eq!(Some(hx), point(key(origin, &hit.place, half)).map(|p| p.x));
                    }
                }
            }
        }
    }
}

#[test]
fn the_word_sieve_never_misses_at_the_edges_of_a_range() {
    // Every key of some groups, each with the narrowest ranges that hold it: its own word alone, and ranges
    // that begin or end with it.
    for simd in available() {
        let half = 4;
        let table = Table::new(simd, half);
        let lanes = dispatch::lane_count(simd);
        let origin = some_scalar(77);
        let starts = starts(origin, half, lanes);
        let mut all = Vec::new();
        Walk::new(&table, &starts).group(&everything(), &mut all);
        for hit in all {
            let top = hit.x.expect("formed").to_words()[0];
            for range in [
                Range { first: top, last: top },
                Range { first: top.saturating_sub(100_000 << 32), last: top },
                Range { first: top, last: top.saturating_add(100_000 << 32) },
            ] {
                for sieve in [
                    Sieve { ranges: vec![range], ..Sieve::default() },
                    Sieve { bits: Some(Bits::new(&[range], 20)), ..Sieve::default() },
                    Sieve { bits: Some(Bits::new(&[range], 5)), ..Sieve::default() },
                ] {
                    let mut hits = Vec::new();
                    Walk::new(&table, &starts).group(&sieve, &mut hits);
                    let count = hits.iter().filter(|h| h.place == hit.place).count();
                    assert_eq!(count, 1, "{simd}: {:?} with {range:?}", hit.place);
                }
            }
        }
    }
}

#[test]
fn centres_with_a_tiny_or_huge_x_pass_where_they_belong() {
    // x = 1 and x = p - 3 lie at the two ends of the circle of fractions; nobody knows their keys, but a
    // walk may be given such a point.
    for simd in available() {
        let half = 8;
        let table = Table::new(simd, half);
        let lanes = dispatch::lane_count(simd);
        for x in [Fe::ONE, Fe::from_u64(3).negate(), Fe::from_u64(2), Fe::from_u64(4)] {
            let Some(p) = Affine::lift_x(x, false) else { continue };
            let top = x.to_words()[0];
            let sieve = Sieve { ranges: vec![Range { first: top, last: top }], ..Sieve::default() };
            // As the centre itself, and as centre + lambda^k * i: start from p - lambda^k * i.
            for (index, minus, orbit) in [(0, false, 0), (3, false, 1), (8, true, 2), (1, true, 0)] {
                let i = point(Scalar::from_u64(index as u64)).map(|q| q.endomorphism(orbit));
                let start = group::add(Some(p), if minus { i } else { i.map(Affine::negate) });
                let mut hits = Vec::new();
                Walk::new(&table, &vec![start; lanes]).group(&sieve, &mut hits);
                for lane in 0..lanes as u32 {
                    let place = Place { lane, step: 0, index, minus, orbit, image: 0, negate: false };
                    assert_eq!(hits.iter().filter(|h| h.place == place).count(), 1, "{simd} {x:?} {place:?}");
                }
            }
        }
    }
}
