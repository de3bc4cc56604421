//! One program for all tests of this crate: each of them would link what they share again.

mod field;
mod host;
mod many;
mod moves;
mod pir;
mod points;
mod salts;
mod scan;
mod scores;
#[path = "../../curve/tests/common/small.rs"]
mod small;
mod small_groups;
mod support;
mod taproot;
