//! The scan of a range on a GPU: lanes with neighbouring groups, so that a launch covers one stretch of keys.
//!
//! One program walks and writes down the points of a step, others make digests of these and test them, a program for each
//! form or two that share a hash. Lane l of step s has the group of `2 h + 1` keys that begins at
//! `base + (s * lanes + l) * (2 h + 1)`: with any number of steps the keys from `base` on, without a gap. The device knows
//! digests exactly and writes them down, so the host needs no point to look one up. A launch whose records did not fit is
//! done again in smaller pieces; what lies beyond the keys asked for is dropped.
//!
//! The formulas fail where a centre is a multiple `+-i` of G in the table, or the step point `S = lanes * (2 h + 1)` or its
//! opposite. Centres are keys above h, so that leaves S and what lies near n. A walk that would come to S begins one key
//! later, and that one key is the processor's. Within three steps of n a walk is laid back so that its last step ends with n - 1,
//! and what it covers before the keys asked for is dropped. Then every centre is `n - (h + 1) - j * (2 h + 1)` for some j: none is
//! within h of n, and none is `n - S`, since S is a multiple of `2 h + 1` and h + 1 is not.

mod blocks;
mod filter;
mod masked;
mod profile;
mod records;
mod shape;

use std::sync::Arc;

use warpsmith_chain::Form;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_device::{Arg, Buffer, Kernel, Queue};
use warpsmith_kernel::scan::{self as text, RECORD_WORDS};
use warpsmith_kernel::{Program, Spec, abi, points, taproot};
use warpsmith_store::KeyMask;

use blocks::Candidates;
pub(super) use profile::profile;
use records::Sorting;
use shape::together;
pub(super) use shape::{kinds, most_lanes};

use super::ends::Ends;
use super::flight::{Flights, Landed, MOST_STEPS};
use super::points::PARTS;
use super::shapes::Kind;
use super::{Gpu, LaunchShape, Outcome, as_bytes, build, centre_words, place_table, point_table, tweaks};
use crate::cpu::{Cpu, CpuScanner};
use crate::forms;
use crate::prefilter::ScanFilter;
use crate::simd;
use crate::worker::Fault;
use crate::worker::batch_add::{add_all, add_pairs};
use crate::worker::ends::{Row, far_from};
use crate::worker::scanner::{Proof, Scanner, Survivor, small};

/// Launches of a batch: seconds, so that a pause between batches does not count and little is done again after a crash.
const LAUNCHES: u64 = 24;

/// Blocks a multiprocessor should hold of a program that tests: of hashes of Bitcoin, and of Keccak, which takes more
/// registers.
const TEST_BLOCKS: u32 = 8;
const KECCAK_BLOCKS: u32 = 6;

pub(super) struct RangeScanner<'a> {
    gpu: &'a Gpu,
    shape: LaunchShape,
    forms: &'a [Form],
    wanted: &'a ScanFilter,
    /// For what the device cannot do.
    cpu: Cpu,
    queue: Box<dyn Queue>,
    walker: Kernel,
    tests: Vec<Test>,
    table: Option<Buffer>,
    centres: Buffer,
    /// For launches done again.
    spare: Buffer,
    scratch: Buffer,
    /// The points of a step.
    points: Buffer,
    filter: Buffer,
    flights: Flights<RECORD_WORDS>,
    capacity: u32,
    walk: Option<Centres>,
    /// What keys are counted from.
    base: Point,
    /// What is still to be covered.
    first: Scalar,
    left: u64,
    /// What numbers stand for, where they are candidates of a mask.
    candidates: Option<Candidates>,
    /// Whether batches follow each other, so that launches may run ahead into the next.
    ahead: bool,
    ends: Ends,
    /// A bit of a lane's centre to be turned over once there are centres.
    #[cfg(test)]
    flip: Option<(u32, u32)>,
}

/// A program that tests.
#[derive(Clone)]
struct Test {
    kernel: Kernel,
    /// What it tests, for who measures.
    name: &'static str,
    /// Its arguments between filter and hits.
    more: Vec<Arg>,
    /// How many threads share the points of a lane: the last argument, where there is a choice.
    parts: Option<u32>,
}

/// Where the device's centres are.
#[derive(Clone, Copy)]
struct Centres {
    /// The first key of step 0.
    base: Scalar,
    /// Steps that were launched, and those that have landed.
    launched: u64,
    landed: u64,
    /// Steps up to which the lanes were asked for, to be found where they must be.
    asked: u64,
}

