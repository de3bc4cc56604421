//! The point walk on a GPU: for targets that hash the whole point, and for filters that need all of x.
//!
//! One program walks and writes down the points of a step, another makes digests of them and tests these; taproot has one for
//! both. The device knows digests exactly, so a record is a hit, but for what it leaves open: signs where it hashes the parity
//! of y, and digests it could not form.

use std::ops::Range;

use warpsmith_chain::Form;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Scalar};
use warpsmith_device::{Api, Arg, Buffer, Kernel, Queue};
use warpsmith_kernel::points::{self, Digest as Made};
use warpsmith_kernel::{Program, Spec, abi, taproot};
use warpsmith_pattern::Filter;

use super::flight::MOST_STEPS;
use super::lanes::Lanes;
use super::shapes::Kind;
use super::walker::{Quest, Walker};
use super::{Gpu, LaunchShape, Outcome, build, place_table, point_table, timing, tweaks, upload};
use crate::forms;
use crate::prefilter::{bar, digest_test, digest_words, first_bar};
use crate::worker::measure::{Part, Profile};
use crate::worker::{Fault, Hit, Search, Spot};

/// A search for digests of points.
pub(super) type PointsWorker<'a> = Walker<'a, Points<'a>>;

/// What such a search has on the device.
pub(super) struct Points<'a> {
    gpu: &'a Gpu,
    spec: Spec,
    form: Form,
    made: Made,
    programs: Programs,
    table: Option<Buffer>,
    scratch: Buffer,
    filter_words: Buffer,
    filter: Filter,
    /// The score to beat, or to reach where each is told.
    beat: u32,
    /// Whether only the walk is launched, to be timed.
    walks_only: bool,
}

/// What is launched.
#[derive(Clone, Copy)]
enum Programs {
    /// A walk that hashes by itself, with the table of the tweak and room for sums.
    Whole { kernel: Kernel, tweaks: Buffer, sums: Buffer },
    /// A walk, what it writes down, and a test of that with the parameters of the digest.
    Parted { walk: Kernel, points: Buffer, test: Kernel, params: Buffer },
}

/// Blocks a multiprocessor should hold of the program that tests. H200: hashes of compressed keys at 4, 6, 8 and 10 blocks of 128
/// lanes (72, 71, 63 and 48 registers) take 101.6, 100.4, 109.3 and 105.3 ps, of uncompressed ones at 6 and 8 192.9 and 179.4, Keccak
/// at 6 and 8 (80 and 64 registers) 255.7 and 264.0. NVIDIA's OpenCL compiler has compressed keys at 7.2 G/s with 6 and 8.5 with 8.
fn test_blocks(api: Api, digest: Made) -> u32 {
    match digest {
        Made::Account | Made::Contract => 6,
        Made::Hash160 | Made::ScriptHash160 if api == Api::Cuda => 6,
        _ => 8,
    }
}

/// How many threads share the points of a lane, so that the last blocks of a step end together.
pub(super) const PARTS: u32 = 32;

/// What the device makes of a point.
fn made(gpu: &Gpu, form: Form) -> Made {
    forms::searched(form, tweaks::bits(gpu.device.info()))
}

/// What such a search runs, and on how many lanes: the program that tests, where there are two.
pub(super) fn shape(gpu: &Gpu, form: Form, filter: &Filter) -> LaunchShape {
    let digest = made(gpu, form);
    let program = Program::Points { digest, filter: digest_test(filter) };
    if let Made::Taproot { .. } = digest {
        return gpu.digest_shape(Kind::Walk(digest), program);
    }
    let (LaunchShape { spec, lanes }, info) = (walk_shape(gpu, digest), gpu.device.info());
    let room = (info.memory / 4).min(info.largest_buffer) / (points_of(spec.group) * digest.written_bytes());
    let lanes = room.min(u64::from(lanes)) as u32 / spec.block * spec.block;
    let blocks = gpu.blocks(Kind::Test(digest), test_blocks(info.api, digest));
    LaunchShape { spec: Spec { program, blocks, ..spec }, lanes: lanes.max(spec.block) }
}

/// The shape of the walk, were there room for what all its lanes write down.
fn walk_shape(gpu: &Gpu, digest: Made) -> LaunchShape {
    gpu.shape.with_blocks(gpu.blocks(Kind::Walk(digest), gpu.shape.spec.blocks))
}

