//! The database as bytes: a head, chunks of sorted records, and the first digest of each chunk. Numbers are little-endian
//! unless said otherwise.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `warpaddr` |
//! | 8 | 4 | format, 2 (1 was a folder with an LMDB tree) |
//! | 12 | 4 | bytes of a chunk |
//! | 16 | 16 | identity, random |
//! | 32 | 8 | when it was built, seconds since 1970 |
//! | 40 | 8 | records |
//! | 48 | 32 | SHA-256 over the addresses |
//! | 80 | 32 | SHA-256 over the amounts |
//! | 112 | 16 | checksum of the index |
//! | 128 | 896 | for each kind there is, ascending: its byte, bytes of an amount, 6 zeros, records (8); then zeros |
//! | 1024 | 3056 | zeros |
//! | 4080 | 16 | checksum of all before |
//! | 4096 | | chunks |
//! | then | | the index: the first digest of each chunk |
//!
//! Each kind has chunks of its own, one kind after the other. A chunk holds as many records as fit before its last 16 bytes,
//! the last one of a kind what is left, then zeros, then the checksum of all that. A record is the digest and the amount,
//! and within a kind digests ascend.
//!
//! An amount is written as one more than it is, most significant byte first, and zero means that none is known; a kind has
//! as many bytes for it as its largest takes: 17 at most, and none where no record has an amount.
//!
//! Checksums are XXH3 of 128 bits, seeded with the identity and, for chunks, their number: a chunk that was changed, or
//! lies in the wrong place or file, has another, but for a chance of 2^-128. They are for disks, not for forgers.
//!
//! Everything's place follows from the head, so whether the file has the right length is known before anything is read or
//! memory taken.

use std::path::Path;

use twox_hash::XxHash3_128;

use warpsmith_chain::AddressKind;

use super::{About, WHAT};
use crate::Error;

pub(super) const MAGIC: &[u8; 8] = b"warpaddr";
const VERSION: u32 = 2;
/// Bytes of the head.
pub(super) const HEAD: usize = 4096;
const KINDS: usize = 128;
const KIND: usize = 16;
/// As many as the head of a filter has room for.
const MOST_KINDS: usize = 56;
/// Bytes of a checksum.
pub(super) const SUM: usize = 16;
const SUM_AT: usize = HEAD - SUM;

/// Bytes of a chunk, unless a test wants another: a page. A look-up reads and checks one, and of 8 KiB it takes nearly twice
/// as long (docs/measurements/database.md); the index of a billion addresses takes 98 MB.
pub(super) const CHUNK: u32 = 4096;
/// The sizes of chunks that are read: the least has room for a record.
const CHUNKS: std::ops::RangeInclusive<u32> = 256..=1 << 20;

/// The records of one kind, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub kind: AddressKind,
    pub records: u64,
    /// Bytes of an amount.
    pub amount: usize,
    /// The number of its first chunk.
    pub first_chunk: u64,
    pub chunks: u64,
    /// Records of a chunk, but for the last.
    pub per_chunk: u64,
    /// Where its part of the index begins.
    pub index_at: usize,
}

impl Section {
    /// Bytes of a record.
    pub fn width(&self) -> usize {
        self.kind.digest_bytes() + self.amount
    }

    /// How many records a chunk has, counted from this section's first.
    pub fn records_in(&self, chunk: u64) -> u64 {
        (self.records - chunk * self.per_chunk).min(self.per_chunk)
    }
}

/// Where everything is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub chunk: u32,
    pub sections: Vec<Section>,
    pub chunks: u64,
    pub index_bytes: usize,
    /// Bytes of the whole file.
    pub length: u64,
}

impl Layout {
    /// The layout of so many records of each kind, with the bytes of their amounts; `None` for numbers no file has.
    pub fn new(chunk: u32, kinds: &[(AddressKind, u64, usize)]) -> Option<Self> {
        let (mut sections, mut first_chunk, mut index_at) = (Vec::new(), 0u64, 0usize);
        for &(kind, records, amount) in kinds {
            let room = (chunk as usize).checked_sub(SUM)?;
            let per_chunk = (room / (kind.digest_bytes() + amount)) as u64;
            if per_chunk == 0 || records == 0 || amount > 17 {
                return None;
            }
            let chunks = records.div_ceil(per_chunk);
            sections.push(Section { kind, records, amount, first_chunk, chunks, per_chunk, index_at });
            first_chunk = first_chunk.checked_add(chunks)?;
            let index = usize::try_from(chunks).ok()?.checked_mul(kind.digest_bytes())?;
            index_at = index_at.checked_add(index)?;
        }
        let length =
            first_chunk.checked_mul(chunk.into())?.checked_add(HEAD as u64)?.checked_add(index_at as u64)?;
        Some(Self { chunk, sections, chunks: first_chunk, index_bytes: index_at, length })
    }

