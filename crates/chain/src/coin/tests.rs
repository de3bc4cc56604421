//! Vectors of the BIPs, the `bitcoin` crate and `miniscript` as oracles, and every way a text can be wrong.

use miniscript::bitcoin::key::{Secp256k1, TweakedPublicKey, UntweakedPublicKey};
use miniscript::bitcoin::{self as theirs, Address, CompressedPublicKey, KnownHrp, PrivateKey};
use miniscript::{Descriptor, DescriptorPublicKey};
use proptest::prelude::*;
use secp256k1::{PublicKey, SecretKey};
use serde::Deserialize;

use super::*;
use crate::text::base58;

#[derive(Deserialize)]
struct Vectors {
    keys: Vec<Key>,
    digests: Vec<Text>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Key {
    source: String,
    r#type: String,
    network: String,
    secret: Option<String>,
    public: Option<String>,
    wif: Option<String>,
    tweak: Option<String>,
    output: Option<String>,
    address: String,
}

#[derive(Deserialize)]
struct Text {
    source: String,
    r#type: String,
    network: String,
    digest: String,
    address: String,
}

#[derive(Deserialize)]
struct Refused {
    source: String,
    r#type: String,
    network: String,
    text: String,
    says: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn target(address_type: &str, network: &str) -> CoinAddress {
    BITCOIN.on(Network::find(network).unwrap(), AddressType::find(address_type).unwrap())
}

fn point(key: &PublicKey) -> PublicPoint {
    let bytes = key.serialize_uncompressed();
    PublicPoint { x: bytes[1..33].try_into().unwrap(), y: bytes[33..].try_into().unwrap() }
}

fn public(secret: &[u8; 32]) -> PublicKey {
    PublicKey::from_secret_key(&SecretKey::from_secret_bytes(*secret).unwrap())
}

fn layout_text(target: &CoinAddress, digest: &Digest) -> String {
    match target.encoding() {
        Encoding::Linear(linear) => linear.text(digest),
        Encoding::Base58(base58) => base58.text(digest),
    }
}

#[test]
fn keys_of_the_bips_have_their_addresses() {
    for key in vectors().keys {
        let target = target(&key.r#type, &key.network);
        let mut public_key = key.public.map(|hex| const_hex::decode(hex).unwrap());
        if let Some(secret) = &key.secret {
            let secret = const_hex::decode_to_array(secret).unwrap();
            if let Some(wif) = &key.wif {
                assert_eq!(*target.export(&secret), *wif, "{}", key.source);
            }
            public_key.get_or_insert(public(&secret).serialize().to_vec());
        }
        if let Some(wif) = &key.wif {
            let Wif { secret, is_compressed, version } = decode_wif(wif).unwrap();
            assert_eq!((*target.export(&secret)).as_str(), wif, "{}", key.source);
            assert_eq!(is_compressed, target.address_type != AddressType::P2pkhUncompressed);
            assert_eq!(version, BITCOIN.params(target.network).wif);
            assert_eq!(public_key, Some(public(&secret).serialize().to_vec()), "{}", key.source);
        }
        let point = point(&PublicKey::from_slice(&public_key.unwrap()).unwrap());
        if let Some(tweak) = key.tweak {
            assert_eq!(const_hex::encode(crate::taproot_tweak(&point.x)), tweak, "{}", key.source);
        }
        if let Some(output) = key.output {
            assert_eq!(const_hex::encode(crate::taproot_output(&point.x)), output, "{}", key.source);
        }
        let digest = target.digest(&point);
        assert_eq!(target.encode(&digest), key.address, "{}", key.source);
        assert_eq!(target.decode(&key.address), Ok(digest), "{}", key.source);
        assert_eq!(layout_text(&target, &digest), key.address, "{}", key.source);
    }
}

#[test]
fn digests_and_texts_belong_together() {
    for vector in vectors().digests {
        let target = target(&vector.r#type, &vector.network);
        let digest = Digest::new(&const_hex::decode(&vector.digest).unwrap());
        assert_eq!(target.decode(&vector.address), Ok(digest), "{}", vector.source);
        let text = if target.address_type == AddressType::P2wpkh {
            vector.address.to_lowercase()
        } else {
            vector.address.clone()
        };
        assert_eq!(target.encode(&digest), text, "{}", vector.source);
        assert_eq!(layout_text(&target, &digest), text, "{}", vector.source);
    }
}

#[test]
fn refused_texts_say_why_and_are_not_repeated() {
    for Refused { source, r#type, network, text, says } in vectors().refused {
        let message = target(&r#type, &network).decode(&text).unwrap_err().to_string();
        assert!(message.contains(&says), "{source}: {message}");
        assert!(!message.contains(&text[4..]), "{source}: {message}");
    }
}

#[test]
fn wrong_keys_are_refused() {
    let wif = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
    for wrong in [
        "",
        "5",
        &wif[1..],
        &wif.replace('n', "m"),
        "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH",
        "0OIl",
        &"z".repeat(300),
    ] {
        assert!(decode_wif(wrong).is_err(), "{wrong}");
    }
    // A compressed key whose last byte is not 1, and a version that is no private key's.
    for payload in [[&[0x80][..], &[7; 32], &[2]].concat(), [&[0x81][..], &[7; 32], &[1]].concat()] {
        let mut text = String::new();
        base58::push_checked(&mut text, &payload);
        assert!(decode_wif(&text).is_err());
    }
}

#[test]
fn the_checksum_of_a_descriptor_is_that_of_bip_380() {
    assert_eq!(descriptor_checksum("raw(deadbeef)").as_deref(), Some("89f8spxm"));
    assert_eq!(descriptor_checksum("raw(deadbeef\u{e9})"), None);
    assert_eq!(descriptor_checksum("raw(\n)"), None);
}

/// The address that the `bitcoin` crate gives a private key it read from our export.
fn their_address(target: &CoinAddress, wif: &str) -> String {
    let secp = Secp256k1::new();
    let key = PrivateKey::from_wif(wif).unwrap();
    let (network, hrp) = match target.network {
        Network::Main => (theirs::NetworkKind::Main, KnownHrp::Mainnet),
        Network::Test => (theirs::NetworkKind::Test, KnownHrp::Testnets),
    };
    assert_eq!(key.network, network);
    let public = key.public_key(&secp);
    let x_only = UntweakedPublicKey::from(public.inner);
    let compressed = || CompressedPublicKey::try_from(public).unwrap();
    match target.address_type {
        AddressType::P2pkh | AddressType::P2pkhUncompressed => Address::p2pkh(public, network),
        AddressType::P2sh => Address::p2shwpkh(&compressed(), network),
        AddressType::P2wpkh => Address::p2wpkh(&compressed(), hrp),
        AddressType::P2tr => Address::p2tr(&secp, x_only, None, hrp),
        AddressType::Rawtr => Address::p2tr_tweaked(TweakedPublicKey::dangerous_assume_tweaked(x_only), hrp),
    }
    .to_string()
}

/// The address `miniscript` gives a descriptor, whose checksum it tests; it does not know `rawtr`.
fn descriptor_address(target: &CoinAddress, descriptor: &str) -> String {
    let secp = Secp256k1::new();
    let (descriptor, _) = Descriptor::<DescriptorPublicKey>::parse_descriptor(&secp, descriptor).unwrap();
    let network =
        if target.network == Network::Main { theirs::Network::Bitcoin } else { theirs::Network::Testnet };
    descriptor.at_derivation_index(0).unwrap().address(network).unwrap().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_exported_imports_as_the_printed_address(secret: [u8; 32]) {
        // A random value is below the group order but for one in 2^128.
        prop_assume!(SecretKey::from_secret_bytes(secret).is_ok());
        let point = point(&public(&secret));
        for target in BITCOIN.addresses() {
            let digest = target.digest(&point);
            let address = target.encode(&digest);
            let wif = target.export(&secret);
            prop_assert_eq!(their_address(&target, &wif), address.clone());
            prop_assert_eq!(&*decode_wif(&wif).unwrap().secret, &secret);
            for with_secret in [Some(&secret), None] {
                let lines = target.explain(&point, with_secret, Birthday::New);
                let (_, descriptor) = lines.iter().find(|(name, _)| *name == "descriptor").unwrap();
                let (body, sum) = descriptor.split_once('#').unwrap();
                prop_assert_eq!(descriptor_checksum(body).unwrap(), sum);
                prop_assert_eq!(body.contains(&**wif), with_secret.is_some());
                if target.address_type != AddressType::Rawtr {
                    prop_assert_eq!(descriptor_address(&target, descriptor), address.clone());
                } else {
                    prop_assert!(body.starts_with("rawtr(") && body.ends_with(')'));
                }
                prop_assert_eq!(lines.iter().any(|(name, _)| *name == "import"), target.is_taproot());
            }
        }
    }

    #[test]
    fn a_negated_key_is_another_candidate_unless_only_x_counts(secret: [u8; 32]) {
        prop_assume!(SecretKey::from_secret_bytes(secret).is_ok());
        let key = SecretKey::from_secret_bytes(secret).unwrap();
        let (one, other) = (point(&PublicKey::from_secret_key(&key)), point(&PublicKey::from_secret_key(&key.negate())));
        prop_assert_eq!(one.x, other.x);
        for target in BITCOIN.addresses() {
            prop_assert_eq!(target.digest(&one) == target.digest(&other), target.is_taproot());
        }
    }

    #[test]
    fn decoding_undoes_encoding(bytes: [u8; 32], zeros in 0usize..4) {
        let mut bytes = bytes;
        bytes[..zeros].fill(0);
        for target in BITCOIN.addresses() {
            let length = if target.is_taproot() { 32 } else { 20 };
            let digest = Digest::new(&bytes[..length]);
            let text = target.encode(&digest);
            prop_assert_eq!(target.decode(&text), Ok(digest));
            prop_assert_eq!(layout_text(&target, &digest), text);
        }
    }

    #[test]
    fn what_decodes_encodes_to_the_same_text(text in "[13mn2][1-9A-Za-z]{25,36}|(bc|tb)1[qp][a-z0-9]{38,58}|\\PC{0,70}") {
        for target in BITCOIN.addresses() {
            if let Ok(digest) = target.decode(&text) {
                prop_assert!(target.encode(&digest).eq_ignore_ascii_case(&text));
            }
        }
    }
}

/// A wallet that starts to look too late never shows what a recovered key holds.
#[test]
fn a_birthday_is_where_a_wallet_begins_to_look() {
    let secret = [1; 32];
    let point = point(&public(&secret));
    let target = BITCOIN.addresses().next().unwrap();
    for (birthday, timestamp) in [
        (Birthday::New, "\"timestamp\":\"now\"}]"),
        (Birthday::Unknown, "\"timestamp\":0}]"),
        (Birthday::At(1_364_774_400), "\"timestamp\":1364774400}]"),
    ] {
        let lines = target.explain(&point, Some(&secret), birthday);
        let (_, line) = lines.iter().find(|(name, _)| *name == "use").unwrap();
        assert!(line.ends_with(timestamp), "{}", **line);
        assert_eq!(birthday.to_string().parse(), Ok(birthday));
    }
}

fn inferred(patterns: &[&str], wanted: Option<AddressType>, network: Network) -> Result<CoinAddress, String> {
    infer(&BITCOIN, patterns, wanted, network).map_err(|refusal| refusal.to_string())
}

#[test]
fn the_type_follows_from_the_head() {
    use AddressType::{P2pkh, P2pkhUncompressed, P2sh, P2tr, P2wpkh, Rawtr};
    let cases: &[(&[&str], Option<AddressType>, Network, AddressType)] = &[
        (&["1Love"], None, Network::Main, P2pkh),
        (&["1Love"], Some(P2pkhUncompressed), Network::Main, P2pkhUncompressed),
        (&["1?ve", "..cafe"], None, Network::Main, P2pkh),
        (&["..cafe", "3Love"], None, Network::Main, P2sh),
        (&["bc1qlove"], None, Network::Main, P2wpkh),
        (&["BC1QLOVE"], None, Network::Main, P2wpkh),
        (&["bc1plove..xx"], None, Network::Main, P2tr),
        (&["bc1plove"], Some(Rawtr), Network::Main, Rawtr),
        (&["/^bc1p(a|c)/"], Some(P2tr), Network::Main, P2tr),
        (&["/^1[Ll]ove/"], None, Network::Main, P2pkh),
        (&["/^bc1q[a-c]/"], None, Network::Main, P2wpkh),
        (&["/love/", "..x.."], Some(P2sh), Network::Main, P2sh),
        (&["?Love"], Some(P2pkh), Network::Main, P2pkh),
        (&["bc1", "bc1?ove"], Some(P2tr), Network::Main, P2tr),
        (&["mLove", "nLove"], None, Network::Test, P2pkh),
        (&["2Love"], None, Network::Test, P2sh),
        (&["tb1qlove"], None, Network::Test, P2wpkh),
        (&["tb1plove"], None, Network::Test, P2tr),
    ];
    for &(patterns, wanted, network, expected) in cases {
        assert_eq!(inferred(patterns, wanted, network), Ok(BITCOIN.on(network, expected)), "{patterns:?}");
    }
}

#[test]
fn patterns_that_do_not_say_one_type_are_refused_in_words() {
    use AddressType::{P2pkh, P2sh, P2tr};
    let wif = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
    let cases: &[(&[&str], Option<AddressType>, Network, &str)] = &[
        (&["Love"], None, Network::Main, "1 (p2pkh)"),
        (&["Love"], Some(P2sh), Network::Main, "3 (p2sh)"),
        (&["Love"], None, Network::Test, "m or n (p2pkh)"),
        (&["bc1love"], None, Network::Main, "bc1q (p2wpkh)"),
        (&["1Love", "3Love"], None, Network::Main, "one search has one type"),
        (&["1Love"], Some(P2tr), Network::Main, "p2tr addresses begin with bc1p"),
        (&["3Love"], Some(P2pkh), Network::Main, "p2pkh addresses begin with 1"),
        (&["tb1qlove"], None, Network::Main, "of the test network"),
        (&["1Love"], None, Network::Test, "of the main network"),
        (&["..love"], None, Network::Main, "does not say what kind"),
        (&["/love/"], None, Network::Main, "does not say what kind"),
        (&["/^1a|^3b/"], None, Network::Main, "does not say what kind"),
        (&["bc1"], None, Network::Main, "does not say what kind"),
        (&["b"], None, Network::Main, "does not say what kind"),
        (&["?Love"], None, Network::Main, "does not say what kind"),
        (&[""], None, Network::Main, "does not say what kind"),
        (&[], None, Network::Main, "does not say what kind"),
        (&[wif], None, Network::Main, "SECRET"),
    ];
    for &(patterns, wanted, network, says) in cases {
        let message = inferred(patterns, wanted, network).unwrap_err();
        assert!(message.contains(says), "{patterns:?}: {message}");
        assert!(!message.contains(wif));
    }
}

#[test]
fn the_heads_that_a_pattern_may_lack_are_told() {
    use AddressType::{P2pkh, P2sh, P2tr, P2wpkh};
    let told = |pattern, wanted| match infer(&BITCOIN, [pattern], wanted, Network::Main) {
        Err(Refusal::Head { tries, .. }) => tries,
        other => panic!("{other:?}"),
    };
    let tries = |tries: &[(AddressType, &str)]| -> Vec<(AddressType, String)> {
        tries.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect()
    };
    let all = [(P2pkh, "1Love"), (P2sh, "3Love"), (P2wpkh, "bc1qLove"), (P2tr, "bc1pLove")];
    assert_eq!(told("Love", None), tries(&all));
    assert_eq!(told("Love", Some(P2sh)), tries(&[(P2sh, "3Love")]));
    assert_eq!(told("^Love", Some(P2sh)), tries(&[(P2sh, "3Love")]));
    assert_eq!(told("BC1love", None), tries(&[(P2wpkh, "bc1qlove"), (P2tr, "bc1plove")]));
    assert_eq!(infer(&BITCOIN, ["^1Love"], None, Network::Main), Ok(BITCOIN.on(Network::Main, P2pkh)));
}

/// What a row says of how its texts begin is what they begin with, whatever the hash or the key.
#[test]
fn rows_say_how_their_texts_begin() {
    for coin in COINS {
        for address in coin.addresses() {
            let bytes = address.form().bytes();
            let begins = |fill: u8| {
                let text = address.encode(&Digest::new(&vec![fill; bytes]));
                let head = address.writing().heads().find(|head| text.starts_with(head));
                head.unwrap_or_else(|| panic!("{} {text}", coin.name))
            };
            let all: Vec<&str> = (0..=255).map(begins).collect();
            assert!(
                address.writing().heads().all(|head| all.contains(&head)),
                "{} has heads in vain",
                coin.name
            );
            let params = coin.params(address.network);
            for fill in [1, 0x7f, 0xfe] {
                let wif = address.export(&[fill; 32]);
                assert!(params.wif_heads.iter().any(|head| wif.starts_with(head)), "{}", coin.name);
                assert!(looks_secret(&wif).is_some());
                assert_eq!(decode_wif(&wif).unwrap().version, params.wif);
            }
        }
        // The first type on the main network is the one a bare name means.
        assert_eq!(coin.types.first(), Some(&AddressType::P2pkh));
        assert!(infer(coin, [coin.example], None, Network::Main).is_ok());
    }
}

#[test]
fn names_are_unique_and_found() {
    for address_type in AddressType::ALL {
        assert_eq!(AddressType::find(address_type.name()), Some(address_type));
        assert_eq!(BITCOIN.main(address_type).variant(), Some(address_type.name()));
    }
    assert!(AddressType::find("P2PKH").is_none() && Network::find("regtest").is_none());
    assert_eq!(BITCOIN.addresses().count(), 12);
}
