//! The same mistake is answered alike by every command: the exit code, what to do about it, and a document where those were
//! asked for.

use warpsmith::chain::CHAINS;
use warpsmith_trials::programs::{
    check_missing_files, check_unknown_devices, check_unknown_flags, commands, mistaken,
};

use crate::harness::{PROGRAM, warpsmith};

#[test]
fn a_flag_that_nobody_knows_is_2_everywhere() {
    let commands = check_unknown_flags(&PROGRAM);
    assert!(commands > 40, "{commands}");
}

#[test]
fn a_device_that_is_none_is_2_everywhere() {
    let commands = check_unknown_devices(&PROGRAM);
    assert!(commands > 20, "{commands}");
}

/// A public key.
const GENERATOR: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

const DEPLOYER: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

/// A command line for each command, apart from those of a fleet that searches: what it needs to go to work. `NONE` is a file that is
/// not there, `FILE` one that is, with nothing in it of use, `NEW` a name for what is made.
fn whole() -> Vec<(&'static str, Vec<&'static str>)> {
    let hash = "0x2b4d2c1b4f7e3a5d6c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f0a9b8c7d690";
    let mut lines: Vec<(&str, Vec<&str>)> = vec![
        ("create2", vec!["cafe", "--deployer", DEPLOYER, "--init-code-hash", hash, "--patterns", "NONE"]),
        ("create2", vec!["cafe", "--deployer", DEPLOYER, "--init-code", "NONE"]),
        ("create2", vec!["cafe", "--rule", "NONE"]),
        ("create3", vec!["cafe", "--deployer", DEPLOYER, "--patterns", "NONE"]),
        ("create2 explain", vec!["--rule", "NONE", "--salt", "7"]),
        ("create3 explain", vec!["--rule", "NONE", "--salt", "7"]),
        ("create2", vec!["--deployer", DEPLOYER, "--init-code-hash", hash, "--score-file", "NONE"]),
        ("create3", vec!["--deployer", DEPLOYER, "--score-file", "NONE"]),
        ("eth", vec!["--score-file", "NONE"]),
        ("serve-salts", vec!["--listen", "127.0.0.1:0", "--token-file", "NONE"]),
        ("scan", vec!["--range", "1:ff", "--targets", "NONE"]),
        ("scan", vec!["--range", "1:ff", "--database", "NONE", "--device", "cpu"]),
        ("scan", vec!["--range-file", "NONE", "--targets", "FILE"]),
        ("scan", vec!["--mask-file", "NONE", "--targets", "FILE"]),
        ("scan", vec!["--keys", "NONE", "--public-key", GENERATOR]),
        ("db build", vec!["NEW", "NONE"]),
        ("db info", vec!["NONE"]),
        ("db lookup", vec!["NONE", "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"]),
        ("db verify", vec!["NONE"]),
        ("db list", vec!["NONE"]),
        ("db diff", vec!["NONE", "FILE"]),
        ("db add", vec!["NONE", "FILE"]),
        ("map show", vec!["NONE"]),
        ("map merge", vec!["NEW", "NONE"]),
        ("fleet invite", vec!["NONE", "me"]),
        ("fleet remove", vec!["NONE", "me"]),
        ("fleet work", vec!["NONE"]),
        ("fleet status", vec!["NONE"]),
        ("fleet watch", vec!["NONE"]),
        ("fleet cancel", vec!["NONE", "1"]),
        ("fleet result", vec!["NONE", "1"]),
        ("keygen", vec!["--output", "NONE/own.key"]),
        ("join", vec!["NONE"]),
        ("verify", vec!["NONE"]),
        ("bench", vec!["npub", "--patterns", "NONE"]),
        ("bench", vec!["scan", "--database", "NONE", "--device", "cpu"]),
    ];
    for chain in CHAINS.iter() {
        lines.push((chain.name, vec![chain.example, "--patterns", "NONE"]));
        lines.push((chain.name, vec![chain.example, "--device", "cpu", "--output", "NONE/keys.txt"]));
    }
    lines
}

