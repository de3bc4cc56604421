//! Arbitrary text as an Ethereum address, a salt mask, a hash, a salt layout and init code: each is refused with a
//! reason, or reads back as what it was.
//! Run: `cargo fuzz run address_decode fuzz/corpus/address_decode fuzz/seeds/address_decode`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpsmith_target::{SaltMask, ethereum};

fuzz_target!(|data: &[u8]| {
    if let Err(error) = ethereum::hash_init_code(data) {
        assert!(!error.to_string().is_empty());
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ethereum::decode(text) {
        Ok(address) => assert!(ethereum::encode(&address).eq_ignore_ascii_case(text)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match SaltMask::parse(text) {
        Ok(mask) => assert_eq!(SaltMask::parse(&mask.to_string()), Ok(mask)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = ethereum::parse_hash(text) {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = ethereum::parse_layout(text) {
        assert!(!error.to_string().is_empty());
    }
});
