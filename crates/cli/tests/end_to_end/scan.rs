//! Scans: every planted key is found, once; what was covered survives being killed; maps and databases are what they say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use miniscript::bitcoin::key::Secp256k1;
use miniscript::bitcoin::{Address, CompressedPublicKey, KnownHrp, Network, PrivateKey, PublicKey};
use serde_json::Value;
use tempfile::tempdir;

use crate::harness::{BINARY, PATIENCE, Run, text, warpsmith, warpsmith_with};

/// A private key by its number.
fn private(number: u128) -> PrivateKey {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    PrivateKey::from_slice(&bytes, Network::Bitcoin).expect("a key")
}

/// The addresses of a key by the `bitcoin` crate, with the names of their types.
pub fn addresses(number: u128) -> Vec<(&'static str, String)> {
    let secp = Secp256k1::new();
    let key = private(number);
    let public = key.public_key(&secp);
    let compressed = CompressedPublicKey(public.inner);
    let (x, _) = public.inner.x_only_public_key();
    let main = Network::Bitcoin;
    vec![
        ("p2pkh", Address::p2pkh(compressed, main).to_string()),
        ("p2pkh-uncompressed", Address::p2pkh(PublicKey::new_uncompressed(public.inner), main).to_string()),
        ("p2sh", Address::p2shwpkh(&compressed, main).to_string()),
        ("p2wpkh", Address::p2wpkh(&compressed, main).to_string()),
        ("p2tr", Address::p2tr(&secp, x, None, KnownHrp::Mainnet).to_string()),
    ]
}

pub fn p2pkh(number: u128) -> String {
    addresses(number).remove(0).1
}

/// Scans on the processor with one thread.
pub fn scan(args: &[&str]) -> Run {
    warpsmith(&[&["scan"], args, &["--device", "cpu", "--threads", "1", "--json"]].concat())
}

pub fn write(path: &Path, lines: impl IntoIterator<Item = String>) {
    fs::write(path, lines.into_iter().map(|line| line + "\n").collect::<String>()).expect("written");
}

/// The matches of a run as (type, number of the key), and its last line.
#[track_caller]
pub fn findings(run: &Run) -> (Vec<(String, u128)>, Value) {
    let mut lines = run.documents();
    let done = lines.pop().expect("a last line");
    assert_eq!(text(&done, "event"), "done", "{done}");
    let number =
        |line: &Value| u128::from_str_radix(text(line, "secret_key"), 16).expect("a number of 128 bits");
    let mut found: Vec<(String, u128)> =
        lines.iter().map(|line| (text(line, "type").to_owned(), number(line))).collect();
    for line in &lines {
        let wif = PrivateKey::from_wif(text(line, "export")).expect("WIF");
        assert_eq!(const_hex::encode(wif.to_bytes()), text(line, "secret_key"));
        let own = addresses(number(line)).into_iter().find(|(name, _)| *name == text(line, "type"));
        assert_eq!(own.expect("a known type").1, text(line, "address"));
    }
    found.sort_unstable();
    (found, done)
}

#[test]
fn every_type_is_found_at_both_ends_of_a_range() {
    let folder = tempdir().unwrap();
    let targets = folder.path().join("targets");
    // Across 2^64, not aligned to anything.
    let (first, last) = ((1u128 << 64) - 777, (1u128 << 64) + 3456);
    let planted = [first, first + 1, 1 << 64, last - 1, last];
    let outside = [first - 1, last + 1];
    write(
        &targets,
        planted.iter().chain(&outside).flat_map(|&key| addresses(key)).map(|(_, address)| address),
    );
    let targets = targets.to_str().unwrap();
    let range = format!("{first:x}:{last:x}");
    let run = scan(&["--range", &range, "--targets", targets]).code(0);
    let (found, done) = findings(&run);
    let mut expected: Vec<(String, u128)> = planted
        .iter()
        .flat_map(|&key| addresses(key).into_iter().map(move |(name, _)| (name.to_owned(), key)))
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(done["matches"], expected.len());
    assert_eq!(text(&done, "covered"), (last - first + 1).to_string());
    // One type alone; a range of one key; a range without any.
    let (found, _) = findings(&scan(&["--range", &range, "--targets", targets, "--type", "p2pkh"]).code(0));
    assert_eq!(found, planted.map(|key| ("p2pkh".to_owned(), key)));
    let one = format!("{last:x}:{last:x}");
    let (found, done) =
        findings(&scan(&["--range", &one, "--targets", targets, "--type", "p2sh,p2wpkh"]).code(0));
    assert_eq!(found, [("p2sh".to_owned(), last), ("p2wpkh".to_owned(), last)]);
    assert_eq!(text(&done, "covered"), "1");
    let none = format!("{:x}:{:x}", first + 2, first + 500);
    assert_eq!(findings(&scan(&["--range", &none, "--targets", targets]).code(1)).0, []);
}

