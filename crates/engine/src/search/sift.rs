//! The text of hits whose digest is known, looked at in the worker's own thread.
//!
//! A filter may pass nearly everything: the end of a base58 text is a checksum, of which no bit of the digest tells. The
//! collector recomputes each hit it is sent, so such hits would keep it busy and all workers waiting. A worker on the
//! processor has the digest, so its thread writes the text and drops what matches nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use warpsmith_chain::{Digest, Target};
use warpsmith_pattern::Patterns;

use super::{Job, Wanted};
use crate::worker::Hit;

/// The exact test, for all workers of a search.
pub(super) struct Sift<'j> {
    target: &'j dyn Target,
    /// None in a search for the best.
    patterns: Option<&'j Patterns>,
    dropped: AtomicU64,
}

impl<'j> Sift<'j> {
    pub fn new(job: &Job<'j>) -> Self {
        let patterns = match job.wanted {
            Wanted::Patterns(patterns) => Some(patterns),
            Wanted::Best { .. } => None,
        };
        Sift { target: job.subject.target(), patterns, dropped: AtomicU64::new(0) }
    }

    /// Drops hits that match nothing, all but the first: the collector recomputes that, so a worker whose digests are
    /// wrong is still found out. Returns whether one of them likely matches, as those whose digest is not known do if the
    /// filter is `exact`.
    pub fn sift(&self, hits: &mut Vec<Hit>, exact: bool) -> bool {
        let Some(patterns) = self.patterns else { return false };
        let matches = |digest: &Digest| patterns.find(&self.target.encode(digest)).is_some();
        let (before, mut first, mut likely) = (hits.len(), true, false);
        hits.retain(|hit| {
            let known = hit.digest.map(|digest| matches(&digest));
            likely |= known.unwrap_or(exact);
            known.unwrap_or(true) || std::mem::take(&mut first)
        });
        self.dropped.fetch_add((before - hits.len()) as u64, Ordering::Relaxed);
        likely
    }

    /// How many were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
