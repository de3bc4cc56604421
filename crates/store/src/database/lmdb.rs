//! LMDB trees as sources: those of BitcoinAddressFinder, and the databases that earlier versions of ours were.
//!
//! BitcoinAddressFinder (github.com/bernardladenthin/BitcoinAddressFinder, `LMDBPersistence.java`) keeps one LMDB
//! database `hash160toCoin`: the 20 bytes of a P2PKH, P2SH or P2WPKH address, whichever it was, to the amount in satoshi
//! as a signed number of 8 bytes, most significant first, or to nothing for zero.
//!
//! Ours of format 1 had `records`, kind and digest to the amount in 0, 8 or 16 bytes, and `about`, a text with counts and
//! SHA-256 of what `records` must hold.
//!
//! The tree is read page by page with positioned reads, and nothing in it is believed: see `Tree`.

mod tree;

use std::path::{Path, PathBuf};

use warpsmith_chain::AddressKind;

use super::About;
use super::about::Summary;
use crate::Error;
use crate::record::Entry;
use tree::Tree;

/// The file of an LMDB environment.
pub(super) const DATA: &str = "data.mdb";
const FINDER: &str = "hash160toCoin";
const RECORDS: &str = "records";
const ABOUT: &str = "about";
const ABOUT_HEAD: &str = "warpsmith database ";
const ABOUT_VERSION: u32 = 1;
const WHAT: &str = "LMDB database";

/// Entries handed on together.
const CHUNK: usize = 1 << 14;

/// The folder of the LMDB environment a path is about: the folder itself, or that of its data file.
pub(super) fn folder_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let is_data = path.file_name().is_some_and(|name| name == DATA);
    is_data.then(|| path.parent().unwrap_or(Path::new("")).to_owned())
}

/// Hands on all records of a database of either layout, until `take` says no. Records that are none are handed on as
/// their number.
pub(super) fn read(folder: &Path, take: impl FnMut(Vec<Entry>, Vec<u64>) -> bool) -> Result<(), Error> {
    let tree = Tree::open(&folder.join(DATA))?;
    if let Some(records) = tree.table(RECORDS)? {
        let mut said = None;
        if let Some(about) = tree.table(ABOUT)? {
            tree.each(&about, |key, value| {
                if key == ABOUT.as_bytes() {
                    said = Some(read_about(folder, value)?);
                }
                Ok(true)
            })?;
        }
        let said = said.ok_or_else(|| {
            let reason = "it was not finished; build it again from its sources".to_owned();
            Error::NotADatabase { path: folder.to_owned(), reason }
        })?;
        return read_ours(folder, &tree, &records, &said, take);
    }
    let Some(records) = tree.table(FINDER)? else {
        let reason = format!("its LMDB environment has neither a database {RECORDS} nor {FINDER}");
        return Err(Error::NotADatabase { path: folder.to_owned(), reason });
    };
    let mut batch = Batch { take, entries: Vec::new(), wrong: Vec::new() };
    let mut number = 0;
    let all = tree.each(&records, |key, value| {
        number += 1;
        Ok(batch.add(number, finder_entry(key, value)))
    })?;
    if all {
        batch.hand_on();
    }
    Ok(())
}

/// The records of a database of ours: all of them, as they were put in, or an error.
fn read_ours(
    folder: &Path,
    tree: &Tree,
    records: &tree::Table,
    said: &About,
    take: impl FnMut(Vec<Entry>, Vec<u64>) -> bool,
) -> Result<(), Error> {
    let corrupt = |reason: String| Error::Corrupt { path: folder.to_owned(), what: WHAT, reason };
    let mut batch = Batch { take, entries: Vec::new(), wrong: Vec::new() };
    let mut summary = Summary::default();
    let all = tree.each(records, |key, value| {
        let entry = Entry::read(key, value);
        let entry = entry.ok_or_else(|| corrupt(format!("record {} is none", summary.count() + 1)))?;
        summary.add(&entry);
        Ok(batch.add(summary.count(), Some(entry)))
    })?;
    if all {
        if let Some(difference) = said.difference(&summary.finish(said.identity, said.created)) {
            return Err(corrupt(difference));
        }
        batch.hand_on();
    }
    Ok(())
}

/// Entries on their way.
struct Batch<F> {
    take: F,
    entries: Vec<Entry>,
    wrong: Vec<u64>,
}

impl<F: FnMut(Vec<Entry>, Vec<u64>) -> bool> Batch<F> {
    /// Adds a record, or its number if it is none. `false` when nobody wants more.
    fn add(&mut self, number: u64, entry: Option<Entry>) -> bool {
        match entry {
            Some(entry) => self.entries.push(entry),
            None => self.wrong.push(number),
        }
        self.entries.len() + self.wrong.len() < CHUNK || self.hand_on()
    }

    fn hand_on(&mut self) -> bool {
        (self.take)(std::mem::take(&mut self.entries), std::mem::take(&mut self.wrong))
    }
}

fn finder_entry(key: &[u8], value: &[u8]) -> Option<Entry> {
    let amount = match value {
        [] => 0,
        _ => u64::try_from(i64::from_be_bytes(value.try_into().ok()?)).ok()?,
    };
    (key.len() == 20).then(|| Entry::from_parts(AddressKind::HASH160, key, Some(amount.into())))
}

/// What a database of format 1 said of itself.
fn read_about(path: &Path, bytes: &[u8]) -> Result<About, Error> {
    let corrupt = |reason: &str| Error::Corrupt { path: path.to_owned(), what: WHAT, reason: reason.into() };
    let wrong = || corrupt("what it says of itself cannot be read");
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix(ABOUT_HEAD)).ok_or_else(wrong)?;
    let version = version.parse().map_err(|_| wrong())?;
    if version != ABOUT_VERSION {
        let (path, what) = (path.to_owned(), WHAT);
        return Err(Error::Version { path, what, found: version, known: ABOUT_VERSION });
    }
    let mut value = |name: &str| {
        lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' ')).ok_or_else(wrong)
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let identity = unhex(value("identity")?).ok_or_else(wrong)?;
    let created = number(value("created")?)?;
    let records = number(value("records")?)?;
    let addresses = unhex(value("addresses")?).ok_or_else(wrong)?;
    let amounts = unhex(value("amounts")?).ok_or_else(wrong)?;
    let mut kinds = Vec::new();
    for line in lines {
        let words = line.strip_prefix("kind ").and_then(|words| words.split_once(' ')).ok_or_else(wrong)?;
        kinds.push((AddressKind::find(words.0).ok_or_else(wrong)?, number(words.1)?));
    }
    Ok(About { identity, created, records, addresses, amounts, kinds })
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
