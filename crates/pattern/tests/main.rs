//! One program for all tests of this crate: each of them would link what they share again.

mod addresses;
mod bitcoin;
mod odds;
mod refusals;
mod scale;
mod scores;
mod smoke;
mod soundness;
