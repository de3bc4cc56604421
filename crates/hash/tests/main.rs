//! One program for all tests of this crate: each of them would link what they share again.

mod chacha;
mod common;
mod hash160;
mod keccak;
mod many;
