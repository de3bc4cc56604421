//! A node of Ethereum: blocks, what they touched, and the state after them.

mod reads;
mod replies;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use warpsmith_rms24::memory;
use warpsmith_rms24::remote::Remote;

pub use self::reads::is_read_method;
use self::replies::{MAX_TEXT, Names, Reply, Touched, Traces};
use crate::code::{code_hash, code_hash_key, code_hash_record, code_number};
use crate::codes::CodesByHash;
use crate::head::ChainHead;
use crate::record::{Account, Address, account_record, slot_key, slot_record};

/// Bytes of an answer that are taken. A trace of a block is some megabytes, of which only names are
/// kept.
const MAX_ANSWER: u64 = 1 << 30;
/// The same of answers that are kept whole: values of a batch, or a dump.
const MAX_KEPT: u64 = 256 << 20;
/// Calls of one request.
const MAX_CALLS: usize = 500;
/// Time without an answer after which there is a warning. Tracing a large block takes seconds.
const SLOW_AFTER: Duration = Duration::from_secs(10);
/// Interval of looking whether `stop` was raised.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// Attempts to read the state of a chain that goes on meanwhile, and the pause between them.
const DUMP_ATTEMPTS: u32 = 10;
const DUMP_PAUSE: Duration = Duration::from_secs(1);

/// Why a node's answer is not there, or of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The caller raised the flag that stops it.
    #[error("stopped")]
    Stopped,
    /// The node cannot be reached or refuses.
    #[error(transparent)]
    Call(#[from] warpsmith_rms24::Error),
    /// The node's answer is no answer to what was asked.
    #[error("{0}")]
    Reply(String),
    /// The node does not dump its state.
    #[error("{0}; a node that cannot be asked for its whole state needs a dump")]
    NoDump(Box<NodeError>),
    /// The chain went on each time its state was read.
    #[error(
        "the chain went on in each of {0} attempts to read its state, or the node dumps another block than its newest; stop \
         its blocks meanwhile, or build from a dump"
    )]
    Moving(u32),
}

impl From<String> for NodeError {
    fn from(reason: String) -> NodeError {
        NodeError::Reply(reason)
    }
}

impl From<&str> for NodeError {
    fn from(reason: &str) -> NodeError {
        NodeError::Reply(reason.to_owned())
    }
}

/// The result of asking a node.
pub type Result<T> = std::result::Result<T, NodeError>;

/// Something about a node that a person should know while it is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeWarning {
    /// It has not answered for so long.
    Slow(Duration),
    /// Its chain went on while its state was read: another attempt follows after a pause.
    Moved {
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// The attempts there are.
        attempts: u32,
        /// The pause.
        pause: Duration,
    },
}

/// Hears warnings about a node.
pub type Warn<'a> = &'a dyn Fn(NodeWarning);

/// A key of the state and its record; none where the state has nothing there.
pub type Record = (Vec<u8>, Option<Vec<u8>>);

/// Accounts and slots, as a node says they are.
#[derive(Default)]
pub struct Records {
    /// Their records.
    pub records: Vec<Record>,
    /// The codes of those that are contracts.
    pub codes: CodesByHash,
}

/// A node, which is asked until `stop` is raised.
pub struct Node<'a> {
    remote: Remote,
    stop: &'a AtomicBool,
    warn: Warn<'a>,
}

/// A block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Which one.
    pub head: ChainHead,
    /// The hash of the block before it.
    pub parent: [u8; 32],
    /// Accounts that a block changes beside its transactions: who made it, and who is paid by the
    /// consensus layer.
    paid: Vec<Address>,
}

/// A block as a node tells it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockFields {
    number: String,
    timestamp: String,
    hash: String,
    parent_hash: String,
    miner: String,
    #[serde(default)]
    withdrawals: Option<Vec<Withdrawal>>,
}

#[derive(Deserialize)]
struct Withdrawal {
    address: String,
}

