//! Which code a contract has. Its record has room for a number alone, so the hash of the code stands in a record of its own.
//!
//! ```text
//! slots of the address "warpsmith codehashes" (its 20 letters; whoever had its key could break Keccak-256)
//!   zeros [12], address of the contract [20]      Keccak-256 of its code [32]
//! ```
//!
//! The codes themselves are in another database, by hash: [`Layout::Chunked`](warpsmith_rms24::keyword::Layout), so that
//! one that many contracts have is there once, and records of 40 bytes stay what they are.

use warpsmith_hash::keccak::keccak256;

use crate::record::{Address, RECORD, slot_key, slot_record};

/// The address whose slots tell of codes.
const ADDRESS: Address = *b"warpsmith codehashes";

/// Bytes of an entry in a database of codes.
pub const CODE_ENTRY: u32 = 4096;
/// Chunks of the longest code: 24,576 bytes, as EIP-170 has it.
pub const CODE_CHUNKS: u16 = 7;

/// What a code is known by.
pub fn code_hash(code: &[u8]) -> [u8; 32] {
    keccak256(code)
}

/// The number of a code in the record of an account, where there is no list of codes to number them by: the first bytes of the
/// hash, which tell most of them apart.
pub fn code_number(hash: &[u8; 32]) -> u32 {
    u32::from_be_bytes(*hash.first_chunk().expect("32 bytes")).max(1)
}

/// The key of the record that tells the hash of a contract's code.
pub fn code_hash_key(contract: &Address) -> Vec<u8> {
    let mut slot = [0; 32];
    slot[12..].copy_from_slice(contract);
    slot_key(&ADDRESS, &slot)
}

/// That record, with its key.
pub fn code_hash_record(contract: &Address, hash: &[u8; 32]) -> (Vec<u8>, [u8; RECORD]) {
    let key = code_hash_key(contract);
    let record = slot_record(&key, hash);
    (key, record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::find_slot;

    #[test]
    fn hashes_come_back_and_belong_to_one_contract() {
        // Of no code: https://eips.ethereum.org/EIPS/eip-1052 has it.
        let empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
        let hash = code_hash(&[]);
        assert_eq!(hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), empty);
        assert_eq!(code_number(&hash), 0xc5d2_4601);
        assert_eq!(code_number(&[0; 32]), 1, "0 would be no code");
        let (key, record) = code_hash_record(&[7; 20], &hash);
        assert_eq!((key.len(), &key[..20], &key[32..]), (52, &ADDRESS[..], &[7; 20][..]));
        let records = [vec![0; RECORD], record.to_vec()];
        assert_eq!(find_slot(&code_hash_key(&[7; 20]), &records), Some(hash));
        assert_eq!(find_slot(&code_hash_key(&[8; 20]), &records), None);
    }
}
