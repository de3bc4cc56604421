//! `db`: what goes into a database is found there, listed, compared and added to.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use warpsmith_trials::programs::utxo_set;

use crate::harness::{BINARY, Run, text, warpsmith, warpsmith_with};
use crate::scan::{addresses, findings, p2pkh, scan};

/// A folder with databases in it.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempdir().unwrap())
    }

    fn name(&self, file: &str) -> String {
        self.0.path().join(file).to_str().unwrap().to_owned()
    }

    fn list(&self, file: &str, text: &str) -> String {
        fs::write(self.name(file), text).unwrap();
        self.name(file)
    }

    /// A database of these lines, under this name.
    fn build(&self, file: &str, text: &str) -> String {
        let list = self.list(&format!("{file}.txt"), text);
        warpsmith(&["db", "build", &self.name(file), &list, "--quiet"]).code(0);
        self.name(file)
    }
}

/// The private key 1 as everybody knows it.
const HASH: &str = "hash160:751e76e8199196d454941c45d1b3a323f1433bd6";
const P2PKH: &str = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH";
const P2WPKH: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
const ETH: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";

fn lines(run: &Run) -> Vec<&str> {
    run.stdout.lines().collect()
}

/// What a scan with a database finds, a look-up finds too: hashes whose type their source did not know.
#[test]
fn a_hash_without_a_type_is_found_by_every_address_that_has_it() {
    let desk = Desk::new();
    let bare = desk.build("bare", &format!("{HASH}\t1234\n"));
    let (found, _) = findings(&scan(&["--range", "1:ff", "--database", &bare]).code(0));
    assert_eq!(found, [("p2pkh".to_owned(), 1)]);
    let run = warpsmith(&["db", "lookup", &bare, P2PKH, P2WPKH, HASH]).code(0);
    assert_eq!(
        lines(&run),
        [
            format!("{P2PKH}  found, as hash160, 1234"),
            format!("{P2WPKH}  found, as hash160, 1234"),
            format!("{HASH}  found, 1234"),
        ]
    );
    let run = warpsmith(&["db", "lookup", &bare, P2PKH, ETH, "--json"]).code(1).json();
    assert_eq!(
        run[0],
        json!({
            "event": "lookup", "address": P2PKH, "found": true, "amount": "1234",
            "records": [{"kind": "hash160", "amount": "1234"}]
        })
    );
    assert_eq!(run[1], json!({"event": "lookup", "address": ETH, "found": false}));
    // The other way round: a hash is asked for, and addresses have it.
    let known = desk.build("known", &format!("{P2PKH}\t5\n{P2WPKH}\n{ETH}\t9\n{}\t1\n", p2pkh(2)));
    let run = warpsmith(&["db", "lookup", &known, HASH, ETH, P2WPKH, &p2pkh(2)]).code(0);
    assert_eq!(
        lines(&run),
        [
            format!("{HASH}  found, as p2pkh, 5; as p2wpkh"),
            format!("{ETH}  found, 9"),
            format!("{P2WPKH}  found"),
            format!("{}  found, 1", p2pkh(2)),
        ]
    );
    for (given, says) in [
        ("hash160:75zz", ["'z'", "0123456789abcdef"]),
        ("hash160:751e76", ["hash160", "48"]),
        ("hash160:751e76e8199196d454941c45d1b3a323f1433bd600", ["hash160", "48"]),
        ("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMJ", ["checksum", "1BgGZ9"]),
    ] {
        warpsmith(&["db", "lookup", &bare, given]).code(2).says(&says);
    }
}

