//! What results say about their use is done: wallets import the keys.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::tempdir;
use warpsmith_trials::free_port;

use crate::foreign;
use crate::harness::{text, warpsmith, warpsmith_with, write_private};

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

/// What `bitcore`'s libraries, which wallets are made of, tell of a WIF key; and so on for other chains.
const LIBRARIES: [(&str, &[&str], &str); 8] = [
    (
        "nostr-tools",
        &["npub", "q"],
        "const {nip19, getPublicKey} = require('nostr-tools'); show(nip19.npubEncode(getPublicKey(nip19.decode(given.key).data)))",
    ),
    ("bitcore-lib-doge", &["doge", "DM"], BITCORE),
    ("bitcore-lib-doge", &["doge", "DM", "--type", "p2pkh-uncompressed"], BITCORE),
    ("bitcore-lib-cash", &["bch", "qpa"], BITCORE),
    ("bitcore-lib-cash", &["bch", "qpa", "--type", "p2pkh-uncompressed"], BITCORE),
    ("tronweb", &["tron", "TT"], "show(require('tronweb').TronWeb.address.fromPrivateKey(given.key))"),
    ("@cosmjs/proto-signing", &["cosmos", "q"], COSMJS),
    ("@cosmjs/proto-signing", &["cosmos", "q", "--prefix", "osmo"], COSMJS),
];
const BITCORE: &str = "show(new (require(given.library).PrivateKey)(given.key).toAddress().toString())";
const COSMJS: &str = "const {DirectSecp256k1Wallet} = require(given.library); \
    const wallet = await DirectSecp256k1Wallet.fromKey(Buffer.from(given.key, 'hex'), given.address.split('1')[0]); \
    show((await wallet.getAccounts())[0].address)";

#[test]
fn libraries_of_wallets_find_the_same_addresses() {
    for (library, args, script) in LIBRARIES {
        let flags = ["--json", "--device", "cpu", "--threads", "1"];
        let line = warpsmith(&[args, &flags].concat()).code(0).json().remove(0);
        let given = json!({ "library": library, "key": line["export"], "address": line["address"] });
        let Some(address) = foreign::node(library, script, &given) else { continue };
        assert_eq!(address, line["address"], "{library} {args:?}");
    }
}

/// Litecoin Core without a network, ended with the test.
struct LitecoinCore {
    folder: tempfile::TempDir,
    child: Child,
}

impl LitecoinCore {
    fn start() -> Option<LitecoinCore> {
        let folder = tempdir().unwrap();
        let port = free_port();
        let settings =
            format!("server=1\nconnect=0\nlisten=0\ndnsseed=0\ndbcache=4\nprune=550\nrpcport={port}\n");
        std::fs::write(folder.path().join("litecoin.conf"), settings).unwrap();
        let mut command = Command::new("litecoind");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.arg(format!("-datadir={}", folder.path().display())).spawn() else {
            eprintln!("SKIPPED: litecoind is not installed: Litecoin Core imported no key");
            return None;
        };
        Some(LitecoinCore { folder, child })
    }

    /// A line of shell, where litecoin-cli speaks to this one.
    fn shell(&self, line: &str) -> String {
        let line = format!(
            "litecoin-cli() {{ command litecoin-cli -datadir='{}' -rpcwait \"$@\"; }}\n{line}",
            self.folder.path().display()
        );
        let output =
            Command::new("bash").args(["-c", &line]).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for LitecoinCore {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By the very line that the result gives.
#[test]
fn litecoin_core_has_the_same_addresses() {
    let Some(core) = LitecoinCore::start() else { return };
    core.shell("litecoin-cli createwallet vanity");
    for (pattern, kind) in
        [("LT", "p2pkh"), ("LT", "p2pkh-uncompressed"), ("MT", "p2sh"), ("ltc1qa", "p2wpkh")]
    {
        let args = ["ltc", pattern, "--type", kind, "--json", "--device", "cpu", "--threads", "1"];
        let line = warpsmith(&args).code(0).json().remove(0);
        let how = text(&line["details"], "use").split('`').nth(1).expect("a line of shell");
        write_private(core.folder.path().join("FILE"), text(&line, "export"));
        let asked = format!("litecoin-cli getaddressinfo {}", text(&line, "address"));
        let known = |core: &LitecoinCore| serde_json::from_str::<Value>(&core.shell(&asked)).unwrap();
        assert_eq!(known(&core)["ismine"], false, "{kind}");
        core.shell(how);
        assert_eq!(known(&core)["ismine"], true, "{kind}");
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
    // What holds no private key has none to draw or to encrypt.
    let public = text(&warpsmith(&["keygen", "--output", &other, "--json"]).code(0).json()[0], "public_key")
        .to_owned();
    search(&["--qr", "secret", "--split-key", &public])
        .code(2)
        .says(&["--qr secret", "holds no private key"]);
    let hash = "ab".repeat(32);
    let salts = [
        "create2",
        "a",
        "--factory",
        "arachnid",
        "--init-code-hash",
        &hash,
        "--device",
        "cpu",
        "--threads",
        "1",
    ];
    for flags in [&["--qr", "secret"][..], &["--encrypt"]] {
        warpsmith(&[&salts[..], flags].concat()).code(2).says(&[flags[0], "a salt is no secret"]);
    }
    assert!(is_drawn(&warpsmith(&[&salts[..], &["--qr"]].concat()).code(0).stdout));
}

/// A key that was recovered may have been paid long ago: a wallet that looks from now on would show nothing.
#[test]
fn recovered_keys_are_imported_from_the_start_of_the_chain() {
    let usual = ["--json", "--device", "cpu", "--threads", "1"];
    let line = |args: &[&str]| warpsmith(&[args, &usual].concat()).code(0).json().remove(0);
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (targets, keys) = (path("targets"), path("keys"));
    std::fs::write(&targets, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n").unwrap();
    std::fs::write(&keys, format!("{:064x}\n", 1)).unwrap();
    let scan = ["scan", "--range", "1:f", "--targets", &targets];
    for (found, timestamp) in [
        (line(&["btc", "1A"]), "\"timestamp\":\"now\"}]"),
        (line(&scan), "\"timestamp\":0}]"),
        (line(&["scan", "--keys", &keys, "--targets", &targets]), "\"timestamp\":0}]"),
        (line(&[&scan[..], &["--birthday", "2013-04-01"]].concat()), "\"timestamp\":1364774400}]"),
    ] {
        assert!(text(&found["details"], "use").ends_with(timestamp), "{found}");
        warpsmith_with(&["verify", "-"], found.to_string().as_bytes()).code(0);
    }
    warpsmith(&[&scan[..], &["--birthday", "1364774400"]].concat())
        .code(2)
        .says(&["--birthday", "YYYY-MM-DD"]);
    // A public key has no address that a wallet would look for.
    let generator = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let by_public_key = ["scan", "--range", "1:f", "--public-key", generator, "--birthday", "2013-04-01"];
    warpsmith(&by_public_key).code(2).says(&["--birthday", "--public-key"]);
}
