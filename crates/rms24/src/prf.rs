//! The pseudorandom function that decides which blocks a hint holds, and which entry of each.
//!
//! ```text
//! call    ChaCha12: key K; counter = id / 16 (32 bits); nonce = (domain, block, id >> 36); word = output[id mod 16]
//! packed  w = 2^b <= 65536:  order = (domain 0 word >> 16) << 16 | domain 2 word >> 16,  offset = domain 0 word & (w - 1)
//! wide    any other w:       order = domain 0 word,                                      offset = domain 1 word * w >> 32
//! ```
//!
//! A hint holds block k when order(id, k) lies below its cutoff. The upper half of an order decides nearly always; the
//! lower half, for which packed blocks need a second call, only where the upper one equals the cutoff's. So the order is
//! one number of 32 bits in both layouts, and a uniform random one. All sixteen words of a call are used: they belong to
//! sixteen hints and one block.
//!
//! `tests/vectors.rs` publishes values for other implementations.

use std::fmt;

use warpsmith_hash::Lanes;
use warpsmith_hash::chacha::{self, Word16};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::Result;
use crate::params::Params;
use crate::random;

/// What a word is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Domain {
    /// The order, or its upper half beside the offset.
    Choice = 0,
    /// The offset, where it has a word of its own.
    Offset = 1,
    /// The lower half of the order, where the upper one shares its word with the offset.
    Tie = 2,
}

/// The key of one offline phase.
///
/// SEC: whoever has it can read the queries. It is made anew for each offline phase and never leaves the client, but for
/// the hint maker of the two-server mode, which sees no queries.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

impl Key {
    /// A fresh key from the operating system.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn random() -> Result<Key> {
        let mut key = Key([0; 32]);
        random::fill(&mut key.0)?;
        Ok(key)
    }

    /// A key read from a state file or a request.
    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// The bytes, to be stored or sent to a hint maker.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The function, for one key and block size.
#[derive(Clone)]
pub struct Prf {
    key: Secret,
    lanes: Lanes,
    block_size: u32,
    packed: bool,
}

#[derive(Clone, Zeroize, ZeroizeOnDrop)]
struct Secret(chacha::Key);

/// The words that decide a lot of choices and offsets: of domain 0, and of domain 1 where offsets have their own.
pub(crate) struct Draw {
    choices: [Word16; 16],
    offsets: Option<[Word16; 16]>,
}

impl Draw {
    /// Words whose upper halves are the upper halves of orders.
    pub(crate) fn choices(&self) -> &[Word16; 16] {
        &self.choices
    }

    /// Words whose lower bits, those of [`Prf::offset_mask`], are offsets.
    pub(crate) fn offsets(&self) -> &[Word16; 16] {
        self.offsets.as_ref().unwrap_or(&self.choices)
    }
}

impl Prf {
    /// The function under a key, for blocks of the size of `params`.
    pub fn new(key: &Key, params: &Params, lanes: Lanes) -> Prf {
        let words = key.0.as_chunks().0;
        let key = Secret(std::array::from_fn(|i| u32::from_le_bytes(words[i])));
        Prf { key, lanes, block_size: params.block_size(), packed: params.is_packed() }
    }

    /// The instruction set it uses.
    pub fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// Whether a choice and an offset share a word.
    pub fn is_packed(&self) -> bool {
        self.packed
    }

    /// One word.
    pub fn word(&self, domain: Domain, id: u64, block: u32) -> u32 {
        let place = [(id >> 4) as u32, domain as u32, block, (id >> 36) as u32];
        chacha::words(&self.key.0, place)[(id % 16) as usize]
    }

    /// The rank of a block for a hint.
    pub fn order(&self, id: u64, block: u32) -> u32 {
        let choice = self.word(Domain::Choice, id, block);
        if self.packed { choice >> 16 << 16 | self.low_order(id, block) } else { choice }
    }

    /// The lower half of the order.
    pub fn low_order(&self, id: u64, block: u32) -> u32 {
        if self.packed {
            self.word(Domain::Tie, id, block) >> 16
        } else {
            self.word(Domain::Choice, id, block) & 0xffff
        }
    }

