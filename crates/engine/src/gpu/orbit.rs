//! The orbit walk on a GPU: for targets whose digest is the x coordinate, tested by its top bits.
//!
//! Records are of keys whose top word may be in a range; the host, which knows every place, computes x and sorts out what is
//! not. `profile` measures what its parts cost.

mod profile;

use std::ops::Range;

use warpsmith_chain::Digest;
use warpsmith_curve::group;
use warpsmith_curve::walk::{self, Place, Sieve, Walk};
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_device::{Api, Arg, Buffer, Kernel, Queue, Vendor};
use warpsmith_kernel::{Spec, Stage, XTest, abi};
use warpsmith_pattern::Filter;

pub(super) use profile::profile;

use super::flight::MOST_STEPS;
use super::lanes::Lanes;
use super::settle::Settle;
use super::shapes::Kind;
use super::walker::{Quest, Walker};
use super::{Gpu, LaunchShape, Outcome, build, limbs, place_table, upload};
use crate::cpu::orbit::hit as from_walk;
use crate::prefilter::{XWords, sieve, x_test, x_tests};
use crate::worker::batch_add::multiples;
use crate::worker::{Hit, Spot};

/// Blocks a multiprocessor should hold of a search for a set through NVIDIA's OpenCL, whose compiler wants 200 registers for it
/// and spills what it does not get. H200, a million prefixes: 57.5, 81.5, 94.2 and 89.4 G keys/s with 5, 4, 3 and 2 blocks.
const OPENCL_SET_BLOCKS: u32 = 3;

/// A search for x.
pub(super) type OrbitWorker<'a> = Walker<'a, Orbit<'a>>;

/// What such a search has on the device.
pub(super) struct Orbit<'a> {
    gpu: &'a Gpu,
    spec: Spec,
    kernel: Kernel,
    table: Option<Buffer>,
    scratch: Buffer,
    filter: Buffer,
    /// For many patterns.
    settle: Option<Settle>,
    sieve: Sieve,
}

/// The device's table of multiples of G.
fn table_words(group: u32) -> Vec<u32> {
    let step = group::multiply(Scalar::from_u64(2 * group as u64 + 1), Some(Affine::G))
        .expect("a small multiple of G is not infinity");
    table_of(step, &multiples(Affine::G, group as usize))
}

/// The device's table: the step point, then the entries.
pub(super) fn table_of(step: Affine, entries: &[Affine]) -> Vec<u32> {
    let mut words = abi::step_entry(&limbs(step.x), &limbs(step.y)).to_vec();
    for point in entries {
        let (t, y) = (point.x, point.y);
        let square = t.square();
        let entry = abi::Entry {
            y: limbs(y),
            t: limbs(t),
            beta_t: limbs(t.mul(Fe::BETA)),
            square: limbs(square),
            beta_square: limbs(square.mul(Fe::BETA)),
            cube: limbs(square.mul(t)),
        };
        words.extend(entry.words());
    }
    words
}

/// The search for a kind of filter in the shape of `spec`.
fn program(spec: &Spec, filter: XTest) -> Spec {
    // A few ranges are decided on one word, which lets some 2^-25 of all keys pass; the host sorts those out
    // (`judge`). A second test on the device costs a card a fifth of its speed by the registers it takes.
    Spec { filter, ..*spec }
}

/// Every program a search in this shape may run.
pub(super) fn programs(spec: &Spec) -> Vec<Spec> {
    x_tests().map(|filter| program(spec, filter)).collect()
}

/// What a search for this filter runs, and on how many lanes.
pub(super) fn shape(gpu: &Gpu, filter: &Filter) -> LaunchShape {
    let (test, info) = (x_test(filter), gpu.device.info());
    let LaunchShape { spec, lanes } = match test {
        XTest::Set { near } => {
            let is_nvidias_opencl = info.api == Api::OpenCl && info.vendor == Vendor::Nvidia;
            let most = if is_nvidias_opencl { OPENCL_SET_BLOCKS } else { u32::MAX };
            let known = gpu.shape.at_most(most).spec.blocks;
            gpu.shape.with_blocks(gpu.blocks(Kind::Set { near }, known))
        }
        XTest::Range { .. } => gpu.shape,
    };
    LaunchShape { spec: program(&spec, test), lanes }
}

