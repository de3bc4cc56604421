//! Finding the shape in which a card runs each kind of program fastest, and having it remembered.

use std::fmt::Display;
use std::sync::Arc;

use warpsmith_chain::{Form, KeyType, Recipe, Target};
use warpsmith_device::{CardOptions, Device};
use warpsmith_kernel::points::Digest;
use warpsmith_pattern::{Options, Patterns, compile};

use super::scan::{ScanOf, bench_scan};
use super::{BenchOptions, bench};
use crate::devices::Devices;
use crate::error::Result;
use crate::gpu::shapes::{self, Kind};

use crate::gpu::{Gpu, LaunchShape};
use crate::samples::Sample;
use crate::worker::Runner;

/// What a card is tuned for.
///
/// See [`tune`].
#[derive(Clone, Copy)]
pub enum TuneFor<'a> {
    /// This search.
    Search(&'a Sample),
    /// A scan for addresses of these types.
    Scan(&'a [&'static KeyType]),
}

/// One shape tried.
///
/// See [`tune`].
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The device.
    pub device: String,
    /// Which program of the search.
    pub program: &'static str,
    /// The shape, as it is remembered.
    pub shape: String,
    /// Candidates a second; none if it did not run, with the reason.
    pub rate: std::result::Result<f64, String>,
    /// Whether it is among the last few, which are timed in turn.
    pub is_final: bool,
    /// Whether it is the best so far.
    pub best: bool,
    /// Which of how many of its program it is, counted from 1.
    pub number: (usize, usize),
}

/// Seconds a shape runs: half of one until its launches have their length, then the time that counts.
const SECONDS: f64 = 1.6;

/// Of the finalists: how many at most, how near the best they came, and how often each is timed again, in turn.
const FINALISTS: usize = 3;
const NEAR: f64 = 0.97;
const ROUNDS: usize = 3;

/// Of sets of prefixes: as many as fit the smaller bitmap, and more; each so rare that next to nothing is met. Of other characters
/// than the first: so many.
const HUNDREDS: usize = 256;
const THOUSANDS: usize = 10_000;
const RARE_BITS: usize = 54;
const SUFFIX: usize = 6;

/// Tries shapes on every card among the devices, for each program of a search by itself, and remembers the best. Those near the
/// best are timed again in turn, so that what a card does as it warms up decides nothing. Programs in `done` were tuned before and
/// are passed over.
///
/// ```
/// use warpsmith_engine::{Devices, TuneFor, samples, tune};
///
/// // Takes a minute per card, and nothing where there is only the processor.
/// let npub = samples().into_iter().find(|sample| sample.name == "npub").expect("it is there");
/// let report = &mut |tried: &warpsmith_engine::Tuned| println!("{} {}: {:?}", tried.device, tried.shape, tried.rate);
/// tune(&Devices::cpu()?, TuneFor::Search(&npub), &mut Default::default(), report)?;
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn tune(
    devices: &Devices,
    what: TuneFor<'_>,
    done: &mut TunedPrograms,
    report: &mut dyn FnMut(&Tuned),
) -> Result<()> {
    for device in &devices.list {
        let Runner::Card(device) = device.runner() else { continue };
        Card { device, options: devices.cards, what }.tune(done, report);
    }
    Ok(())
}

/// Programs that were tuned, so that searches that share one do not tune it again.
///
/// See [`tune`].
#[derive(Default)]
pub struct TunedPrograms(Vec<(String, Option<Kind>)>);

struct Card<'a> {
    device: Arc<dyn Device>,
    options: CardOptions,
    what: TuneFor<'a>,
}

