//! What a person asks for: text in, a filter for devices, an exact test and the odds out.
//!
//! Knows the pattern syntax and how a target's encoding ties text to digest bits. Knows no curve, no key and no
//! device. The straight line: [`compile`] reads texts by [`KINDS`], each kind becomes shapes (sequences of symbol
//! sets), a shape is placed in the text, a placement becomes intervals or terms of a [`Filter`].

mod automaton;
mod base58;
mod error;
mod expr;
pub mod filter;
mod habit;
mod interval;
mod kind;
mod length;
mod lower;
mod prefixes;
mod score;
mod set;
mod shape;
mod system;
mod text;

pub use error::{Error, Reason};
pub use filter::{Filter, Parity, ScoreFilter, Term};
pub use habit::Habit;
pub use interval::{Interval, Words};
pub use kind::{KINDS, Kind};
pub use score::{
    Feature, Likeness, MOST_PARTS, MOST_SCORE, MOST_WEIGHT, Part, Ranking, SCORES, Score, ScoreError,
    ScoreKind,
};
pub use set::{Patterns, compile, compile_possible};

/// How patterns are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Upper and lower case of a letter are the same. Of use where the text has both (base58); for a text in lower
    /// case only, it lets a pattern be written in upper case.
    pub ignore_case: bool,
    /// Letters must stand in the case the text's checksum gives them (EIP-55). Without it, the case of such a text is
    /// ignored. Of no effect where case is no checksum.
    pub checksum: bool,
    /// What the last bits of the digest must be, beside every pattern. For texts that end with these bits, as hexadecimal digits do.
    pub low_bits: Option<LowBits>,
}

/// What the last bits of a digest are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowBits {
    /// How many, at most 64.
    pub count: u32,
    /// As a number below 2^count.
    pub value: u64,
}
