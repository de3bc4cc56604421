//! What creates a contract from a salt, as the flags of `create2` and `create3` say it: a factory by its name or by a rule of one's own, the
//! code, and who calls. For a search, and for the explanation of one salt.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use warpsmith::chain::SaltMask;
use warpsmith::chain::ethereum::{
    self, Address, CodeForm, CodeSource, Deployment, FACTORIES, Factory, Refusal, SafeOwners, SaltRequest,
};
use warpsmith::fleet::job::Sought;
use warpsmith_console::exit::Failure;
use warpsmith_console::human::whole;
use warpsmith_console::input;
use warpsmith_files::{create, with_suffix};

use crate::advice;
use crate::artifact::{Finished, Given, creation_code};
use crate::running::CONTRACT;

/// Flags that say how a contract is made.
pub(crate) trait Made {
    /// The factory that is meant.
    fn factory(&self) -> Result<Cow<'static, Factory>, Failure>;

    /// The contract, made from salts of a mask.
    fn deployment(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<Deployment, Failure>;

    /// Returns the file with the creation code: the one that was given; or, if arguments or libraries were added to it, one that is
    /// written, to --init-code-out or beside `output`.
    fn code(&self, _output: Option<&Path>) -> Result<Code, Failure> {
        Ok(Code::default())
    }

    /// What workers of a fleet are told, once all of it has been checked.
    fn sought(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<Sought, Failure>;
}

/// The flags of `create2`.
#[derive(Args)]
pub(crate) struct MadeByCreate2 {
    /// The contract that executes CREATE2
    #[arg(long, value_name = "0x..", group = "maker", help_heading = CONTRACT)]
    deployer: Option<String>,

    /// What the deployer does with the salt: plain, arachnid, 0age, createx, safe-1.4.1, simple-account-0.7 and others (docs/rules.md);
    /// most need no --deployer
    #[arg(long, value_name = "NAME", group = "maker", value_parser = factories(), hide_possible_values = true,
        help_heading = CONTRACT)]
    factory: Option<&'static Factory>,

    #[command(flatten)]
    rule: RuleFlags,

    #[command(flatten)]
    safe: SafeFlags,

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

    /// With --init-code: write the finished creation code, arguments and libraries included, to FILE in hex [default: beside --output,
    /// where something was added]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "init_code_hash",
        help_heading = CONTRACT)]
    init_code_out: Option<PathBuf>,

    #[command(flatten)]
    by: CallFlags,

    /// Content of --init-code: standard input can be read once only.
    #[arg(skip)]
    finished: OnceCell<Finished>,
}

/// File with the creation code, for the line that creates the contract.
#[derive(Default)]
pub(crate) struct Code {
    /// The file and its format, if there is one.
    pub source: Option<CodeSource>,
    /// Its content, if it must be written first.
    pub file: Option<CodeFile>,
}

/// A file of creation code that is yet to be written.
pub(crate) struct CodeFile {
    path: PathBuf,
    hex: String,
}

impl CodeFile {
    /// Whether the file is there with this code. SEC: of a pipe or a device, which another user may have put there, nothing is read.
    fn is_written(&self) -> io::Result<bool> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Ok(false);
        }
        let mut there = Vec::new();
        file.take(self.hex.len() as u64 + 64).read_to_end(&mut there)?;
        Ok(there.trim_ascii() == self.hex.as_bytes())
    }

    /// Writes the file, unless it is there already with this code.
    pub fn write(&self) -> Result<(), Failure> {
        let name = self.path.display();
        let failed = |error: &warpsmith_files::Error| Failure::of(&format!("the init code {name}"), error);
        let mut file = match create(&self.path) {
            Ok(file) => file,
            Err(warpsmith_files::Error::Exists { .. }) => {
                return match self.is_written() {
                    Ok(true) => Ok(()),
                    _ => Err(Failure::Other(format!(
                        "{name} is there already, and holds something else than this init code: remove it, or give another name with \
                         --init-code-out"
                    ))),
                };
            }
            Err(error) => return Err(failed(&error)),
        };
        let written = writeln!(file, "{}", self.hex).and_then(|()| file.sync_all());
        written
            .map_err(|error| Failure::Other(format!("the init code could not be written to {name}: {error}")))
    }
}

