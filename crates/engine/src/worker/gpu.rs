//! A GPU as a device: tens of thousands of lanes, two launches in flight, hits read while the next launch runs.
//!
//! The device is given centres (public points), a table and a filter, and answers with records. Every lane's
//! centre is known to the host at any step (origin + lane * stride + step), so a launch whose hits did not fit,
//! or a lane that met its table, is simply done again in smaller pieces.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::platform::Simd;
use warpsmith_curve::walk::{Hit, Place, Sieve, Table, Walk};
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_device::{
    Api, Arg, Buffer, Device, Kernel, Later, Mark, Options, Program, Queue, Source, Vendor,
};
use warpsmith_kernel::abi::{self, Record};
use warpsmith_kernel::{Filter as FilterKind, Spec, Table as TablePlace, join, set};
use warpsmith_pattern::Filter;

use super::batch_add::{add_all, multiples};
use super::{Backend, Batch, Fault, Shape, Worker};
use crate::sieve::sieve;
use crate::tune::remembered;

/// A lane's share of keys, in steps: at a thousand steps a second it lasts a century.
const STRIDE: u64 = 1 << 42;

/// Records a launch has room for. More hits than that are found by walking again in pieces.
const CAPACITY: u32 = 4096;

/// How long a launch should take: long enough to hide its overhead, short enough for a display.
const LAUNCH_MS: f32 = 100.0;

/// Launches in flight.
const IN_FLIGHT: usize = 2;

/// Ranges compared one by one; more go through the set.
const FEW_RANGES: usize = 4;

/// The shape of a search on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub spec: Spec,
    pub lanes: u32,
}

/// A card, or a processor posing as one.
pub(crate) struct Gpu {
    device: Arc<dyn Device>,
    layout: Layout,
    ways: OnceLock<Vec<Affine>>,
    entries: OnceLock<Vec<Affine>>,
    table: OnceLock<Table>,
}

impl Gpu {
    /// The device in the shape remembered for it, or the default one.
    pub fn new(device: Arc<dyn Device>) -> Gpu {
        let layout = remembered(device.as_ref()).unwrap_or_else(|| default_layout(device.as_ref()));
        Gpu::with_layout(device, layout)
    }

    /// The device in a given shape.
    pub fn with_layout(device: Arc<dyn Device>, layout: Layout) -> Gpu {
        Gpu { device, layout, ways: OnceLock::new(), entries: OnceLock::new(), table: OnceLock::new() }
    }

    /// Where each lane but the first starts relative to the origin.
    fn ways(&self) -> &[Affine] {
        self.ways.get_or_init(|| {
            let way = Scalar::from_u128(STRIDE as u128 * (2 * self.layout.spec.group as u128 + 1));
            let way = group::multiply(way, Some(Affine::G)).expect("a stride is not a multiple of n");
            multiples(way, self.layout.lanes as usize - 1)
        })
    }

    /// i * G for every entry of the table.
    fn entries(&self) -> &[Affine] {
        self.entries.get_or_init(|| multiples(Affine::G, self.layout.spec.group as usize))
    }

    /// The portable walk of the same shape, for lanes the device cannot do.
    fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(Simd::Portable, self.layout.spec.group))
    }
}

/// A shape that runs well on what is known and runs at all on the rest; `tune` finds better ones.
pub(crate) fn default_layout(device: &dyn Device) -> Layout {
    let info = device.info();
    if !info.is_gpu {
        // OpenCL on a processor is for tests: few lanes, and no sharing across its slow barriers.
        let spec = Spec {
            ptx: false,
            group: 16,
            block: 8,
            blocks: 1,
            table: TablePlace::Global,
            shared_inversion: false,
            ..Spec::default()
        };
        return Layout { spec, lanes: 64 };
    }
    let nvidia = info.vendor == Vendor::Nvidia;
    let table_bytes = 4 * abi::table_words(256) as u64;
    let table = if info.constant_memory >= table_bytes { TablePlace::Constant } else { TablePlace::Global };
    // H200: 4 blocks of 128 lanes a multiprocessor 121.6 G keys/s, 5 blocks 122.4 (docs/performance.md).
    let blocks = if nvidia { 5 } else { 4 };
    let spec = Spec { ptx: nvidia, group: 256, block: 128, blocks, table, ..Spec::default() };
    // Prefix products take 8 KiB a lane; a quarter of the memory is enough for any card that can fill itself.
    let fit = info.memory / 4 / (4 * abi::scratch_words(spec.group, 1) as u64);
    let wanted = info.units as u64 * (blocks * spec.block) as u64;
    let lanes = wanted.min(fit).max(spec.block as u64) / spec.block as u64 * spec.block as u64;
    Layout { spec, lanes: lanes as u32 }
}

