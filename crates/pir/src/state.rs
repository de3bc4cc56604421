//! Ethereum's state as records of 40 bytes, in the public format of the plinko-rs and rms24-rs projects ("schema40", v3).
//!
//! ```text
//! database.bin          records: accounts first, then storage slots
//!   account             balance u128, nonce u32, code id u32, tag [8] = keccak256(address)[..8], zeros [8]
//!   slot                value [32], tag [8] = keccak256(address, slot)[..8]
//! account-mapping.bin   address [20], index u32
//! storage-mapping.bin   address [20], slot [32], index u32
//! code_store.bin        count u32, code hashes [32]
//! metadata.json         counts
//! ```
//!
//! Numbers are little-endian. A balance above 2^128 - 1 wei cannot occur: all ether there is has fewer than 88 bits.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use warpsmith_hash::keccak::keccak256;
use warpsmith_hash::{Lanes, chacha};

use crate::database::{Builder, Description};
use crate::error::{Error, Result};
use crate::keyword::{Layout, Shape, arrange};
use crate::params::Choice;
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

/// The account among the records of all places of its address; none when the state has no such account.
pub fn find_account(address: &Address, records: &[Vec<u8>]) -> Option<Account> {
    let tag = tag(address);
    let record = records.iter().rfind(|r| r.len() == RECORD && r[24..32] == tag && r[32..] == [0; 8])?;
    let balance = u128::from(u64_at(record, 0)) | u128::from(u64_at(record, 8)) << 64;
    Some(Account { balance, nonce: u32_at(record, 16), code: u32_at(record, 20) })
}

/// The value of a storage slot among the records of all places of its key.
pub fn find_slot(key: &[u8], records: &[Vec<u8>]) -> Option<[u8; 32]> {
    let tag = tag(key);
    let record = records.iter().rfind(|r| r.len() == RECORD && r[32..] == tag)?;
    record.first_chunk().copied()
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

fn read_file(folder: &Path, name: &str, each: usize) -> Result<Vec<u8>> {
    let path = folder.join(name);
    let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
    if !bytes.len().is_multiple_of(each) {
        return Err(Error::format(
            path.display().to_string(),
            format!("it is not of records of {each} bytes"),
        ));
    }
    Ok(bytes)
}

/// Builds a database looked up by key from a folder in the format above.
///
/// # Errors
///
/// When a file is missing or malformed, or the database cannot be written.
pub fn build(folder: &Path, to: &Path, epoch: u64) -> Result<Description> {
    let records = read_file(folder, "database.bin", RECORD)?;
    let accounts = read_file(folder, "account-mapping.bin", 24)?;
    let slots = read_file(folder, "storage-mapping.bin", 56)?;
    let keys: Vec<&[u8]> = (accounts.chunks_exact(24).map(|m| &m[..20]))
        .chain(slots.chunks_exact(56).map(|m| &m[..52]))
        .collect();
    let indices: Vec<u32> = (accounts.chunks_exact(24).map(|m| u32_at(m, 20)))
        .chain(slots.chunks_exact(56).map(|m| u32_at(m, 52)))
        .collect();
    for (key, &index) in keys.iter().zip(&indices) {
        let record = records.chunks_exact(RECORD).nth(index as usize);
        let at = if key.len() == 20 { 24 } else { 32 };
        if record.is_none_or(|record| record[at..at + 8] != tag(key)) {
            let reason = format!("record {index} does not carry the tag of its key");
            return Err(Error::format(folder.join("database.bin").display().to_string(), reason));
        }
    }
    // A seed in a thousand fails at this load; several in a row do not.
    let (shape, table) = (0..10)
        .find_map(|_| {
            let shape = Shape::new(keys.len() as u64, 3, Layout::State).ok()?;
            arrange(&shape, &keys).ok().map(|table| (shape, table))
        })
        .ok_or_else(|| Error::format("keys", "they do not fit a table: is one there twice?"))?;
    let mut builder = Builder::new(to, Choice::new(shape.entries, RECORD as u32), epoch, Some(shape))?;
    for key in table {
        match key {
            Some(key) => builder.push(&records[indices[key as usize] as usize * RECORD..][..RECORD])?,
            None => builder.push(&[0; RECORD])?,
        }
    }
    builder.finish()
}

/// Numbers for a synthetic state: ChaCha12 of a seed, the same everywhere.
struct Stream {
    key: chacha::Key,
    block: u32,
    words: Vec<u32>,
}

impl Stream {
    fn new(seed: u64) -> Stream {
        Stream { key: [seed as u32, (seed >> 32) as u32, 0, 0, 0, 0, 0, 0], block: 0, words: Vec::new() }
    }

    fn word(&mut self) -> u32 {
        if self.words.is_empty() {
            let places = [std::array::from_fn(|lane| self.block + lane as u32), [0; 16], [0; 16], [0; 16]];
            self.words = chacha::words_of_sixteen(Lanes::detect(), &self.key, &places).concat();
            self.block += 16;
        }
        self.words.pop().expect("just filled")
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.word() as u8)
    }

    /// A number with a tail: every further bit has a chance of a half to be there.
    fn scale(&mut self, most: u32) -> u32 {
        (self.word() | 1 << most.min(31)).trailing_zeros()
    }
}

