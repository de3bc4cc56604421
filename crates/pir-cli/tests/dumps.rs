//! Databases of whole states in JSON: of a real anvil, and in the forms that geth writes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use warpsmith_eth_state::{code_hash, code_hash_key};
use warpsmith_trials::programs::anvil::Anvil;

use crate::harness::{BINARY, Desk, Server, pir, signal, text};

/// Writes the second word of its data into the slot that the first names.
const WRITER: &str = "6008600c60003960086000f36020356000355500";

/// What a server of this database says of these keys.
fn asked(desk: &Desk, database: &str, keys: &[String]) -> Vec<Value> {
    let server = Server::start(database, &[]);
    let state = format!("{}.state", desk.path(database.rsplit('/').next().unwrap()));
    server.hint(&state, &["--queries", "600"]).code(0);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut lines = server.get(&state, &keys).json();
    lines.retain(|line| line["event"] != "done");
    assert_eq!(lines.len(), keys.len());
    lines
}

#[test]
fn a_dump_of_anvil_is_the_state_that_it_tells_itself() {
    let Some(anvil) = Anvil::start() else { return };
    let desk = Desk::new();
    let writer = anvil.send(None, 0, WRITER).unwrap();
    for (slot, value) in [(0u64, 1u64), (7, u64::MAX), (1 << 40, 0x0102)] {
        anvil.send(Some(&writer), 0, &format!("{slot:064x}{value:064x}"));
    }
    anvil.send(Some("0x00000000219ab540356cbb839cbe05303d7705fa"), 12_345, "");
    let packed = anvil.ask("anvil_dumpState", json!([]));
    let packed = const_hex::decode(packed.as_str().unwrap()).unwrap();
    let mut dump = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut dump).unwrap();
    let (told, dumped) = (desk.path("told.pir"), desk.path("dumped.pir"));
    pir(&["build", &told, "--rpc", &anvil.url]).code(0);
    // It is known by what it looks like.
    pir(&["build", &dumped, &desk.write("dump.json", &dump)]).code(0);
    let dump: Value = serde_json::from_str(&dump).unwrap();
    let mut keys = vec!["0x00000000219ab540356cbb839cbe05303d7705fb".to_owned()];
    for (address, account) in dump["accounts"].as_object().unwrap() {
        keys.push(address.clone());
        keys.push(const_hex::encode(code_hash_key(&const_hex::decode_to_array(address).unwrap())));
        let slots = account["storage"].as_object().unwrap();
        keys.extend(slots.keys().map(|slot| format!("{address}:{slot}")));
    }
    assert!(keys.iter().filter(|key| key.contains(':')).count() >= 3, "{keys:?}");
    let lines = asked(&desk, &dumped, &keys);
    assert!(lines.iter().filter(|line| line["found"] == true).count() > 10);
    let same =
        |line: &Value| ["key", "found", "balance", "nonce", "code", "value"].map(|field| line[field].clone());
    let expected = asked(&desk, &told, &keys);
    assert_eq!(lines.iter().map(same).collect::<Vec<_>>(), expected.iter().map(same).collect::<Vec<_>>());
}

