//! Replies of a node, read as they come: what is not used is skipped, so that they take no more memory than what is kept of them.
//!
//! JSON that is built up in memory takes twelve times its length and more. Here a reply becomes texts of a bounded length, or the
//! accounts and slots that it names, whose number is bounded too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;

use flate2::read::GzDecoder;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::error::Category;
use warpsmith_rms24::memory;
use warpsmith_text::json_mistake;

use super::{MAX_CALLS, NodeError, bytes, word};
use crate::record::Address;

/// Bytes of a dump of anvil's, unpacked. They are read as they are unpacked.
const MAX_DUMP: u64 = 1 << 30;
/// Bytes of a text that is not a dump: a code has some ten thousand.
pub(super) const MAX_TEXT: usize = 16 << 20;
/// Memory that an account or a slot takes until its record is in the database.
const BYTES_PER_KEY: u64 = 512;

/// A reply to a call.
#[derive(serde::Deserialize)]
pub(super) struct Reply<T> {
    pub id: Option<u64>,
    pub result: Option<T>,
    pub error: Option<Refusal>,
}

/// The error of a reply.
#[derive(serde::Deserialize)]
pub(super) struct Refusal {
    pub message: Option<String>,
}

/// Replies to a batch of calls, at most as many as a batch has.
struct Batch<T>(Vec<Reply<T>>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Batch<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Batch<T>, D::Error> {
        struct Replies<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Replies<T> {
            type Value = Batch<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of replies")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Batch<T>, A::Error> {
                let mut replies = Vec::new();
                while let Some(reply) = list.next_element()? {
                    if replies.len() == MAX_CALLS {
                        return Err(A::Error::custom(format!("more than {MAX_CALLS} replies")));
                    }
                    replies.push(reply);
                }
                Ok(Batch(replies))
            }

            // Some nodes refuse a batch as a whole.
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Batch<T>, A::Error> {
                Reply::deserialize(MapAccessDeserializer::new(map)).map(|reply| Batch(vec![reply]))
            }
        }
        json.deserialize_any(Replies(PhantomData))
    }
}

/// Reads the replies to a batch of calls, whose texts have at most `max_text` bytes each.
pub(super) fn read<T: DeserializeOwned>(reader: &mut dyn Read, max_text: usize) -> io::Result<Vec<Reply<T>>> {
    let Batch(replies) = parse(&mut TextLimit::new(reader, max_text), PhantomData)?;
    Ok(replies)
}

/// Reads one JSON document. Errors of the network keep their kind; others are `InvalidData`, since another attempt brings the same.
fn parse<'de, S: DeserializeSeed<'de>>(reader: &mut dyn Read, seed: S) -> io::Result<S::Value> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, reader));
    let outcome = seed.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    outcome.map_err(|error| match error.classify() {
        Category::Io => error.into(),
        Category::Data => {
            invalid(format!("the node's answer is not understood: {}", json_mistake(&error.to_string())))
        }
        Category::Syntax | Category::Eof => invalid("the node's answer is no JSON"),
    })
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// JSON whose texts have at most so many bytes: whoever parses it keeps a whole one.
struct TextLimit<R> {
    reader: R,
    max: usize,
    /// Bytes of the text that is being read; none outside of texts.
    length: Option<usize>,
    is_escaped: bool,
}

impl<R: Read> TextLimit<R> {
    fn new(reader: R, max: usize) -> TextLimit<R> {
        TextLimit { reader, max, length: None, is_escaped: false }
    }
}

impl<R: Read> Read for TextLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        for byte in &buffer[..read] {
            self.length = match (self.length, byte) {
                (None, b'"') => Some(0),
                (None, _) => None,
                (Some(_), b'"') if !self.is_escaped => None,
                (Some(length), _) if length >= self.max => {
                    return Err(invalid(format!(
                        "the node's answer has a text of more than {} bytes",
                        self.max
                    )));
                }
                (Some(length), byte) => {
                    self.is_escaped = *byte == b'\\' && !self.is_escaped;
                    Some(length + 1)
                }
            };
        }
        Ok(read)
    }
}

/// Accounts and slots that a node names, at most as many as this machine has memory for.
#[derive(Debug)]
pub(super) struct Touched {
    pub accounts: BTreeMap<Address, BTreeSet<[u8; 32]>>,
    keys: u64,
    max_keys: u64,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched::limited(memory::of_machine() / 4 / BYTES_PER_KEY)
    }
}

impl Touched {
    fn limited(max_keys: u64) -> Touched {
        Touched { accounts: BTreeMap::new(), keys: 0, max_keys }
    }

