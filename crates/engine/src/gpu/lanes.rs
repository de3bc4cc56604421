//! Where the lanes of a search are: the one place that knows it.
//!
//! Lane l of a walk is at `origin + (l * STRIDE + step) * (2 h + 1) * G`. So every centre is known to the host at any step: it
//! can be uploaded anew, compared with what the device has, and the key of any place computed.

use std::collections::HashMap;
use std::ops::Range;

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Scalar};

use super::{Gpu, centre_words};
use crate::worker::Fault;
use crate::worker::batch_add::{add_all, add_pairs};
use crate::worker::ends::Row;

/// A lane's share of keys, in steps: at a thousand steps a second it lasts a century.
pub(super) const STRIDE: u64 = 1 << 42;

/// The lanes of a walk.
pub(super) struct Lanes<'a> {
    gpu: &'a Gpu,
    origin: Point,
    /// The step all lanes are at when everything under way has landed.
    step: u64,
}

impl<'a> Lanes<'a> {
    /// The lanes of a card, which are nowhere yet.
    pub fn new(gpu: &'a Gpu) -> Self {
        Lanes { gpu, origin: None, step: 0 }
    }

    /// Begins over from this point.
    pub fn begin(&mut self, origin: Affine) {
        (self.origin, self.step) = (Some(origin), 0);
    }

    /// The step all lanes are at when everything under way has landed.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// A launch of so many steps was sent on its way.
    pub fn advance(&mut self, steps: u32) {
        self.step += u64::from(steps);
    }

    /// Where they must be when everything under way has landed.
    pub fn row(&self) -> Row {
        Row::of_search(self.origin, self.step, self.gpu.shape.spec.group, STRIDE)
    }

    /// The centre of lane 0 at a step.
    fn first(&self, step: u64) -> Point {
        let way = Scalar::from_u64(step).mul(Scalar::from_u64(2 * self.gpu.shape.spec.group as u64 + 1));
        group::add(self.origin, group::multiply(way, Some(Affine::G)))
    }

    /// The centre of a lane at a step.
    pub fn centre(&self, lane: u32, step: u64) -> Point {
        group::add(self.first(step), self.way(lane))
    }

    /// The way from lane 0 to a lane.
    fn way(&self, lane: u32) -> Point {
        lane.checked_sub(1).map(|before| self.gpu.ways()[before as usize])
    }

    /// The words of the centres of some lanes at a step.
    pub fn words(&self, lanes: Range<u32>, step: u64) -> Result<Vec<u32>, Fault> {
        let start = self.first(step).ok_or("the walk has come to the point at infinity")?;
        let first = lanes.start.max(1) as usize - 1;
        let others = add_all(start, &self.gpu.ways()[first..lanes.end as usize - 1])
            .ok_or("two points of the walk meet where lanes begin")?;
        let own = (lanes.start == 0).then_some(start);
        let points: Vec<Affine> = own.into_iter().chain(others).collect();
        Ok(centre_words(&points))
    }

    /// The public keys at places of a launch that began at step `first`, signs left out. Three additions each, and a few
    /// inversions for all of them: cards report thousands of keys a second that pass on their top word alone.
    pub fn keys_at(&self, places: &[Place], first: u64) -> Vec<Point> {
        let strides = self.gpu.strides();
        let run = strides.len() as u64 + 1;
        let mut bases = HashMap::new();
        let mut centres = |place: &Place| {
            let (runs, rest) = ((place.step - first) / run, (place.step - first) % run);
            let base = *bases.entry(runs).or_insert_with(|| self.first(first + runs * run));
            (base, rest.checked_sub(1).map(|at| strides[at as usize]))
        };
        let steps: Vec<(Point, Point)> = places.iter().map(&mut centres).collect();
        let ways = places.iter().map(|place| self.way(place.lane));
        let starts: Vec<(Point, Point)> = add_pairs(&steps).into_iter().zip(ways).collect();
        let entries = places.iter().map(|place| {
            let entry = self.gpu.entries()[place.index.checked_sub(1)? as usize].endomorphism(place.orbit);
            Some(if place.minus { entry.negate() } else { entry })
        });
        let sums: Vec<(Point, Point)> = add_pairs(&starts).into_iter().zip(entries).collect();
        let keys = add_pairs(&sums).into_iter().zip(places);
        keys.map(|(key, place)| key.map(|key| key.endomorphism(place.image))).collect()
    }
}
