//! A score, what it is looked for among, and how likely each value is there.

use super::chances::{ANY, Allowed, chances, tails};
use super::{Score, feature::DIGITS};
use crate::filter::{Filter, ScoreFilter, Term};
use crate::interval::Interval;
use crate::set::Patterns;

/// What a search for the best goes by: a score, and the patterns that addresses have to match, if any.
pub struct Ranking {
    score: Score,
    among: Option<Patterns>,
    /// Of each score, the chance that an address which matches has that or more.
    tails: Vec<f64>,
}

/// Parts of a filter for each of which chances are counted; with more, what patterns fix is left out of account.
const MOST_COUNTED: usize = 16;

impl Ranking {
    /// All addresses are ranked.
    pub fn new(score: impl Into<Score>) -> Ranking {
        let score = score.into();
        let tails = tails(chances(score.parts(), &ANY, score.max()));
        Ranking { score, among: None, tails }
    }

    /// Those that match one of the patterns are.
    pub fn among(score: impl Into<Score>, patterns: Patterns) -> Ranking {
        let score = score.into();
        let given = given(&patterns.filter(0.0));
        let all: f64 = given.iter().map(|(share, _)| share).sum();
        let mut sum = vec![0.0; score.max() as usize + 1];
        for (share, allowed) in &given {
            let part = chances(score.parts(), allowed, score.max());
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += share / all * part);
        }
        Ranking { tails: tails(sum), score, among: Some(patterns) }
    }

    /// What is counted.
    pub fn score(&self) -> &Score {
        &self.score
    }

    /// What addresses have to match.
    pub fn patterns(&self) -> Option<&Patterns> {
        self.among.as_ref()
    }

    /// The chance that a random address matches and scores at least this. Where patterns are many or no matter of single digits, their odds
    /// and those of the score count as independent.
    pub fn odds(&self, at_least: u32) -> f64 {
        let matches = self.among.as_ref().map_or(1.0, Patterns::odds);
        matches * self.tails.get(at_least as usize).copied().unwrap_or(0.0)
    }

    /// The highest score that an address may have that matches.
    pub fn max(&self) -> u32 {
        self.tails.iter().rposition(|chance| *chance > 0.0).unwrap_or(0) as u32
    }

    /// What finds scores of at least this: each of them, or one that is better than all before it.
    pub fn filter(&self, max_false: f64, at_least: u32, each: bool) -> Filter {
        let among = self.among.as_ref().map_or_else(Filter::default, |patterns| patterns.filter(max_false));
        Filter { score: Some(ScoreFilter { score: self.score.clone(), at_least, each }), ..among }
    }
}

/// What a filter fixes, as digits that each place may have, with the share of addresses that each of these has; all digits everywhere
/// where that is not to be told.
fn given(filter: &Filter) -> Vec<(f64, Allowed)> {
    let anything = || vec![(1.0, ANY)];
    if filter.top.len() + filter.terms.len() > MOST_COUNTED {
        return anything();
    }
    let ranges = filter.top.iter().map(|range| of_bits([!width(range), 0, 0], [range.first, 0, 0]));
    // Neighbours are one range, which may be as wide as some digits that are open and yet not begin where those do.
    let is_plain = |range: &Interval| {
        width(range).wrapping_add(1) & width(range) == 0 && range.first & width(range) == 0
    };
    let terms = filter
        .terms
        .iter()
        .map(|Term { mask, value, .. }| of_bits([mask[0], mask[1], mask[2]], [value[0], value[1], value[2]]));
    match filter.top.iter().all(is_plain) {
        true if !filter.top.is_empty() || !filter.terms.is_empty() => ranges.chain(terms).collect(),
        _ => anything(),
    }
}

fn width(range: &Interval) -> u64 {
    range.last - range.first
}

/// The digits that have these bits.
fn of_bits(mask: [u64; 3], value: [u64; 3]) -> (f64, Allowed) {
    let mut allowed = ANY;
    let mut share = 1.0;
    for (place, allowed) in allowed.iter_mut().enumerate().take(DIGITS as usize) {
        let shift = 60 - 4 * (place % 16);
        let [mask, value] = [mask[place / 16], value[place / 16]].map(|word| (word >> shift & 15) as u16);
        *allowed = (0..16).filter(|digit| digit & mask == value).fold(0, |set, digit| set | 1 << digit);
        share *= f64::from(allowed.count_ones()) / 16.0;
    }
    (share, allowed)
}
