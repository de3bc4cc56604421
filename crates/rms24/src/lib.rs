//! Private information retrieval: a server holds a database, a client reads entries of it, and the server does not
//! learn which.
//!
//! The scheme is RMS24 (Ren, Mughees, Sun, "Simple and Practical Amortized Sublinear PIR using Dummy Subsets", CCS 2024,
//! ePrint 2023/1072), whole and exact. In the *offline* phase the client streams the database once and keeps the
//! parities of many pseudorandom sets of entries, the *hints* ([`hints`]). To read an entry it names a set that holds it,
//! without the entry, beside a dummy set; the server answers with both parities.
//!
//! SEC: what is sent must not depend on what is asked. Where a line is there for that reason, a comment with this tag
//! says so.

pub mod answer;
mod client;
pub mod database;
#[cfg(feature = "device")]
pub mod device;
mod error;
pub mod hints;
pub mod keyword;
#[cfg(feature = "server")]
pub mod load;
pub mod memory;
mod params;
mod prf;
mod random;
pub mod remote;
mod selftest;
#[cfg(feature = "server")]
pub mod server;
pub mod table;
pub mod two_server;
pub mod updates;
mod version;
mod wide;
pub mod wire;

pub use client::{Asked, Client, Fetched, Reservation};
pub use error::{Error, Result};
pub use params::{Choice, ENTRY_SIZES, GROUP, PACKED_BLOCK, Params, Place};
pub use prf::{Domain, Key, Prf};
pub use selftest::{Passed, selftest};
pub use version::Version;
pub use warpsmith_hash::Lanes;
