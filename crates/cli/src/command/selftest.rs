//! `warpsmith selftest`: every program and kind of pattern, and every kind of scan, with planted keys that each device must
//! find.
//!
//! Shows each case as it passes. The first that fails is the command's failure, so what was shown before it holds.

use clap::Args;
use serde::Serialize;
use warpsmith::proof::{SelfTest, selftest, selftest_scans};

use crate::ending::{Ending, Failure};
use crate::running::{DeviceFlags, choose_samples};
use crate::stdout::{AsAsked, Stdout};

const EXAMPLES: &str = "\
Examples:
  warpsmith selftest
  warpsmith selftest btc btc-p2tr --device cuda:0
  warpsmith selftest scan                     scans of ranges alone
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

    /// Print JSON, one document per line
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

/// The name under which scans are proved.
const SCAN: &str = "scan";

impl Selftest {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let samples = choose_samples(&self.target, &[SCAN])?;
        let with_scans = self.target.is_empty() || self.target.iter().any(|name| name == SCAN);
        let devices = self.devices.open()?;
        let mut shown = Ok(());
        let mut show = |test: &SelfTest| {
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
                    let line = format!("{device:<14}  {target:<22}  {case:<26}  {result}\n");
                    stdout.show(line.as_bytes())
                }
            };
        };
        selftest(&devices, &samples, &mut show)?;
        if with_scans {
            selftest_scans(&devices, &mut show)?;
        }
        shown?;
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}
