//! Arbitrary text as a Bitcoin address of every type, a WIF key, a descriptor and a pattern to infer the type from: each
//! is refused with a reason, or reads back as what it was.
//! Run: `cargo fuzz run bitcoin_decode fuzz/corpus/bitcoin_decode fuzz/seeds/bitcoin_decode`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpsmith_target::bitcoin::{AddressType, Bitcoin, Network, decode_wif, descriptor_checksum, infer};
use warpsmith_target::{KeyTarget, Target};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for target in Bitcoin::all() {
        match target.decode(text) {
            Ok(digest) => assert!(target.encode(&digest).eq_ignore_ascii_case(text)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Ok((secret, is_compressed, network)) = decode_wif(text) {
        let address_type = if is_compressed { AddressType::P2pkh } else { AddressType::P2pkhUncompressed };
        assert_eq!(*Bitcoin { address_type, network }.export(&secret), text);
    }
    if let Some(checksum) = descriptor_checksum(text) {
        assert_eq!(checksum.len(), 8);
    }
    for network in Network::ALL {
        if let Err(refusal) = infer(text.lines(), None, network) {
            assert!(!refusal.to_string().is_empty());
        }
    }
});