/// Commands that read no file, and those of `fleet submit`, which are the same commands again.
fn reads_nothing(name: &str) -> bool {
    let none = ["fleet init", "config show", "selftest", "tune", "devices", "completions", "man"];
    none.contains(&name) || name.starts_with("fleet submit")
}

#[test]
fn a_file_that_is_not_there_is_2_everywhere_and_named() {
    check_missing_files(&PROGRAM, &whole(), reads_nothing);
}

#[test]
fn a_pattern_that_cannot_be_is_2_everywhere_and_every_suggestion_is_possible() {
    let all = commands(&PROGRAM);
    let salts: [(&str, &[&str]); 2] = [
        ("create2", &["--factory", "arachnid", "--init-code-hash", &"ab".repeat(32)]),
        ("create3", &["--deployer", DEPLOYER]),
    ];
    let mines = CHAINS.iter().map(|chain| (chain.name, &[][..])).chain(salts);
    let mistakes =
        ["^cafe", "cafe$", "cafe,face", "CAFE!", "lave", "bob", "..love", "ca*e", "/cafe", "a..c..e", "/(/"];
    let mut proposed = 0;
    for (name, more) in mines {
        let (_, page) = all.iter().find(|(words, _)| words.join(" ") == name).expect(name);
        for mistake in mistakes {
            // What can be searched for ends for want of that device.
            let accepts = |patterns: &[&str], more: &[&str]| {
                let none = ["--device", "cuda:99"];
                warpsmith(&[&[name], patterns, &none, more].concat()).code == Some(3)
            };
            if accepts(&[mistake], more) {
                continue;
            }
            let run = mistaken(&PROGRAM, &[&[name, mistake][..], more].concat(), page, 2);
            for line in run.stderr.lines() {
                // Where the type is left open, each has its own.
                let kind = line.trim().strip_prefix("--type ").and_then(|rest| rest.split_once(':'));
                let kind = kind.map_or(vec![], |(kind, _)| vec!["--type", kind]);
                let Some((_, tries)) = line.split_once(". Try ") else { continue };
                for suggestion in tries.split('\'').skip(1).step_by(2) {
                    let patterns: Vec<&str> = suggestion.split(' ').collect();
                    let more = [more, &kind].concat();
                    assert!(accepts(&patterns, &more), "{name} {mistake} proposes {suggestion}");
                    proposed += 1;
                }
            }
        }
    }
    assert!(proposed > 20, "{proposed}");
    let btc = |pattern: &str| warpsmith(&["btc", pattern]).code(2);
    btc("lave").says(&["Try 'bc1qlave', 'bc1plave' or '1Lave'"]);
    btc("^1Love").says(&["Try '1Love' (begins with)"]);
    btc("1Love,1Cafe").says(&["separate patterns by spaces", "'1Love 1Cafe'"]);
    btc("..ove").says(&["add --type p2pkh, p2pkh-uncompressed or p2sh\n"]);
    btc("..lo").says(&["no type of address can look so", "--type p2wpkh: "]);
}

#[test]
fn where_one_of_several_flags_is_needed_all_are_named() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["create2", "cafe", "--deployer", DEPLOYER], &["--init-code-hash", "--init-code FILE"]),
        (&["create2", "cafe", "--init-code-hash", "0x00"], &["--deployer", "--factory"]),
        (
            &["create2", "cafe", "--deployer", DEPLOYER, "--init-code-hash", "0x00"],
            &["--init-code-hash", "64 hex digits", "--init-code FILE"],
        ),
        (&["create3", "cafe"], &["--deployer 0x.."]),
        (&["create3", "cafe", "--factory", "lifi"], &["--salt-layout caller:0x.."]),
        (&["create3", "cafe", "--deployer", DEPLOYER, "--chain-id", "1"], &["--chain-id"]),
        (&["scan", "--range", "1:ff"], &["--targets", "--database", "--public-key"]),
        (&["scan", "--public-key", "02"], &["--range <A:B>", "--range-file"]),
    ];
    for (args, fragments) in cases {
        warpsmith(args).code(2).says(fragments);
    }
}
