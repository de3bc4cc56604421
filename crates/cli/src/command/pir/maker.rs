//! Who makes hints here: the processor.

use warpsmith::pir::hints::measure::{Figures, measure};
use warpsmith::pir::hints::{Hints, offline};
use warpsmith::pir::{Key, Lanes, Params, Result};
use warpsmith::{Devices, Runner};

use crate::ending::Failure;
use crate::running::DeviceFlags;

/// A device that makes hints.
pub(super) struct Maker {
    pub id: String,
    pub description: String,
    lanes: Lanes,
    threads: usize,
}

/// Hands over the entries of a database, piece by piece.
pub(super) type Entries<'a> = dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

impl Maker {
    pub fn open(flags: &DeviceFlags) -> std::result::Result<Maker, Failure> {
        let devices = flags.open()?;
        let maker = |devices: Devices| {
            devices.runners().into_iter().find_map(|(id, description, runner)| match runner {
                Runner::Processor { lanes, threads } => Some(Maker { id, description, lanes, threads }),
                Runner::Card(_) => None,
            })
        };
        maker(devices).ok_or_else(|| {
            Failure::Device("hints are made on the processor in this version; give --device cpu".to_owned())
        })
    }

    /// The whole offline phase.
    pub fn offline(&self, params: &Params, entries: &mut Entries<'_>) -> Result<(Key, Hints)> {
        offline(params, self.lanes, self.threads, |push| entries(push))
    }

    /// The time that takes, with a sample compared with the reference.
    pub fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
        measure(params, self.lanes, self.threads, samples)
    }
}
