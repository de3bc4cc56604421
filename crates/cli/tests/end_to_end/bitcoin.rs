//! Bitcoin addresses: what is printed, imported by the `miniscript` and `bitcoin` crates, gives the printed address.

use std::fs;
use std::str::FromStr;

use miniscript::bitcoin::key::Secp256k1;
use miniscript::bitcoin::{Address, Network, PrivateKey};
use miniscript::{Descriptor, DescriptorPublicKey};
use secp256k1::{PublicKey, SecretKey};
use serde_json::Value;
use tempfile::tempdir;

use crate::harness::{Run, assert_no_secret, random_secret, text, warpsmith, write_private};

/// A search for each type: its name, what is added to the command, and how addresses of the main network begin.
const TYPES: [(&str, &[&str], &str); 6] = [
    ("p2pkh", &["1A"], "1A"),
    ("p2pkh-uncompressed", &["1B", "--type", "p2pkh-uncompressed"], "1B"),
    ("p2sh", &["3C"], "3C"),
    ("p2wpkh", &["bc1qd"], "bc1qd"),
    ("p2tr", &["bc1pd"], "bc1pd"),
    ("rawtr", &["bc1pd", "--type", "rawtr"], "bc1pd"),
];

/// Searches on the processor with one thread.
fn search(args: &[&str]) -> Run {
    warpsmith(&[&["btc"], args, &["--device", "cpu", "--threads", "1", "--json"]].concat())
}

/// The address a descriptor stands for; the private key in it, if there is one, is looked up.
fn address_of(descriptor: &str, network: Network) -> String {
    // rawtr() is not in the crate: its key is the output key as it is.
    if let Some(rest) = descriptor.strip_prefix("rawtr(") {
        let key = &rest[..rest.find(')').expect("closed")];
        let x = match PrivateKey::from_wif(key) {
            Ok(secret) => secret.public_key(&Secp256k1::new()).inner.x_only_public_key().0,
            Err(_) => key.parse().expect("an x coordinate"),
        };
        let x = miniscript::bitcoin::key::TweakedPublicKey::dangerous_assume_tweaked(x);
        return Address::p2tr_tweaked(x, network).to_string();
    }
    let (public, _) = Descriptor::<DescriptorPublicKey>::parse_descriptor(&Secp256k1::new(), descriptor)
        .expect("a descriptor with its checksum");
    public.at_derivation_index(0).expect("no wildcard").address(network).expect("an address").to_string()
}

/// Whether everything in the line follows from its secret key; returns that.
#[track_caller]
fn check(line: &Value, address_type: &str, network: Network) -> SecretKey {
    let wif = PrivateKey::from_wif(text(line, "export")).expect("WIF");
    assert_eq!(text(line, "secret_key"), const_hex::encode(wif.to_bytes()));
    assert_eq!(wif.compressed, address_type != "p2pkh-uncompressed");
    assert_eq!(wif.network.is_mainnet(), network == Network::Bitcoin);
    let secret = SecretKey::from_secret_bytes(wif.to_bytes().try_into().expect("32 bytes")).expect("a key");
    let public = PublicKey::from_secret_key(&secret).serialize();
    assert_eq!(text(line, "public_key"), const_hex::encode(public));
    assert_eq!((text(line, "target"), text(line, "type")), ("btc", address_type));
    let descriptor = text(&line["details"], "descriptor");
    assert!(descriptor.contains(&wif.to_wif()), "{line}");
    assert_eq!(address_of(descriptor, network), text(line, "address"), "{line}");
    secret
}

#[test]
fn a_wallet_that_imports_what_is_printed_has_the_address() {
    for (address_type, args, head) in TYPES {
        let run = search(&[args, &["--count", "3"]].concat()).code(0);
        let lines = run.json();
        assert_eq!(lines.len(), 3, "{run:?}");
        for line in lines {
            check(&line, address_type, Network::Bitcoin);
            assert!(text(&line, "address").starts_with(head), "{line}");
        }
    }
}

#[test]
fn test_networks_have_addresses_of_their_own() {
    let cases = [("mp", "p2pkh"), ("n2", "p2pkh"), ("2N", "p2sh"), ("tb1qd", "p2wpkh"), ("tb1pd", "p2tr")];
    for (pattern, address_type) in cases {
        let run = search(&[pattern, "--network", "test"]).code(0);
        let line = run.json().remove(0);
        check(&line, address_type, Network::Testnet);
        assert!(text(&line, "address").starts_with(pattern), "{line}");
    }
}

#[test]
fn every_kind_of_pattern_is_found() {
    type Holds = fn(&str) -> bool;
    let cases: [(&[&str], Holds); 9] = [
        (&["1ab", "--ignore-case"], |a| a.to_lowercase().starts_with("1ab")),
        (&["1?a"], |a| a.starts_with('1') && a[2..].starts_with('a')),
        (&["1A..z"], |a| a.starts_with("1A") && a.ends_with('z')),
        (&["/^1[Aa]b/"], |a| a.starts_with("1Ab") || a.starts_with("1ab")),
        (&["..zz", "--type", "p2pkh"], |a| a.ends_with("zz")),
        (&["..ZZ..", "--type", "p2sh"], |a| a.starts_with('3') && a.contains("ZZ")),
        (&["bc1q..zz"], |a| a.starts_with("bc1q") && a.ends_with("zz")),
        (&["..zzz", "--type", "p2wpkh"], |a| a.starts_with("bc1q") && a.ends_with("zzz")),
        (&["BC1QZZ", "--ignore-case"], |a| a.starts_with("bc1qzz")),
    ];
    for (args, holds) in cases {
        let run = search(args).code(0);
        let line = run.json().remove(0);
        let address_type = text(&line, "type").to_owned();
        check(&line, &address_type, Network::Bitcoin);
        assert!(holds(text(&line, "address")), "{args:?} {line}");
    }
}

