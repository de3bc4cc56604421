//! From what a worker means by a hit back to the key or salt, by libsecp256k1 and the reference code alone.

use secp256k1::PublicKey;
use warpsmith_chain::Digest;

use crate::origin::{Recovered, Secret, public_point};
use crate::space::{Source, Space, Subject};
use crate::split::Split;
use crate::worker::{Hit, Shape, Spot};

/// What was found.
pub(crate) enum Found {
    Key { public_key: PublicKey, secret: Option<Secret>, split: Option<Split> },
    Salt { salt: [u8; 32] },
}

/// The candidate a hit means, and its digest by the reference code.
pub(crate) fn recompute(
    source: &Source,
    space: &Space,
    shape: Option<&Shape>,
    hit: &Hit,
    subject: Subject<'_>,
) -> Result<(Digest, Found), String> {
    match (hit.spot, source, space, shape, subject) {
        (Spot::Key(place), Source::Origin(origin), _, Some(shape), Subject::Key(target)) => {
            let offset = place.offset(shape.half, shape.stride);
            let recovered = origin.recover(offset, place.image, place.negate);
            let recovered = recovered.ok_or_else(|| format!("{place:?} is not a key"))?;
            let (public_key, secret, split) = match recovered {
                Recovered::Key(secret) => (secret.public_key(), Some(secret), None),
                Recovered::Split { public, offset } => {
                    let split =
                        Split { offset: offset.to_be_bytes(), endo: place.image, negate: place.negate };
                    (public, None, Some(split))
                }
            };
            let digest = target.digest(&public_point(&public_key));
            Ok((digest, Found::Key { public_key, secret, split }))
        }
        (Spot::Salt(counter), Source::Lease(lease), Space::Salts(salts), _, Subject::Salt(target)) => {
            if !(lease.first..=lease.last).contains(&counter) {
                return Err(format!("salt {counter} is not in the stretch it was given"));
            }
            let salt = salts.salt(counter);
            Ok((target.digest(&salt), Found::Salt { salt }))
        }
        (spot, ..) => Err(format!("{spot:?} is no candidate of this search")),
    }
}
