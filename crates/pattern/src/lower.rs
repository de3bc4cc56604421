//! From placements to a filter: what a text must hold at each position becomes ranges of the digest's top bits, or
//! conditions on single bits and parities.
//!
//! This is the one place where symbols become digest bits. It may lose sharpness, never a match.

use std::collections::HashSet;

use warpsmith_chain::Base58;

use crate::base58;
use crate::filter::{Filter, Term};
use crate::interval::{Interval, merge};
use crate::shape::{Placement, Shape};
use crate::system::{Contradiction, System};
use crate::text::{Code, Text};

/// Terms one pattern may become.
pub(crate) const MOST_TERMS: usize = 4096;

/// Intervals one pattern may become, and those of a whole set.
const MOST_INTERVALS: usize = 4096;
const MOST_INTERVALS_IN_ALL: usize = 1 << 21;

/// Bits an interval looks at.
const TOP: usize = 64;

/// The equations a placement implies: for each position the bits on which all its symbols agree.
pub(crate) fn system(placement: &Placement, text: &Text) -> Result<System, Contradiction> {
    let mut system = System::default();
    for (position, set) in placement.iter().enumerate() {
        let common = text.common_bits(set & text.allowed[position]);
        let Some((all, any)) = common else { return Err(Contradiction) };
        for (i, bit) in text.bits(position).iter().rev().enumerate() {
            if (all ^ any) >> i & 1 == 0 {
                system.require(bit, all >> i & 1 == 1)?;
            }
        }
    }
    Ok(system)
}

/// The chance that a random digest's text fits the placement; `None` when none does. Exact where each position is
/// one symbol or free; else the positions count as independent, which is exact for data symbols.
pub(crate) fn odds(placement: &Placement, text: &Text) -> Option<f64> {
    let system = system(placement, text).ok()?;
    let constrained =
        || placement.iter().enumerate().filter(|(position, set)| text.constrains(*position, **set));
    if constrained().all(|(_, set)| set.count_ones() == 1) {
        let case: f64 = constrained().map(|(_, set)| text.case_share(set.trailing_zeros() as u8)).product();
        return Some(system.share() * case);
    }
    Some(text.shares(placement))
}

/// The chance that at least one of several independent things happens. Stays exact where all are tiny.
pub(crate) fn union(chances: impl IntoIterator<Item = f64>) -> f64 {
    let (none, most) = chances.into_iter().fold((0.0, 0.0), |(none, most): (f64, f64), chance| {
        (none + (-chance.min(1.0)).ln_1p(), most.max(chance))
    });
    // Rounding must not take away from a chance that stands alone.
    most.max(-none.exp_m1()).min(1.0)
}

/// A filter under construction.
pub(crate) struct Lowering<'t> {
    text: &'t Text,
    /// Intervals a pattern may become.
    intervals_each: usize,
    /// False accepts a key a pattern may cause where it can choose.
    false_each: f64,
    top: Vec<Interval>,
    terms: Vec<Term>,
    /// The sum of the shares of digests the terms pass.
    terms_share: f64,
}

impl<'t> Lowering<'t> {
    /// A filter for the patterns with these exact `prefixes` and `others` patterns more, which may together falsely
    /// accept `max_false` of all keys.
    pub fn new(text: &'t Text, prefixes: Vec<Interval>, others: usize, max_false: f64) -> Self {
        let others = others.max(1);
        let room = MOST_INTERVALS_IN_ALL.saturating_sub(prefixes.len()) / others;
        Self {
            text,
            intervals_each: room.clamp(1, MOST_INTERVALS),
            false_each: max_false / others as f64,
            top: prefixes,
            terms: Vec::new(),
            terms_share: 0.0,
        }
    }

    /// Adds one pattern.
    pub fn add(&mut self, shapes: Vec<Shape>) {
        let count = shapes.len().max(1);
        if let Code::Base58(code) = self.text.code {
            return shapes.iter().for_each(|shape| self.add_number(code, shape, count));
        }
        for shape in shapes {
            // The case of letters is not in the digest's bits.
            let shape = shape.map(|set| self.text.widen(set));
            let is_anchored = shape.is_anchored();
            let limit = (MOST_TERMS / count).max(1);
            let (_, placements) = shape.sharpest(self.text, limit, self.false_each / count as f64);
            let parts = (count * placements.len().max(1)) as f64;
            for placement in placements {
                let Ok(system) = system(&placement, self.text) else { continue };
                // A floating run in the top bits would be very many intervals beside the terms it needs anyway.
                let top = is_anchored.then(|| self.intervals(&placement, parts, system.share())).flatten();
                match top {
                    Some(top) => self.top.extend(top),
                    None => {
                        self.terms_share += system.share();
                        self.terms.push(system.term());
                    }
                }
            }
        }
    }

    /// Adds one of `count` shapes of a text that is a number: what it fixes at the start, as ranges. The rest is not in
    /// the top bits, and the end is a checksum.
    fn add_number(&mut self, code: &Base58, shape: &Shape, count: usize) {
        let limit = (self.intervals_each / count).max(1);
        match base58::intervals(code, &shape.leading(), limit) {
            Some(top) => self.top.extend(top),
            None => self.terms.push(Term::ALL),
        }
    }