#[test]
fn a_scan_that_is_killed_again_and_again_covers_every_key_once() {
    const KILLS: u32 = 100;
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, count) = (0x1234_5678_9abc_def0_u128, 1u128 << 27);
    // Some of them early, so that killed runs find them too.
    let planted: BTreeSet<u128> = [0, 1, 100_000, 3_000_000, 20_000_000, count / 2, count - 1]
        .into_iter()
        .map(|at| first + at)
        .collect();
    // One is not there: the map remembers the others, and with all of them found the scan would end before its range.
    write(Path::new(&path("targets")), planted.iter().copied().chain([1]).map(p2pkh));
    let range = format!("{first:x}:{:x}", first + count - 1);
    let (targets, map, keys) = (path("targets"), path("map"), path("keys"));
    let args = [
        "scan",
        "--range",
        &range,
        "--targets",
        &targets,
        "--type",
        "p2pkh",
        "--map",
        &map,
        "--output",
        &keys,
        "--device",
        "cpu",
        "--threads",
        "2",
        "--json",
    ];
    let mut seed = 0x9e37_79b9_u64;
    for kill in 0..KILLS {
        let before = fs::read(&map).ok();
        let mut child = Command::new(BINARY);
        let mut child = child.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every tenth comes as far as its first save, however slow the machine is; the others are killed anywhere.
        let patience = Instant::now() + PATIENCE;
        while kill % 10 == 9 && fs::read(&map).ok() == before && child.try_wait().expect("asked").is_none() {
            assert!(Instant::now() < patience, "the map was never saved");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(30 + (seed >> 33) % 400));
        child.kill().expect("killed");
        child.wait().expect("gone");
    }
    let mut command = assert_cmd::Command::new(BINARY);
    let run: Run = command.args(args).timeout(PATIENCE).output().expect("starts").into();
    let done = run.documents().pop().expect("a last line");
    assert_eq!(text(&done, "covered"), count.to_string(), "{run:?}");
    // What was found before a kill may be found again after it, since its batch was not yet counted; nothing else is.
    let lines = fs::read_to_string(&keys).unwrap();
    // A kill can cut a line off where it crosses a page; the next run begins on a line of its own.
    let found: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(found.len() + 2 >= lines.lines().count(), "{lines}");
    let numbers: BTreeSet<u128> =
        found.iter().map(|line| u128::from_str_radix(text(line, "secret_key"), 16).unwrap()).collect();
    assert_eq!(numbers, planted);
    // Whatever moment a kill came at, the map says covered only where it says found too.
    let shown = warpsmith(&["map", "show", &map, "--json"]).code(0).json().remove(0);
    let noted: BTreeSet<&str> =
        shown["matches"].as_array().unwrap().iter().map(|line| text(line, "address")).collect();
    assert_eq!(noted.len(), planted.len(), "{shown}");
    assert!(planted.iter().all(|&key| noted.contains(p2pkh(key).as_str())), "{shown}");
    // The history counts keys that were not covered before: together they are the range, each key once.
    let shown = warpsmith(&["map", "show", &map, "--json"]).code(0).json().remove(0);
    assert_eq!((text(&shown, "covered"), text(&shown, "remaining")), (count.to_string().as_str(), "0"));
    let history = shown["history"].as_array().expect("a list");
    let keys: u128 = history.iter().map(|stretch| text(stretch, "keys").parse::<u128>().unwrap()).sum();
    assert_eq!(keys, count);
    assert!(history.len() > 1, "killed runs left something: {shown}");
}

