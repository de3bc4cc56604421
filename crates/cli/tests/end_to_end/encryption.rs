//! Keys that leave encrypted: nowhere in the clear, and read by the programs of others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use secp256k1::{PublicKey, SecretKey};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use warpsmith::chain::coin::decode_wif;
use warpsmith::keystore::{Password, nip49};

use crate::foreign;
use crate::harness::{BINARY, Run, mine, random_secret, text, warpsmith, write_private};
use crate::terminal::answer;

const PASSWORD: &str = "correct horse battery staple";

/// A folder with a password file.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Case {
        let folder = tempdir().unwrap();
        write_private(folder.path().join("password"), &format!("{PASSWORD}\n"));
        Case { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Searches with --encrypt and JSON.
    #[track_caller]
    fn mine(&self, args: &[&str]) -> Run {
        let password = self.path("password");
        let flags =
            ["--encrypt", "--password-file", &password, "--json", "--device", "cpu", "--threads", "1"];
        warpsmith(&[args, &flags].concat()).code(0)
    }
}

/// Panics if a record has a private key, or anything that could be one.
#[track_caller]
fn assert_no_key(line: &Value) {
    for field in ["secret_key", "export"] {
        assert!(line.get(field).is_none(), "{line}");
    }
    for part in line.to_string().replace("\\n", " ").split(|c: char| !c.is_ascii_alphanumeric()) {
        // By its checksum: a stretch of an encrypted file may be as long as a key and begin as one does.
        let is_key = part.starts_with("nsec1") || decode_wif(part).is_ok();
        assert!(!is_key, "{line}");
    }
}

#[test]
fn a_key_would_be_noticed() {
    // The key 1 as wallets write it, at the start of a line.
    for key in [
        "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
        "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf",
        "nsec1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqsmhltgl",
    ] {
        let line = json!({ "encrypted": { "text": format!("-----BEGIN-----\n{key}\n") } });
        std::panic::catch_unwind(|| assert_no_key(&line)).unwrap_err();
        assert_no_key(
            &json!({ "encrypted": { "text": key.replace("nsec", "npub").replace("V", "W").replace("T6", "T7") } }),
        );
    }
}

/// The secret key of hex digits, if it leads to the public key of a line.
#[track_caller]
fn assert_leads_to(line: &Value, hex: &str) {
    let mut bytes = [0; 32];
    const_hex::decode_to_slice(hex, &mut bytes).unwrap();
    let public = PublicKey::from_secret_key(&SecretKey::from_secret_bytes(bytes).unwrap());
    assert_eq!(text(line, "public_key"), const_hex::encode(public.serialize()));
}

fn hex_of_ncryptsec(encrypted: &Value) -> String {
    let password = Password::new(PASSWORD.to_owned().into()).unwrap();
    let read = nip49::decrypt(text(encrypted, "text"), &password).unwrap();
    assert_eq!(read.security, nip49::KeySecurity::NeverShown);
    const_hex::encode(*read.secret)
}

#[test]
fn npubs_leave_as_ncryptsec_in_order_and_all_of_them() {
    let case = Case::new();
    let output = case.path("keys.json");
    let told = case.mine(&["npub", "q", "--count", "7", "--output", &output]);
    let lines: Vec<Value> = fs::read_to_string(&output)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 7, "more than the queue holds");
    for (line, told) in lines.iter().zip(told.json()) {
        assert_no_key(line);
        assert_no_key(&told);
        assert_eq!((text(line, "address"), text(&told, "output")), (text(&told, "address"), output.as_str()));
        assert!(told.get("encrypted").is_none(), "{told}");
        assert_eq!(text(&line["encrypted"], "format"), "ncryptsec");
        assert_leads_to(line, &hex_of_ncryptsec(&line["encrypted"]));
    }
    let elapsed: Vec<f64> = lines.iter().map(|line| line["elapsed_s"].as_f64().unwrap()).collect();
    assert!(elapsed.is_sorted(), "{elapsed:?}");

    let given = json!({ "text": lines[0]["encrypted"]["text"], "password": PASSWORD });
    let script = "const {decrypt} = require('nostr-tools/nip49'); show(Buffer.from(decrypt(given.text, given.password)).toString('hex'))";
    if let Some(read) = foreign::node("nostr-tools", script, &given) {
        assert_leads_to(&lines[0], read.as_str().unwrap());
    }
}

