//! The second opinion: a hit becomes a match only if libsecp256k1 (for a key), the target and the text say so.

use secp256k1::PublicKey;
use warpsmith_chain::Digest;
use warpsmith_pattern::Filter;

use crate::origin::{Recovered, Secret, public_point};
use crate::search::{Job, Wanted};
use crate::space::{Source, Space, Subject};
use crate::split::Split;
use crate::worker::{Hit, Shape, Spot};

/// A hit that was confirmed.
pub(crate) struct Confirmed {
    /// Which pattern, or how high a score.
    pub why: u32,
    pub address: String,
    pub found: Found,
}

/// What was found.
pub(crate) enum Found {
    Key { public_key: PublicKey, secret: Option<Secret>, split: Option<Split> },
    Salt { salt: [u8; 32] },
}

impl Confirmed {
    /// The salt, if it is one.
    pub fn salt(&self) -> Option<&[u8; 32]> {
        match &self.found {
            Found::Salt { salt } => Some(salt),
            Found::Key { .. } => None,
        }
    }
}

/// What a hit turned out to be.
pub(crate) enum Verdict {
    /// It is wanted.
    Match(Box<Confirmed>),
    /// It passed the filter as filters may, and matches nothing.
    False,
    /// The candidate does not even pass the filter: the device computes wrongly.
    Wrong(String),
}

/// How far a device's idea of the top 64 bits may be off before a hit counts as wrong.
const TOLERANCE: u64 = 1 << 40;

/// Recomputes a hit's candidate from its source alone and looks at its text.
pub(crate) fn verify(
    source: &Source,
    space: &Space,
    shape: Option<&Shape>,
    hit: &Hit,
    job: &Job<'_>,
    filter: &Filter,
) -> Verdict {
    let (digest, found) = match recompute(source, space, shape, hit, job.subject) {
        Ok(both) => both,
        Err(what) => return Verdict::Wrong(what),
    };
    if hit.digest.is_some_and(|told| told != digest) {
        return Verdict::Wrong(format!("{:?} has another digest", hit.spot));
    }
    let address = job.subject.target().encode(&digest);
    let why = match &job.wanted {
        Wanted::Patterns(patterns) => patterns.find(&address).map(|pattern| pattern as u32),
        Wanted::Best { score, .. } => {
            let score = score.of(&digest);
            if score < hit.score {
                return Verdict::Wrong(format!("{:?} scores {score}, not {}", hit.spot, hit.score));
            }
            Some(score)
        }
    };
    match why {
        Some(why) => Verdict::Match(Box::new(Confirmed { why, address, found })),
        None if near(filter, &digest.words()) => Verdict::False,
        None => Verdict::Wrong(format!("{:?} is not in the filter", hit.spot)),
    }
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

/// Whether the filter accepts the digest, or one whose top bits differ by no more than the tolerance.
fn near(filter: &Filter, words: &[u64; 4]) -> bool {
    // Ranges are sorted and disjoint: one may hold the value, its neighbours may lie near it.
    let after = filter.top.partition_point(|i| i.first <= words[0]);
    let around = after.saturating_sub(1)..(after + 1).min(filter.top.len());
    let edges = [filter.top.first(), filter.top.last()].into_iter().flatten();
    let near_top = filter.top[around].iter().chain(edges).any(|i| {
        let first = i.first.wrapping_sub(TOLERANCE);
        words[0].wrapping_sub(first) <= (i.last - i.first).saturating_add(2 * TOLERANCE)
    });
    near_top || filter.terms.iter().any(|t| t.accepts(words))
}
