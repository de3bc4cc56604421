//! One program for all tests of this crate: each of them would link what they share again.

mod common;
mod lanes;
mod many;
mod multiply;
mod numbers;
mod points;
mod sets;
#[path = "common/small.rs"]
mod small;
mod small_groups;
mod walk;
