//! Sessions with devices that behave, fail, vanish or lie.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use warpsmith_chain::{Digest, Recipe, find};
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Scalar};
use warpsmith_pattern::{Options, compile};

use crossbeam_channel::Receiver;

use super::claims::{Roots, Spares};
use super::collector::GROUP;
use super::*;
use crate::cpu::Cpu;
use crate::origin::{Recovered, Secret};
use crate::origins::Origins;
use crate::recover::{Candidate, recompute};
use crate::simd;
use crate::space::Subject;
use crate::split::Split;
use crate::worker::{Backend, Batch, Fault, Hit, Numbering, Program, Runner, Search, Spot, Start, Worker};

/// How a device misbehaves after its self-test.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fate {
    /// Not at all.
    Honest,
    /// Fails on the n-th run.
    Dies(u32),
    /// Reports a place that holds no such key, from the n-th run on.
    Lies(u32),
    /// Reports keys that are there with the digests of others.
    Confuses,
    /// Flips a bit of a centre before the n-th run.
    Strays(u32),
    /// Keeps planted keys to itself.
    Misses,
    /// Reports everything twice.
    Stutters,
    /// Says it tried so many times as much as it did.
    Boasts(u64),
}

/// The processor behind a mask.
pub(super) struct Masked {
    id: &'static str,
    /// Whether it poses as a card.
    card: bool,
    /// What its workers wait for.
    gate: Option<Receiver<()>>,
    cpu: Cpu,
    fate: Fate,
    runs: AtomicU32,
    /// Candidates told as tried.
    told: AtomicU64,
}

struct MaskedWorker<'a> {
    masked: &'a Masked,
    inner: Box<dyn Worker + 'a>,
}

impl Backend for Masked {
    fn id(&self) -> String {
        self.id.to_owned()
    }
    fn describe(&self) -> String {
        self.cpu.describe()
    }
    fn runner(&self) -> Runner {
        self.cpu.runner()
    }
    fn is_card(&self) -> bool {
        self.card
    }
    fn workers(&self) -> usize {
        1
    }
    fn max_false(&self, recipe: &Recipe) -> f64 {
        self.cpu.max_false(recipe)
    }
    fn program(&self, search: &Search<'_>) -> Program {
        self.cpu.program(search)
    }
    fn worker<'a>(&'a self, search: &Search<'_>) -> std::result::Result<Box<dyn Worker + 'a>, Fault> {
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        Ok(Box::new(MaskedWorker { masked: self, inner: self.cpu.worker(search)? }))
    }
}

impl Worker for MaskedWorker<'_> {
    fn numbering(&self) -> Option<Numbering> {
        self.inner.numbering()
    }
    fn start(&mut self, start: Start<'_>) -> std::result::Result<(), Fault> {
        self.inner.start(start)
    }
    fn replace(&mut self, lane: u32, step: u64, met: u64, point: Affine) -> u64 {
        let not_tried = self.inner.replace(lane, step, met, point);
        self.masked.told.fetch_sub(not_tried, Ordering::Relaxed);
        not_tried
    }
    fn run(&mut self) -> std::result::Result<Batch, Fault> {
        let run = self.masked.runs.fetch_add(1, Ordering::Relaxed);
        match self.masked.fate {
            Fate::Dies(at) if run >= at => Err("the device fell off the bus".to_owned()),
            Fate::Lies(at) if run >= at => {
                let place =
                    Place { lane: 0, step: 5, index: 7, minus: false, orbit: 1, image: 2, negate: false };
                let hit = Hit { spot: Spot::Key(place), digest: None, score: 0 };
                Ok(Batch { tried: 1, hits: vec![hit], ..Batch::default() })
            }
            Fate::Confuses => {
                let mut batch = self.inner.run()?;
                for hit in &mut batch.hits {
                    hit.digest = Some(Digest::new(&[0x5a; 32]));
                }
                Ok(batch)
            }
            fate => {
                if fate == Fate::Strays(run) {
                    // Found out in the next step, a few of which make a run.
                    self.inner.flip(0, 77, 1);
                }
                let mut batch = self.inner.run()?;
                if let Fate::Boasts(times) = fate {
                    batch.tried *= times;
                }
                self.masked.told.fetch_add(batch.tried, Ordering::Relaxed);
                Ok(batch)
            }
        }
    }
    fn check(&mut self) -> std::result::Result<(), Fault> {
        self.inner.check()
    }
    fn unproved(&self) -> u64 {
        self.inner.unproved()
    }
    fn step(&mut self) -> std::result::Result<Batch, Fault> {
        let mut batch = self.inner.step()?;
        match self.masked.fate {
            Fate::Misses => batch.hits.retain(|h| !matches!(h.spot, Spot::Key(place) if place.index == 1)),
            Fate::Stutters => batch.hits.extend(batch.hits.clone()),
            _ => {}
        }
        Ok(batch)
    }
}

