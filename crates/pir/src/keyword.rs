//! Entries looked up by key: a cuckoo table. Each key has a few places, its record stands in one of them, and a lookup
//! asks for all of them, always.
//!
//! A table knows neither keys nor records: it is given a digest of each key and says where its record goes. What a record
//! looks like, and how it proves that it belongs to a key, is its owner's business (an eight-byte tag of the key, say).
//! An empty place is an entry of zeros.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::random;
use crate::wire::u64_at;

/// The places a key may have.
pub const PLACES: std::ops::RangeInclusive<u8> = 2..=4;

/// What entries look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layout {
    /// Eight bytes of tag (of the SHA-256 of the key), then the value, padded with zeros.
    Tagged = 1,
    /// The 40-byte records of Ethereum's state.
    State = 2,
}

/// The shape of a table. It is public, the seed too: it only spreads the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Places of each key; every lookup costs as many queries.
    pub places: u8,
    /// What entries look like.
    pub layout: Layout,
    /// Keys in the table.
    pub keys: u64,
    /// Entries of the table, filled or not.
    pub entries: u64,
    /// Says where keys go.
    pub seed: [u8; 16],
}

impl Shape {
    /// Bytes in a database's head.
    pub(crate) const BYTES: usize = 40;

    /// A shape for so many keys: three places and a load of 0.87, where 0.917 is the most that three places allow.
    ///
    /// # Errors
    ///
    /// When there are no keys, or the system gives no random bytes.
    pub fn new(keys: u64, places: u8, layout: Layout) -> Result<Shape> {
        if keys == 0 || !PLACES.contains(&places) || keys > 1 << 50 {
            return Err(Error::params(format!("a table of {keys} keys with {places} places each cannot be")));
        }
        // Thresholds (Dietzfelbinger et al., "Tight thresholds for cuckoo hashing via XORSAT", 2010): 0.5, 0.917, 0.976.
        // Room beyond, more of it in small tables.
        let load = match places {
            2 => 0.40,
            3 => 0.87,
            _ => 0.94,
        };
        let entries = (keys as f64 / load) as u64 + 8 + (keys as f64).sqrt() as u64 / 4;
        let mut seed = [0; 16];
        random::fill(&mut seed)?;
        Ok(Shape { places, layout, keys, entries, seed })
    }

