//! New values for keys of a table: which entries change, and how.

use std::collections::{BTreeMap, VecDeque};

use super::Live;
use crate::error::{Error, Result};
use crate::keyword::{Layout, Name, RecordLayout, TableShape, chunk_key, name, split, tag_of, tagged_entry};

/// Places that are looked at before a new key is taken to have none. At usual loads a free one is found among tens.
const PATIENCE: usize = 100_000;

/// What becomes of a key: a new value, or none when it is taken out. In [`Layout::Records`] the value is the whole record.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// The entries that change, and what they become: for [`Live::difference`]. A new key takes a free place, or one whose
/// entry can move; only tagged entries can, as they say where else they may stand.
///
/// # Errors
///
/// When a key that is taken out is not there, or a value does not fit: the message names the change by its number, counted from 0.
/// [`Error::Full`] when there is no place for a new key: then [`Live::grow`] makes a larger table.
pub fn entries_of_changes(
    live: &Live,
    shape: &TableShape,
    changes: &[Change],
) -> Result<Vec<(u64, Vec<u8>)>> {
    entries_of_changes_moving(live, shape, changes, &|_| None)
}

/// As [`entries_of_changes`], where somebody knows the names of records ([`Layout::Records`]): then these move too.
///
/// # Errors
///
/// The same.
pub fn entries_of_changes_moving(
    live: &Live,
    shape: &TableShape,
    changes: &[Change],
    name_of: &dyn Fn(&[u8]) -> Option<Name>,
) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut table = NewTable::new(live, shape, name_of)?;
    for (number, (key, value)) in changes.iter().enumerate() {
        let set = match shape.layout.chunks() {
            None => table.set(key, value.as_deref())?,
            Some(most) => table.set_chunks(key, value.as_deref(), most)?,
        };
        match set {
            Ok(()) => {}
            Err(NotSet::Full) => return Err(Error::Full(number)),
            Err(NotSet::Wrong(reason)) => return Err(Error::format(format!("change {number}"), reason)),
        }
    }
    Ok(table.changed.into_iter().collect())
}

/// The entry of a key as it is, if the key is there.
///
/// # Errors
///
/// When an entry cannot be read.
pub fn standing(live: &Live, shape: &TableShape, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let table = NewTable::new(live, shape, &|_| None)?;
    table.place_of(key)?.map(|place| live.entry(place)).transpose()
}

/// Why a key has not its new value.
enum NotSet {
    /// All its places are taken.
    Full,
    /// It cannot have it.
    Wrong(String),
}

/// The entries as they will be.
struct NewTable<'a> {
    live: &'a Live,
    shape: &'a TableShape,
    /// Tells whose records are; none where entries are tagged.
    records: Option<&'static dyn RecordLayout>,
    /// The names of records.
    name_of: &'a dyn Fn(&[u8]) -> Option<Name>,
    changed: BTreeMap<u64, Vec<u8>>,
}