    /// The placement as intervals, if they say enough. `parts` share what a pattern may cost; a term would pass
    /// `term_share` of all digests.
    fn intervals(&self, placement: &Placement, parts: f64, term_share: f64) -> Option<Vec<Interval>> {
        let text = self.text;
        let limit = ((self.intervals_each as f64 / parts) as usize).max(1);
        let (intervals, seen) = top_intervals(placement, text, limit);
        let passed: f64 =
            intervals.iter().map(|i| (i.last - i.first) as f64 + 1.0).sum::<f64>() / (TOP as f64).exp2();
        if passed >= 1.0 {
            return None;
        }
        let constrained = |position: &usize| text.constrains(*position, placement[*position]);
        let matched: f64 = (0..text.len())
            .filter(constrained)
            .map(|position| text.share(position, placement[position]))
            .product();
        // A prefix is left to the top bits even where it is longer: devices test those fastest.
        let start = text.start.len();
        let fixed = start + (start..text.len()).take_while(constrained).count();
        let is_prefix = (fixed..text.len()).all(|position| !constrained(&position));
        let is_cut = fixed > seen && ((seen - start) * text.width).saturating_sub(text.shift) < TOP;
        let is_enough = passed - matched <= self.false_each / parts || passed <= term_share;
        ((is_prefix && !is_cut) || is_enough).then_some(intervals)
    }

    /// The filter.
    pub fn finish(mut self) -> Filter {
        // Terms that together pass nearly everything cost a device more than they spare: independent ones with this
        // sum pass 98 of 100 digests.
        const USELESS: f64 = 4.0;
        if self.terms_share >= USELESS || self.terms.contains(&Term::ALL) {
            return Filter { terms: vec![Term::ALL], ..Filter::default() };
        }
        // Alternatives that were weakened may have become the same.
        let mut seen = HashSet::with_capacity(self.terms.len());
        self.terms.retain(|term| seen.insert(term.clone()));
        Filter { top: merge(self.top), terms: self.terms, score: None }
    }
}

/// The ranges of top bits that the leading positions allow, at most `limit`, and how many positions they speak for:
/// the last are let go while there would be too many ranges.
fn top_intervals(placement: &Placement, text: &Text, limit: usize) -> (Vec<Interval>, usize) {
    let start = text.start.len();
    let most = (text.leading - start).min((TOP + text.shift).div_ceil(text.width));
    let allowed = placement.iter().zip(&text.allowed).map(|(set, allowed)| set & allowed);
    let sets: Vec<u64> = allowed.skip(start).take(most).collect();
    for seen in (0..=most).rev() {
        if let Some(intervals) = ranges(&sets[..seen], text, limit) {
            return (intervals, start + seen);
        }
    }
    unreachable!("no position at all is one range, and the limit is at least one")
}

/// The ranges for exactly these positions after the start; `None` when there are more than `limit`.
fn ranges(sets: &[u64], text: &Text, limit: usize) -> Option<Vec<Interval>> {
    // From the last position to the first, ranges of the bits from there on.
    let end_of = |positions: usize| (positions * text.width).saturating_sub(text.shift);
    let mut low_bits = TOP.saturating_sub(end_of(sets.len()));
    let mut ranges: Vec<(u64, u64)> = vec![(0, u64::MAX.checked_shr((TOP - low_bits) as u32).unwrap_or(0))];
    for (position, set) in sets.iter().enumerate().rev() {
        // The last symbol may reach beyond the top bits; then only its own top bits count. Those of the first symbol that
        // come before the digest are zero.
        let (from, end) = (end_of(position), end_of(position + 1));
        let bits = end.min(TOP) - from;
        let mut values = text.symbols_of(*set);
        values.iter_mut().for_each(|value| *value >>= end - from - bits);
        values.dedup();
        let mut wider: Vec<(u64, u64)> = Vec::new();
        for value in values {
            for &(first, last) in &ranges {
                let (first, last) = (value << low_bits | first, value << low_bits | last);
                match wider.last_mut() {
                    Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
                    _ => wider.push((first, last)),
                }
                if wider.len() > limit {
                    return None;
                }
            }
        }
        ranges = wider;
        low_bits += bits;
    }
    Some(ranges.into_iter().map(|(first, last)| Interval { first, last }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(first: u64, last: u64) -> Interval {
        Interval { first, last }
    }

    #[test]
    fn union_of_tiny_chances_is_their_sum() {
        assert!((union([1e-30, 2e-30]) / 3e-30 - 1.0).abs() < 1e-12);
        assert_eq!(union([1.0, 0.5]), 1.0);
        assert!((union([0.5, 0.5]) - 0.75).abs() < 1e-15);
        assert_eq!(union([]), 0.0);
    }

    #[test]
    fn a_wildcard_before_fixed_symbols_expands_and_cuts_at_the_limit() {
        let text = Text::new(warpsmith_chain::find("npub").unwrap(), &crate::Options::default());
        let mut placement = vec![text.any; 58];
        placement[1] = 1 << 3;
        let (intervals, seen) = top_intervals(&placement, &text, 32);
        assert_eq!((intervals.len(), seen), (32, 13));
        assert_eq!(intervals[1], interval(1 << 59 | 3 << 54, 1 << 59 | 3 << 54 | 0x3f_ffff_ffff_ffff));
        let (intervals, seen) = top_intervals(&placement, &text, 31);
        assert_eq!((intervals.len(), seen), (1, 1));
    }
}
