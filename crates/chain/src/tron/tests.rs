use miniscript::bitcoin::base58;
use proptest::prelude::*;
use serde::Deserialize;
use sha3::{Digest as _, Keccak256};

use super::TRON;
use crate::{Address, Digest, Error, KeyTarget as _, PublicPoint, Target as _, identify};

#[derive(Deserialize)]
struct Vectors {
    /// Addresses as hex and as text.
    addresses: Vec<(String, String, String)>,
    /// Private keys and the addresses of their accounts.
    keys: Vec<(String, String, String)>,
    /// Texts that are refused, and words of the message.
    refused: Vec<(String, String)>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn point(secret: &[u8; 32]) -> Option<PublicPoint> {
    let secret = secp256k1::SecretKey::from_secret_bytes(*secret).ok()?;
    let bytes = secp256k1::PublicKey::from_secret_key(&secret).serialize_uncompressed();
    Some(PublicPoint { x: bytes[1..33].try_into().unwrap(), y: bytes[33..].try_into().unwrap() })
}

#[test]
fn vectors_encode_and_decode() {
    for (hex, text, source) in vectors().addresses {
        // The hex form has the version in front.
        let bytes = const_hex::decode(hex).unwrap();
        let digest = Digest::new(&bytes[1..]);
        assert_eq!((bytes[0], TRON.encode(&digest)), (0x41, text.clone()), "{source}");
        assert_eq!(TRON.decode(&text), Ok(digest), "{source}");
    }
    for (secret, text, source) in vectors().keys {
        let secret = const_hex::decode_to_array(secret).unwrap();
        assert_eq!(TRON.encode(&TRON.digest(&point(&secret).unwrap())), text, "{source}");
        assert_eq!(*TRON.export(&secret), const_hex::encode(secret), "{source}");
    }
}

#[test]
fn refused_texts_say_why_and_are_not_repeated() {
    for (text, says) in vectors().refused {
        let message = TRON.decode(&text).unwrap_err().to_string();
        assert!(message.contains(&says) && !message.contains(&text), "{text}: {message}");
    }
    assert!(matches!(identify("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u"), Err(Error::Checksum)));
}

proptest! {
    /// Another implementation of base58 and of the bytes, from the private key on.
    #[test]
    fn random_keys_agree_with_another_implementation(secret: [u8; 32]) {
        let Ok(theirs) = miniscript::bitcoin::secp256k1::SecretKey::from_slice(&secret) else { return Ok(()) };
        let secp = miniscript::bitcoin::secp256k1::Secp256k1::new();
        let key = theirs.public_key(&secp).serialize_uncompressed();
        let account = &Keccak256::digest(&key[1..])[12..];
        let text = base58::encode_check(&[&[0x41], account].concat());
        let digest = TRON.digest(&point(&secret).unwrap());
        prop_assert_eq!(TRON.encode(&digest), text.clone());
        prop_assert!(text.starts_with('T') && text.len() == 34);
        prop_assert_eq!(TRON.decode(&text), Ok(digest));
        let Ok(Address::Key(kind, same)) = identify(&text) else { panic!("{text}") };
        prop_assert_eq!((kind.name(), kind.text(&same)), ("tron", text));
    }
}
