//! Ethereum's state as a table of private retrieval ([`warpsmith_rms24`]): accounts, storage slots
//! and codes of contracts.
//!
//! A table is built from folders of extractors, dumps of nodes or accounts in CSV ([`import`]), or
//! from a [`node`], which it can follow block by block ([`follow`]). Clients read it by address and
//! slot ([`look_up`](fn@look_up)), wallets through a proxy that answers like a node (`proxy`).
//!
//! `warpsmith_rms24` knows keys, entries and records; what is written in the records and of which
//! block they are is known here alone ([`open_database`]). Nothing here reads arguments or writes
//! to a terminal: callers are told what happens by results and callbacks.

mod catch_up;
mod code;
mod codes;
mod error;
pub mod follow;
mod growth;
mod head;
pub mod import;
mod layout;
pub mod look_up;
mod names;
pub mod node;
#[cfg(feature = "proxy")]
pub mod proxy;
mod record;

pub use catch_up::{CatchUp, Forward, NewHints, NewHintsNeeded};
pub use code::{CODE_CHUNKS, CODE_ENTRY, code_hash, code_hash_key, code_hash_record, code_number};
pub use codes::{CodeTable, Codes, CodesByHash, chunks_of_all};
pub use error::{Error, Result};
pub use growth::grow;
pub use head::ChainHead;
pub use layout::{ADDRESS, SCRIPT, STATE, heads, newest, open_database};
pub use look_up::look_up;
pub use names::Names;
pub use record::{
    Account, Address, RECORD, account_record, belongs_to, find_account, find_slot, slot_key, slot_record, tag,
};
