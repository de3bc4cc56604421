//! Lying workers, and coordinators that are replaced, without a network.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use warpsmith_engine::{Devices, UnitRunner};
use warpsmith_trials::{Random, count};

use super::*;
use crate::duty::Found;
use crate::folder::{FOUND, Wishes, create};
use crate::job::{Descriptor, Liked, Search, Sought, Task};
use crate::net::own::OwnJob;
use crate::wire::{Lease, Ready, Work};

const POLICY: Policy =
    Policy { unit_time: Duration::from_millis(1), repeat_first: 0, repeat_one_in: 0, sample: 0 };

fn job(pattern: &str) -> Descriptor {
    Descriptor {
        fleet: Descriptor::FORMAT,
        round: 0,
        sought: Sought::Key {
            chain: "npub".into(),
            address_type: None,
            network: None,
            prefix: None,
            nonce: None,
        },
        liked: Liked::Patterns { patterns: vec![pattern.into()], ignore_case: false, checksum: false },
        split: None,
    }
}

fn search(pattern: &str) -> Box<Search> {
    match job(pattern).open().expect("possible") {
        Task::Search(search) => search,
        Task::Scan(_) => panic!("no search"),
    }
}

fn start(folder: &Path, pattern: &str, epoch: u64, policy: Policy) -> (Coordinator, JobId) {
    let wishes = Wishes { count: None, enough: None, priority: 1.0 };
    let id = create(folder, &job(pattern), None, &wishes).expect("made");
    let book =
        Book::open(&folder.join(id.to_string()), epoch, Duration::ZERO, policy.unit_time).expect("opened");
    let mut coordinator = Coordinator::new(policy);
    coordinator.add(book);
    (coordinator, id)
}

fn ask(ready: Ready, holding: &[u64]) -> Ask {
    Ask {
        version: VERSION,
        slot: 0,
        device: "cpu".into(),
        ready: Some(ready),
        unable: Vec::new(),
        holding: holding.to_vec(),
        busy: false,
    }
}

struct Worker<'a> {
    runner: UnitRunner<'a>,
    ready: Ready,
}

impl Worker<'_> {
    fn lease(&self, coordinator: &mut Coordinator, worker: u32) -> Lease {
        match coordinator.get(worker, &ask(self.ready, &[]), Duration::ZERO) {
            Answer::Lease(lease) => *lease,
            other => panic!("{other:?}"),
        }
    }

    fn work(&mut self, lease: &Lease) -> Report {
        let unit = lease.work.unit().expect("a unit");
        let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
        let covered =
            self.runner.run(&unit, lease.bits, lease.beat, &stop, &tried).expect("done").expect("done");
        Report { lease: lease.clone(), shares: covered.shares, matches: covered.matches, ms: 1 }
    }
}

