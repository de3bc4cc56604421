//! `docs/json.md` against what the commands print.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;
use warpsmith_trials::programs::check_documents;

use crate::harness::{BINARY, PROGRAM, pir, signal, text, write_private};

/// What commands of every kind print.
fn printed() -> Vec<Value> {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut all = Vec::new();
    let mut run = |args: &[&str]| {
        let run = pir(&[args, &["--json"]].concat());
        let documents = run.documents();
        let last = documents.last().unwrap_or_else(|| panic!("{args:?}: {run:?}"));
        assert!(["done", "error"].contains(&text(last, "event")), "{args:?}: {run:?}");
        all.extend(documents);
    };
    let hash = "ab".repeat(32);
    run(&["bench", "--entries", "4096", "--device", "cpu", "--threads", "1"]);
    run(&["selftest", "--device", "cpu", "--threads", "1"]);
    run(&["devices", "--verbose"]);
    run(&["config", "show"]);
    run(&["build", &path("none"), &path("missing")]);
    let (entries, data, state) = (path("entries"), path("data"), path("state"));
    fs::write(&entries, [7; 64 * 40]).unwrap();
    run(&["build", &data, &entries, "--entry-size", "40"]);
    let block = ["--chain-id", "9223372036854775771", "--block-number", "7", "--block-hash", &hash];
    run(&[&["build", &path("synthetic"), "--synthetic", "1000"], &block[..]].concat());
    run(&["hint", "--database", &data, "--state", &state, "--device", "cpu", "--threads", "1"]);
    run(&["info", &data, "--verify"]);
    run(&["info", &path("synthetic")]);
    run(&["info", &state]);
    write_private(path("changes"), &format!("3 {}\n", "00".repeat(40)));
    let mut serve = Command::new(BINARY);
    serve.args(["serve", &data, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--json", "--quiet"]);
    let mut server = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let listening: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    run(&["get", "--server", text(&listening, "url"), "--state", &state, "3"]);
    run(&["load", text(&listening, "url"), "--connections", "2", "--rate", "10", "--time", "1s"]);
    run(&["update", &data, &path("changes")]);
    run(&["fold", &data]);
    let (pairs, more) = (path("pairs"), path("more"));
    fs::write(&pairs, "01 02\n").unwrap();
    fs::write(&more, (2..60).map(|i| format!("{i:02x} 07\n")).collect::<String>()).unwrap();
    run(&["build", &path("table"), &pairs]);
    run(&["update", &path("table"), &more]);
    run(&["info", &data]);
    signal(&server, "TERM");
    all.push(listening);
    all.extend(lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()));
    server.wait().unwrap();
    all
}

#[test]
fn every_document_is_explained_and_every_explanation_is_of_one() {
    check_documents(&PROGRAM, printed(), &["database: chain_id"]);
}
