//! What is left of a key in the program's memory once it was delivered, and whether anybody can look.
//!
//! Another process reads all that a running search can write to, and looks for the keys it has delivered: as bytes in either
//! order, as hex digits, and as the texts that wallets import. Half of one is enough.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;
use warpsmith::keystore::{Password, nip49};

use crate::harness::{
    BINARY, INFEASIBLE, random_secret, signal, text, wait_for_introduction, warpsmith, write_private,
};

/// Pieces to look for, each with what it is a piece of.
#[derive(Default)]
struct Needles {
    list: Vec<(Vec<u8>, String)>,
}

impl Needles {
    /// Every piece of a text or number that is half as long.
    fn add(&mut self, whole: &[u8], what: &str) {
        let half = whole.len() / 2;
        for start in (0..=whole.len() - half).step_by(half / 2) {
            self.list.push((whole[start..start + half].to_vec(), what.to_owned()));
        }
    }

    /// A private key in all its forms.
    fn add_key(&mut self, hex: &str, exports: &[&str]) {
        let mut bytes = const_hex::decode(hex).unwrap();
        self.add(&bytes, "bytes");
        bytes.reverse();
        self.add(&bytes, "bytes, last first");
        self.add(hex.as_bytes(), "hex digits");
        for export in exports {
            // What all keys have in common is no part of one.
            self.add(&export.as_bytes()[5..], "exported text");
        }
    }

    /// What of it is in these bytes.
    fn found(&self, memory: &[u8]) -> Vec<String> {
        let mut by_head: Vec<Vec<usize>> = vec![Vec::new(); 1 << 16];
        let head = |bytes: &[u8]| usize::from(bytes[0]) << 8 | usize::from(bytes[1]);
        for (at, (piece, _)) in self.list.iter().enumerate() {
            by_head[head(piece)].push(at);
        }
        let mut found = Vec::new();
        for place in 0..memory.len().saturating_sub(1) {
            for &at in &by_head[head(&memory[place..])] {
                let (piece, what) = &self.list[at];
                if memory[place..].starts_with(piece) {
                    found.push(format!("{what} of key {}", at));
                }
            }
        }
        found
    }
}

/// All that a process can write to. An error where we may not look.
fn memory(pid: u32) -> io::Result<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let file = File::open(format!("/proc/{pid}/mem"))?;
    let mut all = Vec::new();
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let (from, to) = range.split_once('-').unwrap();
        let [from, to] = [from, to].map(|number| u64::from_str_radix(number, 16).unwrap());
        if rights.starts_with("rw") && !line.contains("/dev/") {
            let start = all.len();
            all.resize(start + (to - from) as usize, 0);
            // What lies on no page yet cannot be read, and holds nothing.
            let _ = file.read_exact_at(&mut all[start..], from);
        }
    }
    Ok(all)
}

/// Whether another's memory may be read here; says so if not.
fn may_look() -> bool {
    // SAFETY: takes nothing and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let allowed = root && memory(std::process::id()).is_ok();
    if !allowed {
        eprintln!("SKIPPED: only root may read the memory of this program");
    }
    allowed
}

const MARKER: &str = "a marker that stays in memory, 7f3c9e1b5a";

fn stop(child: &Child) {
    signal(child, "STOP");
    let mut status = 0;
    // SAFETY: waits for a child of ours and writes to a place of ours.
    let waited = unsafe { libc::waitpid(child.id() as libc::pid_t, &mut status, libc::WUNTRACED) };
    assert!(waited == child.id() as libc::pid_t && libc::WIFSTOPPED(status));
}

