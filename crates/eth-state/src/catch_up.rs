//! Hints that are older than the database: brought forward by its changes, or made anew where that
//! is cheaper.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::look_up::{CaughtUp, Library, Weighed};

/// Whether hints may be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewHints {
    /// Where that takes less time than the changes, or these are gone.
    Allowed,
    /// Never: hints catch up by changes, however many there are, and it is an error where the
    /// server has not all of them.
    Never,
}

/// Epochs that are not worth a word.
const FEW_EPOCHS: u64 = 16;

/// How hints came to the newest epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct CatchUp {
    /// Whether they were made anew.
    pub is_new: bool,
    /// The epoch they were of.
    pub from_epoch: u64,
    /// The epoch they are of.
    pub epoch: u64,
    /// What either way takes, where that was weighed.
    pub weighed: Option<Weighed>,
}

impl CatchUp {
    /// Whether it is worth a word where epochs come all the time.
    pub fn is_news(&self) -> bool {
        self.is_new || self.epoch - self.from_epoch > FEW_EPOCHS
    }
}

/// How far hints could be brought as they are.
#[derive(Clone, Debug, PartialEq)]
pub enum Forward {
    /// They are of the newest epoch already.
    Newest,
    /// To the newest epoch.
    Brought(CatchUp),
    /// New ones are to be made.
    Needed(NewHintsNeeded),
}

/// Why new hints are to be made.
#[derive(Clone, Debug, PartialEq)]
pub enum NewHintsNeeded {
    /// The server has not all of the changes any more: what it says.
    Gone(String),
    /// They take less time than the changes.
    Cheaper(Weighed),
}

impl fmt::Display for NewHintsNeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NewHintsNeeded::Gone(reason) => f.write_str(reason),
            NewHintsNeeded::Cheaper(weighed) => {
                write!(f, "{} changes are left, which take longer than new hints", weighed.changes)
            }
        }
    }
}

impl Library {
    /// Brings the hints to the newest epoch that the server told of by its changes, unless new
    /// hints are needed.
    ///
    /// # Errors
    ///
    /// As for [`Library::catch_up`], and when new hints are needed and may not be made.
    pub fn bring_forward(&mut self, new_hints: NewHints) -> Result<Forward> {
        let from_epoch = self.client().version().epoch;
        let weighed = match (self.catch_up_if_cheaper()?, new_hints) {
            (None, _) => return Ok(Forward::Newest),
            (Some(CaughtUp::ByUpdates(weighed)), _) => weighed,
            (Some(CaughtUp::HintsAreCheaper(weighed)), NewHints::Never) => {
                self.catch_up()?;
                weighed
            }
            (Some(CaughtUp::Gone(reason)), NewHints::Never) => return Err(Error::Query(reason)),
            (Some(CaughtUp::HintsAreCheaper(weighed)), NewHints::Allowed) => {
                return Ok(Forward::Needed(NewHintsNeeded::Cheaper(weighed)));
            }
            (Some(CaughtUp::Gone(reason)), NewHints::Allowed) => {
                return Ok(Forward::Needed(NewHintsNeeded::Gone(reason)));
            }
        };
        let (epoch, weighed) = (self.client().version().epoch, Some(weighed));
        Ok(Forward::Brought(CatchUp { is_new: false, from_epoch, epoch, weighed }))
    }

    /// Makes the new hints that are needed, and waits until they are there. `watch` is told the
    /// share of the database that was read; raising `stop` ends it, and leaves the hints as they
    /// were.
    ///
    /// # Errors
    ///
    /// As for [`Library::renew`].
    pub fn renew_as_needed(
        &mut self,
        needed: NewHintsNeeded,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(f64),
    ) -> Result<CatchUp> {
        let from_epoch = self.client().version().epoch;
        self.renew(stop, &mut |share| {
            watch(share);
            if stop.load(Ordering::Relaxed) { Err(warpsmith_rms24::Error::Stopped) } else { Ok(()) }
        })?;
        let weighed = match needed {
            NewHintsNeeded::Gone(_) => None,
            NewHintsNeeded::Cheaper(weighed) => Some(weighed),
        };
        Ok(CatchUp { is_new: true, from_epoch, epoch: self.client().version().epoch, weighed })
    }
}
