//! Wallets and tokens stand where we said: created on a local chain by Safe's proxy factories and the factories of ERC-4337, whose compiled
//! code in npm is what stands on the chains, and by a launcher of our own with a rule in a file.

use serde_json::{Value, json};

use crate::anvil::ACCOUNT;
use crate::contracts::Site;
use crate::foreign;
use crate::harness::{text, warpsmith};

pub const SAFES: [&str; 4] = ["safe-1.1.1", "safe-1.3.0", "safe-1.4.1", "safe-1.5.0"];
pub const ACCOUNTS: [&str; 3] = ["simple-account-0.6", "simple-account-0.7", "simple-account-0.8"];

/// Where a version of Safe lies in npm: the folder, the factory's artifact, and its singletons' with their names in the rule. Then the hash
/// of the factory's code on the chains, as Safe lists it (@safe-global/safe-deployments).
type Version = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

fn version(factory: &str) -> Version {
    match factory {
        "safe-1.1.1" => (
            "gnosis-safe-1.1.1",
            "build/contracts/ProxyFactory.json",
            &[("GnosisSafe", "build/contracts/GnosisSafe.json")],
            "0x0f0bb9c13be3b595d6f0fde841d5247a96f7e315bd8b97e1363553bee9a7d995",
        ),
        "safe-1.3.0" => (
            "gnosis-safe-1.3.0",
            "build/artifacts/contracts/proxies/GnosisSafeProxyFactory.sol/GnosisSafeProxyFactory.json",
            &[
                ("GnosisSafe", "build/artifacts/contracts/GnosisSafe.sol/GnosisSafe.json"),
                ("GnosisSafeL2", "build/artifacts/contracts/GnosisSafeL2.sol/GnosisSafeL2.json"),
            ],
            "0x337d7f54be11b6ed55fef7b667ea5488db53db8320a05d1146aa4bd169a39a9b",
        ),
        "safe-1.4.1" => (
            "safe-1.4.1",
            "build/artifacts/contracts/proxies/SafeProxyFactory.sol/SafeProxyFactory.json",
            &[
                ("Safe", "build/artifacts/contracts/Safe.sol/Safe.json"),
                ("SafeL2", "build/artifacts/contracts/SafeL2.sol/SafeL2.json"),
            ],
            "0x50c3cdc4074750a7a974204a716c999edd37482f907608d960b2b025ee0b3317",
        ),
        "safe-1.5.0" => (
            "safe-1.5.0",
            "build/artifacts/contracts/proxies/SafeProxyFactory.sol/SafeProxyFactory.json",
            &[
                ("Safe", "build/artifacts/contracts/Safe.sol/Safe.json"),
                ("SafeL2", "build/artifacts/contracts/SafeL2.sol/SafeL2.json"),
            ],
            "0x967dae4cda22b0c9ef7f31b010bdc1ceb0af9904b0c3dc060b5302e4c18a4529",
        ),
        other => panic!("{other} is no version of Safe"),
    }
}

/// Puts compiled code where it is on other chains, and shows its hash.
const PUT: &str = "const artifact = JSON.parse(fs.readFileSync(given.file, 'utf8')); \
    const {keccak256} = require('ethers'); \
    await provider.send('anvil_setCode', [given.address, artifact.deployedBytecode]); \
    show({hash: keccak256(artifact.deployedBytecode)});";

fn put(site: &Site, folder: &str, file: &str, address: &str) -> Option<Value> {
    let file = format!("packed/{folder}/{file}");
    site.place(&file, PUT, json!({ "file": file, "address": address }))
}

/// What a view function of a contract says.
fn asked(site: &Site, contract: &str, call: &str) -> String {
    let line = format!("cast call {contract} {call} --rpc-url {}", site.anvil.url);
    site.shell(&line).trim().to_owned()
}