/// A node whose answers are long, and whose dump is always of another block: what it says takes little memory, and it is asked again
/// after a word and a pause.
#[test]
fn a_node_with_long_answers_takes_little_memory_and_is_asked_with_pauses() {
    let long = format!("[{}1]", "[],".repeat(5 << 20));
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    write!(packer, "{{\"x\":{long},\"best_block_number\":4,\"accounts\":{{}}}}").unwrap();
    let dump = format!("0x{}", const_hex::encode(packer.finish().unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (heard, dumps) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let Some((_, body)) = super::network::read_request(&mut reader) else { continue };
            let call: Value = serde_json::from_slice(&body).unwrap();
            let (hash, miner) = (format!("0x{}", "11".repeat(32)), format!("0x{}", "22".repeat(20)));
            let (result, long) = match text(&call[0], "method") {
                "eth_chainId" => (json!("0x1"), &long[..]),
                "eth_blockNumber" => (json!("0x5"), "0"),
                "anvil_dumpState" => {
                    let _ = heard.send(Instant::now());
                    (json!(dump), "0")
                }
                _ => {
                    let block = json!({"number": "0x5", "timestamp": "0x1", "hash": hash, "parentHash": hash, "miner": miner});
                    (block, "0")
                }
            };
            let answer = format!(r#"[{{"jsonrpc":"2.0","long":{long},"id":0,"result":{result}}}]"#);
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
        }
    });
    let desk = Desk::new();
    let mut command = Command::new(BINARY);
    command.args(["build", &desk.path("state.pir"), "--rpc", &url]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the chain went on while its state was read; trying again in 1 s") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended without a word");
    }
    // Both answers have 16 MB, which took twelve times as much.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < 100_000, "{peak} kB");
    let [first, second] = [0; 2].map(|_| dumps.recv().unwrap());
    assert!(second - first >= Duration::from_secs(1), "{:?}", second - first);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn address(number: u8) -> String {
    const_hex::encode([number; 20])
}

/// The same state as `geth dump --iterative`, `geth dump` and a genesis file have it.
#[test]
fn the_forms_that_geth_writes() {
    let desk = Desk::new();
    let (code, empty) = ([0x60, 0x01], const_hex::encode(code_hash(&[])));
    let hash = const_hex::encode(code_hash(&code));
    let no_slots = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
    let (slot, other) = (format!("{:064x}", 3), "ab".repeat(32));
    let [rich, contract] = [
        json!({"balance": u128::MAX.to_string(), "nonce": 9, "root": no_slots, "codeHash": format!("0x{empty}")}),
        json!({"balance": "0", "nonce": 1, "root": format!("0x{}", "1f".repeat(32)), "codeHash": format!("0x{hash}"),
            "code": "0x6001", "storage": {format!("0x{slot}"): "2a", format!("0x{other}"): "ff".repeat(32)}}),
    ];
    let with = |account: &Value, number: u8| {
        let mut account = account.clone();
        account["address"] = format!("0x{}", address(number)).into();
        account["key"] = format!("0x{}", "77".repeat(32)).into();
        account.to_string()
    };
    let root = "33".repeat(32);
    let lines = format!("{{\"root\":\"0x{root}\"}}\n{}\n{}\n", with(&rich, 1), with(&contract, 2));
    let whole = json!({"root": root, "accounts": {format!("0x{}", address(1)): rich, format!("0x{}", address(2)): contract}});
    let genesis = json!({"config": {"chainId": 5}, "nonce": "0x0", "timestamp": "0x1", "alloc": {
        address(1): {"balance": format!("{:#x}", u128::MAX), "nonce": "0x9"},
        address(2): {"balance": "0x0", "nonce": 1, "code": "0x6001",
            "storage": {"0x03": "0x2a", format!("0x{other}"): format!("0x{}", "ff".repeat(32)), "0x04": "0x00"}},
        address(3): {"balance": "0"},
    }});
    let bare = genesis["alloc"].to_string();
    let forms = [lines, format!("{whole:#}"), genesis.to_string(), bare];
    let keys = [
        format!("0x{}", address(1)),
        format!("0x{}", address(2)),
        format!("0x{}", address(3)),
        const_hex::encode(code_hash_key(&[2; 20])),
        format!("0x{}:0x3", address(2)),
        format!("0x{}:0x{other}", address(2)),
        format!("0x{}:0x4", address(2)),
    ];
    for (form, number) in forms.iter().zip(0..) {
        let database = desk.path(&format!("{number}.pir"));
        let built =
            pir(&["build", &database, &desk.write("dump", form), "--format", "dump", "--json"]).code(0);
        // Two accounts, the hash of a code, two slots.
        assert_eq!(built.json()[0]["keyword"]["keys"], 5, "{form}");
        assert!(!built.stderr.contains("leaves out"), "{built:?}");
        let lines = asked(&desk, &database, &keys);
        let account = |line: &Value| (text(line, "balance").to_owned(), line["nonce"].clone());
        assert_eq!(account(&lines[0]), (u128::MAX.to_string(), json!(9)), "{form}");
        assert_eq!(account(&lines[1]), ("0".to_owned(), json!(1)), "{form}");
        assert_eq!((&lines[0]["code"] == 0, &lines[1]["code"] == 0), (true, false), "{form}");
        assert_eq!(lines[3]["value"], hash, "{form}");
        assert_eq!(lines[4]["value"], format!("{:064x}", 0x2a), "{form}");
        assert_eq!(lines[5]["value"], "ff".repeat(32), "{form}");
        assert_eq!((&lines[2]["found"], &lines[6]["found"]), (&json!(false), &json!(false)), "{form}");
    }
    // Slots that are not told, as with --nostorage.
    let mut without = serde_json::from_str::<Value>(&with(&contract, 2)).unwrap();
    without.as_object_mut().unwrap().remove("storage");
    pir(&["build", &desk.path("without.pir"), &desk.write("dump", without.to_string())])
        .code(0)
        .says(&["1 accounts have slots that the dump leaves out"]);
}

