//! The field of a card by itself: checked against the processor's, then timed in long chains.

use std::time::Duration;

use warpsmith_curve::Fe;
use warpsmith_curve::field::chains::Op;
use warpsmith_device::{Arg, Buffer, Kernel, Queue, Vendor};
use warpsmith_kernel::{Spec, join_field};

use super::{Gpu, as_bytes, build_source, limbs};
use crate::cpu::field::power;
use crate::worker::Fault;
use crate::worker::measure::FieldRate;

/// How long a launch should take, and the most repetitions of one: the processor recomputes some of its lanes.
const LAUNCH_MS: f32 = 50.0;
const MOST: u32 = 1 << 17;
const MOST_INVERSIONS: u32 = 1 << 10;

/// Lanes recomputed after the last launch.
const RECOMPUTED: u32 = 32;

/// Numbers of `field_check` and `field_bench` for an operation.
fn number(op: Op) -> u32 {
    match op {
        Op::Mul => 0,
        Op::Square => 1,
        Op::Invert => 4,
    }
}

/// The entry point that times it.
fn entry(op: Op) -> &'static str {
    if op == Op::Invert { "field_invert" } else { "field_bench" }
}

struct Setup {
    queue: Box<dyn Queue>,
    kernel: Kernel,
    block: u32,
    lanes: u32,
}

/// The element whose limbs these are; all 256 bits may be set.
fn element(words: &[u8]) -> Fe {
    let mut bytes: [u8; 32] = words.try_into().expect("eight words");
    bytes.reverse();
    Fe::from_be_bytes(&bytes)
}

/// Bytes of elements as they come, least significant limb first and not reduced.
fn raw(values: &[[u8; 32]]) -> Vec<u8> {
    values.iter().flat_map(|bytes| bytes.iter().rev().copied()).collect()
}

/// Times `op` on a card for about so long.
pub(super) fn bench(gpu: &Gpu, op: Op, time: Duration) -> Result<FieldRate, Fault> {
    let info = gpu.device.info();
    let searching = gpu.shape.spec;
    let spec = if info.is_gpu {
        let ptx = info.vendor == Vendor::Nvidia;
        Spec { ptx, inline: searching.inline, count_carries: searching.count_carries, ..Spec::field() }
    } else {
        Spec { ptx: false, block: searching.block, blocks: 1, inline: searching.inline, ..Spec::default() }
    };
    let mut queue = gpu.device.queue().map_err(fault)?;
    let source = join_field(&spec);
    let (program, kernel) = build_source(queue.as_mut(), info, &spec, &source, entry(op)).map_err(fault)?;
    let check = queue.kernel(program, "field_check").map_err(fault)?;
    let blocks = info.units.max(1) * queue.occupancy(kernel, spec.block).unwrap_or(spec.blocks).max(1);
    let mut bench = Setup { queue, kernel, block: spec.block, lanes: blocks * spec.block };
    let checked = bench.check(check, op)?;
    let rate = bench.time(op, time)?;
    Ok(FieldRate { verified: rate.verified + checked, ..rate })
}

fn fault(error: warpsmith_device::Error) -> Fault {
    error.to_string()
}

