use proptest::prelude::*;
use secp256k1::PublicKey;
use serde::Deserialize;

use super::*;
use crate::{Address, Error, PublicPoint, identify};

#[derive(Deserialize)]
struct Vectors {
    /// Compressed public key, address, source.
    accounts: Vec<(String, String, String)>,
    /// Texts that are no address of the hub, and words of the message.
    refused: Vec<(String, String)>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn point(key: &PublicKey) -> PublicPoint {
    let bytes = key.serialize_uncompressed();
    PublicPoint { x: bytes[1..33].try_into().unwrap(), y: bytes[33..].try_into().unwrap() }
}

#[test]
fn vectors_encode_and_decode_and_name_their_chain() {
    for (key, text, source) in vectors().accounts {
        let account = cosmos(text.split_once('1').unwrap().0).unwrap();
        let key = PublicKey::from_slice(&const_hex::decode(key).unwrap()).unwrap();
        let digest = account.digest(&point(&key));
        assert_eq!(account.encode(&digest), text, "{source}");
        for text in [text.clone(), text.to_uppercase()] {
            assert_eq!(account.decode(&text), Ok(digest), "{source}");
            let Ok(Address::Key(kind, same)) = identify(&text) else { panic!("{text}") };
            assert_eq!((kind.name(), same), ("cosmos", digest));
        }
        // A result names its prefix by its address.
        let told = Chain::find("cosmos").unwrap().target_of(None, &text).unwrap();
        assert_eq!(told.encode(&digest), text);
    }
}

#[test]
fn refused_texts_say_why_and_are_not_repeated() {
    for (text, says) in vectors().refused {
        let message = cosmos(HUB).unwrap().decode(&text).unwrap_err().to_string();
        assert!(message.contains(&says) && !message.contains(&text), "{text}: {message}");
    }
    assert_eq!(identify("cosmos1hsk6jryyqjfhp5dhc55tc9jtckygx0eph6dd03"), Err(Error::Checksum));
}

#[test]
fn prefixes_of_other_chains_are_refused_in_words() {
    for (prefix, says) in [
        ("", "lower-case letters"),
        ("Osmo", "lower-case letters"),
        ("osmo1", "lower-case letters"),
        ("inj", "warpsmith eth"),
        ("evmos", "Keccak-256"),
        ("bc", "another chain"),
        ("nsec", "another chain"),
        ("cosmosvalcons", "no account"),
        ("cosmospub", "no account"),
    ] {
        let message = cosmos(prefix).unwrap_err().to_string();
        assert!(message.contains(says), "{prefix}: {message}");
    }
    assert_eq!(cosmos("osmo"), cosmos("osmo"));
    assert!(cosmos("cosmosvaloper").is_ok());
}

proptest! {
    /// The hashes of another implementation from the private key on, the text by the bech32 crate, the encoding by ours.
    #[test]
    fn random_keys_agree_with_another_implementation(secret: [u8; 32]) {
        use miniscript::bitcoin::hashes::{Hash as _, hash160};
        use miniscript::bitcoin::secp256k1::{Secp256k1, SecretKey};
        let Ok(theirs) = SecretKey::from_slice(&secret) else { return Ok(()) };
        let hash = hash160::Hash::hash(&theirs.public_key(&Secp256k1::new()).serialize()).to_byte_array();
        let ours = secp256k1::SecretKey::from_secret_bytes(secret).unwrap();
        for prefix in ["cosmos", "osmo", "celestia"] {
            let account = cosmos(prefix).unwrap();
            let digest = account.digest(&point(&PublicKey::from_secret_key(&ours)));
            prop_assert_eq!(digest.as_bytes(), hash);
            let text = bech32::encode::<Bech32>(bech32::Hrp::parse(prefix).unwrap(), &hash).unwrap();
            prop_assert_eq!(account.encode(&digest), text.clone());
            let crate::Encoding::Linear(linear) = account.encoding() else { panic!("bech32 is linear") };
            prop_assert_eq!(linear.text(&digest), text.clone());
            prop_assert_eq!(account.decode(&text), Ok(digest));
        }
    }
}
