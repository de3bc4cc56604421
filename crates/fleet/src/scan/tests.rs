//! Scans without a network: every key of a range once, planted keys, and workers that leave something out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use warpsmith_engine::{Devices, Outfit, RangeRunner};
use warpsmith_trials::Random;

use super::*;
use crate::book::Book;
use crate::coordinator::{Coordinator, Policy};
use crate::duty::Found;
use crate::folder::{ORDER, Wishes, create, order_text};
use crate::id::JobId;
use crate::job::{Descriptor, Liked, Sought, Task};
use crate::wire::{Answer, Ask, Ready, Report, VERSION, Verdict};

const POLICY: Policy =
    Policy { unit_time: Duration::from_secs(1), repeat_first: 0, repeat_one_in: 0, sample: 0 };

fn key(number: U256) -> Secret {
    Secret::from_bytes(&number.to_be_bytes()).expect("a key")
}

/// The address of a key as one of these types.
fn address(number: U256, name: &str) -> String {
    let target = KeyType::find(name).expect("known").on[0].target.as_ref();
    target.encode(&target.digest(&public_point(&key(number).public_key())))
}

/// A fleet of one folder that does one scan.
struct Trial {
    folder: tempfile::TempDir,
    coordinator: Coordinator,
    job: JobId,
    task: Task,
}

impl Trial {
    fn new(order: &Order, is_hidden: bool, policy: Policy) -> Trial {
        let (sought, liked) = if is_hidden {
            (Sought::Hidden { tag: "00".into() }, Liked::Points)
        } else {
            let Order { range, types, addresses } = order.clone();
            (Sought::Range { range }, Liked::Targets { types, addresses })
        };
        let descriptor = Descriptor { fleet: Descriptor::FORMAT, round: 0, sought, liked, split: None };
        let folder = tempfile::tempdir().expect("a folder");
        let wishes = Wishes { count: None, enough: None, priority: 1.0 };
        let job = create(folder.path(), &descriptor, is_hidden.then(|| (ORDER, order_text(order))), &wishes)
            .expect("made");
        let task = Descriptor::read(&descriptor.text(), &job).expect("itself").open().expect("possible");
        let mut trial = Trial { coordinator: Coordinator::new(policy), folder, job, task };
        trial.open(1);
        trial
    }

    /// A coordinator of this epoch takes the job on.
    fn open(&mut self, epoch: u64) {
        self.coordinator.remove(self.job);
        let path = self.folder.path().join(self.job.to_string());
        self.coordinator.add(Book::open(&path, epoch, Duration::ZERO, POLICY.unit_time).expect("opened"));
    }

    fn task(&self) -> &ScanTask {
        match &self.task {
            Task::Scan(task) => task,
            Task::Search(_) => panic!("no scan"),
        }
    }

    fn book(&self) -> &Book {
        &self.coordinator.books()[0]
    }

    /// A unit of so many keys for this worker, if there is one.
    fn lease(&mut self, worker: u32, keys: f64) -> Option<Lease> {
        let outfit = Outfit { half: 0, orbits: 0, signs: false, grain: 1 };
        let ready = Some(Ready::new(self.job, outfit, keys));
        let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), Vec::new());
        let ask = Ask { version: VERSION, slot: 0, device, ready, unable, holding, busy: false };
        match self.coordinator.get(worker, &ask, Duration::ZERO) {
            Answer::Lease(lease) => Some(*lease),
            _ => None,
        }
    }

    fn put(&mut self, worker: u32, lease: Lease, matches: Vec<u64>) -> Verdict {
        let report = Report { lease, shares: Vec::new(), matches, ms: 1 };
        self.coordinator.put(worker, &report, 0.0).expect("taken")
    }

    /// All that was found: the key and what it was found as.
    fn found(&self) -> Vec<(U256, String)> {
        let book = self.book();
        let all = book.found().iter().flat_map(|at| book.settle(&at.lease, at.spot).expect("true"));
        let mut found: Vec<_> = all
            .map(|found| match found {
                Found::Finding(found) => {
                    (U256::from_be_bytes(*found.secret().as_bytes()), found.address.clone())
                }
                Found::Match(_) => panic!("a match"),
            })
            .collect();
        found.sort();
        found
    }
}

