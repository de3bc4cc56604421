//! Matches: every kind of pattern, the fields of a result, and that results have nothing to do with each other.

use std::fs;
use std::io::Write as _;
use std::time::Instant;

use num_bigint::BigUint;
use serde_json::Value;

use crate::harness::{INFEASIBLE, PATIENCE, decimal, mine, text, verified_secret, warpsmith, warpsmith_with};

#[test]
fn a_match_has_the_fields_of_the_contract_and_is_true() {
    let run = mine(&["caf", "--json"]).code(0);
    let [line] = &run.json()[..] else { panic!("{run:?}") };
    verified_secret(line);
    assert!(text(line, "address").starts_with("npub1caf"));
    assert_eq!((text(line, "event"), text(line, "target"), text(line, "pattern")), ("match", "npub", "caf"));
    assert_eq!(text(line, "device"), "cpu");
    assert!(decimal(line, "tried") > 0.0, "{line}");
    assert!(line["elapsed_s"].is_f64(), "{line}");
    assert!(text(&line["details"], "use").contains("nsec"), "{line}");
    let fields = [
        "event",
        "target",
        "pattern",
        "address",
        "public_key",
        "secret_key",
        "export",
        "details",
        "device",
        "tried",
    ];
    let positions: Vec<_> = fields.iter().map(|field| run.stdout.find(&format!("\"{field}\":"))).collect();
    assert!(positions.is_sorted() && positions[0] == Some(1), "fields are in order: {}", run.stdout);
    assert_eq!(line.as_object().map(|object| object.len()), Some(11), "{line}");
}

#[test]
fn people_get_labelled_lines_and_nothing_else_on_stdout() {
    let run = mine(&["qq", "--count", "2"]).code(0);
    let blocks: Vec<&str> = run.stdout.split("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{run:?}");
    for block in blocks {
        let lines: Vec<(&str, &str)> = block.lines().filter_map(|line| line.split_once(' ')).collect();
        let labels: Vec<&str> = lines.iter().map(|(label, _)| *label).collect();
        assert_eq!(labels, ["address", "secret", "hex", "public", "use"], "{run:?}");
        let value = |at: usize| Value::from(lines[at].1.trim());
        verified_secret(&serde_json::json!({
            "address": value(0), "export": value(1), "secret_key": value(2), "public_key": value(3)
        }));
    }
    run.says(&["pattern qq", "1 in 1,024 (2^10.0)", "cpu", "never leaves this machine", "2 matches"]);
}

#[test]
fn every_kind_of_pattern_is_found() {
    type Case = (&'static str, fn(&str) -> bool);
    let cases: &[Case] = &[
        ("cf", |body| body.starts_with("cf")),
        ("npub1cf", |body| body.starts_with("cf")),
        ("..cf", |body| body.ends_with("cf")),
        ("c..f", |body| body.starts_with('c') && body.ends_with('f')),
        ("..caf..", |body| body.contains("caf")),
        ("c?f", |body| body.starts_with('c') && &body[2..3] == "f"),
        ("/^(cf|fc)[qpz]/", |body| {
            ["cf", "fc"].iter().any(|head| body.starts_with(head)) && "qpz".contains(&body[2..3])
        }),
    ];
    for (pattern, matches) in cases {
        let run = mine(&[pattern, "--json", "--quiet"]).code(0);
        let line = &run.json()[0];
        verified_secret(line);
        assert_eq!(text(line, "pattern"), *pattern);
        let body = text(line, "address").strip_prefix("npub1").expect("an npub");
        assert!(matches(body), "{pattern}: {body}");
    }
}

#[test]
fn patterns_come_from_files_and_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.txt");
    fs::write(&file, format!("\u{feff}# words\r\n\r\n  {INFEASIBLE}\r\n\tqp  \r\n")).unwrap();
    let run = mine(&["--patterns", file.to_str().unwrap(), "--json"]).code(0);
    assert_eq!(text(&run.json()[0], "pattern"), "qp");
    let run = run.says(&["any of 2 patterns"]);
    verified_secret(&run.json()[0]);

    let args = ["npub", INFEASIBLE, "--threads", "1", "--patterns", "-", "--json"];
    let run = warpsmith_with(&args, b"# comment\n..qp\n").code(0);
    assert_eq!(text(&run.json()[0], "pattern"), "..qp");

    let upper = mine(&["QQ", "--ignore-case", "--json"]).code(0);
    assert!(text(&upper.json()[0], "address").starts_with("npub1qq"));
}

