//! Runs one search: from a job to verified matches.
//!
//! ```text
//! Job -> filter -> workers (points only) -> hits -> recover -> verify (libsecp256k1, text, pattern) -> sink
//! ```
//!
//! Workers see public points and answer with places; the origin's secret never leaves the collector. Every
//! match comes from its own random origin, which is retired with it.

mod arena;
mod bench;
mod cpu;
mod details;
mod device;
mod error;
mod gpu;
mod join;
mod origin;
mod samples;
mod scan;
mod search;
mod secret;
mod selftest;
mod sieve;
mod simd;
mod space;
mod split;
mod stats;
mod steady;
mod tune;
mod verify;
mod worker;

pub use bench::detail::{Detail, Part, Profile};
pub use bench::field::{FieldBench, bench_field};
pub use bench::{BASELINE_DESCRIPTION, Bench, BenchOptions, bench, quick_rate};
pub use details::Details;
pub use device::{Devices, FilterRoom, Found, Inline, Runner, Selector, Survey, survey};
pub use error::{Error, Result};
pub use join::{Joined, join};
pub use origin::{PublicKeyError, Secret, parse_public_key};
pub use samples::{Sample, samples};
pub use scan::{
    Finding, Form, Ledger, ScanEnded, ScanEvent, ScanJob, ScanOutcome, ScanProgress, ScanTargets, ScanType,
    Unkept, scan, selftest_scans,
};
pub use search::{Ended, Event, Job, Match, Outcome, Wanted, run};
pub use secp256k1::PublicKey;
pub use secret::wiping_stack;
pub use selftest::{SelfTest, selftest};
pub use simd::Simd;
pub use space::Subject;
pub use split::Split;
pub use stats::Progress;
pub use tune::{Tuned, tune};