fn run(runner: &mut RangeRunner<'_>, task: &ScanTask, lease: &Lease) -> Vec<u64> {
    let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
    let unit = lease.work.range().expect("a unit");
    let wanted = task.wanted(&lease.work).expect("a unit");
    let mut spots = runner.run(&unit, &wanted, &stop, &tried).expect("done").expect("not stopped");
    spots.truncate(MOST_FOUND);
    spots
}

/// The processor, and OpenCL where there is some.
fn devices() -> Vec<Devices> {
    let open = |name: &str| Devices::open(&[name.parse().expect("a device")], Some(2));
    let mut all = vec![open("cpu").expect("a processor")];
    match open("opencl") {
        Ok(devices) => all.push(devices),
        Err(why) => eprintln!("SKIPPED: no OpenCL here: {why}"),
    }
    all
}

/// Keys at both ends of the range, in the middle, on both sides of every seam between units: each is found, once, as each address
/// it has, whoever does the units and however they are cut; and nothing else is. The ledger has the whole range.
#[test]
fn every_key_of_a_range_is_found_once() {
    let first = (U256::from(0x1234_5678_u64) << 40) + U256::from(77u8);
    let count = 150_000u64;
    let last = first + U256::from(count - 1);
    for is_hidden in [false, true] {
        let types: &[&str] = if is_hidden { &["rawtr"] } else { &["p2pkh", "p2wpkh", "eth", "p2tr"] };
        // Units of 20 and of 33 numbers in turn, and so seams at these keys.
        let seams = [20u64, 53, 73, 106, 126].map(|number| number << LEAST_CHUNK);
        let mut offsets = vec![0, 1, count / 2, count - 2, count - 1];
        offsets.extend(seams.iter().flat_map(|seam| [seam - 1, *seam]).filter(|offset| *offset < count));
        offsets.sort_unstable();
        offsets.dedup();
        let mut expected: Vec<(U256, String)> = Vec::new();
        for (at, offset) in offsets.iter().enumerate() {
            let key = first + U256::from(*offset);
            expected.push((key, address(key, types[at % types.len()])));
            if at % 4 == 0 && !is_hidden {
                expected.push((key, address(key, types[(at + 1) % types.len()])));
            }
        }
        expected.sort();
        let mut addresses: Vec<String> = expected.iter().map(|(_, address)| address.clone()).collect();
        // Beside the range, where nobody looks.
        addresses.extend([first - U256::ONE, last + U256::ONE].map(|key| address(key, types[0])));
        let order = Order {
            range: format!("{first:x}:{last:x}"),
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            addresses,
        };
        for devices in devices() {
            let mut trial = Trial::new(&order, is_hidden, POLICY);
            let mut runner = RangeRunner::new(&devices, trial.task().forms()).expect("proved");
            let mut turn = 0;
            while !trial.book().is_over() {
                turn += 1;
                let keys = if turn % 2 == 1 { 20 << LEAST_CHUNK } else { 33 << LEAST_CHUNK };
                let lease = trial.lease(1 + turn % 3, f64::from(keys)).expect("something is left");
                let spots = run(&mut runner, trial.task(), &lease);
                assert_eq!(trial.put(1 + turn % 3, lease.clone(), spots.clone()), Verdict::Counted);
                assert_eq!(trial.put(1 + turn % 3, lease, spots), Verdict::Known);
                if turn == 3 {
                    // Another coordinator goes on; what is planted is known to it as well.
                    trial.coordinator.sync().expect("synced");
                    trial.open(2);
                    break;
                }
            }
            let mut leases: Vec<Lease> = Vec::new();
            while let Some(lease) = trial.lease(9, 1e9) {
                let spots = run(&mut runner, trial.task(), &lease);
                assert_eq!(trial.put(9, lease.clone(), spots), Verdict::Counted);
                leases.push(lease);
            }
            // What the first coordinator had marked as given away comes when its time is over.
            while !trial.book().is_over() {
                let outfit = Outfit { half: 0, orbits: 0, signs: false, grain: 1 };
                let ready = Some(Ready::new(trial.job, outfit, 1e9));
                let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), Vec::new());
                let ask = Ask { version: VERSION, slot: 0, device, ready, unable, holding, busy: false };
                let Answer::Lease(lease) = trial.coordinator.get(9, &ask, 4 * POLICY.unit_time) else {
                    panic!("nothing is left, and it is not over")
                };
                let spots = run(&mut runner, trial.task(), &lease);
                assert_eq!(trial.put(9, *lease, spots), Verdict::Counted);
            }
            assert_eq!(trial.found(), expected, "hidden: {is_hidden}");
            let standing = trial.book().ledger().standing();
            assert_eq!(standing.intervals().count(), 1);
            let extra = if is_hidden { 2 << LEAST_CHUNK } else { 0 };
            assert!((u128::from(count)..=u128::from(count + extra)).contains(&standing.keys));
            let (share, cells) = trial.book().coverage(10).expect("it has an end");
            assert!((share - 1.0).abs() < 1e-9 && cells.iter().all(|cell| (cell - 1.0).abs() < 1e-9));
        }
    }
}

