//! What can be recomputed about a result or a key, and whether it comes out.
//!
//! Results are read in both their forms: JSON documents, and the labelled lines for people, which become documents with the same
//! fields. SEC: what is said of a check has addresses and public keys in it, never a private one.

use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use warpsmith::chain::coin::Network;
use warpsmith::chain::ethereum::{self, Account, Contract, Deployment, Factory, SaltRequest};
use warpsmith::chain::{
    Birthday, CHAINS, Chain, KeyTarget, PublicPoint, SaltMask, SaltTarget, Shown, Target,
};
use warpsmith::keys::{PublicKey, Secret, parse_public_key, public_point};
use warpsmith::keystore::{bip38, nip49, web3};
use warpsmith::pattern::{Feature, Options, Score, compile};
use zeroize::Zeroize;

use crate::ending::Failure;
use crate::input::documents;
use crate::keys::{self, Ask, Encrypted};

/// What became of one thing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// Nothing to compare with: it is told.
    Told,
    /// It cannot be recomputed without what is not here.
    Unknown,
}

#[derive(Serialize)]
pub(crate) struct Check {
    pub what: String,
    #[serde(rename = "holds", serialize_with = "as_bool")]
    pub verdict: Verdict,
    pub said: String,
}

fn as_bool<S: Serializer>(verdict: &Verdict, to: S) -> Result<S::Ok, S::Error> {
    match verdict {
        Verdict::Holds => to.serialize_bool(true),
        Verdict::Fails => to.serialize_bool(false),
        Verdict::Told | Verdict::Unknown => to.serialize_none(),
    }
}

/// Everything about one result or key.
pub(crate) struct Report {
    pub subject: String,
    pub checks: Vec<Check>,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.checks.len()))?;
        self.checks.iter().try_for_each(|check| list.serialize_element(check))?;
        list.end()
    }
}

impl Report {
    fn new(subject: impl Into<String>) -> Report {
        Report { subject: subject.into(), checks: Vec::new() }
    }

    /// Whether everything holds; `None` where something cannot be checked and nothing is wrong.
    pub fn holds(&self) -> Option<bool> {
        let has = |verdict| self.checks.iter().any(|check| check.verdict == verdict);
        match (has(Verdict::Fails), has(Verdict::Unknown)) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        }
    }

    fn add(&mut self, what: &str, verdict: Verdict, said: impl Into<String>) {
        self.checks.push(Check { what: what.to_owned(), verdict, said: said.into() });
    }

    fn told(&mut self, what: &str, said: impl Into<String>) {
        self.add(what, Verdict::Told, said);
    }

    fn wrong(&mut self, what: &str, said: impl Into<String>) {
        self.add(what, Verdict::Fails, said);
    }

    /// What follows from before, against what is written.
    fn compare(&mut self, what: &str, computed: &str, written: &str, from: &str) {
        match computed == written {
            true => self.add(what, Verdict::Holds, format!("follows from {from}")),
            false => self.wrong(what, format!("{from} leads to {computed}, not to {}", Shown(written))),
        }
    }
}

/// A document whose texts are erased when it is dropped.
struct Erased(Value);

impl Drop for Erased {
    fn drop(&mut self) {
        fn erase(value: &mut Value) {
            match value {
                Value::String(text) => text.zeroize(),
                Value::Array(list) => list.iter_mut().for_each(erase),
                Value::Object(fields) => fields.values_mut().for_each(erase),
                _ => {}
            }
        }
        erase(&mut self.0);
    }
}