#[test]
fn delivered_keys_are_gone_from_memory() {
    if !may_look() {
        return;
    }
    // Keys that crowd each other, and keys that are followed by a long walk: what is left of one is soon overwritten by
    // the next, so the last one matters most.
    let searches: [(&[&str], usize); 6] = [
        (&["npub", "qqq"], 40),
        (&["npub", "qqqq"], 1),
        (&["npub", "qqqq"], 3),
        (&["eth", "abcd"], 2),
        (&["btc", "1Abc"], 2),
        (&["btc", "bc1qqqq"], 2),
    ];
    for (search, count) in searches {
        let folder = tempdir().unwrap();
        let file = folder.path().join("keys.json");
        let mut command = Command::new(BINARY);
        command.args(search).args([
            "--threads",
            "1",
            "--device",
            "cpu",
            "--count",
            "0",
            "--json",
            "--output",
        ]);
        command.arg(&file).args(["--progress", "json"]).env("MARKER", MARKER);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut matches, mut goes_on) = (0, false);
        // Progress after a match says that the search went on, so that the match is delivered and done with.
        while matches < count || !goes_on {
            let line: Value = serde_json::from_str(&told.next().unwrap().unwrap()).unwrap();
            goes_on = line["event"] == "progress";
            matches += usize::from(!goes_on);
        }
        stop(&child);
        let memory = memory(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let mut needles = Needles::default();
        for line in fs::read_to_string(&file).unwrap().lines().take(matches) {
            let line: Value = serde_json::from_str(line).unwrap();
            needles.add_key(text(&line, "secret_key"), &[text(&line, "export")]);
        }
        let found = needles.found(&memory);
        assert!(found.is_empty(), "{search:?}: {} pieces: {:?}", found.len(), &found[..found.len().min(20)]);

        let mut marker = Needles::default();
        marker.add(MARKER.as_bytes(), "marker");
        assert!(!marker.found(&memory).is_empty(), "the reader finds what is there");
    }
    let mut own = Needles::default();
    let key = const_hex::encode(random_secret().to_secret_bytes());
    own.add_key(&key, &[]);
    let found = own.found(&memory(std::process::id()).unwrap());
    assert!(found.iter().any(|what| what.starts_with("hex")), "in this process the key is found: {found:?}");
}

/// Runs a program up to its last moment, and reads its memory there.
fn memory_at_exit(command: &mut Command) -> io::Result<Vec<u8>> {
    // SAFETY: between fork and exec, only this one system call.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let pid = command.spawn()?.id() as libc::pid_t;
    let (mut status, mut left, mut begun) = (0, None, false);
    loop {
        // SAFETY: waits for a child of ours and writes to a place of ours.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            assert_eq!(status, 0, "the command succeeds");
            return left.ok_or_else(|| io::Error::other("it ended unseen"));
        }
        if !begun {
            begun = true;
            let options = libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_EXITKILL;
            // SAFETY: a child of ours, stopped.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
        } else if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_EXIT << 8 {
            left = Some(memory(pid as u32)?);
        }
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, 0) };
    }
}

#[test]
fn a_joined_key_and_its_parts_are_gone_at_the_end() {
    if !may_look() {
        return;
    }
    for (target, pattern) in [("npub", "qq"), ("eth", "ab"), ("btc", "1A")] {
        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let own = random_secret();
        let public = const_hex::encode(secp256k1::PublicKey::from_secret_key(&own).serialize());
        let mined = warpsmith(&[target, pattern, "--threads", "1", "--split-key", &public, "--json"]).code(0);
        fs::write(path("result.json"), mined.stdout).unwrap();
        let own_hex = const_hex::encode(own.to_secret_bytes());
        write_private(path("own.key"), &own_hex);
        let mut command = Command::new(BINARY);
        command.arg("join").arg("--secret-key-file").arg(path("own.key")).arg(path("result.json"));
        command
            .args(["--json", "--output"])
            .arg(path("keys.json"))
            .env("MARKER", MARKER)
            .stdout(Stdio::null());
        let memory = memory_at_exit(&mut command).unwrap();

        let joined: Value = serde_json::from_str(&fs::read_to_string(path("keys.json")).unwrap()).unwrap();
        let mut needles = Needles::default();
        needles.add_key(&own_hex, &[]);
        needles.add_key(text(&joined, "secret_key"), &[text(&joined, "export")]);
        let found = needles.found(&memory);
        assert!(found.is_empty(), "{target}: {found:?}");
        let mut marker = Needles::default();
        marker.add(MARKER.as_bytes(), "marker");
        assert!(!marker.found(&memory).is_empty(), "the reader finds what is there");
    }
}

