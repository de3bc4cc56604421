//! How long a scan takes: `--estimate`, and the warning before one that takes more than a year.

use serde::Serialize;
use warpsmith::Devices;
use warpsmith::estimate::{MIN_RATE, ScanEstimate, YEAR, scan_rate};
use warpsmith::scan::ScanTargets;
use warpsmith::store::{Map, MapFile};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::{human, json};

use super::Scan;
use super::masks::Scanned;
use crate::estimates::Hopeless;
use crate::failures::{OrFail as _, failure_of};
use crate::screen::LiveScreen;

/// Candidates of a mask that are tested before anybody would have read how long it takes.
const SOON: f64 = 1e7;

#[derive(Serialize)]
struct EstimateLine {
    event: &'static str,
    /// Keys that are left to test.
    keys: String,
    rate: f64,
    /// Seconds until all of them are tested.
    #[serde(serialize_with = "json::seconds")]
    whole_s: f64,
    /// Seconds until one that is as likely here as there is found with a probability of one half.
    #[serde(serialize_with = "json::seconds")]
    p50_s: f64,
}

impl Scan {
    pub(super) fn tell_estimate(
        &self,
        keys: &Scanned,
        targets: &ScanTargets,
        devices: &Devices,
        mut stdout: Stdout,
    ) -> Result<ExitStatus, Failure> {
        // What a map has covered is not tested again. It is only read, so that a scan may run meanwhile.
        let map = self.map.as_deref().filter(|path| path.exists()).map(MapFile::read);
        let map = map.transpose().map_err(|error| failure_of("--map", &error))?;
        let left = map.as_ref().map_or(keys.count(), |map| map.remaining());
        let estimate = ScanEstimate::at_rate(left, scan_rate(targets, keys.mask(), devices).or_fail()?);
        let ScanEstimate { keys, rate, all_s, p50_s, too_long } = estimate;
        if self.run.json {
            let keys = keys.to_string();
            stdout.show_json(&EstimateLine { event: "estimate", keys, rate, whole_s: all_s, p50_s })?;
        } else {
            let names: Vec<String> = devices.describe().into_iter().map(|(id, _)| id).collect();
            let text = format!(
                "keys        {} ({}){}\nrate        {} on {}\nall         {}\n50 %        {}\n{}",
                human::count(keys.as_f64()),
                human::power_of_two(keys.as_f64()),
                if map.is_some() { ", not covered yet" } else { "" },
                human::rate(rate),
                names.join(", "),
                human::seconds(all_s),
                human::seconds(p50_s),
                too_long.map_or(String::new(), |why| Hopeless::of_scan(&why).estimate())
            );
            stdout.show(text.as_bytes())?;
        }
        stdout.done(self.run.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// Warns of a scan of which half takes more than a year; of a mask, whose size nobody sees, it reports the time.
    pub(super) fn warn_of_length(
        &self,
        keys: &Scanned,
        map: &Map,
        targets: &ScanTargets,
        devices: &dyn Fn() -> Result<Devices, Failure>,
        screen: &mut LiveScreen,
    ) -> Result<(), Failure> {
        let left = map.remaining();
        let is_short = match keys {
            Scanned::Range(_) => left.as_f64() / 2.0 / MIN_RATE <= YEAR,
            Scanned::Mask(_) => left.as_f64() <= SOON,
        };
        if self.run.quiet || is_short {
            return Ok(());
        }
        let estimate = ScanEstimate::at_rate(left, scan_rate(targets, keys.mask(), &devices()?).or_fail()?);
        if keys.mask().is_some() {
            screen.note(&format!(
                "time      {} for all of it at {}",
                human::seconds(estimate.all_s),
                human::rate(estimate.rate)
            ));
        }
        for line in estimate.too_long.iter().map(Hopeless::of_scan).flat_map(|why| why.warning()) {
            screen.say(format_args!("{line}"));
        }
        Ok(())
    }
}
