//! `warpsmith npub`, `btc` and so on: a command for each chain of the table, with what help texts say of it.
//!
//! Chains whose search has flags of its own have a file of their own ([`OWN`]). Which type of a coin's addresses is meant
//! follows from the patterns; the search itself is `mining`'s.

use std::fmt::Write;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Subcommand};
use warpsmith::chain::coin::{AddressType, Coin, Network, Refusal};
use warpsmith::chain::{CHAINS, Chain};
use warpsmith::fleet::job::Sought;
use warpsmith::pattern::{KINDS, Options, Reason, compile};
use warpsmith::search::Subject;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::Stdout;
use warpsmith_text::{Shown, any_of};

use crate::advice;
use crate::mining::{Executor, Mining, SplitFlags};
use crate::patterns::Written;
use crate::quest::Quest;
use crate::running::PATTERNS;

/// The chains that have a command of their own.
const OWN: &[&str] = &["cosmos", "eth"];

/// What every result is worth.
const PROMISE: &str = "Everything is computed on this machine, every result is checked by libsecp256k1 before it is \
                       shown, and every match comes from its own 256 random bits.";

/// What stands for the end of a text in examples: every alphabet has these characters.
const END: &str = "ace";

/// A search for addresses of one chain.
pub(crate) struct Mine {
    chain: &'static Chain,
    mining: Mining,
    split: SplitFlags,
    address_type: Option<AddressType>,
    network: Network,
    ignore_case: bool,
}

/// The chains that this file makes commands of.
fn chains() -> impl Iterator<Item = &'static Chain> {
    CHAINS.iter().filter(|chain| !OWN.contains(&chain.name))
}

fn command(chain: &'static Chain) -> clap::Command {
    let command = SplitFlags::augment_args(Mining::augment_args(clap::Command::new(chain.name)));
    // After the flags, which bring words of their own.
    let mut command = command
        .about(format!("Search for a {}", chain.sought))
        .long_about(format!("Search for a {}\n\nPrints {}. {PROMISE}", chain.sought, chain.shows))
        .after_help(help(chain));
    if let Some(coin) = chain.coin {
        command = command.args([type_flag(coin), network_flag()]);
    }
    command.arg(
        Arg::new("ignore_case")
            .long("ignore-case")
            .help_heading(PATTERNS)
            .action(ArgAction::SetTrue)
            .help("Upper and lower case do not matter in base58; elsewhere accept patterns in upper case"),
    )
}

fn type_flag(coin: &'static Coin) -> Arg {
    let names = PossibleValuesParser::new(coin.types.iter().map(|known| known.name()));
    Arg::new("type")
        .long("type")
        .help_heading(PATTERNS)
        .value_name("TYPE")
        .value_parser(names.map(|name| AddressType::find(&name).expect("one of the names")))
        .help("The type of address, where patterns leave it open or two types look alike")
}

fn network_flag() -> Arg {
    let names = PossibleValuesParser::new(Network::ALL.map(Network::name));
    Arg::new("network")
        .long("network")
        .help_heading(PATTERNS)
        .value_name("NETWORK")
        .default_value(Network::Main.name())
        .value_parser(names.map(|name| Network::find(&name).expect("one of the names")))
        .help("The network")
}

/// What stands below the flags of a chain that has a command of its own.
pub(crate) fn help_of(name: &str) -> String {
    Chain::find(name).map(help).unwrap_or_default()
}

/// What stands below the flags: how addresses begin, how patterns are written, examples.
fn help(chain: &'static Chain) -> String {
    let (name, example) = (chain.name, chain.example);
    let mut text = String::new();
    let encoding = chain.usual().encoding();
    match chain.coin {
        Some(coin) => heads(&mut text, coin),
        None if encoding.head().is_empty() => {}
        None => {
            let _ = writeln!(text, "A pattern is what follows {}.\n", encoding.head());
        }
    }
    text += "Patterns:\n";
    for (written, means) in KINDS.iter().flat_map(|kind| kind.examples(example, END)) {
        let _ = writeln!(text, "  {written:<18}  {means}");
    }
    let mut alphabets: Vec<&str> = Vec::new();
    for row in &chain.addresses {
        let alphabet = row.target.encoding().alphabet();
        if !alphabets.contains(&alphabet) {
            alphabets.push(alphabet);
        }
    }
    let _ = writeln!(text, "The only characters after the head are {}.", alphabets.join(", or "));
    let _ = write!(
        text,
        "\nExamples:\n  warpsmith {name} {example}\n  warpsmith {name} {example} --count 3 --json\n  \
         warpsmith {name} --patterns words.txt --output keys.txt --time-limit 10m\n  \
         warpsmith {name} {example} --split-key 02f9...36f9 --json > result.json"
    );
    text
}

