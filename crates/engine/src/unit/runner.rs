//! Units on one device: proved once, then unit after unit, each exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use warpsmith_chain::{Digest, Recipe};
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Scalar};
use warpsmith_pattern::{Filter, Interval};

use super::{KeyUnit, SaltUnit, Unit, check_spots};
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origin::affine;
use crate::search::{Show, Wanted};
use crate::selftest::prove_program;
use crate::space::{Lease, Start, Subject};
use crate::worker::batch_add::{add_pairs, multiples};
use crate::worker::{Backend, Fault, Numbering, Search, Spot, Worker, suits};

/// How a device cuts keys: what a unit for it should look like.
///
/// See [`UnitRunner::outfit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outfit {
    /// Table entries of a group; 0 for salts.
    pub half: u32,
    /// Powers of lambda on an entry; 0 for salts.
    pub orbits: u8,
    /// Whether a key and its negative are two candidates.
    pub signs: bool,
    /// Groups, or salts, that are done side by side: a unit had better be a multiple of it.
    pub grain: u64,
}

/// What a unit came to.
///
/// See [`UnitRunner::run`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Spots whose digest begins with as many zero bits as were asked for, in rising order.
    pub shares: Vec<u64>,
    /// Spots of what is wanted, in rising order; at most [`UnitRunner::MOST_MATCHES`].
    pub matches: Vec<u64>,
}

/// One device that does units of one search.
///
/// ```
/// use std::sync::atomic::{AtomicBool, AtomicU64};
/// use warpsmith_chain::nostr::Npub;
/// use warpsmith_engine::{Devices, KeyUnit, Secret, Subject, Unit, UnitRunner, Wanted};
/// use warpsmith_pattern::{Options, compile};
///
/// let patterns = compile(["qq"], &Npub, &Options::default())?;
/// let devices = Devices::cpu()?;
/// let mut runner = UnitRunner::new(&devices, Subject::Key(&Npub), Wanted::Patterns(&patterns))?;
/// let outfit = runner.outfit();
/// let point = Secret::random()?.public_key();
/// let unit = KeyUnit { point, half: outfit.half, orbits: outfit.orbits, signs: outfit.signs, steps: outfit.grain };
/// let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
/// let covered = runner.run(&Unit::Keys(unit), 8, 0, &stop, &tried)?.expect("nobody stopped it");
/// assert!(!covered.shares.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnitRunner<'a> {
    device: &'a Arc<dyn Backend>,
    subject: Subject<'a>,
    wanted: Wanted<'a>,
    recipe: Recipe,
    outfit: Outfit,
    /// Workers of the last unit, if the next may have them too.
    ready: Option<Ready<'a>>,
}

struct Ready<'a> {
    bits: u32,
    beat: u32,
    workers: Vec<Box<dyn Worker + 'a>>,
}

/// A place of a unit on one of its workers.
type Told = Vec<Spot>;

/// Places that a worker collects before those that are neither shares nor matches are dropped: some ten megabytes.
const MAX_UNSORTED: usize = if cfg!(test) { 1 << 10 } else { 1 << 18 };

impl<'a> UnitRunner<'a> {
    /// Matches that are told of a unit. One is all that may be used of it, since keys of one unit are related.
    pub const MOST_MATCHES: usize = 64;

