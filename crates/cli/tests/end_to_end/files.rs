//! `--output` and stdout: secrets go where they should, whole, or nowhere.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::harness::{
    BINARY, Run, assert_no_secret, mine, mine_in_shell, signal, start_mining, text, verified_secret,
    warpsmith, write_private,
};

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
        for (told, kept) in run.documents().iter().zip(&saved[2 * round - 2..]) {
            assert_eq!(text(told, "output"), name);
            let mut whole = kept.as_object().unwrap().clone();
            whole.remove("secret_key");
            whole.remove("export");
            // How to use the key stands where the key does.
            assert!(whole.remove("details").is_some_and(|details| details["use"].is_string()));
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
    let missing = path("no/such/folder");
    mine(&["qq", "--output", missing.to_str().unwrap()])
        .code(2)
        .says(&["cannot be opened", "one that is there"]);
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
fn a_file_that_cannot_grow_is_noticed_before_the_search() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.json");
    // A limit on the size of files is the full disk anybody can have.
    for limit in ["0", "100"] {
        let script = format!(r#"ulimit -f {limit}; exec "$@""#);
        let run = mine_in_shell(&script, &["qq", "--json", "--output", file.to_str().unwrap()]).code(4);
        let run = run.says(&["may not grow", "nothing was searched", "Make room"]);
        assert_eq!(run.json(), [] as [serde_json::Value; 0], "no second place is used");
        assert!(!file.exists());
    }
}

/// Only root can make a file that belongs to somebody else.
#[test]
fn files_and_folders_of_others_are_refused() {
    let folder = tempdir().unwrap();
    let (shared, inner) = (folder.path().join("shared"), folder.path().join("inner"));
    for path in [&shared, &inner] {
        fs::create_dir(path).unwrap();
    }
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let file = shared.join("keys.txt");
    write_private(&file, "");
    if chown(&file, Some(12_345), None).and_then(|()| chown(&inner, Some(12_345), None)).is_err() {
        eprintln!("SKIPPED: files of another user can be made by root only");
        return;
    }
    for path in [&file, &inner.join("keys.txt")] {
        let run =
            mine(&["qq", "--output", path.to_str().unwrap()]).code(4).says(&["another user", "uid 12345"]);
        assert_eq!(run.stdout, "");
        assert_no_secret(&run, &[]);
        assert!(fs::read_to_string(path).unwrap_or_default().is_empty());
        write_private(path, &"11".repeat(32));
        chown(path, Some(12_345), None).unwrap();
        let mut join = vec!["join", "--secret-key-file", path.to_str().unwrap()];
        let result = folder.path().join("result.json");
        fs::write(&result, SPLIT_RESULT).unwrap();
        join.push(result.to_str().unwrap());
        warpsmith(&join).code(4).says(&["another user", "uid 12345"]);
        fs::remove_file(path).unwrap();
    }
}

/// The form is right; whose it is does not matter before the key was read.
const SPLIT_RESULT: &str = r#"{"target":"npub","address":"npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
    "split":{"offset":"1111111111111111111111111111111111111111111111111111111111111111","endo":0,"negate":false}}"#;

