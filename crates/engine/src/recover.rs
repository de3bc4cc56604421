//! From what a worker means by a hit back to the key or salt, by libsecp256k1 and the reference code alone.

use warpsmith_chain::Digest;

use crate::origin::{Recovered, public_point};
use crate::space::{Source, Space, Subject};
use crate::worker::{Hit, Numbering, Spot};

/// A key or a salt, made again on the host.
pub(crate) enum Candidate {
    Key(Recovered),
    Salt([u8; 32]),
}

/// The candidate a hit means, and its digest by the reference code.
pub(crate) fn recompute(
    source: &Source,
    space: &Space,
    numbering: Option<&Numbering>,
    hit: &Hit,
    subject: Subject<'_>,
) -> Result<(Digest, Candidate), String> {
    match (hit.spot, source, space, numbering, subject) {
        (Spot::Key(place), Source::Origin(origin), _, Some(numbering), Subject::Key(target)) => {
            let offset = place.offset(numbering.half, numbering.stride);
            let recovered = origin.recover(offset, place.image, place.negate);
            let recovered = recovered.ok_or_else(|| format!("{place:?} is not a key"))?;
            let digest = target.digest(&public_point(&recovered.public_key()));
            Ok((digest, Candidate::Key(recovered)))
        }
        (Spot::Salt(counter), Source::Lease(lease), Space::Salts(salts), _, Subject::Salt(target)) => {
            if !(lease.first..=lease.last).contains(&counter) {
                return Err(format!("salt {counter} is not in the stretch it was given"));
            }
            let salt = salts.salt(counter);
            Ok((target.digest(&salt), Candidate::Salt(salt)))
        }
        (spot, ..) => Err(format!("{spot:?} is no candidate of this search")),
    }
}
