//! The seam between those who need hints, a client or a hint maker, and what makes them: the processor, or a device.

use std::ops::Range;
#[cfg(feature = "device")]
use std::sync::Arc;

use warpsmith_hash::Lanes;

#[cfg(feature = "device")]
use crate::device::{self, Host, Tuning};
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
    /// The device.
    pub device: Arc<dyn warpsmith_device::Device>,
    /// The processor's part.
    pub host: Processor,
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
        let host = Host { lanes: self.host.lanes, threads: self.host.threads };
        let (device, tuning) = (self.device.as_ref(), Tuning::default());
        device::hints(params, device, host, &tuning, key, regular, backups, |push| stream(push))
    }

    fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
        device::measure(params, self.device.as_ref(), self.host.lanes, self.host.threads, samples)
    }
}
