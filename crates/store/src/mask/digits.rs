//! Unknown hexadecimal digits: candidates in an order that a walk over points can follow.
//!
//! A digit of which nothing is known is four bits that may be 0 or 1, each adding its weight to the key or not; a digit that
//! may be two values is one such bit, of the weight of their difference. These are a candidate's low bits, the lowest weight
//! first: what adds a subset of weights is, for all of its subsets, a table of points that serves everywhere in the key. Digits
//! with other choices count above these bits.
//!
//! Weights of the bits are superincreasing, each more than all before it together: no two candidates are one key.

use super::MaskError;
use super::symbols::Choices;
use crate::interval::U256;

/// At most 2^this candidates.
const MOST_BITS: u32 = 248;

/// A hexadecimal key with unknown digits.
#[derive(Clone)]
pub struct DigitMask {
    /// The key of candidate 0.
    lowest: U256,
    /// What each bit of a candidate adds, ascending.
    weights: Vec<U256>,
    /// What the other digits add, the lowest digit first.
    others: Vec<Vec<U256>>,
    count: U256,
}

impl DigitMask {
    /// Of 64 digits, the highest first.
    pub(super) fn new(digits: &[Choices]) -> Result<Self, MaskError> {
        let (mut lowest, mut weights, mut others) = (U256::ZERO, Vec::new(), Vec::new());
        for (place, choices) in digits.iter().rev().enumerate() {
            let unit = U256::ONE << (4 * place as u32);
            let value = |choice: u8| unit * U256::from(choice);
            lowest += value(choices[0]);
            match choices.as_slice() {
                [_] => {}
                [low, high] => weights.push(value(high - low)),
                choices if choices.len() == 16 => weights.extend([1, 2, 4, 8].map(value)),
                [low, choices @ ..] => {
                    let more = choices.iter().map(|choice| value(choice - low));
                    others.push(std::iter::once(U256::ZERO).chain(more).collect());
                }
                [] => return Err(MaskError::Empty("a digit has no choice")),
            }
        }
        let too_many = MaskError::Many(MOST_BITS);
        if weights.len() as u32 > MOST_BITS {
            return Err(too_many);
        }
        let one = U256::ONE << weights.len() as u32;
        let count = others
            .iter()
            .try_fold(one, |count, choices: &Vec<U256>| count.checked_mul(U256::from(choices.len() as u64)));
        let count = count.filter(|count| *count <= U256::ONE << MOST_BITS).ok_or(too_many)?;
        let mask = Self { lowest, weights, others, count };
        // Candidates begin at the lowest key there is.
        if mask.lowest >= crate::range::key_order() {
            return Err(MaskError::Empty("all that it can be is beyond the last key"));
        }
        Ok(mask)
    }

    /// How many candidates there are.
    pub fn count(&self) -> U256 {
        self.count
    }

    /// What each of the low bits of a candidate adds to its key, ascending.
    pub fn weights(&self) -> &[U256] {
        &self.weights
    }

    /// The number of a candidate, which is a key unless it is 0 or beyond n - 1. At most 2^256 - 1: digits are digits.
    pub fn number_at(&self, candidate: U256) -> U256 {
        let mut number = self.lowest;
        for (bit, weight) in (0..).zip(&self.weights) {
            if candidate >> bit & U256::ONE == U256::ONE {
                number += *weight;
            }
        }
        let mut above = candidate >> self.weights.len() as u32;
        for choices in &self.others {
            let size = U256::from(choices.len() as u64);
            number += choices[(above % size).as_usize()];
            above /= size;
        }
        number
    }
}
