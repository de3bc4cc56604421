//! The command `config show`: the effective settings and their sources.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith_device::Selector;

use crate::config::{self, Config, FileState, Source, VARIABLES};
use crate::exit::{ExitStatus, Failure};
use crate::program_name;
use crate::stdout::{NoSummary, Stdout};

fn help() -> String {
    let name = program_name();
    format!("Examples:\n  {name} config show\n  {name} config show --json\n\n{FILES}")
}

const FILES: &str = "\
A file warpsmith.toml, in the folder warpsmith of $XDG_CONFIG_HOME (or ~/.config) and in the working folder, may hold:
  device = ['cuda:0', 'cpu']     what --device says, where it is not given
  output = 'keys.txt'            what --output says; relative to the folder of the file
  color = 'auto'                 what --color says: auto, always or never
  launch_ms = 10                 what --launch-ms says
  threads = 8                    what --threads says
Later sources take precedence: the user's file, the working folder's, $WARPSMITH_DEVICE (several with commas), $WARPSMITH_OUTPUT,
$WARPSMITH_COLOR, $WARPSMITH_LAUNCH_MS and $WARPSMITH_THREADS, the command line.";

/// Show the defaults that are set in files and in the environment
#[derive(Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Show(Show),
}

/// Print every setting, its value and where that comes from
#[derive(Args)]
#[command(after_help = help())]
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
    /// The file or the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl ConfigCommand {
    /// Prints the settings.
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let Command::Show(Show { json }) = self.command;
        let config = config::get();
        if json {
            settings(config).iter().try_for_each(|line| stdout.show_json(line))?;
        } else {
            stdout.show_text(&text(config))?;
        }
        stdout.done(json, &NoSummary {})?;
        Ok(ExitStatus::Done)
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

/// Iterates over the settings as text, with their sources.
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

/// Iterates over the settings that files or the environment changed.
pub fn changed(config: &Config) -> impl Iterator<Item = (&'static str, String, &Source)> {
    shown(config).filter(|(.., source)| **source != Source::Default)
}

fn text(config: &Config) -> String {
    let mut text = String::new();
    for (name, value, source) in shown(config) {
        let from = if *source == Source::Default { String::new() } else { format!("  from {source}") };
        let _ = writeln!(text, "{name:<10}  {value}{from}");
    }
    let _ = writeln!(text, "\nsources, the later one takes precedence:");
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