#[test]
fn a_bad_line_of_a_file_is_named() {
    let bad = |stdin: &[u8]| {
        warpsmith_with(&["npub", "--patterns", "-", "--strict", "--threads", "1"], stdin).code(2)
    };
    bad(b"cafe\n\n# bob\nbob\n").says(&["standard input, line 4", "'bob'", "Try '808'"]);
    bad(b"cafe\nca\xff\n").says(&["standard input, line 2", "UTF-8"]);
    bad(b"\n# nothing\n").says(&["holds no pattern"]);
    mine(&["--patterns", "/nowhere/words"]).code(2).says(&["/nowhere/words", "one pattern a line"]);
    let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let run = bad(format!("{nsec}\n").as_bytes()).says(&["SECRET"]);
    assert!(!run.stderr.contains("vl029"), "{run:?}");
}

#[test]
fn a_million_patterns_load_quickly() {
    let alphabet = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let mut lines = Vec::with_capacity(8_000_000);
    for n in 0..1_000_000usize {
        lines.extend((0..6).map(|at| alphabet[((n * 1_073) >> (5 * at)) & 31]));
        lines.push(b'\n');
    }
    lines.extend(b"bob\n");
    let started = Instant::now();
    let run = warpsmith_with(&["npub", "--patterns", "-", "--strict"], &lines).code(2);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    run.says(&["line 1000001"]);
}

/// The order of secp256k1, and a cube root of 1 modulo it.
fn order_and_lambda() -> (BigUint, BigUint) {
    let number = |hex: &[u8]| BigUint::parse_bytes(hex, 16).unwrap();
    (
        number(b"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"),
        number(b"5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72"),
    )
}

#[test]
fn matches_of_one_run_are_different_and_unrelated() {
    let run = mine(&["q", "--count", "8", "--json"]).code(0);
    let lines = run.json();
    assert_eq!(lines.len(), 8);
    let (n, lambda) = order_and_lambda();
    let keys: Vec<BigUint> =
        lines.iter().map(|line| BigUint::from_bytes_be(&verified_secret(line).to_secret_bytes())).collect();
    // A walk visits lambda^i (origin + offset); had two matches a common origin, some pair of images, one of them
    // perhaps negated, would differ by the difference of two offsets, which is far below 2^100.
    let small = BigUint::from(1u32) << 100;
    for (at, one) in keys.iter().enumerate() {
        for other in &keys[..at] {
            for (i, j) in (0..9).map(|n| (n / 3, n % 3)) {
                let one = one * lambda.modpow(&BigUint::from(i as u32), &n) % &n;
                let other = other * lambda.modpow(&BigUint::from(j as u32), &n) % &n;
                for difference in [(&one + &n - &other) % &n, (&one + &other) % &n] {
                    assert!(difference > small && &n - &difference > small, "{one} {other}");
                }
            }
        }
    }
}

