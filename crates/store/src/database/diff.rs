//! Two databases side by side: what one has and the other has not, and amounts that changed. Both are in order, so each is read
//! once and next to nothing is in memory.

use std::cmp::Ordering;
use std::iter::Peekable;

use super::Database;
use super::entries::Entries;
use crate::record::Entry;
use crate::{Error, Record};

/// In what one address differs between two databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only the second has it.
    Added(Record),
    /// Only the first has it.
    Removed(Record),
    /// Both have it, with another amount: as in the first, and as in the second.
    Changed(Record, Record),
}

/// Goes through two databases. Ends with the first error.
pub struct Differences<'a> {
    old: Peekable<Entries<'a>>,
    new: Peekable<Entries<'a>>,
}

impl Database {
    /// What `new` has and this one has not, the other way round, and changed amounts: by kind and digest.
    pub fn differences<'a>(&'a self, new: &'a Database) -> Differences<'a> {
        Differences { old: self.entries().peekable(), new: new.entries().peekable() }
    }
}

impl Iterator for Differences<'_> {
    type Item = Result<Difference, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // What one of them ends with, an error above all, is taken before what the other goes on with.
            let order = match (self.old.peek(), self.new.peek()) {
                (None, None) => return None,
                (Some(Ok(old)), Some(Ok(new))) => old.key().cmp(new.key()),
                (Some(Err(_)), _) | (Some(Ok(_)), None) => Ordering::Less,
                (_, Some(Err(_))) | (None, Some(Ok(_))) => Ordering::Greater,
            };
            let old = if order.is_le() { self.old.next() } else { None };
            let new = if order.is_ge() { self.new.next() } else { None };
            let pair = match (old.transpose(), new.transpose()) {
                (Ok(old), Ok(new)) => (old.map(record), new.map(record)),
                (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
            };
            match pair {
                (Some(old), Some(new)) if old.amount == new.amount => {}
                (Some(old), Some(new)) => return Some(Ok(Difference::Changed(old, new))),
                (Some(old), None) => return Some(Ok(Difference::Removed(old))),
                (None, Some(new)) => return Some(Ok(Difference::Added(new))),
                (None, None) => return None,
            }
        }
    }
}

fn record(entry: Entry) -> Record {
    entry.record()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use proptest::prelude::*;
    use warpsmith_chain::AddressKind;

    use super::*;
    use crate::database::tests::{Workshop, record};

    /// Records by number, of two kinds, with amounts or none.
    fn records(amounts: &BTreeMap<u64, Option<u8>>) -> Vec<Record> {
        let kinds = [AddressKind::P2PKH, AddressKind::P2TR];
        let of = |(number, amount): (&u64, &Option<u8>)| {
            record(kinds[(number % 2) as usize], *number, amount.map(u128::from))
        };
        amounts.iter().map(of).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..Default::default() })]

        /// Whatever is in two databases, the differences are those of two maps of the standard library.
        #[test]
        fn differences_are_those_of_maps(
            old in prop::collection::btree_map(0..60u64, prop::option::of(0..3u8), 1..50),
            new in prop::collection::btree_map(0..60u64, prop::option::of(0..3u8), 1..50),
        ) {
            let shop = Workshop::new();
            let by_key = |records: Vec<Record>| -> BTreeMap<Vec<u8>, Record> {
                records.into_iter().map(|record| (Entry::new(&record).key().to_vec(), record)).collect()
            };
            let databases = [("old", &old), ("new", &new)].map(|(name, of)| shop.database(name, &records(of), 256));
            let (old, new) = (by_key(records(&old)), by_key(records(&new)));
            let mut expected: BTreeMap<Vec<u8>, Difference> = BTreeMap::new();
            for (key, record) in &old {
                match new.get(key) {
                    None => _ = expected.insert(key.clone(), Difference::Removed(*record)),
                    Some(other) if other == record => {}
                    Some(other) => _ = expected.insert(key.clone(), Difference::Changed(*record, *other)),
                }
            }
            let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
            expected.extend(added.map(|(key, record)| (key.clone(), Difference::Added(*record))));
            let found: Vec<Difference> = databases[0].differences(&databases[1]).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(found, expected.into_values().collect::<Vec<_>>());
            prop_assert_eq!(databases[0].differences(&databases[0]).count(), 0);
        }
    }

    /// Damage in either is told, and nothing after it is taken for a difference.
    #[test]
    fn damage_ends_a_comparison() {
        let shop = Workshop::new();
        let all: Vec<Record> = (0..200).map(|number| record(AddressKind::P2PKH, number, None)).collect();
        let whole = shop.database("whole", &all, 256);
        shop.database("damaged", &all, 256);
        let mut bytes = fs::read(shop.path("damaged")).unwrap();
        bytes[4096 + 5 * 256 + 7] ^= 1;
        fs::write(shop.path("damaged"), bytes).unwrap();
        let damaged = Database::open(&shop.path("damaged")).unwrap();
        for (old, new) in [(&whole, &damaged), (&damaged, &whole)] {
            let found: Vec<_> = old.differences(new).take(3).collect();
            assert!(matches!(&found[..1], [Err(Error::Corrupt { .. })]), "{found:?}");
        }
    }
}
