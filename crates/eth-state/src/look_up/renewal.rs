//! New hints, made beside those that are in use.

use std::sync::atomic::AtomicBool;

use warpsmith_rms24::hints::Hints;
use warpsmith_rms24::hints::make::{Make as _, Processor};
use warpsmith_rms24::remote::{Offer, Remote};
use warpsmith_rms24::{Choice, Key, Lanes, Params, Version};

use super::{Library, same_or_larger};
use crate::error::{Error, Result};

/// What is needed to make new hints for a [`Library`], on another thread while that one is read: see [`Library::renewal`].
pub struct Renewal {
    remote: Remote,
    database: [u8; 32],
    lambda: u32,
    queries: u64,
}

/// New hints of a [`Library`], for [`Library::adopt`].
pub struct NextHints {
    offer: Offer,
    params: Params,
    version: Version,
    key: Key,
    hints: Hints,
}

impl Renewal {
    /// Makes as many hints as there were, of the newest epoch: streams the database once. `watch` is told the share of the database that was
    /// read, and may end it with an error.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or has another database, or the hints cannot be made.
    pub fn make(
        self,
        threads: usize,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(f64) -> warpsmith_rms24::Result<()>,
    ) -> Result<NextHints> {
        let offer = self.remote.offer()?;
        let description = &offer.description;
        if description.lineage() != self.database && !description.predecessors.contains(&self.database) {
            return Err(Error::Query("the server has another database by now".to_owned()));
        }
        let choice =
            Choice { lambda: self.lambda, backups: Some(self.queries), ..description.params.choice() };
        let params = Params::new(choice)?;
        let maker = Processor { lanes: Lanes::detect(), threads };
        let whole = (params.entries() * params.entry_size() as u64) as f64;
        let (mut epoch, mut read) = (description.epoch, 0);
        let (key, hints) = maker.offline(&params, stop, &mut |push| {
            epoch = self.remote.newest_entries(description, &mut |part| {
                read += part.len();
                watch(read as f64 / whole)?;
                push(part)
            })?;
            Ok(())
        })?;
        let version = Version { database: description.lineage(), epoch };
        Ok(NextHints { offer, params, version, key, hints })
    }
}

impl Library {
    /// What new hints are made with beside those there are, so that nobody waits for them when these are used up.
    pub fn renewal(&self) -> Renewal {
        let params = self.client.params();
        let (lambda, queries) = (params.lambda(), params.backups());
        Renewal { remote: self.remote.clone(), database: self.client.version().database, lambda, queries }
    }

    /// Goes over to new hints. Queries that wait for an answer are sent again first, and given up where that brings none.
    ///
    /// # Errors
    ///
    /// When the hints are for another database, or the state cannot be written.
    pub fn adopt(&mut self, next: NextHints) -> Result<()> {
        let NextHints { offer, params, version, key, hints } = next;
        same_or_larger(&offer.description, &self.client)?;
        // What fails here is given up with the hints that it was asked with.
        let _ = self.resume();
        if self.client.waiting() > 0 {
            self.client.abandon()?;
        }
        self.client.renew(params, version, key, hints, Lanes::detect())?;
        // Its epoch may be older than that of the hints by now: who asks for the block must look around again.
        self.offer = offer;
        Ok(())
    }
}
