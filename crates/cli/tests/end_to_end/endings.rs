//! Exit codes, and that every refusal says what to do.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::harness::{
    BINARY, INFEASIBLE, Run, mine, signal, start_mining, verified_secret, wait_for_introduction, warpsmith,
};

#[test]
fn a_time_limit_without_a_match_is_1_and_with_one_is_0() {
    mine(&[INFEASIBLE, "--time-limit", "1s"]).code(1).says(&["time limit reached", "no match"]);
    let run = mine(&["q", "--count", "0", "--time-limit", "500ms", "--json"]).code(0);
    assert!(run.json().len() > 1, "{run:?}");
}

#[test]
fn patterns_that_cannot_be_found_are_2() {
    let long = "q".repeat(59);
    let cases: &[(&str, &str)] = &[
        ("b", "Try '8'"),
        ("i", "Try 'l'"),
        ("o", "Try '0'"),
        ("1", "Try 'l'"),
        ("CAFE", "lower case"),
        (&long, "shorten it"),
        ("", "at least one character"),
        ("/(/", "unclosed group"),
        ("a..c..e", "cafe..babe"),
    ];
    for (pattern, fragment) in cases {
        let run = mine(&[pattern]).code(2).says(&["error: ", fragment]);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn wrong_usage_is_2_with_a_hint() {
    let cases: &[(&[&str], &str)] = &[
        (&["npub"], "warpsmith npub cafe"),
        (&["npub", "qq", "--nonsense"], "--nonsense"),
        (&["npub", "qq", "--threads", "0"], "from 1 to"),
        (&["npub", "qq", "--threads", "many"], "from 1 to"),
        (&["npub", "qq", "--device", "gpu"], "give cpu, cuda"),
        (&["npub", "qq", "--device", "cuda:x"], "not a device number"),
        (&["npub", "qq", "--time-limit", "soon"], "such as 90s"),
        (&["npub", "qq", "--time-limit", "0"], "such as 90s"),
        (&["npub", "qq", "--count", "-1"], "--count"),
        (&["npub", "qq", "--progress", "xml"], "json"),
        (&["bench", "ntfy"], "npub"),
        (&["bench", "npub", "--seconds", "0.1"], "0.5 to 3600"),
        (&["bench", "npub", "--seconds", "nan"], "0.5 to 3600"),
        (&["join"], "<RESULT>"),
        (&["verify"], "<FILE>"),
        (&["man", "ntfy"], "npub"),
        (&["completions", "cmd"], "bash"),
        (&["serve-salts", "--listen", "18090"], "127.0.0.1:18090"),
        (&["serve-salts", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:http-ish"], "0 to 65535"),
        (&["npub", "qq", "--device", "cpu", "--metrics", "9090"], "127.0.0.1:9090"),
        (&["ntfy"], "--help"),
        (&[], "Usage"),
    ];
    for (args, fragment) in cases {
        let run = warpsmith(args).code(2).says(&[fragment]);
        assert_eq!(run.stdout, "", "{args:?}");
    }
}

#[test]
fn a_device_that_is_not_there_is_3() {
    for device in ["cuda:99", "opencl:99"] {
        mine(&["qq", "--device", device]).code(3).says(&["no usable device", device, "--device cpu"]);
    }
    mine(&["qq", "--device", "gpu"]).code(2).says(&["'gpu' is no device", "opencl:1", "warpsmith devices"]);
    warpsmith(&["bench", "--device", "cuda:99"]).code(3).says(&["warpsmith devices"]);
    warpsmith(&["selftest", "--device", "cuda:99"]).code(3);
}

fn finish(child: Child) -> Run {
    child.wait_with_output().unwrap().into()
}

#[test]
fn interrupts_are_130() {
    for name in ["INT", "TERM"] {
        let child = start_mining(&[INFEASIBLE], Stdio::piped());
        signal(&child, name);
        let run = finish(child).code(130).says(&["interrupted: no match"]);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn an_interrupted_search_has_delivered_whole_results() {
    let mut child = start_mining(&["qq", "--count", "0", "--json"], Stdio::piped());
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&child, "INT");
    let mut run = finish(child).code(130);
    run.stdout.insert(0, char::from(first[0]));
    assert!(run.stdout.ends_with('\n'));
    for line in run.json() {
        verified_secret(&line);
    }
}

#[test]
fn nohup_keeps_its_meaning() {
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap '' HUP; exec "$@""#, "sh", BINARY, "npub", INFEASIBLE, "--threads", "1"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_for_introduction(&mut child);
    signal(&child, "HUP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    signal(&child, "TERM");
    finish(child).code(130);
}