#[test]
fn many_addresses_are_looked_up_from_a_file_or_a_pipe() {
    let desk = Desk::new();
    let lines_of = |keys: std::ops::Range<u128>| -> String {
        keys.map(|key| format!("{}\t{key}\n", p2pkh(key))).collect()
    };
    let database = desk.build("db", &lines_of(1..60));
    let list = desk.list("wanted", &format!("address\tamount\n# some\n{}", lines_of(30..60)));
    let from =
        |file: &str, more: &[&str]| warpsmith(&[&["db", "lookup", &database, "--from", file], more].concat());
    let run = from(&list, &[]).code(0);
    let expected: Vec<String> = (30..60).map(|key| format!("{}  found, {key}", p2pkh(key))).collect();
    assert_eq!(lines(&run), expected);
    let piped = ["db", "lookup", &database, &p2pkh(1), "--from", "-", "--json"];
    let run = warpsmith_with(&piped, lines_of(58..62).as_bytes()).code(1).json();
    let found: Vec<(&str, bool)> =
        run.iter().map(|line| (text(line, "address"), line["found"] == true)).collect();
    let keys = [1, 58, 59, 60, 61].map(p2pkh);
    assert_eq!(found, std::array::from_fn::<_, 5, _>(|at| (keys[at].as_str(), at < 3)));
    // Further columns may say anything.
    let noted = desk.list("noted", &format!("{},my label\n{}\t0.5\n{};-\n", p2pkh(2), p2pkh(3), p2pkh(4)));
    let run = from(&noted, &["--strict"]).code(0);
    assert_eq!(lines(&run), [2, 3, 4].map(|key| format!("{}  found, {key}", p2pkh(key))));
    // Lines that are no addresses are told, and then not all were found.
    let odd = desk.list("odd", &format!("{P2PKH}\nnonsense\nd-87a2dde3d4f7ab8b1f4f1b3a3a45cd7d\n"));
    let run = from(&odd, &[]).code(1).says(&["1 lines are no addresses", "line 2", "of scripts"]);
    assert_eq!(lines(&run), [format!("{P2PKH}  found, 1")]);
    let run = from(&odd, &["--strict"]).code(2).says(&["line 2", "--strict"]);
    assert_eq!(lines(&run), [format!("{P2PKH}  found, 1")]);
    from(&desk.name("missing"), &[]).code(2).says(&["--from", "missing"]);
    warpsmith(&["db", "lookup", &database]).code(2).says(&["ADDRESS"]);
}

/// What `db info` says of a database's addresses, and the amounts by what is listed.
fn digest(database: &str) -> String {
    let info = warpsmith(&["db", "info", database, "--json"]).code(0).json().remove(0);
    text(&info, "addresses_digest").to_owned()
}

#[test]
fn a_list_of_a_database_builds_the_same_database() {
    let desk = Desk::new();
    // Every type, with an amount, with nothing and with zero; a hash without a type, other chains, a test network.
    let mut all: Vec<String> = (1..40)
        .flat_map(|key| addresses(key).into_iter().map(move |(_, address)| (key, address)))
        .map(|(key, address)| match key % 3 {
            0 => format!("{address}\n"),
            1 => format!("{address}\t{}\n", key - 1),
            _ => format!("{address}\t{}\n", key << 70),
        })
        .collect();
    let others = [
        HASH,
        ETH,
        "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9",
        "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r",
        "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
    ];
    all.extend(others.map(|address| format!("{address}\t7\n")));
    let database = desk.build("db", &all.concat());
    let listed = warpsmith(&["db", "list", &database]).code(0);
    assert_eq!(listed.stderr, "");
    let (mut put_in, mut came_out) = (all.concat(), listed.stdout.clone());
    for text in [&mut put_in, &mut came_out] {
        let mut lines: Vec<String> = text.lines().map(str::to_ascii_lowercase).collect();
        lines.sort();
        *text = lines.join("\n");
    }
    assert_eq!(put_in, came_out, "each with its own amount");
    let again = desk.build("again", &listed.stdout);
    assert_eq!(digest(&again), digest(&database));
    assert_eq!(warpsmith(&["db", "list", &again]).code(0).stdout, listed.stdout);
    // Some kinds only, in JSON; what is no kind is told with those there are.
    let run = warpsmith(&["db", "list", &database, "--kind", "hash160,eth", "--json"]).code(0).json();
    assert_eq!(
        run,
        [
            json!({"event": "address", "address": ETH, "kind": "eth", "amount": "7"}),
            json!({"event": "address", "address": HASH, "kind": "hash160", "amount": "7"}),
        ]
    );
    let one = warpsmith(&["db", "list", &database, "--kind", "p2tr-test"]).code(0);
    assert_eq!(one.stdout, "", "a kind of which there is none");
    warpsmith(&["db", "list", &database, "--kind", "p2wsh"]).code(2).says(&["p2wsh", "p2tr", "hash160"]);
}

/// A reader who has seen enough ends the listing, whatever is left of it.
#[test]
fn a_listing_ends_with_its_reader() {
    let desk = Desk::new();
    let hashes: String = (0..20_000u32).map(|number| format!("hash160:{number:040x}\n")).collect();
    let database = desk.build("db", &hashes);
    let mut command = Command::new(BINARY);
    command.args(["db", "list", &database]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, format!("hash160:{:040x}\n", 0));
    // The reader is gone with that, long before the 960,000 bytes are written.
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
    let whole = warpsmith(&["db", "list", &database]).code(0);
    assert_eq!(whole.stdout, hashes);
}

