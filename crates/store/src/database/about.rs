//! What a database says of itself: how many records of which kinds, and digests over all of them.

use sha2::{Digest as _, Sha256};

use crate::record::{ByKind, Entry};
use warpsmith_chain::AddressKind;

/// What a database says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Random: no two builds have the same.
    pub identity: [u8; 16],
    /// When it was built, in seconds since 1970.
    pub created: u64,
    /// How many records it has.
    pub records: u64,
    /// SHA-256 over kind and digest of each record in order: the same for the same addresses.
    pub addresses: [u8; 32],
    /// SHA-256 over the amounts in order.
    pub amounts: [u8; 32],
    /// How many records of each kind there are, for those there are any of.
    pub kinds: Vec<(AddressKind, u64)>,
}

impl About {
    /// How many records of a kind there are.
    pub fn count(&self, kind: AddressKind) -> u64 {
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
    }

    /// The identity as text.
    pub fn identity_text(&self) -> String {
        hex(&self.identity)
    }

    /// In what the records found differ from what is said of them.
    pub(super) fn difference(&self, found: &Self) -> Option<String> {
        let Self { identity: _, created: _, records, addresses, amounts, kinds } = self;
        if *records != found.records {
            return Some(format!("it has {} records where {records} should be", found.records));
        }
        if *addresses != found.addresses || *kinds != found.kinds {
            return Some("its addresses are not those that were put in (another SHA-256)".into());
        }
        (*amounts != found.amounts)
            .then(|| "its amounts are not those that were put in (another SHA-256)".into())
    }
}

/// Adds records up, in order.
pub(super) struct Summary {
    addresses: Sha256,
    amounts: Sha256,
    kinds: ByKind<u64>,
    count: u64,
}

impl Default for Summary {
    fn default() -> Self {
        Self { addresses: Sha256::default(), amounts: Sha256::default(), kinds: [0; 256], count: 0 }
    }
}

impl Summary {
    pub fn add(&mut self, entry: &Entry) {
        let (key, value) = (entry.key(), entry.value());
        self.addresses.update(key);
        self.amounts.update([value.len() as u8]);
        self.amounts.update(value);
        self.kinds[entry.kind_number()] += 1;
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn finish(self, identity: [u8; 16], created: u64) -> About {
        let kinds = AddressKind::all()
            .map(|kind| (kind, self.kinds[usize::from(kind.byte())]))
            .filter(|(_, count)| *count > 0)
            .collect();
        About {
            identity,
            created,
            records: self.count,
            addresses: self.addresses.finalize().into(),
            amounts: self.amounts.finalize().into(),
            kinds,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
