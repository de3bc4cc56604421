//! The shelf: what is claimed, how far ahead, and in what order it is taken.

use super::*;
use crate::error::Error;

const MIB: usize = SEGMENT_BYTES;

/// Claims all that may be claimed now.
fn claims(shelf: &Shelf) -> Vec<Range<u64>> {
    let mut claims = Vec::new();
    loop {
        let mut state = shelf.lock();
        // Without their pace.
        state.due = Instant::now();
        let full =
            state.claimed >= (state.taken + state.window).min(shelf.segments) || state.lots >= state.abreast;
        drop(state);
        if full {
            return claims;
        }
        claims.push(shelf.claim().unwrap());
    }
}

/// Segments and lots that may be under way.
fn bounds(shelf: &Shelf) -> (u64, u64) {
    let state = shelf.lock();
    (state.window, state.abreast)
}

fn take(shelf: &Shelf) -> Vec<u8> {
    shelf.take(Duration::from_secs(3600)).unwrap().unwrap()
}

fn put(shelf: &Shelf, claim: &Range<u64>, took: Duration) {
    shelf.put(claim.start, Ok(vec![claim.start as u8; (claim.end - claim.start) as usize * MIB]), took);
}

#[test]
fn the_window_follows_the_line_and_nothing_is_claimed_twice() {
    let shelf = Shelf::new(1000, 4);
    let (mut next, mut windows) = (0, Vec::new());
    for took in [QUICK / 2, QUICK / 2, QUICK / 2, QUICK / 2, QUICK / 2, QUICK / 2, SLOW / 2] {
        let claims = claims(&shelf);
        for claim in &claims {
            assert_eq!(claim.start, next);
            assert!(claim.end - claim.start <= LOT);
            next = claim.end;
        }
        // What came last is taken last.
        claims.iter().rev().for_each(|claim| put(&shelf, claim, took));
        for claim in &claims {
            let lot = take(&shelf);
            assert_eq!((lot[0], lot.len()), (claim.start as u8, (claim.end - claim.start) as usize * MIB));
        }
        assert_eq!(shelf.lock().taken, next);
        windows.push(shelf.lock().window);
    }
    assert_eq!(windows, [2, 4, 8, 16, 32, 64, 64]);
}

#[test]
fn the_last_lot_ends_with_the_last_segment() {
    let shelf = Shelf::new(21, 2);
    let mut taken = 0;
    while taken < 21 {
        for claim in claims(&shelf) {
            put(&shelf, &claim, Duration::ZERO);
            taken += take(&shelf).len() / MIB;
        }
    }
    assert_eq!((taken, shelf.claim()), (21, None));
}

#[test]
fn errors_come_in_order_and_failures_make_it_modest() {
    let shelf = Shelf::new(100, 4);
    shelf.lock().window = 4;
    let [a, b, ..] = &claims(&shelf)[..] else { panic!("four segments for four connections") };
    shelf.put(b.start, Err(Error::Mismatch("later".to_owned())), Duration::ZERO);
    put(&shelf, a, SLOW / 2);
    assert_eq!(take(&shelf).len(), (a.end - a.start) as usize * MIB);
    assert!(shelf.take(Duration::ZERO).unwrap_err().to_string().contains("later"));
    for window in [2, 1, 1] {
        shelf.slow_down(shelf.mark(), Lack::Rest);
        assert_eq!(bounds(&shelf), (window, 4));
    }
}

/// When a server has enough of them, all are told so at once: that is one reason to ask less often, not one for each. And none asks
/// for less than before, or there would be more requests for the same bytes.
#[test]
fn requests_that_are_refused_together_make_fewer_and_no_smaller_ones() {
    let shelf = Shelf::new(10_000, 8);
    shelf.lock().window = 8 * LOT;
    let refused = claims(&shelf);
    assert_eq!(refused.len(), 8);
    let mark = shelf.mark();
    refused.iter().for_each(|_| shelf.slow_down(mark, Lack::Answer));
    refused.iter().for_each(|claim| put(&shelf, claim, Duration::ZERO));
    refused.iter().for_each(|_| drop(take(&shelf)));
    let fewer = claims(&shelf);
    assert_eq!(fewer.iter().map(|claim| claim.end - claim.start).collect::<Vec<_>>(), [LOT; 4]);
    // They are refused again, all of them; and once more.
    for abreast in [2, 1, 1] {
        let mark = shelf.mark();
        fewer.iter().for_each(|_| shelf.slow_down(mark, Lack::Answer));
        assert_eq!(bounds(&shelf), (8 * LOT, abreast));
    }
    // Those under way are as many as before, and then one at a time.
    fewer.iter().for_each(|claim| put(&shelf, claim, Duration::ZERO));
    fewer.iter().for_each(|_| drop(take(&shelf)));
    assert_eq!(claims(&shelf).len(), 1);
}

/// A line that stood still for a moment, with all that was under way, is slower by half and no more, and soon as quick again.
#[test]
fn a_moment_without_speed_costs_half() {
    let shelf = Shelf::new(10_000, 8);
    shelf.lock().window = 8 * LOT;
    let (claims, mark) = (claims(&shelf), shelf.mark());
    claims.iter().for_each(|claim| {
        shelf.slow_down(mark, Lack::Speed);
        put(&shelf, claim, 2 * SLOW);
    });
    claims.iter().for_each(|_| drop(take(&shelf)));
    assert_eq!((bounds(&shelf), shelf.lock().most), ((4 * LOT, 8), 8 * LOT));
}

/// Whoever takes is not held where nothing comes.
#[test]
fn what_does_not_come_is_not_waited_for() {
    let shelf = Shelf::new(100, 2);
    let first = shelf.claim().unwrap();
    assert!(shelf.take(Duration::from_millis(1)).unwrap().is_none());
    put(&shelf, &first, Duration::ZERO);
    assert_eq!(take(&shelf).len(), MIB);
}

/// As many at once as a server allows with ease, and then one after the other.
#[test]
fn requests_keep_their_pace() {
    let shelf = Shelf::new(100, 2);
    let (mut now, mut state) = (Instant::now(), shelf.lock());
    state.due = now;
    let ahead = AHEAD.div_duration_f64(PACE) as usize;
    assert!((0..ahead).all(|_| state.early(now).is_zero()));
    for _ in 0..1000 {
        assert_eq!(state.early(now), PACE);
        now += PACE;
        assert!(state.early(now).is_zero());
    }
    // A while without any is worth no more than at the beginning.
    now += 100 * AHEAD;
    assert!((0..ahead).all(|_| state.early(now).is_zero()));
    assert_eq!(state.early(now), PACE);
}

/// After a failure no more is under way than was borne, until a while has passed.
#[test]
fn what_failed_is_not_tried_at_every_turn() {
    let shelf = Shelf::new(10_000, 4);
    let run = |lots: u64| {
        let mut taken = 0;
        while taken < lots {
            for claim in claims(&shelf) {
                put(&shelf, &claim, Duration::ZERO);
                drop(take(&shelf));
                taken += 1;
            }
        }
        bounds(&shelf)
    };
    assert_eq!(run(60), (128, 4));
    (0..5).for_each(|_| shelf.slow_down(shelf.mark(), Lack::Rest));
    (0..2).for_each(|_| shelf.slow_down(shelf.mark(), Lack::Answer));
    assert_eq!(run(CALM / 2), (4, 1));
    assert_eq!((run(CALM), run(CALM), run(CALM)), ((8, 2), (16, 4), (32, 4)));
    assert_eq!(run(3 * CALM), (128, 4));
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
