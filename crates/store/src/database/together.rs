//! Several databases taken as one: what a scan looks for when it is given more than one.
//!
//! They stay files of their own. Together they have one filter, and one name for maps, in which neither their order nor one that
//! is given twice matters; a single one is named and filtered as it is by itself.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use warpsmith_chain::AddressKind;
use warpsmith_files::with_suffix;

use super::Database;
use crate::map::{Source, Targets};

/// One database or several.
#[derive(Clone, Debug)]
pub struct Databases<'a> {
    /// By identity, each once; one at least.
    all: Vec<&'a Database>,
}

impl<'a> From<&'a Database> for Databases<'a> {
    fn from(database: &'a Database) -> Self {
        Self { all: vec![database] }
    }
}

/// # Panics
///
/// Without any.
impl<'a> From<&'a [Database]> for Databases<'a> {
    fn from(databases: &'a [Database]) -> Self {
        assert!(!databases.is_empty(), "there is a database at least");
        let mut all: Vec<&Database> = databases.iter().collect();
        all.sort_by_key(|database| database.about.identity);
        all.dedup_by_key(|database| database.about.identity);
        Self { all }
    }
}

impl<'a> Databases<'a> {
    /// Each of them once.
    pub(crate) fn each(&self) -> impl Iterator<Item = &'a Database> + '_ {
        self.all.iter().copied()
    }

    /// How many records of a kind there are, those that several have counted for each.
    pub fn count(&self, kind: AddressKind) -> u64 {
        self.each().map(|database| database.about.count(kind)).sum()
    }

    /// The kinds of records there are, ascending.
    pub fn kinds(&self) -> Vec<AddressKind> {
        AddressKind::all().filter(|kind| self.count(*kind) > 0).collect()
    }

    /// What a map names them by: for databases that are built again from the same addresses, the same. How many addresses there
    /// are counts those that several have for each.
    pub fn targets(&self) -> Targets {
        let mut contents: Vec<([u8; 32], u64)> =
            self.each().map(|database| (database.about.addresses, database.about.records)).collect();
        contents.sort_unstable();
        contents.dedup();
        let digest = match contents[..] {
            [(addresses, _)] => addresses,
            _ => hash("addresses", contents.iter().map(|(addresses, _)| &addresses[..])),
        };
        let count = contents.iter().map(|(_, records)| records).sum();
        Targets { source: Source::Database, count, digest }
    }

    /// What tells these from all others, and from what they were before one of them was built again.
    pub(crate) fn identity(&self) -> [u8; 16] {
        match self.all[..] {
            [one] => one.about.identity,
            _ => {
                let joint = hash("identities", self.each().map(|database| &database.about.identity[..]));
                std::array::from_fn(|at| joint[at])
            }
        }
    }

    /// What the names of their filters begin with: beside the only one, or the first, and then with what tells them from others.
    pub(crate) fn filter_name(&self) -> PathBuf {
        let path = self.all[0].path();
        match self.all.len() {
            1 => path.to_owned(),
            _ => {
                let joint: String = self.identity()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
                with_suffix(path, format!(".with-{joint}"))
            }
        }
    }
}

/// One hash of several of one length, in their order.
fn hash<'h>(of: &str, parts: impl Iterator<Item = &'h [u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(format!("warpsmith databases {of}\n"));
    parts.for_each(|part| hash.update(part));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::tests::{Workshop, record};
    use crate::{Filter, Record, Width};

    fn some(of: std::ops::Range<u64>) -> Vec<Record> {
        of.map(|number| record([AddressKind::P2PKH, AddressKind::P2TR][number as usize % 2], number, None))
            .collect()
    }

    #[test]
    fn several_have_one_name_in_any_order_and_one_its_own() {
        let shop = Workshop::new();
        let open = |name: &str, of| shop.database(name, &some(of), 512);
        let (one, two, same) = (open("one", 0..100), open("two", 50..200), open("same", 0..100));
        let again = Database::open(&shop.path("one")).unwrap();
        let alone = Databases::from(&one);
        assert_eq!((alone.targets(), alone.identity()), (one.targets(), one.about.identity));
        assert_eq!(alone.filter_name(), one.path());
        let joint = |all: Vec<Database>| {
            let all = Databases::from(&all[..]);
            (all.targets(), all.identity(), all.filter_name())
        };
        let reopened = |name: &str| Database::open(&shop.path(name)).unwrap();
        // The same one twice is one; of the same addresses there is one in the eyes of a map.
        assert_eq!(
            joint(vec![again, reopened("one")]),
            (one.targets(), one.about.identity, one.path().into())
        );
        assert_eq!(joint(vec![same, reopened("one")]).0, one.targets());
        let both = joint(vec![reopened("one"), reopened("two")]);
        assert_eq!(joint(vec![reopened("two"), reopened("one"), reopened("two")]), both);
        assert_eq!(joint(vec![reopened("two"), reopened("same")]).0, both.0);
        assert_ne!(
            joint(vec![reopened("two"), reopened("same")]).1,
            both.1,
            "another file has other filters"
        );
        assert_eq!(both.0.count, 250);
        assert!(both.0 != one.targets() && both.0 != two.targets());
        assert_ne!((both.1, both.2.as_path()), (two.about.identity, two.path()));
    }

    /// A filter of several lets pass what any of them has, is kept beside one of them and found there again.
    #[test]
    fn several_have_one_filter() {
        let shop = Workshop::new();
        let all = [shop.database("one", &some(0..1000), 512), shop.database("two", &some(900..3000), 512)];
        let other = shop.database("three", &some(5000..5010), 512);
        for (kinds, count) in [(&[][..], 3000), (&[AddressKind::P2TR], 1500)] {
            for width in Width::ALL {
                let mut made = 0;
                let mut open = |all: &[Database]| {
                    Filter::open_or_build(all, kinds, width, &mut |share| made += u32::from(share == 0.0))
                        .unwrap()
                };
                let filter = open(&all);
                assert_eq!(filter.keys(), count, "those that both have are there once");
                let wanted = |record: &&Record| kinds.is_empty() || kinds.contains(&record.kind);
                let known = some(0..3000);
                assert!(known.iter().filter(wanted).all(|known| filter.contains(known.digest.as_bytes())));
                let turned = [1, 0].map(|at| Database::open(all[at].path()).unwrap());
                assert_eq!(open(&turned), filter);
                assert_eq!(made, 1, "it is read the second time");
                // In parts too, as a large one is.
                let parts = Filter::build_in_parts(&turned[..], kinds, width, 400, &mut |_| ()).unwrap();
                assert!(parts.parts().len() > 3 && parts.keys() == count);
                assert!(known.iter().filter(wanted).all(|known| parts.contains(known.digest.as_bytes())));
            }
        }
        // Each by itself has its own, beside those.
        let alone = Filter::open_or_build(&all[0], &[], Width::Fuse8, &mut |_| ()).unwrap();
        assert_eq!(alone.keys(), 1000);
        let names = shop.names();
        assert_eq!(names.iter().filter(|name| name.contains(".with-")).count(), 4, "{names:?}");
        assert!(names.contains(&"one.fuse8".to_owned()));
        let more = [all[0].path(), all[1].path(), other.path()].map(|path| Database::open(path).unwrap());
        assert!(matches!(Filter::open(&more[..], &[], Width::Fuse8), Err(crate::Error::Io { .. })));
    }
}
