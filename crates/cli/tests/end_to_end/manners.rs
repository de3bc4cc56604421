//! The same mistake is answered alike by every command: the exit code, what to do about it, and a document where those were
//! asked for.

use std::collections::BTreeSet;
use std::fs;

use tempfile::tempdir;
use warpsmith::chain::CHAINS;

use crate::harness::{Run, text, warpsmith};

/// Every command with its manual page, in the words to call it by.
fn commands() -> Vec<(Vec<String>, String)> {
    let folder = tempdir().unwrap();
    warpsmith(&["man", "--folder", folder.path().to_str().unwrap()]).code(0);
    let pages = fs::read_dir(folder.path()).unwrap().map(|page| page.unwrap().path());
    let pages: BTreeSet<_> = pages.collect();
    let named = pages.iter().map(|path| {
        let page = fs::read_to_string(path).unwrap();
        // A name may have a hyphen, as the file's has between its words.
        let name = page.split(".SH SYNOPSIS\n\\fB").nth(1).and_then(|rest| rest.split("\\fR").next());
        // Where something stands between the words of the name, the synopsis has it so, and not in bold.
        let name = name.map(|name| name.replace("\\-", "-")).unwrap_or_else(|| {
            assert!(page.contains(".SH SYNOPSIS\nwarpsmith "), "{path:?} has no synopsis");
            path.file_stem().unwrap().to_str().unwrap().replace('-', " ")
        });
        (name.split_whitespace().skip(1).map(str::to_owned).collect(), page)
    });
    // What has commands of its own does nothing by itself, but for searches that can be explained.
    named.filter(|(_, page)| !page.contains(".SH SUBCOMMANDS") || has(page, "--device")).collect()
}

fn has(page: &str, flag: &str) -> bool {
    page.contains(&format!("\\fB{}\\fR", flag.replace('-', "\\-")))
}

/// Runs it, with `--json` where the command has that; then what went wrong is also the last document.
#[track_caller]
fn mistaken(words: &[&str], page: &str, code: i32) -> Run {
    let args = if has(page, "--json") { [words, &["--json"]].concat() } else { words.to_vec() };
    let run = warpsmith(&args).code(code);
    assert!(run.stderr.starts_with("error: "), "{args:?}: {run:?}");
    assert!(!run.stderr.contains("panicked"), "{run:?}");
    if has(page, "--json") {
        let documents = run.documents();
        let [line] = &documents[..] else { panic!("{args:?}: {run:?}") };
        assert_eq!((text(line, "event"), line["code"].as_i64()), ("error", Some(code.into())), "{run:?}");
        let message = text(line, "message");
        let first = message.lines().next().unwrap_or_default();
        assert!(!first.is_empty() && run.stderr.contains(first), "{args:?}: {run:?}");
    } else {
        assert_eq!(run.stdout, "", "{args:?}");
    }
    run
}

#[test]
fn a_flag_that_nobody_knows_is_2_everywhere() {
    let all = commands();
    assert!(all.len() > 40, "{}", all.len());
    for (words, page) in &all {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--nonsense"]).collect();
        mistaken(&words, page, 2).says(&["--nonsense", "--help"]);
    }
}

#[test]
fn a_device_that_is_none_is_2_everywhere() {
    let mut tested = 0;
    for (words, page) in commands().iter().filter(|(_, page)| has(page, "--device")) {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--device", "gpu"]).collect();
        mistaken(&words, page, 2).says(&["'gpu' is no device", "cuda", "warpsmith devices"]);
        tested += 1;
    }
    assert!(tested > 20, "{tested}");
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
        ("pir build", vec!["NEW", "NONE", "--entry-size", "40"]),
        ("pir build", vec!["NEW", "NONE"]),
        ("pir serve", vec!["NONE", "--listen", "127.0.0.1:0"]),
        (
            "pir serve",
            vec![
                "FILE",
                "--listen",
                "127.0.0.1:0",
                "--hint-maker",
                "--token-file",
                "NONE",
                "--device",
                "cpu",
            ],
        ),
        ("pir update", vec!["NONE", "FILE"]),
        ("pir fold", vec!["NONE"]),
        ("pir hint", vec!["--database", "NONE", "--state", "NEW", "--device", "cpu"]),
        ("pir get", vec!["--server", "http://127.0.0.1:1", "--state", "NONE", "1"]),
        ("pir proxy", vec!["--listen", "127.0.0.1:0", "--server", "http://127.0.0.1:1", "--state", "NONE"]),
        ("pir follow", vec!["NONE", "--rpc", "http://127.0.0.1:1"]),
        ("pir build", vec!["NEW", "NONE", "--format", "codes"]),
        ("pir build", vec!["NEW", "NONE", "--format", "text"]),
        ("pir build", vec!["NEW", "NONE", "--format", "accounts"]),
        ("pir build", vec!["NEW", "NONE", "--format", "coins"]),
        ("pir info", vec!["NONE"]),
        ("pir load", vec!["http://127.0.0.1:1", "--database", "NONE"]),
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
    let none =
        ["fleet init", "config show", "pir bench", "selftest", "tune", "devices", "completions", "man"];
    none.contains(&name) || name.starts_with("fleet submit")
}

#[test]
fn a_file_that_is_not_there_is_2_everywhere_and_named() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (none, file) = (path("none"), path("file"));
    fs::write(&file, "").unwrap();
    let (all, lines) = (commands(), whole());
    for (at, (name, args)) in lines.iter().enumerate() {
        let new = path(&format!("new-{at}"));
        let args: Vec<String> = name
            .split(' ')
            .chain(args.iter().copied())
            .map(|word| match word {
                "FILE" => file.clone(),
                "NEW" => new.clone(),
                word => word.replace("NONE", &none),
            })
            .collect();
        let (_, page) = all.iter().find(|(words, _)| words.join(" ") == *name).expect(name);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        mistaken(&args, page, 2).says(&[&none]);
        assert!(!fs::exists(&new).unwrap(), "{args:?} leaves nothing");
    }
    for (words, _) in &all {
        let name = words.join(" ");
        assert!(
            reads_nothing(&name) || lines.iter().any(|(known, _)| *known == name),
            "{name} is not tested"
        );
    }
    let page = &all.iter().find(|(words, _)| words.join(" ") == "pir get").unwrap().1;
    let run = mistaken(&["pir", "get", "--server", "http://127.0.0.1:1", "--state", &none, "1"], page, 2);
    run.says(&["the state is missing", "warpsmith pir hint"]);
}

#[test]
fn a_pattern_that_cannot_be_is_2_everywhere_and_every_suggestion_is_possible() {
    let all = commands();
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
            let run = mistaken(&[&[name, mistake][..], more].concat(), page, 2);
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
        (&["pir", "build", "new"], &["INPUT", "--synthetic"]),
        (&["pir", "hint", "--state", "new"], &["--server", "--database", "--hint-maker"]),
    ];
    for (args, fragments) in cases {
        warpsmith(args).code(2).says(fragments);
    }
}

/// A usage line is what people copy: it names what is needed in the order in which it is taken, also where clap would show a group first.
#[test]
fn usage_lines_are_in_the_order_that_works() {
    for (words, usage) in [
        (&["pir", "build", "--help"][..], "warpsmith pir build [OPTIONS] <DBFILE> <INPUT|"),
        (
            &["fleet", "submit", "dir", "pir", "hint", "--help"],
            "warpsmith fleet submit <DIR> pir hint [OPTIONS] ",
        ),
    ] {
        let help = warpsmith(words).code(0).stdout;
        assert!(help.contains(&format!("Usage: {usage}")), "{help}");
    }
}
