//! What scanners do in their threads: batches from the planner, survivors looked up, and what came of it to the collector.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::Sender;
use warpsmith_chain::KeyType;
use warpsmith_curve::Scalar;
use warpsmith_store::{Batch, Map, Planner, Record, U256};

use super::{ScanJob, ScanTargets};
use crate::error::{Error, Result};
use crate::run::pause::Pause;
use crate::run::threads::in_threads;
use crate::worker::Fault;
use crate::worker::scanner::{Proof, Scanner, Survivor};

/// Survivors that are worth a thread to look them up.
const FEW_SURVIVORS: usize = 2048;

/// A survivor that is wanted, with what says so.
type Confirmed = (Survivor, Vec<(&'static KeyType, Record)>);

/// What a scanner tells the collector.
pub(super) enum Message {
    /// A batch, or the part of it that was scanned.
    Done(Done),
    /// A scanner failed; its batch was given back.
    Lost { device: usize, fault: Fault },
    /// The look-up of targets failed.
    Broken(Error),
}

/// What was scanned.
pub(super) struct Done {
    pub device: usize,
    pub batch: Batch,
    /// How many there are.
    pub keys: u64,
    pub hits: Vec<Confirmed>,
    /// What must hold before it counts.
    pub proof: Option<Proof>,
    /// Whether the scanner is to end, and nothing it did since counts.
    pub dropped: Arc<AtomicBool>,
}

/// What scanners share.
pub(super) struct Shared<'s> {
    targets: &'s ScanTargets,
    /// Whether scanners count from 0, as the candidates of a mask are: those of a map begin at 1.
    from_zero: bool,
    pause: Option<&'s Pause>,
    planner: Mutex<Planner>,
    /// Whether scanners are to end.
    pub stop: AtomicBool,
    /// Keys each device has covered.
    pub tried: Vec<AtomicU64>,
    /// Survivors that were none of the targets'.
    pub false_hits: AtomicU64,
}

impl<'s> Shared<'s> {
    /// For so many devices, with all that a map lacks.
    pub fn new(job: &ScanJob<'s>, map: &Map, devices: usize) -> Self {
        Shared {
            targets: job.targets,
            from_zero: job.mask.is_some(),
            pause: job.pause,
            planner: Mutex::new(Planner::new(map)),
            stop: AtomicBool::new(false),
            tried: (0..devices).map(|_| AtomicU64::new(0)).collect(),
            false_hits: AtomicU64::new(0),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn planner(&self) -> std::sync::MutexGuard<'_, Planner> {
        // A scanner that panicked left the planner as it was: every change of it is one call.
        self.planner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A scanner's thread: batches until there are none.
    pub fn work(&self, device: usize, mut scanner: Box<dyn Scanner + '_>, sender: &Sender<Message>) {
        let dropped = Arc::new(AtomicBool::new(false));
        while !self.stopped() && !dropped.load(Ordering::Relaxed) {
            let Some(batch) = self.planner().next(U256::from(scanner.most())) else { return };
            let mut keys = 0;
            let message = match self.cover(device, scanner.as_mut(), batch, &dropped, &mut keys) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(fault) => {
                    self.take_back(device, batch, keys);
                    drop(sender.send(Message::Lost { device, fault }));
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
    pub fn take_back(&self, device: usize, batch: Batch, keys: u64) {
        self.tried[device].fetch_sub(keys, Ordering::Relaxed);
        self.planner().give_back(batch);
    }

    /// Scans a batch, or as much of it as there is time for; `done` counts its keys.
    fn cover(
        &self,
        device: usize,
        scanner: &mut dyn Scanner,
        batch: Batch,
        dropped: &Arc<AtomicBool>,
        done: &mut u64,
    ) -> std::result::Result<Option<Message>, Fault> {
        let (first, count) =
            (batch.keys().first() - U256::from(u64::from(self.from_zero)), batch.keys().count());
        let count = u64::try_from(count).map_err(|_| "a batch was larger than asked for".to_owned())?;
        let first =
            Scalar::from_be_bytes(&first.to_be_bytes()).ok_or("a batch begins beyond the last key")?;
        scanner.begin(first, count)?;
        let (mut hits, mut last) = (Vec::new(), false);
        while *done < count && !last {
            if dropped.load(Ordering::Relaxed) {
                self.take_back(device, batch, *done);
                return Ok(None);
            }
            if let Some(pause) = self.pause {
                pause.hold(&self.stop);
            }
            // A device goes on with what it was sent whether anyone waits or not.
            last = self.stopped();
            let (keys, survivors) = if last { scanner.finish()? } else { scanner.go_on()? };
            if keys > count - *done || (keys == 0 && !last) {
                return Err(format!("{keys} keys of {} were reported covered", count - *done));
            }
            match self.look_up(&survivors) {
                Ok(found) => hits.extend(found),
                Err(error) => {
                    self.take_back(device, batch, *done);
                    return Ok(Some(Message::Broken(error)));
                }
            }
            *done += keys;
            self.tried[device].fetch_add(keys, Ordering::Relaxed);
        }
        let (proof, keys) = (scanner.proof()?, *done);
        let part = self.planner().split(batch, U256::from(keys));
        let dropped = Arc::clone(dropped);
        Ok(part.map(|batch| Message::Done(Done { device, batch, keys, hits, proof, dropped })))
    }
}