/// A limit on the size of files is the full disk anybody can have.
#[test]
fn a_full_disk_stops_a_scan_and_later_it_goes_on() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, count) = (0xabcd_ef01_2345_u128, 1u128 << 25);
    let planted = [first + 10, first + count / 2, first + count - 1];
    write(Path::new(&path("targets")), planted.iter().map(|&key| p2pkh(key)));
    let range = format!("{first:x}:{:x}", first + count - 1);
    let (targets, map) = (path("targets"), path("map"));
    let args = ["--range", &range, "--targets", &targets, "--type", "p2pkh", "--map", &map];
    let in_shell = |limit: &str, more: &[&str]| -> Run {
        let script = format!(r#"trap '' XFSZ; ulimit -f {limit}; exec "$@""#);
        let mut command = assert_cmd::Command::new("sh");
        command.args(["-c", &script, "sh", BINARY, "scan"]).args(args).args(more);
        command.args(["--device", "cpu", "--threads", "1", "--json"]);
        command.timeout(PATIENCE).output().expect("a shell starts").into()
    };
    let covered = || {
        let shown = warpsmith(&["map", "show", &map, "--json"]).code(0).json().remove(0);
        text(&shown, "covered").parse::<u128>().expect("a number")
    };
    let (found, _) = findings(&scan(&[&args[..], &["--time-limit", "300ms"]].concat()).code(0));
    assert_eq!(found, [("p2pkh".to_owned(), planted[0])]);
    assert!((1..count / 2).contains(&covered()), "{} of {count}", covered());
    // No room for the map: it stays as it was.
    let before = fs::read(&map).unwrap();
    in_shell("0", &[]).code(4).says(&["map"]);
    assert_eq!(fs::read(&map).unwrap(), before);
    // Room for the map, and none for results: nothing is scanned.
    let keys = path("keys");
    in_shell("16", &["--output", &keys]).code(4).says(&["may not grow", "nothing was searched"]);
    assert_eq!(fs::read(&map).unwrap(), before);
    // A result that could not be delivered: what held it is not covered.
    in_shell(r#"16; exec "$@" > /dev/full"#, &[]).code(4).says(&["stdout could not be written"]);
    assert!(covered() <= count / 2, "{} of {count}", covered());
    let (found, done) = findings(&scan(&args).code(0));
    assert_eq!(found, planted[1..].iter().map(|&key| ("p2pkh".to_owned(), key)).collect::<Vec<_>>());
    assert_eq!(text(&done, "covered"), count.to_string());
}

#[test]
fn a_map_is_resumed_by_the_same_job_alone() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write(Path::new(&path("targets")), [p2pkh(0x5000)]);
    write(Path::new(&path("others")), [p2pkh(0x5001)]);
    let run = |range: &str, targets: &str, more: &[&str]| {
        let (targets, map) = (path(targets), path("map"));
        scan(&[&["--range", range, "--targets", &targets, "--map", &map], more].concat())
    };
    // Random order, resumed after a stop.
    let first = run("1:7fff", "targets", &["--random"]).code(0);
    assert_eq!(findings(&first).0, [("p2pkh".to_owned(), 0x5000)]);
    let again = run("1:7fff", "targets", &["--random"]).code(0);
    let again =
        again.says(&["every address was found in an earlier run, the last on 20", "nothing was tested"]);
    let (found, done) = findings(&again);
    assert_eq!((found.len(), text(&done, "tried"), text(&done, "ended")), (0, "0", "count"));
    // The other order is no way to go on with it.
    let before = fs::read(path("map")).unwrap();
    run("1:7fff", "targets", &[]).code(4).says(&[
        "--map",
        "in random order",
        "asked for is sequential",
        "--random",
    ]);
    assert_eq!(fs::read(path("map")).unwrap(), before);
    run("1:8000", "targets", &[]).code(4).says(&["another job", "1:7fff", "1:8000"]);
    run("1:7fff", "others", &[]).code(4).says(&["another job", "targets"]);
    run("1:7fff", "targets", &["--type", "p2pkh"]).code(4).says(&["another job", "types"]);
    // What is no map is left as it is.
    fs::write(path("map"), "something else\n").unwrap();
    run("1:7fff", "targets", &[]).code(4).says(&["not a"]);
    assert_eq!(fs::read_to_string(path("map")).unwrap(), "something else\n");
}

/// A range that a core has done in a second is taken in hundreds of pieces all the same.
#[test]
fn a_small_range_in_random_order_is_random() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let planted: Vec<u128> = (0x1_0000..0x2_0000).step_by(0x800).collect();
    write(Path::new(&path("targets")), planted.iter().map(|&key| p2pkh(key)));
    let (targets, map) = (path("targets"), path("map"));
    let args =
        ["--range", "10000:1ffff", "--targets", &targets, "--type", "p2pkh", "--map", &map, "--random"];
    let run = scan(&args).code(0);
    let told: Vec<u128> = run
        .json()
        .iter()
        .filter(|line| line.get("secret_key").is_some())
        .map(|line| u128::from_str_radix(text(line, "secret_key"), 16).unwrap())
        .collect();
    assert_ne!(told, planted, "as they are found");
    assert_eq!(told.iter().copied().collect::<BTreeSet<_>>(), planted.into_iter().collect());
    assert!(fs::read_to_string(&map).unwrap().contains(" 100\n"), "pieces of 256 keys");
}

