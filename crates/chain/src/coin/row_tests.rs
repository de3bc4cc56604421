//! The rows beside Bitcoin's: vectors of the coins' own programs, and random keys against another implementation.

use miniscript::bitcoin::hashes::{Hash as _, hash160};
use miniscript::bitcoin::secp256k1::{Secp256k1, SecretKey};
use miniscript::bitcoin::{PrivateKey, base58};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::{Address, identify};

#[derive(Deserialize)]
struct Vectors {
    /// Where they are from, by coin.
    sources: std::collections::HashMap<String, String>,
    /// Coin, network, type, hash, address.
    addresses: Vec<(String, String, String, String, String)>,
    /// Coin, network, whether the key is compressed, key, wallet import format.
    keys: Vec<(String, String, bool, String, String)>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("rows.json")).unwrap()
}

fn coin(name: &str) -> &'static Coin {
    COINS.iter().find(|coin| coin.name == name).unwrap()
}

#[test]
fn addresses_of_the_coins_own_programs_encode_and_decode() {
    let vectors = vectors();
    for (name, network, address_type, hash, text) in vectors.addresses {
        let network = Network::find(&network).unwrap();
        let target = coin(&name).on(network, AddressType::find(&address_type).unwrap());
        let digest = Digest::new(&const_hex::decode(hash).unwrap());
        assert_eq!(target.encode(&digest), text, "{}", vectors.sources[&name]);
        assert_eq!(target.decode(&text), Ok(digest));
        let Ok(Address::Key(kind, same)) = identify(&text) else { panic!("{text}") };
        assert_eq!((kind.text(&same), same), (text, digest));
    }
    for (name, network, is_compressed, key, text) in vectors.keys {
        let address_type = if is_compressed { AddressType::P2pkh } else { AddressType::P2pkhUncompressed };
        let target = coin(&name).on(Network::find(&network).unwrap(), address_type);
        let key = const_hex::decode_to_array(key).unwrap();
        assert_eq!(*target.export(&key), text, "{}", vectors.sources[&name]);
        let read = decode_wif(&text).unwrap();
        assert_eq!((*read.secret, read.is_compressed), (key, is_compressed));
    }
    // Every row but Bitcoin's, which has a file of its own, has vectors here.
    assert!(COINS[1..].iter().all(|coin| vectors.sources.contains_key(coin.name)));
}

/// What other implementations write of a key, by their own hashes, base58, bech32 and cashaddr.
fn theirs(target: &CoinAddress, secret: &[u8; 32]) -> (String, String) {
    let params = target.coin.params(target.network);
    let is_compressed = target.address_type != AddressType::P2pkhUncompressed;
    let inner = SecretKey::from_slice(secret).unwrap();
    let mut private = PrivateKey::new(inner, miniscript::bitcoin::NetworkKind::Main);
    private.compressed = is_compressed;
    let public = private.public_key(&Secp256k1::new());
    let hash = hash160::Hash::hash(&public.to_bytes()).to_byte_array();
    let with_hash = |hash: [u8; 20]| match target.writing() {
        Writing::Base58 { version, .. } => base58::encode_check(&[&[version], &hash[..]].concat()),
        Writing::CashAddr { start } => {
            cashaddr::CashEnc::encode_p2pkh(&hash[..], start.split_once(':').unwrap().0).unwrap()
        }
        other => panic!("{other:?} holds no hash of a key"),
    };
    let hrp = |start: &str| bech32::Hrp::parse(start.split_once('1').unwrap().0).unwrap();
    let address = match target.address_type {
        AddressType::P2pkh | AddressType::P2pkhUncompressed => with_hash(hash),
        AddressType::P2sh => with_hash(hash160::Hash::hash(&[&[0, 20], &hash[..]].concat()).to_byte_array()),
        AddressType::P2wpkh => bech32::segwit::encode_v0(hrp(target.writing().head()), &hash).unwrap(),
        AddressType::P2tr | AddressType::Rawtr => {
            use miniscript::bitcoin::key::TapTweak as _;
            let (x, _) = public.inner.x_only_public_key();
            let x = match target.address_type {
                AddressType::P2tr => x.tap_tweak(&Secp256k1::new(), None).0.to_x_only_public_key(),
                _ => x,
            };
            bech32::segwit::encode_v1(hrp(target.writing().head()), &x.serialize()).unwrap()
        }
    };
    let mut payload = vec![params.wif];
    payload.extend(secret);
    payload.extend(is_compressed.then_some(1));
    (address, base58::encode_check(&payload))
}

proptest! {
    #[test]
    fn random_keys_agree_with_another_implementation(secret: [u8; 32]) {
        prop_assume!(SecretKey::from_slice(&secret).is_ok());
        let key = secp256k1::SecretKey::from_secret_bytes(secret).unwrap();
        let bytes = secp256k1::PublicKey::from_secret_key(&key).serialize_uncompressed();
        let point = PublicPoint { x: bytes[1..33].try_into().unwrap(), y: bytes[33..].try_into().unwrap() };
        for target in COINS.iter().flat_map(|coin| coin.addresses()) {
            let written = (target.encode(&target.digest(&point)), target.export(&secret).to_string());
            prop_assert_eq!(written, theirs(&target, &secret), "{} {}", target.coin.name, target.address_type.name());
        }
    }
}
