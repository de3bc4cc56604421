//! `docs/json.md` against what the commands print: every field of every document is explained there, and every document that is
//! explained there is printed here, or said to need what a test has not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::databases::utxo_set;
use crate::harness::{BINARY, INFEASIBLE, assert_exact, signal, text, warpsmith, write_private};

const PAGE: &str = include_str!("../../../../docs/json.md");

/// The documents that the page explains: what each needs, and the names of its fields, with dots for those within others and
/// `*` for any name.
fn explained() -> BTreeMap<String, (Option<&'static str>, BTreeSet<String>)> {
    let mut all: BTreeMap<String, (Option<&str>, BTreeSet<String>)> = BTreeMap::new();
    let mut event = None;
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split('`').nth(1).map(str::to_owned);
            let needs = heading.split_once("(needs ").map(|(_, rest)| rest.trim_end_matches(')'));
            if let Some(name) = &name {
                all.insert(name.clone(), (needs, BTreeSet::new()));
            }
            event = name;
        } else if let (Some(event), Some(row)) = (&event, line.strip_prefix("| `")) {
            let names = row.split(" | ").next().unwrap_or_default().replace('`', "");
            let names = names.split(", ").map(str::to_owned);
            all.get_mut(event).expect("its heading").1.extend(names);
        }
    }
    all
}

/// The fields that the page says are decimal texts, as (document, field).
fn decimal_texts() -> BTreeSet<(String, String)> {
    let section =
        PAGE.split("## Numbers").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let names = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>()
    };
    let rows = section.lines().filter(|line| line.starts_with("| `")).map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        (names(cells.next().unwrap_or_default()), names(cells.next().unwrap_or_default()))
    });
    let each = |(events, fields): (Vec<String>, Vec<String>)| {
        events
            .into_iter()
            .flat_map(move |event| fields.clone().into_iter().map(move |field| (event.clone(), field)))
    };
    rows.flat_map(each).collect()
}

/// The values of a field of a document, with dots for those within others.
fn values<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let found: Vec<&Value> = match value {
        Value::Array(all) => return all.iter().flat_map(|value| values(value, path)).collect(),
        value => value.get(name).into_iter().collect(),
    };
    if rest.is_empty() { found } else { found.into_iter().flat_map(|value| values(value, rest)).collect() }
}

/// The names of all fields of a document.
fn fields(value: &Value, within: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields_of) => {
            for (name, value) in fields_of {
                assert!(!name.contains(' '), "a name has a space: {name}");
                let path = if within.is_empty() { name.clone() } else { format!("{within}.{name}") };
                into.insert(path.clone());
                fields(value, &path, into);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| fields(value, within, into)),
        _ => {}
    }
}

fn is_explained(path: &str, known: &BTreeSet<String>) -> bool {
    let any = |at: usize| format!("{}.*", &path[..at]);
    ["event", "version"].contains(&path)
        || known.contains(path)
        || path.match_indices('.').any(|(at, _)| known.contains(&any(at)))
}

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
    on_cpu(&["pir", "bench", "--entries", "4096"]);
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
    let (entries, data, state) = (path("entries"), path("data"), path("state"));
    fs::write(&entries, [7; 64 * 40]).unwrap();
    run(&["pir", "build", &data, &entries, "--entry-size", "40"]);
    let block = ["--chain-id", "9223372036854775771", "--block-number", "7", "--block-hash", &hash];
    run(&[&["pir", "build", &path("synthetic"), "--synthetic", "1000"], &block[..]].concat());
    run(&["pir", "hint", "--database", &data, "--state", &state, "--device", "cpu", "--threads", "1"]);
    run(&["pir", "info", &data, "--verify"]);
    run(&["pir", "info", &path("synthetic")]);
    run(&["pir", "info", &state]);
    write_private(path("changes"), &format!("3 {}\n", "00".repeat(40)));
    let mut serve = Command::new(BINARY);
    serve.args([
        "pir",
        "serve",
        &data,
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--json",
        "--quiet",
    ]);
    let mut server = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let listening: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    run(&["pir", "get", "--server", text(&listening, "url"), "--state", &state, "3"]);
    run(&["pir", "load", text(&listening, "url"), "--connections", "2", "--rate", "10", "--time", "1s"]);
    run(&["pir", "update", &data, &path("changes")]);
    run(&["pir", "fold", &data]);
    let (pairs, more) = (path("pairs"), path("more"));
    fs::write(&pairs, "01 02\n").unwrap();
    fs::write(&more, (2..60).map(|i| format!("{i:02x} 07\n")).collect::<String>()).unwrap();
    run(&["pir", "build", &path("table"), &pairs]);
    run(&["pir", "update", &path("table"), &more]);
    run(&["pir", "info", &data]);
    signal(&server, "TERM");
    all.push(listening);
    all.extend(lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()));
    server.wait().unwrap();
    all.extend(mined.documents());
    all
}

fn all_of(args: &[&str]) -> Vec<Value> {
    warpsmith(args).code(0).documents()
}

#[test]
fn every_document_is_explained_and_every_explanation_is_of_one() {
    let explained = explained();
    assert!(explained.len() > 20, "{:?}", explained.keys());
    let mut seen = BTreeSet::new();
    let mut lacking = BTreeSet::new();
    let decimal_texts = decimal_texts();
    let mut exceeding = BTreeSet::new();
    for document in printed() {
        // Numbers that doubles do not keep exactly are texts, and so are the same fields where they are small.
        assert_exact(&document);
        for (event, path) in decimal_texts.iter().filter(|(event, _)| *event == document["event"]) {
            for value in values(&document, path).into_iter().filter(|value| !value.is_null()) {
                let number = value.as_str().and_then(|text| text.parse::<f64>().ok());
                let number = number.unwrap_or_else(|| panic!("{path} is no decimal text: {document}"));
                if number > 2f64.powi(53) {
                    exceeding.insert(format!("{event}: {path}"));
                }
            }
        }
        assert_eq!(document["version"], 1, "{document}");
        let event = text(&document, "event").to_owned();
        let Some((_, known)) = explained.get(&event) else { panic!("{event} is not explained: {document}") };
        let mut all = BTreeSet::new();
        fields(&document, "", &mut all);
        lacking.extend(
            all.into_iter().filter(|path| !is_explained(path, known)).map(|path| format!("{event}: {path}")),
        );
        seen.insert(event);
    }
    let wanted = [
        "match: nonce",
        "estimate: difficulty",
        "estimate: keys",
        "map: remaining",
        "database: chain_id",
        "status: jobs.job.sought.nonce",
    ];
    assert!(
        wanted.iter().all(|name| exceeding.contains(*name)),
        "no large numbers were printed: {exceeding:?}"
    );
    for (event, path) in &decimal_texts {
        assert!(explained.get(event).is_some_and(|(_, known)| is_explained(path, known)), "{event}: {path}");
    }
    assert!(lacking.is_empty(), "fields that docs/json.md does not explain: {lacking:#?}");
    for (event, (needs, known)) in &explained {
        assert!(seen.contains(event) || needs.is_some(), "{event} was not printed; say what it needs");
        assert!(!known.is_empty() || ["done"].contains(&event.as_str()), "{event} has no fields");
    }
}
