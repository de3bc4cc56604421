//! Units done twice: a unit that counts, or a part of it, is given to another worker, and what both told is compared.
//!
//! A device is given as much of a unit as it does in its own units, so that slower ones can check faster ones too. The lease has
//! count 0: whatever comes of it, no number is done by it.

use std::time::Duration;

use super::Book;
use crate::duty::Duty;
use crate::leases::Holder;
use crate::wire::{Lease, Report, Work};

/// Units that wait to be done twice, at most.
const MAX_REPEATS: usize = 4096;
/// The least part of a unit that is worth comparing: some 8 shares.
const MIN_PART: f64 = 1.0 / 8.0;

/// A unit that was done, and is done again by another to compare.
pub(super) struct Repeat {
    pub lease: Lease,
    /// Spots by which two who did it are compared: shares, or of a scan all that was found.
    pub told: Vec<u64>,
    given: Option<Given>,
    /// Workers that were given it and did not do it.
    declined: Vec<u32>,
}

/// A part of a unit in the hands of another worker.
struct Given {
    holder: Holder,
    until: Duration,
    work: Work,
    /// What its spots are less than those of the unit.
    shift: u64,
    /// Spots of the unit that lie in it: the first, and the first behind it.
    spots: (u64, u64),
}

impl Repeat {
    pub fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Whether this worker could be given it: it is in the hands of none, and neither its own nor one that it declined.
    pub fn is_free_for(&self, worker: u32) -> bool {
        self.given.is_none() && self.lease.worker != worker && !self.declined.contains(&worker)
    }

    /// Ends what a worker has of it.
    pub fn take_back(&mut self, worker: u32) {
        self.given.take_if(|given| given.holder.worker == worker);
    }

    /// Returns what was told of the part that was given.
    pub fn told_of_part(&self) -> Vec<u64> {
        let (first, end) = self.given.as_ref().map_or((0, u64::MAX), |given| given.spots);
        self.told.iter().copied().filter(|spot| (first..end).contains(spot)).collect()
    }
}

impl Book {
    /// Takes back comparisons whose time is over.
    pub(super) fn take_back_repeats(&mut self, now: Duration) {
        for repeat in self.repeats.values_mut() {
            if let Some(late) = repeat.given.take_if(|given| given.until <= now) {
                repeat.declined.push(late.holder.worker);
            }
        }
    }

    /// Gives up on a device for comparisons that it was given and does not hold: it refused them, or was restarted.
    pub(super) fn give_up_repeats(&mut self, holder: Holder, holding: &[u64]) {
        for (unit, repeat) in &mut self.repeats {
            let is_lost = |given: &mut Given| given.holder == holder && !holding.contains(unit);
            if repeat.given.take_if(is_lost).is_some() {
                repeat.declined.push(holder.worker);
            }
        }
    }

    /// Gives a unit that another has done, or a part of it of about so many candidates, to compare.
    pub(super) fn repeat_for(&mut self, holder: Holder, keys: f64, until: Duration) -> Option<Lease> {
        // One at a time: a worker that does none would keep all of them from others.
        let is_its = |repeat: &Repeat| repeat.given.as_ref().is_some_and(|given| given.holder == holder);
        if self.repeats.values().any(is_its) {
            return None;
        }
        let is_free = |repeat: &Repeat| {
            let candidates = repeat.lease.work.candidates().unwrap_or(0) as f64;
            // Planted keys are of whole units.
            let least = if repeat.lease.work.unit().is_some() { MIN_PART } else { 1.0 / 3.0 };
            repeat.is_free_for(holder.worker) && keys >= least * candidates
        };
        let repeat = self.repeats.values_mut().find(|repeat| is_free(repeat))?;
        let original = &repeat.lease;
        let (work, shift, spots) = match original.work.unit() {
            Some(unit) => {
                let part = (keys / unit.candidates() as f64).min(1.0);
                let length = ((unit.length() as f64 * part).ceil() as u64).clamp(1, unit.length());
                let mut lot = [0; 8];
                warpsmith_entropy::fill(&mut lot).ok()?;
                let first = u64::from_le_bytes(lot) % (unit.length() - length + 1);
                let (stretch, shift) = unit.stretch(first, length)?;
                let end = unit.stretch(first + length, 1).map_or(u64::MAX, |(_, shift)| shift);
                (Work::of(&stretch), shift, (shift, end))
            }
            None => (original.work.clone(), 0, (0, u64::MAX)),
        };
        let epoch = self.ledger.standing().epoch;
        let lease = Lease {
            worker: holder.worker,
            slot: holder.slot,
            epoch,
            count: 0,
            work: work.clone(),
            ..original.clone()
        };
        repeat.given = Some(Given { holder, until, work, shift, spots });
        Some(lease.signed(&self.master))
    }

    /// Has a unit done again by another worker.
    pub fn repeat(&mut self, report: &Report) {
        if self.repeats.len() >= MAX_REPEATS {
            // One that nobody took so far makes room.
            let oldest = self.repeats.iter().find(|(_, repeat)| !repeat.is_given()).map(|(unit, _)| *unit);
            oldest.and_then(|unit| self.repeats.remove(&unit));
        }
        let told = if matches!(self.duty, Duty::Scan(_)) { &report.matches } else { &report.shares };
        let (lease, told) = (report.lease.clone(), told.clone());
        let repeat = Repeat { lease, told, given: None, declined: Vec::new() };
        self.repeats.insert(report.lease.unit, repeat);
    }

    /// Returns what a worker reports of a unit it was given to compare, as if it had had the whole unit; none if it has no such unit
    /// any more.
    pub(super) fn as_of_whole(&self, report: &Report) -> Option<Report> {
        let repeat = self.repeats.get(&report.lease.unit)?;
        let given = repeat.given.as_ref().filter(|given| given.holder.worker == report.lease.worker)?;
        if given.work != report.lease.work {
            return None;
        }
        // What does not lie in the part is nowhere in the unit either.
        let moved = |spots: &[u64]| {
            let inside = |spot: &u64| spot.checked_add(given.shift).filter(|at| *at < given.spots.1);
            spots.iter().map(|spot| inside(spot).unwrap_or(u64::MAX)).collect()
        };
        let lease = Lease { worker: report.lease.worker, slot: report.lease.slot, ..repeat.lease.clone() };
        Some(Report { lease, shares: moved(&report.shares), matches: moved(&report.matches), ms: report.ms })
    }
}
