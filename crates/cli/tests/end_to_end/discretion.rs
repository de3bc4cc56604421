//! Nothing that may be a secret is repeated, whatever it was given for.

use std::process::Command;

use tempfile::tempdir;
use warpsmith_trials::programs::{SECRETS, check_secrets, flags};

use crate::harness::{BINARY, PROGRAM, Run, warpsmith, warpsmith_with};

/// What a command needs besides, to come as far as it can with a text in one place.
fn rest(command: &[String]) -> &'static [&'static str] {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    match command[..] {
        ["npub" | "eth"] => &["2222222222222222", "--time-limit", "1ms", "--device", "cpu"],
        ["btc"] => &["1222222222222222", "--time-limit", "1ms", "--device", "cpu"],
        ["create2"] => {
            &["2222222222222222", "--factory", "arachnid", "--time-limit", "1ms", "--device", "cpu"]
        }
        ["create3"] => {
            &["2222222222222222", "--factory", "createx", "--time-limit", "1ms", "--device", "cpu"]
        }
        ["scan"] => &["--device", "cpu"],
        ["bench"] => &["npub", "--seconds", "0.5", "--device", "cuda:99"],
        ["selftest" | "tune"] => &["--device", "cuda:99"],
        ["join"] => &["no-such-result.json"],
        ["db", "lookup"] => &["no-such.db", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"],
        ["db", "build" | "add"] => &["no-such.db", "no-such-list"],
        ["db", "diff"] => &["no-such.db", "other.db"],
        _ => &["no-such-file"],
    }
}

#[test]
fn no_argument_of_any_command_is_repeated_if_it_may_be_a_secret() {
    let flags = flags(&PROGRAM);
    for known in [(&["npub"][..], "--split-key"), (&["scan"], "--range")] {
        let (command, flag) = (known.0.iter().map(|word| word.to_string()).collect(), known.1.to_owned());
        assert!(flags.contains(&(command, flag)), "{known:?} is among {flags:?}");
    }
    assert!(flags.len() > 100, "{}", flags.len());
    let mut lines: Vec<(Vec<String>, &str)> = Vec::new();
    let mut add =
        |words: &[&str], secret| lines.push((words.iter().map(|word| word.to_string()).collect(), secret));
    for secret in SECRETS {
        for flag in ["--split-key", "--device", "--count", "--time-limit"] {
            add(&["npub", "qq", flag, secret], secret);
        }
        for pattern in [format!("..{secret}"), format!("/^{secret}/"), format!("{secret}..q")] {
            for target in ["npub", "eth", "btc"] {
                add(&[target, &pattern], secret);
            }
        }
        for range in [format!("1:{secret}"), format!("{secret}:ff"), format!("{secret}:{secret}")] {
            add(&["scan", "--range", &range, "--targets", "none.txt", "--device", "cpu"], secret);
        }
    }
    check_secrets(&PROGRAM, rest, lines);
}

#[test]
fn secrets_in_files_are_not_repeated_either() {
    let folder = tempdir().unwrap();
    for secret in SECRETS {
        let run = warpsmith_with(&["npub", "--patterns", "-"], format!("qq\n\n{secret}\n").as_bytes());
        let run = run.code(2).says(&["standard input, line 3"]);
        assert!(!run.stderr.contains(&secret[8..]), "{run:?}");
        let file = folder.path().join("targets.txt");
        std::fs::write(&file, format!("{secret}\n")).unwrap();
        let run = warpsmith(&["scan", "--range", "1:ff", "--strict", "--targets", file.to_str().unwrap()]);
        assert!(!run.stderr.contains(&secret[8..]), "{run:?}");
        let result = format!(
            r#"{{"target":"{secret}","address":"{secret}","split":{{"offset":"{secret}","endo":1,"negate":false}}}}"#
        );
        let run = warpsmith_with(&["join", "--secret-key-file", "/dev/null", "-"], result.as_bytes()).code(2);
        assert!(!run.stderr.contains(&secret[8..]), "{run:?}");
    }
}

/// What has no end, or no lines, is refused by its size, in little memory.
#[test]
fn endless_files_and_endless_lines_are_refused() {
    let bounded = |script: &str| -> Run {
        let mut command = Command::new("timeout");
        // 1 GB of address space is more than a search needs and less than such a line would take.
        command.args(["60", "sh", "-c", &format!("ulimit -v 1000000; {script}"), "sh", BINARY]);
        command.output().unwrap().into()
    };
    for endless in ["/dev/zero", "/dev/full"] {
        bounded(&format!(r#""$1" npub --patterns {endless}"#)).code(2).says(&["line 1", "4096 bytes"]);
    }
    let line = r#"{ echo qq; head -c 1500000000 /dev/zero | tr '\0' q; } | "$1" npub --patterns -"#;
    bounded(line).code(2).says(&["standard input, line 2", "4096 bytes"]);
    bounded(r#""$1" join --secret-key-file /dev/null /dev/zero"#).code(2).says(&["longer than"]);
    bounded(r#""$1" join --secret-key-file /dev/zero /dev/null"#).code(2);
    let code = r#""$1" create2 cafe --factory arachnid --init-code /dev/zero"#;
    bounded(code).code(2).says(&["longer than"]);
}
