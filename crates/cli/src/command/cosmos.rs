//! `warpsmith cosmos`: accounts of chains of the Cosmos kind, under any prefix.

use clap::Args;
use warpsmith::chain::cosmos::{HUB, cosmos};
use warpsmith::fleet::job::Sought;
use warpsmith::pattern::Options;
use warpsmith::search::Subject;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::Stdout;

use super::chain::help_of;
use crate::mining::{Executor, Mining, SplitFlags};
use crate::quest::Quest;
use crate::running::PATTERNS;

/// Search for an account of the Cosmos Hub, or of another chain of its kind
///
/// Prints the address and its private key in hex. Everything is computed on this machine, every result is checked by
/// libsecp256k1 before it is shown, and every match comes from its own 256 random bits.
#[derive(Args)]
#[command(after_help = help_of(HUB))]
pub(crate) struct Cosmos {
    #[command(flatten)]
    mining: Mining,

    #[command(flatten)]
    split: SplitFlags,

    /// The chain's prefix, what stands before the 1 of its addresses: osmo, celestia, juno
    #[arg(long, value_name = "PREFIX", default_value = HUB, help_heading = PATTERNS)]
    prefix: String,

    /// Accept patterns written in upper case; an address has lower case only
    #[arg(long, help_heading = PATTERNS)]
    ignore_case: bool,
}

impl Cosmos {
    pub fn run(&self, on: Executor<'_>, stdout: Stdout) -> Result<ExitStatus, Failure> {
        let account = cosmos(&self.prefix)
            .map_err(|error| Failure::Usage(format!("--prefix '{}': {error}", self.prefix.escape_debug())))?;
        let quest = Quest {
            subject: Subject::Key(&account),
            options: Options { ignore_case: self.ignore_case, ..Options::default() },
            contest: None,
            split: self.split.read()?,
            sought: Sought::Key {
                chain: "cosmos".to_owned(),
                address_type: None,
                network: None,
                prefix: Some(self.prefix.clone()),
                nonce: None,
            },
            code: None,
        };
        self.mining.run(&quest, on, stdout)
    }
}
