//! Choosing devices by selectors, or by default every GPU and else the processor.

use std::sync::Arc;

use warpsmith_simd::Simd;

use crate::under_way::{Busy, Preparing};
use crate::{Api, Device, Error, Refusal, Result, Selector, Survey, survey};

/// Devices chosen for a run.
pub struct Chosen {
    /// Devices of CUDA and OpenCL, in the order of [`survey`].
    pub cards: Vec<Arc<dyn Device>>,
    /// The processor's instruction set; none if the processor takes no part.
    pub processor: Option<Simd>,
}

/// Whether a program can use a device, or the reason why not.
pub type IsUsable<'a> = &'a dyn Fn(&dyn Device) -> std::result::Result<(), Refusal>;

/// Chooses the selected devices; without selectors every GPU, or else the processor. A device that was named and is not there is an
/// error, never replaced by another.
///
/// ```
/// use warpsmith_device::choose;
///
/// let chosen = choose(&["cpu".parse().unwrap()], &|_| Ok(()))?;
/// assert!(chosen.cards.is_empty() && chosen.processor.is_some());
/// # Ok::<(), warpsmith_device::Error>(())
/// ```
pub fn choose(selectors: &[Selector], is_usable: IsUsable<'_>) -> Result<Chosen> {
    let best = || Simd::first_available(&Selector::INSTRUCTION_SETS);
    let mut processor = None;
    let wants_card = |selector: &Selector| !matches!(selector, Selector::Cpu(_));
    let found = if selectors.is_empty() || selectors.iter().any(wants_card) {
        let _busy = Busy::with(Preparing::Finding, None);
        survey()
    } else {
        Survey { devices: Vec::new(), missing: Vec::new() }
    };
    let mut chosen = vec![false; found.devices.len()];
    for selector in selectors {
        let (api, number) = match *selector {
            Selector::All => {
                processor = processor.or(Some(best()));
                for (default, chosen) in defaults(&found.devices, is_usable).into_iter().zip(&mut chosen) {
                    *chosen |= default;
                }
                continue;
            }
            Selector::Cpu(wanted) => {
                let wanted = wanted.unwrap_or_else(best);
                if !wanted.is_available() {
                    let why = format!("{selector} was asked for, but this processor has no {wanted}");
                    return Err(Error::NoDevice(why));
                }
                processor = Some(wanted);
                continue;
            }
            Selector::Gpu(api, number) => (api, number),
        };
        let mut any = false;
        for (device, chosen) in found.devices.iter().zip(&mut chosen) {
            let info = device.info();
            let named = info.id == selector.to_string();
            // All of an interface: its cards, not processors posing as such.
            let of_kind = number.is_none() && info.is_gpu && info.api == api;
            if named || of_kind {
                if let Err(why) = is_usable(device.as_ref()) {
                    return Err(Error::NoDevice(format!("{} was asked for, but {why}", info.id)));
                }
                *chosen = true;
                any = true;
            }
        }
        if !any {
            return Err(not_found(selector, api, &found));
        }
    }
    if selectors.is_empty() {
        chosen = defaults(&found.devices, is_usable);
        if !chosen.contains(&true) {
            processor = Some(best());
        }
    }
    let cards = found.devices.into_iter().zip(&chosen).filter(|(_, chosen)| **chosen);
    Ok(Chosen { cards: cards.map(|(device, _)| device).collect(), processor })
}

/// Returns which devices are used by default: every card once, and no processor posing as one. A card whose first interface cannot be
/// used (CUDA without NVRTC) is used through its second.
pub fn defaults(devices: &[Arc<dyn Device>], is_usable: IsUsable<'_>) -> Vec<bool> {
    let works = |device: &Arc<dyn Device>| device.info().is_gpu && is_usable(device.as_ref()).is_ok();
    let twin_works = |device: &Arc<dyn Device>| {
        let twin = device.info().same_as.as_ref();
        devices.iter().any(|other| Some(&other.info().id) == twin && works(other))
    };
    devices.iter().map(|device| works(device) && !twin_works(device)).collect()
}

/// Returns the error for a device that is not there, with the reasons of the survey.
fn not_found(selector: &Selector, api: Api, found: &Survey) -> Error {
    let of_api = found.devices.iter().map(|device| device.info()).filter(|info| info.api == api);
    let there: Vec<_> = of_api.map(|info| info.id.clone()).collect();
    let mut why = format!("{selector} was asked for, ");
    if there.is_empty() {
        let reasons = found
            .missing
            .iter()
            .filter(|(what, _)| what == api.name() || (api == Api::Cuda && what == "nvrtc"));
        let reasons: Vec<_> = reasons.map(|(_, reason)| reason.as_str()).collect();
        why += &format!("but this machine shows none: {}", reasons.join("; "));
    } else {
        why += &format!("but there are only {}; name one by its number", there.join(", "));
    }
    Error::NoDevice(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Info, Queue, Vendor};

    /// A card that is only described.
    struct Described(Info);

    impl Device for Described {
        fn info(&self) -> &Info {
            &self.0
        }

        fn queue(&self) -> Result<Box<dyn Queue>> {
            Err(Error::NoDevice("described only".to_owned()))
        }

        fn can_build(&self) -> Result<()> {
            Ok(())
        }
    }

    fn device(id: &str, api: Api, same_as: Option<&str>, is_gpu: bool) -> Arc<dyn Device> {
        Arc::new(Described(Info {
            id: id.to_owned(),
            api,
            name: id.to_owned(),
            vendor: Vendor::Nvidia,
            driver: String::new(),
            arch: String::new(),
            units: 1,
            threads_per_unit: None,
            memory: 0,
            largest_buffer: 0,
            constant_memory: 0,
            shared_memory: 0,
            identity: None,
            same_as: same_as.map(str::to_owned),
            is_gpu,
        }))
    }

    #[test]
    fn every_card_is_used_once_and_through_an_interface_that_works() {
        let all = [
            device("cuda:0", Api::Cuda, None, true),
            device("opencl:0", Api::OpenCl, Some("cuda:0"), true),
            device("opencl:1", Api::OpenCl, None, true),
            device("opencl:2", Api::OpenCl, None, false),
        ];
        assert_eq!(defaults(&all, &|_| Ok(())), [true, false, true, false]);
        let without_cuda = |device: &dyn Device| match device.info().api {
            Api::Cuda => Err(Refusal("no compiler".to_owned())),
            Api::OpenCl => Ok(()),
        };
        assert_eq!(defaults(&all, &without_cuda), [false, true, true, false]);
    }

    #[test]
    fn a_device_that_is_not_there_is_named_with_those_that_are() {
        let found = Survey {
            devices: vec![device("opencl:0", Api::OpenCl, None, true)],
            missing: vec![("cuda".to_owned(), "no driver".to_owned())],
        };
        let cuda = not_found(&Selector::Gpu(Api::Cuda, Some(1)), Api::Cuda, &found).to_string();
        assert!(cuda.contains("cuda:1 was asked for, but this machine shows none: no driver"), "{cuda}");
        let opencl = not_found(&Selector::Gpu(Api::OpenCl, Some(3)), Api::OpenCl, &found).to_string();
        assert!(opencl.contains("only opencl:0; name one by its number"), "{opencl}");
    }
}
