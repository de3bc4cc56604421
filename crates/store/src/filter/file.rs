//! A filter on disk: a head of 128 bytes, 32 bytes for each part, the fingerprints, and SHA-256 of all that. Numbers are
//! little-endian.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `warpfuse` |
//! | 8 | 4 | format, 2 |
//! | 12 | 4 | bits of a fingerprint, 8 or 16 |
//! | 16 | 16 | the database's identity |
//! | 32 | 8 | different keys |
//! | 40 | 8 | fingerprints, with those that fill up parts |
//! | 48 | 4 | parts |
//! | 52 | 4 | how many kinds |
//! | 56 | 72 | the kinds' bytes, then zeros |
//!
//! and of a part:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | the number of its first fingerprint |
//! | 8 | 8 | seed |
//! | 16 | 4 | segment length |
//! | 20 | 4 | segment count length |
//! | 24 | 8 | zeros |
//!
//! Format 1 had one part, in the head. Such filters are made anew.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use warpsmith_files::{Draft, with_suffix};

use warpsmith_chain::AddressKind;

use super::{Filter, FilterPart, Fingerprints, WHAT, Width, kinds_in, path_of};
use crate::Error;
use crate::database::Databases;

const MAGIC: &[u8; 8] = b"warpfuse";
const VERSION: u32 = 2;
const HEAD: usize = 128;
const KINDS: std::ops::Range<usize> = 56..HEAD;
const PART: usize = 32;
/// More than any filter has: 2^36 keys.
const MOST_PARTS: u32 = 1 << 10;
/// Fingerprints that are read or written at once.
const PIECE: usize = 1 << 16;
const SUM: usize = 32;

impl Filter {
    /// Writes the filter beside its database, in place of one that may be there.
    pub fn save<'a>(&self, databases: impl Into<Databases<'a>>) -> Result<(), Error> {
        let path = path_of(&databases.into(), &self.kinds, self.width());
        let draft = Draft::begin(&path, &with_suffix(&path, ".part"), 0o644)?;
        self.write(draft.file()).map_err(Error::io("write", &path))?;
        Ok(draft.place()?)
    }

    fn write(&self, mut file: &File) -> io::Result<()> {
        let mut hash = Sha256::new();
        let mut write = |bytes: &[u8]| {
            hash.update(bytes);
            file.write_all(bytes)
        };
        write(&self.head())?;
        for part in &self.parts {
            write(&part_bytes(part))?;
        }
        match &self.fingerprints {
            Fingerprints::Bytes(bytes) => write(bytes)?,
            Fingerprints::Words(words) => {
                for words in words.chunks(PIECE) {
                    write(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())?;
                }
            }
        }
        file.write_all(&hash.finalize())
    }

    /// Reads the filter of a database's kinds from the file beside it. A filter of another database, a damaged and a
    /// foreign file are refused.
    pub fn open<'a>(
        databases: impl Into<Databases<'a>>,
        kinds: &[AddressKind],
        width: Width,
    ) -> Result<Self, Error> {
        let databases = databases.into();
        let kinds = kinds_in(&databases, kinds);
        let path = path_of(&databases, &kinds, width);
        let filter = Self::read(&path)?;
        if filter.identity != databases.identity() {
            let [found, expected] = [filter.identity, databases.identity()]
                .map(|identity| identity.iter().map(|byte| format!("{byte:02x}")).collect());
            return Err(Error::OtherDatabase { path, found, expected });
        }
        if filter.kinds != kinds || filter.width() != width {
            let reason = "its kinds or its width are not those of its name".into();
            return Err(Error::Corrupt { path, what: WHAT, reason });
        }
        Ok(filter)
    }

    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.width().bits().to_le_bytes());
        put(16, &self.identity);
        put(32, &self.keys.to_le_bytes());
        put(40, &(self.size() / u64::from(self.width().bits() / 8)).to_le_bytes());
        put(48, &(self.parts.len() as u32).to_le_bytes());
        put(52, &(self.kinds.len() as u32).to_le_bytes());
        put(KINDS.start, &self.kinds.iter().map(|kind| kind.byte()).collect::<Vec<u8>>());
        head
    }

    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let failed = || Error::io("read the filter", path);
        let mut file = File::open(path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let what = WHAT;
        let corrupt = |reason: &str| Error::Corrupt { path: path.to_owned(), what, reason: reason.into() };
        let truncated = |reason: String| Error::Truncated { path: path.to_owned(), what, reason };
        let mut head = Vec::new();
        (&mut file).take(HEAD as u64).read_to_end(&mut head).map_err(failed())?;
        let known = head.len().min(MAGIC.len());
        if head[..known] != MAGIC[..known] {
            return Err(Error::Foreign { path: path.to_owned(), expected: what });
        }
        let Ok(head) = <[u8; HEAD]>::try_from(head) else {
            return Err(truncated(format!("it has {length} bytes")));
        };
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if word(8) != VERSION {
            return Err(Error::Version { path: path.to_owned(), what, found: word(8), known: VERSION });
        }
        let width = Width::ALL.into_iter().find(|width| width.bits() == word(12));
        let width = width.ok_or_else(|| corrupt("its fingerprints have a width that is none"))?;
        let (count, each) = (long(40), u64::from(width.bits() / 8));
        if !(1..=MOST_PARTS).contains(&word(48)) {
            return Err(corrupt("it has a number of parts that is none"));
        }
        let before = HEAD as u64 + PART as u64 * u64::from(word(48));
        // What is added to a length that a file may have cannot overflow.
        let wanted = count.checked_mul(each).and_then(|bytes| bytes.checked_add(before + SUM as u64));
        let wanted = wanted.ok_or_else(|| corrupt("the numbers in its head do not go together"))?;
        if length < wanted {
            return Err(truncated(format!("it has {length} bytes of {wanted}")));
        }
        if length > wanted {
            return Err(corrupt("it has bytes after its end"));
        }
        let mut hash = Sha256::new();
        hash.update(head);
        let mut parts: Vec<FilterPart> = Vec::new();
        for _ in 0..word(48) {
            let mut bytes = [0; PART];
            file.read_exact(&mut bytes).map_err(failed())?;
            hash.update(bytes);
            let part = read_part(&bytes).filter(|part| part.first == parts.last().map_or(0, FilterPart::end));
            parts.push(part.ok_or_else(|| corrupt("the numbers of its parts do not go together"))?);
        }
        if parts.last().map(|part| part.first + part.fingerprints()) != Some(count) {
            return Err(corrupt("the numbers of its parts do not go together"));
        }
        let fingerprints = read_fingerprints(&mut file, &mut hash, width, count).map_err(failed())?;
        let mut sum = [0; SUM];
        file.read_exact(&mut sum).map_err(failed())?;
        if hash.finalize().as_slice() != sum {
            return Err(corrupt("its SHA-256 is not the one at its end"));
        }
        let listed = &head[KINDS][..(word(52) as usize).min(KINDS.len())];
        let kinds =
            listed.iter().map(|byte| AddressKind::from_byte(*byte)).collect::<Option<Vec<AddressKind>>>();
        let kinds = kinds.ok_or_else(|| corrupt("it has a kind that is none"))?;
        let identity = std::array::from_fn(|i| head[16 + i]);
        Ok(Self { parts, fingerprints, kinds, keys: long(32), identity })
    }
}

