//! Private retrieval: servers and clients as processes of their own, killed, restarted, misused, and always right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use warpsmith_store::{BuildOptions, Database as AddressDatabase};
use warpsmith_trials::free_port;

use crate::harness::{BINARY, Desk, Run, Server, assert_entries, pir, pir_with, signal, text};

#[test]
fn entries_are_read_by_index_through_restarts_and_updates() {
    let desk = Desk::new();
    let (database, mut bytes) = desk.flat("data.pir", 3000);
    let about = pir(&["info", &database, "--json", "--verify"]).code(0).json().remove(0);
    // 3000 entries: blocks of 64, of which 47 make 48; 80 * 64 hints.
    assert_eq!(
        (&about["entries"], &about["block_size"], &about["blocks"]),
        (&3000.into(), &64.into(), &48.into())
    );
    assert_eq!((&about["client"]["hints"], &about["client"]["queries"]), (&5120.into(), &2560.into()));
    assert_eq!((&about["client"]["query_bytes"], &about["client"]["answer_bytes"]), (&24.into(), &48.into()));
    assert!(about["client"]["log2_failure"].as_f64().unwrap() < -57.0 && about["verified"] == true);
    // On a port that nobody is given by chance while the server is away.
    let server = Server::listen(&database, &format!("127.0.0.1:{}", free_port()), &[]);
    let (one, two) = (desk.path("one.state"), desk.path("two.state"));
    let made = server.hint(&one, &["--queries", "64"]).code(0).json().remove(0);
    assert_eq!((text(&made, "event"), &made["remaining"], &made["epoch"]), ("hints", &64.into(), &0.into()));
    server.hint(&two, &["--lambda", "100", "--queries", "100"]).code(0);
    assert_entries(server.get(&one, &["0", "17", "2999", "17"]), &[0, 17, 2999, 17], &bytes);
    assert_entries(server.get(&two, &["17", "1"]), &[17, 1], &bytes);
    // More than fit one request.
    let many: Vec<usize> = (0..90).map(|i| i * 31 % 3000).collect();
    let texts: Vec<String> = many.iter().map(usize::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_entries(server.get(&two, &texts), &many, &bytes);
    server.get(&two, &texts[..50]).code(4).says(&["50 queries are needed and 20 remain", "new hints"]);
    // The server goes and comes back, on the same port; an epoch is appended meanwhile, and one while it runs.
    let address = server.address().to_string();
    let (code, said) = server.stop("INT");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("serving") && said.contains("stopped"), "{said}");
    let gone = pir(&["get", "--server", &format!("http://{address}"), "--state", &one, "5"]).code(4);
    assert!(gone.stdout.is_empty() && gone.stderr.contains(&address), "{gone:?}");
    let change = |bytes: &mut Vec<u8>, index: usize, fill: u8| {
        bytes[24 * index..][..24].fill(fill);
        format!("# a change\n\n{index} {}\n", const_hex::encode([fill; 24]))
    };
    let first = change(&mut bytes, 17, 0xaa);
    let updated = pir_with(&["update", &database, "-", "--json"], first.as_bytes()).code(0);
    assert_eq!(updated.json(), [serde_json::json!({"event": "updated", "epoch": 1, "changes": 1})]);
    let server = Server::listen(&database, &address, &[]);
    assert_entries(server.get(&one, &["17", "18"]), &[17, 18], &bytes);
    let second = change(&mut bytes, 2999, 0xbb) + &change(&mut bytes, 3, 0xcc);
    pir(&["update", &database, &desk.write("changes", second)]).code(0);
    server.wait_for_epoch(2);
    let run = server.get(&one, &["3", "17", "2999"]);
    let run = run.says(&["from epoch 1 to 2"]);
    assert_entries(run, &[3, 17, 2999], &bytes);
    // A new client streams the file with all changes.
    let three = desk.path("three.state");
    let made = server.hint(&three, &[]).code(0).json().remove(0);
    assert_eq!(made["epoch"], 2);
    assert_entries(server.get(&three, &["3", "4", "17", "2999"]), &[3, 4, 17, 2999], &bytes);
    let four = desk.path("four.state");
    pir(&["hint", "--database", &database, "--state", &four, "--device", "cpu"]).code(0);
    assert_entries(server.get(&four, &["3", "17", "2999"]), &[3, 17, 2999], &bytes);
    let about = pir(&["info", &one, "--json"]).code(0).json().remove(0);
    assert_eq!((&about["made"], &about["remaining"], &about["waiting"]), (&9.into(), &55.into(), &0.into()));
    let said = pir(&["info", &one]).code(0).stdout;
    assert!(said.contains("remaining  55 queries") && said.contains("failure    2^-60.4"), "{said}");
    let (code, said) = server.stop("TERM");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("epoch 2; entries changed since the file: 3"), "{said}");
}