#[test]
fn progress_is_told_as_json_and_quiet_is_for_stderr_alone() {
    let run = mine(&[INFEASIBLE, "--json", "--progress", "json", "--time-limit", "4500ms"]).code(1);
    let lines = run.json();
    assert!(lines.len() >= 2, "{run:?}");
    for line in &lines {
        assert_eq!(text(line, "event"), "progress");
        assert!(decimal(line, "tried") > 0.0, "{line}");
        // Beyond 285 million years there is no telling.
        assert!(line["eta_50_s"].is_null() || line["eta_50_s"].is_f64(), "{line}");
        for field in ["rate", "elapsed_s", "probability"] {
            assert!(line[field].is_f64(), "{field}: {line}");
        }
        assert_eq!(text(&line["devices"][0], "id"), "cpu");
        assert!(line["devices"][0]["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{line}");
    }
    let run = mine(&[INFEASIBLE, "--quiet", "--time-limit", "0.3"]).code(1);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let folder = tempfile::tempdir().unwrap();
    let targets = folder.path().join("targets").to_str().unwrap().to_owned();
    std::fs::write(&targets, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n").unwrap();
    let usual =
        ["--json", "--progress", "json", "--progress-interval", "200ms", "--quiet", "--time-limit", "3s"];
    // A list of keys that does not end.
    let keys = folder.path().join("keys");
    let made = std::process::Command::new("mkfifo").arg(&keys).status().unwrap();
    assert!(made.success());
    let mut writer = std::fs::OpenOptions::new().read(true).write(true).open(&keys).unwrap();
    writeln!(writer, "{:064x}", 7).unwrap();
    let keys = keys.to_str().unwrap();
    for args in [
        &["npub", INFEASIBLE, "--device", "cpu", "--threads", "1"][..],
        &["npub", INFEASIBLE, "q", "--each", "--device", "cpu", "--threads", "1"],
        &["scan", "--range", "2^70:2^71", "--targets", &targets, "--device", "cpu", "--threads", "1"],
        &["scan", "--keys", keys, "--targets", &targets, "--threads", "1"],
    ] {
        let run = warpsmith(&[args, &usual[..]].concat());
        assert_eq!(run.stderr, "", "{args:?}");
        let documents = run.documents();
        assert!(documents.iter().any(|line| line["event"] == "progress"), "{args:?}: {run:?}");
        assert_eq!(documents.last().map(|done| text(done, "ended")), Some("time_limit"), "{run:?}");
    }
    mine(&["qq", "--progress", "json"]).code(2).says(&["--json"]);
}

#[test]
fn the_expected_time_is_told_after_a_moment() {
    let run = mine(&[INFEASIBLE, "--time-limit", "3s"]).code(1);
    let run = run.says(&["expected  50 % within", "90 % within", "time limit reached: no match", "years"]);
    assert_eq!(run.stdout, "");
    assert!(!run.stderr.contains(['\r', '\x1b']), "only terminals get control characters: {run:?}");
}

#[test]
fn an_estimate_searches_nothing_and_adds_up() {
    let run = mine(&["cafe", "--estimate", "--json"]).code(0);
    let [line] = &run.json()[..] else { panic!("{run:?}") };
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{line}"));
    assert_eq!((text(line, "event"), text(line, "difficulty")), ("estimate", "1048576"));
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
    assert!(near(number("expected_s"), decimal(line, "difficulty") / number("rate")), "{line}");
    assert!(near(number("p50_s") / number("expected_s"), std::f64::consts::LN_2), "{line}");
    assert!(near(number("p90_s") / number("expected_s"), std::f64::consts::LN_10), "{line}");

    let run = mine(&["cafe", "--estimate"]).code(0);
    for fragment in ["1 in 1,048,576 (2^20.0)", "/s on cpu", "50 %", "90 %"] {
        assert!(run.stdout.contains(fragment), "{run:?}");
    }
    assert!(!run.stdout.contains("npub1") && !run.stdout.contains("nsec1"));

    // Of twenty matches: twenty times as long on average, and less uncertain.
    let run = mine(&["cafe", "--estimate", "--count", "20", "--json"]).code(0);
    let [line] = &run.json()[..] else { panic!("{run:?}") };
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{line}"));
    assert_eq!(line["count"], 20);
    assert!(near(number("expected_s"), 20.0 * decimal(line, "difficulty") / number("rate")), "{line}");
    assert!((0.97..1.0).contains(&(number("p50_s") / number("expected_s"))), "{line}");
    assert!((1.28..1.32).contains(&(number("p90_s") / number("expected_s"))), "{line}");
    let run = mine(&["cafe", "--estimate", "--count", "20"]).code(0);
    assert!(run.stdout.contains("matches     20, all of them:"), "{run:?}");
}

#[test]
fn progress_speaks_of_all_matches_that_are_wanted() {
    // One in a million: some come in four seconds, and a billion of them do not.
    let many = "1000000000";
    let args = ["cafe", "--count", many, "--json", "--progress", "json", "--time-limit", "4500ms"];
    let run = mine(&args);
    let lines = run.json();
    let progress: Vec<_> = lines.iter().filter(|line| text(line, "event") == "progress").collect();
    assert!(progress.len() >= 2, "{run:?}");
    for line in &progress {
        assert_eq!(line["count"], 1_000_000_000u64);
        assert!(line["matches"].is_u64() && line["probability"].as_f64() < Some(1e-6), "{line}");
        let (rate, eta) = (line["rate"].as_f64().unwrap_or(0.0), line["eta_50_s"].as_f64().unwrap_or(0.0));
        assert!((0.99..1.01).contains(&(eta * rate / 1_048_576.0 / 1e9)), "{line}");
    }
    let run = mine(&["cafe", "--count", many, "--json", "--time-limit", "3s"]);
    assert!(run.stderr.contains("expected  all 1,000,000,000: 50 % within"), "{run:?}");
}
