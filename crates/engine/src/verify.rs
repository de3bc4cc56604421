//! The second opinion: a hit becomes a match only if libsecp256k1 and the text say so.

use secp256k1::PublicKey;
use warpsmith_curve::walk::Hit;
use warpsmith_pattern::{Filter, Patterns};
use warpsmith_target::KeyTarget;

use crate::join::Split;
use crate::origin::{Origin, Recovered, Secret, public_point};
use crate::worker::Shape;

/// A hit that was confirmed.
pub(crate) struct Confirmed {
    pub pattern: usize,
    pub address: String,
    pub public_key: PublicKey,
    pub secret: Option<Secret>,
    pub split: Option<Split>,
}

/// What a hit turned out to be.
pub(crate) enum Verdict {
    /// It matches a pattern.
    Match(Box<Confirmed>),
    /// It passed the filter as filters may, and matches nothing.
    False,
    /// The key at that place does not even pass the filter: the device computes wrongly.
    Wrong(String),
}

/// How far a device's idea of the top 64 bits may be off before a hit counts as wrong.
const TOLERANCE: u64 = 1 << 40;

/// Recomputes the key at a hit's place from the origin alone and looks at its text.
pub(crate) fn verify(
    origin: &Origin,
    shape: &Shape,
    hit: &Hit,
    target: &dyn KeyTarget,
    patterns: &Patterns,
    filter: &Filter,
) -> Verdict {
    let place = &hit.place;
    let Some(recovered) = origin.recover(place.offset(shape.half, shape.stride), place.image) else {
        return Verdict::Wrong(format!("{place:?} is not a key"));
    };
    let (public_key, secret, split) = match recovered {
        Recovered::Key(secret) => (secret.public_key(), Some(secret), None),
        Recovered::Split { public, offset } => {
            let split = Split { offset: offset.to_be_bytes(), endo: place.image, negate: false };
            (public, None, Some(split))
        }
    };
    let point = public_point(&public_key);
    if let Some(x) = hit.x
        && x.to_be_bytes() != point.x
    {
        return Verdict::Wrong(format!("{place:?} has another x coordinate"));
    }
    let digest = target.digest(&point);
    let address = target.encode(&digest);
    match patterns.find(&address) {
        Some(pattern) => Verdict::Match(Box::new(Confirmed { pattern, address, public_key, secret, split })),
        None if near(filter, &digest.words()) => Verdict::False,
        None => Verdict::Wrong(format!("{place:?} is not in the filter")),
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
    near_top || filter.accepts(words)
}