    /// The entry of a block that a hint holds when it holds the block.
    pub fn offset(&self, id: u64, block: u32) -> u32 {
        self.offset_of(self.word(self.offset_domain(), id, block))
    }

    /// The domain of the word an offset is made of.
    fn offset_domain(&self) -> Domain {
        if self.packed { Domain::Choice } else { Domain::Offset }
    }

    /// The offset a word stands for.
    #[inline(always)]
    fn offset_of(&self, word: u32) -> u32 {
        if self.packed {
            word & (self.block_size - 1)
        } else {
            ((u64::from(word) * u64::from(self.block_size)) >> 32) as u32
        }
    }

    /// The words of sixteen groups (ids divided by 16), each with its block: word i of lane l belongs to id 16 * group + i.
    fn words(&self, domain: Domain, groups: &[u64; 16], blocks: &Word16) -> [Word16; 16] {
        let places =
            [groups.map(|g| g as u32), [domain as u32; 16], *blocks, groups.map(|g| (g >> 32) as u32)];
        chacha::words_of_sixteen(self.lanes, &self.key.0, &places)
    }

    /// Choices and offsets of sixteen groups, each with its block.
    pub(crate) fn draw(&self, groups: &[u64; 16], blocks: &Word16) -> Draw {
        Draw {
            choices: self.words(Domain::Choice, groups, blocks),
            offsets: (!self.packed).then(|| self.offset_words(groups, blocks)),
        }
    }

    /// The bits of a [`Draw`]'s words that are an offset.
    pub(crate) fn offset_mask(&self) -> u32 {
        if self.packed { self.block_size - 1 } else { u32::MAX }
    }

    /// The offsets of sixteen groups, each in its block.
    fn offset_words(&self, groups: &[u64; 16], blocks: &Word16) -> [Word16; 16] {
        let mut words = self.words(self.offset_domain(), groups, blocks);
        for word in words.as_flattened_mut() {
            *word = self.offset_of(*word);
        }
        words
    }

    /// The choices alone.
    pub(crate) fn draw_choices(&self, groups: &[u64; 16], blocks: &Word16) -> [Word16; 16] {
        self.words(Domain::Choice, groups, blocks)
    }

    /// The offsets of sixteen groups in one block.
    pub(crate) fn offsets_of_groups(&self, groups: &[u64; 16], block: u32) -> [Word16; 16] {
        self.offset_words(groups, &[block; 16])
    }

    /// The offsets of sixteen hints in one block.
    pub(crate) fn offsets_of_ids(&self, ids: &[u64; 16], block: u32) -> Word16 {
        let words = self.words(self.offset_domain(), &ids.map(|id| id >> 4), &[block; 16]);
        std::array::from_fn(|lane| self.offset_of(words[(ids[lane] % 16) as usize][lane]))
    }

    /// The words of domain 0 of sixteen hints, each with its block.
    pub(crate) fn choices_of_ids(&self, ids: &[u64; 16], blocks: &Word16) -> Word16 {
        let words = self.words(Domain::Choice, &ids.map(|id| id >> 4), blocks);
        std::array::from_fn(|lane| words[(ids[lane] % 16) as usize][lane])
    }

    /// Whether a hint with this cutoff holds the block, given the word of domain 0.
    pub(crate) fn is_below(&self, choice: u32, cutoff: u32, id: u64, block: u32) -> bool {
        match (choice >> 16).cmp(&(cutoff >> 16)) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.low_order(id, block) < cutoff & 0xffff,
            std::cmp::Ordering::Greater => false,
        }
    }

    /// Whether a hint with this cutoff has the block in its lower half.
    pub fn is_low(&self, id: u64, cutoff: u32, block: u32) -> bool {
        self.is_below(self.word(Domain::Choice, id, block), cutoff, id, block)
    }

    /// Choices and offsets of one hint in sixteen blocks: the words of its group, of which one belongs to it.
    pub(crate) fn draw_of_id(&self, id: u64, blocks: &Word16) -> (Word16, Word16) {
        let draw = self.draw(&[id >> 4; 16], blocks);
        let word = (id % 16) as usize;
        (draw.choices()[word], draw.offsets()[word].map(|w| w & self.offset_mask()))
    }
}
