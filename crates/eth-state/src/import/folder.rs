//! Ethereum's state in the public format of the plinko-rs and rms24-rs projects ("schema40", v3):
//! records of 40 bytes.
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
//! Numbers are little-endian, values of slots too; databases have those the other way round
//! ([`crate::slot_record`]).

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use warpsmith_rms24::table::Take;
use warpsmith_rms24::wire::Update;
use warpsmith_rms24::{Error, Result};

use super::{turned, whole};
use crate::record::{RECORD, tag, u32_at};

/// Reads the changes of one chain block in the projects' format (count u64, words an entry u64,
/// then index u64 and XOR delta each), for a database that keeps the records' own order.
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

/// Reads a little-endian number.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the caller knows that it is long enough"))
}

/// Files of a folder in this format, checked as far as their lengths go.
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

    /// Hands over every key with its record, the value of a slot turned, so that it is as a node
    /// says it. Memory does not grow with the files: the records are read as they are needed, one
    /// after the other where the mappings are in their order.
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
