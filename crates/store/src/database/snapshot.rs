//! Snapshots of the UTXO set as sources: what Bitcoin Core (28 and later) writes by `bitcoin-cli dumptxoutset FILE` and reads by
//! `loadtxoutset`.
//!
//! | bytes | what |
//! |---|---|
//! | 5 | `utxo` and ff |
//! | 2 | format, 2 |
//! | 4 | the network, as its messages begin |
//! | 32 | the hash of the block behind which the set is, last byte first |
//! | 8 | coins |
//!
//! Then for each transaction with coins left: its id (32 bytes), how many coins, and of each its number among the outputs, its height
//! and its output. Numbers of the head are little-endian; numbers of coins are of two kinds, [`Source::compact`] for counts and
//! [`Source::varint`] for what is within a coin, and amounts and scripts are compressed ([`amount`], [`Source::script`]).
//! (`node/utxo_snapshot.h`, `coins.h`, `compressor.cpp` and `serialize.h` of Bitcoin Core say so.)
//!
//! There is no checksum in the file, so nothing is believed: what cannot be is refused with its place, and there must be as many
//! coins as the head says and nothing behind them. Digits changed within an amount or a hash are not seen.

use std::io::{ErrorKind, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use warpsmith_chain::coin::{Network, Outputs};
use warpsmith_chain::{Address, AddressKind, PublicPoint};

use crate::Error;
use crate::record::Entry;

/// What a snapshot begins with.
pub(super) const MAGIC: &[u8] = b"utxo\xff";
const VERSION: u16 = 2;
/// Bytes of the head.
pub(super) const HEAD: usize = 51;

/// The networks by what their messages begin with.
const NETWORKS: [([u8; 4], &str, Network); 5] = [
    ([0xf9, 0xbe, 0xb4, 0xd9], "mainnet", Network::Main),
    ([0x0b, 0x11, 0x09, 0x07], "testnet3", Network::Test),
    ([0x1c, 0x16, 0x3f, 0x28], "testnet4", Network::Test),
    ([0x0a, 0x03, 0xcf, 0x40], "signet", Network::Test),
    ([0xfa, 0xbf, 0xb5, 0xda], "regtest", Network::Test),
];

/// All the satoshi there can be.
const MOST_SATOSHI: u64 = 21_000_000 * 100_000_000;
/// More than Bitcoin Core takes for a length (`MAX_SIZE`).
const MOST_COMPACT: u64 = 0x0200_0000;
/// Scripts of other lengths than these are compressed; a longer one than this was never spendable, so no set has it.
const MOST_SCRIPT: u64 = 10_000;
/// Lengths below this mean compressed scripts.
const COMPRESSED: u64 = 6;

/// Entries handed on together.
const TOGETHER: usize = 1 << 14;

/// A snapshot that was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Snapshot {
    /// The network's name.
    pub network: &'static str,
    /// The hash of the block behind which the set is, as it is written.
    pub block: String,
    /// How many coins it has.
    pub coins: u64,
    /// How many of them no single key can spend, as far as their scripts tell.
    pub scripts: u64,
}

/// Whether these first bytes of a file are those of a snapshot of Bitcoin Core 26 or 27: the hash of a block with its work (32 zero
/// bits at the least, last byte first) and a number of coins. No text has zeros.
pub(super) fn is_old(head: &[u8]) -> bool {
    let Some((hash, rest)) = head.split_at_checked(32) else { return false };
    let count = rest.first_chunk().map(|count| u64::from_le_bytes(*count));
    hash.ends_with(&[0; 4])
        && hash.iter().any(|byte| *byte != 0)
        && count.is_some_and(|count| (1..1 << 40).contains(&count))
}

/// What is said of such a file.
pub(super) fn old(path: &Path) -> Error {
    let reason = "it is one of Bitcoin Core 26 or 27, whose format nothing reads any more; make it again by `bitcoin-cli \
                  dumptxoutset FILE` of version 28 or later"
        .to_owned();
    Error::Snapshot { path: path.to_owned(), reason }
}

