//! The second opinion: a hit becomes a match only if libsecp256k1 (for a key), the target and the text say so.

use warpsmith_pattern::Filter;

use super::{Job, Wanted};
use crate::recover::{Candidate, recompute};
use crate::space::{Source, Space};
use crate::worker::{Hit, Numbering};

/// A hit that was confirmed.
pub(crate) struct Confirmed {
    /// Which pattern, or how high a score.
    pub why: u32,
    pub address: String,
    pub candidate: Candidate,
}

impl Confirmed {
    /// The salt, if it is one.
    pub fn salt(&self) -> Option<&[u8; 32]> {
        match &self.candidate {
            Candidate::Salt(salt) => Some(salt),
            Candidate::Key(_) => None,
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
    numbering: Option<&Numbering>,
    hit: &Hit,
    job: &Job<'_>,
    filter: &Filter,
) -> Verdict {
    let (digest, candidate) = match recompute(source, space, numbering, hit, job.subject) {
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
        Some(why) => Verdict::Match(Box::new(Confirmed { why, address, candidate })),
        None if near(filter, &digest.words()) => Verdict::False,
        None => Verdict::Wrong(format!("{:?} is not in the filter", hit.spot)),
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
