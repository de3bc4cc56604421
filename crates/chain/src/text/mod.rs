//! How a digest becomes text, in a form that can be reasoned about bit by bit.
//!
//! A pattern uses it to turn text into conditions on digest bits. Knows no pattern; the encoders themselves do
//! not use it, so that each can be tested against the other.

pub mod base58;
pub mod bech32;
pub mod cashaddr;
mod code;
pub mod hex;
mod number;
mod writing;

use crate::Digest;
pub use base58::Base58;
pub use writing::Writing;
use writing::check_body;

/// One bit of a text symbol as an affine function over GF(2) of the digest's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitSum {
    /// The digest bits that are added, in the words of [`Digest::words`].
    pub mask: [u64; 4],
    /// Added to them.
    pub constant: bool,
}

impl BitSum {
    /// The bit for this digest.
    pub fn eval(&self, words: &[u64; 4]) -> bool {
        let ones: u32 = (0..4).map(|i| (words[i] & self.mask[i]).count_ones()).sum();
        (ones % 2 == 1) != self.constant
    }
}

/// How a digest becomes text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Each symbol holds bits that are affine functions of the digest's bits: bech32, hex.
    Linear(Linear),
    /// The digest is part of a number that is written in base 58, with a checksum. Texts have different lengths.
    Base58(Base58),
}

/// A text of fixed length whose symbols are affine in the digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// What every text begins with and patterns leave out.
    pub head: &'static str,
    /// What every text begins with after that, and patterns include: a Bitcoin address is searched with its `bc1q`.
    pub start: &'static str,
    /// The ASCII character of each symbol value; a power of two of them, all different.
    pub alphabet: &'static [u8],
    /// For each symbol after the head and the start its bits, most significant first.
    pub symbols: Vec<Vec<BitSum>>,
    /// Whether the text writes letters in upper or lower case as a checksum (EIP-55). The alphabet has lower case.
    pub checked_case: bool,
}

/// 160 bits without a pattern: the fractional part of the golden ratio.
const ARBITRARY: [u8; 20] = [
    0x9e, 0x37, 0x79, 0xb9, 0x7f, 0x4a, 0x7c, 0x15, 0xf3, 0x9c, 0xc0, 0x60, 0x5c, 0xed, 0xc8, 0x34, 0x10,
    0x82, 0x27, 0x6b,
];

