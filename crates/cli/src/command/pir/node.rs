//! A node of Ethereum: blocks, what they touched, and the state after them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use warpsmith::pir::ethereum::{
    Account, Address, ChainHead, account_record, code_hash, code_hash_key, code_hash_record, code_number,
    slot_key, slot_record,
};
use warpsmith::pir::remote::Remote;

use super::codes::ByHash;
use crate::telling::tell;

/// Bytes of an answer that are taken: a trace of a block is some megabytes.
const MOST_ANSWER: u64 = 1 << 30;
/// Calls of one request.
const MOST_CALLS: usize = 500;
/// A node that says nothing in so long is spoken of. Tracing a large block takes seconds.
const LONG: Duration = Duration::from_secs(10);
/// How soon a person who wants to stop is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// What a node does not do, in words.
pub(super) type Told<T> = Result<T, String>;

/// A key of the state and its record; none where the state has nothing there.
pub(super) type Record = (Vec<u8>, Option<Vec<u8>>);

/// What a node says of accounts and slots.
#[derive(Default)]
pub(super) struct Records {
    pub records: Vec<Record>,
    /// The codes of those that are contracts.
    pub codes: ByHash,
}

/// A node, which is asked until a person wants to stop.
pub(super) struct Node<'a> {
    remote: Remote,
    stop: &'a AtomicBool,
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub head: ChainHead,
    pub parent: [u8; 32],
    /// Accounts that a block changes beside its transactions: who made it, and who is paid by the consensus layer.
    paid: Vec<Address>,
}

/// Accounts and slots that a block may have changed.
type Touched = BTreeMap<Address, BTreeSet<[u8; 32]>>;