/// Looks at everything in a text, and hands on a report of each. Salts may be of a factory with a rule of one's own.
pub(crate) fn check_all(
    text: &str,
    ask: Ask<'_>,
    own: Option<&Factory>,
    tell: &mut dyn FnMut(&Report) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let has_line = |head: &str| text.lines().any(|line| line.trim_start().starts_with(head));
    if has_line("{") {
        for mut document in documents(text).map(Erased) {
            label_details(&mut document.0);
            if web3::is_keystore(&document.0) {
                tell(&check_keystore(&document.0, ask)?)?;
            } else if is_result(&document.0) {
                tell(&check_result(&document.0, ask, own)?)?;
            }
        }
    } else if has_line("address ") || has_line("score ") {
        for document in labelled(text) {
            tell(&check_result(&document.0, ask, own)?)?;
        }
    } else {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        // Other text is no key that went wrong; beside keys a line may be one that did.
        if lines.clone().any(is_like_a_key) {
            lines.map(|line| tell(&check_key(line, ask)?)).collect::<Result<(), Failure>>()?;
        }
    }
    Ok(())
}

/// Whether a document is a result. Other documents of ours have addresses, too.
fn is_result(document: &Value) -> bool {
    let is_of_results = field(document, "event").is_none_or(|event| RESULTS.contains(&event));
    is_of_results && ["address", "salt"].iter().any(|name| document.get(name).is_some())
}

/// Documents with a result.
const RESULTS: [&str; 3] = ["match", "joined", "explanation"];

/// Whether a line has the shape of a key, with a character too many, missing or mistyped. Long addresses and lines of base64
/// have none.
fn is_like_a_key(line: &str) -> bool {
    let line = line.strip_prefix("0x").or(line.strip_prefix("0X")).unwrap_or(line);
    if !line.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    let begins = |heads: &[&str]| {
        heads.iter().any(|head| line.get(..head.len()).is_some_and(|start| start.eq_ignore_ascii_case(head)))
    };
    // An address in bech32 has one case, a key in base58 both.
    let is_mixed =
        line.contains(|c: char| c.is_ascii_uppercase()) && line.contains(|c: char| c.is_ascii_lowercase());
    match line.len() {
        _ if begins(&["nsec1", "ncryptsec1"]) => true,
        62..=66 => line.bytes().filter(|byte| !byte.is_ascii_hexdigit()).count() <= 2,
        50..=53 => is_mixed && line.starts_with(['5', 'K', 'L', '9', 'c']),
        57..=59 => is_mixed && line.starts_with("6P"),
        _ => false,
    }
}

/// Gives the details of a result the names that people see, in which there may be spaces.
fn label_details(document: &mut Value) {
    if let Some(details) = document.get_mut("details").and_then(Value::as_object_mut) {
        *details = std::mem::take(details)
            .into_iter()
            .map(|(name, value)| (name.replace('_', " "), value))
            .collect();
    }
}

/// Results for people as documents: a block of lines each, a label and two spaces before every value.
fn labelled(text: &str) -> Vec<Erased> {
    let mut all = Vec::new();
    let mut fields = Map::new();
    let mut details = Map::new();
    let mut end = |fields: &mut Map<String, Value>, details: &mut Map<String, Value>| {
        // A split result has all of itself in one line.
        let split = fields.remove("split").and_then(|line| documents(line.as_str()?).next());
        let mut fields = std::mem::take(fields);
        if let Some(split) = split {
            all.push(Erased(split));
        } else if !fields.is_empty() {
            fields.insert("details".to_owned(), Value::Object(std::mem::take(details)));
            all.push(Erased(Value::Object(fields)));
        }
        details.clear();
    };
    for line in text.lines() {
        if let Some(mut brief) = brief(line) {
            end(&mut fields, &mut details);
            // A salt without its factory says nothing; the best of them follows in full.
            if brief.contains_key("export") {
                end(&mut brief, &mut details);
            }
            continue;
        }
        let Some((label, value)) = line.split_once("  ") else {
            if line.trim().is_empty() {
                end(&mut fields, &mut details);
            }
            continue;
        };
        let (label, value) = (label.trim(), value.trim());
        let text = Value::String(value.to_owned());
        let encrypted =
            |format: &str, field: &str, value: Value| serde_json::json!({ "format": format, field: value });
        let (field, value) = match label {
            "secret" => ("export", text),
            "hex" => ("secret_key", text),
            "public" => ("public_key", text),
            "score" | "line" => (label, value.parse::<u64>().map_or(text, Value::from)),
            "ncryptsec" | "bip38" => ("encrypted", encrypted(label, "text", text)),
            "keystore" => match serde_json::from_str(value) {
                Ok(document) => ("encrypted", encrypted("web3", "document", document)),
                Err(_) => ("encrypted", encrypted("web3", "file", text)),
            },
            "age" => ("encrypted", encrypted("age", "text", text)),
            "address" | "pattern" | "type" | "amount" | "output" | "nonce" | "salt" | "split" => {
                (label, text)
            }
            // Of an encrypted key it is no detail.
            "use" if fields.contains_key("encrypted") => continue,
            _ => {
                details.insert(label.to_owned(), text);
                continue;
            }
        };
        fields.insert(field.to_owned(), value);
    }
    end(&mut fields, &mut details);
    all
}