/// What comes back late, from the middle of what another coordinator gives out again, opens nothing and hides nothing: every number is
/// done, once, and every key found, once.
#[test]
fn numbers_that_came_back_late_hide_none_behind_them() {
    let (first, count) = (0x10_0000u64, 200u64 << LEAST_CHUNK);
    let keys = [0, 70 << LEAST_CHUNK, count - 1].map(|offset| U256::from(first + offset));
    let addresses = keys.iter().map(|key| address(*key, "p2pkh")).collect();
    let range = format!("{first:x}:{:x}", first + count - 1);
    let order = Order { range, types: vec!["p2pkh".into()], addresses };
    let mut trial = Trial::new(&order, false, POLICY);
    let devices = Devices::cpu().expect("a processor");
    let mut runner = RangeRunner::new(&devices, trial.task().forms()).expect("proved");
    let units: Vec<(Lease, Vec<u64>)> = (1..=4)
        .map(|worker| {
            let lease = trial.lease(worker, f64::from(50u32 << LEAST_CHUNK)).expect("a unit");
            let spots = run(&mut runner, trial.task(), &lease);
            (lease, spots)
        })
        .collect();
    assert_eq!(units.iter().map(|(lease, _)| lease.unit).collect::<Vec<_>>(), [1, 51, 101, 151]);
    trial.coordinator.sync().expect("synced");
    trial.open(2);
    // All of it is open again by the time the second comes back.
    trial.coordinator.tick(4 * POLICY.unit_time);
    let (late, spots) = units[1].clone();
    assert_eq!(trial.put(2, late.clone(), spots.clone()), Verdict::Counted);
    let mut seen = vec![(late.unit, late.count)];
    let mut turn = 0;
    while !trial.book().is_over() {
        turn += 1;
        assert!(
            turn < 50,
            "it does not end: {:?}",
            trial.book().ledger().standing().intervals().collect::<Vec<_>>()
        );
        let Some(lease) = trial.lease(9, f64::from(30u32 << LEAST_CHUNK)) else {
            panic!("nothing is left, and it is not over: {seen:?}")
        };
        if turn == 2 {
            // One that has some of these numbers, all of them open when it was given, changes nothing now.
            let (other, spots) = units[0].clone();
            assert_eq!(trial.put(1, other, spots), Verdict::Known);
        }
        let spots = run(&mut runner, trial.task(), &lease);
        assert_eq!(trial.put(9, lease.clone(), spots), Verdict::Counted);
        seen.push((lease.unit, lease.count));
    }
    seen.sort_unstable();
    let ends: Vec<u64> = seen.iter().map(|(unit, count)| unit + count).collect();
    assert_eq!(seen[0].0, 1);
    assert!(seen[1..].iter().zip(&ends).all(|((unit, _), end)| unit == end), "{seen:?}");
    assert_eq!(ends.last(), Some(&201));
    assert_eq!(trial.found().into_iter().map(|(key, _)| key).collect::<Vec<_>>(), keys);
}

