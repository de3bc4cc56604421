//! Scanning: every key of a range once, compared with targets, and a map of what was covered.
//!
//! ```text
//! Map -> planner -> batches -> scanners -> survivors of the filter -> exact look-up -> libsecp256k1 -> sink -> Map
//! ```
//!
//! A key counts as covered when its batch was found to have been walked to its end and everything it hit was confirmed and
//! handed to the sink, not before. What is out
//! when a scan ends is given out again by the next.

mod finding;
mod given;
mod prove;
mod session;
mod shared;
mod targets;

pub use finding::Finding;
pub use given::GivenKeys;
pub use prove::selftest_scans;
pub(crate) use prove::{Unproved, prove};
pub use session::{Ledger, ScanJob, ScanOutcome, ScanProgress, Unkept, scan};
pub use targets::ScanTargets;

#[cfg(test)]
mod mask_tests;
#[cfg(test)]
mod tests;
