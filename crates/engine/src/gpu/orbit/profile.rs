//! What the orbit walk takes of a card, and what its parts cost: by programs that stop after a part.

use warpsmith_kernel::Stage;
use warpsmith_pattern::Filter;

use super::OrbitWorker;
use super::Quest;
use crate::gpu::Gpu;
use crate::origins::Maker;
use crate::worker::measure::{Part, Profile};
use crate::worker::{Fault, Start, Worker};

/// Launches that find the length of a launch, and launches of which the fastest counts.
const WARM_UP: usize = 6;
const TIMED: usize = 4;

/// The parts, each with all before it.
const STAGES: [(Stage, &str); 3] = [(Stage::Walk, "walk"), (Stage::Words, "words"), (Stage::Whole, "filter")];

/// Measures a search for this filter.
pub(in crate::gpu) fn profile(gpu: &Gpu, filter: &Filter) -> Result<Profile, Fault> {
    let maker = Maker::new(None);
    let mut profile = Profile::default();
    let mut before = 0.0;
    for (stage, part) in STAGES {
        let mut worker = super::up_to(gpu, filter, stage).map_err(|e| e.to_string())?;
        let (_, points) = maker.ledger(worker.shape.lanes as usize).map_err(|e| e.to_string())?;
        worker.start(Start::Points(&points))?;
        for _ in 0..WARM_UP {
            worker.timed()?;
        }
        let mut best = f64::INFINITY;
        for _ in 0..TIMED {
            let (steps, ms) = worker.timed()?;
            profile.launch_ms = ms.into();
            best = best.min(f64::from(ms) * 1e6 / f64::from(steps));
        }
        let nanoseconds = best / (u64::from(worker.shape.lanes) * worker.quest.keys()) as f64;
        profile.parts.push(Part { name: part, picoseconds: (nanoseconds - before) * 1e3 });
        before = nanoseconds;
        if stage == Stage::Whole {
            let block = gpu.shape.spec.block;
            profile.block = block;
            profile.resources = worker.queue.resources(worker.quest.kernel);
            profile.blocks_per_unit = worker.queue.occupancy(worker.quest.kernel, block);
            profile.threads_per_unit = gpu.device.info().threads_per_unit;
        }
    }
    Ok(profile)
}

impl OrbitWorker<'_> {
    /// One launch by itself, whatever it hits: its steps and the device's time for it.
    fn timed(&mut self) -> Result<(u32, f32), Fault> {
        self.take_off()?;
        let timed = self.flights.land_timed(self.queue.as_mut()).map_err(|e| e.to_string())?;
        let (landed, ms) = timed.ok_or("a launch went missing")?;
        Ok((landed.steps, ms))
    }
}