/// What coins are told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The address that a single key may have, with the amount.
    Address,
    /// The SHA-256 of any script, as though it were the x coordinate of an output key; in the upper half of the amount is the
    /// number of coins, so that both add up.
    Script,
}

impl By {
    fn entry(self, outputs: &Outputs, script: &[u8], satoshi: u64) -> Option<Entry> {
        match self {
            By::Address => match outputs.address(script) {
                Address::Key(kind, digest) => {
                    Some(Entry::from_parts(kind, digest.as_bytes(), Some(satoshi.into())))
                }
                Address::Script(_) => None,
            },
            By::Script => {
                let hash = Sha256::digest(script);
                Some(Entry::from_parts(AddressKind::P2TR, &hash, Some(u128::from(satoshi) | 1 << 64)))
            }
        }
    }
}

/// Hands on every coin, or every coin that a single key may spend, until `take` says no.
pub(super) fn read(
    path: &Path,
    source: impl Read,
    by: By,
    mut take: impl FnMut(Vec<Entry>) -> bool,
) -> Result<Snapshot, Error> {
    let mut source = Source { path, inner: source, at: 0, coins: 0 };
    let (mut snapshot, outputs) = head(&mut source)?;
    let mut entries = Vec::with_capacity(TOGETHER);
    let mut script = Vec::with_capacity(MOST_SCRIPT as usize);
    while source.coins < snapshot.coins {
        source.bytes::<32>()?;
        let (count, left) = (source.compact()?, snapshot.coins - source.coins);
        if count == 0 || count > left {
            let place = format!("a transaction has {count} coins where {left} are left of all");
            return Err(source.wrong(&place));
        }
        for _ in 0..count {
            // Its number among the outputs.
            source.compact()?;
            // Twice the height, and whether it was mined: nobody asks.
            if source.varint()? > u64::from(u32::MAX) {
                return Err(source.wrong("a coin's height is beyond 2^31"));
            }
            let satoshi = amount(source.varint()?).filter(|satoshi| *satoshi <= MOST_SATOSHI);
            let satoshi = satoshi.ok_or_else(|| source.wrong("a coin is of more than there is"))?;
            source.script(&mut script)?;
            source.coins += 1;
            match by.entry(&outputs, &script, satoshi) {
                Some(entry) => entries.push(entry),
                None => snapshot.scripts += 1,
            }
            if entries.len() == TOGETHER
                && !take(std::mem::replace(&mut entries, Vec::with_capacity(TOGETHER)))
            {
                return Ok(snapshot);
            }
        }
    }
    if source.is_more()? {
        return Err(source.wrong("there is more behind the last coin"));
    }
    take(entries);
    Ok(snapshot)
}

/// Reads the head: which set it is, and how its scripts are read.
fn head(source: &mut Source<'_, impl Read>) -> Result<(Snapshot, Outputs), Error> {
    let refused = |path: &Path, reason: String| Error::Snapshot { path: path.to_owned(), reason };
    if source.bytes::<5>()? != MAGIC {
        return Err(source.wrong("it does not begin as one"));
    }
    let version = u16::from_le_bytes(source.bytes()?);
    if version != VERSION {
        let reason = format!(
            "it is of format {version}, and format {VERSION} is read, that of Bitcoin Core 28 and later"
        );
        return Err(refused(source.path, reason));
    }
    let magic: [u8; 4] = source.bytes()?;
    let Some((_, name, network)) = NETWORKS.iter().find(|(known, ..)| *known == magic) else {
        let known: Vec<&str> = NETWORKS.iter().map(|(_, name, _)| *name).collect();
        let magic: String = magic.iter().map(|byte| format!("{byte:02x}")).collect();
        let reason =
            format!("it is of a network that is not known ({magic}); known are {}", known.join(", "));
        return Err(refused(source.path, reason));
    };
    let block: [u8; 32] = source.bytes()?;
    let block = block.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    let coins = u64::from_le_bytes(source.bytes()?);
    Ok((Snapshot { network: name, block, coins, scripts: 0 }, Outputs::on(*network)))
}