impl<'a> Node<'a> {
    /// A node at this address. Calls end soon after `stop` is raised.
    pub fn new(remote: Remote, stop: &'a AtomicBool, warn: Warn<'a>) -> Node<'a> {
        Node { remote: remote.hiding_path(), stop, warn }
    }

    /// Sends a batch of calls and reads the replies as they come. Warns when the node is slow, and
    /// ends when `stop` is raised.
    fn post<T: DeserializeOwned + Send + 'static>(
        &self,
        body: Vec<u8>,
        longest: u64,
        max_text: usize,
    ) -> Result<Vec<Reply<T>>> {
        let (answer, answers) = mpsc::channel();
        let (remote, begin) = (self.remote.clone(), Instant::now());
        // Left to itself where its answer is not wanted any more. All calls of this module read, so
        // that they can be sent again.
        std::thread::spawn(move || {
            answer.send(remote.post_json(&body, true, longest, |reader| replies::read(reader, max_text)))
        });
        let mut is_slow = false;
        loop {
            match answers.recv_timeout(STOP_INTERVAL) {
                Ok(answer) => return Ok(answer?),
                Err(RecvTimeoutError::Disconnected) => return Err("the node could not be asked".into()),
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    return Err(NodeError::Stopped);
                }
                Err(RecvTimeoutError::Timeout) if !is_slow && begin.elapsed() > SLOW_AFTER => {
                    is_slow = true;
                    (self.warn)(NodeWarning::Slow(SLOW_AFTER));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// One call: its result, none where that is null.
    fn call<T: DeserializeOwned + Send + 'static>(
        &self,
        method: &str,
        params: Value,
        longest: u64,
        max_text: usize,
    ) -> Result<Option<T>> {
        let mut results = self.calls(&[(method, params)], longest, max_text)?;
        Ok(results.pop().expect("one answer for each call"))
    }

    /// One call whose result is a text.
    fn text(&self, method: &str, params: Value) -> Result<String> {
        self.call(method, params, MAX_KEPT, MAX_TEXT)?
            .ok_or_else(|| format!("{method}: the node's answer has no result").into())
    }

    /// Several calls at once: all of their results, or what is wrong with one.
    fn calls<T: DeserializeOwned + Send + 'static>(
        &self,
        calls: &[(&str, Value)],
        longest: u64,
        max_text: usize,
    ) -> Result<Vec<Option<T>>> {
        let batch: Vec<Value> = calls
            .iter()
            .zip(0u64..)
            .map(|((method, params), id)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .collect();
        let replies = self.post(Value::from(batch).to_string().into_bytes(), longest, max_text)?;
        let mut by_id = BTreeMap::new();
        let is_whole = |reply: &Reply<T>| reply.id.is_none() && reply.error.is_some();
        for reply in replies {
            // Without an id it is said of all.
            let id = if is_whole(&reply) { 0 } else { reply.id.unwrap_or(u64::MAX) };
            by_id.insert(id, reply);
        }
        let mut results = Vec::with_capacity(calls.len());
        for ((method, _), id) in calls.iter().zip(0u64..) {
            let reply = by_id
                .remove(&id)
                .ok_or_else(|| format!("{method}: the node does not answer batches of calls"))?;
            if let Some(refusal) = reply.error {
                let message: String = refusal.message.as_deref().unwrap_or("no").chars().take(300).collect();
                return Err(format!("{method}: the node says {message}").into());
            }
            results.push(reply.result);
        }
        Ok(results)
    }

    /// The id of its chain.
    ///
    /// # Errors
    ///
    /// When it cannot be asked.
    pub fn chain_id(&self) -> Result<u64> {
        number(&self.text("eth_chainId", json!([]))?)
    }

    /// The number of its newest block.
    ///
    /// # Errors
    ///
    /// When it cannot be asked.
    pub fn newest(&self) -> Result<u64> {
        number(&self.text("eth_blockNumber", json!([]))?)
    }

    /// A block by its number, if the chain is so long.
    ///
    /// # Errors
    ///
    /// When it cannot be asked.
    pub fn block(&self, chain_id: u64, height: u64) -> Result<Option<Block>> {
        let params = json!([format!("{height:#x}"), false]);
        let block = self.call("eth_getBlockByNumber", params, MAX_KEPT, MAX_TEXT)?;
        let Some(BlockFields { number: height, timestamp, hash, parent_hash, miner, withdrawals }) = block
        else {
            return Ok(None);
        };
        let head =
            ChainHead { chain_id, number: number(&height)?, time: number(&timestamp)?, hash: bytes(&hash)? };
        let mut paid = vec![bytes(&miner)?];
        for withdrawal in withdrawals.iter().flatten() {
            paid.push(bytes(&withdrawal.address)?);
        }
        Ok(Some(Block { head, parent: bytes(&parent_hash)?, paid }))
    }

    /// The records after a block of all that it may have changed. Which these are is traced; what
    /// they are is asked, so that tracers may leave out whatever they like of values. None when the
    /// chain has gone another way meanwhile.
    ///
    /// # Errors
    ///
    /// When it cannot be asked, does not trace blocks, or names more than there is memory for.
    pub fn changes(&self, block: &Block) -> Result<Option<Records>> {
        let height = format!("{:#x}", block.head.number);
        let tracer = json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}});
        let traces = self.call("debug_traceBlockByNumber", json!([height, tracer]), MAX_ANSWER, MAX_TEXT)?;
        let Traces(mut touched) = traces.ok_or("debug_traceBlockByNumber: the node's answer is no list")?;
        for address in &block.paid {
            touched.add(*address, [])?;
        }
        by_the_protocol(&block.head, &mut touched)?;
        let records = self.records(&touched, &height)?;
        let still = self.block(block.head.chain_id, block.head.number)?;
        Ok(still.filter(|still| still.head.hash == block.head.hash).map(|_| records))
    }

    /// What the state says of accounts and slots after a block.
    fn records(&self, touched: &Touched, height: &str) -> Result<Records> {
        let mut keys = touched.accounts.iter().flat_map(|(address, slots)| {
            std::iter::once((address, None)).chain(slots.iter().map(move |slot| (address, Some(slot))))
        });
        let (mut all, mut code_bytes) = (Records::default(), 0);
        loop {
            // An account takes three calls.
            let part: Vec<_> = keys.by_ref().take(MAX_CALLS / 3).collect();
            if part.is_empty() {
                return Ok(all);
            }
            let mut calls = Vec::new();
            for (address, slot) in &part {
                let address = format!("0x{}", const_hex::encode(address));
                match slot {
                    None => calls.extend(
                        ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"]
                            .map(|method| (method, json!([address, height]))),
                    ),
                    Some(slot) => {
                        let slot = format!("0x{}", const_hex::encode(slot));
                        calls.push(("eth_getStorageAt", json!([address, slot, height])));
                    }
                }
            }
            let mut answers = self.calls::<String>(&calls, MAX_KEPT, MAX_TEXT)?.into_iter();
            let mut next = || answers.next().flatten().ok_or("the node's answer has no result");
            for (address, slot) in part {
                match slot {
                    None => code_bytes += account(address, &next()?, &next()?, &next()?, &mut all)?,
                    Some(slot) => all.records.push(storage(address, slot, word(&next()?)?)),
                }
            }
            if code_bytes > memory::of_machine() / 4 {
                return Err(NodeError::from(format!(
                    "the node has {code_bytes} bytes of code, more than this machine has memory for"
                )));
            }
        }
    }

    /// The whole state of a chain for trials, and its block. Only anvil tells it so; of other
    /// chains there are dumps. A chain that goes on meanwhile is read again, after a pause.
    ///
    /// # Errors
    ///
    /// When it cannot be asked, does not dump its state, or its chain goes on all the time.
    pub fn dump(&self) -> Result<(ChainHead, Records)> {
        let chain_id = self.chain_id()?;
        for attempt in 1..=DUMP_ATTEMPTS {
            if let Some(dump) = self.dump_at_rest(chain_id)? {
                return Ok(dump);
            }
            if attempt < DUMP_ATTEMPTS {
                (self.warn)(NodeWarning::Moved { attempt, attempts: DUMP_ATTEMPTS, pause: DUMP_PAUSE });
                pause(DUMP_PAUSE, self.stop);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(NodeError::Stopped);
            }
        }
        Err(NodeError::Moving(DUMP_ATTEMPTS))
    }

    /// The state, if the chain did not go on while it was read.
    fn dump_at_rest(&self, chain_id: u64) -> Result<Option<(ChainHead, Records)>> {
        let before = self.newest()?;
        let packed = self.call::<String>("anvil_dumpState", json!([]), MAX_KEPT, MAX_KEPT as usize);
        let packed = packed.map_err(|error| match error {
            NodeError::Stopped => NodeError::Stopped,
            error => NodeError::NoDump(Box::new(error)),
        })?;
        let packed = packed.ok_or("anvil_dumpState: the node's answer has no result")?;
        let names = Names::of_dump(&packed).map_err(|error| format!("anvil_dumpState: {error}"))?;
        drop(packed);
        let block = self.block(chain_id, before)?;
        // What came while it was dumped may be in it or not.
        let Some(block) = block.filter(|_| names.block == Some(before)) else { return Ok(None) };
        if self.newest()? != before {
            return Ok(None);
        }
        let records = self.records(&names.touched, &format!("{before:#x}"))?;
        let still = self.block(chain_id, before)?;
        let is_same = still.is_some_and(|still| still.head.hash == block.head.hash);
        Ok(is_same.then_some((block.head, records)))
    }
}

