//! Who takes part in a run: devices that can do it and have proved that they compute rightly.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, ScopedJoinHandle, scope};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::run::threads::STACK;
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
    /// None.
    Nobody,
}

/// What a device says, or why it takes no part.
type Said<T> = std::result::Result<T, Refusal>;

/// Asks every device, all of them side by side, since a card may take seconds to compile and to prove itself; those that refuse are
/// named to `warn`, with the reason.
pub(crate) fn ask_all<T: Send>(
    devices: &Devices,
    ask: impl Fn(usize, &dyn Backend) -> Said<T> + Sync,
    mut warn: impl FnMut(String) -> Result<()>,
) -> Result<Roster<T>> {
    let (mut ready, mut unable) = (Vec::new(), 0);
    for (device, answer) in devices.list.iter().zip(answers(devices, &ask)) {
        match answer {
            Ok(prepared) => ready.push(prepared),
            Err(Refusal::Unable(why)) => {
                unable += 1;
                warn(format!("{} is not used: {why}", device.id()))?;
            }
            Err(Refusal::Failed(error)) => warn(format!("{error}; it is not used"))?,
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
    Ok(Roster::Nobody)
}

/// What each device says, in their order. One that gets no thread is asked on this one.
fn answers<T: Send>(
    devices: &Devices,
    ask: &(impl Fn(usize, &dyn Backend) -> Said<T> + Sync),
) -> Vec<Said<T>> {
    let Some((last, others)) = devices.list.split_last() else { return Vec::new() };
    scope(|scope| {
        let asked: Vec<_> = others
            .iter()
            .enumerate()
            .map(|(at, device)| {
                let thread = Builder::new().stack_size(STACK);
                thread.spawn_scoped(scope, move || ask(at, device.as_ref())).map_err(|_| (at, device))
            })
            .collect();
        let last = ask(others.len(), last.as_ref());
        let answer = |asked| match asked {
            Ok(thread) => ScopedJoinHandle::join(thread).unwrap_or_else(|panic| resume_unwind(panic)),
            Err((at, device)) => ask(at, Arc::as_ref(device)),
        };
        asked.into_iter().map(answer).chain([last]).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Cpu;
    use crate::simd::Simd;
    use std::sync::Barrier;

    /// Each is asked once, none waits for another, and answers come in the order of devices.
    #[test]
    fn devices_are_asked_side_by_side() {
        let cpu = || Arc::new(Cpu::new(Simd::Portable, 1)) as Arc<dyn Backend>;
        let devices = Devices::of(vec![cpu(), cpu(), cpu()]);
        let together = Barrier::new(3);
        let ask = |at: usize, _: &dyn Backend| {
            // It would wait here for good if they were asked one after the other.
            together.wait();
            match at {
                1 => Err(Refusal::Unable("it will not".to_owned())),
                at => Ok(at),
            }
        };
        let mut warnings = Vec::new();
        let roster = ask_all(&devices, ask, |text| {
            warnings.push(text);
            Ok(())
        });
        assert!(matches!(roster, Ok(Roster::Ready(ready)) if ready == [0, 2]));
        assert_eq!(warnings, ["cpu:portable is not used: it will not"]);
        let roster = ask_all(&Devices::of(Vec::new()), |at, _| Ok(at), |_| Ok(()));
        assert!(matches!(roster, Ok(Roster::Nobody)));
    }
}
