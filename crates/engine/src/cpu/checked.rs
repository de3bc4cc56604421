//! A walk on the processor that is compared now and then with where it must be. Its lanes are few: each is computed anew
//! by libsecp256k1.

use warpsmith_curve::Affine;
use warpsmith_curve::walk::Walk;

use super::Cpu;
use crate::worker::ends::Row;
use crate::worker::{Batch, Fault, Start};

/// Steps from one check to the next: about half a second for x coordinates, some seconds for hashes. Eight lanes take a
/// quarter of a millisecond.
const EVERY: u32 = 512;

/// The walk of a worker.
pub(super) struct Checked<'a> {
    cpu: &'a Cpu,
    /// With the point it began at.
    walk: Option<(Walk<'a>, Affine)>,
    every: u32,
    /// Steps since the last check, whatever origins they began at, and what was tried by them.
    steps: u32,
    unproved: u64,
}

impl<'a> Checked<'a> {
    pub fn new(cpu: &'a Cpu) -> Self {
        Checked { cpu, walk: None, every: EVERY, steps: 0, unproved: 0 }
    }

    /// Starts over from here.
    pub fn start(&mut self, start: &Start) -> Result<(), Fault> {
        let Start::Point(origin) = *start else { return Err("a walk starts at a point".to_owned()) };
        self.walk = Some((self.cpu.walk(origin), origin));
        Ok(())
    }

    /// Goes on by what `step` does, which is one step.
    pub fn step(&mut self, step: impl FnOnce(&mut Walk<'a>) -> Batch) -> Result<Batch, Fault> {
        let (walk, _) = self.walk.as_mut().ok_or("a worker was run before it was given an origin")?;
        let batch = step(walk);
        self.steps += 1;
        self.unproved += batch.tried;
        if self.steps >= self.every {
            self.check()?;
            (self.steps, self.unproved) = (0, 0);
        }
        Ok(batch)
    }

    /// Whether each lane is where it must be.
    pub fn check(&self) -> Result<(), Fault> {
        let Some((walk, origin)) = &self.walk else { return Ok(()) };
        let shape = self.cpu.shape();
        Row::of_search(Some(*origin), walk.step(), shape.half, shape.stride).check_each(&walk.centres())
    }

    /// Candidates tried since the last check.
    pub fn unproved(&self) -> u64 {
        self.unproved
    }

    /// Turns over one bit of a lane's centre, to be found out by a check after so many steps.
    #[cfg(test)]
    pub fn flip(&mut self, lane: u32, bit: u32, every: u32) {
        self.every = every;
        let (walk, _) = self.walk.as_mut().expect("started");
        let centre = walk.centres()[lane as usize].expect("not infinity");
        walk.put(lane as usize, Some(crate::worker::ends::flipped(centre, bit)));
    }
}