/// The fields of a line that a scored search prints of each improvement: labels and values, two spaces between.
fn brief(line: &str) -> Option<Map<String, Value>> {
    let pair = |part: &str| {
        let (label, value) = part.split_once(' ')?;
        let (label, value) = (label.to_owned(), Value::String(value.to_owned()));
        Some(match label.as_str() {
            "secret" => ("export".to_owned(), value),
            "score" => (label, value.as_str()?.parse::<u64>().map_or(value.clone(), Value::from)),
            _ => (label, value),
        })
    };
    let parts: Vec<&str> = line.split("  ").collect();
    let is_brief = parts.len() > 1 && parts[0].starts_with("score ") && parts[1].starts_with("address ");
    is_brief.then(|| parts.into_iter().map(pair).collect()).flatten()
}

/// A key by itself: what it is on every chain.
fn check_key(line: &str, ask: Ask<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("a private key");
    match keys::parse(line, ask)? {
        Err(why) => report.wrong("key", format!("{why}; a key is {}", keys::FORMS)),
        Ok(secret) => {
            report.add("key", Verdict::Holds, "can be read, and has a public key");
            tell_key(&mut report, &secret);
        }
    }
    Ok(report)
}

fn tell_key(report: &mut Report, secret: &Secret) {
    let public = secret.public_key();
    let point = public_point(&public);
    report.told("public key", const_hex::encode(public.serialize()));
    for row in CHAINS.iter().flat_map(|chain| &chain.addresses) {
        if row.network.unwrap_or_default() == Network::Main {
            let target = row.target.as_ref();
            let name =
                target.variant().map_or(target.name().to_owned(), |kind| format!("{} {kind}", target.name()));
            report.told(&name, address_of(target, &point));
        }
    }
}

fn address_of(target: &dyn KeyTarget, point: &PublicPoint) -> String {
    target.encode(&target.digest(point))
}

/// A Web3 keystore by itself.
fn check_keystore(document: &Value, ask: Ask<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("a Web3 keystore");
    let sealed = match web3::read(&document.to_string()) {
        Ok(sealed) => sealed,
        Err(error) => {
            report.wrong("encrypted", keys::why(error)?);
            return Ok(report);
        }
    };
    let read = match sealed.decrypt(&ask("the password of the keystore")?) {
        Ok(read) => Ok(read),
        Err(error) => Err(keys::why(error)?),
    };
    match read.and_then(|read| Ok((keys::secret(&read.secret)?, read.address))) {
        Err(why) => report.wrong("encrypted", why),
        Ok((secret, address)) => {
            report.add("encrypted", Verdict::Holds, "opens with the password");
            let account = address_of(&Account, &public_point(&secret.public_key()));
            if let Some(address) = address {
                let written = address.trim_start_matches("0x").to_lowercase();
                report.compare("address", &account[2..].to_lowercase(), &written, "the key");
            }
            tell_key(&mut report, &secret);
        }
    }
    Ok(report)
}

fn field<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document.get(name).and_then(Value::as_str)
}

