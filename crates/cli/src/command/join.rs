//! `warpsmith join`: the final private key, from the user's own key and a split result.
//!
//! SEC: the own key enters by file or standard input, is held in buffers that are erased, and is in no message.
//! The result comes from elsewhere and is believed in nothing: the library shows a key only if it leads to the
//! very address promised. An output file is opened after that, so a result that does not fit leaves none.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use warpsmith::chain::coin::decode_wif;
use warpsmith::chain::ethereum::Contract;
use warpsmith::chain::{CHAINS, Chain, KeyTarget, nostr};
use warpsmith::keys::{Secret, Split, join, wiping_stack};
use zeroize::Zeroizing;

use crate::ending::{Ending, Failure};
use crate::input::{self, name};
use crate::results::{Results, SplitFields};
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith npub cafe --split-key 02f9... --json > result.json      on the machine that mines
  warpsmith join --secret-key-file own.key result.json              on your own machine
  warpsmith join --secret-key-file - result.json --output keys.txt  the key by standard input

The key file holds 64 hex digits, an nsec, or a Bitcoin key in wallet import format (WIF).";

/// Make the private key of a split result
///
/// Joins your own private key with what was mined from your public key (--split-key), and shows the final key only
/// if it leads to exactly the address promised.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Join {
    /// The file with your own private key: 64 hex digits, an nsec or a WIF key (- for standard input)
    #[arg(long, value_name = "FILE")]
    secret_key_file: String,

    /// The result of the search: its JSON line, alone or among others (- for standard input)
    #[arg(value_name = "RESULT")]
    result: String,

    /// Append the key to FILE (created with mode 0600) instead of showing it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The fields of a match line that matter here.
#[derive(Deserialize)]
struct Fields {
    target: String,
    #[serde(rename = "type")]
    variant: Option<String>,
    address: String,
    public_key: Option<String>,
    nonce: Option<u64>,
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
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
        if self.secret_key_file == "-" && self.result == "-" {
            let text =
                "standard input cannot be both the key file and the result; put one of them into a file";
            return Err(Failure::Usage(text.to_owned()));
        }
        let mined = self.read_result()?;
        let own = wiping_stack(|| self.read_key())?;
        let Mined { target, nonce, address, public_key, split } = &mined;
        wiping_stack(|| {
            let joined = join(&own, split, target.as_ref(), address, public_key.as_ref())?;
            let mut results = Results::open(stdout, self.output.as_deref(), self.json)?;
            results.publish_joined(target.as_ref(), *nonce, &joined)?;
            Ok(Ending::Done)
        })
    }

    fn read_key(&self) -> Result<Secret, Failure> {
        let name = name(&self.secret_key_file);
        let bad = |why: String| {
            Failure::Usage(format!(
                "the key in {name} cannot be used: {why}. The file must hold your own private key and nothing else: \
                 64 hex digits, an nsec, or a WIF key"
            ))
        };
        let content = match self.secret_key_file.as_str() {
            "-" => standard_input().map_err(|error| bad(error.to_string()))?,
            path => {
                warpsmith_files::read_secret(Path::new(path), LONGEST_KEY).map_err(|error| match error {
                    warpsmith_files::Error::Unsafe { .. } => Failure::Other(format!(
                        "--secret-key-file: {error}. A key that others can read or replace is not used"
                    )),
                    warpsmith_files::Error::TooLong { .. } => bad("it is far longer than a key".to_owned()),
                    error => bad(error.to_string()),
                })?
            }
        };
        let text = std::str::from_utf8(&content).map_err(|_| bad("it is not text".to_owned()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
        let bytes = match text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("nsec")) {
            true => nostr::decode_secret(text).map_err(|error| bad(error.to_string()))?,
            // Hex has 64 digits, with 0x 66: a WIF key is shorter, and rarely of hex digits alone.
            false if WIF_LENGTHS.contains(&text.len()) && !is_hex(text) => {
                decode_wif(text).map_err(|error| bad(error.to_string()))?.secret
            }
            false => hex_key(text).map_err(bad)?,
        };
        Secret::from_bytes(&bytes).ok_or_else(|| {
            bad("the number is 0 or not below the order of secp256k1, so no public key has it".to_owned())
        })
    }

    fn read_result(&self) -> Result<Mined, Failure> {
        let name = name(&self.result);
        let bad = |why: String| {
            Failure::Usage(format!(
                "{name} is no split result: {why}. Give the JSON line that a search with --split-key and --json \
                 printed, unchanged"
            ))
        };
        let text = input::read(&self.result, LONGEST_RESULT).map_err(bad)?;
        let text = String::from_utf8(text).map_err(|_| bad("it is not text (UTF-8)".to_owned()))?;
        let mut splits = documents(&text).filter(|document| document.get("split").is_some());
        let document =
            splits.next().ok_or_else(|| bad("it holds no JSON document with \"split\"".to_owned()))?;
        let others = splits.count();
        if others > 0 {
            return Err(Failure::Usage(format!(
                "{name} holds {} split results; put the one you want into a file of its own and give that",
                others + 1
            )));
        }
        let fields = serde_json::from_value(document).map_err(|error| bad(error.to_string()))?;
        check(fields).map_err(bad)
    }
}

