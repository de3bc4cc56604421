//! Defaults from files and the environment, short flags, completions, and commands that are run for results.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::tempdir;

use crate::harness::{BINARY, PATIENCE, Run, mine, text, verified_secret, warpsmith};

/// Runs the binary in a folder that is also the home of its user.
fn at(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Run {
    let mut command = assert_cmd::Command::new(BINARY);
    command.current_dir(folder).env("XDG_CONFIG_HOME", folder.join("config")).timeout(PATIENCE).args(args);
    command.envs(variables.iter().copied());
    command.output().expect("the binary starts").into()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn short_flags_are_those_of_daily_use() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.txt");
    let args = ["npub", "q", "-n", "2", "-d", "cpu", "-t", "1", "-q", "-j", "-o", file.to_str().unwrap()];
    let run = warpsmith(&args).code(0);
    assert_eq!((run.json().len(), run.stderr.as_str()), (2, ""), "{run:?}");
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
    let run = warpsmith(&["npub", "bob", "-j"]).code(2);
    assert_eq!(text(&run.documents()[0], "event"), "error");
    let run = warpsmith(&["npub", "q", "-j", "--nonsense"]).code(2);
    assert_eq!(text(&run.documents()[0], "event"), "error");
    let help = warpsmith(&["eth", "--help"]).code(0).stdout;
    for heading in ["Patterns:", "Devices:", "Results:", "When it ends:", "While it runs:", "The contract:"] {
        assert!(help.lines().any(|line| line == heading), "{heading}: {help}");
    }
}

#[test]
fn completions_know_the_names_there_are() {
    for shell in ["bash", "zsh", "fish"] {
        let script = warpsmith(&["completions", shell]).code(0).stdout;
        for name in ["opencl", "createx", "arachnid", "p2wpkh", "fuse16", "serve"] {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
}

#[test]
fn what_is_said_later_counts_and_config_show_says_where_it_was() {
    let folder = tempdir().unwrap();
    let (user, here) =
        (folder.path().join("config/warpsmith/warpsmith.toml"), folder.path().join("warpsmith.toml"));
    let show = |variables: &[(&str, &str)]| {
        at(folder.path(), variables, &["config", "show", "--json"]).code(0).json()
    };
    let setting = |lines: &[serde_json::Value], name: &str| {
        let line =
            lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {lines:?}"));
        (line["value"].clone(), text(line, "source").to_owned(), line["from"].clone())
    };
    assert!(show(&[]).iter().all(|line| line["source"] == "default" && line["value"].is_null()));
    write(&user, "device = 'cpu'\nlaunch_ms = 20\ncolor = 'never'\nthreads = 2\n");
    write(&here, "device = ['cpu:portable']\n");
    let lines = show(&[("WARPSMITH_LAUNCH_MS", "30")]);
    assert_eq!(setting(&lines, "device").0, serde_json::json!(["cpu:portable"]));
    assert_eq!(setting(&lines, "device").2, "warpsmith.toml");
    let (value, source, from) = setting(&lines, "launch_ms");
    assert_eq!((value, source.as_str(), from), (30.into(), "environment", "WARPSMITH_LAUNCH_MS".into()));
    let (value, source, from) = setting(&lines, "color");
    assert_eq!((value, source.as_str()), ("never".into(), "file"));
    assert_eq!(from, user.to_str().unwrap());

    assert_eq!(setting(&lines, "threads").0, 2);

    let run = at(folder.path(), &[], &["npub", "q", "-v"]).code(0);
    assert!(run.stderr.contains("device    cpu:portable"), "{run:?}");
    // What is set, and on what it ran.
    for detail in [
        "verbose: warpsmith 0.1.0",
        "verbose: threads = 2 from ",
        "verbose: device cpu:portable",
        "2 threads",
        "exit code 0 after",
    ] {
        assert!(run.stderr.contains(detail), "{detail}: {run:?}");
    }
    assert!(!at(folder.path(), &[], &["npub", "q"]).code(0).stderr.contains("verbose"));
    let run = at(folder.path(), &[("WARPSMITH_DEVICE", "cuda:99")], &["npub", "q"]).code(3);
    assert!(run.stderr.contains("cuda:99"), "{run:?}");
    let run =
        at(folder.path(), &[("WARPSMITH_DEVICE", "cuda:99")], &["npub", "q", "-d", "cpu", "-t", "1"]).code(0);
    assert!(run.stderr.contains("device    cpu:"), "{run:?}");
    let run = at(folder.path(), &[], &["config", "show"]).code(0);
    assert!(run.stdout.contains("cpu:portable  from warpsmith.toml"), "{run:?}");
}

#[test]
fn help_has_the_colours_that_are_asked_for() {
    let folder = tempdir().unwrap();
    let is_coloured = |variables: &[(&str, &str)], args: &[&str]| {
        at(folder.path(), variables, &[args, &["npub", "--help"]].concat()).code(0).stdout.contains('\u{1b}')
    };
    // Not where the output is no terminal, unless somebody says so; the command line counts most.
    assert!(!is_coloured(&[], &[]) && is_coloured(&[], &["--color", "always"]));
    assert!(is_coloured(&[("WARPSMITH_COLOR", "always"), ("NO_COLOR", "1")], &[]));
    assert!(!is_coloured(&[("WARPSMITH_COLOR", "always")], &["--color=never"]));
    warpsmith(&["npub", "q", "--color", "red"]).code(2).says(&["auto, always, never"]);
}

#[test]
fn keys_go_to_the_file_that_is_set() {
    let folder = tempdir().unwrap();
    write(&folder.path().join("warpsmith.toml"), "output = 'keys.txt'\n");
    let run = at(folder.path(), &[], &["npub", "q", "-d", "cpu", "-t", "1"]).code(0);
    assert!(run.stdout.contains("output   ") && !run.stdout.contains("nsec1"), "{run:?}");
    assert!(fs::read_to_string(folder.path().join("keys.txt")).unwrap().contains("nsec1"));
    // What makes a file of its own is not meant.
    at(folder.path(), &[], &["keygen"]).code(0);
    assert!(folder.path().join("own.key").exists());
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let folder = tempdir().unwrap();
    let here = folder.path().join("warpsmith.toml");
    let cases = [
        ("# mine\ndevices = 'cpu'\n", &["warpsmith.toml, line 2", "devices"][..]),
        ("device = 'gpu'\n", &["line 1", "'gpu' is no device"]),
        ("\nlaunch_ms = 0\n", &["line 2", "1 to 1000"]),
        (
            "notify = 'true'\n",
            &["line 1", "there is no notify; expected one of device, output, color, launch_ms, threads"],
        ),
        ("threads = 'all'\n", &["line 1", "expected a whole number from 1 to 4096"]),
    ];
    for (content, says) in cases {
        write(&here, content);
        at(folder.path(), &[], &["npub", "q"]).code(2).says(says);
        let run = at(folder.path(), &[], &["devices", "--json"]).code(2);
        assert_eq!(text(&run.documents()[0], "event"), "error");
    }
    write(&here, &" ".repeat(70_000));
    at(folder.path(), &[], &["config", "show"]).code(2).says(&["warpsmith.toml", "longer than 65536 bytes"]);
    // Neither a pipe that nobody writes to nor a device without an end holds a command up.
    fs::remove_file(&here).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&here).status().unwrap().success());
    at(folder.path(), &[], &["config", "show"]).code(2).says(&["warpsmith.toml", "pipe"]);
    fs::remove_file(&here).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &here).unwrap();
    at(folder.path(), &[], &["config", "show"]).code(2).says(&["warpsmith.toml", "device"]);
    fs::remove_file(&here).unwrap();
    write(&here, "color = 'never'\n");
    fs::set_permissions(&here, Permissions::from_mode(0o666)).unwrap();
    at(folder.path(), &[], &["npub", "q"]).code(2).says(&["may be written by other users", "chmod"]);
    at(folder.path(), &[("WARPSMITH_COLOR", "red")], &["config", "show"]).code(2);
}