#[test]
fn keys_and_values() {
    let desk = Desk::new();
    let mut pairs: BTreeMap<String, String> =
        (0..500u32).map(|i| (format!("{:06x}", i * 977), "5a".repeat(1 + i as usize % 9))).collect();
    let text_of = |pairs: &BTreeMap<String, String>| {
        pairs.iter().map(|(key, value)| format!("{key}\t0x{value}\n")).collect::<String>()
    };
    let (database, input) = (desk.path("keys.pir"), desk.write("pairs.txt", text_of(&pairs)));
    let built = pir(&["build", &database, &input, "--json"]).code(0).json().remove(0);
    assert_eq!((&built["keyword"]["keys"], &built["entry_size"]), (&500.into(), &32.into()));
    let server = Server::start(&database, &[]);
    let state = desk.path("state");
    server.hint(&state, &[]).code(0);
    let check = |pairs: &BTreeMap<String, String>, keys: &[&str], code: i32| {
        for (line, key) in server.get(&state, keys).code(code).json().iter().zip(keys) {
            let expected = match pairs.get(*key) {
                Some(value) => {
                    serde_json::json!({"event": "entry", "key": key, "found": true, "value": value})
                }
                None => serde_json::json!({"event": "entry", "key": key, "found": false}),
            };
            assert_eq!(*line, expected);
        }
    };
    check(&pairs, &["000000", "0003d1", "077063"], 0);
    check(&pairs, &["000001", "0003d1", "ffffffff"], 1);
    // All places of every key are asked for, found or not.
    let about = pir(&["info", &state, "--json"]).code(0).json().remove(0);
    assert_eq!(about["made"], 6 * 3);
    // Keys come, change and go.
    let changes = "000001 77\n0003d1 1234\n077063 -\n";
    pir(&["update", &database, &desk.write("changes", changes)]).code(0);
    pairs.extend([("000001".into(), "77".into()), ("0003d1".into(), "1234".into())]);
    pairs.remove("077063");
    server.wait_for_epoch(1);
    check(&pairs, &["000001", "0003d1", "077063", "000000"], 1);
    let said = pir(&["get", "--server", &server.url, "--state", &state, "0003d1", "077063"]).code(1);
    assert_eq!(said.stdout, "0003d1  1234\n077063  not there\n");
    // What cannot be is refused, with the line, and nothing is appended.
    for (changes, why) in [
        ("000001 77\n077063 -\n", "changes:2: there is no such key"),
        ("000001 xy\n", "changes:1: 'xy' is not hex"),
        ("000001\n", "changes:1: a line is KEY VALUE"),
        ("000001 00112233445566778899aabbccddeeff00\n", "changes:1: a value of 17 bytes does not fit"),
        ("# nothing\n", "has no changes"),
    ] {
        pir(&["update", &database, &desk.write("changes", changes)]).code(2).says(&[why]);
    }
    assert_eq!(pir(&["info", &database, "--json"]).code(0).json()[0]["newest_epoch"], 1);
}

