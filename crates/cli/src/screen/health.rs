//! Temperature, power and throttling of NVIDIA's cards, by NVML. Without that library nothing is shown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use warpsmith::devices::survey;

use super::model::{Health, Model};
use super::nvml::{Nvml, ThrottleReasons};

/// How often cards are asked.
const EVERY: Duration = Duration::from_secs(2);

/// Asks cards how they are for as long as the model is there, on a thread that nobody waits for.
pub(crate) fn watch(model: &Arc<Mutex<Model>>) {
    let model = Arc::downgrade(model);
    let _ = Builder::new().name("cards".to_owned()).spawn(move || ask(&model));
}

fn ask(model: &Weak<Mutex<Model>>) {
    let mut places: HashMap<String, Option<String>> = HashMap::new();
    let mut nvml = None;
    loop {
        std::thread::sleep(EVERY);
        let Some(shared) = model.upgrade() else { return };
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let devices = lock().devices();
        // Names of a fleet's workers have no colon.
        let is_card = |id: &String| !id.starts_with("cpu") && id.contains(':');
        let cards: Vec<String> = devices.into_iter().filter(is_card).collect();
        if cards.is_empty() {
            continue;
        }
        if nvml.is_none() {
            let Some(opened) = Nvml::open() else { return };
            nvml = Some(opened);
        }
        if cards.iter().any(|card| !places.contains_key(card)) {
            places.extend(cards.iter().map(|card| (card.clone(), None)));
            // Which card is which: the numbers of NVML's are not CUDA's.
            for found in survey().found {
                let place = found.identity.as_deref().and_then(|identity| identity.strip_prefix("pci:"));
                places.insert(found.id.clone(), place.map(str::to_owned));
            }
        }
        let of = |card: String| {
            let place = places.get(&card)?.as_deref()?;
            let device = nvml.as_ref()?.device(place)?;
            let health = Health {
                celsius: device.celsius(),
                watts: device.milliwatts().map(|milliwatts| f64::from(milliwatts) / 1e3),
                throttled: device.throttle_reasons().and_then(reason),
            };
            Some((card, health))
        };
        let health = cards.into_iter().filter_map(of).collect();
        lock().healthy(health);
    }
}

/// The one that matters most. A card that is idle, or that somebody set a clock for, is not held down.
fn reason(reasons: ThrottleReasons) -> Option<&'static str> {
    let known = [
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "heat"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "heat"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power supply"),
        (ThrottleReasons::HW_SLOWDOWN, "heat or power"),
        (ThrottleReasons::SW_POWER_CAP, "power limit"),
    ];
    known.into_iter().find(|(flag, _)| reasons.0 & flag != 0).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_that_matters_is_told() {
        assert_eq!(reason(ThrottleReasons(0)), None);
        assert_eq!(
            reason(ThrottleReasons(ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING)),
            None
        );
        assert_eq!(reason(ThrottleReasons(ThrottleReasons::SW_POWER_CAP)), Some("power limit"));
        assert_eq!(
            reason(ThrottleReasons(ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_THERMAL_SLOWDOWN)),
            Some("heat")
        );
    }
}
