//! `warpsmith bench`: the verified speed of the real search, and of the usual loop beside it.
//!
//! The library measures and refuses a rate whose matches do not fit it; this chooses what is measured, and shows
//! it as a table or as JSON.

mod detail;
mod scan;

use std::fmt::Write;
use std::io::IsTerminal;

use clap::Args;
use serde::Serialize;
use warpsmith::Devices;
use warpsmith::pattern::Options;
use warpsmith::proof::{BASELINE_DESCRIPTION, BenchOptions, FieldBench, Sample, bench, bench_field};
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::stderr::report;
use warpsmith_console::stdout::{NoSummary, Stdout};

use self::detail::DetailFields;
use self::scan::{SCAN, ScanBenchFlags};
use crate::failures::OrFail as _;
use crate::patterns::Written;
use crate::running::OpenDevices as _;
use crate::running::choose_samples;

const EXAMPLES: &str = "\
Examples:
  warpsmith bench
  warpsmith bench npub --device cpu --threads 1 --seconds 10 --json
  warpsmith bench npub --baseline
  warpsmith bench npub --patterns words.txt
  warpsmith bench npub --detail               registers, occupancy, where the time goes
  warpsmith bench field                       field multiplications, squarings and inversions per second
  warpsmith bench scan --type p2pkh,eth       keys per second of a scan, with planted keys
  warpsmith bench scan --database DB          the same through the filter of a database";

/// Measure the verified speed of the search
///
/// Runs the search itself and verifies every match it meets; their number must fit the number of keys tried, or
/// the speed is an error instead.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// What to search for [default: one target for each program of the devices]; field times the arithmetic by itself, scan a
    /// scan of a range
    #[arg(value_name = "TARGET")]
    target: Vec<String>,

    #[command(flatten)]
    devices: DeviceFlags,

    /// How long to measure each target and device, 0.5 to 3600
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = parse_seconds)]
    seconds: f64,

    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,

    /// Measure the usual loop beside it: one key at a time with the usual libraries, on as many threads
    #[arg(long)]
    baseline: bool,

    /// Tell where the time goes: registers, spills, occupancy, parts of the search, use of the processor beside it
    #[arg(long)]
    detail: bool,

    /// Search for the patterns in FILE, one per line (- for standard input), instead of the standard one
    #[arg(long, value_name = "FILE")]
    patterns: Option<String>,

    #[command(flatten)]
    scan: ScanBenchFlags,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.5..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.5 to 3600".to_owned()),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    target: &'a str,
    device: &'a str,
    rate: f64,
    verified: u64,
    expected: f64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<DetailFields>,
}

#[derive(Serialize)]
struct FieldLine<'a> {
    event: &'static str,
    target: &'static str,
    device: &'a str,
    op: &'static str,
    rate: f64,
    verified: u64,
    seconds: f64,
}

/// The name under which the arithmetic is benched.
const FIELD: &str = "field";

impl Bench {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let targets = choose_samples(&self.target, &[FIELD, SCAN])?;
        let measures = |name: &str| self.target.iter().any(|target| target == name);
        self.scan.check(measures(SCAN))?;
        let file = self.patterns.as_deref();
        if file == Some("-") && targets.len() > 1 {
            let text =
                "--patterns - can be read for one target only; name it: warpsmith bench npub --patterns -";
            return Err(Failure::Usage(text.to_owned()));
        }
        let load = |sample: &Sample| {
            let target = sample.subject.target();
            file.map(|_| Written::read(&[], file, false)?.compile(target, &Options::default())).transpose()
        };
        let patterns = targets.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let devices = self.devices.open()?;
        self.announce();
        if !self.json {
            stdout.show(self.heading().as_bytes())?;
        }
        if measures(FIELD) {
            self.field(&devices, stdout)?;
        }
        if measures(SCAN) {
            self.scan.run(&devices, self.seconds, (self.json, self.detail), stdout)?;
        }
        for (target, patterns) in targets.iter().zip(&patterns) {
            let options = BenchOptions {
                seconds: self.seconds,
                baseline: self.baseline,
                baseline_threads: self.devices.thread_count(),
                patterns: patterns.as_ref(),
                detail: self.detail,
            };
            for bench in bench(&devices, target, &options).or_fail()? {
                let line = Line {
                    event: "bench",
                    target: bench.target,
                    device: &bench.device,
                    rate: bench.rate,
                    verified: bench.verified,
                    expected: bench.expected,
                    seconds: bench.seconds,
                    baseline_rate: bench.baseline_rate,
                    ratio: bench.baseline_rate.map(|baseline| bench.rate / baseline),
                    detail: bench.detail.as_ref().map(|detail| DetailFields::new(&bench, detail)),
                };
                match self.json {
                    true => stdout.show_json(&line)?,
                    false => stdout.show(row(&line).as_bytes())?,
                }
                if let (Some(detail), false) = (&line.detail, self.json) {
                    stdout.show(detail.text().as_bytes())?;
                }
            }
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// Multiplications, squarings and inversions per second, a line each.
    fn field(&self, devices: &Devices, stdout: &mut Stdout) -> Result<(), Failure> {
        for bench in bench_field(devices, self.seconds).or_fail()? {
            let FieldBench { device, op, rate, verified, seconds } = &bench;
            let (event, target) = ("bench", FIELD);
            if self.json {
                let (rate, verified, seconds) = (*rate, *verified, *seconds);
                stdout.show_json(&FieldLine { event, target, device, op, rate, verified, seconds })?;
                continue;
            }
            let name = format!("{FIELD} {op}");
            stdout.show((columns(&name, device, *rate, *verified, *seconds) + "\n").as_bytes())?;
        }
        Ok(())
    }

    /// Tells a person who waits what is going on.
    fn announce(&self) {
        if std::io::stderr().is_terminal() {
            let time = human::seconds(self.seconds);
            report(&format!("measuring each target and device for {time}; every match is verified"));
            if self.baseline {
                report(&format!("baseline, for as long: {BASELINE_DESCRIPTION}"));
            }
        }
    }

    fn heading(&self) -> String {
        let mut text =
            format!("{:<22}  {:<14}  {:>11}  {:>9}  {:>8}", "target", "device", "rate", "verified", "time");
        if self.baseline {
            let _ = write!(text, "  {:>11}  {:>7}", "baseline", "ratio");
        }
        text + "\n"
    }
}

fn columns(target: &str, device: &str, rate: f64, verified: u64, seconds: f64) -> String {
    let (rate, verified) = (human::rate(rate), human::count(verified as f64));
    format!("{target:<22}  {device:<14}  {rate:>11}  {verified:>9}  {:>8}", human::seconds(seconds))
}

fn row(line: &Line<'_>) -> String {
    let mut text = columns(line.target, line.device, line.rate, line.verified, line.seconds);
    if let (Some(baseline), Some(ratio)) = (line.baseline_rate, line.ratio) {
        let _ = write!(text, "  {:>11}  {ratio:>6.1}x", human::rate(baseline));
    }
    text + "\n"
}