/// A worker on the processor whose units have some hundred thousand keys.
fn with_worker(id: JobId, test: impl FnOnce(Worker<'_>)) {
    with_worker_for("qqqqqqqqqq", id, test);
}

/// The same for another pattern; of an easy one units are shorter.
fn with_worker_for(pattern: &str, id: JobId, test: impl FnOnce(Worker<'_>)) {
    let task = search(pattern);
    let devices = Devices::open(&["cpu".parse().expect("a device")], Some(1)).expect("a processor");
    let runner = UnitRunner::new(&devices, task.subject(), task.wanted()).expect("proved");
    let ready = Ready::new(id, runner.outfit(), 3e8);
    test(Worker { runner, ready });
}

/// Works until the job has all it wants.
fn work_to_the_end(coordinator: &mut Coordinator, id: JobId) {
    with_worker_for("qq", id, |mut worker| {
        while !coordinator.books()[0].is_over() {
            let lease = worker.lease(coordinator, 1);
            let report = worker.work(&lease);
            coordinator.put(1, &report, 0.0).expect("taken");
        }
    });
}

/// T10: what liars do, many times each. Nothing is accepted, and an honest unit afterwards still is.
#[test]
fn liars_are_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut coordinator, id) = start(folder.path(), "qqqqqqqqqq", 1, POLICY);
    let mut random = Random::new("liars_are_not_believed");
    with_worker(id, |mut worker| {
        let lease = worker.lease(&mut coordinator, 1);
        let other = worker.lease(&mut coordinator, 2);
        let (honest, of_other) = (worker.work(&lease), worker.work(&other));
        assert!((25..180).contains(&honest.shares.len()), "{} shares", honest.shares.len());
        let Work::Keys { steps, .. } = lease.work else { panic!("keys") };
        let sorted = |mut shares: Vec<u64>| {
            shares.sort_unstable();
            shares
        };
        // Two units may have a share at the same spot: that would be no lie.
        let elsewhere: Vec<u64> =
            of_other.shares.iter().copied().filter(|spot| !honest.shares.contains(spot)).collect();
        type Lie<'l> = Box<dyn Fn(&mut Random) -> Report + 'l>;
        let with = |shares: Vec<u64>| Report { shares: sorted(shares), ..honest.clone() };
        let forge = |at: usize, spot: u64| {
            let mut shares = honest.shares.clone();
            shares[at] = spot;
            with(shares)
        };
        let lies: Vec<(&str, Lie<'_>)> = vec![
            (
                "wrong offset",
                Box::new(|r| {
                    let at = r.below(honest.shares.len() as u64) as usize;
                    forge(at, honest.shares[at] ^ 1 << (6 + r.below(8)))
                }),
            ),
            (
                "wrong twist",
                Box::new(|r| {
                    let at = r.below(honest.shares.len() as u64) as usize;
                    forge(at, honest.shares[at] ^ (2 << r.below(2)))
                }),
            ),
            ("out of range", Box::new(|r| forge(0, (steps + r.below(1 << 40)) << 17 | 1 << 6))),
            ("k = 0: a place that is none", Box::new(|r| forge(0, r.below(8) << 3 | 7))),
            (
                "share of another unit",
                Box::new(|r| forge(0, elsewhere[r.below(elsewhere.len() as u64) as usize])),
            ),
            ("another's report", Box::new(|_| of_other.clone())),
            (
                "shares told twice",
                Box::new(|r| {
                    let mut shares = honest.shares.clone();
                    shares.push(shares[r.below(shares.len() as u64) as usize]);
                    with(shares)
                }),
            ),
            ("too few shares", Box::new(|r| with(honest.shares[..r.below(8) as usize].to_vec()))),
            (
                "a quarter left out",
                Box::new(|r| {
                    let from = r.below(3) * steps / 4;
                    let is_kept = |spot: &&u64| !(from..from + steps / 3).contains(&(**spot >> 17));
                    with(honest.shares.iter().filter(is_kept).copied().take(28).collect())
                }),
            ),
            (
                "unit never leased",
                Box::new(|r| {
                    let unit = 2 + r.below(1 << 40);
                    Report { lease: Lease { unit, ..lease.clone() }, ..honest.clone() }
                }),
            ),
            (
                "an easier unit",
                Box::new(|r| Report {
                    lease: Lease { bits: lease.bits - 1 - r.below(3) as u32, ..lease.clone() },
                    ..honest.clone()
                }),
            ),
            ("more than a unit has", Box::new(|r| with((0..3000 + r.below(1 << 16)).collect()))),
            (
                "false match",
                Box::new(|r| Report { matches: vec![(1 + r.below(steps - 1)) << 17], ..honest.clone() }),
            ),
        ];
        for (name, lie) in &lies {
            for _ in 0..count(100, 1000) {
                let report = lie(&mut random);
                let verdict = coordinator.put(1, &report, 0.0).expect("taken");
                assert!(matches!(verdict, Verdict::Refused { .. }), "{name}: {verdict:?}");
                assert_eq!(coordinator.books()[0].ledger().standing().units, 0, "{name}");
                assert!(coordinator.books()[0].found().is_empty(), "{name}");
                // As if it had never been heard of.
                coordinator.workers.remove(&1);
            }
        }
        // The ledger remembers who was caught; another coordinator, and another worker, can do the unit.
        drop(coordinator);
        let fresh = tempfile::tempdir().expect("a folder");
        let (mut coordinator, _) = start(fresh.path(), "qqqqqqqqqq", 1, POLICY);
        let lease = worker.lease(&mut coordinator, 1);
        let honest = worker.work(&lease);
        assert_eq!(coordinator.put(1, &honest, 0.0).expect("taken"), Verdict::Counted);
        for _ in 0..count(100, 1000) {
            // Replayed, and late: known, and credited once.
            assert_eq!(coordinator.put(1, &honest, 0.0).expect("taken"), Verdict::Known);
        }
        let standing = coordinator.books()[0].ledger().standing().clone();
        assert_eq!(
            (standing.units, standing.keys),
            (1, honest.lease.work.unit().expect("a unit").candidates())
        );
        let info = &coordinator.workers()[&1];
        assert_eq!((info.record.units, info.keys), (1, standing.keys));
    });
}

