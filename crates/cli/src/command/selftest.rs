//! `warpsmith selftest`: every program and kind of pattern, and every kind of scan, with planted keys that each device must
//! find.
//!
//! Shows each case as it passes. The first that fails is the command's failure, so what was shown before it holds.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use warpsmith::proof::{SelfTest, selftest, selftest_scans};
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stderr::report;
use warpsmith_console::stdout::Stdout;

use crate::failures::OrFail as _;
use crate::running::OpenDevices as _;
use crate::running::choose_samples;

const EXAMPLES: &str = "\
Examples:
  warpsmith selftest
  warpsmith selftest btc btc-p2tr --device cuda:0
  warpsmith selftest scan                     scans of ranges alone
  warpsmith selftest --device cuda:0 --seconds 3600   an hour, for a card that is overclocked
  warpsmith selftest --device cpu --threads 1 --json";

/// Prove every program, kind of pattern and kind of scan on the devices
///
/// Keys computed by libsecp256k1 are planted where a search or scan must pass, and each must come back exactly once.
/// Ends with exit code 3 if one does not.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Selftest {
    /// Targets to prove, by the names `bench` shows, or scan [default: scans, and one target for each program of the devices]
    target: Vec<String>,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Go on testing for so long, with other keys each time: 90, 90s, 1.5m or 2h. For cards that are clocked beyond what they were made for
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    seconds: Option<Duration>,

    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    device: &'a str,
    target: &'a str,
    case: &'a str,
    planted: usize,
    ok: bool,
}

/// How much was proved.
#[derive(Serialize)]
struct Proved {
    cases: u64,
    rounds: u64,
    seconds: f64,
}

/// A case as people see it: in 80 columns, where names are no longer than usual.
fn row(device: &str, target: &str, case: &str, result: &str) -> String {
    // The longest names of targets have short cases, and the other way round.
    let what = format!("{target:<16} {case}");
    format!("{device:<12} {what:<44} {result}\n")
}

/// The name under which scans are proved.
const SCAN: &str = "scan";

impl Selftest {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let samples = choose_samples(&self.target, &[SCAN])?;
        let with_scans = self.target.is_empty() || self.target.iter().any(|name| name == SCAN);
        let devices = self.devices.open()?;
        let stop = interrupt()?;
        let (started, mut shown, mut cases, mut rounds) = (Instant::now(), Ok(()), 0u64, 0u64);
        let mut show = |test: &SelfTest| {
            if shown.is_err() {
                return;
            }
            cases += 1;
            let (device, target, case, planted) = (&test.device, test.target, &test.case, test.planted);
            shown = match self.json {
                true => {
                    stdout.show_json(&Line { event: "selftest", device, target, case, planted, ok: true })
                }
                false => {
                    let result = match planted {
                        0 => "on the processor".to_owned(),
                        _ => format!("{planted} planted, all found"),
                    };
                    stdout.show(row(device, target, case, &result).as_bytes())
                }
            };
        };
        loop {
            selftest(&devices, &samples, &mut show).or_fail()?;
            if with_scans {
                selftest_scans(&devices, &mut show).or_fail()?;
            }
            rounds += 1;
            let is_over = self.seconds.is_none_or(|time| started.elapsed() >= time);
            if is_over || stop.load(Ordering::Relaxed) {
                break;
            }
        }
        shown?;
        let seconds = started.elapsed().as_secs_f64();
        if self.seconds.is_some() {
            let (rounds, time) = (human::count(rounds as f64), human::seconds(seconds));
            report(&format!(
                "{} cases in {rounds} rounds and {time}, all of them right",
                human::count(cases as f64)
            ));
        }
        stdout.done(self.json, &Proved { cases, rounds, seconds })?;
        Ok(if stop.load(Ordering::Relaxed) { ExitStatus::Interrupted } else { ExitStatus::Done })
    }
}