impl<'a> RangeScanner<'a> {
    pub fn new(gpu: &'a Gpu, forms: &'a [Form], wanted: &'a ScanFilter) -> Outcome<Self> {
        Self::with_mask(gpu, forms, wanted, None)
    }

    /// For candidates of a mask, or for keys.
    fn with_mask(
        gpu: &'a Gpu,
        forms: &'a [Form],
        wanted: &'a ScanFilter,
        mask: Option<&Arc<KeyMask>>,
    ) -> Outcome<Self> {
        let info = gpu.device.info();
        let mut queue = gpu.device.queue()?;
        let (filter, filter_words, room) = filter::place(queue.as_mut(), info, wanted, forms)?;
        let made = forms::scanned(forms).expect("refused where scanners are asked for");
        let keep_y = text::Forms::of(&made).need_y();
        let mut shape = shape::shape(gpu, keep_y, room);
        let candidates = mask.map(|mask| Candidates::new(mask, &mut shape));
        let LaunchShape { spec, lanes } = shape;
        let (program, walker) = build(queue.as_mut(), info, &spec, spec.program.entry())?;
        let mut tests = Vec::new();
        for forms in together(&made) {
            let forms = text::Forms::of(&forms);
            let program = Program::Scan(text::ScanPart::Test { forms, filter, keep_y });
            let is_account = forms.has(text::Form::Account);
            let blocks = if is_account { KECCAK_BLOCKS } else { TEST_BLOCKS };
            let blocks = gpu.blocks(Kind::ScanTest(forms), blocks);
            let name = if is_account {
                "accounts"
            } else if forms.has(text::Form::Uncompressed) {
                "uncompressed keys"
            } else if forms.has(text::Form::X) {
                "x"
            } else {
                "compressed keys"
            };
            let spec = Spec { program, blocks, ..spec };
            let (_, kernel) = build(queue.as_mut(), info, &spec, program.entry())?;
            tests.push(Test { kernel, name, more: Vec::new(), parts: Some(PARTS) });
        }
        if made.contains(&text::Form::Taproot) {
            let bits = tweaks::bits(info);
            let spec = Spec { program: Program::Scan(text::ScanPart::Taproot { filter, bits }), ..spec };
            let (program, kernel) = build(queue.as_mut(), info, &spec, spec.program.entry())?;
            let table = tweaks::table(queue.as_mut(), program, spec.block, bits)?;
            let sums = queue.alloc(4 * taproot::sums_words(lanes) as u64)?;
            let more = vec![Arg::Buffer(table), Arg::Buffer(sums)];
            tests.push(Test { kernel, name: "taproot", more, parts: None });
        }
        let keys = u64::from(lanes) * (2 * u64::from(spec.group) + 1);
        let table = match candidates.as_ref().and_then(Candidates::table) {
            Some((step, entries)) => point_table(step, &entries),
            None => {
                let step = group::multiply(Scalar::from_u64(keys), Some(Affine::G));
                point_table(step.expect("a small multiple of G"), gpu.entries())
            }
        };
        let table = place_table(queue.as_mut(), info, program, &spec, &table)?;
        let centres_bytes = 4 * abi::centres_words(lanes) as u64;
        let centres = queue.alloc(centres_bytes)?;
        let most = (room.keys() / keys as f64).clamp(1.0, f64::from(MOST_STEPS)) as u32;
        Ok(RangeScanner {
            gpu,
            shape,
            forms,
            wanted,
            cpu: Cpu::new(simd::detect(), 1),
            walker,
            tests,
            table,
            centres,
            spare: queue.alloc(centres_bytes)?,
            scratch: queue.alloc(4 * points::scratch_words(spec.group, lanes) as u64)?,
            points: queue.alloc(u64::from(lanes) * text::points_bytes(spec.group, keep_y))?,
            filter: filter_words,
            flights: Flights::new(queue.as_mut(), most, gpu.launch_ms, room.capacity)?,
            capacity: room.capacity,
            walk: None,
            base: None,
            first: Scalar::ZERO,
            left: 0,
            candidates,
            ahead: false,
            ends: Ends::new(centres, lanes),
            #[cfg(test)]
            flip: None,
            queue,
        })
    }

    fn lanes(&self) -> u32 {
        self.shape.lanes
    }

    /// Keys of a lane in a step.
    fn group(&self) -> u64 {
        2 * u64::from(self.shape.spec.group) + 1
    }

    /// Keys of all lanes in a step: S.
    fn step_keys(&self) -> u64 {
        u64::from(self.lanes()) * self.group()
    }

