//! What a sieve for prefixes finds: keys that are in a range for certain, and keys that may be, whose x has to be formed.
//!
//! Tops come with an error, and a range of single values is met by it far more often than by a key: of a million prefixes
//! of 55 bits every two million keys. Whoever hears of such a key has to make it from the secret to find that it is
//! none, and a worker waits for the answer; to form its x here takes an inversion, a thousandth of the time of these keys.

use super::bits::SLACK;
use super::range::Range;
use super::sums::image_of;
use crate::walk::place::{Hit, Place};

/// What was found in a group.
pub(super) struct Finds<'a> {
    step: u64,
    hits: &'a mut Vec<Hit>,
    doubtful: Vec<Place>,
}

impl<'a> Finds<'a> {
    /// Nothing yet in the group of this number; keys that are certain go to `hits`.
    pub fn new(step: u64, hits: &'a mut Vec<Hit>) -> Self {
        Finds { step, hits, doubtful: Vec::new() }
    }

    /// The key in the given place of the words of a sum, whose computed top is within the slack of a range.
    pub fn near(&mut self, index: u32, sum: usize, place: usize, range: Range, top: u64) {
        let (p, q) = (sum / 3, sum % 3);
        let (orbit, image) = (((q + 3 - p) % 3) as u8, image_of(p, q) as u8);
        let place = self.place(place as u32 / 2, index, place % 2 == 1, orbit, image);
        if range.surely_holds(top, SLACK) {
            self.hits.push(Hit { place, x: None });
        } else {
            self.doubtful.push(place);
        }
    }

    /// A key whose x was looked at.
    pub fn certain(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, image: u8) {
        let place = self.place(lane, index, minus, orbit, image);
        self.hits.push(Hit { place, x: None });
    }

    /// The keys whose x has to be looked at.
    pub fn doubtful(self) -> Vec<Place> {
        self.doubtful
    }

    fn place(&self, lane: u32, index: u32, minus: bool, orbit: u8, image: u8) -> Place {
        Place { lane, step: self.step, index, minus, orbit, image, negate: false }
    }
}
