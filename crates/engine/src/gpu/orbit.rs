//! The orbit walk on a GPU: for targets whose digest is the x coordinate, tested by its top bits.
//!
//! The device is given centres (public points), a table and a filter, and answers with records. Every lane's
//! centre is known to the host at any step (origin + lane * stride + step), so a launch whose hits did not fit,
//! or a lane that met its table, is simply done again in smaller pieces. `profile` measures what its parts cost.

mod profile;

use warpsmith_chain::Digest;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::{self, Place, Sieve, Walk};
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_device::{Api, Arg, Buffer, Kernel, Queue, Vendor};
use warpsmith_kernel::abi::{self, Record};
use warpsmith_kernel::{Filter as XTest, Spec, Stage};
use warpsmith_pattern::Filter;

pub(super) use profile::profile;

use super::ends::Watch;
use super::flight::{Flights, Landed, MOST_STEPS};
use super::settle::Settle;
use super::{CAPACITY, Gpu, Layout, Outcome, STRIDE, as_bytes, build, limbs, place_table, upload};
use crate::cpu::orbit::hit as from_walk;
use crate::prefilter::{XWords, sieve, x_test, x_tests};
use crate::worker::batch_add::multiples;
use crate::worker::ends::Row;
use crate::worker::{Batch, Fault, Hit, Shape, Spot, Start, Worker};

/// Blocks a multiprocessor should hold of a search for a set through NVIDIA's OpenCL, whose compiler wants 200 registers for it
/// and spills what it does not get. H200, a million prefixes: 57.5, 81.5, 94.2 and 89.4 G keys/s with 5, 4, 3 and 2 blocks.
const OPENCL_SET_BLOCKS: u32 = 3;

pub(super) struct OrbitWorker<'a> {
    gpu: &'a Gpu,
    layout: Layout,
    queue: Box<dyn Queue>,
    kernel: Kernel,
    table: Option<Buffer>,
    centres: Buffer,
    /// For launches done again.
    spare: Buffer,
    scratch: Buffer,
    filter: Buffer,
    /// For many patterns.
    settle: Option<Settle>,
    sieve: Sieve,
    origin: Option<Affine>,
    /// The step all lanes are at when everything in flight has landed.
    step: u64,
    flights: Flights,
    watch: Watch,
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
    // (`sort_out`). A second test on the device costs a card a fifth of its speed by the registers it takes.
    Spec { filter, ..*spec }
}

/// Every program a search in this shape may run.
pub(super) fn programs(spec: &Spec) -> Vec<Spec> {
    x_tests().map(|filter| program(spec, filter)).collect()
}

/// What a search for this filter runs, and on how many lanes.
pub(super) fn layout(gpu: &Gpu, filter: &Filter) -> Layout {
    let (test, info) = (x_test(filter), gpu.device.info());
    let Layout { spec, lanes } = match test {
        XTest::Set { .. } if info.api == Api::OpenCl && info.vendor == Vendor::Nvidia => {
            gpu.layout.at_most(OPENCL_SET_BLOCKS)
        }
        _ => gpu.layout,
    };
    Layout { spec: program(&spec, test), lanes }
}

impl<'a> OrbitWorker<'a> {
    pub fn new(gpu: &'a Gpu, filter: &Filter) -> Outcome<Self> {
        Self::up_to(gpu, filter, Stage::Whole)
    }

    /// A search that goes so far; only a whole one finds anything.
    fn up_to(gpu: &'a Gpu, filter: &Filter, stage: Stage) -> Outcome<Self> {
        let (words, info) = (XWords::new(filter), gpu.device.info());
        let Layout { spec, lanes } = layout(gpu, filter);
        let spec = Spec { stage, ..spec };
        let mut queue = gpu.device.queue()?;
        let (program, kernel) = build(queue.as_mut(), info, &spec, "search_walk")?;
        let filter_buffer = upload(queue.as_mut(), words.words())?;
        let table = table_words(spec.group);
        let table = place_table(queue.as_mut(), info, program, &spec, &table)?;
        let centres_bytes = 4 * abi::centres_words(lanes) as u64;
        let (centres, spare) = (queue.alloc(centres_bytes)?, queue.alloc(centres_bytes)?);
        let scratch = queue.alloc(4 * abi::scratch_words(spec.group, lanes) as u64)?;
        let settle = match &words {
            XWords::Ranges(_) => None,
            XWords::Set(set) => Some(Settle::new(queue.as_mut(), program, gpu, Layout { spec, lanes }, set)?),
        };
        let most = settle.as_ref().map_or(MOST_STEPS, Settle::most_steps);
        let flights = Flights::new(queue.as_mut(), most, CAPACITY)?;
        Ok(OrbitWorker {
            gpu,
            layout: Layout { spec, lanes },
            queue,
            kernel,
            table,
            centres,
            spare,
            scratch,
            filter: filter_buffer,
            settle,
            sieve: sieve(filter),
            origin: None,
            step: 0,
            flights,
            watch: Watch::new(centres, lanes),
        })
    }