    /// The first of these devices, if it can do the search and has proved itself. An error says why it cannot.
    pub fn new(devices: &'a Devices, subject: Subject<'a>, wanted: Wanted<'a>) -> Result<UnitRunner<'a>> {
        let device = devices.list.first().ok_or_else(|| Error::NoDevice("none was selected".to_owned()))?;
        let recipe = subject.recipe();
        let unable = |why: Fault| Error::NoDevice(format!("{}: {why}", device.id()));
        let plain = filter(wanted, device.max_false(&recipe), 0).map_err(unable)?;
        suits(device.as_ref(), &Search::new(&recipe, &plain), wanted.odds(0)).map_err(unable)?;
        let whole = with_shares(plain, 32);
        let search = Search::new(&recipe, &whole);
        device.supports(&search).map_err(unable)?;
        prove_program(device.as_ref(), subject, &search)?;
        let worker = device.worker(&search).map_err(unable)?;
        let workers = device.workers() as u64;
        let outfit = match worker.numbering() {
            Some(Numbering { half, lanes, orbits, signs }) => {
                Outfit { half, orbits, signs, grain: u64::from(lanes) * workers }
            }
            None => Outfit { half: 0, orbits: 0, signs: false, grain: 4096 * workers },
        };
        drop(worker);
        Ok(UnitRunner { device, subject, wanted, recipe, outfit, ready: None })
    }

    /// What a unit for this device should look like.
    pub fn outfit(&self) -> Outfit {
        self.outfit
    }

    /// The device.
    pub fn id(&self) -> String {
        self.device.id()
    }

    /// Returns why this device cannot do a unit of this search, if it cannot: a unit of other candidates than the search has, or of a
    /// group size without a program.
    pub fn refusal(&self, unit: &Unit) -> Option<String> {
        match (unit, self.subject) {
            (Unit::Keys(keys), Subject::Key(target)) => {
                let (orbits, signs) = KeyUnit::relatives(target.form());
                let own = self.device.half();
                if !keys.is_sound() {
                    Some("it is no unit".to_owned())
                } else if (keys.orbits, keys.signs) != (orbits, signs) {
                    Some(format!(
                        "it has {} orbits and signs {}, this search {orbits} and {signs}",
                        keys.orbits, keys.signs
                    ))
                } else if keys.half != own
                    && (!keys.half.is_power_of_two() || self.device.with_half(keys.half).is_none())
                {
                    Some(format!("{} has no walk of {} entries", self.device.id(), keys.half))
                } else {
                    None
                }
            }
            (Unit::Salts(salts), Subject::Salt(_)) => {
                (salts.first > salts.last).then(|| "it is no unit".to_owned())
            }
            (Unit::Keys(_), Subject::Salt(_)) => Some("it has keys, this search salts".to_owned()),
            (Unit::Salts(_), Subject::Key(_)) => Some("it has salts, this search keys".to_owned()),
        }
    }

    /// Does a unit: every candidate of it, and none else. Digests with so many leading zero bits are shares; of scores, those above
    /// `beat` are wanted. `tried` counts as it goes. None if it was stopped.
    pub fn run(
        &mut self,
        unit: &Unit,
        bits: u32,
        beat: u32,
        stop: &AtomicBool,
        tried: &AtomicU64,
    ) -> Result<Option<Covered>> {
        let id = self.device.id();
        let lost = |what: Fault| Error::DevicesLost { device: id.clone(), what };
        match unit {
            Unit::Keys(unit) if !unit.is_sound() => return Err(lost(format!("{unit:?} is no unit"))),
            Unit::Salts(unit) if unit.first > unit.last => return Err(lost(format!("{unit:?} is no unit"))),
            _ => {}
        }
        let sorter = Sorter { subject: self.subject, wanted: self.wanted };
        let sift = |told: &mut Told| {
            let covered = sorter.sort(unit, std::mem::take(told), bits, beat);
            // What is both is told once.
            let both = covered.shares.iter().chain(&covered.matches);
            told.extend(both.filter_map(|spot| read_spot(unit, *spot)));
        };
        let told = match unit {
            // Another number of entries is another program: as rare as a unit that is done twice to compare.
            Unit::Keys(keys) if keys.half != self.device.half() => {
                let other = self.device.with_half(keys.half);
                let other = other.ok_or_else(|| lost(format!("it has no walk of {} entries", keys.half)))?;
                let mut workers = self.workers(&other, bits, beat).map_err(lost)?;
                cover(unit, &mut workers, stop, tried, &sift).map_err(lost)?
            }
            _ => {
                let ready = self.ready.take().filter(|ready| (ready.bits, ready.beat) == (bits, beat));
                let mut workers = match ready {
                    Some(ready) => ready.workers,
                    None => self.workers(self.device, bits, beat).map_err(lost)?,
                };
                let told = cover(unit, &mut workers, stop, tried, &sift).map_err(lost)?;
                self.ready = Some(Ready { bits, beat, workers });
                told
            }
        };
        Ok(told.map(|told| sorter.sort(unit, told, bits, beat)))
    }

    fn workers<'d>(
        &self,
        device: &'d Arc<dyn Backend>,
        bits: u32,
        beat: u32,
    ) -> std::result::Result<Vec<Box<dyn Worker + 'd>>, Fault> {
        let filter = with_shares(filter(self.wanted, device.max_false(&self.recipe), beat)?, bits);
        let search = Search::new(&self.recipe, &filter);
        device.supports(&search)?;
        (0..device.workers()).map(|_| device.worker(&search)).collect()
    }
}