impl Masked {
    fn new(id: &'static str, fate: Fate) -> Masked {
        let (runs, told) = (AtomicU32::new(0), AtomicU64::new(0));
        Masked { id, card: false, gate: None, cpu: Cpu::new(simd::detect(), 1), fate, runs, told }
    }

    /// The processor posing as a card, whose workers wait for the gate, where there is one, to close.
    pub fn card(fate: Fate, gate: Option<Receiver<()>>) -> Arc<dyn Backend> {
        Arc::new(Masked { card: true, gate, ..Masked::new("card:0", fate) })
    }
}

pub(super) fn devices(fates: &[(&'static str, Fate)]) -> Devices {
    let list = fates.iter().map(|&(id, fate)| Arc::new(Masked::new(id, fate)) as Arc<dyn Backend>);
    Devices::of(list.collect())
}

struct Seen {
    outcome: Result<Outcome>,
    matches: Vec<(String, Option<Secret>, u64)>,
    warnings: Vec<String>,
}

/// Searches until `count` matches are there or, without a count, until ten more have come after a warning.
fn search(pattern: &str, count: Option<u64>, limit: Duration, devices: &Devices) -> Seen {
    let target = find("npub").expect("npub is a target");
    let patterns = compile([pattern], target, &Options::default()).expect("a possible pattern");
    let job = Job {
        count,
        time_limit: Some(limit),
        interval: Duration::from_millis(10),
        ..Job::new(Subject::Key(target), Wanted::Patterns(&patterns))
    };
    let (mut matches, mut warnings) = (Vec::new(), Vec::new());
    let (mut after_warning, interrupt) = (0, AtomicBool::new(false));
    let outcome = run(&job, devices, &interrupt, &mut |event| {
        match event {
            Event::Found(found) => {
                assert!(!found.is_empty());
                after_warning += if warnings.is_empty() { 0 } else { found.len() };
                matches.extend(found.into_iter().map(|m| (m.address.clone(), m.secret().cloned(), m.tried)));
                interrupt.store(count.is_none() && after_warning >= 10, Ordering::Relaxed);
            }
            Event::Progress(p) => {
                assert!((0.0..=1.0).contains(&p.probability.expect("of a search")));
                assert!(p.rate >= 0.0);
            }
            Event::Warning(w) => warnings.push(w),
            Event::Note(_) => {}
        }
        Ok(())
    });
    Seen { outcome, matches, warnings }
}

const LONG: Duration = Duration::from_secs(60);
pub(super) const NEVER: &str = "qqqqqqqqqqqqqqqqqqqq";

#[test]
fn the_count_asked_for_is_the_count_reported_and_every_key_is_its_own() {
    let seen = search("qq", Some(20), LONG, &devices(&[("a", Fate::Honest), ("b", Fate::Honest)]));
    let outcome = seen.outcome.expect("an honest search ends well");
    assert_eq!((outcome.ended, outcome.matches), (Ended::Count, 20));
    assert_eq!(seen.matches.len(), 20);
    let mut addresses: Vec<_> = seen.matches.iter().map(|(a, _, _)| a.clone()).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 20);
    assert!(addresses.iter().all(|a| a.starts_with("npub1qq")));
    assert!(seen.matches.windows(2).all(|w| w[0].2 <= w[1].2), "tried never falls");
    assert!(outcome.tried >= seen.matches.last().expect("twenty").2);
}

/// Two of the keys that differ by something small, over all images and signs: reliability 1.2.
///
/// A walk reaches lambda^k * i around centres some 2^11 apart: with the images undone, two keys of one origin, or of origins so
/// near each other that lanes may share one, differ by u + v * lambda, u below 2^75 and v by the size of the table. Those with v
/// below 64 are looked for. Unrelated keys differ so with a chance below 2^-100.
fn find_linked(keys: &[Scalar]) -> Option<(usize, usize)> {
    let is_small = |u: Scalar| u.to_be_bytes()[..16].iter().all(|&byte| byte == 0);
    let signed = |v: u64| [Scalar::from_u64(v), Scalar::from_u64(v).negate()];
    let ways: Vec<Scalar> = (0..64).flat_map(signed).map(|v| v.mul(Scalar::LAMBDA)).collect();
    let linked = |a: Scalar, b: Scalar| {
        let relatives = (0..3).flat_map(|image| [b, b.negate()].map(|b| Scalar::lambda_power(image).mul(b)));
        relatives.into_iter().any(|b| {
            let apart = a.sub(b);
            ways.iter().any(|way| is_small(apart.sub(*way)) || is_small(apart.sub(*way).negate()))
        })
    };
    let pairs = (0..keys.len()).flat_map(|n| (n + 1..keys.len()).map(move |m| (n, m)));
    pairs.into_iter().find(|&(n, m)| linked(keys[n], keys[m]))
}

fn scalar(secret: &Secret) -> Scalar {
    Scalar::from_be_bytes(secret.as_bytes()).expect("a key")
}

#[test]
fn two_matches_of_one_run_are_unrelated() {
    let seen = search("q", Some(6), LONG, &devices(&[("a", Fate::Honest)]));
    let keys: Vec<Scalar> =
        seen.matches.iter().map(|(_, secret, _)| scalar(secret.as_ref().expect("not split"))).collect();
    assert_eq!((keys.len(), find_linked(&keys)), (6, None));
}

/// What lanes of a card claim in their first steps is unrelated, and what they claim of the walks after those. The control: were
/// their origins one origin, a stride apart, it would be seen.
#[test]
fn claims_of_lanes_are_unrelated_unless_lanes_share_an_origin() {
    let Some(gpu) = crate::gpu::tests::pocl() else { return };
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["qq"], target, &Options::default()).expect("possible");
    let job = Job::new(Subject::Key(target), Wanted::Patterns(&patterns));
    let (recipe, filter) = (job.subject.recipe(), patterns.filter(0.0));
    let (best, maker) = (AtomicU32::new(0), Maker::new(None));
    for shared in [false, true] {
        let mut worker = gpu.worker(&Search::new(&recipe, &filter)).expect("a worker");
        let Numbering { half, lanes, .. } = worker.numbering().expect("a walk");
        let first = scalar(&Secret::random().expect("random"));
        let near = |lane| {
            let key =
                first.add(Scalar::from_u64(lane).mul(Scalar::from_u64((2 * u64::from(half) + 1) << 32)));
            Secret::from_bytes(&key.to_be_bytes()).expect("a key")
        };
        let secrets: Vec<Secret> = match shared {
            true => (0..u64::from(lanes)).map(near).collect(),
            false => Secret::random_many(lanes as usize).expect("random"),
        };
        let origins = Origins::known(secrets);
        let point = |lane| origins.of(lane).and_then(|origin| origin.point()).expect("not infinity");
        let points: Vec<Affine> = (0..lanes).map(point).collect();
        worker.start(Start::Points(&points)).expect("started");
        let (give, spares) = bounded(1);
        give.send(maker.make(256).expect("random")).expect("room");
        let mut roots = Roots::Keys { origins, spares: Some(Spares::new(spares)) };
        let (sift, mut keys) = (Sift::new(&job, &best), Vec::new());
        while keys.len() < 60 {
            let mut batch = worker.step().expect("a step");
            let Ok(claims) = sift.claims(worker.as_mut(), &mut roots, &mut batch) else {
                panic!("no spares")
            };
            for claim in claims.iter().filter(|claim| claim.may_be_shown) {
                let Ok((_, Candidate::Key { recovered: Recovered::Key(key), .. })) =
                    recompute(&claim.source, worker.numbering().as_ref(), &claim.hit, job.subject)
                else {
                    panic!("{:?} is no key", claim.hit)
                };
                keys.push(scalar(&key));
            }
        }
        assert_eq!(find_linked(&keys).is_some(), shared, "origins shared: {shared}");
    }
}

