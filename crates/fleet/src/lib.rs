//! Searches on many machines that nobody has to trust.
//!
//! A job is cut into units. The coordinator, at home, keeps what is secret and the books; workers get public points and answer
//! with places and with shares, which prove their work ([`proof`]). NATS carries the messages and knows who is who.

pub mod blocklist;
pub mod book;
pub mod coordinator;
pub mod duty;
mod error;
pub mod folder;
pub mod id;
pub mod job;
pub mod leases;
pub mod ledger;
pub mod net;
pub mod pace;
pub mod proof;
pub mod scan;
pub mod secrets;
pub mod wire;

pub use error::{Error, Result};