/// Sorts what a device told into shares and matches, by the host's own arithmetic.
#[derive(Clone, Copy)]
struct Sorter<'a> {
    subject: Subject<'a>,
    wanted: Wanted<'a>,
}

impl Sorter<'_> {
    /// What the host says to what a device told.
    fn sort(&self, unit: &Unit, told: Told, bits: u32, beat: u32) -> Covered {
        let spot = |spot| match (spot, unit) {
            (Spot::Key(place), _) => KeyUnit::spot(&place),
            (Spot::Salt(counter), Unit::Salts(unit)) => counter - unit.first,
            (Spot::Salt(_), Unit::Keys(_)) => unreachable!("a walk has no salts"),
        };
        let mut spots: Vec<u64> = told.into_iter().map(spot).collect();
        spots.sort_unstable();
        spots.dedup();
        let mut covered = Covered::default();
        for (spot, digest) in spots.iter().zip(check_spots(unit, self.subject, &spots)) {
            let Some(digest) = digest else { continue };
            if is_share(&digest, bits) {
                covered.shares.push(*spot);
            }
            if covered.matches.len() < UnitRunner::MOST_MATCHES && self.is_wanted(&digest, beat) {
                covered.matches.push(*spot);
            }
        }
        covered
    }

    fn is_wanted(&self, digest: &Digest, beat: u32) -> bool {
        match &self.wanted {
            Wanted::Patterns(patterns) => patterns.find(&self.subject.target().encode(digest)).is_some(),
            Wanted::Best { ranking, .. } => ranking.score().of(digest) > beat,
        }
    }
}

/// The place that a spot of a unit means.
fn read_spot(unit: &Unit, spot: u64) -> Option<Spot> {
    match unit {
        Unit::Keys(unit) => unit.place(spot).map(Spot::Key),
        Unit::Salts(unit) => unit.counter(spot).map(Spot::Salt),
    }
}

/// Whether a digest begins with so many zero bits.
pub(super) fn is_share(digest: &Digest, bits: u32) -> bool {
    digest.words()[0].leading_zeros() >= bits
}

/// What is wanted, as a device tests it where every hit counts.
fn filter(wanted: Wanted<'_>, max_false: f64, beat: u32) -> std::result::Result<Filter, Fault> {
    match wanted {
        Wanted::Patterns(patterns) => Ok(patterns.filter(max_false)),
        Wanted::Best { ranking, show: Show::Better, .. } if ranking.patterns().is_none() => {
            let run = ranking.score().feature().and_then(|feature| Filter::of_run(feature, beat + 1));
            run.ok_or_else(|| {
                format!("a unit can be proved of digits at the start, not of the most {}", ranking.score())
            })
        }
        Wanted::Best { .. } => Err("a unit can be proved of patterns or of a score, not of both".to_owned()),
    }
}

/// The filter with shares of so many bits as one more range of the leading bits.
fn with_shares(mut filter: Filter, bits: u32) -> Filter {
    let mut last = u64::MAX.checked_shr(bits).unwrap_or(0);
    // Ranges stay in order, disjoint and apart.
    while filter.top.first().is_some_and(|range| range.first <= last.saturating_add(1)) {
        last = last.max(filter.top.remove(0).last);
    }
    filter.top.insert(0, Interval { first: 0, last });
    filter
}

/// Drops the places that are neither shares nor matches.
type Sift<'s> = &'s (dyn Fn(&mut Told) + Sync);

