//! `warpsmith tune`: tries shapes of each kind of program on each card and remembers the fastest.

use clap::Args;
use serde::Serialize;
use warpsmith::chain::KeyType;
use warpsmith::devices::{TuneFor, Tuned, TunedPrograms, tune};
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::{NoSummary, Stdout};

use crate::failures::OrFail as _;
use crate::running::OpenDevices as _;
use crate::running::choose_samples;

const EXAMPLES: &str = "\
Examples:
  warpsmith tune                     every kind of program, some ten minutes a card
  warpsmith tune npub                the search of npubs alone, and what all others start from
  warpsmith tune btc eth --device cuda:0
  warpsmith tune scan";

/// Find the fastest shape of each search and of scans on each card, and remember it
///
/// Measures shapes for a second or two each, after compiling them, every one self-tested and its matches verified; the nearest to the
/// best are timed again in turn. The best is kept beside the compiled kernels, per device, driver and kernel. Processors need no
/// tuning and are passed over.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tune {
    /// What to tune for: targets as `bench` names them, or scan [default: each program of the devices, and scan]
    #[arg(value_name = "TARGET")]
    target: Vec<String>,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    target: &'a str,
    device: &'a str,
    program: &'a str,
    shape: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(rename = "final")]
    is_final: bool,
    best: bool,
}

/// The name under which scans are tuned.
const SCAN: &str = "scan";

/// What scans are tuned for: types that between them run each program that a scan has.
const SCANNED: [&[&str]; 4] = [&["p2pkh"], &["p2pkh", "p2sh"], &["p2pkh-uncompressed"], &["eth"]];

impl Tune {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let samples = choose_samples(&self.target, &[SCAN])?;
        let scans = self.target.is_empty() || self.target.iter().any(|name| name == SCAN);
        let devices = self.devices.open()?;
        let mut screen = Screen::new(false);
        let label = |device: &str, target: &str| format!("shapes of {device} for {target}");
        if let (Some((first, _)), Some(target)) = (devices.describe().first(), samples.first()) {
            // The time that is left counts from here.
            screen.bar(&label(first, target.name), Some(0.0), "");
        }
        let (mut done, mut shown, mut any) = (TunedPrograms::default(), Ok(()), false);
        let mut show = |target: &str, tuned: &Tuned| {
            any = true;
            if shown.is_ok() {
                shown = self.show(target, tuned, stdout);
            }
            let (number, count) = tuned.number;
            let more = format!("{number} of {count} tried");
            screen.bar(&label(&tuned.device, target), Some(number as f64 / count as f64), &more);
        };
        for sample in &samples {
            let mut report = |tuned: &Tuned| show(sample.name, tuned);
            tune(&devices, TuneFor::Search(sample), &mut done, &mut report).or_fail()?;
        }
        for types in SCANNED.iter().filter(|_| scans) {
            let types: Vec<_> = types.iter().map(|name| KeyType::find(name).expect("a type")).collect();
            tune(&devices, TuneFor::Scan(&types), &mut done, &mut |tuned| show(SCAN, tuned)).or_fail()?;
        }
        screen.clear();
        shown?;
        if !any {
            let text = "no card among the devices: the processor needs no tuning (`warpsmith devices` lists what there is)";
            return Err(Failure::Device(text.to_owned()));
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    fn show(&self, target: &str, tuned: &Tuned, stdout: &mut Stdout) -> Result<(), Failure> {
        let Tuned { device, program, shape, is_final, best, .. } = tuned;
        let (rate, error) = (tuned.rate.as_ref().ok().copied(), tuned.rate.as_ref().err());
        let (is_final, best) = (*is_final, *best);
        if self.json {
            let error = error.map(String::as_str);
            let line = Line { event: "tune", target, device, program, shape, rate, error, is_final, best };
            return stdout.show_json(&line);
        }
        let result = match (rate, error) {
            (Some(rate), _) => human::rate(rate),
            (_, Some(error)) => error.lines().next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let mark = match (is_final, best) {
            (false, true) => "  best so far",
            (true, true) => "  in turn, best so far",
            (true, false) => "  in turn",
            (false, false) => "",
        };
        stdout.show(format!("{device:<10}  {target} {program}: {shape}  {result}{mark}\n").as_bytes())
    }
}
