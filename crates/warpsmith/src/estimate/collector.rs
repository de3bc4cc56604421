//! Odds of finding one match of each of several patterns: the coupon collector's problem with unequal odds.

use std::collections::BTreeMap;

/// Odds of several patterns of which each is to be found once.
///
/// ```
/// use warpsmith::estimate::CollectorOdds;
///
/// let odds: CollectorOdds = [1e-6, 1e-6].into_iter().collect();
/// // Two of equal odds take one and a half times as long as one of them.
/// assert!((odds.expected_candidates() / 1.5e6 - 1.0).abs() < 1e-2);
/// assert!((odds.probability(odds.candidates_to(0.9)) - 0.9).abs() < 1e-6);
/// ```
#[derive(Clone, Debug, Default)]
pub struct CollectorOdds(BTreeMap<u64, u64>);

impl CollectorOdds {
    /// Adds a pattern with these odds.
    pub fn add(&mut self, odds: f64) {
        *self.0.entry(odds.to_bits()).or_default() += 1;
    }

    /// Removes a pattern with these odds, as after its match.
    pub fn remove(&mut self, odds: f64) {
        if let Some(count) = self.0.get_mut(&odds.to_bits()) {
            *count -= 1;
        }
        self.0.retain(|_, count| *count > 0);
    }

    /// Returns the number of patterns.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the probability that so many candidates hold a match of each pattern, where patterns are independent.
    pub fn probability(&self, candidates: f64) -> f64 {
        let each = self.0.iter().map(|(odds, count)| {
            let odds = f64::from_bits(*odds).min(1.0 - f64::EPSILON);
            let found = -f64::exp_m1(candidates * f64::ln_1p(-odds));
            *count as f64 * found.ln()
        });
        each.sum::<f64>().exp()
    }

    /// Returns the sum of all odds: those of a candidate that matches the first of any of them.
    pub fn sum(&self) -> f64 {
        self.0.iter().map(|(bits, times)| f64::from_bits(*bits) * *times as f64).sum()
    }

    /// Returns the lowest odds.
    fn rarest(&self) -> f64 {
        // Positive numbers are in the order of their bits.
        self.0.keys().next().map_or(1.0, |bits| f64::from_bits(*bits))
    }

    /// Returns the number of candidates among which each has a match with this probability.
    pub fn candidates_to(&self, probability: f64) -> f64 {
        let (mut low, mut high) = (0.0, ((self.count() as f64).ln() + 40.0) / self.rarest());
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            (low, high) =
                if self.probability(middle) >= probability { (low, middle) } else { (middle, high) };
        }
        high
    }

    /// Returns the number of candidates until each has a match, on average: the integral of the probability that one has none,
    /// over t = -ln(1 - u) / p with the lowest odds p, under which it stays bounded.
    pub fn expected_candidates(&self) -> f64 {
        const STEPS: u32 = 4000;
        let rarest = self.rarest();
        let step = |n: u32| {
            let rest = 1.0 - (f64::from(n) + 0.5) / f64::from(STEPS);
            (1.0 - self.probability(-rest.ln() / rarest)) / rest
        };
        (0..STEPS).map(step).sum::<f64>() / f64::from(STEPS) / rarest
    }
}

impl FromIterator<f64> for CollectorOdds {
    fn from_iter<I: IntoIterator<Item = f64>>(all: I) -> CollectorOdds {
        let mut odds = CollectorOdds::default();
        all.into_iter().for_each(|one| odds.add(one));
        odds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of equal odds the expectation is n times the harmonic number; of one pattern it is that pattern's time.
    #[test]
    fn times_are_those_of_the_coupon_collector() {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 2e-3;
        let one = CollectorOdds::from_iter([1e-6]);
        assert!(
            near(one.expected_candidates(), 1e6)
                && near(one.candidates_to(0.5), 1e6 * std::f64::consts::LN_2)
        );
        let ten = CollectorOdds::from_iter([1e-6; 10]);
        let harmonic: f64 = (1..=10).map(|n| 1.0 / f64::from(n)).sum();
        assert!(near(ten.expected_candidates(), 1e6 * harmonic), "{}", ten.expected_candidates());
        assert!(near(ten.probability(ten.candidates_to(0.9)), 0.9));
        assert_eq!(ten.count(), 10);
        // Easy ones beside a hard one cost nothing.
        let mixed = CollectorOdds::from_iter([1e-2, 1e-2, 1e-9]);
        assert!(
            near(mixed.expected_candidates(), 1e9)
                && near(mixed.candidates_to(0.5), one.candidates_to(0.5) * 1e3)
        );
        let mut left = mixed.clone();
        left.remove(1e-9);
        assert!(left.candidates_to(0.5) < 1e3 && near(left.sum(), 2e-2));
    }
}
