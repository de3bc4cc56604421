//! Binary fuse filters of a database's addresses: small enough for a device, wrong once in 256 or 65,536 times, and never
//! in the other direction.
//!
//! What a filter holds of an address are the first 64 bits of its digest as a number, most significant first: the first of
//! [`Digest::words`](warpsmith_chain::Digest::words). The kind is not in it: a key's hash is looked up once for all kinds
//! that have it, and the database says which it is.
//!
//! # Looking a key up
//!
//! A filter has one part or more ([`parts`]), the n-th of `parts` having the keys with `(key >> 32) * parts >> 32 = n`. All in
//! 64-bit and 32-bit unsigned numbers, `seed`, `segment_length` and `segment_count_length` being the part's, `f` its
//! fingerprints, and `segment_mask = segment_length - 1`:
//!
//! ```text
//! h  = key + seed;  h ^= h >> 33;  h *= 0xff51afd7ed558ccd;
//! h ^= h >> 33;  h *= 0xc4ceb9fe1a85ec53;  h ^= h >> 33
//! h0 = high 64 bits of (h * segment_count_length)
//! h1 = (h0 + segment_length)     ^ ((h >> 18) & segment_mask)
//! h2 = (h0 + 2 * segment_length) ^ (h & segment_mask)
//! the key may be in the set if  f[h0] ^ f[h1] ^ f[h2] = low bits of (h ^ (h >> 32))
//! ```
//!
//! (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022.) The construction is that of the crate
//! `xorf`, whose formula this is; [`Filter::contains`] is written after the text above and tested against the crate's.
//!
//! Making one takes 29 bytes for each address of a part, 1.9 GB at the most, and the filter itself: 1.1 or 2.3 bytes for each
//! address of all.

mod choose;
mod file;
mod parts;

pub use choose::{Choice, Load, choose};
pub use parts::FilterPart;

use std::path::PathBuf;

use parts::{Growing, MOST_TOGETHER, part_of, parts_of};
use warpsmith_chain::AddressKind;
use warpsmith_files::with_suffix;

use crate::Error;
use crate::database::Databases;
use crate::record::{Entry, key_of};

/// What messages call it.
pub(crate) const WHAT: &str = "filter";

/// How many bits a filter keeps of each address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits, about 9 with the overhead: one of 256 other keys passes.
    Fuse8,
    /// 16 bits, about 18 with the overhead: one of 65,536 other keys passes.
    Fuse16,
}

impl Width {
    /// Both, the larger first.
    pub const ALL: [Self; 2] = [Self::Fuse16, Self::Fuse8];

    /// The word for it on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fuse8 => "fuse8",
            Self::Fuse16 => "fuse16",
        }
    }

    /// The width with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.name() == name)
    }

    /// Bits of a fingerprint.
    pub fn bits(self) -> u32 {
        match self {
            Self::Fuse8 => 8,
            Self::Fuse16 => 16,
        }
    }

    /// The share of keys that pass although they are not in the set.
    pub fn false_share(self) -> f64 {
        (-f64::from(self.bits())).exp2()
    }
}

/// Keys after which it is told how much is done.
const TOLD: usize = 1 << 20;

/// Fingerprints, by width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fingerprints {
    /// One byte each.
    Bytes(Vec<u8>),
    /// Two bytes each.
    Words(Vec<u16>),
}

/// A filter of the addresses of some kinds in a database, or in several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    parts: Vec<FilterPart>,
    fingerprints: Fingerprints,
    kinds: Vec<AddressKind>,
    keys: u64,
    /// The database's, or that of several together.
    identity: [u8; 16],
}

