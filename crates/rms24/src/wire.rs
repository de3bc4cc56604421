//! What travels: queries, answers and updates, in compact binary bodies. All lengths follow from the public parameters
//! and from how many there are, never from what is asked.
//!
//! ```text
//! queries   "WPQ1"  epoch u64  count u32   then each: c bits, c/2 offsets of b bits        (b: bits of w - 1)
//! answers   "WPA1"  epoch u64  count u32   then each: parity of colour 0, parity of colour 1
//! updates   "WPU1"  entry size u32         then each epoch: number u64, count u64, (index u64, old ^ new)..., sum 8 bytes
//! ```
//!
//! Numbers are little-endian. Bits fill bytes from the least significant on; bits left over are zero. The t-th block of
//! either colour takes the t-th offset: the c/2 true offsets serve the dummies too, as a mask is balanced and offsets are
//! uniform and independent on both sides.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::params::Params;
use crate::random::Random;

const QUERIES: &[u8; 4] = b"WPQ1";
const ANSWERS: &[u8; 4] = b"WPA1";
const UPDATES: &[u8; 4] = b"WPU1";

/// Bytes before the first query or answer.
pub const HEAD_BYTES: usize = 16;

/// The bytes of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(Vec<u8>);

impl Query {
    /// Writes a query; `colours` and the offsets in the order of blocks, an offset for every second block.
    pub(crate) fn new(params: &Params, colours: &[bool], offsets: &[u32]) -> Query {
        debug_assert_eq!((colours.len(), offsets.len()), (params.blocks() as usize, colours.len() / 2));
        let mut bytes = vec![0; params.query_bytes()];
        let (mask, rest) = bytes.split_at_mut(params.mask_bytes());
        for (block, &colour) in colours.iter().enumerate() {
            mask[block / 8] |= u8::from(colour) << (block % 8);
        }
        let bits = params.offset_bits() as usize;
        for (t, &offset) in offsets.iter().enumerate() {
            // At most 28 bits, which begin at one of eight places: five bytes hold them.
            let shifted = (u64::from(offset) << (t * bits % 8)).to_le_bytes();
            for (to, from) in rest[t * bits / 8..].iter_mut().zip(shifted) {
                *to |= from;
            }
        }
        Query(bytes)
    }

    /// A query for nothing, distributed as all others: a balanced mask and uniform offsets.
    pub(crate) fn random(params: &Params, random: &mut Random) -> Result<Query> {
        let c = params.blocks();
        let mut colours: Vec<bool> = (0..c).map(|block| block % 2 == 0).collect();
        // Fisher and Yates.
        for block in (1..c).rev() {
            colours.swap(block as usize, random.below(block + 1)? as usize);
        }
        let offsets = (0..c / 2).map(|_| random.below(params.block_size())).collect::<Result<Vec<u32>>>()?;
        Ok(Query::new(params, &colours, &offsets))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A query as read: the colour of every block and the offset it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picks {
    /// The colour of each block: 0 or 1.
    pub colours: Vec<u8>,
    /// The offset in each block.
    pub offsets: Vec<u32>,
}

impl Picks {
    /// Reads a query, and checks its shape: c bits of which half are set, offsets below w, nothing left over.
    ///
    /// # Errors
    ///
    /// When the shape is wrong. No honest client sends such a query.
    pub fn read(params: &Params, query: &[u8]) -> Result<Picks> {
        let wrong = |reason: &str| Error::format("query", reason);
        if query.len() != params.query_bytes() {
            return Err(wrong(&format!("{} bytes instead of {}", query.len(), params.query_bytes())));
        }
        let (mask, rest) = query.split_at(params.mask_bytes());
        let c = params.blocks() as usize;
        if mask.iter().map(|byte| byte.count_ones() as usize).sum::<usize>() != c / 2 {
            return Err(wrong("not half of the blocks are of either colour"));
        }
        let bits = params.offset_bits() as usize;
        let limit = (1u64 << bits) - 1;
        let mut list = Vec::with_capacity(c / 2);
        for t in 0..c / 2 {
            let mut word = [0; 8];
            let from = &rest[t * bits / 8..];
            let length = from.len().min(5);
            word[..length].copy_from_slice(&from[..length]);
            let offset = (u64::from_le_bytes(word) >> (t * bits % 8) & limit) as u32;
            list.push(offset);
        }
        if list.iter().any(|&offset| offset >= params.block_size()) {
            return Err(wrong("an offset lies outside the block"));
        }
        let left_over =
            |bytes: &[u8], used: usize| !used.is_multiple_of(8) && bytes[used / 8] >> (used % 8) != 0;
        if left_over(mask, c) || left_over(rest, c / 2 * bits) {
            return Err(wrong("bits are set past the end"));
        }
        // SEC: without a branch on the colours.
        let mut seen = [0; 2];
        let (mut colours, mut offsets) = (Vec::with_capacity(c), Vec::with_capacity(c));
        for block in 0..c {
            let colour = mask[block / 8] >> (block % 8) & 1;
            colours.push(colour);
            offsets.push(list[seen[colour as usize]]);
            seen[colour as usize] += 1;
        }
        Ok(Picks { colours, offsets })
    }
}

fn head(magic: &[u8; 4], epoch: u64, count: usize, capacity: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(HEAD_BYTES + capacity);
    body.extend_from_slice(magic);
    body.extend_from_slice(&epoch.to_le_bytes());
    body.extend_from_slice(&(count as u32).to_le_bytes());
    body
}

/// Epoch and items of a body.
fn items<'a>(
    what: &str,
    magic: &[u8; 4],
    body: &'a [u8],
    size: usize,
) -> Result<(u64, std::slice::ChunksExact<'a, u8>)> {
    let Some((head, rest)) = body.split_at_checked(HEAD_BYTES).filter(|(head, _)| head[..4] == *magic) else {
        return Err(Error::format(what, "the body does not begin as it should"));
    };
    let epoch = u64_at(head, 4);
    let count = u64::from(u32_at(head, 12));
    if rest.len() as u64 != count * size as u64 {
        return Err(Error::format(what, format!("{} bytes are not {count} times {size}", rest.len())));
    }
    Ok((epoch, rest.chunks_exact(size)))
}

/// The body of a batch of queries against one epoch.
pub fn queries_body(params: &Params, epoch: u64, queries: &[Query]) -> Vec<u8> {
    let mut body = head(QUERIES, epoch, queries.len(), queries.len() * params.query_bytes());
    queries.iter().for_each(|query| body.extend_from_slice(&query.0));
    body
}

/// The epoch of a batch of queries, whose length is of no concern yet.
pub(crate) fn epoch_of(body: &[u8]) -> Result<u64> {
    match body.len() >= HEAD_BYTES && body[..4] == *QUERIES {
        true => Ok(u64_at(body, 4)),
        false => Err(Error::format("queries", "the body does not begin as it should")),
    }
}

/// Reads a batch: its epoch and the bytes of each query.
///
/// # Errors
///
/// When the body is malformed.
pub fn read_queries<'a>(params: &Params, body: &'a [u8]) -> Result<(u64, std::slice::ChunksExact<'a, u8>)> {
    items("queries", QUERIES, body, params.query_bytes())
}

