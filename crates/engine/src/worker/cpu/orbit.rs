//! The orbit walk on the processor: for targets whose digest is the x coordinate.

use warpsmith_curve::walk::{self, Sieve, Walk};
use warpsmith_target::Digest;

use super::{Cpu, for_a_moment};
use crate::worker::{Batch, Fault, Hit, Shape, Spot, Start, Worker};

pub(super) struct OrbitWorker<'a> {
    cpu: &'a Cpu,
    sieve: Sieve,
    walk: Option<Walk<'a>>,
}

impl<'a> OrbitWorker<'a> {
    pub fn new(cpu: &'a Cpu, sieve: Sieve) -> Self {
        OrbitWorker { cpu, sieve, walk: None }
    }
}

impl Worker for OrbitWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        Some(self.cpu.shape())
    }

    fn start(&mut self, start: &Start) -> Result<(), Fault> {
        self.walk = Some(self.cpu.walk(start)?);
        Ok(())
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        for_a_moment(|| self.step())
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let walk = self.walk.as_mut().ok_or("a worker was run before it was given an origin")?;
        let mut found = Vec::new();
        let tried = walk.group(&self.sieve, &mut found);
        Ok(Batch { tried, hits: found.into_iter().map(hit).collect(), done: false })
    }
}

/// What the walk found, as a session takes it.
pub(crate) fn hit(found: walk::Hit) -> Hit {
    let digest = found.x.map(|x| Digest::new(&x.to_be_bytes()));
    Hit { spot: Spot::Key(found.place), digest, score: 0 }
}
