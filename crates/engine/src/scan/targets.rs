//! What keys are compared with: types of addresses, and lists of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use warpsmith_chain::{Address, AddressKind, Digest, Form, KeyType, TYPES, identify};
use warpsmith_store::{
    Database, Databases, Filter, KeyMask, Map, Pace, Reader, Record, Source, TargetList, Targets,
};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::prefilter::{Fuse, ScanFilter, TopList};

/// Seconds that beginning somewhere else costs. A card's lanes get new centres (340,000 on an H200: 6 multiplications each on one
/// core, 27 MB to send), and their ends are compared by a core that does so five times a second. A processor walks whole
/// groups whatever a piece has.
const CARD_ANEW: f64 = 0.2;
const CPU_ANEW: f64 = 0.002;

/// What a scan looks for.
///
/// See [`scan`](crate::scan()).
pub struct ScanTargets {
    identity: Targets,
    types: Vec<&'static KeyType>,
    place: Place,
    filter: ScanFilter,
}

/// Where targets are looked up.
enum Place {
    /// In memory.
    List(HashMap<(AddressKind, Digest), Record>),
    /// On disk, in one database or several.
    Databases(Vec<Database>),
    /// Nowhere: every key is wanted, as an address of this kind.
    Every(AddressKind),
}

/// The most keys that a checksum may leave of a mask for all of them to be results, on average.
const MAX_LEFT: f64 = 64.0;

impl ScanTargets {
    /// The addresses of a list, narrowed to these types; with none, to all that addresses of the list can be.
    pub fn list(list: &TargetList, types: &[&'static KeyType]) -> Result<ScanTargets> {
        let types = choose(types, list.records.iter().map(|record| record.kind).collect())?;
        let wanted = |record: &&Record| types.iter().any(|wanted| wanted.kinds.contains(&record.kind));
        let records: HashMap<_, _> = list
            .records
            .iter()
            .filter(wanted)
            .map(|record| ((record.kind, record.digest), *record))
            .collect();
        let filter = ScanFilter::List(TopList::new(records.keys().map(|(_, digest)| digest.words()[0])));
        Ok(ScanTargets { identity: list.targets(), types, place: Place::List(records), filter })
    }

    /// The types that addresses of databases can be of, or those asked for; and the kinds of their records that matter then.
    pub fn choose(
        databases: &Databases<'_>,
        types: &[&'static KeyType],
    ) -> Result<(Vec<&'static KeyType>, Vec<AddressKind>)> {
        let kinds: BTreeSet<AddressKind> = databases.kinds().into_iter().collect();
        let types = choose(types, kinds.clone())?;
        let matters = |kind: &AddressKind| types.iter().any(|wanted| wanted.kinds.contains(kind));
        Ok((types.clone(), kinds.into_iter().filter(matters).collect()))
    }

    /// The addresses of databases, one at least, as [`Self::choose`] chose, with a filter of those kinds. What passes it on a card
    /// is tested by `second`, a finer one, before it is looked up.
    pub fn databases(
        databases: Vec<Database>,
        types: Vec<&'static KeyType>,
        filter: Filter,
        second: Option<Filter>,
    ) -> ScanTargets {
        let filter = ScanFilter::Fuse(Box::new(Fuse { first: filter, second }));
        Self::on_disk(databases, types, filter)
    }

    /// The same without a filter: every digest is looked up, which only processors do.
    pub fn unfiltered(databases: Vec<Database>, types: Vec<&'static KeyType>) -> ScanTargets {
        Self::on_disk(databases, types, ScanFilter::Open)
    }

    fn on_disk(databases: Vec<Database>, types: Vec<&'static KeyType>, filter: ScanFilter) -> ScanTargets {
        let identity = Databases::from(&databases[..]).targets();
        ScanTargets { identity, types, place: Place::Databases(databases), filter }
    }

    /// Every key of a mask whose checksum is right: where few of its candidates are keys, no address is needed to tell the one that
    /// is looked for. They are found as the address that the text is the key of.
    ///
    /// # Errors
    ///
    /// When the mask has no checksum, or too many candidates for it.
    pub fn every_key(mask: &KeyMask) -> Result<ScanTargets> {
        let Some(((found_as, kind), texts)) = mask.address_type().zip(mask.texts()) else {
            return Err(Error::Scan(format!(
                "every candidate of a {} is a key, so say which one is yours: give its address, its public key or a \
                 database. Only WIF keys and nsecs have a checksum that tells",
                mask.kind()
            )));
        };
        let left = texts.count() as f64 / texts.pruning();
        if left > MAX_LEFT {
            return Err(Error::Scan(format!(
                "some {left:.0} of its candidates have the right checksum, too many to tell yours by that alone: give its address, \
                 its public key or a database"
            )));
        }
        let digest = Sha256::digest(b"warpsmith every key").into();
        let identity = Targets { source: Source::Addresses, count: 0, digest };
        let (types, place) = (vec![found_as], Place::Every(kind));
        Ok(ScanTargets { identity, types, place, filter: ScanFilter::Open })
    }

    /// Whether every key is wanted ([`Self::every_key`]).
    pub fn is_every_key(&self) -> bool {
        matches!(self.place, Place::Every(_))
    }

    /// What a map names them by.
    pub fn identity(&self) -> &Targets {
        &self.identity
    }

    /// The types that are looked for, in the order of [`TYPES`].
    pub fn types(&self) -> &[&'static KeyType] {
        &self.types
    }

    /// Each digest that is looked for, in the form it is looked for in; none where they are in a database.
    pub fn digests(&self) -> Option<Vec<(Form, Digest)>> {
        let Place::List(records) = &self.place else { return None };
        let of = |wanted: &&'static KeyType| {
            let (form, kinds) = (wanted.form(), wanted.kinds.clone());
            let known = records.keys().filter(move |(kind, _)| kinds.contains(kind));
            known.map(move |(_, digest)| (form, *digest))
        };
        let mut digests: Vec<_> = self.types.iter().flat_map(of).collect();
        digests.sort_unstable_by_key(|(form, digest)| (*form, digest.words()));
        digests.dedup();
        Some(digests)
    }

    /// How many addresses there are; none where they are in a database, or every key is wanted.
    pub fn count(&self) -> Option<usize> {
        match &self.place {
            Place::List(records) => Some(records.len()),
            Place::Databases(_) | Place::Every(_) => None,
        }
    }

    /// Addresses of a list that a map says were found.
    pub(super) fn found_in(&self, map: &Map) -> HashSet<(AddressKind, Digest)> {
        let Place::List(records) = &self.place else { return HashSet::new() };
        let known = |(address, _)| match identify(address) {
            Ok(Address::Key(kind, digest)) => Some((kind, digest)).filter(|key| records.contains_key(key)),
            _ => None,
        };
        map.matches().filter_map(known).collect()
    }

    /// Whether a map says that every address of a list was found; never of a database.
    pub fn has_all(&self, map: &Map) -> bool {
        self.count().is_some_and(|count| self.found_in(map).len() >= count)
    }

    /// The forms in which these types are found, without repetition.
    pub fn forms(&self) -> Vec<Form> {
        let is_found = |form: &Form| self.types.iter().any(|wanted| wanted.form() == *form);
        Form::SCANNED.into_iter().filter(is_found).collect()
    }

    /// How fast these devices scan for them, and what it costs to begin somewhere else, roughly: what the pieces of a random order
    /// follow.
    pub fn pace(&self, devices: &Devices) -> Pace {
        let anew = if devices.has_cards() { CARD_ANEW } else { CPU_ANEW };
        Pace { rate: devices.tests_per_second() / self.forms().len() as f64, anew }
    }

    /// The share of digests that pass the filter although they are none of these.
    pub(crate) fn false_share(&self) -> f64 {
        match &self.filter {
            ScanFilter::List(_) => 0.0,
            ScanFilter::Fuse(filter) => filter.second.as_ref().unwrap_or(&filter.first).width().false_share(),
            ScanFilter::Open => 1.0,
        }
    }

    /// The quick look that comes before [`Self::find`].
    pub(crate) fn filter(&self) -> &ScanFilter {
        &self.filter
    }

    /// A view for one thread to look keys up.
    pub(super) fn finder(&self) -> Finder<'_> {
        let shelf = match &self.place {
            Place::List(records) => Shelf::List(records),
            Place::Databases(all) => Shelf::Databases(all.iter().map(Database::reader).collect()),
            Place::Every(kind) => Shelf::Every(*kind),
        };
        Finder { types: &self.types, shelf }
    }
}

