//! What every self-test is made of: a device, a start, and candidates of it that the host can compute.

use std::collections::BTreeMap;

use warpsmith_chain::{Digest, Recipe};
use warpsmith_curve::Affine;
use warpsmith_curve::walk::Place;
use warpsmith_pattern::{Filter, Options, Patterns, compile};

use crate::error::{Error, Result};
use crate::origins::{Maker, Origins};
use crate::recover::recompute;
use crate::space::{Lease, Root, Salts, Start, Subject};
use crate::worker::{Backend, Hit, Numbering, Program, Search, Spot, Worker, suits};

/// Steps walked: the first, one between and the last are planted.
const STEPS: u64 = 3;

/// Salts searched, and one more: no multiple of anything.
const SALTS: u64 = 1 << 17;

/// What hits lead back to.
enum Roots {
    /// The origins of the lanes and where these begin, once it is known how many there are.
    Keys {
        origins: Option<Origins>,
        points: Vec<Affine>,
    },
    Salts(Lease),
}

/// What came back from a search, and how often.
pub(super) type Seen = BTreeMap<Spot, (u32, Hit)>;

/// A device, a subject and a start whose candidates the host can compute.
pub(super) struct Probe<'p> {
    pub device: &'p dyn Backend,
    pub subject: Subject<'p>,
    pub recipe: Recipe,
    pub numbering: Option<Numbering>,
    roots: Roots,
    /// What is being tested, for messages.
    what: String,
}

impl<'p> Probe<'p> {
    /// A fresh start for this subject. Which places there are is not known before [`Probe::adopt`].
    pub fn new(device: &'p dyn Backend, subject: Subject<'p>, case: &str) -> Result<Self> {
        let target = subject.target();
        let variant = target.variant().map(|variant| format!("{variant} ")).unwrap_or_default();
        let what = format!("{} {variant}{case}", target.name());
        let recipe = subject.recipe();
        let fail = |what: String| Error::SelfTest { device: device.id(), what };
        let roots = match subject {
            Subject::Key(_) => Roots::Keys { origins: None, points: Vec::new() },
            Subject::Salt(target) => {
                let lease = Salts::new(target.salted().salt, 1)?.next();
                let lease = lease.ok_or_else(|| fail(format!("{what}: no candidates")))?;
                Roots::Salts(Lease { last: lease.last.min(SALTS), ..lease })
            }
        };
        Ok(Probe { device, subject, recipe, numbering: None, roots, what })
    }

    /// Takes on the places of the walk by which the device does such a search: many patterns may go another way than
    /// one. Returns whether it does it at all; nothing planted here is likely.
    pub fn adopt(&mut self, filter: &Filter) -> Result<bool> {
        if suits(self.device, &Search::new(&self.recipe, filter), 0.0).is_err() {
            return Ok(false);
        }
        self.numbering = self.worker(filter)?.numbering();
        if let (Some(numbering), Roots::Keys { origins, points }) = (&self.numbering, &mut self.roots)
            && points.len() != numbering.lanes as usize
        {
            let (drawn, first) = Maker::new(None).ledger(numbering.lanes as usize)?;
            (*origins, *points) = (Some(drawn), first);
        }
        Ok(true)
    }

    pub fn fail(&self, what: impl std::fmt::Display) -> Error {
        Error::SelfTest { device: self.device.id(), what: format!("{}: {what}", self.what) }
    }

    pub fn compile<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Result<Patterns> {
        let target = self.subject.target();
        compile(texts, target, &Options::default()).map_err(|e| self.fail(e))
    }

    pub fn filter(&self, patterns: &Patterns) -> Filter {
        patterns.filter(self.device.max_false(&self.recipe))
    }

    /// What the device runs by this filter.
    pub fn program(&self, filter: &Filter) -> Program {
        self.device.program(&Search::new(&self.recipe, filter))
    }

    /// Whether a candidate that was planted is among what came back, and no more than once.
    pub fn came_back_once(&self, seen: &Seen, spot: Spot) -> Result<()> {
        match seen.get(&spot) {
            Some((1, _)) => Ok(()),
            Some((times, _)) => Err(self.fail(format!("the candidate at {spot:?} came back {times} times"))),
            None => Err(self.fail(format!("the candidate at {spot:?} was missed"))),
        }
    }

