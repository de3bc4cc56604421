//! `warpsmith bench scan`: keys per second of a scan, verified by planted keys or by what passes the filter of a database.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use warpsmith::Devices;
use warpsmith::chain::KeyType;
use warpsmith::proof::{ScanBench, ScanOf, bench_scan};
use warpsmith::scan::{FilterWish, with_filter};
use warpsmith::store::Database;
use warpsmith_console::exit::Failure;
use warpsmith_console::stdout::Stdout;

use super::columns;
use super::detail::CardFields;
use crate::command::scan::{filter_names, scanned_types, tell_filter};
use crate::failures::{OrFail as _, failure_of};
use crate::screen::{LiveScreen, ScreenFlags};

/// The name under which scans are benched.
pub(super) const SCAN: &str = "scan";

/// The type that is measured by itself where none is named: a compressed key's address.
const USUAL: &str = "p2pkh";

#[derive(Args)]
pub(super) struct ScanBenchFlags {
    /// With scan: the types of addresses that a key is tested as, together [default: p2pkh; with --database, all it has]
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = scanned_types(), hide_possible_values = true)]
    types: Vec<&'static KeyType>,

    /// With scan: look in this database, through its filter, instead of for planted keys
    #[arg(long, value_name = "DB", value_hint = clap::ValueHint::FilePath)]
    database: Option<PathBuf>,

    /// With scan and --database: the filter that devices test first, fuse8, fuse16 or none [default: the finer that fits]
    #[arg(long, value_name = "NAME", requires = "database", value_parser = filter_names(), hide_possible_values = true)]
    filter: Option<FilterWish>,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    target: &'static str,
    types: &'a [&'static str],
    device: &'a str,
    rate: f64,
    verified: u64,
    expected: f64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<ScanDetail>,
}

/// As that of a search, but for what only searches have.
#[derive(Serialize)]
struct ScanDetail {
    card: CardFields,
}

impl ScanBenchFlags {
    /// Refuses flags of scans where none is measured.
    pub fn check(&self, measures_scan: bool) -> Result<(), Failure> {
        let given = [("--type", !self.types.is_empty()), ("--database", self.database.is_some())];
        match given.iter().find(|(_, given)| *given && !measures_scan) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} says what a scan looks for; give: warpsmith bench scan {flag} ..."
            ))),
            None => Ok(()),
        }
    }

    pub fn run(
        &self,
        devices: &Devices,
        seconds: f64,
        (json, detail): (bool, bool),
        stdout: &mut Stdout,
    ) -> Result<(), Failure> {
        let usual = [KeyType::find(USUAL).expect("a type")];
        let types = if self.types.is_empty() { &usual[..] } else { &self.types };
        let benches = match &self.database {
            None => bench_scan(devices, ScanOf::Planted(types), seconds, detail).or_fail()?,
            Some(path) => {
                let failed = |error: warpsmith::Error| failure_of("--database", &error);
                let database = Database::open(path).map_err(|error| failed(error.into()))?;
                let wish = self.filter.unwrap_or(FilterWish::Finest);
                let mut screen = LiveScreen::new(false, &ScreenFlags::default());
                let targets = with_filter(vec![database], &self.types, wish, devices, &mut |news| {
                    tell_filter(&mut screen, &news)
                });
                bench_scan(devices, ScanOf::Database(&targets.map_err(failed)?), seconds, detail).or_fail()?
            }
        };
        for ScanBench { device, types, rate, verified, expected, seconds, profile } in &benches {
            let (event, target) = ("bench", SCAN);
            let (rate, verified, expected, seconds) = (*rate, *verified, *expected, *seconds);
            let detail = profile.as_ref().map(|profile| ScanDetail { card: CardFields::new(profile) });
            if json {
                stdout.show_json(&Line {
                    event,
                    target,
                    types,
                    device,
                    rate,
                    verified,
                    expected,
                    seconds,
                    detail,
                })?;
                continue;
            }
            let name = match types.len() {
                0..=2 => format!("{SCAN} {}", types.join(",")),
                several => format!("{SCAN} {several} types"),
            };
            stdout.show((columns(&name, device, rate, verified, seconds) + "\n").as_bytes())?;
            if let Some(ScanDetail { card }) = detail {
                stdout.show(card.text().as_bytes())?;
            }
        }
        Ok(())
    }
}
