//! Keys of a list: found in whatever form they are written, and what is no key is told and not fatal.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use miniscript::bitcoin::{Network, PrivateKey};
use tempfile::tempdir;

use crate::harness::{BINARY, PATIENCE, Run, text, warpsmith, warpsmith_with};
use crate::scan::{findings, p2pkh, write};

pub(crate) fn wif(number: u128, is_compressed: bool) -> String {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    let mut key = PrivateKey::from_slice(&bytes, Network::Bitcoin).expect("a key");
    key.compressed = is_compressed;
    key.to_wif()
}

pub(crate) fn nsec(number: u128) -> String {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    bech32::encode::<bech32::Bech32>(bech32::Hrp::parse("nsec").expect("a prefix"), &bytes).expect("short")
}

#[test]
fn keys_of_a_list_are_tested_in_whatever_form_they_are_written() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (targets, keys, database) = (path("targets"), path("keys"), path("db"));
    let wanted = [7u128, 70_000, 12_345_678_901, 1 << 100];
    write(targets.as_ref(), wanted.map(p2pkh));
    let mut lines: Vec<String> = (1_000_000..1_003_000u128).map(|key| format!("{key:064x}")).collect();
    // With the mark that some editors put at the front.
    lines.insert(0, format!("\u{feff}{:064x}", wanted[0]));
    lines.insert(1500, wif(wanted[1], true));
    lines.insert(1600, wif(wanted[2], false));
    lines.insert(1700, "# a remark".to_owned());
    lines.insert(1701, String::new());
    lines.push(nsec(wanted[3]));
    // Twice, in two forms.
    lines.push(wif(wanted[0], true));
    let count = lines.len() as u64 - 2;
    write(keys.as_ref(), lines.clone());
    let usual = ["scan", "--keys", &keys, "--type", "p2pkh", "--json", "--threads", "2"];
    let by = |more: &[&str]| warpsmith(&[&usual[..], more].concat());
    let run = by(&["--targets", &targets]).code(0).says(&["4 found (1 more on lines that repeat a key)"]);
    let (found, done) = findings(&run);
    let lines_of: Vec<(u128, u64)> = run
        .json()
        .iter()
        .map(|found| {
            let key = u128::from_str_radix(text(found, "secret_key"), 16).unwrap();
            (key, found["line"].as_u64().expect("a line"))
        })
        .collect();
    let last = lines.len() as u64;
    assert_eq!(lines_of, [(wanted[0], 1), (wanted[1], 1501), (wanted[2], 1601), (wanted[3], last - 1)]);
    let people = warpsmith(&["scan", "--keys", &keys, "--type", "p2pkh", "--targets", &targets]).code(0);
    let names = |line: &str| line.split_whitespace().eq(["line", "1501"]);
    assert!(people.stdout.lines().any(names), "{people:?}");
    warpsmith_with(&["verify", "-"], people.stdout.as_bytes()).code(0);
    let expected: Vec<(String, u128)> = wanted.map(|key| ("p2pkh".to_owned(), key)).to_vec();
    assert_eq!(found, expected);
    assert_eq!((text(&done, "tried"), text(&done, "ended")), (count.to_string().as_str(), "exhausted"));
    // The same through a database, packed, and from standard input.
    warpsmith(&["db", "build", &database, &targets]).code(0);
    assert_eq!(findings(&by(&["--database", &database]).code(0)).0, expected);
    let piped = ["scan", "--keys", "-", "--targets", &targets, "--type", "p2pkh", "--json"];
    let all = lines.join("\n");
    assert_eq!(findings(&warpsmith_with(&piped, all.as_bytes()).code(0)).0, expected);
    // One is enough, and none is none.
    let (first, done) = findings(&by(&["--targets", &targets, "--count", "1"]).code(0));
    assert!(!first.is_empty() && text(&done, "ended") == "count", "{first:?}");
    fs::write(&targets, p2pkh(5)).unwrap();
    assert_eq!(findings(&by(&["--targets", &targets]).code(1)).0, []);
}

/// Whoever writes to it may take its time, or never end: what was found is delivered, and enough is enough.
#[test]
fn a_pipe_that_stays_open_is_not_waited_for() {
    let folder = tempdir().unwrap();
    let targets = folder.path().join("targets");
    write(&targets, [p2pkh(7)]);
    let usual = ["scan", "--keys", "-", "--targets", targets.to_str().unwrap(), "--type", "p2pkh", "--json"];
    let run = |keys: &str, more: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(usual).args(more).env("XDG_CONFIG_HOME", "/dev/null");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // It may have enough before it has read all of it.
        let _ = pipe.write_all(keys.as_bytes());
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("it waits for its input: {:?}", child.wait_with_output());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(pipe);
        Run::from(child.wait_with_output().unwrap())
    };
    // The key, and behind it more than the megabyte that is read at a time.
    let keys = format!("{:064x}\n", 7) + &"# nothing\n".repeat(120_000);
    let (found, done) = findings(&run(&keys, &["--count", "1"]).code(0));
    assert_eq!((found, text(&done, "ended")), (vec![("p2pkh".to_owned(), 7)], "count"));
    let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
    let sealed = run(&keys, &["--count", "1", "--encrypt-to", recipient]).code(0).json();
    assert_eq!(text(&sealed[0]["encrypted"], "format"), "age");
    let (found, done) = findings(&run("", &["--time-limit", "1s"]).code(1));
    assert!(found.is_empty() && text(&done, "ended") == "time_limit", "{done}");
}

#[test]
fn what_is_no_key_is_told_without_repeating_it() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (targets, keys) = (path("targets"), path("keys"));
    write(targets.as_ref(), [p2pkh(7)]);
    let secret = "f00d".repeat(15);
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let lines =
        [format!("{:064x}", 7), secret.clone(), "0".repeat(64), order.to_owned(), "5Kb8kLf9zgWQn".to_owned()];
    write(keys.as_ref(), lines);
    let usual = ["scan", "--keys", &keys, "--targets", &targets, "--type", "p2pkh", "--json"];
    let run = warpsmith(&usual).code(0).says(&[
        "line 2",
        "60 hex digits",
        "line 3",
        "1 to n - 1",
        "4 lines are no keys",
    ]);
    assert!(!run.stderr.contains(&secret) && !run.stderr.contains("5Kb8"), "{}", run.stderr);
    assert_eq!(findings(&run).0, [("p2pkh".to_owned(), 7)]);
    warpsmith(&[&usual[..], &["--strict"]].concat()).code(2).says(&["line 2", "--strict"]);
    fs::write(&keys, "\n# nothing\n").unwrap();
    warpsmith(&usual).code(2).says(&["no key in it", "nsec"]);
    for (more, says) in [(["--map", "x"], "--map"), (["--range", "1:2"], "cannot be used with")] {
        warpsmith(&[&usual[..], &more].concat()).code(2).says(&[says]);
    }
    warpsmith(&["scan", "--keys", &path("nowhere"), "--targets", &targets]).code(2);
}
