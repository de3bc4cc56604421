//! End to end: the binary as people and scripts run it.
//!
//! Claims about keys are checked with the `secp256k1` and `nostr` crates and plain integers, not with our own code.

mod bitcoin;
mod chains;
mod damage;
mod discretion;
mod drivers;
mod endings;
mod ethereum;
mod files;
mod harness;
mod memory;
mod mining;
mod pir;
mod scan;
mod split;
mod tools;
mod unlinkable;
