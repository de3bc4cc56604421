//! A folder, a server and workers, for every test of a fleet.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use warpsmith::fleet::net::connect::as_coordinator;
use warpsmith::fleet::net::home::Home;
use warpsmith_trials::free_port;

const BINARY: &str = env!("CARGO_BIN_EXE_warpsmith");

/// A folder, and a port that was free a moment ago; none without nats-server.
pub fn fleet() -> Option<(tempfile::TempDir, Home)> {
    if Command::new("nats-server").arg("-v").output().is_err() {
        eprintln!("SKIPPED: there is no nats-server on the PATH (apt install nats-server)");
        return None;
    }
    let port = free_port();
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::init(&folder.path().join("fleet"), &format!("127.0.0.1:{port}")).expect("made");
    Some((folder, home))
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Running {
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the server and waits until it answers.
pub fn server(home: &Home) -> Running {
    let mut command = Command::new("nats-server");
    command.arg("-c").arg(home.config()).arg("-l").arg(home.folder().join("server/log"));
    let running = Running(command.stdin(Stdio::null()).spawn().expect("nats-server starts"));
    let runtime = runtime();
    for _ in 0..6000 {
        if runtime.block_on(as_coordinator(home)).is_ok() {
            return running;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("nats-server does not answer");
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
}

pub fn warpsmith(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).stdin(Stdio::null());
    command
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The invitation of a worker as a private file, and the worker that has it.
pub fn worker(folder: &Path, home: &mut Home, name: &str) -> Running {
    worker_with(folder, home, name, &[])
}

/// The same with more flags.
pub fn worker_with(folder: &Path, home: &mut Home, name: &str, more: &[&str]) -> Running {
    let file = folder.join(format!("{name}.invitation"));
    std::fs::write(&file, home.invite(name).expect("invited").text().as_bytes()).expect("written");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("set");
    let mut work =
        warpsmith(&["fleet", "work", file.to_str().expect("text"), "--device", "cpu", "--threads", "1"]);
    work.args(more).arg("--spool").arg(folder.join(format!("spool-{name}"))).stderr(Stdio::null());
    Running(work.spawn().expect("starts"))
}

/// Lines of JSON that a command printed.
pub fn lines(output: &Output) -> Vec<serde_json::Value> {
    let lines = output.stdout.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// What a process says on stderr, line by line.
pub struct Said(Receiver<String>);

impl Said {
    /// Reads the stderr of a process, which must be piped.
    pub fn by(child: &mut Child) -> Said {
        let (lines, said) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        Said(said)
    }

    /// Waits for a line with any of these parts.
    pub fn wait_for(&self, parts: &[&str]) -> String {
        loop {
            let line = self.0.recv_timeout(Duration::from_secs(300));
            let line = line.unwrap_or_else(|_| panic!("it ended, or is silent, without {parts:?}"));
            if parts.iter().any(|part| line.contains(part)) {
                return line;
            }
        }
    }
}
