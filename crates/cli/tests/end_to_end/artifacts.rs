//! Creation code out of what compilers leave: the address is where ethers says that code, library and arguments lead.

use std::fs;

use serde_json::json;
use tempfile::tempdir;

use crate::foreign;
use crate::harness::{text, warpsmith};

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