#[test]
fn accounts_leave_as_keystores_that_ethereum_programs_open() {
    let case = Case::new();
    let folder = case.path("keystore");
    let run = case.mine(&["eth", "c", "--contract", "--keystore", &folder]);
    let [line] = &run.json()[..] else { panic!("{run:?}") };
    assert_no_key(line);
    let file = text(&line["encrypted"], "file");
    assert_eq!(text(&line["encrypted"], "format"), "web3");
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(&folder)), (0o600, 0o700));
    // Named by the account, which is not the contract.
    let sender = text(&line["details"], "sender");
    let name = Path::new(file).file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("UTC--2") && name.ends_with(&sender[2..].to_lowercase()), "{name}");
    let document = fs::read_to_string(file).unwrap();
    let parsed: Value = serde_json::from_str(&document).unwrap();
    assert_eq!((&parsed["version"], &parsed["crypto"]["kdfparams"]["n"]), (&json!(3), &json!(262_144)));

    let given = json!({ "document": document, "password": PASSWORD });
    let script = "const {Wallet} = require('ethers'); const wallet = await Wallet.fromEncryptedJson(given.document, given.password); \
                  show([wallet.address, wallet.privateKey.slice(2)])";
    if let Some(read) = foreign::node("ethers", script, &given) {
        assert_eq!(read[0], sender);
        assert_leads_to(line, read[1].as_str().unwrap());
    }
    let script = "from eth_account import Account\nkey = Account.decrypt(given['document'], given['password'])\n\
                  show([Account.from_key(key).address, key.hex()])";
    if let Some(read) = foreign::python(script, &given) {
        assert_eq!(read[0], sender);
        assert_leads_to(line, read[1].as_str().unwrap().trim_start_matches("0x"));
    }
    if let Some(tools) = foreign::folder("node_modules/.bin/cast") {
        let mut cast = std::process::Command::new(tools.join("node_modules/.bin/cast"));
        cast.args(["wallet", "decrypt-keystore", name, "--keystore-dir", &folder]);
        let output = cast.args(["--unsafe-password", PASSWORD]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
        let key = said.split("0x").nth(1).unwrap_or_else(|| panic!("{said}"));
        assert_leads_to(line, key.trim());
    }
}

#[test]
fn bitcoin_keys_leave_as_bip38() {
    let case = Case::new();
    for (pattern, kind, compressed) in [("bc1qq", "p2wpkh", true), ("1A", "p2pkh-uncompressed", false)] {
        let run = case.mine(&["btc", pattern, "--type", kind]);
        assert!(run.stderr.contains("BIP-38"), "a caution: {run:?}");
        let [line] = &run.json()[..] else { panic!("{run:?}") };
        assert_no_key(line);
        // What is left is the descriptor that watches.
        assert!(text(&line["details"], "descriptor").contains(&text(line, "public_key")[4..]), "{line}");
        let encrypted = text(&line["encrypted"], "text");
        assert!(encrypted.starts_with(if compressed { "6PY" } else { "6PR" }), "{encrypted}");
        let given = json!({ "text": encrypted, "password": PASSWORD });
        let script = "const read = require('bip38').decrypt(given.text, given.password); \
                      show([Buffer.from(read.privateKey).toString('hex'), read.compressed])";
        if let Some(read) = foreign::node("bip38", script, &given) {
            assert_leads_to(line, read[0].as_str().unwrap());
            assert_eq!(read[1], compressed);
        }
    }
}