impl Backend for Gpu {
    fn id(&self) -> String {
        self.device.info().id.clone()
    }

    fn describe(&self) -> String {
        let info = self.device.info();
        let Layout { spec, lanes } = self.layout;
        format!(
            "{} ({}, driver {}, {} units, {:.1} GiB), {lanes} lanes of {} entries, {} lanes a block",
            info.name,
            info.arch,
            info.driver,
            info.units,
            info.memory as f64 / (1u64 << 30) as f64,
            spec.group,
            spec.block
        )
    }

    fn card(&self) -> Option<Arc<dyn Device>> {
        Some(Arc::clone(&self.device))
    }

    fn workers(&self) -> usize {
        1
    }

    fn max_false(&self) -> f64 {
        // At 10^11 keys a second, one in 2^30 is a hundred verifications a second.
        2f64.powi(-30)
    }

    fn supports(&self, filter: &Filter) -> Result<(), Fault> {
        if filter.terms.is_empty() {
            return Ok(());
        }
        Err("its kernel tests the leading characters only, and these patterns are decided elsewhere"
            .to_owned())
    }

    fn worker<'a>(&'a self, filter: &Filter) -> Result<Box<dyn Worker + 'a>, Fault> {
        Ok(Box::new(GpuWorker::new(self, filter).map_err(|e| e.to_string())?))
    }
}

/// One launch under way.
struct Flight {
    /// The step its lanes began with.
    first: u64,
    steps: u32,
    later: Later,
    marks: (Mark, Mark),
}

struct GpuWorker<'a> {
    gpu: &'a Gpu,
    queue: Box<dyn Queue>,
    kernel: Kernel,
    table: Option<Buffer>,
    centres: Buffer,
    scratch: Buffer,
    filter: Buffer,
    /// Hit buffers, used in turn.
    hits: [Buffer; IN_FLIGHT],
    turn: usize,
    sieve: Sieve,
    origin: Option<Affine>,
    /// The step all lanes are at when everything in flight has landed.
    step: u64,
    steps_a_launch: u32,
    flights: VecDeque<Flight>,
    bytes: Vec<u8>,
}

type Outcome<T> = Result<T, warpsmith_device::Error>;

fn as_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Limbs of 32 bits, least significant first.
fn limbs(x: Fe) -> [u32; 8] {
    let words = x.to_words();
    std::array::from_fn(|i| (words[3 - i / 2] >> (32 * (i % 2))) as u32)
}

