//! The field on the processor by itself: timed in long chains, whose ends are recomputed.

use std::thread;
use std::time::{Duration, Instant};

use warpsmith_curve::Fe;
use warpsmith_curve::field::chains::{self, Op};
use warpsmith_simd::Simd;

use crate::worker::Fault;
use crate::worker::measure::FieldRate;

/// Repetitions of a chain on the processor before it looks at the clock; an inversion takes as long as some hundred products.
fn times(op: Op) -> u32 {
    if op == Op::Invert { 1 << 8 } else { 1 << 15 }
}

/// Chains of a thread that are recomputed one step at a time.
const RECOMPUTED: usize = 4;

/// Times `op` on the processor, on each of so many threads.
pub(super) fn bench(simd: Simd, threads: usize, op: Op, time: Duration) -> Result<FieldRate, Fault> {
    let count = chains::elements(simd);
    let (by, times) = (Fe::BETA, times(op));
    let starts: Vec<Fe> = (2..).take(count).map(|i| Fe::from_u64(i).mul(Fe::BETA).add(Fe::ONE)).collect();
    let started = Instant::now();
    let one = || {
        let (mut ends, mut rounds) = (starts.clone(), 0u64);
        while rounds == 0 || started.elapsed() < time {
            ends.copy_from_slice(&starts);
            chains::run(simd, op, &mut ends, by, times);
            rounds += 1;
        }
        (rounds, started.elapsed().as_secs_f64(), ends)
    };
    let done: Vec<(u64, f64, Vec<Fe>)> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(one)).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let mut verified = 0;
    for (_, _, ends) in &done {
        // A product is known from a power, all of them; squarings are repeated.
        let recomputed = if op == Op::Mul { count } else { RECOMPUTED.min(count) };
        for (start, end) in starts.iter().zip(ends).take(recomputed) {
            let expected = match op {
                Op::Mul => start.mul(power(by, times.into())),
                Op::Square => (0..times).fold(*start, |x, _| x.mul(x)),
                Op::Invert => (0..times).fold(*start, |x, _| by.mul(inverse_by_power(x)).square()),
            };
            if expected.to_words() != end.to_words() {
                return Err(format!("a chain of {times} times {op:?} ends wrongly"));
            }
            verified += 1;
        }
    }
    let each = (count as u64 * u64::from(times)) as f64;
    let rate = done.iter().map(|(rounds, seconds, _)| *rounds as f64 * each / seconds).sum();
    let seconds = done.iter().map(|(_, seconds, _)| *seconds).fold(0.0, f64::max);
    Ok(FieldRate { rate, verified, seconds })
}

/// x^(p - 2), which shares no code with the inversion that is timed.
fn inverse_by_power(x: Fe) -> Fe {
    // p - 2 = 2^256 - 2^32 - 979, most significant word first.
    let exponent = [u64::MAX, u64::MAX, u64::MAX, 0xffff_fffe_ffff_fc2d];
    exponent.iter().fold(Fe::ONE, |high, word| {
        (0..64).rev().fold(high, |r, bit| {
            let r = r.mul(r);
            if word >> bit & 1 == 1 { r.mul(x) } else { r }
        })
    })
}

/// base^exponent.
pub(crate) fn power(base: Fe, exponent: u64) -> Fe {
    (0..64).rev().fold(Fe::ONE, |x, bit| {
        let x = x.mul(x);
        if exponent >> bit & 1 == 1 { x.mul(base) } else { x }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_the_inverse() {
        for x in [Fe::ONE, Fe::BETA, Fe::from_u64(2), Fe::ONE.negate()] {
            assert_eq!(inverse_by_power(x).mul(x).to_words(), Fe::ONE.to_words());
            assert_eq!(inverse_by_power(x).to_words(), x.invert().to_words());
        }
    }

    #[test]
    fn powers_are_repeated_products() {
        let base = Fe::BETA.add(Fe::ONE);
        let mut expected = Fe::ONE;
        for exponent in 0..70 {
            assert_eq!(power(base, exponent).to_words(), expected.to_words());
            expected = expected.mul(base);
        }
    }
}
