//! The high seam: what a search asks of anything that can search, without knowing what it is.
//!
//! `scanner` is the same for scans and `measure` for benchmarks. `walks` knows where each lane began, `ends` finds out whether
//! it went where it must, by the additions of `batch_add`.

pub(crate) mod batch_add;
pub(crate) mod ends;
pub(crate) mod measure;
pub(crate) mod scanner;
#[cfg(test)]
pub(crate) mod trial;
pub(crate) mod walks;

use std::sync::Arc;

use warpsmith_chain::{Digest, Form, Recipe};
use warpsmith_curve::Affine;
use warpsmith_curve::walk::Place;
use warpsmith_device::{Device, Queue};
use warpsmith_hash::Lanes;
use warpsmith_pattern::Filter;

use crate::prefilter::{Prefilter, ScanFilter};
pub(crate) use crate::space::Start;
use measure::Measure;
use scanner::Scanner;

/// What went wrong on a device, for a person to read.
pub(crate) type Fault = String;

/// What workers search for.
pub(crate) struct Search<'s> {
    /// How a candidate becomes a digest.
    pub recipe: &'s Recipe,
    /// Which digests are wanted.
    pub filter: &'s Filter,
    /// The same as workers of the processor test it.
    pub prefilter: Prefilter<'s>,
}

impl<'s> Search<'s> {
    /// A search for what this filter passes.
    pub fn new(recipe: &'s Recipe, filter: &'s Filter) -> Self {
        Search { recipe, filter, prefilter: Prefilter::new(filter) }
    }
}

/// The most entries a table may have when somebody else says how many.
pub(crate) const MOST_HALF: u32 = 1 << 10;

/// The largest share of candidates that may pass a card's filter where few of them match: each is a hit that the host
/// recomputes, and beyond this a processor that looks at its own digests is faster (docs/measurements/npub-gpu.md).
const MOST_HITS: f64 = 1.0 / 1024.0;

/// Hits a match may cost that are not worth asking another device: a quarter of a second.
const FEW_HITS: f64 = 4096.0;

/// Whether a device is to do a search whose candidates match with these odds; if not, why.
pub(crate) fn suits(device: &dyn Backend, search: &Search<'_>, odds: f64) -> Result<(), Fault> {
    device.supports(search)?;
    let share = search.filter.share();
    if device.is_card() && share > MOST_HITS && share > odds * FEW_HITS {
        let every = (1.0 / share).round();
        return Err(format!(
            "these patterns say too little about the digest, the rest is for the text to decide, and one candidate in \
             {every} would have to leave the card"
        ));
    }
    Ok(())
}

/// The name of what a device runs for a search: two searches of one program differ in data alone. The self-test asks for it,
/// so as to prove the very program that will search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Program(pub String);

/// How a walker numbers its keys: see [`warpsmith_curve::walk::Place::offset`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    /// Table entries.
    pub half: u32,
    /// Parallel walkers, each from a point of its own.
    pub lanes: u32,
    /// Powers of lambda on an entry: 3 for the orbit walk, else 1.
    pub orbits: u8,
    /// Whether a key and its negative are two candidates.
    pub signs: bool,
}

impl Numbering {
    /// Candidates of one step of all lanes: three images of each point.
    pub fn keys_per_step(&self) -> u64 {
        u64::from(self.lanes) * self.keys_of_lane()
    }

    /// Candidates of one step of a lane.
    pub fn keys_of_lane(&self) -> u64 {
        let points = 2 * u64::from(self.half) * u64::from(self.orbits) + 1;
        points * 3 * if self.signs { 2 } else { 1 }
    }

    /// Candidates of a lane that were told as tried and do not count, since its walk ended with a match: those of so many steps
    /// after it, and of the match's own step what lies behind it. In which order the candidates of a step come is nobody's
    /// business; where `met` of them match, the first to match has on average a share of 1 / (met + 1) of them before it.
    pub fn not_tried(&self, after: u64, met: u64) -> u64 {
        let keys = self.keys_of_lane();
        after * keys + keys - keys / (met + 1)
    }
}

/// Which candidate a worker means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Spot {
    /// A key of a lane's walk; its step is counted from that walk's first point.
    Key(Place),
    /// The salt with this counter.
    Salt(u64),
}

/// A candidate that passed the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Which.
    pub spot: Spot,
    /// Its digest, where the worker has formed it.
    pub digest: Option<Digest>,
    /// Its score as the worker saw it, in a search for the best; else 0.
    pub score: u32,
}

/// What one call of [`Worker::run`] did.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Candidates tested, each once.
    pub tried: u64,
    /// Those that passed the filter. In a search for the best, at least one of the best among them.
    pub hits: Vec<Hit>,
    /// Whether the lease or the stretch is done: a walk without an end never is.
    pub done: bool,
    /// What passed besides, of walks that had ended before.
    pub stale: u64,
}

