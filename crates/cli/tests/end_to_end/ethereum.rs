//! Accounts, contracts and salts: what is printed, fed to the `sha3` and `secp256k1` crates, gives the printed address.

use std::fs;

use secp256k1::{PublicKey, SecretKey};
use serde_json::Value;
use sha3::{Digest, Keccak256};
use tempfile::tempdir;

use crate::harness::{Run, random_secret, text, warpsmith, write_private};

const ARACHNID: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";
const DEPLOYER: &str = "0x9fBB3DF7C40Da2e5A0dE984fFE2CCB7C47cd0ABf";
const CALLER: &str = "0x00000000219ab540356cBB839Cbe05303d7705Fa";
const PROXY_HASH: &str = "21c35dbe1b344a2488cf3321d6ce542f8e9f305544ff09e4993a62319a497c1f";

fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn bytes(hex: &str) -> Vec<u8> {
    const_hex::decode(hex).expect("hex")
}

/// EIP-55, from its text.
fn eip55(address: &[u8]) -> String {
    let lower = const_hex::encode(address);
    let hash = const_hex::encode(keccak(&[lower.as_bytes()]));
    let letter = |(c, h): (char, char)| if h >= '8' { c.to_ascii_uppercase() } else { c };
    format!("0x{}", lower.chars().zip(hash.chars()).map(letter).collect::<String>())
}

/// The account of a key.
fn account(secret: &SecretKey) -> Vec<u8> {
    let public = PublicKey::from_secret_key(secret).serialize_uncompressed();
    keccak(&[&public[1..]])[12..].to_vec()
}

/// CREATE at a nonce, by a hand-written RLP of two short strings.
pub fn create(sender: &[u8], nonce: u64) -> Vec<u8> {
    let number: Vec<u8> = nonce.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
    let number = match number.as_slice() {
        [byte] if *byte < 0x80 => vec![*byte],
        more => [&[0x80 + more.len() as u8], more].concat(),
    };
    let body = [&[0x94], sender, &number].concat();
    keccak(&[&[0xc0 + body.len() as u8], &body])[12..].to_vec()
}

fn create2(deployer: &[u8], salt: &[u8], code_hash: &[u8]) -> Vec<u8> {
    keccak(&[&[0xff], deployer, salt, code_hash])[12..].to_vec()
}

/// The secret key of a match line, after its public key and export were found to follow from it.
#[track_caller]
fn secret(line: &Value) -> SecretKey {
    let hex = text(line, "secret_key");
    let secret = SecretKey::from_secret_bytes(bytes(hex).try_into().expect("32 bytes")).expect("a key");
    let public = PublicKey::from_secret_key(&secret).serialize();
    assert_eq!(text(line, "public_key"), const_hex::encode(public));
    assert_eq!(text(line, "export"), format!("0x{hex}"));
    secret
}

/// Searches on the processor with one thread.
fn search(args: &[&str]) -> Run {
    warpsmith(&[args, &["--device", "cpu", "--threads", "1", "--json"]].concat())
}

#[test]
fn accounts_are_found_by_every_kind_of_pattern() {
    type Holds = fn(&str) -> bool;
    let cases: [(&str, Holds); 8] = [
        ("c0de", |a| a.starts_with("0xc0de")),
        ("0xC0dE", |a| a.starts_with("0xc0de")),
        ("..777", |a| a.ends_with("777")),
        ("ab..cd", |a| a.starts_with("0xab") && a.ends_with("cd")),
        ("..5555..", |a| a[2..].contains("5555")),
        ("1?3?5", |a| (&a[2..3], &a[4..5], &a[6..7]) == ("1", "3", "5")),
        ("/^(ab|cd)..99/", |a| ["ab", "cd"].contains(&&a[2..4]) && &a[6..8] == "99"),
        ("/(00){3}$/", |a| a.ends_with("000000")),
    ];
    for (pattern, holds) in cases {
        let run = search(&["eth", pattern]).code(0);
        let line = &run.json()[0];
        assert_eq!(text(line, "address"), eip55(&account(&secret(line))));
        assert!(holds(&text(line, "address").to_lowercase()), "{pattern}: {line}");
        assert_eq!((text(line, "target"), text(line, "pattern")), ("eth", pattern));
        assert!(line.get("nonce").is_none() && line.get("salt").is_none() && line.get("score").is_none());
    }
}

#[test]
fn checksum_letters_come_as_written() {
    for pattern in ["Ab", "aB", "..Fe", "c0..E"] {
        let line = search(&["eth", pattern, "--checksum"]).code(0).json().remove(0);
        let address = text(&line, "address");
        assert_eq!(address, eip55(&account(&secret(&line))));
        let (head, tail) = pattern.split_once("..").unwrap_or((pattern, ""));
        assert!(address[2..].starts_with(head) && address.ends_with(tail), "{pattern}: {address}");
    }
}