/// A result of a search, a scan or a join.
fn check_result(document: &Value, ask: Ask<'_>, own: Option<&Factory>) -> Result<Report, Failure> {
    let address = field(document, "address").unwrap_or_default();
    let mut report = Report::new(Shown(address).to_string());
    if document.get("salt").is_some() {
        check_salt(&mut report, document, address, own);
        return Ok(report);
    }
    let secret = read_secret(&mut report, document, ask)?;
    let public = read_public(&mut report, document, secret.as_ref());
    let Some(public) = public else {
        if report.holds() != Some(false) {
            report.wrong("public key", "there is neither a private nor a public key to compute from");
        }
        return Ok(report);
    };
    if let Some(asked) = asked_key(address) {
        check_asked(&mut report, document, (&public, &asked), secret.as_ref());
        return Ok(report);
    }
    let point = public_point(&public);
    let target = match target_of(document, address, &point) {
        Ok(target) => target,
        Err(why) => {
            report.wrong("address", why);
            return Ok(report);
        }
    };
    let target = target.as_ref();
    report.compare("address", &address_of(target, &point), address, "the public key");
    let name = target.variant().map_or(target.name().to_owned(), |kind| format!("{}, {kind}", target.name()));
    report.told("target", name);
    // Where no key is written in the clear, neither are details that hold it.
    let shown = document.get("secret_key").and(secret.as_ref());
    if let (Some(secret), Some(export)) = (shown, field(document, "export")) {
        match *target.export(secret.as_bytes()) == export {
            true => report.add("export", Verdict::Holds, "is the same private key, as wallets import it"),
            false => report.wrong("export", "is not this private key in the form of this target"),
        }
    }
    let details = document.get("details").and_then(Value::as_object);
    let how = details.and_then(|details| details.get("use")).and_then(Value::as_str);
    let birthday = how.and_then(timestamp).unwrap_or(Birthday::New);
    let computed = target.explain(&point, shown.map(Secret::as_bytes), birthday);
    for (name, written) in details.into_iter().flatten() {
        match computed.iter().find(|(known, _)| known == name) {
            None => report.wrong(name, "is nothing that follows from this key"),
            Some((_, text)) if written == text.as_str() => {
                report.add(name, Verdict::Holds, "follows from the key");
            }
            // SEC: a descriptor holds the key.
            Some(_) => report.wrong(name, "is not what follows from the key"),
        }
    }
    check_wish(&mut report, document, target, address);
    if document.get("split").is_some() {
        report.told("split", "an offset for `warpsmith join`, which checks it with your own key");
    }
    Ok(report)
}

/// The public key that a scan was asked for, where that is what it answers with in place of an address.
fn asked_key(address: &str) -> Option<PublicKey> {
    let is_hex = address.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| parse_public_key(address).ok()).flatten()
}

/// A result of a scan for a public key, which has no address.
fn check_asked(
    report: &mut Report,
    document: &Value,
    (public, asked): (&PublicKey, &PublicKey),
    secret: Option<&Secret>,
) {
    let x = |key: &PublicKey| const_hex::encode(&key.serialize()[1..]);
    report.compare("address", &x(public), &x(asked), "the public key");
    report.told("target", "a public key");
    let shown = document.get("secret_key").and(secret);
    if let (Some(secret), Some(export)) = (shown, field(document, "export")) {
        match keys::plain(export).is_ok_and(|key| *key == *secret.as_bytes()) {
            true => report.add("export", Verdict::Holds, "is the same private key, as wallets import it"),
            false => report.wrong("export", "is not this private key"),
        }
    }
}

/// The time from which on a wallet looks for payments, as a line on importing has it: nothing else in a result says it.
fn timestamp(line: &str) -> Option<Birthday> {
    let (_, rest) = line.split_once("\"timestamp\":")?;
    rest.split_once('}')?.0.parse().ok()
}

