//! Self-tests: candidates are planted where a search must pass, and every one must come back, once.
//!
//! Here: every kind of pattern and score, on demand. `program` proves what is about to search, `probe` is what both are made
//! of.
//!
//! The expected texts are computed by libsecp256k1 and the target's reference code; the device sees points or
//! counters and a filter, as in a real search.

mod probe;
mod program;
mod side_by_side;

use warpsmith_chain::{Digest, Encoding, Form, Recipe};
use warpsmith_pattern::{Filter, Part, Ranking, SCORES, Score};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::samples::Sample;
use crate::space::Subject;
use crate::worker::{Backend, Spot};
use probe::Probe;
pub(crate) use program::prove_program;
pub(crate) use side_by_side::side_by_side;

/// What a self-test proved on one device.
///
/// See [`selftest`](selftest()).
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

static CASES: [Case; 8] = [
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

/// The names of the cases that [`selftest`] goes through for every target; targets with scores have some besides.
///
/// ```
/// use warpsmith_engine::selftest_cases;
///
/// assert!(selftest_cases().any(|case| case == "suffix"));
/// ```
pub fn selftest_cases() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// More than a card searches for with the bitmap of a small set: a test below holds it against the programs there are.
const THOUSANDS: usize = 2000;

/// Searches that are proved at a time at most: twelve have points of 7 GB each on the largest cards.
const AT_A_TIME: u64 = 12;

/// Proves every kind of pattern of these targets on every device.
///
/// ```
/// use warpsmith_engine::{Devices, samples, selftest};
///
/// let npub: Vec<_> = samples().into_iter().filter(|sample| sample.name == "npub").collect();
/// selftest(&Devices::cpu()?, &npub, &mut |test| {
///     println!("{} {} {}: {} planted and found", test.device, test.target, test.case, test.planted);
/// })?;
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn selftest(devices: &Devices, samples: &[Sample], report: &mut dyn FnMut(&SelfTest)) -> Result<()> {
    let mut all: Vec<(&Sample, usize, Trial)> = Vec::new();
    for sample in samples {
        all.extend(trials(sample).into_iter().enumerate().map(|(at, trial)| (sample, at, trial)));
    }
    for device in &devices.list {
        // On a card several run at a time: of different targets, so that they do not wait for, or compile, the same programs.
        if device.is_card() {
            all.sort_by_key(|(_, at, _)| *at);
        }
        side_by_side(
            device.as_ref(),
            AT_A_TIME,
            &all,
            |(sample, _, trial), report| prove_one(device.as_ref(), sample, trial, report),
            report,
        )?;
    }
    Ok(())
}

/// Something to prove of a target.
enum Trial {
    /// A kind of pattern.
    Case(&'static Case),
    /// The best by this score.
    Best(Score),
}

/// All that is to be proved of a target: every kind of pattern, and every score where there are scores.
fn trials(sample: &Sample) -> Vec<Trial> {
    let scores = scores().into_iter().filter(|_| has_scores(sample.subject)).map(Trial::Best);
    CASES.iter().map(Trial::Case).chain(scores).collect()
}

/// Scores that between them count all that can be counted: those that devices have a program of their own for, and the others as one sum.
fn scores() -> Vec<Score> {
    let (own, others) = SCORES.split_at(3);
    let parts = others.iter().zip(1..).map(|(kind, weight)| Part { weight, feature: kind.feature });
    let sum = Score::sum(parts.collect()).expect("eight parts of small weights");
    own.iter().map(|kind| Score::from(kind.feature)).chain([sum]).collect()
}

fn prove_one(
    device: &dyn Backend,
    sample: &Sample,
    trial: &Trial,
    report: &mut dyn FnMut(&SelfTest),
) -> Result<()> {
    let Sample { name: target, subject } = *sample;
    let (case, planted) = match trial {
        Trial::Case(case) => (case.name.to_owned(), plant(device, subject, case, usize::MAX)?),
        Trial::Best(score) if score.feature().is_some() => (score.to_string(), best(device, subject, score)?),
        Trial::Best(score) => ("all other scores".to_owned(), best(device, subject, score)?),
    };
    report(&SelfTest { device: device.id(), target, case, planted });
    Ok(())
}

/// Proves all of a target on one device.
#[cfg(test)]
pub(crate) fn prove(device: &dyn Backend, sample: &Sample, report: &mut dyn FnMut(&SelfTest)) -> Result<()> {
    trials(sample).iter().try_for_each(|trial| prove_one(device, sample, trial, report))
}

/// Whether digests are scored: scores count the zeros and digits of a text in hex.
fn has_scores(subject: Subject<'_>) -> bool {
    subject.target().encoding().checks_case()
}

impl Probe<'_> {
    fn pattern(&self, case: &Case, text: &str) -> String {
        (case.pattern)(&Cut::new(self.subject.target().encoding(), text))
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
}

/// Plants candidates and searches for them; returns how many came back, which is all or an error.
fn plant(device: &dyn Backend, subject: Subject<'_>, case: &Case, limit: usize) -> Result<usize> {
    let mut probe = Probe::new(device, subject, case.name)?;
    // A prefix that next to nothing has, for a look at the places of an ordinary walk.
    let nothing = probe.compile([subject.target().encoding().edge(false, 60)])?;
    if !probe.adopt(&probe.filter(&nothing))? {
        return Ok(0);
    }
    let others = probe.elsewhere(case.others, case)?;
    // A kind of pattern the device leaves to others is not its failure; `selftest` reports nothing planted.
    let texts = |probe: &Probe<'_>| -> Result<Vec<(Spot, String)>> {
        probe.plants(limit).into_iter().map(|spot| Ok((spot, probe.text(spot)?))).collect()
    };
    let plants = texts(&probe)?;
    let first = plants.iter().take(case.together).map(|(_, text)| probe.pattern(case, text));
    let filter = probe.filter(&probe.compile(first.chain(others.iter().cloned()))?);
    if !probe.adopt(&filter)? {
        return Ok(0);
    }
    let mut plants = texts(&probe)?;
    // All places are searched together as well, so a spread of them, ends and all, is enough for what is searched one by one: on a
    // card each search hashes all that its lanes have, of taproot for half a second.
    let is_hashed = probe.recipe != Recipe::Key(Form::X);
    let spread = match (device.is_card(), is_hashed) {
        (true, true) => 5,
        (true, false) | (false, true) => plants.len().div_ceil(7),
        (false, false) => plants.len(),
    };
    if case.together == 1 && limit == usize::MAX {
        let every = (plants.len() - 1) as f64 / (spread.max(2) - 1) as f64;
        plants = (0..spread).map(|at| plants[(at as f64 * every).round() as usize].clone()).collect();
    }
    for chunk in plants.chunks(case.together.min(plants.len())) {
        let wanted = probe
            .compile(chunk.iter().map(|(_, text)| probe.pattern(case, text)).chain(others.iter().cloned()))?;
        let seen = probe.search(&probe.filter(&wanted))?;
        for (spot, _) in chunk {
            probe.came_back_once(&seen, *spot)?;
        }
    }
    Ok(plants.len())
}

/// Searches for the best score: what comes back must score what the device says, and as much as the best of the
/// candidates the host looks at. Returns how many those are.
fn best(device: &dyn Backend, subject: Subject<'_>, score: &Score) -> Result<usize> {
    let mut probe = Probe::new(device, subject, &score.to_string())?;
    let filter = Filter::scored(score.clone(), 1);
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
    let ranking = Ranking::new(score.clone());
    let sure = (1..=score.max()).take_while(|&s| ranking.odds(s) * candidates > 40.0).last().unwrap_or(0);
    if found < known.max(sure) {
        return Err(probe.fail(format!("a score of {} was missed; the best was {found}", known.max(sure))));
    }
    Ok(spots.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::distinct_samples;
    use crate::simd;
    use crate::worker::{Numbering, Program, Search};
    use warpsmith_device::Selector;

    #[test]
    fn every_instruction_set_proves_every_target_and_kind_of_pattern() {
        for simd in simd::SETS {
            if !simd.is_available() {
                eprintln!("SKIPPED: this machine has no {simd}");
                continue;
            }
            let devices = Devices::open(&[Selector::Cpu(Some(simd))], Some(1)).expect("available");
            if simd == simd::detect() {
                let mut cases = 0;
                selftest(&devices, &distinct_samples(), &mut |test| {
                    assert!(test.planted >= 3, "{test:?}");
                    cases += 1;
                })
                .expect("the processor computes rightly");
                let scored = distinct_samples().iter().filter(|sample| has_scores(sample.subject)).count();
                assert_eq!(cases, CASES.len() * distinct_samples().len() + scores().len() * scored);
                continue;
            }
            // The slower ones plant fewer of what is searched one by one, or this would take minutes.
            for Sample { name, subject } in distinct_samples() {
                for case in &CASES {
                    let limit = if case.together == 1 { 3 } else { usize::MAX };
                    let planted = plant(devices.list[0].as_ref(), subject, case, limit).expect("found");
                    assert!(planted >= 3, "{simd} {name} {}", case.name);
                }
            }
        }
    }

    /// Whatever program many patterns select on a card, some case above selects it too.
    #[test]
    fn cases_run_every_program_of_many_patterns_that_a_card_has() {
        let card = crate::gpu::tests::described();
        let numbering = Numbering { half: 256, lanes: 4096, orbits: 3, signs: false };
        let planted = probe::places(&numbering).len();
        for recipe in [Form::X, Form::Account].map(Recipe::Key) {
            let program = |count: usize| {
                let top = program::ranges(count).expect("random");
                card.program(&Search::new(&recipe, &Filter { top, ..Filter::default() }))
            };
            let run: Vec<Program> = CASES
                .iter()
                .filter(|case| case.together > 1)
                .map(|case| program(planted + case.others))
                .chain([program(1)])
                .collect();
            for count in [1, 5, 6, 100, 1_000, 1_024, 1_025, 3_000, 5_000, 20_000, 100_000] {
                assert!(run.contains(&program(count)), "no case runs what {count} patterns of {recipe:?} do");
            }
        }
    }
}