/// While matches are written down their worker goes on, and not without end: what is claimed and not told is bounded.
#[test]
fn a_worker_does_not_wait_for_its_matches_to_be_written_down() {
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["qq"], target, &Options::default()).expect("possible");
    let cpu = Cpu::new(simd::detect(), 1);
    let masked = Arc::new(Masked {
        card: false,
        gate: None,
        id: "a",
        cpu,
        fate: Fate::Honest,
        runs: AtomicU32::new(0),
        told: AtomicU64::new(0),
    });
    let devices = Devices::of(vec![Arc::clone(&masked) as Arc<dyn Backend>]);
    let (subject, wanted) = (Subject::Key(target), Wanted::Patterns(&patterns));
    let job = Job { count: Some(500), interval: LONG, ..Job::new(subject, wanted) };
    // Runs end with a match: one in a thousand keys is one, and a group has far more. Each is a message at least, and so many
    // messages there are: two for each judge on its way there, one with it, and as many behind it as two for each thread.
    let judges = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_JUDGES) as u32;
    let under_way = 3 * judges + 2 * (judges + 1) + GROUP as u32 + 2;
    let (mut told, mut events) = (0, 0);
    let outcome = run(&job, &devices, &AtomicBool::new(false), &mut |event| {
        if let Event::Found(found) = event {
            let runs = || masked.runs.load(Ordering::Relaxed);
            (told, events) = (told + found.len() as u32, events + 1);
            let begun = Instant::now();
            while events == 1 && runs() <= told + 2 && begun.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(events > 1 || runs() > told + 2, "it waits");
            // Time for one too many.
            std::thread::sleep(Duration::from_millis(20));
            assert!(runs() <= told + under_way, "{} runs, {told} told", runs());
        }
        Ok(())
    });
    assert_eq!(outcome.expect("an honest search ends well").matches, 500);
}

