//! `warpsmith join`: the final private key, from the user's own key and a split result.
//!
//! SEC: the own key enters by file, standard input or prompt, is held in buffers that are erased, and is in no message.
//! Results come from elsewhere and are believed in nothing: the library shows a key only if it leads to the
//! very address promised. An output file is opened after that, so a result that does not fit leaves none.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use warpsmith::chain::ethereum::Contract;
use warpsmith::chain::{CHAINS, Chain, KeyTarget};
use warpsmith::keys::{Split, join, wiping_stack};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::input::{self, name};
use warpsmith_console::stderr::warn;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_text::json_mistake;

use crate::encryption::{EncryptFlags, ask_password};
use crate::failures::OrFail as _;
use crate::keys;
use crate::qr::QrFlags;
use crate::record::{Deliverable, SplitFields};
use crate::results::Results;
use warpsmith::verify::json_documents;

const EXAMPLES: &str = "\
Examples:
  warpsmith npub cafe --split-key 02f9... --json > result.json      on the machine that mines
  warpsmith join --secret-key-file own.key result.json              on your own machine
  warpsmith join result.json                                        the same; asks for your key on the terminal
  warpsmith join --secret-key-file - result.json --output keys.txt  the key by standard input
  warpsmith join --secret-key-file own.key monday.json tuesday.json --encrypt

The key file holds 64 hex digits, an nsec, or a Bitcoin key in wallet import format (WIF), or one of them encrypted.";

/// Make the private keys of split results
///
/// Joins your own private key with what was mined from your public key (--split-key), and shows the final key only
/// if it leads to exactly the address promised.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Join {
    /// The file with your own private key: 64 hex digits, an nsec or a WIF key, or one of them encrypted (- for standard
    /// input) [default: asks on the terminal]
    #[arg(long, value_name = "FILE")]
    secret_key_file: Option<String>,

    /// Files with results of searches: their JSON lines, alone or among others (- for standard input)
    #[arg(value_name = "RESULT", required = true, num_args = 1..)]
    results: Vec<String>,

    /// Append the key to FILE (created with mode 0600) instead of showing it
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, default_values_os = warpsmith_console::config::output(),
        hide_default_value = true)]
    output: Option<PathBuf>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    #[command(flatten)]
    encrypt: EncryptFlags,

    #[command(flatten)]
    qr: QrFlags,
}

/// The fields of a match line that matter here.
#[derive(Deserialize)]
struct Fields {
    target: String,
    #[serde(rename = "type")]
    variant: Option<String>,
    address: String,
    public_key: Option<String>,
    nonce: Option<String>,
    split: SplitFields,
}

/// A split result, well-formed.
struct Mined {
    target: Arc<dyn KeyTarget>,
    nonce: Option<u64>,
    address: String,
    public_key: Option<[u8; 33]>,
    split: Split,
}

impl Join {
    pub fn run(&self, stdout: Stdout) -> Result<ExitStatus, Failure> {
        let own_key = self.secret_key_file.as_deref();
        let inputs = self.results.iter().map(String::as_str).chain(own_key);
        if inputs.filter(|name| *name == "-").count() > 1 {
            return Err(Failure::Usage(
                "standard input cannot be both the key file and a result, nor two results; put one of them into a file"
                    .to_owned(),
            ));
        }
        let qr = self.qr.read(self.output.is_some() || self.encrypt.is_given(), None)?;
        let mut mined = Vec::new();
        for file in &self.results {
            mined.extend(read_results(file)?);
        }
        for result in &mined {
            self.encrypt.check(result.target.as_ref())?;
        }
        let own = wiping_stack(|| keys::read(own_key, &mut ask_password))?;
        // All of them first: what does not fit leaves nothing behind.
        let joined = wiping_stack(|| {
            let join = |Mined { target, nonce, address, public_key, split }: &Mined| {
                let joined = join(&own, split, target.as_ref(), address, public_key.as_ref()).or_fail()?;
                let (target, variant) = (target.name(), target.variant());
                Ok(Deliverable::Joined { joined, target, variant, nonce: *nonce })
            };
            mined.iter().map(join).collect::<Result<Vec<_>, Failure>>()
        })?;
        let encryption = self.encrypt.open()?;
        if let Some(encryption) = &encryption
            && let Some(caution) = self.encrypt.caution(mined[0].target.as_ref(), encryption)
        {
            warn(&caution.to_string());
        }
        wiping_stack(|| {
            let mut results =
                Results::open(stdout, self.output.as_deref(), self.json, encryption)?.with_codes(qr);
            results.publish(joined)?;
            results.finish()?;
            results.stdout().done(self.json, &NoSummary {})?;
            Ok(ExitStatus::Done)
        })
    }
}