/// Sleeps, until `stop` is raised.
pub fn pause(time: Duration, stop: &AtomicBool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STOP_INTERVAL.min(until.saturating_duration_since(Instant::now())));
    }
}

/// What the protocol itself writes in every block, outside of all transactions: roots of the
/// consensus layer (EIP-4788), hashes of blocks (EIP-2935), and queues of requests (EIP-7002,
/// EIP-7251). Where a chain has none of these, they are read in vain.
fn by_the_protocol(head: &ChainHead, touched: &mut Touched) -> Result<()> {
    let slot = |number: u64| {
        let mut slot = [0; 32];
        slot[24..].copy_from_slice(&number.to_be_bytes());
        slot
    };
    let address = |text: &str| -> Address { bytes(text).expect("twenty bytes in hex") };
    const RING: u64 = 8191;
    let at = head.time % RING;
    let parent = head.number.saturating_sub(1) % RING;
    for (contract, slots) in [
        ("0x000f3df6d732807ef1319fb7b8bb8522d0beac02", vec![at, at + RING]),
        ("0x0000f90827f1c53a10cb7a02335b175320002935", vec![parent]),
        ("0x00000961ef480eb55e80d19ad83579a64c007002", vec![0, 1, 2, 3]),
        ("0x0000bbddc7ce488642fb579f8b00f3a590007251", vec![0, 1, 2, 3]),
    ] {
        touched.add(address(contract), slots.into_iter().map(slot))?;
    }
    Ok(())
}

