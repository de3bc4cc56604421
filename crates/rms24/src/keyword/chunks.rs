//! Values of any length, in chunks that are entries of their own.
//!
//! A value fills as many entries as it can, and a last one in part, be it with nothing: so the first chunk that is not full ends it.
//! The key of a chunk is that of the value and the chunk's number.

use super::{TAG_BYTES, TableShape, tagged_value};
use crate::error::{Error, Result};

/// The key of a chunk of a key's value. No two keys have one in common.
pub fn chunk_key(key: &[u8], number: u16) -> Vec<u8> {
    [key, &number.to_be_bytes()].concat()
}

/// Chunks of a value of so many bytes, in entries of this size.
pub fn chunks_of(length: usize, entry_size: usize) -> usize {
    length / (entry_size - TAG_BYTES) + 1
}

/// The chunks of a value in their order.
pub(crate) fn split(value: &[u8], entry_size: usize) -> impl Iterator<Item = &[u8]> {
    let full = entry_size - TAG_BYTES;
    (0..chunks_of(value.len(), entry_size))
        .map(move |number| &value[number * full..][..full.min(value.len() - number * full)])
}

/// The value of a key among the entries of all places of all its chunks ([`TableShape::look_up`]); none when the key is not in
/// the table.
///
/// # Errors
///
/// When a chunk is missing: no table has a part of a value.
pub fn chunked_value(shape: &TableShape, key: &[u8], entries: &[Vec<u8>]) -> Result<Option<Vec<u8>>> {
    let mut value = Vec::new();
    for (entries, number) in entries.chunks(usize::from(shape.places)).zip(0..) {
        let full = entries.first().map_or(0, |entry| entry.len().saturating_sub(TAG_BYTES));
        match tagged_value(&chunk_key(key, number), entries) {
            None if number == 0 => return Ok(None),
            None => break,
            Some(chunk) => {
                value.extend_from_slice(&chunk);
                if chunk.len() < full {
                    return Ok(Some(value));
                }
            }
        }
    }
    Err(Error::format("value", format!("its end is missing, after {} bytes", value.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::{Layout, tagged_entry};

    const SIZE: usize = 24;

    fn entries(key: &[u8], value: &[u8], most: u16) -> Vec<Vec<u8>> {
        let chunks: Vec<&[u8]> = split(value, SIZE).collect();
        // Of three places a chunk stands in one; the others have somebody else's.
        (0..most)
            .flat_map(|number| {
                let entry = chunks.get(usize::from(number));
                let entry = entry.map(|chunk| tagged_entry(&chunk_key(key, number), chunk, SIZE).unwrap());
                [vec![0; SIZE], entry.unwrap_or(vec![0; SIZE]), tagged_entry(b"other", b"x", SIZE).unwrap()]
            })
            .collect()
    }

    #[test]
    fn values_of_any_length_come_back_and_never_a_part_of_one() {
        let shape = TableShape::new(100, 3, Layout::Chunked(5)).unwrap();
        assert_eq!((shape.queries(), shape.look_up(b"key").len()), (15, 15));
        assert_eq!(shape.look_up(b"key")[3..6], shape.places_of(&chunk_key(b"key", 1)));
        for (length, chunks) in [(0, 1), (1, 1), (7, 1), (8, 2), (9, 2), (16, 3), (31, 4), (39, 5)] {
            let value: Vec<u8> = (1..=length).map(|i| i as u8).collect();
            assert_eq!((chunks_of(length, SIZE), split(&value, SIZE).count()), (chunks, chunks), "{length}");
            assert_eq!(split(&value, SIZE).collect::<Vec<_>>().concat(), value);
            let mut entries = entries(b"key", &value, 5);
            assert_eq!(chunked_value(&shape, b"key", &entries).unwrap(), Some(value));
            assert_eq!(chunked_value(&shape, b"kez", &entries).unwrap(), None);
            for missing in (1..chunks).rev() {
                entries[3 * missing + 1] = vec![0; SIZE];
                assert!(
                    chunked_value(&shape, b"key", &entries).is_err(),
                    "{length} bytes without chunk {missing}"
                );
            }
        }
        // Longer than all chunks that a look-up asks for.
        assert!(chunked_value(&shape, b"key", &entries(b"key", &[7; 40], 5)).is_err());
        assert_eq!(chunked_value(&shape, b"key", &[]).ok(), None);
    }
}
