//! The commands, a file each, and what several of them share.

pub(crate) mod bench;
pub(crate) mod build;
mod catching;
mod codes;
pub(crate) mod devices;
pub(crate) mod fold;
pub(crate) mod follow;
pub(crate) mod get;
mod growth;
pub(crate) mod hint;
pub(crate) mod info;
mod keys;
mod limits;
pub(crate) mod load;
pub(crate) mod proxy;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod update;

use std::path::Path;

use clap::Args;
use warpsmith_console::exit::{Failure, is_missing};
use warpsmith_console::stderr::warn;
use warpsmith_eth_state::node::NodeWarning;
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::{Client, Lanes};

use crate::failures::IntoFailure as _;

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

/// The client's own state, which `hint` makes.
fn open_state(path: &Path) -> Result<Client, Failure> {
    Client::open(path, lanes()).map_err(|error| match is_missing(&error) {
        true => Failure::Usage(format!(
            "--state {}: the state is missing; `warpsmith-pir hint` makes one, or give the name of one that is there",
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