/// The split results of a file, one or more.
fn read_results(file: &str) -> Result<Vec<Mined>, Failure> {
    let name = name(file);
    let bad = |why: String| {
        Failure::Usage(format!(
            "{name} is no split result: {why}. Give the JSON line that a search with --split-key and --json \
             printed, unchanged"
        ))
    };
    let text = input::read(file, LONGEST_RESULT).map_err(bad)?;
    let text = String::from_utf8(text).map_err(|_| bad("it is not text (UTF-8)".to_owned()))?;
    let splits = json_documents(&text).filter(|document| document.get("split").is_some());
    let read = |document| {
        let fields = serde_json::from_value(document).map_err(|error| json_mistake(&error.to_string()))?;
        check(fields)
    };
    let mined = splits.map(read).collect::<Result<Vec<_>, _>>().map_err(bad)?;
    match mined.is_empty() {
        true => Err(bad("it holds no JSON document with \"split\"".to_owned())),
        false => Ok(mined),
    }
}

/// Bytes of a file with a result, at most: a day of progress lines beside it.
const LONGEST_RESULT: u64 = 1 << 24;

/// Checks the form of a result; whether it is true is for the join to see.
fn check(fields: Fields) -> Result<Mined, String> {
    let read_nonce = |text: &String| text.parse::<u64>().map_err(|_| "its nonce is no number".to_owned());
    let nonce = fields.nonce.as_ref().map(read_nonce).transpose()?;
    let target = target_of(&fields, nonce)?;
    target
        .as_ref()
        .decode(&fields.address)
        .map_err(|error| format!("its address cannot be read: {error}"))?;
    let mut split = Split { offset: [0; 32], endo: fields.split.endo, negate: fields.split.negate };
    const_hex::decode_to_slice(&fields.split.offset, &mut split.offset)
        .map_err(|_| "its offset is not 64 hex digits".to_owned())?;
    if split.endo > 2 {
        return Err(format!("its endo is {}; it can be 0, 1 or 2", split.endo));
    }
    let read_public = |hex: String| {
        let mut bytes = [0; 33];
        let read = const_hex::decode_to_slice(&hex, &mut bytes);
        read.map(|()| bytes).map_err(|_| "its public_key is not 66 hex digits".to_owned())
    };
    let public_key = fields.public_key.map(read_public).transpose()?;
    Ok(Mined { target, nonce, address: fields.address, public_key, split })
}

/// What was mined: the type of address of a chain, or with a nonce the contract its account creates.
fn target_of(fields: &Fields, nonce: Option<u64>) -> Result<Arc<dyn KeyTarget>, String> {
    let name = fields.target.as_str();
    let Some(chain) = Chain::find(name) else {
        let names: Vec<&str> = CHAINS.iter().map(|chain| chain.name).collect();
        return Err(format!("its target is {name:?}; known are {}", names.join(", ")));
    };
    match nonce {
        None => {
            chain.target_of(fields.variant.as_deref(), &fields.address).map_err(|error| error.to_string())
        }
        Some(nonce) if name == "eth" => match Contract::new(nonce) {
            Ok(contract) => Ok(Arc::new(contract)),
            Err(error) => Err(format!("its nonce is wrong: {error}")),
        },
        Some(_) => Err(format!("its target is {name:?}, which has no nonce")),
    }
}