/// The device's table: the step point, then i * G.
fn table_words(group: u32) -> Vec<u32> {
    let step = group::multiply(Scalar::from_u64(2 * group as u64 + 1), Some(Affine::G))
        .expect("a small multiple of G is not infinity");
    let mut words = abi::step_entry(&limbs(step.x), &limbs(step.y)).to_vec();
    for point in multiples(Affine::G, group as usize) {
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

/// What the device shall test, and the buffer that says so.
fn filter_words(filter: &Filter) -> (FilterKind, Vec<u32>) {
    let count = filter.top.len();
    let intervals: Vec<(u64, u64)> = filter.top.iter().map(|i| (i.first, i.last)).collect();
    if (1..=FEW_RANGES).contains(&count) {
        return (FilterKind::Range { count: count as u32 }, abi::range_words(&intervals));
    }
    // As fine as a bitmap of 32 MiB allows, which the second-level cache of a large card holds: what passes it
    // leaves the common path of 32 lanes, so one key in a hundred thousand is what a set should let pass.
    let bits = (count.max(1).ilog2() + 18).clamp(20, 28);
    (FilterKind::Set, set::words(&intervals, bits))
}

impl<'a> GpuWorker<'a> {
    fn new(gpu: &'a Gpu, filter: &Filter) -> Outcome<Self> {
        let Layout { spec, lanes } = gpu.layout;
        let (kind, filter_words) = filter_words(filter);
        // A few ranges are decided on one word, which lets some 2^-25 of all keys pass; the host sorts those out
        // (`exact`). A second test on the device costs a card a fifth of its speed by the registers it takes.
        let spec = Spec { filter: kind, wide: false, ..spec };
        let info = gpu.device.info();
        let mut queue = gpu.device.queue()?;
        let (program, kernel) = build(queue.as_mut(), info, &spec)?;
        let mut upload = |words: &[u32]| -> Outcome<Buffer> {
            let bytes = as_bytes(words);
            let buffer = queue.alloc(bytes.len() as u64)?;
            queue.write(buffer, 0, &bytes)?;
            Ok(buffer)
        };
        let filter_buffer = upload(&filter_words)?;
        let table = table_words(spec.group);
        let table = if spec.table == TablePlace::Constant && info.api == Api::Cuda {
            queue.symbol(program, "search_table", &as_bytes(&table))?;
            None
        } else {
            Some(upload(&table)?)
        };
        let centres = queue.alloc(4 * abi::centres_words(lanes) as u64)?;
        let scratch = queue.alloc(4 * abi::scratch_words(spec.group, lanes) as u64)?;
        let hits_bytes = 4 * abi::hits_words(CAPACITY) as u64;
        let hits = [queue.alloc(hits_bytes)?, queue.alloc(hits_bytes)?];
        Ok(GpuWorker {
            gpu,
            queue,
            kernel,
            table,
            centres,
            scratch,
            filter: filter_buffer,
            hits,
            turn: 0,
            sieve: sieve(filter),
            origin: None,
            step: 0,
            steps_a_launch: 1,
            flights: VecDeque::new(),
            bytes: Vec::new(),
        })
    }

    fn lanes(&self) -> u32 {
        self.gpu.layout.lanes
    }

    fn group(&self) -> u32 {
        self.gpu.layout.spec.group
    }

    /// Keys of one lane in one step.
    fn keys(&self) -> u64 {
        abi::keys_per_step(self.group())
    }

    /// The centre from which lane 0 would begin this step.
    fn at_step(&self, step: u64) -> Point {
        let way = Scalar::from_u64(step).mul(Scalar::from_u64(2 * self.group() as u64 + 1));
        group::add(self.origin, group::multiply(way, Some(Affine::G)))
    }

    /// Uploads the centres of some lanes at a step.
    fn place(&mut self, to: Buffer, lanes: std::ops::Range<u32>, step: u64) -> Result<(), Fault> {
        let start = self.at_step(step).ok_or("the walk has come to the point at infinity")?;
        let ways = self.gpu.ways();
        let first = lanes.start.max(1) as usize - 1;
        let others = add_all(start, &ways[first..lanes.end as usize - 1])
            .ok_or("two points of the walk meet where lanes begin")?;
        let own = (lanes.start == 0).then_some(start);
        let points: Vec<Affine> = own.into_iter().chain(others).collect();
        let mut words = vec![0u32; abi::centres_words(points.len() as u32)];
        for (lane, point) in points.iter().enumerate() {
            for (w, limb) in limbs(point.x).into_iter().chain(limbs(point.y)).enumerate() {
                words[w * points.len() + lane] = limb;
            }
        }
        self.queue.write(to, 0, &as_bytes(&words)).map_err(|e| e.to_string())
    }

    /// Enqueues a launch of `lanes` lanes from `centres`, its hits to `hits`.
    fn launch(&mut self, centres: Buffer, hits: Buffer, lanes: u32, steps: u32) -> Outcome<Later> {
        self.queue.write(hits, 0, &as_bytes(&[0, CAPACITY, 0, 0]))?;
        let mut args = vec![Arg::Buffer(centres), Arg::Buffer(self.scratch)];
        args.extend(self.table.map(Arg::Buffer));
        args.extend([Arg::Buffer(self.filter), Arg::Buffer(hits), Arg::U32(lanes), Arg::U32(steps)]);
        let block = self.gpu.layout.spec.block;
        self.queue.launch(self.kernel, lanes / block, block, &args)?;
        self.queue.read_later(hits, 0, 4 * abi::hits_words(CAPACITY) as u64)
    }

    /// Sends the next launch on its way.
    fn take_off(&mut self) -> Outcome<()> {
        let (first, steps) = (self.step, self.steps_a_launch);
        let before = self.queue.mark()?;
        let later = self.launch(self.centres, self.hits[self.turn], self.lanes(), steps)?;
        let after = self.queue.mark()?;
        self.turn = (self.turn + 1) % IN_FLIGHT;
        self.step += steps as u64;
        self.flights.push_back(Flight { first, steps, later, marks: (before, after) });
        Ok(())
    }

    /// The records of a finished launch, and how many there were meant to be.
    fn records(&mut self, later: Later) -> Outcome<(Vec<Record>, u32)> {
        let mut bytes = std::mem::take(&mut self.bytes);
        self.queue.finish_later(later, &mut bytes)?;
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|b| bytes[4 * i + b]));
        let count = word(0);
        let records = (0..count.min(CAPACITY) as usize).map(|r| {
            let at = abi::HITS_HEADER + r * abi::HIT_WORDS;
            Record::read(std::array::from_fn(|w| word(at + w)))
        });
        let records = records.collect();
        self.bytes = bytes;
        Ok((records, count))
    }

    /// Waits for the oldest launch and accounts for it.
    fn land(&mut self) -> Result<Batch, Fault> {
        let Some(flight) = self.flights.pop_front() else { return Ok(Batch::default()) };
        let (records, count) = self.records(flight.later).map_err(|e| e.to_string())?;
        let (before, after) = flight.marks;
        let ms = self.queue.milliseconds(before, after).map_err(|e| e.to_string())?;
        self.pace(flight.steps, ms);
        if count > CAPACITY {
            return self.again(flight.first, flight.steps, count);
        }
        let tried = self.lanes() as u64 * flight.steps as u64 * self.keys();
        let hits = self.sort_out(records, 0, flight.first, flight.steps)?;
        Ok(Batch { tried, hits })
    }

    /// Chooses the length of the next launches from what the last one took.
    fn pace(&mut self, steps: u32, ms: f32) {
        let wanted = steps as f32 * LAUNCH_MS / ms.max(0.01);
        // No more than fourfold at once: the first launches may not be typical.
        self.steps_a_launch = (wanted as u32).clamp(1, steps.saturating_mul(4).max(1)).min(1 << 20);
    }

    /// Turns records into hits; lanes that met their table are walked on the processor for the rest of the launch.
    fn sort_out(
        &mut self,
        records: Vec<Record>,
        lane0: u32,
        first: u64,
        steps: u32,
    ) -> Result<Vec<Hit>, Fault> {
        let mut hits = Vec::new();
        let mut met = false;
        let mut centres = HashMap::new();
        for record in records {
            match record {
                Record::Hit(hit) => {
                    let place = Place {
                        lane: lane0 + hit.lane,
                        step: first + hit.step as u64,
                        index: hit.index,
                        minus: hit.minus,
                        orbit: hit.orbit as u8,
                        image: hit.image as u8,
                    };
                    let centre = *centres.entry(place.step).or_insert_with(|| self.at_step(place.step));
                    let x = self.exact(centre, &place);
                    if x.is_some_and(|x| self.sieve.may_hold(x)) {
                        hits.push(Hit { place, x });
                    }
                }
                Record::Fault { lane, step } => {
                    met = true;
                    self.walk_lane(lane0 + lane, first + step as u64, steps - step, &mut hits);
                }
            }
        }
        if met {
            // The device has left those lanes where they were: put all lanes where they belong. Launches in flight
            // report the same lanes again and are made good the same way.
            while let Some(flight) = self.flights.pop_front() {
                let (records, count) = self.records(flight.later).map_err(|e| e.to_string())?;
                let more = if count > CAPACITY {
                    self.again(flight.first, flight.steps, count)?.hits
                } else {
                    self.sort_out(records, 0, flight.first, flight.steps)?
                };
                hits.extend(more);
            }
            let (centres, lanes, step) = (self.centres, self.lanes(), self.step);
            self.place(centres, 0..lanes, step)?;
        }
        Ok(hits)
    }

    /// The x coordinate of the key at a place, whose step begins for lane 0 at `centre`: three additions.
    fn exact(&self, centre: Point, place: &Place) -> Option<Fe> {
        let way = place.lane.checked_sub(1).map(|l| self.gpu.ways()[l as usize]);
        let entry =
            place.index.checked_sub(1).map(|i| self.gpu.entries()[i as usize].endomorphism(place.orbit));
        let entry = if place.minus { entry.map(Affine::negate) } else { entry };
        let point = group::add(group::add(centre, way), entry)?;
        Some(point.endomorphism(place.image).x.canonical())
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
        hits.extend(found.into_iter().map(|hit: Hit| {
            let place = Place { lane, step: step + hit.place.step, ..hit.place };
            Hit { place, ..hit }
        }));
    }

    /// Does a launch again whose hits did not fit: step by step, and over as few lanes as it takes. One match retires
    /// the origin, so it ends when there are hits in plenty, and counts the keys up to there.
    fn again(&mut self, first: u64, steps: u32, count: u32) -> Result<Batch, Fault> {
        let (all, block) = (self.lanes(), self.gpu.layout.spec.block);
        // Pieces expected to fill half the buffer.
        let share = CAPACITY as f64 / 2.0 * steps as f64 / count as f64;
        let mut lanes = ((all as f64 * share.min(1.0)) as u32 / block * block).max(block);
        let centres = self.queue.alloc(4 * abi::centres_words(all) as u64).map_err(|e| e.to_string())?;
        let buffer = self.queue.alloc(4 * abi::hits_words(CAPACITY) as u64).map_err(|e| e.to_string())?;
        let (mut hits, mut tried) = (Vec::new(), 0);
        for step in first..first + steps as u64 {
            let mut from = 0;
            while from < all && hits.len() <= CAPACITY as usize {
                let to = (from + lanes).min(all);
                self.place(centres, from..to, step)?;
                let later = self.launch(centres, buffer, to - from, 1).map_err(|e| e.to_string())?;
                let (records, count) = self.records(later).map_err(|e| e.to_string())?;
                if count > CAPACITY {
                    if lanes == block {
                        // More than one key in a hundred passes: the processor has no such limit.
                        for lane in from..to {
                            self.walk_lane(lane, step, 1, &mut hits);
                            tried += self.keys();
                            if hits.len() > CAPACITY as usize {
                                break;
                            }
                        }
                        from = to;
                    } else {
                        lanes = (lanes / 2 / block * block).max(block);
                    }
                    continue;
                }
                let more = self.sort_out(records, from, step, 1)?;
                hits.extend(more);
                tried += (to - from) as u64 * self.keys();
                from = to;
            }
        }
        for buffer in [centres, buffer] {
            self.queue.free(buffer).map_err(|e| e.to_string())?;
        }
        Ok(Batch { tried, hits })
    }
}

