//! What databases are made of: text of any length, accounts in CSV, Bitcoin's coins by script.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use warpsmith_eth_state::{code_hash, code_hash_key};
use warpsmith_trials::programs::{foreign, utxo_set};

use crate::harness::{BINARY, Desk, Server, pir, text};
use crate::network::Proxy as Recorder;

/// What `get --raw` writes, byte for byte.
fn raw(server: &Server, state: &str, key: &str) -> (Option<i32>, Vec<u8>) {
    let args = ["get", "--server", &server.url, "--state", state, "--raw", "--quiet", key];
    let output = Command::new(BINARY).args(args).output().unwrap();
    (output.status.code(), output.stdout)
}

fn served(desk: &Desk, database: &str, queries: &str) -> (Server, String) {
    let server = Server::start(database, &[]);
    let state = desk.path("my.state");
    server.hint(&state, &["--queries", queries]).code(0);
    (server, state)
}

/// A value of so many bytes, with letters of more than one and with tabs.
fn value(length: usize) -> String {
    let mut value = String::new();
    for number in 0.. {
        let more = format!("{number} \u{e4}\t");
        if value.len() + more.len() > length {
            break;
        }
        value += &more;
    }
    let rest = length - value.len();
    value + &"x".repeat(rest)
}

#[test]
fn text_of_any_length_is_read_by_text() {
    let desk = Desk::new();
    // Around the ends of chunks of 1008 bytes.
    let lengths = [0, 1, 7, 1006, 1007, 1008, 1009, 2015, 2016, 2017, 4000, 5000];
    let mut all: BTreeMap<String, String> =
        lengths.iter().map(|length| (format!("page of {length}"), value(*length))).collect();
    all.extend(
        [("# no remark", "1"), (" blanks ", " 2 "), ("\u{fc}ber", "drei"), ("-", "-")]
            .map(|(key, value)| (key.into(), value.into())),
    );
    let lines = |all: &BTreeMap<String, String>| {
        all.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect::<String>()
    };
    let (database, input) = (desk.path("pages.pir"), desk.write("pages.tsv", lines(&all)));
    let built = pir(&["build", &database, &input, "--format", "text", "--json"]).code(0).json().remove(0);
    let longest = all.values().map(String::len).max().unwrap();
    let chunks = longest / 1008 + 1;
    assert_eq!(
        (text(&built["keyword"], "layout"), &built["keyword"]["chunks"], &built["entry_size"]),
        ("text", &chunks.into(), &1024.into())
    );
    let counted: usize = all.values().map(|value| value.len() / 1008 + 1).sum();
    assert_eq!(built["keyword"]["keys"], counted);
    let (server, state) = served(&desk, &database, "2400");
    let recorder = Recorder::before(&server);
    let check = |all: &BTreeMap<String, String>| {
        for (key, value) in all {
            assert_eq!(raw(&server, &state, key), (Some(0), value.clone().into_bytes()), "{key}");
        }
        assert_eq!(raw(&server, &state, "nobody's"), (Some(1), vec![]));
    };
    check(&all);
    // Whatever is asked, the same is seen.
    let each = pir(&["info", &database, "--json"]).code(0).json()[0]["client"]["query_bytes"]
        .as_u64()
        .unwrap() as usize;
    for key in ["page of 0", "page of 5000", "nobody's", "page of 5000"] {
        pir(&["get", "--server", &recorder.url, "--state", &state, key]);
        let seen = std::mem::take(&mut *recorder.queries.lock().unwrap());
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [16 + 3 * chunks * each], "{key}");
    }
    let found = server.get(&state, &["page of 1009", "-", "none"]).code(1).json();
    assert_eq!(
        (&found[0]["text"], &found[1]["text"], &found[2]["found"]),
        (&json!(all["page of 1009"]), &json!("-"), &json!(false))
    );
    assert!(found[0].get("value").is_none() && found[0]["found"] == true);
    let shown = pir(&["get", "--server", &server.url, "--state", &state, "page of 7"]).code(0).stdout;
    assert_eq!(shown, format!("page of 7  {}\n", all["page of 7"].escape_debug()));
    // Longer, shorter, new, gone: in place of what was there, and nothing of it is left.
    all.insert("page of 5000".into(), "short".into());
    all.insert("page of 1".into(), value(longest));
    all.insert("new".into(), value(1008));
    all.remove("page of 4000");
    let changes =
        format!("page of 5000\tshort\npage of 1\t{}\nnew\t{}\npage of 4000\n", value(longest), value(1008));
    pir(&["update", &database, &desk.write("changes", changes)]).code(0);
    server.wait_for_epoch(1);
    check(&all);
    assert_eq!(raw(&server, &state, "page of 4000"), (Some(1), vec![]));
    pir(&["update", &database, &desk.write("changes", format!("a\tb\nb\t{}\n", "x".repeat(chunks * 1008)))])
        .code(2)
        .says(&["changes:2: ", "a look-up asks for"]);
    pir(&["update", &database, &desk.write("changes", "page of 1\tx\ngone already\n")])
        .code(2)
        .says(&["changes:2: ", "no such key"]);
    // Several values have no ends that could be seen.
    pir(&["get", "--server", &server.url, "--state", &state, "--raw", "a", "b"]).code(2).says(&["one key"]);
    pir(&["get", "--server", &server.url, "--state", &state, ""]).code(2).says(&["give a key"]);
}

