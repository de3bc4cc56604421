//! Taproot's output keys on the processor: the points of a walk, each tweaked by a hash of its x (BIP-341 with no
//! scripts). A key and its opposite have the same x and so the same output key: one candidate.

use std::sync::Arc;

use warpsmith_curve::multiply::{self, Eight, Multiples};
use warpsmith_curve::walk::{Block, KEYS_PER_POINT, Place, Points};
use warpsmith_hash::Lanes;
use warpsmith_hash::sha256::Tagged;

use super::checked::Checked;
use super::digest_filter::DigestFilter;
use super::{Cpu, for_a_moment};
use crate::prefilter::Sought;
use crate::worker::{Batch, Fault, Hit, Shape, Spot, Start, Worker};

/// Images of a point: candidates it stands for.
const IMAGES: u64 = 3;

/// Blocks of a walk whose tweaks are added together.
const TOGETHER: usize = multiply::TOGETHER / IMAGES as usize;

pub(super) struct TaprootWorker<'a> {
    cpu: &'a Cpu,
    lanes: Lanes,
    tagged: Tagged,
    filter: DigestFilter,
    walk: Checked<'a>,
}

impl<'a> TaprootWorker<'a> {
    pub fn new(cpu: &'a Cpu, sought: Arc<Sought>) -> Self {
        let (lanes, tagged, filter) =
            (cpu.simd.hash_lanes(), Tagged::new(b"TapTweak"), DigestFilter::new(sought, cpu.simd));
        TaprootWorker { cpu, lanes, tagged, filter, walk: Checked::new(cpu) }
    }
}

impl Worker for TaprootWorker<'_> {
    fn shape(&self) -> Option<Shape> {
        Some(Shape { orbits: 1, ..self.cpu.shape() })
    }

    fn start(&mut self, start: &Start) -> Result<(), Fault> {
        self.walk.start(start)
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        for_a_moment(|| self.step())
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        self.walk.step(|walk| {
            let mut hits = Vec::new();
            let mut tweaking = Tweaking {
                lanes: self.lanes,
                tagged: &self.tagged,
                multiples: self.cpu.multiples(),
                filter: &self.filter,
                sums: Vec::with_capacity(TOGETHER * IMAGES as usize),
                places: Vec::with_capacity(TOGETHER),
                hits: &mut hits,
            };
            let tried = walk.points(&mut tweaking) / KEYS_PER_POINT * IMAGES;
            tweaking.finish();
            Batch { tried, hits, done: false }
        })
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.walk.check()
    }

    fn unproved(&self) -> u64 {
        self.walk.unproved()
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32, every: u32) {
        self.walk.flip(lane, bit, every);
    }

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.filter.raise(at_least);
        Ok(())
    }
}

/// Collects the points of a walk, tweaks many of them together and looks at what becomes of them.
struct Tweaking<'w> {
    lanes: Lanes,
    tagged: &'w Tagged,
    multiples: &'w Multiples,
    filter: &'w DigestFilter,
    /// Three for each block: its images.
    sums: Vec<Eight>,
    /// Of the points of each block, as they are.
    places: Vec<[Place; 8]>,
    hits: &'w mut Vec<Hit>,
}

impl Points for Tweaking<'_> {
    const Y: bool = true;

    fn points(&mut self, block: &Block) {
        // Of y and -y the even one; p is odd, so one of them is.
        let mut y = block.y[0];
        for point in (0..8).filter(|&point| block.y[0][3][point] & 1 == 1) {
            for (word, opposite) in y.iter_mut().zip(&block.y[1]) {
                word[point] = opposite[point];
            }
        }
        let live = block.live;
        self.sums.extend(block.x.iter().map(|x| Eight { x: *x, y, t: [[0; 8]; 4], live }));
        self.places.push(std::array::from_fn(|point| block.place(point, 0, false)));
        if self.places.len() == TOGETHER {
            self.finish();
        }
    }
}

impl Tweaking<'_> {
    /// Does what was collected.
    fn finish(&mut self) {
        for pair in self.sums.chunks_mut(2) {
            let second = pair.get(1).unwrap_or(&pair[0]);
            let tweaks = self.tagged.of_32_bytes(self.lanes, [&pair[0].x, &second.x]);
            for (sum, tweak) in pair.iter_mut().zip(tweaks) {
                sum.t = tweak;
            }
        }
        self.multiples.add_to(&mut self.sums);
        for (sums, places) in self.sums.chunks(IMAGES as usize).zip(&self.places) {
            for (sum, image) in sums.iter().zip(0..) {
                let spot = |point: usize| Spot::Key(Place { image, ..places[point] });
                self.filter.look(&sum.x, sum.live, spot, self.hits);
            }
        }
        self.sums.clear();
        self.places.clear();
    }
}
