//! The live screen on a terminal: what must hold whatever the speed. How it looks to the last character is tested where it is drawn.
#![cfg(unix)]

use std::fs;

use tempfile::tempdir;

use crate::harness::{INFEASIBLE, mine, warpsmith};
use crate::pty::{Pty, has};
use crate::scan::{p2pkh, write};

const USUAL: (u16, u16) = (80, 24);

/// A pattern that nobody meets in minutes, and of which nobody says before the search that it is hopeless.
const RARE: &str = "zzzzzzzzz";

/// A search that does not end.
fn search(size: (u16, u16), variables: &[(&str, &str)]) -> Pty {
    Pty::start(&["npub", RARE, "--device", "cpu", "--threads", "1"], size, variables, false)
}

/// How many were tried, as the details say.
fn tried(rows: &[String]) -> u64 {
    let row = rows.iter().find(|row| row.contains(" tried (")).expect("the details are shown");
    let number = row.split(" tried (").next().and_then(|before| before.rsplit(' ').next()).expect("a number");
    number.replace(',', "").parse().unwrap_or_else(|_| panic!("{row}"))
}

/// Nothing of the block is left.
#[track_caller]
fn assert_gone(rows: &[String]) {
    for part in ["luck ", "covered ━", "q stop", "running  ", "stopping  "] {
        assert!(!has(rows, part), "'{part}' was left behind:\n{}", rows.join("\n"));
    }
}

#[test]
fn keys_show_more_pause_and_stop() {
    let mut pty = search(USUAL, &[]);
    // A picture may be seen half drawn.
    let parts = [
        "running ",
        "npub  zzzz",
        "1 in ",
        "luck ",
        "next match 50 % ",
        "cpu ",
        "s details   p pause   q stop",
    ];
    pty.wait_for("the block", |rows| parts.iter().all(|part| has(rows, part)));
    assert!(!pty.is_as_shells_have_it() && pty.hides_cursor(), "keys come one by one");

    pty.press("s");
    let rows = pty.wait_for_text("s fewer details");
    assert!(has(&rows, "workers see public points only") && has(&rows, "90 % "), "{rows:?}");

    pty.press("p");
    pty.wait_for_text("paused ");
    // What was under way when it was pressed has ended by then, and from then on nothing moves.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let before = tried(&pty.rows());
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(tried(&pty.rows()), before, "it works while it is paused");
    assert!(has(&pty.rows(), "p go on"));
    assert!(!has(&pty.rows(), "/s") && !has(&pty.rows(), "100 %"), "{:?}", pty.rows());
    pty.press("p");
    pty.wait_for("more", |rows| has(rows, "running ") && tried(rows) > before);

    pty.press("s");
    pty.wait_for("fewer details", |rows| has(rows, "s details"));
    pty.press("q");
    let left = pty.finish();
    assert_eq!(left.code, Some(130), "{}", left.text);
    assert_gone(&left.rows);
    let said = left.rows.concat();
    assert!(said.contains("interrupted: no match") && said.contains("nothing is lost by stopping"), "{said}");
}

#[test]
fn a_paused_search_stops_too() {
    let mut pty = search(USUAL, &[]);
    pty.wait_for_text("running ");
    pty.press("p");
    pty.wait_for_text("paused ");
    pty.press("q");
    assert_eq!(pty.finish().code, Some(130));
}

#[test]
fn every_width_has_its_figures_and_no_row_is_broken() {
    for (columns, is_narrow) in [(40, true), (80, false), (200, false)] {
        let mut pty = search((columns, 24), &[]);
        let rows = pty.wait_for("figures", |rows| has(rows, "luck ") && has(rows, "50 % "));
        assert!(has(&rows, "running ") && has(&rows, "/s"), "{rows:?}");
        assert_eq!(rows.len() == 3, is_narrow, "{columns} columns:\n{}", rows.join("\n"));
        assert!(rows.iter().all(|row| row.chars().count() < usize::from(columns)), "{rows:?}");
        pty.press("q");
        assert_gone(&pty.finish().rows);
    }
}

#[test]
fn a_resize_leaves_nothing_behind() {
    let mut pty = search(USUAL, &[]);
    pty.wait_for_text("q stop");
    // What was on its way when the window became narrow would be broken by this terminal, so it becomes so when all is narrow.
    pty.tell_size(40, 24);
    let rows = pty.wait_for("three rows", |rows| rows.len() == 3 && has(rows, "luck "));
    assert!(!has(&rows, "npub  zzz"), "{rows:?}");
    pty.show_size(40, 24);
    pty.show_size(120, 30);
    pty.tell_size(120, 30);
    let rows = pty.wait_for_text("q stop");
    for part in ["npub  zzz", "luck ", "running ", "q stop"] {
        assert_eq!(rows.iter().filter(|row| row.contains(part)).count(), 1, "{part}:\n{}", rows.join("\n"));
    }
    // Lower than the block.
    pty.tell_size(120, 4);
    pty.wait_for("three rows", |rows| rows.len() == 3 && has(rows, "npub  zzz"));
    pty.press("q");
    assert_gone(&pty.finish().rows);
}

