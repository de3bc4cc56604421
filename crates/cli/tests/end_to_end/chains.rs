//! The chains beside Nostr, Ethereum and Bitcoin, each through every part of the program: mined, split and joined, scanned for
//! in lists and databases. What an address must be is computed here by other crates, from the private key on.

use std::collections::BTreeSet;
use std::path::Path;

use cashaddr::CashEnc as _;
use miniscript::bitcoin::base58;
use miniscript::bitcoin::bech32::{Bech32, Hrp, encode, segwit};
use miniscript::bitcoin::hashes::{Hash as _, hash160};
use miniscript::bitcoin::key::{Secp256k1, TapTweak as _};
use miniscript::bitcoin::secp256k1::{PublicKey, SecretKey};
use serde_json::Value;
use sha3::{Digest as _, Keccak256};
use tempfile::tempdir;

use crate::harness::{random_secret, text, warpsmith, write_private};
use crate::scan::{scan, write};

/// A type of address: the command that mines it, a pattern, what scans call it, and its text for a key.
struct Type {
    mine: &'static [&'static str],
    pattern: &'static str,
    scanned_as: &'static str,
    address: fn(&PublicKey) -> String,
}

fn hash(bytes: &[u8]) -> [u8; 20] {
    hash160::Hash::hash(bytes).to_byte_array()
}

fn in_base58(version: u8, hash: [u8; 20]) -> String {
    base58::encode_check(&[&[version], &hash[..]].concat())
}

fn compressed(key: &PublicKey) -> [u8; 20] {
    hash(&key.serialize())
}

fn uncompressed(key: &PublicKey) -> [u8; 20] {
    hash(&key.serialize_uncompressed())
}

fn in_bech32(prefix: &str, bytes: &[u8]) -> String {
    encode::<Bech32>(Hrp::parse(prefix).unwrap(), bytes).unwrap()
}

const TYPES: &[Type] = &[
    Type {
        mine: &["ltc"],
        pattern: "LT",
        scanned_as: "ltc-p2pkh",
        address: |key| in_base58(0x30, compressed(key)),
    },
    Type {
        mine: &["ltc", "--type", "p2pkh-uncompressed"],
        pattern: "LT",
        scanned_as: "ltc-p2pkh-uncompressed",
        address: |key| in_base58(0x30, uncompressed(key)),
    },
    Type {
        mine: &["ltc"],
        pattern: "MT",
        scanned_as: "ltc-p2sh",
        address: |key| in_base58(0x32, hash(&[&[0, 20], &compressed(key)[..]].concat())),
    },
    Type {
        mine: &["ltc"],
        pattern: "ltc1qa",
        scanned_as: "ltc-p2wpkh",
        address: |key| segwit::encode_v0(Hrp::parse("ltc").unwrap(), &compressed(key)).unwrap(),
    },
    Type {
        mine: &["ltc"],
        pattern: "ltc1pa",
        scanned_as: "ltc-p2tr",
        address: |key| {
            let (tweaked, _) = key.x_only_public_key().0.tap_tweak(&Secp256k1::new(), None);
            segwit::encode_v1(Hrp::parse("ltc").unwrap(), &tweaked.serialize()).unwrap()
        },
    },
    Type {
        mine: &["doge"],
        pattern: "DM",
        scanned_as: "doge-p2pkh",
        address: |key| in_base58(0x1e, compressed(key)),
    },
    Type {
        mine: &["doge", "--type", "p2pkh-uncompressed"],
        pattern: "DM",
        scanned_as: "doge-p2pkh-uncompressed",
        address: |key| in_base58(0x1e, uncompressed(key)),
    },
    Type {
        mine: &["bch"],
        pattern: "qpa",
        scanned_as: "bch-p2pkh",
        address: |key| compressed(key).encode_p2pkh("bitcoincash").unwrap(),
    },
    Type {
        mine: &["bch", "--type", "p2pkh-uncompressed"],
        pattern: "qpa",
        scanned_as: "bch-p2pkh-uncompressed",
        address: |key| uncompressed(key).encode_p2pkh("bitcoincash").unwrap(),
    },
    Type {
        mine: &["tron"],
        pattern: "TT",
        scanned_as: "tron",
        address: |key| {
            let account = Keccak256::digest(&key.serialize_uncompressed()[1..]);
            in_base58(0x41, account[12..].try_into().unwrap())
        },
    },
    Type {
        mine: &["cosmos"],
        pattern: "a2",
        scanned_as: "cosmos",
        address: |key| in_bech32("cosmos", &compressed(key)),
    },
    Type {
        mine: &["cosmos", "--prefix", "osmo"],
        pattern: "a2",
        scanned_as: "cosmos",
        address: |key| in_bech32("osmo", &compressed(key)),
    },
];

/// The key of a result, whose address it is by the other crates.
#[track_caller]
fn checked(kind: &Type, line: &Value) -> SecretKey {
    let secret = SecretKey::from_slice(&const_hex::decode(text(line, "secret_key")).unwrap()).unwrap();
    let address = (kind.address)(&secret.public_key(&Secp256k1::new()));
    assert_eq!(text(line, "address"), address);
    assert!(address.contains(kind.pattern), "{address}");
    secret
}

