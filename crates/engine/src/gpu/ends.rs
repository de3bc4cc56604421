//! Where a card's lanes stand: their centres are read back behind some launch, and compared with where they must be
//! while others run.
//!
//! The copy is enqueued like a launch and takes some tenths of a millisecond of the card. The comparison takes less time
//! than a launch lasts. In a search the worker does it while two launches are under way, so that the card does not wait for
//! it; in a scan it is left to the collector (docs/measurements/end-point-check.md).

use warpsmith_curve::{Affine, Fe};
use warpsmith_device::{Buffer, Later, Queue};
use warpsmith_kernel::abi;

use super::Outcome;
use super::lanes::Lanes;
use crate::worker::Fault;
use crate::worker::ends::Must;
use crate::worker::scanner::Proof;

/// Launches of a search from one check to the next: some three seconds.
const EVERY: u32 = 32;

/// The centres of a walk.
pub(super) struct Ends {
    centres: Buffer,
    lanes: u32,
    asked: Option<(Later, Box<dyn Must>)>,
    bytes: Vec<u8>,
}

impl Ends {
    /// Of so many lanes, in this buffer.
    pub fn new(centres: Buffer, lanes: u32) -> Self {
        Ends { centres, lanes, asked: None, bytes: Vec::new() }
    }

    fn size(&self) -> u64 {
        4 * abi::centres_words(self.lanes) as u64
    }

    /// Asks for the centres behind all that is enqueued, where they must be as `must` says. What was asked for before is compared
    /// first.
    pub fn ask(&mut self, queue: &mut dyn Queue, must: impl Must + 'static) -> Result<(), Fault> {
        self.look(queue)?;
        let later = queue.read_later(self.centres, 0, self.size()).map_err(|e| e.to_string())?;
        self.asked = Some((later, Box::new(must)));
        Ok(())
    }

    /// Whether centres were asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Waits for the centres asked for and leaves the comparison to somebody else.
    pub fn proof(&mut self, queue: &mut dyn Queue) -> Result<Option<Proof>, Fault> {
        let Some((later, must)) = self.asked.take() else { return Ok(None) };
        let (mut bytes, lanes) = (Vec::new(), self.lanes);
        queue.finish_later(later, &mut bytes).map_err(|e| e.to_string())?;
        Ok(Some(Box::new(move || must.check(&centres(&bytes, lanes)))))
    }

    /// Waits for the centres asked for and compares them.
    pub fn look(&mut self, queue: &mut dyn Queue) -> Result<(), Fault> {
        let Some((later, must)) = self.asked.take() else { return Ok(()) };
        queue.finish_later(later, &mut self.bytes).map_err(|e| e.to_string())?;
        must.check(&centres(&self.bytes, self.lanes))
    }

    /// Drops what was asked for.
    pub fn forget(&mut self, queue: &mut dyn Queue) -> Outcome<()> {
        match self.asked.take() {
            Some((later, _)) => queue.finish_later(later, &mut self.bytes),
            None => Ok(()),
        }
    }

    /// Turns over one bit of a lane's centre, behind all that is enqueued.
    #[cfg(test)]
    pub fn flip(&mut self, queue: &mut dyn Queue, lane: u32, bit: u32) {
        let at = 4 * (u64::from(bit / 32) * u64::from(self.lanes) + u64::from(lane));
        let mut word = [0; 4];
        queue.read(self.centres, at, &mut word).expect("read");
        word[bit as usize % 32 / 8] ^= 1 << (bit % 8);
        queue.write(self.centres, at, &word).expect("written");
    }
}

/// The points that a device's centres are: the reverse of [`super::centre_words`].
fn centres(bytes: &[u8], lanes: u32) -> Vec<Affine> {
    let n = lanes as usize;
    let word = |w: usize, lane: usize| {
        let at = 4 * (w * n + lane);
        u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    };
    let element = |first: usize, lane: usize| {
        let words =
            std::array::from_fn(|i| word(first + 7 - 2 * i, lane) << 32 | word(first + 6 - 2 * i, lane));
        Fe::from_words(&words)
    };
    (0..n).map(|lane| Affine { x: element(0, lane), y: element(8, lane) }).collect()
}

/// The ends of a search: every so many launches, whatever origins they begin at.
pub(super) struct Watch {
    ends: Ends,
    every: u32,
    /// Launches since the centres were last asked for.
    launches: u32,
    /// Launches to land before those are the centres of what has landed.
    ahead: usize,
    /// Candidates of launches that have landed since the last check.
    unproved: u64,
}

impl Watch {
    /// Of so many lanes, whose centres are in this buffer.
    pub fn new(centres: Buffer, lanes: u32) -> Self {
        Watch { ends: Ends::new(centres, lanes), every: EVERY, launches: 0, ahead: 0, unproved: 0 }
    }

    /// A launch was enqueued, behind which the lanes must be where `lanes` says, and with which so many are under way.
    pub fn took_off(
        &mut self,
        queue: &mut dyn Queue,
        under_way: usize,
        lanes: &Lanes<'_>,
    ) -> Result<(), Fault> {
        self.launches += 1;
        if self.launches >= self.every && !self.ends.is_asked() {
            (self.launches, self.ahead) = (0, under_way);
            self.ends.ask(queue, lanes.stand())?;
        }
        Ok(())
    }

    /// The oldest launch under way has landed and tried so many candidates.
    pub fn landed(&mut self, tried: u64) {
        self.ahead = self.ahead.saturating_sub(1);
        self.unproved += tried;
    }

    /// So many candidates of what has landed do not count.
    pub fn less(&mut self, not_tried: u64) {
        self.unproved = self.unproved.saturating_sub(not_tried);
    }

    /// All that was under way has been waited for, and nobody asks what it found.
    pub fn gave_up(&mut self) {
        self.ahead = 0;
    }

    /// Compares the centres, if they were asked for and all before them has landed.
    pub fn look(&mut self, queue: &mut dyn Queue) -> Result<(), Fault> {
        if self.ahead == 0 && self.ends.is_asked() {
            self.ends.look(queue)?;
            self.unproved = 0;
        }
        Ok(())
    }

    /// Compares the centres as they are behind all that is enqueued, and waits for it.
    pub fn look_now(&mut self, queue: &mut dyn Queue, lanes: &Lanes<'_>) -> Result<(), Fault> {
        self.ends.ask(queue, lanes.stand())?;
        self.ends.look(queue)
    }

    /// Lanes were put elsewhere by hand: what was asked for is of no use.
    pub fn forget(&mut self, queue: &mut dyn Queue) -> Outcome<()> {
        self.ends.forget(queue)
    }

    /// Candidates tried since the last check.
    pub fn unproved(&self) -> u64 {
        self.unproved
    }

    /// Checks after so many launches.
    #[cfg(test)]
    pub fn every(&mut self, launches: u32) {
        self.every = launches;
    }

    /// See [`Ends::flip`].
    #[cfg(test)]
    pub fn flip(&mut self, queue: &mut dyn Queue, lane: u32, bit: u32) {
        self.ends.flip(queue, lane, bit);
    }
}
