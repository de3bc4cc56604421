//! Whole states in JSON: what `geth dump` prints, with `--iterative` or without, what `anvil --dump-state` writes, and the accounts
//! of a genesis file. They differ in what stands around an account, and in how numbers are written:
//!
//! ```text
//! {"balance": "1", "nonce": 1, "codeHash": "0x...", "storage": {"0x...": "2a"}, "address": "0x..."}     a line for each
//! {"accounts": {"0x...": {"balance": "0x1", "nonce": 1, "code": "0x...", "storage": {"0x0": "0x2a"}}}}  or "alloc", or neither
//! ```
//!
//! One account is in memory at a time, with all its slots: geth writes the address after them.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor,
};
use warpsmith_rms24::keyword::name;
use warpsmith_rms24::table::Take;
use warpsmith_rms24::{Error, Result};
use warpsmith_text::json_mistake;

use super::accounts::{account_records, number};
use super::lines::quoted;
use crate::code::code_hash;
use crate::record::{Address, slot_key, slot_record};

/// The root of a trie with nothing in it.
const NO_SLOTS: &str = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

/// A file of them.
pub struct Dump {
    path: PathBuf,
    /// Records: of accounts, of their codes' hashes, and of their slots.
    pub keys: u64,
    /// Accounts that have slots which the file does not tell.
    pub without_slots: u64,
}

impl Dump {
    /// Whether a file looks like one: a line with a brace is no line of keys and values in hex.
    pub fn is_at(path: &Path) -> bool {
        let mut first = [0; 64];
        let read = File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut first));
        read.is_ok_and(|length| first[..length].trim_ascii_start().starts_with(b"{"))
    }

    /// Reads the whole file once: nothing is built from one that is wrong somewhere. `watch` is called now and then, and may end it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not such a dump, or `watch` fails.
    pub fn survey(path: &Path, watch: &mut dyn FnMut() -> Result<()>) -> Result<Dump> {
        let mut dump = Dump { path: path.to_owned(), keys: 0, without_slots: 0 };
        let (mut keys, mut without_slots, mut told) = (0, 0, 0);
        dump.each_account(&mut |address, account| {
            without_slots += u64::from(account.leaves_out_slots());
            account.each_record(&address, &mut |_, _| {
                keys += 1;
                Ok(())
            })?;
            // Not for each of many small accounts.
            if keys - told >= 1 << 12 || keys == 0 {
                told = keys;
                watch()?;
            }
            Ok(())
        })?;
        (dump.keys, dump.without_slots) = (keys, without_slots);
        Ok(dump)
    }

    /// Hands over all records with their keys.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not such a dump, or `take` fails.
    pub fn each(&self, take: &mut Take<'_>) -> Result<()> {
        self.each_account(&mut |address, account| account.each_record(&address, take))
    }

    fn each_account(&self, take: &mut dyn FnMut(Address, Entry) -> Result<()>) -> Result<()> {
        let file = File::open(&self.path).map_err(|source| Error::Io { path: self.path.clone(), source })?;
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 20, file));
        let mut sink = Sink { take, failed: None };
        while json.end().is_err() {
            let Err(error) = (Document { sink: &mut sink, inner: false }).deserialize(&mut json) else {
                continue;
            };
            if let Some(failed) = sink.failed.take() {
                return Err(failed);
            }
            return Err(match error.is_io() {
                true => Error::Io { path: self.path.clone(), source: error.into() },
                false => Error::Format {
                    what: format!("{}:{}", self.path.display(), error.line()),
                    reason: json_mistake(without_place(&error.to_string())),
                },
            });
        }
        Ok(())
    }

    /// An error with the key that occurs twice, where that is what went wrong.
    pub fn with_key(&self, error: Error) -> Error {
        let Error::SameKey(twice) = error else { return error };
        let mut found = None;
        let searched = self.each(&mut |key, _| {
            if name(key) == twice {
                found = Some(key.to_vec());
                return Err(Error::Stopped);
            }
            Ok(())
        });
        match (searched, found) {
            (Err(Error::Stopped), Some(key)) => {
                let (address, slot) = key.split_at(20.min(key.len()));
                let slot = const_hex::encode(slot);
                let slot = match slot.trim_start_matches('0') {
                    _ if slot.is_empty() => String::new(),
                    "" => ", slot 0x0".to_owned(),
                    digits => format!(", slot 0x{digits}"),
                };
                Error::Format {
                    what: self.path.display().to_string(),
                    reason: format!(
                        "account 0x{}{slot} is there twice; give each once",
                        const_hex::encode(address)
                    ),
                }
            }
            _ => error,
        }
    }
}