/// A false share sets a worker aside at once: nothing it did before counts, and nobody gives it anything.
#[test]
fn a_false_share_costs_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut coordinator, id) = start(folder.path(), "qqqqqqqqqq", 1, POLICY);
    with_worker(id, |mut worker| {
        for n in 0..3 {
            let lease = worker.lease(&mut coordinator, 5);
            let mut report = worker.work(&lease);
            if n == 2 {
                // Beyond the last one there is no true one, and the order stays.
                *report.shares.last_mut().expect("shares") += 1 << 6;
            }
            coordinator.put(5, &report, 0.0).expect("taken");
            assert_eq!(coordinator.books()[0].ledger().standing().units, [1, 2, 0][n]);
        }
        let answer = coordinator.get(5, &ask(worker.ready, &[]), Duration::ZERO);
        assert!(matches!(answer, Answer::Refused { ref why } if why.contains("false")), "{answer:?}");
        // Its units are given to the next one who asks, lowest first or not, but all of them.
        let mut units: Vec<u64> = Vec::new();
        for _ in 0..3 {
            let Answer::Lease(lease) =
                coordinator.get(6, &Ask { holding: units.clone(), ..ask(worker.ready, &[]) }, Duration::ZERO)
            else {
                break;
            };
            units.push(lease.unit);
        }
        units.sort_unstable();
        assert!(units.len() == 2 && units.iter().all(|unit| *unit <= 3), "{units:?}");
    });
}

/// Units done twice: one that left out a share another has is set aside, whoever of the two came first.
#[test]
fn units_done_twice_are_compared() {
    for cheat in [1, 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let policy = Policy { repeat_first: 10, repeat_one_in: 1 << 30, ..POLICY };
        let (mut coordinator, id) = start(folder.path(), "qqqqqqqqqq", 1, policy);
        with_worker(id, |mut worker| {
            // Both are known, so that there is somebody to compare with.
            for other in [1, 2] {
                coordinator.get(other, &ask(worker.ready, &[]), Duration::ZERO);
            }
            let lease = worker.lease(&mut coordinator, 1);
            let honest = worker.work(&lease);
            let mut first = honest.clone();
            if cheat == 1 {
                first.shares.remove(7);
            }
            assert_eq!(coordinator.put(1, &first, 0.0).expect("taken"), Verdict::Counted);
            let again = worker.lease(&mut coordinator, 2);
            assert_eq!((again.unit, &again.work, again.bits), (lease.unit, &lease.work, lease.bits));
            let mut second = Report { lease: again, ..honest };
            if cheat == 2 {
                second.shares.remove(0);
            }
            assert_eq!(coordinator.put(2, &second, 0.0).expect("taken"), Verdict::Known);
            for worker in [1, 2] {
                assert_eq!(coordinator.workers()[&worker].record.is_aside(), worker == cheat);
            }
            assert_eq!(coordinator.books()[0].ledger().standing().units, u64::from(cheat == 2));
        });
    }
}

