//! `warpsmith config show`: the defaults that hold here, and where each comes from.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::devices::Selector;

use crate::config::{self, Config, FileState, Source, VARIABLES};
use crate::ending::{Ending, Failure};
use crate::stdout::{AsAsked, Stdout};

const EXAMPLES: &str = "\
Examples:
  warpsmith config show
  warpsmith config show --json

A file warpsmith.toml, in the folder warpsmith of $XDG_CONFIG_HOME (or ~/.config) and in the working folder, may hold:
  device = ['cuda:0', 'cpu']     what --device says, where it is not given
  output = 'keys.txt'            what --output says; relative to the folder of the file
  color = 'auto'                 what --color says: auto, always or never
  launch_ms = 10                 what --launch-ms says
  threads = 8                    what --threads says
What is said later counts: the user's file, the working folder's, $WARPSMITH_DEVICE (several with commas), $WARPSMITH_OUTPUT,
$WARPSMITH_COLOR, $WARPSMITH_LAUNCH_MS and $WARPSMITH_THREADS, the command line.";

/// Show the defaults that are set in files and in the environment
#[derive(Args)]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Show(Show),
}

/// Print every setting, its value and where that comes from
#[derive(Args)]
#[command(after_help = EXAMPLES)]
struct Show {
    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct SettingLine {
    event: &'static str,
    name: &'static str,
    value: serde_json::Value,
    /// `default`, `file` or `environment`.
    source: &'static str,
    /// Which file, or which variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl ConfigCommand {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let Command::Show(Show { json }) = self.command;
        let config = config::get();
        if json {
            settings(config).iter().try_for_each(|line| stdout.show_json(line))?;
        } else {
            stdout.show_text(&text(config))?;
        }
        stdout.done(json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}

fn settings(config: &Config) -> [SettingLine; 5] {
    let line = |name, value: Option<serde_json::Value>, source: &Source| {
        let (source, from) = match source {
            Source::Default => ("default", None),
            Source::File(path) => ("file", Some(path.display().to_string())),
            Source::Environment(name) => ("environment", Some((*name).to_owned())),
        };
        SettingLine { event: "setting", name, value: value.unwrap_or_default(), source, from }
    };
    let Config { device, output, color, launch_ms, threads, .. } = config;
    let path = output.value.as_ref().map(|path| path.display().to_string().into());
    [
        line(
            "device",
            device
                .value
                .as_ref()
                .map(|devices| devices.iter().map(Selector::to_string).collect::<Vec<_>>().into()),
            &device.source,
        ),
        line("output", path, &output.source),
        line("color", color.value.map(|color| color.name().into()), &color.source),
        line("launch_ms", launch_ms.value.map(serde_json::Value::from), &launch_ms.source),
        line("threads", threads.value.map(serde_json::Value::from), &threads.source),
    ]
}

/// Settings as people read them, with where each comes from.
fn shown(config: &Config) -> impl Iterator<Item = (&'static str, String, &Source)> {
    let sources = [
        &config.device.source,
        &config.output.source,
        &config.color.source,
        &config.launch_ms.source,
        &config.threads.source,
    ];
    settings(config).into_iter().zip(sources).map(|(SettingLine { name, value, .. }, source)| {
        let value = match value {
            serde_json::Value::Null => "not set".to_owned(),
            serde_json::Value::String(text) => text,
            serde_json::Value::Array(all) => {
                all.iter().filter_map(|one| one.as_str()).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        (name, value, source)
    })
}

/// Settings that are not the defaults of the program.
pub(crate) fn given(config: &Config) -> impl Iterator<Item = (&'static str, String, &Source)> {
    shown(config).filter(|(.., source)| **source != Source::Default)
}

fn text(config: &Config) -> String {
    let mut text = String::new();
    for (name, value, source) in shown(config) {
        let from = if *source == Source::Default { String::new() } else { format!("  from {source}") };
        let _ = writeln!(text, "{name:<10}  {value}{from}");
    }
    let _ = writeln!(text, "\nlooked at, the later one counts:");
    for (path, state) in &config.files {
        let state = match state {
            FileState::Read => "",
            FileState::Missing => " (not there)",
            FileState::Foreign => " (belongs to another user, not read)",
        };
        let _ = writeln!(text, "  {}{state}", path.display());
    }
    let _ = writeln!(text, "  ${}", VARIABLES.join(", $"));
    text
}
