//! How a client comes to the newest epoch: by the changes since its own, as long as that is cheaper than new hints.
//!
//! A change is downloaded, and looked for in every hint: a word of the function for each. New hints take the whole database,
//! and twice a word for each hint and block. So there is a number of changes, a few times that of the blocks, from which on new
//! hints take less time. What both take is not guessed: the server says how many changes there are, and what one takes, here and
//! now, is measured while the first of them are applied.

use std::time::Instant;

use super::{MOST_CHANGES, MOST_EPOCHS, Offer, Remote};
use crate::client::Client;
use crate::error::{Error, Result};

/// Bytes a second that are reckoned with where too few came to measure.
const USUAL_SPEED: f64 = 10e6;
/// Bytes of an answer from which on its time says how fast the network is.
const MEASURABLE: u64 = 256 << 10;
/// Time of applying changes from which on it says how long one takes.
const MEASURABLE_S: f64 = 0.05;
/// What new hints take of one thread, in changes for each block: a word for the cutoff and one for the parity of each hint, and
/// the entry that is added up. Measured, docs/measurements/private-retrieval.md.
const CHANGES_PER_BLOCK: f64 = 4.2;

/// What something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// To download.
    pub bytes: u64,
    /// To download and to compute, in all.
    pub seconds: f64,
}

/// What it takes to come to the newest epoch, either way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed {
    /// The changes there are.
    pub changes: u64,
    /// To apply those.
    pub updates: Cost,
    /// To make new hints.
    pub hints: Cost,
}

impl Weighed {
    /// Whether new hints take less time.
    pub fn hints_are_cheaper(&self) -> bool {
        self.hints.seconds < self.updates.seconds
    }
}

/// How far a client came.
#[derive(Clone, Debug, PartialEq)]
pub enum CaughtUp {
    /// To the newest epoch, by the changes.
    ByUpdates(Weighed),
    /// Not to the newest, since new hints take less time than what is left.
    HintsAreCheaper(Weighed),
    /// Not to the newest, since the server has not all of the changes any more: what it says.
    Gone(String),
}

/// What was measured so far.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    bytes: u64,
    download_s: f64,
    changes: u64,
    apply_s: f64,
}

impl Measured {
    fn speed(&self) -> f64 {
        match self.bytes >= MEASURABLE && self.download_s > 0.0 {
            true => self.bytes as f64 / self.download_s,
            false => USUAL_SPEED,
        }
    }

    /// Seconds that a change takes to be applied, if enough were.
    fn each(&self) -> Option<f64> {
        (self.apply_s >= MEASURABLE_S && self.changes > 0).then(|| self.apply_s / self.changes as f64)
    }

    /// What is left to do for so many changes, and what new hints take of so many threads.
    fn weigh(&self, offer: &Offer, changes: u64, threads: usize) -> Weighed {
        let params = &offer.description.params;
        let (size, each) = (params.entry_size() as u64, self.each().unwrap_or(0.0));
        let bytes = changes.saturating_mul(8 + size);
        let file = (params.entries() * size).saturating_add(offer.changes.saturating_mul(8 + size));
        let making = each * CHANGES_PER_BLOCK * f64::from(params.blocks()) / threads.max(1) as f64;
        Weighed {
            changes,
            updates: Cost { bytes, seconds: bytes as f64 / self.speed() + changes as f64 * each },
            hints: Cost { bytes: file, seconds: file as f64 / self.speed() + making },
        }
    }
}

impl Remote {
    /// Brings a client's hints to the newest epoch, as long as that takes less time than new hints, made here by so many threads.
    /// What was applied until then is kept.
    ///
    /// # Errors
    ///
    /// When queries wait for answers, the updates cannot be had, or there is no end to them.
    pub fn catch_up(&self, client: &mut Client, offer: &Offer, threads: usize) -> Result<CaughtUp> {
        let (mut measured, mut epochs) = (Measured::default(), 0);
        let most = MOST_CHANGES.max(16 * u64::from(client.params().blocks()));
        loop {
            let begin = Instant::now();
            let (updates, left) = match self.updates_and_rest(client.params(), client.version().epoch) {
                Err(Error::Mismatch(reason)) => return Ok(CaughtUp::Gone(reason)),
                other => other?,
            };
            let each = 8 + client.params().entry_size() as u64;
            let here: u64 = updates.iter().map(|update| update.indices.len() as u64).sum();
            measured.bytes += 24 * updates.len() as u64 + here * each;
            measured.download_s += begin.elapsed().as_secs_f64();
            // A server that does not say how many there are has at least these.
            let mut left = left.unwrap_or(here).clamp(here, here.max(1 << 40));
            if updates.is_empty() {
                let changes = measured.changes;
                return Ok(CaughtUp::ByUpdates(measured.weigh(offer, changes, threads)));
            }
            for update in &updates {
                let weighed = measured.weigh(offer, left, threads);
                if measured.each().is_some() && weighed.hints_are_cheaper() {
                    return Ok(CaughtUp::HintsAreCheaper(weighed));
                }
                let begin = Instant::now();
                client.update(update)?;
                measured.apply_s += begin.elapsed().as_secs_f64();
                measured.changes += update.indices.len() as u64;
                left -= update.indices.len() as u64;
                epochs += 1;
            }
            if epochs > MOST_EPOCHS || measured.changes > most {
                return Err(self.failed(format!(
                    "it sent {epochs} epochs with {} changes, and may have more; make a state with new hints, or run \
                     this again to go on",
                    measured.changes
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Description;
    use crate::params::{Choice, Params};

    #[test]
    fn changes_are_cheaper_up_to_a_number_near_that_of_the_blocks() {
        let params = Params::new(Choice::new(1 << 24, 40)).unwrap();
        let description = Description {
            params,
            epoch: 0,
            keyword: None,
            identity: [0; 32],
            origin: None,
            predecessors: Vec::new(),
        };
        let offer = Offer { description, epoch: 9, batch: 64, head: None, changes: 1000 };
        // A millisecond a change, and ten megabytes a second: the blocks are 4096.
        let measured = Measured { changes: 100, apply_s: 0.1, ..Measured::default() };
        let weigh = |changes, threads| measured.weigh(&offer, changes, threads);
        let few = weigh(100, 1);
        assert_eq!((few.changes, few.updates.bytes), (100, 4800));
        assert_eq!(few.hints.bytes, (40 << 24) + 1000 * 48);
        assert!((few.updates.seconds - 0.10048).abs() < 1e-9);
        assert!((few.hints.seconds - (67.114 + 17.203)).abs() < 0.01, "{few:?}");
        assert!(!few.hints_are_cheaper() && !weigh(70_000, 1).hints_are_cheaper());
        assert!(weigh(90_000, 1).hints_are_cheaper());
        assert!(weigh(70_000, 16).hints_are_cheaper());
        // A network that is fast leaves the work, and the threads to do it with.
        let fast = Measured { bytes: 1 << 20, download_s: 1e-4, ..measured };
        assert!(fast.weigh(&offer, 18_000, 1).hints_are_cheaper());
        assert!(!fast.weigh(&offer, 16_000, 1).hints_are_cheaper());
        // Nothing is known of the work yet: changes are begun with.
        assert_eq!(Measured::default().each(), None);
    }
}
