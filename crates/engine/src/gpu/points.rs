//! The point walk on a GPU: for targets that hash the whole point, and for filters that need all of x.
//!
//! The device is given centres (public points), a table and a filter, and answers with records; it knows digests
//! exactly, so a record is a hit. Every lane's centre is known to the host at any step, so a launch whose hits did not
//! fit, or a lane that met its table, is simply done again in smaller pieces.

use std::ops::Range;

use warpsmith_chain::Form;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Scalar};
use warpsmith_device::{Arg, Buffer, Kernel, Queue};
use warpsmith_kernel::abi::{self, Record};
use warpsmith_kernel::points::{self, Digest as Made};
use warpsmith_kernel::{Program, taproot};
use warpsmith_pattern::Filter;

use super::ends::Watch;
use super::flight::{Flights, Landed, MOST_STEPS};
use super::{
    CAPACITY, Gpu, Layout, Outcome, STRIDE, as_bytes, build, place_table, point_table, tweaks, upload,
};
use crate::forms;
use crate::prefilter::{digest_test, digest_words, score_to_beat};
use crate::worker::ends::Row;
use crate::worker::{Batch, Fault, Hit, Search, Shape, Spot, Start, Worker};

pub(super) struct PointsWorker<'a> {
    gpu: &'a Gpu,
    layout: Layout,
    form: Form,
    made: Made,
    queue: Box<dyn Queue>,
    kernel: Kernel,
    table: Option<Buffer>,
    centres: Buffer,
    /// For launches done again.
    spare: Buffer,
    scratch: Buffer,
    filter_words: Buffer,
    /// What the digest takes besides: its parameters, or the table of the tweak and room for sums.
    more: Vec<Buffer>,
    filter: Filter,
    /// The score to beat.
    beat: u32,
    origin: Point,
    /// The step all lanes are at when everything in flight has landed.
    step: u64,
    flights: Flights,
    watch: Watch,
}

/// What the device makes of a point.
fn made(gpu: &Gpu, form: Form) -> Made {
    forms::searched(form, tweaks::bits(gpu.device.info()))
}

/// What such a search runs, and on how many lanes.
pub(super) fn layout(gpu: &Gpu, form: Form, filter: &Filter) -> Layout {
    gpu.digest_layout(Program::Points { digest: made(gpu, form), filter: digest_test(filter) })
}

impl<'a> PointsWorker<'a> {
    pub fn new(gpu: &'a Gpu, search: &Search<'_>) -> Outcome<Self> {
        let info = gpu.device.info();
        let form = search.recipe.form().expect("a walk is for keys");
        let (made, layout) = (made(gpu, form), layout(gpu, form, search.filter));
        let Layout { spec, lanes } = layout;
        let mut queue = gpu.device.queue()?;
        let (program, kernel) = build(queue.as_mut(), info, &spec, spec.program.entry())?;
        let step = group::multiply(Scalar::from_u64(2 * u64::from(spec.group) + 1), Some(Affine::G))
            .expect("a small multiple of G is not infinity");
        let table = point_table(step, gpu.entries());
        let table = place_table(queue.as_mut(), info, program, &spec, &table)?;
        let more = match made {
            Made::Taproot { bits } => {
                let table = tweaks::table(queue.as_mut(), program, spec.block, bits)?;
                vec![table, queue.alloc(4 * taproot::sums_words(lanes) as u64)?]
            }
            _ => {
                // Other digests ignore these words.
                let nonce = if let Form::Contract { nonce } = form { nonce } else { 0 };
                vec![upload(queue.as_mut(), &points::create_words(nonce))?]
            }
        };
        let centres_bytes = 4 * abi::centres_words(lanes) as u64;
        let centres = queue.alloc(centres_bytes)?;
        Ok(PointsWorker {
            gpu,
            layout,
            form,
            made,
            kernel,
            table,
            centres,
            spare: queue.alloc(centres_bytes)?,
            scratch: queue.alloc(4 * points::scratch_words(spec.group, lanes) as u64)?,
            filter_words: upload(queue.as_mut(), &digest_words(search.filter, made.words()))?,
            more,
            filter: search.filter.clone(),
            beat: score_to_beat(search.filter),
            origin: None,
            step: 0,
            flights: Flights::new(queue.as_mut(), MOST_STEPS, CAPACITY)?,
            watch: Watch::new(centres, lanes),
            queue,
        })
    }

