//! Who takes part in a run: devices that can do it and have proved that they compute rightly.

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::worker::{Backend, Fault};

/// Why a device takes no part.
pub(crate) enum Refusal {
    /// It cannot do it.
    Unable(Fault),
    /// It said it could, and failed its self-test.
    Failed(Error),
}

/// What came of the question.
pub(crate) enum Roster<T> {
    /// These take part, each as it was prepared.
    Ready(Vec<T>),
    /// No card can do it, and there is nothing but cards: the processor does it.
    Processor(Devices),
    /// None: the last failure, if there was one.
    Nobody(Option<Error>),
}

/// Asks every device; those that refuse are named to `warn`, with the reason.
pub(crate) fn ask_all<T>(
    devices: &Devices,
    mut ask: impl FnMut(usize, &dyn Backend) -> std::result::Result<T, Refusal>,
    mut warn: impl FnMut(String) -> Result<()>,
) -> Result<Roster<T>> {
    let (mut ready, mut failed, mut unable) = (Vec::new(), None, 0);
    for (at, device) in devices.list.iter().enumerate() {
        match ask(at, device.as_ref()) {
            Ok(prepared) => ready.push(prepared),
            Err(Refusal::Unable(why)) => {
                unable += 1;
                warn(format!("{} is not used: {why}", device.id()))?;
            }
            Err(Refusal::Failed(error)) => {
                warn(format!("{error}; it is not used"))?;
                failed = Some(error);
            }
        }
    }
    if !ready.is_empty() {
        return Ok(Roster::Ready(ready));
    }
    if unable > 0 && unable == devices.list.len() && devices.are_cards() {
        let (cpu, says) = devices.processor_instead()?;
        warn(says)?;
        return Ok(Roster::Processor(cpu));
    }
    Ok(Roster::Nobody(failed))
}
