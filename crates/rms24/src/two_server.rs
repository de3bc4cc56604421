//! The two-server mode: a hint maker, which has the database and a client's key and never sees a query.
//!
//! ```text
//! request  "WPM1"  key [32]  lambda u32  whether regular hints are wanted u32  first pair's id u64  pairs u64
//! hints    "WPH1"  epoch u64  regular u64  first pair's id u64  pairs u64
//!          cutoffs u32.., extras (u32, u32).., parities, lower parities, upper parities, sum [8]
//! ```
//!
//! Ids and counts of pairs are multiples of sixteen.
//!
//! SEC: a request holds the key, so it may go to the hint maker only. Whoever has both the key and the queries can read
//! them: the hint maker must not be the one that answers, nor speak with it. It learns how many queries were made, and
//! nothing about them.

use std::sync::atomic::AtomicBool;

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::hints::make::{Make, Order};
use crate::hints::{self, Hints, Skeleton};
use crate::params::{Choice, GROUP, Params, Place};
use crate::prf::Key;
use crate::updates::Live;
use crate::version::Version;
use crate::wire::{checksum, u32_at, u64_at};

const REQUEST: &[u8; 4] = b"WPM1";
const HINTS: &[u8; 4] = b"WPH1";
const HEAD: usize = 4 + 4 * 8;

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 4 + 32 + 4 + 4 + 8 + 8;

/// What a client asks a hint maker for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's key.
    pub key: Key,
    /// Hints for each offset.
    pub lambda: u32,
    /// Whether all regular hints are wanted: at the beginning.
    pub regular: bool,
    /// The id of the first pair.
    pub first: u64,
    /// How many pairs.
    pub pairs: u64,
}

impl Request {
    /// The request's bytes. They hold the key.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut body = Zeroizing::new(Vec::with_capacity(REQUEST_BYTES));
        body.extend_from_slice(REQUEST);
        body.extend_from_slice(self.key.expose());
        body.extend_from_slice(&self.lambda.to_le_bytes());
        body.extend_from_slice(&u32::from(self.regular).to_le_bytes());
        body.extend_from_slice(&self.first.to_le_bytes());
        body.extend_from_slice(&self.pairs.to_le_bytes());
        body
    }

    /// Reads a request.
    ///
    /// # Errors
    ///
    /// When it is malformed.
    pub fn read(body: &[u8]) -> Result<Request> {
        if body.len() != REQUEST_BYTES || body[..4] != *REQUEST || u32_at(body, 40) > 1 {
            return Err(Error::format("request for hints", "the body does not begin as it should"));
        }
        let (first, pairs) = (u64_at(body, 44), u64_at(body, 52));
        // Ids of a client that asks for ever stay far below 2^59.
        if !first.is_multiple_of(GROUP) || !pairs.is_multiple_of(GROUP) || first >= 1 << 59 || pairs > 1 << 40
        {
            return Err(Error::format("request for hints", "pairs come in groups of sixteen"));
        }
        Ok(Request {
            key: Key::from_bytes(*body[4..].first_chunk().expect("the length was checked")),
            lambda: u32_at(body, 36),
            regular: u32_at(body, 40) == 1,
            first,
            pairs,
        })
    }

    /// How many (hint, block) pairs it costs to fulfil.
    ///
    /// # Errors
    ///
    /// When lambda cannot be.
    pub fn cost(&self, database: &Params) -> Result<u64> {
        let params = self.params(database)?;
        let regular = if self.regular { params.regular() } else { 0 };
        // More than there are numbers is more than anyone allows.
        Ok((regular + self.pairs).saturating_mul(params.blocks().into()))
    }

    /// The most bytes of memory that it takes to fulfil, the answer among them: known before any is allocated.
    ///
    /// # Errors
    ///
    /// When lambda cannot be.
    pub fn memory(&self, live: &Live, make: &dyn Make) -> Result<u64> {
        let database = live.params();
        let params = self.params(&database)?;
        let regular = if self.regular { params.regular() } else { 0 };
        let answering =
            hints::bytes(&params, regular, self.pairs).saturating_add(self.answer_bytes(&database)?);
        let making = make.memory(&params, regular, self.pairs).saturating_add(live.reading_bytes());
        Ok(making.max(answering))
    }

    /// Bytes of the answer to it.
    ///
    /// # Errors
    ///
    /// When lambda cannot be.
    pub fn answer_bytes(&self, database: &Params) -> Result<u64> {
        let params = self.params(database)?;
        let regular = if self.regular { params.regular() } else { 0 };
        Ok(hints::bytes(&params, regular, self.pairs).saturating_add(HEAD as u64 + 8))
    }

    fn params(&self, database: &Params) -> Result<Params> {
        Params::new(Choice { lambda: self.lambda, backups: Some(self.pairs), ..database.choice() })
    }

    /// Makes the hints from the newest entries, and says of which epoch they are. Updates wait for it. Ends soon after `stop`
    /// is raised, with [`Error::Stopped`].
    ///
    /// # Errors
    ///
    /// When the request cannot be, or what makes the hints fails.
    pub fn fulfil(&self, live: &Live, make: &dyn Make, stop: &AtomicBool) -> Result<(u64, Hints)> {
        let params = self.params(&live.params())?;
        let regular = 0..if self.regular { params.regular() } else { 0 };
        if self.first < params.regular() {
            return Err(Error::Mismatch(format!("pairs begin after the {} regular hints", params.regular())));
        }
        let backups = self.first..self.first + self.pairs;
        let database = live.base().description().lineage();
        live.with_entries(|epoch, entries| {
            let version = Version { database, epoch };
            let order = Order { params: &params, key: &self.key, regular, backups, stop };
            let hints = match entries.in_memory() {
                Some(entries) => make.hints_of(&order, version, entries),
                None => make.hints(&order, &mut |push| entries.stream(push)),
            };
            Ok((epoch, hints?))
        })
    }
}

