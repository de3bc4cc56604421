//! A larger table in the place of one that is full: the same keys and values, at other places.
//!
//! The places of a key follow from the table's size and seed, so hints of the old table are of no use in the new one: it is a lineage
//! of its own, which names the old one as its predecessor (and those before it), and its epochs go on where those ended. No epoch is of both, so a client of
//! the one never gets an answer from the other.
//!
//! Nobody appends while it is built, and the old file is served on. Then the new file takes its place, and the list of updates is
//! begun anew; after a crash between the two, a list of the predecessor beside it counts as none.

use super::Live;
use super::entries::Newest;
use super::fold::hold;
use super::log::Log;
use crate::error::{Error, Result};
use crate::keyword::{Layout, Name, is_at_home, tag_of};
use crate::params::{Choice, Params};
use crate::table::{Plan, TakeEntry, build_entries};

impl Live {
    /// Moves all keys to a table with room for so many more, and goes over to it. `name_of` knows the names of records
    /// ([`Layout::Records`]), which do not carry them. `watch` is told the share of the work that is done, and may end
    /// it with an error.
    ///
    /// # Errors
    ///
    /// When it is no table, somebody else folds it, a record's name is not known, or a file cannot be read or written. Then the
    /// database is as it was.
    pub fn grow(
        &self,
        room: u64,
        name_of: &dyn Fn(&[u8]) -> Option<Name>,
        watch: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        let alone = hold(&self.path)?;
        let frozen = self.log.lock().expect("no update failed half-way").freeze()?;
        self.refresh()?;
        let (description, epoch, _) = self.offer();
        let Some(shape) = &description.keyword else {
            return Err(Error::Mismatch("entries that are read by their index have no table to grow".into()));
        };
        // All of them: who slept through several moves finds itself among them.
        let mut predecessors = vec![description.lineage()];
        predecessors.extend(&description.predecessors);
        let size = description.params.entry_size();
        let name = |place: u64, entry: &[u8]| {
            let name = match shape.layout {
                Layout::Records => name_of(entry).filter(|name| shape.places_of_name(name).contains(&place)),
                _ => tag_of(entry).copied().filter(|_| is_at_home(shape, place, entry)),
            };
            name.ok_or_else(|| {
                let reason = "nobody knows whose it is, so it cannot move: the list of names (.names) lacks it; build the \
                              database anew, with more room";
                Error::format(format!("entry {place}"), reason)
            })
        };
        let built = self.with_entries(|_, newest| {
            // Whose the entries are is known of all of them before anything is written.
            let mut keys = 0;
            each_entry(newest, size, &mut |place, entry| {
                keys += 1;
                name(place, entry).map(drop)
            })?;
            let plan = Plan {
                layout: shape.layout,
                places: shape.places,
                keys,
                room,
                entry_size: size as u32,
                block_size: chosen_block_size(&description.params),
                epoch: epoch + 1,
            };
            let mut source = |take: &mut TakeEntry<'_>| {
                each_entry(newest, size, &mut |place, entry| take(&name(place, entry)?, entry))
            };
            build_entries(&self.path, &plan, &predecessors, &mut source, watch)
        })?;
        Log::new(&self.path, &built).begin_anew()?;
        drop((frozen, alone));
        self.refresh().map(drop)
    }
}

/// The size of blocks, where it is not the usual one of so many entries.
fn chosen_block_size(params: &Params) -> Option<u32> {
    let usual = Params::new(Choice { block_size: None, ..params.choice() });
    Some(params.block_size()).filter(|size| usual.map_or(true, |usual| usual.block_size() != *size))
}

/// All entries that are not empty, each with its place.
fn each_entry(
    newest: &Newest<'_>,
    size: usize,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let (mut rest, mut place) = (Vec::new(), 0);
    newest.stream(&mut |part| {
        rest.extend_from_slice(part);
        let whole = rest.len() / size * size;
        for entry in rest[..whole].chunks_exact(size) {
            if entry.iter().any(|byte| *byte != 0) {
                take(place, entry)?;
            }
            place += 1;
        }
        rest.drain(..whole);
        Ok(())
    })
}