    fn lanes(&self) -> u32 {
        self.layout.lanes
    }

    /// Keys of one lane in one step.
    fn keys(&self) -> u64 {
        points::keys_per_step(self.made, self.layout.spec.group)
    }

    /// Where the lanes are when everything in flight has landed.
    fn row(&self) -> Row {
        Row::of_search(self.origin, self.step, self.layout.spec.group, STRIDE)
    }

    /// Uploads the centres of some lanes at a step.
    fn place(&mut self, to: Buffer, lanes: Range<u32>, step: u64) -> Result<(), Fault> {
        let words = self.gpu.centres(self.origin, lanes, step)?;
        self.queue.write(to, 0, &as_bytes(&words)).map_err(|e| e.to_string())
    }

    /// The arguments of a launch but for its hits, and how many blocks it has.
    fn launch(
        &self,
        centres: Buffer,
        lanes: u32,
    ) -> impl FnOnce(&mut dyn Queue, Buffer, u32) -> Outcome<()> + use<> {
        let mut args = vec![Arg::Buffer(centres), Arg::Buffer(self.scratch)];
        args.extend(self.table.map(Arg::Buffer));
        args.push(Arg::Buffer(self.filter_words));
        args.extend(self.more.iter().copied().map(Arg::Buffer));
        let (kernel, block) = (self.kernel, self.layout.spec.block);
        move |queue, hits, steps| {
            args.extend([Arg::Buffer(hits), Arg::U32(lanes), Arg::U32(steps)]);
            queue.launch(kernel, lanes / block, block, &args)
        }
    }

    /// Sends the next launch on its way.
    fn take_off(&mut self) -> Outcome<()> {
        let launch = self.launch(self.centres, self.lanes());
        let steps = self.flights.steps;
        self.flights.take_off(self.queue.as_mut(), self.step, self.beat, launch)?;
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
        let tried = u64::from(self.lanes()) * u64::from(landed.steps) * self.keys();
        let mut hits = Vec::new();
        if self.sort_out(&landed, 0, &mut hits) {
            // The device has left the lanes that met their table where they were: put all lanes where they belong.
            // Launches in flight report the same lanes again and are made good the same way.
            let mut more = Batch { tried, hits, done: false };
            while let Some(landed) = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? {
                let batch = self.account(landed)?;
                more.tried += batch.tried;
                more.hits.extend(batch.hits);
            }
            self.watch.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            let (centres, lanes, step) = (self.centres, self.lanes(), self.step);
            self.place(centres, 0..lanes, step)?;
            return Ok(more);
        }
        Ok(Batch { tried, hits, done: false })
    }

    /// Turns records into hits. Lanes that met their table are walked on the processor for the rest of the launch; says
    /// whether there were any.
    fn sort_out(&mut self, landed: &Landed, lane0: u32, hits: &mut Vec<Hit>) -> bool {
        let mut met = false;
        let mut told = Vec::new();
        for &record in &landed.records {
            match Record::read(record) {
                Record::Hit(hit) => told.push(hit),
                Record::Fault { lane, step } => {
                    met = true;
                    for step in step..landed.steps {
                        self.walk_lane(lane0 + lane, landed.first + u64::from(step), hits);
                    }
                }
            }
        }
        let place = |hit: &abi::Hit| Place {
            lane: lane0 + hit.lane,
            step: landed.first + u64::from(hit.step),
            index: hit.index,
            minus: hit.minus,
            orbit: 0,
            image: hit.image as u8,
            negate: hit.negate,
        };
        let mut places: Vec<Place> = told.iter().map(place).collect();
        let wanted = self.settle(&told, &mut places, landed.first);
        for ((place, hit), _) in places.into_iter().zip(&told).zip(wanted).filter(|(_, wanted)| *wanted) {
            let score = if self.filter.score.is_some() { hit.top } else { 0 };
            hits.push(Hit { spot: Spot::Key(place), digest: None, score });
        }
        self.beat = self.beat.max(landed.best);
        met
    }