/// The private key of a result, wherever it is.
fn read_secret(report: &mut Report, document: &Value, ask: Ask<'_>) -> Result<Option<Secret>, Failure> {
    if let Some(text) = field(document, "secret_key").or(field(document, "export")) {
        let read = keys::plain(text).and_then(|bytes| keys::secret(&bytes));
        return Ok(read.map_err(|why| report.wrong("private key", why)).ok());
    }
    let Some(encrypted) = document.get("encrypted") else { return Ok(None) };
    let (format, text) = (field(encrypted, "format"), field(encrypted, "text").unwrap_or_default());
    let sealed = match format {
        Some("ncryptsec") => nip49::read(text).map(Encrypted::Ncryptsec),
        Some("bip38") => bip38::read(text).map(Encrypted::Bip38),
        Some("web3") => match encrypted.get("document") {
            Some(document) => web3::read(&document.to_string()).map(Encrypted::Web3),
            None => {
                let file = field(encrypted, "file").unwrap_or_default();
                report.told("encrypted", format!("the key is in {}; verify that file too", Shown(file)));
                return Ok(None);
            }
        },
        Some("age") => {
            report.told("encrypted", "for a recipient of age; verify what `age -d` makes of it");
            return Ok(None);
        }
        _ => {
            report.wrong("encrypted", "is of no known format");
            return Ok(None);
        }
    };
    let read = match sealed {
        Ok(sealed) => sealed.decrypt(&ask("the password of the keys")?),
        Err(error) => Err(error),
    };
    let read = match read {
        Ok(bytes) => keys::secret(&bytes),
        Err(error) => Err(keys::why(error)?),
    };
    match read {
        Ok(secret) => {
            report.add("encrypted", Verdict::Holds, "opens with the password");
            Ok(Some(secret))
        }
        Err(why) => {
            report.wrong("encrypted", why);
            Ok(None)
        }
    }
}

/// The public key: computed, and compared with what is written; or what is written.
fn read_public(report: &mut Report, document: &Value, secret: Option<&Secret>) -> Option<PublicKey> {
    let written = field(document, "public_key");
    match (secret, written) {
        (Some(secret), written) => {
            let public = secret.public_key();
            if let Some(written) = written {
                let computed = const_hex::encode(public.serialize());
                report.compare("public key", &computed, written, "the private key");
            }
            Some(public)
        }
        (None, Some(written)) => match parse_public_key(written) {
            Ok(public) => {
                report.told("public key", "is a point of the curve; its private key is not here");
                Some(public)
            }
            Err(error) => {
                report.wrong("public key", error.to_string());
                None
            }
        },
        (None, None) => None,
    }
}

/// The target that a result names; or, where it names none, one whose address the key has.
fn target_of(document: &Value, address: &str, point: &PublicPoint) -> Result<Arc<dyn KeyTarget>, String> {
    if let Some(nonce) = field(document, "nonce") {
        let nonce = nonce.parse().map_err(|_| format!("its nonce {} is no number", Shown(nonce)))?;
        return Contract::new(nonce)
            .map(|contract| Arc::new(contract) as _)
            .map_err(|error| error.to_string());
    }
    if let Some(name) = field(document, "target") {
        let chain =
            Chain::find(name).ok_or_else(|| format!("its target is {}, which is not known", Shown(name)))?;
        // A scan names the chain where there is only one type.
        let variant = field(document, "type").filter(|variant| *variant != name);
        return chain.target_of(variant, address);
    }
    let told = CHAINS.iter().filter_map(|chain| chain.of_address.and_then(|of_address| of_address(address)));
    let listed = CHAINS.iter().flat_map(|chain| &chain.addresses).map(|row| Arc::clone(&row.target));
    listed
        .chain(told)
        .find(|target| address_of(target.as_ref(), point) == address)
        .ok_or_else(|| "is not the address of this key on any chain".to_owned())
}