impl Encoding {
    /// What every text begins with and patterns leave out; empty where they include it.
    pub fn head(&self) -> &'static str {
        match self {
            Self::Linear(linear) => linear.head,
            Self::Base58(_) => "",
        }
    }

    /// What follows the head of a text; the whole text where it has no head.
    pub fn body<'t>(&self, text: &'t str) -> &'t str {
        text.strip_prefix(self.head()).unwrap_or(text)
    }

    /// Whether the case of letters is a checksum.
    pub fn checks_case(&self) -> bool {
        matches!(self, Self::Linear(Linear { checked_case: true, .. }))
    }

    /// The characters of a text after the head and the start.
    pub fn alphabet(&self) -> &'static str {
        match self {
            Self::Linear(linear) => std::str::from_utf8(linear.alphabet).expect("alphabets are ASCII"),
            Self::Base58(_) => base58::ALPHABET,
        }
    }

    /// Bits of the digest a symbol holds; about six in base 58.
    pub fn width(&self) -> usize {
        self.alphabet().len().next_power_of_two().trailing_zeros() as usize
    }

    /// The fewest characters after the head that hold at least so many bits. In base 58 a text may have leading ones that
    /// hold more, so one that has none counts.
    pub fn symbols_for(&self, bits: usize) -> usize {
        match self {
            Self::Linear(linear) => {
                let enough = (0..=linear.symbols.len()).find(|&count| linear.bits_in(count) >= bits);
                linear.start.len() + enough.unwrap_or(linear.symbols.len())
            }
            Self::Base58(base58) => base58.start(&Digest::new(&ARBITRARY), bits as f64).len(),
        }
    }

    /// The longest start of what follows the head of this text that holds at most so many bits; at least one character
    /// that is not the same in all texts.
    pub fn prefix<'t>(&self, body: &'t str, bits: f64) -> &'t str {
        let length = match self {
            Self::Linear(linear) => {
                let fits = |count: &usize| linear.bits_in(*count) as f64 <= bits;
                let most = (1..=linear.symbols.len()).take_while(fits).last();
                linear.start.len() + most.unwrap_or(1)
            }
            Self::Base58(base58) => {
                let values: Vec<u8> = body.bytes().filter_map(base58::value).collect();
                let share = |length: usize| base58.share(&values[..length]);
                let varies = (1..values.len()).find(|&length| share(length) < 1.0).unwrap_or(values.len());
                (varies..values.len())
                    .take_while(|&length| share(length) >= (-bits).exp2())
                    .last()
                    .unwrap_or(varies)
            }
        };
        &body[..length.min(body.len())]
    }

    /// A plain prefix of about so many bits: at least one symbol, at most half the text. For self-tests and
    /// benches, which need a pattern that is as rare as they say.
    pub fn sample(&self, bits: f64) -> String {
        const WORDS: &str = "cafewavesbabedeedfacade";
        match self {
            Self::Linear(linear) => {
                // The nearest there is.
                let distance = |count: &usize| (linear.bits_in(*count) as f64 - bits).abs();
                let count = (1..=linear.symbols.len() / 2)
                    .rev()
                    .min_by(|one, other| distance(one).total_cmp(&distance(other)))
                    .unwrap_or(1);
                let mut words = WORDS.bytes().cycle();
                let fitting = |bits: &Vec<BitSum>| {
                    let mut tried = words.by_ref().take(WORDS.len());
                    let found = tried.find(|byte| linear.can_hold(bits, *byte));
                    // Where no letter fits, the first character that does.
                    found
                        .or_else(|| linear.alphabet.iter().copied().find(|byte| linear.can_hold(bits, *byte)))
                };
                let words = linear.symbols[..count].iter().filter_map(fitting).map(char::from);
                linear.start.chars().chain(words).collect()
            }
            Self::Base58(base58) => {
                let text = base58.text(&Digest::new(&ARBITRARY));
                // Half a character more or less, as above.
                let most = &text[..text.len() / 2];
                self.prefix(most, bits + 58f64.log2() / 2.0).to_owned()
            }
        }
    }

    /// A plain prefix of at least so many bits, all of them ones or all zeros: the edges of the digest's range.
    pub fn edge(&self, ones: bool, bits: usize) -> String {
        match self {
            Self::Linear(linear) => {
                let text = linear.text(&Digest::new(&[if ones { 0xff } else { 0 }; Digest::MAX]));
                text[linear.head.len()..][..self.symbols_for(bits)].to_owned()
            }
            Self::Base58(base58) => {
                base58.start(&Digest::new(&[if ones { 0xff } else { 0 }; 20]), bits as f64)
            }
        }
    }
}

impl Linear {
    /// How many bits of a digest the first so many symbols after the start hold. Symbols that hold bits of the digest and
    /// no sums of them come first.
    fn bits_in(&self, count: usize) -> usize {
        self.symbols[..count].iter().flatten().filter(|bit| bit.mask != [0; 4]).count()
    }

    /// Whether a symbol of these bits is this character for some digest, as far as its constant bits tell.
    fn can_hold(&self, bits: &[BitSum], byte: u8) -> bool {
        let Some(value) = self.alphabet.iter().position(|&other| other == byte) else { return false };
        let is_set = |at: usize| value >> (bits.len() - 1 - at) & 1 == 1;
        bits.iter().enumerate().all(|(at, bit)| bit.mask != [0; 4] || bit.constant == is_set(at))
    }

    /// The text of a digest as this encoding describes it, head included, letters in lower case.
    pub fn text(&self, digest: &Digest) -> String {
        let words = digest.words();
        let symbol = |bits: &Vec<BitSum>| {
            let value = bits.iter().fold(0, |value, bit| value << 1 | usize::from(bit.eval(&words)));
            char::from(self.alphabet[value])
        };
        let before = self.head.chars().chain(self.start.chars());
        before.chain(self.symbols.iter().map(symbol)).collect()
    }
}