    /// What the device leaves to the host, which knows the keys: which of them has the parity of y it speaks of, and
    /// whether one is wanted whose digest it could not form. Says of each whether it is.
    fn settle(&self, told: &[abi::Hit], places: &mut [Place], first: u64) -> Vec<bool> {
        let mut wanted = vec![true; told.len()];
        if !self.made.tells_parity() && told.iter().all(|hit| !hit.open) {
            return wanted;
        }
        let keys = self.gpu.keys_at(self.origin, places, first);
        for (n, key) in keys.into_iter().enumerate() {
            // Infinity is no key, and the device reports none.
            let Some(key) = key else { continue };
            places[n].negate ^= self.made.tells_parity() && key.y.is_odd();
            wanted[n] = !told[n].open || self.filter.accepts(&forms::reference(self.form, key).words());
        }
        wanted
    }

    /// Walks one lane by one step on the processor, point by point with complete additions.
    fn walk_lane(&mut self, lane: u32, step: u64, hits: &mut Vec<Hit>) {
        let way = lane.checked_sub(1).map(|l| self.gpu.ways()[l as usize]);
        let centre = group::add(self.gpu.at_step(self.origin, step), way);
        for index in 0..=self.layout.spec.group {
            let entry = index.checked_sub(1).map(|i| self.gpu.entries()[i as usize]);
            for minus in [false, true].into_iter().take(if index == 0 { 1 } else { 2 }) {
                let entry = if minus { entry.map(Affine::negate) } else { entry };
                // Infinity is no key.
                let Some(point) = group::add(centre, entry) else { continue };
                for negate in [false, true].into_iter().take((self.made.keys() / 3) as usize) {
                    for image in 0..3 {
                        let key = if negate { point.negate() } else { point }.endomorphism(image);
                        let words = forms::reference(self.form, key).words();
                        let score = self.filter.score.map(|wanted| wanted.score.of_words(&words));
                        let wanted = score.map_or_else(|| self.filter.accepts(&words), |s| s > self.beat);
                        if wanted {
                            let place = Place { lane, step, index, minus, orbit: 0, image, negate };
                            let score = score.unwrap_or(0);
                            self.beat = self.beat.max(score);
                            hits.push(Hit { spot: Spot::Key(place), digest: None, score });
                        }
                    }
                }
            }
        }
    }

    /// Does a launch again whose hits did not fit: step by step, and over as few lanes as it takes. One match retires
    /// the origin, so it ends when there are hits in plenty, and counts the keys up to there.
    fn again(&mut self, landed: &Landed) -> Result<Batch, Fault> {
        let (all, block) = (self.lanes(), self.layout.spec.block);
        // Pieces expected to fill half the buffer.
        let share = f64::from(CAPACITY) / 2.0 * f64::from(landed.steps) / f64::from(landed.count);
        let mut lanes = ((f64::from(all) * share.min(1.0)) as u32 / block * block).max(block);
        let mut batch = Batch::default();
        for step in landed.first..landed.first + u64::from(landed.steps) {
            let mut from = 0;
            while from < all && batch.hits.len() <= CAPACITY as usize {
                let to = (from + lanes).min(all);
                self.place(self.spare, from..to, step)?;
                let launch = self.launch(self.spare, to - from);
                let landed = self
                    .flights
                    .alone(self.queue.as_mut(), step, 1, self.beat, |queue, hits| launch(queue, hits, 1))
                    .map_err(|e| e.to_string())?;
                if landed.overflowed() && lanes > block {
                    lanes = (lanes / 2 / block * block).max(block);
                    continue;
                }
                if landed.overflowed() {
                    // More than one key in a hundred passes: the processor has no such limit.
                    for lane in from..to {
                        self.walk_lane(lane, step, &mut batch.hits);
                        batch.tried += self.keys();
                        if batch.hits.len() > CAPACITY as usize {
                            break;
                        }
                    }
                } else {
                    self.sort_out(&landed, from, &mut batch.hits);
                    batch.tried += u64::from(to - from) * self.keys();
                }
                from = to;
            }
        }
        Ok(batch)
    }
}

impl Worker for PointsWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        let (half, lanes) = (self.layout.spec.group, self.lanes());
        Some(Shape { half, lanes, stride: STRIDE, orbits: 1, signs: self.made.keys() == 6 })
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

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.beat = self.beat.max(at_least.saturating_sub(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