#[test]
fn results_pass_above_the_block_whole() {
    let args = ["npub", "qqq", "--device", "cpu", "--threads", "1", "--count", "0"];
    let mut pty = Pty::start(&args, USUAL, &[], false);
    // One after the other, in no hurry, on a slow machine as on a fast one.
    pty.wait_for("a result above the block", |rows| {
        let block = rows.iter().position(|row| row.contains("luck "));
        block.is_some_and(|block| has(&rows[..block], "secret   nsec1")) && has(rows, "last  npub1qqq")
    });
    pty.press("q");
    let left = pty.finish();
    assert_gone(&left.rows);
    let mut count = 0;
    for result in left.text.split("address  npub1").skip(1) {
        let lines: Vec<&str> = result.splitn(5, "\r\n").collect();
        assert!(
            lines[0].len() == 58 && lines[0].bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("secret   nsec1") && lines[1].len() == 72, "{lines:?}");
        assert!(lines[2].starts_with("hex      ") && lines[3].starts_with("public   0"), "{lines:?}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn the_block_names_addresses_and_no_keys() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.txt");
    let file = file.to_str().unwrap();
    let args = ["npub", "qqq", "--device", "cpu", "--threads", "1", "--count", "0", "--output", file];
    let mut pty = Pty::start(&args, (200, 30), &[], false);
    pty.wait_for("a match", |rows| has(rows, "last  npub1qqq") && has(rows, "found") && has(rows, "to /"));
    pty.press("q");
    let left = pty.finish();
    assert!(!left.text.contains("nsec1"), "{}", left.text);
    let kept = fs::read_to_string(file).unwrap();
    for secret in kept.lines().filter_map(|line| line.strip_prefix("hex      ")) {
        assert!(!left.text.contains(secret));
    }
}

#[test]
fn no_color_means_no_colours() {
    let coloured = |text: &str| {
        let codes = text.split("\u{1b}[").skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            rest[end..].starts_with('m').then(|| rest[..end].to_owned())
        });
        codes.collect::<Vec<_>>()
    };
    let no_color = ("NO_COLOR", "1");
    for (variables, has_any) in [
        (&[no_color][..], false),
        (&[], true),
        (&[no_color, ("WARPSMITH_COLOR", "always")], true),
        (&[no_color, ("WARPSMITH_COLOR", "auto")], false),
    ] {
        let mut pty = search(USUAL, variables);
        pty.wait_for_text("luck ");
        pty.press("q");
        let codes = coloured(&pty.finish().text);
        assert_eq!(!codes.is_empty(), has_any, "{codes:?}");
    }
}

#[test]
fn without_utf_8_there_is_ascii() {
    let mut pty = search(USUAL, &[("LANG", "C")]);
    let rows = pty.wait_for_text("luck ");
    assert!(rows.iter().all(|row| row.is_ascii()), "{rows:?}");
    pty.press("q");
    assert!(pty.finish().text.is_ascii());
}

#[test]
fn a_dumb_terminal_gets_lines_and_nothing_that_commands_it() {
    let args = ["npub", INFEASIBLE, "--device", "cpu", "--progress-interval", "200ms", "--time-limit", "2s"];
    let left = Pty::start(&args, USUAL, &[("TERM", "dumb")], false).finish();
    assert_eq!(left.code, Some(1), "{}", left.text);
    assert!(!left.text.contains('\u{1b}'), "{}", left.text);
    assert!(left.text.lines().any(is_stamped), "{}", left.text);
}