/// The pieces of this scan would take exabytes to list.
#[test]
fn a_map_of_any_size_is_shown() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write(Path::new(&path("targets")), [p2pkh(0x5000)]);
    let (targets, map) = (path("targets"), path("map"));
    for more in [&["--random"][..], &[]] {
        let usual = ["--range", "2^150:2^160-1", "--targets", &targets, "--map", &map, "--time-limit", "1s"];
        scan(&[&usual[..], more].concat()).code(1);
        let shown = warpsmith(&["map", "show", &map, "--json"]).code(0).json().remove(0);
        let lines = warpsmith(&["map", "show", &map]).code(0).stdout;
        let covered: u128 = text(&shown, "covered").parse().unwrap();
        assert!(covered > 0, "{shown}");
        for line in shown["history"].as_array().unwrap() {
            assert_ne!(text(line, "keys"), "0", "{shown}");
            assert_eq!(line["rate"].is_null(), line["seconds"] == 0, "{shown}");
        }
        assert!(!lines.contains("in 0 s") && !lines.contains("under 1 ms"), "{lines}");
        if more.is_empty() {
            assert_eq!((shown["gap_count"].as_u64(), &shown["gaps"][0]), (Some(1), &shown["largest_gap"]));
            assert!(shown["pieces"].is_null() && lines.contains("gaps       1\n"), "{lines}");
        } else {
            assert!(shown["gap_count"].is_null(), "{shown}");
            let number = |name: &str| shown["pieces"][name].as_str().unwrap().parse::<f64>().unwrap();
            assert!(number("all") > 1e18 && number("done") + number("begun") >= 1.0, "{shown}");
            assert!(lines.contains(" begun; each has "), "{lines}");
            fs::remove_file(&map).unwrap();
        }
    }
}

#[test]
fn maps_of_one_job_are_joined() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write(Path::new(&path("targets")), [p2pkh(0x5000)]);
    let (targets, a, b, c) = (path("targets"), path("a"), path("b"), path("c"));
    scan(&["--range", "1:7fff", "--targets", &targets, "--map", &a]).code(0);
    scan(&["--range", "1:7fff", "--targets", &targets, "--map", &b, "--time-limit", "1ms"]);
    warpsmith(&["map", "merge", &c, &a, &b]).code(0);
    let shown = warpsmith(&["map", "show", &c, "--json"]).code(0).json().remove(0);
    assert_eq!(text(&shown, "covered"), "32767");
    assert_eq!(
        (shown["matches"].as_array().unwrap().len(), text(&shown["matches"][0], "address")),
        (1, &*p2pkh(0x5000))
    );
    // The address, when it was found, and nothing of its key.
    let lines = warpsmith(&["map", "show", &c]).code(0).stdout + &fs::read_to_string(&c).unwrap();
    assert!(lines.contains("matches    1\n") && !lines.contains(&format!("{:016x}", 0x5000)), "{lines}");
    assert!(!lines.contains(&private(0x5000).to_wif()), "{lines}");
    warpsmith(&["map", "merge", &c, &a]).code(4);
    assert!(warpsmith(&["map", "show", &c]).code(0).stdout.contains("100 %"));
}

