//! How likely each score is among random addresses, or among those whose digits are partly given.
//!
//! An address is read digit by digit by one small automaton for each part of a score, all of them together, so that parts which depend
//! on each other (zero bytes, and zeros at the start) are counted as they are. Two features are no matter of a walk from left to right
//! or have too many states for company: mirrored digits and the longest run count by themselves, and in a sum they are taken as
//! independent of the rest.

use std::collections::BTreeMap;

use super::feature::{DIGITS, Feature};
use super::{MOST_PARTS, Part};

/// The digits that each place may have, a bit each.
pub(crate) type Allowed = [u16; DIGITS as usize];

/// Every digit everywhere.
pub(crate) const ANY: Allowed = [u16::MAX; DIGITS as usize];

/// What an automaton remembers.
type State = u16;

/// The chance of each score from 0 to `max`, of an address with these digits.
pub(crate) fn chances(parts: &[Part], allowed: &Allowed, max: u32) -> Vec<f64> {
    let is_alone = |part: &&Part| matches!(part.feature, Feature::Run | Feature::Mirrored);
    let together: Vec<Part> = parts.iter().filter(|part| !is_alone(part)).copied().collect();
    let alone = parts.iter().filter(is_alone).map(|part| match part.feature {
        Feature::Mirrored => spread(&mirrored(allowed), part.weight),
        _ => walked(&[*part], allowed),
    });
    let mut all = alone.fold(walked(&together, allowed), |all, part| convolved(&all, &part));
    all.resize(max as usize + 1, 0.0);
    all
}

/// The chance that a score is reached or exceeded, of each from 0 on: sums from the small end on.
pub(crate) fn tails(mut chances: Vec<f64>) -> Vec<f64> {
    for i in (1..chances.len()).rev() {
        chances[i - 1] += chances[i];
    }
    chances
}

/// The scores of parts that are walked together.
fn walked(parts: &[Part], allowed: &Allowed) -> Vec<f64> {
    let mut standing: BTreeMap<[State; MOST_PARTS], Vec<f64>> =
        BTreeMap::from([([0; MOST_PARTS], vec![1.0])]);
    for (place, allowed) in allowed.iter().enumerate() {
        let mut after: BTreeMap<[State; MOST_PARTS], Vec<f64>> = BTreeMap::new();
        let each = 1.0 / f64::from(allowed.count_ones());
        for (states, scores) in &standing {
            // Digits that do the same are taken together: there are few kinds.
            let mut moves: BTreeMap<([State; MOST_PARTS], u32), f64> = BTreeMap::new();
            for digit in (0..16).filter(|digit| allowed >> digit & 1 == 1) {
                let (mut next, mut points) = ([0; MOST_PARTS], 0);
                for (i, part) in parts.iter().enumerate() {
                    let (state, more) = step(part.feature, states[i], place as u32, digit);
                    (next[i], points) = (state, points + part.weight * more);
                }
                *moves.entry((next, points)).or_default() += each;
            }
            for ((next, points), share) in moves {
                let into = after.entry(next).or_default();
                let points = points as usize;
                if into.len() < scores.len() + points {
                    into.resize(scores.len() + points, 0.0);
                }
                for (into, score) in into[points..].iter_mut().zip(scores) {
                    *into += share * score;
                }
            }
        }
        standing = after;
    }
    let mut all = Vec::new();
    for scores in standing.into_values() {
        all.resize(all.len().max(scores.len()), 0.0);
        all.iter_mut().zip(scores).for_each(|(all, score)| *all += score);
    }
    all
}

