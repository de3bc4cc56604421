//! A database on disk: fixed entries in blocks, with its identity and checksums.
//!
//! ```text
//! head, 4096 bytes: "WPIRDATA", version u32, entry size u32, entries u64, block size u32, segment bytes u32, epoch u64,
//!                   keyword table (24 bytes and a seed, see the keyword module), identity [32], zeros, sum [8]
//! entries, padded with zero entries to an even number of full blocks
//! SHA-256 of each segment of the entries
//! ```
//!
//! The identity is the SHA-256 of the head before it and of all the segments' digests, and the head has a sum, so that no
//! bit of the file can change unnoticed. The file never changes: updates are kept beside it (see the updates module).

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
const VERSION: u32 = 1;
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
    /// The identity.
    pub identity: [u8; 32],
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

    fn before_identity(&self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
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
        if u32_at(head, 8) != VERSION || u32_at(head, 28) as usize != SEGMENT_BYTES {
            return Err(wrong(&format!(
                "version {} of the format; this program knows {VERSION}",
                u32_at(head, 8)
            )));
        }
        let choice =
            Choice { block_size: Some(u32_at(head, 24)), ..Choice::new(u64_at(head, 16), u32_at(head, 12)) };
        Ok(Description {
            params: Params::new(choice)?,
            epoch: u64_at(head, 32),
            keyword: TableShape::read(&head[40..BEFORE_IDENTITY])?,
            identity: *head[BEFORE_IDENTITY..].first_chunk().expect("the length was checked"),
        })
    }

    /// The identity that follows from the head and the segments' digests.
    pub fn identity_of(&self, digests: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.before_identity());
        hash.update(digests);
        hash.finalize().into()
    }
}
