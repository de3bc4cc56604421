//! Lists of patterns: what of them cannot be searched for, and a result for each.

use std::collections::BTreeSet;

use crate::harness::{INFEASIBLE, Run, mine, text, verified_secret, warpsmith, warpsmith_with};

fn with_list(args: &[&str], list: &str) -> Run {
    let usual = ["--patterns", "-", "--device", "cpu", "--threads", "1"];
    warpsmith_with(&[args, &usual].concat(), list.as_bytes())
}

#[test]
fn lines_that_cannot_be_searched_for_are_told_and_left_out() {
    let run = with_list(&["npub", "--json"], "# words\nq\nbob\nq\n^z\n").code(0);
    let run = run.says(&[
        "2 patterns cannot be searched for",
        "standard input, line 3: pattern 'bob'",
        "Try '808'",
        "line 5: pattern '^z'",
        "pattern q",
    ]);
    assert!(!run.stderr.contains("the first"), "all of them are shown: {run:?}");
    verified_secret(&run.json()[0]);
    with_list(&["npub", "--strict"], "q\nbob\n").code(2).says(&["standard input, line 2", "'bob'"]);
    let many = format!("q\n{}", "b\n".repeat(30));
    let run = with_list(&["npub"], &many).code(0).says(&["30 patterns", "the first 20", "line 21:"]);
    assert!(!run.stderr.contains("line 22:"), "{run:?}");
    with_list(&["npub"], "b\no\n").code(2).says(&[
        "no pattern that can be searched for",
        "line 1:",
        "line 2:",
    ]);
    // What is written on the command line is treated alike.
    with_list(&["npub", "bob"], "q\n").code(0).says(&["1 pattern cannot be searched for", "  pattern 'bob'"]);
    mine(&["q", "bob"]).code(0).says(&["1 pattern cannot be searched for", "Try '808'"]);
    mine(&["q", "bob", "--strict"]).code(2).says(&["pattern 'bob'", "Try '808'"]);
    mine(&["bob"]).code(2).says(&["error: pattern 'bob'", "Try '808'"]);
    // So is a part of one.
    mine(&["/^(q|bob)/"])
        .code(0)
        .says(&["pattern '/^(q|bob)/': its part 'bob' can never match", "never 'b'"]);
}

#[test]
fn lines_about_another_type_of_address_are_left_out() {
    let list = "Love\n1A\n3A\n1l\nmA\n";
    let run = with_list(&["btc", "--json"], list).code(0);
    let run = run.says(&[
        "4 patterns",
        "line 1: pattern 'Love'",
        "line 3:",
        "p2sh",
        "line 4:",
        "line 5:",
        "--network test",
    ]);
    assert!(text(&run.json()[0], "address").starts_with("1A"), "{run:?}");
    with_list(&["btc"], "Love\nHate\n").code(2).says(&["pattern 'Love'", "Try '1Love'"]);
    let wif = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
    let run = with_list(&["btc"], &format!("1A\n{wif}\n")).code(2).says(&["SECRET"]);
    assert!(!run.stderr.contains("Bf89"), "{run:?}");
}

#[test]
fn each_pattern_gets_one_result() {
    let patterns = ["q", "p", "qq", "..z", "/^y.*7$/", "c?e", "q"];
    let run = mine(&[&patterns[..], &["--each", "--json"]].concat()).code(0);
    let lines = run.json();
    let found: BTreeSet<&str> = lines.iter().map(|line| text(line, "pattern")).collect();
    assert_eq!((lines.len(), &found), (6, &patterns.into_iter().collect()), "{run:?}");
    for line in &lines {
        verified_secret(line);
    }
    let done = run.documents().pop().unwrap();
    assert_eq!((&done["matches"], &done["missing"]), (&6.into(), &0.into()), "{done}");

    let run = mine(&["q", "p", "--each"]).code(0).says(&["2 of 2 patterns have a result"]);
    for pattern in ["q", "p"] {
        assert!(run.stdout.lines().any(|line| line == format!("pattern  {pattern}")), "{run:?}");
    }
    // What it says can be verified again.
    warpsmith_with(&["verify", "-"], run.stdout.as_bytes()).code(0);
    let run = mine(&["q"]).code(0);
    assert!(!run.stdout.contains("pattern"), "of one there is nothing to say: {run:?}");
}

#[test]
fn what_each_lacks_is_told_when_the_time_is_up() {
    let args = ["q", "p", INFEASIBLE, "--each", "--json", "--time-limit", "3s"];
    let run = mine(&args).code(0).says(&["2 of 3 patterns have a result"]);
    let done = run.documents().pop().unwrap();
    assert_eq!((&done["missing"], text(&done, "ended")), (&1.into(), "time_limit"), "{done}");
    assert_eq!(run.json().len(), 2, "{run:?}");
    mine(&["q", "--each", "--count", "2"]).code(2).says(&["--each", "--count"]);
    warpsmith(&["eth", "--zeros", "--each"]).code(2).says(&["--each", "until it is stopped"]);
}
