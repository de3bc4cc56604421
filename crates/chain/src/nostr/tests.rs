//! NIP-19 vectors, the `nostr` crate as an oracle, and every way a text can be wrong.

use nostr::nips::nip19::{FromBech32, ToBech32};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Vectors {
    keys: Vec<Key>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Key {
    source: String,
    digest: Option<String>,
    npub: Option<String>,
    secret: Option<String>,
    nsec: Option<String>,
}

#[derive(Deserialize)]
struct Refused {
    text: String,
    reads: Reads,
    says: String,
}

/// Which decoder a refused text is given to.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reads {
    Npub,
    Nsec,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn bytes(hex: &str) -> [u8; 32] {
    const_hex::decode_to_array(hex).unwrap()
}

#[test]
fn vectors_encode_and_decode() {
    for key in vectors().keys {
        if let (Some(digest), Some(npub)) = (&key.digest, &key.npub) {
            let digest = Digest::new(&bytes(digest));
            assert_eq!(&Npub.encode(&digest), npub, "{}", key.source);
            assert_eq!(Npub.decode(npub), Ok(digest), "{}", key.source);
            assert_eq!(Npub.decode(&npub.to_uppercase()), Ok(digest), "{}", key.source);
            let Encoding::Linear(encoding) = Npub.encoding() else { panic!("bech32 is linear") };
            assert_eq!(&encoding.text(&digest), npub, "{}", key.source);
        }
        if let (Some(secret), Some(nsec)) = (&key.secret, &key.nsec) {
            assert_eq!(*Npub.export(&bytes(secret)), *nsec, "{}", key.source);
            assert_eq!(*decode_secret(nsec).unwrap(), bytes(secret), "{}", key.source);
            assert!(matches!(Npub.decode(nsec), Err(Error::Secret { .. })), "{}", key.source);
        }
    }
}

#[test]
fn refused_texts_say_why_and_are_not_repeated() {
    for Refused { text, reads, says } in vectors().refused {
        let error = match reads {
            Reads::Npub => Npub.decode(&text).unwrap_err(),
            Reads::Nsec => decode_secret(&text).map(|_| ()).unwrap_err(),
        };
        let message = error.to_string();
        assert!(message.contains(&says), "{text}: {message}");
        assert!(text.len() < 8 || !message.contains(&text[5..]), "{text}: {message}");
    }
}

#[test]
fn every_single_wrong_character_is_noticed() {
    let npub = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
    for position in 5..npub.len() {
        for replacement in ALPHABET.chars() {
            let mut wrong: Vec<char> = npub.chars().collect();
            if wrong[position] == replacement {
                continue;
            }
            wrong[position] = replacement;
            let wrong: String = wrong.into_iter().collect();
            assert_eq!(Npub.decode(&wrong), Err(Error::Checksum), "{wrong}");
        }
    }
}

proptest! {
    #[test]
    fn random_keys_agree_with_the_nostr_crate(secret: [u8; 32]) {
        // A random value is below the group order but for one in 2^128.
        let Ok(theirs) = nostr::key::SecretKey::from_slice(&secret) else { return Ok(()) };
        let keys = nostr::key::Keys::new(theirs);
        let digest = Digest::new(&keys.public_key().to_bytes());
        let npub = keys.public_key().to_bech32().unwrap();
        prop_assert_eq!(Npub.encode(&digest), npub.clone());
        prop_assert_eq!(Npub.decode(&npub), Ok(digest));
        prop_assert_eq!(Npub.export(&secret).to_string(), keys.secret_key().to_bech32().unwrap());
        prop_assert_eq!(nostr::key::PublicKey::from_bech32(&Npub.encode(&digest)).unwrap(), keys.public_key());
    }

    #[test]
    fn decoding_undoes_encoding(bytes: [u8; 32]) {
        let digest = Digest::new(&bytes);
        let text = Npub.encode(&digest);
        prop_assert_eq!(text.len(), LENGTH);
        prop_assert_eq!(Npub.decode(&text), Ok(digest));
        prop_assert_eq!(*decode_secret(&Npub.export(&bytes)).unwrap(), bytes);
        let Encoding::Linear(encoding) = Npub.encoding() else { panic!("bech32 is linear") };
        prop_assert_eq!(encoding.text(&digest), text);
    }

    #[test]
    fn what_decodes_encodes_to_the_same_text(text in "(npub|nsec)1[a-z0-9]{56,60}|\\PC{0,70}") {
        if let Ok(digest) = Npub.decode(&text) {
            prop_assert_eq!(Npub.encode(&digest), text.to_ascii_lowercase());
        }
    }
}