#[test]
fn a_database_is_searched_like_a_list() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let planted = [0x1000u128, 0x1fff, 0x1e9480];
    // Two million others, of which none is likely to be a key's.
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    };
    let others = (0..2_000_000).map(|_| {
        let bytes = [random(), random(), random()].map(u64::to_be_bytes).concat();
        let program =
            miniscript::bitcoin::WitnessProgram::new(miniscript::bitcoin::WitnessVersion::V0, &bytes[..20]);
        Address::from_witness_program(program.expect("twenty bytes"), KnownHrp::Mainnet).to_string()
    });
    write(
        Path::new(&path("list")),
        planted.iter().map(|&key| format!("{}\t{key}", p2pkh(key))).chain(others),
    );
    let (list, database) = (path("list"), path("database"));
    let built = warpsmith(&["db", "build", &database, &list, "--json"]).code(0).json().remove(0);
    assert_eq!(built["records"], 2_000_003);
    warpsmith(&["db", "build", &database, &list]).code(4).says(&["database"]);
    warpsmith(&["db", "verify", &database]).code(0);
    warpsmith(&["db", "lookup", &database, &p2pkh(0x1000), &p2pkh(0x1001)]).code(1);
    let looked = warpsmith(&["db", "lookup", &database, &p2pkh(0x1000), "--json"]).code(0).json().remove(0);
    assert_eq!((looked["found"].as_bool(), text(&looked, "amount")), (Some(true), "4096"));
    // Of two million keys in two forms the coarser filter lets some fifteen thousand pass, and none is shown.
    for filter in ["fuse8", "fuse16", "none"] {
        let run = scan(&["--range", "1000:1e9480", "--database", &database, "--filter", filter]).code(0);
        let (found, _) = findings(&run);
        assert_eq!(found, planted.map(|key| ("p2pkh".to_owned(), key)), "{filter}");
        assert_eq!(text(&run.json()[0], "amount"), "4096");
    }
    let run = scan(&["--range", "1000:1e9480", "--database", &database, "--filter", "fuse32"]).code(2);
    assert!(run.stderr.contains("fuse8, fuse16, none"), "{run:?}");
}

#[test]
fn what_cannot_be_scanned_is_refused_before_any_work() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write(Path::new(&path("targets")), [p2pkh(5), "nonsense".to_owned()]);
    write(Path::new(&path("none")), ["# nothing".to_owned()]);
    let (targets, none) = (path("targets"), path("none"));
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--range", "0:5", "--targets", &targets], &["--range", "1 to n - 1"]),
        (&["--range", "5", "--targets", &targets], &["--range", "colon"]),
        (&["--range", "9:5", "--targets", &targets], &["exchange"]),
        (&["--range", &format!("1:{order}"), "--targets", &targets], &["n - 1"]),
        (&["--range", "1:5", "--targets", &none], &["--targets"]),
        (&["--range", "1:5", "--targets", &path("missing")], &["--targets"]),
        (&["--range", "1:5", "--targets", &targets, "--strict"], &["line 2"]),
        (&["--range", "1:5", "--targets", &targets, "--type", "p2tr"], &["p2tr"]),
    ];
    for (args, fragments) in cases {
        let run = scan(args).code(2).says(fragments);
        assert_eq!(run.json(), [] as [Value; 0], "nothing but the error");
    }
    scan(&["--range", "1:5"]).code(2).says(&["--targets", "--public-key", "--database"]);
    // The bounds of keys are constants, and no secret.
    let last = "n - 1 = fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140";
    scan(&["--range", "0:ffff", "--targets", &targets]).code(2).says(&[last]);
    // Why no line of a file will do.
    write(Path::new(&none), ["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3".to_owned(), "nonsense".to_owned()]);
    scan(&["--range", "1:5", "--targets", &none]).code(2).says(&["line 1: ", "checksum", "line 2: "]);
}

#[test]
fn addresses_and_public_keys_are_given_as_they_are_and_answered_so() {
    let (address, npub) = (p2pkh(0x1234), npub(0x1235));
    let (found, _) = findings(&scan(&["--range", "1000:1fff", "--targets", &address]).code(0));
    assert_eq!(found, [("p2pkh".to_owned(), 0x1234)]);
    scan(&["--range", "1000:1fff", "--targets", "nowhere.txt"]).code(2).says(&["'nowhere.txt'", "no file"]);
    let hex = const_hex::encode(private(0x1234).public_key(&Secp256k1::new()).inner.serialize());
    for (key, begins) in [(&npub, "nsec1"), (&hex, "K"), (&hex[2..].to_owned(), "K")] {
        let args = ["scan", "--range", "1000:1fff", "--public-key", key, "--device", "cpu", "--threads", "1"];
        let run = warpsmith(&[&args[..], &["--json"]].concat()).code(0);
        let line = run.json().remove(0);
        assert_eq!(text(&line, "address"), key, "{line}");
        assert!(text(&line, "export").starts_with(begins), "{line}");
        assert!(!run.stdout.contains("bc1p"), "{line}");
        for run in [run, warpsmith(&args).code(0).stdout_says(&format!("address  {key}\n"))] {
            warpsmith_with(&["verify", "-"], run.stdout.as_bytes()).code(0).stdout_says("ok     address");
            let wrong = run.stdout.replace(key, &with_key(key, 0x1236));
            warpsmith_with(&["verify", "-"], wrong.as_bytes()).code(1);
        }
    }
}

