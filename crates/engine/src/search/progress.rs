//! Where a search stands, and how likely it was to have ended.

use std::time::Duration;

/// Where a search stands.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Addresses tested so far, each once.
    pub tried: u64,
    /// Addresses a second, over the last seconds.
    pub rate: f64,
    /// Since the search began.
    pub elapsed: Duration,
    /// From now until a match is as likely as not. A search has no memory: this does not shrink by waiting.
    pub eta_50: Option<Duration>,
    /// How likely a match was within what has been tried since the last one.
    pub probability: f64,
    /// Matches so far.
    pub matches: u64,
    /// The best score so far, in a search for the best.
    pub best: Option<u32>,
    /// Each device and its rate.
    pub devices: Vec<(String, f64)>,
}

/// The time in which a search at this rate finds a match with probability one half.
pub(crate) fn eta_50(odds: f64, rate: f64) -> Option<Duration> {
    let seconds = std::f64::consts::LN_2 / (odds * rate);
    (seconds.is_finite() && seconds < 1e18).then(|| Duration::from_secs_f64(seconds))
}

/// The chance that `tried` keys held a match.
pub(crate) fn probability(odds: f64, tried: u64) -> f64 {
    -f64::exp_m1(tried as f64 * f64::ln_1p(-odds.min(1.0 - f64::EPSILON)))
}
