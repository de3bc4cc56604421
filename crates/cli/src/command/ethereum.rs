//! `warpsmith eth`, `create2` and `create3`: addresses of accounts, of contracts they create, and of contracts a
//! factory creates from a salt.
//!
//! Reads what is fixed (nonce, deployer, code, salt mask) into a target; the search itself is `mining`'s.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, ValueHint};
use warpsmith::chain::SaltMask;
use warpsmith::chain::ethereum::{
    self, Account, Address, Contract, Deployment, FACTORIES, Factory, SaltRequest,
};
use warpsmith::fleet::job::Sought;
use warpsmith::search::Subject;

use crate::artifact::{Given, creation_code};
use crate::ending::{Ending, Failure};
use crate::hooks::HookFlags;
use crate::input;
use crate::mining::{Mining, SplitFlags};
use crate::quest::Quest;
use crate::running::CONTRACT;
use crate::scores::ScoreFlags;
use crate::stdout::Stdout;
use crate::telling::tell;

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
    pub mining: Mining,

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
    #[arg(long, value_name = "N", requires = "contract", help_heading = CONTRACT)]
    nonce: Option<u64>,
}

impl Eth {
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
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
        self.mining.run(&Quest { subject, options, contest, split, sought }, stdout)
    }
}

/// What is said about the salt.
#[derive(Args)]
struct SaltFlags {
    /// Which bytes of the salt are fixed: 64 hex digits, ?? for a free byte [default: as many free as the factory
    /// allows]
    #[arg(long, value_name = "MASK", help_heading = CONTRACT)]
    salt: Option<String>,

    /// Who will call the factory, written caller:0x..; the salt begins with that address where the factory wants it so
    #[arg(long, value_name = "LAYOUT", help_heading = CONTRACT)]
    salt_layout: Option<String>,

    /// With createx: bind the result to this one chain
    #[arg(long, value_name = "ID", help_heading = CONTRACT)]
    chain_id: Option<u64>,
}

impl SaltFlags {
    fn read(&self) -> Result<SaltRequest, Failure> {
        let mask = self.salt.as_deref().map(SaltMask::parse).transpose();
        let mask = mask.map_err(|error| Failure::Usage(format!("--salt: {error}")))?;
        let caller = self.salt_layout.as_deref().map(ethereum::parse_layout).transpose();
        let caller = caller.map_err(|error| Failure::Usage(format!("--salt-layout: {error}")))?;
        Ok(SaltRequest { caller, chain_id: self.chain_id, mask })
    }

    /// What workers of a fleet are told, once all of it has been checked.
    fn sought(
        &self,
        with: &str,
        factory: &Factory,
        deployer: Option<&String>,
        code_hash: Option<[u8; 32]>,
    ) -> Sought {
        let caller = self.salt_layout.as_deref().and_then(|text| ethereum::parse_layout(text).ok());
        Sought::Salt {
            with: with.to_owned(),
            factory: factory.name.to_owned(),
            deployer: deployer.cloned(),
            code_hash: code_hash.map(const_hex::encode_prefixed),
            caller: caller.map(|caller| ethereum::encode(&caller)),
            chain_id: self.chain_id,
            mask: self.salt.clone(),
        }
    }
}

const CREATE2_EXAMPLES: &str = "\
Examples:
  warpsmith create2 cafe --deployer 0x4e59b44847b379578588920cA78FbF26c0B4956C --init-code token.hex
  warpsmith create2 cafe --factory arachnid --init-code out/Token.sol/Token.json --constructor-args Gold GLD 1000000
  warpsmith create2 --zeros --factory 0age --salt-layout caller:0x9f...c1 --init-code-hash 0x2b...90
  warpsmith create2 --hook-flags BEFORE_SWAP,AFTER_SWAP --factory arachnid --init-code out/Hook.sol/Hook.json
  warpsmith create2 cafe --deployer 0x.. --init-code-hash 0x.. --salt 0x9f..c1????????????????????????";

/// Search for the salt of a contract made with CREATE2
///
/// The address follows from the contract that creates (the deployer), the hash of the code it is given, and the
/// salt: the salt is what is searched. No key is involved.
#[derive(Args)]
#[command(
    after_help = CREATE2_EXAMPLES,
    group = ArgGroup::new("maker").required(true).multiple(true),
    group = ArgGroup::new("code").required(true)
)]
pub(crate) struct Create2 {
    #[command(flatten)]
    pub mining: Mining,

    #[command(flatten)]
    score: ScoreFlags,

    #[command(flatten)]
    hooks: HookFlags,

    /// The contract that executes CREATE2
    #[arg(long, value_name = "0x..", group = "maker", help_heading = CONTRACT)]
    deployer: Option<String>,

    /// What the deployer does with the salt: plain, arachnid, 0age or createx; the last three need no --deployer
    #[arg(long, value_name = "NAME", group = "maker", value_parser = factories(), hide_possible_values = true,
        help_heading = CONTRACT)]
    factory: Option<&'static Factory>,

    /// Keccak-256 of the creation code, constructor arguments included
    #[arg(long, value_name = "0x..", group = "code", help_heading = CONTRACT)]
    init_code_hash: Option<String>,

    /// A file with the creation code: an artifact of Foundry or Hardhat (JSON), hex or binary; it is hashed here
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "code", help_heading = CONTRACT)]
    init_code: Option<PathBuf>,

    /// With --init-code: what the constructor is given, one value after the other; all of them encoded (0x..) where the file has no ABI
    #[arg(long, value_name = "VALUE", num_args = 1.., allow_negative_numbers = true, conflicts_with = "init_code_hash",
        help_heading = CONTRACT)]
    constructor_args: Option<Vec<String>>,

    /// With --init-code: the address of a library that the contract uses: NAME=0x.., or FILE:NAME=0x..; repeatable
    #[arg(long, value_name = "NAME=0x..", conflicts_with = "init_code_hash", help_heading = CONTRACT)]
    library: Vec<String>,

    #[command(flatten)]
    salt: SaltFlags,
}

