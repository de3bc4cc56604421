//! Lanes that begin another walk: their new centres are written down together and put into place by a small program of its
//! own, in the order of the queue, so that nothing waits for it.

use warpsmith_curve::Affine;
use warpsmith_device::{Arg, Buffer, Kernel, Options, Queue, Source};
use warpsmith_kernel::embedded;
use warpsmith_kernel::moves::{self, BLOCK, MOVE_WORDS, WORDS};

use super::{Outcome, as_bytes, limbs};

/// Moves that wait for the next launch.
pub(super) struct Moves {
    kernel: Kernel,
    /// Room for one of each lane.
    list: Buffer,
    waiting: Vec<u32>,
}

impl Moves {
    /// Of so many lanes.
    pub fn new(queue: &mut dyn Queue, lanes: u32) -> Outcome<Self> {
        let source = moves::join();
        let key = format!("{:032x}", source.hash);
        let source = Source { text: &source.text, key: &key, ptx: embedded(&source) };
        let program = queue.build(&source, &Options::default())?;
        let kernel = queue.kernel(program, moves::ENTRY)?;
        let list = queue.alloc(4 * MOVE_WORDS as u64 * u64::from(lanes))?;
        Ok(Moves { kernel, list, waiting: Vec::new() })
    }

    /// Puts a lane's centre here before the next launch.
    pub fn add(&mut self, lane: u32, centre: Affine) {
        self.waiting.push(lane);
        self.waiting.extend(limbs(centre.x).into_iter().chain(limbs(centre.y)));
    }

    /// Forgets those that wait: all lanes are put elsewhere.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Enqueues those that wait, in these centres of so many lanes.
    pub fn launch(&mut self, queue: &mut dyn Queue, centres: Buffer, lanes: u32) -> Outcome<()> {
        let count = (self.waiting.len() / MOVE_WORDS) as u32;
        if count == 0 {
            return Ok(());
        }
        queue.write(self.list, 0, &as_bytes(&self.waiting))?;
        self.waiting.clear();
        let args = [Arg::Buffer(centres), Arg::Buffer(self.list), Arg::U32(lanes), Arg::U32(count)];
        queue.launch(self.kernel, (count * WORDS as u32).div_ceil(BLOCK), BLOCK, &args)
    }
}
