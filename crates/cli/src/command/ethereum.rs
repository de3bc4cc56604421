//! `warpsmith eth`, `create2` and `create3`: addresses of accounts, of contracts they create, and of contracts a
//! factory creates from a salt.
//!
//! Reads what is fixed (nonce, salt mask; factory and code are `factory`'s) into a target; the search itself is `mining`'s.

use clap::{ArgGroup, Args};
use warpsmith::chain::SaltMask;
use warpsmith::chain::ethereum::{Account, Contract};
use warpsmith::fleet::job::Sought;
use warpsmith::search::Subject;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human::whole;
use warpsmith_console::stderr::warn;
use warpsmith_console::stdout::Stdout;

use crate::factory::{Made, MadeByCreate2, MadeByCreate3};
use crate::hooks::HookFlags;
use crate::mining::{Executor, Mining, SplitFlags};
use crate::quest::Quest;
use crate::running::CONTRACT;
use crate::scores::ScoreFlags;

const ETH_EXAMPLES: &str = "\
Patterns, after 0x:
  cafe         begins with                    ..cafe..     contains
  ..cafe       ends with                      c?fe         ? stands for any one digit
  cafe..babe   begins and ends with           /^(c|d)afe/  a regular expression
Case does not matter unless --checksum is given.

Examples:
  warpsmith eth cafe
  warpsmith eth CaFe --checksum
  warpsmith eth cafe --contract --nonce 0        the first contract that account creates
  warpsmith eth --leading-zeros --score 4        at least four zero bytes at the start
  warpsmith eth cafe --best run --min-score 8    all with eight equal digits in a row among those
  warpsmith eth cafe --split-key 04f9...36f9 --json > result.json";

/// Search for an Ethereum account, or for the contract it creates
///
/// Prints the address and its private key. Everything is computed on this machine, every result is checked by
/// libsecp256k1 before it is shown, and every match comes from its own 256 random bits.
#[derive(Args)]
#[command(after_help = ETH_EXAMPLES)]
pub(crate) struct Eth {
    #[command(flatten)]
    mining: Mining,

    #[command(flatten)]
    score: ScoreFlags,

    #[command(flatten)]
    hooks: HookFlags,

    #[command(flatten)]
    split: SplitFlags,

    /// The address is that of the contract which the account creates (CREATE), not the account's own
    #[arg(long, help_heading = CONTRACT)]
    contract: bool,

    /// The account's nonce when it creates the contract [default: 0, the account's first transaction]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..), requires = "contract", help_heading = CONTRACT)]
    nonce: Option<u64>,
}

impl Eth {
    pub fn run(&self, on: Executor<'_>, stdout: Stdout) -> Result<ExitStatus, Failure> {
        let contract = Contract::new(self.nonce.unwrap_or(0));
        let contract = contract.map_err(|error| Failure::Usage(format!("--nonce: {error}")))?;
        let subject = if self.contract { Subject::Key(&contract) } else { Subject::Key(&Account) };
        let options = self.hooks.restrict(self.score.options())?;
        let (contest, split) = (self.score.read()?, self.split.read()?);
        let sought = Sought::Key {
            chain: "eth".to_owned(),
            address_type: None,
            network: None,
            prefix: None,
            nonce: self.contract.then(|| contract.nonce()),
        };
        self.mining.run(&Quest { subject, options, contest, split, sought, code: None }, on, stdout)
    }
}

const CREATE2_EXAMPLES: &str = "\
Examples:
  warpsmith create2 cafe --deployer 0x4e59b44847b379578588920cA78FbF26c0B4956C --init-code token.hex
  warpsmith create2 cafe --factory arachnid --init-code out/Token.sol/Token.json --constructor-args Gold GLD 1000000
  warpsmith create2 --zeros --factory 0age --salt-layout caller:0x9f...c1 --init-code-hash 0x2b...90
  warpsmith create2 cafe --rule launcher.toml --input admin=0x9f...c1         a factory of yours (docs/rules.md)
  warpsmith create2 cafe --owner 0x9f...c1 --owner 0x2b...90 --threshold 2    a Safe wallet of these owners
  warpsmith create2 --hook-flags beforeSwap,afterSwap --factory arachnid --init-code out/Hook.sol/Hook.json
  warpsmith create2 cafe --deployer 0x.. --init-code-hash 0x.. --salt 0x9f..c1????????????????????????";

