//! A walk on the processor, whatever it looks for, compared now and then with where it must be. Its lanes are few: each is
//! computed anew by libsecp256k1.

use warpsmith_curve::Affine;
use warpsmith_curve::walk::Walk;

use super::{Cpu, for_a_moment};
use crate::worker::ends::Row;
use crate::worker::{Batch, Fault, Numbering, Start, Worker};

/// Steps from one check to the next: about half a second for x coordinates, some seconds for hashes. Eight lanes take a
/// quarter of a millisecond.
const EVERY: u32 = 512;

/// What a walk looks for, and how: what differs from one to the other.
pub(super) trait Quest: Send {
    /// Powers of lambda on an entry, and whether a key and its negative are two candidates.
    const RELATIVES: (u8, bool);
    /// Goes on by one step, looks at every candidate of it, and adds those that pass to the hits.
    fn step(&mut self, cpu: &Cpu, walk: &mut Walk<'_>) -> Batch;
    /// From now on only scores of at least this are wanted.
    fn raise(&mut self, _at_least: u32) {}
}

/// A worker that walks.
pub(super) struct Walker<'a, Q> {
    cpu: &'a Cpu,
    quest: Q,
    /// With the point it began at.
    walk: Option<(Walk<'a>, Affine)>,
    every: u32,
    /// Steps since the last check, whatever origins they began at, and what was tried by them.
    steps: u32,
    unproved: u64,
}

impl<'a, Q> Walker<'a, Q> {
    /// A walk that is nowhere yet.
    pub fn new(cpu: &'a Cpu, quest: Q) -> Self {
        Walker { cpu, quest, walk: None, every: EVERY, steps: 0, unproved: 0 }
    }
}

impl<Q: Quest> Worker for Walker<'_, Q> {
    fn numbering(&self) -> Option<Numbering> {
        let (orbits, signs) = Q::RELATIVES;
        Some(Numbering { orbits, signs, ..self.cpu.numbering() })
    }

    fn start(&mut self, start: &Start) -> Result<(), Fault> {
        let Start::Point(origin) = *start else { return Err("a walk starts at a point".to_owned()) };
        self.walk = Some((self.cpu.walk(origin), origin));
        Ok(())
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        for_a_moment(|| self.step())
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let (walk, _) = self.walk.as_mut().ok_or("a worker was run before it was given an origin")?;
        let batch = self.quest.step(self.cpu, walk);
        self.steps += 1;
        self.unproved += batch.tried;
        if self.steps >= self.every {
            self.check()?;
            (self.steps, self.unproved) = (0, 0);
        }
        Ok(batch)
    }

    fn check(&mut self) -> Result<(), Fault> {
        let Some((walk, origin)) = &self.walk else { return Ok(()) };
        let numbering = self.cpu.numbering();
        Row::of_search(Some(*origin), walk.step(), numbering.half, numbering.stride)
            .check_each(&walk.centres())
    }

    fn unproved(&self) -> u64 {
        self.unproved
    }

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.quest.raise(at_least);
        Ok(())
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32, every: u32) {
        self.every = every;
        let (walk, _) = self.walk.as_mut().expect("started");
        let centre = walk.centres()[lane as usize].expect("not infinity");
        walk.put(lane as usize, Some(crate::worker::ends::flipped(centre, bit)));
    }
}
