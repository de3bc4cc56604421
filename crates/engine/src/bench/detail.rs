//! What a benchmark tells beside a rate: what the search takes of a device, and where its time goes.

use warpsmith_device::Resources;

/// What a search takes of a card and what its parts cost.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Threads a block.
    pub block: u32,
    /// Registers, spilled and shared memory.
    pub resources: Resources,
    /// Blocks a multiprocessor holds at once; none where the interface does not tell.
    pub blocks_per_unit: Option<u32>,
    /// The most threads a multiprocessor could hold.
    pub threads_per_unit: Option<u32>,
    /// The length of a launch.
    pub launch_ms: f64,
    /// What each part adds to the time of a key.
    pub parts: Vec<Part>,
}

/// A part of the search.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// `walk` (points, inversion, products), `words` (top words of the keys), `filter` (sums, tests, reports).
    pub name: &'static str,
    /// Its time for one key on the whole device.
    pub picoseconds: f64,
}

impl Profile {
    /// The share of a multiprocessor's threads that is in use.
    pub fn occupancy(&self) -> Option<f64> {
        Some(f64::from(self.blocks_per_unit? * self.block) / f64::from(self.threads_per_unit?))
    }
}

/// What is known beside the rate.
#[derive(Clone, Debug)]
pub struct Detail {
    /// Processor time the program took once the search had settled, as a share of one core.
    pub host_cpu: Option<f64>,
    /// Field multiplications a second.
    pub field_mul: f64,
    /// The card's share; none for a processor.
    pub profile: Option<Profile>,
}
