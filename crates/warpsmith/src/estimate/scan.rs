//! Estimates of scans.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith_engine::{Devices, ScanJob, ScanOf, ScanTargets, bench_scan, scan};
use warpsmith_store::{KeyMask, U256};

use super::{DAY, YEAR};
use crate::error::Result;
use crate::scan::mask_ledger;

/// Seconds of measuring, for each device.
const MEASURED_S: f64 = 1.0;

/// An estimate of a scan, of which a key is as likely here as there.
///
/// ```
/// use warpsmith::{Devices, scan};
///
/// let scan = scan("2^60:2^61-1", ["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"]);
/// let estimate = scan.on(Devices::cpu()?).estimate()?;
/// assert_eq!(estimate.keys.to_string(), "1152921504606846976");
/// assert_eq!(estimate.p50_s * 2.0, estimate.all_s);
/// # Ok::<(), warpsmith::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScanEstimate {
    /// Keys left to test.
    pub keys: U256,
    /// Keys per second.
    pub rate: f64,
    /// Seconds until all of them are tested.
    pub all_s: f64,
    /// Seconds until half of them are: the median of the time until one that is among them is found.
    pub p50_s: f64,
    /// The feasible alternative, where the median exceeds a year.
    pub too_long: Option<ScanTooLong>,
}

/// The feasible alternative to a scan whose median exceeds a year.
///
/// See [`ScanEstimate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanTooLong {
    /// Seconds until half of the keys are tested.
    pub p50_s: f64,
    /// Keys per second.
    pub rate: f64,
    /// Keys that are tested within a day.
    pub keys_in_a_day: f64,
    /// The largest number of keys of which half are tested within a year.
    pub keys_of_a_year: f64,
    /// The factor by which a rate would have to be higher for a median of a year.
    pub speedup: f64,
}

impl ScanEstimate {
    /// Estimates a scan of so many keys at this rate.
    pub fn at_rate(keys: U256, rate: f64) -> ScanEstimate {
        let all_s = keys.as_f64() / rate;
        let p50_s = all_s / 2.0;
        ScanEstimate { keys, rate, all_s, p50_s, too_long: ScanTooLong::check(p50_s, rate) }
    }
}

impl ScanTooLong {
    fn check(p50_s: f64, rate: f64) -> Option<ScanTooLong> {
        (p50_s > YEAR).then(|| ScanTooLong {
            p50_s,
            rate,
            keys_in_a_day: rate * DAY,
            keys_of_a_year: 2.0 * rate * YEAR,
            speedup: p50_s / YEAR,
        })
    }
}

/// Measures how many keys per second the devices test together, in a second each. Masks differ by where their unknown characters
/// are, so of a mask a part of the work itself is timed.
///
/// ```
/// use warpsmith::Devices;
/// use warpsmith::estimate::{ScanEstimate, scan_rate};
/// use warpsmith::scan::ScanTargets;
/// use warpsmith::store::{TargetList, parse_range};
///
/// let targets = ScanTargets::list(&TargetList::of(&["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH".to_owned()])?, &[])?;
/// let rate = scan_rate(&targets, None, &Devices::cpu()?)?;
/// let estimate = ScanEstimate::at_rate(parse_range("1:2^32")?.count(), rate);
/// assert!(estimate.all_s > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When no device can be used.
pub fn scan_rate(targets: &ScanTargets, mask: Option<&Arc<KeyMask>>, devices: &Devices) -> Result<f64> {
    if let Some(mask) = mask {
        let mut ledger = mask_ledger(mask, targets, None, None)?;
        let time_limit = Some(Duration::from_secs_f64(MEASURED_S));
        let job = ScanJob { mask: Some(mask), time_limit, ..ScanJob::new(targets) };
        let outcome = scan(&job, ledger.as_mut(), devices, &AtomicBool::new(false), &mut |_| Ok(()))?;
        return Ok(outcome.tried as f64 / outcome.elapsed.as_secs_f64().max(1e-6));
    }
    // Of databases no count is known here.
    let is_database = targets.count().is_none() && !targets.is_every_key();
    let of = if is_database { ScanOf::Database(targets) } else { ScanOf::Planted(targets.types()) };
    Ok(bench_scan(devices, of, MEASURED_S, false)?.iter().map(|bench| bench.rate).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_of_half_the_keys_is_the_limit() {
        let keys = U256::from(1u128 << 100);
        let year = keys.as_f64() / 2.0 / YEAR;
        assert!(ScanEstimate::at_rate(keys, year * 1.001).too_long.is_none());
        let too_long = ScanEstimate::at_rate(keys, year / 4.0).too_long.expect("four years");
        assert!((too_long.speedup - 4.0).abs() < 1e-9, "{too_long:?}");
        assert!((too_long.keys_of_a_year * 4.0 / keys.as_f64() - 1.0).abs() < 1e-9, "{too_long:?}");
        assert_eq!(too_long.keys_in_a_day, year / 4.0 * DAY);
    }
}