    /// Adds an account, and slots of it.
    pub fn add(
        &mut self,
        address: Address,
        slots: impl IntoIterator<Item = [u8; 32]>,
    ) -> Result<(), NodeError> {
        if !self.accounts.contains_key(&address) {
            self.keys += 1;
        }
        let known = self.accounts.entry(address).or_default();
        for slot in slots {
            self.keys += u64::from(known.insert(slot));
        }
        match self.keys > self.max_keys {
            true => Err(NodeError::from(format!(
                "the node names more than {} accounts and slots, which take more memory than this machine gives",
                self.max_keys
            ))),
            false => Ok(()),
        }
    }
}

/// What the traces of a block's transactions touched (`prestateTracer` with `diffMode`).
pub(super) struct Traces(pub Touched);

impl<'de> Deserialize<'de> for Traces {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Traces, D::Error> {
        let mut names = Names::default();
        Walk { names: &mut names, level: Level::Traces }.deserialize(json)?;
        Ok(Traces(names.touched))
    }
}

/// A state that anvil dumped: its accounts and slots, and its block.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub touched: Touched,
    pub block: Option<u64>,
}

impl Names {
    /// Reads the result of `anvil_dumpState`: JSON that was packed and written in hex.
    pub fn of_dump(hex: &str) -> Result<Names, NodeError> {
        let digits = hex.strip_prefix("0x").unwrap_or(hex);
        Names::of_dump_within(digits.as_bytes(), MAX_DUMP, Touched::default())
    }

    fn of_dump_within(digits: &[u8], max: u64, touched: Touched) -> Result<Names, NodeError> {
        let mut names = Names { touched, block: None };
        let mut unpacked = GzDecoder::new(HexDigits(digits)).take(max);
        let walk = Walk { names: &mut names, level: Level::Dump };
        let read = parse(&mut TextLimit::new(&mut unpacked, MAX_TEXT), walk);
        match read {
            Err(_) if unpacked.limit() == 0 => Err(format!("the dump has more than {max} bytes").into()),
            Err(error) => Err(error.to_string().into()),
            Ok(()) => Ok(names),
        }
    }
}

/// The bytes that hex digits stand for.
struct HexDigits<'a>(&'a [u8]);

impl Read for HexDigits<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.0.len().div_ceil(2));
        let (digits, rest) = self.0.split_at((2 * length).min(self.0.len()));
        const_hex::decode_to_slice(digits, &mut buffer[..length])
            .map_err(|_| invalid("the node's answer is no hex"))?;
        self.0 = rest;
        Ok(length)
    }
}

/// Where in a document something stands.
#[derive(Clone, Copy)]
enum Level {
    /// A list of traces.
    Traces,
    /// A trace of a transaction.
    Trace,
    /// What it changed.
    Change,
    /// A dump.
    Dump,
    /// Accounts by their addresses.
    Accounts,
    Account(Address),
    /// Slots of the account and their values.
    Slots(Address),
}

