//! A scanner's thread: it takes batches from the planner, looks survivors up, and sends the results to the collector.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use warpsmith_chain::KeyType;
use warpsmith_curve::Scalar;
use warpsmith_store::{Batch, Map, Planner, Record, U256};

use super::{ScanJob, ScanTargets};
use crate::error::Result;
use crate::run::pause::{NAP, Pause};
use crate::run::pool::PoolEvent;
use crate::run::session::Member;
use crate::run::threads::in_threads;
use crate::worker::Fault;
use crate::worker::scanner::{Proof, Scanner, Survivor};

/// Survivors that are worth a thread to look them up.
const FEW_SURVIVORS: usize = 2048;

/// A survivor that is wanted, with what says so.
type Confirmed = (Survivor, Vec<(&'static KeyType, Record)>);

/// What was found in a batch, and what must hold before it counts.
type Covered = (Vec<Confirmed>, Option<Proof>);

/// A message to the collector.
pub(super) enum Message {
    /// A scanner has joined: the next number is its.
    Joined(Box<Member>),
    /// News of the worker pool, or a failure that ends the scan.
    Pool(PoolEvent),
    /// A batch, or the part of it that was scanned.
    Done(Done),
    /// A scanner failed; its batch was given back.
    Lost { worker: usize, fault: Fault },
}

/// What was scanned.
pub(super) struct Done {
    pub worker: usize,
    pub batch: Batch,
    /// How many there are.
    pub keys: u64,
    pub hits: Vec<Confirmed>,
    /// What must hold before it counts.
    pub proof: Option<Proof>,
}

/// What scanners share.
pub(super) struct Shared<'s> {
    targets: &'s ScanTargets,
    /// Whether scanners count from 0, as the candidates of a mask are: those of a map begin at 1.
    from_zero: bool,
    pause: Option<&'s Pause>,
    planner: Mutex<Planner>,
    /// Wakes scanners that have nothing to do when a batch is given back.
    returned: Condvar,
    /// Whether scanners are to end.
    pub stop: AtomicBool,
    /// Survivors that were none of the targets'.
    pub false_hits: AtomicU64,
}

impl<'s> Shared<'s> {
    /// For all that a map lacks.
    pub fn new(job: &ScanJob<'s>, map: &Map) -> Self {
        Shared {
            targets: job.targets,
            from_zero: job.mask.is_some(),
            pause: job.pause,
            planner: Mutex::new(Planner::new(map)),
            returned: Condvar::new(),
            stop: AtomicBool::new(false),
            false_hits: AtomicU64::new(0),
        }
    }

    fn planner(&self) -> MutexGuard<'_, Planner> {
        // A scanner that panicked left the planner as it was: every change of it is one call.
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all scanners.
    pub fn end(&self) {
        let _planner = self.planner();
        self.stop.store(true, Ordering::Relaxed);
        self.returned.notify_all();
    }

    /// Whether a scanner is to end with what it has.
    fn ends(&self, dismissed: &AtomicBool) -> bool {
        self.stop.load(Ordering::Relaxed) || dismissed.load(Ordering::Relaxed)
    }

    /// The next batch of at most so many keys; none once the scanner is to end. Where all is out it waits, since what another gives
    /// back has to be scanned.
    fn next(&self, most: u64, dismissed: &AtomicBool) -> Option<Batch> {
        let mut planner = self.planner();
        while !self.ends(dismissed) {
            if let Some(batch) = planner.next(U256::from(most)) {
                return Some(batch);
            }
            // Who dismisses a scanner does not wake it.
            planner = self.returned.wait_timeout(planner, NAP).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// A scanner's thread: batches until the scan ends, or the scanner is dismissed.
    pub fn work(
        &self,
        worker: usize,
        mut scanner: Box<dyn Scanner + '_>,
        (counter, dismissed): (&AtomicU64, &AtomicBool),
        sender: &Sender<Message>,
    ) {
        while let Some(batch) = self.next(scanner.most(), dismissed) {
            let mut keys = 0;
            let message = match self.cover(scanner.as_mut(), batch, (counter, dismissed), &mut keys) {
                Ok(Ok((hits, proof))) => match self.split(batch, keys) {
                    Some(batch) => Message::Done(Done { worker, batch, keys, hits, proof }),
                    None => continue,
                },
                Ok(Err(error)) => {
                    self.take_back(counter, batch, keys);
                    Message::Pool(PoolEvent::Failed(error))
                }
                Err(fault) => {
                    self.take_back(counter, batch, keys);
                    drop(sender.send(Message::Lost { worker, fault }));
                    return;
                }
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    }

    /// Those of the survivors that are wanted; many of them are looked up by several threads.
    fn look_up(&self, survivors: &[Survivor]) -> Result<Vec<Confirmed>> {
        let some = |survivors: &[Survivor]| -> Result<Vec<Confirmed>> {
            let (mut hits, finder) = (Vec::new(), self.targets.finder());
            // In the order of a database, so that a chunk of it is read once for all that may be in it.
            let mut order: Vec<usize> = (0..survivors.len()).collect();
            order.sort_unstable_by_key(|at| (survivors[*at].form, survivors[*at].digest.words()[0]));
            for at in order {
                let wanted = finder.find(survivors[at].form, &survivors[at].digest)?;
                if !wanted.is_empty() {
                    hits.push((at, wanted));
                }
            }
            hits.sort_unstable_by_key(|(at, _)| *at);
            let hits: Vec<Confirmed> = hits.into_iter().map(|(at, wanted)| (survivors[at], wanted)).collect();
            self.false_hits.fetch_add((survivors.len() - hits.len()) as u64, Ordering::Relaxed);
            Ok(hits)
        };
        in_threads(survivors, FEW_SURVIVORS, some)
    }

    /// Takes a batch back of which so many keys were counted, to be scanned again.
    pub fn take_back(&self, counter: &AtomicU64, batch: Batch, keys: u64) {
        counter.fetch_sub(keys, Ordering::Relaxed);
        self.planner().give_back(batch);
        self.returned.notify_all();
    }

    /// Takes back what is left of a batch of which so many keys were scanned. Returns the part that was.
    fn split(&self, batch: Batch, keys: u64) -> Option<Batch> {
        let part = self.planner().split(batch, U256::from(keys));
        if part != Some(batch) {
            self.returned.notify_all();
        }
        part
    }

    /// Scans a batch, or as much of it as there is time for; `done` counts its keys. An error within the result is one of the targets'
    /// look-up.
    fn cover(
        &self,
        scanner: &mut dyn Scanner,
        batch: Batch,
        (counter, dismissed): (&AtomicU64, &AtomicBool),
        done: &mut u64,
    ) -> std::result::Result<Result<Covered>, Fault> {
        let (first, count) =
            (batch.keys().first() - U256::from(u64::from(self.from_zero)), batch.keys().count());
        let count = u64::try_from(count).map_err(|_| "a batch was larger than asked for".to_owned())?;
        let first =
            Scalar::from_be_bytes(&first.to_be_bytes()).ok_or("a batch begins beyond the last key")?;
        scanner.begin(first, count)?;
        let (mut hits, mut last) = (Vec::new(), false);
        while *done < count && !last {
            if let Some(pause) = self.pause {
                pause.hold(&self.stop);
            }
            // A device goes on with what it was sent whether anyone waits or not.
            last = self.ends(dismissed);
            let (keys, survivors) = if last { scanner.finish()? } else { scanner.go_on()? };
            if keys > count - *done || (keys == 0 && !last) {
                return Err(format!("{keys} keys of {} were reported covered", count - *done));
            }
            match self.look_up(&survivors) {
                Ok(found) => hits.extend(found),
                Err(error) => return Ok(Err(error)),
            }
            *done += keys;
            counter.fetch_add(keys, Ordering::Relaxed);
        }
        Ok(Ok((hits, scanner.proof()?)))
    }
}