/// Bytes of a key file, at most: the longest form of a key has a tenth of it.
const LONGEST_KEY: u64 = 1023;

/// Bytes of a file with a result, at most: a day of progress lines beside it.
const LONGEST_RESULT: u64 = 1 << 24;

/// A key from standard input, past the library's buffer, which would keep a copy.
fn standard_input() -> io::Result<Zeroizing<Vec<u8>>> {
    let source = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Large enough from the start: a buffer that grows leaves copies behind.
    let mut content = Zeroizing::new(Vec::with_capacity(LONGEST_KEY as usize + 32));
    source.take(LONGEST_KEY + 1).read_to_end(&mut content)?;
    match content.len() as u64 > LONGEST_KEY {
        true => Err(io::Error::other("it is far longer than a key")),
        false => Ok(content),
    }
}

/// Checks the form of a result; whether it is true is for the join to see.
fn check(fields: Fields) -> Result<Mined, String> {
    let target = target_of(&fields)?;
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
    Ok(Mined { target, nonce: fields.nonce, address: fields.address, public_key, split })
}

/// What was mined: the type of address of a chain, or with a nonce the contract its account creates.
fn target_of(fields: &Fields) -> Result<Arc<dyn KeyTarget>, String> {
    let name = fields.target.as_str();
    let Some(chain) = Chain::find(name) else {
        let names: Vec<&str> = CHAINS.iter().map(|chain| chain.name).collect();
        return Err(format!("its target is {name:?}; known are {}", names.join(", ")));
    };
    match fields.nonce {
        None => chain.target_of(fields.variant.as_deref(), &fields.address),
        Some(nonce) if name == "eth" => match Contract::new(nonce) {
            Ok(contract) => Ok(Arc::new(contract)),
            Err(error) => Err(format!("its nonce is wrong: {error}")),
        },
        Some(_) => Err(format!("its target is {name:?}, which has no nonce")),
    }
}

/// Every JSON object in a text, whatever stands between them: lines, indented documents, or the labelled lines a
/// search prints without `--json`.
fn documents(text: &str) -> impl Iterator<Item = Value> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(start) = rest.find('{') {
            rest = &rest[start..];
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(document)) = stream.next() {
                rest = &rest[stream.byte_offset()..];
                return Some(document);
            }
            rest = &rest[1..];
        }
        None
    })
}

/// A key in wallet import format has so many characters: uncompressed, compressed.
const WIF_LENGTHS: [usize; 2] = [51, 52];

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A key of 64 hex digits. SEC: what is wrong is said without repeating any of it.
fn hex_key(text: &str) -> Result<Zeroizing<[u8; 32]>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() {
        return Err("it is empty".to_owned());
    }
    if !is_hex(digits) {
        return Err("it holds something that is neither an nsec, nor a WIF key, nor hex digits".to_owned());
    }
    let mut bytes = Zeroizing::new([0; 32]);
    const_hex::decode_to_slice(digits, bytes.as_mut_slice())
        .map_err(|_| format!("it has {} hex digits", digits.len()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_in_every_form() {
        let text = "pattern  /q{2}/\nsplit    {\"a\":{\"b\":1}}\n{\n  \"c\": 2\n}{\"d\":3} {\"broken\":";
        let found: Vec<String> = documents(text).map(|document| document.to_string()).collect();
        assert_eq!(found, [r#"{"a":{"b":1}}"#, r#"{"c":2}"#, r#"{"d":3}"#]);
    }
}
