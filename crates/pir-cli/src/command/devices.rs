//! `warpsmith-pir devices`: what this machine has, and why it lacks the rest.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human::wrapped;
use warpsmith_console::stderr::is_verbose;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_device::{Device, defaults, survey};
use warpsmith_simd::Simd;

use crate::devices::{describe, describe_processor, is_usable, processor_id};

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir devices
  warpsmith-pir devices --json
  warpsmith-pir devices --verbose             for a report of something that does not work
  warpsmith-pir hint --server http://127.0.0.1:8080 --state my.state --device cpu
                                              use one of them";

/// List the devices of this machine, and why others are missing
///
/// With --verbose: all that the drivers say.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Devices {
    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line {
    Device { id: String, description: String, default: bool },
    Missing { id: String, reason: String },
    Inspection { id: String, facts: BTreeMap<&'static str, String> },
}

impl Devices {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let found = survey();
        let lines = lines(&found.devices, found.missing);
        let facts = if is_verbose() { inspections(&found.devices) } else { Vec::new() };
        if self.json {
            lines.iter().chain(&facts).try_for_each(|line| stdout.show_json(line))?;
        } else {
            stdout.show_text(&table(&lines))?;
            stdout.show_text(&fact_sheets(&facts))?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Returns a line for each device that can be used, and for each that cannot.
fn lines(devices: &[Arc<dyn Device>], missing: Vec<(String, String)>) -> Vec<Line> {
    let by_default = defaults(devices, &is_usable);
    let (mut lines, mut unusable) = (Vec::new(), Vec::new());
    for (device, &default) in devices.iter().zip(&by_default) {
        let info = device.info();
        let twin = info.same_as.as_ref().map_or(String::new(), |twin| format!("; the same card as {twin}"));
        let description = describe(device.as_ref()) + &twin;
        match is_usable(device.as_ref()) {
            Ok(()) => lines.push(Line::Device { id: info.id.clone(), description, default }),
            Err(why) => {
                unusable.push(Line::Missing { id: info.id.clone(), reason: format!("{description}: {why}") })
            }
        }
    }
    let any = by_default.contains(&true);
    for simd in Simd::available(&Simd::ALL) {
        let default = !any && simd == Simd::first_available(&Simd::ALL);
        let (id, description) = (processor_id(simd), describe_processor(simd, threads()));
        lines.push(Line::Device { id, description, default });
    }
    lines.extend(missing.into_iter().map(|(id, reason)| Line::Missing { id, reason }));
    lines.extend(unusable);
    lines
}

/// Returns all that drivers tell of their devices.
fn inspections(devices: &[Arc<dyn Device>]) -> Vec<Line> {
    let card = |device: &Arc<dyn Device>| {
        let info = device.info();
        let or_not_told = |text: Option<String>| text.unwrap_or_else(|| "not told".to_owned());
        let mut facts = BTreeMap::from([
            ("name", info.name.clone()),
            ("maker", info.vendor.to_string()),
            ("interface", info.api.to_string()),
            ("driver", info.driver.clone()),
            ("architecture", info.arch.clone()),
            ("units", info.units.to_string()),
            ("threads_per_unit", or_not_told(info.threads_per_unit.map(|threads| threads.to_string()))),
            ("memory_bytes", info.memory.to_string()),
            ("largest_buffer_bytes", info.largest_buffer.to_string()),
            ("constant_memory_bytes", info.constant_memory.to_string()),
            ("shared_memory_bytes", info.shared_memory.to_string()),
            ("identity", or_not_told(info.identity.clone())),
            ("is_gpu", info.is_gpu.to_string()),
        ]);
        facts.extend(info.same_as.iter().map(|twin| ("same_as", twin.clone())));
        Line::Inspection { id: info.id.clone(), facts }
    };
    let sets: Vec<String> = Simd::available(&Simd::ALL).map(|set| set.to_string()).collect();
    let processor = BTreeMap::from([
        ("instruction_sets", sets.join(", ")),
        ("used", Simd::first_available(&Simd::ALL).to_string()),
        ("threads", threads().to_string()),
    ]);
    let processor = Line::Inspection { id: "cpu".to_owned(), facts: processor };
    devices.iter().map(card).chain([processor]).collect()
}

fn table(lines: &[Line]) -> String {
    let row = |line: &Line| match line {
        Line::Device { id, description, default } => {
            (id.clone(), format!("{description}{}", if *default { ", used by default" } else { "" }))
        }
        Line::Missing { id, reason } => (id.clone(), format!("not available: {reason}")),
        Line::Inspection { id, .. } => (id.clone(), String::new()),
    };
    let rows: Vec<(String, String)> = lines.iter().map(row).collect();
    let width = rows.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
    rows.iter().map(|(id, text)| format!("{id:width$}  {}\n", wrapped(text, width + 2))).collect()
}

fn fact_sheets(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let Line::Inspection { id, facts } = line else { continue };
        let _ = writeln!(text, "\n{id}");
        for (name, value) in facts {
            let _ = writeln!(text, "  {:<22}  {value}", name.replace('_', " "));
        }
    }
    text
}