#[test]
fn long_values_in_hex_stand_in_chunks() {
    let desk = Desk::new();
    let bytes = |length: usize| (0..length).map(|i| (i * 7 + length) as u8).collect::<Vec<u8>>();
    let lengths = [1, 4080, 4081, 70_000];
    let lines: String = lengths
        .iter()
        .map(|length| format!("{length:08x} {}\n", const_hex::encode(bytes(*length))))
        .collect();
    let database = desk.path("long.pir");
    let built =
        pir(&["build", &database, &desk.write("pairs.txt", lines), "--json"]).code(0).json().remove(0);
    assert_eq!((text(&built["keyword"], "layout"), &built["keyword"]["chunks"]), ("chunks", &70.into()));
    let (server, state) = served(&desk, &database, "1500");
    for length in lengths {
        assert_eq!(raw(&server, &state, &format!("{length:08x}")), (Some(0), bytes(length)), "{length}");
    }
    assert_eq!(raw(&server, &state, "ff"), (Some(1), vec![]));
    // A state that has too few queries for one look-up says so.
    server.get(&state, &["01", "02", "03", "04", "05", "06", "07"]).code(4).says(&["queries are needed"]);
}

#[test]
fn accounts_in_csv_become_a_state() {
    let desk = Desk::new();
    let address = |number: u8| format!("0x{}", const_hex::encode([number; 20]));
    let (hash, none) = (const_hex::encode([0x5a; 32]), const_hex::encode(code_hash(&[])));
    let most = u128::MAX.to_string();
    let csv = format!(
        "\u{feff}Nonce,address,\"label, of whom\",balance,code_hash\r\n\
         # a remark\r\n\
         7,{},\"a \"\"b\"\", c\",1000,\r\n\
         0x10,{},,{most},0x{hash}\r\n\
         ,{},,,0x{none}\r\n",
        address(1),
        address(2),
        address(3).to_uppercase().replace("0X", "0x"),
    );
    let database = desk.path("state.pir");
    let block = "22".repeat(32);
    let of_block = ["--chain-id", "5", "--block-number", "9", "--block-hash", &block];
    let input = desk.write("accounts.csv", csv);
    let run = pir(&[
        &["build", &database, &input, "--format", "accounts", "--json", "--names", "--room", "5"],
        &of_block[..],
    ]
    .concat())
    .code(0);
    let built = run.says(&["'label, of whom': left out"]).json().remove(0);
    // Three accounts, the hash of one code, and two records of the block.
    assert_eq!((text(&built["keyword"], "layout"), &built["keyword"]["keys"]), ("state", &6.into()));
    assert_eq!(pir(&["info", &database, "--json"]).code(0).json()[0]["block_number"], 9);
    let (server, state) = served(&desk, &database, "200");
    let hash_key = |number: u8| const_hex::encode(code_hash_key(&[number; 20]));
    let keys = [address(1), address(2), address(3), address(4), hash_key(2), hash_key(3)];
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let lines = server.get(&state, &keys).code(1).json();
    let account = |line: &Value| (line["balance"].clone(), line["nonce"].clone(), line["code"].clone());
    assert_eq!(account(&lines[0]), (json!("1000"), json!(7), json!(0)));
    assert_eq!(account(&lines[1]), (json!(most), json!(16), json!(0x5a5a_5a5a)));
    assert_eq!(account(&lines[2]), (json!("0"), json!(0), json!(0)));
    assert_eq!(
        (&lines[3]["found"], &lines[4]["value"], &lines[5]["found"]),
        (&json!(false), &json!(hash), &json!(false))
    );
    pir(&["get", "--server", &server.url, "--state", &state, "--raw", &address(1)])
        .code(2)
        .says(&["this is an account"]);
    assert_eq!(raw(&server, &state, keys[4]), (Some(0), vec![0x5a; 32]));
    // Refused with line and reason, and nothing is there.
    let new = desk.path("new.pir");
    let good = format!("address,balance\n{},1\n", address(1));
    for (csv, why) in [
        (
            "balance,nonce\n1,2\n".to_owned(),
            "accounts.csv:1: the first line names the columns, and none of them is address",
        ),
        ("address,balance,eth_balance\n".to_owned(), "accounts.csv:1: there are two columns of Balance"),
        (good.clone() + "0x12,1\n", "accounts.csv:3: '0x12' is no address"),
        (
            good.clone() + &address(2) + ",1.5\n",
            "accounts.csv:3: '1.5' is no balance; give a whole number of wei",
        ),
        (good.clone() + &address(2) + ",1,2\n", "accounts.csv:3: 3 fields, and the first line names 2"),
        (good.clone() + &address(2) + ",\"1\n", "accounts.csv:3: a quotation mark is not closed"),
        (
            good.clone() + "\n" + &address(2) + ",2\n" + &address(1) + ",3\n",
            "accounts.csv:5: this address is that of line 2",
        ),
        (format!("address,nonce\n{},4294967296\n", address(1)), "accounts.csv:2: '4294967296' is no nonce"),
        (format!("address,code_hash\n{},0x12\n", address(1)), "accounts.csv:2: '0x12' is no hash"),
        ("address,balance\n".to_owned(), "has no accounts"),
    ] {
        let input = desk.write("accounts.csv", csv);
        pir(&["build", &new, &input, "--format", "accounts"]).code(2).says(&[why]);
        assert!(!desk.names().iter().any(|name| name.starts_with("new")), "{:?}", desk.names());
    }
    for (text, why) in [
        ("a\t1\nb\n", "x.tsv:2: there is no tab"),
        ("a\t1\n\tb\n", "x.tsv:2: there is no key"),
        ("a\t1\nb\t2\na\t3\n", "x.tsv:3: this key is that of line 1"),
        ("\n", "has no keys"),
    ] {
        pir(&["build", &new, &desk.write("x.tsv", text), "--format", "text"]).code(2).says(&[why]);
        assert!(!desk.names().iter().any(|name| name.starts_with("new")), "{:?}", desk.names());
    }
}

