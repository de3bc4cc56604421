//! A database on disk: fixed entries in blocks, with its identity and checksums.
//!
//! ```text
//! head, 4096 bytes: "WPIRDATA", version u32, entry size u32, entries u64, block size u32, segment bytes u32, epoch u64,
//!                   keyword table (24 bytes and a seed, see the keyword module), identity [32],
//!                   of version 2: lineage [32] or zeros, up to 64 predecessors [32]; zeros, sum [8]
//! entries, padded with zero entries to an even number of full blocks
//! SHA-256 of each segment of the entries
//! ```
//!
//! The identity is the SHA-256 of the head before it (of version 2 also of what follows it) and of all the segments' digests,
//! and the head has a sum, so that no bit of the file can change unnoticed. The file never changes: updates are kept beside it
//! (see the updates module), and a fold puts another file in its place.
//!
//! What was built has version 1, and is its own lineage. A file that a fold made has version 2 and names the lineage it is of:
//! the identity of the file that was built. Lineage and epoch say which entries are meant, whatever file they come from.

mod builder;
mod reading;

use sha2::{Digest, Sha256};

pub use self::builder::Builder;
pub use self::reading::Database;

use crate::error::{Error, Result};
use crate::keyword::TableShape;
use crate::params::{Choice, Params};
use crate::wire::{checksum, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"WPIRDATA";
/// What was built.
const BUILT: u32 = 1;
/// What was made of another file.
const DERIVED: u32 = 2;
/// The most tables before this one that are known. Each was smaller by a third.
const PREDECESSORS: usize = 64;
/// Where the entries begin.
pub const HEAD_BYTES: usize = 4096;
/// Bytes of the entries that have a digest of their own.
pub const SEGMENT_BYTES: usize = 1 << 20;
const BEFORE_IDENTITY: usize = 40 + TableShape::BYTES;

/// What a database's head says: all a client needs to know. It is public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The shape; lambda is the client's choice, and here 80.
    pub params: Params,
    /// The epoch of the entries in the file.
    pub epoch: u64,
    /// The keyword table, where entries are looked up by key.
    pub keyword: Option<TableShape>,
    /// The identity of this file.
    pub identity: [u8; 32],
    /// The identity of the file that was built, where this one was folded from it.
    pub origin: Option<[u8; 32]>,
    /// The lineages whose entries moved here, where this is a larger table in the place of one that was full; the newest first.
    pub predecessors: Vec<[u8; 32]>,
}

impl Description {
    /// Bytes of all blocks.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.params.blocks()) * self.params.block_bytes() as u64
    }

    /// Segments with a digest.
    pub fn segments(&self) -> u64 {
        self.data_bytes().div_ceil(SEGMENT_BYTES as u64)
    }

    /// What stays the same when the database is folded: with an epoch it says which entries are meant.
    pub fn lineage(&self) -> [u8; 32] {
        self.origin.unwrap_or(self.identity)
    }

    /// The identity as HTTP names a version of something (RFC 9110, ETag).
    pub(crate) fn tag(&self) -> String {
        let digits: String = self.identity.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("\"{digits}\"")
    }

    /// What a head of version 2 has after the identity; nothing in version 1.
    fn descent(&self) -> Vec<u8> {
        match (self.origin, &self.predecessors[..]) {
            (None, []) => Vec::new(),
            (origin, predecessors) => [&origin.unwrap_or_default()[..], &predecessors.concat()].concat(),
        }
    }

    fn before_identity(&self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        let version = if self.descent().is_empty() { BUILT } else { DERIVED };
        head.extend_from_slice(&version.to_le_bytes());
        head.extend_from_slice(&(self.params.entry_size() as u32).to_le_bytes());
        head.extend_from_slice(&self.params.entries().to_le_bytes());
        head.extend_from_slice(&self.params.block_size().to_le_bytes());
        head.extend_from_slice(&(SEGMENT_BYTES as u32).to_le_bytes());
        head.extend_from_slice(&self.epoch.to_le_bytes());
        head.extend_from_slice(&TableShape::to_bytes(self.keyword.as_ref()));
        debug_assert_eq!(head.len(), BEFORE_IDENTITY);
        head
    }

    /// The head as it stands in a file and travels to clients.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = self.before_identity();
        head.extend_from_slice(&self.identity);
        head.extend_from_slice(&self.descent());
        head.resize(HEAD_BYTES - 8, 0);
        let sum = checksum(&[&head]);
        head.extend_from_slice(&sum);
        head
    }

    /// Reads a head.
    ///
    /// # Errors
    ///
    /// When it is damaged, of another version, or impossible.
    pub fn read(what: &str, head: &[u8]) -> Result<Description> {
        let wrong = |reason: &str| Error::format(what, reason);
        if head.len() < HEAD_BYTES || head[..8] != *MAGIC {
            return Err(wrong("this is not a database of private retrieval"));
        }
        let head = &head[..HEAD_BYTES];
        if checksum(&[&head[..HEAD_BYTES - 8]]) != head[HEAD_BYTES - 8..] {
            return Err(wrong(
                "the head (the first 4096 bytes) is damaged; get the file again, or build it anew",
            ));
        }
        let version = u32_at(head, 8);
        if !(BUILT..=DERIVED).contains(&version) || u32_at(head, 28) as usize != SEGMENT_BYTES {
            return Err(wrong(&format!(
                "version {version} of the format; this program knows {BUILT} and {DERIVED}"
            )));
        }
        let named = |at: usize| {
            let name: [u8; 32] = *head[BEFORE_IDENTITY + at..].first_chunk().expect("the length was checked");
            Some(name).filter(|name| version == DERIVED && *name != [0; 32])
        };
        let choice =
            Choice { block_size: Some(u32_at(head, 24)), ..Choice::new(u64_at(head, 16), u32_at(head, 12)) };
        Ok(Description {
            params: Params::new(choice)?,
            epoch: u64_at(head, 32),
            keyword: TableShape::read(&head[40..BEFORE_IDENTITY])?,
            identity: *head[BEFORE_IDENTITY..].first_chunk().expect("the length was checked"),
            origin: named(32),
            predecessors: (0..PREDECESSORS).map_while(|number| named(64 + 32 * number)).collect(),
        })
    }

    /// The identity that follows from the head and the segments' digests.
    pub fn identity_of(&self, digests: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.before_identity());
        hash.update(self.descent());
        hash.update(digests);
        hash.finalize().into()
    }
}