#[test]
fn two_databases_are_compared_line_by_line() {
    let desk = Desk::new();
    let [one, two, three] = [1, 2, 3].map(p2pkh);
    let old = desk.build("old", &format!("{one}\t5\n{two}\n{P2WPKH}\n{HASH}\t9\n"));
    let new = desk.build("new", &format!("{one}\t6\n{two}\t1\n{three}\t4\n{HASH}\t9\n"));
    let run = warpsmith(&["db", "diff", &old, &new]).code(1);
    let mut found = lines(&run);
    found.sort();
    let mut expected =
        [format!("+ {three} 4"), format!("- {P2WPKH}"), format!("~ {one} 5 6"), format!("~ {two} - 1")];
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(run.stderr.trim(), "1 only in the second, 1 only in the first, 2 with another amount");
    let run = warpsmith(&["db", "diff", &old, &new, "--json", "--quiet"]).code(1);
    let documents = run.documents();
    assert!(documents.contains(&json!({
        "event": "difference", "version": 1, "change": "changed", "address": one, "kind": "p2pkh",
        "amount": "6", "old_amount": "5"
    })));
    let done = json!({"event": "done", "version": 1, "added": 1, "removed": 1, "changed": 2});
    assert_eq!((documents.last(), documents.len(), run.stderr.as_str()), (Some(&done), 5, ""));
    let run = warpsmith(&["db", "diff", &old, &new, "--summary"]).code(1);
    assert!(run.stdout.starts_with("1 only in the second") && run.stderr.is_empty(), "{run:?}");
    let run = warpsmith(&["db", "diff", &old, &old]).code(0).says(&["no difference"]);
    assert_eq!(run.stdout, "");
    warpsmith(&["db", "diff", &old, &desk.name("missing")]).code(2).says(&["missing"]);
    warpsmith(&["db", "diff", &old, &desk.name("old.txt")]).code(4).says(&["address database"]);
}

#[test]
fn what_is_added_is_scanned_for() {
    let desk = Desk::new();
    let database = desk.build("db", &format!("{}\t5\n", p2pkh(0x20)));
    let found = |expected: &[u128]| {
        let (found, _) = findings(&scan(&["--range", "1:ff", "--database", &database]).code(0));
        assert_eq!(found.into_iter().map(|(_, key)| key).collect::<Vec<_>>(), expected);
    };
    // This makes a filter, which knows of the one address.
    found(&[0x20]);
    let more = desk.list("more", &format!("{}\t6\n{}\t2\nnonsense\n", p2pkh(0x30), p2pkh(0x20)));
    let run = warpsmith(&["db", "add", &database, &more, "--json"]).code(0).says(&["line 3"]);
    let built = run.json().remove(0);
    let counts = ["records", "added", "duplicates", "bad"].map(|name| built[name].as_u64());
    assert_eq!(counts, [Some(2), Some(1), Some(1), Some(1)]);
    found(&[0x20, 0x30]);
    let run = warpsmith(&["db", "lookup", &database, &p2pkh(0x20), &p2pkh(0x30)]).code(0);
    assert_eq!(lines(&run), [format!("{}  found, 5", p2pkh(0x20)), format!("{}  found, 6", p2pkh(0x30))]);
    warpsmith(&["db", "add", &database, &more]).code(0).says(&["0 addresses added", "2 duplicates"]);
    warpsmith(&["db", "add", &desk.name("none"), &more]).code(2).says(&["none"]);
    // What is no list of addresses is wrong usage, as it is for `scan --targets`.
    let (bad, new) = (desk.list("bad.txt", "no address\nnor this\n"), desk.name("new"));
    warpsmith(&["db", "build", &new, &bad]).code(2).says(&["bad.txt", "no address"]);
    warpsmith(&["db", "build", &new, &desk.list("good.txt", P2PKH), &bad, "--strict"])
        .code(2)
        .says(&["bad.txt"]);
    assert!(fs::metadata(&new).is_err());
    assert!(fs::metadata(desk.name("none")).is_err(), "adding makes no database where there is none");
}

