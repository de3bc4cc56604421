//! How long a scan takes: `--estimate`, and the warning before one that takes more than a year.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use warpsmith::Devices;
use warpsmith::proof::{ScanOf, bench_scan};
use warpsmith::scan::{ScanJob, ScanTargets, mask_ledger, run};
use warpsmith::store::{Map, MapFile};

use super::Scan;
use super::masks::Scanned;
use crate::ending::{Ending, Failure};
use crate::forecast::{DAY, Hopeless, SLOW, YEAR};
use crate::human;
use crate::json;
use crate::screen::Screen;
use crate::stdout::{AsAsked, Stdout};

/// Candidates of a mask that are tested before anybody would have read how long it takes.
const SOON: f64 = 1e7;

/// Seconds of measuring, for each device.
const MEASURED: f64 = 1.0;

#[derive(Serialize)]
struct Estimate {
    event: &'static str,
    /// Keys that are left to test.
    keys: String,
    rate: f64,
    /// All of them.
    #[serde(serialize_with = "json::seconds")]
    whole_s: f64,
    /// Until one that is as likely here as there is found with a chance of one half.
    #[serde(serialize_with = "json::seconds")]
    p50_s: f64,
}

impl Scan {
    /// Keys a second of all devices together.
    fn rate(&self, keys: &Scanned, targets: &ScanTargets, devices: &Devices) -> Result<f64, Failure> {
        if let Scanned::Mask(mask) = keys {
            // Masks differ by how their unknown characters lie, so a part of the work itself is timed.
            let ledger = mask_ledger(mask, targets, None, None);
            let mut ledger = ledger.map_err(|error| Failure::of("", &error))?;
            let job = ScanJob {
                mask: Some(mask),
                time_limit: Some(Duration::from_secs_f64(MEASURED)),
                ..ScanJob::new(targets)
            };
            let outcome = run(&job, ledger.as_mut(), devices, &AtomicBool::new(false), &mut |_| Ok(()))?;
            return Ok(outcome.tried as f64 / outcome.elapsed.as_secs_f64().max(1e-6));
        }
        let of = match self.database.is_empty() {
            false => ScanOf::Database(targets),
            true => ScanOf::Planted(targets.types()),
        };
        Ok(bench_scan(devices, of, MEASURED, false)?.iter().map(|bench| bench.rate).sum())
    }

    pub(super) fn tell_estimate(
        &self,
        keys: &Scanned,
        targets: &ScanTargets,
        devices: &Devices,
        mut stdout: Stdout,
    ) -> Result<Ending, Failure> {
        // What a map has covered is not tested again. It is only looked at, so that a scan may run meanwhile.
        let map = self.map.as_deref().filter(|path| path.exists()).map(MapFile::read);
        let map = map.transpose().map_err(|error| Failure::of("--map", &error))?;
        let left = map.as_ref().map_or(keys.count(), |map| map.remaining());
        let rate = self.rate(keys, targets, devices)?;
        let whole_s = left.as_f64() / rate;
        if self.run.json {
            let line =
                Estimate { event: "estimate", keys: left.to_string(), rate, whole_s, p50_s: whole_s / 2.0 };
            stdout.show_json(&line)?;
        } else {
            let names: Vec<String> = devices.describe().into_iter().map(|(id, _)| id).collect();
            let text = format!(
                "keys        {} ({}){}\nrate        {} on {}\nall         {}\n50 %        {}\n{}",
                human::count(left.as_f64()),
                human::power_of_two(left.as_f64()),
                if map.is_some() { ", not covered yet" } else { "" },
                human::rate(rate),
                names.join(", "),
                human::seconds(whole_s),
                human::seconds(whole_s / 2.0),
                hopeless(whole_s / 2.0, rate).map_or(String::new(), |why| why.estimate())
            );
            stdout.show(text.as_bytes())?;
        }
        stdout.done(self.run.json, &AsAsked {})?;
        Ok(Ending::Done)
    }

    /// Says so where a scan takes beyond a year to be half done; and of a mask, whose size nobody sees, how long it takes.
    pub(super) fn warn_of_length(
        &self,
        keys: &Scanned,
        map: &Map,
        targets: &ScanTargets,
        devices: &dyn Fn() -> Result<Devices, Failure>,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        let left = map.remaining().as_f64();
        let is_short = match keys {
            Scanned::Range(_) => left / 2.0 / SLOW <= YEAR,
            Scanned::Mask(_) => left <= SOON,
        };
        if self.run.quiet || is_short {
            return Ok(());
        }
        let rate = self.rate(keys, targets, &devices()?)?;
        let half = left / 2.0 / rate;
        if keys.mask().is_some() {
            screen.note(&format!(
                "time      {} for all of it at {}",
                human::seconds(2.0 * half),
                human::rate(rate)
            ));
        }
        for line in hopeless(half, rate).iter().flat_map(Hopeless::warning) {
            screen.say(format_args!("{line}"));
        }
        Ok(())
    }
}

/// Why a scan takes more than a year to be half done, given the seconds of that; none of others.
fn hopeless(half: f64, rate: f64) -> Option<Hopeless> {
    (half > YEAR).then(|| Hopeless {
        takes: format!("half of the range takes {} at {}", human::seconds(half), human::rate(rate)),
        instead: [
            format!("a day is enough for {} keys", human::power_of_two(rate * DAY)),
            format!(
                "{} times the speed would bring half of it under a year, or a range of {} keys",
                human::rough((half / YEAR).ceil()),
                human::power_of_two(2.0 * rate * YEAR)
            ),
        ],
    })
}