/// Reads a set as Bitcoin Core's sources say, in another language: what each script has, and in how many coins.
const READER: &str = r"
import io
f = io.BytesIO(bytes.fromhex(given['set']))
f.read(43); left = int.from_bytes(f.read(8), 'little')
def compact():
    first = f.read(1)[0]
    return first if first < 253 else int.from_bytes(f.read(2 << (first - 253)), 'little')
def varint():
    n = 0
    while True:
        b = f.read(1)[0]; n = n << 7 | b & 127
        if not b & 128: return n
        n += 1
def amount(x):
    if x == 0: return 0
    x -= 1; e = x % 10; x //= 10
    if e < 9:
        d = x % 9 + 1; x //= 9; n = x * 10 + d
    else: n = x + 1
    return n * 10 ** e
p = 2**256 - 2**32 - 977
def script():
    k = varint()
    if k == 0: return b'\x76\xa9\x14' + f.read(20) + b'\x88\xac'
    if k == 1: return b'\xa9\x14' + f.read(20) + b'\x87'
    if k in (2, 3): return b'\x21' + bytes([k]) + f.read(32) + b'\xac'
    if k in (4, 5):
        x = int.from_bytes(f.read(32), 'big'); y = pow(x**3 + 7, (p + 1) // 4, p)
        if y & 1 != k & 1: y = p - y
        return b'\x41\x04' + x.to_bytes(32, 'big') + y.to_bytes(32, 'big') + b'\xac'
    return f.read(k - 6)
all = {}
while left:
    f.read(32)
    for _ in range(compact()):
        compact(); varint(); satoshi = amount(varint()); s = script().hex()
        have = all.get(s, [0, 0]); all[s] = [have[0] + satoshi, have[1] + 1]; left -= 1
assert f.read() == b''
show([[s, str(a), n] for s, (a, n) in all.items()])
";

#[test]
fn coins_of_bitcoin_are_read_by_script_and_by_address() {
    let desk = Desk::new();
    let set = include_bytes!("../../store/src/database/snapshot/core.dat");
    let (database, input) = (desk.path("coins.pir"), desk.write("utxo.dat", set));
    let run = pir(&["build", &database, &input, "--json"]).code(0).says(&["UTXO set of mainnet", "70 coins"]);
    let built = run.json().remove(0);
    assert_eq!((text(&built["keyword"], "layout"), &built["entry_size"]), ("scripts", &32.into()));
    let (server, state) = served(&desk, &database, "600");
    let given = json!({"set": const_hex::encode(set)});
    if let Some(Value::Array(scripts)) = foreign::python(READER, &given) {
        assert_eq!(built["keyword"]["keys"], scripts.len());
        let keys: Vec<String> =
            scripts.iter().map(|script| format!("script:{}", script[0].as_str().unwrap())).collect();
        // An output may have no script at all, which no text is a key for.
        let asked: Vec<(&str, &Value)> =
            keys.iter().map(String::as_str).zip(&scripts).filter(|(key, _)| *key != "script:").collect();
        let lines = server.get(&state, &asked.iter().map(|(key, _)| *key).collect::<Vec<_>>()).code(0).json();
        assert_eq!(lines.len(), asked.len());
        for (line, (key, script)) in lines.iter().zip(asked) {
            assert_eq!((&line["amount"], &line["coins"]), (&script[1], &script[2]), "{key}");
        }
    }
    // Two of one address, by that; and the key of an output to a bare key is none of its hash's.
    let small = utxo_set("f9beb4d9");
    let other = desk.path("small.pir");
    pir(&["build", &other, &desk.write("small.dat", &small), "--format", "coins"]).code(0);
    let server = Server::start(&other, &[]);
    let mine = desk.path("small.state");
    server.hint(&mine, &["--queries", "100"]).code(0);
    let get = |keys: &[&str]| pir(&[&["get", "--server", &server.url, "--state", &mine], keys].concat());
    let address = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
    assert_eq!(get(&[address]).code(0).stdout, format!("{address}  found, 7 in 2 coins\n"));
    let none = "1EHNa6Q4Jz2uvNExL497mE43ikXhwF6kZm";
    assert_eq!(get(&[none]).code(1).stdout, format!("{none}  not there\n"));
    get(&["bob"]).code(2).says(&["no address of Bitcoin", "script:"]);
    get(&["--raw", address]).code(2).says(&["has amounts"]);
    pir(&["update", &other, &desk.write("changes", format!("{none} 12,1\n{address} -\n"))]).code(0);
    server.wait_for_epoch(1);
    assert_eq!(
        get(&[none, address]).code(1).stdout,
        format!("{none}  found, 12 in 1 coin\n{address}  not there\n")
    );
    pir(&["update", &other, &desk.write("changes", format!("{address} 12\n"))])
        .code(2)
        .says(&["changes:1: ", "AMOUNT,COINS"]);
    // Damaged sets are refused with the place.
    let new = desk.path("new.pir");
    let cut = desk.write("cut.dat", &small[..small.len() - 3]);
    pir(&["build", &new, &cut]).code(4).says(&["its end is missing", "after 2 coins"]);
    pir(&["build", &new, &desk.write("no.dat", "hello"), "--format", "coins"]).code(4).says(&["no.dat"]);
    assert!(!desk.names().iter().any(|name| name.starts_with("new")), "{:?}", desk.names());
}