#[test]
fn contracts_follow_from_account_and_nonce() {
    for nonce in ["0", "1", "127", "128", "256", "4294967296", "18446744073709551614"] {
        let line = search(&["eth", "abc", "--contract", "--nonce", nonce]).code(0).json().remove(0);
        let contract = create(&account(&secret(&line)), nonce.parse().unwrap());
        assert_eq!(text(&line, "address"), eip55(&contract));
        assert!(text(&line, "address").to_lowercase().starts_with("0xabc"));
        assert_eq!(text(&line, "nonce"), nonce);
    }
    let line = search(&["eth", "ab", "--contract"]).code(0).json().remove(0);
    assert_eq!(text(&line, "address"), eip55(&create(&account(&secret(&line)), 0)));
}

#[test]
fn split_keys_join_for_accounts_and_their_contracts() {
    for (round, extra) in [&[][..], &["--contract", "--nonce", "3"]].into_iter().cycle().take(12).enumerate()
    {
        let own = random_secret();
        let public = const_hex::encode(PublicKey::from_secret_key(&own).serialize_uncompressed());
        let args = [&["eth", "ab", "--split-key", &public], extra].concat();
        let run = search(&args).code(0);
        assert!(!run.stdout.contains("secret_key"), "{run:?}");
        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        write_private(path("own.key"), &const_hex::encode(own.to_secret_bytes()));
        fs::write(path("result.json"), &run.stdout).unwrap();
        let joined =
            warpsmith(&["join", "--secret-key-file", &path("own.key"), &path("result.json"), "--json"])
                .code(0);
        let line = &joined.json()[0];
        let account = account(&secret(line));
        let address = if extra.is_empty() { account } else { create(&account, 3) };
        assert_eq!(text(line, "address"), eip55(&address), "round {round}");
        assert_eq!(text(line, "address"), text(&run.json()[0], "address"));
    }
}

#[test]
fn create2_salts_give_the_printed_address() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("code.hex");
    let code = "60806040526000805560fe";
    fs::write(&file, format!("0x{code}\n")).unwrap();
    let (file, hash) = (file.to_str().unwrap(), keccak(&[&bytes(code)]));
    let mask = format!("0x{}{}{}", "11".repeat(9), "??".repeat(3), "22".repeat(20));
    for extra in [
        &["--deployer", ARACHNID][..],
        &["--factory", "arachnid"],
        &["--factory", "arachnid", "--salt", &mask],
    ] {
        let line =
            search(&[&["create2", "abc", "--init-code", file], extra].concat()).code(0).json().remove(0);
        let salt = bytes(text(&line, "salt"));
        assert_eq!(text(&line, "address"), eip55(&create2(&bytes(ARACHNID), &salt, &hash)));
        assert!(text(&line, "address").to_lowercase().starts_with("0xabc"), "{line}");
        if extra.len() > 2 {
            assert!(salt[..9] == [0x11; 9] && salt[12..] == [0x22; 20], "{line}");
        }
        assert!(line.get("secret_key").is_none() && line.get("public_key").is_none(), "{line}");
    }
    let hash = format!("0x{}", const_hex::encode(hash));
    let line = search(&["create2", "..abc", "--deployer", DEPLOYER, "--init-code-hash", &hash])
        .code(0)
        .json()
        .remove(0);
    let address = create2(&bytes(DEPLOYER), &bytes(text(&line, "salt")), &bytes(&hash));
    assert_eq!(text(&line, "address"), eip55(&address));
}

#[test]
fn create3_salts_give_the_printed_address_and_every_step_to_it() {
    let proxy_of = |deployer: &[u8], salt: &[u8]| create2(deployer, salt, &bytes(PROXY_HASH));
    let line = search(&["create3", "abc", "--deployer", DEPLOYER]).code(0).json().remove(0);
    let proxy = proxy_of(&bytes(DEPLOYER), &bytes(text(&line, "salt")));
    assert_eq!(text(&line, "address"), eip55(&create(&proxy, 1)));
    assert!(line["details"].to_string().contains(&eip55(&proxy)), "{line}");

    // CreateX for one caller on one chain.
    let layout = format!("caller:{CALLER}");
    let createx = bytes("ba5ed099633d3b313e4d5f7bdc1305d3c28ba5ed");
    let args = ["create3", "ab", "--factory", "createx", "--salt-layout", &layout, "--chain-id", "10"];
    let line = search(&args).code(0).json().remove(0);
    let salt = bytes(text(&line, "salt"));
    assert!(salt[..20] == bytes(CALLER) && salt[20] == 1, "{line}");
    let mut chain = [0; 32];
    chain[31] = 10;
    let guarded = keccak(&[&[0; 12], &bytes(CALLER), &chain, &salt]);
    let proxy = proxy_of(&createx, &guarded);
    assert_eq!(text(&line, "address"), eip55(&create(&proxy, 1)));

    // A factory that hashes its caller in.
    let args = ["create3", "ab", "--factory", "create3factory", "--salt-layout", &layout];
    let line = search(&args).code(0).json().remove(0);
    let guarded = keccak(&[&bytes(CALLER), &bytes(text(&line, "salt"))]);
    assert_eq!(text(&line, "address"), eip55(&create(&proxy_of(&bytes(DEPLOYER), &guarded), 1)));
}