/// A parallel searcher. It is given points or counters, never secrets.
pub(crate) trait Worker: Send {
    /// How it numbers keys; none for salts.
    fn numbering(&self) -> Option<Numbering>;
    /// Starts over from here.
    fn start(&mut self, start: Start<'_>) -> Result<(), Fault>;
    /// Ends a lane's walk with a match that the last run told of, at this step of that walk and as one of `met` in it. From its
    /// next step on the lane walks from `point`; nothing is told of the old walk any more, nor counted. Returns how many
    /// candidates of what was told as tried do not count. Never called for salts.
    fn replace(&mut self, _lane: u32, _step: u64, _met: u64, _point: Affine) -> u64 {
        unreachable!("it has no walk")
    }
    /// Goes on for a moment: some hundredths of a second, or until something was hit.
    fn run(&mut self) -> Result<Batch, Fault>;
    /// Goes on by exactly one step of every lane (for salts: by some): for self-tests.
    fn step(&mut self) -> Result<Batch, Fault>;
    /// Whether its lanes are where they must be, found out at once: for self-tests. Salts are counted and have no walk.
    fn check(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    /// Asked after [`Worker::run`]: how many of the candidates it told as tried no check has confirmed yet. They do not
    /// count if the next run fails. It checks every few seconds that its lanes are where they must be (see [`ends`]); if
    /// they are not, that is the fault of the run. None for salts, which have no walk.
    fn unproved(&self) -> u64 {
        0
    }
    /// Turns over one bit of the centre of a lane, and checks after so many launches or steps.
    #[cfg(test)]
    fn flip(&mut self, _lane: u32, _bit: u32, _every: u32) {
        panic!("it has no walk");
    }
    /// From now on only scores of at least this are wanted. Only called in a search for the best.
    fn raise(&mut self, _at_least: u32) -> Result<(), Fault> {
        Ok(())
    }
}

/// What a device is made of: what work that is no search runs on.
///
/// See [`Devices::runners`](crate::Devices::runners).
pub enum Runner {
    /// A card.
    Card(Arc<dyn Device>),
    /// Threads of the processor.
    Processor {
        /// The instruction set of the lanes.
        lanes: Lanes,
        /// How many.
        threads: usize,
    },
}

/// What keeps a device open.
pub(crate) struct Held(
    #[expect(dead_code, reason = "only that it lives matters")] pub Option<Box<dyn Queue>>,
);

/// A device that can make workers.
pub(crate) trait Backend: Send + Sync {
    /// What a person calls it: `cpu`, `cuda:0`.
    fn id(&self) -> String;
    /// One line about it.
    fn describe(&self) -> String;
    /// How many workers run on it side by side.
    fn workers(&self) -> usize;
    /// The share of candidates of this recipe that may pass its filter without matching before verification holds it
    /// up.
    fn max_false(&self, recipe: &Recipe) -> f64;
    /// What it is made of.
    fn runner(&self) -> Runner;
    /// Whether that is a card.
    fn is_card(&self) -> bool {
        matches!(self.runner(), Runner::Card(_))
    }
    /// Whether it can do this search at all; if not, why.
    fn supports(&self, _search: &Search<'_>) -> Result<(), Fault> {
        Ok(())
    }
    /// What times its parts, if they can be timed.
    fn measure(&self) -> Option<&dyn Measure> {
        None
    }
    /// How many scanners run on it side by side.
    fn scanners(&self) -> usize {
        self.workers()
    }
    /// A scanner that makes these forms of keys and shows those the filter lets pass; if it cannot, why.
    fn scanner<'a>(
        &'a self,
        _forms: &'a [Form],
        _filter: &'a ScanFilter,
    ) -> Result<Box<dyn Scanner + 'a>, Fault> {
        Err("it cannot scan ranges".to_owned())
    }
    /// Keeps it open while workers come and go. A card that nobody uses is closed, and opening it anew takes a fifth of a second.
    fn hold(&self) -> Held {
        Held(None)
    }
    /// The program by which it does this search, which it must support.
    fn program(&self, search: &Search<'_>) -> Program;
    /// Table entries of its walks: which keys lie around a centre depends on it.
    fn half(&self) -> u32 {
        0
    }
    /// The same device with walks of so many entries; none if it has no such walks.
    fn with_half(&self, _half: u32) -> Option<Arc<dyn Backend>> {
        None
    }
    /// A worker for this search.
    fn worker<'a>(&'a self, search: &Search<'_>) -> Result<Box<dyn Worker + 'a>, Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpsmith_device::Inline;
    use warpsmith_pattern::{Interval, Term};

    /// Cards leave searches to others in which nearly everything passes and next to nothing matches; the processor
    /// does them.
    #[test]
    fn cards_do_not_suit_filters_that_pass_nearly_everything() {
        let everything = Filter { terms: vec![Term::ALL], ..Filter::default() };
        let first = |bits: u32| Filter {
            top: vec![Interval { first: 0, last: u64::MAX >> bits }],
            ..Filter::default()
        };
        let cpu = crate::cpu::Cpu::new(crate::simd::Simd::Portable, 1);
        let fits = |device: &dyn Backend, filter: &Filter, odds| {
            suits(device, &Search::new(&Recipe::Key(Form::Account), filter), odds)
        };
        assert_eq!(fits(&cpu, &everything, 1e-9), Ok(()));
        let Some(card) = warpsmith_device::survey().devices.into_iter().find(|d| d.can_build().is_ok())
        else {
            eprintln!("SKIPPED: this machine has no OpenCL or CUDA");
            return;
        };
        let card = crate::gpu::Gpu::new(card, Inline::Auto);
        let why = fits(&card, &everything, 1e-9).expect_err("everything passes");
        assert!(why.contains("one candidate in 1 "), "{why}");
        assert!(fits(&card, &first(8), 1e-9).is_err());
        // An easy pattern matches as often as its filter passes.
        assert_eq!(fits(&card, &first(8), 1.0 / 256.0), Ok(()));
        assert_eq!(fits(&card, &first(20), 1e-9), Ok(()));
    }
}
