//! Contracts stand where we said: created on a local chain, by the factories' own code, with the salts and keys that were found.
//!
//! CreateX and the deterministic deployment proxy are there as on every chain. 0age's ImmutableCreate2Factory and ZeframLou's
//! CREATE3Factory are compiled from their sources and put where they are elsewhere; contracts with the libraries of Solmate and
//! Solady from sources in npm; 0xSequence's comes compiled, in a package of 1inch's.

use serde_json::{Value, json};
use tempfile::TempDir;
use warpsmith::chain::ethereum::FACTORIES;

use crate::anvil::{ACCOUNT, Anvil, CODE, RUNTIME};
use crate::foreign;
use crate::harness::{text, warpsmith, write_private};
use crate::wallets;

/// Factories of each test; together with those of `wallets` they are all there are.
const SIGNED_FOR_ALL_CHAINS: [&str; 2] = ["arachnid", "createx"];
const FROM_LIBRARIES: [&str; 3] = ["plain", "solmate", "solady"];
const COMPILED_BY_OTHERS: [&str; 1] = ["sequence"];
const FROM_SOURCE: [&str; 3] = ["0age", "create3factory", "lifi"];

/// A chain, and a folder with the creation code.
pub struct Site {
    pub anvil: Anvil,
    folder: TempDir,
}

impl Site {
    /// `None` where anvil is not installed.
    pub fn new() -> Option<Site> {
        let anvil = Anvil::start()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("code.hex"), CODE).unwrap();
        Some(Site { anvil, folder })
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn shell(&self, line: &str) -> String {
        self.anvil.shell(line, self.folder.path())
    }

    pub fn code_at(&self, line: &Value) -> String {
        let asked = format!("cast code {} --rpc-url {}", text(line, "address"), self.anvil.url);
        self.shell(&asked).trim().to_owned()
    }

    /// A search on the processor.
    pub fn search(&self, args: &[&str]) -> Value {
        search(args)
    }

    /// Sends what a line of shell says, signed for by the chain.
    pub fn send(&self, line: &str) {
        let from = if line.contains("--from") { String::new() } else { format!("--from {ACCOUNT}") };
        // Where only a hash was given, or nothing, the line says which file it wants.
        let line =
            line.replace(", where FILE holds the creation code in hex", "").replace("FILE", "code.hex");
        let signed = line.replace("--interactive", &format!("--unlocked {from}"));
        self.shell(&signed.replace("URL", &self.anvil.url));
    }

    /// Has the contract of a result created by this line of shell.
    fn create(&self, found: &Value, line: &str) {
        assert_eq!(self.code_at(found), "0x");
        self.send(line);
        assert_eq!(self.code_at(found), RUNTIME, "{found}: {line}");
    }

    /// What a script of node shows that puts contracts on the chain with the functions of `place.js`; `None` where what it needs
    /// is not installed.
    pub fn place(&self, needs: &str, script: &str, mut given: Value) -> Option<Value> {
        given["url"] = json!(self.anvil.url);
        foreign::folder(needs)?;
        let whole = format!("{}\n{script}\nprovider.destroy();", include_str!("contracts/place.js"));
        foreign::node("ethers", &whole, &given)
    }
}

fn search(args: &[&str]) -> Value {
    let flags = ["--json", "--device", "cpu", "--threads", "1"];
    warpsmith(&[args, &flags].concat()).code(0).json().remove(0)
}

/// A contract made by CREATE2 or CREATE3, by the factory's name and how else it is asked.
fn found(factory: &str, code: &str, more: &[&str]) -> Value {
    let has_create3 = FACTORIES.iter().find(|row| row.name == factory).expect("a factory").create3.is_some();
    let args = ["--factory", factory];
    match has_create3 {
        true => search(&[&["create3", "ca"][..], &args, more].concat()),
        false => search(&[&["create2", "ca", "--init-code", code][..], &args, more].concat()),
    }
}

#[test]
fn every_factory_is_tried() {
    let here = [&SIGNED_FOR_ALL_CHAINS[..], &FROM_LIBRARIES, &COMPILED_BY_OTHERS, &FROM_SOURCE].concat();
    let mut tried = [&here[..], &wallets::SAFES, &wallets::ACCOUNTS].concat();
    let mut known: Vec<&str> = FACTORIES.iter().map(|factory| factory.name.as_str()).collect();
    tried.sort_unstable();
    known.sort_unstable();
    assert_eq!(tried, known);
}

/// CreateX comes to every chain by one transaction that was signed for all of them.
const CREATEX: &str = "const file = './node_modules/@nomicfoundation/ignition-core/dist/src/internal/execution/strategy/createx-artifact.js'; \
    const {presignedTx} = await import(require('path').resolve(file)); \
    const {Transaction} = require('ethers'); \
    await provider.send('anvil_setBalance', [Transaction.from(presignedTx).from, '0x8ac7230489e80000']); \
    const hash = await provider.send('eth_sendRawTransaction', [presignedTx]); \
    const receipt = await provider.waitForTransaction(hash); show(receipt.contractAddress);";

