//! The `warpsmith` command line.
//!
//! Reads what a person typed, hands it to the library and turns the outcome into text and an exit code. stdout
//! carries results only; everything else goes to stderr. Every ending passes through [`main`], so the exit
//! codes are decided in `ending.rs` and nowhere else.

mod artifact;
mod authorities;
mod colour;
mod command;
mod config;
mod encrypted;
mod encryption;
mod ending;
mod estimates;
mod factory;
mod hardening;
mod hooks;
mod human;
mod input;
mod json;
mod keys;
mod metrics;
mod mining;
mod notify;
mod output;
mod patterns;
mod progress;
mod prompt;
mod qr;
mod quest;
mod record;
mod results;
mod running;
mod scores;
mod screen;
mod sealing;
mod signals;
mod stdout;
mod submission;
mod telling;
mod token;
mod web;

use std::process::ExitCode;
use std::time::Instant;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::colour::Colour;
use crate::config::FileState;
use crate::ending::{Ending, Failure};
use crate::mining::Executor;
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith npub cafe                         a Nostr key whose npub begins with npub1cafe
  warpsmith npub cafe --estimate              how long that takes on this machine
  warpsmith npub ..0ace --output keys.txt     ends with 0ace; the secret goes to keys.txt alone
  warpsmith npub cafe --encrypt               the key only under a password, as wallets import it
  warpsmith verify keys.txt                   whether all that a file of results says is true
  warpsmith npub cafe --split-key 02f9...     mine for a public key, without its private key
  warpsmith eth cafe                          an Ethereum account at 0xcafe...
  warpsmith btc 1Love                         a Bitcoin address that begins with 1Love
  warpsmith create2 --zeros --factory arachnid --init-code token.hex
                                              the salt that gives a contract the most zero bytes
  warpsmith pir build data.pir entries.bin --entry-size 40
                                              a database that is read without telling its server what is read
  warpsmith bench --baseline                  verified speed, beside the usual loop

Exit codes: 0 found or done, 1 ended without a match, 2 wrong usage, 3 no usable device or a failed
self-test, 4 any other failure, 130 interrupted.";

#[derive(Parser)]
#[command(
    name = "warpsmith",
    version,
    about = "Search secp256k1 keys by the look of their public form",
    after_help = EXAMPLES,
    arg_required_else_help = true,
    max_term_width = 110
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// When the live screen and help have colours [default: auto, and never where $NO_COLOR is set]
    #[arg(long, value_name = "WHEN", global = true, help_heading = MESSAGES)]
    color: Option<Colour>,

    /// Log settings, devices and times on stderr
    #[arg(short, long, global = true, help_heading = MESSAGES)]
    verbose: bool,
}

/// The heading of flags that every command has.
const MESSAGES: &str = "Messages";

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Mine(command::chain::Mine),
    Cosmos(command::cosmos::Cosmos),
    Eth(command::ethereum::Eth),
    Create2(Box<command::explain::Create2Command>),
    Create3(command::explain::Create3Command),
    Scan(command::scan::Scan),
    Db(command::db::Db),
    Map(command::map::MapCommand),
    Pir(command::pir::Pir),
    Fleet(command::fleet::Fleet),
    ServeSalts(command::serve_salts::ServeSalts),
    Keygen(command::keygen::Keygen),
    Join(command::join::Join),
    Verify(command::verify::Verify),
    Bench(command::bench::Bench),
    Selftest(command::selftest::Selftest),
    Tune(command::tune::Tune),
    Devices(command::devices::Devices),
    Config(command::config::ConfigCommand),
    Completions(command::manual::Completions),
    Man(command::manual::Man),
}

fn main() -> ExitCode {
    hardening::begin();
    authorities::do_without();
    signals::remember();
    if let Err(failure) = config::load() {
        return ExitCode::from(failure.report(asks_for_json()).code());
    }
    let colour = colour::choose(config::get().color.value);
    let parsed = Cli::command().color(colour.into()).try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, prints_json(&matches))));
    let (cli, json) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    // Its value was needed before the command line could be parsed.
    let Cli { command, color: _, verbose } = cli;
    let began = Instant::now();
    if verbose {
        telling::be_verbose();
        describe_settings();
    }
    let ending = run(command).unwrap_or_else(|failure| failure.report(json));
    telling::detail(|| {
        format!("exit code {} after {}", ending.code(), human::seconds(began.elapsed().as_secs_f64()))
    });
    if warpsmith::devices::drivers_are_busy() {
        // A driver is still opening or compiling for a search that has ended without it. What the usual way out would do is done:
        // results were flushed as they were delivered.
        // SAFETY: ends the process.
        unsafe { libc::_exit(ending.code().into()) };
    }
    ExitCode::from(ending.code())
}

