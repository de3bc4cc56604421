//! The combination against plain multiplication, honest walks, and walks with faults.

use std::time::Duration;

use super::*;
use crate::origins::Maker;
use crate::worker::walks::Walks;

/// Lanes of a search where they must be, and what says so. Some began another walk on the way, some have just begun.
fn search(lanes: usize, step: u64) -> (Stand, Vec<Affine>) {
    let maker = Maker::new(None);
    let mut walks = Walks::new(256);
    walks.begin(&maker.ledger(lanes).expect("random").1);
    for (lane, spare) in (0..lanes as u32).step_by(3).zip(maker.make(lanes.div_ceil(3)).expect("random")) {
        walks.replace(lane, spare.point, if lane % 2 == 0 { step } else { step / 2 });
    }
    let stand = Stand::new(walks, step);
    let centres = stand.lanes(lanes).into_iter().map(|point| point.expect("not infinity"));
    let centres = centres.collect();
    (stand, centres)
}

fn random(below: u32) -> u32 {
    let mut bytes = [0; 8];
    warpsmith_entropy::fill(&mut bytes).expect("random");
    (u64::from_le_bytes(bytes) % u64::from(below)) as u32
}

/// A multiple by doubling and adding.
fn times(point: Affine, weight: i32) -> Point {
    let point = if weight < 0 { point.negate() } else { point };
    group::multiply(Scalar::from_u64(weight.unsigned_abs().into()), Some(point))
}

#[test]
fn a_combination_is_the_sum_of_multiples() {
    let (_, mut points) = search(40, 7);
    // Equal points, opposite ones, and weights at the ends.
    points.extend([points[3], points[4].negate(), points[5], points[5].negate()]);
    let mut weights = weights(points.len()).expect("random");
    assert!(weights.iter().all(|w| (1..=1 << 15).contains(&w.abs())));
    let n = points.len();
    weights[..4].copy_from_slice(&[1, -1, 1 << 15, -(1 << 15)]);
    let [of_equal, of_opposite] = [weights[3], weights[4]];
    weights[n - 4..].copy_from_slice(&[of_equal, of_opposite, 77, 77]);
    for count in [0, 1, 2, 5, n] {
        let terms = points[..count].iter().zip(&weights);
        let plain = terms.fold(None, |sum, (point, &weight)| group::add(sum, times(*point, weight)));
        assert_eq!(combine(&points[..count], &weights[..count]), plain, "{count} points");
    }
    assert_eq!(combine(&[points[0]; 2], &[5, -5]), None);
}

/// More points than there is a sum for each weight of, many of one weight, and some that cancel.
#[test]
fn a_combination_of_many_points_is_the_sum_of_multiples() {
    let (row, mut points) = search(FEW + 3000, 9);
    let mut weights = weights(points.len()).expect("random");
    assert!(row.agrees(&points, &weights));
    weights[..1000].fill(321);
    weights[1000..1100].fill(-321);
    points.copy_within(..50, 1000);
    let terms = points.iter().zip(&weights);
    let plain = terms.fold(None, |sum, (point, &weight)| group::add(sum, times(*point, weight)));
    assert_eq!(combine(&points, &weights), plain);
    // And one flipped bit among them.
    let (row, mut centres) = search(FEW + 1, 77);
    assert_eq!(row.check(&centres), Ok(()));
    let lane = random(FEW as u32) as usize;
    centres[lane] = flipped(centres[lane], random(512));
    assert!(row.check(&centres).expect_err("a bit was flipped").contains(&format!("1 of {} lanes", FEW + 1)));
}

