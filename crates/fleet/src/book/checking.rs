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
    /// Its shares are true; where they lie in the unit, and how many were expected. It is yet to be judged whether it counts.
    True {
        /// From 0 to 1, rising.
        parts: Vec<f64>,
        /// How many shares were expected.
        expected: f64,
        /// Of so many candidates.
        candidates: u128,
    },
    /// All that was planted in it was found.
    Scanned(Scanned),
    /// It was done before.
    Known,
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
        let repeat = self.repeats.get(&lease.unit).filter(|repeat| repeat.lease.worker != worker);
        let is_repeat = repeat.is_some_and(|repeat| repeat.lease.work == lease.work);
        // Of units that came back late some numbers may be done, and the others somebody else's by now.
        if self.ledger.standing().is_any_done(lease.unit, lease.count) && !is_repeat {
            return Ok(Taken::Known);
        }
        let (taken, told) = match &self.duty {
            Duty::Search(search) => {
                let sample = sample.filter(|_| !is_repeat);
                (self.check_search(search, report, sample)?, shares)
            }
            Duty::Scan(scan) => match scan.check(&self.master, lease, matches) {
                Ok(scanned) => (Taken::Scanned(scanned), matches),
                Err(why) => return Err(Wrong::False(why)),
            },
        };
        if is_repeat && let Some(repeat) = self.repeats.remove(&lease.unit) {
            // All that both told was verified: whoever lacks some of it did not look there.
            let lacks =
                |has: &[u64], other: &[u64]| other.iter().any(|spot| has.binary_search(spot).is_err());
            let mut short = Vec::new();
            short.extend(lacks(&repeat.told, told).then_some(repeat.lease.worker));
            short.extend(lacks(told, &repeat.told).then_some(worker));
            return Ok(if short.is_empty() { Taken::Known } else { Taken::Differs { short } });
        }
        Ok(taken)
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
        let expected = candidates as f64 * (-f64::from(lease.bits)).exp2();
        Ok(Taken::True { parts, expected, candidates })
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
