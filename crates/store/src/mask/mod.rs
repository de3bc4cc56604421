//! Keys of which a part is known: what a person has of a key's text, and every key that it can be.
//!
//! A mask is a text of which characters are known, unknown (`?`), one of some (`[8b]`, `[0-9]`), or missing at places nobody
//! knows. Candidates are numbered from 0, so that a map can say which of them were tested: of hexadecimal keys in an order
//! that a walk over points can follow ([`DigitMask`]), of texts with a checksum one by one ([`TextMask`]), where the checksum
//! leaves few that need a point at all.

mod digits;
mod schemes;
mod symbols;
mod texts;

pub use digits::DigitMask;
pub use texts::TextMask;

use std::fmt;

use sha2::{Digest as _, Sha256};
use warpsmith_chain::{AddressKind, KeyType};

use crate::interval::{Interval, U256};
use crate::range::key_order;
use symbols::{Alphabet, Choices};

/// The most characters that may be missing.
const MOST_MISSING: usize = 4;

/// A text that is no mask of a key. SEC: none of these repeats what is known of the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// As long as no key is.
    #[error("it stands for {given} characters{}{}", with_missing(*missing), lengths(*given, *missing, *like))]
    Length {
        /// How many characters it stands for, with those that are said to be missing.
        given: usize,
        /// How many are said to be missing.
        missing: usize,
        /// The kind of text that it begins like, and the length of those.
        like: Option<(&'static str, usize)>,
    },
    /// A character that keys of that kind do not have.
    #[error(
        "character {at} is one that no {kind} has ({allowed}): write ? for it, or in brackets what it may be, as in [8b]"
    )]
    Character {
        /// Which of the characters, counted from 1.
        at: usize,
        /// The kind of text.
        kind: &'static str,
        /// What it is made of.
        allowed: &'static str,
    },
    /// Brackets that are none.
    #[error(
        "the brackets at character {0} are not right: write what the character may be between them, as in [8b] or [0-9]"
    )]
    Brackets(usize),
    /// Nothing is unknown.
    #[error("nothing in it is unknown: it is a whole key. Write ? where you are not sure")]
    Known,
    /// Too many missing.
    #[error(
        "at most {MOST_MISSING} characters may be missing, not {0}: what is missing at a known place is written as ?"
    )]
    Missing(usize),
    /// More candidates than can be numbered.
    #[error("it stands for more than 2^{0} keys, which nobody can test: more of it has to be known")]
    Many(u32),
    /// No key at all.
    #[error("no key fits it: {0}")]
    Empty(&'static str),
}

fn with_missing(missing: usize) -> String {
    if missing == 0 { String::new() } else { format!(" with the {missing} missing") }
}

/// The lengths that are possible instead, and what to do.
fn lengths(given: usize, missing: usize, like: Option<(&'static str, usize)>) -> String {
    match like {
        Some((kind, length)) if length > given => {
            let lacks = length - given;
            let (are, they) = match lacks {
                1 => ("character is", "it belongs"),
                _ => ("characters are", "they belong"),
            };
            format!(
                ", and it begins like a {kind}, which has {length}: {lacks} {are} missing. Write ? where {they}, or say how many are \
                 missing if you do not know where"
            )
        }
        Some((kind, length)) => {
            let missing = if missing == 0 { "" } else { ", or let fewer be missing" };
            format!(", and it begins like a {kind}, which has {length}: take out what does not belong there{missing}")
        }
        None => ", and no key has as many: hexadecimal keys have 64 digits, WIF keys 52 characters (51 where they begin with 5 or 9), \
                 an nsec 63. Write ? for each unknown character; if some are missing at places you do not know, say how many"
            .to_owned(),
    }
}

/// Every key that a text of which a part is known can be.
#[derive(Clone)]
pub struct KeyMask {
    kind: Kind,
    digest: [u8; 32],
}

#[derive(Clone)]
enum Kind {
    Digits(DigitMask),
    Texts(TextMask),
}

impl KeyMask {
    /// Reads a mask of which so many characters are missing at unknown places.
    pub fn parse(text: &str, missing: usize) -> Result<Self, MaskError> {
        if missing > MOST_MISSING {
            return Err(MaskError::Missing(missing));
        }
        let text = text.trim();
        let (alphabet, choices) = Alphabet::read(text, missing)?;
        if missing == 0 && choices.iter().all(|choices| choices.len() == 1) {
            return Err(MaskError::Known);
        }
        let mut hash = Sha256::new();
        hash.update(format!("warpsmith mask {} {missing}\n", alphabet.name()));
        for choices in &choices {
            hash.update([choices.len() as u8]);
            hash.update(choices);
        }
        let kind = match alphabet {
            Alphabet::Hex if missing == 0 => Kind::Digits(DigitMask::new(&choices)?),
            alphabet => Kind::Texts(TextMask::new(alphabet, choices, missing)?),
        };
        Ok(KeyMask { kind, digest: hash.finalize().into() })
    }

    /// How many candidates there are.
    pub fn count(&self) -> U256 {
        match &self.kind {
            Kind::Digits(mask) => mask.count(),
            Kind::Texts(mask) => U256::from(mask.count()),
        }
    }

    /// The numbers that maps and batches have for them: one more than the candidate's own.
    pub fn numbers(&self) -> Interval {
        Interval::starting(U256::ONE, self.count()).expect("a mask has candidates")
    }

    /// What kind of text it is, in words.
    pub fn kind(&self) -> &'static str {
        match &self.kind {
            Kind::Digits(_) => Alphabet::Hex.name(),
            Kind::Texts(mask) => mask.kind(),
        }
    }

    /// What a map knows it by.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The digits, where that is what it is made of.
    pub fn digits(&self) -> Option<&DigitMask> {
        match &self.kind {
            Kind::Digits(mask) => Some(mask),
            Kind::Texts(_) => None,
        }
    }

    /// The texts, where that is what it is made of.
    pub fn texts(&self) -> Option<&TextMask> {
        match &self.kind {
            Kind::Digits(_) => None,
            Kind::Texts(mask) => Some(mask),
        }
    }

    /// The type of address whose private keys are written like this text, and its kind on the network that the first character tells;
    /// none of hexadecimal digits, which any address may have.
    pub fn address_type(&self) -> Option<(&'static KeyType, AddressKind)> {
        self.texts().and_then(TextMask::address_type)
    }

    /// The key of a candidate, big-endian; none where it is no key: its checksum is wrong, or it is 0 or beyond n - 1.
    pub fn key_at(&self, candidate: U256) -> Option<[u8; 32]> {
        match &self.kind {
            Kind::Digits(mask) => (candidate < mask.count()).then(|| mask.number_at(candidate)).and_then(key),
            Kind::Texts(mask) => {
                let mut found = None;
                mask.visit(u128::try_from(candidate).ok()?, 1, &mut |_, key| found = Some(*key));
                found
            }
        }
    }
}

/// SEC: nothing of the key is shown.
impl fmt::Debug for KeyMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyMask({}, {} candidates)", self.kind(), self.count())
    }
}

/// The bytes of a number, if it is a key.
fn key(number: U256) -> Option<[u8; 32]> {
    (number != U256::ZERO && number < key_order()).then(|| number.to_be_bytes())
}

/// Product of the choices, if it is at most so many.
fn product(choices: &[Choices], most: u128) -> Option<u128> {
    let product =
        choices.iter().try_fold(1u128, |product, choices| product.checked_mul(choices.len() as u128));
    product.filter(|product| *product <= most)
}

#[cfg(test)]
mod tests;