/// Logs the version, and the settings that files and the environment make.
fn describe_settings() {
    let version = env!("CARGO_PKG_VERSION");
    telling::detail(|| format!("warpsmith {version} on {} {}", std::env::consts::OS, std::env::consts::ARCH));
    for (path, state) in &config::get().files {
        let state = match state {
            FileState::Read => "read",
            FileState::Missing => "not there",
            FileState::Foreign => "not read, it belongs to another user",
        };
        telling::detail(|| format!("configuration {}: {state}", path.display()));
    }
    for (name, value, source) in command::config::given(config::get()) {
        telling::detail(|| format!("{name} = {value} from {source}"));
    }
}

/// Whether the command, the innermost one, was asked for JSON.
fn prints_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, within)) => prints_json(within),
        None => matches!(matches.try_get_one("json"), Ok(Some(true))),
    }
}

/// The same of a command line that cannot be read: somebody who asks for JSON reads JSON.
fn asks_for_json() -> bool {
    let flags = std::env::args_os().skip(1).take_while(|argument| argument != "--");
    flags.into_iter().any(|argument| argument == "--json" || argument == "-j")
}

/// What the command line's parser has to say: help for stdout, or a mistake. SEC: it likes to repeat what was given.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let text = error.render().to_string();
        if asks_for_json() {
            // What is wrong, without how the command is used.
            let what = text.split("\n\nUsage:").next().unwrap_or_default();
            ending::tell_json(what.trim_start_matches("error: ").trim_end(), error.exit_code() as u8);
        }
        telling::tell(text.trim_end());
    } else {
        // A reader that is gone has had enough.
        let _ = error.print();
    }
    ExitCode::from(error.exit_code() as u8)
}

fn run(command: Command) -> Result<Ending, Failure> {
    let mut stdout = Stdout::open()?;
    match command {
        Command::Mine(mine) => mine.run(Executor::Local, stdout),
        Command::Cosmos(cosmos) => cosmos.run(Executor::Local, stdout),
        Command::Eth(eth) => eth.run(Executor::Local, stdout),
        Command::Create2(create2) => create2.run(stdout),
        Command::Create3(create3) => create3.run(stdout),
        Command::Scan(scan) => scan.run(stdout),
        Command::Db(db) => db.run(&mut stdout),
        Command::Map(map) => map.run(&mut stdout),
        Command::Pir(pir) => pir.run(&mut stdout),
        Command::Fleet(fleet) => fleet.run(stdout),
        Command::ServeSalts(serve) => serve.run(stdout),
        Command::Keygen(keygen) => keygen.run(&mut stdout),
        Command::Join(join) => join.run(stdout),
        Command::Verify(verify) => verify.run(&mut stdout),
        Command::Bench(bench) => bench.run(&mut stdout),
        Command::Selftest(selftest) => selftest.run(&mut stdout),
        Command::Tune(tune) => tune.run(&mut stdout),
        Command::Devices(devices) => devices.run(&mut stdout),
        Command::Config(config) => config.run(&mut stdout),
        Command::Completions(completions) => completions.run(&mut stdout),
        Command::Man(man) => man.run(&mut stdout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    /// Every value that a flag refuses is refused in words, not with what a parser of Rust says.
    #[test]
    fn refused_values_say_what_is_allowed() {
        const RAW: [&str; 8] = [
            "is not in",
            "invalid digit",
            "number too",
            "cannot parse",
            "invalid float",
            "line 1 column",
            "expected ident",
            "invalid socket",
        ];
        fn walk(command: &clap::Command, tried: &mut usize) {
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                let parser = argument.get_value_parser().clone();
                let one = Arg::new("x").long("x").value_parser(parser).allow_hyphen_values(true);
                let alone = clap::Command::new("t").arg(one);
                for value in ["", "x", "-1", "1.5", "{", "99999999999999999999"] {
                    let Err(error) = alone.clone().try_get_matches_from(["t", "--x", value]) else {
                        continue;
                    };
                    *tried += 1;
                    let said = error.to_string();
                    let raw = RAW.iter().find(|raw| said.contains(*raw));
                    let flag = argument.get_id();
                    assert_eq!(raw, None, "{} --{flag} {value:?}: {said}", command.get_name());
                }
            }
            command.get_subcommands().for_each(|command| walk(command, tried));
        }
        let mut tried = 0;
        walk(&Cli::command(), &mut tried);
        assert!(tried > 300, "{tried}");
    }
}