/// A coordinator that is replaced in the midst: what was given away by the one before is taken by the next, once.
#[test]
fn leases_outlive_their_coordinator() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut first, id) = start(folder.path(), "qqqqqqqqqq", 1, POLICY);
    with_worker(id, |mut worker| {
        let lease = worker.lease(&mut first, 1);
        let report = worker.work(&lease);
        first.sync().expect("synced");
        drop(first);
        let (mut second, _) = start(folder.path(), "qqqqqqqqqq", 2, POLICY);
        let new = worker.lease(&mut second, 2);
        assert!(new.unit > lease.unit, "not what may be in somebody's hands");
        assert_eq!(second.put(1, &report, 0.0).expect("taken"), Verdict::Counted);
        second.sync().expect("synced");
        drop(second);
        let (mut third, _) = start(folder.path(), "qqqqqqqqqq", 3, POLICY);
        assert_eq!(third.put(1, &report, 0.0).expect("taken"), Verdict::Known);
        // Nobody brought it back: after twice its time it is given to another.
        let late = 4 * POLICY.unit_time;
        let Answer::Lease(again) = third.get(3, &ask(worker.ready, &[]), late) else { panic!("nothing") };
        assert!(again.unit <= new.unit + 64 && again.unit != lease.unit, "{}", again.unit);
    });
}

/// Easy patterns: each match comes from a unit of its own, is verified at home, and the job ends when it has enough.
#[test]
fn matches_come_home() {
    let folder = tempfile::tempdir().expect("a folder");
    let wishes = Wishes { count: Some(3), enough: None, priority: 1.0 };
    let id = create(folder.path(), &job("qq"), None, &wishes).expect("made");
    let path = folder.path().join(id.to_string());
    let mut coordinator = Coordinator::new(POLICY);
    coordinator.add(Book::open(&path, 1, Duration::ZERO, POLICY.unit_time).expect("opened"));
    work_to_the_end(&mut coordinator, id);
    let book = &coordinator.books()[0];
    let found: Vec<_> =
        book.found().iter().flat_map(|at| book.settle(&at.lease, at.spot).expect("true")).collect();
    assert_eq!(found.len(), 3);
    let is_right = |found: &Found| {
        matches!(found, Found::Match(found)
        if found.address.starts_with("npub1qq") && found.secret().is_some())
    };
    assert!(found.iter().all(is_right));
    let units: std::collections::HashSet<u64> = book.found().iter().map(|at| at.lease.unit).collect();
    assert_eq!(units.len(), 3, "one of each unit");
    let file = crate::folder::read_found(&path.join(FOUND)).expect("read");
    assert!(file.damage.is_empty());
    assert!(file.records.iter().map(|(_, found)| found).eq(book.found()));
}

/// A disk that was full left half a line: it takes nothing along.
#[test]
fn half_a_line_does_not_take_the_next_match_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let wishes = Wishes { count: Some(2), enough: None, priority: 1.0 };
    let id = create(folder.path(), &job("qq"), None, &wishes).expect("made");
    let path = folder.path().join(id.to_string());
    let (mut file, _) = warpsmith_files::append(&path.join(FOUND)).expect("made");
    std::io::Write::write_all(&mut file, b"{\"lease\":{\"job\":").expect("written");
    let mut coordinator = Coordinator::new(POLICY);
    coordinator.add(Book::open(&path, 1, Duration::ZERO, POLICY.unit_time).expect("opened"));
    work_to_the_end(&mut coordinator, id);
    let found = coordinator.books()[0].found();
    assert_eq!(found.len(), 2);
    let file = crate::folder::read_found(&path.join(FOUND)).expect("read");
    assert!(file.records.iter().map(|(_, found)| found).eq(found));
    assert_eq!(file.damage, [(1, "it is cut short".to_owned())]);
}

