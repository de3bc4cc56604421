//! How devices join a search, and how their workers begin.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use warpsmith_chain::Recipe;
use warpsmith_pattern::Filter;

use super::Job;
use super::claims::{Roots, Sift, Spares};
use super::message::{Claims, Facts, Message, Slot};
use super::steady::Track;
use super::thread::{Ports, Tally, WorkerThread, work};
use crate::error::Result;
use crate::later::warm;
use crate::origins::{Maker, Spare};
use crate::run::pool::{Closed, Entry, PoolEvent, Refusal, Work};
use crate::run::session::Member;
use crate::selftest::prove_program;
use crate::space::Start;
use crate::worker::{Backend, Fault, Held, Search, Worker, suits};

/// What all devices of a search have in common.
pub(super) struct SearchWork<'c> {
    pub job: &'c Job<'c>,
    pub recipe: &'c Recipe,
    pub maker: &'c Maker,
    /// Where spare origins come from; none where none are retired.
    pub spares: Option<Receiver<Vec<Spare>>>,
    pub sift: &'c Sift<'c>,
    pub stop: &'c AtomicBool,
    /// Closes when the search ends.
    pub over: Receiver<()>,
    pub claims: Sender<Claims>,
    pub collector: Sender<Message>,
}

impl Work for SearchWork<'_> {
    fn enlist(&self, entry: Entry<'_>) {
        let device = entry.device();
        let filter = Arc::new(self.job.wanted.filter(device.max_false(self.recipe), 0));
        let search = Search::new(self.recipe, &filter);
        if let Err(why) = suits(device.as_ref(), &search, self.job.wanted.odds(0)) {
            return entry.refuse(Refusal::Unable(why));
        }
        let prove =
            || prove_program(device.as_ref(), self.job.subject, &search).map(drop).map_err(Refusal::Failed);
        let Some(held) = entry.prepare(&|| warm(&device, self.recipe, &filter), &prove) else { return };
        entry.spread(device.workers(), held, &|held, entry| {
            self.serve(device.as_ref(), &search, &filter, held, entry);
        });
    }

    fn report(&self, event: PoolEvent) -> std::result::Result<(), Closed> {
        self.collector.send(Message::Pool(event)).map_err(|_| Closed)
    }
}

impl SearchWork<'_> {
    /// Makes a worker, has it join, and works until the search ends.
    fn serve(
        &self,
        device: &dyn Backend,
        search: &Search<'_>,
        filter: &Arc<Filter>,
        held: Held,
        entry: Entry<'_>,
    ) {
        let (give, leases) = bounded(1);
        let made = match device.worker(search) {
            Ok(worker) => self.begin(worker),
            Err(fault) => Ok(Err(fault)),
        };
        let (worker, roots) = match made {
            Ok(Ok(begun)) => begun,
            Ok(Err(what)) => return entry.lose(what),
            Err(error) => return drop(self.report(PoolEvent::Failed(error))),
        };
        // The worker keeps it open from here on; held any longer, a card that fails could not be opened anew.
        drop(held);
        let facts = Facts { device: device.id(), numbering: worker.numbering(), filter: Arc::clone(filter) };
        let (member, track) = (Member::new(device), Arc::new(Track::default()));
        let (counter, dismissed) = (Arc::clone(&member.counter), Arc::clone(&member.dismissed));
        let slot = Slot::new(Arc::clone(&track), give);
        let started = Instant::now();
        let tell = || self.collector.send(Message::Joined(Box::new((member, slot)))).is_ok();
        let Some(id) = entry.join(tell) else { return };
        let ports = Ports { claims: self.claims.clone(), collector: self.collector.clone() };
        let tally =
            Tally { started, counter: &counter, track: &track, sift: self.sift, facts: Arc::new(facts) };
        let (over, pause, dismissed) = (&self.over, self.job.pause, dismissed.as_ref());
        let worker = WorkerThread { worker, roots, leases, dismissed, over, pause };
        work(id, worker, ports, tally, self.stop);
    }

    /// Draws the origins of a worker's lanes and gives it their points; one that searches salts waits for its first. An error only
    /// where none can be drawn.
    fn begin<'d>(&self, mut worker: Box<dyn Worker + 'd>) -> Result<std::result::Result<Begun<'d>, Fault>> {
        let Some(numbering) = worker.numbering() else { return Ok(Ok((worker, Roots::None))) };
        let (origins, points) = self.maker.ledger(numbering.lanes as usize)?;
        let spares = self.spares.clone().map(Spares::new);
        let started = worker.start(Start::Points(&points));
        Ok(started.map(|()| (worker, Roots::Keys { origins, spares })))
    }
}

/// A worker, and what its hits lead back to.
type Begun<'d> = (Box<dyn Worker + 'd>, Roots);
