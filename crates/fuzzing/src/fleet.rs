//! What a fleet reads: messages of workers nobody trusts, texts of jobs, invitations, and the coordinator's ledger.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;
use warpsmith_engine::Secret;
use warpsmith_fleet::Error;
use warpsmith_fleet::book::Book;
use warpsmith_fleet::coordinator::{Coordinator, Policy};
use warpsmith_fleet::folder::{FOUND, Wishes, create};
use warpsmith_fleet::id::JobId;
use warpsmith_fleet::job::{Descriptor, Task};
use warpsmith_fleet::ledger::{self, Ledger, RECORD};
use warpsmith_fleet::net::home::{Invitation, parse_server};
use warpsmith_fleet::scan::ScanTask;
use warpsmith_fleet::secrets::Master;
use warpsmith_fleet::wire::{Answer, Ask, Lease, Report, Verdict};

use crate::assert_told;
use crate::files::damage;

/// A fleet with a search that much is a match of, and a scan.
struct Fleet {
    _folder: TempDir,
    jobs: Vec<(PathBuf, JobId)>,
}

const JOBS: [&str; 2] = [
    r#"{"fleet":1,"round":0,"sought":{"kind":"key","chain":"npub"},"liked":{"by":"patterns","patterns":["q"],"ignore_case":false,"checksum":false}}"#,
    r#"{"fleet":1,"round":0,"sought":{"kind":"range","range":"1:1800"},"liked":{"by":"targets","types":["p2pkh"],"addresses":["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"]}}"#,
];

static FLEET: LazyLock<Fleet> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let wishes = Wishes { count: None, enough: None, priority: 1.0 };
    let make = |text: &str| {
        let descriptor: Descriptor = serde_json::from_str(text).expect("a job");
        let id = create(folder.path(), &descriptor, None, &wishes).expect("made");
        let job = folder.path().join(id.to_string());
        // Known, so that an input does the same each time.
        fs::remove_file(job.join("master")).expect("there");
        Master::keep(&job.join("master"), Secret::from_bytes(&[7; 32]).expect("a key"), id).expect("written");
        (job, id)
    };
    let jobs = JOBS.map(make).to_vec();
    Fleet { _folder: folder, jobs }
});

/// What a worker says of a lease it was given.
#[derive(Deserialize)]
struct Said {
    shares: Vec<u64>,
    matches: Vec<u64>,
    ms: u64,
}

/// Lines, each the text of a job (`j`), an answer (`a`), a verdict (`v`) or what worker 1 or 2 says to a coordinator: `g` and `G`
/// ask for work, `p` and `P` report, `l` and `L` report on the lease that was given last.
/// Whatever is said, no match is kept that libsecp256k1 does not find at its place, and no unit counts twice.
pub fn fleet_messages(data: &[u8]) {
    let Fleet { jobs, .. } = &*FLEET;
    // Nothing is done twice: to whom that falls is a lot, and an input must do the same each time.
    let policy =
        Policy { repeat_first: 0, repeat_one_in: 0, unit_time: Duration::from_millis(10), sample: 0 };
    let mut coordinator = Coordinator::new(policy);
    for (job, _) in jobs {
        for name in ["ledger", FOUND] {
            fs::remove_file(job.join(name)).ok();
        }
        coordinator.add(Book::open(job, 1, Duration::ZERO, policy.unit_time).expect("the job opens"));
    }
    let (mut last, mut counted): (Option<Lease>, u64) = (None, 0);
    for (at, line) in data.split(|byte| *byte == b'\n').take(64).enumerate() {
        let Some((kind, text)) = line.split_first() else { continue };
        let (worker, now) = (1 + u32::from(kind.is_ascii_uppercase()), Duration::from_millis(at as u64));
        let report = match kind.to_ascii_lowercase() {
            b'j' => {
                job_text(text);
                None
            }
            b'a' => {
                // What a worker is answered by a server it need not trust.
                if let Ok(Answer::Lease(lease)) = serde_json::from_slice(text) {
                    lease.work.candidates().inspect(|candidates| assert!(*candidates > 0));
                    ScanTask::hidden().wanted(&lease.work);
                }
                None
            }
            b'v' => {
                serde_json::from_slice::<Verdict>(text).ok();
                None
            }
            b'g' => {
                if let Ok(ask) = serde_json::from_slice::<Ask>(text) {
                    match coordinator.get(worker, &ask, now) {
                        Answer::Lease(lease) => {
                            let candidates = lease.work.candidates().expect("what is given is a unit");
                            assert!(candidates > 0 && lease.worker == worker);
                            last = Some(*lease);
                        }
                        Answer::Refused { why } => assert_told(why),
                        Answer::Prepare { .. } | Answer::Wait { .. } => {}
                    }
                    for info in coordinator.workers().values() {
                        info.devices.values().for_each(|device| assert!(!device.device.contains('\u{1b}')));
                    }
                }
                None
            }
            b'p' => serde_json::from_slice::<Report>(text).ok(),
            b'l' => serde_json::from_slice(text).ok().zip(last.clone()).map(|(said, lease)| {
                let Said { shares, matches, ms } = said;
                Report { lease, shares, matches, ms }
            }),
            _ => None,
        };
        if let Some(report) = report {
            match coordinator.put(worker, &report, 0.0).expect("no disk fails") {
                Verdict::Counted => counted += report.lease.count,
                Verdict::Known => {}
                Verdict::Refused { why } => assert_told(why),
            }
        }
    }
    let units: u64 = coordinator.books().iter().map(|book| book.ledger().standing().units).sum();
    assert!(units <= counted, "a unit counts that nobody was told of");
    for book in coordinator.books() {
        for found in book.found() {
            book.settle(&found.lease, found.spot).expect("only what is true is kept");
        }
    }
}

