//! Self-tests: candidates are planted where a search must pass, and every one must come back, once.
//!
//! The expected texts are computed by libsecp256k1 and the target's reference code; the device sees points or
//! counters and a filter, as in a real search.

use std::collections::BTreeMap;

use warpsmith_chain::{Digest, Encoding, Form, Recipe};
use warpsmith_curve::walk::Place;
use warpsmith_pattern::{Filter, Options, Patterns, Score, compile};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::recover::recompute;
use crate::samples::Sample;
use crate::space::{Lease, Source, Space, Start, Subject};
use crate::worker::{Backend, Hit, Search, Shape, Spot, Worker, suits};

/// What a self-test proved on one device.
#[derive(Clone, Debug)]
pub struct SelfTest {
    /// The device.
    pub device: String,
    /// The target.
    pub target: &'static str,
    /// The kind of pattern, or what is scored.
    pub case: String,
    /// Candidates planted and found; none where the device leaves such searches to others.
    pub planted: usize,
}

/// A kind of pattern, made from the text it shall find.
struct Case {
    name: &'static str,
    /// Plants in one search; the rest is searched one at a time.
    together: usize,
    /// Patterns beside those of the plants: a card has another program for thousands than for hundreds.
    others: usize,
    pattern: fn(&Cut<'_>) -> String,
}

/// A text without its head, and how it is cut so that nothing but the planted candidate matches: 48 bits at least.
struct Cut<'t> {
    body: &'t str,
    /// Characters that all texts begin with.
    fixed: usize,
    /// Characters of a start that is rare enough.
    start: usize,
    /// Whether letters may be written in lower case.
    any_case: bool,
}

impl<'t> Cut<'t> {
    fn new(encoding: &Encoding, text: &'t str) -> Self {
        let fixed = match encoding {
            Encoding::Linear(linear) => linear.start.len(),
            // The version.
            _ => 1,
        };
        // In base58 some starts of a length are up to one character more likely than others.
        Cut {
            body: encoding.body(text),
            fixed,
            start: encoding.symbols_for(54),
            any_case: encoding.checks_case(),
        }
    }

    fn start(&self) -> &'t str {
        &self.body[..self.start]
    }

    fn end(&self, length: usize) -> &'t str {
        &self.body[self.body.len() - length..]
    }
}

const CASES: [Case; 8] = [
    Case { name: "prefix", together: 1, others: 0, pattern: |cut| cut.start().to_owned() },
    Case { name: "many prefixes", together: usize::MAX, others: 0, pattern: |cut| cut.start().to_owned() },
    Case {
        name: "thousands of prefixes",
        together: usize::MAX,
        others: THOUSANDS,
        pattern: |cut| cut.start().to_owned(),
    },
    Case {
        name: "wildcard",
        together: 1,
        others: 0,
        pattern: |cut| {
            let (before, from) = cut.start().split_at(cut.fixed + 1);
            format!("{before}?{}", &from[1..])
        },
    },
    Case { name: "suffix", together: 1, others: 0, pattern: |cut| format!("..{}", cut.end(12)) },
    Case {
        name: "prefix and suffix",
        together: 1,
        others: 0,
        // Of base58 a card tests the start alone: two characters would flood it.
        pattern: |cut| format!("{}..{}", &cut.body[..cut.fixed + 4], cut.end(10)),
    },
    Case {
        name: "contains",
        together: 1,
        others: 0,
        pattern: |cut| format!("..{}..", &cut.body[cut.body.len() / 2..][..12]),
    },
    Case {
        name: "regex",
        together: 1,
        others: 0,
        pattern: |cut| {
            let (before, from) = cut.start().split_at(cut.fixed + 1);
            // A class of two characters that every alphabet has, or just one.
            let regex = format!("/^{before}[{}a].{}/", &from[..1], &from[2..]);
            if cut.any_case { regex.to_lowercase() } else { regex }
        },
    },
];
/// What is scored.
const SCORES: [Score; 3] = [Score::LeadingZeros, Score::Zeros, Score::Leading(7)];

const PREFIX: usize = 0;
const MANY: usize = 1;
const MORE: usize = 2;
const SUFFIX: usize = 4;