#[test]
fn states_and_addresses() {
    let desk = Desk::new();
    let database = desk.path("state.pir");
    let built =
        pir(&["build", &database, "--synthetic", "2000", "--seed", "5", "--json"]).code(0).json().remove(0);
    assert_eq!(text(&built["keyword"], "layout"), "state");
    let (account, slot) = (built["examples"][0].as_str().unwrap(), built["examples"][1].as_str().unwrap());
    let server = Server::start(&database, &[]);
    let state = desk.path("state");
    server.hint(&state, &["--queries", "64"]).code(0);
    let absent = format!("{}0", &account[..account.len() - 1]);
    let absent = if absent == account { format!("{}1", &account[..account.len() - 1]) } else { absent };
    let lines = server.get(&state, &[account, slot, &absent]).code(1).json();
    assert!(
        lines[0]["balance"].is_string() && lines[0]["nonce"].is_u64() && lines[0]["code"].is_u64(),
        "{lines:?}"
    );
    assert_eq!((lines[1]["value"].as_str().unwrap().len(), &lines[2]["found"]), (64, &false.into()));
    let changes = format!("{account} 12345678901234567890123,7,0\n{slot} {}\n", "42".repeat(32));
    pir(&["update", &database, &desk.write("changes", changes)]).code(0);
    server.wait_for_epoch(1);
    let lines = server.get(&state, &[account, slot]).code(0).json();
    assert_eq!((text(&lines[0], "balance"), &lines[0]["nonce"]), ("12345678901234567890123", &7.into()));
    assert_eq!(text(&lines[1], "value"), "42".repeat(32));
    drop(server);
    // Addresses with and without an amount, from the database of `db`.
    let (eater, taproot, eth) = (
        "1BitcoinEaterAddressDontSendf59kuE",
        "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
        "0x00000000219ab540356cbb839cbe05303d7705fa",
    );
    let list =
        desk.write("list", format!("{eater}\t1333221100\n{taproot}\n{eth}\t77000000000000000000000\n"));
    let (store, database) = (desk.path("addresses"), desk.path("coins.pir"));
    let sources = [PathBuf::from(&list)];
    AddressDatabase::build(Path::new(&store), &sources, &BuildOptions::default()).unwrap();
    let built = pir(&["build", &database, &store, "--json"]).code(0).json().remove(0);
    // A tag of sixteen bytes and an amount of ten.
    assert_eq!((&built["keyword"]["keys"], &built["entry_size"]), (&3.into(), &32.into()));
    let server = Server::start(&database, &[]);
    let state = desk.path("coins.state");
    server.hint(&state, &[]).code(0);
    let other = "12c6DSiU4Rq3P4ZxziKxzrL5LmMBrzjrJX";
    let lines = server.get(&state, &[eater, taproot, eth, other]).code(1).json();
    let expected = [
        (eater, Some("1333221100"), true),
        (taproot, None, true),
        (eth, Some("77000000000000000000000"), true),
        (other, None, false),
    ];
    for (line, (address, amount, found)) in lines.iter().zip(expected) {
        assert_eq!(
            (text(line, "key"), line["amount"].as_str(), &line["found"]),
            (address, amount, &found.into())
        );
    }
    server.get(&state, &["1BitcoinEaterAddressDontSendf59kuF"]).code(2).says(&["address"]);
}

