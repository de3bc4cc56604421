//! Growth of a table that is full.

use warpsmith_rms24::Result;
use warpsmith_rms24::updates::Live;

use crate::names::Names;

/// Moves all keys of a database to a table with half as much room again, and enough for so many new
/// entries. `watch` is told the share of the work that is done, and may end it with an error.
///
/// # Errors
///
/// As for [`Live::grow`].
pub fn grow(
    live: &Live,
    names: &mut Option<Names>,
    new: usize,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<()> {
    let keys = live.base().description().keyword.as_ref().map_or(0, |shape| shape.keys);
    let room = keys / 2 + 2 * new as u64 + 64;
    live.grow(room, &|record| names.as_ref().and_then(|names| names.of(record)), watch)?;
    match names {
        Some(names) => names.move_to(&live.base().description().lineage()),
        None => Ok(()),
    }
}
