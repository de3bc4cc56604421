//! Rules of one's own: found salts, their explanations and their verification, against the `sha3` crate; and mistakes in a rule file.

use std::fs;

use serde_json::Value;
use sha3::{Digest, Keccak256};
use tempfile::{TempDir, tempdir};

use crate::harness::{Run, text, warpsmith};

const DEPLOYER: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";
const ADMIN: &str = "0x00000000219ab540356cBB839Cbe05303d7705Fa";

/// A launcher that hashes the admin behind the salt, of a token whose code is known.
const LAUNCHER: &str = r#"name = "launcher"
deployer = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
create2 = "launch(address,uint96)"
arguments = ["admin", "salt"]
salt = "uint96"
guard = "keccak256(abi.encodePacked(salt, admin, block.chainid))"
init_code = "abi.encodePacked(token, abi.encode(admin))"

[constants]
token = "bytes 0x6001600255"

[inputs]
admin = "address"
"#;

fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Keccak256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn bytes(hex: &str) -> Vec<u8> {
    const_hex::decode(hex).expect("hex")
}

fn hex(bytes: &[u8]) -> String {
    const_hex::encode_prefixed(bytes)
}

/// A folder with a rule.
fn rule(content: &str) -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("rule.toml");
    fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn search(args: &[&str]) -> Run {
    warpsmith(&[args, &["--device", "cpu", "--threads", "1", "--json"]].concat())
}

/// What the launcher creates from a salt on a chain: the message it hashes, the guarded salt, the code's hash and the address.
fn launched(salt: &[u8], chain: u64) -> (Vec<u8>, [u8; 32], [u8; 32], [u8; 20]) {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&chain.to_be_bytes());
    let message = [salt, &bytes(ADMIN), &word].concat();
    let guarded = keccak(&[&message]);
    let code = keccak(&[&bytes("6001600255"), &[0; 12], &bytes(ADMIN)]);
    let hash = keccak(&[&[0xff], &bytes(DEPLOYER), &guarded, &code]);
    (message, guarded, code, hash[12..].try_into().unwrap())
}

fn lower(line: &Value, field: &str) -> String {
    text(line, field).to_lowercase()
}

#[test]
fn a_search_by_a_rule_is_explained_and_verified() {
    let (folder, rule) = rule(LAUNCHER);
    let admin = format!("admin={ADMIN}");
    let made = ["--rule", &rule, "--input", &admin, "--chain-id", "8453"];
    let run = search(&[&["create2", "abc"], &made[..]].concat()).code(0);
    let found = &run.json()[0];
    let salt = bytes(text(found, "salt"));
    assert_eq!(salt[..20], [0; 20], "a number of 96 bits");
    let (message, guarded, code, address) = launched(&salt[20..], 8453);
    assert_eq!(lower(found, "address"), hex(&address));
    assert!(lower(found, "address").starts_with("0xabc"));
    let number = u128::from_be_bytes(salt[16..].try_into().unwrap()).to_string();
    let details = &found["details"];
    assert_eq!(text(details, "salt_argument"), number);
    assert_eq!(text(details, "inputs"), admin);
    assert!(
        text(details, "use").contains(&format!("'launch(address,uint96)' {ADMIN} {number} ")),
        "{details}"
    );

    // The same salt as results have it, and as the factory takes it.
    for given in [text(found, "salt"), &number] {
        let explain = [&["create2", "explain", "--salt", given, "--json"], &made[..]].concat();
        let explained = &warpsmith(&explain).code(0).json()[0];
        assert_eq!(text(explained, "event"), "explanation");
        for field in ["address", "salt"] {
            assert_eq!(explained[field], found[field]);
        }
        let details = &explained["details"];
        assert_eq!(text(details, "guard"), "keccak256(abi.encodePacked(salt, admin, block.chainid))");
        assert_eq!(text(details, "guard_message"), hex(&message));
        assert_eq!(text(details, "guarded_salt"), hex(&guarded));
        assert_eq!(text(details, "init_code_hash"), hex(&code));
        assert_eq!(keccak(&[&bytes(text(details, "init_code"))]), code);
        assert_eq!(keccak(&[&bytes(text(details, "create2_message"))])[12..], address);
    }
    let told = warpsmith(&[&["create2", "explain", "--salt", "7"], &made[..]].concat()).code(0);
    let (.., address) = launched(&[vec![0; 11], vec![7]].concat(), 8453);
    assert!(told.stdout.to_lowercase().contains(&format!("address          {}", hex(&address))), "{told:?}");

    // What was found holds with the rule, does not when a value was changed, and nobody knows it without.
    let results = folder.path().join("results.json");
    let (results, verify) =
        (results.to_str().unwrap(), |results: &str| warpsmith(&["verify", results, "--rule", &rule]));
    fs::write(results, &run.stdout).unwrap();
    verify(results).code(0);
    let unknown = warpsmith(&["verify", results]).code(2).says(&["cannot be checked", "--rule FILE"]);
    let unknown = unknown.stdout_says("the rule it was mined with");
    assert!(!unknown.stdout.contains("WRONG") && !unknown.stdout.contains("HOLD"), "{unknown:?}");
    let unknown = warpsmith(&["verify", results, "--json"]).code(2).json().remove(0);
    assert!(unknown["holds"].is_null() && unknown["checks"][0]["holds"].is_null(), "{unknown}");
    fs::write(results, run.stdout.replace(ADMIN, DEPLOYER)).unwrap();
    verify(results).code(1);
}

