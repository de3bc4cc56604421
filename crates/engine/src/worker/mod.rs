//! The high seam: what a session asks of anything that can search, without knowing what it is.

mod batch_add;
pub(crate) mod cpu;
pub(crate) mod gpu;

use std::sync::Arc;

use warpsmith_curve::Affine;
use warpsmith_curve::walk::Hit;
use warpsmith_pattern::Filter;

/// What went wrong on a device, for a person to read.
pub(crate) type Fault = String;

/// How a walker numbers its keys: see [`warpsmith_curve::walk::Place::offset`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Table entries.
    pub half: u32,
    /// Parallel walkers.
    pub lanes: u32,
    /// Distance of neighbouring lanes in steps: more than any origin ever walks.
    pub stride: u64,
}

/// What one call of [`Worker::run`] did.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Keys tested, each once.
    pub tried: u64,
    /// Those that passed the filter.
    pub hits: Vec<Hit>,
}

/// A parallel walker. It is given points, never secrets.
pub(crate) trait Worker: Send {
    /// How it numbers keys.
    fn shape(&self) -> Shape;
    /// Starts over from this point.
    fn start(&mut self, origin: Affine) -> Result<(), Fault>;
    /// Walks on for a moment: some hundredths of a second, or until something was hit.
    fn run(&mut self) -> Result<Batch, Fault>;
    /// Walks on by exactly one step of every lane: for self-tests.
    fn step(&mut self) -> Result<Batch, Fault>;
}

/// A device that can make workers.
pub(crate) trait Backend: Send + Sync {
    /// What a person calls it: `cpu`, `cuda:0`.
    fn id(&self) -> String;
    /// One line about it.
    fn describe(&self) -> String;
    /// How many workers run on it side by side.
    fn workers(&self) -> usize;
    /// The share of keys that may pass its filter without matching before verification holds it up.
    fn max_false(&self) -> f64;
    /// The card behind it, if it is one.
    fn card(&self) -> Option<Arc<dyn warpsmith_device::Device>> {
        None
    }
    /// Whether it can test this filter at all; if not, why.
    fn supports(&self, _filter: &Filter) -> Result<(), Fault> {
        Ok(())
    }
    /// A worker that looks for this filter.
    fn worker<'a>(&'a self, filter: &Filter) -> Result<Box<dyn Worker + 'a>, Fault>;
}