/// The public key of another number, written like this one.
fn with_key(like: &str, number: u128) -> String {
    let hex = const_hex::encode(private(number).public_key(&Secp256k1::new()).inner.serialize());
    match like.len() {
        63 => npub(number),
        64 => hex[2..].to_owned(),
        _ => hex,
    }
}

fn npub(number: u128) -> String {
    let x = private(number).public_key(&Secp256k1::new()).inner.x_only_public_key().0.serialize();
    bech32::encode::<bech32::Bech32>(bech32::Hrp::parse("npub").expect("a prefix"), &x).expect("short")
}

/// Nobody has to wait for the end of a range whose addresses are all found, or say all of them in a file.
#[test]
fn a_scan_ends_when_all_that_was_asked_for_is_found() {
    let folder = tempdir().unwrap();
    let targets = folder.path().join("targets");
    // A range that nobody comes to the end of.
    let (range, keys) = ("1000:+2^100", [0x1005_u128, 0x9_0000]);
    let lines: Vec<String> = keys.into_iter().map(p2pkh).collect();
    write(&targets, lines.clone());
    let targets = targets.to_str().unwrap();
    let usual = ["--range", range, "--type", "p2pkh", "--targets"];
    let run = scan(&[&usual[..], &[targets]].concat()).code(0).says(&["every address is found"]);
    let (found, done) = findings(&run);
    assert_eq!(found, keys.map(|key| ("p2pkh".to_owned(), key)));
    assert_eq!((done["matches"].as_u64(), text(&done, "ended")), (Some(2), "count"));
    // From standard input, as a pipe and alone.
    let piped = [&["scan"], &usual[..], &["-", "--device", "cpu", "--threads", "1", "--json"]].concat();
    let run = warpsmith_with(&piped, (lines.join("\n") + "\n").as_bytes()).code(0);
    assert_eq!(findings(&run).0, found);
    // One of them is enough; and one that is not there is looked for until the time is up.
    let run = scan(&[&usual[..], &[targets, "--count", "1"]].concat()).code(0);
    let (first, done) = findings(&run);
    assert!((1..=2).contains(&first.len()), "one, and what was found with it: {first:?}");
    assert_eq!((done["matches"].as_u64(), text(&done, "ended")), (Some(first.len() as u64), "count"));
    let more = folder.path().join("more");
    write(&more, lines.into_iter().chain([p2pkh(1)]));
    let more = more.to_str().unwrap();
    let run = scan(&[&usual[..], &[more, "--time-limit", "20s"]].concat()).code(0);
    let (found_again, done) = findings(&run);
    assert_eq!((found_again, text(&done, "ended")), (found, "time_limit"));
    let twice = warpsmith_with(&["scan", "--range-file", "-", "--targets", "-"], b"1:2\n");
    twice.code(2).says(&["standard input can be read once"]);
}

/// Public keys in a list, however they are written, are found by x, beside addresses.
#[test]
fn public_keys_of_a_list_are_found() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("targets");
    let point = |number: u128| private(number).public_key(&Secp256k1::new()).inner;
    let hex = |number: u128| const_hex::encode(point(number).serialize());
    let long = |number: u128| const_hex::encode(point(number).serialize_uncompressed());
    write(&path, [npub(1000), hex(1001), long(1002).to_uppercase(), hex(65_535), p2pkh(1003)]);
    let targets = path.to_str().unwrap();
    let run = scan(&["--range", "1:ffff", "--targets", targets]).code(0);
    let mut lines = run.documents();
    lines.pop();
    let mut found: Vec<(u128, String)> = lines
        .iter()
        .map(|line| {
            (u128::from_str_radix(text(line, "secret_key"), 16).unwrap(), text(line, "address").to_owned())
        })
        .collect();
    found.sort();
    let expected = [1000, 1001, 1002, 65_535].map(|number| (number, npub(number)));
    let mut expected: Vec<(u128, String)> = expected.into_iter().chain([(1003, p2pkh(1003))]).collect();
    expected.sort();
    assert_eq!(found, expected);
    // By x alone.
    let run = scan(&["--range", "1:ffff", "--targets", targets, "--type", "npub"]).code(0);
    assert_eq!(run.documents().len(), 4 + 1);
    write(&path, [format!("02{:064x}", 5)]);
    scan(&["--range", "1:ff", "--targets", targets, "--strict"]).code(2).says(&["no point", "--targets"]);
}