/// On a card lanes that matched are idle until launches that were under way have landed. Launches are so short that most of what
/// is met is delivered all the same: of what the card met, told or passed over, nine tenths at least. And no more is told than was
/// tried for.
#[test]
fn most_of_what_a_card_meets_is_delivered() {
    let Some(gpu) = crate::gpu::tests::pocl() else { return };
    let devices = Devices::of(vec![Arc::new(gpu) as Arc<dyn Backend>]);
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["qqq"], target, &Options::default()).expect("possible");
    let (subject, wanted) = (Subject::Key(target), Wanted::Patterns(&patterns));
    let job = Job { count: Some(600), interval: LONG, ..Job::new(subject, wanted) };
    let outcome = run(&job, &devices, &AtomicBool::new(false), &mut |_| Ok(())).expect("it ends");
    let (delivered, met) = (outcome.matches as f64, (outcome.matches + outcome.passed_over) as f64);
    assert!(delivered >= 0.9 * met, "{delivered} of {met}");
    let expected = outcome.tried as f64 * patterns.odds();
    assert!(delivered - expected < 6.0 * expected.sqrt(), "{delivered} where {expected:.0} were expected");
}

/// A device that lies after a while is dropped as well, and what it claims until it knows is not told.
#[test]
fn a_worker_that_was_honest_and_lies_is_dropped() {
    let seen = search("qq", None, LONG, &devices(&[("liar", Fate::Lies(8)), ("a", Fate::Honest)]));
    assert_eq!(seen.outcome.expect("one is left").ended, Ended::Interrupted);
    assert!(seen.matches.len() > 8, "{}", seen.matches.len());
    assert_eq!(seen.warnings.len(), 1, "{:?}", seen.warnings);
    assert!(seen.warnings[0].contains("liar") && seen.warnings[0].contains("not there"));
}

