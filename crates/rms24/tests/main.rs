//! One program for all tests of this crate that share no server: each of them would link what they share again.

mod client;
mod client_damage;
mod crash;
mod damage;
#[cfg(feature = "device")]
mod device;
mod fold;
mod grow;
mod hints;
mod hostile;
mod keyword;
mod privacy;
mod support;
mod vectors;