/// The flags of `create3`.
#[derive(Args)]
pub(crate) struct MadeByCreate3 {
    /// The contract that makes the proxies; may be left out for a factory with one address on every chain
    #[arg(long, value_name = "0x..", help_heading = CONTRACT)]
    deployer: Option<String>,

    /// The factory: solmate, solady, sequence, createx, create3factory or lifi
    #[arg(long, value_name = "NAME", default_value = "solmate", value_parser = factories(), hide_possible_values = true,
        help_heading = CONTRACT)]
    factory: &'static Factory,

    #[command(flatten)]
    rule: RuleFlags,

    /// Keccak-256 of the proxy's creation code, for a factory with another proxy than the usual one
    #[arg(long, value_name = "0x..", help_heading = CONTRACT)]
    proxy_code_hash: Option<String>,

    #[command(flatten)]
    by: CallFlags,
}

/// A factory that has no name here.
#[derive(Args)]
struct RuleFlags {
    /// The rule of another factory: a file that says how its salts become addresses (docs/rules.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "maker", conflicts_with = "factory",
        help_heading = CONTRACT)]
    rule: Option<PathBuf>,

    /// A value that the factory's rule asks for, as owner=0x..; repeatable
    #[arg(long, value_name = "NAME=VALUE", help_heading = CONTRACT)]
    input: Vec<String>,
}

/// The owners of a Safe, in place of its initializer.
#[derive(Args)]
struct SafeFlags {
    /// Owner of a Safe wallet; repeat for more. Without --factory: safe-1.4.1
    #[arg(long, value_name = "0x..", group = "maker", help_heading = CONTRACT)]
    owner: Vec<String>,

    /// With --owner: signatures that a transaction of the Safe needs [default: 1 where there is one owner]
    #[arg(long, value_name = "N", requires = "owner", value_parser = whole::<u64>(1..), help_heading = CONTRACT)]
    threshold: Option<u64>,
}

impl SafeFlags {
    fn owners(&self) -> Result<Option<SafeOwners>, Failure> {
        if self.owner.is_empty() {
            return Ok(None);
        }
        let owners = self.owner.iter().map(|text| read_address("--owner", text));
        let owners = SafeOwners::new(owners.collect::<Result<_, _>>()?, self.threshold);
        owners.map(Some).map_err(|error| Failure::Usage(advice::of_safe(&error)))
    }
}

/// Who calls the factory, and where.
#[derive(Args)]
struct CallFlags {
    /// Who will call the factory, written caller:0x..; the salt begins with that address where the factory wants it so
    #[arg(long, value_name = "LAYOUT", help_heading = CONTRACT)]
    salt_layout: Option<String>,

    /// With a factory that can do so (createx, safe): bind the result to this one chain
    #[arg(long, value_name = "ID", value_parser = whole::<u64>(..), help_heading = CONTRACT)]
    chain_id: Option<u64>,
}

impl RuleFlags {
    /// The factory of the file, where one is given.
    fn factory(&self) -> Result<Option<Factory>, Failure> {
        self.rule.as_deref().map(read_rule).transpose()
    }

    fn inputs(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut all = BTreeMap::new();
        for text in &self.input {
            let bad = |why: &str| Failure::Usage(format!("--input {text}: {why}"));
            let (name, value) = text.split_once('=').ok_or_else(|| bad("write NAME=VALUE, as owner=0x.."))?;
            if all.insert(name.trim().to_owned(), value.trim().to_owned()).is_some() {
                return Err(bad("the same name was given before"));
            }
        }
        Ok(all)
    }
}

