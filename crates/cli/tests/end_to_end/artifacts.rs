//! Creation code out of what compilers leave: the address is where ethers says that code, library and arguments lead.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::foreign;
use crate::harness::{text, warpsmith, warpsmith_with};

const LIBRARY: &str = "0x0000000000FFe8B47B3e2130213B802212439497";
const ARACHNID: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

#[test]
fn code_of_artifacts_leads_where_ethers_says() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let inputs = json!([
        {"name": "name", "type": "string"}, {"name": "supply", "type": "uint256"}, {"name": "change", "type": "int64"},
        {"name": "owners", "type": "address[]"}, {"name": "root", "type": "bytes32"}, {"name": "data", "type": "bytes"},
        {"name": "shares", "type": "tuple[2]", "components": [
            {"name": "who", "type": "address"}, {"name": "parts", "type": "uint16[]"}, {"name": "open", "type": "bool"}]},
    ]);
    let types =
        ["string", "uint256", "int64", "address[]", "bytes32", "bytes", "tuple(address,uint16[],bool)[2]"];
    let root = format!("0x{}", "5a".repeat(32));
    let supply = "1000000000000000000000000";
    let values = [
        "Gold, or so",
        supply,
        "-77",
        &format!("[{LIBRARY},{ARACHNID}]"),
        &root,
        "0x010203",
        &format!("[({LIBRARY},[1,2,3],true),({ARACHNID},[],false)]"),
    ];
    let given = json!({
        "types": types, "library": LIBRARY, "factory": ARACHNID,
        "values": ["Gold, or so", supply, -77, [LIBRARY, ARACHNID], root, "0x010203",
            [[LIBRARY, [1, 2, 3], true], [ARACHNID, [], false]]],
    });
    let hole = "__$0123456789abcdef0123456789abcdef01$__";
    let foundry = json!({
        "abi": [{"type": "constructor", "inputs": inputs}, {"type": "function", "name": "f", "inputs": []}],
        "bytecode": {"object": format!("0x6080604052{hole}600155"), "linkReferences":
            {"src/Math.sol": {"Math": [{"start": 5, "length": 20}]}}},
    });
    let hardhat = json!({
        "_format": "hh-sol-artifact-1", "contractName": "T", "abi": [{"type": "constructor", "inputs": inputs}],
        "bytecode": format!("0x6080604052{hole}600155"), "linkReferences":
            {"src/Math.sol": {"Math": [{"start": 5, "length": 20}]}},
    });
    for (name, artifact) in [("foundry.json", foundry), ("hardhat.json", hardhat)] {
        let file = path(name);
        fs::write(&file, artifact.to_string()).unwrap();
        let library = format!("Math={LIBRARY}");
        let usual =
            ["create2", "a", "--factory", "arachnid", "--init-code", &file, "--json", "--device", "cpu"];
        let run = warpsmith(&[&usual[..], &["--library", &library, "--constructor-args"], &values].concat())
            .code(0);
        let found = run.json().remove(0);
        let mut given = given.clone();
        given["salt"] = json!(text(&found, "salt"));
        let told = foreign::node(
            "ethers",
            "const {AbiCoder, concat, keccak256, getCreate2Address} = require('ethers'); \
             const code = '0x6080604052' + given.library.slice(2) + '600155'; \
             const all = concat([code, AbiCoder.defaultAbiCoder().encode(given.types, given.values)]); \
             show(getCreate2Address(given.factory, given.salt, keccak256(all)));",
            &given,
        );
        let Some(told) = told else { return };
        assert_eq!(told, found["address"], "{name}");
        // What is missing is named before any work.
        warpsmith(&usual).code(2).says(&["not linked", "src/Math.sol:Math", "--library"]);
        warpsmith(&[&usual[..], &["--library", &library]].concat())
            .code(2)
            .says(&["constructor takes (string,uint256", "--constructor-args"]);
        warpsmith(&[&usual[..], &["--library", &library, "--constructor-args", "x"]].concat())
            .code(2)
            .says(&["7 arguments"]);
    }
    let file = path("code.hex");
    fs::write(&file, "0x6001").unwrap();
    let hash =
        ["create2", "a", "--factory", "arachnid", "--init-code-hash", &root, "--constructor-args", "0x"];
    warpsmith(&hash).code(2).says(&["--init-code"]);
}

