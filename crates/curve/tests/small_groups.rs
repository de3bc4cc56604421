//! The walks in groups of 13 and 199 elements: every centre with every entry, sign, orbit and image, at every step. Next to
//! every group holds points that meet, and walks come to infinity and go on.
//!
//! Shapes: `2 half + 1` is less than the order, or the step would lead nowhere: half is 1 to 5 with order 13. There half
//! 2 and more leaves the orbit walk no centre that does not meet an image of an entry, so that all goes point by point.

use std::collections::BTreeMap;

use warpsmith_curve::field::dispatch;
use warpsmith_curve::group::Point;
use warpsmith_curve::walk::{Bits, Block, Hit, Place, Points, Range, Sieve, Table, Term, Walk};
use warpsmith_curve::{Affine, Fe};

use crate::common::available;
use crate::small::Small;

fn fe(number: &num_bigint::BigUint) -> Fe {
    let mut bytes = [0; 32];
    let digits = number.to_bytes_be();
    bytes[32 - digits.len()..].copy_from_slice(&digits);
    Fe::from_be_bytes(&bytes)
}

fn point(group: &Small, k: i64) -> Point {
    group.point(k).map(|(x, y)| Affine { x: fe(x), y: fe(y) })
}

/// The element of a place in the walk of a lane that began at `start`.
fn element(group: &Small, start: i64, half: u32, place: &Place) -> i64 {
    let entry = group.image(place.index.into(), place.orbit.into());
    let centre = start + place.step as i64 * (2 * i64::from(half) + 1);
    let sum = group.image(if place.minus { centre - entry } else { centre + entry }, place.image.into());
    if place.negate { -sum } else { sum }
}

/// All places of a walk whose elements are points, with their elements.
fn places(
    group: &Small,
    starts: &[i64],
    half: u32,
    steps: u64,
    orbits: u8,
    signs: bool,
) -> BTreeMap<Place, i64> {
    let mut places = BTreeMap::new();
    for (lane, &start) in (0..).zip(starts) {
        for step in 0..steps {
            for index in 0..=half {
                for (orbit, image) in (0..orbits).flat_map(|orbit| (0..3).map(move |image| (orbit, image))) {
                    for (minus, negate) in [(false, false), (true, false), (false, true), (true, true)] {
                        let place = Place { lane, step, index, minus, orbit, image, negate };
                        let element = element(group, start, half, &place).rem_euclid(group.order);
                        if (index > 0 || !minus && orbit == 0) && (signs || !negate) && element != 0 {
                            places.insert(place, element);
                        }
                    }
                }
            }
        }
    }
    places
}

/// All elements as starts, infinity among them, as many at a time as there are lanes.
fn starts(group: &Small, lanes: usize) -> Vec<Vec<i64>> {
    let all: Vec<i64> = (0..group.order).collect();
    all.chunks(lanes).map(|some| (0..lanes).map(|lane| some[lane % some.len()]).collect()).collect()
}

/// Entries of a table, and steps: through all of the smaller group.
fn shapes(group: &Small) -> Vec<(u32, u64)> {
    match group.order {
        13 => (1..=5).map(|half| (half, 14)).collect(),
        _ => vec![(1, 4), (2, 4), (8, 3), (33, 2)],
    }
}

#[test]
fn the_orbit_walk_is_right_at_every_element() {
    let everything =
        Sieve { terms: vec![Term { mask: [0; 4], value: [0; 4], equations: vec![] }], ..Sieve::default() };
    for simd in available() {
        for group in Small::both() {
            let x: Vec<Option<Fe>> = (0..group.order).map(|k| point(&group, k).map(|p| p.x)).collect();
            for (half, steps) in shapes(&group) {
                let table = Table::of(simd, point(&group, 1).expect("a generator"), half);
                for starts in starts(&group, dispatch::lane_count(simd)) {
                    let points: Vec<Point> = starts.iter().map(|k| point(&group, *k)).collect();
                    let mut walk = Walk::new(&table, &points);
                    let (mut hits, mut keys) = (Vec::new(), 0);
                    for _ in 0..steps {
                        keys += walk.group(&everything, &mut hits);
                    }
                    let mut expected = places(&group, &starts, half, steps, 3, false);
                    assert_eq!((keys, hits.len()), (expected.len() as u64, expected.len()));
                    for Hit { place, x: found } in hits {
                        let element = expected.remove(&place).unwrap_or_else(|| panic!("{place:?} twice"));
                        assert_eq!(found, x[element as usize], "{simd}: {place:?} from {starts:?}");
                    }
                    let ends = starts.iter().map(|k| k + steps as i64 * (2 * i64::from(half) + 1));
                    assert_eq!(walk.centres(), ends.map(|k| point(&group, k)).collect::<Vec<_>>());
                }
            }
        }
    }
}