/// The factory of a rule file.
pub(crate) fn read_rule(file: &Path) -> Result<Factory, Failure> {
    let bad = |why: &dyn std::fmt::Display| Failure::Usage(format!("--rule {}: {why}", file.display()));
    let bytes =
        input::read(&file.to_string_lossy(), Factory::LONGEST_RULE as u64).map_err(|why| bad(&why))?;
    let text = String::from_utf8(bytes).map_err(|_| bad(&"it is not text (UTF-8)"))?;
    Factory::parse(&text).map_err(|error| Failure::Usage(format!("--rule {}, {error}", file.display())))
}

impl CallFlags {
    fn caller(&self) -> Result<Option<Address>, Failure> {
        let caller = self.salt_layout.as_deref().map(ethereum::parse_layout).transpose();
        caller.map_err(|error| Failure::Usage(format!("--salt-layout: {error}")))
    }

    fn request(&self, rule: &RuleFlags, mask: Option<SaltMask>) -> Result<SaltRequest, Failure> {
        Ok(SaltRequest { caller: self.caller()?, chain_id: self.chain_id, mask, inputs: rule.inputs()? })
    }
}

/// What workers of a fleet are told: of a rule of one's own all of it, so that they need no file.
fn told(
    with: &str,
    factory: &Factory,
    deployer: Option<&String>,
    code_hash: Option<[u8; 32]>,
    request: &SaltRequest,
) -> Sought {
    let is_known = Factory::find(&factory.name).is_some();
    Sought::Salt {
        with: with.to_owned(),
        factory: factory.name.clone(),
        rule: (!is_known).then(|| factory.text().to_owned()),
        inputs: request.inputs.clone(),
        deployer: deployer.cloned(),
        code_hash: code_hash.map(const_hex::encode_prefixed),
        caller: request.caller.map(|caller| ethereum::encode(&caller)),
        chain_id: request.chain_id,
        mask: request.mask.map(|mask| mask.to_string()),
    }
}

fn refused(refusal: Refusal) -> Failure {
    Failure::Usage(advice::of_contract(&refusal))
}

impl MadeByCreate2 {
    fn request(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<SaltRequest, Failure> {
        let mut request = self.by.request(&self.rule, mask)?;
        if let Some(owners) = self.safe.owners()? {
            let added = owners.add_inputs(factory, &mut request.inputs);
            added.map_err(|error| Failure::Usage(advice::of_safe(&error)))?;
        }
        Ok(request)
    }

    fn code_hash(&self) -> Result<Option<[u8; 32]>, Failure> {
        match (&self.init_code_hash, &self.init_code) {
            (Some(hash), _) => read_hash("--init-code-hash", hash).map(Some).map_err(|failure| match failure {
                Failure::Usage(text) => {
                    Failure::Usage(format!("{text}. The code itself is given as a file: --init-code FILE"))
                }
                other => other,
            }),
            (None, Some(file)) => self.finished(file).map(|finished| Some(ethereum::keccak256(&finished.code))),
            (None, None)
                if self.constructor_args.is_some()
                    || !self.library.is_empty()
                    || self.init_code_out.is_some() =>
            {
                Err(Failure::Usage(
                    "--constructor-args, --library and --init-code-out belong to code in a file: give it with --init-code FILE"
                        .to_owned(),
                ))
            }
            (None, None) => Ok(None),
        }
    }

    /// The code of --init-code with all that belongs to it.
    fn finished(&self, file: &Path) -> Result<&Finished, Failure> {
        if let Some(finished) = self.finished.get() {
            return Ok(finished);
        }
        let bad =
            |why: &dyn std::fmt::Display| Failure::Usage(format!("--init-code {}: {why}", file.display()));
        let bytes = input::read(&file.to_string_lossy(), MOST_CODE).map_err(|why| bad(&why))?;
        let given = Given { arguments: self.constructor_args.as_deref(), libraries: &self.library };
        let finished = creation_code(&bytes, &given).map_err(|why| bad(&why))?;
        Ok(self.finished.get_or_init(|| finished))
    }
}

/// Creation code has at most 49,152 bytes (EIP-3860); artifacts have sources and more beside it.
const MOST_CODE: u64 = 64 << 20;

impl Made for MadeByCreate2 {
    fn factory(&self) -> Result<Cow<'static, Factory>, Failure> {
        let usual = if self.safe.owner.is_empty() { "plain" } else { SafeOwners::USUAL_FACTORY };
        let usual = || Factory::find(usual).expect("a factory of ours");
        Ok(match self.rule.factory()? {
            Some(own) => Cow::Owned(own),
            None => Cow::Borrowed(self.factory.unwrap_or_else(usual)),
        })
    }

