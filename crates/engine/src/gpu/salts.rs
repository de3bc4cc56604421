//! The search for salts on a GPU: contracts of CREATE2 and CREATE3.
//!
//! The device is given the message with the mask's fixed bytes, a stretch of counters and a filter; it knows digests
//! exactly, so a record is a hit. A launch whose hits did not fit is done again in smaller pieces.

use warpsmith_chain::{Guard, Hashed, Salted};
use warpsmith_device::{Arg, Buffer, Kernel, Queue};
use warpsmith_kernel::Program;
use warpsmith_kernel::salts::{Guarded, SALTS_PER_STEP, Salts};
use warpsmith_pattern::Filter;

use super::flight::{Flights, Landed, MOST_STEPS};
use super::shapes::Kind;
use super::timing::{self, Time};
use super::{CAPACITY, Gpu, LaunchShape, Outcome, as_bytes, build, upload};
use crate::prefilter::{bar, digest_test, digest_words, first_bar};
use crate::space::Lease;
use crate::worker::measure::{Part, Profile};
use crate::worker::{Batch, Fault, Hit, Numbering, Search, Spot, Start, Worker};

pub(super) struct SaltsWorker {
    shape: LaunchShape,
    salted: Salted,
    queue: Box<dyn Queue>,
    kernel: Kernel,
    params: Buffer,
    filter_words: Buffer,
    scored: bool,
    /// Whether each that scores enough is told.
    each: bool,
    /// The score to beat, or to reach where each is told.
    beat: u32,
    /// The last counter of the lease.
    last: u64,
    /// The first counter not yet on its way; none at the end.
    next: Option<u64>,
    flights: Flights,
}

/// The search as the device's text and buffer have it.
fn described(salted: &Salted, base: &[u8; 32]) -> Salts {
    let guard = match &salted.guard {
        Guard::None => None,
        Guard::Hashed(Hashed { before, salt, after }) => {
            Some(Guarded { before: before.clone(), salt: salt.clone(), after: after.clone() })
        }
    };
    let (fixed, free) = (salted.salt.fixed(), *salted.salt.free());
    let base = std::array::from_fn(|i| if free[i] { base[i] } else { fixed[i] });
    let Salted { deployer, code_hash, create, .. } = *salted;
    Salts { guard, deployer, code_hash, create, base, free }
}

/// Words of an address.
const DIGEST_WORDS: usize = 5;

/// What such a search runs, and on how many lanes.
pub(super) fn shape(gpu: &Gpu, salted: &Salted, filter: &Filter) -> LaunchShape {
    let stages = described(salted, &[0; 32]).stages();
    gpu.digest_shape(kind(salted), Program::Salts { stages, filter: digest_test(filter) })
}

/// What is tuned of such a search.
pub(super) fn kind(salted: &Salted) -> Kind {
    let stages = described(salted, &[0; 32]).stages();
    Kind::Salts { guarded: stages.guarded, create: stages.create }
}

impl SaltsWorker {
    pub fn new(gpu: &Gpu, salted: &Salted, search: &Search<'_>) -> Outcome<Self> {
        let salts = described(salted, &[0; 32]);
        let shape = shape(gpu, salted, search.filter);
        let spec = &shape.spec;
        let mut queue = gpu.device.queue()?;
        let (_, kernel) = build(queue.as_mut(), gpu.device.info(), spec, spec.program.entry())?;
        Ok(SaltsWorker {
            shape,
            salted: salted.clone(),
            kernel,
            params: upload(queue.as_mut(), &salts.words())?,
            filter_words: upload(queue.as_mut(), &digest_words(search.filter, DIGEST_WORDS))?,
            scored: search.filter.score.is_some(),
            beat: first_bar(search.filter),
            each: search.filter.score.as_ref().is_some_and(|wanted| wanted.each),
            last: 0,
            next: None,
            flights: Flights::new(queue.as_mut(), MOST_STEPS, gpu.launch_ms, CAPACITY)?,
            queue,
        })
    }

    /// The last counter that a launch of so many steps reaches from `first` on.
    fn reach(&self, first: u64, steps: u32) -> u64 {
        let blocks = u64::from(self.shape.lanes) * u64::from(steps);
        let block = (first / SALTS_PER_STEP).saturating_add(blocks - 1);
        block.saturating_mul(SALTS_PER_STEP).saturating_add(SALTS_PER_STEP - 1).min(self.last)
    }

    /// What such a search takes of a card, and what a salt costs.
    pub fn profile(gpu: &Gpu, salted: &Salted, search: &Search<'_>) -> Result<Profile, Fault> {
        let mut worker = SaltsWorker::new(gpu, salted, search).map_err(|e| e.to_string())?;
        worker.start(Start::Salts(Lease { base: [0; 32], first: 0, last: u64::MAX }))?;
        let time = Time::of(|| {
            let next = worker.next.ok_or("all salts were tried")?;
            worker.take_off(next).map_err(|e| e.to_string())?;
            timing::landed(&mut worker.flights, worker.queue.as_mut())
        })?;
        let salts = u64::from(worker.shape.lanes) * SALTS_PER_STEP;
        let part = Part { name: "hash", picoseconds: time.step * 1e3 / salts as f64 };
        let profile = timing::taken(gpu, worker.queue.as_mut(), worker.kernel, worker.shape.spec.block);
        Ok(Profile { launch_ms: time.launch, parts: vec![part], ..profile })
    }