    /// Asks for the lanes behind all that was launched of a walk.
    fn ask(&mut self, walk: &mut Centres) -> Result<(), Fault> {
        let half = Scalar::from_u64(u64::from(self.shape.spec.group));
        let way = Scalar::from_u64(self.step_keys()).mul(Scalar::from_u64(walk.launched));
        let (first, apart) = (walk.base.add(half).add(way), Scalar::from_u64(self.group()));
        walk.asked = walk.launched;
        self.ends.ask(self.queue.as_mut(), Row { base: self.base, first, apart })
    }

    /// Uploads the centres of so many lanes, the first of which begins at this key.
    fn place(&mut self, to: Buffer, first: Scalar, lanes: u32) -> Result<(), Fault> {
        let centre = first.add(Scalar::from_u64(u64::from(self.shape.spec.group)));
        let start = far_from(self.base, centre).ok_or("a lane began at no key")?;
        let ways = &self.gpu.neighbours()[..lanes as usize - 1];
        let others = add_all(start, ways).or_else(|| {
            // One of them has the x of the first.
            let pairs: Vec<(Point, Point)> = ways.iter().map(|way| (Some(start), Some(*way))).collect();
            add_pairs(&pairs).into_iter().collect()
        });
        let mut points = vec![start];
        points.extend(others.ok_or("a lane began at no key")?);
        let words = centre_words(&points);
        self.queue.write(to, 0, &as_bytes(&words)).map_err(|e| e.to_string())
    }

    /// Enqueues so many steps of so many lanes.
    fn launch(
        &self,
        centres: Buffer,
        lanes: u32,
    ) -> impl FnOnce(&mut dyn Queue, Buffer, u32) -> Outcome<()> + use<> {
        let (walker, block, tests) = (self.walker, self.shape.spec.block, self.tests.clone());
        let mut walk = vec![Arg::Buffer(centres), Arg::Buffer(self.scratch)];
        walk.extend(self.table.map(Arg::Buffer));
        walk.push(Arg::Buffer(self.points));
        let test = [Arg::Buffer(self.points), Arg::Buffer(self.filter)];
        move |queue, hits, steps| {
            for step in 0..steps {
                let rest = [Arg::Buffer(hits), Arg::U32(lanes), Arg::U32(step)];
                queue.launch(walker, lanes / block, block, &[&walk[..], &rest].concat())?;
                for Test { kernel, more, parts, .. } in &tests {
                    let blocks = lanes / block * parts.unwrap_or(1);
                    let parts: Vec<Arg> = parts.map(Arg::U32).into_iter().collect();
                    queue.launch(*kernel, blocks, block, &[&test[..], more, &rest, &parts].concat())?;
                }
            }
            Ok(())
        }
    }

    /// Steps the device can do from this key on: up to n where the last of them ends with n - 1, else so many that all their
    /// centres, and the ones after, stay clear of n. Of keys that are counted from a point nobody knows how far that is, and nobody
    /// meets it.
    fn clear(&self, first: Scalar) -> u64 {
        let (None, Some(room)) = (self.base, small(first.negate())) else { return u64::MAX };
        let steps = room / self.step_keys();
        if room.is_multiple_of(self.step_keys()) { steps } else { steps.saturating_sub(2) }
    }

    /// The first key of a walk that covers the next key: that one, or near n one before it from which whole steps lead to n.
    fn walk_base(&self) -> Scalar {
        match small(self.first.negate()) {
            Some(room) if self.clear(self.first) == 0 => {
                Scalar::from_u64(room.next_multiple_of(self.step_keys())).negate()
            }
            _ => self.first,
        }
    }

    /// The first key of the next step of a walk that has not landed.
    fn landing(&self, walk: &Centres) -> Scalar {
        walk.base.add(Scalar::from_u64(self.step_keys()).mul(Scalar::from_u64(walk.landed)))
    }

    /// How many keys that step has before those asked for: none but in the first step of a walk that was laid back.
    fn before(&self, walk: &Centres) -> u64 {
        small(self.first.sub(self.landing(walk))).expect("a walk does not begin behind the keys asked for")
    }

    /// Begins a walk at the next key, or says how many keys the processor has to do before one can.
    fn set_out(&mut self) -> Result<Option<u64>, Fault> {
        let base = self.walk_base();
        let centre = base.add(Scalar::from_u64(u64::from(self.shape.spec.group)));
        let before_step = small(Scalar::from_u64(self.step_keys()).sub(centre));
        if self.base.is_none() && before_step.is_some_and(|keys| keys.is_multiple_of(self.group())) {
            return Ok(Some(1));
        }
        let (centres, lanes) = (self.centres, self.lanes());
        self.place(centres, base, lanes)?;
        #[cfg(test)]
        if let Some((lane, bit)) = self.flip.take() {
            self.ends.flip(self.queue.as_mut(), lane, bit);
        }
        self.walk = Some(Centres { base, launched: 0, landed: 0, asked: 0 });
        Ok(None)
    }

