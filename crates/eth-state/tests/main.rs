//! One program for all tests of this crate.

#[cfg(feature = "server")]
mod look_up;
mod state;