impl<'a> Node<'a> {
    pub fn new(remote: Remote, stop: &'a AtomicBool) -> Node<'a> {
        Node { remote: remote.hiding_path(), stop }
    }

    /// What it answers. Nobody who wants to stop waits for a node that is stuck, and nobody waits without a word.
    fn post(&self, body: Vec<u8>) -> Told<Vec<u8>> {
        let (answer, answers) = mpsc::channel();
        let (remote, begin) = (self.remote.clone(), Instant::now());
        // Left to itself where its answer is not wanted any more.
        std::thread::spawn(move || answer.send(remote.post_json(&body, MOST_ANSWER)));
        let mut is_told = false;
        loop {
            match answers.recv_timeout(LOOK) {
                Ok(answer) => return answer.map_err(|error| error.to_string()),
                Err(RecvTimeoutError::Disconnected) => return Err("the node could not be asked".to_owned()),
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    return Err("stopped".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if !is_told && begin.elapsed() > LONG => {
                    is_told = true;
                    tell(&format!(
                        "warning: the node has not answered in {} seconds; it is waited for",
                        LONG.as_secs()
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn call(&self, method: &str, params: &Value) -> Told<Value> {
        let answers = self.calls(&[(method, params.clone())])?;
        Ok(answers.into_iter().next().expect("one answer for each call"))
    }

    /// Several calls at once: all of their results, or what is wrong with one.
    fn calls(&self, calls: &[(&str, Value)]) -> Told<Vec<Value>> {
        let mut results = Vec::with_capacity(calls.len());
        for calls in calls.chunks(MOST_CALLS) {
            let batch: Vec<Value> = calls
                .iter()
                .zip(0u64..)
                .map(|((method, params), id)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
                .collect();
            let answer = self.post(Value::from(batch).to_string().into_bytes())?;
            let answer: Value =
                serde_json::from_slice(&answer).map_err(|_| "the node's answer is no JSON".to_owned())?;
            let mut by_id: BTreeMap<u64, Value> = BTreeMap::new();
            for answer in answer.as_array().into_iter().flatten() {
                by_id.extend(answer["id"].as_u64().map(|id| (id, answer.clone())));
            }
            for ((method, _), id) in calls.iter().zip(0u64..) {
                let answer = by_id
                    .get(&id)
                    .ok_or_else(|| format!("{method}: the node does not answer batches of calls"))?;
                if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
                    return Err(format!(
                        "{method}: the node says {}",
                        error["message"].as_str().unwrap_or("no")
                    ));
                }
                results.push(answer["result"].clone());
            }
        }
        Ok(results)
    }

    pub fn chain_id(&self) -> Told<u64> {
        number(&self.call("eth_chainId", &json!([]))?)
    }

    pub fn newest(&self) -> Told<u64> {
        number(&self.call("eth_blockNumber", &json!([]))?)
    }

    /// A block by its number, if the chain is so long.
    pub fn block(&self, chain_id: u64, height: u64) -> Told<Option<Block>> {
        let block = self.call("eth_getBlockByNumber", &json!([format!("{height:#x}"), false]))?;
        if block.is_null() {
            return Ok(None);
        }
        let head = ChainHead {
            chain_id,
            number: number(&block["number"])?,
            time: number(&block["timestamp"])?,
            hash: bytes(&block["hash"])?,
        };
        let mut paid = vec![bytes(&block["miner"])?];
        for withdrawal in block["withdrawals"].as_array().into_iter().flatten() {
            paid.push(bytes(&withdrawal["address"])?);
        }
        Ok(Some(Block { head, parent: bytes(&block["parentHash"])?, paid }))
    }

    /// The records after a block of all that it may have changed. Which these are is traced; what they are is asked, so
    /// that tracers may leave out whatever they like of values. None when the chain has gone another way meanwhile.
    pub fn changes(&self, block: &Block) -> Told<Option<Records>> {
        let height = format!("{:#x}", block.head.number);
        let tracer = json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}});
        let traces = self.call("debug_traceBlockByNumber", &json!([height, tracer]))?;
        let traces = traces.as_array().ok_or("debug_traceBlockByNumber: the node's answer is no list")?;
        let mut touched = Touched::new();
        for trace in traces {
            let result = trace.get("result").ok_or("debug_traceBlockByNumber: a transaction has no trace")?;
            for side in ["pre", "post"] {
                for (address, account) in result[side].as_object().into_iter().flatten() {
                    let slots = touched.entry(bytes(&address.as_str().into())?).or_default();
                    for slot in account["storage"].as_object().into_iter().flat_map(|slots| slots.keys()) {
                        slots.insert(word(&slot.as_str().into())?);
                    }
                }
            }
        }
        for address in &block.paid {
            touched.entry(*address).or_default();
        }
        by_the_protocol(&block.head, &mut touched);
        let records = self.records(&touched, &height)?;
        let still = self.block(block.head.chain_id, block.head.number)?;
        Ok(still.filter(|still| still.head.hash == block.head.hash).map(|_| records))
    }

    /// What the state says of accounts and slots after a block.
    fn records(&self, touched: &Touched, height: &str) -> Told<Records> {
        let mut calls = Vec::new();
        for (address, slots) in touched {
            let address = format!("0x{}", const_hex::encode(address));
            for method in ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"] {
                calls.push((method, json!([address, height])));
            }
            for slot in slots {
                calls.push((
                    "eth_getStorageAt",
                    json!([address, format!("0x{}", const_hex::encode(slot)), height]),
                ));
            }
        }
        let mut answers = self.calls(&calls)?.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let mut all = Records::default();
        for (address, slots) in touched {
            account(address, &next(), &next(), &next(), &mut all)?;
            for slot in slots {
                all.records.push(storage(address, slot, word(&next())?));
            }
        }
        Ok(all)
    }

    /// The whole state of a chain for trials, and its block. Only anvil tells it so; of other chains there are dumps.
    pub fn dump(&self) -> Told<(ChainHead, Records)> {
        let chain_id = self.chain_id()?;
        loop {
            let before = self.newest()?;
            let dump = self.call("anvil_dumpState", &json!([])).map_err(|error| {
                format!("{error}; a node that cannot be asked for its whole state needs a dump: `pir build DBFILE DUMP`")
            })?;
            let packed = dump.as_str().and_then(|text| const_hex::decode(text).ok());
            let packed = packed.ok_or("anvil_dumpState: the node's answer is no hex")?;
            let mut text = Vec::new();
            let unpacked = GzDecoder::new(&packed[..]).take(MOST_ANSWER).read_to_end(&mut text);
            unpacked.map_err(|error| format!("anvil_dumpState: {error}"))?;
            let dump: Value =
                serde_json::from_slice(&text).map_err(|error| format!("anvil_dumpState: {error}"))?;
            let block = self.block(chain_id, before)?;
            // What came while it was dumped may be in it or not.
            let Some(block) = block.filter(|_| dump["best_block_number"].as_u64() == Some(before)) else {
                continue;
            };
            if self.newest()? != before {
                continue;
            }
            let mut touched = Touched::new();
            for (address, account) in dump["accounts"].as_object().into_iter().flatten() {
                let slots = touched.entry(bytes(&address.as_str().into())?).or_default();
                for slot in account["storage"].as_object().into_iter().flat_map(|slots| slots.keys()) {
                    slots.insert(word(&slot.as_str().into())?);
                }
            }
            let records = self.records(&touched, &format!("{before:#x}"))?;
            let still = self.block(chain_id, before)?;
            if still.is_some_and(|still| still.head.hash == block.head.hash) {
                return Ok((block.head, records));
            }
        }
    }
}

/// What the protocol itself writes in every block, outside of all transactions: roots of the consensus layer (EIP-4788), hashes
/// of blocks (EIP-2935), and queues of requests (EIP-7002, EIP-7251). Where a chain has none of these, they are read in vain.
fn by_the_protocol(head: &ChainHead, touched: &mut Touched) {
    let slot = |number: u64| {
        let mut slot = [0; 32];
        slot[24..].copy_from_slice(&number.to_be_bytes());
        slot
    };
    let address = |text: &str| -> Address { bytes(&text.into()).expect("twenty bytes in hex") };
    const RING: u64 = 8191;
    let at = head.time % RING;
    let parent = head.number.saturating_sub(1) % RING;
    for (contract, slots) in [
        ("0x000f3df6d732807ef1319fb7b8bb8522d0beac02", vec![at, at + RING]),
        ("0x0000f90827f1c53a10cb7a02335b175320002935", vec![parent]),
        ("0x00000961ef480eb55e80d19ad83579a64c007002", vec![0, 1, 2, 3]),
        ("0x0000bbddc7ce488642fb579f8b00f3a590007251", vec![0, 1, 2, 3]),
    ] {
        touched.entry(address(contract)).or_default().extend(slots.into_iter().map(slot));
    }
}

/// Adds the record of an account, and the one that tells of its code, or that there is none.
fn account(address: &Address, balance: &Value, nonce: &Value, code: &Value, all: &mut Records) -> Told<()> {
    let balance = balance.as_str().and_then(|text| u128::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    let balance = balance.ok_or("a balance of the node's is no number of 128 bits")?;
    let nonce = u32::try_from(number(nonce)?).map_err(|_| "a nonce of the node's has more than 32 bits")?;
    let code = code
        .as_str()
        .and_then(|text| const_hex::decode(text).ok())
        .ok_or("a code of the node's is no hex")?;
    let hash = (!code.is_empty()).then(|| code_hash(&code));
    let account = Account { balance, nonce, code: hash.as_ref().map_or(0, code_number) };
    let is_there = account != Account { balance: 0, nonce: 0, code: 0 };
    all.records.push((address.to_vec(), is_there.then(|| account_record(address, &account).to_vec())));
    match hash {
        None => all.records.push((code_hash_key(address), None)),
        Some(hash) => {
            let (key, record) = code_hash_record(address, &hash);
            all.records.push((key, Some(record.to_vec())));
            all.codes.insert(hash, code);
        }
    }
    Ok(())
}

fn storage(address: &Address, slot: &[u8; 32], value: [u8; 32]) -> Record {
    let key = slot_key(address, slot);
    let record = (value != [0; 32]).then(|| slot_record(&key, &value).to_vec());
    (key, record)
}

fn number(value: &Value) -> Told<u64> {
    let number = value.as_str().and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    number.ok_or_else(|| "the node's answer has no number where one belongs".to_owned())
}

fn bytes<const N: usize>(value: &Value) -> Told<[u8; N]> {
    let bytes =
        value.as_str().and_then(|text| const_hex::decode(text).ok()).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("the node's answer has no {N} bytes in hex where they belong"))
}

/// A word of 32 bytes, which some nodes write without its leading zeros.
fn word(value: &Value) -> Told<[u8; 32]> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).filter(|digits| digits.len() <= 64);
    let digits = digits.ok_or("the node's answer has no word of 32 bytes where one belongs")?;
    bytes(&format!("{digits:0>64}").into())
}