fn part_bytes(part: &FilterPart) -> [u8; PART] {
    let mut bytes = [0; PART];
    bytes[..8].copy_from_slice(&part.first.to_le_bytes());
    bytes[8..16].copy_from_slice(&part.seed.to_le_bytes());
    bytes[16..20].copy_from_slice(&part.segment_length.to_le_bytes());
    bytes[20..24].copy_from_slice(&part.segment_count_length.to_le_bytes());
    bytes
}

/// A part whose numbers go together: no look-up can leave its fingerprints.
fn read_part(bytes: &[u8; PART]) -> Option<FilterPart> {
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let part = FilterPart {
        first: long(0),
        seed: long(8),
        segment_length: word(16),
        segment_count_length: word(20),
    };
    let is_sound = part.segment_length.is_power_of_two()
        && part.segment_count_length.is_multiple_of(part.segment_length)
        && part.first <= 1 << 48
        && part.fingerprints() <= 1 << 32;
    is_sound.then_some(part)
}

/// Reads so many fingerprints, a piece at a time: they are there once, not twice.
fn read_fingerprints(
    file: &mut File,
    hash: &mut Sha256,
    width: Width,
    count: u64,
) -> io::Result<Fingerprints> {
    let (count, each) = (count as usize, width.bits() as usize / 8);
    let mut bytes = vec![0; PIECE * each];
    let mut pieces = |take: &mut dyn FnMut(&[u8])| -> io::Result<()> {
        let mut at = 0;
        while at < count {
            let piece = (count - at).min(PIECE);
            let bytes = &mut bytes[..piece * each];
            file.read_exact(bytes)?;
            hash.update(&*bytes);
            take(bytes);
            at += piece;
        }
        Ok(())
    };
    Ok(match width {
        Width::Fuse8 => {
            let mut all = Vec::with_capacity(count);
            pieces(&mut |bytes| all.extend_from_slice(bytes))?;
            Fingerprints::Bytes(all)
        }
        Width::Fuse16 => {
            let mut all = Vec::with_capacity(count);
            pieces(&mut |bytes| {
                all.extend(bytes.as_chunks().0.iter().map(|word| u16::from_le_bytes(*word)))
            })?;
            Fingerprints::Words(all)
        }
    })
}
