//! What a wallet asks, and how it is told the answer: JSON-RPC 2.0 as nodes of Ethereum speak it.

use serde::Serialize;
use serde_json::{Value, json};

use super::known::Facts;
use super::{Advice, After};
use crate::code::code_hash_key;
use crate::head::ChainHead;
use crate::look_up::{Answer, Answered, Query};
use crate::record::{Account, slot_key};

/// Calls of one batch.
pub(super) const MOST_CALLS: usize = 100;

/// Codes of errors: of JSON-RPC itself, and the one that nodes use for all else.
pub(super) const PARSE: i64 = -32700;
pub(super) const INVALID: i64 = -32600;
const NO_METHOD: i64 = -32601;
const PARAMS: i64 = -32602;
pub(super) const FAILED: i64 = -32000;

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Wrong {
    pub code: i64,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Wrong {
    pub fn new(code: i64, message: impl Into<String>) -> Wrong {
        Wrong { code, message: message.into(), data: None }
    }
}

/// What is asked of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Balance,
    Nonce,
    Code,
    Storage,
}

/// What becomes of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// Known already, and no secret.
    Known(Value),
    /// Looked up privately, by as many look-ups as the method has, whatever is found. Where a block was named, the state must
    /// still be of this one.
    LookUp { queries: Vec<Query>, part: Part, block: Option<u64> },
    /// Passed on.
    Pass,
}

/// Methods that are answered by a private look-up, each by exactly one; but for code, where there is a database of codes: that takes
/// two for the account and the hash, and then the code.
const PRIVATE: [(&str, Part); 4] = [
    ("eth_getBalance", Part::Balance),
    ("eth_getTransactionCount", Part::Nonce),
    ("eth_getCode", Part::Code),
    ("eth_getStorageAt", Part::Storage),
];

/// Returns whether a method is answered by private look-ups.
pub fn is_private_method(method: &str) -> bool {
    PRIVATE.iter().any(|(private, _)| *private == method)
}

/// Decides about a call. `has_codes` says whether codes can be looked up, `passes` whether a method is passed on.
pub(super) fn plan(
    method: &str,
    params: &[Value],
    Facts { chain_id, head }: Facts,
    has_codes: bool,
    advice: &Advice,
    passes: impl Fn(&str) -> bool,
) -> Result<Plan, Wrong> {
    if passes(method) {
        return Ok(Plan::Pass);
    }
    if let Some((_, part)) = PRIVATE.iter().find(|(name, _)| *name == method) {
        return look_up(*part, params, head.as_ref(), has_codes);
    }
    let chain_id = || {
        let reason = "the server's database does not say of which chain and block it is";
        chain_id.ok_or_else(|| Wrong::new(FAILED, reason))
    };
    let number = || {
        chain_id()?;
        let reason = "the block that the hints are of is not known at this moment; ask again";
        Ok(head.ok_or_else(|| Wrong::new(FAILED, reason))?.number)
    };
    Ok(Plan::Known(match method {
        "eth_chainId" => quantity(chain_id()?.into()),
        "net_version" => chain_id()?.to_string().into(),
        "eth_blockNumber" => quantity(number()?.into()),
        "eth_syncing" => false.into(),
        "net_listening" => true.into(),
        "eth_accounts" => json!([]),
        "web3_clientVersion" => concat!("warpsmith/", env!("CARGO_PKG_VERSION")).into(),
        _ => {
            let names: Vec<&str> = PRIVATE.iter().map(|(name, _)| *name).collect();
            return Err(Wrong::new(
                NO_METHOD,
                format!(
                    "this method cannot be answered privately (those that can: {}){}",
                    names.join(", "),
                    After(advice.fallback)
                ),
            ));
        }
    }))
}

fn look_up(part: Part, params: &[Value], head: Option<&ChainHead>, has_codes: bool) -> Result<Plan, Wrong> {
    let wrong = |reason: &str| Wrong::new(PARAMS, reason);
    let slots = usize::from(part == Part::Storage);
    if params.is_empty() || params.len() < 1 + slots || params.len() > 2 + slots {
        return Err(wrong(match slots {
            0 => "the parameters are an address and a block",
            _ => "the parameters are an address, a slot and a block",
        }));
    }
    let address = params[0].as_str().and_then(|text| text.strip_prefix("0x").or(text.strip_prefix("0X")));
    let address = address.and_then(|digits| const_hex::decode(digits).ok());
    let address: [u8; 20] = address
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| wrong("an address is 0x and 40 hex digits"))?;
    let keys = match part {
        Part::Storage => {
            let slot = params[1].as_str().and_then(|text| text.strip_prefix("0x"));
            let slot = slot.filter(|digits| (1..=64).contains(&digits.len()));
            let slot = slot.and_then(|digits| const_hex::decode(format!("{digits:0>64}")).ok());
            let slot: [u8; 32] = slot
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or_else(|| wrong("a slot is 0x and up to 64 hex digits"))?;
            vec![slot_key(&address, &slot)]
        }
        Part::Code if has_codes => vec![address.to_vec(), code_hash_key(&address)],
        _ => vec![address.to_vec()],
    };
    let block = block(params.get(1 + slots), head)?;
    // The text is for messages, and nothing of what is asked belongs there.
    let queries = keys.into_iter().map(|key| Query::Key { text: String::new(), key }).collect();
    Ok(Plan::LookUp { queries, part, block })
}

