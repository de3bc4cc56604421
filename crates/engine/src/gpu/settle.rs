//! Many patterns on a GPU: the walk keeps what survives a bitmap, and a second kernel right behind it settles that.
//!
//! Survivors of a step and candidates of a launch wait in lists, of each lane the ones and of each block the others, beside
//! a log of the centres they belong to. All are used again by the next launch: the queue is in order.

use warpsmith_curve::Fe;
use warpsmith_device::{Arg, Buffer, Info, Kernel, Program, Queue};
use warpsmith_kernel::abi;
use warpsmith_kernel::set::Set;

use super::{Gpu, LaunchShape, Outcome, limbs, upload};

/// The lists take no more than this, nor a sixteenth of the device's memory.
const MOST_BYTES: u64 = 4 << 30;

/// The most steps of a launch: a tenth of a second on a large card.
const MOST_STEPS: u32 = 64;

/// What settles survivors.
#[derive(Clone, Copy)]
pub(super) struct Settle {
    kernel: Kernel,
    points: Buffer,
    log: Buffer,
    lists: Buffer,
    lengths: Lengths,
}

/// How long lists and log are.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    /// Survivors of a block in one step, as many for each lane.
    survivors: u32,
    /// Candidates of a block in a launch.
    candidates: u32,
    /// Steps of a launch.
    steps: u32,
}

impl Settle {
    /// Takes memory for launches with such a filter.
    pub fn new(
        queue: &mut dyn Queue,
        program: Program,
        gpu: &Gpu,
        LaunchShape { spec, lanes }: LaunchShape,
        set: &Set,
    ) -> Outcome<Self> {
        let blocks = lanes / spec.block;
        let lengths = lengths(gpu.device.info(), (lanes, spec.block), spec.group, set);
        let kernel = queue.kernel(program, "search_settle")?;
        let points: Vec<u32> = gpu
            .entries()
            .iter()
            .flat_map(|point| {
                let beta_t = point.x.mul(Fe::BETA);
                let [t, beta_t, beta2_t, y] = [point.x, beta_t, beta_t.mul(Fe::BETA), point.y].map(limbs);
                abi::point_words(&t, &beta_t, &beta2_t, &y)
            })
            .collect();
        let points = upload(queue, &points)?;
        let log = queue.alloc(4 * abi::log_words(lanes, lengths.steps) as u64)?;
        let lists =
            queue.alloc(4 * abi::lists_words(blocks, lengths.survivors, lengths.candidates) as u64)?;
        Ok(Settle { kernel, points, log, lists, lengths })
    }

    /// The longest launch, in steps.
    pub fn most_steps(&self) -> u32 {
        self.lengths.steps
    }

    /// Makes the lists shorter than they need be.
    #[cfg(test)]
    pub fn shorten(&mut self, survivors: u32, candidates: u32) {
        self.lengths.survivors = self.lengths.survivors.min(survivors);
        self.lengths.candidates = self.lengths.candidates.min(candidates);
    }

    /// What the walk takes behind its own arguments.
    pub fn walk_args(&self) -> [Arg; 4] {
        let Lengths { survivors, candidates, .. } = self.lengths;
        [Arg::Buffer(self.log), Arg::Buffer(self.lists), Arg::U32(survivors), Arg::U32(candidates)]
    }

    /// Enqueues what settles the survivors, behind the walk of the same lanes and steps.
    pub fn launch(
        &self,
        queue: &mut dyn Queue,
        [scratch, filter, hits]: [Buffer; 3],
        (lanes, block): (u32, u32),
        steps: u32,
    ) -> Outcome<()> {
        let args = [
            Arg::Buffer(scratch),
            Arg::Buffer(self.points),
            Arg::Buffer(filter),
            Arg::Buffer(hits),
            Arg::Buffer(self.log),
            Arg::Buffer(self.lists),
            Arg::U32(self.lengths.survivors),
            Arg::U32(self.lengths.candidates),
            Arg::U32(lanes),
            Arg::U32(steps),
        ];
        queue.launch(self.kernel, lanes / block, block, &args)
    }
}

/// Lists for so many lanes in blocks: eight standard deviations longer than expected; should that not suffice, the launch
/// is done again in pieces.
fn lengths(info: &Info, (lanes, block): (u32, u32), group: u32, set: &Set) -> Lengths {
    let enough = |expected: f64, spare: f64, most: f64| (expected + 8.0 * expected.sqrt() + spare).min(most);
    // A survivor is one sign of an entry with its nine keys.
    let signs = 2.0 * f64::from(group);
    // One place more than there can be survivors: a full list counts as too short.
    let of_lane = enough(signs * (9.0 * set.survive).min(1.0), 16.0, signs + 1.0) as u32;
    let survivors = of_lane * block;
    let candidates = |steps: u32| {
        let keys = 9.0 * signs * f64::from(block) * f64::from(steps);
        enough(keys * set.candidates, 64.0, keys) as u32
    };
    let blocks = lanes / block;
    let most = (info.memory / 16).min(info.largest_buffer).min(MOST_BYTES);
    let bytes = |candidates| 4 * abi::lists_words(blocks, survivors, candidates) as u64;
    match (1..=MOST_STEPS).take_while(|&steps| bytes(candidates(steps)) <= most).last() {
        Some(steps) => Lengths { survivors, candidates: candidates(steps), steps },
        // Nearly everything survives: what fits, and the rest is walked again on the processor.
        None => {
            let each = (most / u64::from(blocks.max(1)) / 128).min(1 << 24) as u32;
            Lengths { survivors: each.max(block), candidates: each, steps: 1 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpsmith_device::{Api, Vendor};

    fn card(memory: u64) -> Info {
        Info {
            id: "cuda:0".to_owned(),
            api: Api::Cuda,
            name: "card".to_owned(),
            vendor: Vendor::Nvidia,
            driver: "1".to_owned(),
            arch: "sm_90".to_owned(),
            units: 132,
            threads_per_unit: Some(2048),
            memory,
            largest_buffer: memory / 4,
            constant_memory: 1 << 16,
            shared_memory: 48 << 10,
            identity: None,
            same_as: None,
            is_gpu: true,
        }
    }

    #[test]
    fn lists_fit_the_memory_and_hold_what_is_expected() {
        let keys = 128.0 * 18.0 * 256.0;
        let (lanes, block) = (660 * 128, 128);
        for memory in [1u64 << 30, 8 << 30, 139 << 30] {
            for (survive, candidates) in
                [(0.0, 0.0), (1e-6, 1e-7), (0.002, 5e-6), (0.0134, 0.005), (0.16, 0.16), (1.0, 1.0)]
            {
                let set = Set { words: Vec::new(), survive, candidates };
                let found = lengths(&card(memory), (lanes, block), 256, &set);
                assert!((1..=MOST_STEPS).contains(&found.steps));
                let bytes = 4 * abi::lists_words(660, found.survivors, found.candidates) as u64;
                assert!(bytes <= (memory / 16).min(MOST_BYTES) + 660 * 64, "{found:?}");
                if memory >= 139 << 30 && survive < 0.1 {
                    let signs = 512.0 * (1.0 - (1.0 - survive).powi(9));
                    assert!(f64::from(found.survivors / block) > signs);
                    assert!(f64::from(found.candidates) > keys * candidates * f64::from(found.steps));
                    assert!(found.steps >= 32, "{found:?}");
                }
            }
        }
    }
}