#[test]
fn machines_without_a_person_encrypt_to_a_recipient() {
    let library = "const age = await import('age-encryption'); ";
    let script = format!(
        "{library} const i = await age.generateIdentity(); show([i, await age.identityToRecipient(i)])"
    );
    let made = foreign::node("age-encryption", &script, &json!({}));
    let recipient = match &made {
        Some(made) => made[1].as_str().unwrap().to_owned(),
        None => "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj".to_owned(),
    };
    for args in [&["tron", "TA"][..], &["npub", "q"], &["btc", "tb1qq", "--network", "test"]] {
        let flags = ["--encrypt-to", &recipient, "--json", "--device", "cpu", "--threads", "1"];
        let run = warpsmith(&[args, &flags].concat()).code(0);
        let [line] = &run.json()[..] else { panic!("{run:?}") };
        assert_no_key(line);
        let armored = text(&line["encrypted"], "text");
        assert!(armored.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n"), "{armored}");
        let Some(made) = &made else { continue };
        let script = format!(
            "{library} const d = new age.Decrypter(); d.addIdentity(given.identity); \
             show(await d.decrypt(age.armor.decode(given.text), 'text'))"
        );
        let given = json!({ "identity": made[0], "text": armored });
        let read = foreign::node("age-encryption", &script, &given).unwrap();
        let plain: Value = serde_json::from_str(read.as_str().unwrap()).unwrap();
        assert_eq!(plain["address"], line["address"]);
        assert_leads_to(line, text(&plain, "secret_key"));
    }
    let scan = tempdir().unwrap();
    let targets = scan.path().join("targets");
    fs::write(&targets, "1EHNa6Q4Jz2uvNExL497mE43ikXhwF6kZm\n").unwrap();
    let targets = targets.to_str().unwrap();
    let run = warpsmith(&[
        "scan",
        "--range",
        "1:100",
        "--targets",
        targets,
        "--encrypt-to",
        &recipient,
        "--json",
        "--device",
        "cpu",
    ])
    .code(0);
    assert_eq!(text(&run.json()[0]["encrypted"], "format"), "age");
    assert_no_key(&run.json()[0]);
}

#[test]
fn people_read_encrypted_results_too() {
    let case = Case::new();
    let password = case.path("password");
    let run = mine(&["q", "--encrypt", "--password-file", &password]).code(0);
    assert!(run.stdout.contains("\nncryptsec  ncryptsec1"), "{run:?}");
    assert!(!run.stdout.contains("nsec1") && !run.stdout.contains("hex "), "{run:?}");
    assert!(
        run.stderr.contains("warning: the password is weak: ncryptsec costs an attacker 64 MiB"),
        "{run:?}"
    );
    write_private(&password, "reptile unfazed glamour pushing cosmetic sprain\n");
    let run = mine(&["q", "--encrypt", "--password-file", &password]).code(0);
    assert!(!run.stderr.contains("weak"), "{run:?}");
}

#[test]
fn what_cannot_be_encrypted_is_refused_before_anything_is_searched() {
    let case = Case::new();
    let (password, empty, open) = (case.path("password"), case.path("empty"), case.path("open"));
    write_private(&empty, "\n");
    fs::write(&open, "password").unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let long = "zzzzzzzzzzzzzzzz";
    let with =
        |args: &[&str], file: &str| warpsmith(&[args, &["--encrypt", "--password-file", file]].concat());
    with(&["npub", long], &empty).code(2).says(&["--password-file", "the password is empty"]);
    with(&["npub", long], &open).code(4).says(&["open to other users", "chmod 600"]);
    with(&["npub", long], &case.path("none")).code(2).says(&["--password-file", "No such file"]);
    with(&["npub", long, "--keystore", &case.path("k")], &password)
        .code(2)
        .says(&["--keystore is for Ethereum"]);
    for args in
        [&["tron", "TTTTTTTTT"][..], &["ltc", "LTTTTTTT"], &["btc", "tb1qqqqqqq", "--network", "test"]]
    {
        with(args, &password).code(2).says(&["--encrypt-to age1", "ncryptsec for npub"]);
    }
    let deployer = format!("0x{}", "11".repeat(20));
    with(&["create3", "cafe", "--deployer", &deployer], &password).code(2).says(&["a salt is no secret"]);
    let public = const_hex::encode(PublicKey::from_secret_key(&random_secret()).serialize());
    with(&["npub", long, "--split-key", &public], &password)
        .code(2)
        .says(&["split result", "warpsmith join"]);
    mine(&[long, "--password-file", &password]).code(2).says(&["--encrypt"]);
    mine(&[long, "--encrypt", "--encrypt-to", "age1"]).code(2).says(&["cannot be used with"]);
    mine(&[long, "--encrypt-to", "age1qqq"]).code(2).says(&["--encrypt-to", "age-keygen"]);
    assert!(!Path::new(&case.path("k")).exists());
}

/// A file that asks for more memory than the process may have: an error that says so, before a password is asked for.
#[test]
fn memory_that_is_not_given_is_an_error() {
    let case = Case::new();
    let key = [1; 32];
    let password = Password::new(PASSWORD.to_owned().into()).unwrap();
    let document = warpsmith::keystore::web3::encrypt(&key, &[2; 20], &password, 4).unwrap();
    let keystore = case.path("keystore.json");
    write_private(&keystore, &document.replace("\"n\":16", "\"n\":4194304"));
    let script = format!(
        "ulimit -v 3000000; exec {BINARY} verify {keystore} --password-file {}",
        case.path("password")
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("takes 4097 MiB of memory, which the system does not give"), "{said}");
}

#[test]
fn passwords_are_typed_twice_and_not_shown() {
    let args = ["npub", "q", "--encrypt", "--json", "--device", "cpu", "--threads", "1"];
    let (first, again) = ("a password for the keys: ", "the same password again: ");
    let (run, shown) = answer(&args, &[(first, PASSWORD), (again, PASSWORD)]);
    let run = run.code(0);
    assert!(!shown.contains(PASSWORD) && !shown.contains("horse"), "{shown}");
    let line = &run.json()[0];
    assert_leads_to(line, &hex_of_ncryptsec(&line["encrypted"]));

    let (run, shown) = answer(&args, &[(first, "one"), (again, "two")]);
    assert!(!shown.contains("one"), "{shown}");
    let run = run.code(2).says(&["the two passwords differ"]);
    assert_eq!(run.json(), [] as [serde_json::Value; 0], "nothing but the error");
    answer(&args, &[(first, "")]).0.code(2).says(&["the password is empty"]);
    answer(&args, &[(first, "half\x03")]).0.code(130);
}

#[test]
fn many_results_are_joined_with_a_typed_key_and_encrypted() {
    let case = Case::new();
    let own = random_secret();
    let public = const_hex::encode(PublicKey::from_secret_key(&own).serialize());
    let mut files = Vec::new();
    for (name, count) in [("monday", "2"), ("tuesday", "1")] {
        let run = mine(&["q", "--split-key", &public, "--count", count, "--json"]).code(0);
        files.push(case.path(name));
        fs::write(case.path(name), run.stdout).unwrap();
    }
    let password = case.path("password");
    let mut args = vec!["join", "--json", "--encrypt", "--password-file", &password];
    args.extend(files.iter().map(String::as_str));
    let typed = const_hex::encode(own.to_secret_bytes());
    let (run, shown) = answer(&args, &[("your own private key: ", &typed)]);
    assert!(!shown.contains(&typed[..16]), "{shown}");
    let lines = run.code(0).json();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert_eq!(text(line, "event"), "joined");
        assert_no_key(line);
        assert_leads_to(line, &hex_of_ncryptsec(&line["encrypted"]));
    }

    // One that does not fit, and nothing is written.
    let mut altered: Vec<Value> = fs::read_to_string(&files[0])
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    altered[1]["split"]["negate"] = json!(altered[1]["split"]["negate"] != json!(true));
    altered[1]["split"]["offset"] = json!("11".repeat(32));
    let file = case.path("altered");
    fs::write(&file, altered.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")).unwrap();
    let key = case.path("own.key");
    write_private(&key, &typed);
    let output = case.path("out");
    let run = warpsmith(&["join", "--secret-key-file", &key, &file, "--output", &output]).code(4);
    assert!(!Path::new(&output).exists() && run.stdout.is_empty(), "{run:?}");
}