impl Filter {
    /// Makes a filter of the addresses of these kinds in a database or several, of all kinds where none are given.
    pub fn build<'a>(
        databases: impl Into<Databases<'a>>,
        kinds: &[AddressKind],
        width: Width,
    ) -> Result<Self, Error> {
        Self::build_in_parts(databases, kinds, width, MOST_TOGETHER, &mut |_| ())
    }

    /// The same with parts of so many keys; `making` is told how much is done, from 0 to 1.
    pub(crate) fn build_in_parts<'a>(
        databases: impl Into<Databases<'a>>,
        kinds: &[AddressKind],
        width: Width,
        most: u64,
        making: &mut dyn FnMut(f64),
    ) -> Result<Self, Error> {
        making(0.0);
        let databases = databases.into();
        let kinds = kinds_in(&databases, kinds);
        let count: u64 = kinds.iter().map(|kind| databases.count(*kind)).sum();
        let parts = parts_of(count, most) as usize;
        let mut growing = Growing::new(width, choose::fingerprints_for(count, most));
        // The addresses of a kind lie in the order of their digests, so that those of a part follow each other.
        let of_kind = |kind: &AddressKind| {
            let kind = *kind;
            databases.each().map(move |database| (database, database.entries_of(kind).peekable()))
        };
        let mut sources: Vec<_> = kinds.iter().flat_map(of_kind).collect();
        let mut keys = Vec::with_capacity(choose::keys_of_part(count, most) as usize);
        // A key is read, and then it is built in: about as long each.
        let share = |built: u64, read: usize| (built as f64 + read as f64 / 2.0) / (count as f64).max(1.0);
        let mut built = 0;
        for part in 0..parts {
            for (database, source) in &mut sources {
                let is_of_part = |entry: &Result<Entry, Error>| match entry {
                    Ok(entry) => part_of(key_of(entry.digest()), parts) <= part,
                    // It is to be taken, and told.
                    Err(_) => true,
                };
                while let Some(entry) = source.next_if(is_of_part) {
                    let key = key_of(entry?.digest());
                    if part_of(key, parts) != part {
                        let (path, what) = (database.path().to_owned(), "database");
                        let reason = "its addresses are not in order".into();
                        return Err(Error::Corrupt { path, what, reason });
                    }
                    keys.push(key);
                    if keys.len().is_multiple_of(TOLD) {
                        making(share(built, keys.len()));
                    }
                }
            }
            built += keys.len() as u64;
            growing.add(&mut keys)?;
            making(share(built, 0));
        }
        Ok(Self::of(growing, kinds, databases.identity()))
    }

    /// A filter of these keys and no database, in so many parts: for self-tests.
    pub fn of_tops(keys: &[u64], width: Width, parts: usize) -> Result<Self, Error> {
        Self::of_keys(keys, width, parts, Vec::new(), [0; 16])
    }

    fn of_keys(
        keys: &[u64],
        width: Width,
        parts: usize,
        kinds: Vec<AddressKind>,
        identity: [u8; 16],
    ) -> Result<Self, Error> {
        let mut growing = Growing::new(width, 0);
        for part in 0..parts {
            growing.add(&mut keys.iter().copied().filter(|key| part_of(*key, parts) == part).collect())?;
        }
        Ok(Self::of(growing, kinds, identity))
    }

    fn of(growing: Growing, kinds: Vec<AddressKind>, identity: [u8; 16]) -> Self {
        let (parts, fingerprints, keys) = growing.finish();
        Self { parts, fingerprints, kinds, keys, identity }
    }

    /// Its parts, one at least.
    pub fn parts(&self) -> &[FilterPart] {
        &self.parts
    }

    /// The fingerprints, to be uploaded as they are.
    pub fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }

    /// How many bits it keeps of each address.
    pub fn width(&self) -> Width {
        match self.fingerprints {
            Fingerprints::Bytes(_) => Width::Fuse8,
            Fingerprints::Words(_) => Width::Fuse16,
        }
    }

    /// The kinds whose addresses are in it.
    pub fn kinds(&self) -> &[AddressKind] {
        &self.kinds
    }

    /// How many different keys are in it.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of the fingerprints.
    pub fn size(&self) -> u64 {
        match &self.fingerprints {
            Fingerprints::Bytes(bytes) => bytes.len() as u64,
            Fingerprints::Words(words) => 2 * words.len() as u64,
        }
    }

    /// Whether a digest may be one of the database's: always true for those that are.
    pub fn contains(&self, digest: &[u8]) -> bool {
        self.contains_key(key_of(digest))
    }

    /// The same by the first 64 bits of the digest.
    pub fn contains_key(&self, key: u64) -> bool {
        let part = &self.parts[part_of(key, self.parts.len())];
        let FilterPart { first, seed, segment_length, segment_count_length } = *part;
        let segment_mask = segment_length - 1;
        let mut h = key.wrapping_add(seed);
        h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        h ^= h >> 33;
        let h0 = ((u128::from(h) * u128::from(segment_count_length)) >> 64) as u32;
        let h1 = (h0 + segment_length) ^ ((h >> 18) as u32 & segment_mask);
        let h2 = (h0 + 2 * segment_length) ^ (h as u32 & segment_mask);
        let (f, [h0, h1, h2]) = (h ^ h >> 32, [h0, h1, h2].map(|h| first as usize + h as usize));
        match &self.fingerprints {
            Fingerprints::Bytes(bytes) => bytes[h0] ^ bytes[h1] ^ bytes[h2] == f as u8,
            Fingerprints::Words(words) => words[h0] ^ words[h1] ^ words[h2] == f as u16,
        }
    }

    /// The filter of a database's kinds, from the file beside the database, or made and saved there: also in place of one that
    /// an earlier database of this name left. That takes a while, and `making` is told how much is done, 0 before it begins.
    pub fn open_or_build<'a>(
        databases: impl Into<Databases<'a>>,
        kinds: &[AddressKind],
        width: Width,
        making: &mut dyn FnMut(f64),
    ) -> Result<Self, Error> {
        let databases = databases.into();
        match Self::open(databases.clone(), kinds, width) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(Error::OtherDatabase { .. }) => {}
            // Of an earlier version of this program.
            Err(Error::Version { found, known, .. }) if found < known => {}
            opened => return opened,
        }
        let filter = Self::build_in_parts(databases.clone(), kinds, width, MOST_TOGETHER, making)?;
        filter.save(databases)?;
        Ok(filter)
    }
}

/// The kinds asked for that databases have, in order and once each; all they have where none are asked for.
fn kinds_in(databases: &Databases<'_>, asked: &[AddressKind]) -> Vec<AddressKind> {
    databases.kinds().into_iter().filter(|kind| asked.is_empty() || asked.contains(kind)).collect()
}

/// Where the filter of these kinds lies: beside the database.
fn path_of(databases: &Databases<'_>, kinds: &[AddressKind], width: Width) -> PathBuf {
    let mut name = format!(".{}", width.name());
    if kinds.len() < databases.kinds().len() {
        for kind in kinds {
            name += "+";
            name += kind.name();
        }
    }
    with_suffix(&databases.filter_name(), name)
}

#[cfg(test)]
mod tests;
