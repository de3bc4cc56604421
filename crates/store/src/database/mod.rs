//! The address database: an LMDB environment of fixed-width records that never changes once it is built.
//!
//! A folder with `data.mdb`, in which LMDB's database `records` maps kind and digest to the amount, and `about` says
//! what is in there. Since nothing ever writes to it, readers need no locks, and a filter made from it stays right.

mod about;
mod build;
mod foreign;
mod sort;

pub use about::About;
pub use build::{BuildOptions, Built, Progress, Stage};

use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};
use warpsmith_target::Digest;

use crate::map::{Source, Targets};
use crate::record::{Entry, read_amount};
use crate::{Error, Kind, Record};

const WHAT: &str = "address database";

/// The file of an LMDB environment.
const DATA: &str = "data.mdb";
/// LMDB's databases in ours, and the only key of the second.
const RECORDS: &str = "records";
const ABOUT: &str = "about";

type Table = heed::Database<Bytes, Bytes>;

/// An address database, open for reading by any number of threads. A process may open one only once at a time.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    env: Env<WithoutTls>,
    records: Table,
    about: About,
}

impl Database {
    /// Opens a database that [`Database::build`] made.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let env = open_to_read(path)?;
        let not = |reason: &str| Error::NotADatabase { path: path.to_owned(), reason: reason.to_owned() };
        let failed = || Error::lmdb("read", path);
        let txn = env.read_txn().map_err(failed())?;
        let records = env.open_database(&txn, Some(RECORDS)).map_err(failed())?;
        let about: Option<Table> = env.open_database(&txn, Some(ABOUT)).map_err(failed())?;
        let (Some(records), Some(about)) = (records, about) else {
            return Err(not("it is an LMDB environment of another program; build one from it"));
        };
        let Some(text) = about.get(&txn, ABOUT.as_bytes()).map_err(failed())? else {
            return Err(not("it was not finished; build it again"));
        };
        let about = About::read(path, text)?;
        // LMDB keeps a handle for as long as the transaction that opened it ends well.
        txn.commit().map_err(failed())?;
        Ok(Self { path: path.to_owned(), env, records, about })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What a map names it by. A database built again from the same addresses has the same name.
    pub fn targets(&self) -> Targets {
        Targets { source: Source::Database, count: self.about.records, digest: self.about.addresses }
    }

    /// Bytes on disk.
    pub fn size(&self) -> Result<u64, Error> {
        self.env.real_disk_size().map_err(Error::lmdb("look at", &self.path))
    }

    /// A view for one thread to look addresses up.
    pub fn reader(&self) -> Result<Reader<'_>, Error> {
        let txn = self.env.read_txn().map_err(Error::lmdb("read", &self.path))?;
        Ok(Reader { database: self, txn })
    }

    /// Reads every record and checks it: that it is one, that they are in order, and that counts and digests are those the
    /// database says. `progress` is told how many were read.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<(), Error> {
        let corrupt = |reason: String| Error::Corrupt { path: self.path.clone(), what: WHAT, reason };
        let mut summary = about::Summary::default();
        let mut last: Vec<u8> = Vec::new();
        let reader = self.reader()?;
        for record in reader.pairs()? {
            let (key, value) = record.map_err(Error::lmdb("read", &self.path))?;
            let entry = Entry::read(key, value);
            let entry = entry.ok_or_else(|| corrupt(format!("record {} is none", summary.count() + 1)))?;
            if last.as_slice() >= key {
                return Err(corrupt(format!("record {} is out of order", summary.count() + 1)));
            }
            last.clear();
            last.extend_from_slice(key);
            summary.add(&entry);
            if summary.count() % (1 << 20) == 0 {
                progress(summary.count());
            }
        }
        progress(summary.count());
        match self.about.difference(&summary.finish(self.about.identity, self.about.created)) {
            None => Ok(()),
            Some(difference) => Err(corrupt(difference)),
        }
    }
}

/// A view of a database for one thread.
pub struct Reader<'a> {
    database: &'a Database,
    txn: RoTxn<'a, WithoutTls>,
}

