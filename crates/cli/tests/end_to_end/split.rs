//! Split keys: the miner holds no secret, and only the owner's key turns a result into a key.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use secp256k1::{PublicKey, SecretKey};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::harness::{
    Run, assert_no_secret, mine, random_secret, text, verified_secret, warpsmith, warpsmith_with,
};

fn hex(secret: &SecretKey) -> String {
    const_hex::encode(secret.to_secret_bytes())
}

/// The ways to write a public key.
const FORMS: [fn(&PublicKey) -> String; 4] = [
    |key| const_hex::encode(key.serialize()),
    |key| const_hex::encode(key.serialize_uncompressed()),
    |key| const_hex::encode(&key.serialize()[1..]),
    |key| format!("0x{}", const_hex::encode_upper(key.serialize())),
];

/// A folder with the owner's key and a result mined for it.
struct Case {
    folder: TempDir,
    own: SecretKey,
    line: Value,
}

impl Case {
    fn new(own: SecretKey, form: fn(&PublicKey) -> String) -> Case {
        let public = PublicKey::from_secret_key(&own);
        let run = mine(&["qq", "--split-key", &form(&public), "--json"]).code(0);
        assert_no_secret(&run, &[&hex(&own)]);
        let line = run.json().remove(0);
        let folder = tempdir().unwrap();
        let case = Case { folder, own, line };
        case.write("own.key", &hex(&own));
        case.write("result.json", &run.stdout);
        case
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
    }

    fn join(&self, key: &str, result: &str) -> Run {
        warpsmith(&["join", "--secret-key-file", &self.path(key), &self.path(result), "--json"])
    }
}

#[test]
fn the_owner_joins_what_was_mined_from_the_public_key() {
    // Both parities of y with every form: an x coordinate alone stands for two secrets.
    for round in 0..20 {
        let odd = round / FORMS.len() % 2 == 1;
        let has_parity =
            |own: &SecretKey| PublicKey::from_secret_key(own).serialize()[0] == 2 + u8::from(odd);
        let own = std::iter::repeat_with(random_secret).find(has_parity).unwrap();
        let case = Case::new(own, FORMS[round % FORMS.len()]);
        let split = &case.line["split"];
        assert!(text(split, "offset").len() == 64 && split["negate"].is_boolean(), "{}", case.line);
        assert!(split["endo"].as_u64().is_some_and(|endo| endo < 3), "{}", case.line);
        let run = case.join("own.key", "result.json").code(0);
        let joined = &run.json()[0];
        verified_secret(joined);
        assert_eq!((text(joined, "event"), text(joined, "target")), ("joined", "npub"));
        assert_eq!(text(joined, "address"), text(&case.line, "address"));
        assert_eq!(text(joined, "public_key"), text(&case.line, "public_key"));
        assert!(text(&joined["details"], "use").contains("nsec"), "{joined}");
        assert_eq!(joined.as_object().unwrap().len(), 7, "{joined}");
        assert_eq!(run.stderr, "", "a private file gives no warning");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let case = Case::new(random_secret(), FORMS[0]);
    let refuse = |key: &str, result: &str, code: i32, fragments: &[&str]| {
        let output = case.path("joined.txt");
        let run = warpsmith(&[
            "join",
            "--secret-key-file",
            &case.path(key),
            &case.path(result),
            "--output",
            &output,
        ]);
        let run = run.code(code).says(fragments);
        assert_eq!(run.stdout, "");
        assert_no_secret(&run, &[&hex(&case.own)]);
        assert!(!Path::new(&output).exists());
    };
    case.write("wrong.key", &hex(&random_secret()));
    refuse("wrong.key", "result.json", 4, &["does not lead to"]);

    let alter = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut line = case.line.clone();
        change(&mut line);
        case.write(name, &line.to_string());
    };
    let flip = |hex: &str| format!("{}{}", &hex[..63], if hex.ends_with('0') { '1' } else { '0' });
    alter("offset", &|line| line["split"]["offset"] = flip(text(&line["split"], "offset")).into());
    refuse("own.key", "offset", 4, &["was altered"]);
    alter("endo", &|line| {
        line["split"]["endo"] = ((line["split"]["endo"].as_u64().unwrap() + 1) % 3).into();
    });
    refuse("own.key", "endo", 4, &["was altered"]);
    let other = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
    alter("address", &|line| line["address"] = other.into());
    refuse("own.key", "address", 4, &[other]);
    alter("public", &|line| {
        line["public_key"] = const_hex::encode(PublicKey::from_secret_key(&case.own).serialize()).into()
    });
    refuse("own.key", "public", 4, &["was altered"]);

    type Malformed<'a> = (&'a str, &'a dyn Fn(&mut Value), &'a str);
    let malformed: &[Malformed<'_>] = &[
        ("typo", &|line| line["address"] = format!("{}q", &other[..62]).into(), "checksum"),
        ("target", &|line| line["target"] = "nsec".into(), "known are npub"),
        ("short", &|line| line["split"]["offset"] = "12".into(), "64 hex digits"),
        ("large", &|line| line["split"]["endo"] = 3.into(), "0, 1 or 2"),
        ("type", &|line| line["split"]["negate"] = 1.into(), "true or false"),
        ("key", &|line| line["public_key"] = "02".into(), "66 hex digits"),
        (
            "none",
            &|line| drop(line.as_object_mut().unwrap().remove("split")),
            "no JSON document with \"split\"",
        ),
    ];
    for (name, change, fragment) in malformed {
        alter(name, change);
        refuse("own.key", name, 2, &["is no split result", fragment, "unchanged"]);
    }
    let mut other = case.line.clone();
    other["split"]["offset"] = "11".repeat(32).into();
    case.write("two", &format!("{}\n{other}\n", case.line));
    refuse("own.key", "two", 4, &["does not lead to"]);
    refuse("own.key", "missing", 2, &["missing"]);
    refuse("missing", "result.json", 2, &["missing"]);
}

