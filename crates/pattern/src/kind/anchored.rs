//! Begins with, ends with, both: characters fixed at the two ends of the text.
//!
//! One kind, since a prefix is a pair of ends with nothing at the second. Where symbols are bits, what is fixed is a
//! system of linear equations over the digest's bits, so whether it is possible and how likely is exact. In base58 that
//! is so for the start; the end is of a checksum, as good as random.

use warpsmith_chain::Base58;

use super::{Kind, Pattern, symbols, wrong_characters};
use crate::Reason;
use crate::base58;
use crate::length::Set;
use crate::lower;
use crate::shape::{Item, Shape};
use crate::text::{Code, Text};

pub(super) const KIND: Kind = Kind {
    name: "ends",
    written: &[
        ("{start}", "begins with"),
        ("..{end}", "ends with"),
        ("{start}..{end}", "begins and ends with"),
        ("{start}?{end}", "? stands for any one character"),
    ],
    claims: |_| true,
    read: |body, text| Ok(Box::new(Anchored::read(body, text)?)),
};

struct Anchored {
    prefix: Vec<Set>,
    suffix: Vec<Set>,
    odds: f64,
}

impl Anchored {
    fn read(body: &str, text: &Text) -> Result<Self, Reason> {
        let parts: Vec<&str> = body.split("..").collect();
        let (prefix, suffix) = match parts[..] {
            [prefix] => (prefix, ""),
            [prefix, suffix] if !(prefix.is_empty() && suffix.is_empty()) => (prefix, suffix),
            _ => return Err(Reason::Dots),
        };
        let mut parts = symbols(body, &[prefix, suffix], text)?.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let mut this = Self { prefix: next(), suffix: next(), odds: 0.0 };
        let after_start = this.prefix.iter().skip(text.start.len()).chain(&this.suffix);
        if after_start.into_iter().any(|set| set & text.inner == 0) {
            return Err(wrong_characters(body, text));
        }
        this.odds = match text.code {
            Code::Linear(_) => this.solve(text)?,
            Code::Base58(code) => this.count(code, text)?,
        };
        if this.odds >= 1.0 { Err(Reason::EveryKey) } else { Ok(this) }
    }

    /// The odds in base58.
    fn count(&self, code: &Base58, text: &Text) -> Result<f64, Reason> {
        let begins = base58::share(code, &self.prefix).map_err(|position| {
            let allowed = base58::following(code, &self.prefix[..position]);
            match allowed & self.prefix[position] {
                0 => Reason::Start {
                    target: text.target,
                    start: self.prefix[..position].iter().map(|&set| one(set, text)).collect(),
                    allowed: text.characters(allowed),
                    given: one(self.prefix[position], text),
                },
                // Digits that could follow, but for the checksum at the end.
                _ => Reason::Checksum { target: text.target },
            }
        })?;
        Ok(begins * self.suffix.iter().map(|&set| base58::even(set)).product::<f64>())
    }

    /// The set at each position of the text.
    fn placement(&self, text: &Text) -> Vec<Set> {
        let open = text.len() - self.prefix.len() - self.suffix.len();
        let open = std::iter::repeat_n(text.any, open);
        self.prefix.iter().copied().chain(open).chain(self.suffix.iter().copied()).collect()
    }

    fn solve(&self, text: &Text) -> Result<f64, Reason> {
        let placement = self.placement(text);
        for (position, (&set, &allowed)) in placement.iter().zip(&text.allowed).enumerate() {
            if set & allowed == 0 {
                // Positions are counted after what all texts begin with.
                let (head, before) = match position.checked_sub(text.start.len()) {
                    Some(after) => (text.shown_head(), after),
                    None => (text.head, position),
                };
                let (allowed, given) = (text.characters(allowed), one(set, text));
                return Err(Reason::Position { head, position: before + 1, allowed, given });
            }
        }
        lower::odds(&placement, text).ok_or(Reason::Checksum { target: text.target })
    }
}

impl Pattern for Anchored {
    fn matches(&self, body: &str, text: &Text) -> bool {
        let fits = |(set, &byte): (&Set, &u8)| text.value(byte).is_some_and(|value| set >> value & 1 == 1);
        let body = body.as_bytes();
        body.len() >= self.prefix.len() + self.suffix.len()
            && self.prefix.iter().zip(body).all(fits)
            && self.suffix.iter().zip(&body[body.len() - self.suffix.len()..]).all(fits)
    }

    fn odds(&self) -> f64 {
        self.odds
    }

    fn shapes(&self, text: &Text) -> Vec<Shape> {
        let items = match text.code {
            Code::Linear(_) => self.placement(text).into_iter().map(Item::One).collect(),
            Code::Base58(_) => {
                let ones = |sets: &[Set]| sets.iter().map(|&set| Item::One(set)).collect::<Vec<_>>();
                [ones(&self.prefix), vec![Shape::free(text)], ones(&self.suffix)].concat()
            }
        };
        vec![Shape { items }]
    }
}

/// A character of the set, to name it; `?` where it may be any.
fn one(set: Set, text: &Text) -> char {
    if set == text.any { '?' } else { text.characters(set).chars().next().unwrap_or('?') }
}