/// Several databases at once find what each would find, whatever their order, with and without a filter, and a map knows them in
/// any order.
#[test]
fn several_databases_are_scanned_for_at_once() {
    let desk = Desk::new();
    let one = desk.build("one", &format!("{}\t5\n{}\n{}\n", p2pkh(0x20), p2pkh(0x30), p2pkh(1 << 90)));
    let two = desk.build("two", &format!("{}\t6\n{P2WPKH}\n{}\n", p2pkh(0x20), p2pkh(0x40)));
    let usual = ["--range", "1:ff", "--database", &one, "--database", &two];
    let expected = [(1, "p2wpkh"), (0x20, "p2pkh"), (0x30, "p2pkh"), (0x40, "p2pkh")];
    let sorted = |run: &Run| {
        let (mut found, done) = findings(run);
        found.sort_by_key(|(_, key)| *key);
        (found, done)
    };
    let expected: Vec<(String, u128)> = expected.map(|(key, name)| (name.to_owned(), key)).into();
    for filter in ["fuse8", "fuse16", "none"] {
        let run = scan(&[&usual[..], &["--filter", filter]].concat()).code(0);
        assert_eq!(sorted(&run).0, expected, "{filter}");
        // An address that both have is found once, with the larger amount.
        let both: Vec<Value> =
            run.json().into_iter().filter(|line| line["address"] == p2pkh(0x20).as_str()).collect();
        assert_eq!((both.len(), text(&both[0], "amount")), (1, "6"), "{filter}");
    }
    let map = desk.name("map");
    let (found, done) = sorted(&scan(&[&usual[..], &["--map", &map]].concat()).code(0));
    assert_eq!((found, text(&done, "covered")), (expected.clone(), "255"));
    let turned = ["--range", "1:ff", "--database", &two, "--database", &one, "--map", &map];
    let (found, done) = findings(&scan(&turned).code(1));
    assert_eq!((found.len(), text(&done, "tried")), (0, "0"), "nothing is left to do");
    // One of them alone is another job; and a map of one goes on with that one, given once or twice.
    scan(&["--range", "1:ff", "--database", &one, "--map", &map]).code(4).says(&["another job"]);
    let alone = desk.name("alone.map");
    scan(&["--range", "1:ff", "--database", &one, "--map", &alone]).code(0);
    scan(&["--range", "1:ff", "--database", &one, "--database", &one, "--map", &alone]).code(1);
    // Keys of a list.
    let keys = desk.list("keys", &[1u8, 0x20, 0x30, 0x41].map(|key| format!("{key:064x}\n")).concat());
    let run = warpsmith(&["scan", "--keys", &keys, "--database", &two, "--database", &one, "--json"]).code(0);
    assert_eq!(sorted(&run).0, expected[..3]);
    let run = scan(&["--range", "1:ff", "--database", &one, "--database", &desk.name("none")]).code(2);
    run.says(&["--database", "none"]);
}

#[test]
fn a_utxo_set_of_bitcoin_core_becomes_a_database() {
    let desk = Desk::new();
    let set = desk.name("utxo.dat");
    fs::write(&set, utxo_set("f9beb4d9")).unwrap();
    let database = desk.name("db");
    let run = warpsmith(&["db", "build", &database, &set, "--json"]).code(0);
    let built = run.says(&["mainnet", "3 coins"]).json().remove(0);
    assert_eq!(built["kinds"], json!({"p2pkh": 1, "p2wpkh": 1}));
    let told =
        json!([{"file": set, "network": "mainnet", "block": "ab".repeat(32), "coins": 3, "scripts": 0}]);
    assert_eq!(built["snapshots"], told);
    let whole_key = "1EHNa6Q4Jz2uvNExL497mE43ikXhwF6kZm";
    assert_eq!(
        lines(&warpsmith(&["db", "list", &database]).code(0)),
        [format!("{whole_key}\t5000000000"), format!("{P2WPKH}\t7")]
    );
    let (mut found, _) = findings(&scan(&["--range", "1:ff", "--database", &database]).code(0));
    found.sort();
    assert_eq!(found, [("p2pkh-uncompressed".to_owned(), 1), ("p2wpkh".to_owned(), 1)]);
    // Another network is said, and is none of ours to guess.
    fs::write(&set, utxo_set("fabfb5da")).unwrap();
    let run = warpsmith(&["db", "build", &desk.name("regtest"), &set]).code(0).says(&["regtest"]);
    assert!(run.stdout.contains("p2wpkh-test"), "{run:?}");
    fs::write(&set, utxo_set("deadbeef")).unwrap();
    warpsmith(&["db", "build", &desk.name("none"), &set]).code(4).says(&["deadbeef", "signet"]);
    let whole = utxo_set("f9beb4d9");
    fs::write(&set, &whole[..whole.len() - 3]).unwrap();
    let end = format!("before byte {}", whole.len());
    warpsmith(&["db", "build", &desk.name("none"), &set]).code(4).says(&[
        "its end is missing",
        &end,
        "after 2 coins",
    ]);
    // One that begins otherwise is not taken for lines, also where another source has some.
    let mut damaged = whole;
    damaged[1] ^= 1;
    fs::write(&set, damaged).unwrap();
    let more = desk.list("more", P2PKH);
    warpsmith(&["db", "build", &desk.name("none"), &set, &more]).code(4).says(&["utxo.dat", "no text"]);
    assert!(fs::metadata(desk.name("none")).is_err());
}
