//! A database on disk: fixed entries in blocks, memory-mapped, with its identity and checksums.
//!
//! ```text
//! head, 4096 bytes: "WPIRDATA", version u32, entry size u32, entries u64, block size u32, segment bytes u32, epoch u64,
//!                   keyword table (24 bytes and a seed, see the keyword module), identity [32], zeros, sum [8]
//! entries, padded with zero entries to an even number of full blocks
//! SHA-256 of each segment of the entries
//! ```
//!
//! The identity is the SHA-256 of the head before it and of all the segments' digests. The file never changes: updates
//! are kept beside it (see the updates module).

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapMut, MmapOptions};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::keyword::Shape;
use crate::params::{Choice, Params};
use crate::wire::{checksum, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"WPIRDATA";
const VERSION: u32 = 1;
/// Where the entries begin.
pub const HEAD_BYTES: usize = 4096;
/// Bytes of the entries that have a digest of their own.
pub const SEGMENT_BYTES: usize = 1 << 20;
const BEFORE_IDENTITY: usize = 40 + Shape::BYTES;

/// What a database's head says: all a client needs to know. It is public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The shape; lambda is the client's choice, and here 80.
    pub params: Params,
    /// The epoch of the entries in the file.
    pub epoch: u64,
    /// The keyword table, where entries are looked up by key.
    pub keyword: Option<Shape>,
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
        head.extend_from_slice(&Shape::to_bytes(self.keyword.as_ref()));
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
        if u32_at(head, 8) != VERSION {
            return Err(wrong(&format!(
                "version {} of the format; this program knows {VERSION}",
                u32_at(head, 8)
            )));
        }
        if checksum(&[&head[..HEAD_BYTES - 8]]) != head[HEAD_BYTES - 8..]
            || u32_at(head, 28) as usize != SEGMENT_BYTES
        {
            return Err(wrong("the head is damaged"));
        }
        let choice =
            Choice { block_size: Some(u32_at(head, 24)), ..Choice::new(u64_at(head, 16), u32_at(head, 12)) };
        Ok(Description {
            params: Params::new(choice)?,
            epoch: u64_at(head, 32),
            keyword: Shape::read(&head[40..BEFORE_IDENTITY])?,
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

/// Writes a database.
pub struct Builder {
    description: Description,
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
    segment: Vec<u8>,
    digests: Vec<u8>,
    written: u64,
    finished: bool,
}

impl Builder {
    /// Begins a database of this shape; lambda and backups of the choice are of no consequence.
    ///
    /// # Errors
    ///
    /// When the shape is impossible or the file cannot be written.
    pub fn new(path: &Path, choice: Choice, epoch: u64, keyword: Option<Shape>) -> Result<Builder> {
        let params = Params::new(Choice { lambda: 80, backups: None, ..choice })?;
        let description = Description { params, epoch, keyword, identity: [0; 32] };
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        let create = || {
            let mut file = File::create(&unfinished)?;
            file.seek(SeekFrom::Start(HEAD_BYTES as u64))?;
            Ok(BufWriter::with_capacity(1 << 20, file))
        };
        let file = create().map_err(Error::io(&unfinished))?;
        let segment = Vec::with_capacity(SEGMENT_BYTES);
        Ok(Builder {
            description,
            path: path.to_owned(),
            unfinished,
            file,
            segment,
            digests: Vec::new(),
            written: 0,
            finished: false,
        })
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.description.params
    }

    /// Takes the next bytes of the entries.
    ///
    /// # Errors
    ///
    /// When there are more than the entries have, or the file cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let whole = self.params().entries() * self.params().entry_size() as u64;
        if self.written + bytes.len() as u64 > whole {
            return Err(Error::format("entries", format!("there are more than {whole} bytes")));
        }
        self.put(bytes)
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(SEGMENT_BYTES - self.segment.len()));
            self.segment.extend_from_slice(now);
            self.written += now.len() as u64;
            if self.segment.len() == SEGMENT_BYTES {
                self.end_segment()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<()> {
        self.digests.extend_from_slice(&<[u8; 32]>::from(Sha256::digest(&self.segment)));
        self.file.write_all(&self.segment).map_err(Error::io(&self.unfinished))?;
        self.segment.clear();
        Ok(())
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    ///
    /// When entries are missing or the file cannot be written.
    pub fn finish(mut self) -> Result<Description> {
        let whole = self.params().entries() * self.params().entry_size() as u64;
        if self.written != whole {
            return Err(Error::format("entries", format!("{} bytes instead of {whole}", self.written)));
        }
        let zeros = vec![0; 1 << 16];
        while self.written < self.description.data_bytes() {
            let left = (self.description.data_bytes() - self.written).min(zeros.len() as u64);
            self.put(&zeros[..left as usize])?;
        }
        if !self.segment.is_empty() {
            self.end_segment()?;
        }
        self.description.identity = self.description.identity_of(&self.digests);
        let mut end = || {
            self.file.write_all(&self.digests)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&self.description.to_bytes())?;
            self.file.flush()?;
            self.file.get_ref().sync_all()
        };
        end().map_err(Error::io(&self.unfinished))?;
        std::fs::rename(&self.unfinished, &self.path).map_err(Error::io(&self.path))?;
        self.finished = true;
        Ok(self.description.clone())
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

/// An open database file.
pub struct Database {
    description: Description,
    path: PathBuf,
    file: File,
    map: Mmap,
}

impl Database {
    /// Opens a database; its entries are not read yet.
    ///
    /// # Errors
    ///
    /// When it is not one, is damaged or cut short.
    pub fn open(path: &Path) -> Result<Database> {
        let file = File::open(path).map_err(Error::io(path))?;
        // SAFETY: a mapped file must not change or shrink while it is mapped. Databases are written beside their place
        // and renamed, and never changed after; who cuts one short under a running server must expect it to end.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io(path))?;
        let name = path.display().to_string();
        let description = Description::read(&name, &map)?;
        let expected = HEAD_BYTES as u64 + description.data_bytes() + 32 * description.segments();
        if map.len() as u64 != expected {
            return Err(Error::format(name, format!("{} bytes instead of {expected}", map.len())));
        }
        let database = Database { description, path: path.to_owned(), file, map };
        if database.description.identity != database.description.identity_of(database.digests()) {
            return Err(Error::format(name, "the checksums are damaged"));
        }
        Ok(database)
    }

    /// What its head says.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All blocks, in full.
    pub fn bytes(&self) -> &[u8] {
        &self.map[HEAD_BYTES..][..self.description.data_bytes() as usize]
    }

    /// The segments' digests, 32 bytes each.
    pub fn digests(&self) -> &[u8] {
        &self.map[HEAD_BYTES + self.description.data_bytes() as usize..]
    }

    /// The blocks as a copy that can be written: the file stays as it is, and only changed pages take memory.
    ///
    /// # Errors
    ///
    /// When the system cannot map it.
    pub fn writable_copy(&self) -> Result<MmapMut> {
        let length = self.description.data_bytes() as usize;
        let mut options = MmapOptions::new();
        // Else the system may refuse to map a file that is larger than memory, in case all of its pages were changed.
        options.no_reserve_swap();
        // SAFETY: as for `open`.
        unsafe { options.offset(HEAD_BYTES as u64).len(length).map_copy(&self.file) }
            .map_err(Error::io(&self.path))
    }

    /// Reads everything and compares it with the checksums.
    ///
    /// # Errors
    ///
    /// When a segment is damaged; the message says which.
    pub fn verify(&self) -> Result<()> {
        for (i, (segment, digest)) in
            self.bytes().chunks(SEGMENT_BYTES).zip(self.digests().chunks(32)).enumerate()
        {
            if <[u8; 32]>::from(Sha256::digest(segment)) != *digest {
                return Err(Error::format(
                    self.path.display().to_string(),
                    format!("segment {i} of the entries is damaged"),
                ));
            }
        }
        Ok(())
    }
}