/// `2026-11-17 14:32:10  312.4 M/s, ...`.
fn is_stamped(line: &str) -> bool {
    let shape: String = line.chars().take(21).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00 00:00:00  " && line.contains("tried (")
}

#[test]
fn where_there_is_no_terminal_lines_come_as_often_as_asked() {
    let run = mine(&[INFEASIBLE, "--progress-interval", "200ms", "--time-limit", "3s"]).code(1);
    assert!(run.stderr.lines().filter(|line| is_stamped(line)).count() >= 2, "{run:?}");
    let run = mine(&[INFEASIBLE, "--progress-interval", "1h", "--time-limit", "1s"]).code(1);
    assert!(!run.stderr.lines().any(is_stamped), "{run:?}");
    let args =
        [INFEASIBLE, "--json", "--progress", "json", "--progress-interval", "100ms", "--time-limit", "2s"];
    assert!(mine(&args).code(1).json().len() >= 3);
    mine(&["q", "--progress-interval", "1ms"]).code(2).says(&["100ms or more"]);
}

#[test]
fn keys_are_left_to_whoever_reads_a_pipe() {
    let args = ["npub", INFEASIBLE, "--device", "cpu", "--threads", "1"];
    let mut pty = Pty::start(&args, USUAL, &[], true);
    let rows = pty.wait_for_text("luck ");
    assert!(!has(&rows, "q stop"), "{rows:?}");
    assert!(pty.is_as_shells_have_it());
    // Ctrl-C is a signal here as everywhere.
    pty.press("\u{3}");
    let left = pty.finish();
    assert_eq!(left.code, Some(130));
    assert_gone(&left.rows);
}

#[test]
fn signals_put_the_terminal_back() {
    // Ctrl-C, and twice of it.
    for keys in ["\u{3}", "\u{3}\u{3}", "qq"] {
        let mut pty = search(USUAL, &[]);
        pty.wait_for_text("luck ");
        pty.press(keys);
        let left = pty.finish();
        assert_eq!(left.code, Some(130), "{keys:?}");
        assert_gone(&left.rows);
    }
}

#[test]
fn a_stopped_program_leaves_the_terminal_to_others_and_goes_on() {
    let mut pty = search(USUAL, &[]);
    pty.wait_for_text("luck ");
    // Ctrl-Z.
    pty.press("\u{1a}");
    pty.wait_until_stopped();
    assert!(pty.is_as_shells_have_it());
    pty.wait_for("a clear terminal", |rows| !has(rows, "luck "));
    assert!(!pty.hides_cursor());
    pty.go_on();
    pty.wait_for_text("luck ");
    pty.press("q");
    assert_eq!(pty.finish().code, Some(130));
}

#[test]
fn a_scan_says_what_is_covered_found_and_saved() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (list, map, output) = (at("list.txt"), at("scan.map"), at("keys.txt"));
    write(list.as_ref(), [p2pkh(5), p2pkh(1 << 70)]);
    let args = ["scan", "--range", "1:2^60", "--targets", &list, "--map", &map, "--output", &output];
    let args = [&args[..], &["--device", "cpu", "--threads", "1"]].concat();
    let mut pty = Pty::start(&args, (120, 30), &[], false);
    let last = format!("last  {}", p2pkh(5));
    let parts =
        ["map saved ", "1 of 2 found", "scan  1:", "2 addresses", "covered ", "ends ", "tested", &last];
    pty.wait_for("a batch", |rows| parts.iter().all(|part| has(rows, part)));
    pty.press("q");
    let left = pty.finish();
    assert_eq!(left.code, Some(130));
    assert_gone(&left.rows);
    assert!(left.text.contains("nothing is lost by stopping: the same command goes on from here"));
}

#[test]
fn a_range_that_is_a_secret_is_not_shown() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (list, range) = (at("list.txt"), at("range.txt"));
    write(list.as_ref(), [p2pkh(5)]);
    crate::harness::write_private(&range, "abcdef123400000000:abcdef1234ffffffff\n");
    let args = ["scan", "--range-file", &range, "--targets", &list, "--device", "cpu", "--threads", "1"];
    let mut pty = Pty::start(&args, (200, 30), &[], false);
    pty.wait_for_text("covered ");
    pty.press("s");
    pty.wait_for_text("s fewer details");
    pty.press("q");
    let left = pty.finish();
    assert!(!left.text.contains("abcdef1234"), "{}", left.text);
}

/// A driver that compiles cannot be told to stop; the program ends all the same.
#[test]
fn a_scan_whose_kernels_are_being_compiled_ends() {
    if !warpsmith(&["devices"]).stdout.contains("opencl:0") {
        eprintln!("SKIPPED: no OpenCL device; install pocl-opencl-icd");
        return;
    }
    let folder = tempdir().unwrap();
    let list = folder.path().join("list.txt");
    write(&list, [p2pkh(5)]);
    let args = ["scan", "--range", "1:2^60", "--targets", list.to_str().unwrap(), "--device", "opencl:0"];
    // Without a cache there is something to compile, and PoCL has one of its own.
    let pocl = folder.path().join("pocl");
    let variables = [("WARPSMITH_CACHE", ""), ("POCL_CACHE_DIR", pocl.to_str().unwrap())];
    let mut pty = Pty::start(&args, USUAL, &variables, false);
    let preparing = |rows: &[String]| has(rows, "compiling kernels, ") || has(rows, "self-test, ");
    pty.wait_for("a kernel that is compiled", preparing);
    pty.press("q");
    let left = pty.finish();
    assert_eq!(left.code, Some(130));
    assert!(left.rows.concat().contains("interrupted: no match"), "{}", left.rows.join("\n"));
    assert_gone(&left.rows);
}
