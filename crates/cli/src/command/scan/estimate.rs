//! How long a scan takes: `--estimate`, and what is said before one whose end nobody will see.

use serde::Serialize;
use warpsmith::Devices;
use warpsmith::proof::{ScanOf, bench_scan};
use warpsmith::scan::ScanTargets;
use warpsmith::store::{Interval, Map, MapFile};

use super::Scan;
use crate::ending::{Ending, Failure};
use crate::forecast::{DAY, SLOW, YEAR};
use crate::human;
use crate::screen::Screen;
use crate::stdout::{AsAsked, Stdout};

/// Seconds of measuring, for each device.
const MEASURED: f64 = 1.0;

#[derive(Serialize)]
struct Estimate {
    event: &'static str,
    /// Keys that are left to test.
    keys: String,
    rate: f64,
    /// All of them.
    whole_s: f64,
    /// Until one that is as likely here as there is found with a chance of one half.
    p50_s: f64,
}

impl Scan {
    /// Keys a second of all devices together.
    fn rate(&self, targets: &ScanTargets, devices: &Devices) -> Result<f64, Failure> {
        let of = match self.database.is_empty() {
            false => ScanOf::Database(targets),
            true => ScanOf::Planted(targets.types()),
        };
        Ok(bench_scan(devices, of, MEASURED, false)?.iter().map(|bench| bench.rate).sum())
    }

    pub(super) fn tell_estimate(
        &self,
        range: &Interval,
        targets: &ScanTargets,
        devices: &Devices,
        mut stdout: Stdout,
    ) -> Result<Ending, Failure> {
        // What a map has covered is not tested again. It is only looked at, so that a scan may run meanwhile.
        let map = self.map.as_deref().filter(|path| path.exists()).map(MapFile::read);
        let map = map.transpose().map_err(|error| Failure::of("--map", &error))?;
        let left = map.as_ref().map_or(range.count(), |map| map.remaining());
        let rate = self.rate(targets, devices)?;
        let whole_s = left.as_f64() / rate;
        if self.run.json {
            let line =
                Estimate { event: "estimate", keys: left.to_string(), rate, whole_s, p50_s: whole_s / 2.0 };
            stdout.show_json(&line)?;
        } else {
            let names: Vec<String> = devices.describe().into_iter().map(|(id, _)| id).collect();
            let text = format!(
                "keys        {} ({}){}\nrate        {} on {}\nall         {}\n50 %        {}\n",
                human::count(left.as_f64()),
                human::power_of_two(left.as_f64()),
                if map.is_some() { ", not covered yet" } else { "" },
                human::rate(rate),
                names.join(", "),
                human::seconds(whole_s),
                human::seconds(whole_s / 2.0)
            );
            stdout.show(text.as_bytes())?;
        }
        stdout.done(self.run.json, &AsAsked {})?;
        Ok(Ending::Done)
    }

    /// Says so where a scan takes beyond a year to be half done.
    pub(super) fn warn_of_length(
        &self,
        map: &Map,
        targets: &ScanTargets,
        devices: &Devices,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        let left = map.remaining().as_f64();
        if self.run.quiet || left / 2.0 / SLOW <= YEAR {
            return Ok(());
        }
        let rate = self.rate(targets, devices)?;
        let half = left / 2.0 / rate;
        if half > YEAR {
            screen.say(format_args!(
                "hopeless  half of the range takes {} at {}; it goes on all the same",
                human::seconds(half),
                human::rate(rate)
            ));
            screen.say(format_args!(
                "          a day is enough for {} keys; within a year half of it would be with {} times the speed, or a range of {} keys",
                human::power_of_two(rate * DAY),
                human::count((half / YEAR).ceil()),
                human::power_of_two(2.0 * rate * YEAR)
            ));
        }
        Ok(())
    }
}
