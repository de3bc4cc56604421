//! What happened since the state file was written: every query before it leaves, every answer, every update.
//!
//! ```text
//! "WPIRJRNL"  version u32  state id [16]  generation u64  checksum of the state file [32]  sum [8]
//! records: length u32, kind u8, payload, sum [8]
//! ```
//!
//! A record's sum covers the state id, the generation and its place in the file, so that no record passes for another's.
//! A record that a crash cut short was never made durable, so its query never left: it is cut off. A damaged record with
//! whole ones after it was durable once: then nobody knows which hints were sent, and the state is refused.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::private_file;
use super::snapshot::{Head, beside};
use crate::error::{Error, Result};
use crate::wire::{checksum, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"WPIRJRNL";
const VERSION: u32 = 1;
/// Bytes before the first record.
const HEAD: usize = 8 + 4 + 16 + 8 + 32 + 8;
/// Bytes of a record beside its payload.
const FRAME: usize = 4 + 1 + 8;

/// A step of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A slot is spent for a query, which may leave once this is durable.
    Spent { query: u64, slot: u64, index: u64, flip: bool },
    /// The entry a query fetched; none where it could not be known.
    Settled { query: u64, entry: Option<Vec<u8>> },
    /// The hint in a slot is worthless.
    Spoilt { slot: u64 },
    /// An epoch's changes, as they travel.
    Updated(Vec<u8>),
    /// Further pairs, as a hint maker sends them.
    Pairs(Vec<u8>),
    /// A query that no hint served: its number is used up.
    Missed { query: u64 },
}

impl Record {
    fn kind(&self) -> u8 {
        match self {
            Record::Spent { .. } => 1,
            Record::Settled { .. } => 2,
            Record::Spoilt { .. } => 3,
            Record::Updated(_) => 4,
            Record::Pairs(_) => 5,
            Record::Missed { .. } => 6,
        }
    }

    fn payload(&self) -> Vec<u8> {
        match self {
            Record::Spent { query, slot, index, flip } => {
                let mut bytes: Vec<u8> =
                    [*query, *slot, *index].iter().flat_map(|n| n.to_le_bytes()).collect();
                bytes.push(u8::from(*flip));
                bytes
            }
            Record::Settled { query, entry } => {
                let mut bytes = query.to_le_bytes().to_vec();
                bytes.push(u8::from(entry.is_some()));
                bytes.extend(entry.iter().flatten());
                bytes
            }
            Record::Spoilt { slot } => slot.to_le_bytes().to_vec(),
            Record::Updated(bytes) | Record::Pairs(bytes) => bytes.clone(),
            Record::Missed { query } => query.to_le_bytes().to_vec(),
        }
    }

    fn parse(kind: u8, payload: &[u8]) -> Option<Record> {
        Some(match (kind, payload.len()) {
            (1, 25) if payload[24] < 2 => Record::Spent {
                query: u64_at(payload, 0),
                slot: u64_at(payload, 8),
                index: u64_at(payload, 16),
                flip: payload[24] == 1,
            },
            (2, 9..) if payload[8] == 1 => {
                Record::Settled { query: u64_at(payload, 0), entry: Some(payload[9..].to_vec()) }
            }
            (2, 9) if payload[8] == 0 => Record::Settled { query: u64_at(payload, 0), entry: None },
            (3, 8) => Record::Spoilt { slot: u64_at(payload, 0) },
            (4, _) => Record::Updated(payload.to_vec()),
            (5, _) => Record::Pairs(payload.to_vec()),
            (6, 8) => Record::Missed { query: u64_at(payload, 0) },
            _ => return None,
        })
    }
}

/// An open journal; as long as it is, no other process can open it.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    state_id: [u8; 16],
    generation: u64,
    length: u64,
}

/// A journal as found on disk.
pub(super) struct Found {
    pub(super) journal: Journal,
    pub(super) records: Vec<Record>,
    /// The checksum of the state file it belongs to.
    pub(super) base: [u8; 32],
}

fn sum_of(state_id: &[u8; 16], generation: u64, at: u64, record: &[u8]) -> [u8; 8] {
    checksum(&[state_id, &generation.to_le_bytes(), &at.to_le_bytes(), record])
}

impl Journal {
    /// Where the journal of a state file is.
    pub(super) fn path_of(state: &Path) -> PathBuf {
        beside(state, "journal")
    }

