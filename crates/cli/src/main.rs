//! The `warpsmith` command line.
//!
//! Parses flags, calls the library and turns the outcome into text and an exit code. stdout carries results only; everything else goes
//! to stderr. What it shares with other programs, from reports of failures to prompts, is in `warpsmith_console`.

mod advice;
mod artifact;
mod authorities;
mod command;
mod encrypted;
mod encryption;
mod estimates;
mod factory;
mod failures;
mod hooks;
mod keys;
mod metrics;
mod mining;
mod notify;
mod output;
mod patterns;
mod progress;
mod qr;
mod quest;
mod record;
mod results;
mod running;
mod scores;
mod screen;
mod sealing;
mod submission;
mod values;

use std::process::ExitCode;

use crate::mining::Executor;
use clap::{CommandFactory, Parser, Subcommand};
use warpsmith_console::config_command::ConfigCommand;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::manual::{Completions, Man};
use warpsmith_console::program::{self, GlobalFlags};
use warpsmith_console::stdout::Stdout;

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

    #[command(flatten)]
    _global: GlobalFlags,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Mine(command::chain::Mine),
    Cosmos(command::cosmos::Cosmos),
    Eth(command::ethereum::Eth),
    Create2(Box<command::explain::Create2Command>),
    Create3(Box<command::explain::Create3Command>),
    Scan(command::scan::Scan),
    Db(command::db::Db),
    Map(command::map::MapCommand),
    Fleet(command::fleet::Fleet),
    ServeSalts(command::serve_salts::ServeSalts),
    Keygen(command::keygen::Keygen),
    Join(command::join::Join),
    Verify(command::verify::Verify),
    Bench(command::bench::Bench),
    Selftest(command::selftest::Selftest),
    Tune(command::tune::Tune),
    Devices(command::devices::Devices),
    Config(ConfigCommand),
    Completions(Completions),
    Man(Man),
}

fn main() -> ExitCode {
    authorities::do_without();
    program::main("warpsmith", |cli: Cli| run(cli.command))
}

fn run(command: Command) -> Result<ExitStatus, Failure> {
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
        Command::Completions(completions) => completions.run(Cli::command(), &mut stdout),
        Command::Man(man) => man.run(Cli::command(), &mut stdout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_values_say_what_is_allowed() {
        let tried = warpsmith_trials::programs::check_refusals(&Cli::command());
        assert!(tried > 300, "{tried}");
    }
}