impl Reader<'_> {
    /// The record of this kind with this digest.
    pub fn find(&self, kind: Kind, digest: &[u8]) -> Result<Option<Record>, Error> {
        if digest.len() != kind.digest_bytes() || self.database.about.count(kind) == 0 {
            return Ok(None);
        }
        let entry = Entry::from_parts(kind, digest, None);
        let path = &self.database.path;
        let value = self.database.records.get(&self.txn, entry.key()).map_err(Error::lmdb("read", path))?;
        let Some(value) = value else { return Ok(None) };
        let amount = read_amount(value).ok_or_else(|| Error::Corrupt {
            path: path.clone(),
            what: WHAT,
            reason: format!("an amount has {} bytes", value.len()),
        })?;
        Ok(Some(Record { kind, digest: Digest::new(digest), amount }))
    }

    /// The records of any of these kinds with this digest: for what a device found, those of [`Kind::of_recipe`].
    pub fn find_any(&self, kinds: &[Kind], digest: &[u8]) -> Result<Vec<Record>, Error> {
        let mut found = Vec::new();
        for kind in kinds {
            found.extend(self.find(*kind, digest)?);
        }
        Ok(found)
    }

    /// The records of an address: of its kind, and what is known of its hash without a kind.
    pub fn find_address(&self, address: &Record) -> Result<Vec<Record>, Error> {
        let is_hash = address.kind.bitcoin().is_some() && address.kind.digest_bytes() == 20;
        let kinds = [address.kind, Kind::Hash160];
        self.find_any(if is_hash { &kinds } else { &kinds[..1] }, address.digest.as_bytes())
    }

    /// All records, by kind and digest.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<Record, Error>>, Error> {
        let path = &self.database.path;
        let corrupt = |reason: &str| Error::Corrupt { path: path.clone(), what: WHAT, reason: reason.into() };
        Ok(self.pairs()?.map(move |pair| {
            let (key, value) = pair.map_err(Error::lmdb("read", path))?;
            let record = Entry::read(key, value).map(|entry| entry.record());
            record.ok_or_else(|| corrupt("a record is none; `db verify` says which"))
        }))
    }

    /// The digests of a kind in ascending order.
    pub(crate) fn digests(&self, kind: Kind) -> Result<impl Iterator<Item = Result<&[u8], Error>>, Error> {
        let failed = || Error::lmdb("read", &self.database.path);
        let pairs = self.database.records.prefix_iter(&self.txn, &[kind as u8]).map_err(failed())?;
        Ok(pairs.map(move |pair| pair.map(|(key, _)| &key[1..]).map_err(failed())))
    }

    fn pairs(&self) -> Result<heed::RoIter<'_, Bytes, Bytes>, Error> {
        self.database.records.iter(&self.txn).map_err(Error::lmdb("read", &self.database.path))
    }
}

/// Opens an LMDB environment that nobody writes to.
fn open_to_read(path: &Path) -> Result<Env<WithoutTls>, Error> {
    let not = |reason: String| Error::NotADatabase { path: path.to_owned(), reason };
    let data = path.join(DATA);
    let length = match std::fs::metadata(&data) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(Error::io("read", &data)(error));
        }
        Err(_) => return Err(not(format!("there is no file {DATA} in it"))),
    };
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(2);
    // SAFETY: read-only and without LMDB's lock. The map is sound as long as nobody changes the file, and nobody does: ours
    // are finished before they get their name and never written again, and the documentation says so of those of others.
    let env = unsafe { options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK).open(path) };
    let env = env.map_err(|error| match error {
        heed::Error::EnvAlreadyOpened => not("this process has it open already".into()),
        error => not(error.to_string()),
    })?;
    // Pages beyond the end of a file that was cut short would be a fatal signal at the first look.
    let wanted = (env.info().last_page_number as u64 + 1) * u64::from(env.stat().page_size);
    if length < wanted {
        let reason = format!("it has {length} bytes of {wanted}");
        return Err(Error::Truncated { path: path.to_owned(), what: WHAT, reason });
    }
    Ok(env)
}

#[cfg(test)]
mod tests;
