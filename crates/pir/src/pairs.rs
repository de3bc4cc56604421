//! Backup pairs as a hint maker sends them, and what it is asked for.
//!
//! ```text
//! request  "WPM1"  key [32]  first id u64  count u32                  ids and count in whole groups of sixteen
//! pairs    "WPP1"  epoch u64  first id u64  count u32   cutoffs u32.., lower parities, upper parities, sum [8]
//! ```
//!
//! SEC: a request holds the key, so it may go to the hint maker only, which must never see a query. It says how many
//! queries were made, and nothing about them.

use crate::error::{Error, Result};
use crate::hints::{Hints, Skeleton};
use crate::params::{GROUP, Params};
use crate::prf::Key;
use crate::wire::{checksum, u32_at, u64_at};

const REQUEST: &[u8; 4] = b"WPM1";
const PAIRS: &[u8; 4] = b"WPP1";

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 4 + 32 + 8 + 4;

/// Asks for `count` pairs from id `first` on.
pub fn request(key: &Key, first: u64, count: u32) -> Vec<u8> {
    let mut body = REQUEST.to_vec();
    body.extend_from_slice(key.expose());
    body.extend_from_slice(&first.to_le_bytes());
    body.extend_from_slice(&count.to_le_bytes());
    body
}

/// Reads a request: the key, the first id, the count.
///
/// # Errors
///
/// When it is malformed.
pub fn read_request(body: &[u8]) -> Result<(Key, u64, u32)> {
    if body.len() != REQUEST_BYTES || body[..4] != *REQUEST {
        return Err(Error::format("request for pairs", "the body does not begin as it should"));
    }
    let (first, count) = (u64_at(body, 36), u32_at(body, 44));
    if !first.is_multiple_of(GROUP) || !u64::from(count).is_multiple_of(GROUP) || first >= 1 << 59 {
        return Err(Error::format("request for pairs", "pairs come in groups of sixteen"));
    }
    Ok((Key::from_bytes(*body[4..].first_chunk().expect("the length was checked")), first, count))
}

/// The body with the pairs of `hints`.
pub fn body(epoch: u64, hints: &Hints) -> Vec<u8> {
    let Skeleton { backups, cutoffs, .. } = &hints.skeleton;
    let of_pairs = &cutoffs[hints.skeleton.regular_len()..];
    let mut body = PAIRS.to_vec();
    body.extend_from_slice(&epoch.to_le_bytes());
    body.extend_from_slice(&backups.start.to_le_bytes());
    body.extend_from_slice(&(of_pairs.len() as u32).to_le_bytes());
    of_pairs.iter().for_each(|cutoff| body.extend_from_slice(&cutoff.to_le_bytes()));
    body.extend_from_slice(&hints.low);
    body.extend_from_slice(&hints.high);
    let sum = checksum(&[&body]);
    body.extend_from_slice(&sum);
    body
}

/// Reads pairs: their epoch, and hints without regular ones.
///
/// # Errors
///
/// When the body is malformed.
pub fn read(params: &Params, body: &[u8]) -> Result<(u64, Hints)> {
    let wrong = |reason: &str| Error::format("pairs", reason);
    if body.len() < 32 || body[..4] != *PAIRS {
        return Err(wrong("the body does not begin as it should"));
    }
    let (epoch, first, count) = (u64_at(body, 4), u64_at(body, 12), u32_at(body, 20) as usize);
    let size = params.entry_size();
    let (content, sum) = body.split_at(body.len() - 8);
    if content.len() - 24 != count * (4 + 2 * size) || checksum(&[content]) != sum {
        return Err(wrong("cut short or damaged"));
    }
    let (cutoffs, parities) = content[24..].split_at(4 * count);
    let cutoffs = cutoffs.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let (low, high) = parities.split_at(count * size);
    let end = first.checked_add(count as u64).ok_or_else(|| wrong("impossible ids"))?;
    let skeleton = Skeleton { regular: 0..0, backups: first..end, cutoffs, extras: Vec::new() };
    Ok((epoch, Hints { skeleton, parities: Vec::new(), low: low.to_vec(), high: high.to_vec() }))
}