/// Walks through a document and keeps the names of accounts and slots.
struct Walk<'a> {
    names: &'a mut Names,
    level: Level,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Traces => "a list of traces",
            Level::Trace => "the trace of a transaction",
            Level::Change => "accounts before and after a transaction",
            Level::Dump => "a dump of a state",
            Level::Accounts => "accounts by their addresses",
            Level::Account(_) => "an account",
            Level::Slots(_) => "slots and their values",
        })
    }

    /// Nothing is null to some nodes.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Level::Traces = self.level else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        while list.next_element_seed(Walk { names: self.names, level: Level::Trace })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Walk { names, level } = self;
        let mut has_result = false;
        while let Some(key) = map.next_key::<String>()? {
            let below = match (level, &key[..]) {
                (Level::Trace, "result") => {
                    has_result = true;
                    Some(Level::Change)
                }
                (Level::Change, "pre" | "post") | (Level::Dump, "accounts") => Some(Level::Accounts),
                (Level::Dump, "best_block_number") => {
                    names.block = map.next_value()?;
                    continue;
                }
                (Level::Accounts, address) => {
                    let address = bytes(address).map_err(A::Error::custom)?;
                    names.touched.add(address, []).map_err(A::Error::custom)?;
                    Some(Level::Account(address))
                }
                (Level::Account(address), "storage") => Some(Level::Slots(address)),
                (Level::Slots(address), slot) => {
                    let slot = word(slot).map_err(A::Error::custom)?;
                    names.touched.add(address, [slot]).map_err(A::Error::custom)?;
                    None
                }
                _ => None,
            };
            match below {
                Some(level) => map.next_value_seed(Walk { names: &mut *names, level })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match level {
            Level::Trace if !has_result => Err(A::Error::custom("a transaction has no trace")),
            Level::Traces => Err(A::Error::custom("the traces are no list")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(parts: impl Iterator<Item = impl AsRef<[u8]>>) -> String {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        parts.for_each(|part| packer.write_all(part.as_ref()).unwrap());
        const_hex::encode(packer.finish().unwrap())
    }

    #[test]
    fn names_of_accounts_and_slots_are_kept_and_nothing_else() {
        let (one, two) = ("0x".to_owned() + &"11".repeat(20), "0x".to_owned() + &"22".repeat(20));
        let traces = format!(
            r#"[{{"txHash":"0x1","result":{{"pre":{{"{one}":{{"balance":"0x1","storage":{{"0x1":"0x2"}}}}}},"post":{{"{one}":{{"storage":{{"0x02":"0x2","0x1":"0x"}}}}}}}}}},
               {{"result":{{"pre":{{"{two}":{{"code":"0x00","storage":null}}}},"post":{{}}}}}}]"#
        );
        let reply = format!(r#"[{{"id":0,"jsonrpc":"2.0","result":{traces}}}]"#);
        let mut replies = read::<Traces>(&mut reply.as_bytes(), MAX_TEXT).unwrap();
        let Traces(touched) = replies.remove(0).result.unwrap();
        let slots: Vec<usize> = touched.accounts.values().map(BTreeSet::len).collect();
        assert_eq!((slots, touched.keys), (vec![2, 0], 4));
        let dump = format!(
            r#"{{"block":{{"x":[1]}},"accounts":{{"{one}":{{"storage":{{"0x3":"0x4"}}}}}},"best_block_number":17}}"#
        );
        let names = Names::of_dump(&format!("0x{}", packed([dump].iter()))).unwrap();
        assert_eq!((names.block, names.touched.keys), (Some(17), 2));
        for (text, why) in [
            (r#"[{"id":0,"result":[{}]}]"#, "no trace"),
            (r#"[{"id":0,"result":{"pre":1}}]"#, "no list"),
            (r#"[{"id":0,"result":[{"result":{"pre":{"0x12":{}}}}]}]"#, "20 bytes"),
            (r#"[{"id":0,"result":[{"result":"#, "no JSON"),
            ("]", "no JSON"),
        ] {
            let error = read::<Traces>(&mut text.as_bytes(), MAX_TEXT).err().unwrap();
            assert!(error.to_string().contains(why), "{text}: {error}");
            assert!(!error.to_string().contains("line 1 column"), "{text}: {error}");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
        }
        // A node that refuses a batch as a whole.
        let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches"}}"#;
        let replies = read::<String>(&mut refusal.as_bytes(), MAX_TEXT).unwrap();
        assert_eq!(replies[0].error.as_ref().unwrap().message.as_deref(), Some("no batches"));
    }

    #[test]
    fn what_takes_too_much_memory_is_refused() {
        let refused = |outcome: Result<Names, NodeError>, why: &str| {
            let told = outcome.err().unwrap().to_string();
            assert!(told.contains(why), "{told}");
        };
        let of_dump = |hex: &str, max| Names::of_dump_within(hex.as_bytes(), max, Touched::limited(1000));
        // A text of 20 MB, and one whose quotes are escaped, of 20 kB when packed.
        for part in ["xxxx", "\\\"xx"] {
            let parts = ["{\"a\":\""].into_iter().chain(std::iter::repeat_n(part, 5 << 20)).chain(["\"}"]);
            refused(of_dump(&packed(parts), MAX_DUMP), "a text of more than 16777216 bytes");
        }
        // Unpacked it has more than is read.
        let parts = ["["].into_iter().chain(std::iter::repeat_n("[],", 1 << 20));
        refused(of_dump(&packed(["{\"a\":"].into_iter().chain(parts)), 1 << 20), "more than 1048576 bytes");
        // Many slots.
        let slots = (0..2000).map(|slot| format!("\"0x{slot:x}\":\"\","));
        let account = format!("{{\"accounts\":{{\"{}\":{{\"storage\":{{", "11".repeat(20));
        refused(
            of_dump(&packed([account].into_iter().chain(slots)), MAX_DUMP),
            "more than 1000 accounts and slots",
        );
        refused(of_dump("1f8b", MAX_DUMP), "");
        refused(of_dump("zz", MAX_DUMP), "no hex");
        // More replies than calls.
        let many = format!("[{}{{}}]", "{},".repeat(MAX_CALLS));
        let error = read::<String>(&mut many.as_bytes(), MAX_TEXT).err().unwrap();
        assert!(error.to_string().contains("more than 500 replies"), "{error}");
    }
}
