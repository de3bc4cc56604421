//! The orbit walk on the processor: for targets whose digest is the x coordinate.

use warpsmith_chain::Digest;
use warpsmith_curve::walk::{self, Sieve, Walk};

use super::Cpu;
use super::walker::Quest;
use crate::worker::{Batch, Hit, Spot};

/// A search for x, by its own copy of the filter.
pub(super) struct Orbit(pub Sieve);

impl Quest for Orbit {
    const RELATIVES: (u8, bool) = (3, false);

    fn step(&mut self, _cpu: &Cpu, walk: &mut Walk<'_>) -> Batch {
        let mut found = Vec::new();
        let tried = walk.group(&self.0, &mut found);
        Batch { tried, hits: found.into_iter().map(hit).collect(), ..Batch::default() }
    }
}

/// What the walk found, as a search takes it.
pub(crate) fn hit(found: walk::Hit) -> Hit {
    let digest = found.x.map(|x| Digest::new(&x.to_be_bytes()));
    Hit { spot: Spot::Key(found.place), digest, score: 0 }
}
