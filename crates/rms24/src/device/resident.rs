//! A database that stays on a device, for the hints of many clients: what a hint maker has.

use warpsmith_device::Device;

use super::card::{Card, Store, Tuning, Window, whole_bytes};
use super::check_length;
use super::hint_run::HintRun;
use crate::error::{Error, Result};
use crate::hints::Hints;
use crate::hints::Sample;
use crate::hints::make::{Order, Processor};
use crate::params::Params;
use crate::prf::Prf;
use crate::version::Version;

/// One version of a database, on a device.
pub struct Resident {
    card: Card,
    window: Window,
    version: Version,
}

impl Resident {
    /// Whether a device has room for a database beside hints, of which it holds some hundred megabytes.
    pub fn fits(device: &dyn Device, params: &Params) -> bool {
        let (info, bytes) = (device.info(), whole_bytes(params));
        bytes <= info.largest_buffer && bytes <= info.memory / 8 * 7
    }

    /// Brings a database to a device.
    ///
    /// # Errors
    ///
    /// When the entries are not those of the parameters, or the device fails or has no room.
    pub fn load(
        params: &Params,
        device: &dyn Device,
        tuning: &Tuning,
        version: Version,
        entries: &[u8],
    ) -> Result<Resident> {
        check_length(params, entries.len() as u64)?;
        let mut card = Card::open(device, params, tuning)?;
        let mut store = Store::for_all(&mut card, params)?;
        let mut rest = entries;
        while !rest.is_empty() {
            rest = store.push(&mut card, rest)?;
            store.full(&mut card)?;
        }
        let window = store.all(&mut card)?;
        card.queue.finish()?;
        Ok(Resident { card, window, version })
    }

    /// Which version of which database it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The hints of some ids under a key. The entries are those it was loaded with: a sample of hints is recomputed from
    /// them.
    ///
    /// # Errors
    ///
    /// As for [`super::hints()`]. After an error this is of no use any more, unless it was [`Error::Stopped`].
    pub fn hints(&mut self, host: Processor, order: &Order<'_>, entries: &[u8]) -> Result<Hints> {
        let params = order.params;
        check_length(params, entries.len() as u64)?;
        let prf = Prf::new(order.key, params, host.lanes);
        let card = &mut self.card;
        let mut making = HintRun::begin(card, &prf, host, order)?;
        match making.absorb(card, &self.window) {
            Err(Error::Stopped) => {
                making.abandon(card)?;
                return Err(Error::Stopped);
            }
            other => other?,
        }
        let hints = making.finish(card)?;
        let mut sample = Sample::new(&prf, params, &hints.skeleton, 1)?;
        sample.take(|at, entry| entry.copy_from_slice(&entries[at as usize..][..entry.len()]));
        sample.check(card.id(), &hints)?;
        Ok(hints)
    }
}
