//! Scores on the command line: what is counted, among what, which results are shown, and what is refused.

use std::collections::HashSet;

use serde_json::Value;

use crate::harness::{decimal, text, warpsmith, warpsmith_with};

fn hash() -> String {
    format!("0x{}", "5a".repeat(32))
}

fn digits(line: &Value) -> String {
    text(line, "address")[2..].to_ascii_lowercase()
}

/// The longest run of one digit.
fn run_of(text: &str) -> u64 {
    let (mut best, mut run, mut last) = (0, 0, ' ');
    for c in text.chars() {
        run = if c == last { run + 1 } else { 1 };
        (best, last) = (best.max(run), c);
    }
    best
}

#[test]
fn what_is_counted_is_counted_on_the_address() {
    type Count = fn(&str) -> u64;
    let counts: [(&str, &str, Count); 6] = [
        ("letters", "24", |text| text.matches(char::is_alphabetic).count() as u64),
        ("count:4", "9", |text| text.matches('4').count() as u64),
        ("run", "6", run_of),
        ("pairs", "3", |text| {
            (0..20).take_while(|i| text[2 * i..=2 * i] == text[2 * i + 1..=2 * i + 1]).count() as u64
        }),
        ("like:dead..beef", "5", |text| {
            let like = format!("dead{}beef", "?".repeat(32));
            like.chars().zip(text.chars()).filter(|(a, b)| a == b).count() as u64
        }),
        ("10*run+letters", "70", |text| 10 * run_of(text) + text.matches(char::is_alphabetic).count() as u64),
    ];
    for (score, enough, count) in counts {
        let command =
            ["create2", "--factory", "arachnid", "--init-code-hash", &hash(), "--json", "--device", "cpu"];
        for command in [&command[..], &["eth", "--json", "--device", "cpu"]] {
            let run = warpsmith(&[command, &["--best", score, "--score", enough]].concat()).code(0);
            let lines = run.json();
            let scores: Vec<u64> =
                lines.iter().map(|line| line["score"].as_u64().expect("a score")).collect();
            assert!(scores.windows(2).all(|pair| pair[0] < pair[1]), "{score} {scores:?}");
            assert!(scores.last().is_some_and(|&best| best >= enough.parse().unwrap()), "{score} {scores:?}");
            for (line, score) in lines.iter().zip(&scores) {
                assert_eq!(count(&digits(line)), *score, "{line}");
            }
        }
    }
}

#[test]
fn floors_ties_counts_and_patterns_do_as_they_say() {
    let hash = hash();
    let usual = ["create2", "--factory", "arachnid", "--init-code-hash", &hash, "--json", "--device", "cpu"];
    let search = |more: &[&str]| warpsmith(&[&usual[..], more].concat()).code(0).json();
    let letters = |line: &Value| digits(line).matches(char::is_alphabetic).count() as u64;
    // Everything at or above, as many as were asked for, no two the same.
    let found = search(&["--best", "letters", "--min-score", "26", "--count", "300"]);
    assert_eq!(found.len(), 300);
    assert!(found.iter().all(|line| letters(line) >= 26 && line["score"] == letters(line)));
    assert_eq!(found.iter().map(|line| text(line, "salt")).collect::<HashSet<_>>().len(), 300);
    // Results of a search for the best are counted, too.
    let found = search(&["--best", "letters", "--count", "2"]);
    assert_eq!(found.len(), 2);
    assert!(found[0]["score"].as_u64() < found[1]["score"].as_u64());
    let found = search(&["--best", "letters", "--ties", "--count", "12"]);
    let scores: Vec<u64> = found.iter().map(|line| line["score"].as_u64().expect("a score")).collect();
    assert!(scores.len() == 12 && scores.windows(2).all(|pair| pair[0] <= pair[1]), "{scores:?}");
    assert!(scores.windows(2).any(|pair| pair[0] == pair[1]), "{scores:?}");
    // Among patterns, of which a device sees the half at most; a result names the one it has.
    let found = search(&["cA", "/^d.*e$/", "--checksum", "--best", "letters", "--score", "23"]);
    for line in &found {
        let address = &text(line, "address")[2..];
        let is_regex = address.starts_with('d') && address.ends_with('e');
        assert!(address.starts_with("cA") || is_regex, "{line}");
        assert_eq!(text(line, "pattern"), if is_regex { "/^d.*e$/" } else { "cA" });
        assert_eq!(line["score"], letters(line));
    }
    // Beside what a hook must do.
    let found = search(&["--hook-flags", "BEFORE_SWAP", "--leading-zeros", "--score", "1"]);
    let last = found.last().expect("one");
    assert!(digits(last).starts_with("00"), "{last}");
    assert_eq!(u32::from_str_radix(&digits(last)[36..], 16).expect("digits") & 0x3fff, 0x80);
}