/// The creation code that the line of a result hands to cast, as the shell sees it.
fn code_of(found: &Value, folder: &Path) -> String {
    let line = text(&found["details"], "use").replace("cast send", "printf '%s\\n'");
    let output = Command::new("bash").args(["-c", &line]).current_dir(folder).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
    let words = String::from_utf8(output.stdout).unwrap();
    // The deployer comes first, then salt and code in one.
    let salt = text(found, "salt");
    words.lines().nth(1).and_then(|word| word.strip_prefix(salt)).expect("a salt and code").to_owned()
}

#[test]
fn lines_name_files_with_the_very_code() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, content: &[u8]| fs::write(path(name), content).unwrap();
    let bytes = const_hex::decode("6080604052600155").unwrap();
    write("with 0x.hex", b"0x6080604052600155\n");
    write("it's.hex", b"6080604052600155");
    write("code.bin", &bytes);
    write("foundry.json", br#"{"abi":[],"bytecode":{"object":"0x6080604052600155"}}"#);
    write("hardhat.json", br#"{"abi":[],"bytecode":"0x6080604052600155"}"#);
    let usual = ["create2", "a", "--factory", "arachnid", "--json", "--device", "cpu", "--threads", "1"];
    let run = |more: &[&str]| warpsmith(&[&usual[..], more].concat());
    let found = |more: &[&str]| run(more).code(0).json().remove(0);
    for name in ["with 0x.hex", "it's.hex", "code.bin", "foundry.json", "hardhat.json"] {
        if name.ends_with("json") && Command::new("jq").arg("--version").output().is_err() {
            eprintln!("SKIPPED: jq is not installed: no code was taken from {name}");
            continue;
        }
        let result = found(&["--init-code", &path(name)]);
        assert_eq!(code_of(&result, folder.path()), "6080604052600155", "{name}");
        warpsmith_with(&["verify", "-"], result.to_string().as_bytes()).code(0);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing needs to be written");

    // With arguments the code is in no file yet: it is written beside the results, or where it is said.
    let argument = format!("{:064x}", 7);
    let argued = ["--init-code", &path("with 0x.hex"), "--constructor-args", &format!("0x{argument}")];
    let finished = format!("6080604052600155{argument}");
    let output = path("results");
    for _ in 0..2 {
        let result = found(&[&argued[..], &["--output", &output]].concat());
        assert_eq!(code_of(&result, folder.path()), finished);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7, "the results, and the code once");
    warpsmith(&["verify", &output]).code(0);
    let out = path("finished.hex");
    let result = found(&[&argued[..], &["--init-code-out", &out]].concat());
    assert_eq!(
        (code_of(&result, folder.path()), text(&result["details"], "use").contains(&out)),
        (finished, true)
    );
    let result = found(&argued);
    assert!(
        text(&result["details"], "use").ends_with("URL, where FILE holds the creation code in hex"),
        "{result}"
    );
    let salt = format!("0x{argument}");
    let explain = ["create2", "explain", "--factory", "arachnid", "--salt", &salt, "--init-code-out", &out];
    warpsmith(&[&explain[..], &argued].concat()).code(0).stdout_says("finished.hex");

    // Another file is never replaced, and mistakes leave none.
    let other = path("other.hex");
    run(&[&argued[..], &["--init-code-out", &path("code.bin")]].concat()).code(4).says(&["is there already"]);
    // Nor is a pipe read, which would never end.
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    run(&[&argued[..], &["--init-code-out", &path("pipe")]].concat()).code(4).says(&["is there already"]);
    assert_eq!(fs::read(path("code.bin")).unwrap(), bytes);
    run(&[&argued[..], &["--init-code-out", &other, "--estimate"]].concat()).code(0);
    run(&[&argued[..], &["--init-code-out", &other, "--each", "--zeros"]].concat()).code(2);
    assert!(!Path::new(&other).exists());
    let hash = "ab".repeat(32);
    run(&["--init-code-hash", &hash, "--init-code-out", &other])
        .code(2)
        .says(&["--init-code-out", "cannot be used"]);
    run(&["--init-code-out", &other]).code(2).says(&["--init-code FILE"]);
}
