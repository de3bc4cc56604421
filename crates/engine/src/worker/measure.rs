//! What only measurements ask of a device: how fast its arithmetic is by itself, and where the time of a search goes.

use std::time::Duration;

use warpsmith_chain::Form;
use warpsmith_curve::field::chains::Op;
use warpsmith_device::Resources;

use super::{Fault, Search};
use crate::prefilter::ScanFilter;

/// A device whose parts can be timed.
pub(crate) trait Measure {
    /// Times the field by itself; an error if something comes out wrong.
    fn field(&self, op: Op, time: Duration) -> Result<FieldRate, Fault>;
    /// What this search takes of a card, and what its parts cost; none where that is not known.
    fn profile(&self, _search: &Search<'_>) -> Option<Result<Profile, Fault>> {
        None
    }
    /// The same for a scan for digests of these forms.
    fn profile_scan(&self, _forms: &[Form], _filter: &ScanFilter) -> Option<Result<Profile, Fault>> {
        None
    }
}

/// How fast a device multiplies in the field of secp256k1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldRate {
    /// Operations a second.
    pub rate: f64,
    /// Results compared with the processor's portable arithmetic.
    pub verified: u64,
    /// How long it took.
    pub seconds: f64,
}

/// What a search takes of a card and what its parts cost.
///
/// See [`bench`](crate::bench()).
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
///
/// See [`bench`](crate::bench()).
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// `walk` (points, inversion, products), `words` (top words of the keys), `filter` (sums, tests, reports); `hash` (digests of
    /// points or salts, tests, reports). Of a scan `walk`, and what each of its programs tests.
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
