//! Exactly one piece of work, for somebody who keeps the books elsewhere: a unit of keys around a public point, or of salts.
//!
//! A unit of keys is a stretch of groups: group j has the centre `P + j * (2h + 1) * G`, and its keys are those that a walk with
//! tables of h entries finds around it. A unit says what h is, so that it means the same keys on every device. All of them are
//! looked at, and none else. What is told of a unit is where in it something lies ([`Spot`](crate::worker::Spot) in 64 bits), for
//! two reasons:
//!
//! - a *match* of what was asked for;
//! - a *share*: the leading bits of the digest are zero. It costs one more range of the very filter that searches, nobody can have
//!   many without doing the work, and how many there are is known beforehand. Shares are the proof that a unit was done.
//!
//! `runner` does units on one device, `check` verifies what is told of them without trusting who did them. `range` does the units of
//! a scan, which are proved by keys that were planted in them.

mod check;
mod range;
mod runner;
#[cfg(test)]
mod tests;

use secp256k1::PublicKey;
use warpsmith_chain::Form;
use warpsmith_curve::Scalar;
use warpsmith_curve::walk::Place;

pub use check::{UnitOrigin, check_spots, settle};
pub use range::{RangeRunner, RangeStart, RangeUnit};
pub use runner::{Covered, Outfit, UnitRunner};

use crate::origin::affine;
use crate::origins::moved_by;
use crate::worker::MOST_HALF;

/// One piece of work. See [`UnitRunner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Keys around a point.
    Keys(KeyUnit),
    /// Salts of a mask.
    Salts(SaltUnit),
}

impl Unit {
    /// How many candidates it has.
    pub fn candidates(&self) -> u128 {
        match self {
            Unit::Keys(unit) => u128::from(unit.steps) * u128::from(unit.keys_of_step()),
            Unit::Salts(unit) => u128::from(unit.last - unit.first) + 1,
        }
    }

    /// Number of groups, or of salts: what [`Unit::stretch`] counts by.
    pub fn length(&self) -> u64 {
        match self {
            Unit::Keys(unit) => unit.steps,
            Unit::Salts(unit) => (unit.last - unit.first).saturating_add(1),
        }
    }

    /// Returns the part of this unit from group or salt `first` on, `length` of them long, and how much less its spots are than those
    /// of the same candidates in this unit; none if it has no such part.
    pub fn stretch(&self, first: u64, length: u64) -> Option<(Unit, u64)> {
        let end = first.checked_add(length)?;
        if length == 0 || end > self.length() {
            return None;
        }
        match self {
            Unit::Keys(unit) => {
                let way = Scalar::from_u64(first).mul(Scalar::from_u64(2 * u64::from(unit.half) + 1));
                let point = match first {
                    0 => unit.point,
                    _ => {
                        let moved = moved_by(affine(&unit.point), &[way]).into_iter().next()??;
                        let bytes = [&[4][..], &moved.x.to_be_bytes(), &moved.y.to_be_bytes()].concat();
                        PublicKey::from_slice(&bytes).ok()?
                    }
                };
                Some((Unit::Keys(KeyUnit { point, steps: length, ..*unit }), first << LOW_BITS))
            }
            Unit::Salts(unit) => {
                let from = unit.first + first;
                let stretch = SaltUnit { first: from, last: from + (length - 1), ..*unit };
                Some((Unit::Salts(stretch), first))
            }
        }
    }

    /// How far a spot lies in it, from 0 to 1; none if it is not one of its spots.
    pub fn part(&self, spot: u64) -> Option<f64> {
        match self {
            Unit::Keys(unit) => unit.place(spot).map(|place| {
                let within = unit.rank(&place) as f64 / unit.keys_of_step() as f64;
                (place.step as f64 + within) / unit.steps as f64
            }),
            Unit::Salts(unit) => unit.counter(spot).map(|_| spot as f64 / self.candidates() as f64),
        }
    }
}

/// Keys around a point whose discrete logarithm nobody needs to know. See [`UnitRunner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUnit {
    /// The first centre.
    pub point: PublicKey,
    /// Table entries of a group.
    pub half: u32,
    /// Powers of lambda on an entry: 3 for the orbit walk, else 1.
    pub orbits: u8,
    /// Whether a key and its negative are two candidates.
    pub signs: bool,
    /// Groups.
    pub steps: u64,
}

/// Bits of a spot below the step: index, sign of the entry, orbit, image, sign of the key.
const LOW_BITS: u32 = 17;

impl KeyUnit {
    /// The most groups a unit can have.
    pub const MOST_STEPS: u64 = 1 << (64 - LOW_BITS);

    /// Returns the powers of lambda on an entry, and whether a key and its negative are two candidates: alike on every device, since
    /// both follow from what is hashed.
    pub fn relatives(form: Form) -> (u8, bool) {
        (if form == Form::X { 3 } else { 1 }, form.signs())
    }

    /// Whether these numbers make a unit.
    pub fn is_sound(&self) -> bool {
        (1..=MOST_HALF).contains(&self.half)
            && [1, 3].contains(&self.orbits)
            && (1..=Self::MOST_STEPS).contains(&self.steps)
    }

    /// Candidates of one group.
    pub fn keys_of_step(&self) -> u64 {
        let points = 2 * u64::from(self.half) * u64::from(self.orbits) + 1;
        points * 3 * if self.signs { 2 } else { 1 }
    }

    /// How many candidates of its group have lower spots.
    fn rank(&self, place: &Place) -> u64 {
        let signs = if self.signs { 2 } else { 1 };
        let entry = match u64::from(place.index) {
            0 => 0,
            index => {
                ((index - 1) * 2 + u64::from(place.minus)) * u64::from(self.orbits)
                    + u64::from(place.orbit)
                    + 1
            }
        };
        (entry * 3 + u64::from(place.image)) * signs + u64::from(place.negate)
    }

    /// A place in 64 bits; the lane, which is the device's own business, is not in it.
    fn spot(place: &Place) -> u64 {
        // The centre has no entry that could have a sign or an orbit.
        let entry = if place.index == 0 {
            0
        } else {
            u64::from(place.index) << 3 | u64::from(place.minus) << 2 | u64::from(place.orbit)
        };
        place.step << LOW_BITS | entry << 3 | u64::from(place.image) << 1 | u64::from(place.negate)
    }

    /// The place that a spot means; none if the unit has no such place, or if it is written in another way than [`Self::spot`]
    /// writes it.
    fn place(&self, spot: u64) -> Option<Place> {
        let place = Place {
            lane: 0,
            step: spot >> LOW_BITS,
            index: (spot >> 6 & 0x7ff) as u32,
            minus: spot >> 5 & 1 == 1,
            orbit: (spot >> 3 & 3) as u8,
            image: (spot >> 1 & 3) as u8,
            negate: spot & 1 == 1,
        };
        let is_inside = place.step < self.steps
            && place.index <= self.half
            && place.orbit < self.orbits
            && place.image < 3
            && (self.signs || !place.negate);
        (is_inside && Self::spot(&place) == spot).then_some(place)
    }
}

/// A stretch of salts: those of the target's mask with these counters. See [`UnitRunner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaltUnit {
    /// What the free bytes hold that the counter does not reach.
    pub base: [u8; 32],
    /// The first counter.
    pub first: u64,
    /// The last one, not below the first.
    pub last: u64,
}

impl SaltUnit {
    fn counter(&self, spot: u64) -> Option<u64> {
        self.first.checked_add(spot).filter(|counter| *counter <= self.last)
    }
}