    /// Where a chunk lies.
    pub fn place(&self, chunk: u64) -> u64 {
        HEAD as u64 + chunk * u64::from(self.chunk)
    }

    /// Where the index lies.
    pub fn index_place(&self) -> u64 {
        self.place(self.chunks)
    }
}

/// How many bytes amounts take of which this is the largest, if there are any.
pub(super) fn amount_bytes(largest: Option<u128>) -> usize {
    // Written is one more, which has 129 bits at most.
    match largest.map(|largest| largest.checked_add(1)) {
        None => 0,
        Some(Some(written)) => (128 - written.leading_zeros()).div_ceil(8) as usize,
        Some(None) => 17,
    }
}

/// Writes an amount to the bytes it has in a record.
pub(super) fn write_amount(amount: Option<u128>, into: &mut [u8]) {
    into.fill(0);
    let Some(amount) = amount else { return };
    match amount.checked_add(1) {
        Some(written) => {
            let bytes = written.to_be_bytes();
            let used = into.len().min(16);
            let at = into.len() - used;
            into[at..].copy_from_slice(&bytes[16 - used..]);
        }
        None => into[0] = 1,
    }
}

/// The amount that these bytes of a record say; `None` when they say none that there is.
pub(super) fn read_amount(bytes: &[u8]) -> Option<Option<u128>> {
    let (high, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let written = low.iter().fold(0u128, |number, &byte| number << 8 | u128::from(byte));
    match (high, written) {
        ([] | [0], 0) => Some(None),
        ([] | [0], written) => Some(Some(written - 1)),
        ([1], 0) => Some(Some(u128::MAX)),
        _ => None,
    }
}

/// What checksums of one database begin with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl Seed {
    pub fn new(identity: &[u8; 16]) -> Self {
        Self(u64::from_le_bytes(std::array::from_fn(|at| identity[at] ^ identity[8 + at])))
    }

    /// The checksum of a chunk, without the bytes for it.
    pub fn chunk(self, number: u64, bytes: &[u8]) -> [u8; SUM] {
        // The index has the number before the first chunk's.
        sum(self.0.wrapping_add(number).wrapping_add(1), bytes)
    }

    pub fn index(self, bytes: &[u8]) -> [u8; SUM] {
        sum(self.0, bytes)
    }
}

fn sum(seed: u64, bytes: &[u8]) -> [u8; SUM] {
    XxHash3_128::oneshot_with_seed(seed, bytes).to_le_bytes()
}

/// The head of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub about: About,
    pub layout: Layout,
    /// The checksum of the index.
    pub index: [u8; SUM],
}

