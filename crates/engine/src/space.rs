//! Where candidates come from: keys around random origins, or the salts of a mask counted up.
//!
//! A start holds nothing secret: public points, or a stretch of counters. Origins are the business of [`crate::origins`]; salts
//! are handed out by the collector, each once.

use warpsmith_chain::{KeyTarget, Recipe, SaltMask, SaltTarget, Target};
use warpsmith_curve::Affine;

use crate::error::{Error, Result};
use crate::origin::Origin;

/// What is searched for: a key, or a salt.
///
/// See [`run`](crate::run()).
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// Keys, each with its public point.
    Key(&'a dyn KeyTarget),
    /// Salts of a contract factory.
    Salt(&'a dyn SaltTarget),
}

impl<'a> Subject<'a> {
    /// What both kinds have.
    pub fn target(self) -> &'a dyn Target {
        match self {
            Subject::Key(target) => target,
            Subject::Salt(target) => target,
        }
    }

    /// How a device gets from a candidate to a digest.
    pub fn recipe(self) -> Recipe {
        match self {
            Subject::Key(target) => Recipe::Key(target.form()),
            Subject::Salt(target) => Recipe::Salted(target.salted().clone()),
        }
    }
}

/// A stretch of salts: those of the mask with these counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// What the free bytes hold that the counter does not reach.
    pub base: [u8; 32],
    /// The first counter.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// Where a worker begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    /// The first point of each lane.
    Points(&'a [Affine]),
    /// The same, and exactly so many steps of each lane, every candidate of which is looked at; then no more.
    Stretch {
        /// The first point of each lane.
        points: &'a [Affine],
        /// Steps of each lane.
        steps: u64,
    },
    /// All salts of the lease, then no more.
    Salts(Lease),
}

impl<'a> Start<'a> {
    /// The first point of each lane of a walk, and after how many steps it ends, if it does; none for salts.
    pub fn walk(self) -> Option<(&'a [Affine], Option<u64>)> {
        match self {
            Start::Points(points) => Some((points, None)),
            Start::Stretch { points, steps } => Some((points, Some(steps))),
            Start::Salts(_) => None,
        }
    }
}

/// The way back from a hit.
pub(crate) enum Root {
    /// The origin of a lane's walk.
    Origin(Origin),
    /// A stretch of salts.
    Lease(Lease),
}

/// Leases of at most this many salts: minutes for a card, hours for a core.
const LONGEST: u64 = 1 << 40;

/// The salts of a mask, handed out in leases.
pub(crate) struct Salts {
    base: [u8; 32],
    /// The first counter nobody has been given; none at the end.
    next: Option<u64>,
    last: u64,
    length: u64,
    returned: Vec<Lease>,
}

impl Salts {
    /// All salts of a mask, for so many workers.
    pub fn new(mask: SaltMask, workers: usize) -> Result<Salts> {
        // Not a secret, but random: two machines that search the same mask do not repeat each other's work.
        let mut base = [0; 32];
        warpsmith_entropy::fill(&mut base).map_err(Error::Randomness)?;
        let last = mask.count().map_or(u64::MAX, |count| count - 1);
        // Small spaces are cut finely enough that no worker is left without a share for long.
        let length = (last / (16 * workers.max(1) as u64)).clamp(1 << 12, LONGEST);
        Ok(Salts { base, next: Some(0), last, length, returned: Vec::new() })
    }

    /// The next stretch; none when every salt has been handed out.
    pub fn next(&mut self) -> Option<Lease> {
        if let Some(lease) = self.returned.pop() {
            return Some(lease);
        }
        let first = self.next?;
        let last = first.saturating_add(self.length - 1).min(self.last);
        self.next = last.checked_add(1).filter(|&next| next <= self.last);
        Some(Lease { base: self.base, first, last })
    }

    /// Whether any have not been handed out.
    pub fn is_left(&self) -> bool {
        self.next.is_some() || !self.returned.is_empty()
    }

    /// Takes back what a lost worker leaves undone.
    pub fn give_back(&mut self, lease: Lease) {
        self.returned.push(lease);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salts(mask: &str, workers: usize) -> Salts {
        Salts::new(SaltMask::parse(mask).expect("a mask"), workers).expect("random")
    }

    #[test]
    fn leases_cover_every_counter_once() {
        let fixed = "00".repeat(29);
        for (free, count) in [("??", 1u64 << 8), ("????", 1 << 16), ("??????", 1 << 24)] {
            let mask = format!("0x{}{}", "00".repeat(32 - free.len() / 2), free);
            assert!(mask.len() == 66 && mask.starts_with(&format!("0x{}", &fixed[..50])));
            for workers in [1, 3, 40] {
                let mut salts = salts(&mask, workers);
                let (mut next, mut leases) = (0, 0);
                while let Some(lease) = salts.next() {
                    assert_eq!(lease.first, next);
                    assert!(lease.last >= lease.first);
                    next = lease.last + 1;
                    leases += 1;
                }
                assert_eq!(next, count);
                assert!(leases <= 16 * workers as u64 + 1);
            }
        }
    }

    #[test]
    fn a_full_salt_has_more_counters_than_anybody_reaches_and_returned_leases_come_first() {
        let mut salts = salts(&format!("0x{}", "??".repeat(32)), 2);
        let first = salts.next().expect("a lease");
        assert_eq!((first.first, first.last), (0, LONGEST - 1));
        let second = salts.next().expect("a lease");
        assert_eq!(second.first, LONGEST);
        salts.give_back(first);
        assert_eq!(salts.next(), Some(first));
        // The last leases end exactly at the last counter.
        salts.next = Some(u64::MAX - 5);
        assert_eq!(salts.next().map(|l| (l.first, l.last)), Some((u64::MAX - 5, u64::MAX)));
        assert_eq!(salts.next(), None);
    }
}