/// Compiles the search for a device, or finds it in the cache.
fn build(queue: &mut dyn Queue, info: &warpsmith_device::Info, spec: &Spec) -> Outcome<(Program, Kernel)> {
    let source = join(spec);
    let key = format!("{:032x}", source.hash);
    let mut options = Options::default();
    if info.api == Api::OpenCl && info.vendor == Vendor::Nvidia {
        // OpenCL has no launch bounds: without this the compiler takes as many registers as it likes.
        let registers = 65536 / (spec.block * spec.blocks) / 8 * 8;
        options.extra.push(format!("-cl-nv-maxrregcount={}", registers.min(255)));
    }
    let program = queue.build(&Source { text: &source.text, key: &key }, &options)?;
    let kernel = queue.kernel(program, "search_walk")?;
    Ok((program, kernel))
}

impl Worker for GpuWorker<'_> {
    fn shape(&self) -> Shape {
        Shape { half: self.group(), lanes: self.lanes(), stride: STRIDE }
    }

    fn start(&mut self, origin: Affine) -> Result<(), Fault> {
        // What is in flight belongs to an origin nobody asks about any more.
        while let Some(flight) = self.flights.pop_front() {
            self.records(flight.later).map_err(|e| e.to_string())?;
        }
        self.origin = Some(origin);
        self.step = 0;
        let (centres, lanes) = (self.centres, self.lanes());
        self.place(centres, 0..lanes, 0)
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        while self.flights.len() < IN_FLIGHT {
            self.take_off().map_err(|e| e.to_string())?;
        }
        self.land()
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let steps = std::mem::replace(&mut self.steps_a_launch, 1);
        self.take_off().map_err(|e| e.to_string())?;
        let batch = self.land();
        self.steps_a_launch = steps;
        batch
    }
}

#[cfg(test)]
mod tests;
