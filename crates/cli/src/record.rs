//! A result as people and programs read it: what it holds, and its two forms.
//!
//! The field names of the JSON form are a contract with scripts. SEC: texts that hold a secret are built in buffers that are large
//! enough from the start, so that they leave no copy, and are erased after use.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warpsmith::chain::{Chain, EncryptedForm, KeyTarget};
use warpsmith::keys::{Joined, Secret, Split};
use warpsmith::scan::Finding;
use warpsmith::search::{Details, Match};
use warpsmith_console::json;
use warpsmith_console::stdout::JSON_VERSION;
use zeroize::Zeroizing;

use crate::encrypted::Encrypted;

/// What is delivered.
pub(crate) enum Deliverable {
    /// Of a search.
    Match(Match),
    /// Of a scan.
    Finding(Finding),
    /// Of a join: the key, the target's name and type, and the nonce of a contract.
    Joined { joined: Joined, target: &'static str, variant: Option<&'static str>, nonce: Option<u64> },
}

/// Which of the texts of a result is meant.
#[derive(Clone, Copy)]
pub(crate) enum Telling<'a> {
    /// All of it, the private key in the clear.
    Plain,
    /// All of it, the private key encrypted.
    Encrypted(&'a Encrypted),
    /// What may be told of it, where the named file has the rest.
    Without { file: &'a str },
}

impl Deliverable {
    /// The private key; none of a salt and of a split result.
    pub fn secret(&self) -> Option<&Secret> {
        match self {
            Deliverable::Match(found) => found.secret(),
            Deliverable::Finding(found) => Some(found.secret()),
            Deliverable::Joined { joined, .. } => Some(joined.secret()),
        }
    }

    /// The private key as wallets import it.
    pub fn export(&self) -> Option<&str> {
        match self {
            Deliverable::Match(found) => found.export(),
            Deliverable::Finding(found) => Some(found.export()),
            Deliverable::Joined { joined, .. } => Some(joined.export()),
        }
    }

    /// The address.
    pub fn address(&self) -> &str {
        match self {
            Deliverable::Match(found) => &found.address,
            Deliverable::Finding(found) => found.answer(),
            Deliverable::Joined { joined, .. } => &joined.address,
        }
    }

    /// What may be told to anybody, by names in capitals. SEC: nothing that leads to a private key.
    pub fn public_parts(&self) -> Vec<(&'static str, String)> {
        let own = |text: &str| Some(text.to_owned());
        let mut parts = vec![("ADDRESS", own(self.address()))];
        match self {
            Deliverable::Match(found) => parts.extend([
                ("TARGET", own(found.target)),
                ("TYPE", found.variant.map(str::to_owned)),
                ("PATTERN", found.pattern().map(str::to_owned)),
                ("PUBLIC_KEY", found.public_key().map(const_hex::encode)),
                ("SCORE", found.score().map(|score| score.to_string())),
                ("SALT", found.salt().map(const_hex::encode_prefixed)),
            ]),
            Deliverable::Finding(found) => parts.extend([
                ("TARGET", own(found.target)),
                (
                    "TYPE",
                    found
                        .asked
                        .as_ref()
                        .map_or(found.found_as.variant(), |_| Some(PUBLIC_KEY))
                        .map(str::to_owned),
                ),
                ("PUBLIC_KEY", Some(const_hex::encode(found.public_key))),
            ]),
            Deliverable::Joined { joined, target, variant, .. } => parts.extend([
                ("TARGET", own(target)),
                ("TYPE", variant.map(str::to_owned)),
                ("PUBLIC_KEY", Some(const_hex::encode(joined.public_key))),
            ]),
        }
        parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// How wallets keep such a key under a password.
    pub fn encrypted_form(&self) -> Option<EncryptedForm> {
        self.key_target()?.encrypted_form()
    }

    /// The target of its key; none of a salt.
    pub fn key_target(&self) -> Option<Arc<dyn KeyTarget>> {
        let (target, variant, address) = match self {
            Deliverable::Match(found) => (found.target, found.variant, &found.address),
            Deliverable::Finding(found) => (found.target, found.found_as.variant(), &found.address),
            Deliverable::Joined { joined, target, variant, .. } => (*target, *variant, &joined.address),
        };
        Chain::find(target)?.target_of(variant, address).ok()
    }

    /// Whether one line can say all that is new of it: not of a split result, whose line is a document.
    pub fn is_brief(&self) -> bool {
        matches!(self, Deliverable::Match(found) if found.score().is_some() && found.split().is_none())
    }

    /// One line for people, of an improvement in a scored search: what differs from the result before.
    pub fn brief(&self, with_secret: bool, named: bool) -> Zeroizing<Vec<u8>> {
        let Deliverable::Match(found) = self else { return Zeroizing::default() };
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let (score, nonce) = (number(found.score().map(u64::from)), number(found.nonce));
        let salt = found.salt().map(const_hex::encode_prefixed);
        let fields = [
            ("score", score.as_deref()),
            ("address", Some(found.address.as_str())),
            ("pattern", found.pattern().filter(|_| named)),
            ("nonce", nonce.as_deref()),
            ("salt", salt.as_deref()),
            ("secret", found.export().filter(|_| with_secret)),
        ];
        let size = fields.iter().map(|(label, value)| label.len() + 3 + value.map_or(0, str::len)).sum();
        let mut line = String::with_capacity(size);
        for (label, value) in fields {
            if let Some(value) = value {
                let gap = if line.is_empty() { "" } else { "  " };
                let _ = write!(line, "{gap}{label} {value}");
            }
        }
        line.push('\n');
        Zeroizing::new(line.into_bytes())
    }

    /// Its text, as JSON or for people; those are told its pattern on wish.
    pub fn text(&self, json: bool, telling: Telling<'_>, named: bool) -> Zeroizing<Vec<u8>> {
        match self {
            Deliverable::Match(found) => match_text(found, json, telling, named),
            Deliverable::Finding(found) => finding_text(found, json, telling),
            Deliverable::Joined { joined, target, variant, nonce } => {
                let keys = Keys::new(Some(joined.secret()), Some(&joined.public_key));
                let record = ResultLine {
                    variant: *variant,
                    export: Some(joined.export()),
                    nonce: *nonce,
                    ..ResultLine::new("joined", target, &joined.address, &keys)
                };
                record.told(json, telling, &joined.details, &joined.public_details)
            }
        }
    }
}

/// The type of a result that is a public key and no address.
pub(crate) const PUBLIC_KEY: &str = "public-key";

/// A result. Fields that do not apply are absent.
#[derive(Clone, Serialize)]
struct ResultLine<'a> {
    event: &'static str,
    target: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    variant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a str>,
    address: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<&'a Encrypted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    salt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::text_if_any")]
    nonce: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scored: Option<&'a str>,
    /// What the source said the address holds, in the smallest unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<&'a str>,
    /// The line of a list of keys that the key stands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// What lies between key or salt and address, in the order of computation.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "as_map")]
    details: &'a [(&'static str, Zeroizing<String>)],
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<&'a SplitFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::text_if_any")]
    tried: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    version: u32,
}

