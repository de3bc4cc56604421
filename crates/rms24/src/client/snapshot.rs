//! A client's state as one file: all hints as they were when it was written, with a checksum over everything.
//!
//! ```text
//! 0     magic "WPIRSTAT"  version u32 (2)  zeros
//! 512   two marks of the journal (see mark.rs), the only bytes that change in place
//! 1536  parameters: entries u64, entry size u32, lambda u32, block size u32, backups u64
//!       database identity [32], epoch u64
//!       state id [16], generation u64, next query u64
//!       key [32]
//!       slots: count u64; tags u64.., cutoffs u32.., extras (u32, u32).., parities
//!       pairs: first id u64, count u64; cutoffs u32.., lower parities, upper parities
//!       SHA-256 of all of it but the marks
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use warpsmith_hash::Lanes;
use zeroize::Zeroizing;

use super::head::Head;
use super::mark::{Mark, Marks, SECTOR};
use super::table::{Pairs, Table};
use crate::error::{Error, Result};
use crate::params::{Choice, Params, Place};
use crate::prf::{Key, Prf};
use crate::wire::u32_at;

const MAGIC: &[u8; 8] = b"WPIRSTAT";
const VERSION: u32 = 2;

/// A writer that sums up what goes through.
struct Summing<'a> {
    inner: &'a mut BufWriter<File>,
    hash: Sha256,
}

impl Summing<'_> {
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)
    }

    fn put_all(&mut self, numbers: impl Iterator<Item = u32>) -> std::io::Result<()> {
        let mut lot = Vec::with_capacity(1 << 16);
        for number in numbers {
            lot.extend_from_slice(&number.to_le_bytes());
            if lot.len() == 1 << 16 {
                self.put(&lot)?;
                lot.clear();
            }
        }
        self.put(&lot)
    }
}

/// Writes the state. Returns its checksum.
///
/// The pairs that are used up are left out.
pub(super) fn write(file: &mut BufWriter<File>, head: &Head, table: &Table) -> std::io::Result<[u8; 32]> {
    debug_assert!(table.pending.is_empty(), "a query that waits lives in the journal");
    let mut to = Summing { inner: file, hash: Sha256::new() };
    let (p, size) = (&table.params, table.params.entry_size());
    let mut begin = [0; SECTOR];
    begin[..8].copy_from_slice(MAGIC);
    begin[8..12].copy_from_slice(&VERSION.to_le_bytes());
    to.put(&begin)?;
    let mark = Mark::first(head).to_bytes(head);
    to.inner.write_all(&[mark, mark].concat())?;
    to.put(&p.entries().to_le_bytes())?;
    to.put(&(size as u32).to_le_bytes())?;
    to.put(&p.lambda().to_le_bytes())?;
    to.put(&p.block_size().to_le_bytes())?;
    to.put(&p.backups().to_le_bytes())?;
    to.put(&head.database)?;
    to.put(&head.epoch.to_le_bytes())?;
    to.put(&head.state_id)?;
    to.put(&head.generation.to_le_bytes())?;
    to.put(&head.next_query.to_le_bytes())?;
    to.put(head.key.expose())?;
    to.put(&(table.tags.len() as u64).to_le_bytes())?;
    to.put_all(table.tags.iter().flat_map(|tag| [*tag as u32, (tag >> 32) as u32]))?;
    to.put_all(table.cutoffs.iter().copied())?;
    to.put_all(table.extras.iter().flat_map(|extra| [extra.block, extra.offset]))?;
    to.put(&table.parities)?;
    let pairs = &table.pairs;
    to.put(&(pairs.first + pairs.used as u64).to_le_bytes())?;
    to.put(&((pairs.cutoffs.len() - pairs.used) as u64).to_le_bytes())?;
    to.put_all(pairs.cutoffs[pairs.used..].iter().copied())?;
    to.put(&pairs.low[pairs.used * size..])?;
    to.put(&pairs.high[pairs.used * size..])?;
    let sum: [u8; 32] = to.hash.finalize().into();
    to.inner.write_all(&sum)?;
    Ok(sum)
}

/// A reader that sums up what goes through and never trusts a length.
struct Checked<'a, R> {
    inner: R,
    hash: Sha256,
    left: u64,
    path: &'a Path,
}