/// Whether it is what was asked for: a pattern or a score.
fn check_wish(report: &mut Report, document: &Value, target: &dyn Target, address: &str) {
    if let Some(pattern) = field(document, "pattern") {
        // How the pattern was meant is not written.
        let ways = [(false, false), (true, false), (false, true), (true, true)];
        let matches = ways.iter().any(|&(ignore_case, checksum)| {
            let options = Options { ignore_case, checksum, low_bits: None };
            compile([pattern], target, &options).is_ok_and(|patterns| patterns.find(address).is_some())
        });
        match matches {
            true => report.add("pattern", Verdict::Holds, format!("the address matches {}", Shown(pattern))),
            false => report.wrong("pattern", format!("the address does not match {}", Shown(pattern))),
        }
    }
    let score = document.get("score").and_then(Value::as_u64);
    if let (Some(score), Ok(digest)) = (score, target.decode(address))
        && digest.as_bytes().len() == 20
    {
        // Results of earlier versions do not say what was scored.
        let digits = (0..16).map(Feature::Leading);
        let old = [Feature::LeadingZeros, Feature::Zeros].into_iter().chain(digits).map(Score::from);
        let told = field(document, "scored").map(Score::parse);
        let is_said = told.is_some();
        let all: Vec<Score> = match told {
            None => old.collect(),
            Some(Ok(told)) => vec![told],
            Some(Err(why)) => return report.wrong("scored", why.to_string()),
        };
        match all.iter().find(|kind| u64::from(kind.of(&digest)) == score) {
            Some(kind) => report.add("score", Verdict::Holds, format!("{score} as the most {kind}")),
            None if is_said => report.wrong("score", format!("the address has no score of {score}")),
            // Of a score that was asked for by --best or --score-file, as text has it.
            None => report.told("score", "the result does not say what was scored"),
        }
    }
}

/// From a salt to the address, through the factory that is named.
fn check_salt(report: &mut Report, document: &Value, address: &str, own: Option<&Factory>) {
    let none = Value::Null;
    let details = document.get("details").unwrap_or(&none);
    let (salt, deployment) = match deployment(document, details, own) {
        Ok(found) => found,
        Err(Unusable::Wrong(why)) => return report.wrong("salt", why),
        Err(Unusable::NoRule(why)) => return report.add("salt", Verdict::Unknown, why),
    };
    for (name, computed) in deployment.explain(&salt) {
        match (name, field(details, name)) {
            ("salt", _) => report.add("salt", Verdict::Holds, "is one that the factory takes"),
            ("address", _) => report.compare("address", &computed, address, "salt, deployer and code"),
            // The file with the code is known to the search alone.
            ("use", Some(written)) if deployment.is_command(&salt, written) => {
                report.add(name, Verdict::Holds, "follows from the salt and what was given");
            }
            (_, Some(written)) => report.compare(name, &computed, written, "the salt and what was given"),
            (_, None) => report.told(name, computed),
        }
    }
    check_wish(report, document, &deployment, address);
}

/// Why nothing can be recomputed of a salt.
enum Unusable {
    /// The result contradicts itself.
    Wrong(String),
    /// Its factory has a rule that was not given.
    NoRule(String),
}

impl From<String> for Unusable {
    fn from(why: String) -> Unusable {
        Unusable::Wrong(why)
    }
}

/// What creates the contract, from what a result says.
fn deployment(
    document: &Value,
    details: &Value,
    own: Option<&Factory>,
) -> Result<([u8; 32], Deployment), Unusable> {
    let text = field(document, "salt").ok_or_else(|| "it is not a text".to_owned())?;
    let salt = ethereum::parse_hash(text).map_err(|error| error.to_string())?;
    let need = |name: &str| field(details, name).ok_or_else(|| format!("the result does not say its {name}"));
    let name = need("factory")?;
    let factory = own.filter(|own| own.name == name).or_else(|| Factory::find(name)).ok_or_else(|| {
        Unusable::NoRule(format!(
            "the factory {} is not known here: give the rule it was mined with, --rule FILE",
            Shown(name)
        ))
    })?;
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
