//! One address in a database: its kind, its digest and, where the source gave one, an amount.

use warpsmith_chain::{Address, AddressKind, Digest, identify};

/// An address with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What the address says of a key.
    pub kind: AddressKind,
    /// The bytes it says it with.
    pub digest: Digest,
    /// The balance in the smallest unit (satoshi, wei), as of the source.
    pub amount: Option<u128>,
}

impl Record {
    /// The record of an address, without an amount; `None` for an address that no single key has.
    pub fn parse(text: &str) -> Result<Option<Self>, warpsmith_chain::Error> {
        Ok(match identify(text)? {
            Address::Key(kind, digest) => Some(Self { kind, digest, amount: None }),
            Address::Script(_) => None,
        })
    }

    /// The address as text.
    pub fn text(&self) -> String {
        self.kind.text(&self.digest)
    }
}

/// The first 64 bits of a digest, most significant byte first: the key of a filter, and the order of a database.
pub fn key_of(digest: &[u8]) -> u64 {
    digest[..8].iter().fold(0, |key, &byte| key << 8 | u64::from(byte))
}

/// Something for each kind, by its byte.
pub(crate) type ByKind<T> = [T; 256];

/// The most bytes of a key: kind and digest.
pub(crate) const KEY_BYTES: usize = 1 + Digest::MAX;

/// A record as bytes, in the order of the database: by kind, by digest, then by amount, none first.
///
/// The kind says how long the digest is, so zeros after it do not change the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    key: [u8; KEY_BYTES],
    /// How many bytes of the amount are written: 0 for none, else 8 or 16.
    width: u8,
    /// Most significant byte first.
    amount: [u8; 16],
}

impl Entry {
    /// The bytes of a record.
    pub fn new(record: &Record) -> Self {
        Self::from_parts(record.kind, record.digest.as_bytes(), record.amount)
    }

    /// The same from a digest of the kind's length.
    pub fn from_parts(kind: AddressKind, digest: &[u8], amount: Option<u128>) -> Self {
        debug_assert_eq!(digest.len(), kind.digest_bytes());
        let mut key = [0; KEY_BYTES];
        key[0] = kind.byte();
        key[1..1 + digest.len()].copy_from_slice(digest);
        let width = match amount {
            None => 0,
            Some(amount) if amount <= u128::from(u64::MAX) => 8,
            Some(_) => 16,
        };
        Self { key, width, amount: amount.unwrap_or(0).to_be_bytes() }
    }

    /// What the entry is found by: kind and digest.
    pub fn key(&self) -> &[u8] {
        &self.key[..1 + self.kind().digest_bytes()]
    }

    /// The digest.
    pub fn digest(&self) -> &[u8] {
        &self.key()[1..]
    }

    /// Its kind.
    pub fn kind(&self) -> AddressKind {
        AddressKind::from_byte(self.key[0]).expect("an entry is made from a kind")
    }

    /// The kind's byte, as an index.
    pub fn kind_number(&self) -> usize {
        self.key[0].into()
    }

    /// The amount.
    pub fn amount(&self) -> Option<u128> {
        (self.width > 0).then(|| u128::from_be_bytes(self.amount))
    }

    /// The entry with what both of two with one key have.
    pub fn plus(&self, other: &Self) -> Self {
        let sum = match (self.amount(), other.amount()) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self::from_parts(self.kind(), self.digest(), sum)
    }

    /// The amount as it is in runs and digests: no byte, 8 or 16, most significant first.
    pub fn value(&self) -> &[u8] {
        &self.amount[16 - usize::from(self.width)..]
    }

    /// The record with these bytes.
    pub fn record(&self) -> Record {
        Record { kind: self.kind(), digest: Digest::new(self.digest()), amount: self.amount() }
    }

    /// The entry with this key and value; `None` when there is none.
    pub fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let (&kind, digest) = key.split_first()?;
        let kind = AddressKind::from_byte(kind).filter(|kind| digest.len() == kind.digest_bytes())?;
        let entry = Self::from_parts(kind, digest, read_amount(value)?);
        (entry.value() == value).then_some(entry)
    }
}

/// The amount of a stored value; `None` when it is none.
fn read_amount(value: &[u8]) -> Option<Option<u128>> {
    match value.len() {
        0 => Some(None),
        8 | 16 => Some(Some(value.iter().fold(0, |amount, &byte| amount << 8 | u128::from(byte)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_written_and_ordered_by_key_then_amount() {
        let amounts = [None, Some(0), Some(u128::from(u64::MAX)), Some(1 << 64), Some(u128::MAX)];
        let mut entries = Vec::new();
        for kind in AddressKind::all() {
            for fill in [0, 0x80, 0xff] {
                for amount in amounts {
                    let digest = vec![fill; kind.digest_bytes()];
                    let entry = Entry::from_parts(kind, &digest, amount);
                    assert_eq!(entry.key().len(), 1 + kind.digest_bytes());
                    assert!(Entry::read(entry.key(), entry.value()).is_some_and(|read| read == entry));
                    assert_eq!(read_amount(entry.value()), Some(amount));
                    assert_eq!(entry.record(), Record { kind, digest: Digest::new(&digest), amount });
                    entries.push(entry);
                }
            }
        }
        assert!(entries.is_sorted());
        assert!(entries.windows(2).all(|pair| pair[0].key() <= pair[1].key()));
        assert!(Entry::read(&[1; 20], &[]).is_none());
        assert!(Entry::read(&[0xff; 21], &[]).is_none());
        assert!(Entry::read(&[1; 21], &[0; 4]).is_none());
        // A small amount in sixteen bytes is not how it is written.
        assert!(Entry::read(&[1; 21], &[0; 16]).is_none());
        assert!(Entry::read(&[], &[]).is_none());
    }
}
