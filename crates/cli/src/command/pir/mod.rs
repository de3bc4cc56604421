//! `warpsmith pir`: a database that is read without telling its server what is read.

mod bench;
mod build;
mod catching;
mod codes;
mod fold;
mod follow;
mod get;
mod growth;
mod hint;
mod info;
mod keys;
mod limits;
mod load;
mod maker;
mod proxy;
mod serve;
mod update;

use std::path::Path;

use clap::{Args, Subcommand};
use warpsmith_console::exit::{ExitStatus, Failure, is_missing};
use warpsmith_console::stderr::warn;
use warpsmith_console::stdout::Stdout;
use warpsmith_eth_state::node::NodeWarning;
use warpsmith_pir::remote::Remote;
use warpsmith_pir::{Client, Lanes};

use crate::failures::IntoFailure as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith pir build data.pir entries.bin --entry-size 40     a database of entries of 40 bytes
  warpsmith pir build keys.pir pairs.txt                       one that is looked up by key
  warpsmith pir serve data.pir --listen 127.0.0.1:8080         answer queries
  warpsmith pir hint --server http://127.0.0.1:8080 --state my.state
                                                               prepare: stream the database once
  warpsmith pir get --server http://127.0.0.1:8080 --state my.state 17 4711
                                                               read entries; the server does not learn which
  warpsmith pir proxy --server http://127.0.0.1:8080 --state my.state
                                                               answer the wallets of this machine like a node
  warpsmith pir info data.pir                                  sizes, chances, costs";

/// Read entries of a database without telling its server which
///
/// The scheme is RMS24. A client streams the database once and keeps hints; from then on each query is a few kilobytes, and
/// looks the same to the server whatever is asked.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pir {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Build),
    Serve(serve::Serve),
    Update(update::Update),
    Fold(fold::Fold),
    Follow(follow::Follow),
    Hint(hint::Hint),
    Get(get::Get),
    Proxy(proxy::Proxy),
    Info(info::Info),
    Bench(bench::Bench),
    Load(load::Load),
}

impl Pir {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        match &self.command {
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
        }
    }
}

/// Refuses a name where something is already.
fn refuse_existing(path: &Path, what: &str) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) => Err(Failure::Other(format!(
            "{}: there is a file already, and {what} is never written over; give another name or remove it",
            path.display()
        ))),
    }
}

/// The client's own state, which `pir hint` makes.
fn open_state(path: &Path) -> Result<Client, Failure> {
    Client::open(path, lanes()).map_err(|error| match is_missing(&error) {
        true => Failure::Usage(format!(
            "--state {}: the state is missing; `warpsmith pir hint` makes one, or give the name of one that is there",
            path.display()
        )),
        false => error.into_failure(),
    })
}

/// How servers are reached.
#[derive(Args)]
struct Route {
    /// Reach servers through this SOCKS5 proxy, such as Tor's: socks5://127.0.0.1:9050. Names are looked up by the proxy
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
}

impl Route {
    /// A server by the address a person gave.
    fn to(&self, url: &str) -> Result<Remote, Failure> {
        let remote = Remote::new(url).map_err(|error| Failure::Usage(error.to_string()))?;
        match &self.proxy {
            None => Ok(remote),
            Some(proxy) => remote.through(proxy).map_err(|error| Failure::Usage(format!("--proxy {error}"))),
        }
    }
}

/// Warns about a node that is waited for.
fn warn_of_node(warning: NodeWarning) {
    match warning {
        NodeWarning::Slow(time) => {
            warn(&format!("the node has not answered in {} seconds; it is waited for", time.as_secs()))
        }
        NodeWarning::Moved { attempt, attempts, pause } => warn(&format!(
            "the chain went on while its state was read; trying again in {} s ({attempt} of {attempts})",
            pause.as_secs()
        )),
        warning => warn(&format!("the node: {warning:?}")),
    }
}

/// The instruction sets of this processor.
fn lanes() -> Lanes {
    Lanes::detect()
}

/// `73.4 GB`, `35.1 MB`, `3,584 bytes`.
fn bytes(count: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    match units.into_iter().find(|(size, _)| count as f64 >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", count as f64 / size),
        None => format!("{} bytes", warpsmith_console::human::count(count as f64)),
    }
}
