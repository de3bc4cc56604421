//! What a person writes to say which entry, and what the entries say: both follow from the database's table.

use sha2::{Digest as _, Sha256};
use warpsmith_chain::coin::output_script;
use warpsmith_chain::{Address, AddressKind, identify};
use warpsmith_rms24::database::Description;
use warpsmith_rms24::keyword::{Layout, TableShape, chunked_value, tagged_value};
use warpsmith_text::Shown;

use crate::layout::{ADDRESS, SCRIPT};
use crate::record::{self, Account, find_account, find_slot};

/// A text that is no index, key or value of a database, and what to give instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub(crate) String);

impl From<String> for KeyError {
    fn from(reason: String) -> KeyError {
        KeyError(reason)
    }
}

impl From<&str> for KeyError {
    fn from(reason: &str) -> KeyError {
        KeyError(reason.to_owned())
    }
}

/// Why the answer to a query cannot be known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(pub(crate) String);

impl From<String> for NoAnswer {
    fn from(reason: String) -> NoAnswer {
        NoAnswer(reason)
    }
}

impl From<&str> for NoAnswer {
    fn from(reason: &str) -> NoAnswer {
        NoAnswer(reason.to_owned())
    }
}

/// One thing that is asked for.
///
/// See [`parse_key`] for how keys are written, and [`Library`](crate::look_up::Library).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// An entry by its number.
    Index(u64),
    /// A record by its key.
    Key {
        /// As it was written.
        text: String,
        /// As the table has it.
        key: Vec<u8>,
    },
}

impl Query {
    /// Reads an index, or a key as this database has keys.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and what to write instead.
    pub fn parse(description: &Description, text: &str) -> Result<Query, KeyError> {
        match &description.keyword {
            Some(shape) => Ok(Query::Key { text: text.to_owned(), key: parse_key(shape, text)? }),
            None => {
                let entries = description.params.entries();
                let index = text.parse().ok().filter(|index| *index < entries);
                index.map(Query::Index).ok_or_else(|| {
                    let last = entries - 1;
                    KeyError(format!(
                        "'{}' is no entry of this database; give an index from 0 to {last}",
                        Shown(text)
                    ))
                })
            }
        }
    }

    /// The entries to ask for: always as many, whether a key is there or not.
    pub(super) fn places(&self, shape: Option<&TableShape>) -> Vec<u64> {
        match (self, shape) {
            (Query::Key { key, .. }, Some(shape)) => shape.look_up(key),
            (Query::Index(index), _) => vec![*index],
            (Query::Key { .. }, None) => Vec::new(),
        }
    }
}

/// What a database says. None: the key is not there.
///
/// ```
/// use warpsmith_eth_state::look_up::Answer;
///
/// assert!(Answer::Address(Some(Some(5000))).is_there());
/// assert!(Answer::Address(Some(None)).is_there(), "the database has no amounts");
/// assert!(!Answer::Value(None).is_there());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The entry with the index asked for.
    Entry(Vec<u8>),
    /// The value of a key, or of a storage slot of a contract.
    Value(Option<Vec<u8>>),
    /// An address that is there, with the amount it holds in the smallest unit, where the database has amounts.
    Address(Option<Option<u128>>),
    /// An account of Ethereum's state.
    Account(Option<Account>),
    /// What the coins of an output script are worth, in satoshi, and how many they are.
    Coins(Option<(u64, u32)>),
}

impl Answer {
    /// What the entries of all places of a query say, or why that makes no sense.
    pub(super) fn new(
        query: &Query,
        shape: Option<&TableShape>,
        entries: &[Vec<u8>],
    ) -> Result<Answer, NoAnswer> {
        let (key, shape) = match (query, shape) {
            (Query::Key { key, .. }, Some(shape)) => (key, shape),
            (Query::Index(_), _) => return Ok(Answer::Entry(entries.first().cloned().unwrap_or_default())),
            (Query::Key { .. }, None) => unreachable!("keys are read for tables only"),
        };
        Ok(match shape.layout {
            Layout::Tagged => Answer::Value(tagged_value(key, entries)),
            Layout::Chunked(_) | Layout::Text(_) => {
                let value = chunked_value(shape, key, entries);
                Answer::Value(value.map_err(|error| format!("the server's answer is wrong: {error}"))?)
            }
            SCRIPT => Answer::Coins(tagged_value(key, entries).as_deref().and_then(coins_of)),
            ADDRESS => Answer::Address(tagged_value(key, entries).as_deref().map(amount_of)),
            Layout::Records => match <&record::Address>::try_from(key.as_slice()) {
                Ok(address) => Answer::Account(find_account(address, entries)),
                Err(_) => Answer::Value(find_slot(key, entries).map(|value| value.to_vec())),
            },
            Layout::Defined(number) => return Err(unknown(number).into()),
        })
    }