    /// Sends launches on their way until there are enough, or nothing is left to do.
    fn take_off(&mut self, mut walk: Centres) -> Result<Centres, Fault> {
        let keys = self.step_keys();
        while !self.flights.full() {
            let clear =
                self.clear(walk.base.add(Scalar::from_u64(keys).mul(Scalar::from_u64(walk.launched))));
            // Of this batch; the last step may reach beyond it.
            let steps = (self.before(&walk) + self.left).div_ceil(keys);
            let rest = steps.saturating_sub(walk.launched - walk.landed);
            let wanted = if rest == 0 && self.ahead { u64::MAX } else { rest };
            let paced = self.flights.steps;
            if wanted.min(clear) == 0 {
                break;
            }
            // Launches of one length rather than a short one at the end, by which the next would be paced.
            let even = wanted.div_ceil(wanted.div_ceil(u64::from(paced)));
            let steps = even.min(clear) as u32;
            let launch = self.launch(self.centres, self.lanes());
            self.flights.steps = steps;
            let took_off = self.flights.take_off(self.queue.as_mut(), walk.launched, 0, launch);
            took_off.map_err(|e| e.to_string())?;
            self.flights.steps = paced;
            walk.launched += u64::from(steps);
            if u64::from(steps) == rest {
                // The last of the batch: by where it ends the batch is judged.
                self.ask(&mut walk)?;
            }
        }
        Ok(walk)
    }

    /// Covers the next keys by the walk, once what is under way has been added to; 0 where it cannot go on.
    fn walk_on(&mut self, walk: Centres) -> Result<(u64, Vec<Survivor>), Fault> {
        let walk = self.take_off(walk)?;
        self.land(walk)
    }

    /// Covers the keys of the oldest launch under way; 0 where there is none.
    fn land(&mut self, walk: Centres) -> Result<(u64, Vec<Survivor>), Fault> {
        self.walk = Some(walk);
        let Some(landed) = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? else {
            self.end(walk)?;
            return Ok((0, Vec::new()));
        };
        let (first, before) = (self.landing(&walk), self.before(&walk));
        let all = u64::from(landed.steps) * self.step_keys();
        let reached = all.min(before + self.left);
        let mut survivors = if landed.overflowed() {
            self.again(&landed, first, reached)?
        } else {
            self.sort_out(&landed, self.lanes(), first, reached)?
        };
        if before > 0 {
            // Up to n a walk comes without passing 0, so that distances from its first key are in the order of keys.
            survivors.retain(|survivor| small(survivor.key.sub(first)).is_some_and(|at| at >= before));
        }
        if reached < all {
            // What was launched behind is not asked for.
            self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            self.end(Centres { landed: walk.launched, ..walk })?;
        } else {
            self.walk = Some(Centres { landed: walk.landed + u64::from(landed.steps), ..walk });
        }
        Ok((reached - before, survivors))
    }

    /// Leaves a walk of which all launches have landed: its lanes are asked for, should they not have been.
    fn end(&mut self, mut walk: Centres) -> Result<(), Fault> {
        self.walk = None;
        if walk.asked < walk.landed { self.ask(&mut walk) } else { Ok(()) }
    }

    /// Turns the records of a launch over so many lanes into survivors among the `count` keys from `first` on.
    fn sort_out(
        &self,
        landed: &Landed<RECORD_WORDS>,
        lanes: u32,
        first: Scalar,
        count: u64,
    ) -> Result<Vec<Survivor>, Fault> {
        let (half, group) = (u64::from(self.shape.spec.group), self.group());
        let sorting =
            Sorting { wanted: self.wanted, half, group, steps: landed.steps, lanes, first, count, of: None };
        sorting.sort_out(&landed.records)
    }

