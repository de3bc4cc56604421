//! `warpsmith create2 explain` and `create3 explain`: every value on the way from one salt to the address, by the rule of a factory.
//!
//! Nothing is searched. What a rule of one's own comes to can be compared with what the contract itself says, step by step, before hours
//! are spent on it.

use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};
use warpsmith::chain::{SaltMask, SaltTarget, Target};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::{NoSummary, Stdout};

use super::ethereum::{Create2, Create3};
use crate::factory::{CodeFile, Made, MadeByCreate2, MadeByCreate3};
use crate::mining::Executor;
use crate::running::CONTRACT;

/// Mine a CREATE2 salt, or explain one
///
/// The address follows from the contract that creates (the deployer), the hash of the code it is given, and the salt: the salt is what
/// is searched. No key is involved. `explain` shows every value on the way from one salt to its address.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Create2Command {
    #[command(flatten)]
    search: Create2,

    #[command(subcommand)]
    explain: Option<Explain2>,
}

#[derive(Subcommand)]
enum Explain2 {
    Explain(ExplainCreate2),
}

/// Mine a CREATE3 salt, or explain one
///
/// The address follows from the factory and the salt alone, not from the contract's code. Prints the salt to pass to the factory and
/// every address on the way. `explain` shows every value on the way from one salt to its address.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Create3Command {
    #[command(flatten)]
    search: Create3,

    #[command(subcommand)]
    explain: Option<Explain3>,
}

#[derive(Subcommand)]
enum Explain3 {
    Explain(ExplainCreate3),
}

impl Create2Command {
    pub fn run(&self, mut stdout: Stdout) -> Result<ExitStatus, Failure> {
        match &self.explain {
            None => self.search.run(Executor::Local, stdout),
            Some(Explain2::Explain(one)) => one.salt.explain(&one.made, &mut stdout),
        }
    }
}

impl Create3Command {
    pub fn run(&self, mut stdout: Stdout) -> Result<ExitStatus, Failure> {
        match &self.explain {
            None => self.search.run(Executor::Local, stdout),
            Some(Explain3::Explain(one)) => one.salt.explain(&one.made, &mut stdout),
        }
    }
}

const CREATE2_EXAMPLES: &str = "\
Examples:
  warpsmith create2 explain --rule launcher.toml --input admin=0x9f...c1 --salt 0x00...07
  warpsmith create2 explain --factory safe-1.4.1 --input singleton=SafeL2 --input initializer=0xb63e... --salt 1700000000";

/// Explain a CREATE2 salt: show every value on the way to the address
///
/// What a factory hashes before CREATE2, the salt that CREATE2 is given, the hash of the code, the bytes that CREATE2 hashes, and the
/// address; for a factory by name, or for a rule of one's own, to compare with what the contract itself says.
#[derive(Args)]
#[command(after_help = CREATE2_EXAMPLES, group = ArgGroup::new("maker").required(true).multiple(true))]
struct ExplainCreate2 {
    #[command(flatten)]
    made: MadeByCreate2,

    #[command(flatten)]
    salt: OneSalt,
}

const CREATE3_EXAMPLES: &str = "\
Examples:
  warpsmith create3 explain --factory createx --salt-layout caller:0x9f...c1 --salt 0x9f...c100...07
  warpsmith create3 explain --rule launcher.toml --salt 0x00...07";

/// Explain a CREATE3 salt: show every value on the way to the address
///
/// What a factory hashes before CREATE2, the salt that CREATE2 is given, the proxy that CREATE2 makes, the bytes that are hashed for
/// both, and the address; for a factory by name, or for a rule of one's own, to compare with what the contract itself says.
#[derive(Args)]
#[command(after_help = CREATE3_EXAMPLES)]
struct ExplainCreate3 {
    #[command(flatten)]
    made: MadeByCreate3,

    #[command(flatten)]
    salt: OneSalt,
}

#[derive(Args)]
struct OneSalt {
    /// The salt: 64 hex digits as results have it, or as the factory takes it, a number where it takes one
    #[arg(long, value_name = "SALT", help_heading = CONTRACT)]
    salt: String,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct ExplanationLine<'a> {
    event: &'static str,
    target: &'a str,
    salt: String,
    address: String,
    details: Map<String, Value>,
}

impl OneSalt {
    fn explain(&self, made: &dyn Made, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let bad = |why: &dyn std::fmt::Display| Failure::Usage(format!("--salt: {why}"));
        let factory = made.factory()?;
        let given = factory.parse_salt(&self.salt).map_err(|error| bad(&error))?;
        let code = made.code(None)?;
        let deployment =
            made.deployment(&factory, given.whole().map(SaltMask::only))?.with_source(code.source);
        let salt = deployment.place(&given);
        let trace = deployment.trace(&salt);
        code.file.as_ref().map_or(Ok(()), CodeFile::write)?;
        if self.json {
            let details = trace.iter().filter(|(name, _)| !["salt", "address"].contains(name));
            let line = ExplanationLine {
                event: "explanation",
                target: deployment.name(),
                salt: const_hex::encode_prefixed(salt),
                address: deployment.encode(&deployment.digest(&salt)),
                details: details
                    .map(|(name, value)| (name.replace(' ', "_"), value.as_str().into()))
                    .collect(),
            };
            stdout.show_json(&line)?;
        } else {
            let width = trace.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            let lines = trace.iter().map(|(name, value)| format!("{name:<width$}  {value}\n"));
            stdout.show_text(&lines.collect::<String>())?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}