/// Caller and chain may be part of the code alone; without them nobody knows the address.
#[test]
fn code_that_depends_on_caller_and_chain_needs_both() {
    let (_folder, rule) = rule(&format!(
        "name = \"own\"\ndeployer = \"{DEPLOYER}\"\ncreate2 = \"make(bytes32)\"\n\
         init_code = 'abi.encodePacked(hex\"6001\", abi.encode(msg.sender, block.chainid))'\n"
    ));
    let explain = |more: &[&str]| {
        let salt = "11".repeat(32);
        warpsmith(&[&["create2", "explain", "--rule", &rule, "--salt", &salt, "--json"], more].concat())
    };
    let caller = format!("caller:{ADMIN}");
    explain(&["--chain-id", "5"]).code(2).says(&["depend on the account that calls it"]);
    explain(&["--salt-layout", &caller]).code(2).says(&["depend on the chain"]);
    let line = explain(&["--salt-layout", &caller, "--chain-id", "5"]).code(0).json().remove(0);
    let mut chain = [0; 32];
    chain[31] = 5;
    let code = keccak(&[&[0x60, 0x01], &[0; 12], &bytes(ADMIN), &chain]);
    let hash = keccak(&[&[0xff], &bytes(DEPLOYER), &[0x11; 32], &code]);
    assert_eq!(lower(&line, "address"), hex(&hash[12..]));
    // A search leaves all of the salt free: the caller is in the code.
    let search =
        search(&["create2", "ab", "--rule", &rule, "--salt-layout", &caller, "--chain-id", "5"]).code(0);
    let found = &search.json()[0];
    let hash = keccak(&[&[0xff], &bytes(DEPLOYER), &bytes(text(found, "salt")), &code]);
    assert_eq!(lower(found, "address"), hex(&hash[12..]));
    assert!(!lower(found, "salt").starts_with(&ADMIN.to_lowercase()));
}

#[test]
fn a_wallet_by_name_needs_what_its_rule_asks_for() {
    let wallet = |more: &[&str]| {
        warpsmith(
            &[&["create2", "explain", "--factory", "safe-1.4.1", "--salt", "1700000000", "--json"], more]
                .concat(),
        )
    };
    wallet(&[]).code(2).says(&["needs initializer", "--input initializer=0x.."]);
    let initializer = "initializer=0xb63e800d";
    wallet(&["--input", initializer]).code(2).says(&["needs singleton", "Safe or SafeL2"]);
    wallet(&["--input", initializer, "--input", "singleton=Safe", "--init-code-hash", &"ab".repeat(32)])
        .code(2)
        .says(&["leave --init-code and --init-code-hash out"]);
    wallet(&["--input", initializer, "--input", initializer]).code(2).says(&["given before"]);
    wallet(&["--input", "singleton"]).code(2).says(&["write NAME=VALUE"]);
    let mut addresses = Vec::new();
    for singleton in ["Safe", "SafeL2", "0x41675C099F32341bf84BFc5382aF534df5C7461a"] {
        for chain in [&[][..], &["--chain-id", "1"]] {
            let singleton = format!("singleton={singleton}");
            let line = wallet(&[&["--input", initializer, "--input", &singleton], chain].concat())
                .code(0)
                .json()
                .remove(0);
            let mut nonce = [0; 32];
            nonce[28..].copy_from_slice(&1_700_000_000u32.to_be_bytes());
            let mut after = [0; 32];
            after[31] = 1;
            let hash = keccak(&[&bytes("b63e800d")]);
            let salt = keccak(&[&hash, &nonce, if chain.is_empty() { &[] } else { &after }]);
            let details = &line["details"];
            assert_eq!(text(details, "guarded_salt"), hex(&salt));
            let made = keccak(&[
                &[0xff],
                &bytes("4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67"),
                &salt,
                &bytes(text(details, "init_code_hash")),
            ]);
            assert_eq!(lower(&line, "address"), hex(&made[12..]));
            let call =
                if chain.is_empty() { "createProxyWithNonce" } else { "createChainSpecificProxyWithNonce" };
            assert!(
                text(details, "use").contains(&format!("'{call}(address,bytes,uint256)' 0x")),
                "{details}"
            );
            addresses.push(line["address"].to_string());
        }
    }
    assert_eq!(addresses[..2], addresses[4..], "by name and by address");
    assert_ne!(addresses[0], addresses[1]);
    assert_ne!(addresses[0], addresses[2]);
}