    pub fn worker(&self, filter: &Filter) -> Result<Box<dyn Worker + 'p>> {
        self.device.worker(&Search::new(&self.recipe, filter)).map_err(|e| self.fail(e))
    }

    pub fn digest(&self, spot: Spot) -> Result<Digest> {
        let hit = Hit { spot, digest: None, score: 0 };
        let source = match (&self.roots, spot) {
            (Roots::Keys { origins: Some(origins), .. }, Spot::Key(place)) => {
                origins.of(place.lane).map(Root::Origin)
            }
            (Roots::Salts(lease), _) => Some(Root::Lease(*lease)),
            (Roots::Keys { .. }, _) => None,
        };
        let source = source.ok_or_else(|| self.fail(format!("there is no lane of {spot:?}")))?;
        recompute(&source, self.numbering.as_ref(), &hit, self.subject)
            .map(|(digest, _)| digest)
            .map_err(|e| self.fail(e))
    }

    pub fn text(&self, spot: Spot) -> Result<String> {
        Ok(self.subject.target().encode(&self.digest(spot)?))
    }

    /// All spots worth planting.
    pub fn spots(&self) -> Vec<Spot> {
        match (&self.numbering, &self.roots) {
            (Some(numbering), _) => places(numbering).into_iter().map(Spot::Key).collect(),
            (None, Roots::Salts(lease)) => counters(lease.last),
            (None, Roots::Keys { .. }) => Vec::new(),
        }
    }

    /// The last spot of all, and how many candidates are searched.
    pub fn extent(&self) -> (Spot, f64) {
        match (&self.numbering, &self.roots) {
            (Some(numbering), _) => {
                let (lane, step, index) = (numbering.lanes - 1, STEPS - 1, numbering.half);
                let (orbit, negate) = (numbering.orbits - 1, numbering.signs);
                let last = Place { lane, step, index, minus: true, orbit, image: 2, negate };
                (Spot::Key(last), (numbering.keys_per_step() * STEPS) as f64)
            }
            (None, Roots::Salts(lease)) => (Spot::Salt(lease.last), (lease.last - lease.first + 1) as f64),
            (None, Roots::Keys { .. }) => unreachable!("a walk has a numbering"),
        }
    }

    /// Candidates to plant, at most so many: taken from the whole list of places, first and last among them.
    pub fn plants(&self, limit: usize) -> Vec<Spot> {
        let spots = self.spots();
        let stride = (spots.len() - 1).checked_div(limit.saturating_sub(1)).unwrap_or(1).max(1);
        spots.into_iter().step_by(stride).take(limit).collect()
    }

    /// Searches from the start for some steps, or all salts of the lease, and returns what came back, how often.
    pub fn search(&self, filter: &Filter) -> Result<Seen> {
        let mut worker = self.worker(filter)?;
        let start = match &self.roots {
            Roots::Keys { points, .. } => Start::Points(points),
            Roots::Salts(lease) => Start::Salts(*lease),
        };
        worker.start(start).map_err(|e| self.fail(e))?;
        let (mut seen, mut tried, mut steps) = (BTreeMap::new(), 0, 0);
        loop {
            let batch = worker.step().map_err(|e| self.fail(e))?;
            tried += batch.tried;
            for hit in batch.hits {
                seen.entry(hit.spot).or_insert((0, hit)).0 += 1;
            }
            steps += 1;
            if batch.done || (self.numbering.is_some() && steps == STEPS) {
                break;
            }
        }
        worker.check().map_err(|e| self.fail(e))?;
        // A meeting of points on the way (it never happens) may cost a few keys, and a walk has no such tally.
        if let Roots::Salts(lease) = self.roots
            && tried != lease.last - lease.first + 1
        {
            return Err(self.fail(format!("{tried} salts were tested instead of {}", lease.last + 1)));
        }
        Ok(seen)
    }
}

/// The places worth planting: first, second, middle and last of everything that has an edge.
pub(super) fn places(numbering: &Numbering) -> Vec<Place> {
    let indices = [0, 1, 2, numbering.half / 2, numbering.half - 1, numbering.half];
    let lanes: Vec<u32> = match numbering.lanes {
        0..=16 => (0..numbering.lanes).collect(),
        n => vec![0, 1, 31, 32, 33, n / 2 - 1, n / 2, n - 33, n - 32, n - 2, n - 1],
    };
    let mut kinds = Vec::new();
    for negate in [false, true].into_iter().take(if numbering.signs { 2 } else { 1 }) {
        for image in 0..3 {
            for orbit in 0..numbering.orbits {
                kinds.extend([false, true].map(|minus| (minus, orbit, image, negate)));
            }
        }
    }
    let mut places = Vec::new();
    // Every lane and step occurs with every kind and index over the list, without the full product: the counters
    // run at coprime paces.
    for n in 0..indices.len() * kinds.len() {
        let index = indices[n % indices.len()];
        let (minus, orbit, image, negate) = kinds[n / indices.len()];
        let (lane, step) = (lanes[n % lanes.len()], (n as u64 / 5) % STEPS);
        let (minus, orbit) = if index == 0 { (false, 0) } else { (minus, orbit) };
        places.push(Place { lane, step, index, minus, orbit, image, negate });
    }
    places.sort();
    places.dedup();
    places
}

/// The counters worth planting: around every carry into another byte, and both ends.
fn counters(last: u64) -> Vec<Spot> {
    let edges = [0, 1 << 8, 1 << 9, 1 << 12, 1 << 15, 1 << 16, (1 << 16) + (1 << 8), last / 2, last];
    let around = |edge: u64| [edge.saturating_sub(1), edge, edge + 1];
    let mut all: Vec<u64> = edges.into_iter().flat_map(around).filter(|&c| c <= last).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(Spot::Salt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_cover_every_index_sign_orbit_and_image() {
        for (lanes, orbits, signs) in [(1, 3, false), (8, 1, true), (4096, 3, false), (4096, 1, true)] {
            let numbering = Numbering { half: 512, lanes, orbits, signs };
            let places = places(&numbering);
            for index in [1, 2, 256, 511, 512] {
                for minus in [false, true] {
                    for orbit in 0..orbits {
                        for image in 0..3 {
                            let found = places.iter().any(|p| {
                                (p.index, p.minus, p.orbit, p.image) == (index, minus, orbit, image)
                            });
                            assert!(found, "{index} {minus} {orbit} {image}");
                        }
                    }
                }
            }
            assert!(places.iter().any(|p| p.negate) == signs);
            for lane in [0, lanes - 1] {
                assert!(places.iter().any(|p| p.lane == lane));
            }
            for step in 0..STEPS {
                assert!(places.iter().any(|p| p.step == step));
            }
        }
    }
}
