//! Filters: what a device can test. Plain data over digest bits, without any knowledge of text, chains or
//! devices.
//!
//! The contract of every filter: it may accept a digest no pattern matches, it never rejects one that some
//! pattern matches. The host decides each accepted digest again on its text.

use crate::interval::{Interval, Words};
use crate::score::Score;

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

/// A disjunction over everything the job's patterns imply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Ranges of the top 64 bits: sorted, disjoint, not adjacent.
    pub top: Vec<Interval>,
    /// Conditions that ranges of the top bits cannot express sharply enough.
    pub terms: Vec<Term>,
    /// A score to be reached, where ranges of the top bits cannot express that.
    pub score: Option<ScoreFilter>,
}

/// A digest passes when its score is at least this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreFilter {
    /// What is scored.
    pub score: Score,
    /// The least score that passes.
    pub at_least: u32,
}

impl ScoreFilter {
    /// Whether the digest reaches the score.
    pub fn accepts(&self, digest: &Words) -> bool {
        self.score.of_words(digest) >= self.at_least
    }
}

impl Filter {
    /// A score as it is. A run of digits could be tested as a range ([`Filter::of_score`]), but a search for the best raises
    /// its demand as it goes and keeps the best of each batch only, so devices are told the score itself.
    pub fn scored(score: Score, at_least: u32) -> Filter {
        Filter { score: Some(ScoreFilter { score, at_least }), ..Filter::default() }
    }

    /// What a device may test in place of a score: a run of digits as a range. Exact, but for runs longer than the top 64 bits, whose rest is left open.
    pub fn of_score(score: Score, at_least: u32) -> Filter {
        if at_least > score.max() {
            return Filter::default();
        }
        let run = |digit: u8, bits: u32| {
            let rest = u64::MAX.checked_shr(bits).unwrap_or(0);
            let first = (0x1111_1111_1111_1111 * u64::from(digit)) & !rest;
            Filter { top: vec![Interval { first, last: first | rest }], ..Filter::default() }
        };
        match score {
            Score::LeadingZeros => run(0, 8 * at_least),
            Score::Leading(digit) => run(digit, 4 * at_least),
            Score::Zeros => Filter::scored(score, at_least),
        }
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

    /// Whether any part of the filter accepts the digest: the reference the device paths are tested against.
    pub fn accepts(&self, digest: &Words) -> bool {
        self.accepts_unscored(digest) || self.score.is_some_and(|s| s.accepts(digest))
    }

    /// Whether a range or a term does, whatever the score.
    pub fn accepts_unscored(&self, digest: &Words) -> bool {
        let head = digest[0];
        let after = self.top.partition_point(|i| i.first <= head);
        (after > 0 && head <= self.top[after - 1].last) || self.terms.iter().any(|t| t.accepts(digest))
    }
}
