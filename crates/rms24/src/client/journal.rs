//! What happened since the state file was written: every query before it leaves, every answer, every update.
//!
//! ```text
//! "WPIRJRNL"  version u32 (2)  state id [16]  generation u64  checksum of the state file [32]  sum [8]
//! steps: length of the records u32, records (kind u8, length u32, payload), link [16]
//! ```
//!
//! A step is what is made durable at once, and counts whole or not at all. Its link is the SHA-256 of the link before it
//! (at first, of state id and generation) and of the step, so that no step passes for another, at another place or
//! after other steps. How far the journal went is in the state file too (see `mark.rs`).

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use warpsmith_files::{self as files, Sharing, is_at, with_suffix};
use zeroize::Zeroizing;

use super::head::Head;
use super::mark::{HEAD, Link, Mark, Marks, shortened};
use crate::error::{Error, Result};
use crate::wire::{checksum, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"WPIRJRNL";
const VERSION: u32 = 2;
/// Bytes of a step beside its records, and of a record beside its payload.
const FRAME: usize = 4 + 16;
const RECORD_FRAME: usize = 1 + 4;

/// A record of the client.
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

    /// Whether the state file must know of it, durably, before anything else happens: a query is about to leave, or what is
    /// known to be worthless must stay so. Anything else that is lost comes again by itself.
    pub(super) fn is_binding(&self) -> bool {
        matches!(self, Record::Spent { .. } | Record::Missed { .. } | Record::Spoilt { .. })
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

/// An open journal. Whoever has it holds the lock of the state file.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// How far it goes.
    end: Mark,
}

/// A journal as found on disk.
pub(super) struct Found {
    file: File,
    path: PathBuf,
    bytes: Zeroizing<Vec<u8>>,
    pub(super) state_id: [u8; 16],
    pub(super) generation: u64,
    /// The checksum of the state file it belongs to.
    pub(super) base: [u8; 32],
}

impl Journal {
    /// Where the journal of a state file is.
    pub(super) fn path_of(state: &Path) -> PathBuf {
        with_suffix(state, ".journal")
    }

    /// A new journal for the state file with this head and checksum, in place of the one before.
    pub(super) fn create(state: &Path, head: &Head, base: [u8; 32]) -> Result<Journal> {
        let path = Journal::path_of(state);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&head.state_id);
        bytes.extend_from_slice(&head.generation.to_le_bytes());
        bytes.extend_from_slice(&base);
        let sum = checksum(&[&bytes]);
        bytes.extend_from_slice(&sum);
        files::check_folder(&path)?;
        let file = files::replace(&path, 0o600, |to| to.write_all(&bytes))?;
        Ok(Journal { file, path, end: Mark::first(head) })
    }

    /// Reads the journal of a state file; none where there is no file.
    pub(super) fn find(state: &Path) -> Result<Option<Found>> {
        let path = Journal::path_of(state);
        let mut file = match files::open(&path, Sharing::Secret) {
            Err(error) if error.is_not_found() => return Ok(None),
            other => other?,
        };
        // With room for all of it, so that no buffer that grew stays behind.
        let length = file.metadata().map_err(Error::io(&path))?.len() as usize;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length + 1));
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
        Ok(Some(Found { file, path, bytes, state_id, generation, base }))
    }

    /// Adds a step and makes it durable. After an error nothing may be sent, and the state must be opened again.
    pub(super) fn append(&mut self, records: &[Record]) -> Result<()> {
        if !is_at(&self.file, &self.path) {
            let reason = "somebody moved, replaced or removed it while it was in use; nothing was sent";
            return Err(Error::damaged(&self.path, reason));
        }
        let mut step = vec![0; 4];
        for record in records {
            let payload = record.payload();
            step.push(record.kind());
            step.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            step.extend_from_slice(&payload);
        }
        let length = (step.len() - 4) as u32;
        step[..4].copy_from_slice(&length.to_le_bytes());
        let link = link_after(&self.end.link, &step);
        step.extend_from_slice(&link);
        let written = self.file.write_all_at(&step, self.end.length);
        written.and_then(|()| self.file.sync_data()).map_err(Error::io(&self.path))?;
        self.end = self.end.after(step.len() as u64, link);
        Ok(())
    }

    /// How far it goes.
    pub(super) fn end(&self) -> Mark {
        self.end
    }

    /// Whether there is no step.
    pub(super) fn is_empty(&self) -> bool {
        self.end.steps == 0
    }
}

impl Found {
    /// The records, and the journal, once it is known to be the one the state file's mark tells of. What a crash left of a
    /// step that was never finished is cut off.
    pub(super) fn open(self, state: &Path, head: &Head, marks: &Marks) -> Result<(Journal, Vec<Record>)> {
        let Found { file, path, bytes, .. } = self;
        let mark = marks.newest;
        let (mut end, mut records) = (Mark::first(head), Vec::new());
        let (mut met, mut binding) = (end == mark, 0);
        while let Some((step, length, link)) = step_at(&bytes, &end) {
            if met && binding > 0 {
                // Only one step can be ahead of the mark that had to be durable in it.
                return Err(stale(state, "it is an older copy: its journal has gone on since"));
            }
            binding += u32::from(met && step.iter().any(Record::is_binding));
            records.extend(step);
            end = end.after(length as u64, link);
            met |= end == mark;
        }
        if !met {
            return Err(stale(
                state,
                "its journal was cut short, damaged or put back, so nobody knows which hints were sent already",
            ));
        }
        if marks.one_is_bad && end == mark {
            // Perhaps the bad one was newer. A mark is written after its step: a crash in the middle of it leaves the step, damage need not.
            return Err(stale(state, "one of its marks (bytes 512 to 1535) is damaged"));
        }
        if end.length < bytes.len() as u64 {
            file.set_len(end.length).and_then(|()| file.sync_all()).map_err(Error::io(&path))?;
        }
        Ok((Journal { file, path, end }, records))
    }
}

fn link_after(before: &Link, step: &[u8]) -> Link {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(step);
    shortened(hash)
}

/// The whole step after `end`, if there is one: its records, its length and its link.
fn step_at(bytes: &[u8], end: &Mark) -> Option<(Vec<Record>, usize, Link)> {
    let rest = bytes.get(usize::try_from(end.length).ok()?..).filter(|rest| rest.len() >= FRAME)?;
    let length = (u32_at(rest, 0) as usize).checked_add(FRAME).filter(|length| *length <= rest.len())?;
    let (step, link) = rest[..length].split_at(length - 16);
    if link_after(&end.link, step) != link {
        return None;
    }
    let (mut records, mut rest) = (Vec::new(), &step[4..]);
    while !rest.is_empty() {
        let (frame, after) = rest.split_at_checked(RECORD_FRAME)?;
        let (payload, after) = after.split_at_checked(u32_at(frame, 1) as usize)?;
        records.push(Record::parse(frame[0], payload)?);
        rest = after;
    }
    Some((records, length, *link.first_chunk()?))
}

/// The state must not be used.
pub(super) fn stale(path: &Path, reason: &str) -> Error {
    let reason = format!(
        "{reason}; a hint sent twice would tell the server what was asked: run the offline phase again"
    );
    Error::Stale { path: path.to_owned(), reason }
}
