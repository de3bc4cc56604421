//! The seam between those who need hints, a client or a hint maker, and what makes them: the processor, or a device.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use warpsmith_hash::Lanes;

use super::measure::{Figures, measure};
use super::parity::Parities;
use super::{Hints, Skeleton, making_bytes, unless_stopped};
use crate::error::Result;
use crate::memory;
use crate::params::Params;
use crate::prf::{Key, Prf};
use crate::version::Version;

/// Hands over all entries of a database in order, in pieces of any size, to the function it is given; an empty one now and then while it
/// waits for the next, so that the work can be stopped.
pub type Stream<'a> = dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

/// Bytes of entries in memory that go by between two looks at whether they are still wanted.
pub(crate) const PIECE: usize = 1 << 20;

/// Which hints are wanted, and until when.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The shape of the database and of the client's hints.
    pub params: &'a Params,
    /// The client's key.
    pub key: &'a Key,
    /// Ids of regular hints; both ends are multiples of sixteen.
    pub regular: Range<u64>,
    /// Ids of backup pairs; likewise.
    pub backups: Range<u64>,
    /// Raised when nobody wants them any more: the work then ends soon, with [`crate::Error::Stopped`].
    pub stop: &'a AtomicBool,
}

/// Something that makes hints. All of them give the same bytes.
pub trait Make: Send + Sync {
    /// The hints of some ids under a key. The stream is asked for once.
    ///
    /// # Errors
    ///
    /// When the stream fails or has the wrong length, the ids are not of whole groups, the device fails, or the work is
    /// stopped.
    fn hints(&self, order: &Order<'_>, stream: &mut Stream<'_>) -> Result<Hints>;

    /// The same for entries in the host's memory, of which one version is asked for again and again: a device may keep it.
    ///
    /// # Errors
    ///
    /// As for [`Make::hints`].
    fn hints_of(&self, order: &Order<'_>, _version: Version, entries: &[u8]) -> Result<Hints> {
        self.hints(order, &mut |push| entries.chunks(PIECE).try_for_each(push))
    }

    /// The most bytes of the host's memory that so many hints take while they are made, themselves among them. Nothing is
    /// allocated to know it.
    fn memory(&self, params: &Params, regular: u64, pairs: u64) -> u64;

    /// The whole offline phase: a fresh key, and all hints under it.
    ///
    /// # Errors
    ///
    /// As for [`Make::hints`], when the system gives no random bytes, and before anything else when this machine has less
    /// memory than it takes: the shape may be the word of a stranger.
    fn offline(&self, params: &Params, stop: &AtomicBool, stream: &mut Stream<'_>) -> Result<(Key, Hints)> {
        let (m, q) = (params.regular(), params.backups());
        params.check_memory(self.memory(params, m, q), memory::of_machine())?;
        let key = Key::random()?;
        let order = Order { params, key: &key, regular: 0..m, backups: m..m + q, stop };
        let hints = self.hints(&order, stream)?;
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
    fn hints(&self, order: &Order<'_>, stream: &mut Stream<'_>) -> Result<Hints> {
        let Order { params, key, regular, backups, stop } = order.clone();
        let prf = Prf::new(key, params, self.lanes);
        let skeleton = Skeleton::unless_stopped(&prf, params, regular, backups, self.threads, stop)?;
        let mut parities = Parities::new(&prf, params, skeleton, self.threads);
        stream(&mut |bytes| {
            unless_stopped(stop)?;
            parities.push(bytes)
        })?;
        parities.finish()
    }

    fn memory(&self, params: &Params, regular: u64, pairs: u64) -> u64 {
        making_bytes(params, regular, pairs, self.threads)
    }

    fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
        measure(params, self.lanes, self.threads, samples)
    }
}
