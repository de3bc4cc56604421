//! The field by itself: multiplications and squarings a second on a device, their results recomputed.

use std::thread;
use std::time::{Duration, Instant};

use warpsmith_curve::Fe;
use warpsmith_curve::field::chains::{self, Op};
use warpsmith_curve::platform::Simd;

use crate::device::Devices;
use crate::error::{Error, Result};
use crate::worker::Fault;

/// How fast a device multiplies in the field of secp256k1.
#[derive(Clone, Debug)]
pub struct FieldBench {
    /// The device.
    pub device: String,
    /// `mul` or `sqr`.
    pub op: &'static str,
    /// Operations a second.
    pub rate: f64,
    /// Results compared with the processor's portable arithmetic.
    pub verified: u64,
    /// How long it took.
    pub seconds: f64,
}

/// The same without its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldRate {
    pub rate: f64,
    pub verified: u64,
    pub seconds: f64,
}

/// Times multiplication and squaring on each device.
pub fn bench_field(devices: &Devices, seconds: f64) -> Result<Vec<FieldBench>> {
    let mut lines = Vec::new();
    for device in &devices.list {
        for (op, name) in [(Op::Mul, "mul"), (Op::Square, "sqr")] {
            let FieldRate { rate, verified, seconds } = device
                .field(op, Duration::from_secs_f64(seconds))
                .map_err(|what| Error::SelfTest { device: device.id(), what })?;
            lines.push(FieldBench { device: device.id(), op: name, rate, verified, seconds });
        }
    }
    Ok(lines)
}

/// Repetitions of a chain on the processor before it looks at the clock.
const TIMES: u32 = 1 << 15;

/// Chains of a thread that are recomputed one step at a time.
const RECOMPUTED: usize = 4;

/// Times `op` on the processor, on each of so many threads.
pub(crate) fn bench_cpu(
    simd: Simd,
    threads: usize,
    op: Op,
    time: Duration,
) -> std::result::Result<FieldRate, Fault> {
    let count = chains::elements(simd);
    let by = Fe::BETA;
    let starts: Vec<Fe> = (2..).take(count).map(|i| Fe::from_u64(i).mul(Fe::BETA).add(Fe::ONE)).collect();
    let started = Instant::now();
    let one = || {
        let (mut ends, mut rounds) = (starts.clone(), 0u64);
        while rounds == 0 || started.elapsed() < time {
            ends.copy_from_slice(&starts);
            chains::run(simd, op, &mut ends, by, TIMES);
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
                Op::Mul => start.mul(power(by, TIMES.into())),
                Op::Square => (0..TIMES).fold(*start, |x, _| x.mul(x)),
            };
            if expected.to_words() != end.to_words() {
                return Err(format!("a chain of {TIMES} times {op:?} ends wrongly"));
            }
            verified += 1;
        }
    }
    let each = (count as u64 * u64::from(TIMES)) as f64;
    let rate = done.iter().map(|(rounds, seconds, _)| *rounds as f64 * each / seconds).sum();
    let seconds = done.iter().map(|(_, seconds, _)| *seconds).fold(0.0, f64::max);
    Ok(FieldRate { rate, verified, seconds })
}

/// base^exponent.
pub(crate) fn power(base: Fe, exponent: u64) -> Fe {
    (0..64).rev().fold(Fe::ONE, |x, bit| {
        let x = x.mul(x);
        if exponent >> bit & 1 == 1 { x.mul(base) } else { x }
    })
}

/// Pairs of 256-bit numbers, most significant byte first: every pair of edge values, and so many without pattern.
pub(crate) fn samples(random: usize) -> Vec<([u8; 32], [u8; 32])> {
    let full = [0xff; 32];
    let mut edges = vec![[0; 32], full];
    for limb in 0..8 {
        for (rest, own) in [(0x00, 0xff), (0xff, 0x00)] {
            let mut value = [rest; 32];
            value[4 * limb..4 * limb + 4].fill(own);
            edges.push(value);
        }
        let mut one = [0; 32];
        one[4 * limb + 3] = 1;
        edges.push(one);
    }
    // p - 1, p and p + 1; 2^256 - p.
    for low in [0xffff_fc2e_u32, 0xffff_fc2f, 0xffff_fc30] {
        let mut value = full;
        value[24..28].copy_from_slice(&0xffff_fffe_u32.to_be_bytes());
        value[28..].copy_from_slice(&low.to_be_bytes());
        edges.push(value);
    }
    let mut pairs: Vec<_> = edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).collect();
    // A fresh start each time, by the same generator as everywhere; without it the edges still hold.
    let mut seed = [0; 32];
    if warpsmith_entropy::fill(&mut seed).is_ok() {
        let mut x = Fe::from_be_bytes(&seed).add(Fe::BETA);
        let mut next = || {
            x = x.square().add(Fe::BETA);
            x.to_be_bytes()
        };
        pairs.extend((0..random).map(|_| (next(), next())));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selector;

    #[test]
    fn powers_are_repeated_products() {
        let base = Fe::BETA.add(Fe::ONE);
        let mut expected = Fe::ONE;
        for exponent in 0..70 {
            assert_eq!(power(base, exponent).to_words(), expected.to_words());
            expected = expected.mul(base);
        }
    }

    #[test]
    fn every_instruction_set_multiplies_and_proves_it() {
        for simd in crate::simd::Simd::ALL.into_iter().filter(|simd| simd.is_available()) {
            let devices = Devices::open(&[Selector::Cpu(Some(simd))], Some(1)).expect("available");
            let lines = bench_field(&devices, 0.02).expect("right");
            let ops: Vec<&str> = lines.iter().map(|line| line.op).collect();
            assert_eq!(ops, ["mul", "sqr"]);
            for line in lines {
                assert!(line.rate > 1e6 && line.verified >= 4 && line.seconds >= 0.02, "{line:?}");
            }
        }
    }
}
