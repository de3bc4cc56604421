//! `warpsmith selftest`: every target and kind of pattern, with planted keys that each device must find.
//!
//! Shows each case as it passes. The first that fails is the command's failure, so what was shown before it holds.

use clap::Args;
use serde::Serialize;

use crate::ending::{Ending, Failure};
use crate::running::{DeviceFlags, choose_samples};
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith selftest
  warpsmith selftest btc btc-p2tr --device cuda:0
  warpsmith selftest --device cpu --threads 1 --json";

/// Prove every target and kind of pattern on the devices
///
/// Keys computed by libsecp256k1 are planted where a search must pass, and each must come back exactly once.
/// Ends with exit code 3 if one does not.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Selftest {
    /// Targets to prove, by the names `bench` shows [default: all]
    target: Vec<String>,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Print JSON, one document a line
    #[arg(long)]
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

impl Selftest {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let names: Vec<&str> = self.target.iter().map(String::as_str).collect();
        let samples = choose_samples(&names, &[])?;
        let devices = self.devices.open()?;
        let mut shown = Ok(());
        warpsmith::selftest(&devices, &samples, &mut |test| {
            if shown.is_err() {
                return;
            }
            let (device, target, case, planted) = (&test.device, test.target, &test.case, test.planted);
            shown = match self.json {
                true => {
                    stdout.show_json(&Line { event: "selftest", device, target, case, planted, ok: true })
                }
                false => {
                    let result = match planted {
                        0 => "not tested by this device: such patterns run on the processor".to_owned(),
                        _ => format!("{planted} planted, all found"),
                    };
                    let line = format!("{device:<14}  {target:<22}  {case:<21}  {result}\n");
                    stdout.show(line.as_bytes())
                }
            };
        })?;
        shown?;
        Ok(Ending::Done)
    }
}
