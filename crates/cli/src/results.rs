//! Results as people and programs read them: a record, its two forms, and where they go.
//!
//! The field names of the JSON form are a contract with scripts. With an output file the secret goes there alone,
//! and stdout gets a copy of the record that names the file instead. SEC: texts that hold a secret are built in
//! buffers that are large enough from the start, so that they leave no copy, and are erased after use.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warpsmith::chain::Target;
use warpsmith::keys::{Joined, Split};
use warpsmith::scan::Finding;
use warpsmith::search::{Details, Match};
use zeroize::Zeroizing;

use crate::ending::Failure;
use crate::output::Output;
use crate::stdout::Stdout;

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
    salt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<u32>,
    /// What the source said the address holds, in the smallest unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<&'a str>,
    /// What lies between key or salt and address, in the order of computation.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "as_map")]
    details: &'a [(&'static str, Zeroizing<String>)],
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<&'a SplitFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

fn as_map<S: serde::Serializer>(
    pairs: &[(&'static str, Zeroizing<String>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, value)| (name, value.as_str())))
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

impl ResultLine<'_> {
    /// The whole record; or, given the file that has it and details without a secret, what may be told of it.
    fn text(&self, json: bool, told: Option<(&str, &Details)>) -> Zeroizing<Vec<u8>> {
        let record = match told {
            None => self.clone(),
            Some((file, details)) => {
                ResultLine { secret_key: None, export: None, details, output: Some(file), ..self.clone() }
            }
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
        let (score, nonce) = (self.score.map(|s| s.to_string()), self.nonce.map(|n| n.to_string()));
        let mut fields = vec![
            ("address", Some(self.address)),
            ("score", score.as_deref()),
            ("nonce", nonce.as_deref()),
            ("type", self.amount.and(self.variant)),
            ("amount", self.amount),
        ];
        match self.output {
            Some(_) => fields.push(("output", self.output)),
            None => fields.extend([
                ("secret", self.export),
                ("hex", self.secret_key),
                ("public", self.public_key),
                ("split", split.as_deref()),
            ]),
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

/// Where results go.
pub(crate) struct Results {
    stdout: Stdout,
    file: Option<Output>,
    json: bool,
    published: u64,
}

impl Results {
    /// Makes sure that a result can be delivered before any is searched for.
    pub fn open(stdout: Stdout, output: Option<&Path>, json: bool) -> Result<Results, Failure> {
        let file = output.map(Output::open).transpose()?;
        if file.is_none() {
            stdout.require_open()?;
        }
        Ok(Results { stdout, file, json, published: 0 })
    }

    /// stdout, for what is not a result.
    pub fn stdout(&mut self) -> &mut Stdout {
        &mut self.stdout
    }

    /// How many were delivered.
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Ends a search whose next result could not be kept, while everything found is safe.
    pub fn keep_ready(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        file.make_room().map_err(|why| {
            Failure::Other(format!(
                "--output {}: {why}; the search was stopped before it found what could not be kept, and all {} results \
                 told are safe. Make room and start again",
                file.name(),
                self.published
            ))
        })
    }

    /// Delivers matches that came together.
    pub fn publish_matches(&mut self, found: &[Match]) -> Result<(), Failure> {
        let json = self.json;
        self.publish(found.len(), |at, file| match_text(&found[at], json, file))
    }

    /// Delivers what a scan found.
    pub fn publish_finding(&mut self, found: &Finding) -> Result<(), Failure> {
        let secret_key = Zeroizing::new(const_hex::encode(found.secret.as_bytes()));
        let public_key = const_hex::encode(found.public_key);
        let amount = found.amount.map(|amount| amount.to_string());
        let record = ResultLine {
            event: "match",
            target: found.target,
            variant: Some(found.found_as.variant().unwrap_or(found.target)),
            pattern: None,
            address: &found.address,
            public_key: Some(&public_key),
            secret_key: Some(&secret_key),
            export: Some(&found.export),
            salt: None,
            nonce: None,
            score: None,
            amount: amount.as_deref(),
            details: &found.details,
            split: None,
            device: Some(&found.device),
            tried: None,
            elapsed_s: None,
            output: None,
        };
        self.publish_one(&record, &found.public_details)
    }

    /// Delivers a joined key.
    pub fn publish_joined(
        &mut self,
        target: &dyn Target,
        nonce: Option<u64>,
        joined: &Joined,
    ) -> Result<(), Failure> {
        let secret_key = Zeroizing::new(const_hex::encode(joined.secret.as_bytes()));
        let public_key = const_hex::encode(joined.public_key);
        let record = ResultLine {
            event: "joined",
            target: target.name(),
            variant: target.variant(),
            pattern: None,
            address: &joined.address,
            public_key: Some(&public_key),
            secret_key: Some(&secret_key),
            export: Some(&joined.export),
            salt: None,
            nonce,
            score: None,
            amount: None,
            details: &joined.details,
            split: None,
            device: None,
            tried: None,
            elapsed_s: None,
            output: None,
        };
        self.publish_one(&record, &joined.public_details)
    }

    /// Delivers a record; where its secret goes to a file, stdout gets it with these details and without the secret.
    fn publish_one(&mut self, record: &ResultLine<'_>, public_details: &Details) -> Result<(), Failure> {
        let json = self.json;
        self.publish(1, |_, file| record.text(json, file.map(|file| (file, public_details))))
    }

    /// Delivers so many results at once: `text` makes the text of each, or given the name of the file that has it, of what
    /// stdout is told.
    fn publish(
        &mut self,
        count: usize,
        text: impl Fn(usize, Option<&str>) -> Zeroizing<Vec<u8>>,
    ) -> Result<(), Failure> {
        let (json, first) = (self.json, self.published == 0);
        let block = |separate: bool, file: Option<&str>| {
            let texts: Vec<Zeroizing<Vec<u8>>> = (0..count).map(|at| text(at, file)).collect();
            let size = texts.iter().map(|text| text.len() + 1).sum();
            let mut block = Zeroizing::new(Vec::with_capacity(size));
            for (at, text) in texts.iter().enumerate() {
                // A blank line between results for people.
                if !json && (at > 0 || separate) {
                    block.push(b'\n');
                }
                block.extend_from_slice(text);
            }
            block
        };
        match &mut self.file {
            None => self.stdout.deliver(&block(!first, None))?,
            Some(file) => {
                file.append(&block(false, None), !json)?;
                let name = file.name();
                let told = self.stdout.show(&block(!first, Some(&name)));
                told.map_err(|failure| match failure {
                    Failure::Other(why) => {
                        Failure::Other(format!("{why}; the result itself is safe in {name}"))
                    }
                    other => other,
                })?;
            }
        }
        self.published += count as u64;
        Ok(())
    }
}

/// The text of a match, or of what stdout is told where a file has it.
fn match_text(found: &Match, json: bool, file: Option<&str>) -> Zeroizing<Vec<u8>> {
    let secret_key = found.secret().map(|secret| Zeroizing::new(const_hex::encode(secret.as_bytes())));
    let split = found.split().map(SplitFields::from);
    // Salt and address have fields of their own.
    let own = |details: &Details| -> Details {
        details.iter().filter(|(name, _)| !["salt", "address"].contains(name)).cloned().collect()
    };
    let public_key = found.public_key().map(const_hex::encode);
    let salt = found.salt().map(const_hex::encode_prefixed);
    let (details, public_details) = (own(&found.details), own(&found.public_details));
    let record = ResultLine {
        event: "match",
        target: found.target,
        variant: found.variant,
        pattern: found.pattern(),
        address: &found.address,
        public_key: public_key.as_deref(),
        secret_key: secret_key.as_ref().map(|hex| hex.as_str()),
        export: found.export(),
        salt: salt.as_deref(),
        nonce: found.nonce,
        score: found.score(),
        amount: None,
        details: &details,
        split: split.as_ref(),
        device: Some(&found.device),
        tried: Some(found.tried),
        elapsed_s: Some((found.elapsed.as_secs_f64() * 1e6).round() / 1e6),
        output: None,
    };
    record.text(json, file.map(|file| (file, &public_details)))
}