/// How the addresses of a coin begin.
fn heads(text: &mut String, coin: &'static Coin) {
    *text += "A pattern includes the address's own head, and the type follows from it:\n";
    for address_type in coin.types {
        let head = coin.main(*address_type).writing().head();
        let _ = writeln!(text, "  {head:<8}{:<20}{}", address_type.name(), address_type.commits_to());
    }
    *text += "Where two types begin alike, the first is meant unless --type says otherwise.\n";
    let mut test: Vec<&str> = Vec::new();
    for address_type in coin.types {
        let head = coin.on(Network::Test, *address_type).writing().head();
        if !test.contains(&head) {
            test.push(head);
        }
    }
    let _ = writeln!(text, "On the test network (--network test) they begin with {}.\n", test.join(", "));
}

impl FromArgMatches for Mine {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Mine, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, flags) = matches.subcommand().ok_or_else(missing)?;
        let chain = chains().find(|chain| chain.name == name).ok_or_else(missing)?;
        let of_coin = chain.coin.is_some();
        Ok(Mine {
            chain,
            mining: Mining::from_arg_matches(flags)?,
            split: SplitFlags::from_arg_matches(flags)?,
            address_type: if of_coin { flags.get_one("type").copied() } else { None },
            network: if of_coin {
                flags.get_one("network").copied().unwrap_or_default()
            } else {
                Network::Main
            },
            ignore_case: flags.get_flag("ignore_case"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Mine::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Mine {
    fn augment_subcommands(parent: clap::Command) -> clap::Command {
        parent.subcommands(chains().map(command))
    }

    fn augment_subcommands_for_update(parent: clap::Command) -> clap::Command {
        Mine::augment_subcommands(parent)
    }

    fn has_subcommand(name: &str) -> bool {
        chains().any(|chain| chain.name == name)
    }
}

impl Mine {
    pub fn run(&self, on: Executor<'_>, stdout: Stdout) -> Result<ExitStatus, Failure> {
        let mut written = self.mining.patterns()?;
        written.require(self.chain.name, self.chain.example)?;
        let options = Options { ignore_case: self.ignore_case, ..Options::default() };
        let of_coin;
        let target = match self.chain.coin {
            None => self.chain.usual(),
            Some(coin) => {
                let inferred = written.infer(coin, self.address_type, self.network);
                of_coin = inferred.map_err(|refusal| {
                    Failure::Usage(advised(coin, self.network, &refusal, &written, &options))
                })?;
                &of_coin
            }
        };
        let sought = Sought::Key {
            chain: self.chain.name.to_owned(),
            address_type: self.chain.coin.and(target.variant()).map(str::to_owned),
            network: self.chain.coin.map(|_| self.network.name().to_owned()),
            prefix: None,
            nonce: None,
        };
        let quest = Quest {
            subject: Subject::Key(target),
            options,
            contest: None,
            split: self.split.read()?,
            sought,
            code: None,
        };
        self.mining.run_for(&mut written, &quest, on, stdout)
    }
}

/// Patterns that are proposed, at most.
const MOST_TRIES: usize = 3;

/// Why patterns name no kind of address, and what would: nothing that was not tried here first.
fn advised(
    coin: &'static Coin,
    network: Network,
    refusal: &Refusal,
    written: &Written<'_>,
    options: &Options,
) -> String {
    match refusal {
        Refusal::Head { tries, .. } => {
            let (mut exact, mut alike) = (Vec::new(), Vec::new());
            for (kind, pattern) in tries {
                match compile([pattern], &coin.on(network, *kind), options).map_err(|error| error.reason) {
                    Ok(_) => exact.push(pattern.clone()),
                    Err(Reason::Characters { suggestion, .. }) => alike.extend(suggestion),
                    Err(_) => {}
                }
            }
            let tries: Vec<String> = exact
                .iter()
                .chain(&alike)
                .take(MOST_TRIES)
                .map(|text| format!("'{}'", Shown(text)))
                .collect();
            if tries.is_empty() { refusal.to_string() } else { format!("{refusal}. Try {}", any_of(&tries)) }
        }
        Refusal::Open { pattern, .. } => {
            let (mut fit, mut why) = (Vec::new(), Vec::new());
            for kind in coin.types {
                match compile(written.all(), &coin.on(network, *kind), options) {
                    Ok(_) => fit.push(kind.name().to_owned()),
                    Err(error) => why.push(format!("--type {}: {error}", kind.name())),
                }
            }
            match fit.is_empty() {
                true => format!("no type of address can look so:\n  {}", why.join("\n  ")),
                false => format!(
                    "pattern '{pattern}' does not say what kind of address is wanted; add --type {}",
                    any_of(&fit)
                ),
            }
        }
        _ => advice::of_type(refusal),
    }
}
