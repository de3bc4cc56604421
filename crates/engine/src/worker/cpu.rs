//! The CPU as a device: one walker of several lanes a thread.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::platform::Simd;
use warpsmith_curve::walk::{self, Sieve, Table, Walk};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_pattern::Filter;

use super::{Backend, Batch, Fault, Shape, Worker};
use crate::sieve::sieve;

/// Table entries: table and prefix products of one walker, about 700 bytes an entry with eight lanes, fit a
/// private cache beside each other, and the inversion is below two percent of a group.
const HALF: u32 = 512;

/// A lane's share of keys, in steps: 2^56 steps of 10^4 keys take one core longer than a century.
const STRIDE: u64 = 1 << 56;

/// How long a worker walks before it looks up.
const MOMENT: Duration = Duration::from_millis(20);

/// The processor with a number of threads.
pub(crate) struct Cpu {
    simd: Simd,
    threads: usize,
    table: OnceLock<Table>,
    lanes: OnceLock<Vec<Point>>,
}

impl Cpu {
    pub fn new(simd: Simd, threads: usize) -> Cpu {
        Cpu { simd, threads, table: OnceLock::new(), lanes: OnceLock::new() }
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(self.simd, HALF))
    }

    /// Where each lane starts relative to the origin.
    fn lanes(&self) -> &[Point] {
        self.lanes.get_or_init(|| {
            let way = Scalar::from_u128(STRIDE as u128 * (2 * HALF as u128 + 1));
            let way = group::multiply(way, Some(Affine::G));
            let ways = std::iter::successors(Some(None), |&at| Some(group::add(at, way)));
            ways.take(walk::lanes(self.simd)).collect()
        })
    }
}

impl Backend for Cpu {
    fn id(&self) -> String {
        "cpu".to_owned()
    }

    fn describe(&self) -> String {
        let (threads, lanes) = (self.threads, walk::lanes(self.simd));
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        format!("{threads} thread{}, {lanes} lane{} each ({})", plural(threads), plural(lanes), self.simd)
    }

    fn workers(&self) -> usize {
        self.threads
    }

    fn max_false(&self) -> f64 {
        // One false hit in 2^19 keys costs some fifty microseconds of verification each, a few percent.
        2f64.powi(-19)
    }

    fn worker<'a>(&'a self, filter: &Filter) -> Result<Box<dyn Worker + 'a>, Fault> {
        Ok(Box::new(CpuWorker { cpu: self, sieve: sieve(filter), walk: None }))
    }
}

struct CpuWorker<'a> {
    cpu: &'a Cpu,
    sieve: Sieve,
    walk: Option<Walk<'a>>,
}

impl Worker for CpuWorker<'_> {
    fn shape(&self) -> Shape {
        Shape { half: HALF, lanes: walk::lanes(self.cpu.simd) as u32, stride: STRIDE }
    }

    fn start(&mut self, origin: Affine) -> Result<(), Fault> {
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
        let mut batch = Batch::default();
        batch.tried = walk.group(&self.sieve, &mut batch.hits);
        Ok(batch)
    }
}