impl Create2 {
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
        let code_hash = match (&self.init_code_hash, &self.init_code) {
            (Some(hash), _) => read_hash("--init-code-hash", hash).map_err(|failure| match failure {
                Failure::Usage(text) => {
                    Failure::Usage(format!("{text}. The code itself is given as a file: --init-code FILE"))
                }
                other => other,
            })?,
            (None, Some(file)) => self.hash_of(file)?,
            (None, None) => unreachable!("one of the two is required"),
        };
        let factory = self.factory.unwrap_or_else(|| Factory::find("plain").expect("the deployer itself"));
        let deployer = self.deployer.as_deref().map(|text| read_address("--deployer", text)).transpose()?;
        let deployment = Deployment::create2(factory, deployer, code_hash, &self.salt.read()?);
        let deployment = deployment.map_err(|error| Failure::Usage(error.to_string()))?;
        let sought = self.salt.sought("create2", factory, self.deployer.as_ref(), Some(code_hash));
        mine(&self.mining, (&self.score, &self.hooks), &deployment, sought, stdout)
    }
}

const CREATE3_EXAMPLES: &str = "\
Examples:
  warpsmith create3 cafe --deployer 0x9f...c1                              Solmate's library in a contract of yours
  warpsmith create3 cafe --factory createx --salt-layout caller:0x9f...c1  nobody else can use the salt
  warpsmith create3 --leading-zeros --factory createx --chain-id 1 --salt-layout caller:0x9f...c1";

/// Search for the salt of a contract made through a CREATE3 factory
///
/// The address follows from the factory and the salt alone, not from the contract's code. Prints the salt to pass to
/// the factory and every address on the way.
#[derive(Args)]
#[command(after_help = CREATE3_EXAMPLES)]
pub(crate) struct Create3 {
    #[command(flatten)]
    pub mining: Mining,

    #[command(flatten)]
    score: ScoreFlags,

    #[command(flatten)]
    hooks: HookFlags,

    /// The contract that makes the proxies; may be left out for a factory with one address on every chain
    #[arg(long, value_name = "0x..", help_heading = CONTRACT)]
    deployer: Option<String>,

    /// The factory: solmate, solady, sequence, createx, create3factory or lifi
    #[arg(long, value_name = "NAME", default_value = "solmate", value_parser = factories(), hide_possible_values = true,
        help_heading = CONTRACT)]
    factory: &'static Factory,

    /// Keccak-256 of the proxy's creation code, for a factory with another proxy than the usual one
    #[arg(long, value_name = "0x..", help_heading = CONTRACT)]
    proxy_code_hash: Option<String>,

    #[command(flatten)]
    salt: SaltFlags,
}

impl Create3 {
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
        let factory = self.factory;
        let deployer = self.deployer.as_deref().map(|text| read_address("--deployer", text)).transpose()?;
        let proxy = self.proxy_code_hash.as_deref().map(|text| read_hash("--proxy-code-hash", text));
        let proxy = proxy.transpose()?;
        let deployment = Deployment::create3(factory, deployer, proxy, &self.salt.read()?);
        let deployment = deployment.map_err(|error| Failure::Usage(error.to_string()))?;
        let sought = self.salt.sought("create3", factory, self.deployer.as_ref(), proxy);
        mine(&self.mining, (&self.score, &self.hooks), &deployment, sought, stdout)
    }
}

fn mine(
    mining: &Mining,
    (score, hooks): (&ScoreFlags, &HookFlags),
    deployment: &Deployment,
    sought: Sought,
    stdout: Stdout,
) -> Result<Ending, Failure> {
    if let Some(caution) = deployment.caution() {
        tell(&format!("warning: {caution}"));
    }
    let subject = Subject::Salt(deployment);
    let (options, contest) = (hooks.restrict(score.options())?, score.read()?);
    mining.run(&Quest { subject, options, contest, split: None, sought }, stdout)
}

fn read_address(flag: &str, text: &str) -> Result<Address, Failure> {
    ethereum::decode(text).map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

fn read_hash(flag: &str, text: &str) -> Result<[u8; 32], Failure> {
    ethereum::parse_hash(text).map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

/// The factories by their names, for the command line and its completions.
fn factories() -> impl TypedValueParser<Value = &'static Factory> {
    let names = FACTORIES.iter().map(|factory| PossibleValue::new(factory.name).help(factory.summary));
    PossibleValuesParser::new(names).map(|name| Factory::find(&name).expect("one of the names"))
}

/// Creation code has at most 49,152 bytes (EIP-3860); artifacts have sources and more beside it.
const MOST_CODE: u64 = 64 << 20;

impl Create2 {
    fn hash_of(&self, file: &Path) -> Result<[u8; 32], Failure> {
        let bad =
            |why: &dyn std::fmt::Display| Failure::Usage(format!("--init-code {}: {why}", file.display()));
        let bytes = input::read(&file.to_string_lossy(), MOST_CODE).map_err(|why| bad(&why))?;
        let given = Given { arguments: self.constructor_args.as_deref(), libraries: &self.library };
        let code = creation_code(&bytes, &given).map_err(|why| bad(&why))?;
        Ok(ethereum::keccak256(&code))
    }
}
