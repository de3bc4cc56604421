//! The walk over points on the processor: for targets whose digest is a hash of the point.

use warpsmith_curve::walk::{Block, Points, Walk};
use warpsmith_hash::{Lanes, keccak};
use warpsmith_pattern::Filter;

use super::create::Create;
use super::screen::Screen;
use super::{Cpu, for_a_moment};
use crate::worker::{Batch, Fault, Hit, Shape, Spot, Start, Worker};

pub(super) struct PointsWorker<'a> {
    cpu: &'a Cpu,
    lanes: Lanes,
    /// Where the digest is a contract of the account.
    create: Option<Create>,
    screen: Screen,
    walk: Option<Walk<'a>>,
}

impl<'a> PointsWorker<'a> {
    /// Looks for accounts, or for the contracts they create at a nonce.
    pub fn new(cpu: &'a Cpu, nonce: Option<u64>, filter: &Filter) -> Self {
        let (lanes, create, screen) = (cpu.simd.hash_lanes(), nonce.map(Create::new), Screen::new(filter));
        PointsWorker { cpu, lanes, create, screen, walk: None }
    }
}

impl Worker for PointsWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        Some(Shape { orbits: 1, signs: true, ..self.cpu.shape() })
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
        let mut hits = Vec::new();
        let (lanes, create, screen) = (self.lanes, self.create.as_ref(), &self.screen);
        let tried = walk.points(&mut Hashing { lanes, create, screen, hits: &mut hits });
        Ok(Batch { tried, hits, done: false })
    }

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.screen.raise(at_least);
        Ok(())
    }
}

/// Hashes the points of a walk and looks at the digests.
struct Hashing<'w> {
    lanes: Lanes,
    create: Option<&'w Create>,
    screen: &'w Screen,
    hits: &'w mut Vec<Hit>,
}

impl Points for Hashing<'_> {
    const Y: bool = true;

    fn points(&mut self, block: &Block) {
        for (y, negate) in block.y.iter().zip([false, true]) {
            for (x, image) in block.x.iter().zip(0..) {
                let mut digests = keccak::address_of_points(self.lanes, x, y);
                if let Some(create) = self.create {
                    digests = create.addresses(self.lanes, &digests);
                }
                let spot = |point| Spot::Key(block.place(point, image, negate));
                self.screen.look(&digests, block.live, spot, self.hits);
            }
        }
    }
}
