//! Texts in base58: what a text begins with is ranges of digests, and everything else is decided on the text.
//!
//! A text is a number with a checksum at its end, so no character but the first ones says anything about the digest
//! alone. Knows sets of characters and the ranges of the encoding; a character's index is its value.

use warpsmith_chain::Base58;

use crate::interval::{Interval, merge};
use crate::length::{Length, Set};

/// Prefixes looked at one by one for the odds of a pattern with choices; beyond, characters count as equally likely.
const MOST_PREFIXES: usize = 1 << 12;

/// Characters.
const COUNT: usize = 58;

/// Positions at which some characters are much more likely than others: the version decides the first, and the numbers
/// end within the range of the second.
const UNEVEN: usize = 2;

/// The lengths of texts, and for each which characters the first positions hold and how likely.
pub(crate) fn lengths(code: &Base58, any: Set) -> Vec<Length> {
    let values = || (0..COUNT as u8).map(|value| vec![value]);
    let of_two =
        || (0..COUNT as u8).flat_map(|first| (0..COUNT as u8).map(move |second| vec![first, second]));
    let starts: [Vec<Vec<u8>>; UNEVEN] = [values().collect(), of_two().collect()];
    let lengths = code.lengths().into_iter().map(|(length, share)| {
        let mut chances = vec![vec![0.0; COUNT]; UNEVEN];
        (length, Length { share, allowed: vec![any; length], chances: std::mem::take(&mut chances) })
    });
    let mut lengths: Vec<(usize, Length)> = lengths.collect();
    for (position, prefixes) in starts.iter().enumerate() {
        for prefix in prefixes {
            for range in code.ranges(prefix) {
                let of_length = lengths.iter_mut().find(|(length, _)| *length == range.length);
                let (_, texts) = of_length.expect("a range has a length that texts have");
                texts.chances[position][usize::from(prefix[position])] += range.share() / texts.share;
            }
        }
    }
    let mut lengths: Vec<Length> = lengths.into_iter().map(|(_, texts)| texts).collect();
    for texts in &mut lengths {
        for (allowed, chances) in texts.allowed.iter_mut().zip(&texts.chances) {
            *allowed =
                (0..COUNT).filter(|&value| chances[value] > 0.0).fold(0, |set, value| set | 1 << value);
        }
    }
    lengths
}

/// The ranges of top bits of the digests whose texts begin so. What the checksum decides is inside.
pub(crate) fn ranges(code: &Base58, prefix: &[u8]) -> impl Iterator<Item = Interval> + use<> {
    code.ranges(prefix).into_iter().map(|range| {
        let [first, last] = range.top();
        Interval { first, last }
    })
}

/// Every way to begin with a character of each set that some text has.
struct Beginnings {
    prefixes: Vec<Vec<u8>>,
    /// How many positions they speak for: the last are let go while there would be too many.
    seen: usize,
}

/// At most `limit` beginnings, which is at least 1. None at all when no text begins so; then `seen` is the number of
/// positions up to and including the first that is never so.
fn beginnings(code: &Base58, sets: &[Set], limit: usize) -> Beginnings {
    let mut all = Beginnings { prefixes: vec![Vec::new()], seen: 0 };
    for set in sets {
        let mut longer = Vec::new();
        for prefix in &all.prefixes {
            for value in (0..COUNT as u8).filter(|value| set >> value & 1 == 1) {
                let mut next = prefix.clone();
                next.push(value);
                if code.is_possible(&next) {
                    longer.push(next);
                }
            }
            if longer.len() > limit {
                return all;
            }
        }
        all = Beginnings { prefixes: longer, seen: all.seen + 1 };
        if all.prefixes.is_empty() {
            return all;
        }
    }
    all
}

/// The sets without those at the end that say nothing.
fn significant(sets: &[Set]) -> &[Set] {
    let any = u64::MAX >> (64 - COUNT);
    &sets[..sets.iter().rposition(|&set| set & any != any).map_or(0, |last| last + 1)]
}

/// The share of keys whose texts begin with a character of each set; when there are none, the first position that rules
/// them out. Exact unless there are very many ways to begin.
pub(crate) fn share(code: &Base58, sets: &[Set]) -> Result<f64, usize> {
    let sets = significant(sets);
    let Beginnings { prefixes, seen } = beginnings(code, sets, MOST_PREFIXES);
    if prefixes.is_empty() {
        return Err(seen - 1);
    }
    let exact: f64 = prefixes.iter().map(|prefix| code.share(prefix)).sum();
    Ok(exact * sets[seen..].iter().map(|&set| even(set)).product::<f64>())
}

/// The chance of a set where all characters are equally likely: beyond the first few, and at the end.
pub(crate) fn even(set: Set) -> f64 {
    f64::from(set.count_ones()) / COUNT as f64
}

/// The characters that can follow the first ways to begin with these sets.
pub(crate) fn following(code: &Base58, sets: &[Set]) -> Set {
    let Beginnings { prefixes, seen } = beginnings(code, sets, MOST_PREFIXES);
    if seen < sets.len() {
        return u64::MAX >> (64 - COUNT);
    }
    let can_follow =
        |value: &u8| prefixes.iter().any(|prefix| !code.ranges(&[prefix, &[*value][..]].concat()).is_empty());
    (0..COUNT as u8).filter(can_follow).fold(0, |set, value| set | 1 << value)
}

/// The ranges of top bits of all digests whose texts begin with a character of each set, from at most `limit` ways to
/// begin; `None` when that is everything.
pub(crate) fn intervals(code: &Base58, sets: &[Set], limit: usize) -> Option<Vec<Interval>> {
    let Beginnings { prefixes, .. } = beginnings(code, significant(sets), limit);
    let intervals = merge(prefixes.iter().flat_map(|prefix| ranges(code, prefix)).collect());
    (intervals != [Interval { first: 0, last: u64::MAX }]).then_some(intervals)
}
