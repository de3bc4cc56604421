//! Checks of salts: from the salt to the address, through the factory that is named.

use serde_json::Value;
use warpsmith_chain::ethereum::{self, Deployment, Factory, SaltRequest};
use warpsmith_chain::{SaltMask, SaltTarget};
use warpsmith_text::Shown;

use super::key::{check_match, field};
use super::{Report, UnknownReason, Verdict};

/// Checks a result with a salt. It may be of this factory.
pub(super) fn check(document: &Value, own: Option<&Factory>) -> Report {
    let address = field(document, "address").unwrap_or_default();
    let mut report = Report::new(Shown(address).to_string());
    let details = document.get("details").unwrap_or(&Value::Null);
    let (salt, deployment) = match deployment(document, details, own) {
        Ok(found) => found,
        Err(Unusable::Wrong(why)) => {
            report.wrong("salt", why);
            return report;
        }
        Err(Unusable::Factory(name)) => {
            let why = format!("the factory {} is not known here", Shown(&name));
            report.add("salt", Verdict::Unknown(UnknownReason::Factory), why);
            return report;
        }
    };
    for (name, computed) in deployment.explain(&salt) {
        match (name, field(details, name)) {
            ("salt", _) => report.holds("salt", "is one that the factory takes"),
            ("address", _) => report.compare("address", &computed, address, "salt, deployer and code"),
            // The file with the code is known to the search alone.
            ("use", Some(written)) if deployment.is_command(&salt, written) => {
                report.holds(name, "follows from the salt and what was given");
            }
            (_, Some(written)) => report.compare(name, &computed, written, "the salt and what was given"),
            (_, None) => report.info(name, computed),
        }
    }
    check_match(&mut report, document, &deployment, address);
    report
}

/// The reason why nothing can be recomputed of a salt.
enum Unusable {
    /// The result contradicts itself.
    Wrong(String),
    /// The rule of this factory is not known.
    Factory(String),
}

impl From<String> for Unusable {
    fn from(why: String) -> Unusable {
        Unusable::Wrong(why)
    }
}

/// The salt, and what creates the contract.
fn deployment(
    document: &Value,
    details: &Value,
    own: Option<&Factory>,
) -> Result<([u8; 32], Deployment), Unusable> {
    let text = field(document, "salt").ok_or_else(|| "it is not a text".to_owned())?;
    let salt = ethereum::parse_hash(text).map_err(|error| error.to_string())?;
    let need = |name: &str| field(details, name).ok_or_else(|| format!("the result does not say its {name}"));
    let name = need("factory")?;
    let factory = own
        .filter(|own| own.name == name)
        .or_else(|| Factory::find(name))
        .ok_or_else(|| Unusable::Factory(name.to_owned()))?;
    let account = |text: &str| ethereum::decode(text).map_err(|error| error.to_string());
    let deployer = account(need("deployer")?)?;
    let caller = field(details, "caller").map(account).transpose()?;
    let chain =
        field(details, "chain").map(|id| id.parse::<u64>().map_err(|_| "its chain is no number".to_owned()));
    let hash = |name: &str| ethereum::parse_hash(need(name)?).map_err(|error| format!("its {name}: {error}"));
    let given = field(details, "inputs").unwrap_or_default().split_whitespace();
    let given = given.filter_map(|one| one.split_once('='));
    let inputs = given.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut request = SaltRequest { caller, chain_id: chain.transpose()?, inputs, mask: None };
    let is_create3 = field(details, "proxy code hash").is_some();
    let code = hash(if is_create3 { "proxy code hash" } else { "init code hash" })?;
    // Code that follows from the rule is computed, and compared with what is written.
    let init_code = (!factory.has_code()).then_some(code);
    let mut create = |mask| {
        request.mask = mask;
        match is_create3 {
            true => Deployment::create3(factory, Some(deployer), Some(code), &request),
            false => Deployment::create2(factory, Some(deployer), init_code, &request),
        }
    };
    match create(Some(SaltMask::only(salt))) {
        // Nobody is named, and it begins with no zeros: anyone may use it.
        Err(ethereum::Refusal::WhoCalls { .. }) => create(None),
        other => other,
    }
    .map(|deployment| (salt, deployment))
    .map_err(|error| Unusable::Wrong(error.to_string()))
}
