//! Devices that make hints: those that were selected, and what makes hints on each.

use std::sync::Arc;

use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::Failure;
use warpsmith_console::signals;
use warpsmith_console::stderr::verbose;
use warpsmith_device::{Device, Refusal, choose};
use warpsmith_rms24::Lanes;
use warpsmith_rms24::device::{OnDevice, Tuning};
use warpsmith_rms24::hints::make::{Make, Processor};
use warpsmith_simd::Simd;

use crate::failures::OrFail as _;

/// A device that makes hints.
pub(crate) struct Maker {
    pub id: String,
    pub description: String,
    pub make: Arc<dyn Make>,
}

impl Maker {
    /// Opens the selected devices; without any, every GPU, or else the processor.
    pub fn open_all(flags: &DeviceFlags) -> Result<Vec<Maker>, Failure> {
        // Drivers may bring handlers of signals of their own.
        signals::hold()?;
        let threads = flags.thread_count().max(1);
        let host = Processor { lanes: Lanes::detect(), threads };
        let chosen = choose(flags.selectors(), &is_usable).or_fail()?;
        let mut makers: Vec<_> = chosen.cards.into_iter().map(|card| Maker::on_card(card, host)).collect();
        makers.extend(chosen.processor.map(|simd| Maker::on_processor(simd, threads)));
        for Maker { id, description, .. } in &makers {
            verbose(|| format!("device {id}: {description}"));
        }
        Ok(makers)
    }

    /// Opens the first of the selected devices: one client's hints are made by one device.
    pub fn open(flags: &DeviceFlags) -> Result<Maker, Failure> {
        let first = Maker::open_all(flags)?.into_iter().next();
        first.ok_or_else(|| Failure::Device("there is no device; --device cpu always works".to_owned()))
    }

    fn on_card(card: Arc<dyn Device>, host: Processor) -> Maker {
        let (id, description) = (card.info().id.clone(), describe(card.as_ref()));
        Maker { id, description, make: Arc::new(OnDevice::new(card, host, Tuning::default())) }
    }

    fn on_processor(simd: Simd, threads: usize) -> Maker {
        let make = Processor { lanes: Lanes::new(simd), threads };
        Maker { id: processor_id(simd), description: describe_processor(simd, threads), make: Arc::new(make) }
    }
}

/// Returns whether a device can make hints, or the reason why not.
pub(crate) fn is_usable(device: &dyn Device) -> Result<(), Refusal> {
    device.can_build().map_err(|error| Refusal(error.to_string()))
}

/// Describes a card in one line.
pub(crate) fn describe(device: &dyn Device) -> String {
    let info = device.info();
    let memory = info.memory as f64 / (1u64 << 30) as f64;
    format!("{} ({}, driver {}, {} units, {memory:.1} GiB)", info.name, info.arch, info.driver, info.units)
}

/// Returns the name that selects the processor with this instruction set: `cpu` for the best one.
pub(crate) fn processor_id(simd: Simd) -> String {
    let is_best = simd == Simd::first_available(&Simd::ALL);
    if is_best { "cpu".to_owned() } else { format!("cpu:{simd}") }
}

/// Describes the processor in one line.
pub(crate) fn describe_processor(simd: Simd, threads: usize) -> String {
    format!("{threads} thread{} ({simd})", if threads == 1 { "" } else { "s" })
}