/// The same by leading bits, which are never those of a whole x.
#[test]
fn the_sieves_of_leading_bits_miss_no_element() {
    for simd in available() {
        for group in Small::both() {
            let (half, steps) = (1, if group.order == 13 { 4 } else { 1 });
            let table = Table::of(simd, point(&group, 1).expect("a generator"), half);
            for wanted in (1..group.order).step_by(group.order as usize / 12) {
                let top = point(&group, wanted).expect("not infinity").x.to_words()[0];
                let range = Range { first: top, last: top };
                let sieves = [
                    Sieve { ranges: vec![range], ..Sieve::default() },
                    Sieve { bits: Some(Bits::new(&[range], 14)), ..Sieve::default() },
                ];
                for (starts, sieve) in starts(&group, dispatch::lane_count(simd))
                    .iter()
                    .flat_map(|s| sieves.each_ref().map(|v| (s, v)))
                {
                    let points: Vec<Point> = starts.iter().map(|k| point(&group, *k)).collect();
                    let (mut walk, mut hits) = (Walk::new(&table, &points), Vec::new());
                    for _ in 0..steps {
                        walk.group(sieve, &mut hits);
                    }
                    // An element and its opposite have one x.
                    let places = places(&group, starts, half, steps, 3, false);
                    let wanted = |(_, k): &(&Place, &i64)| **k == wanted || **k == group.order - wanted;
                    let mut expected: Vec<Place> =
                        places.iter().filter(wanted).map(|(place, _)| *place).collect();
                    let mut found: Vec<Place> = hits.iter().map(|hit| hit.place).collect();
                    // What passes besides is decided elsewhere; all x of so few elements lie far apart.
                    found.sort();
                    expected.sort();
                    assert_eq!(found, expected, "{simd} from {starts:?}");
                }
            }
        }
    }
}

/// Notes the coordinates of everything it is handed.
#[derive(Default)]
struct Notes(Vec<(Place, [Fe; 2])>);

impl Points for Notes {
    const Y: bool = true;

    fn points(&mut self, block: &Block) {
        for at in (0..8).filter(|at| block.live >> at & 1 == 1) {
            for image in 0..3 {
                for negate in [false, true] {
                    let x = Fe::from_words(&block.x[image as usize].map(|word| word[at]));
                    let y = Fe::from_words(&block.y[usize::from(negate)].map(|word| word[at]));
                    self.0.push((block.place(at, image, negate), [x, y]));
                }
            }
        }
    }
}

#[test]
fn the_walk_over_points_is_right_at_every_element() {
    for simd in available() {
        for group in Small::both() {
            for (half, steps) in shapes(&group) {
                let table = Table::of(simd, point(&group, 1).expect("a generator"), half);
                for starts in starts(&group, dispatch::lane_count(simd)) {
                    let points: Vec<Point> = starts.iter().map(|k| point(&group, *k)).collect();
                    let (mut walk, mut notes, mut keys) = (Walk::new(&table, &points), Notes::default(), 0);
                    for _ in 0..steps {
                        keys += walk.points(&mut notes);
                    }
                    let mut expected = places(&group, &starts, half, steps, 1, true);
                    assert_eq!((keys, notes.0.len()), (expected.len() as u64, expected.len()));
                    for (place, [x, y]) in notes.0 {
                        let element = expected.remove(&place).unwrap_or_else(|| panic!("{place:?} twice"));
                        assert_eq!(
                            Some(Affine { x, y }),
                            point(&group, element),
                            "{simd}: {place:?} from {starts:?}"
                        );
                    }
                }
            }
        }
    }
}