/// Pairs of 256-bit numbers, most significant byte first: every pair of edge values, and so many without pattern.
fn samples(random: usize) -> Vec<([u8; 32], [u8; 32])> {
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

impl Setup {
    /// Compares single operations on edge and random values; returns how many.
    fn check(&mut self, kernel: Kernel, op: Op) -> Result<u64, Fault> {
        let pairs = samples(4096);
        let (a, b): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let bytes = 32 * pairs.len() as u64;
        let mut buffers = Vec::new();
        for data in [raw(&a), raw(&b), vec![0; bytes as usize]] {
            let buffer = self.queue.alloc(bytes).map_err(fault)?;
            self.queue.write(buffer, 0, &data).map_err(fault)?;
            buffers.push(buffer);
        }
        let count = pairs.len() as u32;
        let mut args: Vec<Arg> = buffers.iter().map(|b| Arg::Buffer(*b)).collect();
        args.extend([Arg::U32(number(op)), Arg::U32(count)]);
        self.queue.launch(kernel, count.div_ceil(self.block), self.block, &args).map_err(fault)?;
        let mut out = vec![0; bytes as usize];
        self.queue.read(buffers[2], 0, &mut out).map_err(fault)?;
        for buffer in buffers {
            self.queue.free(buffer).map_err(fault)?;
        }
        for ((a, b), out) in pairs.iter().zip(out.chunks_exact(32)) {
            let (a, b) = (Fe::from_be_bytes(a), Fe::from_be_bytes(b));
            let expected = match op {
                Op::Mul => a.mul(b),
                Op::Square => a.square(),
                Op::Invert => a.invert(),
            };
            if element(out).to_words() != expected.to_words() {
                return Err(format!("it computes {op:?} of {a:?} and {b:?} wrongly"));
            }
        }
        Ok(pairs.len() as u64)
    }

    /// Runs launches until the time is over; the chains of the last one are recomputed in part.
    fn time(&mut self, op: Op, time: Duration) -> Result<FieldRate, Fault> {
        // Neither is near the end of its lowest limb, to which the lane's number is added.
        let (x, y) = (Fe::BETA, Fe::BETA.mul(Fe::BETA));
        let data = self.queue.alloc(64 + 32 * u64::from(self.lanes)).map_err(fault)?;
        let start: Vec<u32> = limbs(x).into_iter().chain(limbs(y)).collect();
        self.queue.write(data, 0, &as_bytes(&start)).map_err(fault)?;
        // Until a launch is long enough. What was timed so far does not count.
        let (mut times, most) = if op == Op::Invert { (2, MOST_INVERSIONS) } else { (16, MOST) };
        loop {
            let ms = self.launch(data, op, times)?;
            let wanted = times as f32 * LAUNCH_MS / ms.max(0.01);
            if wanted <= times as f32 * 1.5 || times >= most {
                break;
            }
            // The kernel takes two at a time.
            times = (wanted as u32).min(times * 8).min(most) / 2 * 2;
        }
        let (mut ms, mut launches) = (0.0, 0u64);
        while launches == 0 || ms < time.as_secs_f64() * 1e3 {
            ms += f64::from(self.launch(data, op, times)?);
            launches += 1;
        }
        let mut out = vec![0; 32 * self.lanes as usize];
        self.queue.read(data, 64, &mut out).map_err(fault)?;
        self.queue.free(data).map_err(fault)?;
        let done = launches as f64 * f64::from(self.lanes) * f64::from(times);
        let verified = self.recompute(op, (x, y), times, &out)?;
        Ok(FieldRate { rate: done / (ms / 1e3), verified, seconds: ms / 1e3 })
    }

    /// One launch, and the device's time for it.
    fn launch(&mut self, data: Buffer, op: Op, times: u32) -> Result<f32, Fault> {
        let before = self.queue.mark().map_err(fault)?;
        let mut args = vec![Arg::Buffer(data), Arg::U32(number(op)), Arg::U32(times)];
        if op == Op::Invert {
            args.remove(1);
        }
        self.queue.launch(self.kernel, self.lanes / self.block, self.block, &args).map_err(fault)?;
        let after = self.queue.mark().map_err(fault)?;
        self.queue.milliseconds(before, after).map_err(fault)
    }

    /// Recomputes the chains of lanes from the first to the last.
    fn recompute(&self, op: Op, (x, y): (Fe, Fe), times: u32, out: &[u8]) -> Result<u64, Fault> {
        let count = RECOMPUTED.min(self.lanes);
        for i in 0..count {
            let lane = u64::from(i) * u64::from(self.lanes - 1) / u64::from(count.max(2) - 1);
            let (x, y) = (x.add(Fe::from_u64(lane)), y.add(Fe::from_u64(lane)));
            let expected = match op {
                Op::Mul => x.mul(power(y, times.into())),
                Op::Square => (0..times).fold(x, |x, _| x.square()),
                Op::Invert => (0..times).fold(x, |x, _| y.mul(x.invert()).square()),
            };
            let at = 32 * lane as usize;
            if element(&out[at..at + 32]).to_words() != expected.to_words() {
                return Err(format!("its chain {lane} of {times} times {op:?} ends wrongly"));
            }
        }
        Ok(count.into())
    }
}
