//! Who goes on and who rests, so that requests at the same time have the same time of the devices.
//!
//! Left to itself a card is not shared evenly: its launches go in turn, whatever their length, and a search that waits for its turn takes the wait for
//! slowness and makes its launches shorter. So each search tells how far it is, in seconds that the devices would take for it alone; one that is
//! ahead of the last rests until that has come up to it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far ahead of the last one may be: some launches.
const AHEAD: f64 = 0.05;
/// Nobody waits longer for one that does not move, as while its results are verified.
const STILL: Duration = Duration::from_millis(500);

/// Those that search.
#[derive(Default)]
pub(super) struct Turns(Mutex<Vec<Runner>>);

struct Runner {
    number: u64,
    /// Seconds of the devices, with what the last of the others had when it began; none before its first.
    used: Option<f64>,
    tried: u64,
    moved: Instant,
    rests: bool,
    /// What the devices alone would try a second.
    rate: f64,
    /// Seconds in which all others rested, and what was tried in these.
    alone: (f64, u64),
    /// Whether all others rested when it last moved.
    was_alone: bool,
}

/// A search, as long as it goes on.
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    number: u64,
}

/// After so many seconds alone it is known how fast one is.
const KNOWN: f64 = 0.25;

impl Turns {
    /// One that begins, of which the devices alone would try so many a second.
    pub fn join(&self, rate: f64) -> Turn<'_> {
        let mut all = self.lock();
        let number = all.iter().map(|runner| runner.number + 1).max().unwrap_or(0);
        let (used, tried, moved, rests, alone, was_alone) = (None, 0, Instant::now(), false, (0.0, 0), false);
        all.push(Runner { number, used, tried, moved, rests, rate: rate.max(1.0), alone, was_alone });
        Turn { turns: self, number }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Runner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// It has tried so many. Says whether it shall rest.
    pub fn told(&self, tried: u64, now: Instant) -> bool {
        let mut all = self.turns.lock();
        let others = || all.iter().filter(|other| other.number != self.number);
        let last = others()
            .filter(|other| other.rests || now.saturating_duration_since(other.moved) < STILL)
            .filter_map(|other| other.used)
            .min_by(f64::total_cmp);
        let furthest = others().filter_map(|other| other.used).max_by(f64::total_cmp);
        let is_alone = others().all(|other| other.rests || other.used.is_none());
        let Some(own) = all.iter_mut().find(|runner| runner.number == self.number) else { return false };
        if tried > own.tried {
            let more = tried - own.tried;
            // What is sought may be far slower than what it was taken for: many patterns, each looked at in turn. Others would rest for it
            // nearly all the time.
            if is_alone && own.was_alone {
                own.alone.0 += now.saturating_duration_since(own.moved).as_secs_f64();
                own.alone.1 += more;
                if own.alone.0 >= KNOWN {
                    let seen = own.alone.1 as f64 / own.alone.0;
                    if seen < own.rate / 2.0 {
                        own.rate = seen.max(1.0);
                    }
                    own.alone = (0.0, 0);
                }
            }
            // Who comes later has no claim to what was before it, nor those before it to wait for.
            let before = own.used.or(last).or(furthest).unwrap_or(0.0);
            own.used = Some(before + more as f64 / own.rate);
            (own.tried, own.moved, own.was_alone) = (tried, now, is_alone);
        }
        own.rests = own.used.zip(last).is_some_and(|(used, last)| used > last + AHEAD);
        own.rests
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().retain(|runner| runner.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card that gives those who do not rest very different parts of it, in steps of 10 ms: all come to the same time.
    #[test]
    fn uneven_ones_come_to_the_same_time() {
        let turns = Turns::default();
        let start = Instant::now();
        // Rates alone, and how the card favours each.
        let rates = [3.9e9, 1.9e9, 3.9e9, 1.3e9];
        let favour = [10.0, 1.0, 6.0, 0.5];
        let (mut tried, mut rests) = ([0.0f64; 4], [false; 4]);
        let joined: Vec<Turn<'_>> = rates.iter().map(|rate| turns.join(*rate)).collect();
        // The last joins after two seconds.
        for step in 0..1000 {
            let running = |n: usize| (n < 3 || step >= 200) && !rests[n];
            let whole: f64 = (0..4).filter(|n| running(*n)).map(|n| favour[n]).sum();
            assert!(whole > 0.0, "somebody always goes on");
            let parts: Vec<f64> =
                (0..4).map(|n| if running(n) { favour[n] / whole * 0.01 } else { 0.0 }).collect();
            let now = start + Duration::from_millis(10 * step);
            for n in 0..4 {
                tried[n] += parts[n] * rates[n];
                rests[n] = joined[n].told(tried[n] as u64, now);
            }
        }
        let seconds: Vec<f64> = (0..4).map(|n| tried[n] / rates[n]).collect();
        // Three share two seconds, four the other eight.
        for (n, wanted) in [(0, 2.0 / 3.0 + 2.0), (1, 2.0 / 3.0 + 2.0), (2, 2.0 / 3.0 + 2.0), (3, 2.0)] {
            assert!((seconds[n] - wanted).abs() < 0.1, "{n}: {seconds:?}");
        }
    }

    /// One that is a hundred times slower than what it was taken for, beside one that is not: both have their half, and the devices
    /// are never idle for long.
    #[test]
    fn one_that_is_slower_than_thought_holds_nobody_up() {
        let turns = Turns::default();
        let start = Instant::now();
        let (quick, slow) = (turns.join(1e9), turns.join(1e9));
        let speeds = [1e9, 1e7];
        let (mut time, mut rests) = ([0.0f64; 2], [false; 2]);
        for step in 0..2000u64 {
            let running = rests.iter().filter(|rests| !**rests).count();
            for n in 0..2 {
                time[n] += if rests[n] { 0.0 } else { 0.01 / running as f64 };
            }
            let now = start + Duration::from_millis(10 * step);
            rests[0] = quick.told((time[0] * speeds[0]) as u64, now);
            rests[1] = slow.told((time[1] * speeds[1]) as u64, now);
        }
        assert!((8.0..12.0).contains(&time[0]) && (8.0..12.0).contains(&time[1]), "{time:?}");
    }

    /// A newcomer meets one that has not moved for a while: it begins where that is, and does not let it wait.
    #[test]
    fn who_comes_while_another_stands_still_begins_where_that_is() {
        let turns = Turns::default();
        let start = Instant::now();
        let old = turns.join(1000.0);
        old.told(40_000, start);
        let new = turns.join(1000.0);
        assert!(!new.told(10, start + Duration::from_secs(2)));
        assert!(!old.told(40_010, start + Duration::from_millis(2010)), "it is not forty seconds ahead");
    }

    #[test]
    fn nobody_waits_for_one_that_does_not_move_or_has_not_begun_or_is_gone() {
        let turns = Turns::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let (one, two, idle) = (turns.join(1000.0), turns.join(1000.0), turns.join(1000.0));
        assert!(!idle.told(0, at(0)), "it is still made ready");
        assert!(!one.told(1000, at(10)), "so is the other");
        assert!(!two.told(10, at(20)), "which begins where the first is");
        assert!(!two.told(50, at(25)));
        assert!(two.told(100, at(30)), "and is ahead now: 0.1 s against none since");
        assert!(two.told(100, at(400)));
        assert!(!two.told(100, at(600)), "the first has not moved for half a second");
        assert!(!one.told(1001, at(700)));
        assert!(two.told(110, at(710)));
        drop(one);
        assert!(!two.told(110, at(720)));
        drop(two);
        assert!(!idle.told(5, at(730)));
    }
}
