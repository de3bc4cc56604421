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
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod vex;
mod walk;
