//! `verify` and `keygen`: what holds is said to hold, and what was altered is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::harness::{Run, mine, random_secret, text, warpsmith, warpsmith_with, write_private};
use crate::terminal::answer;

/// Verifies what is given on standard input.
fn verify(given: &str) -> Run {
    warpsmith_with(&["verify", "-", "--json"], given.as_bytes())
}

/// Searches on a thread of the processor.
fn search(args: &[&str]) -> Run {
    warpsmith(&[args, &["--device", "cpu", "--threads", "1"]].concat()).code(0)
}

const CODE: &str = "0x2b0000000000000000000000000000000000000000000000000000000000002b";
const CALLER: &str = "caller:0x9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9fc1";

/// Every chain and factory, each in the way its results are special.
const SEARCHES: &[&[&str]] = &[
    &["npub", "qq"],
    &["eth", "ca"],
    &["eth", "Ca", "--checksum"],
    &["eth", "ca", "--contract", "--nonce", "300"],
    &["eth", "--zeros", "--score", "1"],
    &["eth", "--leading", "7", "--score", "1"],
    &["btc", "1A"],
    &["btc", "1A", "--type", "p2pkh-uncompressed"],
    &["btc", "3A"],
    &["btc", "bc1qq"],
    &["btc", "bc1pq"],
    &["btc", "bc1pq", "--type", "rawtr"],
    &["btc", "tb1qq", "--network", "test"],
    &["ltc", "La"],
    &["doge", "DA"],
    &["bch", "qq"],
    &["tron", "TA"],
    &["cosmos", "qq", "--prefix", "osmo"],
    &["create2", "ca", "--factory", "arachnid", "--init-code-hash", CODE],
    &["create2", "ca", "--factory", "0age", "--salt-layout", CALLER, "--init-code-hash", CODE],
    &["create2", "ca", "--factory", "createx", "--init-code-hash", CODE],
    &[
        "create2",
        "ca",
        "--factory",
        "safe-1.4.1",
        "--input",
        "singleton=SafeL2",
        "--input",
        "initializer=0xb63e800d",
        "--chain-id",
        "1",
    ],
    &[
        "create2",
        "ca",
        "--factory",
        "simple-account-0.7",
        "--input",
        "owner=0x00000000219ab540356cBB839Cbe05303d7705Fa",
    ],
    &["create3", "ca", "--factory", "createx"],
    &["create3", "ca", "--factory", "createx", "--salt-layout", CALLER],
    &["create3", "ca", "--factory", "createx", "--salt-layout", CALLER, "--chain-id", "1"],
    &["create3", "ca", "--factory", "createx", "--chain-id", "1"],
    &["create3", "ca", "--deployer", "0x9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9fc1"],
    &["create3", "ca", "--factory", "lifi", "--salt-layout", CALLER],
];

#[test]
fn results_of_every_chain_and_factory_hold_in_both_forms() {
    for args in SEARCHES {
        let result = search(&[args, &["--json"][..]].concat());
        let run = verify(&result.stdout).code(0);
        let [line] = &run.json()[..] else { panic!("{run:?}") };
        assert_eq!((text(line, "event"), &line["holds"]), ("verified", &json!(true)));
        assert_eq!(text(line, "subject"), text(&result.json()[0], "address"));
        let found = |what: &str| line["checks"].as_array().unwrap().iter().any(|check| check["what"] == what);
        assert!(found("address") && (found("pattern") || found("score")), "{line}");

        let result = search(args);
        let run = warpsmith_with(&["verify", "-"], result.stdout.as_bytes()).code(0);
        assert!(run.stdout.contains(": holds\n") && run.stdout.contains("  ok "), "{run:?}\n{result:?}");
        for secret in
            result.stdout.lines().filter(|line| line.starts_with("secret ") || line.starts_with("hex "))
        {
            let secret = secret.split_whitespace().nth(1).unwrap();
            assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "a secret is shown");
        }
    }
}

