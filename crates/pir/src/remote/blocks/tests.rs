//! The shelf: what is claimed, how far ahead, and in what order it is taken.

use super::*;
use crate::error::Error;

const MIB: usize = SEGMENT_BYTES;

/// Claims all that may be claimed now.
fn claims(shelf: &Shelf) -> Vec<Range<u64>> {
    let mut claims = Vec::new();
    loop {
        let state = shelf.lock();
        let full = state.claimed >= (state.taken + state.window).min(shelf.segments);
        drop(state);
        if full {
            return claims;
        }
        claims.push(shelf.claim().unwrap());
    }
}

fn put(shelf: &Shelf, claim: &Range<u64>, took: Duration) {
    shelf.put(claim.start, Ok(vec![claim.start as u8; (claim.end - claim.start) as usize * MIB]), took);
}

#[test]
fn the_window_follows_the_line_and_nothing_is_claimed_twice() {
    let shelf = Shelf::new(1000, 4);
    let (mut next, mut windows) = (0, Vec::new());
    for took in [QUICK / 2, QUICK / 2, QUICK / 2, QUICK / 2, QUICK / 2, QUICK / 2, SLOW * 2, SLOW / 2] {
        let claims = claims(&shelf);
        for claim in &claims {
            assert_eq!(claim.start, next);
            assert!(claim.end - claim.start <= LOT);
            next = claim.end;
        }
        // What came last is taken last.
        claims.iter().rev().for_each(|claim| put(&shelf, claim, took));
        for claim in &claims {
            let lot = shelf.take().unwrap();
            assert_eq!((lot[0], lot.len()), (claim.start as u8, (claim.end - claim.start) as usize * MIB));
        }
        assert_eq!(shelf.lock().taken, next);
        windows.push(shelf.lock().window);
    }
    assert_eq!(windows, [2, 4, 8, 16, 32, 64, 1, 1]);
}

#[test]
fn the_last_lot_ends_with_the_last_segment() {
    let shelf = Shelf::new(21, 2);
    let mut taken = 0;
    while taken < 21 {
        for claim in claims(&shelf) {
            put(&shelf, &claim, Duration::ZERO);
            taken += shelf.take().unwrap().len() / MIB;
        }
    }
    assert_eq!((taken, shelf.claim()), (21, None));
}

#[test]
fn errors_come_in_order_and_failures_make_it_modest() {
    let shelf = Shelf::new(100, 2);
    shelf.lock().window = 4;
    let [a, b, ..] = &claims(&shelf)[..] else { panic!("four segments for two connections") };
    shelf.put(b.start, Err(Error::Mismatch("later".to_owned())), Duration::ZERO);
    put(&shelf, a, SLOW / 2);
    assert_eq!(shelf.take().unwrap().len(), (a.end - a.start) as usize * MIB);
    assert!(shelf.take().unwrap_err().to_string().contains("later"));
    for window in [2, 1, 1] {
        shelf.slow_down();
        assert_eq!(shelf.lock().window, window);
    }
}

/// After a failure no more is under way than was borne, until a while has passed.
#[test]
fn what_failed_is_not_tried_at_every_turn() {
    let shelf = Shelf::new(10_000, 4);
    let run = |segments: u64| {
        let until = shelf.lock().taken + segments;
        while shelf.lock().taken < until {
            let claims = claims(&shelf);
            claims.iter().for_each(|claim| put(&shelf, claim, Duration::ZERO));
            claims.iter().for_each(|_| drop(shelf.take().unwrap()));
        }
        shelf.lock().window
    };
    assert_eq!(run(500), 64);
    (0..4).for_each(|_| shelf.slow_down());
    assert_eq!(shelf.lock().window, 4);
    assert_eq!(run(CALM / 2), 4);
    assert_eq!((run(CALM), run(CALM), run(CALM)), (8, 16, 32));
    assert_eq!(run(2 * CALM), 64);
}

#[test]
fn nobody_waits_after_the_end() {
    let shelf = Shelf::new(100, 2);
    let first = shelf.claim();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| shelf.claim());
        let rests = scope.spawn(|| shelf.rest(Duration::from_secs(3600)));
        drop(End { shelf: &shelf, only_by_panic: true });
        assert!(!shelf.is_over());
        drop(End { shelf: &shelf, only_by_panic: false });
        assert_eq!((first, waits.join().unwrap()), (Some(0..1), None));
        rests.join().unwrap();
    });
}
