//! From what a worker means by a hit back to the key or salt, by libsecp256k1 and the reference code alone.

use secp256k1::PublicKey;
use warpsmith_chain::Digest;

use crate::origin::{Recovered, public_point};
use crate::space::{Root, Subject};
use crate::worker::{Hit, Numbering, Spot};

/// A key or a salt, made again on the host.
pub(crate) enum Candidate {
    Key { recovered: Recovered, public: PublicKey },
    Salt([u8; 32]),
}

/// The candidate a hit means, and its digest by the reference code.
pub(crate) fn recompute(
    source: &Root,
    numbering: Option<&Numbering>,
    hit: &Hit,
    subject: Subject<'_>,
) -> Result<(Digest, Candidate), String> {
    match (hit.spot, source, numbering, subject) {
        (Spot::Key(place), Root::Origin(origin), Some(numbering), Subject::Key(target)) => {
            let recovered = origin.recover(place.offset(numbering.half), place.image, place.negate);
            let recovered = recovered.ok_or_else(|| format!("{place:?} is not a key"))?;
            let public = recovered.public_key();
            Ok((target.digest(&public_point(&public)), Candidate::Key { recovered, public }))
        }
        (Spot::Salt(counter), Root::Lease(lease), _, Subject::Salt(target)) => {
            if !(lease.first..=lease.last).contains(&counter) {
                return Err(format!("salt {counter} is not in the stretch it was given"));
            }
            let salt = target.salted().salt.fill(&lease.base, counter);
            Ok((target.digest(&salt), Candidate::Salt(salt)))
        }
        (spot, ..) => Err(format!("{spot:?} is no candidate of this search")),
    }
}
