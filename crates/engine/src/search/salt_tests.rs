//! Sessions over salts and scores, with a device that is nothing but the reference code.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use warpsmith_chain::ethereum::{Deployment, Factory, SaltRequest};
use warpsmith_chain::{Digest, Recipe, SaltMask, SaltTarget, Target};
use warpsmith_pattern::{Feature, Filter, LowBits, Options, Ranking, Score, compile};

use super::*;
use crate::space::{Lease, Subject};
use crate::worker::{Backend, Batch, Fault, Hit, Numbering, Program, Runner, Search, Spot, Start, Worker};

/// A contract by CREATE2 whose salt has so many free bytes.
fn deployment(free: usize) -> Deployment {
    let factory = Factory::find("plain").expect("known");
    let mask = SaltMask::beginning(&vec![7; 32 - free]);
    let request = SaltRequest { mask: Some(mask), ..SaltRequest::default() };
    Deployment::create2(factory, Some([0x11; 20]), Some([0x22; 32]), &request).expect("possible")
}

/// Tests one salt after the other with the target's own code.
struct Reference {
    id: &'static str,
    target: Deployment,
    /// Batches until it dies.
    life: AtomicU32,
    /// How long a batch takes at least.
    pace: Duration,
    /// The search its workers do not start for.
    refuses: Option<Filter>,
}

struct ReferenceWorker<'a> {
    device: &'a Reference,
    filter: Filter,
    mask: SaltMask,
    lease: Option<Lease>,
    next: u64,
}

impl Backend for Reference {
    fn id(&self) -> String {
        self.id.to_owned()
    }
    fn describe(&self) -> String {
        "the reference".to_owned()
    }
    fn runner(&self) -> Runner {
        crate::cpu::Cpu::new(crate::simd::detect(), 1).runner()
    }
    fn workers(&self) -> usize {
        1
    }
    fn max_false(&self, _recipe: &Recipe) -> f64 {
        1.0
    }
    fn program(&self, _search: &Search<'_>) -> Program {
        Program("the reference".to_owned())
    }
    fn worker<'a>(&'a self, search: &Search<'_>) -> std::result::Result<Box<dyn Worker + 'a>, Fault> {
        let Recipe::Salted(salted) = search.recipe else { return Err("salts only".to_owned()) };
        let (filter, mask) = (search.filter.clone(), salted.salt);
        Ok(Box::new(ReferenceWorker { device: self, filter, mask, lease: None, next: 0 }))
    }
}

impl Worker for ReferenceWorker<'_> {
    fn numbering(&self) -> Option<Numbering> {
        None
    }
    fn start(&mut self, start: Start<'_>) -> std::result::Result<(), Fault> {
        let Start::Salts(lease) = start else { return Err("salts only".to_owned()) };
        if self.device.refuses.as_ref() == Some(&self.filter) {
            return Err("out of memory".to_owned());
        }
        (self.lease, self.next) = (Some(lease), lease.first);
        Ok(())
    }
    fn run(&mut self) -> std::result::Result<Batch, Fault> {
        let lived = self.device.life.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if lived.is_err() {
            return Err("it died".to_owned());
        }
        std::thread::sleep(self.device.pace);
        self.step()
    }
    fn step(&mut self) -> std::result::Result<Batch, Fault> {
        let lease = self.lease.ok_or("not started")?;
        let mut batch = Batch::default();
        let last = lease.last.min(self.next + 1023);
        for counter in self.next..=last {
            let digest = self.device.target.digest(&self.mask.fill(&lease.base, counter));
            if self.filter.accepts(&digest.words()) {
                let score = self.filter.score.as_ref().map_or(0, |s| s.score.of(&digest));
                batch.hits.push(Hit { spot: Spot::Salt(counter), digest: Some(digest), score });
            }
        }
        batch.tried = last - self.next + 1;
        (self.next, batch.done) = (last + 1, last == lease.last);
        Ok(batch)
    }
    fn raise(&mut self, at_least: u32) -> std::result::Result<(), Fault> {
        if let Some(score) = &mut self.filter.score {
            score.at_least = at_least;
        }
        Ok(())
    }
}

