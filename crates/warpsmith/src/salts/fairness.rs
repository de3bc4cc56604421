//! Fair sharing of devices between concurrent searches.
//!
//! Left to itself a card is not shared evenly: its launches go in turn, whatever their length, and a search that waits for its turn takes the wait for
//! slowness and makes its launches shorter. So each search reports how far it is, in seconds that the devices would take for it alone; one that is
//! ahead of the last pauses until that has caught up.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Seconds of the devices by which a search may be ahead of the last one: some launches.
const MAX_LEAD: f64 = 0.05;

/// Time after which others no longer wait for a search that does not move, as while its results are verified.
const STALL_TIMEOUT: Duration = Duration::from_millis(500);

/// Seconds of searching alone after which a search's rate is known.
const MEASURED: f64 = 0.25;

/// Concurrent searches, and how much of the devices each has had.
///
/// ```
/// use std::time::{Duration, Instant};
/// use warpsmith::salts::FairShare;
///
/// let searches = FairShare::default();
/// let (one, two) = (searches.join(1000.0), searches.join(1000.0));
/// let start = Instant::now();
/// let at = |ms| start + Duration::from_millis(ms);
/// assert!(!one.must_pause(10, at(10)) && !two.must_pause(10, at(10)));
/// // 0.1 seconds of work ahead of the other.
/// assert!(one.must_pause(110, at(120)));
/// assert!(!two.must_pause(110, at(220)) && !one.must_pause(110, at(230)));
/// ```
#[derive(Default)]
pub struct FairShare(Mutex<Vec<Usage>>);

/// The use that one search has made of the devices.
struct Usage {
    number: u64,
    /// Seconds of the devices, starting at what the last of the others had when it began; none before its first.
    used: Option<f64>,
    tried: u64,
    moved: Instant,
    is_paused: bool,
    /// Candidates per second of the devices alone.
    rate: f64,
    /// Seconds in which all others paused, and candidates tried in these.
    alone: (f64, u64),
    /// Whether all others paused when it last moved.
    was_alone: bool,
}

/// A search that takes part, until it is dropped.
///
/// See [`FairShare`].
pub struct Participant<'s> {
    searches: &'s FairShare,
    number: u64,
}

impl FairShare {
    /// Adds a search of which the devices alone would try so many candidates per second.
    pub fn join(&self, rate: f64) -> Participant<'_> {
        let mut all = self.lock();
        let number = all.iter().map(|usage| usage.number + 1).max().unwrap_or(0);
        all.push(Usage {
            number,
            used: None,
            tried: 0,
            moved: Instant::now(),
            is_paused: false,
            rate: rate.max(1.0),
            alone: (0.0, 0),
            was_alone: false,
        });
        Participant { searches: self, number }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Participant<'_> {
    /// Reports the number of candidates tried until now. Returns whether the search has to pause.
    pub fn must_pause(&self, tried: u64, now: Instant) -> bool {
        let mut all = self.searches.lock();
        let others = || all.iter().filter(|other| other.number != self.number);
        let last = others()
            .filter(|other| other.is_paused || now.saturating_duration_since(other.moved) < STALL_TIMEOUT)
            .filter_map(|other| other.used)
            .min_by(f64::total_cmp);
        let furthest = others().filter_map(|other| other.used).max_by(f64::total_cmp);
        let is_alone = others().all(|other| other.is_paused || other.used.is_none());
        let Some(own) = all.iter_mut().find(|usage| usage.number == self.number) else { return false };
        if tried > own.tried {
            let more = tried - own.tried;
            // A search may be far slower than its kind: many patterns, each compared in turn. Others would pause for it nearly all the
            // time.
            if is_alone && own.was_alone {
                own.alone.0 += now.saturating_duration_since(own.moved).as_secs_f64();
                own.alone.1 += more;
                if own.alone.0 >= MEASURED {
                    let seen = own.alone.1 as f64 / own.alone.0;
                    if seen < own.rate / 2.0 {
                        own.rate = seen.max(1.0);
                    }
                    own.alone = (0.0, 0);
                }
            }
            // A newcomer has no claim to the time before it, nor have those before it to wait for it.
            let before = own.used.or(last).or(furthest).unwrap_or(0.0);
            own.used = Some(before + more as f64 / own.rate);
            (own.tried, own.moved, own.was_alone) = (tried, now, is_alone);
        }
        own.is_paused = own.used.zip(last).is_some_and(|(used, last)| used > last + MAX_LEAD);
        own.is_paused
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        self.searches.lock().retain(|usage| usage.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card that gives running searches very different parts of it, in steps of 10 ms: all come to the same time.
    #[test]
    fn an_uneven_card_is_shared_evenly() {
        let searches = FairShare::default();
        let start = Instant::now();
        // Rates alone, and how the card favours each.
        let rates = [3.9e9, 1.9e9, 3.9e9, 1.3e9];
        let favour = [10.0, 1.0, 6.0, 0.5];
        let (mut tried, mut rests) = ([0.0f64; 4], [false; 4]);
        let joined: Vec<Participant<'_>> = rates.iter().map(|rate| searches.join(*rate)).collect();
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
                rests[n] = joined[n].must_pause(tried[n] as u64, now);
            }
        }
        let seconds: Vec<f64> = (0..4).map(|n| tried[n] / rates[n]).collect();
        // Three share two seconds, four the other eight.
        for (n, wanted) in [(0, 2.0 / 3.0 + 2.0), (1, 2.0 / 3.0 + 2.0), (2, 2.0 / 3.0 + 2.0), (3, 2.0)] {
            assert!((seconds[n] - wanted).abs() < 0.1, "{n}: {seconds:?}");
        }
    }

