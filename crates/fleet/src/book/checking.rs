//! What is told of a unit: whose lease it is, whether all of it is true, and whether two who did it told the same.

use warpsmith_engine::{UnitRunner, check_spots};

use super::Book;
use crate::duty::Duty;
use crate::error::Result;
use crate::job::Search;
use crate::scan::{MOST_FOUND, Scanned};
use crate::wire::{MOST_SHARES, Report};

/// What is wrong with a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The worker says something false: it is set aside.
    False(String),
    /// It cannot be taken, which may be nobody's fault.
    Refused(String),
}

/// What a report came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// Its shares are true, and where they lie in the unit. It is yet to be judged whether it counts.
    True {
        /// From 0 to 1, rising.
        parts: Vec<f64>,
        /// Of so many candidates.
        candidates: u128,
    },
    /// All that was planted in it was found.
    Scanned(Scanned),
    /// It was done before.
    Known,
    /// It was done to compare, and another told the same.
    Same,
    /// It was done before by this other worker, which has shares that this one lacks or the other way round: whoever lacks some.
    Differs {
        /// Whoever lacks shares.
        short: Vec<u32>,
    },
}

impl Book {
    /// Looks at a report: whose lease it is, and whether all it says is true. Changes nothing but what is held.
    ///
    /// All shares are verified, or so many of them by lot: see [`crate::proof`]. Those of a unit that is done twice all are, since
    /// two sets are compared only where all of both is true.
    pub fn check(
        &mut self,
        worker: u32,
        report: &Report,
        sample: Option<usize>,
    ) -> std::result::Result<Taken, Wrong> {
        let Report { lease, shares, matches, .. } = report;
        let refuse = |why: &str| Err(Wrong::Refused(why.to_owned()));
        if lease.job != self.id || lease.worker != worker || !lease.is_signed(&self.master) {
            return refuse("this unit was never given to this worker");
        }
        let is_rising = |spots: &[u64]| spots.windows(2).all(|pair| pair[0] < pair[1]);
        let most = if matches!(self.duty, Duty::Scan(_)) { MOST_FOUND } else { UnitRunner::MOST_MATCHES };
        if shares.len() > MOST_SHARES || matches.len() > most {
            return Err(Wrong::False("it tells of more than a unit can have".to_owned()));
        }
        if !is_rising(shares) || !is_rising(matches) {
            return Err(Wrong::False("it tells of the same share twice, or out of order".to_owned()));
        }
        if lease.count == 0 {
            return self.compare(worker, report);
        }
        // Of units that came back late some numbers may be done, and the others somebody else's by now.
        if self.ledger.standing().is_any_done(lease.unit, lease.count) {
            return Ok(Taken::Known);
        }
        self.check_whole(report, sample)
    }

    /// Verifies what is told of a unit.
    fn check_whole(&self, report: &Report, sample: Option<usize>) -> std::result::Result<Taken, Wrong> {
        match &self.duty {
            Duty::Search(search) => self.check_search(search, report, sample),
            Duty::Scan(scan) => {
                let scanned = scan.check(&self.master, &report.lease, &report.matches);
                scanned.map(Taken::Scanned).map_err(|error| Wrong::False(error.to_string()))
            }
        }
    }

    /// Compares a unit that was done to compare, once all it tells is verified.
    fn compare(&mut self, worker: u32, report: &Report) -> std::result::Result<Taken, Wrong> {
        let Some(report) = self.as_of_whole(report) else { return Ok(Taken::Known) };
        self.check_whole(&report, None)?;
        let Some(repeat) = self.repeats.remove(&report.lease.unit) else { return Ok(Taken::Known) };
        // All that both told was verified: one who lacks some of it did not look there.
        let told = if matches!(self.duty, Duty::Scan(_)) { &report.matches } else { &report.shares };
        let of_first = repeat.told_of_part();
        let lacks = |has: &[u64], other: &[u64]| other.iter().any(|spot| has.binary_search(spot).is_err());
        let mut short = Vec::new();
        short.extend(lacks(&of_first, told).then_some(repeat.lease.worker));
        short.extend(lacks(told, &of_first).then_some(worker));
        Ok(if short.is_empty() { Taken::Same } else { Taken::Differs { short } })
    }

    /// Shares by our own arithmetic, matches by the secret.
    fn check_search(
        &self,
        search: &Search,
        report: &Report,
        sample: Option<usize>,
    ) -> std::result::Result<Taken, Wrong> {
        let Report { lease, shares, matches, .. } = report;
        let unit = lease.work.unit().ok_or_else(|| Wrong::Refused("that is no unit".to_owned()))?;
        let looked = match sample {
            Some(most) => by_lot(shares, most).map_err(|error| Wrong::Refused(error.to_string()))?,
            None => shares.clone(),
        };
        let digests = check_spots(&unit, search.subject(), &looked);
        let is_share = |digest: &Option<warpsmith_chain::Digest>| {
            digest.as_ref().is_some_and(|digest| digest.words()[0].leading_zeros() >= lease.bits)
        };
        if !digests.iter().all(is_share) {
            return Err(Wrong::False("a share is false".to_owned()));
        }
        for spot in matches {
            if self.settle(lease, *spot).is_err() {
                return Err(Wrong::False("a match is false".to_owned()));
            }
        }
        let parts: Vec<f64> = shares.iter().filter_map(|spot| unit.part(*spot)).collect();
        if parts.len() < shares.len() {
            return Err(Wrong::False("a share is false".to_owned()));
        }
        let candidates = unit.candidates();
        Ok(Taken::True { parts, candidates })
    }
}

/// At most so many of these, which nobody can foresee.
fn by_lot(spots: &[u64], most: usize) -> Result<Vec<u64>> {
    let mut rest = spots.to_vec();
    let mut lots = vec![0; 4 * most];
    warpsmith_entropy::fill(&mut lots)?;
    let mut taken = Vec::with_capacity(most);
    for lot in lots.chunks_exact(4) {
        if rest.is_empty() {
            break;
        }
        let lot = u32::from_le_bytes([lot[0], lot[1], lot[2], lot[3]]) as usize;
        taken.push(rest.swap_remove(lot % rest.len()));
    }
    Ok(taken)
}
