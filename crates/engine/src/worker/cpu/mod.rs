//! The CPU as a device: one walker of several lanes a thread. Each walk has its own file: `orbit` for targets that test
//! x.

pub(super) mod orbit;

use std::sync::OnceLock;
use std::time::Duration;

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::platform::Simd;
use warpsmith_curve::walk::{self, Table};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_target::Recipe;

use super::{Backend, Fault, Search, Worker};

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

    fn max_false(&self, _recipe: &Recipe) -> f64 {
        // One false hit in 2^19 keys costs some fifty microseconds of verification each, a few percent.
        2f64.powi(-19)
    }

    fn supports(&self, search: &Search<'_>) -> Result<(), Fault> {
        match search.recipe {
            Recipe::X => Ok(()),
            other => Err(format!("it has no walk for {other:?}")),
        }
    }

    fn worker<'a>(&'a self, search: &Search<'_>) -> Result<Box<dyn Worker + 'a>, Fault> {
        self.supports(search)?;
        Ok(Box::new(orbit::OrbitWorker::new(self, search.filter)))
    }
}