#[test]
fn wrong_dumps_are_refused_with_line_and_reason() {
    let desk = Desk::new();
    let account = |number: u8, rest: &str| {
        format!("{{\"balance\":\"1\",{rest}\"address\":\"0x{}\"}}\n", address(number))
    };
    let good = account(1, "");
    let twice = format!("account 0x{} is there twice", address(1));
    let slot_twice = format!("account 0x{}, slot 0x1 is there twice", address(2));
    for (dump, why) in [
        (good.clone() + "{\"balance\":\"1\",\"key\":\"0x12\"}\n", "dump:2: an account without its address"),
        (
            r#"{"accounts":{"pre(0x12)":{"balance":"1"}}}"#.to_owned(),
            "dump:1: an account without its address",
        ),
        (r#"{"accounts":{"0x12":{"balance":"1"}}}"#.to_owned(), "dump:1: '0x12' is no address"),
        (r#"{"accounts":{},"next":"AAA="}"#.to_owned(), "dump:1: the dump goes on elsewhere"),
        (
            good.clone() + &account(2, "\"nonce\":4294967296,"),
            "dump:2: nonce 4294967296 has more than 32 bits",
        ),
        (good.clone() + &account(2, "\"nonce\":-1,"), "dump:2: expected a whole number below 2^128"),
        (good.clone() + &account(2, "\"nonce\":\"\","), "dump:2: expected a whole number"),
        (good.clone() + "{\"balance\":\"1.5\"}", "dump:2: expected a whole number"),
        (good.clone() + &account(2, "\"code\":\"0x0\","), "dump:2: '0x0' is no code"),
        (
            good.clone() + &account(2, &format!("\"code\":\"0x01\",\"codeHash\":\"0x{}\",", "12".repeat(32))),
            "dump:2: codeHash is not the hash of code",
        ),
        (
            good.clone() + &account(2, "\"storage\":{\"0x1\":\"0xg\"},"),
            "dump:2: '0xg' is no word of 32 bytes",
        ),
        (
            good.clone() + &account(2, &format!("\"storage\":{{\"0x1\":\"{}\"}},", "1".repeat(65))),
            "is no word of 32 bytes",
        ),
        (
            good.clone() + &account(2, "\"storage\":[],"),
            "dump:2: expected an object of slots and their values, not a list",
        ),
        (good.clone() + &good[..good.len() - 9], "dump:2: the JSON ends too early"),
        (good.clone() + "[]", "dump:2: expected an object"),
        (good.clone() + &good, &twice),
        (good.clone() + &account(2, "\"storage\":{\"0x1\":\"2\",\"0x01\":\"3\"},"), &slot_twice),
        ("{\"root\":\"0x12\"}\n".to_owned(), "has no accounts"),
    ] {
        let input = desk.write("dump", &dump);
        pir(&["build", &desk.path("new.pir"), &input]).code(2).says(&[why]);
        assert!(!desk.names().iter().any(|name| name.starts_with("new")), "{:?}", desk.names());
    }
}