impl Card<'_> {
    fn tune(&self, done: &mut TunedPrograms, report: &mut dyn FnMut(&Tuned)) {
        let gpu = Gpu::new(Arc::clone(&self.device), self.options);
        let (kinds, is_orbit) = match self.what {
            TuneFor::Search(sample) => {
                let recipe = sample.subject.recipe();
                (gpu.kinds(&recipe), recipe == Recipe::Key(Form::X))
            }
            TuneFor::Scan(types) => {
                let forms: Vec<_> = types.iter().map(|known| known.form()).collect();
                (gpu.scan_kinds(&forms), false)
            }
        };
        // None is the orbit walk, from whose shape all others start.
        for program in is_orbit.then_some(None).into_iter().chain(kinds.into_iter().map(Some)) {
            let named = (self.device.info().id.clone(), program);
            if done.0.contains(&named) {
                continue;
            }
            done.0.push(named);
            self.program(program, report);
        }
    }

    /// Finds the best shape of one program.
    fn program(&self, program: Option<Kind>, report: &mut dyn FnMut(&Tuned)) {
        let device = self.device.as_ref();
        let base = Gpu::new(Arc::clone(&self.device), self.options).shape();
        match program {
            None => {
                let rate = |shape: &LaunchShape| {
                    self.rate(Gpu::with_shape(Arc::clone(&self.device), *shape, self.options), None)
                };
                let best = self.best("walk", &shapes::candidates(device), &rate, report);
                best.into_iter().for_each(|shape| shapes::remember(device, &shape));
            }
            Some(kind) => {
                let rate = |blocks: &Blocks| {
                    let gpu = Gpu::with_shape(Arc::clone(&self.device), base, self.options);
                    self.rate(gpu.with_blocks(kind, blocks.0), Some(kind))
                };
                let candidates: Vec<Blocks> = kind.candidates(device).into_iter().map(Blocks).collect();
                let best = self.best(kind.name(), &candidates, &rate, report);
                best.into_iter().for_each(|best| shapes::remember_blocks(device, &base, kind, best.0));
            }
        }
    }

    /// The fastest of some shapes: all once, then the best few in turn.
    fn best<S: Display + Copy>(
        &self,
        program: &'static str,
        shapes: &[S],
        rate: &dyn Fn(&S) -> std::result::Result<f64, String>,
        report: &mut dyn FnMut(&Tuned),
    ) -> Option<S> {
        let mut number = 0;
        let mut tell = |shape: &S, rate: std::result::Result<f64, String>, is_final, best| {
            number = shapes.len().min(number + 1);
            let (device, shape, number) =
                (self.device.info().id.clone(), shape.to_string(), (number, shapes.len()));
            report(&Tuned { device, program, shape, rate, is_final, best, number });
        };
        let mut found: Vec<(f64, S)> = Vec::new();
        for shape in shapes {
            let rate = rate(shape);
            let best = rate.as_ref().is_ok_and(|rate| found.iter().all(|(other, _)| rate > other));
            found.extend(rate.as_ref().ok().map(|rate| (*rate, *shape)));
            tell(shape, rate, false, best);
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let enough = found.first()?.0 * NEAR;
        found.retain(|(rate, _)| *rate >= enough);
        found.truncate(FINALISTS);
        if let [(_, shape)] = found[..] {
            return Some(shape);
        }
        let mut sums = vec![Ok(0.0); found.len()];
        for _ in 0..ROUNDS {
            for ((_, shape), sum) in found.iter().zip(&mut sums) {
                *sum = std::mem::replace(sum, Ok(0.0)).and_then(|sum| rate(shape).map(|rate| sum + rate));
            }
        }
        let mut best: Option<(f64, S)> = None;
        for ((_, shape), sum) in found.iter().zip(sums) {
            let mean = sum.map(|sum| sum / ROUNDS as f64);
            let is_best = mean.as_ref().is_ok_and(|mean| best.is_none_or(|(other, _)| *mean > other));
            if let (true, Ok(mean)) = (is_best, &mean) {
                best = Some((*mean, *shape));
            }
            tell(shape, mean, true, is_best);
        }
        best.map(|(_, shape)| shape)
    }

    /// The rate of the search or scan by a program in a shape.
    fn rate(&self, gpu: Gpu, kind: Option<Kind>) -> std::result::Result<f64, String> {
        let alone = Devices::of(vec![Arc::new(gpu)]);
        let rate = match self.what {
            TuneFor::Search(sample) => {
                let patterns = patterns_for(kind, sample.subject.target())?;
                let options = BenchOptions {
                    seconds: SECONDS,
                    baseline: false,
                    baseline_threads: 1,
                    patterns: patterns.as_ref(),
                    detail: false,
                };
                // The steady rate, from launch to launch; a card too slow for that is measured as a whole.
                bench(&alone, sample, &options)
                    .map(|lines| lines.iter().map(|line| line.steady_rate.unwrap_or(line.rate)).sum())
            }
            TuneFor::Scan(types) => bench_scan(&alone, ScanOf::Planted(types), SECONDS, false)
                .map(|lines| lines.iter().map(|line| line.rate).sum()),
        };
        rate.map_err(|error| error.to_string())
    }
}

/// Patterns that a search runs this program for; none where the standard one does.
fn patterns_for(kind: Option<Kind>, target: &dyn Target) -> std::result::Result<Option<Patterns>, String> {
    let count = match kind {
        Some(Kind::Set { near: true }) => HUNDREDS,
        Some(Kind::Set { near: false }) => THOUSANDS,
        Some(Kind::Walk(Digest::X) | Kind::Test(Digest::X)) => 1,
        _ => return Ok(None),
    };
    let text = || {
        let mut bytes = [0; 32];
        warpsmith_entropy::fill(&mut bytes).map_err(|error| error.to_string())?;
        let (encoding, text) = (target.encoding(), target.encode(&warpsmith_chain::Digest::new(&bytes)));
        let body = encoding.body(&text);
        Ok(match count {
            1 => format!("..{}", &body[body.len() - SUFFIX..]),
            _ => body[..encoding.symbols_for(RARE_BITS)].to_owned(),
        })
    };
    let texts = (0..count).map(|_| text()).collect::<std::result::Result<Vec<String>, String>>()?;
    compile(texts, target, &Options::default()).map(Some).map_err(|error| error.to_string())
}

/// Blocks a multiprocessor should hold, as they are remembered.
#[derive(Clone, Copy)]
struct Blocks(u32);

impl Display for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shapes::blocks_text(self.0))
    }
}
