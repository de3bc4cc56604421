//! What keys are compared with: types of addresses, and lists of them.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use warpsmith_chain::bitcoin::{AddressType, Bitcoin, Network};
use warpsmith_chain::ethereum::Account;
use warpsmith_chain::{Digest, Form, KeyTarget};
use warpsmith_store::{Database, Filter, Kind, Reader, Record, TargetList, Targets};

use crate::error::{Error, Result};
use crate::prefilter::{ScanFilter, TopList};

/// A type of address: what a scan can be narrowed to, and what a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanType {
    /// A Bitcoin address.
    Bitcoin(AddressType),
    /// An Ethereum account.
    Ethereum,
}

impl ScanType {
    /// Every type, in the order results have.
    pub fn all() -> impl Iterator<Item = ScanType> {
        AddressType::ALL.into_iter().map(ScanType::Bitcoin).chain([ScanType::Ethereum])
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            ScanType::Bitcoin(address_type) => address_type.name(),
            ScanType::Ethereum => "eth",
        }
    }

    /// What is computed of a key to find such an address.
    pub fn form(self) -> Form {
        match self {
            ScanType::Bitcoin(address_type) => Bitcoin::main(address_type).form(),
            ScanType::Ethereum => Account.form(),
        }
    }

    /// The kinds of records that a key can have as this type.
    fn kinds(self) -> &'static [Kind] {
        match self {
            // One digest, but what kind of address it was says how it can be spent.
            ScanType::Bitcoin(AddressType::P2pkh) => &[Kind::P2pkh, Kind::P2pkhTest, Kind::Hash160],
            ScanType::Bitcoin(AddressType::P2wpkh) => &[Kind::P2wpkh, Kind::P2wpkhTest],
            _ => Kind::of_form(self.form()),
        }
    }

    /// The target of a finding of this type: one of a record.
    pub(super) fn target(self, record: &Record) -> Box<dyn KeyTarget> {
        match self {
            ScanType::Bitcoin(address_type) => {
                let network = record.kind.bitcoin().map_or(Network::Main, |bitcoin| bitcoin.network);
                Box::new(Bitcoin { address_type, network })
            }
            ScanType::Ethereum => Box::new(Account),
        }
    }
}

impl fmt::Display for ScanType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ScanType {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<ScanType, String> {
        ScanType::all().find(|known| known.name() == text).ok_or_else(|| {
            let names: Vec<&str> = ScanType::all().map(ScanType::name).collect();
            format!("'{text}' is no type of address; known are {}", names.join(", "))
        })
    }
}

/// What a scan looks for.
pub struct ScanTargets {
    identity: Targets,
    types: Vec<ScanType>,
    place: Place,
    filter: ScanFilter,
}

/// Where targets are looked up.
enum Place {
    /// In memory.
    List(HashMap<(Kind, Digest), Record>),
    /// On disk.
    Database(Database),
}

impl ScanTargets {
    /// The addresses of a list, narrowed to these types; with none, to all that addresses of the list can be.
    pub fn list(list: &TargetList, types: &[ScanType]) -> Result<ScanTargets> {
        let types = choose(types, list.records.iter().map(|record| record.kind).collect())?;
        let wanted = |record: &&Record| types.iter().any(|wanted| wanted.kinds().contains(&record.kind));
        let records: HashMap<_, _> = list
            .records
            .iter()
            .filter(wanted)
            .map(|record| ((record.kind, record.digest), *record))
            .collect();
        let filter = ScanFilter::List(TopList::new(records.keys().map(|(_, digest)| digest.words()[0])));
        Ok(ScanTargets { identity: list.targets(), types, place: Place::List(records), filter })
    }

    /// The types that addresses of a database can be of, or those asked for; and the kinds of its records that matter then.
    pub fn choose(database: &Database, types: &[ScanType]) -> Result<(Vec<ScanType>, Vec<Kind>)> {
        let kinds: BTreeSet<Kind> = database.about().kinds.iter().map(|(kind, _)| *kind).collect();
        let types = choose(types, kinds.clone())?;
        let matters = |kind: &Kind| types.iter().any(|wanted| wanted.kinds().contains(kind));
        Ok((types.clone(), kinds.into_iter().filter(matters).collect()))
    }

    /// The addresses of a database, as [`Self::choose`] chose, with a filter of those kinds.
    pub fn database(database: Database, types: Vec<ScanType>, filter: Filter) -> ScanTargets {
        let filter = ScanFilter::Fuse(Box::new(filter));
        ScanTargets { identity: database.targets(), types, place: Place::Database(database), filter }
    }

    /// What a map names them by.
    pub fn identity(&self) -> &Targets {
        &self.identity
    }

    /// The types that are looked for, in the order of [`ScanType::all`].
    pub fn types(&self) -> &[ScanType] {
        &self.types
    }

    /// The forms in which these types are found, without repetition.
    pub(super) fn forms(&self) -> Vec<Form> {
        let is_found = |form: &Form| self.types.iter().any(|wanted| wanted.form() == *form);
        Form::SCANNED.into_iter().filter(is_found).collect()
    }

    /// The quick look that comes before [`Self::find`].
    pub(super) fn filter(&self) -> &ScanFilter {
        &self.filter
    }

    /// A view for one thread to look keys up.
    pub(super) fn finder(&self) -> Finder<'_> {
        let shelf = match &self.place {
            Place::List(records) => Shelf::List(records),
            Place::Database(database) => Shelf::Database(database.reader()),
        };
        Finder { types: &self.types, shelf }
    }
}

/// Looks keys up, for one thread.
pub(super) struct Finder<'t> {
    types: &'t [ScanType],
    shelf: Shelf<'t>,
}

enum Shelf<'t> {
    List(&'t HashMap<(Kind, Digest), Record>),
    Database(Reader<'t>),
}

impl Finder<'_> {
    /// The types under which a key with this digest in this form is wanted, and the records that say so. An error where the
    /// part of a database that would have them is damaged.
    pub fn find(&self, form: Form, digest: &Digest) -> Result<Vec<(ScanType, Record)>> {
        let mut found = Vec::new();
        for &wanted in self.types.iter().filter(|wanted| wanted.form() == form) {
            for &kind in wanted.kinds() {
                let record = match &self.shelf {
                    Shelf::List(records) => records.get(&(kind, *digest)).copied(),
                    Shelf::Database(reader) => reader.find(kind, digest.as_bytes())?,
                };
                found.extend(record.map(|record| (wanted, record)));
            }
        }
        Ok(found)
    }
}

/// The types to look for: those asked for, or all that records of these kinds can be.
fn choose(asked: &[ScanType], kinds: BTreeSet<Kind>) -> Result<Vec<ScanType>> {
    let possible = |wanted: &ScanType| wanted.kinds().iter().any(|kind| kinds.contains(kind));
    for wanted in asked {
        if !possible(wanted) {
            return Err(Error::Scan(format!(
                "no address among the targets can be of type {wanted}; leave that type out"
            )));
        }
    }
    let taken = |wanted: &ScanType| match asked {
        [] => possible(wanted),
        asked => asked.contains(wanted),
    };
    let types: Vec<ScanType> = ScanType::all().filter(taken).collect();
    if types.is_empty() {
        return Err(Error::Scan("a scan cannot look for any of these addresses yet".to_owned()));
    }
    Ok(types)
}
