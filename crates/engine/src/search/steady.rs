//! How a search runs once it has settled: the first launches are short, and the last is cut off by the clock.
//!
//! A card counts its keys a launch at a time, so a rate over a fixed second is off by up to a launch at each end.
//! Here the time runs from the end of one batch to the end of another.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After this time launches have their length.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);

/// One worker's settled batches: the first one's end, which starts the clock, and the last one's.
#[derive(Default)]
pub(crate) struct Track(Mutex<Option<Ends>>);

#[derive(Clone, Copy)]
struct Ends {
    first: (Instant, u64),
    last: (Instant, u64),
}

impl Track {
    /// Notes that a batch ended at `now`, with so many keys tried until then.
    pub fn note(&self, started: Instant, now: Instant, tried: u64) {
        if now - started < SETTLE {
            return;
        }
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ends.map_or((now, tried), |ends| ends.first);
        *ends = Some(Ends { first, last: (now, tried) });
    }

    /// Keys a second between the two; none if there were not two.
    pub fn rate(&self) -> Option<f64> {
        let ends = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let seconds = (ends.last.0 - ends.first.0).as_secs_f64();
        (seconds > 0.0).then(|| (ends.last.1 - ends.first.1) as f64 / seconds)
    }
}

/// The program's own use of the processor, from the settled search on.
#[derive(Default)]
pub(crate) struct HostCpu(Option<(Instant, Duration)>);

impl HostCpu {
    /// Starts the clock when it is time; to be called now and then.
    pub fn look(&mut self, started: Instant, now: Instant) {
        if self.0.is_none() && now - started >= SETTLE {
            self.0 = Some((now, cpu_time()));
        }
    }

    /// Processor time as a share of one core, up to now; none if the search did not settle.
    pub fn share(&self) -> Option<f64> {
        let (since, used) = self.0?;
        let seconds = since.elapsed().as_secs_f64();
        (seconds > 0.0).then(|| (cpu_time().saturating_sub(used)).as_secs_f64() / seconds)
    }
}

/// Processor time of this program so far, all threads, in and out of the kernel.
fn cpu_time() -> Duration {
    // SAFETY: an all-zero `rusage` is a valid value to be overwritten, and the pointer is to a live one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let part = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.max(0) as u64) + Duration::from_micros(time.tv_usec.max(0) as u64)
    };
    part(usage.ru_utime) + part(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_runs_from_batch_to_batch_once_settled() {
        let start = Instant::now();
        let track = Track::default();
        let at = |ms| start + Duration::from_millis(ms);
        track.note(start, at(499), 5);
        assert_eq!(track.rate(), None);
        track.note(start, at(600), 100);
        assert_eq!(track.rate(), None, "one end is no span");
        track.note(start, at(1100), 400);
        track.note(start, at(1600), 1100);
        assert_eq!(track.rate(), Some(1000.0));
    }

    #[test]
    fn processor_time_is_counted_while_it_is_used() {
        let now = Instant::now();
        let mut cpu = HostCpu::default();
        cpu.look(now, now);
        assert_eq!(cpu.share(), None, "not settled yet");
        cpu.look(now - SETTLE, now);
        let used = cpu_time();
        while cpu_time() - used < Duration::from_millis(50) {
            std::hint::black_box(0);
        }
        let (share, elapsed) = (cpu.share().expect("settled"), now.elapsed().as_secs_f64());
        assert!(share * elapsed >= 0.049, "{share} of {elapsed} s");
    }
}
