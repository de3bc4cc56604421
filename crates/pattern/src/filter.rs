//! Filters: what a device can test. Plain data over digest bits, without any knowledge of text, chains or
//! devices.
//!
//! The contract of every filter: it may accept a digest no pattern matches, it never rejects one that some
//! pattern matches. The host decides each accepted digest again on its text.

use crate::interval::{Interval, Words};
use crate::score::{Feature, Score};

/// One linear equation over GF(2): the parity of the digest bits under `mask` is `odd`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parity {
    /// The digest bits that take part.
    pub mask: Words,
    /// Whether an odd number of them must be set.
    pub odd: bool,
}

/// A conjunction: `digest & mask == value`, and every parity holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The digest bits that are fixed.
    pub mask: Words,
    /// What they must be; zero outside `mask`.
    pub value: Words,
    /// Further linear conditions (bits of a bech32 checksum).
    pub parities: Vec<Parity>,
}

impl Term {
    /// No condition at all.
    pub const ALL: Self = Self { mask: [0; 4], value: [0; 4], parities: Vec::new() };

    /// Whether the digest satisfies the whole conjunction.
    pub fn accepts(&self, digest: &Words) -> bool {
        (0..4).all(|i| digest[i] & self.mask[i] == self.value[i])
            && self.parities.iter().all(|p| {
                let ones: u32 = (0..4).map(|i| (digest[i] & p.mask[i]).count_ones()).sum();
                (ones % 2 == 1) == p.odd
            })
    }
}

/// A disjunction over everything the job's patterns imply, and a score to be reached besides where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Ranges of the top 64 bits: sorted, disjoint, not adjacent.
    pub top: Vec<Interval>,
    /// Conditions that ranges of the top bits cannot express sharply enough.
    pub terms: Vec<Term>,
    /// A score to be reached as well. Without ranges and terms it is all that counts.
    pub score: Option<ScoreFilter>,
}

/// A digest passes when its score is at least this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreFilter {
    /// What is scored.
    pub score: Score,
    /// The least score that passes.
    pub at_least: u32,
    /// Whether each digest that passes is told, or one of the best alone.
    pub each: bool,
}

impl ScoreFilter {
    /// Whether the digest reaches the score.
    pub fn accepts(&self, digest: &Words) -> bool {
        self.score.of_words(digest) >= self.at_least
    }
}

impl Filter {
    /// A score as it is, of which the best is wanted. A run of digits could be tested as a range ([`Filter::of_run`]), but a search for the
    /// best raises its demand as it goes and keeps the best of each batch only, so devices are told the score itself.
    pub fn scored(score: impl Into<Score>, at_least: u32) -> Filter {
        let score = ScoreFilter { score: score.into(), at_least, each: false };
        Filter { score: Some(score), ..Filter::default() }
    }

    /// A run of digits at the start as a range; none of other features. Exact, but for runs longer than the top 64 bits, whose rest is left open.
    pub fn of_run(feature: Feature, at_least: u32) -> Option<Filter> {
        let (digit, bits) = match feature {
            Feature::LeadingZeros => (0, 8 * at_least),
            Feature::Leading(digit) => (digit, 4 * at_least),
            _ => return None,
        };
        if at_least > feature.max() {
            return Some(Filter::default());
        }
        let rest = u64::MAX.checked_shr(bits).unwrap_or(0);
        let first = (0x1111_1111_1111_1111 * u64::from(digit)) & !rest;
        Some(Filter { top: vec![Interval { first, last: first | rest }], ..Filter::default() })
    }

    /// The share of all digests that ranges and terms pass, at most 1; where parts overlap, less pass. Scores are not
    /// counted. A device that reports each digest it accepts should not be given a filter that passes a large share: a
    /// suffix in base58, for example, passes all.
    pub fn share(&self) -> f64 {
        let range = |i: &Interval| ((i.last - i.first) as f64 + 1.0) * (-64f64).exp2();
        let term = |t: &Term| {
            let fixed: u32 = t.mask.iter().map(|word| word.count_ones()).sum();
            (-(f64::from(fixed) + t.parities.len() as f64)).exp2()
        };
        let ranges: f64 = self.top.iter().map(range).sum();
        let terms: f64 = self.terms.iter().map(term).sum();
        (ranges + terms).min(1.0)
    }

    /// Whether the filter accepts the digest: the reference the device paths are tested against.
    pub fn accepts(&self, digest: &Words) -> bool {
        match &self.score {
            None => self.accepts_unscored(digest),
            Some(score) => (!self.is_parted() || self.accepts_unscored(digest)) && score.accepts(digest),
        }
    }

    /// Whether there are ranges or terms.
    pub fn is_parted(&self) -> bool {
        !self.top.is_empty() || !self.terms.is_empty()
    }

    /// Whether a range or a term does, whatever the score.
    pub fn accepts_unscored(&self, digest: &Words) -> bool {
        let head = digest[0];
        let after = self.top.partition_point(|i| i.first <= head);
        (after > 0 && head <= self.top[after - 1].last) || self.terms.iter().any(|t| t.accepts(digest))
    }
}