/// What is tuned of such a search.
pub(super) fn kinds(gpu: &Gpu, form: Form) -> Vec<Kind> {
    match made(gpu, form) {
        digest @ Made::Taproot { .. } => vec![Kind::Walk(digest)],
        digest => vec![Kind::Walk(digest), Kind::Test(digest)],
    }
}

/// Points of a lane in a step.
fn points_of(group: u32) -> u64 {
    2 * u64::from(group) + 1
}

/// A worker for this search, which is for keys.
pub(super) fn worker<'a>(gpu: &'a Gpu, search: &Search<'_>) -> Outcome<PointsWorker<'a>> {
    let info = gpu.device.info();
    let form = search.recipe.form().expect("a walk is for keys");
    let (made, shape) = (made(gpu, form), shape(gpu, form, search.filter));
    let LaunchShape { spec, lanes } = shape;
    let mut queue = gpu.device.queue()?;
    let step = group::multiply(Scalar::from_u64(points_of(spec.group)), Some(Affine::G))
        .expect("a small multiple of G is not infinity");
    let table = point_table(step, gpu.entries());
    let (program, test) = build(queue.as_mut(), info, &spec, spec.program.entry())?;
    let (programs, table) = if let Made::Taproot { bits } = made {
        let tweaks = tweaks::table(queue.as_mut(), program, spec.block, bits)?;
        let sums = queue.alloc(4 * taproot::sums_words(lanes) as u64)?;
        let table = place_table(queue.as_mut(), info, program, &spec, &table)?;
        (Programs::Whole { kernel: test, tweaks, sums }, table)
    } else {
        let spec = Spec { program: Program::PointsWalk { digest: made }, ..walk_shape(gpu, made).spec };
        let (program, walk) = build(queue.as_mut(), info, &spec, spec.program.entry())?;
        let table = place_table(queue.as_mut(), info, program, &spec, &table)?;
        let points = queue.alloc(u64::from(lanes) * points_of(spec.group) * made.written_bytes())?;
        // Other digests ignore these words.
        let nonce = if let Form::Contract { nonce } = form { nonce } else { 0 };
        let params = upload(queue.as_mut(), &points::create_words(nonce))?;
        (Programs::Parted { walk, points, test, params }, table)
    };
    let points = Points {
        gpu,
        spec,
        form,
        made,
        programs,
        table,
        scratch: queue.alloc(4 * points::scratch_words(spec.group, lanes) as u64)?,
        filter_words: upload(queue.as_mut(), &digest_words(search.filter, made.words()))?,
        filter: search.filter.clone(),
        beat: first_bar(search.filter),
        walks_only: false,
    };
    Walker::new(gpu, shape, queue, MOST_STEPS, points)
}

/// What such a search takes of a card, and what its parts cost.
pub(super) fn profile(gpu: &Gpu, search: &Search<'_>) -> Result<Profile, Fault> {
    let mut worker = worker(gpu, search).map_err(|e| e.to_string())?;
    let (whole, launch_ms) = worker.timed()?;
    let (block, parted) = (worker.shape.spec.block, worker.quest.programs);
    let (kernel, parts) = match parted {
        Programs::Whole { kernel, .. } => (kernel, vec![Part { name: "walk and hash", picoseconds: whole }]),
        Programs::Parted { test, .. } => {
            worker.quest.walks_only = true;
            let (walk, _) = worker.timed()?;
            let hash = Part { name: "hash", picoseconds: whole - walk };
            (test, vec![Part { name: "walk", picoseconds: walk }, hash])
        }
    };
    let profile = timing::taken(gpu, worker.queue.as_mut(), kernel, block);
    Ok(Profile { launch_ms, parts, ..profile })
}

impl Points<'_> {
    /// Walks one lane, whose centre this is, by one step on the processor, point by point with complete additions.
    fn walk_step(&mut self, centre: Point, lane: u32, step: u64, hits: &mut Vec<Hit>) {
        for index in 0..=self.spec.group {
            let entry = index.checked_sub(1).map(|i| self.gpu.entries()[i as usize]);
            for minus in [false, true].into_iter().take(if index == 0 { 1 } else { 2 }) {
                let entry = if minus { entry.map(Affine::negate) } else { entry };
                // Infinity is no key.
                let Some(point) = group::add(centre, entry) else { continue };
                for negate in [false, true].into_iter().take((self.made.keys() / 3) as usize) {
                    for image in 0..3 {
                        let key = if negate { point.negate() } else { point }.endomorphism(image);
                        let digest = forms::reference(self.form, key);
                        let words = digest.words();
                        let scored = self.filter.score.as_ref();
                        let score = scored.map(|wanted| wanted.score.of_words(&words));
                        let least = self.beat + u32::from(!scored.is_some_and(|wanted| wanted.each));
                        let fits = !self.filter.is_parted() || self.filter.accepts_unscored(&words);
                        let wanted =
                            score.map_or_else(|| self.filter.accepts(&words), |s| fits && s >= least);
                        if wanted {
                            let place = Place { lane, step, index, minus, orbit: 0, image, negate };
                            let score = score.unwrap_or(0);
                            if scored.is_some_and(|wanted| !wanted.each) {
                                self.beat = self.beat.max(score);
                            }
                            hits.push(Hit { spot: Spot::Key(place), digest: Some(digest), score });
                        }
                    }
                }
            }
        }
    }
}