/// An improvement is one line; the best is shown in full when the search ends.
#[test]
fn improvements_are_a_line_each() {
    let hash = hash();
    let salt = ["create2", "--factory", "arachnid", "--init-code-hash", &hash];
    for (command, last, count) in
        [(&salt[..], "salt", 3), (&["eth"][..], "secret", 3), (&["eth", "--contract"][..], "secret", 4)]
    {
        let run = warpsmith(&[command, &["--best", "letters", "--score", "24", "--device", "cpu"]].concat())
            .code(0);
        let (lines, best) = run.stdout.split_once("\n\n").expect("lines, and the best");
        let scores: Vec<u64> = lines
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split("  ").collect();
                assert!(fields.len() == count && fields[1].starts_with("address 0x"), "{line}");
                assert!(fields[count - 1].starts_with(&format!("{last} 0x")), "{line}");
                fields[0].strip_prefix("score ").and_then(|score| score.parse().ok()).expect("a score")
            })
            .collect();
        assert!(scores.is_sorted() && scores.last().is_some_and(|score| *score >= 24), "{run:?}");
        let address = lines.lines().last().and_then(|line| line.split("  ").nth(1)).expect("an address");
        let first = best.lines().next().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(first.as_deref(), Some(address), "{run:?}");
        // All of it can be verified: each key, and the salt that is shown with its factory.
        let verified = warpsmith_with(&["verify", "-"], run.stdout.as_bytes()).code(0);
        let expected = if last == "salt" { 1 } else { scores.len() + 1 };
        assert_eq!(verified.stdout.matches(": holds").count(), expected, "{verified:?}");
    }
    // A file has each in full, and stdout no secret.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys").to_str().expect("a path").to_owned();
    let run = warpsmith(&["eth", "--best", "letters", "--score", "24", "--device", "cpu", "--output", &file]);
    let run = run.code(0);
    assert!(!run.stdout.contains("secret 0x") && run.stdout.contains("\noutput "), "{run:?}");
    let lines = run.stdout.lines().filter(|line| line.starts_with("score ") && line.contains("address"));
    let lines = lines.count();
    let kept = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(kept.lines().filter(|line| line.starts_with("secret ")).count(), lines, "{kept}");
}

#[test]
fn a_score_is_kept_in_a_file_and_verified_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    std::fs::write(path("ours.toml"), "# ours\n[weights]\nletters = 1\n\"count:4\" = 3\n").expect("written");
    let usual = ["eth", "--json", "--device", "cpu", "--score", "40"];
    let run = warpsmith(&[&usual[..], &["--score-file", &path("ours.toml")]].concat()).code(0);
    let last = run.json().pop().expect("one");
    let (digits, scored) = (digits(&last), text(&last, "scored"));
    let expected = digits.matches(char::is_alphabetic).count() + 3 * digits.matches('4').count();
    assert_eq!(last["score"], expected);
    assert!(scored == "letters+3*count:4" || scored == "3*count:4+letters", "{scored}");
    std::fs::write(path("result.json"), last.to_string()).expect("written");
    warpsmith(&["verify", &path("result.json")]).code(0);
    // A score that is another's does not hold.
    for (name, value) in
        [("score", Value::from(expected + 1)), ("scored", Value::from("zeros")), ("scored", "?".into())]
    {
        let mut wrong = last.clone();
        wrong[name] = value;
        std::fs::write(path("wrong.json"), wrong.to_string()).expect("written");
        let run = warpsmith(&["verify", &path("wrong.json")]).code(1);
        assert!(run.stdout.contains("WRONG  score"), "{run:?}");
    }
    std::fs::write(path("bad.toml"), "[weights]\nletters = 1\nleters = 2\n").expect("written");
    let run = warpsmith(&["eth", "--score-file", &path("bad.toml")]).code(2);
    run.says(&["bad.toml", "line 3", "'leters'", "letters"]);
    warpsmith(&["eth", "--score-file", &path("none.toml")]).code(2).says(&["none.toml"]);
}

#[test]
fn forecasts_know_what_a_pattern_fixes() {
    let usual = ["eth", "--estimate", "--json", "--device", "cpu", "--threads", "1"];
    let difficulty =
        |more: &[&str]| decimal(&warpsmith(&[&usual[..], more].concat()).code(0).json()[0], "difficulty");
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    // Two zero bytes that the pattern has already cost nothing.
    assert!(near(difficulty(&["0000", "--leading-zeros", "--score", "3"]), 16f64.powi(6)));
    assert!(near(difficulty(&["0000", "--leading-zeros", "--min-score", "2"]), 16f64.powi(4)));
    assert!(near(difficulty(&["..beef", "--best", "like:dead..beef", "--score", "8"]), 16f64.powi(8)));
    let table = warpsmith(&[&usual[..], &["--best", "uniswap"]].concat()).code(0).json();
    let rows = table[0]["scores"].as_array().expect("a table");
    assert!((5..100).contains(&rows.len()), "{}", rows.len());
}

#[test]
fn what_is_no_score_is_refused_with_the_reason() {
    for (arguments, says) in [
        (&["eth", "--best", "zeroes"][..], &["zeroes", "leading-zeros", "uniswap"][..]),
        (&["eth", "--best", "leading:x"], &["leading:x", "one hex digit"]),
        (&["eth", "--best", "0*zeros"], &["1 to 100"]),
        (&["eth", "--best", "run", "--zeros"], &["cannot be used with"]),
        (&["eth", "--best", "run", "--score", "41"], &["--score 41", "40"]),
        (&["eth", "--best", "run", "--min-score", "41"], &["--min-score 41", "40"]),
        (&["eth", "cafe", "--min-score", "4"], &["--min-score", "--best SCORE"]),
        (&["eth", "cafe", "--ties"], &["--ties", "--best SCORE"]),
        (&["eth", "--zeros", "--ties", "--min-score", "2"], &["cannot be used with"]),
        (&["eth", "cafe", "--leading-zeros", "--score", "1"], &["--score 1", "cannot be reached", "is 0"]),
        (&["eth", "cafe", "--each", "--zeros"], &["--each", "until it is stopped"]),
        (&["npub", "cafe", "--zeros"], &["--zeros"]),
    ] {
        warpsmith(arguments).code(2).says(says);
    }
}
