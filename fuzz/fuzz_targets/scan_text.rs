//! Arbitrary text as an address of unknown type, as a range of keys and, with the digest that belongs to it, as the map of a
//! scan: each is refused with a reason, or reads back as what it was.
//! Run: `cargo fuzz run scan_text fuzz/corpus/scan_text fuzz/seeds/scan_text`.

#![no_main]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use warpsmith_store::{MapFile, parse_range};
use warpsmith_target::{Address, KeyTarget, Target, ethereum, identify};

/// A file of this process alone: a map is read from a path.
static MAP: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("warpsmith-fuzz-map-{}", std::process::id())));

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
    map(&MAP, text);
});

/// The text as all lines of a map but the last, which is made to fit.
fn map(path: &Path, text: &str) {
    let mut whole = text.to_owned();
    whole.push_str("sha256 ");
    for byte in Sha256::digest(text) {
        write!(whole, "{byte:02x}").expect("a string takes all");
    }
    whole.push('\n');
    std::fs::write(path, &whole).expect("a temporary file");
    match MapFile::read(path) {
        Ok(map) => {
            assert_eq!(map.covered() + map.remaining(), map.job().range().count(), "{whole}");
            if let (Ok(covered), Ok(gaps)) = (map.covered_keys(), map.gaps()) {
                assert_eq!((covered.total(), gaps.total()), (map.covered(), map.remaining()), "{whole}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