    pub(crate) fn to_bytes(shape: Option<&Shape>) -> [u8; Shape::BYTES] {
        let mut bytes = [0; Shape::BYTES];
        if let Some(shape) = shape {
            bytes[0] = shape.places;
            bytes[1] = shape.layout as u8;
            bytes[8..16].copy_from_slice(&shape.keys.to_le_bytes());
            bytes[16..24].copy_from_slice(&shape.entries.to_le_bytes());
            bytes[24..].copy_from_slice(&shape.seed);
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Shape>> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let layout = match bytes[1] {
            1 => Layout::Tagged,
            2 => Layout::State,
            other => return Err(Error::format("keyword table", format!("unknown layout {other}"))),
        };
        let shape = Shape {
            places: bytes[0],
            layout,
            keys: u64_at(bytes, 8),
            entries: u64_at(bytes, 16),
            seed: *bytes[24..].first_chunk().expect("forty bytes"),
        };
        if !PLACES.contains(&shape.places) || shape.entries == 0 {
            return Err(Error::format("keyword table", "its shape is impossible"));
        }
        Ok(Some(shape))
    }

    /// All places of a key: what a lookup asks for, in this order, whether the key is there or not. Two may be the same.
    pub fn places_of(&self, key: &[u8]) -> Vec<u64> {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(key);
        let digest: [u8; 32] = hash.finalize().into();
        (0..usize::from(self.places))
            .map(|i| ((u128::from(u64_at(&digest, 8 * i)) * u128::from(self.entries)) >> 64) as u64)
            .collect()
    }
}

/// Marks an empty place.
const EMPTY: u32 = u32::MAX;

/// Finds a place for every key: `result[place]` is the number of the key that stands there, or none.
///
/// # Errors
///
/// When a key occurs twice, or the keys do not fit: then another seed helps ([`Shape::new`] anew).
pub fn arrange(shape: &Shape, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u32>>> {
    if keys.len() as u64 != shape.keys || keys.len() >= EMPTY as usize {
        return Err(Error::params(format!("{} keys for a table of {}", keys.len(), shape.keys)));
    }
    let mut table =
        vec![EMPTY; usize::try_from(shape.entries).map_err(|_| Error::params("the table is too large"))?];
    // Which of a key's places are tried next: a walk that goes round them needs no randomness.
    let mut next = vec![0u8; keys.len()];
    let patience = 1000 + 20 * (64 - (keys.len() as u64).leading_zeros() as usize);
    for new in 0..keys.len() as u32 {
        let mut homeless = new;
        let mut steps = 0;
        'walk: loop {
            let places = shape.places_of(keys[homeless as usize].as_ref());
            for &place in &places {
                let standing = table[place as usize];
                if standing == EMPTY {
                    table[place as usize] = homeless;
                    break 'walk;
                }
                if standing != homeless
                    && keys[standing as usize].as_ref() == keys[homeless as usize].as_ref()
                {
                    return Err(Error::format(
                        "keys",
                        format!("keys {standing} and {homeless} are the same"),
                    ));
                }
            }
            steps += 1;
            if steps > patience {
                return Err(Error::format("keyword table", "the keys do not fit with this seed"));
            }
            let turn = &mut next[homeless as usize];
            let place = places[usize::from(*turn) % places.len()];
            *turn = (*turn + 1) % shape.places;
            homeless = std::mem::replace(&mut table[place as usize], homeless);
        }
    }
    Ok(table.into_iter().map(|key| (key != EMPTY).then_some(key)).collect())
}

/// The tag that stands before a value in [`Layout::Tagged`].
pub fn tag(key: &[u8]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(key).into();
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// The entry of a key in [`Layout::Tagged`]; none when the value does not fit.
pub fn tagged_entry(key: &[u8], value: &[u8], entry_size: usize) -> Option<Vec<u8>> {
    let mut entry = tag(key).to_vec();
    entry.extend_from_slice(value);
    (entry.len() <= entry_size).then(|| {
        entry.resize(entry_size, 0);
        entry
    })
}

/// The value of a key among the entries of all its places; none when the key is not in the table.
///
/// SEC: looks at all of them, and is called after all were fetched.
pub fn tagged_value(key: &[u8], entries: &[Vec<u8>]) -> Option<Vec<u8>> {
    let tag = tag(key);
    entries.iter().filter(|entry| entry.starts_with(&tag)).map(|entry| entry[8..].to_vec()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_one_of_its_places() {
        for places in PLACES {
            for count in [1u64, 2, 3, 10, 100, 1000, 20_000] {
                let keys: Vec<[u8; 8]> = (0..count).map(|i| (i * i + 7).to_le_bytes()).collect();
                // A small table may need a second seed.
                let (shape, table) = (0..20)
                    .find_map(|_| {
                        let shape = Shape::new(count, places, Layout::Tagged).unwrap();
                        arrange(&shape, &keys).ok().map(|table| (shape, table))
                    })
                    .expect("one of twenty seeds does");
                assert_eq!(table.len() as u64, shape.entries);
                assert_eq!(table.iter().flatten().count() as u64, count);
                for (i, key) in keys.iter().enumerate() {
                    let standing = shape.places_of(key).iter().any(|&p| table[p as usize] == Some(i as u32));
                    assert!(standing, "{places} places, {count} keys, key {i}");
                }
            }
        }
    }

    #[test]
    fn equal_keys_are_refused() {
        let shape = Shape::new(3, 3, Layout::Tagged).unwrap();
        assert!(arrange(&shape, &[b"a", b"b", b"a"]).is_err());
    }

    #[test]
    fn values_are_found_by_tag() {
        let entries = vec![vec![0; 20], tagged_entry(b"key", b"value", 20).unwrap(), vec![7; 20]];
        assert_eq!(tagged_value(b"key", &entries).unwrap()[..5], *b"value");
        assert_eq!(tagged_value(b"other", &entries), None);
        assert_eq!(tagged_entry(b"key", &[1; 13], 20), None);
    }

    #[test]
    fn shapes_come_back() {
        let shape = Shape::new(1000, 3, Layout::State).unwrap();
        assert_eq!(Shape::read(&Shape::to_bytes(Some(&shape))).unwrap(), Some(shape));
        assert_eq!(Shape::read(&Shape::to_bytes(None)).unwrap(), None);
    }
}