/// The body of the answers to a batch.
pub fn answers_body(epoch: u64, answers: &[Vec<u8>]) -> Vec<u8> {
    let mut body = head(ANSWERS, epoch, answers.len(), answers.iter().map(Vec::len).sum());
    answers.iter().for_each(|answer| body.extend_from_slice(answer));
    body
}

/// Reads answers: their epoch and the bytes of each.
///
/// # Errors
///
/// When the body is malformed.
pub fn read_answers<'a>(params: &Params, body: &'a [u8]) -> Result<(u64, std::slice::ChunksExact<'a, u8>)> {
    items("answers", ANSWERS, body, params.answer_bytes())
}

/// The changes of one epoch: what makes the database of epoch `number` out of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The epoch they lead to.
    pub number: u64,
    /// The entries that change; one may occur several times.
    pub indices: Vec<u64>,
    /// Old value XOR new value of each, an entry each.
    pub deltas: Vec<u8>,
}

impl Update {
    /// The changes one by one.
    pub fn changes(&self, entry_size: usize) -> impl Iterator<Item = (u64, &[u8])> {
        self.indices.iter().copied().zip(self.deltas.chunks_exact(entry_size))
    }

    /// Its bytes as they travel and are stored, with a checksum.
    pub fn to_bytes(&self, entry_size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24 + self.indices.len() * (8 + entry_size));
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&(self.indices.len() as u64).to_le_bytes());
        for (index, delta) in self.changes(entry_size) {
            bytes.extend_from_slice(&index.to_le_bytes());
            bytes.extend_from_slice(delta);
        }
        let sum = checksum(&[&bytes]);
        bytes.extend_from_slice(&sum);
        bytes
    }

    /// Reads one epoch's changes from the front of `bytes`, and says how many bytes they took.
    ///
    /// # Errors
    ///
    /// When they are cut short, damaged, or name an entry that is not there.
    pub fn read(params: &Params, bytes: &[u8]) -> Result<(Update, usize)> {
        let wrong = |reason: &str| Error::format("update", reason);
        if bytes.len() < 16 {
            return Err(wrong("cut short"));
        }
        let (number, count) = (u64_at(bytes, 0), u64_at(bytes, 8));
        let each = 8 + params.entry_size();
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(each)?.checked_add(24));
        let length = length.filter(|length| *length <= bytes.len()).ok_or_else(|| wrong("cut short"))?;
        let (body, sum) = bytes[..length].split_at(length - 8);
        if checksum(&[body]) != sum {
            return Err(wrong("the checksum does not fit"));
        }
        let mut update = Update { number, indices: Vec::new(), deltas: Vec::new() };
        for change in body[16..].chunks_exact(each) {
            update.indices.push(u64_at(change, 0));
            update.deltas.extend_from_slice(&change[8..]);
        }
        if let Some(&index) = update.indices.iter().find(|index| **index >= params.entries()) {
            return Err(Error::Index { index, entries: params.entries() });
        }
        Ok((update, length))
    }
}