/// A key that is found again in a unit of other ends, after its finder was set aside, is one key.
#[test]
fn a_key_counts_once_however_units_are_cut() {
    let keys = [70_000u32, 130_000].map(U256::from);
    let addresses = keys.iter().map(|key| address(*key, "p2pkh")).collect();
    let order = Order { range: "10000:1ffff".into(), types: vec!["p2pkh".into()], addresses };
    let mut trial = Trial::new(&order, false, POLICY);
    let devices = Devices::cpu().expect("a processor");
    let mut runner = RangeRunner::new(&devices, trial.task().forms()).expect("proved");
    let lease = trial.lease(1, 20_000.0).expect("a unit");
    let spots = run(&mut runner, trial.task(), &lease);
    assert_eq!(trial.put(1, lease, spots), Verdict::Counted);
    assert_eq!(trial.book().matches(), 1);
    trial.coordinator.set_aside(1, "for a trial").expect("noted");
    while !trial.book().is_over() {
        let lease = trial.lease(2, 3_000.0).expect("something is left");
        let spots = run(&mut runner, trial.task(), &lease);
        assert_eq!(trial.put(2, lease, spots), Verdict::Counted);
    }
    assert_eq!(trial.found().into_iter().map(|(key, _)| key).collect::<Vec<_>>(), keys);
}

/// A range in which nearly every key is a target: a report has no room for all of a unit, and none is lost.
#[test]
fn more_targets_than_a_report_has_room_for() {
    let count = 3000u64;
    let addresses = (1..=count).map(|number| address(U256::from(number), "rawtr")).collect();
    let order = Order { range: format!("1:{count:x}"), types: vec!["rawtr".into()], addresses };
    let mut trial = Trial::new(&order, false, POLICY);
    let devices = Devices::cpu().expect("a processor");
    let mut runner = RangeRunner::new(&devices, trial.task().forms()).expect("proved");
    let mut verdicts = Vec::new();
    while !trial.book().is_over() {
        let lease = trial.lease(1, 1e6).expect("something is left");
        let spots = run(&mut runner, trial.task(), &lease);
        verdicts.push((spots.len(), trial.put(1, lease, spots)));
    }
    assert_eq!(verdicts, [(MOST_FOUND, Verdict::Counted), (1976, Verdict::Counted)]);
    let keys: Vec<U256> = trial.found().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, (1..=count).map(U256::from).collect::<Vec<_>>());
    assert_eq!(trial.book().ledger().standing().keys, u128::from(count));
}

