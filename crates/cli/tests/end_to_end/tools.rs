//! The commands beside mining.

use tempfile::tempdir;
use warpsmith_trials::programs::check_manual;

use crate::harness::{PROGRAM, text, warpsmith};

#[test]
fn bench_gives_a_verified_rate_that_beats_the_usual_loop() {
    let run =
        warpsmith(&["bench", "npub", "--threads", "1", "--seconds", "0.5", "--baseline", "--json"]).code(0);
    let [line] = &run.json()[..] else { panic!("{run:?}") };
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
    assert_eq!((text(line, "event"), text(line, "target"), text(line, "device")), ("bench", "npub", "cpu"));
    assert!(line["verified"].is_u64() && number("seconds") >= 0.5, "{line}");
    assert!(number("ratio") > 1.0, "{line}");
    assert!((number("rate") / number("baseline_rate") / number("ratio") - 1.0).abs() < 1e-9, "{line}");

    let run = warpsmith(&["bench", "--threads", "1", "--seconds", "0.5"]).code(0);
    assert!(
        run.stdout.starts_with("target") && run.stdout.contains("npub") && run.stdout.contains("/s"),
        "{run:?}"
    );
    assert_eq!(
        run.stdout.lines().count(),
        1 + warpsmith::proof::distinct_samples().len(),
        "a heading and every program: {run:?}"
    );
}

#[test]
fn bench_times_the_field_and_proves_it() {
    let run =
        warpsmith(&["bench", "field", "--device", "cpu", "--threads", "1", "--seconds", "0.5", "--json"]);
    let lines = run.code(0).json();
    let ops: Vec<&str> = lines.iter().map(|line| text(line, "op")).collect();
    assert_eq!(ops, ["mul", "sqr", "inv"]);
    for line in &lines {
        assert_eq!(
            (text(line, "event"), text(line, "target"), text(line, "device")),
            ("bench", "field", "cpu")
        );
        let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
        let least = if text(line, "op") == "inv" { 1e3 } else { 1e6 };
        assert!(number("rate") > least && number("verified") > 0.0 && number("seconds") >= 0.5, "{line}");
    }
    warpsmith(&["bench", "fields"]).code(2).says(&["'fields' is no target", "field"]);
}

/// With planted keys, alone and as several types at once; and through the filter of a database.
#[test]
fn bench_times_scans_and_proves_them() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (list, database) = (path("list"), path("database"));
    let addresses = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\nbc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4\n";
    std::fs::write(&list, addresses).unwrap();
    warpsmith(&["db", "build", &database, &list]).code(0);
    let usual = ["bench", "scan", "--device", "cpu", "--threads", "1", "--seconds", "1"];
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &["p2pkh"]),
        (&["--type", "p2pkh,eth"], &["eth", "p2pkh"]),
        (&["--database", &database, "--filter", "fuse8"], &["p2pkh", "p2pkh-uncompressed", "p2wpkh"]),
        (&["--database", &database, "--filter", "none", "--type", "p2wpkh"], &["p2wpkh"]),
    ];
    for (more, types) in cases {
        let run = warpsmith(&[&usual[..], more, &["--json"]].concat()).code(0);
        let line = &run.json()[0];
        assert_eq!((text(line, "event"), text(line, "target")), ("bench", "scan"));
        assert_eq!(line["types"], serde_json::json!(types), "{line}");
        let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
        assert!(number("rate") > 0.0 && number("verified") > 0.0 && number("expected") > 0.0, "{line}");
    }
    let run = warpsmith(&usual).code(0);
    assert!(run.stdout.contains("scan p2pkh "), "{run:?}");
    warpsmith(&["bench", "npub", "--type", "p2pkh"]).code(2).says(&["bench scan --type"]);
    warpsmith(&["bench", "scan", "--type", "p2xx"]).code(2).says(&["p2xx", "p2wpkh"]);
    warpsmith(&["bench", "scan", "--device", "cpu", "--database", &path("none")])
        .code(2)
        .says(&["--database"]);
}

#[test]
fn the_length_of_launches_is_a_wish_within_bounds() {
    warpsmith(&["npub", "q", "--device", "cpu", "--threads", "1", "--launch-ms", "10"]).code(0);
    for wrong in ["0", "1001", "ten"] {
        warpsmith(&["npub", "q", "--device", "cpu", "--launch-ms", wrong]).code(2).says(&["--launch-ms"]);
    }
}