impl Quest for Points<'_> {
    fn relatives(&self) -> (u8, bool) {
        (1, self.made.keys() == 6)
    }

    fn keys(&self) -> u64 {
        points::keys_per_step(self.made, self.spec.group)
    }

    fn beat(&self) -> u32 {
        self.beat
    }

    fn raise_to(&mut self, beat: u32) {
        self.beat = self.beat.max(beat);
    }

    fn raise(&mut self, at_least: u32) {
        let each = self.filter.score.as_ref().is_some_and(|wanted| wanted.each);
        self.raise_to(bar(each, at_least));
    }

    fn launch(
        &self,
        queue: &mut dyn Queue,
        centres: Buffer,
        lanes: u32,
        hits: Buffer,
        steps: u32,
    ) -> Outcome<()> {
        let (block, blocks) = (self.spec.block, lanes / self.spec.block);
        let mut walking = vec![Arg::Buffer(centres), Arg::Buffer(self.scratch)];
        walking.extend(self.table.map(Arg::Buffer));
        let filter = Arg::Buffer(self.filter_words);
        match self.programs {
            Programs::Whole { kernel, tweaks, sums } => {
                let rest = [tweaks, sums, hits].map(Arg::Buffer);
                let args = [&walking[..], &[filter], &rest, &[Arg::U32(lanes), Arg::U32(steps)]].concat();
                queue.launch(kernel, blocks, block, &args)
            }
            Programs::Parted { walk, points, test, params } => {
                let [points, params, hits] = [points, params, hits].map(Arg::Buffer);
                for step in 0..steps {
                    let rest = [hits, Arg::U32(lanes), Arg::U32(step)];
                    queue.launch(walk, blocks, block, &[&walking[..], &[points], &rest].concat())?;
                    if self.walks_only {
                        continue;
                    }
                    let args = [&[points, filter, params][..], &rest, &[Arg::U32(PARTS)]].concat();
                    queue.launch(test, blocks * PARTS, block, &args)?;
                }
                Ok(())
            }
        }
    }

    /// What the device leaves to the host, which knows the keys: which of them has the parity of y it speaks of, and
    /// whether one is wanted whose digest it could not form. Where patterns are searched for, the host also has the digest made,
    /// by which it is told whether the text matches.
    fn judge(&mut self, lanes: &Lanes<'_>, told: &[(Place, abi::Hit)], hits: &mut Vec<Hit>) {
        let (parities, scored) = (self.made.tells_parity(), self.filter.score.is_some());
        let places: Vec<Place> = told.iter().map(|(place, _)| Place { orbit: 0, ..*place }).collect();
        // What has to match is told by the digest.
        let matched = !scored || self.filter.is_parted();
        let asks = parities || matched || told.iter().any(|(_, hit)| hit.open);
        let keys = if asks { lanes.keys_at(&places) } else { vec![None; places.len()] };
        for ((mut place, (_, hit)), key) in places.into_iter().zip(told).zip(keys) {
            let mut digest = None;
            // Infinity is no key, and the device reports none.
            if let Some(key) = key {
                place.negate ^= parities && key.y.is_odd();
                let made = forms::reference(self.form, if place.negate { key.negate() } else { key });
                if hit.open && !self.filter.accepts(&made.words()) {
                    continue;
                }
                digest = matched.then_some(made);
            }
            hits.push(Hit { spot: Spot::Key(place), digest, score: if scored { hit.top } else { 0 } });
        }
    }

    fn walk_lane(&mut self, lanes: &Lanes<'_>, lane: u32, steps: Range<u64>, hits: &mut Vec<Hit>) {
        for step in steps {
            self.walk_step(lanes.centre(lane, step), lane, step, hits);
        }
    }
}

#[cfg(test)]
mod tests;
