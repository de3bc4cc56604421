//! One lane's group, point by point with complete additions: for the groups in which a centre meets a table
//! entry, an image of one, or infinity. Slow, exact, and next to never needed.

use super::place::KEYS_PER_CENTRE;
use super::visit::OneByOne;
use crate::group::{self, Affine, Point};

/// Visits every key of the group around `centre`; returns how many there are. Infinity is no key.
pub(super) fn group(entries: &[Affine], lane: u32, centre: Point, visitor: &mut impl OneByOne) -> u64 {
    let mut keys = 0;
    for orbit in 0..3 {
        points(entries, orbit, centre, |index, minus, point| {
            // The centre belongs to no orbit: it is visited once.
            if index > 0 || orbit == 0 {
                visitor.point(lane, index, minus, orbit, point.x);
                keys += KEYS_PER_CENTRE;
            }
        });
    }
    keys
}

/// Visits the points centre +- lambda^orbit times each entry, the centre itself first. Infinity is none.
pub(super) fn points(entries: &[Affine], orbit: u8, centre: Point, mut visit: impl FnMut(u32, bool, Affine)) {
    let mut visit = |index, minus, point: Point| {
        if let Some(point) = point {
            visit(index, minus, point);
        }
    };
    visit(0, false, centre);
    for (index, entry) in (1..).zip(entries) {
        let image = entry.endomorphism(orbit);
        visit(index, false, group::add(centre, Some(image)));
        visit(index, true, group::add(centre, Some(image.negate())));
    }
}