    fn deployment(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<Deployment, Failure> {
        let deployer = self.deployer.as_deref().map(|text| read_address("--deployer", text)).transpose()?;
        let request = self.request(factory, mask)?;
        Deployment::create2(factory, deployer, self.code_hash()?, &request).map_err(refused)
    }

    fn sought(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<Sought, Failure> {
        let request = self.request(factory, mask)?;
        Ok(told("create2", factory, self.deployer.as_ref(), self.code_hash()?, &request))
    }

    fn code(&self, output: Option<&Path>) -> Result<Code, Failure> {
        let Some(file) = &self.init_code else { return Ok(Code::default()) };
        let finished = self.finished(file)?;
        let is_piped = file.as_os_str() == "-";
        if let (Some((form, is_prefixed)), false, None) = (finished.in_file, is_piped, &self.init_code_out) {
            let source = CodeSource::new(form, &file.to_string_lossy(), is_prefixed);
            return Ok(Code { source, file: None });
        }
        // Results of other contracts may be in the same output: each names a file of its own.
        let hash = const_hex::encode(&ethereum::keccak256(&finished.code)[..4]);
        let beside = || output.map(|output| with_suffix(output, format!(".{hash}.hex")));
        let Some(path) = self.init_code_out.clone().or_else(beside) else { return Ok(Code::default()) };
        let source = CodeSource::new(CodeForm::Hex, &path.to_string_lossy(), true);
        let hex = const_hex::encode_prefixed(&finished.code);
        Ok(Code { source, file: Some(CodeFile { path, hex }) })
    }
}

impl MadeByCreate3 {
    fn proxy(&self) -> Result<Option<[u8; 32]>, Failure> {
        self.proxy_code_hash.as_deref().map(|text| read_hash("--proxy-code-hash", text)).transpose()
    }
}

impl Made for MadeByCreate3 {
    fn factory(&self) -> Result<Cow<'static, Factory>, Failure> {
        Ok(self.rule.factory()?.map_or(Cow::Borrowed(self.factory), Cow::Owned))
    }

    fn deployment(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<Deployment, Failure> {
        let deployer = self.deployer.as_deref().map(|text| read_address("--deployer", text)).transpose()?;
        let request = self.by.request(&self.rule, mask)?;
        Deployment::create3(factory, deployer, self.proxy()?, &request).map_err(refused)
    }

    fn sought(&self, factory: &Factory, mask: Option<SaltMask>) -> Result<Sought, Failure> {
        let request = self.by.request(&self.rule, mask)?;
        Ok(told("create3", factory, self.deployer.as_ref(), self.proxy()?, &request))
    }
}

fn read_address(flag: &str, text: &str) -> Result<Address, Failure> {
    ethereum::decode(text).map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

fn read_hash(flag: &str, text: &str) -> Result<[u8; 32], Failure> {
    ethereum::parse_hash(text).map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

/// The factories by their names, for the command line and its completions.
fn factories() -> impl TypedValueParser<Value = &'static Factory> {
    let names = FACTORIES
        .iter()
        .map(|factory| PossibleValue::new(factory.name.as_str()).help(factory.summary.as_str()));
    PossibleValuesParser::new(names).map(|name| Factory::find(&name).expect("one of the names"))
}