#[test]
fn key_files_hold_hex_or_an_nsec_and_their_faults_are_told_without_repeating_them() {
    let case = Case::new(random_secret(), FORMS[2]);
    let own = hex(&case.own);
    let nsec = {
        use nostr::prelude::ToBech32;
        nostr::key::SecretKey::from_slice(&case.own.to_secret_bytes()).unwrap().to_bech32().unwrap()
    };
    for good in [
        format!("0x{own}\r\n"),
        format!("  {}\n", own.to_uppercase()),
        format!("{nsec}\n"),
        nsec.to_uppercase(),
    ] {
        case.write("good.key", &good);
        verified_secret(&case.join("good.key", "result.json").code(0).json()[0]);
    }
    let typo = format!("{}{}", &nsec[..60], if nsec.ends_with("qqq") { "ppp" } else { "qqq" });
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let bad = [
        (String::new(), "is empty"),
        (own[..63].to_owned(), "63 hex digits"),
        (format!("{own}\n{own}\n"), "neither"),
        (format!("my key is {own}"), "neither"),
        (typo, "checksum"),
        ("0".repeat(64), "0 or not below"),
        (order.to_owned(), "0 or not below"),
        ("a".repeat(5000), "far longer"),
    ];
    for (text, fragment) in bad {
        case.write("bad.key", &text);
        let run = case
            .join("bad.key", "result.json")
            .code(2)
            .says(&[fragment, "64 hex digits, an nsec, or a WIF key"]);
        assert!(!run.stderr.contains(&own[8..40]) && !run.stderr.contains(&nsec[10..40]), "{run:?}");
    }
    fs::set_permissions(case.path("own.key"), Permissions::from_mode(0o644)).unwrap();
    let run = case.join("own.key", "result.json").code(4).says(&["open to other users", "chmod 600"]);
    assert_no_secret(&run, &[&own]);
    fs::set_permissions(case.path("own.key"), Permissions::from_mode(0o600)).unwrap();

    let args = ["join", "--secret-key-file", "-", &case.path("result.json"), "--json"];
    verified_secret(&warpsmith_with(&args, own.as_bytes()).code(0).json()[0]);
    let args = ["join", "--secret-key-file", &case.path("own.key"), "-", "--json"];
    verified_secret(&warpsmith_with(&args, case.line.to_string().as_bytes()).code(0).json()[0]);
    warpsmith(&["join", "--secret-key-file", "-", "-"]).code(2).says(&["cannot be both"]);
}

#[test]
fn a_result_printed_for_people_can_be_joined_and_the_key_kept_in_a_file() {
    let own = random_secret();
    let public = FORMS[0](&PublicKey::from_secret_key(&own));
    let run = mine(&["/^q{2}/", "--split-key", &public]).code(0).says(&["no private key is here"]);
    assert_no_secret(&run, &[&hex(&own)]);
    let case = Case::new(own, FORMS[0]);
    case.write("printed.txt", &run.stdout);
    let output = case.path("joined.txt");
    let args =
        ["join", "--secret-key-file", &case.path("own.key"), &case.path("printed.txt"), "--output", &output];
    let run = warpsmith(&args).code(0);
    assert_no_secret(&run, &[]);
    assert!(run.stdout.contains(&format!("output   {output}\n")), "{run:?}");
    let saved = fs::read_to_string(&output).unwrap();
    assert!(saved.contains("secret   nsec1") && saved.contains("address  npub1qq"), "{saved}");
}

#[test]
fn bad_split_keys_say_why_and_secrets_are_not_repeated() {
    for (given, fragment) in [("02", "2 hex digits"), ("xyz", "not a hex digit"), ("npub1qq", "npub")] {
        mine(&["qq", "--split-key", given]).code(2).says(&["--split-key", fragment, "compressed"]);
    }
    let not_on_curve = format!("02{}", "0".repeat(63) + "5");
    mine(&["qq", "--split-key", &not_on_curve]).code(2).says(&["no point"]);
    let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    // Half of all private keys are no x coordinates; 5 is one of them.
    let private = "0".repeat(63) + "5";
    for secret in [nsec, &private] {
        let run = mine(&["qq", "--split-key", secret]).code(2).says(&["--split-key"]);
        assert!(!run.stderr.contains(&secret[5..]), "{run:?}");
    }
}
