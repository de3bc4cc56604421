//! How a digest becomes text, in a form that can be reasoned about bit by bit.
//!
//! A pattern uses it to turn text into conditions on digest bits. Knows no pattern; the encoders themselves do
//! not use it, so that each can be tested against the other.

pub mod bech32;
pub mod hex;

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
    /// Whether the text writes letters in upper or lower case as a checksum (EIP-55). The alphabet has lower case.
    pub checked_case: bool,
}

impl Layout {
    /// What every text begins with.
    pub fn head(&self) -> &'static str {
        let Self::Linear(linear) = self;
        linear.head
    }

    /// What follows the head of a text; the whole text where it has no head.
    pub fn body<'t>(&self, text: &'t str) -> &'t str {
        text.strip_prefix(self.head()).unwrap_or(text)
    }

    /// Whether the case of letters is a checksum.
    pub fn checks_case(&self) -> bool {
        let Self::Linear(linear) = self;
        linear.checked_case
    }

    /// Bits of the digest a symbol holds.
    pub fn width(&self) -> usize {
        let Self::Linear(linear) = self;
        linear.alphabet.len().trailing_zeros() as usize
    }

    /// The fewest symbols that hold at least so many bits.
    pub fn symbols_for(&self, bits: usize) -> usize {
        bits.div_ceil(self.width())
    }

    /// A plain prefix of about so many bits: at least one symbol, at most half the text. For self-tests and
    /// benches, which need a pattern that is as rare as they say.
    pub fn sample(&self, bits: f64) -> String {
        const WORDS: &str = "cafewavesbabedeedfacade";
        let Self::Linear(linear) = self;
        let count = (bits / self.width() as f64).round() as usize;
        let words = WORDS.bytes().filter(|byte| linear.alphabet.contains(byte)).cycle();
        words.take(count.clamp(1, linear.symbols.len() / 2)).map(char::from).collect()
    }

    /// A plain prefix of at least so many bits, all of them ones or all zeros: the edges of the digest's range.
    pub fn edge(&self, ones: bool, bits: usize) -> String {
        let Self::Linear(linear) = self;
        let symbol = linear.alphabet[if ones { linear.alphabet.len() - 1 } else { 0 }];
        std::iter::repeat_n(char::from(symbol), self.symbols_for(bits)).collect()
    }
}

impl Linear {
    /// The text of a digest as this layout describes it, head included, letters in lower case.
    pub fn text(&self, digest: &Digest) -> String {
        let words = digest.words();
        let symbol = |bits: &Vec<Affine>| {
            let value = bits.iter().fold(0, |value, bit| value << 1 | usize::from(bit.eval(&words)));
            char::from(self.alphabet[value])
        };
        self.head.chars().chain(self.symbols.iter().map(symbol)).collect()
    }
}
