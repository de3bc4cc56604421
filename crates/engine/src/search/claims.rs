//! What becomes of a worker's hits in its own thread: which of them are claimed to match, and which lanes begin anew.
//!
//! The text of a hit whose digest is known is looked at here. A lane of which a key matches has its origin retired at once and
//! gets a spare one, so that nobody waits for a verdict: the claim goes to verification with the retired origin. What else was
//! hit of the same walk is left alone, since two keys of one origin are related.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use warpsmith_chain::Target;
use warpsmith_curve::walk::Place;

use super::{Job, Show, Wanted};
use crate::error::Error;
use crate::origins::{Maker, Origins, Spare};
use crate::space::{Lease, Root};
use crate::worker::{Batch, Hit, Spot, Worker};

/// A hit that is to be verified, and where it leads back to.
pub(super) struct Claim {
    pub hit: Hit,
    pub source: Root,
    /// Whether it may be shown: nothing else will be of its origin. Salts have none.
    pub may_be_shown: bool,
}

/// What a worker's hits lead back to.
pub(super) enum Roots {
    /// The origins of its lanes, and where spare ones come from; none where nothing is shown and nothing retired.
    Keys { origins: Origins, spares: Option<Spares> },
    /// Its salts.
    Salts(Lease),
    /// Salts it has not been given yet.
    None,
}

/// Spare origins of one worker.
pub(super) struct Spares {
    made: Receiver<Vec<Spare>>,
    stock: Vec<Spare>,
}

/// The first spare origins that are made together, and the most: a search that retires many asks for many.
const FIRST_SPARES: usize = 8;
const MOST_SPARES: usize = 1024;

/// Makes spare origins until nobody takes them any more, twice as many each time.
pub(super) fn make_spares(maker: &Maker, give: &Sender<Vec<Spare>>) -> Result<(), Error> {
    let mut count = FIRST_SPARES;
    while give.send(maker.make(count)?).is_ok() {
        count = (2 * count).min(MOST_SPARES);
    }
    Ok(())
}

impl Spares {
    pub fn new(made: Receiver<Vec<Spare>>) -> Spares {
        Spares { made, stock: Vec::new() }
    }

    /// The next one; none if nobody makes any.
    fn next(&mut self) -> Option<Spare> {
        if self.stock.is_empty() {
            self.stock = self.made.recv().ok()?;
        }
        self.stock.pop()
    }
}

/// No spare origin is to be had: the search ends.
pub(super) struct Dry;

/// The exact test, for all workers of a search.
pub(super) struct Sift<'j> {
    target: &'j dyn Target,
    wanted: Wanted<'j>,
    /// The best score published.
    best: &'j AtomicU32,
    dropped: AtomicU64,
    passed_over: AtomicU64,
}

impl<'j> Sift<'j> {
    pub fn new(job: &Job<'j>, best: &'j AtomicU32) -> Self {
        let (dropped, passed_over) = (AtomicU64::new(0), AtomicU64::new(0));
        Sift { target: job.subject.target(), wanted: job.wanted, best, dropped, passed_over }
    }

    /// The least score that is wanted by now; 0 where none counts.
    pub fn demand(&self) -> u32 {
        self.wanted.demand(self.best.load(Ordering::Relaxed))
    }

    /// Hits that were found here to match nothing.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Hits that likely matched, of walks that had given their match.
    pub fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::Relaxed)
    }

    /// Turns a batch's hits into claims, retires the origins of those that likely match, and takes from what the batch told
    /// as tried what does not count.
    ///
    /// A hit whose digest is not known likely matches. Of those that do not the first is claimed all the same, so that a worker
    /// whose digests are wrong is found out. In a search for the best the best of a batch is enough.
    pub fn claims(
        &self,
        worker: &mut dyn Worker,
        roots: &mut Roots,
        batch: &mut Batch,
    ) -> Result<Vec<Claim>, Dry> {
        self.passed_over.fetch_add(std::mem::take(&mut batch.stale), Ordering::Relaxed);
        let mut hits = std::mem::take(&mut batch.hits);
        let mut claims = Vec::new();
        let patterns = self.wanted.patterns();
        if let Some(patterns) = patterns {
            let matches = |hit: &Hit| {
                hit.digest.is_none_or(|digest| patterns.find(&self.target.encode(&digest)).is_some())
            };
            let before = hits.len();
            let mut wrong = None;
            hits.retain(|hit| {
                let keep = matches(hit);
                wrong = wrong.or((!keep).then_some(*hit));
                keep
            });
            self.dropped.fetch_add((before - hits.len()) as u64, Ordering::Relaxed);
            if let Some(hit) = wrong
                && let Some(source) = roots.of(&hit)
            {
                self.dropped.fetch_sub(1, Ordering::Relaxed);
                claims.push(Claim { hit, source, may_be_shown: false });
            }
        }
        if let Wanted::Best { show: show @ (Show::Better | Show::Ties), .. } = self.wanted {
            hits.retain(|hit| hit.score >= self.demand());
            // Of those that may match nothing all are claimed, or the best of them might keep back one that does.
            if patterns.is_none() || hits.iter().all(|hit| hit.digest.is_some()) {
                let top = hits.iter().map(|hit| hit.score).max();
                hits.retain(|hit| Some(hit.score) == top);
                hits.truncate(if show == Show::Better { 1 } else { hits.len() });
            }
        }
        match roots {
            Roots::Keys { origins, spares: Some(spares) } => {
                // By lane, and of a lane by step.
                hits.sort_by_key(|hit| hit.spot);
                let place = |hit: &Hit| match hit.spot {
                    Spot::Key(place) => Some(place),
                    Spot::Salt(_) => None,
                };
                for walk in hits.chunk_by(|a, b| place(a).map(|p| p.lane) == place(b).map(|p| p.lane)) {
                    let Some(Place { lane, step, .. }) = place(&walk[0]) else { continue };
                    let met =
                        walk.iter().take_while(|hit| place(hit).is_some_and(|p| p.step == step)).count();
                    let spare = spares.next().ok_or(Dry)?;
                    let point = spare.point;
                    // SEC: from here on nothing is told of the walk whose key may be shown.
                    let Some(origin) = origins.retire(lane, spare) else { continue };
                    let not_tried = worker.replace(lane, step, met as u64, point);
                    batch.tried = batch.tried.saturating_sub(not_tried);
                    self.passed_over.fetch_add(walk.len() as u64 - 1, Ordering::Relaxed);
                    claims.push(Claim { hit: walk[0], source: Root::Origin(origin), may_be_shown: true });
                }
            }
            roots => {
                let may_be_shown = matches!(roots, Roots::Salts(_));
                let claim = |hit: &Hit| Some(Claim { hit: *hit, source: roots.of(hit)?, may_be_shown });
                claims.extend(hits.iter().filter_map(claim));
            }
        }
        Ok(claims)
    }
}

impl Roots {
    /// What a hit leads back to, which stays in use; none if it can be no hit of this worker.
    fn of(&self, hit: &Hit) -> Option<Root> {
        match (self, hit.spot) {
            (Roots::Keys { origins, .. }, Spot::Key(place)) => origins.of(place.lane).map(Root::Origin),
            (Roots::Salts(lease), _) => Some(Root::Lease(*lease)),
            (Roots::Keys { .. }, Spot::Salt(_)) | (Roots::None, _) => None,
        }
    }
}