    /// Whether what was asked for is there.
    pub fn is_there(&self) -> bool {
        match self {
            Answer::Entry(_) => true,
            Answer::Value(value) => value.is_some(),
            Answer::Address(amount) => amount.is_some(),
            Answer::Account(account) => account.is_some(),
            Answer::Coins(coins) => coins.is_some(),
        }
    }
}

/// Reads the bytes of a key, as tables of this layout write keys.
///
/// # Errors
///
/// What was given, and what to give instead.
///
/// ```
/// use warpsmith_eth_state::ADDRESS;
/// use warpsmith_eth_state::look_up::parse_key;
/// use warpsmith_rms24::keyword::TableShape;
///
/// let addresses = TableShape::new(1000, 3, ADDRESS)?;
/// let key = parse_key(&addresses, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH")?;
/// assert_eq!(key.len(), 21, "its kind and its digest");
/// assert!(parse_key(&addresses, "bob").unwrap_err().to_string().contains("read by address"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse_key(shape: &TableShape, text: &str) -> Result<Vec<u8>, KeyError> {
    match shape.layout {
        Layout::Tagged | Layout::Chunked(_) => {
            parse_hex(text).map_err(|why| KeyError(format!("this database is read by key: {why}")))
        }
        Layout::Text(_) => match text.is_empty() {
            false => Ok(text.as_bytes().to_vec()),
            true => Err("this database is read by text, and nothing is none; give a key".into()),
        },
        Layout::Records => state_key(text),
        SCRIPT => script_key(text),
        ADDRESS => address_key(text),
        Layout::Defined(number) => Err(unknown(number).into()),
    }
}

fn unknown(number: u8) -> String {
    format!("layout {number} of keys and values is not known")
}

/// `0xADDRESS`, `0xADDRESS:SLOT`, or both as one row of digits.
fn state_key(text: &str) -> Result<Vec<u8>, KeyError> {
    let wrong = || {
        let text = Shown(text);
        KeyError(format!(
            "'{text}' is no key of a state; give an address (0x and 40 hex digits), or ADDRESS:SLOT (up to 64)"
        ))
    };
    let (address, slot) = match text.split_once(':') {
        Some((address, slot)) => (address, Some(slot)),
        None => (text, None),
    };
    let mut key = parse_hex(address).map_err(|_| wrong())?;
    if let Some(slot) = slot {
        let digits = slot.strip_prefix("0x").unwrap_or(slot);
        if digits.is_empty() || digits.len() > 64 || key.len() != 20 {
            return Err(wrong());
        }
        key.extend(parse_hex(&format!("{digits:0>64}")).map_err(|_| wrong())?);
    }
    matches!(key.len(), 20 | 52).then_some(key).ok_or_else(wrong)
}

/// Kind and digest of an address.
fn address_key(text: &str) -> Result<Vec<u8>, KeyError> {
    let address = identify(text).map_err(|error| {
        format!("this database is read by address, and '{}' is none: {error}", Shown(text))
    })?;
    match address {
        Address::Key(kind, digest) => Ok(key_of(kind, digest.as_bytes())),
        Address::Script(_) => {
            Err(format!("'{}' is the address of a script; no address database has it", Shown(text)).into())
        }
    }
}

/// The hash of an output script: that of an address, or one in hex.
fn script_key(text: &str) -> Result<Vec<u8>, KeyError> {
    let script = match text.strip_prefix("script:") {
        Some(digits) => parse_hex(digits).ok(),
        None => output_script(text),
    };
    let script = script.ok_or_else(|| {
        let text = Shown(text);
        format!("'{text}' is no address of Bitcoin; give one, or script: and an output script in hex")
    })?;
    Ok(Sha256::digest(script).to_vec())
}

/// The value of an output script's coins: what they are worth, and how many they are.
///
/// ```
/// use warpsmith_eth_state::look_up::coins_bytes;
///
/// assert_eq!(coins_bytes(258, 3), [2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
/// ```
pub fn coins_bytes(satoshi: u64, coins: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&satoshi.to_le_bytes());
    bytes[8..].copy_from_slice(&coins.to_le_bytes());
    bytes
}

fn coins_of(value: &[u8]) -> Option<(u64, u32)> {
    let (satoshi, coins) = value.split_first_chunk()?;
    Some((u64::from_le_bytes(*satoshi), u32::from_le_bytes(coins.try_into().ok()?)))
}

/// The key of an address in a table.
///
/// ```
/// use warpsmith_chain::AddressKind;
/// use warpsmith_eth_state::look_up::key_of;
///
/// assert_eq!(key_of(AddressKind::P2PKH, &[0xab; 20])[1..], [0xab; 20]);
/// ```
pub fn key_of(kind: AddressKind, digest: &[u8]) -> Vec<u8> {
    [&[kind.byte()], digest].concat()
}

