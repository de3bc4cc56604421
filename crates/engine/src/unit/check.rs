//! What somebody else says of a unit, verified: shares by our own arithmetic, matches by libsecp256k1.

use secp256k1::PublicKey;
use warpsmith_chain::{Digest, PublicPoint};
use warpsmith_curve::Affine;

use super::{KeyUnit, SaltUnit, Unit};
use crate::error::{Error, Result};
use crate::origin::{Origin, Secret, affine};
use crate::origins::moved_by;
use crate::recover::recompute;
use crate::search::{Match, Wanted, Why, found_of};
use crate::space::{Lease, Root, Subject};
use crate::worker::{Hit, Numbering, Spot};

/// The digests at these spots of a unit; none where the unit has no such spot, or no key there.
///
/// By our own additions, which share inversions: some microseconds a spot. Nothing may be shown to anybody on the strength of
/// them; see [`settle`]. Spots come from [`UnitRunner`](crate::UnitRunner).
pub fn check_spots(unit: &Unit, subject: Subject<'_>, spots: &[u64]) -> Vec<Option<Digest>> {
    match (unit, subject) {
        (Unit::Keys(unit), Subject::Key(target)) => {
            let places: Vec<_> = spots.iter().map(|&spot| unit.place(spot)).collect();
            let ways: Vec<_> = places.iter().flatten().map(|place| place.offset(unit.half)).collect();
            let mut points = moved_by(affine(&unit.point), &ways).into_iter();
            let digest = |place: &Option<_>| {
                let place: &warpsmith_curve::walk::Place = place.as_ref()?;
                let point = points.next().flatten()?.endomorphism(place.image);
                Some(target.digest(&public(if place.negate { point.negate() } else { point })))
            };
            places.iter().map(digest).collect()
        }
        (Unit::Salts(unit), Subject::Salt(target)) => {
            let mask = &target.salted().salt;
            let digest = |&spot: &u64| Some(target.digest(&mask.fill(&unit.base, unit.counter(spot)?)));
            spots.iter().map(digest).collect()
        }
        _ => vec![None; spots.len()],
    }
}

pub(super) fn public(point: Affine) -> PublicPoint {
    PublicPoint { x: point.x.to_be_bytes(), y: point.y.to_be_bytes() }
}

/// What is known at home of a unit that others work on. See [`UnitRunner`](crate::UnitRunner).
pub enum UnitOrigin {
    /// The logarithm of its point, or of what was added to an owner's key to get it.
    Key {
        /// The secret.
        secret: Secret,
        /// The owner's key, where there is one.
        split: Option<PublicKey>,
        /// How the unit numbers its keys.
        unit: KeyUnit,
    },
    /// Nothing is secret about salts.
    Salt(SaltUnit),
}

/// Makes a result of a spot, from the secret and by libsecp256k1 alone. An error, and no result, if what lies there is not wanted;
/// of scores, only those above `beat` are. Spots come from [`UnitRunner`](crate::UnitRunner).
pub fn settle(
    subject: Subject<'_>,
    wanted: Wanted<'_>,
    beat: u32,
    origin: UnitOrigin,
    spot: u64,
    device: &str,
) -> Result<Match> {
    let wrong = |what: &str| Error::Join(format!("a result of {device} is false: {what}"));
    let (root, numbering, spot) = match origin {
        UnitOrigin::Key { secret, split, unit } => {
            let place = unit.place(spot).ok_or_else(|| wrong("the unit has no such place"))?;
            let KeyUnit { half, orbits, signs, .. } = unit;
            let numbering = Numbering { half, lanes: 1, orbits, signs };
            (Root::Origin(Origin::new(secret, split)), Some(numbering), Spot::Key(place))
        }
        UnitOrigin::Salt(unit) => {
            let counter = unit.counter(spot).ok_or_else(|| wrong("the unit has no such salt"))?;
            let SaltUnit { base, first, last } = unit;
            (Root::Lease(Lease { base, first, last }), None, Spot::Salt(counter))
        }
    };
    let hit = Hit { spot, digest: None, score: 0 };
    let (digest, candidate) =
        recompute(&root, numbering.as_ref(), &hit, subject).map_err(|what| wrong(&what))?;
    let address = subject.target().encode(&digest);
    let why = Why::of(&wanted, &address, &digest);
    let why = why.filter(|why| !matches!(why, Why::Score { score, .. } if *score <= beat));
    let why = why.ok_or_else(|| wrong("it does not match"))?;
    Ok(found_of(subject, device, candidate, address, why))
}
