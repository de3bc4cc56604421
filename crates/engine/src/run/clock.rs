//! When a run reports, and when it ends by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a collector sleeps at most: an interrupt is noticed within this time.
pub(crate) const NAP: Duration = Duration::from_millis(50);

/// What it is time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// Somebody asked the run to end.
    Interrupted,
    /// Its time is up.
    TimeUp,
    /// Progress is to be reported.
    Report,
    /// Nothing, for so long.
    Wait(Duration),
}

/// The clock of a run.
pub(crate) struct Clock<'c> {
    interrupt: &'c AtomicBool,
    started: Instant,
    time_limit: Option<Duration>,
    interval: Duration,
    /// When to report next.
    report: Instant,
}

impl<'c> Clock<'c> {
    /// Of a run that begins at `started`.
    pub fn new(
        interrupt: &'c AtomicBool,
        started: Instant,
        time_limit: Option<Duration>,
        interval: Duration,
    ) -> Self {
        Clock { interrupt, started, time_limit, interval, report: started + interval }
    }

    /// When the run began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Whether somebody asked the run to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// The run begins now, not when the clock was made.
    pub fn restart(&mut self, now: Instant) {
        (self.started, self.report) = (now, now + self.interval);
    }

    /// What it is time for. A report is asked for once each interval.
    pub fn tick(&mut self, now: Instant) -> Tick {
        let deadline = self.time_limit.map(|limit| self.started + limit);
        if self.is_interrupted() {
            return Tick::Interrupted;
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Tick::TimeUp;
        }
        if now >= self.report {
            self.report = now + self.interval;
            return Tick::Report;
        }
        let wake = deadline.map_or(self.report, |deadline| deadline.min(self.report));
        Tick::Wait(wake.saturating_duration_since(now).min(NAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_reports_at_intervals_and_ends_in_time() {
        let (interrupt, start) = (AtomicBool::new(false), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let mut clock =
            Clock::new(&interrupt, start, Some(Duration::from_millis(2_020)), Duration::from_secs(1));
        assert_eq!(clock.tick(at(0)), Tick::Wait(NAP));
        assert_eq!(
            clock.tick(at(980)),
            Tick::Wait(Duration::from_millis(20)),
            "no longer than to the report"
        );
        assert_eq!(clock.tick(at(1_010)), Tick::Report);
        assert_eq!(clock.tick(at(1_010)), Tick::Wait(NAP), "once");
        assert_eq!(clock.tick(at(2_005)), Tick::Wait(Duration::from_millis(5)));
        assert_eq!(clock.tick(at(2_020)), Tick::TimeUp);
        clock.restart(at(2_020));
        assert_eq!(clock.tick(at(2_020)), Tick::Wait(NAP));
        interrupt.store(true, Ordering::Relaxed);
        assert_eq!(clock.tick(at(9_000)), Tick::Interrupted);
    }
}
