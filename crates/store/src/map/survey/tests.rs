use proptest::prelude::*;

use crate::interval::{Interval, U256};
use crate::map::tests::{interval, job, lines_of, number, read_lines, targets};
use crate::map::{Job, Map, Planner, text};
use crate::order::Order;

proptest! {
    /// Pieces are counted as one would by hand.
    #[test]
    fn pieces_are_counted_one_by_one(
        count in 1u64..2000, piece in 1u64..300, parts in prop::collection::vec((any::<u64>(), 1u64..400), 0..12),
    ) {
        let job = job(number(77), count);
        let order = Order::random(&job.range(), 5, number(piece));
        let mut map = Map::new(job, order);
        let Order::Random { piece, .. } = order else { panic!() };
        let piece = piece.as_u64();
        let mut covered = vec![false; count as usize];
        for (first, length) in parts {
            let first = first % count;
            let length = length.min(count - first);
            map.covered.insert(interval(77 + first, 76 + first + length));
            covered[first as usize..(first + length) as usize].fill(true);
        }
        let pieces = map.pieces().unwrap();
        let by_hand: Vec<&[bool]> = covered.chunks(piece as usize).collect();
        let done = by_hand.iter().filter(|piece| piece.iter().all(|&key| key)).count();
        let some = by_hand.iter().filter(|piece| piece.iter().any(|&key| key)).count();
        prop_assert_eq!(pieces.all, number(by_hand.len() as u64));
        prop_assert_eq!((pieces.done, pieces.begun), (number(done as u64), number((some - done) as u64)));
        let gaps = map.survey(2).unwrap();
        let all = map.gaps().unwrap();
        prop_assert_eq!(gaps.count, all.len());
        prop_assert_eq!(gaps.first, all.iter().take(2).collect::<Vec<_>>());
        prop_assert_eq!(gaps.largest.map(|gap| gap.count()), all.iter().map(|gap| gap.count()).max());
    }
}

/// What would take a gigabyte to list is told all the same.
#[test]
fn a_large_random_map_is_surveyed_by_pieces() {
    let job =
        Job::new(Interval::new(U256::ONE, crate::key_order() - U256::ONE).unwrap(), &["eth"], targets(3));
    let order = Order::random(&job.range(), 5, U256::ONE << 40);
    let mut map = Map::new(job, order);
    let mut planner = Planner::new(&map);
    map.begin(1000);
    let Order::Random { piece, .. } = order else { panic!() };
    for _ in 0..5 {
        map.complete(&planner.next(piece / U256::new(2) + U256::ONE).unwrap(), 1003);
    }
    assert!(map.gaps().is_err() && map.survey(5).is_none());
    let pieces = map.pieces().unwrap();
    assert_eq!((pieces.keys, pieces.done, pieces.begun), (piece, U256::new(2), U256::ONE));
    assert!(pieces.all >= U256::ONE << 61);
}

#[test]
fn speeds_are_of_time_that_was_measured() {
    let mut map = Map::new(job(number(1), 1000), Order::Sequential);
    let mut planner = Planner::new(&map);
    let mut run = |map: &mut Map, began: u64, seconds: u64, keys: u64| {
        map.begin(began);
        map.complete(&planner.next(number(keys)).unwrap(), began + seconds);
    };
    assert_eq!((map.rate(), map.last_rate()), (None, None));
    run(&mut map, 100, 0, 10);
    assert_eq!((map.rate(), map.last_rate(), map.history()[0].rate()), (None, None, None));
    run(&mut map, 200, 20, 40);
    assert_eq!((map.rate(), map.last_rate()), (Some(2.5), Some(2.0)));
    run(&mut map, 300, 4, 40);
    run(&mut map, 400, 0, 10);
    run(&mut map, 500, 6, 50);
    assert_eq!((map.rate(), map.last_rate()), (Some(5.0), Some(10.0)));
    // A run that comes to nothing is not written down, and one that somebody wrote down is not shown.
    map.begin(600);
    assert!(!text::write(&map).contains("stretch 600"));
    let old = lines_of(&map).replace("covered", "stretch 700 9 0\ncovered");
    assert_eq!(read_lines(&old).unwrap().history().len(), 5);
}
