//! Entries looked up by key: a cuckoo table. Each key has a few places, its record stands in one of them, and a lookup
//! asks for all of them, always.
//!
//! The table is cut into partitions, and all places of a key lie in one: so a table of any size is built one partition
//! at a time ([`table`](crate::table)). Where a key may stand follows from its *name*, 14 bytes of its SHA-256; equal names of two keys
//! have a chance of 2^-51 among two thousand million. An empty place is an entry of zeros.
//!
//! Entries of most tables are *tagged*: they carry length and name before the value,
//!
//! ```text
//! length of the value u16, name [14], value, zeros
//! ```
//!
//! so an entry says whose it is and where else it may stand, and a value comes back as long as it was. Values longer than an
//! entry stand in several, as chunks ([`chunk_key`]).

mod chunks;
mod records;

use sha2::{Digest, Sha256};

pub(crate) use self::chunks::split;
pub use self::chunks::{chunk_key, chunked_value, chunks_of};
pub use self::records::RecordLayout;
use crate::error::{Error, Result};
use crate::random;
use crate::wire::{u32_at, u64_at};

/// The places a key may have.
pub const PLACES: std::ops::RangeInclusive<u8> = 2..=4;

/// Bytes of a tagged entry before its value.
pub const TAG_BYTES: usize = 16;

/// The most keys of a partition, as long as there are few partitions: its table and entries fit in memory.
const PARTITION_KEYS: u64 = 1 << 22;
/// The most partitions: each has a file while the table is built.
const PARTITIONS: u64 = 512;

/// What a key is known by.
pub type Name = [u8; 14];

/// What entries look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Tagged entries; keys and values are any bytes.
    Tagged,
    /// Records of an application, which do not carry the names of their keys: a [`RecordLayout`] tells whose they are.
    Records,
    /// Tagged entries whose keys and values an application defines, by its number in a database's head: 3 or 6.
    Defined(u8),
    /// Tagged entries that are chunks of values of any length; a value has at most so many. Keys are any bytes.
    Chunked(u16),
    /// The same, where keys are text.
    Text(u16),
}

impl Layout {
    /// Its number in a database's head, and that of its chunks.
    fn numbers(self) -> (u8, u16) {
        match self {
            Layout::Tagged => (1, 0),
            Layout::Records => (2, 0),
            Layout::Chunked(chunks) => (4, chunks),
            Layout::Text(chunks) => (5, chunks),
            Layout::Defined(number) => (number, 0),
        }
    }

    fn of_numbers(number: u8, chunks: u16) -> Result<Layout> {
        Ok(match (number, chunks) {
            (1, 0) => Layout::Tagged,
            (2, 0) => Layout::Records,
            (3 | 6, 0) => Layout::Defined(number),
            (4, 1..) => Layout::Chunked(chunks),
            (5, 1..) => Layout::Text(chunks),
            _ => {
                let reason = format!("unknown layout {number} with {chunks} chunks");
                return Err(Error::format("keyword table", reason));
            }
        })
    }

    /// The most chunks of a value, where values stand in chunks.
    pub fn chunks(self) -> Option<u16> {
        match self {
            Layout::Chunked(chunks) | Layout::Text(chunks) => Some(chunks),
            Layout::Tagged | Layout::Records | Layout::Defined(_) => None,
        }
    }
}

/// The shape of a table. It is public, the seed too: it only spreads the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Places of each key; every lookup costs as many queries.
    pub places: u8,
    /// What entries look like.
    pub layout: Layout,
    /// Partitions of equal size.
    pub partitions: u32,
    /// Keys in the table.
    pub keys: u64,
    /// Entries of the table, filled or not: a multiple of the partitions.
    pub entries: u64,
    /// Says where keys go.
    pub seed: [u8; 16],
}

impl TableShape {
    /// Bytes in a database's head.
    pub(crate) const BYTES: usize = 40;

    /// A shape for so many keys, with a fresh seed.
    ///
    /// # Errors
    ///
    /// When there are no keys or too many, or the system gives no random bytes.
    pub fn new(keys: u64, places: u8, layout: Layout) -> Result<TableShape> {
        TableShape::in_partitions(
            keys,
            places,
            layout,
            keys.div_ceil(PARTITION_KEYS).clamp(1, PARTITIONS) as u32,
        )
    }

    pub(crate) fn in_partitions(
        keys: u64,
        places: u8,
        layout: Layout,
        partitions: u32,
    ) -> Result<TableShape> {
        if keys == 0 || !PLACES.contains(&places) || keys > 1 << 38 {
            return Err(Error::params(format!("a table of {keys} keys with {places} places each cannot be")));
        }
        let (number, chunks) = layout.numbers();
        if Layout::of_numbers(number, chunks)? != layout {
            return Err(Error::params(format!("{layout:?} is no layout that an application defines")));
        }
        // Thresholds (Dietzfelbinger et al., "Tight thresholds for cuckoo hashing via XORSAT", 2010): 0.5, 0.917, 0.976.
        // Room beyond, more of it in small tables; it also holds what one partition has more than another.
        let load = match places {
            2 => 0.40,
            3 => 0.87,
            _ => 0.94,
        };
        let keys_each = keys as f64 / f64::from(partitions);
        let size = (keys_each / load) as u64 + 8 + keys_each.sqrt() as u64 / 4;
        let mut seed = [0; 16];
        random::fill(&mut seed)?;
        Ok(TableShape { places, layout, partitions, keys, entries: size * u64::from(partitions), seed })
    }

