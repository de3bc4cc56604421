//! Hashes for search: of one message, and of eight or sixteen messages side by side.
//!
//! Knows bytes only: no curve, no address, no pattern. Nothing here is secret and nothing runs in constant time
//! on purpose; the messages are public keys and what is made of them.
//!
//! The form for lanes is structure of arrays: word i of eight messages is one `[u64; 8]`, so that a word of all
//! of them is one register. [`Lanes`] says with which instruction set, decided once, at run time.

pub mod keccak;
mod lanes;
mod platform;

pub use platform::{Lanes, Simd};
