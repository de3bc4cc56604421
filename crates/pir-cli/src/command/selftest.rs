//! `warpsmith-pir selftest`: hints of random databases against the reference on each device, and entries read with them.
//!
//! Shows each case as it passes. The first that fails is the command's failure, so what was shown before it holds.

use clap::Args;
use serde::Serialize;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::Stdout;
use warpsmith_rms24::{Lanes, Passed, selftest};

use crate::devices::Maker;
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir selftest
  warpsmith-pir selftest --device cuda:0
  warpsmith-pir selftest --device cpu --threads 1 --json";

/// Self-test the devices: hints of random databases, and entries read with them
///
/// All hints that a device makes must be those of the reference, which computes them one at a time, and entries read with them those of
/// the database. Ends with exit code 3 if one is not.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Selftest {
    #[command(flatten)]
    devices: DeviceFlags,

    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    device: &'a str,
    case: &'static str,
    entries: u64,
    entry_size: usize,
    checked: u64,
    ok: bool,
}

#[derive(Serialize)]
struct Summary {
    cases: u64,
}

impl Selftest {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let makers = Maker::open_all(&self.devices)?;
        let stop = interrupt()?;
        let (mut shown, mut cases) = (Ok(()), 0);
        for Maker { id, make, .. } in &makers {
            let tested = selftest(id, make.as_ref(), Lanes::detect(), &stop, &mut |passed| {
                cases += 1;
                if shown.is_ok() {
                    shown = self.show(id, passed, stdout);
                }
            });
            tested.or_fail()?;
        }
        shown?;
        stdout.done(self.json, &Summary { cases })?;
        Ok(ExitStatus::Done)
    }

    fn show(&self, device: &str, passed: Passed, stdout: &mut Stdout) -> Result<(), Failure> {
        let Passed { case, entries, entry_size, checked, .. } = passed;
        if self.json {
            return stdout.show_json(&Line {
                event: "selftest",
                device,
                case,
                entries,
                entry_size,
                checked,
                ok: true,
            });
        }
        let of = format!("{case} of {entries} entries of {entry_size} bytes");
        stdout.show(format!("{device:<12} {of:<44} {checked} checked, all right\n").as_bytes())
    }
}
