//! Tables of Ethereum's state.

use std::path::{Path, PathBuf};

use warpsmith_rms24::Result;
use warpsmith_rms24::database::Description;
use warpsmith_rms24::table::{self, Plan, Take};

use super::folder::Folder;
use crate::head::ChainHead;
use crate::layout::STATE;
use crate::names::Names;
use crate::record::RECORD;

/// Names that are added to the list at once.
const NAMES_AT_ONCE: usize = 1 << 16;

/// Returns what a state of so many records is built by.
pub fn plan(keys: u64, block_size: Option<u32>, epoch: u64) -> Plan {
    Plan { block_size, epoch, ..Plan::new(STATE, keys, RECORD as u32) }
}

/// A table of a state that is to be built.
#[derive(Clone, Debug)]
pub struct StateTable {
    /// Where it is written.
    pub database: PathBuf,
    /// Entries a block; without it the usual choice.
    pub block_size: Option<u32>,
    /// The epoch.
    pub epoch: u64,
    /// Keys that may be added later: there is room for so many more.
    pub room: u64,
    /// Whether the list of its names is written ([`Names`]), so that records can move.
    pub names: bool,
    /// The block that the state is of, where it is known.
    pub head: Option<ChainHead>,
}

impl StateTable {
    /// Builds it of so many records, which `each` hands over with their keys as often as it is
    /// called. `watch` is told the share of the work that is done, and may end it with an error.
    ///
    /// # Errors
    ///
    /// As for [`table::build`], and when the list of names cannot be written.
    pub fn build(
        &self,
        keys: u64,
        each: &dyn Fn(&mut Take<'_>) -> Result<()>,
        watch: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<Description> {
        let head: Vec<_> = self.head.iter().flat_map(ChainHead::records).collect();
        let plan = plan(keys + head.len() as u64, self.block_size, self.epoch);
        let plan = Plan { room: self.room, ..plan };
        let mut source = |take: &mut Take<'_>| {
            head.iter().try_for_each(|(key, record)| take(key, record))?;
            each(take)
        };
        let built = table::build(&self.database, &plan, &mut source, watch)?;
        if self.names {
            let mut names = Names::create(&self.database, &built.identity)?;
            let mut keys: Vec<Vec<u8>> = Vec::new();
            source(&mut |key, _| {
                keys.push(key.to_vec());
                if keys.len() == NAMES_AT_ONCE {
                    names.add(keys.iter().map(Vec::as_slice))?;
                    keys.clear();
                }
                Ok(())
            })?;
            names.add(keys.iter().map(Vec::as_slice))?;
        }
        Ok(built)
    }
}

/// Builds a database of a [`Folder`].
///
/// # Errors
///
/// When a file is missing or malformed, or the database cannot be written.
pub fn build(folder: &Path, to: &Path, epoch: u64) -> Result<Description> {
    let folder = Folder::open(folder)?;
    table::build(to, &plan(folder.keys(), None, epoch), &mut |take| folder.each(take), &mut |_| Ok(()))
}