/// A damaged match is named with its file and line; all others are delivered, once, whatever became of lines that were delivered
/// before.
#[test]
fn damaged_matches_are_named_and_the_others_delivered() {
    let folder = tempfile::tempdir().expect("a folder");
    let wishes = Wishes { count: Some(4), enough: None, priority: 1.0 };
    let id = create(folder.path(), &job("qq"), None, &wishes).expect("made");
    let path = folder.path().join(id.to_string());
    let mut coordinator = Coordinator::new(POLICY);
    coordinator.add(Book::open(&path, 1, Duration::ZERO, POLICY.unit_time).expect("opened"));
    work_to_the_end(&mut coordinator, id);
    drop(coordinator);
    let file = path.join(FOUND);
    let whole = std::fs::read_to_string(&file).expect("there");
    let lines: Vec<&str> = whole.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 4);
    let own = || OwnJob::open(id, path.clone()).expect("opened").skip_told().expect("read");
    let damaged = |at: usize| lines[at].replacen("\"unit\":", "\"unit\":9", 1);
    // Two are delivered; then these are damaged, and two more are there.
    std::fs::write(&file, format!("{}\n{}\n", lines[0], lines[1])).expect("written");
    let mut first = own();
    let new = first.take_new().expect("read");
    assert_eq!((new.found.len(), new.damage.len()), (2, 0));
    assert!(first.take_new().expect("read").found.is_empty());
    first.remember().expect("noted");
    let text = format!("{}\n{}\n{}\n{}\n", damaged(0), damaged(1), lines[2], damaged(3));
    std::fs::write(&file, text).expect("written");
    let mut second = own();
    let new = second.take_new().expect("read");
    assert_eq!(new.found.len(), 1);
    let named =
        |line: usize| new.damage.iter().any(|text| text.contains(&format!("found.jsonl, line {line}:")));
    assert!(new.damage.len() == 3 && [1, 2, 4].into_iter().all(named), "{:?}", new.damage);
    second.remember().expect("noted");
    // The file as it was: the one that could not be read is delivered, and no other again.
    std::fs::write(&file, &whole).expect("written");
    let new = own().take_new().expect("read");
    assert_eq!((new.found.len(), new.damage.len()), (1, 0));
}

/// A worker that claims any rate gets a small unit first, and larger ones as it proves its work; what it claims to search does not
/// count twice.
#[test]
fn claims_are_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = Policy { unit_time: Duration::from_secs(60), ..POLICY };
    let (mut coordinator, id) = start(folder.path(), "qqqqqqqqqq", 1, policy);
    let text = format!(r#"{{"job":"{id}","half":512,"orbits":1,"signs":true,"grain":16777216,"rate":1e12}}"#);
    let ready: Ready = serde_json::from_str(&text).expect("read");
    let Answer::Lease(lease) = coordinator.get(1, &ask(ready, &[]), Duration::ZERO) else {
        panic!("no lease")
    };
    let candidates = lease.work.candidates().expect("a unit") as f64;
    assert!(candidates < 1.01 * crate::pace::MAX_FIRST, "{candidates}");
    assert!(matches!(lease.work, Work::Keys { orbits: 3, signs: false, .. }), "as the target has it");
    // The second, while the first is under way, is no larger; a third it does not get.
    let mut holding = vec![lease.unit];
    let Answer::Lease(next) = coordinator.get(1, &ask(ready, &holding), Duration::ZERO) else {
        panic!("no lease")
    };
    assert_eq!(next.work.candidates(), lease.work.candidates());
    holding.push(next.unit);
    assert!(matches!(coordinator.get(1, &ask(ready, &holding), Duration::ZERO), Answer::Wait { .. }));
    // Groups that others have no program for are given to none.
    let odd = Ready { half: 1000, ..ready };
    assert!(matches!(coordinator.get(2, &ask(odd, &[]), Duration::ZERO), Answer::Wait { .. }));
}

