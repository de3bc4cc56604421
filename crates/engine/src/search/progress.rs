//! The probability that a search has ended by now, and the time it will take.

use std::time::Duration;

use crate::run::report::Progress;

impl Progress {
    /// Sets probability and expected time of a search by the odds of the next match. `tried_at_match` candidates had been tested at
    /// the last match.
    pub fn with_odds(self, odds: f64, tried_at_match: u64) -> Progress {
        let left = self.wanted.map_or(1, |wanted| wanted.saturating_sub(self.matches));
        let probability = match self.wanted {
            Some(wanted) => probability(odds, self.tried as f64, wanted),
            // Less than at the last match where a worker was lost meanwhile and what it did last does not count.
            None => probability(odds, self.tried.saturating_sub(tried_at_match) as f64, 1),
        };
        Progress { eta: eta_50(left, odds, self.rate), probability: Some(probability), ..self }
    }
}

/// The chance that so many candidates, each a match with these odds, hold so many matches or more.
///
/// Of one match it is exact. Of several it is that of a gamma distribution, whose cube root is nearly normal (Wilson and
/// Hilferty 1931): within a percent of the truth.
fn probability(odds: f64, tried: f64, matches: u64) -> f64 {
    if matches <= 1 {
        return -f64::exp_m1(tried * f64::ln_1p(-odds.min(1.0 - f64::EPSILON)));
    }
    let (expected, n) = (tried * odds, matches as f64);
    let deviations = ((expected / n).cbrt() - (1.0 - 1.0 / (9.0 * n))) * 3.0 * n.sqrt();
    // The normal distribution by a logistic curve, within 0.0002.
    1.0 / (1.0 + f64::exp(-(1.5976 + 0.070_566 * deviations * deviations) * deviations))
}

/// The seconds within which a search at this rate has found so many matches with this probability.
///
/// ```
/// use warpsmith_engine::time_to;
///
/// // One key in a million, at a million keys per second: after 0.69 seconds as likely there as not.
/// assert!((time_to(0.5, 1, 1e-6, 1e6) - 0.693).abs() < 0.001);
/// ```
pub fn time_to(share: f64, matches: u64, odds: f64, rate: f64) -> f64 {
    if matches <= 1 {
        return f64::ln_1p(-share) / f64::ln_1p(-odds.min(1.0 - f64::EPSILON)) / rate;
    }
    // Between none and far more than are expected; the chance rises with what is tried.
    let (mut low, mut high) = (0.0, (20.0 + 4.0 * matches as f64) / odds);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        let found = probability(odds, middle, matches) >= share;
        (low, high) = if found { (low, middle) } else { (middle, high) };
    }
    high / rate
}

/// The time in which so many matches are as likely found as not; none if there is no telling.
fn eta_50(matches: u64, odds: f64, rate: f64) -> Option<Duration> {
    let seconds = time_to(0.5, matches, odds, rate);
    (seconds.is_finite() && seconds < 1e18).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(at least `matches` of a Poisson distribution), by its terms.
    fn exact(expected: f64, matches: u64) -> f64 {
        let mut term = f64::exp(-expected);
        let mut below = 0.0;
        for k in 0..matches {
            below += term;
            term *= expected / (k + 1) as f64;
        }
        1.0 - below
    }

    #[test]
    fn the_chance_of_several_matches_is_that_of_the_distribution() {
        let odds = 2f64.powi(-30);
        for matches in [1, 2, 3, 5, 20, 100, 500] {
            for share in [0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0] {
                let expected = share * matches as f64;
                let (is, must) = (probability(odds, expected / odds, matches), exact(expected, matches));
                assert!(
                    (is - must).abs() < 0.01,
                    "{matches} where {expected} are expected: {is}, not {must}"
                );
            }
        }
    }

    #[test]
    fn times_are_where_the_chance_is_reached_and_grow_with_the_matches() {
        let (odds, rate) = (2f64.powi(-20), 1e6);
        let one = time_to(0.5, 1, odds, rate);
        assert!((one - std::f64::consts::LN_2 / odds / rate).abs() < 1e-5 * one, "{one}");
        let mut before = 0.0;
        for matches in [1, 2, 3, 20, 1000, 1_000_000] {
            for share in [0.5, 0.9] {
                let time = time_to(share, matches, odds, rate);
                let reached = probability(odds, time * rate, matches);
                assert!((reached - share).abs() < 1e-6, "{matches}: {reached}");
            }
            let half = time_to(0.5, matches, odds, rate);
            assert!(half > before);
            before = half;
        }
        // The median of many is nearly their mean.
        assert!((before / (1e6 / odds / rate) - 1.0).abs() < 1e-3);
        assert_eq!(eta_50(3, odds, 0.0), None);
        assert_eq!(eta_50(1, 0.0, rate), None);
    }
}
