//! Chains of the Cosmos kind: hash160 of the compressed key in bech32, under a prefix of the chain's own (`cosmos`, `osmo`).
//!
//! One key has the same 20 bytes under every prefix, so databases keep those alone. Vectors are in `vectors.json`.

use std::sync::{Arc, Mutex, PoisonError};

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;

use crate::text::{Writing, bech32 as symbols};
use crate::{AddressKind, Chain, Digest, Form, KeyTarget, PlainAccount, Target as _};

/// The prefix of the Cosmos Hub.
pub const HUB: &str = "cosmos";

/// Chains whose accounts are made as Ethereum's are, so that a hash160 under their prefix is nobody's.
const BY_KECCAK: &[&str] = &["canto", "crc", "dym", "ethm", "evmos", "haqq", "inj", "zeta"];

/// Prefixes of bech32 that other chains have.
const OTHERS: &[&str] = &[
    "bc",
    "tb",
    "bcrt",
    "ltc",
    "tltc",
    "rltc",
    "npub",
    "nsec",
    "note",
    "nprofile",
    "nevent",
    "naddr",
    "nrelay",
    "ncryptsec",
];

/// Symbols of an address after the separator: 160 bits and the checksum.
const BODY: usize = 32 + symbols::CHECKSUM;

/// A prefix that no such chain has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// Not a word.
    #[error(
        "a prefix is 1 to 20 lower-case letters, like cosmos, osmo or celestia: what stands before the 1 of an address"
    )]
    Form,
    /// Accounts made in another way.
    #[error(
        "accounts of {0} are made with Keccak-256, as Ethereum's are, and not with hash160: search with `warpsmith eth`; \
         the account's 20 bytes are the same, and its key is too"
    )]
    Keccak(&'static str),
    /// Not of accounts.
    #[error("{0} is a prefix of another chain, or of something that is no account of a key")]
    Other(String),
}

/// Accounts under this prefix.
pub fn cosmos(prefix: &str) -> Result<PlainAccount, PrefixError> {
    if !(1..=20).contains(&prefix.len()) || !prefix.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(PrefixError::Form);
    }
    if let Some(known) = BY_KECCAK.iter().find(|known| **known == prefix) {
        return Err(PrefixError::Keccak(known));
    }
    // Consensus keys are of another curve, and public keys are no addresses.
    let is_other = prefix.ends_with("valcons") || prefix.ends_with("pub");
    if is_other || OTHERS.contains(&prefix) {
        return Err(PrefixError::Other(prefix.to_owned()));
    }
    let importing = "Keplr imports it as a private key, these 64 hex digits (import an existing wallet, private key); one key has an \
                     address on every such chain";
    let writing = Writing::Bech32 { head: kept(prefix) };
    Ok(PlainAccount { chain: HUB, form: Form::Hash160, writing, importing })
}

/// Prefix and separator, kept for as long as the program runs: once for each prefix.
fn kept(prefix: &str) -> &'static str {
    static HEADS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut heads = HEADS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |head: &&&'static str| head.strip_suffix('1') == Some(prefix);
    if let Some(head) = heads.iter().find(is_it) {
        return head;
    }
    let head: &'static str = Box::leak(format!("{prefix}1").into_boxed_str());
    heads.push(head);
    head
}

/// What a text says that may be an address of such a chain, whatever its prefix.
pub(crate) enum Told {
    /// The account.
    Account(Digest),
    /// It is not as it was written.
    Wrong,
}

/// Looks at a text: `None` for what does not look like an address of such a chain.
pub(crate) fn tell(text: &str) -> Option<Told> {
    let (prefix, body) = text.rsplit_once('1')?;
    let is_symbol = |byte: u8| symbols::ALPHABET.as_bytes().contains(&byte.to_ascii_lowercase());
    if body.len() != BODY || !body.bytes().all(is_symbol) || cosmos(&prefix.to_ascii_lowercase()).is_err() {
        return None;
    }
    let Ok(read) = CheckedHrpstring::new::<Bech32>(text) else { return Some(Told::Wrong) };
    let mut bytes = [0; 20];
    bytes.iter_mut().zip(read.byte_iter()).for_each(|(to, byte)| *to = byte);
    Some(Told::Account(Digest::new(&bytes)))
}

/// The accounts that an address is of.
fn of_address(text: &str) -> Option<Arc<dyn KeyTarget>> {
    let account = cosmos(&text.rsplit_once('1')?.0.to_ascii_lowercase()).ok()?;
    account.decode(text).is_ok().then(|| Arc::new(account) as Arc<dyn KeyTarget>)
}

/// The chain's row.
pub(crate) fn chain() -> Chain {
    let hub = cosmos(HUB).expect("a prefix");
    Chain {
        name: HUB,
        title: "Cosmos",
        sought: "account of the Cosmos Hub or another chain of its kind".to_owned(),
        example: "cafe",
        shows: "the address and its private key in hex",
        coin: None,
        addresses: vec![hub.listed(AddressKind::COSMOS.byte())],
        of_address: Some(of_address),
    }
}

#[cfg(test)]
mod tests;
