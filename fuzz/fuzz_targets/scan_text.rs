//! Arbitrary text as an address of unknown type, as a range of keys and, with the digest that belongs to it, as the map of a
//! scan: each is refused with a reason, or reads back as what it was.
//! Run: `cargo fuzz run scan_text fuzz/corpus/scan_text fuzz/seeds/scan_text`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use warpsmith_store::{Map, parse_range};
use warpsmith_target::{Address, Target, ethereum, identify};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match identify(text) {
        Ok(Address::Bitcoin(target, digest)) => {
            assert!(target.encode(&digest).eq_ignore_ascii_case(text), "{text}");
        }
        Ok(Address::Ethereum(digest)) => {
            assert!(ethereum::Account.encode(&digest).eq_ignore_ascii_case(text), "{text}");
        }
        Ok(Address::Script(reason)) => assert!(!reason.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match parse_range(text) {
        Ok(range) => assert_eq!(parse_range(&range.to_string()), Ok(range)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    map(text);
});

/// The text as all lines of a map but the last, a digest which nobody guesses: it is made to fit.
fn map(text: &str) {
    let sum: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let whole = format!("{text}sha256 {sum}\n");
    match Map::from_text(whole.as_bytes()) {
        Ok(map) => {
            let again = Map::from_text(map.to_text().as_bytes()).expect("what was written can be read");
            assert_eq!(again.to_text(), map.to_text());
            assert_eq!(map.covered() + map.remaining(), map.job().range().count(), "{whole}");
            if let (Ok(covered), Ok(gaps)) = (map.covered_keys(), map.gaps()) {
                assert_eq!((covered.total(), gaps.total()), (map.covered(), map.remaining()), "{whole}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