/// Adds the record of an account, and the one that tells of its code, or that there is none.
/// Returns the bytes of that code.
fn account(address: &Address, balance: &str, nonce: &str, code: &str, all: &mut Records) -> Result<u64> {
    let balance = balance.strip_prefix("0x").and_then(|digits| u128::from_str_radix(digits, 16).ok());
    let balance = balance.ok_or("a balance of the node's is no number of 128 bits")?;
    let nonce = u32::try_from(number(nonce)?).map_err(|_| "a nonce of the node's has more than 32 bits")?;
    let code = const_hex::decode(code).map_err(|_| "a code of the node's is no hex")?;
    let hash = (!code.is_empty()).then(|| code_hash(&code));
    let account = Account { balance, nonce, code: hash.as_ref().map_or(0, code_number) };
    let is_there = account != Account { balance: 0, nonce: 0, code: 0 };
    all.records.push((address.to_vec(), is_there.then(|| account_record(address, &account).to_vec())));
    let length = code.len() as u64;
    match hash {
        None => all.records.push((code_hash_key(address), None)),
        Some(hash) => {
            let (key, record) = code_hash_record(address, &hash);
            all.records.push((key, Some(record.to_vec())));
            all.codes.insert(hash, code);
        }
    }
    Ok(length)
}

fn storage(address: &Address, slot: &[u8; 32], value: [u8; 32]) -> Record {
    let key = slot_key(address, slot);
    let record = (value != [0; 32]).then(|| slot_record(&key, &value).to_vec());
    (key, record)
}

fn number(text: &str) -> Result<u64> {
    let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| "the node's answer has no number where one belongs".into())
}

fn bytes<const N: usize>(text: &str) -> Result<[u8; N]> {
    let bytes = const_hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("the node's answer has no {N} bytes in hex where they belong").into())
}

/// A word of 32 bytes, which some nodes write without its leading zeros.
fn word(text: &str) -> Result<[u8; 32]> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() <= 64);
    let digits = digits.ok_or("the node's answer has no word of 32 bytes where one belongs")?;
    bytes(&format!("{digits:0>64}"))
}