#[test]
fn bench_tells_details_when_asked() {
    let run = warpsmith(&[
        "bench",
        "npub",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--seconds",
        "1",
        "--detail",
        "--json",
    ]);
    let line = &run.code(0).json()[0];
    let number = |field: &str| line["detail"][field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
    assert!(number("field_mul_rate") > 1e6, "{line}");
    // One thread searches; how much of a core it gets depends on what else runs here.
    assert!((5.0..150.0).contains(&number("host_cpu_percent")), "{line}");
    assert!(number("steady_rate") > 0.0 && line["detail"].get("card").is_none(), "{line}");
    let run =
        warpsmith(&["bench", "npub", "--device", "cpu", "--threads", "1", "--seconds", "0.5", "--detail"]);
    let run = run.code(0);
    assert!(run.stdout.contains("host processor") && run.stdout.contains("field products"), "{run:?}");
}

#[test]
fn inlining_is_a_wish_with_three_values() {
    for wish in ["auto", "yes", "no"] {
        warpsmith(&["npub", "q", "--device", "cpu", "--threads", "1", "--inline", wish]).code(0);
    }
    warpsmith(&["npub", "q", "--inline", "perhaps"]).code(2).says(&["perhaps", "auto, yes, no"]);
}

#[test]
fn bench_takes_patterns_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.txt");
    std::fs::write(&file, "qqq\n..qqq\n").unwrap();
    let file = file.to_str().unwrap();
    let args = ["bench", "npub", "--threads", "1", "--seconds", "0.5", "--json", "--patterns", file];
    let run = warpsmith(&args).code(0);
    let line = &run.json()[0];
    assert!(line["verified"].as_u64().is_some_and(|verified| verified > 0), "{line}");
    assert!(line.get("ratio").is_none() && line.get("baseline_rate").is_none(), "{line}");
}

#[test]
fn devices_are_listed_with_reasons_for_what_is_missing() {
    let run = warpsmith(&["devices", "--json"]).code(0);
    let lines = run.json();
    let defaults = lines.iter().filter(|line| line["default"] == true).count();
    assert!(defaults >= 1, "{run:?}");
    for line in &lines {
        match text(line, "event") {
            "device" => assert!(!text(line, "id").is_empty() && !text(line, "description").is_empty()),
            "missing" => assert!(!text(line, "id").is_empty() && !text(line, "reason").is_empty()),
            other => panic!("{other}"),
        }
    }
    let run = warpsmith(&["devices"]).code(0);
    // A word may be longer than a line.
    assert!(run.stdout.lines().all(|line| line.len() <= 80 || !line.trim().contains(' ')), "{run:?}");
    assert!(run.stdout.contains("cpu") && run.stdout.contains("used by default"), "{run:?}");
}

#[test]
fn drivers_and_compilers_tell_all_they_know() {
    let lines = warpsmith(&["devices", "--verbose", "--json"]).code(0).json();
    let inspected = |line: &&serde_json::Value| text(line, "event") == "inspection";
    let cards = lines.iter().filter(inspected).filter(|line| line.get("compile_s").is_some());
    for line in cards {
        assert!(line.get("compile_log").is_some() != line.get("compile_error").is_some(), "{line}");
        assert!(!text(&line["facts"], "driver").is_empty(), "{line}");
    }
    let cpu = lines.iter().filter(inspected).find(|line| text(line, "id") == "cpu").expect("a processor");
    assert!(text(&cpu["facts"], "instruction_sets").contains("portable"), "{cpu}");
    let run = warpsmith(&["devices", "--verbose"]).code(0);
    assert!(run.stdout.contains("instruction sets"), "{run:?}");
}

#[test]
fn the_self_test_goes_on_for_as_long_as_asked() {
    let args = ["selftest", "npub", "--device", "cpu", "--threads", "1"];
    let once = warpsmith(&[&args[..], &["--json"]].concat()).code(0);
    let long = warpsmith(&[&args[..], &["--seconds", "20s", "--json"]].concat())
        .code(0)
        .says(&["all of them right"]);
    let done = |run: &crate::harness::Run| run.documents().pop().expect("a last line");
    let number =
        |line: &serde_json::Value, field: &str| line[field].as_u64().unwrap_or_else(|| panic!("{line}"));
    let (once, long) = (done(&once), done(&long));
    assert_eq!(number(&once, "rounds"), 1);
    assert_eq!(number(&long, "cases"), number(&once, "cases") * number(&long, "rounds"), "{long}");
    assert!(long["seconds"].as_f64().is_some_and(|seconds| seconds >= 20.0), "{long}");
    warpsmith(&["selftest", "--seconds", "soon"]).code(2).says(&["such as 90s"]);
}