impl<R: Read> Checked<'_, R> {
    fn damaged(&self, reason: &str) -> Error {
        Error::damaged(self.path, format!("{reason}; make a new state with the offline phase"))
    }

    fn bytes(&mut self, count: u64) -> Result<Zeroizing<Vec<u8>>> {
        if count > self.left {
            return Err(self.damaged("the file is cut short"));
        }
        self.left -= count;
        let mut bytes = Zeroizing::new(vec![0; count as usize]);
        self.inner.read_exact(&mut bytes).map_err(Error::io(self.path))?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    /// Bytes that the checksum does not cover.
    fn unsummed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let hash = self.hash.clone();
        let bytes = self.array();
        self.hash = hash;
        bytes
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(*self.bytes(N as u64)?.first_chunk().expect("as many as asked for"))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The product as a number of bytes that can be there.
    fn sized(&self, count: u64, each: u64) -> Result<u64> {
        count.checked_mul(each).ok_or_else(|| self.damaged("a count is impossible"))
    }

    fn list<T>(&mut self, count: u64, make: impl Fn([u32; 2]) -> T) -> Result<Vec<T>> {
        let bytes = self.bytes(self.sized(count, 8)?)?;
        let words = |w: &[u8; 8]| {
            [u32::from_le_bytes([w[0], w[1], w[2], w[3]]), u32::from_le_bytes([w[4], w[5], w[6], w[7]])]
        };
        Ok(bytes.as_chunks().0.iter().map(|w| make(words(w))).collect())
    }

    fn u32s(&mut self, count: u64) -> Result<Vec<u32>> {
        let bytes = self.bytes(self.sized(count, 4)?)?;
        Ok(bytes.as_chunks().0.iter().map(|w| u32::from_le_bytes(*w)).collect())
    }
}

/// A state as read.
pub(super) struct Saved {
    pub(super) head: Head,
    pub(super) table: Table,
    /// The file's checksum.
    pub(super) sum: [u8; 32],
    /// How far its journal went.
    pub(super) marks: Marks,
}

/// Reads a state.
pub(super) fn read(mut file: &File, path: &Path, lanes: Lanes) -> Result<Saved> {
    file.seek(SeekFrom::Start(0)).map_err(Error::io(path))?;
    let length = file.metadata().map_err(Error::io(path))?.len();
    let mut from =
        Checked { inner: BufReader::with_capacity(1 << 20, file), hash: Sha256::new(), left: length, path };
    let begin = from.array::<SECTOR>()?;
    let wrong = |reason: String| Error::format(path.display().to_string(), reason);
    if begin[..8] != *MAGIC {
        return Err(wrong("this is not a state of private retrieval".into()));
    }
    let version = u32_at(&begin, 8);
    if version != VERSION {
        return Err(wrong(format!(
            "version {version} of the format; this program knows {VERSION}: make a new state with the offline phase"
        )));
    }
    let marks = [from.unsummed()?, from.unsummed()?];
    let (entries, entry_size, lambda) = (from.u64()?, from.u32()?, from.u32()?);
    let (block_size, backups) = (Some(from.u32()?), Some(from.u64()?));
    let params = Params::new(Choice { entries, entry_size, lambda, block_size, backups })
        .map_err(|error| from.damaged(&format!("its parameters cannot be: {error}")))?;
    let head = Head {
        database: from.array()?,
        epoch: from.u64()?,
        state_id: from.array()?,
        generation: from.u64()?,
        next_query: from.u64()?,
        key: Key::from_bytes(from.array()?),
    };
    let (slots, size) = (from.u64()?, u64::from(entry_size));
    if slots != params.regular() {
        return Err(from.damaged("the number of slots does not fit the parameters"));
    }
    let tags = from.list(slots, |[low, high]| u64::from(high) << 32 | u64::from(low))?;
    let cutoffs = from.u32s(slots)?;
    let extras = from.list(slots, |[block, offset]| Place { block, offset })?;
    let parities = std::mem::take(&mut *from.bytes(from.sized(slots, size)?)?);
    let (first, count) = (from.u64()?, from.u64()?);
    let of_pairs = from.u32s(count)?;
    let low = std::mem::take(&mut *from.bytes(from.sized(count, size)?)?);
    let high = std::mem::take(&mut *from.bytes(from.sized(count, size)?)?);
    let sum: [u8; 32] = from.hash.clone().finalize().into();
    if from.array::<32>()? != sum || from.left != 0 {
        return Err(from.damaged("its checksum does not fit"));
    }
    let Some(marks) = Marks::read(&marks, &head) else {
        return Err(from.damaged("both of its marks (bytes 512 to 1535) are damaged"));
    };
    let prf = Prf::new(&head.key, &params, lanes);
    let pairs = Pairs { first, used: 0, cutoffs: of_pairs, low, high };
    let table = Table { params, prf, tags, cutoffs, extras, parities, pairs, pending: BTreeMap::new() };
    Ok(Saved { head, table, sum, marks })
}
