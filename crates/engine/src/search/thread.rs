//! A worker's thread: it searches, counts and claims.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, select};

use super::claims::{Claim, Roots, Sift};
use super::message::{Claims, Facts, Message};
use super::steady::Track;
use crate::run::pause::Pause;
use crate::space::{Lease, Start};
use crate::worker::Worker;

/// A worker, what its hits lead back to, and how it hears of another lease.
pub(super) struct WorkerThread<'d> {
    pub worker: Box<dyn Worker + 'd>,
    pub roots: Roots,
    pub leases: Receiver<Lease>,
    /// Whether it is to end: a claim of its was wrong, or it stepped aside.
    pub dismissed: &'d AtomicBool,
    /// Closes when the search ends.
    pub over: &'d Receiver<()>,
    /// Holds it between launches.
    pub pause: Option<&'d Pause>,
}

/// Where a worker counts, and what it looks at itself.
pub(super) struct Tally<'t> {
    pub started: Instant,
    pub counter: &'t AtomicU64,
    pub track: &'t Track,
    pub sift: &'t Sift<'t>,
    pub facts: Arc<Facts>,
}

/// Where a worker's thread sends what.
pub(super) struct Ports {
    pub claims: Sender<Claims>,
    pub collector: Sender<Message>,
}

/// Claims that are verified by one thread.
const TOGETHER: usize = 64;

/// A worker's thread: search, count, claim. It waits for nobody but for a lease, and where it claims faster than all that
/// verify.
pub(super) fn work(
    id: usize,
    WorkerThread { mut worker, mut roots, leases, dismissed, over, pause }: WorkerThread<'_>,
    ports: Ports,
    tally: Tally<'_>,
    stop: &AtomicBool,
) {
    let (mut demanded, mut claimed) = (0, 0);
    // Of what was counted, what no check of its walk has confirmed: it does not count any more once the worker is lost.
    let mut unproved = 0;
    let faulty = |fault, unproved| {
        tally.counter.fetch_sub(unproved, Ordering::Relaxed);
        drop(ports.collector.send(Message::Lost { worker: id, fault }));
    };
    if let Roots::None = roots {
        let Some(lease) = next_lease(&leases, over) else { return };
        roots = Roots::Salts(lease);
        if let Err(fault) = worker.start(Start::Salts(lease)) {
            return faulty(fault, unproved);
        }
    }
    loop {
        if let Some(pause) = pause {
            pause.hold(stop);
        }
        if stop.load(Ordering::Relaxed) || dismissed.load(Ordering::Relaxed) {
            return;
        }
        let demand = tally.sift.demand();
        if demand > demanded {
            demanded = demand;
            if let Err(fault) = worker.raise(demand) {
                return faulty(fault, unproved);
            }
        }
        let mut batch = match worker.run() {
            Ok(batch) => batch,
            Err(fault) => return faulty(fault, unproved),
        };
        let Ok(claims) = tally.sift.claims(worker.as_mut(), &mut roots, &mut batch) else { return };
        unproved = worker.unproved();
        let tried = tally.counter.fetch_add(batch.tried, Ordering::Relaxed) + batch.tried;
        tally.track.note(tally.started, Instant::now(), tried);
        claimed += claims.len() as u64;
        for claims in in_pieces(claims) {
            if ports.claims.send(Claims { worker: id, facts: Arc::clone(&tally.facts), claims }).is_err() {
                return;
            }
        }
        if batch.done {
            if ports.collector.send(Message::Done { worker: id, claimed }).is_err() {
                return;
            }
            let Some(lease) = next_lease(&leases, over) else { return };
            roots = Roots::Salts(lease);
            if let Err(fault) = worker.start(Start::Salts(lease)) {
                return faulty(fault, unproved);
            }
        }
    }
}

/// The next lease; none when there will be none. The end of the search is listened for besides: who joined as it ended may lie in
/// the collector's channel, which nobody reads any more, with what would have given the lease.
fn next_lease(leases: &Receiver<Lease>, over: &Receiver<()>) -> Option<Lease> {
    select! {
        recv(leases) -> lease => lease.ok(),
        recv(over) -> _ => None,
    }
}

fn in_pieces(mut claims: Vec<Claim>) -> impl Iterator<Item = Vec<Claim>> {
    std::iter::from_fn(move || {
        let rest = claims.split_off(claims.len().min(TOGETHER));
        let piece = std::mem::replace(&mut claims, rest);
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;

    #[test]
    fn nobody_waits_for_a_lease_beyond_the_end() {
        let (give, leases) = bounded(1);
        let (end, over) = bounded(0);
        give.send(Lease { base: [7; 32], first: 1, last: 2 }).expect("there is room");
        assert!(next_lease(&leases, &over).is_some_and(|lease| lease.first == 1));
        // Whoever would give it is still there, and does not any more.
        drop(end);
        assert!(next_lease(&leases, &over).is_none());
        drop(give);
        assert!(next_lease(&leases, &over).is_none());
    }
}