#[test]
fn mistakes_in_a_rule_are_refused_with_line_and_column() {
    for (from, to, says) in [
        ("block.chainid", "block.chain", "line 6, column 50: 'block.chain' is no constant and no input"),
        ("uint96\"\nguard", "int96\"\nguard", "line 5, column 8: a salt is bytes32"),
        ("[inputs]\nadmin", "[inputs]\nowner", "line 6, column 43: 'admin' is no constant"),
        ("name = ", "nam = ", "line 1, column 1: there is no nam; expected one of name"),
        ("launcher", "createx", "line 1, column 8: createx is the name of a factory that is built in"),
        ("956C\"", "956c\"", "line 2, column 12"),
        ("keccak256(abi", "keccak(abi", "line 6, column 10: 'keccak(' is not known here"),
        ("0x6001600255", "0x600160025", "line 10, column 9"),
        ("\"salt\"]", "\"salt\", \"salt\"]", "line 3, column 11: it takes 2 arguments, and arguments has 3"),
    ] {
        let mistaken = LAUNCHER.replacen(from, to, 1);
        assert_ne!(mistaken, LAUNCHER, "{from}");
        let (_folder, rule) = rule(&mistaken);
        // Before a device is looked for.
        for command in
            [&["create2", "abc", "--device", "cuda:99"][..], &["create2", "explain", "--salt", "7"]]
        {
            let run = warpsmith(&[command, &["--rule", &rule, "--chain-id", "1"]].concat()).code(2);
            assert_eq!(run.stdout, "");
            run.says(&["error: --rule ", "rule.toml, ", says]);
        }
    }
    let (_folder, rule) = rule(LAUNCHER);
    let with = |more: &[&str]| warpsmith(&[&["create2", "abc", "--rule", &rule], more].concat()).code(2);
    let admin = format!("admin={ADMIN}");
    with(&["--input", &admin]).says(&["makes the address depend on the chain", "--chain-id"]);
    with(&["--chain-id", "1"]).says(&["launcher needs admin"]);
    with(&["--chain-id", "1", "--input", "admin=me"]).says(&["--input admin: 'me' is no address"]);
    with(&["--chain-id", "1", "--input", &admin, "--factory", "arachnid"]).says(&["cannot be used with"]);
    let free = "??".repeat(32);
    with(&["--chain-id", "1", "--input", &admin, "--salt", &free]).says(&["uint96", "bytes 21 to 32"]);
    warpsmith(&["create3", "abc", "--rule", &rule]).code(2).says(&["launcher offers no CREATE3"]);
}

#[test]
fn create3_is_explained_too() {
    let caller = "0x4e59b44847b379578588920ca78fbf26c0b4956c";
    let salt = format!("{caller}00{}07", "00".repeat(10));
    let layout = format!("caller:{caller}");
    let explain = ["create3", "explain", "--factory", "createx", "--salt", &salt, "--json"];
    let line = warpsmith(&[&explain[..], &["--salt-layout", &layout]].concat()).code(0).json().remove(0);
    let guarded = keccak(&[&[0; 12], &bytes(caller), &bytes(&salt)]);
    assert_eq!(text(&line["details"], "guarded_salt"), hex(&guarded));
    let proxy = &keccak(&[&bytes(text(&line["details"], "create2_message"))])[12..];
    assert_eq!(lower(&line["details"], "proxy"), hex(proxy));
    assert_eq!(lower(&line, "address"), hex(&keccak(&[&[0xd6, 0x94], proxy, &[1]])[12..]));
    // Without the caller nobody knows what CreateX makes of it.
    warpsmith(&explain).code(2).says(&["say who calls it"]);
    // A salt that the factory refuses.
    let refused = format!("{}ff{}", "00".repeat(20), "00".repeat(11));
    warpsmith(&["create3", "explain", "--factory", "createx", "--salt", &refused]).code(2).says(&["byte 21"]);
    warpsmith(&["create3", "explain", "--factory", "createx", "--salt", "7"])
        .code(2)
        .says(&["64 hex digits"]);
}
