//! What people type: patterns, addresses, keys, ranges; and the map of a scan.

use sha2::{Digest as _, Sha256};
use warpsmith_chain::coin::{AddressType, COINS, Network, decode_wif, descriptor_checksum, infer};
use warpsmith_chain::{Address, CHAINS, Digest, KeyTarget, SaltMask, ethereum, find, identify, nostr};
use warpsmith_pattern::{Options, compile};
use warpsmith_store::{Map, parse_range};

use crate::assert_told;

/// Text as a pattern for every target: it is refused, or its filter and exact test work and agree.
pub fn pattern_parse(data: &[u8]) {
    // The first bytes make a digest, so that the fuzzer can look for one that matches but is not accepted.
    let (bytes, pattern) = data.split_at(data.len().min(32));
    let Ok(pattern) = std::str::from_utf8(if pattern.is_empty() { bytes } else { pattern }) else { return };
    let mut digest = [0; 32];
    digest[..bytes.len()].copy_from_slice(bytes);

    for row in CHAINS.iter().flat_map(|chain| &chain.addresses) {
        let target = row.target.as_ref();
        let digest = Digest::new(&digest[..target.form().bytes()]);
        for (ignore_case, checksum) in [(false, false), (true, false), (false, true)] {
            let Ok(patterns) = compile([pattern], target, &Options { ignore_case, checksum, low_bits: None })
            else {
                continue;
            };
            assert!(patterns.odds() > 0.0 && patterns.odds() <= 1.0);
            patterns.find(pattern);
            let found = patterns.find(&target.encode(&digest));
            for max_false in [1e-3, 1e-9] {
                assert!(patterns.filter(max_false).accepts(&digest.words()) || found.is_none());
            }
        }
    }
}

/// Text as an Ethereum address, a salt mask, a hash, a salt layout and init code: each is refused with a reason, or reads back
/// as what it was.
pub fn address_decode(data: &[u8]) {
    if let Err(error) = ethereum::read_init_code(data) {
        assert_told(error);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ethereum::decode(text) {
        Ok(address) => assert!(ethereum::encode(&address).eq_ignore_ascii_case(text)),
        Err(error) => assert_told(error),
    }
    match SaltMask::parse(text) {
        Ok(mask) => assert_eq!(SaltMask::parse(&mask.to_string()), Ok(mask)),
        Err(error) => assert_told(error),
    }
    if let Err(error) = ethereum::parse_hash(text) {
        assert_told(error);
    }
    if let Err(error) = ethereum::parse_layout(text) {
        assert_told(error);
    }
    if let Err(error) = ethereum::Factory::parse(text) {
        assert_told(error);
    }
}

/// Text as an npub and as an nsec: it is refused, or encodes back to the same text.
pub fn bech32_decode(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let npub = find("npub").expect("npub is a target");
    match npub.decode(text) {
        Ok(digest) => assert_eq!(npub.encode(&digest), text.to_ascii_lowercase()),
        Err(error) => assert_told(error),
    }
    match nostr::decode_secret(text) {
        Ok(secret) => assert_eq!(*npub.export(&secret), text.to_ascii_lowercase()),
        Err(error) => assert_told(error),
    }
}

/// Text as an address of every type of every chain, a WIF key, a descriptor and a pattern to infer the type from: each is
/// refused with a reason, or reads back as what it was.
pub fn bitcoin_decode(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for row in CHAINS.iter().flat_map(|chain| &chain.addresses) {
        match row.target.decode(text) {
            // A prefix may be left out where the checksum tells it.
            Ok(digest) => {
                let whole = row.target.encode(&digest).to_ascii_lowercase();
                assert!(whole.ends_with(&text.to_ascii_lowercase()));
            }
            Err(error) => assert_told(error),
        }
    }
    match decode_wif(text) {
        Ok(wif) => {
            let address_type =
                if wif.is_compressed { AddressType::P2pkh } else { AddressType::P2pkhUncompressed };
            let addresses =
                COINS.iter().flat_map(|coin| Network::ALL.map(|network| coin.on(network, address_type)));
            let mut of_version =
                addresses.filter(|target| target.coin.params(target.network).wif == wif.version);
            assert!(of_version.next().is_some_and(|target| *target.export(&wif.secret) == text));
        }
        Err(error) => assert_told(error),
    }
    if let Some(checksum) = descriptor_checksum(text) {
        assert_eq!(checksum.len(), 8);
    }
    for coin in COINS {
        for network in Network::ALL {
            if let Err(refusal) = infer(coin, text.lines(), None, network) {
                assert_told(refusal);
            }
        }
    }
}

/// Text as an address of unknown type, as a range of keys and, with the digest that belongs to it, as the map of a scan: each is
/// refused with a reason, or reads back as what it was.
pub fn scan_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match identify(text) {
        Ok(Address::Key(kind, digest)) => {
            let again = identify(&kind.text(&digest));
            let is_bare = text.to_ascii_lowercase().starts_with("hash160:");
            assert!(is_bare || again == Ok(Address::Key(kind, digest)), "{text}");
        }
        Ok(Address::Script(reason)) => assert!(!reason.is_empty()),
        Err(error) => assert_told(error),
    }
    match parse_range(text) {
        Ok(range) => assert_eq!(parse_range(&range.to_string()), Ok(range)),
        Err(error) => assert_told(error),
    }
    map(text);
}

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
        Err(error) => assert_told(error),
    }
}
