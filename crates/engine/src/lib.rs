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
mod devices;
mod error;
mod forms;
mod gpu;
mod inspect;
mod join;
mod later;
mod origin;
mod origins;
mod prefilter;
mod recover;
mod run;
mod samples;
mod scan;
mod search;
mod secret;
mod selftest;
mod simd;
mod space;
mod split;
mod unit;
mod worker;

pub use bench::detail::Detail;
pub use bench::field::{FieldBench, bench_field};
pub use bench::scan::{ScanBench, ScanOf, bench_scan};
pub use bench::tune::{TuneFor, Tuned, TunedPrograms, tune};
pub use bench::{BASELINE_DESCRIPTION, Bench, BenchOptions, bench, quick_rate};
pub use details::Details;
pub use devices::{Devices, FilterRoom, Found, Survey, survey};
pub use error::{Error, Result};
pub use inspect::{Compiled, Inspection, inspect};
pub use join::{Joined, join};
pub use origin::{PublicKeyError, Secret, parse_public_key, public_point};
pub use run::pause::Pause;
pub use run::report::{Ended, Event, Outcome, Progress, Sink};
pub use samples::{Sample, distinct_samples, samples};
pub use scan::{Finding, GivenKeys, Ledger, ScanJob, ScanTargets, Unkept, scan, selftest_scans};
pub use search::{Job, Match, Show, Solution, Wanted, Why, run, time_to};
pub use secp256k1::PublicKey;
pub use secret::wiping_stack;
pub use selftest::{SelfTest, selftest, selftest_cases};
pub use simd::Simd;
pub use space::Subject;
pub use split::Split;
pub use unit::{
    Covered, KeyUnit, Outfit, RangeRunner, RangeStart, RangeUnit, SaltUnit, Unit, UnitOrigin, UnitRunner,
    check_spots, settle,
};
pub use warpsmith_device::{
    Api, CardOptions, Inline, Preparing, Selector, UnderWay, drivers_are_busy, under_way,
};
pub use worker::Runner;
pub use worker::measure::{Part, Profile};
