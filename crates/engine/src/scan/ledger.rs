//! A map of what a scan covered, and where it is kept.

use warpsmith_store::{Map, MapFile};

use crate::error::Result;

/// A map and where it is kept.
///
/// See [`scan`](crate::scan()).
pub trait Ledger {
    /// The map.
    fn map(&self) -> &Map;
    /// The map, to note what was done.
    fn map_mut(&mut self) -> &mut Map;
    /// Makes durable what was noted.
    fn save(&mut self) -> Result<()>;
}

impl Ledger for MapFile {
    fn map(&self) -> &Map {
        MapFile::map(self)
    }
    fn map_mut(&mut self) -> &mut Map {
        MapFile::map_mut(self)
    }
    fn save(&mut self) -> Result<()> {
        Ok(MapFile::save(self)?)
    }
}

/// A map that is forgotten at the end.
///
/// See [`scan`](crate::scan()).
pub struct Unkept(pub Map);

impl Ledger for Unkept {
    fn map(&self) -> &Map {
        &self.0
    }
    fn map_mut(&mut self) -> &mut Map {
        &mut self.0
    }
    fn save(&mut self) -> Result<()> {
        Ok(())
    }
}