#[test]
fn the_self_test_names_every_case() {
    let run = warpsmith(&["selftest", "--device", "cpu", "--threads", "1", "--json"]).code(0);
    let lines = run.json();
    let cases: Vec<&str> = lines.iter().map(|line| text(line, "case")).collect();
    for case in ["prefix", "suffix", "contains", "wildcard", "regex"] {
        assert!(cases.contains(&case), "{cases:?}");
    }
    for line in &lines {
        assert_eq!((text(line, "event"), &line["ok"]), ("selftest", &true.into()));
        assert!(line["planted"].as_u64().is_some_and(|planted| planted > 0), "{line}");
    }
    for target in ["npub", "eth", "eth-contract", "create2", "create3", "create3-guarded", "scan"] {
        assert!(lines.iter().any(|line| text(line, "target") == target), "{target}");
    }
    let run = warpsmith(&["selftest", "--device", "cpu:portable", "--threads", "1"]).code(0);
    assert_eq!(run.stdout.lines().count(), lines.len());
    assert!(run.stdout.lines().all(|line| line.ends_with("all found") && line.len() <= 80), "{run:?}");

    let run =
        warpsmith(&["selftest", "npub", "btc-rawtr", "--device", "cpu", "--threads", "1", "--json"]).code(0);
    assert!(run.json().iter().all(|line| ["npub", "btc-rawtr"].contains(&text(line, "target"))), "{run:?}");
    assert!(run.json().iter().any(|line| text(line, "target") == "btc-rawtr"), "{run:?}");
    let run = warpsmith(&["selftest", "scan", "--device", "cpu", "--threads", "1"]).code(0);
    assert!(run.stdout.lines().all(|line| line.contains("  scan  ")), "{run:?}");
    assert!(run.stdout.contains("p2tr, fuse16"), "{run:?}");
    let run = warpsmith(&["selftest", "npud"]).code(2);
    assert!(run.stderr.contains("'npud' is no target") && run.stderr.contains("btc-rawtr"), "{run:?}");
}

#[test]
fn help_manual_and_completions_are_there() {
    let commands = ["npub", "join", "bench", "selftest", "devices", "completions", "man"];
    let help = warpsmith(&["--help"]).code(0);
    assert!(help.stdout.contains("Examples:") && help.stdout.contains("Exit codes:"), "{help:?}");
    let manual = warpsmith(&["man"]).code(0);
    assert!(manual.stdout.contains(".TH warpsmith 1"), "{manual:?}");
    for command in commands {
        assert!(help.stdout.contains(command) && manual.stdout.contains(command), "{command}");
        let own = warpsmith(&[command, "--help"]).code(0);
        assert!(own.stdout.contains("Examples:"), "{own:?}");
        let page = warpsmith(&["man", command]).code(0);
        assert!(page.stdout.contains(&format!(".TH warpsmith-{command} 1")), "{page:?}");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = warpsmith(&["completions", shell]).code(0);
        assert!(run.stdout.contains("npub") && run.stdout.contains("time-limit"), "{shell}");
    }
    assert!(warpsmith(&["--version"]).code(0).stdout.starts_with("warpsmith "));
}

#[test]
fn every_command_has_a_page_with_all_its_flags_and_completions() {
    let commands = check_manual(&PROGRAM);
    assert!(commands.iter().any(|name| name == "db-build") && commands.len() > 30, "{commands:?}");
    let page = warpsmith(&["man", "db", "build"]).code(0);
    assert!(page.stdout.contains(".TH warpsmith-db-build 1"), "{page:?}");
    warpsmith(&["man", "npud"]).code(2).says(&["'npud' is no command of warpsmith; there are", "npub"]);
    warpsmith(&["man", "db", "built"]).code(2).says(&["'built' is no command of warpsmith db", "build"]);
    warpsmith(&["man", "npub", "x"]).code(2).says(&["'x' is no command of warpsmith npub, which has none"]);
    warpsmith(&["man", "--folder", "/dev/null/pages"]).code(4).says(&["--folder", "/dev/null/pages"]);
}
