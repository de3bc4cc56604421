//! A chain of Ethereum's kind on this machine, by Foundry's anvil, and what tests create on it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::foreign;

/// A chain on this machine, ended with the test.
pub struct Anvil {
    child: Child,
    pub url: String,
}

impl Anvil {
    /// `None` where anvil is not installed.
    pub fn start() -> Option<Anvil> {
        let program = "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil";
        let program = foreign::folder(program)?.join(program);
        let mut command = Command::new(program);
        command.args(["--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("anvil starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("anvil says where it listens").unwrap();
            if let Some((_, at)) = line.split_once("Listening on ") {
                break format!("http://{}", at.trim());
            }
        };
        // Its log would fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Anvil { child, url })
    }

    fn cast(&self) -> PathBuf {
        let tools = foreign::folder("node_modules/.bin/cast").expect("installed with anvil");
        tools.join("node_modules/.bin").canonicalize().unwrap()
    }

    /// A line of shell with cast in its path.
    pub fn shell(&self, line: &str, folder: &Path) -> String {
        let path = format!("{}:{}", self.cast().display(), std::env::var("PATH").unwrap_or_default());
        let output =
            Command::new("sh").args(["-c", line]).current_dir(folder).env("PATH", path).output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{line}: {} {}", said(&output.stdout), said(&output.stderr));
        said(&output.stdout)
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first account of anvil, which it signs for.
pub const ACCOUNT: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/// Creates a contract that returns 42.
pub const CODE: &str = "0x600a600c600039600a6000f3602a60005260206000f3";
pub const RUNTIME: &str = "0x602a60005260206000f3";
