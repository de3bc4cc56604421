//! Finding the shape in which a card searches fastest, and having it remembered.

use std::sync::Arc;

use super::{BenchOptions, bench};
use crate::devices::Devices;
use crate::error::Result;
use crate::gpu::{Gpu, LaunchShape, shapes};
use crate::samples::Sample;
use crate::worker::Runner;

/// One shape tried.
///
/// See [`tune`].
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The device.
    pub device: String,
    /// The shape, as it is remembered.
    pub shape: String,
    /// Addresses a second; none if it did not run, with the reason.
    pub rate: std::result::Result<f64, String>,
    /// Whether it is the best so far.
    pub best: bool,
    /// Which of how many of its device it is, counted from 1.
    pub number: (usize, usize),
}

/// Seconds a shape runs: half of one until its launches have their length, then the time that counts.
const SECONDS: f64 = 1.6;

/// Tries shapes on every card among the devices and remembers the best of each.
///
/// ```
/// use warpsmith_engine::{Devices, samples, tune};
///
/// // Takes a minute per card, and nothing where there is only the processor.
/// let npub = samples().into_iter().find(|sample| sample.name == "npub").expect("it is there");
/// tune(&Devices::cpu()?, &npub, &mut |tried| println!("{} {}: {:?}", tried.device, tried.shape, tried.rate))?;
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn tune(devices: &Devices, sample: &Sample, report: &mut dyn FnMut(&Tuned)) -> Result<()> {
    let options = BenchOptions {
        seconds: SECONDS,
        baseline: false,
        baseline_threads: 1,
        patterns: None,
        detail: false,
    };
    for device in &devices.list {
        let Runner::Card(device) = device.runner() else { continue };
        let mut best: Option<(f64, LaunchShape)> = None;
        let candidates = shapes::candidates(device.as_ref());
        let count = candidates.len();
        for (at, shape) in candidates.into_iter().enumerate() {
            let gpu = Gpu::with_shape(Arc::clone(&device), shape, devices.cards);
            let alone = Devices::of(vec![Arc::new(gpu)]);
            // The steady rate, from launch to launch; a card too slow for that is measured as a whole.
            let rate = bench(&alone, sample, &options)
                .map(|lines| lines.iter().map(|line| line.steady_rate.unwrap_or(line.rate)).sum::<f64>());
            let rate = rate.map_err(|e| e.to_string());
            let is_best = rate.as_ref().is_ok_and(|r| best.is_none_or(|(b, _)| *r > b));
            if let (true, Ok(rate)) = (is_best, &rate) {
                best = Some((*rate, shape));
            }
            report(&Tuned {
                device: device.info().id.clone(),
                shape: shape.to_string(),
                rate,
                best: is_best,
                number: (at + 1, count),
            });
        }
        if let Some((_, shape)) = best {
            shapes::remember(device.as_ref(), &shape);
        }
    }
    Ok(())
}