/// The body with some hints.
pub fn body(epoch: u64, hints: &Hints) -> Vec<u8> {
    let Skeleton { backups, cutoffs, extras, .. } = &hints.skeleton;
    let parities = hints.parities.len() + hints.low.len() + hints.high.len();
    let mut body = Vec::with_capacity(HEAD + 4 * cutoffs.len() + 8 * extras.len() + parities + 8);
    body.extend_from_slice(HINTS);
    for number in
        [epoch, hints.skeleton.regular_len() as u64, backups.start, hints.skeleton.backups_len() as u64]
    {
        body.extend_from_slice(&number.to_le_bytes());
    }
    cutoffs.iter().for_each(|cutoff| body.extend_from_slice(&cutoff.to_le_bytes()));
    for extra in extras {
        body.extend_from_slice(&extra.block.to_le_bytes());
        body.extend_from_slice(&extra.offset.to_le_bytes());
    }
    for parities in [&hints.parities, &hints.low, &hints.high] {
        body.extend_from_slice(parities);
    }
    let sum = checksum(&[&body]);
    body.extend_from_slice(&sum);
    body
}

/// Reads hints, and of which epoch they are.
///
/// # Errors
///
/// When the body is malformed, or an extra lies outside the database.
pub fn read(params: &Params, body: &[u8]) -> Result<(u64, Hints)> {
    let wrong = |reason: &str| Error::format("hints", reason);
    if body.len() < HEAD + 8 || body[..4] != *HINTS {
        return Err(wrong("the body does not begin as it should"));
    }
    let (epoch, regular, first, pairs) =
        (u64_at(body, 4), u64_at(body, 12), u64_at(body, 20), u64_at(body, 28));
    let size = params.entry_size() as u64;
    let (content, sum) = body.split_at(body.len() - 8);
    let length = regular
        .checked_mul(12 + size)
        .zip(pairs.checked_mul(4 + 2 * size))
        .and_then(|(a, b)| a.checked_add(b));
    if length != Some((content.len() - HEAD) as u64) || checksum(&[content]) != sum {
        return Err(wrong("cut short or damaged"));
    }
    let (regular, pairs, size) = (regular as usize, pairs as usize, size as usize);
    let (cutoffs, rest) = content[HEAD..].split_at(4 * (regular + pairs));
    let (extras, rest) = rest.split_at(8 * regular);
    let (parities, rest) = rest.split_at(regular * size);
    let (low, high) = rest.split_at(pairs * size);
    let extras: Vec<Place> =
        extras.chunks_exact(8).map(|b| Place { block: u32_at(b, 0), offset: u32_at(b, 4) }).collect();
    if extras.iter().any(|extra| extra.block >= params.blocks() || extra.offset >= params.block_size()) {
        return Err(wrong("an extra lies outside the database"));
    }
    let end = first.checked_add(pairs as u64).ok_or_else(|| wrong("impossible ids"))?;
    let skeleton = Skeleton {
        regular: 0..regular as u64,
        backups: first..end,
        cutoffs: cutoffs.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        extras,
    };
    let hints = Hints { skeleton, parities: parities.to_vec(), low: low.to_vec(), high: high.to_vec() };
    Ok((epoch, hints))
}
