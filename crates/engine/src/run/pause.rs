//! A run that rests: workers stop where they would begin the next piece of work, and the clock stands still.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest sleep of a thread of a run: it notices within this time that the run is to end.
pub(crate) const NAP: Duration = Duration::from_millis(50);

/// Holds a run and lets it go on, from any thread. Nothing is lost meanwhile: what a device was sent it finishes, and the rest waits.
///
/// Given to a run as [`Job::pause`](crate::Job::pause) or [`ScanJob::pause`](crate::ScanJob::pause). Rates, times and time limits do not
/// count what was rested.
///
/// ```
/// use warpsmith_engine::Pause;
///
/// let pause = Pause::default();
/// pause.set(true);
/// assert!(pause.is_on());
/// ```
#[derive(Debug, Default)]
pub struct Pause {
    /// The same as in `rest`, for those who look often.
    on: AtomicBool,
    rest: Mutex<Rest>,
    changed: Condvar,
}

/// How long was rested.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    before: Duration,
    since: Option<Instant>,
}

impl Pause {
    /// Holds the run, or lets it go on.
    pub fn set(&self, on: bool) {
        self.set_at(on, Instant::now());
    }

    fn set_at(&self, on: bool, now: Instant) {
        let mut rest = self.rest();
        match (rest.since, on) {
            (None, true) => rest.since = Some(now),
            (Some(since), false) => {
                *rest = Rest { before: rest.before + now.saturating_duration_since(since), since: None };
            }
            _ => return,
        }
        self.on.store(on, Ordering::Release);
        self.changed.notify_all();
    }

    /// Whether the run is held.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// How long was rested in all, up to now.
    pub(crate) fn rested(&self, now: Instant) -> Duration {
        let Rest { before, since } = *self.rest();
        before + since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Waits as long as the run is held and is not to end.
    pub(crate) fn hold(&self, stop: &AtomicBool) {
        if !self.is_on() {
            return;
        }
        let mut rest = self.rest();
        // Who stops a run does not know who waits here, so that is looked at now and then.
        while rest.since.is_some() && !stop.load(Ordering::Relaxed) {
            rest = self.changed.wait_timeout(rest, NAP).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        // Every change is one assignment.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_add_up_and_the_one_under_way_counts() {
        let (pause, start) = (Pause::default(), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        let rested = |now| pause.rested(at(now)).as_secs();
        assert_eq!(rested(5), 0);
        pause.set_at(true, at(5));
        pause.set_at(true, at(6));
        assert!(pause.is_on());
        assert_eq!((rested(5), rested(9)), (0, 4));
        pause.set_at(false, at(10));
        pause.set_at(false, at(11));
        assert!(!pause.is_on());
        assert_eq!(rested(20), 5);
        pause.set_at(true, at(20));
        assert_eq!(rested(21), 6);
    }

    #[test]
    fn who_waits_goes_on_when_the_rest_ends_and_when_the_run_does() {
        let (pause, stop) = (Pause::default(), AtomicBool::new(false));
        pause.hold(&stop);
        for end in [
            |pause: &Pause, _: &AtomicBool| pause.set(false),
            |_: &Pause, stop: &AtomicBool| {
                stop.store(true, Ordering::Relaxed);
            },
        ] {
            pause.set(true);
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| pause.hold(&stop));
                std::thread::sleep(2 * NAP);
                assert!(!waiting.is_finished(), "it is held");
                end(&pause, &stop);
            });
        }
    }
}