#[test]
fn time_is_kept_and_tried_counts_every_key_of_both_workers() {
    let seen = search(NEVER, Some(1), Duration::from_millis(300), &devices(&[("a", Fate::Honest)]));
    let outcome = seen.outcome.expect("time runs out");
    assert_eq!((outcome.ended, outcome.matches), (Ended::TimeLimit, 0));
    // Whole groups only: every lane tests the same number of keys.
    let group = warpsmith_curve::field::dispatch::lane_count(simd::detect()) as u64 * (3 + 18 * 512);
    assert!(outcome.tried > 0);
    assert_eq!(outcome.tried % group, 0);
    assert!(outcome.elapsed < Duration::from_secs(20));
}

#[test]
fn an_interrupt_ends_the_search() {
    let target = find("npub").expect("npub is a target");
    let patterns = compile([NEVER], target, &Options::default()).expect("possible");
    let (subject, wanted) = (Subject::Key(target), Wanted::Patterns(&patterns));
    let job = Job { interval: LONG, ..Job::new(subject, wanted) };
    let interrupt = AtomicBool::new(true);
    let outcome = run(&job, &devices(&[("a", Fate::Honest)]), &interrupt, &mut |_| Ok(()));
    assert_eq!(outcome.expect("ends").ended, Ended::Interrupted);
}

#[test]
fn a_device_that_dies_is_dropped_and_the_other_goes_on() {
    let seen = search("qqq", None, LONG, &devices(&[("mortal", Fate::Dies(0)), ("a", Fate::Honest)]));
    assert_eq!(seen.outcome.expect("one is left").ended, Ended::Interrupted);
    assert_eq!(seen.warnings.len(), 1, "{:?}", seen.warnings);
    assert!(seen.warnings[0].contains("mortal") && seen.warnings[0].contains("fell off the bus"));
}

#[test]
fn when_the_last_device_dies_that_is_the_error() {
    let seen = search(NEVER, Some(1), LONG, &devices(&[("x", Fate::Dies(1)), ("y", Fate::Dies(3))]));
    assert!(matches!(seen.outcome, Err(Error::DevicesLost { .. })), "{:?}", seen.outcome.map(|_| ()));
}

#[test]
fn a_device_that_reports_keys_that_are_not_there_is_dropped() {
    let seen = search("qqq", None, LONG, &devices(&[("liar", Fate::Lies(0)), ("a", Fate::Honest)]));
    assert_eq!(seen.outcome.expect("one is left").ended, Ended::Interrupted);
    assert!(
        seen.warnings.iter().any(|w| w.contains("liar") && w.contains("not there")),
        "{:?}",
        seen.warnings
    );
}

/// What a worker tried since its walk was last found right does not count once it is found astray.
#[test]
fn a_device_whose_walk_goes_astray_is_dropped_and_what_it_tried_does_not_count() {
    let masked = |id, fate| Arc::new(Masked::new(id, fate));
    let (astray, honest) = (masked("astray", Fate::Strays(3)), masked("a", Fate::Honest));
    let list = [&astray, &honest].map(|masked| Arc::clone(masked) as Arc<dyn Backend>);
    let devices = Devices::of(list.to_vec());
    let target = find("npub").expect("npub is a target");
    let patterns = compile([NEVER], target, &Options::default()).expect("possible");
    let (subject, wanted) = (Subject::Key(target), Wanted::Patterns(&patterns));
    let interval = Duration::from_millis(1);
    let job = Job { interval, ..Job::new(subject, wanted) };
    let (mut warnings, interrupt) = (Vec::new(), AtomicBool::new(false));
    let outcome = run(&job, &devices, &interrupt, &mut |event| {
        match event {
            Event::Warning(text) => warnings.push(text),
            // Once there was progress after it: counts that fall do no harm.
            Event::Progress(_) => interrupt.store(!warnings.is_empty(), Ordering::Relaxed),
            Event::Found(_) | Event::Note(_) => {}
        }
        Ok(())
    });
    let told = |masked: &Masked| masked.told.load(Ordering::Relaxed);
    assert!(told(&astray) > 0, "it had told of something before");
    assert_eq!(outcome.expect("one is left").tried, told(&honest));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let says = "astray was dropped: its walk did not end where it must: 1 of ";
    assert!(warnings[0].starts_with(says) && warnings[0].ends_with("; the others go on"), "{warnings:?}");
}