/// The number of the block that is named, where one is: the database has the state after its own block and no other.
fn block(named: Option<&Value>, head: Option<&ChainHead>) -> Result<Option<u64>, Wrong> {
    let Some(named) = named.filter(|named| !named.is_null()) else { return Ok(None) };
    let known = || {
        head.map_or_else(
            || "the database does not say of which block it is; ask for \"latest\"".to_owned(),
            |head| {
                format!("the database has the state after block {} alone; ask for \"latest\"", head.number)
            },
        )
    };
    let other = || Wrong::new(FAILED, known());
    let number = |text: &str| {
        let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty());
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
    };
    let malformed = || Wrong::new(PARAMS, "a block is \"latest\", or 0x and its number in hex");
    let is_ours = match named {
        // What has no block yet changes nothing that is known here.
        Value::String(tag) if tag == "latest" || tag == "pending" => return Ok(None),
        Value::String(tag) if ["earliest", "safe", "finalized"].contains(&&tag[..]) => false,
        Value::String(text) => {
            let number = number(text).ok_or_else(malformed)?;
            head.is_some_and(|head| head.number == number)
        }
        // EIP-1898.
        Value::Object(fields) => match (fields.get("blockNumber"), fields.get("blockHash")) {
            (Some(Value::String(text)), None) => {
                let number = number(text).ok_or_else(malformed)?;
                head.is_some_and(|head| head.number == number)
            }
            (None, Some(Value::String(hash))) => {
                let ours = head.map(|head| format!("0x{}", const_hex::encode(head.hash)));
                ours.is_some_and(|ours| ours.eq_ignore_ascii_case(hash))
            }
            _ => return Err(malformed()),
        },
        _ => return Err(malformed()),
    };
    match (is_ours, head) {
        (true, Some(head)) => Ok(Some(head.number)),
        _ => Err(other()),
    }
}

/// What a look-up found, as nodes write it. What is not in the state is zero.
pub(super) fn found(part: Part, answer: Answered, advice: &Advice) -> Result<Value, Wrong> {
    let answer = answer.map_err(|reason| Wrong::new(FAILED, reason.to_string()))?;
    let hex = |bytes: Vec<u8>| Ok(format!("0x{}", const_hex::encode(bytes)).into());
    let account = match (part, answer) {
        (Part::Storage, Answer::Value(value)) => return hex(value.unwrap_or(vec![0; 32])),
        (Part::Code, Answer::Value(code)) => return hex(code.unwrap_or_default()),
        (Part::Balance | Part::Nonce | Part::Code, Answer::Account(account)) => account,
        _ => return Err(Wrong::new(FAILED, "the database is no state of Ethereum")),
    };
    let Account { balance, nonce, code } = account.unwrap_or(Account { balance: 0, nonce: 0, code: 0 });
    match part {
        Part::Nonce => Ok(quantity(nonce.into())),
        Part::Code if code == 0 => Ok("0x".into()),
        Part::Code => Err(Wrong::new(
            FAILED,
            format!("this is a contract, and the database has no code{}", After(advice.codes)),
        )),
        Part::Balance | Part::Storage => Ok(quantity(balance)),
    }
}

fn quantity(number: u128) -> Value {
    format!("{number:#x}").into()
}

/// A call as it came.
#[derive(Debug)]
pub(super) struct Call {
    /// None of a notification, which gets no answer.
    pub id: Option<Value>,
    pub method: String,
    pub params: Vec<Value>,
}

/// Reads a call, or says what is wrong with it, with its id as far as it has one.
pub(super) fn read(value: Value) -> Result<Call, (Value, Wrong)> {
    let invalid = |id: &Value, reason: &str| Err((id.clone(), Wrong::new(INVALID, reason)));
    let Value::Object(mut fields) = value else {
        return invalid(&Value::Null, "a call is an object with jsonrpc, id, method and params");
    };
    let id = fields.remove("id");
    let named = id.clone().filter(|id| id.is_string() || id.is_number()).unwrap_or_default();
    if !matches!(id, None | Some(Value::Null | Value::String(_) | Value::Number(_))) {
        return invalid(&named, "an id is a text or a number");
    }
    if fields.get("jsonrpc").is_some_and(|version| version != "2.0") {
        return invalid(&named, "this is JSON-RPC 2.0");
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return invalid(&named, "there is no method");
    };
    match fields.remove("params") {
        None | Some(Value::Null) => Ok(Call { id, method, params: Vec::new() }),
        Some(Value::Array(params)) => Ok(Call { id, method, params }),
        Some(_) => Err((named, Wrong::new(PARAMS, "the parameters are a list"))),
    }
}

/// The text of the answer to a call.
pub(super) fn reply(id: &Value, outcome: &Result<Value, Wrong>) -> String {
    let answer = match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    answer.to_string()
}