    pub(crate) fn to_bytes(shape: Option<&TableShape>) -> [u8; TableShape::BYTES] {
        let mut bytes = [0; TableShape::BYTES];
        if let Some(shape) = shape {
            bytes[0] = shape.places;
            let (layout, chunks) = shape.layout.numbers();
            bytes[1] = layout;
            bytes[2..4].copy_from_slice(&chunks.to_le_bytes());
            bytes[4..8].copy_from_slice(&shape.partitions.to_le_bytes());
            bytes[8..16].copy_from_slice(&shape.keys.to_le_bytes());
            bytes[16..24].copy_from_slice(&shape.entries.to_le_bytes());
            bytes[24..].copy_from_slice(&shape.seed);
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Option<TableShape>> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let shape = TableShape {
            places: bytes[0],
            layout: Layout::of_numbers(bytes[1], u16::from_le_bytes([bytes[2], bytes[3]]))?,
            partitions: u32_at(bytes, 4),
            keys: u64_at(bytes, 8),
            entries: u64_at(bytes, 16),
            seed: *bytes[24..].first_chunk().expect("forty bytes"),
        };
        let partitions = u64::from(shape.partitions);
        if !PLACES.contains(&shape.places)
            || partitions == 0
            || shape.entries == 0
            || !shape.entries.is_multiple_of(partitions)
            || shape.entries / partitions > 1 << 31
        {
            return Err(Error::format("keyword table", "its shape is impossible"));
        }
        Ok(Some(shape))
    }

    /// Entries of a partition.
    pub(crate) fn partition_size(&self) -> u32 {
        (self.entries / u64::from(self.partitions)) as u32
    }

    /// The partition of a key, and its places in there.
    pub(crate) fn spot(&self, name: &Name) -> Spot {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(name);
        let digest: [u8; 32] = hash.finalize().into();
        let partition = (u128::from(u64_at(&digest, 0)) * u128::from(self.partitions)) >> 64;
        let size = u64::from(self.partition_size());
        let place = |i: usize| ((u64::from(u32_at(&digest, 8 + 4 * i)) * size) >> 32) as u32;
        Spot { partition: partition as u32, places: std::array::from_fn(place) }
    }

    /// All places of a name: what a lookup asks for, in this order, whether the key is there or not. Two may be the same.
    pub fn places_of_name(&self, name: &Name) -> Vec<u64> {
        let Spot { partition, places } = self.spot(name);
        let start = u64::from(partition) * u64::from(self.partition_size());
        places[..usize::from(self.places)].iter().map(|place| start + u64::from(*place)).collect()
    }

    /// All places of a key.
    pub fn places_of(&self, key: &[u8]) -> Vec<u64> {
        self.places_of_name(&name(key))
    }

    /// Queries of a look-up: all places of all chunks that a value may have.
    pub fn queries(&self) -> usize {
        usize::from(self.places) * usize::from(self.layout.chunks().unwrap_or(1))
    }

    /// What a look-up asks for, in this order: [`TableShape::queries`] places, however long the value is, and whether the key is
    /// there or not.
    pub fn look_up(&self, key: &[u8]) -> Vec<u64> {
        match self.layout.chunks() {
            None => self.places_of(key),
            Some(chunks) => (0..chunks).flat_map(|number| self.places_of(&chunk_key(key, number))).collect(),
        }
    }
}

/// Where a key may stand: as many of the places as the shape says count.
pub(crate) struct Spot {
    pub(crate) partition: u32,
    pub(crate) places: [u32; 4],
}

/// The name of a key.
pub fn name(key: &[u8]) -> Name {
    let digest: [u8; 32] = Sha256::digest(key).into();
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// The entry of a key with a tag; none when the value does not fit.
pub fn tagged_entry(key: &[u8], value: &[u8], entry_size: usize) -> Option<Vec<u8>> {
    if value.len() + TAG_BYTES > entry_size {
        return None;
    }
    let mut entry = (value.len() as u16).to_le_bytes().to_vec();
    entry.extend_from_slice(&name(key));
    entry.extend_from_slice(value);
    entry.resize(entry_size, 0);
    Some(entry)
}

/// The name a tagged entry carries; none of an empty place.
pub fn tag_of(entry: &[u8]) -> Option<&Name> {
    entry.get(2..)?.first_chunk().filter(|name| **name != [0; 14])
}

/// The value of a key among the entries of all its places; none when the key is not in the table.
///
/// SEC: looks at all of them, and is called after all were fetched.
pub fn tagged_value(key: &[u8], entries: &[Vec<u8>]) -> Option<Vec<u8>> {
    let name = name(key);
    let value = |entry: &Vec<u8>| {
        let length = usize::from(u16::from_le_bytes(*entry.first_chunk()?));
        entry.get(TAG_BYTES..TAG_BYTES + length).map(<[u8]>::to_vec)
    };
    entries.iter().filter(|entry| tag_of(entry) == Some(&name)).filter_map(value).next_back()
}

/// Whether an entry may stand at a place: it is empty, or tagged with a name that has this place. [`Layout::Records`] say
/// nothing of the sort.
pub fn is_at_home(shape: &TableShape, place: u64, entry: &[u8]) -> bool {
    if shape.layout == Layout::Records || entry.iter().all(|byte| *byte == 0) {
        return true;
    }
    let length = entry.first_chunk().map_or(usize::MAX, |length| usize::from(u16::from_le_bytes(*length)));
    TAG_BYTES.checked_add(length).is_some_and(|end| end <= entry.len())
        && tag_of(entry).is_some_and(|name| shape.places_of_name(name).contains(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_tag_as_long_as_they_were() {
        for value in [&b"value"[..], b"", &[0; 5], &[7; 14]] {
            let entries = vec![vec![0; 30], tagged_entry(b"key", value, 30).unwrap(), vec![7; 30]];
            assert_eq!(tagged_value(b"key", &entries).unwrap(), value);
            assert_eq!(tagged_value(b"other", &entries), None);
        }
        assert_eq!(tagged_entry(b"key", &[1; 15], 30), None);
        // A length that cannot be, and an entry too short for a tag.
        let mut entry = tagged_entry(b"key", b"v", 20).unwrap();
        entry[0] = 5;
        assert_eq!(tagged_value(b"key", &[entry, vec![1; 8]]), None);
    }

    #[test]
    fn entries_are_known_by_where_they_may_stand() {
        let shape = TableShape::new(1000, 3, Layout::Tagged).unwrap();
        let entry = tagged_entry(b"key", b"value", 24).unwrap();
        let places = shape.places_of(b"key");
        assert!(places.iter().all(|place| is_at_home(&shape, *place, &entry)));
        let elsewhere = (0..).find(|place| !places.contains(place)).unwrap();
        assert!(!is_at_home(&shape, elsewhere, &entry));
        assert!(is_at_home(&shape, elsewhere, &[0; 24]));
        for at in [0, 1, 2, 15] {
            let mut wrong = entry.clone();
            wrong[at] ^= 0x10;
            assert!(!is_at_home(&shape, places[0], &wrong), "byte {at}");
        }
        assert!(is_at_home(&TableShape { layout: Layout::Records, ..shape }, elsewhere, &entry));
    }

    #[test]
    fn shapes_come_back() {
        for (keys, partitions) in
            [(1, 1), (1000, 1), (1 << 22, 1), ((1 << 22) + 1, 2), (1_834_095_877, 438), (1 << 38, 512)]
        {
            let shape = TableShape::new(keys, 3, Layout::Defined(3)).unwrap();
            assert_eq!((shape.partitions, shape.entries % u64::from(shape.partitions)), (partitions, 0));
            assert!(shape.entries > keys);
            assert_eq!(TableShape::read(&TableShape::to_bytes(Some(&shape))).unwrap(), Some(shape));
        }
        assert_eq!(TableShape::read(&TableShape::to_bytes(None)).unwrap(), None);
        let good = TableShape::to_bytes(Some(&TableShape::new(1000, 3, Layout::Records).unwrap()));
        for (at, byte) in [(0, 1), (0, 5), (1, 4), (1, 5), (1, 7), (2, 1), (3, 1), (4, 0), (4, 7), (23, 1)] {
            let mut bad = good;
            bad[at] = byte;
            assert!(TableShape::read(&bad).is_err(), "byte {at} set to {byte}");
        }
        for layout in [
            Layout::Chunked(1),
            Layout::Chunked(7),
            Layout::Text(300),
            Layout::Text(u16::MAX),
            Layout::Defined(6),
        ] {
            let shape = TableShape::new(1000, 3, layout).unwrap();
            assert_eq!(TableShape::read(&TableShape::to_bytes(Some(&shape))).unwrap(), Some(shape));
        }
    }

    #[test]
    fn places_lie_in_one_partition_and_all_partitions_get_their_share() {
        let shape = TableShape::in_partitions(30_000, 3, Layout::Tagged, 7).unwrap();
        let mut shares = [0; 7];
        for key in 0..30_000u32 {
            let places = shape.places_of(&key.to_le_bytes());
            let size = u64::from(shape.partition_size());
            shares[(places[0] / size) as usize] += 1;
            assert!(places.len() == 3 && places.iter().all(|place| place / size == places[0] / size));
        }
        // Six standard deviations.
        assert!(shares.iter().all(|share| (3900..4700).contains(share)), "{shares:?}");
    }
}