/// The value of an amount: no longer than it needs to be, and at least a byte; nothing for none.
///
/// ```
/// use warpsmith_eth_state::look_up::amount_bytes;
///
/// assert_eq!(amount_bytes(Some(0x1234)), [0x34, 0x12]);
/// assert_eq!(amount_bytes(Some(0)), [0]);
/// assert!(amount_bytes(None).is_empty());
/// ```
pub fn amount_bytes(amount: Option<u128>) -> Vec<u8> {
    amount.map_or(Vec::new(), |amount| {
        let length = (16 - amount.leading_zeros() as usize / 8).max(1);
        amount.to_le_bytes()[..length].to_vec()
    })
}

fn amount_of(value: &[u8]) -> Option<u128> {
    (1..=16).contains(&value.len()).then(|| {
        let mut bytes = [0; 16];
        bytes[..value.len()].copy_from_slice(value);
        u128::from_le_bytes(bytes)
    })
}

/// Reads hex digits, with or without `0x`.
///
/// # Errors
///
/// What was given, and what to give instead.
///
/// ```
/// use warpsmith_eth_state::look_up::parse_hex;
///
/// assert_eq!(parse_hex("0xcafe"), Ok(vec![0xca, 0xfe]));
/// assert!(parse_hex("caf").is_err());
/// ```
pub fn parse_hex(text: &str) -> Result<Vec<u8>, KeyError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match const_hex::decode(digits) {
        Ok(bytes) if !bytes.is_empty() => Ok(bytes),
        _ => {
            Err(format!("'{}' is not hex; give an even number of the digits 0-9 and a-f", Shown(text)).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_come_back() {
        for amount in [0, 1, 255, 256, u128::from(u64::MAX), u128::MAX] {
            assert_eq!(amount_of(&amount_bytes(Some(amount))), Some(amount));
        }
        assert_eq!(
            (amount_bytes(None).len(), amount_bytes(Some(0)).len(), amount_bytes(Some(256)).len()),
            (0, 1, 2)
        );
        assert_eq!(amount_of(&[]), None);
        assert_eq!(amount_of(&[0; 17]), None);
    }

    #[test]
    fn scripts_are_known_by_their_hash_however_they_are_written() {
        let address = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
        let script = "script:0014751e76e8199196d454941c45d1b3a323f1433bd6";
        // By sha256sum, of these 22 bytes.
        let hash = "8838f796bf4970b148779c05b74b8c49515b322d04035f7faa5d9b2375df2396";
        assert_eq!(const_hex::encode(script_key(address).unwrap()), hash);
        assert_eq!(script_key(script), script_key(address));
        for wrong in ["", "bob", "script:", "script:0", "0x00000000219ab540356cbb839cbe05303d7705fa"] {
            assert!(
                script_key(wrong).is_err_and(|why| why.to_string().contains("script: and an output script")),
                "{wrong}"
            );
        }
        assert_eq!(coins_of(&coins_bytes(21_000_000 * 100_000_000, 7)), Some((2_100_000_000_000_000, 7)));
        assert_eq!((coins_of(&[0; 11]), coins_of(&[0; 13])), (None, None));
    }

    #[test]
    fn keys_of_a_state_and_of_addresses() {
        let address = "0x00112233445566778899aabbccddeeff00112233";
        assert_eq!(state_key(address).unwrap().len(), 20);
        let key = state_key(&format!("{address}:0x2a")).unwrap();
        assert_eq!((key.len(), key[51], key[50]), (52, 0x2a, 0));
        assert_eq!(state_key(&const_hex::encode(&key)).unwrap(), key);
        for wrong in
            ["", "0x", "0x00", &format!("{address}:"), &format!("{address}:{}", "0".repeat(65)), "0x00:1"]
        {
            assert!(state_key(wrong).is_err_and(|why| why.to_string().contains("ADDRESS:SLOT")), "{wrong}");
        }
        assert_eq!(address_key("1BitcoinEaterAddressDontSendf59kuE").unwrap()[0], AddressKind::P2PKH.byte());
        assert_eq!(
            address_key(address).unwrap(),
            [&[AddressKind::ETHEREUM.byte()][..], &state_key(address).unwrap()].concat()
        );
        assert_eq!(
            address_key(&format!("hash160:{}", "ab".repeat(20))).unwrap()[0],
            AddressKind::HASH160.byte()
        );
        for wrong in ["", "hash160:ab", "1BitcoinEaterAddressDontSendf59kuF", "hello"] {
            assert!(address_key(wrong).is_err(), "{wrong}");
        }
    }
}
