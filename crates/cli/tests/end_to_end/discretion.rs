//! Nothing that may be a secret is repeated, whatever it was given for.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::tempdir;

use crate::harness::{BINARY, Run, warpsmith, warpsmith_with};

/// Private keys as people have them.
const SECRETS: [&str; 8] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b854",
    "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b854",
    "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
    "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5",
    "ncryptsec1qgg9947rlpvqu76pj5ecreduf9jxhselq2nae2kghhvd5g7dgjtcxfqtd67p9m0w57lspw8gsq6yphnm8623nsl8xn9j4jdzz84zm3frztj3z7s35vpzmqf6ksu8r89qk5z2zxfmu5gv8th8wclt0h4p",
    "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
];

/// Every command, and each of its flags that takes a value, as the parser itself lists them for a shell.
fn flags() -> BTreeSet<(Vec<String>, String)> {
    let script = warpsmith(&["completions", "fish"]).code(0).stdout;
    let mut flags = BTreeSet::new();
    for line in script.lines().filter(|line| line.starts_with("complete -c warpsmith")) {
        let Some((_, condition)) = line.split_once(" -n \"") else { continue };
        let Some((condition, rest)) = condition.split_once('"') else { continue };
        let mut commands: Vec<String> = Vec::new();
        for part in condition.split(';').map(str::trim) {
            // "and not" says which commands are below this one, not which it is.
            if !part.contains("not ")
                && let Some((_, name)) = part
                    .rsplit_once("using_subcommand ")
                    .or_else(|| part.rsplit_once("seen_subcommand_from "))
            {
                commands.extend(name.split(' ').map(str::to_owned));
            }
        }
        let words: Vec<&str> = rest.split(' ').collect();
        let takes_value = words.iter().any(|word| ["-r", "-x"].contains(word));
        if let Some(at) = words.iter().position(|word| *word == "-l")
            && takes_value
            && !commands.is_empty()
            && commands[0] != "help"
        {
            flags.insert((commands, format!("--{}", words[at + 1])));
        }
    }
    flags
}

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
        ["pir", "build"] => &["data.pir", "no-such-input"],
        ["pir", "get"] => &["3"],
        ["pir", "bench"] => &["--entries", "1000", "--device", "cuda:99"],
        _ => &["no-such-file"],
    }
}

/// Runs in a folder of its own and looks for any part of the secret that says something.
fn try_one(arguments: &[String], secret: &str) -> bool {
    let folder = tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args(["20", BINARY]).args(arguments).current_dir(folder.path());
    let run: Run = command.output().unwrap().into();
    let core = secret.trim_start_matches("0x").to_ascii_lowercase();
    for shown in [&run.stdout, &run.stderr] {
        let shown = shown.to_ascii_lowercase();
        for piece in core.as_bytes().windows(16).step_by(4) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!shown.contains(piece), "{arguments:?} repeats {piece}: {run:?}");
        }
    }
    assert!(!run.stderr.contains("panicked"), "{arguments:?}: {run:?}");
    run.code != Some(0)
}

#[test]
fn no_argument_of_any_command_is_repeated_if_it_may_be_a_secret() {
    let flags = flags();
    for known in [(&["npub"][..], "--split-key"), (&["scan"], "--range"), (&["pir", "hint"], "--state")] {
        let (command, flag) = (known.0.iter().map(|word| word.to_string()).collect(), known.1.to_owned());
        assert!(flags.contains(&(command, flag)), "{known:?} is among {flags:?}");
    }
    assert!(flags.len() > 100, "{}", flags.len());
    let mut lines: Vec<(Vec<String>, &str)> = Vec::new();
    let mut add =
        |words: &[&str], secret| lines.push((words.iter().map(|word| word.to_string()).collect(), secret));
    for (at, (command, flag)) in flags.iter().enumerate() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let rest = rest(&flags.iter().nth(at).unwrap().0);
        // Each flag meets two of them, and each of them many flags.
        let (first, second) = (SECRETS[at % SECRETS.len()], SECRETS[(at / 3 + 4) % SECRETS.len()]);
        add(&[&command[..], &[flag.as_str(), first], rest].concat(), first);
        add(&[&command[..], &[&format!("{flag}={second}")]].concat(), second);
    }
    let commands: BTreeSet<_> = flags.iter().map(|(command, _)| command).collect();
    for (at, command) in commands.into_iter().enumerate() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        for secret in SECRETS {
            add(&[&words[..], &[secret]].concat(), secret);
        }
        let secret = SECRETS[at % SECRETS.len()];
        add(&[&words[..], rest(command), &[secret]].concat(), secret);
        add(&[&words[..], &[&format!("--{secret}")]].concat(), secret);
    }
    for secret in SECRETS {
        for words in [&[secret][..], &["help", secret], &["man", secret], &["completions", secret]] {
            add(words, secret);
        }
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
    // Two at a time: most end at once.
    let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((arguments, secret)) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    refused.fetch_add(usize::from(try_one(arguments, secret)), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(refused.into_inner() > lines.len() / 2, "most of these make no sense");
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