#[test]
fn safes_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    for factory in SAFES {
        let (folder, code, singletons, hash) = version(factory);
        for (name, singleton) in singletons {
            // Any initializer will do to learn where factory and singleton are.
            let asks = ["--input", &format!("singleton={name}"), "--input", "initializer=0x"];
            let probe = site.search(&[&["create2", "c", "--factory", factory], &asks[..]].concat());
            let details = &probe["details"];
            let Some(placed) = put(&site, folder, code, text(details, "deployer")) else { return };
            assert_eq!(text(&placed, "hash"), hash, "{factory}: not the code that is on the chains");
            let (_, at) = text(details, "inputs").rsplit_once("singleton=").unwrap();
            put(&site, folder, singleton, at).expect("from the same package");
            let made = ["--factory", factory, "--input", &format!("singleton={name}"), "--owner", ACCOUNT];
            let is_bound = ["safe-1.4.1", "safe-1.5.0"].contains(&factory);
            for chain in [&[][..], &["--chain-id", "31337"]].into_iter().take(if is_bound { 2 } else { 1 }) {
                let found = site.search(&[&["create2", "ca"], &made[..], chain].concat());
                site.send(text(&found["details"], "use"));
                assert_ne!(site.code_at(&found), "0x", "{found}");
                let owners = asked(&site, text(&found, "address"), "'getOwners()(address[])'");
                assert_eq!(owners, format!("[{ACCOUNT}]"), "{found}");
            }
        }
    }
}

/// The call of `setup` by ethers.
const SETUP: &str = "const {Interface, ZeroAddress: zero} = require('ethers'); \
    const setup = new Interface(['function setup(address[],uint256,address,bytes,address,address,uint256,address)']); \
    show(setup.encodeFunctionData('setup', [given.owners, given.threshold, zero, '0x', given.handler, zero, 0, zero]));";

/// Owners alone say what `--input` would.
#[test]
fn a_safe_is_told_by_its_owners() {
    let owners =
        [ACCOUNT, "0x00000000219ab540356cBB839Cbe05303d7705Fa", "0x4e59b44847b379578588920cA78FbF26c0B4956C"];
    let explain = |more: &[&str]| {
        warpsmith(&[&["create2", "explain", "--salt", "7", "--json"], more].concat()).code(0).json().remove(0)
    };
    let each: Vec<&str> = owners.iter().flat_map(|owner| ["--owner", owner]).collect();
    let by_owners = explain(&[&each[..], &["--threshold", "2"]].concat());
    let handler = "0xfd0732Dc9E303f09fCEf3a7388Ad10A83459Ec99";
    let given = json!({ "owners": owners, "threshold": 2, "handler": handler });
    if let Some(setup) = foreign::node("ethers", SETUP, &given) {
        let setup = format!("initializer={}", setup.as_str().unwrap());
        let made = ["--factory", "safe-1.4.1", "--input", "singleton=SafeL2", "--input", &setup];
        assert_eq!(explain(&made), by_owners);
    }
    for (args, says) in [
        (&["--owner", ACCOUNT, "--threshold", "2"][..], "from 1 to 1"),
        (&["--owner", ACCOUNT, "--threshold", "0"], "expected a whole number, 1 or more"),
        (&["--owner", ACCOUNT, "--owner", ACCOUNT, "--threshold", "1"], "given twice"),
        (&["--owner", ACCOUNT, "--factory", "arachnid"], "makes no Safe; expected --factory safe-1.1.1"),
        (&["--owner", ACCOUNT, "--factory", "simple-account-0.7"], "--input owner=0x.."),
        (&["--owner", "0x12"], "--owner: "),
        (&["--threshold", "1", "--factory", "safe-1.4.1"], "--owner"),
    ] {
        let salt = format!("{:064x}", 7);
        warpsmith(&[&["create2", "explain", "--salt", &salt], args].concat()).code(2).says(&[says]);
    }
}

/// The factory, created as it was on every chain: by the deterministic deployment proxy, with the salt 0.
const FACTORY: &str = "const {AbiCoder} = require('ethers'); \
    const read = name => JSON.parse(fs.readFileSync('packed/' + given.folder + '/artifacts/' + name + '.json', 'utf8')); \
    const entryPoint = await place(read('EntryPoint').bytecode); \
    await provider.send('anvil_setCode', [given.entryPoint, await provider.getCode(entryPoint)]); \
    const code = read('SimpleAccountFactory').bytecode + AbiCoder.defaultAbiCoder().encode(['address'], [given.entryPoint]).slice(2); \
    const to = '0x4e59b44847b379578588920cA78FbF26c0B4956C'; \
    const sent = await signer.sendTransaction({to, data: '0x' + '00'.repeat(32) + code.slice(2)}); \
    await sent.wait(); show(true);";

