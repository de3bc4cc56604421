//! A chain of Ethereum's kind on this machine, by Foundry's anvil, and what tests create on it.

mod turns;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::turns::Turns;
use super::PATIENCE;
use super::foreign;

/// A chain on this machine, ended with the test.
pub struct Anvil {
    child: Child,
    /// Where it answers.
    pub url: String,
    turns: Turns,
}

impl Anvil {
    /// Starts one; `None` where anvil is not installed.
    pub fn start() -> Option<Anvil> {
        let program = "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil";
        let program = foreign::folder(program)?.join(program);
        let mut command = Command::new(program);
        command.args(["--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("anvil starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = loop {
            let line = lines.next().expect("anvil says where it listens").unwrap();
            if let Some((_, at)) = line.split_once("Listening on ") {
                break at.trim().to_owned();
            }
        };
        // Its log would fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Anvil { child, url: format!("http://{at}"), turns: Turns::new(at.parse().expect("an address")) })
    }

    /// Where to ask for traces while [`ask`](Anvil::ask) and [`send`](Anvil::send) make blocks.
    pub fn url_for_traces(&self) -> String {
        format!("http://{}", self.turns.door())
    }

    /// How many requests were answered there.
    pub fn requests_for_traces(&self) -> u64 {
        self.turns.handed_on()
    }

    /// What the node answers.
    pub fn ask(&self, method: &str, params: Value) -> Value {
        let _turn = self.turns.take();
        self.ask_in_turn(method, params)
    }

    fn ask_in_turn(&self, method: &str, params: Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = turns::post(self.turns.node, &call.to_string()).expect("an answer");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// A transaction of the first account, in a block of its own; the contract it made, if it did.
    pub fn send(&self, to: Option<&str>, value: u64, data: &str) -> Option<String> {
        let mut call = json!({"from": ACCOUNT, "value": format!("{value:#x}"), "data": format!("0x{data}"), "gas": "0xf00000"});
        if let Some(to) = to {
            call["to"] = to.into();
        }
        // The block is made after the answer.
        let _turn = self.turns.take();
        let hash = self.ask_in_turn("eth_sendTransaction", json!([call]));
        let begin = Instant::now();
        let receipt = loop {
            let receipt = self.ask_in_turn("eth_getTransactionReceipt", json!([hash]));
            if !receipt.is_null() {
                break receipt;
            }
            assert!(begin.elapsed() < PATIENCE, "{call} has no block");
            std::thread::sleep(Duration::from_millis(2));
        };
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt["contractAddress"].as_str().map(str::to_owned)
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
/// The code of that contract.
pub const RUNTIME: &str = "0x602a60005260206000f3";
