//! `warpsmith btc`: Bitcoin addresses of single keys.
//!
//! Which type of address is meant follows from the patterns; the search itself is `mining`'s.

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use warpsmith::chain::bitcoin::{AddressType, Network, infer};
use warpsmith::pattern::Options;
use warpsmith::search::Subject;

use crate::ending::{Ending, Failure};
use crate::mining::{Mining, SplitFlags};
use crate::quest::Quest;
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
A pattern includes the address's own head, and the type follows from it:
  1Love      p2pkh    (with --type p2pkh-uncompressed: of an uncompressed key)
  3Cafe      p2sh     a P2WPKH program in a script hash
  bc1qlave   p2wpkh
  bc1plave   p2tr     (with --type rawtr: the output key itself, much faster)
On test networks (--network test) the heads are m or n, 2, tb1q and tb1p.

Patterns:
  1Love        begins with                    ..Love..     contains (needs --type)
  ..Love       ends with (needs --type)       1L?ve        ? stands for any one character
  1Love..xyz   begins and ends with           /^1[Ll]ove/  a regular expression
1... and 3... have upper and lower case and no 0, O, I, l; bc1... has no b, i, o, 1 after its head.

Examples:
  warpsmith btc 1Love
  warpsmith btc 1love --ignore-case --count 3
  warpsmith btc bc1qlave --output keys.txt
  warpsmith btc bc1pcafe --split-key 02f9...36f9 --json > result.json";

/// Search for a Bitcoin address
///
/// Prints the address, its private key (WIF and hex) and the descriptor a wallet imports. Everything is computed on
/// this machine, every result is checked by libsecp256k1 before it is shown, and every match comes from its own 256
/// random bits.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Btc {
    #[command(flatten)]
    mining: Mining,

    #[command(flatten)]
    split: SplitFlags,

    /// The type of address, where patterns leave it open or two types look alike
    #[arg(long = "type", value_name = "TYPE", value_parser = types())]
    address_type: Option<AddressType>,

    /// The network
    #[arg(long, value_name = "NETWORK", default_value = "main", value_parser = networks())]
    network: Network,

    /// Upper and lower case do not matter in 1... and 3...; elsewhere accept patterns in upper case
    #[arg(long)]
    ignore_case: bool,
}

fn types() -> impl clap::builder::TypedValueParser<Value = AddressType> {
    let names = PossibleValuesParser::new(AddressType::ALL.map(AddressType::name));
    names.map(|name| AddressType::find(&name).expect("one of the names"))
}

fn networks() -> impl clap::builder::TypedValueParser<Value = Network> {
    let names = PossibleValuesParser::new(Network::ALL.map(Network::name));
    names.map(|name| Network::find(&name).expect("one of the names"))
}

impl Btc {
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
        let written = self.mining.patterns()?;
        written.require("btc", "1Love")?;
        let target = infer(written.all(), self.address_type, self.network);
        let target = target.map_err(|refusal| Failure::Usage(refusal.to_string()))?;
        let quest = Quest {
            subject: Subject::Key(&target),
            options: Options { ignore_case: self.ignore_case, ..Options::default() },
            score: None,
            split: self.split.read()?,
        };
        self.mining.run_for(&written, &quest, stdout)
    }
}
