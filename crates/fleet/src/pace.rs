//! Speed of a device at a job, as the coordinator measures it: the size of the next unit follows from proven work alone.
//!
//! A worker says how fast it is, and may say anything. That number only makes a unit smaller. Once a first one is proven the rate
//! is candidates of proven units by the coordinator's clock, and no unit is more than `GROWTH` times as large as the largest
//! that was proven.

use std::time::Duration;

/// Candidates of a device's first unit, at most: a second of a processor's work.
pub const MAX_FIRST: f64 = (1 << 24) as f64;
/// A unit has at most so many times the candidates of the largest that was proven: a card is at its full size after six.
const GROWTH: f64 = 16.0;
/// The measured rate counts for at most so many times the one that the device claims.
const MAX_OVER_CLAIM: f64 = 4.0;
/// The most candidates a second that a device is believed: eight times the fastest known.
const MAX_RATE: f64 = 1e12;

/// Returns a claimed rate within what is believed of any device.
pub fn plausible(claimed: f64) -> f64 {
    if claimed.is_finite() { claimed.clamp(0.0, MAX_RATE) } else { 0.0 }
}

/// Measured speed of one device at one job.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Candidates of the next unit, at most.
    limit: f64,
    /// Candidates of proven units, each half as heavy as the next.
    candidates: f64,
    /// Seconds that these took.
    seconds: f64,
    /// When it began with what it does now: when it got a unit and had none, or when its last report came.
    since: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { limit: MAX_FIRST, candidates: 0.0, seconds: 0.0, since: None }
    }
}

impl Pace {
    /// Returns the measured candidates a second; none before a unit was proven.
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| (self.candidates / self.seconds).clamp(1.0, MAX_RATE))
    }

    /// Returns the candidates of the next unit, for a device that claims this rate.
    pub fn size(&self, claimed: f64, unit_time: Duration) -> f64 {
        let claimed = plausible(claimed).max(1.0);
        // A device that was stopped for a while says that it is slow, and refuses what would take it too long by that.
        let rate = self.rate().map_or(claimed, |measured| measured.min(MAX_OVER_CLAIM * claimed));
        (rate * unit_time.as_secs_f64()).min(self.limit).max(1.0)
    }

    /// Starts the clock for a device that had nothing to do.
    pub fn start(&mut self, now: Duration) {
        self.since = Some(now);
    }

    /// Stops the clock: nobody knows what the device is at.
    pub fn stop(&mut self) {
        self.since = None;
    }

    /// Takes the time since the device began, which begins anew; none if it is not known.
    pub fn lap(&mut self, now: Duration) -> Option<Duration> {
        let since = self.since.replace(now)?;
        Some(now.saturating_sub(since))
    }

    /// Takes a unit that was proven, and how long it took where that was measured.
    pub fn proven(&mut self, candidates: f64, time: Option<Duration>) {
        self.limit = self.limit.max(GROWTH * candidates);
        // A pair of reports at once has the time of both with the first: sums are right where single times are not.
        if let Some(time) = time.filter(|time| !time.is_zero()) {
            self.candidates = self.candidates / 2.0 + candidates;
            self.seconds = self.seconds / 2.0 + time.as_secs_f64();
        }
    }

    /// Takes note of a unit that did not come back in its time: the next are smaller.
    pub fn missed(&mut self, candidates: f64) {
        self.limit = self.limit.min(candidates / GROWTH).max(1.0);
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Duration = Duration::from_secs(60);

    /// A claim of 10^12 a second is worth a first unit of a processor's second; a card comes to its full size within a few units, and
    /// one that does not do what it claims never does.
    #[test]
    fn units_grow_from_proven_work_only() {
        let mut pace = Pace::default();
        assert_eq!(pace.size(f64::INFINITY, UNIT), 60.0, "as one a second");
        assert_eq!(pace.size(1e12, UNIT), MAX_FIRST);
        assert_eq!(pace.size(5.0, UNIT), 300.0, "a slow device says so");
        // A card of 10^11 a second, with a tenth of a second for each message.
        let (mut now, mut sizes) = (Duration::ZERO, Vec::new());
        pace.start(now);
        for _ in 0..9 {
            let size = pace.size(1e12, UNIT);
            sizes.push(size);
            now += Duration::from_secs_f64(0.1 + size / 1e11);
            let time = pace.lap(now);
            pace.proven(size, time);
        }
        assert!(sizes.windows(2).all(|pair| pair[1] <= GROWTH * pair[0]), "{sizes:?}");
        assert!((0.9 * 6e12..1.01 * 6e12).contains(&sizes[8]), "{sizes:?}");
        // A processor of 10^7 a second that claims as much stays where it is.
        let mut slow = Pace::default();
        let mut now = Duration::ZERO;
        slow.start(now);
        for _ in 0..9 {
            let size = slow.size(1e12, UNIT);
            assert!(size <= 6.1e8, "{size}");
            now += Duration::from_secs_f64(size / 1e7);
            let time = slow.lap(now);
            slow.proven(size, time);
        }
        // One that was stopped for hours says that it is slow: it gets what it does not refuse, and its full size when it is as fast
        // as before.
        assert_eq!(slow.size(100.0, UNIT), 4.0 * 100.0 * 60.0);
        assert!((5e8..6.1e8).contains(&slow.size(1e7, UNIT)), "{}", slow.size(1e7, UNIT));
        // Two reports at a time gain it little, and what does not come back makes its units smaller.
        let (mut double, mut now) = (Pace::default(), Duration::ZERO);
        double.start(now);
        for _ in 0..20 {
            let size = double.size(1e12, UNIT);
            now += Duration::from_secs_f64(2.0 * size / 1e7);
            for _ in 0..2 {
                let time = double.lap(now);
                double.proven(size, time);
            }
            assert!(size <= 4.0 * 6e8, "{size}");
        }
        let before = double.size(1e12, UNIT);
        double.missed(before);
        assert_eq!(double.size(1e12, UNIT), before / GROWTH);
    }
}