/// More than a card searches for with the bitmap of a small set.
const THOUSANDS: usize = 2000;

/// Steps walked: the first, one between and the last are planted.
const STEPS: u64 = 3;

/// Salts searched, and one more: no multiple of anything.
const SALTS: u64 = 1 << 17;

/// The places worth planting: first, second, middle and last of everything that has an edge.
fn places(shape: &Shape) -> Vec<Place> {
    let indices = [0, 1, 2, shape.half / 2, shape.half - 1, shape.half];
    let lanes: Vec<u32> = match shape.lanes {
        0..=16 => (0..shape.lanes).collect(),
        n => vec![0, 1, 31, 32, 33, n / 2 - 1, n / 2, n - 33, n - 32, n - 2, n - 1],
    };
    let mut kinds = Vec::new();
    for negate in [false, true].into_iter().take(if shape.signs { 2 } else { 1 }) {
        for image in 0..3 {
            for orbit in 0..shape.orbits {
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

/// Proves every kind of pattern of these targets on every device.
pub fn selftest(devices: &Devices, samples: &[Sample], report: &mut dyn FnMut(&SelfTest)) -> Result<()> {
    for device in &devices.list {
        for sample in samples {
            prove(device.as_ref(), sample, report)?;
        }
    }
    Ok(())
}

/// Proves every kind of pattern, and every score where there are scores, on one device.
pub(crate) fn prove(device: &dyn Backend, sample: &Sample, report: &mut dyn FnMut(&SelfTest)) -> Result<()> {
    let Sample { name: target, subject } = *sample;
    for case in &CASES {
        let planted = plant(device, subject, case, usize::MAX)?;
        report(&SelfTest { device: device.id(), target, case: case.name.to_owned(), planted });
    }
    if has_scores(subject) {
        for score in SCORES {
            let planted = best(device, subject, score)?;
            report(&SelfTest { device: device.id(), target, case: score.to_string(), planted });
        }
    }
    Ok(())
}

/// Whether digests are scored: scores count the zeros and digits of a text in hex.
fn has_scores(subject: Subject<'_>) -> bool {
    subject.target().encoding().checks_case()
}

/// The test at every start. A card is tested with the very program that will search: it compiles for a few ranges, for
/// a small set or a large one, for terms or for a score, and a search with one short prefix shows all of its lanes at
/// once.
pub(crate) fn short(device: &dyn Backend, subject: Subject<'_>, filter: &Filter) -> Result<()> {
    if let Some(score) = &filter.score {
        return best(device, subject, score.score).map(drop);
    }
    if !filter.terms.is_empty() {
        return plant(device, subject, &CASES[SUFFIX], 4).map(drop);
    }
    if device.card().is_none() {
        plant(device, subject, &CASES[PREFIX], 8)?;
        return plant(device, subject, &CASES[MANY], 128).map(drop);
    }
    let (others, case) = match filter.top.len() {
        few @ 1..=4 => (few - 1, None),
        0..=1024 => (16, Some(&CASES[MANY])),
        _ => (THOUSANDS, Some(&CASES[MORE])),
    };
    sample(device, subject, others)?;
    case.map_or(Ok(()), |case| plant(device, subject, case, 128).map(drop))
}

/// A device, a subject and a start whose candidates the host can compute.
struct Probe<'p> {
    device: &'p dyn Backend,
    subject: Subject<'p>,
    recipe: Recipe,
    shape: Option<Shape>,
    space: Space,
    source: Source,
    start: Start,
    /// What is being tested, for messages.
    what: String,
}

impl<'p> Probe<'p> {
    /// None where the device leaves such subjects to others.
    fn new(device: &'p dyn Backend, subject: Subject<'p>, case: &str) -> Result<Option<Self>> {
        let target = subject.target();
        let variant = target.variant().map(|variant| format!("{variant} ")).unwrap_or_default();
        let what = format!("{} {variant}{case}", target.name());
        let recipe = subject.recipe();
        let mut space = Space::new(subject, None, 1)?;
        let fail = |what: String| Error::SelfTest { device: device.id(), what };
        let (mut source, mut start) = space.next()?.ok_or_else(|| fail(format!("{what}: no candidates")))?;
        if let Start::Salts(lease) = start {
            let lease = Lease { last: lease.last.min(SALTS), ..lease };
            (source, start) = (Source::Lease(lease), Start::Salts(lease));
        }
        let mut probe = Probe { device, subject, recipe, shape: None, space, source, start, what };
        let nothing = probe.compile([subject.target().encoding().edge(false, 60)])?;
        let filter = probe.filter(&nothing);
        Ok(if probe.adopt(&filter)? { Some(probe) } else { None })
    }

    /// Takes on the places of the walk by which the device does such a search: many patterns may go another way than
    /// one. Returns whether it does it at all; nothing planted here is likely.
    fn adopt(&mut self, filter: &Filter) -> Result<bool> {
        if suits(self.device, &Search::new(&self.recipe, filter), 0.0).is_err() {
            return Ok(false);
        }
        self.shape = self.worker(filter)?.shape();
        Ok(true)
    }

    fn fail(&self, what: impl std::fmt::Display) -> Error {
        Error::SelfTest { device: self.device.id(), what: format!("{}: {what}", self.what) }
    }

    fn compile<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Result<Patterns> {
        let target = self.subject.target();
        compile(texts, target, &Options::default()).map_err(|e| self.fail(e))
    }

    fn filter(&self, patterns: &Patterns) -> Filter {
        patterns.filter(self.device.max_false(&self.recipe))
    }

    fn worker(&self, filter: &Filter) -> Result<Box<dyn Worker + 'p>> {
        self.device.worker(&Search::new(&self.recipe, filter)).map_err(|e| self.fail(e))
    }

    fn digest(&self, spot: Spot) -> Result<Digest> {
        let hit = Hit { spot, digest: None, score: 0 };
        recompute(&self.source, &self.space, self.shape.as_ref(), &hit, self.subject)
            .map(|(digest, _)| digest)
            .map_err(|e| self.fail(e))
    }

    fn text(&self, spot: Spot) -> Result<String> {
        Ok(self.subject.target().encode(&self.digest(spot)?))
    }

    fn pattern(&self, case: &Case, text: &str) -> String {
        (case.pattern)(&Cut::new(self.subject.target().encoding(), text))
    }

    /// All spots worth planting.
    fn spots(&self) -> Vec<Spot> {
        match (&self.shape, &self.start) {
            (Some(shape), _) => places(shape).into_iter().map(Spot::Key).collect(),
            (None, Start::Salts(lease)) => counters(lease.last),
            (None, Start::Point(_)) => Vec::new(),
        }
    }

    /// The last spot of all, and how many candidates are searched.
    fn extent(&self) -> (Spot, f64) {
        match (&self.shape, &self.start) {
            (Some(shape), _) => {
                let (lane, step, index) = (shape.lanes - 1, STEPS - 1, shape.half);
                let (orbit, negate) = (shape.orbits - 1, shape.signs);
                let last = Place { lane, step, index, minus: true, orbit, image: 2, negate };
                (Spot::Key(last), (shape.keys_per_step() * STEPS) as f64)
            }
            (None, Start::Salts(lease)) => (Spot::Salt(lease.last), (lease.last - lease.first + 1) as f64),
            (None, Start::Point(_)) => unreachable!("a walk has a shape"),
        }
    }

    /// Candidates to plant, at most so many, with their texts: taken from the whole list of places, first and last among
    /// them.
    fn plants(&self, limit: usize) -> Result<Vec<(Spot, String)>> {
        let spots = self.spots();
        let stride = (spots.len() - 1).checked_div(limit.saturating_sub(1)).unwrap_or(1).max(1);
        spots.into_iter().step_by(stride).take(limit).map(|spot| Ok((spot, self.text(spot)?))).collect()
    }

    /// Patterns of digests out of the air: next to nothing has them.
    fn elsewhere(&self, count: usize, case: &Case) -> Result<Vec<String>> {
        let target = self.subject.target();
        let length = self.digest(self.extent().0)?.as_bytes().len();
        let text = |_| {
            let mut bytes = [0; Digest::MAX];
            warpsmith_entropy::fill(&mut bytes).map_err(Error::Randomness)?;
            Ok(self.pattern(case, &target.encode(&Digest::new(&bytes[..length]))))
        };
        (0..count).map(text).collect()
    }

    /// Searches from the start for some steps, or all salts of the lease, and returns what came back, how often.
    fn search(&self, filter: &Filter) -> Result<BTreeMap<Spot, (u32, Hit)>> {
        let mut worker = self.worker(filter)?;
        worker.start(&self.start).map_err(|e| self.fail(e))?;
        let (mut seen, mut tried, mut steps) = (BTreeMap::new(), 0, 0);
        loop {
            let batch = worker.step().map_err(|e| self.fail(e))?;
            tried += batch.tried;
            for hit in batch.hits {
                seen.entry(hit.spot).or_insert((0, hit)).0 += 1;
            }
            steps += 1;
            if batch.done || (self.shape.is_some() && steps == STEPS) {
                break;
            }
        }
        worker.check().map_err(|e| self.fail(e))?;
        // A meeting of points on the way (it never happens) may cost a few keys, and a walk has no such tally.
        if let Start::Salts(lease) = self.start
            && tried != lease.last - lease.first + 1
        {
            return Err(self.fail(format!("{tried} salts were tested instead of {}", lease.last + 1)));
        }
        Ok(seen)
    }
}

/// Searches for prefixes so short that many candidates have them: every hit is recomputed, none may come twice, their
/// number must fit the number of candidates, every sign, orbit and image must occur, and a planted one is among them.
fn sample(device: &dyn Backend, subject: Subject<'_>, others: usize) -> Result<()> {
    let Some(mut probe) = Probe::new(device, subject, "sample")? else { return Ok(()) };
    let encoding = subject.target().encoding();
    // As many patterns as it takes for the job's program; all but the one that is planted match next to nothing.
    let mut others = probe.elsewhere(others + 1, &CASES[PREFIX])?;
    let filter = probe.filter(&probe.compile(&others)?);
    if !probe.adopt(&filter)? {
        return Ok(());
    }
    others.pop();
    // The last candidate of all, and some hundred others that look like it.
    let (planted, candidates) = probe.extent();
    let text = probe.text(planted)?;
    let wanted = encoding.prefix(encoding.body(&text), (candidates / 64.0).log2());
    let set = probe.compile(std::iter::once(wanted.to_owned()).chain(others))?;
    let seen = probe.search(&probe.filter(&set))?;
    if !seen.contains_key(&planted) {
        return Err(probe.fail(format!("the candidate at {planted:?} was missed")));
    }
    let expected = candidates * set.odds();
    if (seen.len() as f64 - expected).abs() > 6.0 * expected.sqrt() + 6.0 {
        return Err(probe.fail(format!("{} candidates found where {expected:.0} were expected", seen.len())));
    }
    let mut kinds = std::collections::BTreeSet::new();
    for (spot, (times, _)) in &seen {
        if *times > 1 {
            return Err(probe.fail(format!("the candidate at {spot:?} came back {times} times")));
        }
        if set.find(&probe.text(*spot)?).is_none() {
            return Err(probe.fail(format!("the candidate at {spot:?} is not what was searched for")));
        }
        if let Spot::Key(place) = spot
            && place.index > 0
        {
            kinds.insert((place.image, place.orbit, place.minus, place.negate));
        }
    }
    // With 500 keys the chance that one of eighteen kinds is absent is below 10^-11.
    let all = probe.shape.map_or(0, |s| 6 * usize::from(s.orbits) * if s.signs { 2 } else { 1 });
    if expected > 500.0 && kinds.len() < all {
        return Err(probe.fail("a sign, orbit or image never occurs"));
    }
    Ok(())
}

/// Plants candidates and searches for them; returns how many came back, which is all or an error.
fn plant(device: &dyn Backend, subject: Subject<'_>, case: &Case, limit: usize) -> Result<usize> {
    let Some(mut probe) = Probe::new(device, subject, case.name)? else { return Ok(0) };
    let others = probe.elsewhere(case.others, case)?;
    // A kind of pattern the device leaves to others is not its failure; `selftest` reports nothing planted.
    let plants = probe.plants(limit)?;
    let first = plants.iter().take(case.together).map(|(_, text)| probe.pattern(case, text));
    let filter = probe.filter(&probe.compile(first.chain(others.iter().cloned()))?);
    if !probe.adopt(&filter)? {
        return Ok(0);
    }
    let mut plants = probe.plants(limit)?;
    // On a card each search takes memory anew, and hashes take their time; a spread of the places is enough for what is
    // searched one by one, since all of them are searched together as well.
    let costly = device.card().is_some() || probe.recipe != Recipe::Key(Form::X);
    if case.together == 1 && limit == usize::MAX && costly {
        plants = plants.into_iter().step_by(7).collect();
    }
    for chunk in plants.chunks(case.together.min(plants.len())) {
        let wanted = probe
            .compile(chunk.iter().map(|(_, text)| probe.pattern(case, text)).chain(others.iter().cloned()))?;
        let seen = probe.search(&probe.filter(&wanted))?;
        for (spot, _) in chunk {
            match seen.get(spot) {
                Some((1, _)) => {}
                Some((times, _)) => {
                    return Err(probe.fail(format!("the candidate at {spot:?} came back {times} times")));
                }
                None => return Err(probe.fail(format!("the candidate at {spot:?} was missed"))),
            }
        }
    }
    Ok(plants.len())
}

/// Searches for the best score: what comes back must score what the device says, and as much as the best of the
/// candidates the host looks at. Returns how many those are.
fn best(device: &dyn Backend, subject: Subject<'_>, score: Score) -> Result<usize> {
    let Some(mut probe) = Probe::new(device, subject, &score.to_string())? else { return Ok(0) };
    let filter = Filter::scored(score, 1);
    if !probe.adopt(&filter)? {
        return Ok(0);
    }
    let spots = probe.spots();
    let mut known = 0;
    for spot in &spots {
        known = known.max(score.of(&probe.digest(*spot)?));
    }
    let seen = probe.search(&filter)?;
    let mut found = 0;
    for (spot, (times, hit)) in &seen {
        let true_score = score.of(&probe.digest(*spot)?);
        if true_score != hit.score || *times != 1 {
            let told = hit.score;
            return Err(probe.fail(format!("{spot:?} scores {true_score}, not {told} ({times} times)")));
        }
        found = found.max(true_score);
    }
    let (_, candidates) = probe.extent();
    // A score that is all but sure among so many candidates must have been met.
    let sure = (1..=score.max()).take_while(|&s| score.odds(s) * candidates > 40.0).last().unwrap_or(0);
    if found < known.max(sure) {
        return Err(probe.fail(format!("a score of {} was missed; the best was {found}", known.max(sure))));
    }
    Ok(spots.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::Selector;
    use crate::samples::samples;
    use crate::simd::Simd;

    #[test]
    fn every_instruction_set_proves_every_target_and_kind_of_pattern() {
        for simd in Simd::ALL {
            if !simd.is_available() {
                eprintln!("SKIPPED: this machine has no {simd}");
                continue;
            }
            let devices = Devices::open(&[Selector::Cpu(Some(simd))], Some(1)).expect("available");
            if simd == Simd::detect() {
                let mut cases = 0;
                selftest(&devices, &samples(), &mut |test| {
                    assert!(test.planted >= 3, "{test:?}");
                    cases += 1;
                })
                .expect("the processor computes rightly");
                let scored = samples().iter().filter(|sample| has_scores(sample.subject)).count();
                assert_eq!(cases, CASES.len() * samples().len() + SCORES.len() * scored);
                continue;
            }
            // The slower ones plant fewer of what is searched one by one, or this would take minutes.
            for Sample { name, subject } in samples() {
                for case in &CASES {
                    let limit = if case.together == 1 { 3 } else { usize::MAX };
                    let planted = plant(devices.list[0].as_ref(), subject, case, limit).expect("found");
                    assert!(planted >= 3, "{simd} {name} {}", case.name);
                }
            }
        }
    }

    #[test]
    fn places_cover_every_index_sign_orbit_and_image() {
        for (lanes, orbits, signs) in [(1, 3, false), (8, 1, true), (4096, 3, false), (4096, 1, true)] {
            let shape = Shape { half: 512, lanes, stride: 1, orbits, signs };
            let places = places(&shape);
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