/// A device that is slower than the one it checks is given a part of its unit, and finds what is missing there; spots count as those of
/// the whole unit.
#[test]
fn slower_devices_compare_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = Policy { repeat_first: 1000, repeat_one_in: 1 << 30, ..POLICY };
    let (mut coordinator, id) = start(folder.path(), "qqqqqqqqqq", 1, policy);
    with_worker(id, |mut worker| {
        let slow = Ready { rate: 1e8, ..worker.ready };
        coordinator.get(2, &ask(slow, &[]), Duration::ZERO);
        let part = |coordinator: &mut Coordinator| match coordinator.get(2, &ask(slow, &[]), Duration::ZERO) {
            Answer::Lease(lease) => *lease,
            other => panic!("{other:?}"),
        };
        // Honest: nobody is blamed.
        let lease = worker.lease(&mut coordinator, 1);
        let honest = worker.work(&lease);
        assert_eq!(coordinator.put(1, &honest, 0.0).expect("taken"), Verdict::Counted);
        let of_part = part(&mut coordinator);
        let (all, some) =
            (lease.work.candidates().expect("a unit"), of_part.work.candidates().expect("a unit"));
        assert!(of_part.unit == lease.unit && of_part.count == 0);
        assert!((all / 4..all / 2).contains(&some), "{some} of {all}");
        let checked = worker.work(&of_part);
        assert!(!checked.shares.is_empty());
        assert_eq!(coordinator.put(2, &checked, 0.0).expect("taken"), Verdict::Known);
        assert!(coordinator.workers().values().all(|info| !info.record.is_aside()));
        assert_eq!(coordinator.books()[0].ledger().standing().units, 1, "a comparison counts for nothing");
        // One that leaves out every eighth share is caught.
        let lease = worker.lease(&mut coordinator, 1);
        let mut short = worker.work(&lease);
        let mut at = 0;
        short.shares.retain(|_| {
            at += 1;
            at % 8 != 0
        });
        assert_eq!(coordinator.put(1, &short, 0.0).expect("taken"), Verdict::Counted);
        let of_part = part(&mut coordinator);
        assert_eq!(of_part.unit, lease.unit);
        let checked = worker.work(&of_part);
        assert_eq!(coordinator.put(2, &checked, 0.0).expect("taken"), Verdict::Known);
        assert!(coordinator.workers()[&1].record.is_aside() && !coordinator.workers()[&2].record.is_aside());
        // Who refuses a comparison is not asked for it again.
        let lease = worker.lease(&mut coordinator, 3);
        let report = worker.work(&lease);
        assert_eq!(coordinator.put(3, &report, 0.0).expect("taken"), Verdict::Counted);
        assert_eq!(part(&mut coordinator).unit, lease.unit);
        assert_ne!(part(&mut coordinator).unit, lease.unit);
    });
}

/// Two jobs share the fleet by their priorities, and a device that cannot do one is given the other.
#[test]
fn jobs_share_by_priority() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut coordinator = Coordinator::new(POLICY);
    let mut ids = Vec::new();
    for (pattern, priority) in [("qqqqqqqqqq", 1.0), ("pppppppppp", 3.0)] {
        let id = create(folder.path(), &job(pattern), None, &Wishes { count: None, enough: None, priority })
            .expect("made");
        let path = folder.path().join(id.to_string());
        coordinator.add(Book::open(&path, 1, Duration::ZERO, POLICY.unit_time).expect("opened"));
        ids.push(id);
    }
    let ready = |job| Ready { job, half: 512, grain: 8, rate: 3e8 };
    let (mut given, mut at) = ([0; 2], ids[0]);
    for _ in 0..4000 {
        match coordinator.get(1, &ask(ready(at), &[]), Duration::ZERO) {
            Answer::Lease(lease) => given[usize::from(lease.job == ids[1])] += 1,
            Answer::Prepare { job } => at = job,
            other => panic!("{other:?}"),
        }
    }
    let share = f64::from(given[1]) / f64::from(given[0]);
    assert!((2.7..3.3).contains(&share), "{given:?}");
    let unable = Ask { unable: vec![ids[1]], ready: None, ..ask(ready(at), &[]) };
    assert_eq!(coordinator.get(1, &unable, Duration::ZERO), Answer::Prepare { job: ids[0] });
}