/// A worker for this filter.
pub(super) fn worker<'a>(gpu: &'a Gpu, filter: &Filter) -> Outcome<OrbitWorker<'a>> {
    up_to(gpu, filter, Stage::Whole)
}

/// A search that goes so far; only a whole one finds anything.
fn up_to<'a>(gpu: &'a Gpu, filter: &Filter, stage: Stage) -> Outcome<OrbitWorker<'a>> {
    let (words, info) = (XWords::new(filter), gpu.device.info());
    let LaunchShape { spec, lanes } = shape(gpu, filter);
    let shape = LaunchShape { spec: Spec { stage, ..spec }, lanes };
    let spec = shape.spec;
    let mut queue = gpu.device.queue()?;
    let (program, kernel) = build(queue.as_mut(), info, &spec, "search_walk")?;
    let filter_buffer = upload(queue.as_mut(), words.words())?;
    let table = table_words(spec.group);
    let table = place_table(queue.as_mut(), info, program, &spec, &table)?;
    let scratch = queue.alloc(4 * abi::scratch_words(spec.group, lanes) as u64)?;
    let settle = match &words {
        XWords::Ranges(_) => None,
        XWords::Set(set) => Some(Settle::new(queue.as_mut(), program, gpu, shape, set)?),
    };
    let most = settle.as_ref().map_or(MOST_STEPS, Settle::most_steps);
    let sieve = sieve(filter);
    let orbit = Orbit { gpu, spec, kernel, table, scratch, filter: filter_buffer, settle, sieve };
    Walker::new(gpu, shape, queue, most, orbit)
}

impl Quest for Orbit<'_> {
    fn relatives(&self) -> (u8, bool) {
        (3, false)
    }

    fn keys(&self) -> u64 {
        abi::keys_per_step(self.spec.group)
    }

    fn launch(
        &self,
        queue: &mut dyn Queue,
        centres: Buffer,
        lanes: u32,
        hits: Buffer,
        steps: u32,
    ) -> Outcome<()> {
        let block = self.spec.block;
        let mut args = vec![Arg::Buffer(centres), Arg::Buffer(self.scratch)];
        args.extend(self.table.map(Arg::Buffer));
        args.extend([Arg::Buffer(self.filter), Arg::Buffer(hits), Arg::U32(lanes), Arg::U32(steps)]);
        args.extend(self.settle.iter().flat_map(Settle::walk_args));
        queue.launch(self.kernel, lanes / block, block, &args)?;
        let buffers = [self.scratch, self.filter, hits];
        self.settle.map_or(Ok(()), |settle| settle.launch(queue, buffers, (lanes, block), steps))
    }

    fn judge(&mut self, lanes: &Lanes<'_>, told: &[(Place, abi::Hit)], hits: &mut Vec<Hit>) {
        // Of x alone a key and its negative are one.
        let places: Vec<Place> = told.iter().map(|(place, _)| Place { negate: false, ..*place }).collect();
        for (place, key) in places.iter().zip(lanes.keys_at(&places)) {
            let x = key.map(|key| key.x.canonical());
            if x.is_some_and(|x| self.sieve.may_hold(x)) {
                let digest = x.map(|x| Digest::new(&x.to_be_bytes()));
                hits.push(Hit { spot: Spot::Key(*place), digest, score: 0 });
            }
        }
    }

    fn walk_lane(&mut self, lanes: &Lanes<'_>, lane: u32, steps: Range<u64>, hits: &mut Vec<Hit>) {
        let mut walk = Walk::new(self.gpu.table(), &[lanes.centre(lane, steps.start)]);
        let mut found = Vec::new();
        for _ in steps.clone() {
            walk.group(&self.sieve, &mut found);
        }
        hits.extend(found.into_iter().map(|hit: walk::Hit| {
            let place = Place { lane, step: steps.start + hit.place.step, ..hit.place };
            from_walk(walk::Hit { place, ..hit })
        }));
    }
}

#[cfg(test)]
mod tests;