impl Reference {
    /// One that dies after so many batches.
    fn new(target: &Deployment, life: u32) -> Self {
        let (target, life) = (target.clone(), AtomicU32::new(life));
        Reference { id: "reference", target, life, pace: Duration::ZERO, refuses: None }
    }
}

/// Devices that die after so many batches.
fn devices(target: &Deployment, lives: &[u32]) -> Devices {
    let list = lives.iter().map(|&life| Arc::new(Reference::new(target, life)) as Arc<dyn Backend>);
    Devices::of(list.collect())
}

struct Seen {
    ended: Ended,
    tried: u64,
    found: Vec<(String, [u8; 32], Option<u32>)>,
    warnings: usize,
}

fn search(target: &Deployment, wanted: Wanted<'_>, count: Option<u64>, devices: &Devices) -> Seen {
    let (subject, interval) = (Subject::Salt(target), Duration::from_secs(60));
    let job = Job { count, interval, ..Job::new(subject, wanted) };
    let (mut found, mut warnings) = (Vec::new(), 0);
    let outcome = run(&job, devices, &AtomicBool::new(false), &mut |event| {
        match event {
            Event::Found(matches) => {
                for m in matches {
                    assert!(!m.details.is_empty());
                    let Solution::Salt(salt) = m.solution else { panic!("not a salt: {m:?}") };
                    found.push((m.address.clone(), salt, m.score()));
                }
            }
            Event::Warning(_) => warnings += 1,
            Event::Progress(_) | Event::Note(_) => {}
        }
        Ok(())
    });
    let outcome = outcome.expect("it ends");
    Seen { ended: outcome.ended, tried: outcome.tried, found, warnings }
}

const FOREVER: u32 = u32::MAX;

#[test]
fn every_salt_of_a_small_mask_is_tested_once_and_then_the_search_ends() {
    let target = deployment(2);
    let patterns = compile(["ab"], &target as &dyn Target, &Options::default()).expect("possible");
    for lives in [&[FOREVER][..], &[FOREVER; 3]] {
        let seen = search(&target, Wanted::Patterns(&patterns), None, &devices(&target, lives));
        assert_eq!((seen.ended, seen.tried), (Ended::Exhausted, 1 << 16));
        let mask = SaltMask::beginning(&[7; 30]);
        let expected: HashSet<[u8; 32]> = (0..1 << 16)
            .map(|counter| mask.fill(&[0; 32], counter))
            .filter(|salt| target.digest(salt).as_bytes()[0] == 0xab)
            .collect();
        let found: HashSet<[u8; 32]> = seen.found.iter().map(|(_, salt, _)| *salt).collect();
        assert_eq!(found, expected);
        assert_eq!(found.len(), seen.found.len(), "each once");
        assert!(seen.found.iter().all(|(address, _, _)| address.to_lowercase().starts_with("0xab")));
    }
}

#[test]
fn what_a_dying_device_leaves_is_searched_by_the_others_and_nothing_is_told_twice() {
    let target = deployment(2);
    let patterns = compile(["ab"], &target as &dyn Target, &Options::default()).expect("possible");
    let all = search(&target, Wanted::Patterns(&patterns), None, &devices(&target, &[FOREVER]));
    let seen = search(&target, Wanted::Patterns(&patterns), None, &devices(&target, &[FOREVER, 2, 5]));
    assert_eq!((seen.ended, seen.warnings), (Ended::Exhausted, 2));
    let salts = |seen: &Seen| {
        let mut salts: Vec<[u8; 32]> = seen.found.iter().map(|(_, salt, _)| *salt).collect();
        salts.sort_unstable();
        salts
    };
    assert_eq!(salts(&seen), salts(&all));
    assert!(all.found.len() > 100, "about 256 are expected: {}", all.found.len());
}