    fn lanes(&self) -> u32 {
        self.layout.lanes
    }

    fn group(&self) -> u32 {
        self.layout.spec.group
    }

    /// Keys of one lane in one step.
    fn keys(&self) -> u64 {
        abi::keys_per_step(self.group())
    }

    /// The centre from which lane 0 would begin this step.
    fn at_step(&self, step: u64) -> Point {
        self.gpu.at_step(self.origin, step)
    }

    /// Where the lanes are when everything in flight has landed.
    fn row(&self) -> Row {
        Row::of_search(self.origin, self.step, self.layout.spec.group, STRIDE)
    }

    /// Uploads the centres of some lanes at a step.
    fn place(&mut self, to: Buffer, lanes: std::ops::Range<u32>, step: u64) -> Result<(), Fault> {
        let words = self.gpu.centres(self.origin, lanes, step)?;
        self.queue.write(to, 0, &as_bytes(&words)).map_err(|e| e.to_string())
    }

    /// What enqueues a launch of `lanes` lanes from `centres`, given the queue, the buffer for its hits and its steps.
    fn launch(
        &self,
        centres: Buffer,
        lanes: u32,
    ) -> impl FnOnce(&mut dyn Queue, Buffer, u32) -> Outcome<()> + use<> {
        let mut args = vec![Arg::Buffer(centres), Arg::Buffer(self.scratch)];
        args.extend(self.table.map(Arg::Buffer));
        args.push(Arg::Buffer(self.filter));
        let (kernel, block, settle) = (self.kernel, self.layout.spec.block, self.settle);
        let (scratch, filter) = (self.scratch, self.filter);
        move |queue, hits, steps| {
            args.extend([Arg::Buffer(hits), Arg::U32(lanes), Arg::U32(steps)]);
            args.extend(settle.iter().flat_map(Settle::walk_args));
            queue.launch(kernel, lanes / block, block, &args)?;
            settle
                .map_or(Ok(()), |settle| settle.launch(queue, [scratch, filter, hits], (lanes, block), steps))
        }
    }

    /// Sends the next launch on its way.
    fn take_off(&mut self) -> Outcome<()> {
        let launch = self.launch(self.centres, self.lanes());
        let steps = self.flights.steps;
        self.flights.take_off(self.queue.as_mut(), self.step, 0, launch)?;
        self.step += steps as u64;
        Ok(())
    }

    /// Waits for the oldest launch and accounts for it.
    fn land(&mut self) -> Result<Batch, Fault> {
        match self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? {
            Some(landed) => self.account(landed),
            None => Ok(Batch::default()),
        }
    }

    fn account(&mut self, landed: Landed) -> Result<Batch, Fault> {
        if landed.overflowed() {
            return self.again(&landed);
        }
        let tried = self.lanes() as u64 * landed.steps as u64 * self.keys();
        let mut batch = Batch { tried, ..Batch::default() };
        if self.sort_out(&landed, 0, &mut batch.hits) {
            // The device has left the lanes that met their table where they were: put all lanes where they belong.
            // Launches in flight report the same lanes again and are made good the same way.
            while let Some(landed) = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? {
                let more = self.account(landed)?;
                batch.tried += more.tried;
                batch.hits.extend(more.hits);
            }
            self.watch.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            let (centres, lanes, step) = (self.centres, self.lanes(), self.step);
            self.place(centres, 0..lanes, step)?;
        }
        Ok(batch)
    }

    /// Turns records into hits. Lanes that met their table are walked on the processor for the rest of the launch; says
    /// whether there were any.
    fn sort_out(&mut self, landed: &Landed, lane0: u32, hits: &mut Vec<Hit>) -> bool {
        let mut met = false;
        let mut places = Vec::new();
        for &record in &landed.records {
            match Record::read(record) {
                Record::Hit(hit) => places.push(Place {
                    lane: lane0 + hit.lane,
                    step: landed.first + hit.step as u64,
                    index: hit.index,
                    minus: hit.minus,
                    orbit: hit.orbit as u8,
                    image: hit.image as u8,
                    negate: false,
                }),
                Record::Fault { lane, step } => {
                    met = true;
                    self.walk_lane(lane0 + lane, landed.first + step as u64, landed.steps - step, hits);
                }
            }
        }
        for (place, key) in places.iter().zip(self.gpu.keys_at(self.origin, &places, landed.first)) {
            let x = key.map(|key| key.x.canonical());
            if x.is_some_and(|x| self.sieve.may_hold(x)) {
                let digest = x.map(|x| Digest::new(&x.to_be_bytes()));
                hits.push(Hit { spot: Spot::Key(*place), digest, score: 0 });
            }
        }
        met
    }

