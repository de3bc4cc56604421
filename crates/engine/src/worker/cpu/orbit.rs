//! The orbit walk on the processor: for targets whose digest is the x coordinate.

use std::time::Instant;

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::{self, Sieve, Walk};
use warpsmith_pattern::Filter;
use warpsmith_target::Digest;

use super::{Cpu, HALF, MOMENT, STRIDE};
use crate::sieve::sieve;
use crate::worker::{Batch, Fault, Hit, Shape, Spot, Start, Worker};

pub(super) struct OrbitWorker<'a> {
    cpu: &'a Cpu,
    sieve: Sieve,
    walk: Option<Walk<'a>>,
}

impl<'a> OrbitWorker<'a> {
    pub fn new(cpu: &'a Cpu, filter: &Filter) -> Self {
        OrbitWorker { cpu, sieve: sieve(filter), walk: None }
    }
}

impl Worker for OrbitWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        let lanes = walk::lanes(self.cpu.simd) as u32;
        Some(Shape { half: HALF, lanes, stride: STRIDE, orbits: 3, signs: false })
    }

    fn start(&mut self, start: &Start) -> Result<(), Fault> {
        let Start::Point(origin) = *start else { return Err("a walk starts at a point".to_owned()) };
        let starts: Vec<Point> = self.cpu.lanes().iter().map(|&way| group::add(Some(origin), way)).collect();
        self.walk = Some(Walk::new(self.cpu.table(), &starts));
        Ok(())
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        let until = Instant::now() + MOMENT;
        let mut batch = Batch::default();
        while batch.hits.is_empty() && Instant::now() < until {
            let step = self.step()?;
            batch.tried += step.tried;
            batch.hits = step.hits;
        }
        Ok(batch)
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