/// A worker is given its salts before it starts; when it cannot, they are still to be searched.
#[test]
fn what_a_device_that_does_not_start_was_given_is_searched_by_the_others() {
    let target = deployment(2);
    let patterns = compile(["ab"], &target as &dyn Target, &Options::default()).expect("possible");
    let wanted = Wanted::Patterns(&patterns);
    let refuses = Some(wanted.filter(1.0, 0));
    let stillborn = Reference { id: "stillborn", refuses, ..Reference::new(&target, FOREVER) };
    let list: Vec<Arc<dyn Backend>> = vec![Arc::new(stillborn), Arc::new(Reference::new(&target, FOREVER))];
    let seen = search(&target, wanted, None, &Devices::of(list));
    assert_eq!((seen.ended, seen.tried, seen.warnings), (Ended::Exhausted, 1 << 16, 1));
}

#[test]
fn the_count_asked_for_ends_a_search_over_salts() {
    let target = deployment(32);
    let patterns = compile(["a"], &target as &dyn Target, &Options::default()).expect("possible");
    let seen = search(&target, Wanted::Patterns(&patterns), Some(7), &devices(&target, &[FOREVER, FOREVER]));
    assert_eq!((seen.ended, seen.found.len()), (Ended::Count, 7));
    let salts: HashSet<[u8; 32]> = seen.found.iter().map(|(_, salt, _)| *salt).collect();
    assert_eq!(salts.len(), 7);
}

/// Each result is better than all before, none of the best is lost in the flood at the start, and the last is the best
/// there is.
#[test]
fn scores_only_rise_and_the_best_of_all_is_found() {
    let target = deployment(2);
    let mask = SaltMask::beginning(&[7; 30]);
    for score in [Feature::LeadingZeros, Feature::Zeros, Feature::Leading(10)].map(Score::from) {
        let ranking = Ranking::new(score.clone());
        let wanted = Wanted::best(&ranking);
        let seen = search(&target, wanted, None, &devices(&target, &[FOREVER, FOREVER]));
        assert_eq!(seen.ended, Ended::Exhausted);
        let scores: Vec<u32> = seen.found.iter().map(|(_, _, score)| score.expect("scored")).collect();
        assert!(scores.windows(2).all(|pair| pair[0] < pair[1]), "{scores:?}");
        let best = (0..1 << 16).map(|counter| score.of(&target.digest(&mask.fill(&[0; 32], counter)))).max();
        assert_eq!(scores.last().copied(), best);
        for (_, salt, told) in &seen.found {
            assert_eq!(Some(score.of(&target.digest(salt))), *told);
        }
    }
}

#[test]
fn a_score_that_is_enough_ends_the_search() {
    let target = deployment(32);
    let ranking = Ranking::new(Feature::Zeros);
    let wanted = Wanted::Best { ranking: &ranking, show: Show::Better, enough: Some(2) };
    let seen = search(&target, wanted, None, &devices(&target, &[FOREVER]));
    assert_eq!(seen.ended, Ended::Count);
    assert!(seen.found.last().expect("found").2 >= Some(2));
}

