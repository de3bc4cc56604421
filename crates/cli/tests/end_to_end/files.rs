//! `--output` and stdout: secrets go where they should, whole, or nowhere.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::harness::{BINARY, Run, assert_no_secret, mine, mine_in_shell, text, verified_secret};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn with_an_output_file_secrets_go_there_alone() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let name = file.to_str().unwrap();
    let mut secrets: Vec<String> = Vec::new();
    for round in 1..=2 {
        let run =
            mine_in_shell(r#"umask 000; exec "$@""#, &["qq", "--count", "2", "--json", "--output", name])
                .code(0);
        assert_eq!(mode(&file), 0o600);
        let saved = fs::read_to_string(&file).unwrap();
        let saved: Vec<Value> = saved.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(saved.len(), 2 * round);
        secrets.extend(saved[2 * round - 2..].iter().map(|line| {
            verified_secret(line);
            text(line, "secret_key").to_owned()
        }));
        assert_eq!(text(&saved[0], "secret_key"), secrets[0], "what was there stays");
        for (told, kept) in run.json().iter().zip(&saved[2 * round - 2..]) {
            assert_eq!(text(told, "output"), name);
            let mut whole = kept.as_object().unwrap().clone();
            whole.remove("secret_key");
            whole.remove("export");
            let mut told = told.as_object().unwrap().clone();
            told.remove("output");
            assert_eq!(told, whole);
        }
        assert_no_secret(&run, &secrets.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn without_json_the_file_gets_the_labelled_lines() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.txt");
    let name = file.to_str().unwrap();
    let run = mine(&["qq", "--output", name, "--count", "2"]).code(0);
    let saved = fs::read_to_string(&file).unwrap();
    assert_eq!(saved.split("\n\n").count(), 2, "{saved}");
    let value = |label: &str| {
        let line = saved.lines().find(|line| line.starts_with(label)).unwrap();
        line[label.len()..].trim().to_owned()
    };
    verified_secret(&serde_json::json!({
        "address": value("address"), "export": value("secret"), "secret_key": value("hex"), "public_key": value("public")
    }));
    let address = value("address");
    assert!(run.stdout.starts_with(&format!("address  {address}\noutput   {name}\n\n")), "{run:?}");
    assert_no_secret(&run, &[&value("hex")]);
}

#[test]
fn a_line_without_an_end_is_not_glued_to() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.json");
    fs::write(&file, "my own notes").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    mine(&["qq", "--json", "--output", file.to_str().unwrap()]).code(0);
    let saved = fs::read_to_string(&file).unwrap();
    let (first, rest) = saved.split_once('\n').unwrap();
    assert_eq!(first, "my own notes");
    assert!(rest.ends_with('\n') && rest.lines().count() == 1, "{saved}");
    verified_secret(&serde_json::from_str(rest).unwrap());
}

#[test]
fn files_that_others_could_read_or_redirect_are_refused() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let refuse = |path: &Path, fragments: &[&str]| {
        let run = mine(&["qq", "--output", path.to_str().unwrap()]).code(4).says(fragments);
        assert_eq!(run.stdout, "");
        assert_no_secret(&run, &[]);
    };
    let open = path("open.txt");
    for bits in [0o644, 0o640, 0o604, 0o666] {
        fs::write(&open, "kept").unwrap();
        fs::set_permissions(&open, Permissions::from_mode(bits)).unwrap();
        refuse(&open, &["other users", &format!("chmod 600 {}", open.display())]);
        assert_eq!((fs::read_to_string(&open).unwrap().as_str(), mode(&open)), ("kept", bits));
    }
    let goal = path("goal.txt");
    symlink(&goal, path("dangling")).unwrap();
    refuse(&path("dangling"), &["symbolic link"]);
    assert!(!goal.exists());
    fs::write(&goal, "kept").unwrap();
    fs::set_permissions(&goal, Permissions::from_mode(0o600)).unwrap();
    refuse(&path("dangling"), &["symbolic link"]);
    assert_eq!(fs::read_to_string(&goal).unwrap(), "kept");
    refuse(folder.path(), &["folder"]);
    refuse(&path("no/such/folder"), &["cannot be opened"]);
    refuse(Path::new("/dev/full"), &["device"]);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    refuse(&path("pipe"), &["pipe"]);
    mine(&["qq", "--output", "-"]).code(2).says(&["leave --output out"]);
}

#[test]
fn a_wrong_command_line_leaves_no_file() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.txt");
    let name = file.to_str().unwrap();
    mine(&["bob", "--output", name]).code(2);
    mine(&["qq", "--split-key", "02", "--output", name]).code(2);
    mine(&["qq", "--device", "cuda:99", "--output", name]).code(3);
    mine(&["qq", "--estimate", "--output", name]).code(0);
    assert!(!file.exists());
}

#[test]
fn a_file_that_cannot_grow_ends_the_search() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.json");
    // A limit on the size of files is the full disk anybody can have.
    let script = r#"trap '' XFSZ; ulimit -f 0; exec "$@""#;
    let run = mine_in_shell(script, &["qq", "--json", "--output", file.to_str().unwrap()]).code(4);
    let run = run.says(&["could not be written", "is lost", "Make room"]);
    assert_eq!(run.stdout, "", "no second place is used");
    assert_no_secret(&run, &[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
}

/// Mines with this as stdout.
fn mine_into(stdout: Stdio, args: &[&str]) -> Run {
    let mut command = Command::new(BINARY);
    command.args(["npub", "--threads", "1"]).args(args).stdout(stdout).stderr(Stdio::piped());
    command.output().unwrap().into()
}

#[test]
fn a_full_stdout_is_a_failure() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for args in [&["qq"][..], &["qq", "--json"]] {
        let run =
            mine_into(full(), args).code(4).says(&["stdout could not be written", "is lost", "--output"]);
        assert_no_secret(&run, &[]);
    }
    let progress = ["zzzzzzzzzz", "--json", "--progress", "json", "--time-limit", "5s"];
    mine_into(full(), &progress).code(4).says(&["stdout"]);
    mine_into(full(), &["qq", "--estimate"]).code(4).says(&["stdout"]);

    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let args = ["qq", "--json", "--output", file.to_str().unwrap()];
    let run = mine_into(full(), &args).code(4).says(&["the result itself is safe in"]);
    assert_no_secret(&run, &[]);
    verified_secret(&serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap());
}

#[test]
fn a_closed_stdout_is_noticed_before_the_search() {
    let run = mine_in_shell(r#"exec "$@" >&-"#, &["qq"]).code(4).says(&["stdout is closed", "--output"]);
    assert!(!run.stderr.contains("target"), "no work was done: {run:?}");
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.json");
    mine_in_shell(r#"exec "$@" >&-"#, &["qq", "--json", "--output", file.to_str().unwrap()]).code(0);
    verified_secret(&serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap());
}

#[test]
fn a_reader_that_leaves_after_a_result_ends_the_search_quietly() {
    let script = r#"{ "$@"; echo "ended with $?" >&2; } | head -n 1"#;
    let run = mine_in_shell(script, &["q", "--count", "0", "--json", "--quiet"]).code(0);
    verified_secret(&run.json()[0]);
    assert_eq!(run.stderr, "ended with 0\n");

    let script = r#"{ sleep 0.3; "$@"; echo "ended with $?" >&2; } | true"#;
    let run =
        mine_in_shell(script, &["qq", "--quiet"]).says(&["stdout is closed", "is lost", "ended with 4"]);
    assert_no_secret(&run, &[]);
}
