//! Taproot's output keys on the processor: the points of a walk, each tweaked by a hash of its x (BIP-341 with no
//! scripts). A key and its opposite have the same x and so the same output key: one candidate.

use std::sync::Arc;

use warpsmith_curve::multiply::{self, Eight, Multiples};
use warpsmith_curve::walk::{Block, KEYS_PER_POINT, Place, Points, Walk};
use warpsmith_hash::Lanes;
use warpsmith_hash::sha256::Tagged;

use super::Cpu;
use super::digest_filter::DigestFilter;
use super::walker::Quest;
use crate::prefilter::Sought;
use crate::worker::{Batch, Hit, Spot};

/// Images of a point: candidates it stands for.
const IMAGES: u64 = 3;

/// Blocks of a walk whose tweaks are added together.
const TOGETHER: usize = multiply::TOGETHER / IMAGES as usize;

/// A search for output keys.
pub(super) struct Taproot {
    lanes: Lanes,
    tagged: Tagged,
    filter: DigestFilter,
}

impl Taproot {
    pub fn new(cpu: &Cpu, sought: Arc<Sought>) -> Self {
        let (lanes, filter) = (Lanes::new(cpu.simd), DigestFilter::new(sought, cpu.simd));
        Taproot { lanes, tagged: Tagged::new(b"TapTweak"), filter }
    }
}

impl Quest for Taproot {
    const RELATIVES: (u8, bool) = (1, false);

    fn step(&mut self, cpu: &Cpu, walk: &mut Walk<'_>) -> Batch {
        let mut hits = Vec::new();
        let mut tweaking = Tweaking {
            lanes: self.lanes,
            tagged: &self.tagged,
            multiples: cpu.multiples(),
            filter: &self.filter,
            sums: Vec::with_capacity(TOGETHER * IMAGES as usize),
            places: Vec::with_capacity(TOGETHER),
            hits: &mut hits,
        };
        let tried = walk.points(&mut tweaking) / KEYS_PER_POINT * IMAGES;
        tweaking.finish();
        Batch { tried, hits, ..Batch::default() }
    }

    fn raise(&mut self, at_least: u32) {
        self.filter.raise(at_least);
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