#[test]
fn contracts_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    let Some(createx) = site.place("node_modules/@nomicfoundation/ignition-core", CREATEX, json!({})) else {
        return;
    };
    assert_eq!(createx, "0xba5Ed099633D3B313e4D5F7bdc1305d3c28ba5Ed");
    let caller = format!("caller:{ACCOUNT}");
    let (code, caller) = (site.path("code.hex"), caller.as_str());
    let [arachnid, createx] = SIGNED_FOR_ALL_CHAINS;
    let guarded = ["--factory", createx, "--salt-layout", caller];
    for args in [
        &["create2", "ca", "--factory", arachnid, "--init-code", &code][..],
        &[&["create2", "ca", "--init-code", &code][..], &guarded].concat(),
        &[&["create2", "ca", "--init-code", &code][..], &["--factory", createx]].concat(),
        &[&["create3", "ca"][..], &guarded].concat(),
        &[&["create3", "ca", "--chain-id", "31337"][..], &guarded].concat(),
        &["create3", "ca", "--factory", createx],
    ] {
        let line = search(args);
        // The line that the result gives.
        site.create(&line, text(&line["details"], "use"));
    }

    // By the account of a key, out of its keystore.
    let (password, keystore) = (site.path("password"), site.path("keystore"));
    write_private(&password, "p");
    let encrypt = ["--encrypt", "--password-file", &password, "--keystore", &keystore];
    let line = search(&[&["eth", "ca", "--contract"][..], &encrypt].concat());
    let (file, sender) = (text(&line["encrypted"], "file"), text(&line["details"], "sender"));
    let url = &site.anvil.url;
    site.shell(&format!("cast rpc anvil_setBalance {sender} 0x8ac7230489e80000 --rpc-url {url}"));
    site.shell(&format!(
        "cast send --keystore {file} --password-file {password} --rpc-url {url} --create {CODE}"
    ));
    assert_eq!(site.code_at(&line), RUNTIME);
}

/// Has a deployer that takes a salt and code create the contract of a result.
fn create_by(site: &Site, factory: &str, deployer: &str) {
    let found = found(factory, &site.path("code.hex"), &["--deployer", deployer]);
    let how = text(&found["details"], "use");
    assert!(how.contains(deployer) && how.contains(text(&found, "salt")), "{how}");
    let salt = text(&found, "salt");
    let line = format!(
        "cast send {deployer} 'deploy(bytes32,bytes)' {salt} $(cat code.hex) --interactive --rpc-url URL"
    );
    site.create(&found, &line);
}

#[test]
fn contracts_of_libraries_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    for factory in FROM_LIBRARIES {
        let contract = format!("{}{}Deployer", factory[..1].to_uppercase(), &factory[1..]);
        let script = "show(await place(compile('solc', given.text, given.contract)));";
        let given = json!({ "text": include_str!("contracts/deployers.sol"), "contract": contract });
        let Some(deployer) = site.place("node_modules/solady", script, given) else { return };
        create_by(&site, factory, deployer.as_str().unwrap());
    }
}

/// 1inch's package has a contract with 0xSequence's library, compiled.
#[test]
fn contracts_of_sequence_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    let file = "packed/1inch-solidity-utils/dist/typechain-types/factories/contracts/tests/mocks/Create3Mock__factory.js";
    let script = "const text = fs.readFileSync(given.file, 'utf8'); \
        show(await place(text.match(/_bytecode = \"(0x[0-9a-f]+)\"/)[1]));";
    let Some(deployer) = site.place(file, script, json!({ "file": file })) else { return };
    let [sequence] = COMPILED_BY_OTHERS;
    create_by(&site, sequence, deployer.as_str().unwrap());
}

/// With the lines that the results give, where the factories are on other chains.
#[test]
fn contracts_of_factories_from_source_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    let caller = format!("caller:{ACCOUNT}");
    let guarded = ["--salt-layout", caller.as_str()];
    for factory in FROM_SOURCE {
        let (file, compile) = match factory {
            "0age" => (
                "sources/metamorphic/contracts/ImmutableCreate2Factory.sol",
                "compile('solc-0.5.6', text, 'ImmutableCreate2Factory')",
            ),
            _ => (
                "sources/create3-factory/src/CREATE3Factory.sol",
                "compile('solc', text, 'CREATE3Factory', \
                    { 'ICREATE3Factory.sol': given.file.replace('/CREATE3', '/ICREATE3') })",
            ),
        };
        let script = format!(
            "const text = fs.readFileSync(given.file, 'utf8'); show(await place({compile}, given.address));"
        );
        let mined = found(factory, &site.path("code.hex"), &guarded);
        let address = text(&mined["details"], "deployer");
        let Some(placed) = site.place(file, &script, json!({ "file": file, "address": address })) else {
            return;
        };
        assert_eq!(placed, address);
        site.create(&mined, text(&mined["details"], "use"));
    }
    // 0age's takes salts that begin with zeros from anyone.
    let mined = found("0age", &site.path("code.hex"), &[]);
    site.create(&mined, text(&mined["details"], "use"));
}