/// Writes a synthetic state of this many accounts and slots, the same for the same seed. A tenth of the accounts are
/// contracts; a few of them have most of the slots. Balances and nonces have long tails; many slots hold small numbers or
/// addresses.
///
/// # Errors
///
/// When there is no account, or a file cannot be written.
pub fn write_synthetic(folder: &Path, accounts: u32, slots: u32, seed: u64) -> Result<()> {
    if accounts == 0 || accounts.checked_add(slots).is_none() {
        return Err(Error::params("a state has at least one account, and fewer than 2^32 records"));
    }
    std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    write_files(folder, accounts, slots, seed).map_err(Error::io(folder))
}

fn write_files(folder: &Path, accounts: u32, slots: u32, seed: u64) -> std::io::Result<()> {
    let create = |name: &str| Ok::<_, std::io::Error>(BufWriter::new(File::create(folder.join(name))?));
    let (mut records, mut mapping) = (create("database.bin")?, create("account-mapping.bin")?);
    let mut stream = Stream::new(seed);
    let mut contracts: Vec<Address> = Vec::new();
    let codes = 1 + accounts / 100;
    for index in 0..accounts {
        let address: Address = stream.bytes();
        let is_contract = index == 0 || stream.word().is_multiple_of(10);
        let scale = stream.scale(20);
        let account = Account {
            balance: if stream.word().is_multiple_of(4) {
                0
            } else {
                u128::from(stream.word()) << (20 + 2 * scale)
            },
            nonce: if is_contract { 1 } else { stream.word() % (2 << stream.scale(20)) },
            code: if is_contract { 1 + stream.word() % codes } else { 0 },
        };
        if is_contract {
            contracts.push(address);
        }
        records.write_all(&account_record(&address, &account))?;
        mapping.write_all(&address)?;
        mapping.write_all(&index.to_le_bytes())?;
    }
    mapping.flush()?;
    let mut mapping = create("storage-mapping.bin")?;
    for index in accounts..accounts + slots {
        // Halve the choice again and again: the first contracts get most.
        let among = (contracts.len() >> stream.scale(30)).max(1);
        let address = contracts[stream.word() as usize % among];
        let mut number = [0; 32];
        if stream.word().is_multiple_of(4) {
            // A plain variable: a small number, made unlike all others by the index.
            number[28..].copy_from_slice(&index.to_be_bytes());
        } else {
            number = stream.bytes();
        }
        let mut value = [0; 32];
        match stream.word() % 4 {
            0 => value[28..].copy_from_slice(&stream.word().to_be_bytes()),
            1 => value[12..].copy_from_slice(&stream.bytes::<20>()),
            2 => value[16..].copy_from_slice(&stream.bytes::<16>()),
            _ => value = stream.bytes(),
        }
        let key = slot_key(&address, &number);
        records.write_all(&slot_record(&key, &value))?;
        mapping.write_all(&key)?;
        mapping.write_all(&index.to_le_bytes())?;
    }
    mapping.flush()?;
    records.flush()?;
    let mut store = create("code_store.bin")?;
    store.write_all(&codes.to_le_bytes())?;
    for _ in 0..codes {
        store.write_all(&stream.bytes::<32>())?;
    }
    store.flush()?;
    let metadata = format!(
        "{{\"schema_version\":3,\"record_size\":{RECORD},\"num_accounts\":{accounts},\"num_storage_slots\":{slots},\"synthetic_seed\":{seed}}}\n"
    );
    std::fs::write(folder.join("metadata.json"), metadata)
}