/// In a folder such as /tmp, a file of another user neither counts nor stops a command.
#[test]
fn a_file_of_another_user_is_not_read() {
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    let here = folder.path().join("warpsmith.toml");
    write(&here, "device = 'cuda:99'\n");
    if std::os::unix::fs::chown(&here, Some(12_345), None).is_err() {
        eprintln!("SKIPPED: files of another user can be made by root only");
        return;
    }
    let run = at(folder.path(), &[], &["config", "show"]).code(0);
    assert!(run.stdout.contains("device      not set") && run.stdout.contains("not read"), "{run:?}");
    run.says(&["warning: warpsmith.toml belongs to another user (uid 12345)"]);
    fs::remove_file(&here).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&here).status().unwrap().success());
    std::os::unix::fs::chown(&here, Some(12_345), None).unwrap();
    at(folder.path(), &[], &["config", "show"]).code(0);
}

#[test]
fn a_command_is_told_what_is_public_and_nothing_else() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let told = path("told");
    let command = format!("env > {told}.part && mv {told}.part {told}");
    let run = mine(&["qq", "--json", "--device", "cpu", "--notify", &command]).code(0);
    let line = &run.json()[0];
    verified_secret(line);
    // A slow one is left to itself.
    let begin = Instant::now();
    while !fs::exists(&told).unwrap() {
        assert!(begin.elapsed() < PATIENCE, "it never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    let told = fs::read_to_string(&told).unwrap();
    let value = |name: &str| {
        let set = told.lines().find_map(|line| line.strip_prefix(&format!("WARPSMITH_{name}=")));
        set.unwrap_or_else(|| panic!("{name}: {told}"))
    };
    assert_eq!((value("ADDRESS"), value("TARGET"), value("PATTERN")), (text(line, "address"), "npub", "qq"));
    assert_eq!(value("PUBLIC_KEY"), text(line, "public_key"));
    for secret in ["secret_key", "export"] {
        assert!(!told.contains(text(line, secret)), "{told}");
    }
    assert!(!told.contains("nsec1"), "{told}");
}

#[test]
fn a_command_that_fails_or_dawdles_is_told_once_and_waited_for_by_nobody() {
    let run = mine(&["q", "--count", "5", "--device", "cpu", "--notify", "exit 3"]).code(0);
    assert_eq!(run.stderr.matches("warning: --notify").count(), 1, "{run:?}");
    assert!(run.stderr.contains("exit status: 3"), "{run:?}");
    let started = Instant::now();
    let run = mine(&["q", "--count", "40", "--json", "--device", "cpu", "--notify", "sleep 200"]).code(0);
    assert_eq!(run.json().len(), 40);
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
    assert!(run.stderr.contains("slower than results are found"), "{run:?}");
}