/// Every text of a result, altered one at a time, is found to be wrong.
#[test]
fn what_was_altered_does_not_hold() {
    fn alterations(value: &Value, paths: &mut Vec<String>, path: &str) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| alterations(value, paths, &format!("{path}/{name}")));
            }
            Value::String(_) => paths.push(path.to_owned()),
            _ => {}
        }
    }
    for args in [
        &["btc", "bc1pq"][..],
        &["create2", "ca", "--factory", "0age", "--salt-layout", CALLER, "--init-code-hash", CODE],
    ] {
        let line = search(&[args, &["--json"]].concat()).json().remove(0);
        let mut paths = Vec::new();
        alterations(&line, &mut paths, "");
        // Words for people, and where it was found: nothing to compute.
        paths.retain(|path| {
            !["/event", "/device", "/target", "/type", "/tried", "/details/call"].contains(&path.as_str())
        });
        assert!(paths.len() > 4, "{paths:?}");
        for path in paths {
            let mut altered = line.clone();
            let place = altered.pointer_mut(&path).unwrap();
            let was = place.as_str().unwrap().to_owned();
            let (at, old) = was.char_indices().rev().nth(2.min(was.len() - 1)).unwrap();
            let new = if old == '4' { "7" } else { "4" };
            *place = json!(format!("{}{new}{}", &was[..at], &was[at + old.len_utf8()..]));
            // A factory of another name may be one with a rule of its own: that is unknown, and not wrong.
            let (code, holds) = if path == "/details/factory" { (2, Value::Null) } else { (1, json!(false)) };
            let run = verify(&altered.to_string()).code(code);
            assert_eq!(run.json()[0]["holds"], holds, "{path}: {run:?}");
        }
    }
}

#[test]
fn keys_are_told_on_every_chain() {
    // The key 1, whose addresses everybody knows.
    let one = format!("{:064x}", 1);
    let wif = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
    let run = verify(&format!("{one}\n0x{one}\n{wif}\n")).code(0);
    assert_eq!(run.json().len(), 3);
    for line in run.json() {
        let said = |what: &str| {
            let checks = line["checks"].as_array().unwrap();
            checks.iter().find(|check| check["what"] == what).map(|check| text(check, "said").to_owned())
        };
        assert_eq!(said("eth").as_deref(), Some("0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"));
        assert_eq!(said("btc p2pkh").as_deref(), Some("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"));
        assert_eq!(said("btc p2wpkh").as_deref(), Some("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"));
    }
    // What others wrote does not command the terminal.
    let hostile =
        json!({ "address": "\u{1b}[2J", "public_key": "\u{1b}", "details": { "\u{1b}]0;": "\u{9b}" } })
            .to_string();
    let key = json!({ "version": 3, "crypto": { "kdf": "\u{1b}[2J" }, "address": "x" }).to_string();
    let folder = tempdir().unwrap();
    let password = folder.path().join("password").to_str().unwrap().to_owned();
    write_private(&password, "p");
    for given in [hostile, key] {
        let run = warpsmith_with(&["verify", "-", "--password-file", &password], given.as_bytes()).code(1);
        assert!(!run.stdout.contains(['\u{1b}', '\u{9b}']) && !run.stderr.contains('\u{1b}'), "{run:?}");
    }
    // Nor does it hide or turn round what it says.
    let hidden = json!({
        "address": "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf",
        "public_key": "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "details": { "\u{202e}yek\u{200b}\u{3164}": "x" },
    })
    .to_string();
    for (form, escape) in
        [(&[][..], "\\u{202e}yek\\u{200b}\\u{3164}"), (&["--json"], "\\u202eyek\\u200b\\u3164")]
    {
        let run = warpsmith_with(&[&["verify", "-"], form].concat(), hidden.as_bytes()).code(1);
        assert!(run.stdout.contains(escape) && !run.stdout.contains('\u{202e}'), "{run:?}");
    }
    // What holds neither results nor keys is nothing that went wrong.
    let listed = r#"{"event":"address","address":"1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH","kind":"p2pkh"}"#;
    let address = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n";
    // Addresses as long as a key, and lines of base64.
    let litecoin = "ltc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqp3mvzv\n";
    let cosmos = "cosmosvaloper1clpqr4nrk4khgkxj78fcwwh6dl3uw4epsluffn\n";
    let pem = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n{}\n-----END CERTIFICATE-----\n",
        "MIIBszCCAVmgAwIBAgIUYc5mZV3Q0r1b2N8h6YgkqX4wCgYIKoZIzj0EAwIwFDES",
        "KZ7XJ2dC1lbnRyeTEOMAwGA1UEAwwFaGVsbG8wHhcNMjYxMTE4MDAwMDAw"
    );
    for nothing in [
        "",
        "hello\n",
        "Dear all,\nthe address is 1Bg.\n",
        address,
        "{\"a\":1}",
        listed,
        litecoin,
        cosmos,
        &pem,
    ] {
        let run = verify(nothing).code(2).says(&["no result and no key", "64 hex digits"]);
        assert!(run.json().is_empty(), "{run:?}");
    }
    verify(&"0".repeat(64)).code(1);
    // A key with a letter for a digit, and one that is cut short.
    verify(&format!("{}O{}", &one[..9], &one[10..])).code(1);
    verify(&wif[..wif.len() - 1]).code(1);
    verify(&format!("{one}\nhello\n")).code(1);
    verify(&format!("{wif}x")).code(1);
    verify("-----BEGIN AGE ENCRYPTED FILE-----\n").code(2).says(&["age -d"]);
}

