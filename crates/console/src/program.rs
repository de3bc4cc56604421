//! The main function of a program: startup, global flags, help, error reports and the exit code.

use std::process::ExitCode;
use std::time::Instant;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches};
use serde::Serialize;

use crate::colour::{self, Colour};
use crate::config::{self, FileState};
use crate::exit::{ExitStatus, Failure};
use crate::redact::redacted;
use crate::stderr::{self, report};
use crate::stdout::Stdout;
use crate::{config_command, hardening, human, name, signals};

/// Flags of every command of a program, to be flattened into its parser.
#[derive(Args)]
pub struct GlobalFlags {
    /// When the live screen and help have colours [default: auto, and never where $NO_COLOR is set]
    #[arg(long, value_name = "WHEN", global = true, help_heading = HEADING)]
    color: Option<Colour>,

    /// Log settings, devices and times on stderr
    #[arg(short, long, global = true, help_heading = HEADING)]
    verbose: bool,
}

const HEADING: &str = "Messages";

/// Runs a program: reads configuration and arguments, calls `run` with the parsed command line, reports its failure and returns the
/// exit code.
///
/// `C` must have [`GlobalFlags`]; `name` is that of the program, as help and messages mention it. A command with a flag `--json`
/// reports failures as a document, too.
pub fn main<C: CommandFactory + FromArgMatches>(
    name: &'static str,
    run: impl FnOnce(C) -> Result<ExitStatus, Failure>,
) -> ExitCode {
    hardening::apply();
    signals::record_initial();
    name::set(name);
    if let Err(failure) = config::load() {
        return ExitCode::from(report_failure(&failure, arguments_ask_for_json()).code());
    }
    let command = C::command();
    let version = command.get_version().unwrap_or_default().to_owned();
    // The value of --color is needed before the command line is parsed.
    let colour = colour::choose(config::get().color.value);
    let parsed = command.color(colour.into()).try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((C::from_arg_matches(&matches)?, matches)));
    let (parsed, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return report_parser(&error),
    };
    let began = Instant::now();
    if matches.get_flag("verbose") {
        stderr::set_verbose();
        log_settings(&version);
    }
    let status = run(parsed).unwrap_or_else(|failure| report_failure(&failure, asks_for_json(&matches)));
    stderr::verbose(|| {
        format!("exit code {} after {}", status.code(), human::seconds(began.elapsed().as_secs_f64()))
    });
    if warpsmith_device::drivers_are_busy() {
        // A driver is still opening or compiling for a run that has ended without it. Nothing is lost: results were flushed as they
        // were delivered.
        // SAFETY: ends the process.
        unsafe { libc::_exit(status.code().into()) };
    }
    ExitCode::from(status.code())
}

/// Logs the version, and the settings from files and the environment.
fn log_settings(version: &str) {
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    stderr::verbose(|| format!("{} {version} on {os} {architecture}", name::program_name()));
    for (path, state) in &config::get().files {
        let state = match state {
            FileState::Read => "read",
            FileState::Missing => "not there",
            FileState::Foreign => "not read, it belongs to another user",
        };
        stderr::verbose(|| format!("configuration {}: {state}", path.display()));
    }
    for (name, value, source) in config_command::changed(config::get()) {
        stderr::verbose(|| format!("{name} = {value} from {source}"));
    }
}

/// Returns whether the innermost command has `--json`.
fn asks_for_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, within)) => asks_for_json(within),
        None => matches!(matches.try_get_one("json"), Ok(Some(true))),
    }
}

/// Returns whether a command line that cannot be parsed has `--json`.
fn arguments_ask_for_json() -> bool {
    let mut flags = std::env::args_os().skip(1).take_while(|argument| argument != "--");
    flags.any(|argument| argument == "--json" || argument == "-j")
}

/// The last document of a command that failed.
#[derive(Serialize)]
struct ErrorLine {
    event: &'static str,
    message: String,
    code: u8,
}

/// Prints an error document. A stdout that cannot be written is the error itself, or matters less.
fn print_error(message: &str, code: u8) {
    let line = ErrorLine { event: "error", message: redacted(message), code };
    let _ = Stdout::open().and_then(|mut stdout| stdout.show_json(&line));
}

/// Reports a failure on stderr, and with `json` as a document; returns the exit status.
fn report_failure(failure: &Failure, json: bool) -> ExitStatus {
    let status = failure.status();
    if matches!(failure, Failure::ReaderGone) {
        return status;
    }
    let text = failure.to_string();
    if json {
        print_error(&text, status.code());
    }
    if status != ExitStatus::Interrupted {
        report(&format!("error: {text}"));
    }
    status
}

/// Prints help, or reports an error of the command line's parser. SEC: it likes to repeat what was given.
fn report_parser(error: &clap::Error) -> ExitCode {
    let code = error.exit_code() as u8;
    if error.use_stderr() {
        let text = error.render().to_string();
        if arguments_ask_for_json() {
            // Without the usage.
            let what = text.split("\n\nUsage:").next().unwrap_or_default();
            print_error(what.trim_start_matches("error: ").trim_end(), code);
        }
        report(text.trim_end());
    } else {
        // A reader that is gone has had enough.
        let _ = error.print();
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Parser)]
    #[command(name = "program", about = "About the program", version = "1.2.3")]
    struct Cli {
        #[command(subcommand)]
        _command: Command,
        #[command(flatten)]
        _global: GlobalFlags,
    }

    #[derive(Subcommand)]
    enum Command {
        Run {
            #[arg(long)]
            json: bool,
        },
        Rest,
    }

    #[test]
    fn global_flags_are_known_wherever_they_stand() {
        assert_eq!(Cli::command().get_about().map(ToString::to_string).as_deref(), Some("About the program"));
        for (line, verbose, json) in [
            ("program -v run --json", true, true),
            ("program run -v", true, false),
            ("program run --json --color never", false, true),
            ("program rest", false, false),
        ] {
            let matches = Cli::command().try_get_matches_from(line.split(' ')).expect(line);
            assert!(Cli::from_arg_matches(&matches).is_ok(), "{line}");
            assert_eq!((matches.get_flag("verbose"), asks_for_json(&matches)), (verbose, json), "{line}");
        }
    }
}