impl Head {
    pub fn write(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.layout.chunk.to_le_bytes());
        put(16, &self.about.identity);
        put(32, &self.about.created.to_le_bytes());
        put(40, &self.about.records.to_le_bytes());
        put(48, &self.about.addresses);
        put(80, &self.about.amounts);
        put(112, &self.index);
        for (number, section) in self.layout.sections.iter().enumerate() {
            let at = KINDS + number * KIND;
            put(at, &[section.kind.byte(), section.amount as u8]);
            put(at + 8, &section.records.to_le_bytes());
        }
        let sum = sum(0, &head[..SUM_AT]);
        head[SUM_AT..].copy_from_slice(&sum);
        head
    }

    /// Reads the head of a file of this length, of which these are the first bytes.
    pub fn read(path: &Path, head: &[u8], length: u64) -> Result<Self, Error> {
        let (path, what) = (path.to_owned(), WHAT);
        let corrupt = |reason: &str| Error::Corrupt { path: path.clone(), what, reason: reason.into() };
        let known = head.len().min(MAGIC.len());
        if head.is_empty() || head[..known] != MAGIC[..known] {
            return Err(Error::Foreign { path, expected: what });
        }
        let Ok(head) = <&[u8; HEAD]>::try_from(head) else {
            return Err(Error::Truncated { path, what, reason: format!("it has {length} bytes") });
        };
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        // A version that is not ours may have another head, so it comes first.
        if word(8) != VERSION {
            return Err(Error::Version { path, what, found: word(8), known: VERSION });
        }
        if sum(0, &head[..SUM_AT]) != head[SUM_AT..] {
            return Err(corrupt("its head is not as it was written (another checksum)"));
        }
        // The checksum fits, so what is wrong from here on was written wrongly.
        let wrong = || corrupt("the numbers in its head do not go together");
        let chunk = word(12);
        let mut kinds: Vec<(AddressKind, u64, usize)> = Vec::new();
        let table = head[KINDS..KINDS + KIND * MOST_KINDS].as_chunks::<KIND>().0;
        for (number, row) in table.iter().enumerate() {
            let records = long(KINDS + number * KIND + 8);
            if records == 0 {
                continue;
            }
            let kind = AddressKind::from_byte(row[0]).ok_or_else(wrong)?;
            if kinds.last().is_some_and(|(before, ..)| *before >= kind) {
                return Err(wrong());
            }
            kinds.push((kind, records, usize::from(row[1])));
        }
        let layout = Some(kinds.as_slice()).filter(|_| CHUNKS.contains(&chunk));
        let layout = layout.and_then(|kinds| Layout::new(chunk, kinds)).ok_or_else(wrong)?;
        let kinds: Vec<(AddressKind, u64)> =
            kinds.into_iter().map(|(kind, records, _)| (kind, records)).collect();
        let records = kinds.iter().try_fold(0u64, |sum, (_, records)| sum.checked_add(*records));
        if records != Some(long(40)) {
            return Err(wrong());
        }
        if length < layout.length {
            let reason = format!("it has {length} bytes of {}", layout.length);
            return Err(Error::Truncated { path, what, reason });
        }
        if length > layout.length {
            return Err(corrupt("it has bytes after its end"));
        }
        let about = About {
            identity: std::array::from_fn(|i| head[16 + i]),
            created: long(32),
            records: long(40),
            addresses: std::array::from_fn(|i| head[48 + i]),
            amounts: std::array::from_fn(|i| head[80 + i]),
            kinds,
        };
        Ok(Self { about, layout, index: std::array::from_fn(|i| head[112 + i]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_room_for_every_kind() {
        assert!(AddressKind::all().count() <= MOST_KINDS);
    }

    #[test]
    fn amounts_take_the_bytes_they_need() {
        for (largest, bytes) in [
            (None, 0),
            (Some(0), 1),
            (Some(254), 1),
            (Some(255), 2),
            (Some(2_100_000_000_000_000), 7),
            (Some(u128::from(u64::MAX)), 9),
            (Some(u128::MAX - 1), 16),
            (Some(u128::MAX), 17),
        ] {
            assert_eq!(amount_bytes(largest), bytes, "{largest:?}");
            for amount in [None, Some(0), Some(1), largest, largest.map(|largest| largest / 3)] {
                if amount > largest {
                    continue;
                }
                let mut written = vec![0xaa; bytes];
                write_amount(amount, &mut written);
                assert_eq!(read_amount(&written), Some(amount), "{amount:?} of {largest:?}");
            }
        }
        assert_eq!(read_amount(&[&[1][..], &[0; 15], &[1]].concat()), None);
        assert_eq!(read_amount(&[2; 17]), None);
    }

    /// Numbers that no file has are refused before anything is computed with them.
    #[test]
    fn layouts_are_of_files_that_can_be() {
        let layout = Layout::new(CHUNK, &[(AddressKind::P2PKH, 1_000_000_000, 0)]).unwrap();
        // What the page of the format says.
        assert_eq!(layout.sections[0].per_chunk, 204);
        assert!((98_000_000..98_100_000).contains(&layout.index_bytes), "{}", layout.index_bytes);
        assert!(layout.length < 20_200_000_000, "{}", layout.length);
        for kinds in [
            [(AddressKind::P2PKH, u64::MAX, 0)],
            [(AddressKind::P2TR, u64::MAX / 20, 17)],
            [(AddressKind::P2SH, 1, 18)],
        ] {
            assert_eq!(Layout::new(CHUNK, &kinds), None);
        }
        assert_eq!(Layout::new(40, &[(AddressKind::P2TR, 1, 0)]), None);
        assert_eq!(Layout::new(0, &[(AddressKind::P2TR, 1, 0)]), None);
    }

    #[test]
    fn heads_that_do_not_add_up_are_refused() {
        let layout = Layout::new(512, &[(AddressKind::P2PKH, 100, 7), (AddressKind::P2TR, 3, 0)]).unwrap();
        let about = About {
            identity: [3; 16],
            created: 5,
            records: 103,
            addresses: [1; 32],
            amounts: [2; 32],
            kinds: vec![(AddressKind::P2PKH, 100), (AddressKind::P2TR, 3)],
        };
        let head = Head { about, layout, index: [9; 16] };
        let (written, length) = (head.write(), head.layout.length);
        let path = Path::new("db");
        assert_eq!(Head::read(path, &written, length).unwrap(), head);
        assert!(matches!(Head::read(path, &written, length - 1), Err(Error::Truncated { .. })));
        assert!(matches!(Head::read(path, &written, length + 1), Err(Error::Corrupt { .. })));
        // As a wrong program would write them, with a checksum that fits.
        for (at, byte) in
            [(12, 7), (14, 0xff), (40, 7), (128, 0x77), (129, 40), (136, 0), (136, 99), (144, 1)]
        {
            let mut wrong = written;
            wrong[at] = byte;
            let sum = sum(0, &wrong[..SUM_AT]);
            wrong[SUM_AT..].copy_from_slice(&sum);
            let error = Head::read(path, &wrong, length).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. } | Error::Truncated { .. }), "{at}: {error}");
        }
    }
}
