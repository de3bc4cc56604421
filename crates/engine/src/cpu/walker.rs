//! A walk on the processor, whatever it looks for, compared now and then with where it must be. Its lanes are few: each is
//! computed anew by libsecp256k1.

use warpsmith_curve::Affine;
use warpsmith_curve::walk::Walk;

use super::{Cpu, for_a_moment};
use crate::worker::ends::{Must, Stand};
use crate::worker::walks::Walks;
use crate::worker::{Batch, Fault, Numbering, Spot, Start, Worker};

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
    walk: Option<Walk<'a>>,
    /// Where its lanes began.
    walks: Walks,
    /// Steps after which the walk ends, if it does.
    end: Option<u64>,
    every: u32,
    /// Steps since the last check, whatever origins they began at, and what was tried by them.
    steps: u32,
    unproved: u64,
}

impl<'a, Q: Quest> Walker<'a, Q> {
    /// A walk that is nowhere yet.
    pub fn new(cpu: &'a Cpu, quest: Q) -> Self {
        let walks = Walks::new(cpu.numbering().half);
        Walker { cpu, quest, walk: None, walks, end: None, every: EVERY, steps: 0, unproved: 0 }
    }

    /// How its lanes number their keys.
    fn number(&self) -> Numbering {
        let (orbits, signs) = Q::RELATIVES;
        Numbering { orbits, signs, ..self.cpu.numbering() }
    }
}

impl<Q: Quest> Worker for Walker<'_, Q> {
    fn numbering(&self) -> Option<Numbering> {
        Some(self.number())
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), Fault> {
        let (points, end) = start.walk().ok_or("a walk starts at points")?;
        self.walk = Some(self.cpu.walk(points));
        self.walks.begin(points);
        self.end = end;
        Ok(())
    }

    fn replace(&mut self, lane: u32, _step: u64, met: u64, point: Affine) -> u64 {
        // A run ends with the step that hit something: nothing lies after it.
        let not_tried = self.number().not_tried(0, met);
        if let Some(walk) = &mut self.walk {
            walk.put(lane as usize, Some(point));
            self.walks.replace(lane, point, walk.step());
        }
        self.unproved = self.unproved.saturating_sub(not_tried);
        not_tried
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        for_a_moment(|| self.step())
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let walk = self.walk.as_mut().ok_or("a worker was run before it was given its points")?;
        if self.end.is_some_and(|end| walk.step() >= end) {
            self.check()?;
            return Ok(Batch { done: true, ..Batch::default() });
        }
        let mut batch = self.quest.step(self.cpu, walk);
        for hit in &mut batch.hits {
            if let Spot::Key(place) = &mut hit.spot {
                place.step =
                    self.walks.age(place.lane, place.step).expect("a lane is replaced between steps");
            }
        }
        self.steps += 1;
        self.unproved += batch.tried;
        if self.steps >= self.every {
            self.check()?;
            (self.steps, self.unproved) = (0, 0);
        }
        Ok(batch)
    }

    fn check(&mut self) -> Result<(), Fault> {
        let Some(walk) = &self.walk else { return Ok(()) };
        Stand::new(self.walks.clone(), walk.step()).check_each(&walk.centres())
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
        let walk = self.walk.as_mut().expect("started");
        let centre = walk.centres()[lane as usize].expect("not infinity");
        walk.put(lane as usize, Some(crate::worker::ends::flipped(centre, bit)));
    }
}
