//! The `warpsmith-pir` command line: databases that are read without telling their server what is read.
//!
//! Parses flags, calls `warpsmith_rms24` and `warpsmith_eth_state`, and turns the outcome into text and an exit code. What it shares
//! with `warpsmith` is in `warpsmith_console`.

mod command;
mod devices;
mod failures;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use warpsmith_console::config_command::ConfigCommand;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::manual::{Completions, Man};
use warpsmith_console::program::{self, GlobalFlags};
use warpsmith_console::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir build data.pir entries.bin --entry-size 40     a database of entries of 40 bytes
  warpsmith-pir build keys.pir pairs.txt                       one that is looked up by key
  warpsmith-pir serve data.pir --listen 127.0.0.1:8080         answer queries
  warpsmith-pir hint --server http://127.0.0.1:8080 --state my.state
                                                               prepare: stream the database once
  warpsmith-pir get --server http://127.0.0.1:8080 --state my.state 17 4711
                                                               read entries; the server does not learn which
  warpsmith-pir proxy --server http://127.0.0.1:8080 --state my.state
                                                               answer the wallets of this machine like a node
  warpsmith-pir info data.pir                                  sizes, chances, costs

Exit codes: 0 done, 1 a key is not in the database, 2 wrong usage, 3 no usable device or a failed
self-test, 4 any other failure, 130 interrupted.";

/// Read entries of a database without telling its server which
///
/// The scheme is RMS24. A client streams the database once and keeps hints; from then on each query is a few kilobytes, and
/// looks the same to the server whatever is asked.
#[derive(Parser)]
#[command(
    name = "warpsmith-pir",
    version,
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
    Build(command::build::Build),
    Serve(command::serve::Serve),
    Update(command::update::Update),
    Fold(command::fold::Fold),
    Follow(command::follow::Follow),
    Hint(command::hint::Hint),
    Get(command::get::Get),
    Proxy(command::proxy::Proxy),
    Info(command::info::Info),
    Bench(command::bench::Bench),
    Load(command::load::Load),
    Selftest(command::selftest::Selftest),
    Devices(command::devices::Devices),
    Config(ConfigCommand),
    Completions(Completions),
    Man(Man),
}

fn main() -> ExitCode {
    program::main("warpsmith-pir", |cli: Cli| run(cli.command))
}

fn run(command: Command) -> Result<ExitStatus, Failure> {
    let mut stdout = Stdout::open()?;
    let stdout = &mut stdout;
    match command {
        Command::Build(build) => build.run(stdout),
        Command::Serve(serve) => serve.run(stdout),
        Command::Update(update) => update.run(stdout),
        Command::Fold(fold) => fold.run(stdout),
        Command::Follow(follow) => follow.run(stdout),
        Command::Hint(hint) => hint.run(stdout),
        Command::Get(get) => get.run(stdout),
        Command::Proxy(proxy) => proxy.run(stdout),
        Command::Info(info) => info.run(stdout),
        Command::Bench(bench) => bench.run(stdout),
        Command::Load(load) => load.run(stdout),
        Command::Selftest(selftest) => selftest.run(stdout),
        Command::Devices(devices) => devices.run(stdout),
        Command::Config(config) => config.run(stdout),
        Command::Completions(completions) => completions.run(Cli::command(), stdout),
        Command::Man(man) => man.run(Cli::command(), stdout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_values_say_what_is_allowed() {
        let tried = warpsmith_trials::programs::check_refusals(&Cli::command());
        assert!(tried > 100, "{tried}");
    }
}