#[test]
fn accounts_of_erc_4337_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    for (factory, entry_point) in ACCOUNTS.into_iter().zip([
        "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789",
        "0x0000000071727De22E5E9d8BAf0edAc6f37da032",
        "0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108",
    ]) {
        let folder = factory.replace("simple-account", "account-abstraction");
        let needs = format!("packed/{folder}/artifacts/SimpleAccountFactory.json");
        let given = json!({ "folder": folder, "entryPoint": entry_point });
        if site.place(&needs, FACTORY, given).is_none() {
            return;
        }
        let owner = format!("owner={ACCOUNT}");
        let found = site.search(&["create2", "ca", "--factory", factory, "--input", &owner]);
        let (address, salt) = (text(&found, "address"), text(&found, "salt"));
        let deployer = text(&found["details"], "deployer");
        let predicted =
            asked(&site, deployer, &format!("'getAddress(address,uint256)(address)' {ACCOUNT} {salt}"));
        assert_eq!(predicted, address, "{found}");
        if factory == "simple-account-0.8" {
            // Only the entry point's helper may call it.
            let helper = asked(&site, deployer, "'senderCreator()(address)'");
            let url = &site.anvil.url;
            site.shell(&format!("cast rpc anvil_impersonateAccount {helper} --rpc-url {url}"));
            site.shell(&format!("cast rpc anvil_setBalance {helper} 0x8ac7230489e80000 --rpc-url {url}"));
            let call = format!("'createAccount(address,uint256)' {ACCOUNT} {salt}");
            site.send(&format!("cast send {deployer} {call} --from {helper} --interactive --rpc-url URL"));
        } else {
            site.send(text(&found["details"], "use"));
        }
        assert_eq!(asked(&site, address, "'owner()(address)'"), ACCOUNT, "{found}");
    }
}

#[test]
fn tokens_of_a_launcher_with_a_rule_of_its_own_stand_where_we_said() {
    let Some(site) = Site::new() else { return };
    let script = "const {AbiCoder} = require('ethers'); \
        const token = compile('solc', given.text, 'Token'); \
        const encode = name => AbiCoder.defaultAbiCoder().encode(['string', 'address', 'uint256'], [name, given.admin, 1000]); \
        show({launcher: await place(compile('solc', given.text, 'Launcher')), token, silver: encode('Silver'), gold: encode('Gold')});";
    let given = json!({ "text": include_str!("contracts/launcher.sol"), "admin": ACCOUNT });
    let Some(placed) = site.place("node_modules/solc", script, given) else { return };
    let launcher = text(&placed, "launcher");

    // The code by a file, as for any factory.
    let rule = format!(
        "name = \"launcher\"\ndeployer = \"{launcher}\"\ncreate2 = \"launch(string,address,uint256,bytes32)\"\n\
         guard = \"keccak256(abi.encode(admin, salt))\"\n\n[inputs]\nadmin = \"address\"\n"
    );
    std::fs::write(site.path("launcher.toml"), rule).unwrap();
    std::fs::write(site.path("token.hex"), text(&placed, "token")).unwrap();
    let (rule, code, admin) =
        (site.path("launcher.toml"), site.path("token.hex"), format!("admin={ACCOUNT}"));
    let arguments = ["--init-code", &code, "--constructor-args", text(&placed, "silver")];
    let found =
        site.search(&[&["create2", "ca", "--rule", &rule, "--input", &admin], &arguments[..]].concat());
    let call =
        format!("'launch(string,address,uint256,bytes32)' Silver {ACCOUNT} 1000 {}", text(&found, "salt"));
    site.send(&format!("cast send {launcher} {call} --interactive --rpc-url URL"));
    assert_eq!(asked(&site, text(&found, "address"), "'name()(string)'"), "\"Silver\"");

    // All of it in the rule: a short salt, what is hashed behind it, and the code.
    let rule = format!(
        "name = \"here\"\ndeployer = \"{launcher}\"\ncreate2 = \"launchHere(address,uint96)\"\narguments = [\"admin\", \"salt\"]\n\
         salt = \"uint96\"\nguard = \"keccak256(abi.encodePacked(salt, msg.sender, block.chainid))\"\n\
         init_code = \"abi.encodePacked(token, given)\"\n\n\
         [inputs]\nadmin = \"address\"\n\n[constants]\ntoken = \"bytes 0x{}\"\ngiven = \"bytes {}\"\n",
        text(&placed, "token"),
        text(&placed, "gold")
    );
    std::fs::write(site.path("here.toml"), rule).unwrap();
    let (rule, caller) = (site.path("here.toml"), format!("caller:{ACCOUNT}"));
    let asks = ["--rule", &rule, "--input", &admin, "--salt-layout", &caller, "--chain-id", "31337"];
    let found = site.search(&[&["create2", "ca"], &asks[..]].concat());
    site.send(text(&found["details"], "use"));
    assert_eq!(asked(&site, text(&found, "address"), "'name()(string)'"), "\"Gold\"");
}
