//! The rate of a counter, such as the candidates a device has tested.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The span over which a rate is averaged.
const WINDOW: Duration = Duration::from_secs(5);

/// A counter's rate over the last seconds.
#[derive(Debug)]
pub(crate) struct Meter {
    samples: VecDeque<(Instant, u64)>,
}

impl Meter {
    pub fn new(now: Instant) -> Meter {
        Meter { samples: VecDeque::from([(now, 0)]) }
    }

    /// Notes the counter and returns its rate. It falls where something was counted that did not count after all.
    pub fn rate(&mut self, now: Instant, count: u64) -> f64 {
        // The clock stands still while a run rests.
        if self.samples.len() > 1 && self.samples.back().is_some_and(|(last, _)| *last == now) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, count));
        while self.samples.len() > 2 && now.duration_since(self.samples[1].0) >= WINDOW {
            self.samples.pop_front();
        }
        let (then, before) = self.samples[0];
        let seconds = now.duration_since(then).as_secs_f64();
        if seconds > 0.0 { count.saturating_sub(before) as f64 / seconds } else { 0.0 }
    }
}