/// On the processor and on a card, of all salts there are: every tie of the best, everything at or above a score, the best of those that
/// match what a device cannot tell whole. Floods at the start keep nothing back.
#[test]
fn ties_floors_and_the_best_among_patterns_are_those_of_all_salts() {
    let target = deployment(2);
    let mask = SaltMask::beginning(&[7; 30]);
    let all: Vec<([u8; 32], Digest)> = (0..1 << 16)
        .map(|counter| mask.fill(&[0; 32], counter))
        .map(|salt| (salt, target.digest(&salt)))
        .collect();
    let checksum = Options { checksum: true, ..Options::default() };
    let low = Options { low_bits: Some(LowBits { count: 5, value: 9 }), ..Options::default() };
    let among = |pattern: &str, options: &Options| {
        compile([pattern], &target as &dyn Target, options).expect("possible")
    };
    let scores = ["leading-zeros", "letters", "2*run+3*zeros+count:4", "uniswap", "mirrored"];
    let mut devices = vec![Devices::cpu().expect("a processor")];
    devices.extend(crate::gpu::tests::pocl().map(|gpu| Devices::of(vec![Arc::new(gpu)])));
    for (score, devices) in
        scores.iter().flat_map(|score| devices.iter().map(move |devices| (score, devices)))
    {
        let score = Score::parse(score).expect("a score");
        let rankings = [
            Ranking::new(score.clone()),
            Ranking::among(score.clone(), among("A", &checksum)),
            Ranking::among(score.clone(), among("b", &low)),
            Ranking::among(score.clone(), among("/[a-c]..?d/", &Options::default())),
        ];
        for ranking in &rankings {
            let fits = |digest: &Digest| {
                ranking.patterns().is_none_or(|patterns| patterns.find(&target.encode(digest)).is_some())
            };
            let fitting: Vec<(u32, [u8; 32])> = all
                .iter()
                .filter(|(_, digest)| fits(digest))
                .map(|(salt, digest)| (score.of(digest), *salt))
                .collect();
            let best = fitting.iter().map(|(score, _)| *score).max().expect("some fit");
            let from = |least: u32| -> HashSet<[u8; 32]> {
                fitting.iter().filter(|(score, _)| *score >= least).map(|(_, salt)| *salt).collect()
            };
            let run = |show: Show| {
                let seen = search(&target, Wanted::Best { ranking, show, enough: None }, None, devices);
                assert_eq!(seen.ended, Ended::Exhausted);
                for (_, salt, told) in &seen.found {
                    let digest = target.digest(salt);
                    assert!(fits(&digest) && Some(score.of(&digest)) == *told, "{score}");
                }
                seen.found
                    .into_iter()
                    .map(|(_, salt, told)| (told.expect("a score"), salt))
                    .collect::<Vec<_>>()
            };
            let better = run(Show::Better);
            assert!(better.windows(2).all(|pair| pair[0].0 < pair[1].0), "{score}");
            assert_eq!(better.last().map_or(0, |last| last.0), best, "{score}");
            let ties = run(Show::Ties);
            assert!(ties.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{score}");
            let top: HashSet<_> = ties.iter().filter(|tie| tie.0 == best).map(|tie| tie.1).collect();
            assert_eq!(top, if best > 0 { from(best) } else { HashSet::new() }, "{score}");
            // A floor that some hundreds reach.
            let floor = (1..=best).find(|least| from(*least).len() < 2000).unwrap_or(best).max(1);
            let above = run(Show::AtLeast(floor));
            assert_eq!(above.len(), from(floor).len(), "{score} from {floor}");
            assert_eq!(above.into_iter().map(|one| one.1).collect::<HashSet<_>>(), from(floor), "{score}");
        }
    }
}

/// The batch that is under way when the time is up counts as tried, so what it holds must be told.
#[test]
fn what_the_last_batch_held_is_not_lost() {
    let target = deployment(32);
    let patterns = compile(["a"], &target as &dyn Target, &Options::default()).expect("possible");
    // A second until the time is up, and two more until the batch is done: far longer than a busy machine keeps a thread from
    // beginning, or from noticing.
    let pace = Duration::from_secs(3);
    let slow = Reference { id: "slow", pace, ..Reference::new(&target, FOREVER) };
    let job = Job {
        time_limit: Some(Duration::from_secs(1)),
        interval: Duration::from_secs(60),
        ..Job::new(Subject::Salt(&target), Wanted::Patterns(&patterns))
    };
    let mut found = 0;
    let outcome = run(&job, &Devices::of(vec![Arc::new(slow)]), &AtomicBool::new(false), &mut |event| {
        if let Event::Found(matches) = event {
            found += matches.len() as u64;
        }
        Ok(())
    });
    let outcome = outcome.expect("time runs out");
    assert_eq!((outcome.ended, outcome.tried, outcome.matches), (Ended::TimeLimit, 1024, found));
    assert!((20..150).contains(&found), "about 64 of 1024 begin with a: {found}");
}
