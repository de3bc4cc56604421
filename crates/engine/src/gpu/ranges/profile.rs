//! What a scan takes of a card, and what its parts cost: the walk by itself, and with each program that tests.

use warpsmith_chain::Form;
use warpsmith_curve::Scalar;

use super::RangeScanner;
use crate::gpu::Gpu;
use crate::gpu::timing::{self, Time};
use crate::prefilter::ScanFilter;
use crate::worker::Fault;
use crate::worker::measure::{Part, Profile};

/// Where it walks: far from the table and from n.
const START: u64 = 1 << 63;

/// Measures a scan for this filter.
pub(in crate::gpu) fn profile(gpu: &Gpu, forms: &[Form], wanted: &ScanFilter) -> Result<Profile, Fault> {
    let mut scanner = RangeScanner::new(gpu, forms, wanted).map_err(|e| e.to_string())?;
    let tests = std::mem::take(&mut scanner.tests);
    let (walk, _) = scanner.timed()?;
    let mut parts = vec![Part { name: "walk", picoseconds: walk }];
    let mut profile = Profile::default();
    for test in tests {
        let (kernel, name) = (test.kernel, test.name);
        scanner.tests = vec![test];
        let (both, launch_ms) = scanner.timed()?;
        parts.push(Part { name, picoseconds: both - walk });
        let block = scanner.shape.spec.block;
        profile = Profile { launch_ms, ..timing::taken(gpu, scanner.queue.as_mut(), kernel, block) };
    }
    Ok(Profile { parts, ..profile })
}

impl RangeScanner<'_> {
    /// Picoseconds of a key in launches of what there is to launch, and milliseconds of a launch.
    fn timed(&mut self) -> Result<(f64, f64), Fault> {
        let (centres, lanes) = (self.centres, self.lanes());
        self.place(centres, Scalar::from_u64(START), lanes)?;
        self.flights.steps = 1;
        let time = Time::of(|| {
            let launch = self.launch(centres, lanes);
            self.flights.take_off(self.queue.as_mut(), 0, 0, launch).map_err(|e| e.to_string())?;
            timing::landed(&mut self.flights, self.queue.as_mut())
        })?;
        Ok((time.step * 1e3 / self.step_keys() as f64, time.launch))
    }
}
