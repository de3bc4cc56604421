//! A device as one of those who make hints.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Resident, Tuning};
use crate::error::{Error, Result};
use crate::hints::make::{Make, Order, PIECE, Processor, Stream};
use crate::hints::measure::Figures;
use crate::hints::{Hints, unless_stopped};
use crate::params::Params;
use crate::version::Version;

/// A device, beside which the processor does a part.
pub struct OnDevice {
    device: Arc<dyn warpsmith_device::Device>,
    host: Processor,
    tuning: Tuning,
    /// The database that stays there, once many ask for hints of it. Its lock also keeps requests one behind the other.
    resident: Mutex<Option<Resident>>,
}

impl OnDevice {
    /// Hints by this device.
    pub fn new(device: Arc<dyn warpsmith_device::Device>, host: Processor, tuning: Tuning) -> OnDevice {
        OnDevice { device, host, tuning, resident: Mutex::new(None) }
    }
}

impl Make for OnDevice {
    fn hints(&self, order: &Order<'_>, stream: &mut Stream<'_>) -> Result<Hints> {
        super::hints(self.device.as_ref(), self.host, &self.tuning, order, |push| stream(push))
    }

    /// The database stays on the device where it fits, and goes through it with every request where it does not.
    fn hints_of(&self, order: &Order<'_>, version: Version, entries: &[u8]) -> Result<Hints> {
        // What a thread left that panicked is not to be trusted, and is replaced below.
        let mut place = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been long until the others were done.
        unless_stopped(order.stop)?;
        let loaded = place.take().filter(|resident| resident.version() == version);
        let (device, params) = (self.device.as_ref(), order.params);
        let resident = match loaded {
            Some(resident) => Some(resident),
            None if Resident::fits(device, params) => {
                // No room after all, for whatever reason: then it goes through.
                Resident::load(params, device, &self.tuning, version, entries).ok()
            }
            None => None,
        };
        if let Some(mut resident) = resident {
            match resident.hints(self.host, order, entries) {
                // Who leaves does not make the others wait for it to be loaded once more.
                done @ (Ok(_) | Err(Error::Stopped)) => {
                    *place = Some(resident);
                    return done;
                }
                // Perhaps the hints have no room beside it; a device that is lost fails once more below.
                Err(Error::Device(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.hints(order, &mut |push| entries.chunks(PIECE).try_for_each(push))
    }

    fn memory(&self, params: &Params, regular: u64, pairs: u64) -> u64 {
        super::memory(params, self.device.as_ref(), &self.tuning, regular, pairs)
    }

    fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
        super::measure(params, self.device.as_ref(), self.host.lanes, self.host.threads, samples)
    }
}
