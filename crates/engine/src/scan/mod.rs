//! Scanning: every key of a range once, compared with targets, and a map of what was covered.
//!
//! ```text
//! Map -> planner -> batches -> scanners -> survivors of the sieve -> exact look-up -> libsecp256k1 -> sink -> Map
//! ```
//!
//! A key counts as covered when its batch was found to have been walked to its end and everything it hit was confirmed and
//! handed to the sink, not before. What is out
//! when a scan ends is given out again by the next.

mod cpu;
mod floor;
mod form;
mod prove;
mod session;
mod sieve;
mod targets;

pub use form::Form;
pub use prove::selftest_scans;
pub use session::{Finding, Ledger, ScanEnded, ScanEvent, ScanJob, ScanOutcome, ScanProgress, Unkept, scan};
pub use targets::{ScanTargets, ScanType};

use warpsmith_chain::Digest;
use warpsmith_curve::Scalar;

pub(crate) use cpu::{CpuScanner, point_of, small};
#[cfg(test)]
pub(crate) use sieve::Few;
pub(crate) use sieve::{AnySieve, Sieve};

use crate::origin::{Secret, public_point};
use crate::worker::Fault;

/// A key of which one form passed the sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    pub(crate) key: Scalar,
    pub(crate) form: Form,
    pub(crate) digest: Digest,
}

/// The digest of a key by libsecp256k1 and the reference code; none for 0.
pub(crate) fn digest_of(key: Scalar, form: Form) -> Option<Digest> {
    let public = Secret::from_bytes(&key.to_be_bytes())?.public_key();
    Some(form.digest(&public_point(&public)))
}

/// A comparison of where a walk ended with where it must; any thread may do it.
pub(crate) type Proof = Box<dyn FnOnce() -> Result<(), Fault> + Send>;

/// Something that scans stretches of keys.
pub(crate) trait Scanner: Send {
    /// How many keys are best asked for at a time: some tenths of a second, or seconds on a card.
    fn most(&self) -> u64;

    /// Distances from the first key of a stretch at which something begins anew in the way it works, the nearest first: for
    /// self-tests.
    fn seams(&self) -> Vec<u64>;

    /// Begins with so many keys from `first` on. None of them is 0 or beyond n - 1.
    fn begin(&mut self, first: Scalar, count: u64) -> Result<(), Fault>;

    /// Covers the next keys: how many, at least one until all are covered, and those of them that passed the sieve.
    fn go_on(&mut self) -> Result<(u64, Vec<Survivor>), Fault>;

    /// Covers what is under way already and begins nothing: how many of the keys asked for that were, none of them twice, and
    /// those that passed the sieve. Called when a scan ends.
    fn finish(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        Ok((0, Vec::new()))
    }

    /// What must be found right before the keys covered since the last call count: that its lanes went where they must.
    /// None where that is known already.
    fn proof(&mut self) -> Result<Option<Proof>, Fault> {
        Ok(None)
    }

    /// Turns over one bit of the centre of a lane: at once, or in the middle of what is covered next.
    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32);
}

#[cfg(test)]
mod tests;
