//! Arbitrary text as an npub and as an nsec: it is refused, or encodes back to the same text.
//! Run: `cargo fuzz run bech32_decode fuzz/corpus/bech32_decode fuzz/seeds/bech32_decode`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpsmith_target::{find, nostr};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let npub = find("npub").expect("npub is a target");
    match npub.decode(text) {
        Ok(digest) => assert_eq!(npub.encode(&digest), text.to_ascii_lowercase()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match nostr::decode_secret(text) {
        Ok(secret) => assert_eq!(*npub.export(&secret), text.to_ascii_lowercase()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
