//! Ethereum's state as records of 40 bytes, in the public format of the plinko-rs and rms24-rs projects ("schema40", v3).
//!
//! ```text
//! database.bin          records: accounts first, then storage slots
//!   account             balance u128, nonce u32, code id u32, tag [8] = keccak256(address)[..8], zeros [8]
//!   slot                value u256, tag [8] = keccak256(address, slot)[..8]
//! account-mapping.bin   address [20], index u32
//! storage-mapping.bin   address [20], slot [32], index u32
//! code_store.bin        count u32, code hashes [32]
//! metadata.json         counts
//! ```
//!
//! Numbers are little-endian. A balance above 2^128 - 1 wei cannot occur: all ether there is has fewer than 88 bits.
//!
//! A database has the same records, but values of slots as nodes say them, the first byte first: codes' hashes and the chain's head
//! are kept as slots too, and are no numbers.

mod code;
mod head;
mod synthetic;
mod words;

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use warpsmith_hash::keccak::keccak256;

pub use self::code::{
    CODE_CHUNKS, CODE_ENTRY, CodeList, code_hash, code_hash_key, code_hash_record, code_number,
};
pub use self::head::ChainHead;
pub use self::synthetic::Synthetic;
pub use self::words::WordFolder;
use crate::database::Description;
use crate::error::{Error, Result};
use crate::keyword::{self, Layout, Plan, Take};
use crate::wire::{Update, u32_at, u64_at};

/// Bytes of a record.
pub const RECORD: usize = 40;

/// An address.
pub type Address = [u8; 20];

/// What the state says about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Wei.
    pub balance: u128,
    /// Transactions sent.
    pub nonce: u32,
    /// The number of its code in the list of code hashes; 0 for none.
    pub code: u32,
}

/// The key of a storage slot: the address, then the slot's number.
pub fn slot_key(address: &Address, slot: &[u8; 32]) -> Vec<u8> {
    [&address[..], slot].concat()
}

/// The tag by which a record is known to belong to a key: an address, or an address and a slot.
pub fn tag(key: &[u8]) -> [u8; 8] {
    *keccak256(key).first_chunk().expect("a digest has 32 bytes")
}

/// The record of an account.
pub fn account_record(address: &Address, account: &Account) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..16].copy_from_slice(&account.balance.to_le_bytes());
    record[16..20].copy_from_slice(&account.nonce.to_le_bytes());
    record[20..24].copy_from_slice(&account.code.to_le_bytes());
    record[24..32].copy_from_slice(&tag(address));
    record
}

/// The record of a storage slot.
pub fn slot_record(key: &[u8], value: &[u8; 32]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..32].copy_from_slice(value);
    record[32..].copy_from_slice(&tag(key));
    record
}

/// Whether a record is that of a key: an address, or an address and a slot.
pub fn belongs_to(key: &[u8], record: &[u8]) -> bool {
    let tag = tag(key);
    record.len() == RECORD
        && match key.len() {
            20 => record[24..32] == tag && record[32..] == [0; 8],
            52 => record[32..] == tag,
            _ => false,
        }
}

/// The account among the records of all places of its address; none when the state has no such account.
pub fn find_account(address: &Address, records: &[Vec<u8>]) -> Option<Account> {
    let record = records.iter().rfind(|record| belongs_to(address, record))?;
    let balance = u128::from(u64_at(record, 0)) | u128::from(u64_at(record, 8)) << 64;
    Some(Account { balance, nonce: u32_at(record, 16), code: u32_at(record, 20) })
}

/// The value of a storage slot among the records of all places of its key.
pub fn find_slot(key: &[u8], records: &[Vec<u8>]) -> Option<[u8; 32]> {
    records.iter().rfind(|record| key.len() == 52 && belongs_to(key, record))?.first_chunk().copied()
}

/// Reads the changes of one chain block in the projects' format (count u64, words an entry u64, then index u64 and XOR
/// delta each), for a database that keeps the records' own order.
///
/// # Errors
///
/// When the file is malformed.
pub fn read_delta(number: u64, bytes: &[u8]) -> Result<Update> {
    let wrong = |reason: &str| Error::format("delta file", reason);
    if bytes.len() < 16 || u64_at(bytes, 8) != (RECORD / 8) as u64 {
        return Err(wrong("it is not of records of 40 bytes"));
    }
    if u64_at(bytes, 0).checked_mul(8 + RECORD as u64) != Some(bytes.len() as u64 - 16) {
        return Err(wrong("its length does not fit its count"));
    }
    let mut update = Update { number, indices: Vec::new(), deltas: Vec::new() };
    for change in bytes[16..].chunks_exact(8 + RECORD) {
        update.indices.push(u64_at(change, 0));
        update.deltas.extend_from_slice(&change[8..]);
    }
    Ok(update)
}

