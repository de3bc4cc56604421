//! Chains of multiplications, to time the field by itself: a few side by side, as a walk keeps them under way.

use warpsmith_simd::Simd;

use super::Fe;
use super::dispatch::{self, Job, Registers};
use super::lanes;
use super::leading::Leading;

/// What a chain repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// x = x * y.
    Mul,
    /// x = x^2.
    Square,
    /// x = (y / x)^2: an inversion, and a product and a squaring so that it does not come back to where it was.
    Invert,
}

/// Registers' worth of elements under way at once.
const WIDTH: usize = 4;

/// How many elements [`run`] takes.
pub fn elements(simd: Simd) -> usize {
    WIDTH * dispatch::lane_count(simd)
}

/// Takes each element x to `x * by^times`, to `x^(2^times)`, or to `(by / x)^2` so many times. No element may be zero for the last.
///
/// # Panics
///
/// When this machine lacks the instruction set, or when there are not [`elements`] of them.
pub fn run(simd: Simd, op: Op, x: &mut [Fe], by: Fe, times: u32) {
    assert_eq!(x.len(), elements(simd));
    dispatch::run(Registers::of(simd), Chains { op, x, by, times });
}

struct Chains<'a> {
    op: Op,
    x: &'a mut [Fe],
    by: Fe,
    times: u32,
}

impl Job for Chains<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Leading>(self) {
        let Chains { op, x, by, times } = self;
        // SAFETY: the caller checked the instruction set, and this becomes part of its code.
        unsafe {
            let by = L::splat(&L::constant(by));
            let mut chains = [by; WIDTH];
            for (i, &value) in x.iter().enumerate() {
                chains[i / L::N] = chains[i / L::N].with_lane(i % L::N, value);
            }
            for _ in 0..times {
                for chain in &mut chains {
                    *chain = match op {
                        Op::Mul => chain.mul(by),
                        Op::Square => chain.square(),
                        Op::Invert => lanes::invert(*chain, &mut 0).mul(by).square(),
                    };
                }
            }
            for (i, value) in x.iter_mut().enumerate() {
                *value = chains[i / L::N].lane(i % L::N);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_end_where_single_steps_lead() {
        for simd in Simd::available(&crate::SETS) {
            let by = Fe::BETA.add(Fe::ONE);
            let both = [(Op::Mul, 0), (Op::Mul, 1), (Op::Mul, 77), (Op::Square, 1), (Op::Square, 77)];
            for (op, times) in both.into_iter().chain([(Op::Invert, 1), (Op::Invert, 2), (Op::Invert, 77)]) {
                // Zero among them, but where it has no inverse.
                let less = if op == Op::Invert { Fe::BETA } else { Fe::ONE };
                let starts: Vec<Fe> = (0..elements(simd) as u64).map(|i| Fe::from_u64(i).sub(less)).collect();
                let mut ends = starts.clone();
                run(simd, op, &mut ends, by, times);
                for (start, end) in starts.iter().zip(ends) {
                    let step = |x: Fe, _| match op {
                        Op::Mul => x.mul(by),
                        Op::Square => x.square(),
                        Op::Invert => by.mul(x.invert()).square(),
                    };
                    assert_eq!(
                        end.to_words(),
                        (0..times).fold(*start, step).to_words(),
                        "{simd} {op:?} {times}"
                    );
                }
            }
        }
    }
}