#[test]
fn encrypted_keys_are_opened_by_prompt_or_file() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (password, wrong, output) = (path("password"), path("wrong"), path("keys"));
    write_private(&password, "p\n");
    write_private(&wrong, "q\n");
    let encrypt = ["--encrypt", "--password-file", &password, "--output", &output];
    search(&[&["npub", "q"][..], &encrypt].concat());
    search(&[&["btc", "1A"][..], &encrypt].concat());
    search(&[&["eth", "c"][..], &encrypt].concat());
    let run = warpsmith(&["verify", &output, "--password-file", &password]).code(0);
    assert_eq!(run.stdout.matches("opens with the password").count(), 3, "{run:?}");
    let run =
        warpsmith(&["verify", &output, "--password-file", &wrong]).code(1).says(&["3 of 3 do not hold"]);
    assert_eq!(run.stdout.matches("the password is wrong").count(), 3, "{run:?}");

    // A keystore by itself, and others may read it.
    let content = fs::read_to_string(&output).unwrap();
    let document = content.lines().find_map(|line| line.strip_prefix("keystore")).unwrap().trim();
    let file = path("keystore");
    fs::write(&file, document).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (run, shown) = answer(&["verify", &file], &[("the password of the keystore: ", "p")]);
    let run = run.code(0).says(&["other users may read", "chmod 600"]);
    assert!(run.stdout.contains("opens with the password"), "{run:?} {shown}");

    // The format's checksum leaves out the iv, with which the key is another: the address tells.
    let at = document.find("\"iv\":\"").unwrap() + 6;
    let digit = if &document[at..at + 1] == "0" { "1" } else { "0" };
    let (altered, result) = (path("altered"), path("result"));
    write_private(&altered, &[&document[..at], digit, &document[at + 1..]].concat());
    let own = warpsmith(&["keygen", "--output", &path("own")]).code(0);
    fs::write(&result, mine(&["q", "--split-key", own.stdout.trim(), "--json"]).code(0).stdout).unwrap();
    let ask = [("the password of the keystore: ", "p")];
    answer(&["verify", &altered], &ask).0.code(1);
    answer(&["join", "--secret-key-file", &altered, &result], &ask).0.code(2).says(&["was altered"]);
    // What no password opens is told before one is asked for, and without repeating what stands there.
    write_private(&altered, &document.replace("aes-128-ctr", "aes-128-cbc"));
    warpsmith(&["join", "--secret-key-file", &altered, &result]).code(2).says(&["aes-128-ctr"]);
    write_private(&altered, r#"{"version":3,"crypto":"0123456789abcdef"}"#);
    let run = warpsmith(&["join", "--secret-key-file", &altered, &result]).code(2).says(&["Web3 keystore"]);
    assert!(!run.stderr.contains("0123456789abcdef"), "{run:?}");
}