impl<'a> NewTable<'a> {
    fn new(
        live: &'a Live,
        shape: &'a TableShape,
        name_of: &'a dyn Fn(&[u8]) -> Option<Name>,
    ) -> Result<NewTable<'a>> {
        let records = match shape.layout {
            Layout::Records => Some(live.records.ok_or_else(|| {
                let reason =
                    "its records are those of an application, and it was opened without their layout";
                Error::format(live.path.display().to_string(), reason)
            })?),
            _ => None,
        };
        Ok(NewTable { live, shape, records, name_of, changed: BTreeMap::new() })
    }

    /// Gives a key a new value, or takes it out; the inner error says why not.
    fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<std::result::Result<(), NotSet>> {
        let size = self.live.params().entry_size();
        let old = self.place_of(key)?;
        let entry = match (value, self.shape.layout) {
            (None, _) => None,
            (Some(record), Layout::Records) => Some(record.to_vec()).filter(|record| record.len() == size),
            (Some(value), _) => tagged_entry(key, value, size),
        };
        match (value, entry, old) {
            (None, _, None) => return Ok(Err(NotSet::Wrong("there is no such key to take out".into()))),
            (None, _, Some(place)) => drop(self.changed.insert(place, vec![0; size])),
            (Some(value), None, _) => {
                let reason = format!("a value of {} bytes does not fit an entry of {size}", value.len());
                return Ok(Err(NotSet::Wrong(reason)));
            }
            (Some(_), Some(entry), Some(place)) => drop(self.changed.insert(place, entry)),
            (Some(_), Some(entry), None) => {
                if !self.insert(self.shape.places_of(key), entry)? {
                    return Ok(Err(NotSet::Full));
                }
            }
        }
        Ok(Ok(()))
    }

    /// The same, chunk by chunk; those that the new value does not have are taken out.
    fn set_chunks(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        most: u16,
    ) -> Result<std::result::Result<(), NotSet>> {
        let size = self.live.params().entry_size();
        let chunks: Vec<&[u8]> = value.iter().flat_map(|value| split(value, size)).collect();
        if chunks.len() > usize::from(most) {
            let length = value.map_or(0, <[u8]>::len);
            return Ok(Err(NotSet::Wrong(format!(
                "a value of {length} bytes has {} chunks, and a look-up asks for {most}; build the database anew",
                chunks.len()
            ))));
        }
        for number in 0..most {
            let (key, chunk) = (chunk_key(key, number), chunks.get(usize::from(number)).copied());
            // A key that is taken out has its first chunk at the least.
            let is_needed = chunk.is_some() || (value.is_none() && number == 0);
            if (is_needed || self.place_of(&key)?.is_some())
                && let Err(reason) = self.set(&key, chunk)?
            {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(()))
    }

    fn entry(&self, place: u64) -> Result<Vec<u8>> {
        self.changed.get(&place).map_or_else(|| self.live.entry(place), |entry| Ok(entry.clone()))
    }

    /// Where a key stands.
    fn place_of(&self, key: &[u8]) -> Result<Option<u64>> {
        let name = name(key);
        for place in self.shape.places_of_name(&name) {
            let entry = self.entry(place)?;
            let is_its = match self.records {
                Some(records) => records.belongs_to(key, &entry),
                None => tag_of(&entry) == Some(&name),
            };
            if is_its {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Puts an entry in one of its places; says whether there was one. Where all are taken, as few others move as can be,
    /// since every entry that changes costs each client some work: places are searched by how many moves they are away.
    fn insert(&mut self, places: Vec<u64>, mut entry: Vec<u8>) -> Result<bool> {
        // Each place with the one from which an entry would move there.
        let mut seen: BTreeMap<u64, Option<u64>> = places.iter().map(|place| (*place, None)).collect();
        let mut waiting = VecDeque::from(places);
        while let Some(place) = waiting.pop_front() {
            let standing = self.entry(place)?;
            if standing.iter().all(|byte| *byte == 0) {
                // From the free place back to one of the new key's own.
                let mut way = vec![place];
                while let Some(before) = seen[way.last().expect("it begins with a place")] {
                    way.push(before);
                }
                for place in way.into_iter().rev() {
                    let moved = self.entry(place)?;
                    self.changed.insert(place, std::mem::replace(&mut entry, moved));
                }
                return Ok(true);
            }
            let name = match self.shape.layout {
                // Whose it is, somebody may know. It moves only if it stands where that name may stand.
                Layout::Records => {
                    (self.name_of)(&standing).filter(|name| self.shape.places_of_name(name).contains(&place))
                }
                _ => Some(
                    *tag_of(&standing)
                        .ok_or_else(|| Error::format("entry", format!("{place} has no tag")))?,
                ),
            };
            for next in name.iter().flat_map(|name| self.shape.places_of_name(name)) {
                if seen.len() < PATIENCE && !seen.contains_key(&next) {
                    seen.insert(next, Some(place));
                    waiting.push_back(next);
                }
            }
        }
        Ok(false)
    }
}
