//! What a person writes to say which entry, and how an entry is shown: both follow from the database's table.

use serde::Serialize;
use warpsmith::chain::identify;
use warpsmith::pir::database::Description;
use warpsmith::pir::keyword::{Layout, Shape, tagged_value};
use warpsmith::pir::state;
use warpsmith::store::Kind;

use super::{hex, shown};

/// One thing that is asked for.
pub(super) enum Wanted {
    /// An entry by its number.
    Index(u64),
    /// A record by its key.
    Key { text: String, key: Vec<u8> },
}

/// Reads the bytes of a key.
pub(super) fn parse_key(shape: &Shape, text: &str) -> Result<Vec<u8>, String> {
    match shape.layout {
        Layout::Tagged => hex(text).map_err(|why| format!("this database is read by key: {why}")),
        Layout::State => state_key(text),
        Layout::Address => address_key(text),
    }
}

impl Wanted {
    pub(super) fn parse(description: &Description, text: &str) -> Result<Wanted, String> {
        match &description.keyword {
            Some(shape) => Ok(Wanted::Key { text: text.to_owned(), key: parse_key(shape, text)? }),
            None => {
                let entries = description.params.entries();
                let index = text.parse().ok().filter(|index| *index < entries);
                index.map(Wanted::Index).ok_or_else(|| {
                    let last = entries - 1;
                    format!("'{}' is no entry of this database; give an index from 0 to {last}", shown(text))
                })
            }
        }
    }

    /// The entries to ask for: always as many, whether a key is there or not.
    pub(super) fn places(&self, shape: Option<&Shape>) -> Vec<u64> {
        match (self, shape) {
            (Wanted::Key { key, .. }, Some(shape)) => shape.places_of(key),
            (Wanted::Index(index), _) => vec![*index],
            (Wanted::Key { .. }, None) => Vec::new(),
        }
    }
}

/// `0xADDRESS`, `0xADDRESS:SLOT`, or both as one row of digits.
fn state_key(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || {
        let text = shown(text);
        format!(
            "'{text}' is no key of a state; give an address (0x and 40 hex digits), or ADDRESS:SLOT (up to 64)"
        )
    };
    let (address, slot) = match text.split_once(':') {
        Some((address, slot)) => (address, Some(slot)),
        None => (text, None),
    };
    let mut key = hex(address).map_err(|_| wrong())?;
    if let Some(slot) = slot {
        let digits = slot.strip_prefix("0x").unwrap_or(slot);
        if digits.is_empty() || digits.len() > 64 || key.len() != 20 {
            return Err(wrong());
        }
        key.extend(hex(&format!("{digits:0>64}")).map_err(|_| wrong())?);
    }
    matches!(key.len(), 20 | 52).then_some(key).ok_or_else(wrong)
}

/// Kind and digest of an address.
fn address_key(text: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = text.strip_prefix("hash160:") {
        let digest = hex(digits)?;
        return match digest.len() {
            20 => Ok(key_of(Kind::Hash160, &digest)),
            _ => Err(format!("'{}' has {} bytes; a hash160 has 20", shown(text), digest.len())),
        };
    }
    let address = identify(text).map_err(|error| {
        format!("this database is read by address, and '{}' is none: {error}", shown(text))
    })?;
    let (kind, digest) = Kind::of_address(&address)
        .ok_or_else(|| format!("'{}' is the address of a script; no address database has it", shown(text)))?;
    Ok(key_of(kind, digest.as_bytes()))
}

/// The key of an address in a table.
pub(super) fn key_of(kind: Kind, digest: &[u8]) -> Vec<u8> {
    [&[kind as u8], digest].concat()
}

/// The value of an amount: no longer than it needs to be, and at least a byte; nothing for none.
pub(super) fn amount_bytes(amount: Option<u128>) -> Vec<u8> {
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

/// A result.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct EntryLine {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) found: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
}

impl EntryLine {
    /// What the entries of all places say about what was wanted.
    pub(super) fn new(wanted: &Wanted, shape: Option<&Shape>, entries: &[Vec<u8>]) -> EntryLine {
        let mut line = EntryLine {
            event: "entry",
            index: None,
            key: None,
            found: None,
            value: None,
            amount: None,
            balance: None,
            nonce: None,
            code: None,
        };
        let (text, key, shape) = match (wanted, shape) {
            (Wanted::Key { text, key }, Some(shape)) => (text, key, shape),
            (Wanted::Index(index), _) => {
                line.index = Some(*index);
                line.value = entries.first().map(const_hex::encode);
                return line;
            }
            (Wanted::Key { .. }, None) => unreachable!("keys are read for tables only"),
        };
        line.key = Some(text.clone());
        match shape.layout {
            Layout::Tagged => line.value = tagged_value(key, entries).map(const_hex::encode),
            Layout::Address => {
                let value = tagged_value(key, entries);
                line.amount = value.as_deref().and_then(amount_of).map(|amount| amount.to_string());
                line.found = Some(value.is_some());
                return line;
            }
            Layout::State => match <&state::Address>::try_from(key.as_slice()) {
                Ok(address) => {
                    let account = state::find_account(address, entries);
                    line.balance = account.map(|account| account.balance.to_string());
                    line.nonce = account.map(|account| account.nonce);
                    line.code = account.map(|account| account.code);
                    line.found = Some(account.is_some());
                    return line;
                }
                Err(_) => line.value = state::find_slot(key, entries).map(const_hex::encode),
            },
        }
        line.found = Some(line.value.is_some());
        line
    }

    /// The same for people.
    pub(super) fn text(&self) -> String {
        let name = self.key.clone().unwrap_or_else(|| self.index.unwrap_or_default().to_string());
        let says = match self {
            EntryLine { found: Some(false), .. } => "not there".to_owned(),
            EntryLine { value: Some(value), .. } => value.clone(),
            EntryLine { balance: Some(balance), nonce: Some(nonce), code: Some(code), .. } => {
                let code = if *code == 0 { String::new() } else { format!(", code {code}") };
                format!("balance {balance}, nonce {nonce}{code}")
            }
            EntryLine { amount: Some(amount), .. } => format!("found, {amount}"),
            _ => "found".to_owned(),
        };
        format!("{name}  {says}\n")
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
    fn keys_of_a_state_and_of_addresses() {
        let address = "0x00112233445566778899aabbccddeeff00112233";
        assert_eq!(state_key(address).unwrap().len(), 20);
        let key = state_key(&format!("{address}:0x2a")).unwrap();
        assert_eq!((key.len(), key[51], key[50]), (52, 0x2a, 0));
        assert_eq!(state_key(&const_hex::encode(&key)).unwrap(), key);
        for wrong in
            ["", "0x", "0x00", &format!("{address}:"), &format!("{address}:{}", "0".repeat(65)), "0x00:1"]
        {
            assert!(state_key(wrong).is_err_and(|why| why.contains("ADDRESS:SLOT")), "{wrong}");
        }
        assert_eq!(address_key("1BitcoinEaterAddressDontSendf59kuE").unwrap()[0], Kind::P2pkh as u8);
        assert_eq!(
            address_key(address).unwrap(),
            [&[Kind::Ethereum as u8][..], &state_key(address).unwrap()].concat()
        );
        assert_eq!(address_key(&format!("hash160:{}", "ab".repeat(20))).unwrap()[0], Kind::Hash160 as u8);
        for wrong in ["", "hash160:ab", "1BitcoinEaterAddressDontSendf59kuF", "hello"] {
            assert!(address_key(wrong).is_err(), "{wrong}");
        }
    }
}
