//! A map on disk, held by one process: read, checked against the job asked for, and replaced whole at each save.
//!
//! A map tells the bounds of a key that may be its owner's, and what it says is covered is never looked at again. So it is
//! closed to others like a key, and must be its user's own.

use std::io::{self, Read, Write};
use std::path::Path;

use warpsmith_files::{Locked, Sharing, read_secret};

use super::{Job, Map, text};
use crate::Error;
use crate::order::Order;

/// More than any map has: one of 16 million pieces.
const MOST_BYTES: u64 = 4 << 30;

/// A map and the sole right to its file.
#[derive(Debug)]
pub struct MapFile {
    map: Map,
    file: Locked,
    /// What is on disk now.
    saved: String,
}

impl MapFile {
    /// Opens the map of a job to go on with it, or begins one in the order given. A random order that is there stays, with its
    /// pieces and its seed. A map of another job is refused with the differences, and so is one whose keys are taken in random
    /// order where they are asked for in turn or the other way round, one that another process has open, one that is not the user's
    /// own, and one that others may read.
    pub fn open(path: &Path, job: Job, order: impl FnOnce(&Job) -> Order) -> Result<Self, Error> {
        let order = order(&job);
        let file = loop {
            match Locked::open(path, Sharing::Secret) {
                // At once, so that a folder that cannot be written to is known before any work.
                Err(error) if error.is_not_found() => {
                    match Self::create(path, Map::new(job.clone(), order)) {
                        // Another was faster, and has it now.
                        Err(Error::Exists { .. }) => continue,
                        created => return created,
                    }
                }
                other => break other?,
            }
        };
        let mut bytes = Vec::new();
        file.file().take(MOST_BYTES).read_to_end(&mut bytes).map_err(Error::io("read the map", path))?;
        let map = text::read(path, &bytes)?;
        let differences = map.job().differences(&job);
        if !differences.is_empty() {
            return Err(Error::OtherJob { path: path.to_owned(), differences });
        }
        let (has, asked) = (map.order().name(), order.name());
        if has != asked {
            return Err(Error::OtherOrder { path: path.to_owned(), has, asked });
        }
        let saved = text::write(&map);
        Ok(Self { map, file, saved })
    }

    /// Begins the file of a map made elsewhere, by [`Map::merge`] for one. Refused where something is there already.
    pub fn create(path: &Path, map: Map) -> Result<Self, Error> {
        let saved = text::write(&map);
        let file = Locked::create(path, Sharing::Secret, content(&saved))?;
        Ok(Self { map, file, saved })
    }

    /// Reads a map only to look at it. Needs no lock: what is there is always whole.
    pub fn read(path: &Path) -> Result<Map, Error> {
        text::read(path, &read_secret(path, MOST_BYTES)?)
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
        if self.saved != text {
            self.file.replace(content(&text))?;
            self.saved = text;
        }
        Ok(())
    }
}

fn content(text: &str) -> impl FnOnce(&mut io::BufWriter<std::fs::File>) -> io::Result<()> + '_ {
    |writer| writer.write_all(text.as_bytes())
}