/// The amount that a number stands for: with its zeros at the end taken away, as most amounts have some.
fn amount(compressed: u64) -> Option<u64> {
    let Some(x) = compressed.checked_sub(1) else { return Some(0) };
    let (x, zeros) = (x / 10, (x % 10) as u32);
    // Below 9 zeros the last digit that is none is known not to be 0, so nine of them are told apart.
    let digits = match zeros {
        9 => x.checked_add(1)?,
        _ => (x / 9).checked_mul(10)?.checked_add(x % 9 + 1)?,
    };
    digits.checked_mul(10u64.pow(zeros))
}

/// The bytes of a snapshot, with their place.
struct Source<'a, R> {
    path: &'a Path,
    inner: R,
    /// Bytes read.
    at: u64,
    /// Coins read.
    coins: u64,
}

impl<R: Read> Source<'_, R> {
    fn wrong(&self, what: &str) -> Error {
        let reason = format!("{what} (before byte {}, after {} coins)", self.at, self.coins);
        Error::Snapshot { path: self.path.to_owned(), reason }
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Error> {
        self.at += into.len() as u64;
        self.inner.read_exact(into).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.wrong("its end is missing"),
            _ => Error::io("read", self.path)(error),
        })
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether anything is left.
    fn is_more(&mut self) -> Result<bool, Error> {
        let mut byte = [0];
        loop {
            match self.inner.read(&mut byte) {
                Ok(count) => return Ok(count > 0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", self.path)(error)),
            }
        }
    }

    /// A count: below fd one byte, else fd, fe or ff and 2, 4 or 8 bytes, as few as it takes.
    fn compact(&mut self) -> Result<u64, Error> {
        let [first] = self.bytes()?;
        let (number, least) = match first {
            0xfd => (u16::from_le_bytes(self.bytes()?).into(), 0xfd),
            0xfe => (u32::from_le_bytes(self.bytes()?).into(), 0x1_0000),
            0xff => (u64::from_le_bytes(self.bytes()?), 0x1_0000_0000),
            _ => (first.into(), 0),
        };
        match (least..=MOST_COMPACT).contains(&number) {
            true => Ok(number),
            false => Err(self.wrong("a count is too large, or written longer than it is")),
        }
    }

    /// A number of seven bits a byte, most significant first, with the top bit for "more"; each "more" counts one besides, so
    /// that no number is written in two ways.
    fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0u64;
        loop {
            let [byte] = self.bytes()?;
            let shifted = number.checked_mul(128).map(|number| number | u64::from(byte & 0x7f));
            let more = byte & 0x80 != 0;
            number = shifted
                .and_then(|number| number.checked_add(more.into()))
                .ok_or_else(|| self.wrong("a number is beyond 2^64"))?;
            if !more {
                return Ok(number);
            }
        }
    }

    /// A script: its length and six, or below six what it is made of.
    fn script(&mut self, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        let kind = self.varint()?;
        match kind {
            0 => {
                into.extend_from_slice(&[0x76, 0xa9, 0x14]);
                into.extend_from_slice(&self.bytes::<20>()?);
                into.extend_from_slice(&[0x88, 0xac]);
            }
            1 => {
                into.extend_from_slice(&[0xa9, 0x14]);
                into.extend_from_slice(&self.bytes::<20>()?);
                into.push(0x87);
            }
            // A compressed key as it is: whether there is such a point nobody asked who paid to it.
            2 | 3 => {
                into.extend_from_slice(&[33, kind as u8]);
                into.extend_from_slice(&self.bytes::<32>()?);
                into.push(0xac);
            }
            // A key with both coordinates, of which one is written: only points of the curve are.
            4 | 5 => {
                let point = PublicPoint::of_x(&self.bytes()?, kind == 5)
                    .ok_or_else(|| self.wrong("a public key is none: no point has its x coordinate"))?;
                into.push(65);
                into.extend_from_slice(&point.uncompressed());
                into.push(0xac);
            }
            _ => {
                let length = kind - COMPRESSED;
                if length > MOST_SCRIPT {
                    return Err(self.wrong("a script is longer than any that can be spent"));
                }
                into.resize(length as usize, 0);
                self.fill(into)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
