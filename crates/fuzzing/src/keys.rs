//! Keys under a password and recipients, as people hand them in.

use warpsmith_keystore::age::{self, Recipient};
use warpsmith_keystore::{Error, Password, bip38, nip49, web3};

use crate::assert_told;

/// The most that is derived here: what a file may ask for is gigabytes and minutes, and checked as it is read.
const CHEAP: u64 = 256;

/// That of the seed.
const IV: &str = "1b1f3a8550629d2014d84808d8a5ec09";

/// A text in all formats, an `ncryptsec` and a BIP-38 key also as the bytes under their checksum, which a fuzzer does not guess. What
/// is read asks for bounded work; nothing opens by a password it was not made with.
pub fn key_stores(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    let password = Password::new("correct horse".to_owned().into()).expect("a password");
    let told = |error: Error| assert_told(error);
    match kind {
        b'n' => {
            let hrp = bech32::Hrp::parse("ncryptsec").expect("a prefix");
            let made = bech32::encode::<bech32::Bech32>(hrp, data).ok();
            for text in made.as_deref().into_iter().chain([&*text]) {
                if let Ok(sealed) = nip49::read(text).map_err(told)
                    && within(sealed.blocks())
                {
                    assert!(sealed.decrypt(&password).is_err());
                }
            }
        }
        b'b' => {
            let mut made = String::new();
            warpsmith_chain::text::base58::push_checked(&mut made, data);
            for text in [made.as_str(), &*text] {
                // Its cost is fixed, and too high for a fuzzer.
                bip38::read(text).map_err(told).ok();
            }
        }
        b'w' => {
            if let Ok(sealed) = web3::read(&text).map_err(told)
                && within(sealed.blocks())
                && let Ok(opened) = sealed.decrypt(&password)
            {
                // The seeds hold one that opens. The format's checksum leaves out the iv, by which its key is another: whoever
                // uses a key compares the address.
                let has_iv = |document: &serde_json::Value| {
                    let crypto = document.get("crypto").or(document.get("Crypto"));
                    crypto.is_some_and(|crypto| crypto["cipherparams"]["iv"] == IV)
                };
                let is_ours = serde_json::from_str(&text).is_ok_and(|document| has_iv(&document));
                assert!(*opened.secret == [0x5a; 32] || !is_ours);
            }
        }
        b'a' => {
            if let Ok(recipient) = Recipient::parse(&text).map_err(told) {
                age::encrypt(b"a key", &recipient).map_err(told).ok();
            }
        }
        _ => {}
    }
}

/// Whether it is cheap; panics where it is more than a person can have meant.
fn within(blocks: u64) -> bool {
    assert!(blocks <= 1 << 27);
    blocks <= CHEAP
}