#[test]
fn rows_say_where_lanes_are() {
    let (stand, centres) = search(5, 1000);
    // Of five lanes the first has just begun, and the fourth did in the middle.
    for ((lane, centre), age) in (0..).zip(&centres).zip([0, 1000, 1000, 500, 1000]) {
        let way = Scalar::from_u64(513).mul(Scalar::from_u64(age));
        let first = stand.walks.first()[lane as usize];
        let must = group::add(Some(first), group::multiply(way, Some(Affine::G)));
        assert_eq!((stand.lane(lane), Some(*centre)), (must, must));
    }
    // A scan's, across infinity: there is no such lane, and the others are right.
    let first = Scalar::from_u64(10).negate();
    let row = Row { base: None, first, apart: Scalar::from_u64(5) };
    assert_eq!(row.lane(2), None);
    assert_eq!(row.lane(3), Some(row.lane(1).expect("not infinity").negate()));
    assert_eq!(row.lanes(4), (0..4).map(|lane| row.lane(lane)).collect::<Vec<_>>());
    // From a point on: the same as from its key, where that is known.
    let base = group::multiply(Scalar::LAMBDA, Some(Affine::G));
    let (far, near) = (Row { base, ..row }, Row { first: first.add(Scalar::LAMBDA), ..row });
    let centres: Vec<Affine> = near.lanes(9).into_iter().map(|lane| lane.expect("not infinity")).collect();
    assert_eq!(far.lanes(9), near.lanes(9));
    assert_eq!((0..9).map(|lane| far.lane(lane)).collect::<Vec<_>>(), near.lanes(9));
    assert_eq!((far.check(&centres), near.check(&centres)), (Ok(()), Ok(())));
    // Where all lanes are wrong, a check misses them once in 65,536 times.
    assert!((0..3).any(|_| row.check(&centres).is_err()));
    assert!((0..3).any(|_| far.check(&centres[1..]).is_err()));
}

/// None of a thousand honest walks is blamed, and each of a thousand single flipped bits is found.
#[test]
fn flipped_bits_are_found_and_honest_walks_are_not_blamed() {
    for stretch in 0..1000 {
        let lanes = 1 + random(24) as usize;
        let (row, mut centres) = search(lanes, stretch * 977);
        assert_eq!(row.check(&centres), Ok(()));
        let lane = random(lanes as u32) as usize;
        centres[lane] = flipped(centres[lane], random(512));
        let told = row.check(&centres).expect_err("a bit was flipped");
        let says = format!("its walk did not end where it must: 1 of {lanes} lane");
        assert!(told.starts_with(&says), "{told}");
        let centres: Vec<Point> = centres.into_iter().map(Some).collect();
        assert_eq!(row.check_each(&centres), Err(told));
    }
}

/// Faults that lead to points of the curve: only the combination sees these.
#[test]
fn lanes_on_the_curve_but_elsewhere_are_found() {
    for _ in 0..100 {
        let (row, honest) = search(16, 12);
        let (a, b) = (random(8) as usize, 8 + random(8) as usize);
        let wrong = |change: &dyn Fn(&mut Vec<Affine>), count: usize| {
            let mut centres = honest.clone();
            change(&mut centres);
            // Several wrong lanes pass one check in 2^16.
            let told = (0..3).find_map(|_| row.check(&centres).err()).expect("a lane was moved");
            assert!(told.contains(&format!("{count} of 16 lanes")), "{told}");
        };
        let moved = |point: Affine, by: Affine| point.plus(by).expect("not infinity");
        // One lane that is a step ahead, on the other side, an image of itself, or another lane.
        wrong(&|centres| centres[a] = moved(centres[a], Affine::G), 1);
        wrong(&|centres| centres[a] = centres[a].negate(), 1);
        wrong(&|centres| centres[a] = centres[a].endomorphism(1), 1);
        wrong(&|centres| centres[a] = centres[b], 1);
        // Two that changed places, two whose errors undo each other in a plain sum, and all that missed a step.
        wrong(&|centres| centres.swap(a, b), 2);
        wrong(
            &|centres| {
                centres[a] = moved(centres[a], Affine::G);
                centres[b] = moved(centres[b], Affine::G.negate());
            },
            2,
        );
        wrong(&|centres| centres.iter_mut().for_each(|centre| *centre = moved(*centre, Affine::G)), 16);
    }
}

/// Processor time of this thread so far: a machine that is busy otherwise does not count.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live value.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What the check takes of one core, as docs/measurements/end-point-check.md has it.
#[test]
#[ignore = "a measurement: cargo test --release -p warpsmith-engine --lib how_long -- --ignored --nocapture"]
fn how_long_the_check_takes() {
    for lanes in [8, 64, 84_480, 337_920] {
        let (row, centres) = search(lanes, 1 << 30);
        let mut times: Vec<_> = (0..9)
            .map(|_| {
                let started = thread_time();
                row.check(&centres).expect("honest");
                thread_time() - started
            })
            .collect();
        times.sort_unstable();
        println!("{lanes} lanes: {:?} (median of nine, the fastest {:?})", times[4], times[0]);
    }
}
