//! Buffers of the point walk (`c/points.c`): whole points, hashed or not.
//!
//! Centres and hits lie as in [`abi`]. A key is `lambda^image * (centre +- index)` or its negative.

use crate::abi;

/// Words of a table entry: x, then y, least significant word first. Entry 0 is the step point, entry i is i * G.
pub const TABLE_WORDS: usize = 16;

/// What the filter sees of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    /// The x coordinate, 8 words. y is not computed, so a point has three keys, each up to its sign.
    X,
    /// The Ethereum account, 5 words.
    Account,
    /// The contract which that account creates at the nonce of [`create_words`], 5 words.
    Contract,
}

impl Digest {
    /// Keys of a point: three images, and where y counts two signs.
    pub const fn keys(self) -> u64 {
        match self {
            Self::X => 3,
            Self::Account | Self::Contract => 6,
        }
    }

    pub(crate) fn defines(self) -> Vec<(&'static str, u32)> {
        vec![
            ("DIGEST_WORDS", if self == Self::X { 8 } else { 5 }),
            ("DIGEST_HASHED", (self != Self::X).into()),
            ("DIGEST_CREATE", (self == Self::Contract).into()),
            ("POINT_SIGNS", if self == Self::X { 1 } else { 2 }),
        ]
    }
}

/// Keys a lane tests in one step: those of the centre and of two points an entry.
pub const fn keys_per_step(digest: Digest, group: u32) -> u64 {
    digest.keys() * (2 * group as u64 + 1)
}

/// Words of the scratch buffer: prefix products, and four elements a lane keeps. The device alone uses it.
pub const fn scratch_words(group: u32, lanes: u32) -> usize {
    abi::scratch_words(group + 4, lanes)
}

/// The words of a table entry.
pub fn entry(x: &[u32; 8], y: &[u32; 8]) -> [u32; TABLE_WORDS] {
    std::array::from_fn(|i| if i < 8 { x[i] } else { y[i - 8] })
}

/// The params buffer of [`Digest::Contract`], and four words other digests ignore: what stands around the account in
/// `rlp([account, nonce])`, with the first byte of Keccak's padding behind it.
///
/// The list has a head byte 0xc0 + length; the account is a string of 20 bytes, head 0x94; a nonce below 0x80
/// is its own byte, but 0 the empty string 0x80; a larger one its bytes without leading zeros behind 0x80 + length.
pub fn create_words(nonce: u64) -> [u32; 4] {
    let bytes = nonce.to_be_bytes();
    let bytes = &bytes[(nonce.leading_zeros() / 8) as usize..];
    let mut tail = match bytes {
        [byte @ 1..=0x7f] => vec![*byte],
        bytes => [&[0x80 + bytes.len() as u8], bytes].concat(),
    };
    let length = 21 + tail.len() as u32;
    tail.push(0x01);
    tail.resize(10, 0);
    let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|b| tail[i + b]));
    let first = u32::from(tail[0]) << 16 | u32::from(tail[1]) << 24;
    [0x9400 | (0xc0 + length), first, word(2), word(6)]
}
