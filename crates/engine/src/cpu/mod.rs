//! The CPU as a device: one searcher of several lanes a thread.
//!
//! `walker` is the loop of every walk; what a walk looks for has its own file: `orbit` for x, `points` for hashes of points
//! (with `create` for contracts), `taproot` for points that are tweaked. `salts` counts for those without a key, `ranges`
//! scans. `digest_filter` tests digests, `field` times the arithmetic by itself.

pub(crate) mod create;
mod digest_filter;
pub(crate) mod field;
pub(super) mod orbit;
mod points;
mod ranges;
mod salts;
mod taproot;
mod walker;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use warpsmith_chain::{Form, Recipe};
use warpsmith_curve::Affine;
use warpsmith_curve::field::chains::Op;
use warpsmith_curve::field::dispatch;
use warpsmith_curve::group::Point;
use warpsmith_curve::multiply::Multiples;
use warpsmith_curve::walk::{Table, Walk};
use warpsmith_hash::Lanes;

use crate::forms;
use crate::prefilter::{Everything, ScanFilter};
use crate::simd::{self, Simd};
use crate::worker::batch_add::multiples;
use crate::worker::measure::{FieldRate, Measure};
use crate::worker::scanner::Scanner;
use crate::worker::{Backend, Batch, Fault, MOST_HALF, Numbering, Program, Runner, Search, Worker};
pub(crate) use ranges::CpuScanner;
pub(crate) use ranges::listed::survivors_of;
pub(crate) use ranges::masked::{Inner, scalar};
use walker::Walker;

/// Table entries: table and prefix products of one walker, about 700 bytes an entry with eight lanes, fit a
/// private cache beside each other, and what a group takes besides its entries is two percent; with 768 a search was 1 % faster.
const HALF: u32 = 512;

/// How long a worker walks before it looks up.
const MOMENT: Duration = Duration::from_millis(20);

/// The processor with a number of threads.
pub(crate) struct Cpu {
    simd: Simd,
    threads: usize,
    half: u32,
    table: OnceLock<Table>,
    entries: OnceLock<Vec<Affine>>,
    multiples: OnceLock<Multiples>,
}

impl Cpu {
    pub fn new(simd: Simd, threads: usize) -> Cpu {
        Cpu::with_entries(simd, threads, HALF)
    }

    /// The same with tables of so many entries.
    fn with_entries(simd: Simd, threads: usize, half: u32) -> Cpu {
        let (table, entries, multiples) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Cpu { simd, threads, half, table, entries, multiples }
    }

    /// How it hashes.
    pub fn hash_lanes(&self) -> warpsmith_simd::Lanes {
        warpsmith_simd::Lanes::new(self.simd)
    }

    /// Its instruction set.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// What its walks are made with.
    pub fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(self.simd, self.half))
    }

    /// i * G for every entry of the table.
    fn entries(&self) -> &[Affine] {
        self.entries.get_or_init(|| multiples(Affine::G, self.half as usize))
    }

    /// What any multiple of G is made of.
    pub fn multiples(&self) -> &Multiples {
        self.multiples.get_or_init(|| Multiples::new(self.simd))
    }

    /// How walkers number their keys, all orbits and no signs.
    pub fn numbering(&self) -> Numbering {
        let lanes = dispatch::lane_count(self.simd) as u32;
        Numbering { half: self.half, lanes, orbits: 3, signs: false }
    }

    /// A walk from these points, one for each lane.
    pub fn walk(&self, points: &[Affine]) -> Walk<'_> {
        let starts: Vec<Point> = points.iter().copied().map(Some).collect();
        Walk::new(self.table(), &starts)
    }
}

/// Steps until a moment has passed, something was hit, or nothing is left.
fn for_a_moment(mut step: impl FnMut() -> Result<Batch, Fault>) -> Result<Batch, Fault> {
    let until = Instant::now() + MOMENT;
    let mut batch = Batch::default();
    while batch.hits.is_empty() && !batch.done && Instant::now() < until {
        let next = step()?;
        batch = Batch { tried: batch.tried + next.tried, ..next };
    }
    Ok(batch)
}

