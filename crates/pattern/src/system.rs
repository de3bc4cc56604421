//! Linear equations over GF(2) in the 256 digest bits, by Gaussian elimination.
//!
//! Knows bits only. A fixed text symbol is five equations; whether they can all hold, how likely that is
//! (one half per independent equation) and what a device must test all come from here.

use warpsmith_chain::BitSum;

use crate::filter::{Parity, Term};
use crate::interval::Words;

/// The equations contradict each other: no digest satisfies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// Independent equations, each with its own leading bit that leads no other.
#[derive(Clone, Default)]
pub(crate) struct System {
    rows: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    mask: Words,
    odd: bool,
    /// The first set bit of `mask`.
    pivot: usize,
}

impl System {
    /// More parities than these cost a device more than they spare the host: they already pass only one digest in
    /// 2^24 of those the masks pass.
    const MOST_PARITIES: usize = 24;

    /// Adds the equation `bit == value`.
    pub fn require(&mut self, bit: &BitSum, value: bool) -> Result<(), Contradiction> {
        let mut mask = bit.mask;
        let mut odd = bit.constant != value;
        while let Some(pivot) = first_bit(&mask) {
            let Some(row) = self.rows.iter().find(|row| row.pivot == pivot) else {
                self.rows.push(Row { mask, odd, pivot });
                return Ok(());
            };
            add(&mut mask, &row.mask);
            odd ^= row.odd;
        }
        if odd { Err(Contradiction) } else { Ok(()) }
    }

    /// How many independent equations there are: a random digest satisfies all with probability 2^-rank.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// The share of digests that satisfy the equations.
    pub fn share(&self) -> f64 {
        (-(self.rank() as f64)).exp2()
    }

    /// The equations as a device tests them. Accepts every solution; where there are very many parities, the last
    /// are left out.
    pub fn term(mut self) -> Term {
        self.rows.sort_by_key(|row| row.pivot);
        // From the last row up, clear each pivot in the rows before. Then every bit whose value the equations
        // determine is a row of its own: such a unit vector is in the row space, and in reduced form a vector is
        // the sum of the rows whose pivots it contains.
        for low in (0..self.rows.len()).rev() {
            let Row { mask, odd, pivot } = self.rows[low];
            for row in &mut self.rows[..low] {
                if row.mask[pivot / 64] >> (63 - pivot % 64) & 1 == 1 {
                    add(&mut row.mask, &mask);
                    row.odd ^= odd;
                }
            }
        }
        let mut term = Term { mask: [0; 4], value: [0; 4], parities: Vec::new() };
        for row in self.rows {
            if row.mask.iter().map(|word| word.count_ones()).sum::<u32>() == 1 {
                add(&mut term.mask, &row.mask);
                if row.odd {
                    add(&mut term.value, &row.mask);
                }
            } else if term.parities.len() < Self::MOST_PARITIES {
                term.parities.push(Parity { mask: row.mask, odd: row.odd });
            }
        }
        term
    }
}

/// The first set bit, counted from the most significant of word 0.
fn first_bit(mask: &Words) -> Option<usize> {
    let word = mask.iter().position(|&word| word != 0)?;
    Some(word * 64 + mask[word].leading_zeros() as usize)
}

fn add(to: &mut Words, from: &Words) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn affine(low: u64) -> BitSum {
        BitSum { mask: [0, 0, 0, low], constant: false }
    }

    #[test]
    fn determined_bits_move_from_parities_to_the_mask() {
        let mut system = System::default();
        assert_eq!(system.require(&affine(0b11), true), Ok(()));
        assert_eq!(system.require(&affine(0b10), true), Ok(()));
        assert_eq!(system.require(&affine(0b01), false), Ok(()));
        assert_eq!(system.rank(), 2);
        assert_eq!(system.require(&affine(0b01), true), Err(Contradiction));
        let term = system.term();
        assert_eq!((term.mask, term.value), ([0, 0, 0, 0b11], [0, 0, 0, 0b10]));
        assert!(term.parities.is_empty());
    }

    #[test]
    fn a_constant_function_is_free_or_impossible() {
        let constant = BitSum { mask: [0; 4], constant: true };
        let mut system = System::default();
        assert_eq!(system.require(&constant, true), Ok(()));
        assert_eq!(system.rank(), 0);
        assert_eq!(system.require(&constant, false), Err(Contradiction));
    }

    proptest! {
        /// Over ten bits all digests can be tried.
        #[test]
        fn rank_and_term_agree_with_counting(equations in proptest::collection::vec((0u64..1024, any::<bool>()), 0..8)) {
            let mut system = System::default();
            let possible = equations.iter().all(|&(mask, odd)| system.require(&affine(mask), odd).is_ok());
            let holds = |digest: u64| equations.iter().all(|&(mask, odd)| ((digest & mask).count_ones() % 2 == 1) == odd);
            let solutions: Vec<u64> = (0..1024).filter(|&digest| holds(digest)).collect();
            prop_assert_eq!(possible, !solutions.is_empty());
            if possible {
                prop_assert_eq!(solutions.len(), 1024 >> system.rank());
                let term = system.term();
                let accepted: Vec<u64> = (0..1024).filter(|&digest| term.accepts(&[0, 0, 0, digest])).collect();
                prop_assert_eq!(accepted, solutions);
            }
        }
    }
}
