//! One lane's group, point by point with complete additions: for the groups in which a centre meets a table
//! entry, an image of one, or infinity. Slow, exact, and next to never needed. `generator` is what the table has multiples of.

use super::place::KEYS_PER_CENTRE;
use super::table::step_point;
use super::visit::OneByOne;
use crate::group::{self, Affine, Point};

/// Visits every key of the group around `centre`; returns how many there are. Infinity is no key.
pub(super) fn group(
    generator: Affine,
    half: u32,
    lane: u32,
    centre: Point,
    visitor: &mut impl OneByOne,
) -> u64 {
    let mut keys = 0;
    for orbit in 0..3 {
        points(generator, half, orbit, centre, |index, minus, point| {
            // The centre belongs to no orbit: it is visited once.
            if index > 0 || orbit == 0 {
                visitor.point(lane, index, minus, orbit, point.x);
                keys += KEYS_PER_CENTRE;
            }
        });
    }
    keys
}

/// Visits the points centre +- lambda^orbit * i*G, the centre itself first. Infinity is none.
pub(super) fn points(
    generator: Affine,
    half: u32,
    orbit: u8,
    centre: Point,
    mut visit: impl FnMut(u32, bool, Affine),
) {
    let mut visit = |index, minus, point: Point| {
        if let Some(point) = point {
            visit(index, minus, point);
        }
    };
    visit(0, false, centre);
    let mut entry = None;
    for index in 1..=half {
        entry = group::add(entry, Some(generator));
        let image = entry.map(|p| p.endomorphism(orbit));
        visit(index, false, group::add(centre, image));
        visit(index, true, group::add(centre, image.map(Affine::negate)));
    }
}

/// The centre after `centre`.
pub(super) fn next(generator: Affine, half: u32, centre: Point) -> Point {
    group::add(centre, Some(step_point(generator, half)))
}