#[test]
fn every_chain_is_mined_and_its_keys_are_split_and_joined() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for kind in TYPES {
        let mine = |more: &[&str]| {
            let flags = ["--device", "cpu", "--threads", "1", "--json"];
            warpsmith(&[kind.mine, &[kind.pattern], &flags, more].concat()).code(0)
        };
        let line = mine(&[]).json().remove(0);
        let secret = checked(kind, &line);
        // Wallets read the key: WIF of the coin, or hex.
        let export = text(&line, "export");
        match base58::decode_check(export) {
            Ok(bytes) => assert_eq!(bytes[1..33], secret.secret_bytes(), "{line}"),
            Err(_) => assert_eq!(export, const_hex::encode(secret.secret_bytes()), "{line}"),
        }

        let own = random_secret();
        write_private(path("own.key"), &const_hex::encode(own.to_secret_bytes()));
        let public = const_hex::encode(secp256k1::PublicKey::from_secret_key(&own).serialize());
        let run = mine(&["--split-key", &public]);
        assert!(!run.stdout.contains("secret_key"), "{run:?}");
        write_private(path("result.json"), &run.stdout);
        let joined =
            warpsmith(&["join", "--secret-key-file", &path("own.key"), &path("result.json"), "--json"]);
        let joined = joined.code(0).json().remove(0);
        assert_ne!(checked(kind, &joined).secret_bytes(), own.to_secret_bytes());
    }
}

/// The type of a finding, as `--type` has it.
fn scanned_as(line: &Value) -> String {
    match (text(line, "target"), text(line, "type")) {
        ("btc", kind) => kind.to_owned(),
        (chain, kind) if chain == kind => kind.to_owned(),
        (chain, kind) => format!("{chain}-{kind}"),
    }
}

#[test]
fn every_chain_is_scanned_for_in_lists_and_databases() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let key = |number: u32| {
        let mut bytes = [0; 32];
        bytes[28..].copy_from_slice(&number.to_be_bytes());
        SecretKey::from_slice(&bytes).unwrap().public_key(&Secp256k1::new())
    };
    // A key for each type, and one for a hash of which nothing else is known. The last key of all is the range's last.
    let first = 0x1_0000;
    let number = |index: usize| first + 97 * index as u32;
    let bare = number(TYPES.len());
    let hashed = format!("hash160:{}", const_hex::encode(compressed(&key(bare))));
    let addresses = TYPES.iter().enumerate().map(|(index, kind)| (kind.address)(&key(number(index))));
    write(Path::new(&path("list")), addresses.chain([hashed]));
    warpsmith(&["db", "build", &path("database"), &path("list")]).code(0);
    warpsmith(&["db", "verify", &path("database")]).code(0);

    let mut expected: BTreeSet<(String, u32)> = BTreeSet::new();
    for (index, kind) in TYPES.iter().enumerate() {
        expected.insert((kind.scanned_as.to_owned(), number(index)));
    }
    expected.insert(("p2pkh".to_owned(), bare));
    let range = format!("{first:x}:{bare:x}");
    for (flag, given) in [("--targets", path("list")), ("--database", path("database"))] {
        let run = scan(&["--range", &range, flag, &given]).code(0);
        let lines = run.json();
        let number = |line: &Value| u32::from_str_radix(text(line, "secret_key"), 16).unwrap();
        let found: Vec<_> = lines.iter().map(|line| (scanned_as(line), number(line))).collect();
        assert_eq!(found.len(), expected.len(), "each once: {found:?}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{flag}");
        for line in &lines {
            // Under which prefix an account of the Cosmos kind was listed, a record does not say: it is told as the hub's.
            if let Some(kind) = TYPES.iter().find(|kind| kind.scanned_as == scanned_as(line)) {
                assert_eq!(text(line, "address"), (kind.address)(&key(number(line))));
            }
        }
    }
    for kind in TYPES {
        let (flag, given) = ("--targets", path("list"));
        let run = scan(&["--range", &range, flag, &given, "--type", kind.scanned_as]).code(0);
        let lines = run.json();
        let wanted = expected.iter().filter(|(name, _)| name == kind.scanned_as).count();
        assert_eq!(lines.len(), wanted, "{}", kind.scanned_as);
    }
}

#[test]
fn what_no_chain_writes_is_refused_in_words() {
    for (arguments, says) in [
        (&["tron", "T0"][..], "there is never '0' (character 2)"),
        (&["tron", "1Love"], "the first character is T and never '1'"),
        (&["ltc", "1Love"], "L (p2pkh), M (p2sh), ltc1q (p2wpkh) or ltc1p (p2tr)"),
        (&["doge", "bc1q"], "D (p2pkh)"),
        (&["bch", "qb"], "after q there is never 'b' (character 2)"),
        (&["cosmos", "b"], "after cosmos1 there is never 'b'"),
        (&["cosmos", "--prefix", "inj", "a"], "warpsmith eth"),
        (&["cosmos", "--prefix", "Osmo", "a"], "lower-case letters"),
    ] {
        let run = warpsmith(arguments).code(2).says(&[says]);
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}