/// Whoever leaves out a planted key, or tells of one that is none, is set aside at once, and its unit is done by another.
#[test]
fn what_was_planted_must_be_found() {
    let mut random = Random::new("what_was_planted_must_be_found");
    let order = Order {
        range: "2^70:2^70+fffffff".replace("2^70+fffffff", "40000000000fffffff"),
        types: vec!["p2pkh".into()],
        addresses: vec!["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2".into()],
    };
    let hidden = Order {
        types: vec!["rawtr".into()],
        addresses: vec![address(U256::from(7u8), "rawtr")],
        ..order.clone()
    };
    for (order, is_hidden) in [(order, false), (hidden, true)] {
        let mut trial = Trial::new(&order, is_hidden, POLICY);
        let devices = Devices::cpu().expect("a processor");
        let mut runner = RangeRunner::new(&devices, trial.task().forms()).expect("proved");
        let mut planted = BTreeMap::new();
        for worker in 1..=60u32 {
            let lease = trial.lease(worker, 100_000.0).expect("something is left");
            let honest = run(&mut runner, trial.task(), &lease);
            assert!((12..=40).contains(&honest.len()), "{} were planted", honest.len());
            *planted.entry(honest.len()).or_insert(0) += 1;
            let keys = lease.work.range().expect("a unit").count;
            let mut lie = honest.clone();
            match worker % 6 {
                // One is left out, or all; half of the unit is; one that is none; one beyond; one twice.
                0 => drop(lie.remove(random.below(lie.len() as u64) as usize)),
                1 => lie.clear(),
                2 => {
                    lie.retain(|spot| *spot < keys / 2);
                    // All may lie in the half that stays.
                    if lie.len() == honest.len() {
                        lie.pop();
                    }
                }
                3 => lie.push((0..keys).rev().find(|spot| !honest.contains(spot)).expect("one")),
                4 => lie.push(keys + random.below(1000)),
                _ => lie.push(lie[0]),
            }
            lie.sort_unstable();
            let before = trial.book().ledger().standing().units;
            let verdict = trial.put(worker, lease.clone(), lie);
            assert!(matches!(verdict, Verdict::Refused { .. }), "{}: {verdict:?}", worker % 6);
            assert!(trial.coordinator.workers()[&worker].record.is_aside(), "{}", worker % 6);
            assert_eq!(trial.book().ledger().standing().units, before);
            assert!(trial.lease(worker, 1e5).is_none(), "it gets nothing more");
            // The same unit, with the same planted keys, is given to an honest one.
            let again = trial.lease(1000 + worker, 100_000.0).expect("something is left");
            assert_eq!((again.unit, &again.work), (lease.unit, &lease.work));
            let spots = run(&mut runner, trial.task(), &again);
            assert_eq!(trial.put(1000 + worker, again, spots), Verdict::Counted);
        }
        assert!(planted.len() > 8, "nobody can tell how many there are: {planted:?}");
        assert!(trial.book().found().is_empty());
    }
}

/// A hidden unit says nothing of what is looked for: neither the target nor its negative is among its points, no two units have
/// one in common, and the job's text has neither range nor target.
#[test]
fn hidden_units_hide() {
    let target = (U256::ONE << 65) + U256::from(12345u16);
    let text_of = address(target, "rawtr");
    let x = const_hex::encode(public_point(&key(target).public_key()).x);
    let range = "20000000000000000:20000000000ffffff";
    let order = Order { range: range.into(), types: vec!["rawtr".into()], addresses: vec![text_of.clone()] };
    let mut trial = Trial::new(&order, true, POLICY);
    let text = trial.book().descriptor().text();
    assert!(!text.contains(&text_of) && !text.contains(&x) && !text.contains("2000000"), "{text}");
    let mut seen = HashSet::new();
    for worker in 1..=20 {
        let lease = trial.lease(worker, 5000.0).expect("something is left");
        let told = serde_json::to_string(&lease).expect("plain values");
        assert!(!told.contains(&x) && !told.contains("20000000000"));
        let Work::Points { point, wanted, .. } = lease.work else { panic!("it is not hidden") };
        assert_eq!(wanted.len(), TOLD + 2);
        assert!(wanted.is_sorted(), "their order says nothing");
        // Each of them is the x coordinate of some point: none stands out.
        assert!(
            wanted
                .iter()
                .all(|x| read_digest(&[Form::X], &format!("0:{x}")).is_some_and(|(_, x)| lift(&x).is_some()))
        );
        assert!(seen.insert(point));
        assert!(
            wanted.into_iter().all(|x| seen.insert(x)),
            "they are all different, in this and other units"
        );
    }
    // Two jobs of the same order begin at other distances before the range.
    let firsts: HashSet<U256> = (0..20u8)
        .map(|job| {
            let master = Master::new(Secret::random().expect("random"), JobId([job; 32]));
            ScanHome::open(&order, true, &master).expect("possible").first
        })
        .collect();
    assert!(firsts.len() > 10 && firsts.iter().all(|first| *first <= U256::ONE << 65));
    // What is no public key cannot be hidden.
    let hashed = Order { types: vec!["p2pkh".into()], addresses: vec![address(target, "p2pkh")], ..order };
    let master = Master::new(Secret::random().expect("random"), JobId([0; 32]));
    assert!(ScanHome::open(&hashed, true, &master).is_err());
}

