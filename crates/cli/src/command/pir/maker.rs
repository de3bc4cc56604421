//! Who makes hints: a card or the processor here, or a hint maker elsewhere.

use std::sync::Arc;

use warpsmith::devices::Runner;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::Failure;
use warpsmith_pir::device::{OnDevice, Tuning};
use warpsmith_pir::hints::make::{Make, Processor};

use super::lanes;
use crate::running::OpenDevices as _;

/// A device that makes hints.
pub(super) struct Maker {
    pub id: String,
    pub description: String,
    pub make: Arc<dyn Make>,
}

/// What makes hints on a device; `host` is what stands beside a card.
fn maker_of(runner: Runner, host: Processor) -> Arc<dyn Make> {
    match runner {
        Runner::Processor { lanes, threads } => Arc::new(Processor { lanes, threads }),
        Runner::Card(device) => Arc::new(OnDevice::new(device, host, Tuning::default())),
    }
}

impl Maker {
    /// The devices a person asked for; without a wish the cards, else the processor.
    pub fn open_all(flags: &DeviceFlags) -> Result<Vec<Maker>, Failure> {
        let host = Processor { lanes: lanes(), threads: flags.thread_count() };
        let maker = |(id, description, runner)| Maker { id, description, make: maker_of(runner, host) };
        Ok(flags.open()?.runners().into_iter().map(maker).collect())
    }

    /// The first of them: one client's hints are made by one device.
    pub fn open(flags: &DeviceFlags) -> Result<Maker, Failure> {
        let mut makers = Maker::open_all(flags)?.into_iter();
        makers
            .next()
            .ok_or_else(|| Failure::Device("there is no device; --device cpu always works".to_owned()))
    }
}