fn as_map<S: serde::Serializer>(
    pairs: &[(&'static str, Zeroizing<String>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    // Labels for people may have spaces, names of fields have none.
    to.collect_map(pairs.iter().map(|(name, value)| (name.replace(' ', "_"), value.as_str())))
}

/// A split result's fields, as `join` reads them again.
#[derive(Serialize, Deserialize)]
pub(crate) struct SplitFields {
    /// 64 hex digits.
    pub offset: String,
    /// 0 to 2.
    pub endo: u8,
    /// Whether the key is negated at the end.
    pub negate: bool,
}

impl From<&Split> for SplitFields {
    fn from(split: &Split) -> SplitFields {
        SplitFields { offset: const_hex::encode(split.offset), endo: split.endo, negate: split.negate }
    }
}

/// A key pair in hex.
struct Keys {
    secret: Option<Zeroizing<String>>,
    public: Option<String>,
}

impl Keys {
    fn new(secret: Option<&Secret>, public: Option<&[u8; 33]>) -> Keys {
        let secret = secret.map(|secret| Zeroizing::new(const_hex::encode(secret.as_bytes())));
        Keys { secret, public: public.map(const_hex::encode) }
    }
}

impl<'a> ResultLine<'a> {
    fn new(event: &'static str, target: &'a str, address: &'a str, keys: &'a Keys) -> ResultLine<'a> {
        ResultLine {
            event,
            target,
            variant: None,
            pattern: None,
            address,
            public_key: keys.public.as_deref(),
            secret_key: keys.secret.as_ref().map(|hex| hex.as_str()),
            export: None,
            encrypted: None,
            salt: None,
            nonce: None,
            score: None,
            scored: None,
            amount: None,
            line: None,
            details: &[],
            split: None,
            device: None,
            tried: None,
            elapsed_s: None,
            output: None,
            version: JSON_VERSION,
        }
    }

    /// The text that is meant: the private key, and details that may hold it, are in the plain one alone.
    fn told(
        self,
        json: bool,
        telling: Telling<'a>,
        details: &'a Details,
        public_details: &'a Details,
    ) -> Zeroizing<Vec<u8>> {
        let without = ResultLine { secret_key: None, export: None, details: public_details, ..self.clone() };
        let record = match telling {
            Telling::Plain => ResultLine { details, ..self },
            Telling::Encrypted(encrypted) => ResultLine { encrypted: Some(encrypted), ..without },
            Telling::Without { file } => ResultLine { output: Some(file), ..without },
        };
        if json { record.json() } else { record.human() }
    }

    fn json(&self) -> Zeroizing<Vec<u8>> {
        // A character takes six bytes at most, as \u001f does; fixed parts and numbers stay below 1000.
        let details: usize = self.details.iter().map(|(name, value)| name.len() + value.len() + 6).sum();
        let free = self.pattern.map_or(0, str::len) + self.output.map_or(0, str::len) + details;
        let mut line = Zeroizing::new(Vec::with_capacity(1280 + 6 * free));
        serde_json::to_writer(&mut *line, self).expect("a record has text keys and plain values");
        line.push(b'\n');
        line
    }

    fn human(&self) -> Zeroizing<Vec<u8>> {
        let split = self.split.map(|_| self.json());
        let split = split.as_ref().map(|line| String::from_utf8_lossy(line.trim_ascii_end()));
        let [score, nonce, line] =
            [self.score.map(u64::from), self.nonce, self.line].map(|number| number.map(|n| n.to_string()));
        let encrypted = self.encrypted.map(Encrypted::told);
        let mut fields = vec![
            ("address", Some(self.address)),
            ("pattern", self.pattern),
            ("score", score.as_deref()),
            ("nonce", nonce.as_deref()),
            ("type", self.amount.and(self.variant)),
            ("amount", self.amount),
            ("line", line.as_deref()),
        ];
        match self.output {
            Some(_) => fields.push(("output", self.output)),
            None => {
                fields.extend([("secret", self.export), ("hex", self.secret_key)]);
                fields.extend(encrypted.as_ref().map(|(label, text)| (*label, Some(text.as_str()))));
                fields.extend([("public", self.public_key), ("split", split.as_deref())]);
                fields.push(("use", self.encrypted.map(Encrypted::how)));
            }
        }
        fields.push(("salt", self.salt));
        fields.extend(self.details.iter().map(|(name, value)| (*name, Some(value.as_str()))));
        let width =
            fields.iter().filter(|(_, v)| v.is_some()).map(|(l, _)| l.len()).max().unwrap_or(0).max(7);
        let size = fields.iter().map(|(_, value)| width + 3 + value.map_or(0, str::len)).sum();
        let mut text = String::with_capacity(size);
        for (label, value) in fields {
            if let Some(value) = value {
                let _ = writeln!(text, "{label:<width$}  {value}");
            }
        }
        Zeroizing::new(text.into_bytes())
    }
}

fn finding_text(found: &Finding, json: bool, telling: Telling<'_>) -> Zeroizing<Vec<u8>> {
    let keys = Keys::new(Some(found.secret()), Some(&found.public_key));
    let amount = found.amount.map(|amount| amount.to_string());
    let mut record = ResultLine {
        variant: Some(found.found_as.variant().unwrap_or(found.target)),
        export: Some(found.export()),
        amount: amount.as_deref(),
        line: found.line,
        device: Some(&found.device),
        ..ResultLine::new("match", found.target, found.answer(), &keys)
    };
    if found.asked.is_some() {
        // The taproot output that it was found as is nothing that was asked for.
        record.variant = Some(PUBLIC_KEY);
        return record.told(json, telling, &Vec::new(), &Vec::new());
    }
    record.told(json, telling, &found.details, &found.public_details)
}

fn match_text(found: &Match, json: bool, telling: Telling<'_>, named: bool) -> Zeroizing<Vec<u8>> {
    let keys = Keys::new(found.secret(), found.public_key());
    let split = found.split().map(SplitFields::from);
    // Salt and address have fields of their own.
    let own = |details: &Details| -> Details {
        details.iter().filter(|(name, _)| !["salt", "address"].contains(name)).cloned().collect()
    };
    let salt = found.salt().map(const_hex::encode_prefixed);
    let (details, public_details) = (own(&found.details), own(&found.public_details));
    let record = ResultLine {
        variant: found.variant,
        pattern: found.pattern().filter(|_| json || named),
        export: found.export(),
        salt: salt.as_deref(),
        nonce: found.nonce,
        score: found.score(),
        scored: found.scored().filter(|_| json),
        split: split.as_ref(),
        device: Some(&found.device),
        tried: Some(found.tried),
        elapsed_s: Some((found.elapsed.as_secs_f64() * 1e6).round() / 1e6),
        ..ResultLine::new("match", found.target, &found.address, &keys)
    };
    record.told(json, telling, &details, &public_details)
}
