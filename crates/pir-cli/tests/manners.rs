//! The same mistake is answered alike by every command.

use tempfile::tempdir;
use warpsmith_trials::programs::{
    check_missing_files, check_unknown_devices, check_unknown_flags, commands, mistaken,
};

use crate::harness::{PROGRAM, pir};

#[test]
fn a_flag_that_nobody_knows_is_2_everywhere() {
    let commands = check_unknown_flags(&PROGRAM);
    assert!(commands > 14, "{commands}");
}

#[test]
fn a_device_that_is_none_is_2_everywhere() {
    let commands = check_unknown_devices(&PROGRAM);
    assert!(commands >= 4, "{commands}");
}

/// A command line for each command: what it needs to go to work.
fn whole() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("build", vec!["NEW", "NONE", "--entry-size", "40"]),
        ("build", vec!["NEW", "NONE"]),
        ("serve", vec!["NONE", "--listen", "127.0.0.1:0"]),
        (
            "serve",
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
        ("update", vec!["NONE", "FILE"]),
        ("fold", vec!["NONE"]),
        ("hint", vec!["--database", "NONE", "--state", "NEW", "--device", "cpu"]),
        ("get", vec!["--server", "http://127.0.0.1:1", "--state", "NONE", "1"]),
        ("proxy", vec!["--listen", "127.0.0.1:0", "--server", "http://127.0.0.1:1", "--state", "NONE"]),
        ("follow", vec!["NONE", "--rpc", "http://127.0.0.1:1"]),
        ("build", vec!["NEW", "NONE", "--format", "codes"]),
        ("build", vec!["NEW", "NONE", "--format", "text"]),
        ("build", vec!["NEW", "NONE", "--format", "accounts"]),
        ("build", vec!["NEW", "NONE", "--format", "coins"]),
        ("info", vec!["NONE"]),
        ("load", vec!["http://127.0.0.1:1", "--database", "NONE"]),
    ]
}

fn reads_nothing(name: &str) -> bool {
    ["config show", "bench", "selftest", "devices", "completions", "man"].contains(&name)
}

#[test]
fn a_file_that_is_not_there_is_2_everywhere_and_named() {
    check_missing_files(&PROGRAM, &whole(), reads_nothing);
    let folder = tempdir().unwrap();
    let none = folder.path().join("none").to_str().unwrap().to_owned();
    let all = commands(&PROGRAM);
    let (_, page) = all.iter().find(|(words, _)| words.join(" ") == "get").unwrap();
    let run = mistaken(&PROGRAM, &["get", "--server", "http://127.0.0.1:1", "--state", &none, "1"], page, 2);
    run.says(&["the state is missing", "warpsmith-pir hint"]);
}

#[test]
fn where_one_of_several_flags_is_needed_all_are_named() {
    pir(&["build", "new"]).code(2).says(&["INPUT", "--synthetic"]);
    pir(&["hint", "--state", "new"]).code(2).says(&["--server", "--database", "--hint-maker"]);
}

/// A usage line is what people copy: it names what is needed in the order in which it is taken, also where clap would show a group first.
#[test]
fn usage_lines_are_in_the_order_that_works() {
    let help = pir(&["build", "--help"]).code(0).stdout;
    assert!(help.contains("Usage: warpsmith-pir build [OPTIONS] <DBFILE> <INPUT|"), "{help}");
}
