//! `warpsmith tune`: tries shapes of the search on each card and remembers the fastest.

use clap::Args;
use serde::Serialize;

use crate::ending::{Ending, Failure};
use crate::human;
use crate::running::DeviceFlags;
use crate::screen::Screen;
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith tune
  warpsmith tune --device cuda:0";

/// Find the fastest shape of the search on each card, and remember it
///
/// Measures about a dozen shapes for a second each, after compiling them, every one self-tested and its matches verified. The best is kept
/// beside the compiled kernels, per device, driver and kernel. Processors need no tuning and are passed over.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tune {
    #[command(flatten)]
    devices: DeviceFlags,

    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    device: &'a str,
    shape: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    best: bool,
}

impl Tune {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let devices = self.devices.open()?;
        let sample = warpsmith::proof::samples()[0];
        let mut screen = Screen::new(false);
        let ids = devices.describe();
        let label = |device: &str| format!("shapes of {device}");
        if let Some((first, _)) = ids.first() {
            // The time that is left counts from here.
            screen.bar(&label(first), Some(0.0), "");
        }
        let mut shown = Ok(());
        let mut any = false;
        warpsmith::devices::tune(&devices, &sample, &mut |tuned| {
            any = true;
            if shown.is_err() {
                return;
            }
            let (rate, error) = (tuned.rate.as_ref().ok().copied(), tuned.rate.as_ref().err());
            let (device, shape, best) = (&tuned.device, &tuned.shape, tuned.best);
            shown = if self.json {
                let error = error.map(String::as_str);
                stdout.show_json(&Line { event: "tune", device, shape, rate, error, best })
            } else {
                let result = match (rate, error) {
                    (Some(rate), _) => human::rate(rate),
                    (_, Some(error)) => error.lines().next().unwrap_or_default().to_owned(),
                    _ => String::new(),
                };
                let mark = if best { "  best so far" } else { "" };
                stdout.show(format!("{device:<10}  {shape}  {result}{mark}\n").as_bytes())
            };
            let (number, count) = tuned.number;
            let more = format!("{number} of {count} tried");
            screen.bar(&label(device), Some(number as f64 / count as f64), &more);
        })?;
        screen.clear();
        shown?;
        if !any {
            let text = "no card among the devices: the processor needs no tuning (`warpsmith devices` lists what there is)";
            return Err(Failure::Device(text.to_owned()));
        }
        Ok(Ending::Done)
    }
}
