//! What a state file says beside the hints: which database, which state, which generation of it.

use crate::prf::Key;

/// What a state file says beside the hints.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) database: [u8; 32],
    pub(super) epoch: u64,
    pub(super) state_id: [u8; 16],
    /// Counts the files written for this state: each begins a new journal.
    pub(super) generation: u64,
    pub(super) next_query: u64,
    pub(super) key: Key,
}