#[test]
fn a_split_key_is_joined_for_every_type() {
    for (address_type, args, _) in TYPES {
        let own = random_secret();
        let public = const_hex::encode(PublicKey::from_secret_key(&own).serialize());
        let own_hex = const_hex::encode(own.to_secret_bytes());
        let run = search(&[args, &["--split-key", &public]].concat()).code(0);
        assert_no_secret(&run, &[&own_hex]);
        let line = run.json().remove(0);
        // What a wallet can watch until then.
        let watched = text(&line["details"], "descriptor");
        assert_eq!(address_of(watched, Network::Bitcoin), text(&line, "address"), "{line}");

        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("result.json"), &run.stdout).unwrap();
        // The owner's key as a wallet exports it.
        let wif = PrivateKey::from_slice(&own.to_secret_bytes(), Network::Bitcoin).unwrap().to_wif();
        write_private(path("own.key"), if address_type == "p2sh" { &own_hex } else { &wif });
        let joined =
            warpsmith(&["join", "--secret-key-file", &path("own.key"), &path("result.json"), "--json"]);
        let joined = joined.code(0).json().remove(0);
        check(&joined, address_type, Network::Bitcoin);
        assert_eq!(text(&joined, "address"), text(&line, "address"));

        // Another type has another address, and no key for it is shown.
        let other = run.stdout.replace(
            &format!("\"type\":\"{address_type}\""),
            &format!("\"type\":\"{}\"", if address_type == "p2tr" { "rawtr" } else { "p2tr" }),
        );
        fs::write(path("other.json"), other).unwrap();
        let refused = warpsmith(&["join", "--secret-key-file", &path("own.key"), &path("other.json")]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert_eq!(refused.stdout, "");
    }
}

#[test]
fn with_an_output_file_no_descriptor_on_stdout_holds_the_key() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys");
    for json in [&["--json"][..], &[]] {
        let args = ["btc", "bc1pd", "--type", "rawtr", "--device", "cpu", "--threads", "1", "--output"];
        let _ = fs::remove_file(&file);
        let run = warpsmith(&[&args[..], &[file.to_str().unwrap()], json].concat()).code(0);
        let kept = fs::read_to_string(&file).unwrap();
        let wif = kept.split(['(', ')']).nth(1).expect("rawtr(WIF)").to_owned();
        let secret = PrivateKey::from_wif(&wif).expect("WIF");
        assert_no_secret(&run, &[&wif, &const_hex::encode(secret.to_bytes())]);
        assert!(run.stdout.contains("rawtr("), "{run:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_any_work() {
    let cases: [(&[&str], &[&str]); 10] = [
        (&[], &["no pattern", "btc 1Love"]),
        (&["cafe"], &["'cafe'", "1 (p2pkh)", "'1cafe'"]),
        (&["1l0ve"], &["'l'", "123456789ABC"]),
        (&["3z"], &["'3z'", "never 'z'"]),
        (&["..xyz"], &["--type p2pkh"]),
        (&["bc1cafe"], &["bc1qcafe", "bc1pcafe"]),
        (&["tb1qaa"], &["--network test"]),
        (&["1A", "--type", "p2wpkh"], &["bc1q", "--type"]),
        (&["1A", "--type", "p2wsh"], &["p2wsh", "p2wpkh"]),
        (&["bc1qb"], &["'b'", "qpzry9x8gf2tvdw0s3jn54khce6mua7l"]),
    ];
    for (args, fragments) in cases {
        let run = search(args).code(2).says(fragments);
        assert_eq!(run.json(), [] as [serde_json::Value; 0], "nothing but the error");
    }
    // One search has one type of address: a pattern of another is reported and skipped.
    let run = search(&["1A", "3Cafe"]).code(0);
    let run = run.says(&["1 pattern cannot be searched for", "p2pkh", "p2sh", "one after the other"]);
    assert!(text(&run.json()[0], "address").starts_with("1A"), "{run:?}");
    search(&["1A", "3Cafe", "--strict"]).code(2).says(&["one after the other"]);
    // A private key in place of a pattern is not repeated.
    let wif = PrivateKey::from_slice(&random_secret().to_secret_bytes(), Network::Bitcoin).unwrap().to_wif();
    let run = search(&[&wif]).code(2).says(&["SECRET"]);
    assert_no_secret(&run, &[&wif]);
}

#[test]
fn addresses_of_the_same_key_agree_with_the_crate() {
    let line = search(&["bc1pd"]).code(0).json().remove(0);
    let secret = PrivateKey::from_str(text(&line, "export")).unwrap();
    let (x, _) = secret.public_key(&Secp256k1::new()).inner.x_only_public_key();
    let address = Address::p2tr(&Secp256k1::new(), x, None, Network::Bitcoin);
    assert_eq!(address.to_string(), text(&line, "address"));
    assert_eq!(text(&line["details"], "internal_key"), x.to_string());
}
