//! The program, servers of it, and a folder for the files of a test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
pub use warpsmith_trials::programs::{PATIENCE, Program, Run, signal, text, write_private};

/// The program.
pub const PROGRAM: Program = Program { name: "warpsmith-pir", binary: BINARY };

/// The binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_warpsmith-pir");

/// Runs the program.
pub fn pir(args: &[&str]) -> Run {
    PROGRAM.run(args, b"")
}

/// Runs the program with this on standard input.
pub fn pir_with(args: &[&str], stdin: &[u8]) -> Run {
    PROGRAM.run(args, stdin)
}

/// A folder with the files of a test.
pub struct Desk(pub TempDir);

impl Desk {
    pub fn new() -> Desk {
        Desk(tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.0.path().join(name), content).unwrap();
        self.path(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A flat database of so many entries of 24 bytes, and the entries.
    pub fn flat(&self, name: &str, entries: u64) -> (String, Vec<u8>) {
        let bytes: Vec<u8> = (0..entries * 24).map(|i| (i * i * 31 + i / 7) as u8).collect();
        let (database, input) = (self.path(name), self.write("input.bin", &bytes));
        pir(&["build", &database, &input, "--entry-size", "24"]).code(0);
        (database, bytes)
    }
}

/// A server process.
pub struct Server {
    pub child: Child,
    pub url: String,
}

impl Server {
    pub fn start(database: &str, more: &[&str]) -> Server {
        Server::listen(database, "127.0.0.1:0", more)
    }

    pub fn listen(database: &str, address: &str, more: &[&str]) -> Server {
        let mut command = Command::new(BINARY);
        command.args(["serve", database, "--listen", address, "--json"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(text(&line, "event"), "listening");
        let url = text(&line, "url").to_owned();
        assert_eq!(url, format!("http://{}", text(&line, "address")));
        Server { child, url }
    }

    pub fn address(&self) -> SocketAddr {
        self.url.strip_prefix("http://").unwrap().parse().unwrap()
    }

    /// Ends it as Ctrl-C does, and says how it ended.
    pub fn stop(mut self, by: &str) -> (Option<i32>, String) {
        signal(&self.child, by);
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }

    pub fn get(&self, state: &str, wanted: &[&str]) -> Run {
        pir(&[&["get", "--server", &self.url, "--state", state, "--json"], wanted].concat())
    }

    pub fn hint(&self, state: &str, more: &[&str]) -> Run {
        let args =
            ["hint", "--server", &self.url, "--state", state, "--device", "cpu", "--threads", "1", "--json"];
        pir(&[&args[..], more].concat())
    }

    /// Waits until the server is at this epoch: a state behind it catches up, and says so.
    pub fn wait_for_epoch(&self, epoch: u64) {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let mut stream = TcpStream::connect(self.address()).unwrap();
            stream.write_all(b"GET /v1/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
            let mut head = Vec::new();
            stream.read_to_end(&mut head).unwrap();
            if String::from_utf8_lossy(&head).contains(&format!("warpsmith-epoch: {epoch}\r\n")) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server did not come to epoch {epoch}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a run of `get`, which must be these entries of these bytes, in this order.
#[track_caller]
pub fn assert_entries(run: Run, wanted: &[usize], bytes: &[u8]) {
    let lines = run.code(0).json();
    assert_eq!(lines.len(), wanted.len());
    for (line, index) in lines.iter().zip(wanted) {
        let value = const_hex::encode(&bytes[24 * index..][..24]);
        assert_eq!(*line, serde_json::json!({"event": "entry", "index": index, "value": value}));
    }
}
