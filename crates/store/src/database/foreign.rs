//! Databases as sources: those of BitcoinAddressFinder, and our own.
//!
//! BitcoinAddressFinder (github.com/bernardladenthin/BitcoinAddressFinder, `LMDBPersistence.java`) keeps one LMDB
//! database `hash160toCoin`: the 20 bytes of a P2PKH, P2SH or P2WPKH address, whichever it was, to the amount in satoshi
//! as a signed number of 8 bytes, most significant first, or to nothing for zero.

use std::path::{Path, PathBuf};

use super::{DATA, RECORDS, Table, open_to_read};
use crate::record::Entry;
use crate::{Error, Kind};

const FINDER: &str = "hash160toCoin";

/// The entry of a key and its value.
type EntryOf = fn(&[u8], &[u8]) -> Option<Entry>;

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
pub(super) fn read(folder: &Path, mut take: impl FnMut(Vec<Entry>, Vec<u64>) -> bool) -> Result<(), Error> {
    let env = open_to_read(folder)?;
    let failed = || Error::lmdb("read", folder);
    let txn = env.read_txn().map_err(failed())?;
    let open = |name| env.open_database(&txn, Some(name)).map_err(failed());
    let ours: Option<Table> = open(RECORDS)?;
    let finder: Option<Table> = open(FINDER)?;
    let (table, entry): (Table, EntryOf) = match (ours, finder) {
        (Some(table), _) => (table, Entry::read),
        (None, Some(table)) => (table, finder_entry),
        (None, None) => {
            let reason = format!("its LMDB environment has neither a database {RECORDS} nor {FINDER}");
            return Err(Error::NotADatabase { path: folder.to_owned(), reason });
        }
    };
    let (mut entries, mut wrong) = (Vec::with_capacity(CHUNK), Vec::new());
    for (number, pair) in (1..).zip(table.iter(&txn).map_err(failed())?) {
        let (key, value) = pair.map_err(failed())?;
        match entry(key, value) {
            Some(entry) => entries.push(entry),
            None => wrong.push(number),
        }
        if entries.len() + wrong.len() == CHUNK
            && !take(std::mem::replace(&mut entries, Vec::with_capacity(CHUNK)), std::mem::take(&mut wrong))
        {
            return Ok(());
        }
    }
    take(entries, wrong);
    Ok(())
}

fn finder_entry(key: &[u8], value: &[u8]) -> Option<Entry> {
    let amount = match value {
        [] => 0,
        _ => u64::try_from(i64::from_be_bytes(value.try_into().ok()?)).ok()?,
    };
    (key.len() == 20).then(|| Entry::from_parts(Kind::Hash160, key, Some(amount.into())))
}
