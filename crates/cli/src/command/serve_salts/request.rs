//! Requests for salts: their JSON fields, read and checked into a search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use warpsmith::chain::ethereum::{Deployment, Refusal};
use warpsmith::fleet;
use warpsmith::fleet::job::{AnyTarget, Sought};
use warpsmith::pattern::{Options, Patterns, Ranking, Score, compile};
use warpsmith::salts::{SaltGoal, SaltSearch};
use warpsmith::search::Show;

use crate::hooks;

/// A request as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// `create2` or `create3`; by default what is meant by a hash of code.
    #[serde(default)]
    with: Option<String>,
    #[serde(default)]
    factory: Option<String>,
    /// The text of a rule, in place of a factory's name, and what it asks for.
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    #[serde(default)]
    deployer: Option<String>,
    #[serde(default)]
    init_code_hash: Option<String>,
    #[serde(default)]
    proxy_code_hash: Option<String>,
    #[serde(default)]
    caller: Option<String>,
    #[serde(default)]
    chain_id: Option<u64>,
    #[serde(default)]
    salt: Option<String>,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    checksum: bool,
    #[serde(default)]
    hook_flags: Option<String>,
    #[serde(default)]
    best: Option<String>,
    #[serde(default)]
    score: Option<u32>,
    #[serde(default)]
    min_score: Option<u32>,
    deadline_s: f64,
}

/// Patterns of a request, and characters of one.
const MAX_PATTERNS: usize = 1000;
const MAX_CHARACTERS: usize = 200;
/// Regular expressions of a request, each of which may take megabytes.
const MAX_EXPRESSIONS: usize = 32;

impl Request {
    /// Reads the deadline.
    pub fn deadline(&self, longest: Duration) -> Result<Duration, String> {
        let deadline = Duration::try_from_secs_f64(self.deadline_s).ok();
        deadline.filter(|deadline| !deadline.is_zero() && *deadline <= longest).ok_or_else(|| {
            format!(
                "deadline_s is a number of seconds above 0 and up to {}, not {}",
                longest.as_secs_f64(),
                self.deadline_s
            )
        })
    }

    /// Checks and compiles all of it. Patterns that take long are given up between two of them when the request is
    /// abandoned.
    pub fn compile(self, is_abandoned: &AtomicBool) -> Result<SaltSearch, String> {
        if self.patterns.len() > MAX_PATTERNS {
            return Err(format!(
                "{} patterns are too many; {MAX_PATTERNS} are the most",
                self.patterns.len()
            ));
        }
        let expressions = self.patterns.iter().filter(|pattern| pattern.starts_with('/')).count();
        if expressions > MAX_EXPRESSIONS {
            return Err(format!(
                "{expressions} regular expressions are too many; {MAX_EXPRESSIONS} are the most"
            ));
        }
        if let Some(long) = self.patterns.iter().find(|pattern| pattern.chars().count() > MAX_CHARACTERS) {
            let given = long.chars().count();
            return Err(format!(
                "a pattern of {given} characters is too long; {MAX_CHARACTERS} are the most"
            ));
        }
        let target = self.target()?;
        let low_bits = self.hook_flags.as_deref().map(hooks::low_bits).transpose();
        let low_bits = low_bits.map_err(|failure| failure.to_string())?;
        let options = Options { checksum: self.checksum, low_bits, ..Options::default() };
        let mut texts = self.patterns.clone();
        if let (Some(low), true) = (&options.low_bits, texts.is_empty()) {
            texts.push(hooks::pattern(low));
        }
        let texts_until_abandoned = || texts.iter().take_while(|_| !is_abandoned.load(Ordering::Relaxed));
        let patterns = (!texts.is_empty())
            .then(|| compile(texts_until_abandoned(), target.as_ref(), &options))
            .transpose();
        if is_abandoned.load(Ordering::Relaxed) {
            return Err("the request was abandoned".to_owned());
        }
        let patterns = patterns.map_err(|error| format!("patterns: {error}"))?;
        Ok(SaltSearch { target, goal: self.goal(patterns)? })
    }

    fn target(&self) -> Result<Arc<Deployment>, String> {
        let with = match (self.with.as_deref(), &self.init_code_hash) {
            (Some(with), _) => with,
            (None, Some(_)) => "create2",
            (None, None) if self.rule.is_some() || !self.inputs.is_empty() => "create2",
            (None, None) => "create3",
        };
        let (code_hash, other) = match with {
            "create2" => (&self.init_code_hash, self.proxy_code_hash.is_some()),
            _ => (&self.proxy_code_hash, self.init_code_hash.is_some()),
        };
        if other {
            return Err("init_code_hash is for create2 and proxy_code_hash for create3; leave the other out"
                .to_owned());
        }
        let usual = if with == "create2" { "plain" } else { "solmate" };
        let sought = Sought::Salt {
            with: with.to_owned(),
            factory: self.factory.clone().unwrap_or_else(|| usual.to_owned()),
            rule: self.rule.clone(),
            inputs: self.inputs.clone(),
            deployer: self.deployer.clone(),
            code_hash: code_hash.clone(),
            caller: self.caller.clone(),
            chain_id: self.chain_id,
            mask: self.salt.clone(),
        };
        match sought.target().map_err(|error| in_members(&error))? {
            AnyTarget::Salt(target) => Ok(target),
            AnyTarget::Key(_) => unreachable!("a salt was sought"),
        }
    }

    fn goal(&self, patterns: Option<Patterns>) -> Result<SaltGoal, String> {
        let score =
            self.best.as_deref().map(Score::parse).transpose().map_err(|why| format!("best: {why}"))?;
        let Some(score) = score else {
            if self.score.is_some() || self.min_score.is_some() {
                return Err("score and min_score are for best, which says what is counted".to_owned());
            }
            let patterns = patterns.ok_or("say what is wanted: patterns, hook_flags or best")?;
            return Ok(SaltGoal::Patterns(Box::new(patterns)));
        };
        let ranking = match patterns {
            Some(patterns) => Ranking::among(score, patterns),
            None => Ranking::new(score),
        };
        let show = match (self.min_score, self.score) {
            (Some(_), Some(_)) => return Err("give score or min_score, not both".to_owned()),
            (Some(least), None) => Show::AtLeast(least),
            (None, _) => Show::Better,
        };
        if let Some(asked) = self.min_score.or(self.score).filter(|asked| ranking.odds(*asked) == 0.0) {
            return Err(format!("a score of {asked} cannot be reached; the most is {}", ranking.max()));
        }
        Ok(SaltGoal::Best { ranking: Box::new(ranking), show, enough: self.score })
    }
}

/// The error, with the member of the request that answers it.
fn in_members(error: &fleet::Error) -> String {
    let fleet::Error::Salts(refusal) = error else { return error.to_string() };
    let member = match refusal {
        Refusal::NoCode | Refusal::OwnCode { .. } => "init_code_hash",
        Refusal::NoCaller { .. } | Refusal::WhoCalls { .. } => "caller",
        Refusal::NoDeployer { .. } => "deployer",
        Refusal::NoInput { .. } | Refusal::UnknownInput { .. } | Refusal::BadInput { .. } => "inputs",
        Refusal::NoChain { .. } | Refusal::NoChains { .. } | Refusal::UnusedChain { .. } => "chain_id",
        Refusal::Unsupported { .. } => "factory",
        Refusal::Refused { .. } | Refusal::Ambiguous { .. } | Refusal::OutsideSalt { .. } => "salt",
        _ => return error.to_string(),
    };
    format!("{member}: {error}")
}