/// The body of some epochs' changes, each as [`Update::to_bytes`] gives it.
pub fn updates_body<'a>(params: &Params, updates: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut body = UPDATES.to_vec();
    body.extend_from_slice(&(params.entry_size() as u32).to_le_bytes());
    updates.for_each(|update| body.extend_from_slice(update));
    body
}

/// Reads some epochs' changes.
///
/// # Errors
///
/// When the body is malformed.
pub fn read_updates(params: &Params, body: &[u8]) -> Result<Vec<Update>> {
    if body.len() < 8 || body[..4] != *UPDATES || u32_at(body, 4) as usize != params.entry_size() {
        return Err(Error::format("updates", "the body does not begin as it should"));
    }
    let mut rest = &body[8..];
    let mut updates = Vec::new();
    while !rest.is_empty() {
        let (update, length) = Update::read(params, rest)?;
        updates.push(update);
        rest = &rest[length..];
    }
    Ok(updates)
}

/// Eight bytes that tell damage: the first of the SHA-256 of the parts, joined.
pub(crate) fn checksum(parts: &[&[u8]]) -> [u8; 8] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest: [u8; 32] = hash.finalize().into();
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// A number of the file formats. The caller knows that the bytes are there.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the caller checked the length"))
}

/// As [`u64_at`], four bytes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the caller checked the length"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Choice;

    #[test]
    fn queries_come_back_as_they_were_sent() {
        let mut random = Random::new();
        for (entries, block_size) in
            [(1, 1), (2, 1), (50, 5), (1000, 16), (1000, 31), (5000, 4096), (9, 100_000)]
        {
            let choice = Choice { block_size: Some(block_size), lambda: 1, ..Choice::new(entries, 8) };
            let p = Params::new(choice).unwrap();
            let half = p.blocks() as usize / 2;
            let colours: Vec<bool> = (0..2 * half).map(|k| k % 2 == 1).collect();
            let offsets: Vec<u32> = (0..half).map(|_| random.below(block_size).unwrap()).collect();
            let query = Query::new(&p, &colours, &offsets);
            assert_eq!(query.bytes().len(), p.query_bytes());
            let picks = Picks::read(&p, query.bytes()).unwrap();
            for block in 0..2 * half {
                assert_eq!(picks.colours[block] == 1, colours[block]);
                assert_eq!(picks.offsets[block], offsets[block / 2]);
            }
            let body = queries_body(&p, 7, &[query.clone(), query.clone()]);
            let (epoch, mut read) = read_queries(&p, &body).unwrap();
            assert_eq!((epoch, read.next(), read.len()), (7, Some(query.bytes()), 1));
            assert!(read_queries(&p, &body[..body.len() - 1]).is_err());
            assert!(read_queries(&p, b"WPQ1").is_err());
        }
    }

    #[test]
    fn misshapen_queries_are_refused() {
        let p = Params::new(Choice { block_size: Some(5), lambda: 1, ..Choice::new(30, 8) }).unwrap();
        assert_eq!((p.blocks(), p.offset_bits(), p.query_bytes()), (6, 3, 1 + 2));
        let good = Query::new(&p, &[true, false, true, false, true, false], &[4, 0, 4]).0;
        assert!(Picks::read(&p, &good).is_ok());
        for (at, bit) in [(0, 0), (0, 1), (0, 6), (0, 7), (1, 0), (2, 1), (2, 7)] {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(Picks::read(&p, &bad).is_err(), "byte {at}, bit {bit}");
        }
        assert!(Picks::read(&p, &good[..2]).is_err());
        assert!(Picks::read(&p, &[good.clone(), vec![0]].concat()).is_err());
    }

    #[test]
    fn updates_come_back_and_damage_is_seen() {
        let p = Params::new(Choice { lambda: 1, ..Choice::new(30, 9) }).unwrap();
        let update = Update { number: 3, indices: vec![0, 29, 29], deltas: (0..27).collect() };
        let bytes = update.to_bytes(9);
        let body = updates_body(&p, [&bytes[..], &bytes[..]].into_iter());
        assert_eq!(read_updates(&p, &body).unwrap(), [update.clone(), update]);
        for at in 0..body.len() {
            let mut bad = body.clone();
            bad[at] ^= 4;
            assert!(read_updates(&p, &bad).is_err(), "byte {at}");
        }
        assert!(read_updates(&p, &body[..body.len() - 1]).is_err());
        let outside = Update { number: 1, indices: vec![30], deltas: vec![1; 9] }.to_bytes(9);
        assert!(Update::read(&p, &outside).is_err());
    }
}