/// What an automaton makes of the next digit: its next state, and what that adds.
fn step(feature: Feature, state: State, place: u32, digit: u8) -> (State, u32) {
    const OVER: State = State::MAX;
    let is_second = place % 2 == 1;
    match feature {
        Feature::Leading(wanted) if state == 0 && digit == wanted => (0, 1),
        Feature::LeadingZeros if state == 0 && digit == 0 => (0, u32::from(is_second)),
        Feature::Leading(_) | Feature::LeadingZeros => (OVER, 0),
        Feature::Zeros if is_second => (0, u32::from(state == 1 && digit == 0)),
        Feature::Zeros => (State::from(digit == 0), 0),
        Feature::Count(wanted) => (0, u32::from(digit == wanted)),
        Feature::Letters => (0, u32::from(digit > 9)),
        Feature::Digits => (0, u32::from(digit <= 9)),
        Feature::Like(like) => {
            let (word, shift) = (place as usize / 16, 60 - 4 * (place % 16));
            let is_compared = like.mask[word] >> shift & 1 == 1;
            (0, u32::from(is_compared && like.value[word] >> shift & 15 == u64::from(digit)))
        }
        Feature::Pairs if state == OVER => (OVER, 0),
        Feature::Pairs if !is_second => (State::from(digit), 0),
        Feature::Pairs if state == State::from(digit) => (0, 1),
        Feature::Pairs => (OVER, 0),
        Feature::Run => {
            // The digit before, the run that it ends, the longest so far.
            let (before, run, longest) = (state >> 12, state >> 6 & 63, state & 63);
            let run = if run > 0 && before == State::from(digit) { run + 1 } else { 1 };
            (State::from(digit) << 12 | run << 6 | longest.max(run), u32::from(run > longest))
        }
        Feature::Uniswap => uniswap(state, place, digit),
        Feature::Mirrored => unreachable!("it is no matter of a walk from left to right"),
    }
}

/// The state: zeros so far, or 63 and the fours after them up to five, or 128 once those are over, or 255 where it is worth nothing;
/// above that how many fours stand last, up to four.
fn uniswap(state: State, place: u32, digit: u8) -> (State, u32) {
    const FOUR: State = 67;
    const AFTER: State = 128;
    const NOTHING: State = 255;
    let (phase, last) = (state & 255, state >> 8);
    let is_four = digit == 4;
    let (next, mut points) = match phase {
        NOTHING => return (NOTHING, 0),
        0..=63 if digit == 0 => (phase + 1, 0),
        0..=63 if is_four => (64, 10 * u32::from(phase)),
        0..=63 => return (NOTHING, 0),
        64..=66 if is_four => (phase + 1, 0),
        // Four are worth sixty, more of them forty.
        FOUR if is_four => (FOUR + 1, 40),
        FOUR => (AFTER, 60),
        68 if is_four => (68, 0),
        _ => (AFTER, 0),
    };
    points += u32::from(is_four);
    let last = if is_four { (last + 1).min(4) } else { 0 };
    if place + 1 == DIGITS {
        points += if next == FOUR { 60 } else { 0 } + if last == 4 { 20 } else { 0 };
    }
    (last << 8 | next, points)
}

/// Mirrored digits, pair by pair from the middle.
fn mirrored(allowed: &Allowed) -> Vec<f64> {
    let half = allowed.len() / 2;
    let mut reached = 1.0;
    let mut all = Vec::with_capacity(half + 1);
    for out in 0..half {
        let (left, right) = (allowed[half - 1 - out], allowed[half + out]);
        let [both, of_left, of_right] = [left & right, left, right].map(|set| f64::from(set.count_ones()));
        let equal = both / (of_left * of_right);
        all.push(reached * (1.0 - equal));
        reached *= equal;
    }
    all.push(reached);
    all
}

/// Chances of a number as those of so many times the number.
fn spread(chances: &[f64], weight: u32) -> Vec<f64> {
    let mut all = vec![0.0; (chances.len() - 1) * weight as usize + 1];
    chances.iter().enumerate().for_each(|(i, chance)| all[i * weight as usize] = *chance);
    all
}

/// Chances of a sum of two independent numbers.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; a.len() + b.len() - 1];
    for (i, b) in b.iter().enumerate().filter(|(_, b)| **b > 0.0) {
        all[i..].iter_mut().zip(a).for_each(|(all, a)| *all += a * b);
    }
    all
}
