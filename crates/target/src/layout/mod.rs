//! How a digest becomes text, in a form that can be reasoned about bit by bit.
//!
//! A pattern uses it to turn text into conditions on digest bits. Knows no pattern; the encoders themselves do
//! not use it, so that each can be tested against the other.

pub mod bech32;

use crate::Digest;

/// One bit of a text symbol as an affine function over GF(2) of the digest's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The digest bits that are added, in the words of [`Digest::words`].
    pub mask: [u64; 4],
    /// Added to them.
    pub constant: bool,
}

impl Affine {
    /// The bit for this digest.
    pub fn eval(&self, words: &[u64; 4]) -> bool {
        let ones: u32 = (0..4).map(|i| (words[i] & self.mask[i]).count_ones()).sum();
        (ones % 2 == 1) != self.constant
    }
}

/// How a digest becomes text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Each symbol holds bits that are affine functions of the digest's bits: bech32, hex.
    Linear(Linear),
}

/// A text of fixed length whose symbols are affine in the digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// What every text begins with.
    pub head: &'static str,
    /// The ASCII character of each symbol value; a power of two of them, all different.
    pub alphabet: &'static [u8],
    /// For each symbol after the head its bits, most significant first.
    pub symbols: Vec<Vec<Affine>>,
}

impl Linear {
    /// The text of a digest as this layout describes it, head included.
    pub fn text(&self, digest: &Digest) -> String {
        let words = digest.words();
        let symbol = |bits: &Vec<Affine>| {
            let value = bits.iter().fold(0, |value, bit| value << 1 | usize::from(bit.eval(&words)));
            char::from(self.alphabet[value])
        };
        self.head.chars().chain(self.symbols.iter().map(symbol)).collect()
    }
}
