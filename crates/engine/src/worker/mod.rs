//! The high seam: what a session asks of anything that can search, without knowing what it is.

pub(crate) mod batch_add;
pub(crate) mod ends;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use warpsmith_chain::{Digest, Recipe};
use warpsmith_curve::field::chains::Op;
use warpsmith_curve::walk::{Place, Sieve};
use warpsmith_pattern::Filter;

use crate::cpu::screen::Sought;
use crate::scan::{AnySieve, Form, Scanner};
use crate::sieve::sieve;
use crate::simd::Simd;
pub(crate) use crate::space::Start;

use crate::bench::detail::Profile;
use crate::bench::field::FieldRate;

/// What went wrong on a device, for a person to read.
pub(crate) type Fault = String;

/// What workers search for, and what is made of it once for all of them: tables of many patterns are tens of megabytes,
/// and as many copies as there are threads would leave a shared cache.
pub(crate) struct Search<'s> {
    /// How a candidate becomes a digest.
    pub recipe: &'s Recipe,
    /// Which digests are wanted.
    pub filter: &'s Filter,
    sieve: OnceLock<Sieve>,
    sought: OnceLock<Arc<Sought>>,
}

impl<'s> Search<'s> {
    pub fn new(recipe: &'s Recipe, filter: &'s Filter) -> Self {
        Search { recipe, filter, sieve: OnceLock::new(), sought: OnceLock::new() }
    }

    /// The filter for a walk that tests x: a copy that shares what is large with the others.
    pub fn sieve(&self) -> Sieve {
        self.sieve.get_or_init(|| sieve(self.filter)).clone()
    }

    /// The filter for digests, eight at a time.
    pub fn sought(&self) -> Arc<Sought> {
        self.sought.get_or_init(|| Arc::new(Sought::new(self.filter))).clone()
    }
}

/// The largest share of candidates that may pass a card's filter where few of them match: each is a hit that the host
/// recomputes, and beyond this a processor that looks at its own digests is faster (docs/measurements/npub-gpu.md).
const MOST_HITS: f64 = 1.0 / 1024.0;

/// Hits a match may cost that are not worth asking another device: a quarter of a second.
const FEW_HITS: f64 = 4096.0;

/// Whether a device is to do a search whose candidates match with these odds; if not, why.
pub(crate) fn suits(device: &dyn Backend, search: &Search<'_>, odds: f64) -> Result<(), Fault> {
    device.supports(search)?;
    let share = search.filter.share();
    if device.card().is_some() && share > MOST_HITS && share > odds * FEW_HITS {
        let every = (1.0 / share).round();
        return Err(format!(
            "these patterns say too little about the digest, the rest is for the text to decide, and one candidate in \
             {every} would have to leave the card"
        ));
    }
    Ok(())
}

/// How a walker numbers its keys: see [`warpsmith_curve::walk::Place::offset`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Table entries.
    pub half: u32,
    /// Parallel walkers.
    pub lanes: u32,
    /// Distance of neighbouring lanes in steps: more than any origin ever walks.
    pub stride: u64,
    /// Powers of lambda on an entry: 3 for the orbit walk, else 1.
    pub orbits: u8,
    /// Whether a key and its negative are two candidates.
    pub signs: bool,
}

impl Shape {
    /// Candidates of one step of all lanes: three images of each point.
    pub fn keys_per_step(&self) -> u64 {
        let points = 2 * u64::from(self.half) * u64::from(self.orbits) + 1;
        u64::from(self.lanes) * points * 3 * if self.signs { 2 } else { 1 }
    }
}

/// Which candidate a worker means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Spot {
    /// A key of a walk.
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
    /// Whether the lease is done: a walk never is.
    pub done: bool,
}

/// A parallel searcher. It is given points or counters, never secrets.
pub(crate) trait Worker: Send {
    /// How it numbers keys; none for salts.
    fn shape(&self) -> Option<Shape>;
    /// Starts over from here.
    fn start(&mut self, start: &Start) -> Result<(), Fault>;
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
    /// The card behind it, if it is one.
    fn card(&self) -> Option<Arc<dyn warpsmith_device::Device>> {
        None
    }
    /// The instruction set, if it is the processor.
    fn simd(&self) -> Option<Simd> {
        None
    }
    /// Whether it can do this search at all; if not, why.
    fn supports(&self, _search: &Search<'_>) -> Result<(), Fault> {
        Ok(())
    }
    /// Times the field by itself; an error if something comes out wrong.
    fn field(&self, op: Op, time: Duration) -> Result<FieldRate, Fault>;
    /// What this search takes of a card, and what its parts cost; none where that is not known.
    fn profile(&self, _search: &Search<'_>) -> Option<Result<Profile, Fault>> {
        None
    }
    /// How many scanners run on it side by side.
    fn scanners(&self) -> usize {
        self.workers()
    }
    /// A scanner that makes these forms of keys and shows those the sieve lets pass; if it cannot, why.
    fn scanner<'a>(
        &'a self,
        _forms: &'a [Form],
        _sieve: &'a AnySieve,
    ) -> Result<Box<dyn Scanner + 'a>, Fault> {
        Err("it cannot scan ranges".to_owned())
    }
    /// A worker for this search.
    fn worker<'a>(&'a self, search: &Search<'_>) -> Result<Box<dyn Worker + 'a>, Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Inline;
    use warpsmith_pattern::{Interval, Term};

    /// What is made of many patterns is made once, whatever the number of workers.
    #[test]
    fn workers_share_what_a_search_is_made_into() {
        let top = (0..1000).map(|i| Interval { first: i << 50, last: i << 50 }).collect();
        let filter = Filter { top, ..Filter::default() };
        let cpu = crate::cpu::Cpu::new(Simd::Portable, 3);
        let search = Search::new(&Recipe::X, &filter);
        let workers: Vec<_> = (0..3).map(|_| cpu.worker(&search).expect("a worker")).collect();
        assert!(search.sieve.get().is_some());
        drop(workers);
        let search = Search::new(&Recipe::Account, &filter);
        let workers: Vec<_> = (0..3).map(|_| cpu.worker(&search).expect("a worker")).collect();
        assert_eq!(Arc::strong_count(search.sought.get().expect("made")), 1 + workers.len());
    }

    /// Cards leave searches to others in which nearly everything passes and next to nothing matches; the processor
    /// does them.
    #[test]
    fn cards_do_not_suit_filters_that_pass_nearly_everything() {
        let everything = Filter { terms: vec![Term::ALL], ..Filter::default() };
        let first = |bits: u32| Filter {
            top: vec![Interval { first: 0, last: u64::MAX >> bits }],
            ..Filter::default()
        };
        let cpu = crate::cpu::Cpu::new(Simd::Portable, 1);
        let fits = |device: &dyn Backend, filter: &Filter, odds| {
            suits(device, &Search::new(&Recipe::Account, filter), odds)
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