    /// A search that is a hundred times slower than its kind, beside one that is not: both have their half, and the devices
    /// are never idle for long.
    #[test]
    fn a_slow_search_holds_nobody_up() {
        let searches = FairShare::default();
        let start = Instant::now();
        let (quick, slow) = (searches.join(1e9), searches.join(1e9));
        let speeds = [1e9, 1e7];
        let (mut time, mut rests) = ([0.0f64; 2], [false; 2]);
        for step in 0..2000u64 {
            let running = rests.iter().filter(|rests| !**rests).count();
            for n in 0..2 {
                time[n] += if rests[n] { 0.0 } else { 0.01 / running as f64 };
            }
            let now = start + Duration::from_millis(10 * step);
            rests[0] = quick.must_pause((time[0] * speeds[0]) as u64, now);
            rests[1] = slow.must_pause((time[1] * speeds[1]) as u64, now);
        }
        assert!((8.0..12.0).contains(&time[0]) && (8.0..12.0).contains(&time[1]), "{time:?}");
    }

    #[test]
    fn a_newcomer_begins_where_a_stalled_search_is() {
        let searches = FairShare::default();
        let start = Instant::now();
        let old = searches.join(1000.0);
        old.must_pause(40_000, start);
        let new = searches.join(1000.0);
        assert!(!new.must_pause(10, start + Duration::from_secs(2)));
        assert!(
            !old.must_pause(40_010, start + Duration::from_millis(2010)),
            "it is not forty seconds ahead"
        );
    }

    #[test]
    fn stalled_unstarted_and_ended_searches_hold_nobody_up() {
        let searches = FairShare::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let (one, two, idle) = (searches.join(1000.0), searches.join(1000.0), searches.join(1000.0));
        assert!(!idle.must_pause(0, at(0)), "it is still made ready");
        assert!(!one.must_pause(1000, at(10)), "so is the other");
        assert!(!two.must_pause(10, at(20)), "which begins where the first is");
        assert!(!two.must_pause(50, at(25)));
        assert!(two.must_pause(100, at(30)), "and is ahead now: 0.1 s against none since");
        assert!(two.must_pause(100, at(400)));
        assert!(!two.must_pause(100, at(600)), "the first has not moved for half a second");
        assert!(!one.must_pause(1001, at(700)));
        assert!(two.must_pause(110, at(710)));
        drop(one);
        assert!(!two.must_pause(110, at(720)));
        drop(two);
        assert!(!idle.must_pause(5, at(730)));
    }
}
