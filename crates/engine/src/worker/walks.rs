//! The walks of a worker's lanes: where each began, and at which step of the worker.
//!
//! All lanes of a worker take their steps together, but each walks from a point of its own. A lane whose origin was retired
//! begins another walk at the step that comes next, and what is found of the steps before belongs to nobody.

use warpsmith_curve::{Affine, Scalar};

/// Where the lanes began.
#[derive(Clone)]
pub(crate) struct Walks {
    /// Table entries of a group.
    half: u32,
    /// The first point of each lane's walk.
    first: Vec<Affine>,
    /// The step of the worker that is the first of each.
    born: Vec<u64>,
}

impl Walks {
    /// Lanes that are nowhere yet, with groups of so many entries.
    pub fn new(half: u32) -> Walks {
        Walks { half, first: Vec::new(), born: Vec::new() }
    }

    /// All lanes begin, at step 0.
    pub fn begin(&mut self, points: &[Affine]) {
        self.first = points.to_vec();
        self.born = vec![0; points.len()];
    }

    /// A lane begins another walk at this step.
    pub fn replace(&mut self, lane: u32, point: Affine, step: u64) {
        (self.first[lane as usize], self.born[lane as usize]) = (point, step);
    }

    /// The first point of each lane's walk.
    pub fn first(&self) -> &[Affine] {
        &self.first
    }

    /// The step of a lane's walk at this step of the worker; none if it had not begun, or if there is no such lane.
    pub fn age(&self, lane: u32, step: u64) -> Option<u64> {
        step.checked_sub(*self.born.get(lane as usize)?)
    }

    /// The step of the worker at this step of a lane's walk.
    pub fn step(&self, lane: u32, age: u64) -> u64 {
        self.born[lane as usize] + age
    }

    /// How far so many steps lead.
    pub fn way(&self, steps: u64) -> Scalar {
        Scalar::from_u64(steps).mul(Scalar::from_u64(2 * u64::from(self.half) + 1))
    }
}
