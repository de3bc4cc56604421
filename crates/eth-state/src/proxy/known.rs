//! What is known of the database without a look-up.

use std::sync::{Mutex, PoisonError};

use crate::head::ChainHead;

/// What is known of the database.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// The chain that it is of, which never changes.
    pub chain_id: Option<u64>,
    /// The block after which the hints are; none where the database does not say so, and for a
    /// moment when there are new hints.
    pub head: Option<ChainHead>,
}

/// The same, for those who answer calls.
#[derive(Default)]
pub struct Known(Mutex<Facts>);

impl Known {
    /// Returns what is known.
    pub fn facts(&self) -> Facts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the block after which the hints are.
    pub fn head(&self) -> Option<ChainHead> {
        self.facts().head
    }

    pub(super) fn set(&self, head: Option<ChainHead>) {
        let mut facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        facts.head = head;
        facts.chain_id = head.map(|head| head.chain_id).or(facts.chain_id);
    }
}