/// A job that no device is at calls one from another job, once; a job that is over lets its devices go.
#[test]
fn a_new_job_gets_a_device_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = Policy { unit_time: Duration::from_secs(60), ..POLICY };
    let (mut coordinator, old) = start(folder.path(), "qqqqqqqqqq", 1, policy);
    let ready = |job| Ready { job, half: 512, grain: 8, rate: 3e6 };
    let now = Duration::from_secs(10);
    let get_at = |coordinator: &mut Coordinator, worker, job, holding: &[u64], busy, now| {
        coordinator.get(worker, &Ask { busy, ..ask(ready(job), holding) }, now)
    };
    let get = |coordinator: &mut Coordinator, worker, job, holding: &[u64], busy| {
        get_at(coordinator, worker, job, holding, busy, now)
    };
    let lease = |coordinator: &mut Coordinator, worker, job| match get(coordinator, worker, job, &[], false) {
        Answer::Lease(lease) => lease.unit,
        other => panic!("{other:?}"),
    };
    let units = [1, 2].map(|worker| lease(&mut coordinator, worker, old));
    let wait = Answer::Wait { ms: HEARTBEAT_INTERVAL.as_millis() as u64 };
    assert_eq!(get(&mut coordinator, 1, old, &units[..1], true), wait, "there is nothing else to do");
    let wishes = Wishes { count: None, enough: None, priority: 1.0 };
    let new = create(folder.path(), &job("pppppppppp"), None, &wishes).expect("made");
    let path = folder.path().join(new.to_string());
    coordinator.add(Book::open(&path, 1, now, policy.unit_time).expect("opened"));
    let early = now - Duration::from_millis(1);
    let answer = get_at(&mut coordinator, 1, old, &units[..1], true, early);
    assert_eq!(answer, wait, "its devices may not have been heard yet");
    assert_eq!(get(&mut coordinator, 1, old, &units[..1], true), Answer::Prepare { job: new });
    assert_eq!(get(&mut coordinator, 2, old, &units[1..], true), wait, "one device is enough");
    assert_eq!(lease(&mut coordinator, 3, old), units[0], "what it dropped is another's at once");
    let unit = lease(&mut coordinator, 1, new);
    for (worker, job, holding) in [(1, new, unit), (2, old, units[1]), (3, old, units[0])] {
        assert_eq!(get(&mut coordinator, worker, job, &[holding], true), wait, "worker {worker} stays");
    }
    coordinator.cancel(old);
    assert_eq!(get(&mut coordinator, 2, old, &units[1..], true), Answer::Prepare { job: new });
}

/// By lot: a worker in good standing that makes shares up is caught within a few units, and one that does not never is.
#[test]
fn made_up_shares_are_found_by_lot() {
    let mut random = Random::new("made_up_shares_are_found_by_lot");
    let (mut caught_after, trials) = (Vec::new(), count(40, 400));
    for trial in 0..trials {
        let folder = tempfile::tempdir().expect("a folder");
        let policy = Policy { sample: 8, ..POLICY };
        let (mut coordinator, id) = start(folder.path(), "qqqqqqqqqq", 1, policy);
        with_worker(id, |mut worker| {
            // As one that has done its first units.
            let record = &mut coordinator.workers.entry(1).or_default().record;
            (0..40).for_each(|_| record.count(300_000));
            for unit in 1.. {
                let lease = worker.lease(&mut coordinator, 1);
                let mut report = worker.work(&lease);
                // Every other trial is honest.
                if trial % 2 == 0 {
                    for _ in 0..report.shares.len() / 10 {
                        let at = random.below(report.shares.len() as u64) as usize;
                        report.shares[at] ^= 2 << random.below(2);
                    }
                    report.shares.retain(|spot| lease.work.unit().expect("a unit").part(*spot).is_some());
                    report.shares.sort_unstable();
                    report.shares.dedup();
                }
                let verdict = coordinator.put(1, &report, 0.0).expect("taken");
                match (trial % 2, verdict) {
                    (0, Verdict::Refused { .. }) => {
                        caught_after.push(unit);
                        break;
                    }
                    (_, Verdict::Counted) if trial % 2 == 0 => {}
                    (_, Verdict::Counted) if unit < 3 => {}
                    (_, Verdict::Counted) => break,
                    (_, other) => panic!("{other:?}"),
                }
            }
        });
    }
    // A third of what is turned has no image any more and is dropped, so that a fifteenth of a list is false: each unit catches
    // it with a chance of two fifths.
    caught_after.sort_unstable();
    assert_eq!(caught_after.len() as u64, trials.div_ceil(2));
    assert!(caught_after[caught_after.len() / 2] <= 8 && caught_after.last() < Some(&60), "{caught_after:?}");
}