    /// Enqueues a launch of `lanes` lanes over the counters from `first` to `last`.
    fn launch(
        &self,
        first: u64,
        last: u64,
        lanes: u32,
    ) -> impl FnOnce(&mut dyn Queue, Buffer, u32) -> Outcome<()> + use<> {
        let (kernel, block) = (self.kernel, self.shape.spec.block);
        let (params, filter) = (self.params, self.filter_words);
        move |queue, hits, steps| {
            let buffers = [params, filter, hits].map(Arg::Buffer);
            let numbers = [Arg::U64(first), Arg::U64(last), Arg::U32(lanes), Arg::U32(steps)];
            queue.launch(kernel, lanes / block, block, &[buffers.as_slice(), &numbers].concat())
        }
    }

    /// Sends the next launch on its way.
    fn take_off(&mut self, first: u64) -> Outcome<()> {
        let reach = self.reach(first, self.flights.steps);
        let launch = self.launch(first, reach, self.shape.lanes);
        self.flights.take_off(self.queue.as_mut(), first, self.beat, launch)?;
        self.next = reach.checked_add(1).filter(|&next| next <= self.last);
        Ok(())
    }

    /// Waits for the oldest launch and accounts for it.
    fn land(&mut self) -> Result<Batch, Fault> {
        let landed = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())?;
        let mut batch = match landed {
            None => Batch::default(),
            Some(landed) if landed.overflowed() => self.again(&landed)?,
            Some(landed) => {
                let tried = self.reach(landed.first, landed.steps) - landed.first + 1;
                Batch { tried, hits: self.sort_out(&landed, self.shape.lanes), ..Batch::default() }
            }
        };
        batch.done = self.next.is_none() && self.flights.is_empty();
        Ok(batch)
    }

    fn sort_out(&mut self, landed: &Landed, lanes: u32) -> Vec<Hit> {
        self.beat = self.beat.max(landed.best);
        let block = landed.first / SALTS_PER_STEP;
        let hit = |&[lane, step, low, told]: &[u32; 4]| {
            let block = block + u64::from(step) * u64::from(lanes) + u64::from(lane);
            let spot = Spot::Salt(block * SALTS_PER_STEP + u64::from(low));
            Hit { spot, digest: None, score: if self.scored { told } else { 0 } }
        };
        landed.records.iter().map(hit).collect()
    }

    /// Does a launch again whose hits did not fit, in pieces. With hits in plenty it ends, and the search goes on from
    /// there.
    fn again(&mut self, landed: &Landed) -> Result<Batch, Fault> {
        let LaunchShape { spec, lanes: all } = self.shape;
        let end = self.reach(landed.first, landed.steps);
        // Pieces expected to fill half the buffer, no more than a launch of one step. A piece of as many salts as
        // there is room for hits cannot overflow.
        let (least, most) = (u64::from(CAPACITY), (u64::from(all) - 1) * SALTS_PER_STEP);
        let passing = f64::from(landed.count) / (end - landed.first + 1) as f64;
        let mut size = ((least as f64 / 2.0 / passing) as u64).min(most).max(least);
        let mut batch = Batch::default();
        let mut first = landed.first;
        loop {
            let to = first.saturating_add(size - 1).min(end);
            let blocks = (to / SALTS_PER_STEP - first / SALTS_PER_STEP + 1) as u32;
            let lanes = blocks.next_multiple_of(spec.block);
            let launch = self.launch(first, to, lanes);
            let piece = self
                .flights
                .alone(self.queue.as_mut(), first, 1, self.beat, |queue, hits| launch(queue, hits, 1))
                .map_err(|e| e.to_string())?;
            if piece.overflowed() {
                size = (size / 2).max(least);
                continue;
            }
            batch.tried += to - first + 1;
            batch.hits.extend(self.sort_out(&piece, lanes));
            if to == end {
                return Ok(batch);
            }
            first = to + 1;
            if batch.hits.len() > CAPACITY as usize {
                // The launches behind this one are done again too, and shorter.
                self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
                self.flights.steps = 1;
                self.next = Some(first);
                return Ok(batch);
            }
        }
    }
}

impl Worker for SaltsWorker {
    fn numbering(&self) -> Option<Numbering> {
        None
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), Fault> {
        let Start::Salts(Lease { base, first, last }) = start else {
            return Err("a search for salts starts at a counter".to_owned());
        };
        let words = described(&self.salted, &base).words();
        self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
        self.queue.write(self.params, 0, &as_bytes(&words)).map_err(|e| e.to_string())?;
        self.last = last;
        self.next = Some(first);
        Ok(())
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        while let (false, Some(next)) = (self.flights.full(), self.next) {
            self.take_off(next).map_err(|e| e.to_string())?;
        }
        self.land()
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let steps = std::mem::replace(&mut self.flights.steps, 1);
        if let Some(next) = self.next {
            self.take_off(next).map_err(|e| e.to_string())?;
        }
        let batch = self.land();
        self.flights.steps = steps;
        batch
    }

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.beat = self.beat.max(bar(self.each, at_least));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
