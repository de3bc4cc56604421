//! Begins with, ends with, both: characters fixed at the two ends of the text.
//!
//! One kind, since a prefix is a pair of ends with nothing at the second. What is fixed is a system of linear
//! equations over the digest's bits, so whether it is possible and how likely is exact.

use super::{Kind, Pattern, symbols};
use crate::Reason;
use crate::lower;
use crate::shape::{Item, Shape};
use crate::text::{Set, Text};

pub(super) const KIND: Kind = Kind {
    name: "ends",
    written: "cafe, ..cafe, cafe..babe, ca?e",
    means: "begins with, ends with, both; ? stands for any one character",
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
        this.odds = this.solve(text)?;
        Ok(this)
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
                return Err(Reason::Position {
                    head: text.layout.head,
                    position: position + 1,
                    allowed: text.characters(allowed),
                    given: text.characters(set).chars().next().unwrap_or('?'),
                });
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
        vec![Shape { items: self.placement(text).into_iter().map(Item::One).collect() }]
    }
}
