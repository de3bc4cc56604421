//! What results say about their use is done: wallets import the keys, and contracts stand where we said.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::foreign;
use crate::harness::{text, warpsmith, write_private};

/// A chain on this machine, ended with the test.
struct Anvil {
    child: Child,
    url: String,
}

impl Anvil {
    /// `None` where anvil is not installed.
    fn start() -> Option<Anvil> {
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
    fn shell(&self, line: &str, folder: &Path) -> String {
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
const ACCOUNT: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/// Creates a contract that returns 42.
const CODE: &str = "0x600a600c600039600a6000f3602a60005260206000f3";
const RUNTIME: &str = "0x602a60005260206000f3";

/// CreateX comes to every chain by one transaction that was signed for all of them.
const CREATEX: &str = "const file = './node_modules/@nomicfoundation/ignition-core/dist/src/internal/execution/strategy/createx-artifact.js'; \
    const {presignedTx} = await import(require('path').resolve(file)); \
    const {JsonRpcProvider, Transaction} = require('ethers'); const provider = new JsonRpcProvider(given.url); \
    await provider.send('anvil_setBalance', [Transaction.from(presignedTx).from, '0x8ac7230489e80000']); \
    const hash = await provider.send('eth_sendRawTransaction', [presignedTx]); \
    const receipt = await provider.waitForTransaction(hash); show(receipt.contractAddress); provider.destroy()";

#[test]
fn contracts_stand_where_we_said() {
    let Some(anvil) = Anvil::start() else { return };
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("code.hex"), CODE).unwrap();
    let Some(createx) =
        foreign::node("@nomicfoundation/ignition-core", CREATEX, &json!({ "url": anvil.url }))
    else {
        return;
    };
    assert_eq!(createx, "0xba5Ed099633D3B313e4D5F7bdc1305d3c28ba5Ed");
    let caller = format!("caller:{ACCOUNT}");
    let (code, caller) = (path("code.hex"), caller.as_str());
    let search = |args: &[&str]| -> Value {
        let flags = ["--json", "--device", "cpu", "--threads", "1"];
        warpsmith(&[args, &flags].concat()).code(0).json().remove(0)
    };
    let code_at = |line: &Value| {
        let asked = format!("cast code {} --rpc-url {}", text(line, "address"), anvil.url);
        anvil.shell(&asked, folder.path()).trim().to_owned()
    };
    let guarded = ["--factory", "createx", "--salt-layout", caller];
    for args in [
        &["create2", "ca", "--factory", "arachnid", "--init-code", &code][..],
        &[&["create2", "ca", "--init-code", &code][..], &guarded].concat(),
        &[&["create2", "ca", "--init-code", &code][..], &["--factory", "createx"]].concat(),
        &[&["create3", "ca"][..], &guarded].concat(),
        &[&["create3", "ca", "--chain-id", "31337"][..], &guarded].concat(),
        &["create3", "ca", "--factory", "createx"],
    ] {
        let line = search(args);
        assert_eq!(code_at(&line), "0x");
        // The line that the result gives, signed for by the chain.
        let given = text(&line["details"], "use");
        let from = if given.contains("--from") { String::new() } else { format!("--from {ACCOUNT}") };
        let signed = given.replace("--interactive", &format!("--unlocked {from}")).replace("URL", &anvil.url);
        anvil.shell(&signed, folder.path());
        assert_eq!(code_at(&line), RUNTIME, "{args:?}: {signed}");
    }

    // By the account of a key, out of its keystore.
    let (password, keystore) = (path("password"), path("keystore"));
    write_private(&password, "p");
    let encrypt = ["--encrypt", "--password-file", &password, "--keystore", &keystore];
    let line = search(&[&["eth", "ca", "--contract"][..], &encrypt].concat());
    let (file, sender) = (text(&line["encrypted"], "file"), text(&line["details"], "sender"));
    let url = &anvil.url;
    let rich = format!("cast rpc anvil_setBalance {sender} 0x8ac7230489e80000 --rpc-url {url}");
    anvil.shell(&rich, folder.path());
    let send =
        format!("cast send --keystore {file} --password-file {password} --rpc-url {url} --create {CODE}");
    anvil.shell(&send, folder.path());
    assert_eq!(code_at(&line), RUNTIME);
}

#[test]
fn electrum_shows_the_same_addresses() {
    if Command::new("electrum").arg("--help").output().is_err() {
        eprintln!("SKIPPED: electrum is not installed: no wallet imported a Bitcoin key");
        return;
    }
    for (pattern, kind, script) in [
        ("1A", "p2pkh", "p2pkh"),
        ("1A", "p2pkh-uncompressed", "p2pkh"),
        ("3A", "p2sh", "p2wpkh-p2sh"),
        ("bc1qq", "p2wpkh", "p2wpkh"),
    ] {
        let folder = tempdir().unwrap();
        let args = ["btc", pattern, "--type", kind, "--json", "--device", "cpu", "--threads", "1"];
        let line = warpsmith(&args).code(0).json().remove(0);
        let electrum = |args: &[&str], given: &str| {
            let mut command = Command::new("electrum");
            command.args(["--offline", "-D"]).arg(folder.path()).arg("-w").arg(folder.path().join("wallet"));
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(given.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        electrum(&["restore", "-"], &format!("{script}:{}", text(&line, "export")));
        let listed = electrum(&["listaddresses"], "");
        assert_eq!(serde_json::from_str::<Value>(&listed).unwrap(), json!([line["address"]]), "{kind}");
    }
}

#[test]
fn codes_are_drawn_of_addresses_and_of_secrets_only_when_asked() {
    let search =
        |args: &[&str]| warpsmith(&[&["npub", "q", "--device", "cpu", "--threads", "1"], args].concat());
    let folder = tempdir().unwrap();
    let output = folder.path().join("keys").to_str().unwrap().to_owned();
    let is_drawn = |text: &str| text.lines().filter(|line| line.contains('█')).count() > 15;
    assert!(is_drawn(&search(&["--qr"]).code(0).stdout));
    assert!(is_drawn(&search(&["--qr", "secret"]).code(0).stdout));
    assert!(!is_drawn(&search(&[]).code(0).stdout));
    assert!(is_drawn(&search(&["--qr", "--output", &output]).code(0).stdout));
    assert!(!is_drawn(&std::fs::read_to_string(&output).unwrap()));
    let other = folder.path().join("other").to_str().unwrap().to_owned();
    search(&["--qr", "secret", "--output", &other]).code(2).says(&["--qr secret", "--output"]);
    assert!(!Path::new(&other).exists());
    search(&["--qr", "secret", "--encrypt"]).code(2).says(&["--qr secret"]);
    search(&["--qr", "--json"]).code(2).says(&["cannot be used with"]);
}
