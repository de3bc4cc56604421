//! Runs of a program, and what they printed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Output};
use std::time::Duration;

use serde_json::Value;

/// What runs longer will never end. A self-test of everything takes half a minute of an idle processor, and tests run side
/// by side.
pub const PATIENCE: Duration = Duration::from_secs(1200);

/// A program of the workspace.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The path of its binary: `env!("CARGO_BIN_EXE_...")` of its package's tests.
    pub binary: &'static str,
}

impl Program {
    /// Runs the program with this on standard input.
    pub fn run(&self, args: &[&str], stdin: &[u8]) -> Run {
        let mut command = assert_cmd::Command::new(self.binary);
        // The defaults of whoever runs the tests are not theirs.
        command.args(args).write_stdin(stdin).timeout(PATIENCE).env("XDG_CONFIG_HOME", "/dev/null");
        command.output().expect("the binary starts").into()
    }
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// stdout.
    pub stdout: String,
    /// stderr.
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
