//! `docs/json.md` against what the commands print: every field of every document is explained there, and every document that is
//! explained there is printed here, or said to need what a test has not.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;
use warpsmith_trials::programs::{check_documents, utxo_set};

use crate::harness::{BINARY, INFEASIBLE, PROGRAM, signal, text, warpsmith, write_private};

/// What commands of every kind print.
fn printed() -> Vec<Value> {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut all = Vec::new();
    let mut run = |args: &[&str]| {
        let run = warpsmith(&[args, &["--json"]].concat());
        let documents = run.documents();
        let last = documents.last().unwrap_or_else(|| panic!("{args:?}: {run:?}"));
        assert!(["done", "error"].contains(&text(last, "event")), "{args:?}: {run:?}");
        all.extend(documents);
    };
    let cpu = ["--device", "cpu", "--threads", "1"];
    let mut on_cpu = |args: &[&str]| run(&[args, &cpu].concat());
    let (list, database, map, key, result) =
        (path("list"), path("database"), path("map"), path("own.key"), path("result"));
    fs::write(&list, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\t5\n").unwrap();
    on_cpu(&["npub", INFEASIBLE, "--progress", "json", "--time-limit", "2300ms"]);
    on_cpu(&["npub", "q", "p", "--each"]);
    on_cpu(&["npub", "q", "--estimate"]);
    // Numbers beyond all bounds.
    on_cpu(&["npub", &"z".repeat(50), "--estimate"]);
    on_cpu(&["eth", "0", "--contract", "--nonce", "18446744073709551614"]);
    on_cpu(&["scan", "--range", "2^70:2^255", "--targets", &list, "--estimate"]);
    on_cpu(&["npub", "q", "p", "--each", "--estimate"]);
    on_cpu(&["npub", "q", "--output", &path("keys")]);
    on_cpu(&["npub", "bob"]);
    on_cpu(&["btc", "1A"]);
    on_cpu(&["btc", "bc1pq"]);
    on_cpu(&["eth", "0", "--contract"]);
    on_cpu(&["eth", "--leading-zeros", "--score", "1"]);
    on_cpu(&["eth", "--leading-zeros", "--estimate"]);
    let hash = "ab".repeat(32);
    on_cpu(&["create2", "0", "--factory", "arachnid", "--init-code-hash", &hash]);
    let caller = "caller:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    on_cpu(&["create3", "0", "--factory", "createx", "--salt-layout", caller, "--chain-id", "1"]);
    on_cpu(&["npub", "q", "--encrypt-to", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]);
    write_private(path("password"), "correct horse battery staple\n");
    on_cpu(&["eth", "0", "--encrypt", "--password-file", &path("password")]);
    on_cpu(&["npub", "q", "--encrypt", "--password-file", &path("password")]);
    on_cpu(&["scan", "--range", "1:7fff", "--targets", &list, "--map", &map]);
    let own = path("own-keys");
    fs::write(&own, format!("{:064x}\n", 1)).unwrap();
    on_cpu(&["scan", "--keys", &own, "--targets", &list]);
    let generator = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    on_cpu(&["scan", "--range", "1:ff", "--public-key", generator]);
    let random = path("random");
    on_cpu(&["scan", "--range", "1:fff", "--targets", &list, "--map", &random, "--random"]);
    on_cpu(&["scan", "--range", "1:7fff", "--targets", &list, "--estimate"]);
    on_cpu(&[
        "scan",
        "--range",
        "2^70:2^255",
        "--targets",
        &list,
        "--random",
        "--map",
        &path("long.map"),
        "--progress",
        "json",
        "--time-limit",
        "2300ms",
    ]);
    on_cpu(&["bench", "npub", "--seconds", "0.5", "--baseline", "--detail"]);
    on_cpu(&["bench", "field", "scan", "--seconds", "0.5"]);
    on_cpu(&["selftest", "npub"]);
    run(&["keygen", "--output", &key]);
    let public =
        text(all_of(&["keygen", "--output", &path("other.key"), "--json"]).first().unwrap(), "public_key")
            .to_owned();
    let mined =
        warpsmith(&["npub", "q", "--split-key", &public, "--json", "--device", "cpu", "--threads", "1"])
            .code(0);
    fs::write(&result, &mined.stdout).unwrap();
    run(&["join", "--secret-key-file", &path("other.key"), &result]);
    run(&["verify", &key]);
    run(&["create2", "explain", "--factory", "arachnid", "--init-code-hash", &hash, "--salt", &hash]);
    run(&["db", "build", &database, &list]);
    let set = path("utxo.dat");
    fs::write(&set, utxo_set("f9beb4d9")).unwrap();
    run(&["db", "build", &path("set.db"), &set]);
    run(&["db", "info", &database]);
    run(&["db", "lookup", &database, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"]);
    run(&["db", "list", &database]);
    let poorer = path("poorer");
    fs::write(path("poorer.txt"), "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\t4\n").unwrap();
    run(&["db", "build", &poorer, &path("poorer.txt")]);
    run(&["db", "diff", &poorer, &database]);
    run(&["db", "add", &poorer, &list]);
    run(&["map", "show", &map]);
    run(&["map", "show", &random]);
    run(&["map", "show", &path("long.map")]);
    run(&["devices", "--verbose"]);
    run(&["config", "show"]);
    // Without a server: the job is in the folder.
    let fleet = path("fleet");
    let listen = format!("127.0.0.1:{}", warpsmith_trials::free_port());
    warpsmith(&["fleet", "init", &fleet, "--listen", &listen]).code(0);
    run(&["fleet", "submit", &fleet, "npub", INFEASIBLE, "--time-limit", "100ms"]);
    let contract = ["eth", "0", "--contract", "--nonce", "18446744073709551614", "--time-limit", "100ms"];
    run(&[&["fleet", "submit", &fleet][..], &contract].concat());
    run(&["fleet", "status", &fleet]);
    let job = fs::read_dir(path("fleet/jobs")).unwrap().next().unwrap().unwrap();
    run(&["fleet", "cancel", &fleet, job.file_name().to_str().unwrap()]);
    let mut serve = Command::new(BINARY);
    serve.args(["serve-salts", "--listen", "127.0.0.1:0", "--json", "--quiet"]).args(cpu);
    let mut server = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let document = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
    all.push(document(lines.next().unwrap()));
    signal(&server, "TERM");
    all.extend(lines.map(document));
    server.wait().unwrap();
    all.extend(mined.documents());
    all
}

fn all_of(args: &[&str]) -> Vec<Value> {
    warpsmith(args).code(0).documents()
}

#[test]
fn every_document_is_explained_and_every_explanation_is_of_one() {
    let exceeded = [
        "match: nonce",
        "estimate: difficulty",
        "estimate: keys",
        "map: remaining",
        "status: jobs.job.sought.nonce",
    ];
    check_documents(&PROGRAM, printed(), &exceeded);
}