/// Neither the password nor the key that was encrypted with it.
#[test]
fn passwords_and_encrypted_keys_are_gone_at_the_end() {
    const PASSWORD: &str = "Ehwaz Mannaz Laguz Ingwaz Dagaz Othala";
    if !may_look() {
        return;
    }
    let own = random_secret();
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let public = const_hex::encode(secp256k1::PublicKey::from_secret_key(&own).serialize());
    let mined =
        warpsmith(&["npub", "q", "--split-key", &public, "--json", "--threads", "1", "--device", "cpu"]);
    fs::write(path("result.json"), mined.code(0).stdout).unwrap();
    write_private(path("own.key"), &const_hex::encode(own.to_secret_bytes()));
    write_private(path("password"), PASSWORD);
    let mut command = Command::new(BINARY);
    command.arg("join").arg("--secret-key-file").arg(path("own.key")).arg(path("result.json"));
    command.args(["--json", "--encrypt", "--password-file"]).arg(path("password")).arg("--output");
    command.arg(path("keys.json")).env("MARKER", MARKER).stdout(Stdio::null());
    let memory = memory_at_exit(&mut command).unwrap();
    let joined: Value = serde_json::from_str(&fs::read_to_string(path("keys.json")).unwrap()).unwrap();
    let password = Password::new(PASSWORD.to_owned().into()).unwrap();
    let key = nip49::decrypt(text(&joined["encrypted"], "text"), &password).unwrap();
    let mut needles = Needles::default();
    needles.add_key(&const_hex::encode(own.to_secret_bytes()), &[]);
    needles.add_key(&const_hex::encode(*key.secret), &[]);
    needles.add(PASSWORD.as_bytes(), "password");
    let found = needles.found(&memory);
    assert!(found.is_empty(), "{found:?}");
    let mut marker = Needles::default();
    marker.add(MARKER.as_bytes(), "marker");
    assert!(!marker.found(&memory).is_empty(), "the reader finds what is there");
}

#[test]
fn no_core_is_dumped() {
    let folder = tempdir().unwrap();
    let start = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", r#"ulimit -c unlimited && exec "$@""#, "sh"]).args(arguments);
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for name in ["ABRT", "QUIT"] {
        let mut child = start(&[BINARY, "npub", INFEASIBLE, "--threads", "1", "--device", "cpu"]);
        wait_for_introduction(&mut child);
        signal(&child, name);
        let status = child.wait().unwrap();
        assert!(status.signal().is_some(), "{status}");
        assert!(!status.core_dumped(), "{status}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file was left");
    let mut control = start(&["sh", "-c", "kill -s ABRT $$"]);
    if !control.wait().unwrap().core_dumped() {
        eprintln!("SKIPPED: no program's core is dumped here, so that ours is not says nothing");
    }
}

/// Another program of the same user may neither read nor attach.
#[test]
fn the_same_user_may_not_look() {
    const NOBODY: u32 = 65_534;
    let as_nobody = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: takes nothing and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    let Ok(mut child) = as_nobody(BINARY, &["npub", INFEASIBLE, "--threads", "1", "--device", "cpu"]).spawn()
    else {
        eprintln!("SKIPPED: an ordinary user cannot start the program where it lies");
        return;
    };
    wait_for_introduction(&mut child);
    let look =
        |pid: u32| as_nobody("cat", &[&format!("/proc/{pid}/maps")]).output().unwrap().status.success();
    let seen = look(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!seen, "its memory is open to the user's other programs");
    let mut control = as_nobody("sleep", &["60"]).spawn().unwrap();
    let seen = look(control.id());
    control.kill().unwrap();
    control.wait().unwrap();
    assert!(seen, "another program's is");
}