#[test]
fn a_file_with_two_names_or_in_an_open_folder_is_refused() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("keys.txt");
    write_private(&file, "kept");
    fs::hard_link(&file, folder.path().join("second")).unwrap();
    mine(&["qq", "--output", file.to_str().unwrap()]).code(4).says(&["2 names"]);
    fs::remove_file(folder.path().join("second")).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    mine(&["qq", "--output", file.to_str().unwrap()]).code(4).says(&["other users may write to"]);
    let result = folder.path().join("result.json");
    fs::write(&result, SPLIT_RESULT).unwrap();
    let join = ["join", "--secret-key-file", file.to_str().unwrap(), result.to_str().unwrap()];
    warpsmith(&join).code(4).says(&["other users may write to"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}

/// Every key that was told is in the file that was told with it.
#[track_caller]
fn assert_kept(told: &[Value]) {
    for line in told {
        let file = fs::read_to_string(text(line, "output")).unwrap();
        let kept = file.lines().map(|kept| serde_json::from_str::<Value>(kept).unwrap());
        let mut kept = kept.filter(|kept| kept["address"] == line["address"]);
        verified_secret(&kept.next().unwrap_or_else(|| panic!("{line} is in no file that exists")));
        assert_eq!(mode(Path::new(text(line, "output"))), 0o600);
    }
}

#[test]
fn a_file_that_is_moved_replaced_or_deleted_meanwhile_swallows_nothing() {
    let disturbances: [fn(&Path); 3] = [
        |file| fs::remove_file(file).unwrap(),
        |file| fs::rename(file, file.with_extension("old")).unwrap(),
        |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            fs::write(file, "somebody else's").unwrap();
        },
    ];
    for disturb in disturbances {
        let folder = tempdir().unwrap();
        let file = folder.path().join("keys.json");
        let args = ["qqq", "--count", "0", "--json", "--output", file.to_str().unwrap()];
        let mut child = start_mining(&args, Stdio::piped());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
        assert_kept(&[next(), next()]);
        signal(&child, "STOP");
        disturb(&file);
        signal(&child, "CONT");
        // What was told before is the disturber's; so is what was written and not yet told.
        let beside = format!("{}.1", file.display());
        // Keys found before wait in the pipe, up to the 64 KiB it holds; a search that goes on writing to where it began would
        // do so for ever.
        let first_in = |next: &mut dyn FnMut() -> Value, wanted: &str| {
            let found = (0..10_000).map(|_| next()).find(|line| text(line, "output") == wanted);
            found.unwrap_or_else(|| panic!("keys do not go to {wanted}"))
        };
        let mut told = vec![first_in(&mut next, &beside)];
        told.extend((1..30).map(|_| next()));
        assert_kept(&told);
        assert!(told.iter().all(|line| text(line, "output") == beside));
        // Again, and the next name is taken.
        signal(&child, "STOP");
        fs::write(format!("{}.2", file.display()), "taken").unwrap();
        fs::rename(&beside, folder.path().join("away")).unwrap();
        fs::write(&beside, "taken").unwrap();
        signal(&child, "CONT");
        assert_kept(&[first_in(&mut next, &format!("{}.3", file.display()))]);
        signal(&child, "INT");
        drop(lines);
        let run: Run = child.wait_with_output().unwrap().into();
        run.says(&["warning: --output", "moved, replaced or deleted", "keys.json.1", "keys.json.3"]);
        assert!(!file.exists() || fs::read_to_string(&file).unwrap() == "somebody else's");
    }
}

#[test]
fn a_disk_that_fills_up_loses_no_key() {
    let folder = tempdir().unwrap();
    let small = folder.path().join("disk");
    fs::create_dir(&small).unwrap();
    let mount = |args: &[&str]| {
        let mounted = Command::new("mount").args(args).arg(&small).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=512k,mode=700", "none"]) {
        eprintln!("SKIPPED: only root can mount a small disk");
        return;
    }
    struct Mounted<'a>(&'a Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
        }
    }
    let mounted = Mounted(&small);
    let file = small.join("keys.json");
    let fill = |name: &str| {
        let mut filler = File::create(small.join(name)).unwrap();
        while filler.write_all(&[1; 4096]).is_ok() {}
    };
    // A disk that is full from the start: nothing is searched, and no file is left.
    fill("filler");
    let args = ["qqq", "--count", "0", "--json", "--output", file.to_str().unwrap()];
    mine(&args).code(4).says(&["could not reserve room", "nothing was searched"]);
    assert!(!file.exists());
    fs::remove_file(small.join("filler")).unwrap();

    // One that fills up during the search: what was set aside takes the keys until that is noticed. Where the search is caught
    // right before it looks for room again, that is at once; then it is tried again.
    let caught_between = (0..50).any(|_| {
        let mut child = start_mining(&args, Stdio::piped());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = vec![lines.next().unwrap().unwrap()];
        signal(&child, "STOP");
        fill("filler");
        signal(&child, "CONT");
        told.extend(lines.map(Result::unwrap));
        let run: Run = child.wait_with_output().unwrap().into();
        let run = run.code(4).says(&["could not reserve room", "are safe"]);
        assert_no_secret(&run, &[]);
        let mut told: Vec<Value> = told.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(told.pop().map(|last| last["event"].clone()), Some("error".into()));
        assert_kept(&told);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), told.len());
        for name in ["filler", "keys.json"] {
            fs::remove_file(small.join(name)).unwrap();
        }
        told.len() > 1
    });
    assert!(caught_between, "no key was written to the full disk");
    drop(mounted);
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
    verified_secret(&run.documents()[0]);
    assert_eq!(run.stderr, "ended with 0\n");

    let script = r#"{ sleep 0.3; "$@"; echo "ended with $?" >&2; } | true"#;
    let run =
        mine_in_shell(script, &["qq", "--quiet"]).says(&["stdout is closed", "is lost", "ended with 4"]);
    assert_no_secret(&run, &[]);
}
