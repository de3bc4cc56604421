//! A map on disk, held by one process: read, checked against the job asked for, and replaced whole at each save.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::{Job, Map, text};
use crate::Error;
use crate::durable::{Lock, replace_with};
use crate::order::Order;

/// More than any map has: one of 16 million pieces.
const MOST_BYTES: u64 = 4 << 30;

/// A map and the sole right to its file.
#[derive(Debug)]
pub struct MapFile {
    map: Map,
    path: PathBuf,
    /// What is on disk now; `None` before the first save.
    saved: Option<String>,
    _lock: Lock,
}

impl MapFile {
    /// Opens the map of a job to go on with it, or begins one in the order given. The order of a map that is there stays.
    /// A map of another job is refused with the differences, and so is one that another process has open.
    pub fn open(path: &Path, job: Job, order: impl FnOnce(&Job) -> Order) -> Result<Self, Error> {
        let lock = Lock::take(path)?;
        let map = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let order = order(&job);
                let mut new =
                    Self { map: Map::new(job, order), path: path.to_owned(), saved: None, _lock: lock };
                // At once, so that a folder that cannot be written to is known before any work.
                new.save()?;
                return Ok(new);
            }
            _ => Self::read(path)?,
        };
        let differences = map.job().differences(&job);
        if !differences.is_empty() {
            return Err(Error::OtherJob { path: path.to_owned(), differences });
        }
        let saved = Some(text::write(&map));
        Ok(Self { map, path: path.to_owned(), saved, _lock: lock })
    }

    /// Begins the file of a map made elsewhere, by [`Map::merge`] for one. Refused where something is there already.
    pub fn create(path: &Path, map: Map) -> Result<Self, Error> {
        let lock = Lock::take(path)?;
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        let mut new = Self { map, path: path.to_owned(), saved: None, _lock: lock };
        new.save()?;
        Ok(new)
    }

    /// Reads a map only to look at it. Needs no lock: what is there is always whole.
    pub fn read(path: &Path) -> Result<Map, Error> {
        let read = || {
            let mut bytes = Vec::new();
            fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        text::read(path, &read().map_err(Error::io("read the map", path))?)
    }

    /// The map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The map, to complete batches of.
    pub fn map_mut(&mut self) -> &mut Map {
        &mut self.map
    }

    /// Writes the map to disk, if it changed. What is on disk is the old map or the new one at any moment; on failure the
    /// old one, and saving may be tried again.
    pub fn save(&mut self) -> Result<(), Error> {
        let text = text::write(&self.map);
        if self.saved.as_ref() != Some(&text) {
            replace_with(&self.path, text.as_bytes())?;
            self.saved = Some(text);
        }
        Ok(())
    }
}