/// What serde_json says, without the place, which stands before it already.
fn without_place(text: &str) -> &str {
    text.rsplit_once(" at line ").map_or(text, |(text, _)| text)
}

/// What is said about an account.
#[derive(Default)]
struct Entry {
    balance: Option<u128>,
    nonce: u32,
    /// Of its slots.
    root: Option<String>,
    hash: Option<[u8; 32]>,
    slots: Vec<([u8; 32], [u8; 32])>,
    address: Option<Address>,
    /// The hash of its address, which is all that is known without that.
    key: Option<String>,
}

impl Entry {
    /// Reads a value of this name, if it is one of an account's.
    fn field<'de, A: MapAccess<'de>>(
        &mut self,
        title: &str,
        map: &mut A,
    ) -> std::result::Result<bool, A::Error> {
        match title {
            "balance" => self.balance = Some(map.next_value::<Number>()?.0),
            "nonce" => {
                let Number(nonce) = map.next_value()?;
                self.nonce = nonce
                    .try_into()
                    .map_err(|_| A::Error::custom(format!("nonce {nonce} has more than 32 bits")))?;
            }
            "root" | "storageRoot" | "storageHash" => self.root = Some(map.next_value()?),
            "codeHash" => {
                let hash = map.next_value::<Word>()?.0;
                self.code(hash)?;
            }
            "code" => {
                let text: String = map.next_value()?;
                let code = const_hex::decode(&text).map_err(|_| {
                    A::Error::custom(format!("{} is no code; give hex digits", quoted(&text)))
                })?;
                self.code(code_hash(&code))?;
            }
            "storage" => self.slots = map.next_value::<Slots>()?.0,
            "address" => {
                let text: String = map.next_value()?;
                let address = address(&text);
                self.address = Some(address.ok_or_else(|| no_address(&text))?);
            }
            "key" => self.key = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the hash of its code, which may be told twice.
    fn code<E: serde::de::Error>(&mut self, hash: [u8; 32]) -> std::result::Result<(), E> {
        match self.hash.replace(hash) {
            Some(other) if other != hash => Err(E::custom("codeHash is not the hash of code")),
            _ => Ok(()),
        }
    }

    fn leaves_out_slots(&self) -> bool {
        self.slots.is_empty()
            && self.root.as_deref().is_some_and(|root| root != NO_SLOTS && root != &NO_SLOTS[2..])
    }

    /// Hands over its records. An account with nothing and slots with zero are as if they were not there.
    fn each_record(&self, address: &Address, take: &mut Take<'_>) -> Result<()> {
        let hash = self.hash.filter(|hash| *hash != [0; 32] && *hash != code_hash(&[]));
        let balance = self.balance.unwrap_or(0);
        if balance != 0 || self.nonce != 0 || hash.is_some() {
            for (key, record) in account_records(address, balance, self.nonce, hash) {
                take(&key, &record)?;
            }
        }
        for (slot, value) in self.slots.iter().filter(|(_, value)| *value != [0; 32]) {
            let key = slot_key(address, slot);
            take(&key, &slot_record(&key, value))?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(json: D) -> std::result::Result<Entry, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an account: an object with balance, nonce, code or codeHash, and storage")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Entry, A::Error> {
                let mut entry = Entry::default();
                while let Some(title) = map.next_key::<String>()? {
                    if !entry.field(&title, &mut map)? {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(entry)
            }
        }
        json.deserialize_map(Fields)
    }
}

/// Where accounts go, and why one was not taken.
struct Sink<'a> {
    take: &'a mut dyn FnMut(Address, Entry) -> Result<()>,
    failed: Option<Error>,
}

impl Sink<'_> {
    fn take<E: serde::de::Error>(&mut self, address: Address, entry: Entry) -> std::result::Result<(), E> {
        (self.take)(address, entry).map_err(|error| {
            self.failed = Some(error);
            E::custom("it was not taken")
        })
    }
}

/// A document, or the object of accounts in one.
struct Document<'a, 'b> {
    sink: &'a mut Sink<'b>,
    inner: bool,
}

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object: an account with its address, or accounts by their addresses")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let Document { sink, inner } = self;
        let mut entry = Entry::default();
        while let Some(title) = map.next_key::<String>()? {
            match (&title[..], address(&title)) {
                (_, Some(address)) => sink.take(address, map.next_value()?)?,
                (_, None) if inner && title.starts_with("pre(") => return Err(A::Error::custom(UNKNOWN)),
                (_, None) if inner => return Err(no_address(&title)),
                ("accounts" | "alloc", None) => {
                    map.next_value_seed(Document { sink: &mut *sink, inner: true })?;
                }
                ("next", None) => {
                    if map.next_value::<Option<IgnoredAny>>()?.is_some() {
                        return Err(A::Error::custom(
                            "the dump goes on elsewhere (next); give a whole one, without --limit",
                        ));
                    }
                }
                (title, None) => {
                    if !entry.field(title, &mut map)? {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
        }
        match (entry.address, entry.balance.is_some() || entry.key.is_some()) {
            (Some(address), _) => sink.take(address, entry),
            (None, true) => Err(A::Error::custom(UNKNOWN)),
            // The root of a dump in lines; what else a genesis file says.
            (None, false) => Ok(()),
        }
    }
}

const UNKNOWN: &str = "an account without its address, of which the node knows the hash only; geth keeps addresses when it runs \
                       with --cache.preimages from the first block on";

fn no_address<E: serde::de::Error>(text: &str) -> E {
    E::custom(format!("{} is no address; give 40 hex digits", quoted(text)))
}

fn address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() == 40 { const_hex::decode(digits).ok()?.try_into().ok() } else { None }
}

/// A number as such, or in a text: in digits, or in hex after 0x.
struct Number(u128);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(json: D) -> std::result::Result<Number, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number below 2^128")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> std::result::Result<Number, E> {
                Ok(Number(value.into()))
            }

            fn visit_u128<E: serde::de::Error>(self, value: u128) -> std::result::Result<Number, E> {
                Ok(Number(value))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Number, E> {
                let value = number(text).filter(|_| !text.is_empty());
                value.map(Number).ok_or_else(|| E::invalid_value(Unexpected::Other(&quoted(text)), &self))
            }
        }
        json.deserialize_any(Digits)
    }
}

/// Thirty-two bytes in hex, which may be written without their leading zeros, and without 0x.
#[derive(PartialEq, Eq)]
struct Word([u8; 32]);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(json: D) -> std::result::Result<Word, D::Error> {
        let text = String::deserialize(json)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let mut word = [0; 32];
        let padded = format!("{digits:0>64}");
        match const_hex::decode_to_slice(&padded, &mut word) {
            Ok(()) if !digits.starts_with("0x") => Ok(Word(word)),
            _ => Err(D::Error::custom(format!(
                "{} is no word of 32 bytes; give up to 64 hex digits",
                quoted(&text)
            ))),
        }
    }
}

/// Slots and their values.
struct Slots(Vec<([u8; 32], [u8; 32])>);

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(json: D) -> std::result::Result<Slots, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Slots;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of slots and their values")
            }

            fn visit_unit<E>(self) -> std::result::Result<Slots, E> {
                Ok(Slots(Vec::new()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Slots, A::Error> {
                let mut slots = Vec::new();
                while let Some((Word(slot), Word(value))) = map.next_entry()? {
                    slots.push((slot, value));
                }
                Ok(Slots(slots))
            }
        }
        json.deserialize_any(Pairs)
    }
}
