//! Ethereum's state as records of 40 bytes.
//!
//! ```text
//! account   balance u128, nonce u32, code id u32, tag [8] = keccak256(address)[..8], zeros [8]
//! slot      value [32], tag [8] = keccak256(address, slot)[..8]
//! ```
//!
//! Numbers are little-endian. A balance above 2^128 - 1 wei cannot occur: all ether there is has
//! fewer than 88 bits. Values of slots are as nodes say them, the first byte first: codes' hashes
//! and the chain's head are kept as slots too, and are no numbers.

use warpsmith_hash::keccak::keccak256;

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

/// The account among the records of all places of its address; none when the state has no such
/// account.
pub fn find_account(address: &Address, records: &[Vec<u8>]) -> Option<Account> {
    let record = records.iter().rfind(|record| belongs_to(address, record))?;
    let balance = u128::from_le_bytes(*record.first_chunk()?);
    Some(Account { balance, nonce: u32_at(record, 16), code: code_id(record) })
}

/// The value of a storage slot among the records of all places of its key.
pub fn find_slot(key: &[u8], records: &[Vec<u8>]) -> Option<[u8; 32]> {
    records.iter().rfind(|record| key.len() == 52 && belongs_to(key, record))?.first_chunk().copied()
}

/// The number of its code that the record of an account has; 0 for none.
pub(crate) fn code_id(account: &[u8]) -> u32 {
    u32_at(account, 20)
}

/// Reads a little-endian number.
///
/// # Panics
///
/// When the bytes end before it does.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the caller knows that it is long enough"))
}
