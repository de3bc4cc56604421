//! A list of changes: one per line, an index or a key and its new value.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use warpsmith_rms24::keyword::{Layout, Name, TableShape};
use warpsmith_rms24::updates::{Change, Live, entries_of_changes_moving};
use warpsmith_rms24::{Error, Result};

use super::lines::{Wrong, each_line, each_whole_line, quoted, split_text};
use crate::layout::{ADDRESS, SCRIPT, STATE};
use crate::look_up::{KeyError, amount_bytes, coins_bytes, parse_hex, parse_key};
use crate::record::{Account, Address, account_record, slot_record};

/// The word that takes a key out.
const GONE: &str = "-";

/// What the lines of a list say.
pub enum Listed {
    /// Entries by their index, and what they become.
    Entries(Vec<(u64, Vec<u8>)>),
    /// Keys and what becomes of them.
    Keys(Keys),
}

/// Changes of keys, each with the line it came from.
pub struct Keys {
    /// The changes, in the order of the list.
    pub changes: Vec<Change>,
    lines: Vec<u64>,
    list: PathBuf,
}

/// Reads a list.
///
/// # Errors
///
/// When it cannot be read, or a line is wrong.
pub fn read(live: &Live, name: &Path, from: &mut dyn BufRead) -> Result<Listed> {
    match live.base().description().keyword.clone() {
        None => by_index(live, name, from).map(Listed::Entries),
        Some(shape) => by_key(&shape, name, from).map(Listed::Keys),
    }
}

impl Keys {
    /// What they make of which entries, in the table as it is by now.
    ///
    /// # Errors
    ///
    /// As for [`entries_of_changes_moving`], with the line of a change in the place of its number.
    pub fn entries(
        &self,
        live: &Live,
        name_of: &dyn Fn(&[u8]) -> Option<Name>,
    ) -> Result<Vec<(u64, Vec<u8>)>> {
        let shape = live.base().description().keyword.clone();
        let shape = shape.expect("keys are only read for a table");
        entries_of_changes_moving(live, &shape, &self.changes, name_of).map_err(|error| match error {
            // The library counts changes, a person lines.
            Error::Format { what, reason } => {
                let number = what.strip_prefix("change ").and_then(|number| number.parse::<usize>().ok());
                match number.filter(|number| *number < self.lines.len()) {
                    Some(number) => Error::Format { what: self.place(number), reason },
                    None => Error::Format { what, reason },
                }
            }
            other => other,
        })
    }

    /// Where a change stands in the list.
    pub fn place(&self, number: usize) -> String {
        format!("{}:{}", self.list.display(), self.lines[number])
    }
}

fn by_index(live: &Live, name: &Path, from: &mut dyn BufRead) -> Result<Vec<(u64, Vec<u8>)>> {
    let (entries, size) = (live.params().entries(), live.params().entry_size());
    let mut values = Vec::new();
    each_line(name, from, &mut |line| {
        let [index, value] = line.words()[..] else {
            return Err(Wrong::Here("a line is an index and the entry's new value in hex".into()));
        };
        let index = index.parse().ok().filter(|index| *index < entries).ok_or_else(|| {
            Wrong::Here(format!("{} is no entry; indices go from 0 to {}", quoted(index), entries - 1))
        })?;
        let value = parse_hex(value)?;
        if value.len() != size {
            return Err(Wrong::Here(format!("{} bytes; an entry has {size}", value.len())));
        }
        values.push((index, value));
        Ok(())
    })?;
    Ok(values)
}

fn by_key(shape: &TableShape, name: &Path, from: &mut dyn BufRead) -> Result<Keys> {
    let (mut changes, mut lines) = (Vec::new(), Vec::new());
    let is_text = matches!(shape.layout, Layout::Text(_));
    let each = if is_text { each_whole_line } else { each_line };
    each(name, from, &mut |line| {
        let change = if is_text {
            // Any value may be meant, so a key alone is one that goes.
            let (key, value) = split_text(line.text).map_err(Wrong::Here)?;
            (key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()))
        } else {
            parse_change(shape, &line.words())?
        };
        changes.push(change as Change);
        lines.push(line.number);
        Ok(())
    })?;
    Ok(Keys { changes, lines, list: name.to_owned() })
}

/// A key and its new value, or - where it goes.
fn parse_change(shape: &TableShape, words: &[&str]) -> std::result::Result<Change, KeyError> {
    let [key, value] = words[..] else {
        let form = match shape.layout {
            STATE => "ADDRESS BALANCE,NONCE,CODE, or ADDRESS:SLOT VALUE",
            ADDRESS => "ADDRESS AMOUNT",
            SCRIPT => "ADDRESS AMOUNT,COINS",
            _ => "KEY VALUE, both in hex",
        };
        return Err(KeyError(format!("a line is {form}; or a key and {GONE} to take it out")));
    };
    let key = parse_key(shape, key)?;
    let value = if value == GONE { None } else { Some(parse_value(shape, &key, value)?) };
    Ok((key, value))
}

fn parse_value(shape: &TableShape, key: &[u8], text: &str) -> std::result::Result<Vec<u8>, KeyError> {
    match (shape.layout, <&Address>::try_from(key)) {
        (Layout::Tagged | Layout::Chunked(_), _) => parse_hex(text),
        (Layout::Text(_), _) => Ok(text.as_bytes().to_vec()),
        (SCRIPT, _) => {
            let numbers = text.split_once(',');
            let numbers =
                numbers.and_then(|(amount, coins)| Some((amount.parse().ok()?, coins.parse().ok()?)));
            let (amount, coins) = numbers.ok_or_else(|| {
                KeyError(format!("{} is no AMOUNT,COINS; give whole numbers, such as 5000,2", quoted(text)))
            })?;
            Ok(coins_bytes(amount, coins).to_vec())
        }
        (ADDRESS, _) => match text.parse() {
            Ok(amount) => Ok(amount_bytes(Some(amount))),
            Err(_) => Err(KeyError(format!(
                "{} is no amount; give a whole number of the smallest unit",
                quoted(text)
            ))),
        },
        (STATE, Ok(address)) => {
            let account = || {
                let mut numbers = text.split(',');
                let (balance, nonce, code) = (numbers.next()?, numbers.next()?, numbers.next()?);
                let account = Account {
                    balance: balance.parse().ok()?,
                    nonce: nonce.parse().ok()?,
                    code: code.parse().ok()?,
                };
                numbers.next().is_none().then_some(account)
            };
            let account = account().ok_or_else(|| {
                KeyError(format!(
                    "{} is no account; give BALANCE,NONCE,CODE as whole numbers, such as 1000,5,0",
                    quoted(text)
                ))
            })?;
            Ok(account_record(address, &account).to_vec())
        }
        (STATE, Err(_)) => {
            let value = parse_hex(text)?;
            let value = value
                .try_into()
                .map_err(|_| KeyError("the value of a slot has 32 bytes: 64 hex digits".to_owned()))?;
            Ok(slot_record(key, &value).to_vec())
        }
        (Layout::Defined(number), _) => {
            Err(format!("layout {number} of keys and values is not known").into())
        }
    }
}
