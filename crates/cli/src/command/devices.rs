//! `warpsmith devices`: what this machine has, and why it lacks the rest.
//!
//! Only looks; opens nothing and runs nothing. The survey is the library's, this is its two forms.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use crate::ending::{Ending, Failure};
use crate::stdout::{AsAsked, Stdout};

const EXAMPLES: &str = "\
Examples:
  warpsmith devices
  warpsmith devices --json
  warpsmith npub cafe --device cpu            use one of them";

/// List the devices of this machine, and why others are missing
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Devices {
    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    Device { id: &'a str, description: &'a str, default: bool },
    Missing { id: &'a str, reason: &'a str },
}

impl Devices {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let survey = warpsmith::devices::survey();
        let found = survey.found.iter().map(|device| Line::Device {
            id: &device.id,
            description: &device.description,
            default: device.default,
        });
        let missing = survey.missing.iter().map(|(id, reason)| Line::Missing { id, reason });
        let lines: Vec<Line<'_>> = found.chain(missing).collect();
        if self.json {
            lines.iter().try_for_each(|line| stdout.show_json(line))?;
        } else {
            stdout.show(table(&lines).as_bytes())?;
        }
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}

fn table(lines: &[Line<'_>]) -> String {
    let width = lines.iter().map(|(Line::Device { id, .. } | Line::Missing { id, .. })| id.len()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let _ = match line {
            Line::Device { id, description, default } => {
                let mark = if *default { ", used by default" } else { "" };
                writeln!(text, "{id:width$}  {description}{mark}")
            }
            Line::Missing { id, reason } => writeln!(text, "{id:width$}  not available: {reason}"),
        };
    }
    text
}