#[test]
fn a_new_key_pair_mines_and_joins() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (key, result) = (path("own.key"), path("result.json"));
    let run = warpsmith(&["keygen", "--output", &key]).code(0);
    let public = run.stdout.trim();
    let secret = fs::read_to_string(&key).unwrap();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        secret.trim().len() == 64 && !run.stdout.contains(secret.trim()) && run.stderr.is_empty(),
        "{run:?}"
    );
    fs::write(&result, mine(&["qq", "--split-key", public, "--json"]).code(0).stdout).unwrap();
    warpsmith(&["verify", &result]).code(0);
    let joined = warpsmith(&["join", "--secret-key-file", &key, &result, "--json"]).code(0);
    assert!(verify(&joined.stdout).code(0).stdout.contains("\"holds\":true"));

    warpsmith(&["keygen", "--output", &key]).code(4).says(&["is there already", "no key was made"]);
    assert_eq!(fs::read_to_string(&key).unwrap(), secret);
    let other = warpsmith(&["keygen", "--output", &path("other"), "--json"]).code(0);
    assert_eq!(text(&other.json()[0], "event"), "keygen");
    assert_ne!(text(&other.json()[0], "public_key"), public);
}

#[test]
fn bounds_from_a_file_are_not_shown() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let secret = const_hex::encode(random_secret().to_secret_bytes());
    let head = &secret[..60];
    let (range, targets, map) = (path("range"), path("targets"), path("map"));
    write_private(&range, &format!("{head}0000:{head}ffff\n"));
    let told = verify(&secret).code(0).json().remove(0);
    let account = told["checks"].as_array().unwrap().iter().find(|check| check["what"] == "eth").unwrap();
    fs::write(&targets, text(account, "said")).unwrap();
    let output = path("keys");
    let scan = |file: &str, given: &str| {
        let args = [
            "scan",
            "--range-file",
            file,
            "--targets",
            &targets,
            "--device",
            "cpu",
            "--map",
            &map,
            "--output",
            &output,
        ];
        warpsmith_with(&args, given.as_bytes())
    };
    let run = scan(&range, "").code(0);
    assert!(fs::read_to_string(&output).unwrap().contains(&secret));
    for run in [run, scan("-", &format!("{head}0000:{head}fffe")).code(4).says(&["[a range]"])] {
        assert!(!run.stderr.contains(&head[..12]) && !run.stdout.contains(&head[..12]), "{run:?}");
    }
    for (given, why) in [
        (format!("{head}ffff:{head}0000"), "exchange the bounds"),
        (format!("{head}xyz0:{head}ffff"), "hexadecimal digits"),
        (head.to_owned(), "colon"),
    ] {
        let run = scan("-", &given).code(2).says(&["--range-file standard input", why]);
        assert!(!run.stderr.contains(&head[..12]), "{run:?}");
    }
    fs::set_permissions(&range, fs::Permissions::from_mode(0o644)).unwrap();
    scan(&range, "").code(4).says(&["open to other users", "chmod 600"]);
    warpsmith(&["scan", "--range", "1:2", "--range-file", &range, "--targets", &targets])
        .code(2)
        .says(&["cannot be used"]);
}

#[test]
fn salts_that_anyone_can_use_are_warned_about() {
    let first = "can send it first";
    let create3 = ["create3", "c", "--factory", "createx", "--device", "cpu", "--threads", "1"];
    warpsmith(&create3).code(0).says(&["warning: ", first, "--salt-layout caller:"]);
    let run = warpsmith(&[&create3[..], &["--salt-layout", CALLER]].concat()).code(0);
    assert!(!run.stderr.contains(first), "{run:?}");
    let create2 = ["create2", "c", "--init-code-hash", CODE, "--device", "cpu", "--threads", "1"];
    warpsmith(&[&create2[..], &["--factory", "createx"]].concat()).code(0).says(&[first]);
    let run = warpsmith(&[&create2[..], &["--factory", "arachnid"]].concat()).code(0);
    assert!(!run.stderr.contains(first), "{run:?}");
}
