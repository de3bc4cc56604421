//! Hints by workers that are right, and by others.

use std::collections::BTreeSet;
use std::time::Duration;

use warpsmith_pir::database::Builder;
use warpsmith_pir::hints::reference;
use warpsmith_pir::two_server::body;

use super::*;
use crate::coordinator::{Coordinator, Policy};
use crate::folder::{Wishes, create};
use crate::job::{Descriptor, JobId, Liked, Sought, Task};
use crate::wire::{Answer, Ask, Ready, Report, VERSION, Verdict};

const ENTRIES: u64 = 900;
const SIZE: u32 = 40;

struct Fleet {
    folder: tempfile::TempDir,
    id: JobId,
    live: Live,
    task: HintTask,
    coordinator: Coordinator,
}

fn entry(index: u64) -> Vec<u8> {
    (0..u64::from(SIZE)).map(|at| (index * 31 + at * at * 7 + index / 256) as u8).collect()
}

impl Fleet {
    fn new() -> Fleet {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("db.pir");
        let mut builder = Builder::new(&database, Choice::new(ENTRIES, SIZE), 0, None).expect("a builder");
        (0..ENTRIES).for_each(|index| builder.push(&entry(index)).expect("room"));
        builder.finish().expect("whole");
        let live = Live::open(&database, Lanes::detect(), 0).expect("a database");
        let choice = Choice { lambda: 16, backups: Some(160), ..live.params().choice() };
        let params = Params::new(choice).expect("possible");
        let version = Version { database: live.base().description().identity, epoch: 0 };
        let order = HintOrder::new(version, &params);
        let descriptor = Descriptor {
            fleet: Descriptor::FORMAT,
            round: 0,
            sought: Sought::Hints { order },
            liked: Liked::All,
            split: None,
        };
        let Task::Hints(task) = descriptor.open().expect("possible") else { panic!("it is for hints") };
        assert_eq!(*task.params(), params);
        let wishes = Wishes { count: None, enough: None, priority: 1.0 };
        let own = Some((DATABASE, database.to_str().expect("plain").to_owned()));
        let id = create(&folder.path().join("jobs"), &descriptor, own, &wishes).expect("made");
        let mut fleet = Fleet { folder, id, live, task, coordinator: Coordinator::new(Policy::default()) };
        fleet.start(1);
        fleet
    }

    fn job(&self) -> PathBuf {
        self.folder.path().join("jobs").join(self.id.to_string())
    }

    /// A coordinator of this epoch, which knows what is on disk and nothing else.
    fn start(&mut self, epoch: u64) {
        // The one before lets go of the ledger.
        self.coordinator = Coordinator::new(Policy::default());
        let unit_time = Policy::default().unit_time;
        let book = crate::book::Book::open(&self.job(), epoch, Duration::ZERO, unit_time).expect("a job");
        self.coordinator.add(book);
    }

