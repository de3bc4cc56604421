//! Launches under way, whatever they search: hit buffers in turn, the records a launch leaves, how long the next one
//! shall be.

use std::collections::VecDeque;

use warpsmith_device::{Buffer, Later, Mark, Queue};
use warpsmith_kernel::abi;

use super::{IN_FLIGHT, Outcome, as_bytes};

/// The longest launch, in steps, where nothing else bounds it.
pub(super) const MOST_STEPS: u32 = 1 << 20;

/// What a finished launch left: records of so many words.
pub(super) struct Landed<const WORDS: usize = { abi::HIT_WORDS }> {
    /// Where it began, and how many steps it had.
    pub first: u64,
    pub steps: u32,
    /// The records there was room for.
    pub records: Vec<[u32; WORDS]>,
    /// How many there were meant to be.
    pub count: u32,
    /// Whether the device could not even write down what it would have looked at again.
    lost: bool,
    /// The best score, in a search for it.
    pub best: u32,
}

impl<const WORDS: usize> Landed<WORDS> {
    /// As if a launch of one step had left these.
    #[cfg(test)]
    pub fn of(records: Vec<[u32; WORDS]>) -> Self {
        let count = records.len() as u32;
        Landed { first: 0, steps: 1, records, count, lost: false, best: 0 }
    }

    /// Whether records are missing: then the launch must be done again in smaller pieces.
    pub fn overflowed(&self) -> bool {
        self.count as usize > self.records.len() || self.lost
    }
}

struct Flight {
    first: u64,
    steps: u32,
    later: Later,
    marks: (Mark, Mark),
}

/// The launches of one worker, whose hits are records of so many words.
pub(super) struct Flights<const WORDS: usize = { abi::HIT_WORDS }> {
    /// Used in turn; the last is for launches that are waited for at once.
    hits: [Buffer; IN_FLIGHT + 1],
    /// Records each has room for.
    capacity: u32,
    turn: usize,
    under_way: VecDeque<Flight>,
    /// Steps of the next launch, the most there may be, and the most for as long as there are many matches or records.
    pub steps: u32,
    most: u32,
    pub calm: u32,
    /// How long a launch shall take.
    launch_ms: f32,
}

impl<const WORDS: usize> Flights<WORDS> {
    /// Launches of at most so many steps and about so many milliseconds, with room for so many records.
    pub fn new(queue: &mut dyn Queue, most: u32, launch_ms: u32, capacity: u32) -> Outcome<Self> {
        let bytes = Self::bytes(capacity);
        let hits = [queue.alloc(bytes)?, queue.alloc(bytes)?, queue.alloc(bytes)?];
        let under_way = VecDeque::new();
        let launch_ms = launch_ms as f32;
        Ok(Flights { hits, capacity, turn: 0, under_way, steps: 1, most, calm: most, launch_ms })
    }

    fn bytes(capacity: u32) -> u64 {
        4 * (abi::HITS_HEADER + WORDS * capacity as usize) as u64
    }

    /// Whether another launch would have to wait for the oldest.
    pub fn full(&self) -> bool {
        self.under_way.len() >= IN_FLIGHT
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// How many launches are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Sends a launch on its way: `launch` enqueues it, given the queue and the buffer for its hits. `beat` is the score
    /// to beat, where scores count.
    pub fn take_off(
        &mut self,
        queue: &mut dyn Queue,
        first: u64,
        beat: u32,
        launch: impl FnOnce(&mut dyn Queue, Buffer, u32) -> Outcome<()>,
    ) -> Outcome<()> {
        let (hits, steps) = (self.hits[self.turn], self.steps);
        let before = queue.mark()?;
        let later = self.start(queue, hits, beat, |queue| launch(queue, hits, steps))?;
        let after = queue.mark()?;
        self.turn = (self.turn + 1) % IN_FLIGHT;
        self.under_way.push_back(Flight { first, steps, later, marks: (before, after) });
        Ok(())
    }

    /// Waits for the oldest launch, if there is one, and paces the next by it.
    pub fn land(&mut self, queue: &mut dyn Queue) -> Outcome<Option<Landed<WORDS>>> {
        Ok(self.land_timed(queue)?.map(|(landed, _)| landed))
    }

    /// The same with the milliseconds the launch took.
    pub fn land_timed(&mut self, queue: &mut dyn Queue) -> Outcome<Option<(Landed<WORDS>, f32)>> {
        let Some(Flight { first, steps, later, marks }) = self.under_way.pop_front() else { return Ok(None) };
        let landed = self.read(queue, later, first, steps)?;
        let ms = queue.milliseconds(marks.0, marks.1)?;
        let wanted = steps as f32 * self.launch_ms / ms.max(0.01);
        // No more than fourfold at once: the first launches may not be typical.
        self.steps = (wanted as u32).clamp(1, steps.saturating_mul(4).max(1)).min(self.most).min(self.calm);
        Ok(Some((landed, ms)))
    }

    /// Does one launch and waits for it, behind those under way.
    pub fn alone(
        &mut self,
        queue: &mut dyn Queue,
        first: u64,
        steps: u32,
        beat: u32,
        launch: impl FnOnce(&mut dyn Queue, Buffer) -> Outcome<()>,
    ) -> Outcome<Landed<WORDS>> {
        let hits = self.hits[IN_FLIGHT];
        let later = self.start(queue, hits, beat, |queue| launch(queue, hits))?;
        self.read(queue, later, first, steps)
    }

    /// Waits for all launches and forgets what they found.
    pub fn forget(&mut self, queue: &mut dyn Queue) -> Outcome<()> {
        while let Some(flight) = self.under_way.pop_front() {
            queue.look_later(flight.later, &mut |_| ())?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        queue: &mut dyn Queue,
        later: Later,
        first: u64,
        steps: u32,
    ) -> Outcome<Landed<WORDS>> {
        let mut head = [0; abi::HITS_HEADER];
        let mut records = Vec::new();
        queue.look_later(later, &mut |bytes| {
            let word = |bytes: &[u8]| u32::from_le_bytes(std::array::from_fn(|b| bytes[b]));
            let (first, rest) = bytes.split_at(4 * abi::HITS_HEADER);
            for (to, bytes) in head.iter_mut().zip(first.chunks_exact(4)) {
                *to = word(bytes);
            }
            // A coarse filter leaves millions in a second: of the buffer only what was written is touched, and once.
            let count = head[0].min(self.capacity) as usize;
            let of = |bytes: &[u8]| std::array::from_fn(|w| word(&bytes[4 * w..4 * w + 4]));
            records = rest.chunks_exact(4 * WORDS).take(count).map(of).collect();
        })?;
        let (count, lost, best) = (head[0], head[abi::HITS_LOST] > 0, head[abi::HITS_BEST]);
        Ok(Landed { first, steps, records, count, lost, best })
    }

    /// Clears a hit buffer, launches, and asks for the buffer.
    fn start(
        &self,
        queue: &mut dyn Queue,
        hits: Buffer,
        beat: u32,
        launch: impl FnOnce(&mut dyn Queue) -> Outcome<()>,
    ) -> Outcome<Later> {
        queue.write(hits, 0, &as_bytes(&[0, self.capacity, 0, beat]))?;
        launch(queue)?;
        queue.read_later(hits, 0, Self::bytes(self.capacity))
    }
}
