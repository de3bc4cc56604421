//! Scores: how remarkable an address is, as a number, for searches that want the best instead of a match.
//!
//! Knows digests of 20 bytes only; scores are for Ethereum addresses. A score is a feature, or a weighted sum of some.

mod chances;
mod feature;
mod parse;
mod ranking;

use std::fmt;

use warpsmith_chain::Digest;

pub use feature::{Feature, Likeness};
pub use parse::ScoreError;
pub use ranking::Ranking;

use crate::interval::Words;

/// What is counted: a feature, or a weighted sum of several.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Score {
    parts: Vec<Part>,
}

/// A part of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// What a unit of it counts, 1 or more.
    pub weight: u32,
    /// What is counted.
    pub feature: Feature,
}

/// Parts of a score at most.
pub const MOST_PARTS: usize = 8;
/// What a unit of a part may count at most.
pub const MOST_WEIGHT: u32 = 100;
/// The highest score that can be: tables of chances go up to it.
pub const MOST_SCORE: u32 = 20_000;

/// A kind of score as the command line has it.
#[derive(Clone, Copy, Debug)]
pub struct ScoreKind {
    /// Its name, with what it is given: what `--best` takes.
    pub name: &'static str,
    /// What it counts.
    pub counts: &'static str,
    /// The feature, with an example of what it is given.
    pub feature: Feature,
}

/// Every kind of score. Self-tests go by this list, and documents are compared with it.
pub static SCORES: &[ScoreKind] = &[
    ScoreKind { name: "leading-zeros", counts: "zero bytes at the start", feature: Feature::LeadingZeros },
    ScoreKind { name: "zeros", counts: "zero bytes anywhere", feature: Feature::Zeros },
    ScoreKind { name: "leading:D", counts: "digits `D` at the start", feature: Feature::Leading(7) },
    ScoreKind { name: "count:D", counts: "digits `D` anywhere", feature: Feature::Count(0) },
    ScoreKind {
        name: "like:TEXT",
        counts: "digits that are those of a text, `?` for any",
        feature: Feature::Like(Likeness {
            mask: [0xffff_ffff_0000_ffff, 0xffff, 0xffff_ffff_0000_0000],
            value: [0xc0ff_ee00_0000_dead, 0xbeef, 0xf00d_cafe_0000_0000],
        }),
    },
    ScoreKind { name: "letters", counts: "letters, `a` to `f`", feature: Feature::Letters },
    ScoreKind { name: "digits", counts: "decimal digits, `0` to `9`", feature: Feature::Digits },
    ScoreKind { name: "pairs", counts: "pairs of equal digits at the start", feature: Feature::Pairs },
    ScoreKind { name: "run", counts: "the longest run of one digit, anywhere", feature: Feature::Run },
    ScoreKind {
        name: "mirrored",
        counts: "digits that mirror each other, from the middle on",
        feature: Feature::Mirrored,
    },
    ScoreKind { name: "uniswap", counts: "points of Uniswap's v4 challenge", feature: Feature::Uniswap },
];

impl From<Feature> for Score {
    fn from(feature: Feature) -> Score {
        Score { parts: vec![Part { weight: 1, feature }] }
    }
}

impl Score {
    /// A weighted sum.
    ///
    /// # Errors
    ///
    /// Without parts, with more than [`MOST_PARTS`], with a weight that is none, or where it could exceed [`MOST_SCORE`].
    pub fn sum(parts: Vec<Part>) -> Result<Score, ScoreError> {
        let score = Score { parts };
        let heavy = score.parts.iter().find(|part| !(1..=MOST_WEIGHT).contains(&part.weight));
        if score.parts.is_empty() {
            return Err(ScoreError::Empty);
        }
        if score.parts.len() > MOST_PARTS {
            return Err(ScoreError::Parts { given: score.parts.len() });
        }
        if let Some(part) = heavy {
            return Err(ScoreError::Weight { given: part.weight.into() });
        }
        match score.max() {
            0 => Err(ScoreError::Empty),
            max if max > MOST_SCORE => Err(ScoreError::TooHigh { max }),
            _ => Ok(score),
        }
    }

    /// What it is the sum of.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The feature that it is, where it is one alone.
    pub fn feature(&self) -> Option<Feature> {
        match self.parts[..] {
            [Part { weight: 1, feature }] => Some(feature),
            _ => None,
        }
    }

    /// The score of a digest of 20 bytes.
    pub fn of(&self, digest: &Digest) -> u32 {
        debug_assert_eq!(digest.as_bytes().len(), 20);
        self.of_words(&digest.words())
    }

    /// The score of a digest of 20 bytes as filters read it.
    pub fn of_words(&self, digest: &Words) -> u32 {
        self.parts.iter().map(|part| part.weight * part.feature.of_words(digest)).sum()
    }

    /// What no score exceeds: what the parts of a sum have at most, whether or not an address has all of that.
    pub fn max(&self) -> u32 {
        self.parts
            .iter()
            .map(|part| part.weight.saturating_mul(part.feature.max()))
            .fold(0, u32::saturating_add)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                f.write_str(" and ")?;
            }
            if part.weight > 1 {
                write!(f, "{} times ", part.weight)?;
            }
            match part.feature {
                Feature::LeadingZeros => f.write_str("leading zero bytes")?,
                Feature::Zeros => f.write_str("zero bytes")?,
                Feature::Leading(digit) => write!(f, "leading digits {digit:x}")?,
                Feature::Count(digit) => write!(f, "digits {digit:x}")?,
                Feature::Like(_) => f.write_str("digits of the text")?,
                Feature::Letters => f.write_str("letters")?,
                Feature::Digits => f.write_str("decimal digits")?,
                Feature::Pairs => f.write_str("leading pairs")?,
                Feature::Run => f.write_str("equal digits in a row")?,
                Feature::Mirrored => f.write_str("mirrored digits")?,
                Feature::Uniswap => f.write_str("points of Uniswap's challenge")?,
            }
        }
        Ok(())
    }
}