/// Two who did the same unit: whoever keeps a target to itself is set aside when another finds it.
#[test]
fn withheld_keys_are_noticed_where_a_unit_is_done_twice() {
    let policy = Policy { repeat_first: 10, repeat_one_in: 1 << 30, ..POLICY };
    let target = address(U256::from(70_000u32), "p2pkh");
    let order = Order { range: "10000:1ffff".into(), types: vec!["p2pkh".into()], addresses: vec![target] };
    let mut trial = Trial::new(&order, false, policy);
    let devices = Devices::cpu().expect("a processor");
    let mut runner = RangeRunner::new(&devices, trial.task().forms()).expect("proved");
    let lease = trial.lease(1, 1e6).expect("a unit");
    // Others are there to compare with.
    assert!(trial.lease(2, 1e6).is_none() && trial.lease(3, 1e6).is_none());
    let all = run(&mut runner, trial.task(), &lease);
    let without: Vec<u64> = all.iter().copied().filter(|spot| *spot != 70_000 - 65_536).collect();
    assert_eq!(without.len() + 1, all.len());
    assert_eq!(trial.put(1, lease, without), Verdict::Counted);
    assert!(trial.found().is_empty() && !trial.book().is_over(), "it is yet to be compared");
    assert!(trial.lease(1, 1e6).is_none(), "not by the same");
    let again = trial.lease(2, 1e6).expect("the same unit");
    assert_eq!(trial.put(2, again, all.clone()), Verdict::Known);
    assert!(trial.coordinator.workers()[&1].record.is_aside());
    assert!(!trial.coordinator.workers()[&2].record.is_aside());
    let last = trial.lease(2, 1e6).expect("the same unit, to count");
    assert_eq!(trial.put(2, last, all), Verdict::Counted);
    assert_eq!(trial.found().len(), 1);
    assert!(!trial.book().is_over(), "to be compared as well");
    // Where nobody is left to compare with, that is not waited for.
    trial.coordinator.tick(2 * POLICY.unit_time);
    assert!(!trial.book().is_over());
    trial.coordinator.tick(6 * POLICY.unit_time);
    assert!(trial.book().is_over());
}

/// The widest range there can be has units that can be done; a wider one is refused, instead of waiting for units that are none.
#[test]
fn ranges_nobody_could_cut_into_units_are_refused() {
    let order = |range: &str| Order {
        range: range.to_owned(),
        types: vec!["p2pkh".to_owned()],
        addresses: vec![address(U256::from(77u64), "p2pkh")],
    };
    let mut widest = Trial::new(&order("1:2^124-1"), false, POLICY);
    let lease = widest.lease(1, 1e6).expect("a unit");
    assert!(lease.work.candidates().is_some_and(|keys| keys == 1 << 62), "{lease:?}");
    for range in ["1:2^124", "1:2^200"] {
        let why = ScanTask::open(&order(range)).err().expect("refused").to_string();
        assert!(why.contains("2^124"), "{why}");
    }
}

/// A worker that claims 10^12 keys a second gets no more of a scan of 2^40 keys than a first unit is, again and again.
#[test]
fn claims_are_worth_no_more_than_a_first_unit() {
    let order = Order {
        range: "10000000000:1ffffffffff".to_owned(),
        types: vec!["p2pkh".to_owned()],
        addresses: vec![address(U256::from(77u64), "p2pkh")],
    };
    let mut trial = Trial::new(&order, false, POLICY);
    for _ in 0..20 {
        let lease = trial.lease(1, 1e12).expect("a unit");
        assert!(lease.work.candidates().is_some_and(|keys| keys <= 1 << 24), "{lease:?}");
    }
}