/// The text of a job, from a server: what is read has one way to be written, and is done or refused with the reason.
fn job_text(text: &[u8]) {
    let Ok(descriptor) = serde_json::from_slice::<Descriptor>(text) else { return };
    let (text, id) = (descriptor.text(), descriptor.id());
    match Descriptor::read(&text, &id).map_err(assert_told) {
        Ok(again) => assert_eq!(again, descriptor),
        Err(()) => return,
    }
    if let Ok(Task::Search(task)) = descriptor.open().map_err(assert_told) {
        assert!(task.salts().is_none_or(|salts| salts > 0));
    }
}

/// An invitation after `i`, or a ledger as damage to a good one; after `c` with each record's checksum made to fit.
pub fn fleet_files(data: &[u8]) {
    match data.split_first() {
        Some((b'i', text)) => invitation(&String::from_utf8_lossy(text)),
        Some((b'c', data)) => ledger(data, true),
        Some((_, data)) => ledger(data, false),
        None => {}
    }
}

fn invitation(text: &str) {
    // The fuzzer guesses no base64 of JSON.
    let encoded = text.strip_prefix('{').map(|_| Invitation::encoded(text.as_bytes()));
    let text = encoded.as_ref().map_or(text, |line| line);
    match Invitation::read(text) {
        Ok(read) => {
            let again = Invitation::read(&read.text()).expect("what was written");
            assert_eq!((&again.server, again.id, &again.name), (&read.server, read.id, &read.name));
            parse_server(&read.server).expect("a server was checked");
            assert!(read.name.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        Err(error) => {
            assert_told(&error);
            // SEC: nothing of it is repeated, so the words are the same whatever was read; of one that is damaged the length is said.
            let empty = if Invitation::is_one(text) { "warpsmith-fleet-1." } else { "" };
            let empty = Invitation::read(empty).expect_err("nothing is no invitation");
            let words = |error: &Error| error.to_string().replace(|c: char| c.is_ascii_digit(), "");
            assert_eq!(words(&error), words(&empty));
        }
    }
}

const JOB: JobId = JobId([3; 32]);

/// A ledger with a record of every kind.
static LEDGER: LazyLock<(TempDir, Vec<u8>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("good");
    for epoch in 1..3 {
        let mut ledger = Ledger::open(&path, JOB, epoch).expect("a ledger");
        // Whoever was revoked does nothing more.
        let worker = 10 * epoch as u32;
        ledger.mark(40 * epoch);
        for unit in 1..6 {
            assert!(ledger.done(worker + unit as u32 % 3, 20 * epoch + 2 * unit, 1 + unit % 2, 1 << 20));
        }
        ledger.sync().expect("written");
        ledger.revoke(worker + 2).expect("written");
    }
    let bytes = fs::read(&path).expect("the ledger");
    (folder, bytes)
});

fn ledger(data: &[u8], sums: bool) {
    let (folder, good) = &*LEDGER;
    let mut bytes = damage(good, data);
    if sums {
        for record in bytes.chunks_exact_mut(RECORD) {
            let sum = crc32fast::hash(&[JOB.as_bytes(), &record[..RECORD - 4]].concat());
            record[RECORD - 4..].copy_from_slice(&sum.to_le_bytes());
        }
    }
    let path = folder.path().join(format!("damaged-{:?}", std::thread::current().id()));
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    std::io::Write::write_all(&mut file.expect("a file"), &bytes).expect("written");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let told = |error: Error| assert_told(error);
    let looked = ledger::look(&path, JOB).map_err(told).ok();
    let Ok(mut opened) = Ledger::open(&path, JOB, 1 << 20).map_err(told) else { return };
    let looked = looked.expect("what opens can be looked at");
    assert!(opened.standing().intervals().eq(looked.intervals()));
    // What is done stays so, and the next is new, once.
    let standing = opened.standing().clone();
    let covered: u128 = standing.intervals().map(|(first, last)| u128::from(last - first) + 1).sum();
    assert_eq!(covered, u128::from(standing.units));
    if let Some((first, count)) = standing.gap(1, u64::MAX) {
        assert!(count > 0 && !standing.is_done(first));
        assert!(opened.done(900, first, 1, 5) && !opened.done(900, first, 1, 5));
        opened.sync().expect("written");
        drop(opened);
        let again = ledger::look(&path, JOB).expect("it was open");
        assert_eq!(again.units, standing.units + 1);
    }
}