/// Files in the format above, checked as far as their lengths go.
pub struct Folder {
    records: File,
    /// Bytes of the records.
    length: u64,
    path: PathBuf,
    mappings: [Mapping; 2],
}

/// A file that says which record a key has.
struct Mapping {
    path: PathBuf,
    key_bytes: usize,
    /// Where in a record the tag of its key stands.
    tag_at: usize,
    keys: u64,
}

impl Folder {
    /// Opens the files of a folder.
    ///
    /// # Errors
    ///
    /// When one is missing or is not of whole records.
    pub fn open(folder: &Path) -> Result<Folder> {
        let path = folder.join("database.bin");
        let records = File::open(&path).map_err(Error::io(&path))?;
        let length = records.metadata().map_err(Error::io(&path))?.len();
        whole(&path, length, RECORD)?;
        let mapping = |name: &str, key_bytes: usize, tag_at: usize| {
            let path = folder.join(name);
            let length = std::fs::metadata(&path).map_err(Error::io(&path))?.len();
            Ok::<_, Error>(Mapping { keys: whole(&path, length, key_bytes + 4)?, path, key_bytes, tag_at })
        };
        let mappings = [mapping("account-mapping.bin", 20, 24)?, mapping("storage-mapping.bin", 52, 32)?];
        Ok(Folder { records, length, path, mappings })
    }

    /// Accounts and slots.
    pub fn keys(&self) -> u64 {
        self.mappings.iter().map(|mapping| mapping.keys).sum()
    }

    /// Hands over every key with its record, the value of a slot turned, so that it is as a node says it. Memory does not grow with
    /// the files: the records are read as they are needed, one after the other where the mappings are in their order.
    ///
    /// # Errors
    ///
    /// When a record does not belong to its key, a file cannot be read, or `take` fails.
    pub fn each(&self, take: &mut Take<'_>) -> Result<()> {
        let mut window = Window { start: 0, bytes: Vec::new() };
        for Mapping { path, key_bytes, tag_at, keys } in &self.mappings {
            let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(Error::io(path))?);
            let mut line = vec![0; key_bytes + 4];
            for _ in 0..*keys {
                file.read_exact(&mut line).map_err(Error::io(path))?;
                let (key, index) = (&line[..*key_bytes], u32_at(&line, *key_bytes));
                let record = self.record(&mut window, index)?;
                match record.filter(|record| record[*tag_at..tag_at + 8] == tag(key)) {
                    Some(record) if key.len() == 20 => take(key, record)?,
                    Some(record) => take(key, &turned(record))?,
                    None => {
                        let reason = format!("record {index} does not carry the tag of its key");
                        return Err(Error::format(self.path.display().to_string(), reason));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The record of a slot with its value the other way round: as files have it, and as databases do.
fn turned(record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    record[..32].reverse();
    record
}

/// Some records in memory.
struct Window {
    /// Where in the file they begin.
    start: u64,
    bytes: Vec<u8>,
}

/// Records read at once: those of a few pages, as they may be needed in any order.
const AT_ONCE: u64 = 400;

impl Folder {
    /// A record, if there is one of this number.
    fn record<'a>(&self, window: &'a mut Window, index: u32) -> Result<Option<&'a [u8]>> {
        let at = u64::from(index) * RECORD as u64;
        if at >= self.length {
            return Ok(None);
        }
        let end = window.start + window.bytes.len() as u64;
        if !(window.start..end).contains(&at) {
            window.start = at - at % (AT_ONCE * RECORD as u64);
            window.bytes.resize((self.length - window.start).min(AT_ONCE * RECORD as u64) as usize, 0);
            let read = self.records.read_exact_at(&mut window.bytes, window.start);
            read.map_err(|error| {
                // What was asked for did not come: nothing in the window counts.
                window.bytes.clear();
                Error::io(&self.path)(error)
            })?;
        }
        Ok(Some(&window.bytes[(at - window.start) as usize..][..RECORD]))
    }
}

/// How many records of this size a file has.
fn whole(path: &Path, length: u64, each: usize) -> Result<u64> {
    match length.is_multiple_of(each as u64) {
        true => Ok(length / each as u64),
        false => {
            let reason = format!("{length} bytes are not of records of {each}");
            Err(Error::format(path.display().to_string(), reason))
        }
    }
}

/// What a database of this many keys is built by.
pub fn plan(keys: u64, block_size: Option<u32>, epoch: u64) -> Plan {
    Plan { block_size, epoch, ..Plan::new(Layout::State, keys, RECORD as u32) }
}

/// Builds a database looked up by key from a folder in the format above.
///
/// # Errors
///
/// When a file is missing or malformed, or the database cannot be written.
pub fn build(folder: &Path, to: &Path, epoch: u64) -> Result<Description> {
    let folder = Folder::open(folder)?;
    keyword::build(to, &plan(folder.keys(), None, epoch), &mut |take| folder.each(take), &mut |_| Ok(()))
}
