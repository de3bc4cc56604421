//! The database of contracts' codes beside that of a state: by hash, in chunks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpsmith_rms24::database::Description;
use warpsmith_rms24::keyword::{Layout, TAG_BYTES, chunk_key, chunks_of};
use warpsmith_rms24::table::{self, Plan, Take};
use warpsmith_rms24::updates::{Live, entries_of_changes, standing};
use warpsmith_rms24::{Lanes, Result};

use crate::code::{CODE_CHUNKS, CODE_ENTRY};
use crate::error;

/// Codes by their hashes.
pub type CodesByHash = BTreeMap<[u8; 32], Vec<u8>>;

/// What a database of codes has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeTable {
    /// Chunks of codes that may be added later.
    pub room: u64,
    /// Bytes of the longest code there may ever be; every look-up asks for as many chunks as that
    /// has.
    pub longest: u32,
}

impl CodeTable {
    /// Room for a thousand more chunks, and codes as long as EIP-170 allows.
    pub const USUAL: CodeTable = CodeTable { room: 1000, longest: 24_576 };

    /// Returns what a database of so many chunks is built by, the longest code there is of so many
    /// bytes.
    pub fn plan(&self, chunks: u64, longest: usize, block_size: Option<u32>, epoch: u64) -> Plan {
        let most = chunks_of(longest.max(self.longest as usize), CODE_ENTRY as usize);
        // 2^24 bytes and the longest line that is read have fewer chunks than a table may have.
        let layout = Layout::Chunked(u16::try_from(most).unwrap_or(u16::MAX));
        Plan { room: self.room, block_size, epoch, ..Plan::new(layout, chunks, CODE_ENTRY) }
    }

    /// Builds a database of these.
    ///
    /// # Errors
    ///
    /// As for [`table::build`].
    pub fn build(
        &self,
        path: &Path,
        codes: &CodesByHash,
        watch: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<Description> {
        let chunks = chunks_of_all(codes) as u64;
        let longest = codes.values().map(Vec::len).max().unwrap_or_default();
        let mut source =
            |take: &mut Take<'_>| codes.iter().try_for_each(|(hash, code)| take(&hash[..], code));
        table::build(path, &self.plan(chunks, longest, None, 0), &mut source, watch)
    }
}

const _: () = assert!(
    CodeTable::USUAL.longest as usize / (CODE_ENTRY as usize - TAG_BYTES) + 1 == CODE_CHUNKS as usize
);

/// A database of codes that grows with its chain.
pub struct Codes {
    path: PathBuf,
    live: Live,
}

impl Codes {
    /// Opens a database of codes.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or is another database
    /// ([`Error::NotCodes`](crate::Error::NotCodes)).
    pub fn open(path: &Path, lanes: Lanes) -> error::Result<Codes> {
        let live = Live::open(path, lanes, 0)?;
        match &live.base().description().keyword {
            Some(shape) if matches!(shape.layout, Layout::Chunked(_)) => {
                Ok(Codes { path: path.to_owned(), live })
            }
            _ => Err(error::Error::NotCodes),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Adds those that are not there yet, as one epoch, and returns how many that were. What a code
    /// is does not change, so that nothing is ever taken out: also what a block brought that the
    /// chain took back is some code.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written. [`Error::Full`](warpsmith_rms24::Error::Full) when the
    /// table must grow first.
    pub fn add(&self, codes: &CodesByHash) -> Result<usize> {
        let base = self.live.base();
        let shape = base.description().keyword.as_ref().expect("it was one when it was opened");
        let mut new = Vec::new();
        for (hash, code) in codes {
            if standing(&self.live, shape, &chunk_key(hash, 0))?.is_none() {
                new.push((hash.to_vec(), Some(code.clone())));
            }
        }
        if !new.is_empty() {
            let values = entries_of_changes(&self.live, shape, &new)?;
            self.live.update(self.live.difference(&values)?)?;
        }
        Ok(new.len())
    }
}

/// Returns the chunks that these take.
pub fn chunks_of_all(codes: &CodesByHash) -> usize {
    codes.values().map(|code| chunks_of(code.len(), CODE_ENTRY as usize)).sum()
}