#[test]
fn a_mask_without_a_match_is_searched_to_its_end() {
    let mask = format!("0x{}????", "33".repeat(30));
    let hash = format!("0x{}", "00".repeat(32));
    let base = ["create2", "--deployer", DEPLOYER, "--init-code-hash", &hash, "--salt", &mask];
    let run = search(&[&base[..], &["0123456789abcdef"]].concat())
        .code(1)
        .says(&["every candidate tested", "65,536"]);
    assert_eq!(run.json(), [] as [serde_json::Value; 0], "nothing but that it is done");
    let run = search(&[&base[..], &["a", "--count", "0"]].concat()).code(0);
    let found = (0..=u16::MAX).filter(|counter| {
        let salt = [vec![0x33; 30], counter.to_be_bytes().to_vec()].concat();
        create2(&bytes(DEPLOYER), &salt, &[0; 32])[0] >> 4 == 0xa
    });
    assert_eq!(run.json().len(), found.count());
}

#[test]
fn scores_rise_until_enough() {
    let count = |address: &str, flag: &str| {
        let bytes = bytes(address);
        match flag {
            "--zeros" => bytes.iter().filter(|&&byte| byte == 0).count(),
            "--leading-zeros" => bytes.iter().take_while(|&&byte| byte == 0).count(),
            _ => address[2..].chars().take_while(|&c| c == '7').count(),
        }
    };
    let hash = format!("0x{}", "00".repeat(32));
    let create2 = ["create2", "--factory", "arachnid", "--init-code-hash", &hash];
    for (flags, enough) in [(&["--zeros"][..], 3), (&["--leading-zeros"], 2), (&["--leading", "7"], 4)] {
        for command in [&["eth"][..], &["eth", "--contract"], &create2] {
            let score = enough.to_string();
            let run = search(&[command, flags, &["--score", &score]].concat()).code(0);
            let lines = run.json();
            let scores: Vec<u64> =
                lines.iter().map(|line| line["score"].as_u64().expect("a score")).collect();
            assert!(scores.windows(2).all(|pair| pair[0] < pair[1]), "{scores:?}");
            assert!(scores.last().is_some_and(|&best| best >= enough), "{scores:?}");
            for line in &lines {
                assert_eq!(count(text(line, "address"), flags[0]) as u64, line["score"].as_u64().unwrap());
                assert!(line.get("pattern").is_none());
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let hash = format!("0x{}", "00".repeat(32));
    let full = format!("0x{}", "00".repeat(32));
    let half = format!("0x{}0?", "??".repeat(31));
    let digits = "a".repeat(41);
    let cases: [(&[&str], &[&str]); 17] = [
        (&["eth"], &["no pattern was given"]),
        (&["eth", &digits], &["41"]),
        (&["eth", "xyz"], &["'x'", "0123456789abcdef"]),
        (&["eth", "cafe", "--nonce", "1"], &["--contract"]),
        (&["eth", "cafe", "--contract", "--nonce", "18446744073709551615"], &["EIP-2681"]),
        (&["eth", "--zeros", "--leading-zeros"], &["cannot be used with"]),
        (&["eth", "cafe", "--score", "3"], &["--leading-zeros"]),
        (&["eth", "--zeros", "--score", "21"], &["20"]),
        (&["eth", "--leading", "g"], &["one hex digit"]),
        (&["create2", "cafe", "--init-code-hash", &hash], &["--deployer"]),
        (&["create2", "cafe", "--deployer", "0x12", "--init-code-hash", &hash], &["--deployer"]),
        (&["create2", "cafe", "--deployer", ARACHNID], &["--init-code-hash"]),
        (&["create2", "cafe", "--deployer", ARACHNID, "--init-code", "/nonexistent"], &["/nonexistent"]),
        (
            &["create2", "cafe", "--deployer", ARACHNID, "--init-code-hash", &hash, "--salt", &full],
            &["no free byte"],
        ),
        (
            &["create2", "cafe", "--deployer", ARACHNID, "--init-code-hash", &hash, "--salt", &half],
            &["byte 32"],
        ),
        (&["create3", "cafe"], &["deployer"]),
        (&["create3", "cafe", "--factory", "nosuch"], &["'nosuch'", "createx"]),
    ];
    for (args, says) in cases {
        let run = search(args).code(2).says(says);
        assert_eq!(run.json(), [] as [serde_json::Value; 0], "{args:?}");
    }
}

#[test]
fn help_says_that_salts_are_mined_or_explained() {
    let commands = warpsmith(&["--help"]).code(0).stdout;
    for (name, about) in [
        ("create2", "Mine a CREATE2 salt, or explain one"),
        ("create3", "Mine a CREATE3 salt, or explain one"),
    ] {
        assert!(commands.contains(about), "{commands}");
        for flag in ["-h", "--help"] {
            let help = warpsmith(&[name, flag]).code(0).stdout;
            assert!(help.starts_with(about) && help.contains("Explain a "), "{help}");
        }
    }
}
