//! Signals with a driver loaded that has handlers of its own, as the compiler in PoCL has.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::harness::{BINARY, signal, warpsmith};

/// Whether there is an OpenCL device.
fn has_device() -> bool {
    let has = warpsmith(&["devices"]).stdout.contains("opencl:0");
    if !has {
        eprintln!("SKIPPED: no OpenCL device; install pocl-opencl-icd");
    }
    has
}

/// A search on an OpenCL device that has run for a while; none where there is no such device.
fn search() -> Option<Child> {
    if !has_device() {
        return None;
    }
    let mut command = Command::new(BINARY);
    command.args(["npub", "zzzzzzzzzzzzzzzz", "--device", "opencl:0", "--json", "--progress", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Progress comes a second after every kernel was built.
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("progress"), "{first:?}");
    Some(child)
}

fn said(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn an_interrupt_is_graceful_with_a_driver_loaded() {
    for name in ["INT", "TERM", "HUP"] {
        let Some(mut child) = search() else { return };
        signal(&child, name);
        let said = said(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}: {said}");
        assert!(said.contains("interrupted: no match"), "{name}: {said}");
    }
}

#[test]
fn a_second_interrupt_and_a_quit_end_it_at_once() {
    let Some(mut child) = search() else { return };
    // Stopped, it gets both at once when it goes on: the second finds the first unanswered.
    signal(&child, "STOP");
    signal(&child, "INT");
    signal(&child, "TERM");
    signal(&child, "CONT");
    let said = said(&mut child);
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(!said.contains("interrupted"), "it did not wait for the search to end: {said}");

    let Some(mut child) = search() else { return };
    signal(&child, "QUIT");
    let ended = (0..600).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    child.kill().unwrap();
    assert_eq!(ended.expect("it was not swallowed").signal(), Some(3));
}

/// A command that has nothing to save ends at once by our handler, not by whatever the driver does with a signal.
#[test]
fn a_self_test_is_interrupted_by_our_handler() {
    if !has_device() {
        return;
    }
    let mut command = Command::new(BINARY);
    command.args(["selftest", "--device", "opencl:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Each line comes after its kernels were built.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().take(3).all(|line| line.unwrap().contains("planted")));
    // The handlers are put back ten times a second.
    std::thread::sleep(std::time::Duration::from_secs(1));
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// The blocks of one kind of program are found by themselves, remembered, and taken for the next search; what no `tune` would write is
/// not.
#[test]
fn a_kind_of_program_is_tuned_by_itself() {
    if !has_device() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(args).args(["--device", "opencl:0", "--json"]).env("XDG_CACHE_HOME", cache.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<serde_json::Value>>()
    };
    let tuned = run(&["tune", "create2"]);
    let tried: Vec<&serde_json::Value> = tuned.iter().filter(|line| line["event"] == "tune").collect();
    for line in &tried {
        assert_eq!((&line["target"], &line["program"]), (&"create2".into(), &"hash".into()));
        assert!(line["rate"].as_f64().unwrap() > 0.0, "{line}");
    }
    let mut first: Vec<&str> = tried
        .iter()
        .filter(|line| line["final"] == false)
        .map(|line| line["shape"].as_str().unwrap())
        .collect();
    let all = first.len();
    first.dedup();
    assert!(all >= 2 && first.len() == all, "each once: {first:?}");
    let best = tried.iter().rev().find(|line| line["best"] == true).unwrap()["shape"].as_str().unwrap();
    let folder = cache.path().join("warpsmith/kernels");
    let kept = || -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|ending| ending == "blocks")).collect()
    };
    let [file] = &kept()[..] else { panic!("{:?}", kept()) };
    assert_eq!(std::fs::read_to_string(file).unwrap().trim_end(), best);
    for text in [first[0], first[1], "blocks=1000000", "nonsense"] {
        std::fs::write(file, text).unwrap();
        let bench = run(&["bench", "create2", "--seconds", "0.5"]);
        assert!(bench[0]["rate"].as_f64().unwrap() > 0.0, "{text}: {bench:?}");
    }
}