#[test]
fn a_state_that_was_copied_back_is_refused() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    let server = Server::start(&database, &[]);
    let (state, journal) = (desk.path("state"), desk.path("state.journal"));
    server.hint(&state, &["--queries", "64"]).code(0);
    let old = fs::read(&state).unwrap();
    assert_entries(server.get(&state, &["1"]), &[1], &bytes);
    // So many changes that the state is written anew.
    let changes: String = (100..200).map(|i| format!("{i} {}\n", "00".repeat(24))).collect();
    pir(&["update", &database, &desk.write("changes", changes)]).code(0);
    server.wait_for_epoch(1);
    assert_entries(server.get(&state, &["1", "99"]), &[1, 99], &bytes);
    let new = fs::read(&state).unwrap();
    assert_ne!(old, new);
    write_private(&state, &old);
    server.get(&state, &["1"]).code(4).says(&["older copy", "offline phase again"]);
    write_private(&state, &new);
    assert_entries(server.get(&state, &["1"]), &[1], &bytes);
    let records = fs::read(&journal).unwrap();
    fs::remove_file(&journal).unwrap();
    server.get(&state, &["1"]).code(4).says(&["journal is missing"]);
    let mut damaged = records.clone();
    damaged[80] ^= 1;
    write_private(&journal, &damaged);
    server.get(&state, &["1"]).code(4).says(&["damaged"]);
    write_private(&journal, &records);
    assert_entries(server.get(&state, &["1"]), &[1], &bytes);
    // A file that others may read holds no secret any more.
    Command::new("chmod").args(["644", &state]).status().unwrap();
    server.get(&state, &["1"]).code(4).says(&["open to other users", "chmod 600"]);
}

/// Writes a file that only its owner may read.
fn write_private(path: &str, content: &[u8]) {
    fs::write(path, content).unwrap();
    assert!(Command::new("chmod").args(["600", path]).status().unwrap().success());
}

#[test]
fn a_hint_maker_serves_clients_of_another_server() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    let copy = desk.path("copy.pir");
    fs::copy(&database, &copy).unwrap();
    let (library, maker) =
        (Server::start(&database, &[]), Server::start(&copy, &["--hint-maker", "--threads", "1"]));
    let state = desk.path("state");
    let hint = |more: &[&str]| {
        pir(&[&["hint", "--hint-maker", &maker.url, "--state", &state, "--json"], more].concat())
    };
    let made = hint(&["--queries", "16", "--lambda", "40"]).code(0).says(&["must not be, nor speak with"]);
    assert_eq!(made.json()[0]["remaining"], 16);
    assert_entries(library.get(&state, &["1", "999", "1"]), &[1, 999, 1], &bytes);
    assert_eq!(hint(&["--top-up", "30"]).code(0).json()[0]["remaining"], 16 - 3 + 32);
    let many: Vec<usize> = (0..45).collect();
    let texts: Vec<String> = many.iter().map(usize::to_string).collect();
    assert_entries(library.get(&state, &texts.iter().map(String::as_str).collect::<Vec<_>>()), &many, &bytes);
    // Each does its own work and no other.
    maker.get(&state, &["1"]).code(2).says(&["answers no queries"]);
    maker.hint(&desk.path("other"), &[]).code(4).says(&["404"]);
    pir(&["hint", "--hint-maker", &library.url, "--state", &desk.path("other")]).code(4).says(&["404"]);
    assert!(!desk.names().iter().any(|name| name.starts_with("other")), "{:?}", desk.names());
}

/// Hints of an OpenCL device, for a client and for the clients of a hint maker.
#[test]
fn devices_make_hints() {
    let devices = pir(&["devices", "--json"]).code(0).json();
    let id = |line: &Value| line["id"].as_str().filter(|id| id.starts_with("opencl:")).map(str::to_owned);
    let Some(device) = devices.iter().filter(|line| line["event"] == "device").find_map(id) else {
        eprintln!("SKIPPED: no OpenCL device, no hints were made on one");
        return;
    };
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    let library = Server::start(&database, &[]);
    let maker = Server::start(&database, &["--hint-maker", "--device", &device]);
    let (own, others) = (desk.path("own.state"), desk.path("others.state"));
    let made =
        pir(&["hint", "--server", &library.url, "--state", &own, "--device", &device, "--json"]).code(0);
    assert_eq!(text(&made.json()[0], "device"), device);
    pir(&["hint", "--hint-maker", &maker.url, "--state", &others, "--queries", "32"]).code(0);
    for state in [&own, &others] {
        assert_entries(library.get(state, &["0", "999", "5", "999"]), &[0, 999, 5, 999], &bytes);
    }
    let bench = pir(&["bench", "--entries", "1000", "--device", &device, "--json"]).code(0).json().remove(0);
    assert!(text(&bench, "device") == device && bench["verified"].as_u64() > Some(0), "{bench}");
}

