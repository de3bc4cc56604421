//! The walk over points against k*G of libsecp256k1: both coordinates of every key.

use std::collections::BTreeMap;

use warpsmith_curve::Scalar;
use warpsmith_curve::field::dispatch;
use warpsmith_curve::walk::{Block, KEYS_PER_POINT, Place, Points, Table, Walk};
use warpsmith_simd::Simd;

use crate::common::{STRIDE, available, key, point, some_scalar, starts};

/// x and y, most significant word first.
type Coordinates = [[u64; 4]; 2];

/// k*G by the independent library; none for infinity.
fn coordinates(k: Scalar) -> Option<Coordinates> {
    point(k).map(|point| [point.x.to_words(), point.y.to_words()])
}

/// Notes every key it is handed; y only if asked for.
#[derive(Default)]
struct Notes<const Y: bool, const RELATIVES: bool = true> {
    seen: BTreeMap<Place, Coordinates>,
    twice: Option<Place>,
    blocks: usize,
}

impl<const Y: bool, const RELATIVES: bool> Points for Notes<Y, RELATIVES> {
    const Y: bool = Y;
    const RELATIVES: bool = RELATIVES;

    fn points(&mut self, block: &Block) {
        self.blocks += 1;
        for point in (0..8).filter(|i| block.live >> i & 1 == 1) {
            for image in 0..if RELATIVES { 3 } else { 1 } {
                for &negate in if RELATIVES { &[false, true][..] } else { &[false] } {
                    let place = block.place(point, image, negate);
                    let x = block.x[image as usize].map(|w| w[point]);
                    let y = if Y { block.y[negate as usize].map(|w| w[point]) } else { [0; 4] };
                    if self.seen.insert(place, [x, y]).is_some() {
                        self.twice = Some(place);
                    }
                }
            }
        }
    }
}

/// Every key of a few groups: each place once, each coordinate that of k*G.
fn check_groups<const Y: bool>(simd: Simd, origin: Scalar, half: u32, groups: u64) {
    check::<Y, true>(simd, origin, half, groups);
    check::<Y, false>(simd, origin, half, groups);
}

fn check<const Y: bool, const RELATIVES: bool>(simd: Simd, origin: Scalar, half: u32, groups: u64) {
    let table = Table::new(simd, half);
    let lanes = dispatch::lane_count(simd);
    let mut walk = Walk::new(&table, &starts(origin, half, lanes));
    let mut notes = Notes::<Y, RELATIVES>::default();
    let mut keys = 0;
    for step in 0..groups {
        let moved = Scalar::from_u64(step * (2 * half as u64 + 1));
        assert_eq!(walk.centres(), starts(origin.add(moved), half, lanes), "{simd}: centres of step {step}");
        keys += walk.points(&mut notes);
    }
    assert_eq!(walk.step(), groups);
    assert_eq!(notes.twice, None, "{simd}: twice");
    assert_eq!(keys, notes.seen.len() as u64, "{simd}: keys counted are keys handed over");
    let mut infinite = 0;
    for lane in 0..lanes as u32 {
        for step in 0..groups {
            for (index, minus) in
                (0..=half).flat_map(|i| [(i, false), (i, true)]).filter(|&at| at != (0, true))
            {
                let relatives = (0..3).flat_map(|i| [(i, false), (i, true)]);
                for (image, negate) in relatives.take(if RELATIVES { 6 } else { 1 }) {
                    let place = Place { lane, step, index, minus, orbit: 0, image, negate };
                    let seen = notes.seen.remove(&place);
                    let expected = coordinates(key(origin, &place, half));
                    infinite += u64::from(expected.is_none());
                    let expected = expected.map(|[x, y]| [x, if Y { y } else { [0; 4] }]);
                    assert_eq!(seen, expected, "{simd}: {place:?} from {origin:?}");
                }
            }
        }
    }
    assert!(notes.seen.is_empty(), "{simd}: no such place: {:?}", notes.seen.keys().next());
    let keys_per_point = if RELATIVES { KEYS_PER_POINT } else { 1 };
    assert_eq!(keys + infinite, keys_per_point * (2 * half as u64 + 1) * groups * lanes as u64);
}

#[test]
fn every_key_of_a_group_is_right_for_random_origins() {
    for simd in available() {
        for seed in 0..3 {
            check_groups::<true>(simd, some_scalar(seed), 5, 2);
            check_groups::<false>(simd, some_scalar(seed), 4, 2);
        }
        check_groups::<true>(simd, some_scalar(9), 33, 1);
    }
}

#[test]
fn groups_at_one_at_n_minus_one_across_n_and_on_the_table_are_exact() {
    for simd in available() {
        for half in [1, 2, 3] {
            // From -(2 half + 2) to 2 half + 2: centres at infinity, at every entry, at the step and its
            // opposite, and groups that hold infinity.
            for k in 0..=2 * half as u64 + 2 {
                check_groups::<true>(simd, Scalar::from_u64(k), half, 2);
                check_groups::<true>(simd, Scalar::from_u64(k).negate(), half, 2);
            }
            check_groups::<false>(simd, Scalar::ZERO, half, 2);
            check_groups::<false>(simd, Scalar::from_u64(half as u64), half, 2);
        }
        // A group with infinity in it comes in the middle of a walk.
        check_groups::<true>(simd, Scalar::from_u64(20).negate(), 3, 4);
    }
}

#[test]
fn a_lane_that_meets_the_table_leaves_the_others_alone() {
    // Lane 3 begins on an entry, the others do not.
    for simd in available().filter(|&s| dispatch::lane_count(s) > 3) {
        let half = 4;
        let origin = Scalar::from_u64(2).sub(Scalar::from_u64(3 * STRIDE * (2 * half + 1)));
        check_groups::<true>(simd, origin, half as u32, 2);
    }
}

#[test]
fn blocks_are_full_but_for_the_last_of_a_group() {
    for simd in available() {
        let half = 20;
        let table = Table::new(simd, half);
        let lanes = dispatch::lane_count(simd);
        let mut walk = Walk::new(&table, &starts(some_scalar(4), half, lanes));
        let mut notes = Notes::<true>::default();
        walk.points(&mut notes);
        let points = (2 * half as usize + 1) * lanes;
        assert_eq!(notes.blocks, points.div_ceil(8), "{simd}");
    }
}
