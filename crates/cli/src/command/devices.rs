//! `warpsmith devices`: what this machine has, and why it lacks the rest.
//!
//! Only looks; opens nothing and runs nothing. The survey is the library's, this is its two forms.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::Args;
use serde::Serialize;
use warpsmith::devices::Inspection;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human::{self, wrapped};
use warpsmith_console::stderr::is_verbose;
use warpsmith_console::stdout::{NoSummary, Stdout};

const EXAMPLES: &str = "\
Examples:
  warpsmith devices
  warpsmith devices --json
  warpsmith devices --verbose                 for a report of something that does not work
  warpsmith npub cafe --device cpu            use one of them";

/// List the devices of this machine, and why others are missing
///
/// With --verbose: all that the drivers say, and what their compilers say of the usual search.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Devices {
    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    Device { id: &'a str, description: &'a str, default: bool },
    Missing { id: &'a str, reason: &'a str },
}

impl Devices {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
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
            stdout.show_text(&table(&lines))?;
        }
        if is_verbose() {
            self.inspect(stdout)?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}

/// All that is known of a device.
#[derive(Serialize)]
struct InspectionLine<'a> {
    event: &'static str,
    id: &'a str,
    facts: BTreeMap<&'static str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_log: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_error: Option<&'a str>,
}

impl Devices {
    fn inspect(&self, stdout: &mut Stdout) -> Result<(), Failure> {
        for Inspection { id, facts, compiled } in &warpsmith::devices::inspect() {
            if self.json {
                let log = compiled.as_ref().map(|compiled| compiled.log.as_ref());
                let line = InspectionLine {
                    event: "inspection",
                    id,
                    facts: facts.iter().map(|(name, value)| (*name, value.as_str())).collect(),
                    compile_s: compiled.as_ref().map(|compiled| compiled.seconds),
                    compile_log: log.and_then(|log| log.ok()).map(String::as_str),
                    compile_error: log.and_then(|log| log.err()).map(String::as_str),
                };
                stdout.show_json(&line)?;
                continue;
            }
            let mut text = format!("\n{id}\n");
            for (name, value) in facts {
                let _ = writeln!(text, "  {:<22}  {value}", name.replace('_', " "));
            }
            if let Some(compiled) = compiled {
                let (time, said) = (
                    human::seconds(compiled.seconds),
                    match &compiled.log {
                        Ok(log) if log.trim().is_empty() => "without a word".to_owned(),
                        Ok(log) => format!("and the compiler says\n{}", indented(log)),
                        Err(why) => format!("and failed\n{}", indented(why)),
                    },
                );
                let _ = writeln!(text, "  {:<22}  in {time}, {said}", "the usual search");
            }
            stdout.show_text(&text)?;
        }
        Ok(())
    }
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn table(lines: &[Line<'_>]) -> String {
    let width = lines.iter().map(|(Line::Device { id, .. } | Line::Missing { id, .. })| id.len()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let _ = match line {
            Line::Device { id, description, default } => {
                let mark = if *default { ", used by default" } else { "" };
                writeln!(text, "{id:width$}  {}", wrapped(&format!("{description}{mark}"), width + 2))
            }
            Line::Missing { id, reason } => {
                writeln!(text, "{id:width$}  {}", wrapped(&format!("not available: {reason}"), width + 2))
            }
        };
    }
    text
}