#[test]
fn an_estimate_of_hints_makes_none() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 5000);
    let server = Server::start(&database, &[]);
    let state = desk.path("state");
    let before = desk.names();
    let of_file = ["hint", "--database", &database, "--state", &state, "--json"];
    for run in [server.hint(&state, &["--estimate"]), pir(&[&of_file[..], &["--estimate"]].concat())] {
        let line = run.code(0).json().remove(0);
        assert_eq!((text(&line, "event"), line["bytes"].as_u64()), ("estimate", Some(5000 * 24)), "{line}");
        assert!(line["whole_s"].as_f64() > Some(0.0) && line["state_bytes"].as_u64() > Some(0), "{line}");
    }
    assert_eq!(desk.names(), before);
}

#[test]
fn wrong_things_are_refused_with_words_and_leave_nothing() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 100);
    let input = desk.path("input.bin");
    let (new, state) = (desk.path("new"), desk.path("state"));
    let other = desk.path("other.pir");
    pir(&["build", &other, &input, "--entry-size", "8"]).code(0);
    let server = Server::start(&database, &[]);
    server.hint(&state, &["--queries", "16"]).code(0);
    let second = Server::start(&other, &[]);
    desk.write("empty", "");
    desk.write("pairs", "aa 00\nbb 11\n0xAA 22\n");
    fs::create_dir(desk.path("folder")).unwrap();
    let before = desk.names();
    let (url, path) = (server.url.clone(), |name: &str| desk.path(name));
    let (empty, pairs, folder, absent) = (path("empty"), path("pairs"), path("folder"), path("absent"));
    let nowhere = path("nowhere/state");
    for (args, code, why) in [
        (vec!["build", &database, &input, "--entry-size", "24"], 4, "never written over"),
        (
            vec!["build", &input, &new, "--entry-size", "24"],
            2,
            "comes first: warpsmith-pir build DBFILE INPUT",
        ),
        (vec!["build", &new, &input, "--entry-size", "7"], 2, "8 to 4096"),
        (vec!["build", &new, &input, "--entry-size", "23"], 2, "not entries of 23"),
        (vec!["build", &new, &empty, "--entry-size", "24"], 2, "0 bytes"),
        (vec!["build", &new, &input], 2, "--entry-size"),
        (vec!["build", &new, &empty], 2, "no keys"),
        (vec!["build", &new, &pairs], 2, "pairs:3: this key is that of line 1"),
        (vec!["build", &new, &folder], 2, "without database.bin"),
        (vec!["build", &new, &absent], 2, "No such file"),
        (vec!["build", &new], 2, "INPUT"),
        (vec!["build", &new, "--synthetic", "0"], 2, "1 to 4294967295"),
        (vec!["build", &new, &pairs, "--value-size", "0"], 2, "too small"),
        (vec!["build", &new, &input, "--entry-size", "24", "--block-size", "0"], 2, "block"),
        (vec!["serve", &database], 2, "--listen"),
        (vec!["serve", &database, "--listen", "nonsense"], 2, "127.0.0.1:8080"),
        (vec!["serve", &absent, "--listen", "127.0.0.1:0"], 2, "No such file"),
        (vec!["serve", &input, "--listen", "127.0.0.1:0"], 4, "not a database"),
        (vec!["serve", &database, "--listen", "127.0.0.1:0", "--threads", "2"], 2, "--hint-maker"),
        (vec!["hint", "--state", &new], 2, "--database <DBFILE>"),
        (vec!["hint", "--server", &url, "--state", &state], 4, "never written over"),
        (vec!["hint", "--server", "ftp://x", "--state", &new], 2, "https://"),
        (vec!["hint", "--server", &url, "--state", &nowhere], 2, "No such file"),
        (vec!["hint", "--server", &url, "--state", &new, "--lambda", "0"], 2, "lambda"),
        (vec!["hint", "--server", &url, "--state", &new, "--device", "gpu"], 2, "'gpu' is no device"),
        (vec!["hint", "--database", &input, "--state", &new], 4, "not a database"),
        (vec!["get", "--server", &url, "--state", &state], 2, "INDEX|KEY"),
        (vec!["get", "--server", &url, "--state", &state, "100"], 2, "from 0 to 99"),
        (vec!["get", "--server", &url, "--state", &state, "x"], 2, "'x' is no entry"),
        (vec!["get", "--server", &url, "--state", &absent, "1"], 2, "the state is missing"),
        (vec!["get", "--server", &second.url, "--state", &state, "1"], 4, "the state is for"),
        (vec!["get", "--server", "127.0.0.1", "--state", &state, "1"], 2, "http:// or https://"),
        (vec!["info", &input], 4, "neither a database"),
        (vec!["info", &absent], 2, "No such file"),
        (vec!["info", &state, "--verify"], 2, "for databases"),
        (vec!["update", &database, &absent], 2, "No such file"),
        (vec!["update", &database, &pairs], 2, "'aa' is no entry"),
        (vec!["update", &database, &pairs, "--delta"], 2, "40-byte"),
        (vec!["bench", "--entries", "0"], 2, "--entries"),
        (vec!["bench", "--entry-size", "5000"], 2, "--entry-size"),
    ] {
        let run = pir(&args).code(code).says(&[why]);
        assert!(run.stdout.is_empty(), "{run:?}");
        assert_eq!(desk.names(), before, "{args:?}");
    }
    // Nothing of it cost a query.
    assert_eq!(pir(&["info", &state, "--json"]).code(0).json()[0]["made"], 0);
}

