//! Where the lanes of a search are: the one place that knows it.
//!
//! Each lane walks from a point of its own, and all go on by (2 h + 1) * G a step. So every centre is known to the host at any
//! step: it can be uploaded anew, compared with what the device has, and the key of any place computed.

use std::collections::HashMap;
use std::ops::Range;

use warpsmith_curve::Affine;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::Place;

use super::{Gpu, centre_words};
use crate::worker::Fault;
use crate::worker::batch_add::add_pairs;
use crate::worker::ends::Stand;
use crate::worker::walks::Walks;

/// The lanes of a walk.
pub(super) struct Lanes<'a> {
    gpu: &'a Gpu,
    walks: Walks,
    /// The step all lanes are at when everything under way has landed.
    step: u64,
}

impl<'a> Lanes<'a> {
    /// The lanes of a card, which are nowhere yet.
    pub fn new(gpu: &'a Gpu) -> Self {
        Lanes { gpu, walks: Walks::new(gpu.shape.spec.group), step: 0 }
    }

    /// Begins over from these points.
    pub fn begin(&mut self, points: &[Affine]) {
        self.walks.begin(points);
        self.step = 0;
    }

    /// A lane begins another walk behind everything under way.
    pub fn replace(&mut self, lane: u32, point: Affine) {
        self.walks.replace(lane, point, self.step);
    }

    /// The step all lanes are at when everything under way has landed.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// A launch of so many steps was sent on its way.
    pub fn advance(&mut self, steps: u32) {
        self.step += u64::from(steps);
    }

    /// Where the lanes began.
    pub fn walks(&self) -> &Walks {
        &self.walks
    }

    /// How many of these lanes walk at a step: the others begin later.
    pub fn walking(&self, lanes: Range<u32>, step: u64) -> u64 {
        lanes.filter(|&lane| self.walks.age(lane, step).is_some()).count() as u64
    }

    /// Where they must be when everything under way has landed.
    pub fn stand(&self) -> Stand {
        Stand::new(self.walks.clone(), self.step)
    }

    /// The centres of lanes at steps, each with its own. A lane whose walk has not begun is at its first point.
    fn centres(&self, at: impl Iterator<Item = (u32, u64)>) -> Vec<Point> {
        let strides = self.gpu.strides();
        let run = strides.len() as u64 + 1;
        let mut runs = HashMap::new();
        let (mut ways, mut firsts) = (Vec::new(), Vec::new());
        for (lane, step) in at {
            let age = self.walks.age(lane, step).unwrap_or(0);
            let base = runs
                .entry(age / run)
                .or_insert_with_key(|runs| group::multiply(self.walks.way(runs * run), Some(Affine::G)));
            ways.push((*base, (age % run).checked_sub(1).map(|at| strides[at as usize])));
            firsts.push(self.walks.first()[lane as usize]);
        }
        let ways = add_pairs(&ways).into_iter();
        add_pairs(&ways.zip(firsts).map(|(way, first)| (way, Some(first))).collect::<Vec<_>>())
    }

    /// The centre of a lane at a step.
    pub fn centre(&self, lane: u32, step: u64) -> Point {
        self.centres(std::iter::once((lane, step)))[0]
    }

    /// The words of the centres of some lanes at a step.
    pub fn words(&self, lanes: Range<u32>, step: u64) -> Result<Vec<u32>, Fault> {
        let points: Option<Vec<Affine>> = self.centres(lanes.map(|lane| (lane, step))).into_iter().collect();
        let points = points.ok_or("a lane has come to the point at infinity")?;
        Ok(centre_words(&points))
    }

    /// The public keys at places, whose steps are those of the worker, signs left out. Three additions each, and a few
    /// inversions for all of them: cards report thousands of keys a second that pass on their top word alone.
    pub fn keys_at(&self, places: &[Place]) -> Vec<Point> {
        let entries = places.iter().map(|place| {
            let entry = self.gpu.entries()[place.index.checked_sub(1)? as usize].endomorphism(place.orbit);
            Some(if place.minus { entry.negate() } else { entry })
        });
        let centres = self.centres(places.iter().map(|place| (place.lane, place.step)));
        let sums: Vec<(Point, Point)> = centres.into_iter().zip(entries).collect();
        let keys = add_pairs(&sums).into_iter().zip(places);
        keys.map(|(key, place)| key.map(|key| key.endomorphism(place.image))).collect()
    }
}
