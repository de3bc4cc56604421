//! Scores: how remarkable an address is, as a number, for searches that want the best instead of a match.
//!
//! Knows digests of 20 bytes only; scores are for Ethereum addresses, where zero bytes are cheaper in call data.

use std::fmt;

use warpsmith_chain::Digest;

use crate::interval::Words;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Score {
    /// Zero bytes at the start.
    LeadingZeros,
    /// Zero bytes anywhere.
    Zeros,
    /// Hex digits at the start that are this one, 0 to 15.
    Leading(u8),
}

/// Bytes of an address.
const BYTES: u32 = 20;

/// A score as the command line has it.
#[derive(Clone, Copy, Debug)]
pub struct ScoreKind {
    /// The flag, with what it is given.
    pub flag: &'static str,
    /// What it counts.
    pub counts: &'static str,
    /// The score, with a digit for an example where it takes one.
    pub score: Score,
}

/// Every kind of score. Self-tests go by this list, and documents are compared with it.
pub static SCORES: &[ScoreKind] = &[
    ScoreKind { flag: "--leading-zeros", counts: "zero bytes at the start", score: Score::LeadingZeros },
    ScoreKind { flag: "--zeros", counts: "zero bytes anywhere", score: Score::Zeros },
    ScoreKind { flag: "--leading D", counts: "hex digits `D` at the start", score: Score::Leading(7) },
];

impl Score {
    /// The run of a digit written in hex; `None` when it is no hex digit.
    pub fn leading(digit: char) -> Option<Self> {
        digit.to_digit(16).map(|digit| Self::Leading(digit as u8))
    }

    /// The score of a digest of 20 bytes.
    pub fn of(self, digest: &Digest) -> u32 {
        debug_assert_eq!(digest.as_bytes().len(), BYTES as usize);
        self.of_words(&digest.words())
    }

    /// The score of a digest of 20 bytes as filters read it.
    pub fn of_words(self, digest: &Words) -> u32 {
        match self {
            Self::LeadingZeros => run(digest) / 8,
            Self::Leading(digit) => {
                let repeated = 0x1111_1111_1111_1111 * u64::from(digit);
                run(&digest.map(|word| word ^ repeated)) / 4
            }
            Self::Zeros => {
                let bytes = digest.iter().flat_map(|word| word.to_be_bytes()).take(BYTES as usize);
                bytes.filter(|&byte| byte == 0).count() as u32
            }
        }
    }

    /// The highest score there is.
    pub fn max(self) -> u32 {
        match self {
            Self::LeadingZeros | Self::Zeros => BYTES,
            Self::Leading(_) => 2 * BYTES,
        }
    }

    /// The chance that a random digest scores at least this.
    pub fn odds(self, at_least: u32) -> f64 {
        if at_least > self.max() {
            return 0.0;
        }
        match self {
            Self::LeadingZeros => 256f64.powi(-(at_least as i32)),
            Self::Leading(_) => 16f64.powi(-(at_least as i32)),
            // At least k of 20 bytes are zero, each with chance 1/256: the upper tail of a binomial, summed from its
            // smallest terms on. With k = 0 that is all of them.
            Self::Zeros if at_least == 0 => 1.0,
            Self::Zeros => (at_least..=BYTES).rev().map(exactly).sum(),
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeadingZeros => f.write_str("leading zero bytes"),
            Self::Zeros => f.write_str("zero bytes"),
            Self::Leading(digit) => write!(f, "leading digits {digit:x}"),
        }
    }
}

/// Zero bits at the start of an address.
fn run(digest: &Words) -> u32 {
    let word = digest.iter().position(|&word| word != 0).unwrap_or(digest.len());
    let bits = digest.get(word).map_or(0, |word| word.leading_zeros());
    (64 * word as u32 + bits).min(8 * BYTES)
}

/// The chance that exactly `zeros` of the bytes are zero.
fn exactly(zeros: u32) -> f64 {
    let ways: f64 = (1..=zeros).map(|i| f64::from(BYTES - zeros + i) / f64::from(i)).product();
    ways * 256f64.powi(-(zeros as i32)) * (255f64 / 256.0).powi((BYTES - zeros) as i32)
}
