//! The seam between those who need hints, a client or a hint maker, and what makes them: the processor, or a device.

use std::ops::Range;
#[cfg(feature = "device")]
use std::sync::{Arc, Mutex, PoisonError};

use warpsmith_hash::Lanes;

use crate::client::Version;
#[cfg(feature = "device")]
use crate::device::{self, Host, Resident, Tuning};
#[cfg(feature = "device")]
use crate::error::Error;
use crate::error::Result;
use crate::hints::measure::{Figures, measure};
use crate::hints::parity::Parities;
use crate::hints::{Hints, Skeleton};
use crate::params::Params;
use crate::prf::{Key, Prf};

/// Hands over all entries of a database in order, in pieces of any size, to the function it is given.
pub type Stream<'a> = dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

/// Something that makes hints. All of them give the same bytes.
pub trait Make: Send + Sync {
    /// The hints of some ids under a key. The stream is asked for once.
    ///
    /// # Errors
    ///
    /// When the stream fails or has the wrong length, the ids are not of whole groups, or the device fails.
    fn hints(
        &self,
        params: &Params,
        key: &Key,
        regular: Range<u64>,
        backups: Range<u64>,
        stream: &mut Stream<'_>,
    ) -> Result<Hints>;

    /// The same for entries in the host's memory, of which one version is asked for again and again: a device may keep it.
    ///
    /// # Errors
    ///
    /// As for [`Make::hints`].
    fn hints_of(
        &self,
        params: &Params,
        key: &Key,
        regular: Range<u64>,
        backups: Range<u64>,
        _version: Version,
        entries: &[u8],
    ) -> Result<Hints> {
        self.hints(params, key, regular, backups, &mut |push| push(entries))
    }

    /// The whole offline phase: a fresh key, and all hints under it.
    ///
    /// # Errors
    ///
    /// As for [`Make::hints`], and when the system gives no random bytes.
    fn offline(&self, params: &Params, stream: &mut Stream<'_>) -> Result<(Key, Hints)> {
        let key = Key::random()?;
        let (m, q) = (params.regular(), params.backups());
        let hints = self.hints(params, &key, 0..m, m..m + q, stream)?;
        Ok((key, hints))
    }

    /// How fast it makes all hints of a client, with so many of them compared with the reference.
    ///
    /// # Errors
    ///
    /// When the device fails or makes something wrong.
    fn measure(&self, params: &Params, samples: usize) -> Result<Figures>;
}

/// The processor.
#[derive(Clone, Copy, Debug)]
pub struct Processor {
    /// The instruction set.
    pub lanes: Lanes,
    /// Threads.
    pub threads: usize,
}

impl Make for Processor {
    fn hints(
        &self,
        params: &Params,
        key: &Key,
        regular: Range<u64>,
        backups: Range<u64>,
        stream: &mut Stream<'_>,
    ) -> Result<Hints> {
        let prf = Prf::new(key, params, self.lanes);
        let skeleton = Skeleton::of_ids(&prf, params, regular, backups, self.threads)?;
        let mut parities = Parities::new(&prf, params, skeleton, self.threads);
        stream(&mut |bytes| parities.push(bytes))?;
        parities.finish()
    }

    fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
        measure(params, self.lanes, self.threads, samples)
    }
}

/// A device, beside which the processor does a part.
#[cfg(feature = "device")]
pub struct OnDevice {
    device: Arc<dyn warpsmith_device::Device>,
    host: Host,
    tuning: Tuning,
    /// The database that stays there, once many ask for hints of it. Its lock also keeps requests one behind the other.
    resident: Mutex<Option<Resident>>,
}

#[cfg(feature = "device")]
impl OnDevice {
    /// Hints by this device.
    pub fn new(device: Arc<dyn warpsmith_device::Device>, host: Processor, tuning: Tuning) -> OnDevice {
        let host = Host { lanes: host.lanes, threads: host.threads };
        OnDevice { device, host, tuning, resident: Mutex::new(None) }
    }
}

#[cfg(feature = "device")]
impl Make for OnDevice {
    fn hints(
        &self,
        params: &Params,
        key: &Key,
        regular: Range<u64>,
        backups: Range<u64>,
        stream: &mut Stream<'_>,
    ) -> Result<Hints> {
        let device = self.device.as_ref();
        device::hints(params, device, self.host, &self.tuning, key, regular, backups, |push| stream(push))
    }

    /// The database stays on the device where it fits, and goes through it with every request where it does not.
    fn hints_of(
        &self,
        params: &Params,
        key: &Key,
        regular: Range<u64>,
        backups: Range<u64>,
        version: Version,
        entries: &[u8],
    ) -> Result<Hints> {
        // What a thread left that panicked is not to be trusted, and is replaced below.
        let mut place = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = place.take().filter(|resident| resident.version() == version);
        let device = self.device.as_ref();
        let resident = match loaded {
            Some(resident) => Some(resident),
            None if Resident::fits(device, params) => {
                // No room after all, for whatever reason: then it goes through.
                Resident::load(params, device, &self.tuning, version, entries).ok()
            }
            None => None,
        };
        if let Some(mut resident) = resident {
            match resident.hints(params, self.host, key, regular.clone(), backups.clone(), entries) {
                Ok(hints) => {
                    *place = Some(resident);
                    return Ok(hints);
                }
                // Perhaps the hints have no room beside it; a device that is lost fails once more below.
                Err(Error::Device(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.hints(params, key, regular, backups, &mut |push| push(entries))
    }

    fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
        device::measure(params, self.device.as_ref(), self.host.lanes, self.host.threads, samples)
    }
}
