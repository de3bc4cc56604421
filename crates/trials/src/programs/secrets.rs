//! Nothing that may be a secret is repeated, whatever it was given for.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::tempdir;

use super::{Program, Run};

/// Private keys as people have them.
pub const SECRETS: [&str; 8] = [
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
pub fn flags(program: &Program) -> BTreeSet<(Vec<String>, String)> {
    let script = program.run(&["completions", "fish"], b"").code(0).stdout;
    let start = format!("complete -c {} ", program.name);
    let mut flags = BTreeSet::new();
    for line in script.lines().filter(|line| line.starts_with(&start)) {
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

/// Runs in a folder of its own and looks for any part of the secret that says something.
fn try_one(program: &Program, arguments: &[String], secret: &str) -> bool {
    let folder = tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args(["20", program.binary]).args(arguments).current_dir(folder.path());
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

/// Gives every command and each of its flags texts that may be secrets, and runs `more` lines, each with the secret it has; none may be
/// repeated. `rest` is what a command needs besides.
pub fn check_secrets(
    program: &Program,
    rest: fn(&[String]) -> &'static [&'static str],
    more: Vec<(Vec<String>, &'static str)>,
) {
    let flags = flags(program);
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
    }
    lines.extend(more);
    // Two at a time: most end at once.
    let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((arguments, secret)) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    refused.fetch_add(usize::from(try_one(program, arguments, secret)), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(refused.into_inner() > lines.len() / 2, "most of these make no sense");
}