/// Has workers do a unit between them. None if they were stopped.
fn cover(
    unit: &Unit,
    workers: &mut [Box<dyn Worker + '_>],
    stop: &AtomicBool,
    tried: &AtomicU64,
    sift: Sift<'_>,
) -> std::result::Result<Option<Told>, Fault> {
    match unit {
        Unit::Keys(unit) => cover_keys(unit, workers, stop, tried, sift),
        Unit::Salts(unit) => cover_salts(unit, workers, stop, tried, sift),
    }
}

fn cover_keys(
    unit: &KeyUnit,
    workers: &mut [Box<dyn Worker + '_>],
    stop: &AtomicBool,
    tried: &AtomicU64,
    sift: Sift<'_>,
) -> std::result::Result<Option<Told>, Fault> {
    let numbering = workers.first().and_then(|worker| worker.numbering());
    let Some(Numbering { half, lanes, orbits, signs }) = numbering else {
        return Err("it has no walk for keys".to_owned());
    };
    if (half, orbits, signs) != (unit.half, unit.orbits, unit.signs) {
        return Err(format!("its walk has {orbits} orbits, the unit {}", unit.orbits));
    }
    // Each lane takes groups that follow each other. What the last lanes do beyond the unit is left out.
    let all = u64::from(lanes) * workers.len() as u64;
    let steps = unit.steps.div_ceil(all);
    let starts = starts(unit, all as usize, steps)?;
    let jobs = workers.iter_mut().zip(starts.chunks_exact(lanes as usize)).enumerate();
    thread::scope(|scope| {
        let job = |(at, (worker, points)): (usize, (&mut Box<dyn Worker + '_>, &[Affine]))| {
            worker.start(Start::Stretch { points, steps })?;
            let first = at as u64 * u64::from(lanes);
            to_the_end(worker.as_mut(), stop, tried, sift, |spot| match spot {
                Spot::Key(place) => {
                    let step = (first + u64::from(place.lane)) * steps + place.step;
                    (place.step < steps && step < unit.steps).then_some(Spot::Key(Place {
                        lane: 0,
                        step,
                        ..place
                    }))
                }
                Spot::Salt(_) => None,
            })
        };
        gather(jobs.map(|task| scope.spawn(move || job(task))).collect())
    })
}

fn cover_salts(
    unit: &SaltUnit,
    workers: &mut [Box<dyn Worker + '_>],
    stop: &AtomicBool,
    tried: &AtomicU64,
    sift: Sift<'_>,
) -> std::result::Result<Option<Told>, Fault> {
    let share = (unit.last - unit.first) / workers.len() as u64 + 1;
    let base = unit.base;
    thread::scope(|scope| {
        let mut tasks = Vec::new();
        for (at, worker) in workers.iter_mut().enumerate() {
            let Some(first) = unit.first.checked_add(at as u64 * share).filter(|f| *f <= unit.last) else {
                break;
            };
            let last = first.saturating_add(share - 1).min(unit.last);
            tasks.push(scope.spawn(move || {
                worker.start(Start::Salts(Lease { base, first, last }))?;
                to_the_end(worker.as_mut(), stop, tried, sift, |spot| match spot {
                    Spot::Salt(counter) => (first..=last).contains(&counter).then_some(spot),
                    Spot::Key(_) => None,
                })
            }));
        }
        gather(tasks)
    })
}

/// Where the lanes begin: so many steps apart.
fn starts(unit: &KeyUnit, lanes: usize, steps: u64) -> std::result::Result<Vec<Affine>, Fault> {
    let way = Scalar::from_u64(steps).mul(Scalar::from_u64(2 * u64::from(unit.half) + 1));
    let apart = group::multiply(way, Some(Affine::G)).ok_or("the lanes of a unit lie nowhere")?;
    let first = affine(&unit.point);
    let pairs: Vec<(Point, Point)> =
        multiples(apart, lanes - 1).into_iter().map(|way| (Some(first), Some(way))).collect();
    let starts: Option<Vec<Affine>> = std::iter::once(Some(first)).chain(add_pairs(&pairs)).collect();
    starts.ok_or_else(|| "a lane of the unit begins at infinity".to_owned())
}

/// One worker until it is done; none if it was stopped.
fn to_the_end(
    worker: &mut dyn Worker,
    stop: &AtomicBool,
    tried: &AtomicU64,
    sift: Sift<'_>,
    keep: impl Fn(Spot) -> Option<Spot>,
) -> std::result::Result<Option<Told>, Fault> {
    let (mut told, mut limit) = (Vec::new(), MAX_UNSORTED);
    while !stop.load(Ordering::Relaxed) {
        let batch = worker.run()?;
        tried.fetch_add(batch.tried, Ordering::Relaxed);
        told.extend(batch.hits.iter().filter_map(|hit| keep(hit.spot)));
        if told.len() > limit {
            sift(&mut told);
            limit = MAX_UNSORTED.max(2 * told.len());
        }
        if batch.done {
            return Ok(Some(told));
        }
    }
    Ok(None)
}

type Task<'s> = thread::ScopedJoinHandle<'s, std::result::Result<Option<Told>, Fault>>;

/// What all of them told; none if one was stopped.
fn gather(tasks: Vec<Task<'_>>) -> std::result::Result<Option<Told>, Fault> {
    let mut all = Some(Vec::new());
    for task in tasks {
        let told = task.join().unwrap_or_else(|_| Err("it panicked".to_owned()))?;
        all = all.zip(told).map(|(mut all, told)| {
            all.extend(told);
            all
        });
    }
    Ok(all)
}
