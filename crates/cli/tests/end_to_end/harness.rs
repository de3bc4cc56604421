//! Runs the binary and looks at what it printed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use nostr::prelude::{FromBech32, ToBech32};
use secp256k1::{PublicKey, SecretKey};
use serde_json::Value;

/// A pattern nobody finds.
pub const INFEASIBLE: &str = "zzzzzzzzzzzzzzzz";

/// What a run left.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The run, if it ended with this code.
    #[track_caller]
    pub fn code(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// The run, if stderr has all of these.
    #[track_caller]
    pub fn says(self, fragments: &[&str]) -> Run {
        for fragment in fragments {
            assert!(self.stderr.contains(fragment), "stderr lacks \"{fragment}\": {self:?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }

    /// The run, if stdout has this.
    #[track_caller]
    pub fn stdout_says(self, fragment: &str) -> Run {
        assert!(self.stdout.contains(fragment), "stdout lacks \"{fragment}\": {self:?}");
        self
    }

    /// stdout as JSON documents.
    #[track_caller]
    pub fn documents(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let documents: Vec<Value> = self.stdout.lines().map(parse).collect();
        documents.iter().for_each(assert_exact);
        documents
    }

    /// stdout as JSON documents, without their version, and without the last, which must say that it is done or what went wrong.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        let mut documents = self.documents();
        let last = documents.pop().unwrap_or_else(|| panic!("no document: {self:?}"));
        let expected = if matches!(self.code, Some(2..=4)) { "error" } else { "done" };
        assert_eq!(last["event"], expected, "{self:?}");
        for document in &mut documents {
            let version = document.as_object_mut().and_then(|fields| fields.remove("version"));
            assert_eq!(version, Some(1.into()), "{self:?}");
        }
        documents
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_warpsmith");

/// What runs longer will never end. A self-test of everything takes half a minute of an idle processor, and tests run side
/// by side.
pub const PATIENCE: Duration = Duration::from_secs(1200);

/// Runs the binary.
pub fn warpsmith(args: &[&str]) -> Run {
    warpsmith_with(args, b"")
}

/// Runs the binary with this on standard input.
pub fn warpsmith_with(args: &[&str], stdin: &[u8]) -> Run {
    let mut command = assert_cmd::Command::new(BINARY);
    // The defaults of whoever runs the tests are not theirs.
    command.args(args).write_stdin(stdin).timeout(PATIENCE).env("XDG_CONFIG_HOME", "/dev/null");
    command.output().expect("the binary starts").into()
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

/// Sends a signal by its name.
pub fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.expect("kill runs").success());
}

/// Writes a file that is closed to others, as one with a key must be.
pub fn write_private(path: impl AsRef<Path>, content: &str) {
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).and_then(|mut file| file.write_all(content.as_bytes())).expect("a file is written");
}

/// A string field.
#[track_caller]
pub fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("{value} has no text {field}"))
}

/// A number that documents have as decimal text, since it may exceed 2^53.
#[track_caller]
pub fn decimal(value: &Value, field: &str) -> f64 {
    text(value, field).parse().unwrap_or_else(|error| panic!("{field}: {error}: {value}"))
}

/// Panics if a number of a document is one that doubles do not keep exactly.
#[track_caller]
pub fn assert_exact(document: &Value) {
    fn is_exact(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() <= 2f64.powi(53)),
            Value::Array(all) => all.iter().all(is_exact),
            Value::Object(fields) => fields.values().all(is_exact),
            _ => true,
        }
    }
    assert!(is_exact(document), "a number exceeds 2^53: {document}");
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
