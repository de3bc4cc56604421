//! When a run reports, and when it ends by itself. What was rested does not count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::pause::{NAP, Pause};

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
    pause: Option<&'c Pause>,
    started: Instant,
    /// What had been rested when the run began.
    rested_before: Duration,
    time_limit: Option<Duration>,
    interval: Duration,
    /// When to report next.
    report: Instant,
}

impl<'c> Clock<'c> {
    /// Of a run that begins at `started`.
    pub fn new(
        interrupt: &'c AtomicBool,
        pause: Option<&'c Pause>,
        started: Instant,
        time_limit: Option<Duration>,
        interval: Duration,
    ) -> Self {
        let rested_before = pause.map_or(Duration::ZERO, |pause| pause.rested(started));
        Clock { interrupt, pause, started, rested_before, time_limit, interval, report: started + interval }
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
        self.rested_before = self.pause.map_or(Duration::ZERO, |pause| pause.rested(now));
    }

    /// What the time would be had nobody rested since the run began: it stands still in a pause.
    pub fn time(&self, now: Instant) -> Instant {
        let rested = self.pause.map_or(Duration::ZERO, |pause| pause.rested(now));
        now.checked_sub(rested.saturating_sub(self.rested_before)).unwrap_or(self.started)
    }

    /// How long the run has taken, rests left out.
    pub fn elapsed(&self, now: Instant) -> Duration {
        self.time(now).saturating_duration_since(self.started)
    }

    /// What it is time for. A report is asked for once each interval.
    pub fn tick(&mut self, now: Instant) -> Tick {
        let left = self.time_limit.map(|limit| limit.saturating_sub(self.elapsed(now)));
        if self.is_interrupted() {
            return Tick::Interrupted;
        }
        if left == Some(Duration::ZERO) {
            return Tick::TimeUp;
        }
        if now >= self.report {
            self.report = now + self.interval;
            return Tick::Report;
        }
        let wait = self.report.saturating_duration_since(now).min(NAP);
        Tick::Wait(left.map_or(wait, |left| left.min(wait)))
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
            Clock::new(&interrupt, None, start, Some(Duration::from_millis(2_020)), Duration::from_secs(1));
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

    #[test]
    fn a_rest_is_reported_in_and_does_not_count() {
        let (interrupt, pause) = (AtomicBool::new(false), Pause::default());
        // What was rested before the run is no business of it.
        pause.set(true);
        std::thread::sleep(Duration::from_millis(5));
        pause.set(false);
        let start = Instant::now();
        let limit = Some(Duration::from_secs(10));
        let mut clock = Clock::new(&interrupt, Some(&pause), start, limit, Duration::from_secs(1));
        assert_eq!(clock.elapsed(start + Duration::from_secs(2)), Duration::from_secs(2));
        pause.set(true);
        let rested = clock.time(start + Duration::from_secs(60));
        assert_eq!(rested, clock.time(start + Duration::from_secs(600)), "it stands still");
        assert_eq!(
            clock.tick(start + Duration::from_secs(600)),
            Tick::Report,
            "and is no time limit reached"
        );
        pause.set(false);
        let after = Instant::now();
        assert!(clock.elapsed(after) <= after - start);
        assert_eq!(clock.tick(after + Duration::from_secs(700)), Tick::TimeUp);
    }
}
