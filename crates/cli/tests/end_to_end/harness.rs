//! Runs the binary and looks at what it printed.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

use nostr::prelude::{FromBech32, ToBech32};
use secp256k1::{PublicKey, SecretKey};
use serde_json::Value;
pub use warpsmith_trials::programs::{PATIENCE, Program, Run, decimal, signal, text, write_private};

/// A pattern nobody finds.
pub const INFEASIBLE: &str = "zzzzzzzzzzzzzzzz";

/// The program.
pub const PROGRAM: Program = Program { name: "warpsmith", binary: BINARY };

/// The binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_warpsmith");

/// Runs the binary.
pub fn warpsmith(args: &[&str]) -> Run {
    warpsmith_with(args, b"")
}

/// Runs the binary with this on standard input.
pub fn warpsmith_with(args: &[&str], stdin: &[u8]) -> Run {
    PROGRAM.run(args, stdin)
}

/// Mines npubs with one thread.
pub fn mine(args: &[&str]) -> Run {
    warpsmith(&[&["npub", "--threads", "1"], args].concat())
}

/// Mines within a line of shell, where `"$@"` is the command.
pub fn mine_in_shell(script: &str, args: &[&str]) -> Run {
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", script, "sh", BINARY, "npub", "--threads", "1"]).args(args);
    command.timeout(PATIENCE).output().expect("a shell starts").into()
}

/// Starts mining and waits until the search has introduced itself.
pub fn start_mining(args: &[&str], stdout: Stdio) -> Child {
    let mut command = std::process::Command::new(BINARY);
    command.args(["npub", "--threads", "1"]).args(args).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    wait_for_introduction(&mut child);
    child
}

/// Reads stderr up to the last line of the introduction.
pub fn wait_for_introduction(child: &mut Child) {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    let stderr = child.stderr.as_mut().expect("stderr is piped");
    while !seen.ends_with(b"public points only\n") {
        assert_eq!(
            stderr.read(&mut byte).expect("stderr can be read"),
            1,
            "{}",
            String::from_utf8_lossy(&seen)
        );
        seen.push(byte[0]);
    }
}

/// Random bytes for keys of a test.
pub fn random_secret() -> SecretKey {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .expect("there is randomness");
    SecretKey::from_secret_bytes(bytes).expect("2^-127 of all numbers are no keys")
}

/// The secret key of a match line, after everything else in the line was found to follow from it.
#[track_caller]
pub fn verified_secret(line: &Value) -> SecretKey {
    let hex = text(line, "secret_key");
    assert_eq!(hex.len(), 64);
    let mut bytes = [0; 32];
    const_hex::decode_to_slice(hex, &mut bytes).expect("secret_key is hex");
    let secret = SecretKey::from_secret_bytes(bytes).expect("secret_key is a key");
    let public = PublicKey::from_secret_key(&secret).serialize();
    assert_eq!(text(line, "public_key"), const_hex::encode(public));
    let npub = nostr::key::PublicKey::from_slice(&public[1..]).expect("an x coordinate").to_bech32();
    assert_eq!(text(line, "address"), npub.expect("an npub"));
    let nsec = nostr::key::SecretKey::from_bech32(text(line, "export")).expect("export is an nsec");
    assert_eq!(nsec.to_secret_bytes(), bytes);
    secret
}

/// Panics if a text holds something that looks like a secret of the file's lines, or any nsec.
#[track_caller]
pub fn assert_no_secret(run: &Run, secrets: &[&str]) {
    for shown in [&run.stdout, &run.stderr] {
        assert!(!shown.contains("nsec1"), "an nsec is shown: {run:?}");
        assert!(!shown.contains("secret_key\""), "a secret is shown: {run:?}");
        for secret in secrets {
            assert!(!shown.contains(secret), "a secret is shown: {run:?}");
        }
    }
}