impl Backend for Cpu {
    fn id(&self) -> String {
        if self.simd == simd::detect() { "cpu".to_owned() } else { format!("cpu:{}", self.simd) }
    }

    fn describe(&self) -> String {
        let (threads, lanes) = (self.threads, dispatch::lane_count(self.simd));
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        format!("{threads} thread{}, {lanes} lane{} each ({})", plural(threads), plural(lanes), self.simd)
    }

    fn workers(&self) -> usize {
        self.threads
    }

    fn max_false(&self, recipe: &Recipe) -> f64 {
        // A false hit costs some fifty microseconds of verification: a few percent of the time that 2^19 keys take
        // where x is tested, or 2^15 where points are hashed.
        match recipe {
            Recipe::Key(Form::X) => 2f64.powi(-19),
            _ => 2f64.powi(-15),
        }
    }

    fn runner(&self) -> Runner {
        Runner::Processor { lanes: Lanes::new(self.simd), threads: self.workers() }
    }

    fn measure(&self) -> Option<&dyn Measure> {
        Some(self)
    }

    fn scanner<'a>(
        &'a self,
        forms: &'a [Form],
        filter: &'a ScanFilter,
    ) -> Result<Box<dyn Scanner + 'a>, Fault> {
        forms::scanned(forms)?;
        Ok(match filter {
            ScanFilter::List(list) => Box::new(CpuScanner::new(self, forms, list)),
            ScanFilter::Fuse(filter) => Box::new(CpuScanner::new(self, forms, filter.as_ref())),
            ScanFilter::Open => Box::new(CpuScanner::new(self, forms, &Everything)),
        })
    }

    fn supports(&self, _search: &Search<'_>) -> Result<(), Fault> {
        Ok(())
    }

    fn half(&self) -> u32 {
        self.half
    }

    fn with_half(&self, half: u32) -> Option<Arc<dyn Backend>> {
        (1..=MOST_HALF)
            .contains(&half)
            .then(|| Arc::new(Cpu::with_entries(self.simd, self.threads, half)) as _)
    }

    fn program(&self, search: &Search<'_>) -> Program {
        let mut name = match search.recipe {
            Recipe::Key(Form::X) => match &search.prefilter.sieve().bits {
                None => "ranges",
                Some(bits) if bits.is_sparse() => "sparse tables",
                Some(_) => "dense tables",
            },
            _ if search.prefilter.sought().bits().is_some() => "a bitmap",
            _ => "ranges",
        }
        .to_owned();
        if !search.filter.terms.is_empty() {
            name += " and terms";
        }
        if let Some(wanted) = &search.filter.score {
            name += &format!(" and {}{}", if wanted.each { "each by " } else { "" }, wanted.score);
        }
        Program(name)
    }

    fn worker<'a>(&'a self, search: &Search<'_>) -> Result<Box<dyn Worker + 'a>, Fault> {
        if let Some(hashes) = points::Hashes::new(self, search) {
            return Ok(Box::new(Walker::new(self, hashes)));
        }
        Ok(match search.recipe {
            Recipe::Salted(salted) => {
                Box::new(salts::SaltsWorker::new(self, salted, search.prefilter.sought().clone()))
            }
            Recipe::Key(Form::Taproot) => {
                Box::new(Walker::new(self, taproot::Taproot::new(self, search.prefilter.sought().clone())))
            }
            Recipe::Key(_) => Box::new(Walker::new(self, orbit::Orbit(search.prefilter.sieve().clone()))),
        })
    }
}

impl Measure for Cpu {
    fn field(&self, op: Op, time: Duration) -> Result<FieldRate, Fault> {
        field::bench(self.simd, self.threads, op, time)
    }
}

#[cfg(test)]
mod tests;
