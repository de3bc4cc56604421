//! The orbit walk on the processor: for targets whose digest is the x coordinate.

use warpsmith_chain::Digest;
use warpsmith_curve::walk::{self, Sieve};

use super::checked::Checked;
use super::{Cpu, for_a_moment};
use crate::worker::{Batch, Fault, Hit, Shape, Spot, Start, Worker};

pub(super) struct OrbitWorker<'a> {
    cpu: &'a Cpu,
    sieve: Sieve,
    walk: Checked<'a>,
}

impl<'a> OrbitWorker<'a> {
    pub fn new(cpu: &'a Cpu, sieve: Sieve) -> Self {
        OrbitWorker { cpu, sieve, walk: Checked::new(cpu) }
    }
}

impl Worker for OrbitWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        Some(self.cpu.shape())
    }

    fn start(&mut self, start: &Start) -> Result<(), Fault> {
        self.walk.start(start)
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        for_a_moment(|| self.step())
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        self.walk.step(|walk| {
            let mut found = Vec::new();
            let tried = walk.group(&self.sieve, &mut found);
            Batch { tried, hits: found.into_iter().map(hit).collect(), done: false }
        })
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.walk.check()
    }

    fn unproved(&self) -> u64 {
        self.walk.unproved()
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32, every: u32) {
        self.walk.flip(lane, bit, every);
    }
}

/// What the walk found, as a session takes it.
pub(crate) fn hit(found: walk::Hit) -> Hit {
    let digest = found.x.map(|x| Digest::new(&x.to_be_bytes()));
    Hit { spot: Spot::Key(found.place), digest, score: 0 }
}