    /// Does a launch again whose records did not fit, step by step and over as few lanes as it takes: `count` keys from `start` on.
    fn again(
        &mut self,
        landed: &Landed<RECORD_WORDS>,
        start: Scalar,
        count: u64,
    ) -> Result<Vec<Survivor>, Fault> {
        let (all, block) = (self.lanes(), self.shape.spec.block);
        // Pieces expected to fill half the buffer.
        let share = f64::from(self.capacity) / 2.0 * f64::from(landed.steps) / f64::from(landed.count);
        let mut lanes = ((f64::from(all) * share.min(1.0)) as u32 / block * block).max(block);
        let mut survivors = Vec::new();
        // Lanes of all steps in one row: what follows each other there are keys that do.
        let (mut at, end) = (0, u64::from(all) * u64::from(landed.steps));
        while at < end && at * self.group() < count {
            let piece = u64::from(lanes).min(end - at) as u32;
            let offset = at * self.group();
            let first = start.add(Scalar::from_u64(offset));
            let keys = (u64::from(piece) * self.group()).min(count - offset);
            self.place(self.spare, first, piece)?;
            let launch = self.launch(self.spare, piece);
            let landed = self
                .flights
                .alone(self.queue.as_mut(), 0, 1, 0, |queue, hits| launch(queue, hits, 1))
                .map_err(|e| e.to_string())?;
            if !landed.overflowed() {
                survivors.extend(self.sort_out(&landed, piece, first, keys)?);
            } else if lanes > block {
                lanes = (lanes / 2 / block * block).max(block);
                continue;
            } else {
                // The processor has no such limit.
                let mut scanner = CpuScanner::new(&self.cpu, self.forms, self.wanted).with_base(self.base);
                scanner.begin(first, keys)?;
                survivors.extend(scanner.rest()?);
            }
            at += u64::from(piece);
        }
        Ok(survivors)
    }

    /// So many of the keys asked for are covered.
    fn covered(&mut self, keys: u64) {
        (self.first, self.left) = (self.first.add(Scalar::from_u64(keys)), self.left - keys);
    }

    /// Keys of the next, at most so many, by the processor.
    fn by_processor(&mut self, most: u64) -> Result<(u64, Vec<Survivor>), Fault> {
        let mut scanner = CpuScanner::new(&self.cpu, self.forms, self.wanted).with_base(self.base);
        scanner.begin(self.first, most.min(self.left))?;
        scanner.go_on()
    }
}

impl Scanner for RangeScanner<'_> {
    fn most(&self) -> u64 {
        if let Some(candidates) = &self.candidates {
            return candidates.most();
        }
        LAUNCHES * u64::from(self.flights.steps) * self.step_keys()
    }

    fn seams(&self) -> Vec<u64> {
        if let Some(candidates) = &self.candidates {
            return candidates.seams();
        }
        let block = u64::from(self.shape.spec.block) * self.group();
        vec![self.group(), block, self.step_keys(), 2 * self.step_keys()]
    }

    fn count_from(&mut self, base: Affine) -> Result<(), Fault> {
        if self.base != Some(base) {
            self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            self.ends.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            (self.base, self.walk) = (Some(base), None);
        }
        Ok(())
    }

    fn follow(&mut self, mask: &Arc<KeyMask>) -> Result<(), Fault> {
        if mask.digits().is_none() {
            return Err("texts with a checksum are for processors".to_owned());
        }
        self.follow_mask(mask)
    }

    fn begin(&mut self, first: Scalar, count: u64) -> Result<(), Fault> {
        self.ahead = self.walk.as_ref().is_some_and(|walk| self.landing(walk) == first);
        if !self.ahead {
            self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            self.ends.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            self.walk = None;
        }
        (self.first, self.left) = (first, count);
        Ok(())
    }

    fn go_on(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        let mut done = (0, Vec::new());
        while done.0 == 0 && self.left > 0 {
            done = match self.walk {
                Some(walk) => self.walk_on(walk)?,
                None if self.candidates.is_some() => self.cover_candidates()?,
                None => match self.set_out()? {
                    Some(keys) => self.by_processor(keys)?,
                    None => continue,
                },
            };
        }
        self.covered(done.0);
        Ok(done)
    }

    fn finish(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        let mut done = (0, Vec::new());
        while let (Some(walk), true) = (self.walk, self.left > 0) {
            let (keys, survivors) = self.land(walk)?;
            if keys == 0 {
                break;
            }
            self.covered(keys);
            done.0 += keys;
            done.1.extend(survivors);
        }
        Ok(done)
    }

    fn proof(&mut self) -> Result<Option<Proof>, Fault> {
        if let Some(mut walk) = self.walk
            && walk.asked < walk.landed
        {
            // Batches of a launch or two, and those that were cut short: what was launched ahead is proved with it.
            self.ask(&mut walk)?;
            self.walk = Some(walk);
        }
        self.ends.proof(self.queue.as_mut())
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32) {
        match self.walk {
            Some(_) => self.ends.flip(self.queue.as_mut(), lane, bit),
            None => self.flip = Some((lane, bit)),
        }
    }
}

#[cfg(test)]
mod tests;