    fn lease(&mut self, worker: u32, groups: u64) -> Option<Lease> {
        let rate = (groups * self.task.group_pairs()) as f64 / Policy::default().unit_time.as_secs_f64();
        let ready = Ready { job: self.id, half: 0, orbits: 0, signs: false, grain: 1, rate: rate * 1.01 };
        let ask = Ask {
            version: VERSION,
            slot: 0,
            device: "cpu".to_owned(),
            ready: Some(ready),
            unable: Vec::new(),
            holding: Vec::new(),
        };
        match self.coordinator.get(worker, &ask, Duration::ZERO) {
            Answer::Lease(lease) => Some(*lease),
            Answer::Wait { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    fn report(&self, lease: &Lease) -> Report {
        let make = Processor { lanes: Lanes::detect(), threads: 1 };
        let hints = self.task.make(&self.live, &make, &lease.work, &AtomicBool::new(false)).expect("made");
        Report { lease: lease.clone(), shares: Vec::new(), matches: Vec::new(), ms: 5, hints }
    }

    fn put(&mut self, worker: u32, report: &Report) -> Verdict {
        let verdict = self.coordinator.put(worker, report, 1.0).expect("heard");
        self.coordinator.sync().expect("on disk");
        verdict
    }

    fn home(&self) -> HintHome {
        let master = Master::open(&self.job().join("master"), self.id).expect("a master");
        let choice = self.task.params().choice();
        let task = HintTask { version: self.task.version(), params: Params::new(choice).expect("it was") };
        HintHome::open(&self.job(), task, &master).expect("at home")
    }
}

#[test]
fn units_of_any_length_make_the_hints_of_one_machine() {
    let mut fleet = Fleet::new();
    let home = fleet.home();
    assert!(home.take().is_err(), "nothing is there yet");
    let (mut turn, mut numbers) = (0u64, BTreeSet::new());
    while let Some(lease) = fleet.lease(1 + turn as u32 % 3, 1 + turn % 5) {
        let report = fleet.report(&lease);
        assert!(serde_json::to_vec(&report).expect("plain").len() < crate::wire::MOST_BYTES);
        assert_eq!(fleet.put(lease.worker, &report), Verdict::Counted);
        assert_eq!(fleet.put(lease.worker, &report), Verdict::Known, "once");
        assert!((lease.unit..lease.unit + lease.count).all(|number| numbers.insert(number)), "each once");
        turn += 1;
        // What is on disk is enough to go on.
        if turn == 7 {
            fleet.start(2);
            // What a coordinator gave away before it ended may still come; here it does not.
            fleet.coordinator.tick(Duration::from_secs(100_000));
        }
    }
    assert_eq!(numbers.len() as u64, fleet.task.groups());
    let hints = home.take().expect("all there");
    // Extras are random; everything else is as the reference makes it of the same ones.
    let params = fleet.task.params();
    let prf = Prf::new(home.key(), params, Lanes::detect());
    let bytes: Vec<u8> = (0..ENTRIES).flat_map(entry).collect();
    let expected = reference::hints(&prf, &reference::Database::new(params, &bytes), &hints.skeleton);
    assert_eq!(hints, expected);
    let again = home.take().expect_err("never twice").to_string();
    assert!(again.contains("already"), "{again}");
    assert!(is_used(&fleet.job()));
    home.clear().expect("cleared");
    assert!(home.kept().expect("a folder").is_empty());
}

#[test]
fn false_hints_set_a_worker_aside_and_are_made_again() {
    type Spoil = fn(&mut Hints);
    let spoilers: [(&str, Spoil); 4] = [
        ("parities", |hints| hints.parities.iter_mut().for_each(|byte| *byte ^= 1)),
        ("lower halves", |hints| hints.low.iter_mut().for_each(|byte| *byte ^= 1)),
        ("cutoffs", |hints| hints.skeleton.cutoffs.iter_mut().for_each(|cutoff| *cutoff ^= 1 << 20)),
        ("extras", |hints| {
            // One that is in the hint already would show which.
            hints.skeleton.extras.iter_mut().for_each(|extra| extra.block ^= 1);
        }),
    ];
    for (what, spoil) in spoilers {
        let mut fleet = Fleet::new();
        // One that is right first, so that its work is forgotten too.
        let first = fleet.lease(1, 2).expect("work");
        let honest = fleet.report(&first);
        assert_eq!(fleet.put(1, &honest), Verdict::Counted);
        // Hints of both kinds lie around the last regular one.
        let last = fleet.task.params().regular() / GROUP;
        let lease = loop {
            let lease = fleet.lease(1, 4).expect("work");
            let (from, to) = (lease.unit - 1, lease.unit - 1 + lease.count);
            if from < last && to > last {
                break lease;
            }
            let report = fleet.report(&lease);
            assert_eq!(fleet.put(1, &report), Verdict::Counted);
        };
        let mut report = fleet.report(&lease);
        let told = BASE64.decode(report.hints.as_ref().expect("made")).expect("base64");
        let mut hints = fleet.task.read(lease.unit - 1, lease.count, &told).expect("hints");
        spoil(&mut hints);
        report.hints = Some(BASE64.encode(body(0, &hints)));
        assert!(matches!(fleet.put(1, &report), Verdict::Refused { .. }), "{what}");
        assert!(fleet.home().kept().expect("a folder").is_empty(), "{what}: nothing of it counts");
        let (mut numbers, mut worker) = (BTreeSet::new(), 2);
        while let Some(lease) = fleet.lease(worker, 40) {
            let report = fleet.report(&lease);
            assert_eq!(fleet.put(worker, &report), Verdict::Counted, "{what}");
            numbers.extend(lease.unit..lease.unit + lease.count);
            worker = 5 - worker;
        }
        assert_eq!(numbers.len() as u64, fleet.task.groups(), "{what}");
        fleet.home().take().expect("all there");
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    let mut fleet = Fleet::new();
    let home = fleet.home();
    let lease = fleet.lease(1, 3).expect("work");
    let honest = fleet.report(&lease);
    let told = honest.hints.clone().expect("made");
    assert!(home.check(&lease, Some(&told), false).is_ok());
    let shorter = fleet.lease(2, 2).expect("work");
    let other = fleet.report(&shorter).hints.expect("made");
    for bad in
        [None, Some(""), Some("no base64!"), Some(&told[1..]), Some(&told[..told.len() - 4]), Some(&other)]
    {
        assert!(home.check(&lease, bad, false).is_err(), "{bad:?}");
    }
    // The key is shown nowhere but where it goes.
    let shown = format!("{lease:?}");
    assert!(!shown.contains(&const_hex::encode(home.key().expose())) && shown.contains("redacted"));
    assert!(serde_json::to_string(&lease).expect("plain").contains(&const_hex::encode(home.key().expose())));
}

#[test]
fn orders_that_cannot_be_are_refused_with_the_reason() {
    let good = HintOrder {
        database: "ab".repeat(32),
        epoch: 0,
        entries: 1 << 20,
        entry_size: 40,
        block_size: 1 << 10,
        lambda: 80,
        pairs: 1024,
    };
    assert!(HintTask::open(&good).is_ok());
    let why = |order: HintOrder| HintTask::open(&order).err().expect("refused").to_string();
    assert!(why(HintOrder { database: "ab".to_owned(), ..good.clone() }).contains("64 hex digits"));
    assert!(why(HintOrder { entry_size: 4096, ..good.clone() }).contains("smaller"));
    assert!(why(HintOrder { entries: 0, ..good.clone() }).contains("entry"));
    assert!(why(HintOrder { lambda: 0, ..good }).len() > 5);
}