#[test]
fn work_that_is_interrupted_leaves_nothing() {
    let desk = Desk::new();
    // Large enough to be met in the middle.
    let database = desk.path("large.pir");
    let input = desk.write("large.bin", vec![7; 64 << 20]);
    pir(&["build", &database, &input, "--entry-size", "64"]).code(0);
    let before = desk.names();
    let interrupted = |args: &[&str], appears: &str| {
        let mut command = Command::new(BINARY);
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !Path::new(&desk.path(appears)).exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended too early: {args:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        signal(&child, "INT");
        let run = Run::from(child.wait_with_output().unwrap()).code(130);
        assert!(run.stdout.is_empty(), "{run:?}");
        assert_eq!(desk.names(), before, "{args:?}");
    };
    let (state, new) = (desk.path("state"), desk.path("new.pir"));
    interrupted(&["hint", "--database", &database, "--state", &state, "--device", "cpu"], "state.new");
    interrupted(&["build", &new, "--synthetic", "3000000"], "new.pir.new");
}

#[test]
fn the_bench_tells_verified_rates() {
    let run = pir(&["bench", "--entries", "4000", "--device", "cpu", "--threads", "1", "--json"]).code(0);
    let line = run.json().remove(0);
    assert_eq!(
        (text(&line, "event"), text(&line, "device"), &line["verified"]),
        ("bench", "cpu", &20.into())
    );
    let number =
        |name: &str| line[name].as_f64().filter(|number| *number > 0.0).unwrap_or_else(|| panic!("{name}"));
    // 4000 entries: 64 blocks of 64, 5120 hints and 2560 pairs.
    let pairs = number("pairs_per_s") * number("client_s");
    assert!((pairs / (64.0 * 7680.0) - 1.0).abs() < 1e-6, "{pairs}");
    let gathers = number("gathers_per_s") * number("client_s");
    assert!((gathers / (33.0 * 5120.0 + 64.0 * 2560.0) - 1.0).abs() < 1e-6, "{gathers}");
    assert!((number("hints_per_s") / number("gathers_per_s") * 33.0 - 1.0).abs() < 1e-6);
    let said = pir(&["bench", "--entries", "4000", "--device", "cpu:portable"]).code(0).stdout;
    assert!(said.contains("20 hints, equal to the reference"), "{said}");
}
