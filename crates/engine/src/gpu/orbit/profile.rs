//! What the orbit walk takes of a card, and what its parts cost: by programs that stop after a part.

use warpsmith_kernel::{Stage, XTest};
use warpsmith_pattern::Filter;

use crate::gpu::{Gpu, timing};
use crate::worker::Fault;
use crate::worker::measure::{Part, Profile};

/// The parts, each with all before it; a set is searched as a whole.
const STAGES: [(Stage, &str); 3] = [(Stage::Walk, "walk"), (Stage::Words, "words"), (Stage::Whole, "filter")];
const WHOLE: [(Stage, &str); 1] = [(Stage::Whole, "walk, words, filter")];

/// Measures a search for this filter.
pub(in crate::gpu) fn profile(gpu: &Gpu, filter: &Filter) -> Result<Profile, Fault> {
    let (mut parts, mut before) = (Vec::new(), 0.0);
    let mut profile = Profile::default();
    let is_set = matches!(super::shape(gpu, filter).spec.filter, XTest::Set { .. });
    let stages = if is_set { &WHOLE[..] } else { &STAGES };
    for &(stage, name) in stages {
        let mut worker = super::up_to(gpu, filter, stage).map_err(|e| e.to_string())?;
        let (picoseconds, launch_ms) = worker.timed()?;
        parts.push(Part { name, picoseconds: picoseconds - before });
        before = picoseconds;
        let (kernel, block) = (worker.quest.kernel, gpu.shape.spec.block);
        profile = timing::taken(gpu, worker.queue.as_mut(), kernel, block);
        profile.launch_ms = launch_ms;
    }
    Ok(Profile { parts, ..profile })
}