/// Looks keys up, for one thread.
pub(super) struct Finder<'t> {
    types: &'t [&'static KeyType],
    shelf: Shelf<'t>,
}

enum Shelf<'t> {
    List(&'t HashMap<(AddressKind, Digest), Record>),
    Databases(Vec<Reader<'t>>),
    Every(AddressKind),
}

impl Finder<'_> {
    /// The types under which a key with this digest in this form is wanted, and the records that say so. An error where the
    /// part of a database that would have them is damaged.
    pub fn find(&self, form: Form, digest: &Digest) -> Result<Vec<(&'static KeyType, Record)>> {
        let mut found = Vec::new();
        for &wanted in self.types.iter().filter(|wanted| wanted.form() == form) {
            for &kind in &wanted.kinds {
                let record = match &self.shelf {
                    Shelf::Every(every) => {
                        (kind == *every).then_some(Record { kind, digest: *digest, amount: None })
                    }
                    Shelf::List(records) => records.get(&(kind, *digest)).copied(),
                    Shelf::Databases(readers) => {
                        let records = readers.iter().map(|reader| reader.find(kind, digest.as_bytes()));
                        let records = records.filter_map(std::result::Result::transpose);
                        let records = records.collect::<std::result::Result<Vec<_>, _>>()?;
                        // Of what several have, the largest amount holds, as where one database is made of them.
                        records.into_iter().max_by_key(|record| record.amount)
                    }
                };
                found.extend(record.map(|record| (wanted, record)));
            }
        }
        Ok(found)
    }
}

/// The types to look for: those asked for, or all that records of these kinds can be.
fn choose(asked: &[&'static KeyType], kinds: BTreeSet<AddressKind>) -> Result<Vec<&'static KeyType>> {
    let possible = |wanted: &&'static KeyType| wanted.kinds.iter().any(|kind| kinds.contains(kind));
    for wanted in asked {
        if !possible(wanted) {
            return Err(Error::Scan(format!(
                "no address among the targets can be of type {wanted}; leave that type out"
            )));
        }
    }
    let taken = |wanted: &&'static KeyType| match asked {
        [] => possible(wanted),
        asked => asked.contains(wanted),
    };
    let types: Vec<&'static KeyType> = TYPES.iter().filter(taken).collect();
    if types.is_empty() {
        return Err(Error::Scan("a scan cannot look for any of these addresses yet".to_owned()));
    }
    Ok(types)
}