    /// A new journal for the state file with this head and checksum, in place of the one before.
    pub(super) fn create(state: &Path, head: &Head, base: [u8; 32]) -> Result<Journal> {
        let path = Journal::path_of(state);
        let new = beside(&path, "new");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&head.state_id);
        bytes.extend_from_slice(&head.generation.to_le_bytes());
        bytes.extend_from_slice(&base);
        let sum = checksum(&[&bytes]);
        bytes.extend_from_slice(&sum);
        let write = || {
            let mut file = private_file::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            Ok(file)
        };
        let file = write().map_err(Error::io(&new))?;
        lock(&file, &path)?;
        std::fs::rename(&new, &path).map_err(Error::io(&path))?;
        private_file::sync_folder(&path)?;
        let (state_id, generation) = (head.state_id, head.generation);
        Ok(Journal { file, path, state_id, generation, length: HEAD as u64 })
    }

    /// Opens the journal of a state file and reads all records. A torn end is cut off.
    pub(super) fn open(state: &Path) -> Result<Found> {
        let path = Journal::path_of(state);
        let mut file = match private_file::open(&path) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(stale(
                    state,
                    "its journal is missing, so nobody knows which hints were sent already",
                ));
            }
            other => other?,
        };
        lock(&file, &path)?;
        // Renewed by its owner between the opening and the lock: then the lock is on a file that is gone.
        if !private_file::is_at(&file, &path) {
            return Err(Error::format(path.display().to_string(), "another process uses this state"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io(&path))?;
        let is_whole = bytes.len() >= HEAD
            && bytes[..8] == *MAGIC
            && checksum(&[&bytes[..HEAD - 8]]) == bytes[HEAD - 8..HEAD];
        if !is_whole || u32_at(&bytes, 8) != VERSION {
            return Err(stale(state, "its journal is damaged or of another version"));
        }
        let state_id = *bytes[12..].first_chunk().expect("the head is there");
        let generation = u64_at(&bytes, 28);
        let base = *bytes[36..].first_chunk().expect("the head is there");
        let (records, whole) = read_records(&bytes, &state_id, generation);
        if (whole + 1..bytes.len()).any(|at| record_at(&bytes, at, &state_id, generation).is_some()) {
            return Err(stale(
                state,
                "a record of its journal is damaged, so nobody knows which hints were sent already",
            ));
        }
        if whole < bytes.len() {
            file.set_len(whole as u64).and_then(|()| file.sync_all()).map_err(Error::io(&path))?;
        }
        file.seek(SeekFrom::End(0)).map_err(Error::io(&path))?;
        Ok(Found {
            journal: Journal { file, path, state_id, generation, length: whole as u64 },
            records,
            base,
        })
    }

    /// Adds records and makes them durable. After an error nothing may be sent, and the state must be opened again.
    pub(super) fn append(&mut self, records: &[Record]) -> Result<()> {
        let mut bytes = Vec::new();
        for record in records {
            let at = self.length + bytes.len() as u64;
            let payload = record.payload();
            let mut framed = (payload.len() as u32).to_le_bytes().to_vec();
            framed.push(record.kind());
            framed.extend_from_slice(&payload);
            let sum = sum_of(&self.state_id, self.generation, at, &framed);
            bytes.extend_from_slice(&framed);
            bytes.extend_from_slice(&sum);
        }
        self.file.write_all(&bytes).and_then(|()| self.file.sync_data()).map_err(Error::io(&self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn state_id(&self) -> [u8; 16] {
        self.state_id
    }

    /// Bytes in the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether there is no record.
    pub(super) fn is_empty(&self) -> bool {
        self.length == HEAD as u64
    }
}

/// The records from the beginning to the first that is not whole, and where that one is.
fn read_records(bytes: &[u8], state_id: &[u8; 16], generation: u64) -> (Vec<Record>, usize) {
    let (mut records, mut at) = (Vec::new(), HEAD);
    while let Some((record, length)) = record_at(bytes, at, state_id, generation) {
        records.push(record);
        at += length;
    }
    (records, at)
}

/// The whole record at a place, if there is one, and its length.
fn record_at(bytes: &[u8], at: usize, state_id: &[u8; 16], generation: u64) -> Option<(Record, usize)> {
    let rest = bytes.get(at..).filter(|rest| rest.len() >= FRAME)?;
    let payload = u32_at(rest, 0) as usize;
    let length = payload.checked_add(FRAME).filter(|length| *length <= rest.len())?;
    let (framed, sum) = rest[..length].split_at(length - 8);
    // Kinds first: it spares the sum at most places of a torn end.
    let record = Record::parse(framed[4], &framed[5..])?;
    (sum_of(state_id, generation, at as u64, framed) == sum).then_some((record, length))
}

fn lock(file: &File, path: &Path) -> Result<()> {
    file.try_lock().map_err(|_| Error::format(path.display().to_string(), "another process uses this state"))
}

/// The state must not be used.
pub(super) fn stale(path: &Path, reason: &str) -> Error {
    let reason = format!(
        "{reason}; a hint sent twice would tell the server what was asked: run the offline phase again"
    );
    Error::Stale { path: path.to_owned(), reason }
}