    /// Walks one lane on the processor, exactly.
    fn walk_lane(&mut self, lane: u32, step: u64, steps: u32, hits: &mut Vec<Hit>) {
        let way = lane.checked_sub(1).map(|l| self.gpu.ways()[l as usize]);
        let start = group::add(self.at_step(step), way);
        let mut walk = Walk::new(self.gpu.table(), &[start]);
        let mut found = Vec::new();
        for _ in 0..steps {
            walk.group(&self.sieve, &mut found);
        }
        hits.extend(found.into_iter().map(|hit: walk::Hit| {
            let place = Place { lane, step: step + hit.place.step, ..hit.place };
            from_walk(walk::Hit { place, ..hit })
        }));
    }

    /// Does a launch again whose hits did not fit: step by step, and over as few lanes as it takes. One match retires
    /// the origin, so it ends when there are hits in plenty, and counts the keys up to there.
    fn again(&mut self, landed: &Landed) -> Result<Batch, Fault> {
        let (all, block) = (self.lanes(), self.layout.spec.block);
        // Pieces expected to fill half the buffer.
        let share = CAPACITY as f64 / 2.0 * landed.steps as f64 / landed.count.max(1) as f64;
        let mut lanes = ((all as f64 * share.min(1.0)) as u32 / block * block).max(block);
        let mut batch = Batch::default();
        for step in landed.first..landed.first + landed.steps as u64 {
            let mut from = 0;
            while from < all && batch.hits.len() <= CAPACITY as usize {
                let to = (from + lanes).min(all);
                self.place(self.spare, from..to, step)?;
                let launch = self.launch(self.spare, to - from);
                let landed = self
                    .flights
                    .alone(self.queue.as_mut(), step, 1, 0, |queue, hits| launch(queue, hits, 1))
                    .map_err(|e| e.to_string())?;
                if landed.overflowed() && lanes > block {
                    lanes = (lanes / 2 / block * block).max(block);
                    continue;
                }
                if landed.overflowed() {
                    // So many keys pass, or survive the bitmap of a set, that not even a block of them fits: the
                    // processor has no such limit.
                    for lane in from..to {
                        self.walk_lane(lane, step, 1, &mut batch.hits);
                        batch.tried += self.keys();
                        if batch.hits.len() > CAPACITY as usize {
                            break;
                        }
                    }
                } else {
                    self.sort_out(&landed, from, &mut batch.hits);
                    batch.tried += (to - from) as u64 * self.keys();
                }
                from = to;
            }
        }
        Ok(batch)
    }
}

impl Worker for OrbitWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        Some(Shape { half: self.group(), lanes: self.lanes(), stride: STRIDE, orbits: 3, signs: false })
    }

    fn start(&mut self, start: &Start) -> Result<(), Fault> {
        let Start::Point(origin) = *start else { return Err("a walk starts at a point".to_owned()) };
        // What is in flight belongs to an origin nobody asks about any more.
        self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
        self.watch.gave_up();
        self.origin = Some(origin);
        self.step = 0;
        let (centres, lanes) = (self.centres, self.lanes());
        self.place(centres, 0..lanes, 0)
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        while !self.flights.full() {
            self.take_off().map_err(|e| e.to_string())?;
            let (under_way, row) = (self.flights.under_way(), self.row());
            self.watch.took_off(self.queue.as_mut(), under_way, row)?;
        }
        // While all of them run: the card does not wait for it.
        self.watch.look(self.queue.as_mut())?;
        let batch = self.land()?;
        self.watch.landed(batch.tried);
        Ok(batch)
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let steps = std::mem::replace(&mut self.flights.steps, 1);
        self.take_off().map_err(|e| e.to_string())?;
        let batch = self.land();
        self.flights.steps = steps;
        batch
    }

    fn check(&mut self) -> Result<(), Fault> {
        let row = self.row();
        self.watch.look_now(self.queue.as_mut(), row)
    }

    fn unproved(&self) -> u64 {
        self.watch.unproved()
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32, every: u32) {
        self.watch.every(every);
        self.watch.flip(self.queue.as_mut(), lane, bit);
    }
}

#[cfg(test)]
mod tests;
