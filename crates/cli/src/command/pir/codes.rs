//! The database of contracts' codes beside that of a state: by hash, in chunks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use warpsmith::pir::Result;
use warpsmith::pir::database::Description;
use warpsmith::pir::ethereum::{CODE_CHUNKS, CODE_ENTRY};
use warpsmith::pir::keyword::{self, Layout, Plan, Take, chunk_key, chunks_of, entries_of_changes, standing};
use warpsmith::pir::updates::Live;
use warpsmith_console::exit::Failure;
use warpsmith_console::human::whole;

use super::lanes;
use crate::failures::OrFail as _;

/// Codes by their hashes.
pub(super) type ByHash = BTreeMap<[u8; 32], Vec<u8>>;

/// What a database of codes has room for.
#[derive(Args)]
pub(super) struct CodeFlags {
    /// Codes: leave room for so many more chunks of 4 KB; most codes have one to three
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..), default_value_t = 1000)]
    codes_room: u64,

    /// Codes: the longest there may ever be; every look-up asks for as many chunks as that has
    #[arg(long, value_name = "BYTES", default_value_t = 24_576, value_parser = whole::<u32>(1..=1 << 24))]
    code_size: u32,
}

impl CodeFlags {
    /// What a database of so many chunks is built by, the longest code of so many bytes.
    pub fn plan(&self, chunks: u64, longest: usize, block_size: Option<u32>, epoch: u64) -> Plan {
        let most = chunks_of(longest.max(self.code_size as usize), CODE_ENTRY as usize);
        // 2^24 bytes and the longest line that is read have fewer chunks than a table may have.
        let layout = Layout::Chunked(u16::try_from(most).unwrap_or(u16::MAX));
        Plan { room: self.codes_room, block_size, epoch, ..Plan::new(layout, chunks, CODE_ENTRY) }
    }

    /// Builds a database of these.
    pub fn build(
        &self,
        path: &Path,
        codes: &ByHash,
        watch: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<Description> {
        let chunks = chunks_of_all(codes) as u64;
        let longest = codes.values().map(Vec::len).max().unwrap_or_default();
        let mut source =
            |take: &mut Take<'_>| codes.iter().try_for_each(|(hash, code)| take(&hash[..], code));
        keyword::build(path, &self.plan(chunks, longest, None, 0), &mut source, watch)
    }
}

// EIP-170's longest is what the flag says if nothing else is said.
const _: () = assert!(24_576 / (CODE_ENTRY as usize - keyword::TAG_BYTES) + 1 == CODE_CHUNKS as usize);

/// A database of codes that grows with its chain.
pub(super) struct Codes {
    pub path: PathBuf,
    pub live: Live,
}

impl Codes {
    pub fn open(path: &Path) -> std::result::Result<Codes, Failure> {
        let live = Live::open(path, lanes(), 0).or_fail()?;
        match &live.base().description().keyword {
            Some(shape) if matches!(shape.layout, Layout::Chunked(_)) => {
                Ok(Codes { path: path.to_owned(), live })
            }
            _ => Err(Failure::Usage(format!(
                "--codes {} is no database of codes; `warpsmith pir build DBFILE --rpc URL --codes FILE` makes one",
                path.display()
            ))),
        }
    }

    /// Adds those that are not there yet, as one epoch. What a code is does not change, so that nothing is ever taken out: also what a
    /// block brought that the chain took back is some code. Fails as full where the table must grow first.
    pub fn add(&self, codes: &ByHash) -> Result<usize> {
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

/// Chunks that these take.
pub(super) fn chunks_of_all(codes: &ByHash) -> usize {
    codes.values().map(|code| chunks_of(code.len(), CODE_ENTRY as usize)).sum()
}
