//! A database that follows a chain: after every stretch of blocks, and whatever the chain took back, what is asked privately is what
//! the node says.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};
use warpsmith_trials::programs::anvil::{ACCOUNT, Anvil};

use crate::harness::{BINARY, Desk, PATIENCE, Server, pir, signal, text};

/// The address of the contract that an account creates at a nonce, by a hand-written RLP of two short strings.
fn create(sender: &[u8], nonce: u64) -> Vec<u8> {
    let number: Vec<u8> = nonce.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
    let number = match number.as_slice() {
        [byte] if *byte < 0x80 => vec![*byte],
        more => [&[0x80 + more.len() as u8], more].concat(),
    };
    let body = [&[0x94], sender, &number].concat();
    let rlp = [&[0xc0 + body.len() as u8], &body[..]].concat();
    Keccak256::digest(rlp)[12..].to_vec()
}

/// Writes the second word of its data into the slot that the first names.
const WRITER: &str = "6008600c60003960086000f36020356000355500";

/// A process that follows, killed with the value.
pub(super) struct Following(Child);

impl Following {
    pub(super) fn start(database: &str, anvil: &Anvil, more: &[&str]) -> Following {
        let mut command = Command::new(BINARY);
        command
            .args(["follow", database, "--rpc", &anvil.url_for_traces(), "--poll", "50ms", "--json"])
            .args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.for_each(drop));
        Following(child)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Trial {
    desk: Desk,
    anvil: Anvil,
    database: String,
    server: Server,
    accounts: BTreeSet<String>,
    slots: BTreeSet<(String, u64)>,
    /// How many blocks the database stays behind the newest.
    behind: u128,
}

/// A number of the node's.
fn number(value: &Value) -> u128 {
    u128::from_str_radix(value.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

impl Trial {
    /// A chain whose database has room for what comes.
    fn start(anvil: Anvil, behind: u128) -> Trial {
        let desk = Desk::new();
        let database = desk.path("state.pir");
        pir(&["build", &database, "--rpc", &anvil.url, "--room", "900"]).code(0);
        let server = Server::start(&database, &[]);
        server.hint(&desk.path("my.state"), &["--queries", "3000"]).code(0);
        let accounts = BTreeSet::from([ACCOUNT.to_lowercase()]);
        Trial { desk, anvil, database, server, accounts, slots: BTreeSet::new(), behind }
    }

    /// What the database is.
    fn about(&self) -> Value {
        pir(&["info", &self.database, "--json"]).code(0).json().remove(0)
    }

    /// The block of the chain that the database is to come to.
    fn goal(&self) -> Value {
        let newest = number(&self.anvil.ask("eth_blockNumber", json!([])));
        self.anvil.ask("eth_getBlockByNumber", json!([format!("{:#x}", newest - self.behind), false]))
    }

    /// Waits until the database is where it is to come to, and its server too; the number of that block.
    fn settle(&self) -> Value {
        let begin = Instant::now();
        let (goal, epoch) = loop {
            let (goal, about) = (self.goal(), self.about());
            if about["block_hash"] == goal["hash"] {
                break (goal["number"].clone(), about["newest_epoch"].as_u64().unwrap());
            }
            assert!(begin.elapsed() < PATIENCE, "{about} does not come to {}", goal["number"]);
            std::thread::sleep(Duration::from_millis(100));
        };
        self.server.wait_for_epoch(epoch);
        goal
    }

    /// Waits until the follower has asked so often that it would have gone on by two blocks: a block takes six requests.
    fn let_it_look(&self) {
        let (before, begin) = (self.anvil.requests_for_traces(), Instant::now());
        while self.anvil.requests_for_traces() < before + 20 {
            assert!(begin.elapsed() < PATIENCE, "the follower asks for nothing any more");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks for everything that was ever touched, privately and at the node.
    fn compare(&self, when: &str) {
        let block = self.settle();
        let state = self.desk.path("my.state");
        let accounts: Vec<&str> = self.accounts.iter().map(String::as_str).collect();
        let slots: Vec<String> =
            self.slots.iter().map(|(contract, slot)| format!("{contract}:{slot:#x}")).collect();
        let keys: Vec<&str> = accounts.iter().copied().chain(slots.iter().map(String::as_str)).collect();
        let run = self.server.get(&state, &keys);
        assert!(matches!(run.code, Some(0 | 1)), "{when}: {run:?}");
        let lines = run.json();
        assert_eq!(lines.len(), keys.len(), "{when}");
        for (line, account) in lines.iter().zip(&accounts) {
            let balance = number(&self.anvil.ask("eth_getBalance", json!([account, block])));
            let nonce = number(&self.anvil.ask("eth_getTransactionCount", json!([account, block])));
            let has_code = self.anvil.ask("eth_getCode", json!([account, block])) != "0x";
            let found = balance > 0 || nonce > 0 || has_code;
            assert_eq!(line["found"], found, "{when}: {account}: {line}");
            if found {
                assert_eq!(text(line, "balance"), balance.to_string(), "{when}: {account}");
                assert_eq!(u128::from(line["nonce"].as_u64().unwrap()), nonce, "{when}: {account}");
                assert_eq!(line["code"] != 0, has_code, "{when}: {account}");
            }
        }
        for (line, (contract, slot)) in lines[accounts.len()..].iter().zip(&self.slots) {
            let value = self.anvil.ask("eth_getStorageAt", json!([contract, format!("{slot:#x}"), block]));
            let ours = line["value"].as_str().map_or("0".repeat(64), str::to_owned);
            assert_eq!(Some(format!("0x{ours}").as_str()), value.as_str(), "{when}: {contract}:{slot}");
        }
    }

    fn account(&mut self, number: u64) -> String {
        let address = format!("0x{:040x}", 0xacc0_0000_0000u64 + number);
        self.accounts.insert(address.clone());
        address
    }
}

#[test]
fn what_is_asked_privately_is_what_the_node_says_block_after_block() {
    let Some(anvil) = Anvil::start() else { return };
    let (desk, mut writers) = (Desk::new(), Vec::new());
    // A chain that has something already.
    let mut accounts = BTreeSet::from([ACCOUNT.to_lowercase(), format!("0x{}", "00".repeat(20))]);
    writers.extend(anvil.send(None, 0, WRITER));
    anvil.send(Some(&writers[0]), 0, &format!("{:064x}{:064x}", 1, 77));
    accounts.insert(writers[0].clone());
    let database = desk.path("state.pir");
    let built =
        pir(&["build", &database, "--rpc", &anvil.url, "--room", "900", "--json"]).code(0).json().remove(0);
    assert_eq!(text(&built["keyword"], "layout"), "state");
    let server = Server::start(&database, &[]);
    server.hint(&desk.path("my.state"), &["--queries", "12000"]).code(0);
    let history = ("0x0000f90827f1c53a10cb7a02335b175320002935".to_owned(), 1);
    let slots = BTreeSet::from([(writers[0].clone(), 1), history]);
    let mut trial = Trial { desk, anvil, database, server, accounts, slots, behind: 0 };
    trial.compare("as built");
    let mut following = Following::start(&trial.database, &trial.anvil, &[]);
    // Many new accounts and slots, more than a table of which no record can move would take; some slots are cleared again.
    for block in 0..220u64 {
        match block % 4 {
            0 | 1 => {
                let to = trial.account(block);
                trial.anvil.send(Some(&to), 1000 + block, "");
            }
            _ => {
                let writer = &writers[(block / 50) as usize % writers.len()];
                let value = if block % 16 == 3 { 0 } else { block * 1_000_003 };
                trial.anvil.send(Some(writer), 0, &format!("{:064x}{value:064x}", block % 120));
                trial.slots.insert((writer.clone(), block % 120));
            }
        }
        if block % 60 == 30 {
            writers.extend(trial.anvil.send(None, 0, WRITER));
            trial.accounts.insert(writers.last().unwrap().clone());
        }
        if block == 110 {
            // Killed in the middle, and begun again: from here on it folds, also between blocks that are taken back.
            drop(following);
            following =
                Following::start(&trial.database, &trial.anvil, &["--fold-every", "7", "--keep", "300"]);
        }
    }
    trial.compare("after 220 blocks");
    // Contracts that destroy themselves: as they are made, and later.
    let heir = trial.account(5000);
    let gone = trial.anvil.send(None, 555, &format!("73{}ff", &heir[2..])).unwrap();
    let later = trial.anvil.send(None, 0, &format!("6016600c60003960166000f373{}ff", &heir[2..])).unwrap();
    trial.accounts.extend([gone, later.clone()]);
    trial.compare("after a contract that was gone at once");
    trial.anvil.send(Some(&later), 321, "");
    trial.compare("after a contract that destroyed itself");
    // The chain takes blocks back: accounts, slots and contracts of theirs are as before, or were never there.
    for (depth, more) in [(1, 0), (5, 3), (12, 20)] {
        for block in 0..depth + 2 {
            let to = trial.account(7000 + 100 * depth + block);
            trial.anvil.send(Some(&to), 9, "");
            trial.anvil.send(Some(&writers[0]), 0, &format!("{:064x}{:064x}", block, depth * 7919 + block));
            trial.slots.insert((writers[0].clone(), block));
        }
        trial.settle();
        trial.anvil.ask("anvil_reorg", json!([depth, []]));
        trial.compare("after blocks were taken back");
        for block in 0..more {
            let to = trial.account(9000 + 100 * depth + block);
            trial.anvil.send(Some(&to), 4, "");
        }
        trial.compare("after others came in their place");
    }
    drop(following);
    // Taken back while nobody looked.
    trial.anvil.ask("anvil_reorg", json!([4, []]));
    let following = Following::start(&trial.database, &trial.anvil, &["--fold-every", "0"]);
    trial.compare("after blocks were taken back meanwhile");
    // Folded by somebody else, across what is taken back next.
    let folded =
        pir(&["fold", &trial.database, "--keep", "20", "--keep-changes", "0", "--json"]).code(0).json();
    assert!(folded[0]["changes"].as_u64() > Some(0), "{folded:?}");
    trial.anvil.ask("anvil_reorg", json!([6, []]));
    trial.compare("after blocks before the fold were taken back");
    // With something in them: empty blocks that are made again in their place can be the same ones.
    for block in 0..8 {
        let to = trial.account(20_000 + block);
        trial.anvil.send(Some(&to), 3, "");
    }
    trial.compare("after eight blocks more");
    drop(following);
    let about = pir(&["info", &trial.database, "--json", "--verify"]).code(0).json().remove(0);
    assert!(about["verified"] == true && about["epoch"].as_u64() > Some(100), "{about}");
    // More than is kept: that is told, and nothing is made of it.
    let head =
        &pir(&["fold", &trial.database, "--keep", "1", "--keep-changes", "0", "--json"]).code(0).json()[0];
    assert_eq!(head["oldest_epoch"].as_u64().map(|epoch| epoch + 1), head["epoch"].as_u64());
    trial.anvil.ask("anvil_reorg", json!([6, []]));
    trial.anvil.send(Some(ACCOUNT), 1, "");
    let newest = number(&trial.anvil.ask("eth_blockNumber", json!([]))).to_string();
    pir(&["follow", &trial.database, "--rpc", &trial.anvil.url_for_traces(), "--until", &newest])
        .code(4)
        .says(&["taken back more blocks than the database's updates hold", "--keep"]);
}

/// A table without room: it grows while the chain goes on, and the follower with it.
#[test]
fn a_follower_goes_on_in_a_larger_table() {
    let Some(anvil) = Anvil::start() else { return };
    let desk = Desk::new();
    let database = desk.path("state.pir");
    let built = pir(&["build", &database, "--rpc", &anvil.url, "--json"]).code(0).json().remove(0);
    let server = Server::start(&database, &[]);
    server.hint(&desk.path("my.state"), &["--queries", "3000"]).code(0);
    let accounts = BTreeSet::from([ACCOUNT.to_lowercase()]);
    let mut trial = Trial { desk, anvil, database, server, accounts, slots: BTreeSet::new(), behind: 0 };
    trial.compare("as built");
    let following = Following::start(&trial.database, &trial.anvil, &["--fold-every", "9"]);
    for block in 0..80u64 {
        let to = trial.account(block);
        trial.anvil.send(Some(&to), 1000 + block, "");
    }
    trial.settle();
    let grown = pir(&["info", &trial.database, "--json", "--verify"]).code(0).json().remove(0);
    assert!(grown["entries"].as_u64() > built["entries"].as_u64(), "{grown}");
    let state = trial.desk.path("my.state");
    trial.server.get(&state, &[ACCOUNT, "--no-new-hints"]).code(4).says(&["larger table"]);
    trial.compare("in a larger table");
    drop(following);
    // Begun again, and blocks that are taken back since.
    let _following = Following::start(&trial.database, &trial.anvil, &[]);
    let to = trial.account(1000);
    trial.anvil.send(Some(&to), 5, "");
    trial.compare("begun again");
    trial.anvil.ask("anvil_reorg", json!([1, []]));
    trial.compare("after a block was taken back");
}

/// What is served is all of an older block, and blocks that are taken back before it comes to them are nothing to it.
#[test]
fn a_follower_stays_as_far_behind_as_it_is_told() {
    let Some(anvil) = Anvil::start() else { return };
    let mut trial = Trial::start(anvil, 2);
    let _following = Following::start(&trial.database, &trial.anvil, &["--behind", "2"]);
    let writer = trial.anvil.send(None, 0, WRITER).unwrap();
    trial.accounts.insert(writer.clone());
    // The same accounts and slots again and again: each block says something else of them than those after it.
    let go_on = |trial: &mut Trial, blocks: std::ops::Range<u64>| {
        for block in blocks {
            let to = trial.account(block % 3);
            trial.anvil.send(Some(&to), 1000 + block, "");
            trial.anvil.send(Some(&writer), 0, &format!("{:064x}{:064x}", block % 4, block + 1));
            trial.slots.insert((writer.clone(), block % 4));
        }
    };
    for blocks in [0..7, 7..8, 8..20] {
        go_on(&mut trial, blocks);
        trial.compare("two blocks behind");
        trial.let_it_look();
        let newest = number(&trial.anvil.ask("eth_blockNumber", json!([])));
        let (about, goal) = (trial.about(), trial.goal());
        assert_eq!(about["block_number"].as_u64().map(u128::from), Some(newest - 2), "{about}");
        assert_eq!(about["block_hash"], goal["hash"], "{about}");
    }
    // It has not taken over the blocks that are taken back here, so it has nothing to take back.
    let before = trial.about();
    trial.anvil.ask("anvil_reorg", json!([2, []]));
    trial.let_it_look();
    let after = trial.about();
    for same in ["newest_epoch", "block_number", "block_hash"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    trial.compare("after the two newest blocks were taken back");
    go_on(&mut trial, 20..23);
    trial.compare("after others came in their place");
}

/// A contract that writes a slot and destroys itself in the transaction that makes it (the one case in which EIP-6780 lets it go), where
/// there was money before: the database has an account there, and then neither that nor the slot.
#[test]
fn a_contract_that_is_gone_at_once_leaves_neither_account_nor_slot() {
    let Some(anvil) = Anvil::start() else { return };
    let mut trial = Trial::start(anvil, 0);
    let _following = Following::start(&trial.database, &trial.anvil, &[]);
    let nonce = number(&trial.anvil.ask("eth_getTransactionCount", json!([ACCOUNT, "latest"])));
    // The money takes the next nonce, and the contract the one after.
    let gone = create(&const_hex::decode(ACCOUNT).unwrap(), nonce as u64 + 1);
    let gone = format!("0x{}", const_hex::encode(gone));
    let (heir, slot) = (trial.account(1), format!("{gone}:0x1"));
    trial.accounts.insert(gone.clone());
    trial.slots.insert((gone.clone(), 1));
    trial.anvil.send(Some(&gone), 444, "");
    trial.compare("before there is a contract");
    let ask = |trial: &Trial| -> Vec<bool> {
        let lines = trial.server.get(&trial.desk.path("my.state"), &[&gone, &slot]).code(1).json();
        lines.iter().map(|line| line["found"].as_bool().unwrap()).collect()
    };
    assert_eq!(ask(&trial), [true, false]);
    // 42 into slot 1, and all it has to the heir.
    let made = trial.anvil.send(None, 555, &format!("602a60015573{}ff", &heir[2..]));
    assert_eq!(made.map(|address| address.to_lowercase()), Some(gone.clone()));
    trial.compare("after the contract was gone");
    assert_eq!(ask(&trial), [false, false]);
    assert_eq!(number(&trial.anvil.ask("eth_getBalance", json!([heir, "latest"]))), 444 + 555);
    // The address is as any other afterwards.
    trial.anvil.send(Some(&gone), 7, "");
    trial.compare("after there was money again");
    assert_eq!(ask(&trial), [true, false]);
}

/// A node that takes every call and answers none: that is said, and nobody who wants to stop waits for it.
#[test]
fn a_node_that_does_not_answer_is_spoken_of_and_not_waited_for() {
    let stuck = TcpListener::bind("127.0.0.1:0").unwrap();
    let rpc = format!("http://{}", stuck.local_addr().unwrap());
    let desk = Desk::new();
    let accounts = desk.write("accounts.csv", format!("address,balance\n0x{},7\n", "11".repeat(20)));
    let (state, new) = (desk.path("state.pir"), desk.path("new.pir"));
    let hash = format!("0x{}", "22".repeat(32));
    let head = ["--chain-id", "1", "--block-number", "5", "--block-hash", &hash];
    pir(&[&["build", &state, &accounts, "--format", "accounts", "--names"], &head[..]].concat()).code(0);
    let before = desk.names();
    for args in [["follow", &state], ["build", &new]] {
        let mut command = Command::new(BINARY);
        command.args(args).args(["--rpc", &rpc, "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains("has not answered in 10 seconds")), "{args:?}");
        signal(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
        assert_eq!(desk.names(), before);
    }
}