#[test]
fn a_device_that_reports_keys_with_the_digests_of_others_is_dropped() {
    let seen = search("qq", Some(1), LONG, &devices(&[("confused", Fate::Confuses)]));
    match seen.outcome {
        Err(Error::DevicesLost { device, what }) => {
            assert_eq!(device, "confused");
            assert!(what.contains("has another digest"), "{what}");
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    assert!(seen.matches.is_empty());
}

#[test]
fn a_device_that_misses_or_repeats_planted_keys_does_not_start() {
    for (fate, what) in [(Fate::Misses, "was missed"), (Fate::Stutters, "came back 2 times")] {
        let seen = search("qq", Some(1), LONG, &devices(&[("broken", fate)]));
        match seen.outcome {
            Err(Error::SelfTest { device, what: told }) => {
                assert_eq!(device, "broken");
                assert!(told.contains(what), "{told}");
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
        assert!(seen.matches.is_empty());
    }
}

#[test]
fn a_sink_that_fails_ends_the_search_with_its_error() {
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["q"], target, &Options::default()).expect("possible");
    let (subject, wanted) = (Subject::Key(target), Wanted::Patterns(&patterns));
    let job = Job { interval: LONG, ..Job::new(subject, wanted) };
    let outcome =
        run(&job, &devices(&[("a", Fate::Honest)]), &AtomicBool::new(false), &mut |event| match event {
            Event::Found(_) => Err("the disk is full".into()),
            _ => Ok(()),
        });
    match outcome {
        Err(Error::Sink(error)) => assert_eq!(error.to_string(), "the disk is full"),
        other => panic!("{:?}", other.map(|_| ())),
    }
}

/// Offset, image and sign rejoin to the right key, for keys given in every form; anything altered is refused.
#[test]
fn split_results_join_and_altered_ones_do_not() {
    use crate::{join, parse_public_key};
    let devices = devices(&[("a", Fate::Honest)]);
    let (mut images, mut signs) = ([0; 3], [0; 2]);
    // A target that knows no sign, and one that does.
    for (n, (name, pattern)) in [("npub", "qq"), ("eth", "ab")].into_iter().cycle().take(48).enumerate() {
        let target = find(name).expect("a target");
        let patterns = compile([pattern], target, &Options::default()).expect("possible");
        let own = Secret::random().expect("random");
        let public = own.public_key();
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let given = match n / 2 % 3 {
            0 => hex(&public.serialize()),
            1 => hex(&public.serialize_uncompressed()),
            _ => hex(&public.serialize()[1..]),
        };
        let job = Job {
            split: Some(parse_public_key(&given).expect("a public key")),
            count: Some(1),
            interval: LONG,
            ..Job::new(Subject::Key(target), Wanted::Patterns(&patterns))
        };
        let mut found = None;
        run(&job, &devices, &AtomicBool::new(false), &mut |event| {
            if let Event::Found(mut matches) = event {
                let m = matches.remove(0);
                let Solution::Split { public_key, split } = m.solution else { panic!("not split: {m:?}") };
                found = Some((split, m.address, public_key));
            }
            Ok(())
        })
        .expect("a match");
        let (split, address, public_key) = found.expect("a match");
        images[split.endo as usize] += 1;
        signs[usize::from(split.negate)] += 1;
        let joined = join(&own, &split, target, &address, Some(&public_key)).expect("they belong together");
        assert_eq!(joined.address, address);
        assert_eq!(joined.secret().public_key().serialize(), public_key);

        let stranger = Secret::random().expect("random");
        assert!(join(&stranger, &split, target, &address, None).is_err());
        let mut altered = split;
        altered.offset[31] ^= 1;
        assert!(join(&own, &altered, target, &address, None).is_err());
        altered = Split { endo: (split.endo + 1) % 3, ..split };
        assert!(join(&own, &altered, target, &address, None).is_err());
        let turned = join(&own, &Split { negate: !split.negate, ..split }, target, &address, None);
        assert_eq!(turned.is_ok(), name == "npub", "where y does not count its sign does not either");
        assert!(join(&own, &Split { endo: 3, ..split }, target, &address, None).is_err());
        assert!(join(&own, &Split { offset: [0xff; 32], ..split }, target, &address, None).is_err());
    }
    assert!(images.iter().chain(&signs).all(|&n| n > 0), "every image and sign occurs: {images:?} {signs:?}");
}