/// Mine the salt of a contract made with CREATE2
///
/// The address follows from the contract that creates (the deployer), the hash of the code it is given, and the
/// salt: the salt is what is searched. No key is involved.
#[derive(Args)]
#[command(after_help = CREATE2_EXAMPLES, group = ArgGroup::new("maker").required(true).multiple(true))]
pub(crate) struct Create2 {
    #[command(flatten)]
    mining: Mining,

    #[command(flatten)]
    score: ScoreFlags,

    #[command(flatten)]
    hooks: HookFlags,

    #[command(flatten)]
    made: MadeByCreate2,

    #[command(flatten)]
    salt: MaskFlag,
}

impl Create2 {
    pub fn run(&self, on: Executor<'_>, stdout: Stdout) -> Result<ExitStatus, Failure> {
        search(&self.made, &self.salt, &self.mining, (&self.score, &self.hooks), on, stdout)
    }
}

const CREATE3_EXAMPLES: &str = "\
Examples:
  warpsmith create3 cafe --deployer 0x9f...c1                              Solmate's library in a contract of yours
  warpsmith create3 cafe --factory createx --salt-layout caller:0x9f...c1  nobody else can use the salt
  warpsmith create3 --leading-zeros --factory createx --chain-id 1 --salt-layout caller:0x9f...c1";

/// Mine the salt of a contract made through a CREATE3 factory
///
/// The address follows from the factory and the salt alone, not from the contract's code. Prints the salt to pass to
/// the factory and every address on the way.
#[derive(Args)]
#[command(after_help = CREATE3_EXAMPLES)]
pub(crate) struct Create3 {
    #[command(flatten)]
    mining: Mining,

    #[command(flatten)]
    score: ScoreFlags,

    #[command(flatten)]
    hooks: HookFlags,

    #[command(flatten)]
    made: MadeByCreate3,

    #[command(flatten)]
    salt: MaskFlag,
}

impl Create3 {
    pub fn run(&self, on: Executor<'_>, stdout: Stdout) -> Result<ExitStatus, Failure> {
        search(&self.made, &self.salt, &self.mining, (&self.score, &self.hooks), on, stdout)
    }
}

/// Which salts are searched.
#[derive(Args)]
struct MaskFlag {
    /// Which bytes of the salt are fixed: 64 hex digits, ?? for a free byte [default: as many free as the factory
    /// allows]
    #[arg(long, value_name = "MASK", help_heading = CONTRACT)]
    salt: Option<String>,
}

fn search(
    made: &dyn Made,
    salt: &MaskFlag,
    mining: &Mining,
    (score, hooks): (&ScoreFlags, &HookFlags),
    on: Executor<'_>,
    stdout: Stdout,
) -> Result<ExitStatus, Failure> {
    let mask = salt.salt.as_deref().map(SaltMask::parse).transpose();
    let mask = mask.map_err(|error| Failure::Usage(format!("--salt: {error}")))?;
    let factory = made.factory()?;
    let code = made.code(mining.output())?;
    let deployment = made.deployment(&factory, mask)?.with_source(code.source);
    let sought = made.sought(&factory, mask)?;
    if let Some(caution) = deployment.caution() {
        warn(&format!("{caution}: --salt-layout caller:0x.."));
    }
    let subject = Subject::Salt(&deployment);
    let (options, contest) = (hooks.restrict(score.options())?, score.read()?);
    mining.run(&Quest { subject, options, contest, split: None, sought, code: code.file }, on, stdout)
}
