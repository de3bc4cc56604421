//! How long launches take by the card's clock: for telling what the parts of a search cost.

use warpsmith_device::{Kernel, Queue};

use super::walker::{Quest, Walker};
use super::{Gpu, flight::Flights};
use crate::origins::Maker;
use crate::worker::measure::Profile;
use crate::worker::{Fault, Start, Worker};

/// Launches that find the length of a launch, and launches of which the fastest counts.
const WARM_UP: usize = 6;
const TIMED: usize = 4;

/// The time of launches.
pub(super) struct Time {
    /// Nanoseconds of a step, at best.
    pub step: f64,
    /// Milliseconds of a launch.
    pub launch: f64,
}

impl Time {
    /// By launches done one after the other, each of which tells its steps and the device's milliseconds for it.
    pub fn of(mut launch: impl FnMut() -> Result<(u32, f32), Fault>) -> Result<Time, Fault> {
        for _ in 0..WARM_UP {
            launch()?;
        }
        let mut time = Time { step: f64::INFINITY, launch: 0.0 };
        for _ in 0..TIMED {
            let (steps, ms) = launch()?;
            time.launch = ms.into();
            time.step = time.step.min(time.launch * 1e6 / f64::from(steps));
        }
        Ok(time)
    }
}

/// Waits for a launch that took off, whatever it hit: its steps and the device's time for it.
pub(super) fn landed<const WORDS: usize>(
    flights: &mut Flights<WORDS>,
    queue: &mut dyn Queue,
) -> Result<(u32, f32), Fault> {
    let timed = flights.land_timed(queue).map_err(|e| e.to_string())?;
    let (landed, ms) = timed.ok_or("a launch went missing")?;
    Ok((landed.steps, ms))
}

impl<Q: Quest> Walker<'_, Q> {
    /// Picoseconds of a key in launches from random keys on, and milliseconds of a launch.
    pub fn timed(&mut self) -> Result<(f64, f64), Fault> {
        let (_, points) = Maker::new(None).ledger(self.shape.lanes as usize).map_err(|e| e.to_string())?;
        self.start(Start::Points(&points))?;
        let time = Time::of(|| {
            self.take_off()?;
            landed(&mut self.flights, self.queue.as_mut())
        })?;
        let keys = u64::from(self.shape.lanes) * self.quest.keys();
        Ok((time.step * 1e3 / keys as f64, time.launch))
    }
}

/// What a kernel takes of a card.
pub(super) fn taken(gpu: &Gpu, queue: &mut dyn Queue, kernel: Kernel, block: u32) -> Profile {
    Profile {
        block,
        resources: queue.resources(kernel),
        blocks_per_unit: queue.occupancy(kernel, block),
        threads_per_unit: gpu.device.info().threads_per_unit,
        ..Profile::default()
    }
}
