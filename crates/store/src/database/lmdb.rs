//! LMDB folders of BitcoinAddressFinder as sources.
//!
//! BitcoinAddressFinder (github.com/bernardladenthin/BitcoinAddressFinder, `LMDBPersistence.java`) keeps one LMDB
//! database `hash160toCoin`: the 20 bytes of a P2PKH, P2SH or P2WPKH address, whichever it was, to the amount in satoshi
//! as a signed number of 8 bytes, most significant first, or to nothing for zero.
//!
//! The tree is read page by page with positioned reads, and nothing in it is believed: see `Tree`.

mod tree;

use std::path::{Path, PathBuf};

use warpsmith_chain::AddressKind;

use crate::Error;
use crate::record::Entry;
use tree::Tree;

/// The file of an LMDB environment.
pub(super) const DATA: &str = "data.mdb";
const FINDER: &str = "hash160toCoin";
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

/// Hands on all records, until `take` returns false. Records that cannot be read are handed on as their number.
pub(super) fn read(folder: &Path, take: impl FnMut(Vec<Entry>, Vec<u64>) -> bool) -> Result<(), Error> {
    let tree = Tree::open(&folder.join(DATA))?;
    let Some(records) = tree.table(FINDER)? else {
        let reason =
            format!("its LMDB environment has no database {FINDER}, as those of BitcoinAddressFinder");
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

#[cfg(test)]
mod tests;
