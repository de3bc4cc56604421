//! Status of a fleet: as its coordinator reports it, in pages that fit a message whatever the number of workers, and as the
//! fleet's folder has it where no coordinator answers.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::home::{Home, Member};
use crate::book::Book;
use crate::coordinator::{Coordinator, WorkerInfo};
use crate::folder::FoundAt;
use crate::id::JobId;
use crate::job::Descriptor;
use crate::proof::Trust;

/// Parts of a job whose coverage is told.
pub const CELLS: u32 = 128;
/// Jobs that are told of.
pub const MOST_JOBS: usize = 10;
/// Workers of one page.
const WORKERS: usize = 60;
/// Matches of a job that are told, the newest.
const TOLD: usize = 20;
/// Devices of a worker that are named.
const DEVICES: usize = 8;

/// How a fleet stands: what `status` and `watch` show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Epoch of the coordinator that leads; none where no coordinator answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Seconds since it began to lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// Why no coordinator answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// Jobs. A coordinator reports open ones, at most [`MOST_JOBS`]; [`add_jobs_of`](super::own::add_jobs_of) adds the others.
    pub jobs: Vec<JobStatus>,
    /// Workers: those of this page, or all of them where pages were put together.
    pub workers: Vec<WorkerStatus>,
    /// How many workers were heard of.
    #[serde(default)]
    pub known: usize,
    /// How many of them are not away.
    #[serde(default)]
    pub active: usize,
    /// Candidates a second of these, as their devices measured.
    #[serde(default)]
    pub claimed: f64,
}

/// How a job stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its name.
    pub id: JobId,
    /// What is searched, with long lists cut short.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "described")]
    pub job: Option<Descriptor>,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Units that are done.
    pub units: u64,
    /// Candidates of these.
    #[serde(with = "decimal")]
    pub tried: f64,
    /// Units in somebody's hands.
    pub leased: usize,
    /// Units whose time was over.
    pub expired: u64,
    /// Matches.
    pub matches: u64,
    /// Expected matches of what was tried.
    pub expected: f64,
    /// Share of the fleet relative to others.
    pub priority: f64,
    /// Whether it is over.
    pub over: bool,
    /// Whether it was cancelled.
    #[serde(default)]
    pub cancelled: bool,
    /// The best score, in a search for the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<u32>,
    /// How much of it is done, from 0 to 1, of a job that has an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The same of each of [`CELLS`] equal parts of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<f64>,
    /// Candidates a second of devices that are at it, as they say.
    #[serde(default)]
    pub rate: f64,
    /// What was found last, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<FoundStatus>,
}

/// A match as anybody may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundStatus {
    /// The address.
    pub address: String,
    /// Seconds after the coordinator that found it began.
    pub seconds: f64,
}

/// How a worker stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// honest, flagged or aside.
    pub trust: String,
    /// Why, where it is not honest.
    pub why: Option<String>,
    /// Whether it missed its last heartbeats: it was stopped, or lost its connection.
    #[serde(default)]
    pub away: bool,
    /// Units that were judged.
    pub units: u64,
    /// Units that were refused.
    pub refused: u64,
    /// Standard deviations of its shares from what is expected.
    pub z: f64,
    /// Candidates a second, as its devices measured; 0 while it is away.
    pub claimed: f64,
    /// Candidates a second while it worked, as its shares prove.
    pub proven: f64,
    /// Candidates that count.
    #[serde(with = "decimal")]
    pub tried: f64,
    /// Seconds since it was heard of.
    pub seen_s: f64,
    /// Its devices.
    pub devices: Vec<String>,
    /// What an hour of it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// What it cost since this coordinator first heard of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Candidates that count, for one of what it costs.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "decimal::if_any")]
    pub tried_per_cost: Option<f64>,
}

/// Numbers that may exceed 2^53, as decimal text: other readers of JSON would round them.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }

    /// Numbers that may be absent.
    pub mod if_any {
        use serde::{Deserializer, Serializer};

        pub fn serialize<S: Serializer>(number: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
            match number {
                Some(number) => super::serialize(number, to),
                None => to.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
            super::deserialize(from).map(Some)
        }
    }
}

/// A job in a document, where its nonce and chain id are decimal text. In the job's own text, which names it, they are numbers.
mod described {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
    use serde_json::Value;

    use crate::job::Descriptor;

    /// Numbers that may exceed 2^53.
    const LARGE: [&str; 2] = ["/sought/nonce", "/sought/chain_id"];

    pub fn serialize<S: Serializer>(job: &Option<Descriptor>, to: S) -> Result<S::Ok, S::Error> {
        let mut job = serde_json::to_value(job).map_err(ser::Error::custom)?;
        for path in LARGE {
            if let Some(number) = job.pointer_mut(path) {
                *number = number.to_string().into();
            }
        }
        job.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Descriptor>, D::Error> {
        let mut job = Value::deserialize(from)?;
        for path in LARGE {
            if let Some(place) = job.pointer_mut(path)
                && let Some(text) = place.as_str()
            {
                let number: u64 = text.parse().map_err(de::Error::custom)?;
                *place = number.into();
            }
        }
        serde_json::from_value(job).map_err(de::Error::custom)
    }
}

impl Status {
    /// The first page, 0, has the jobs and the sums; those from 1 on have workers, and no more of these come after one that is not full.
    pub fn page(coordinator: &Coordinator, home: &Home, epoch: u64, now: Duration, page: usize) -> Status {
        let heard = || coordinator.workers().iter().filter(|(_, info)| info.since.is_some());
        let (epoch, elapsed_s) = (Some(epoch), Some(now.as_secs_f64()));
        let mut status = Status { epoch, elapsed_s, ..Status::default() };
        let is_away = |seen| coordinator.is_away(seen, now);
        if let Some(before) = page.checked_sub(1) {
            let members: HashMap<u32, &Member> =
                home.workers().iter().map(|member| (member.id, member)).collect();
            let workers = heard().skip(before.saturating_mul(WORKERS)).take(WORKERS);
            status.workers = workers
                .map(|(id, info)| worker(*id, info, members.get(id).copied(), is_away(info.seen()), now))
                .collect();
            return status;
        }
        let active = heard().filter(|(_, info)| !info.removed && !is_away(info.seen()));
        // A sum of nothing is -0.
        status.claimed = active.clone().map(|(_, info)| rate(info)).fold(0.0, |sum, rate| sum + rate);
        (status.known, status.active) = (heard().count(), active.count());
        let jobs = coordinator.books().iter().take(MOST_JOBS);
        status.jobs = jobs.map(|book| job(book, coordinator, now)).collect();
        status
    }

    /// Whether there is another page of workers behind this one.
    pub fn is_full(&self) -> bool {
        self.workers.len() == WORKERS
    }
}

impl JobStatus {
    /// A job of which nothing is known but its name.
    pub(crate) fn new(id: JobId) -> JobStatus {
        JobStatus {
            id,
            job: None,
            problem: None,
            units: 0,
            tried: 0.0,
            leased: 0,
            expired: 0,
            matches: 0,
            expected: 0.0,
            priority: 1.0,
            over: false,
            cancelled: false,
            best: None,
            share: None,
            cells: Vec::new(),
            rate: 0.0,
            found: Vec::new(),
        }
    }

    /// The addresses and the best score of what was found.
    pub(crate) fn with_found(self, found: &[FoundAt]) -> JobStatus {
        let shown =
            |found: &FoundAt| Some(FoundStatus { address: found.address.clone()?, seconds: found.seconds });
        JobStatus {
            matches: found.len() as u64,
            best: found.iter().filter_map(|found| found.score).max(),
            found: found.iter().rev().take(TOLD).filter_map(shown).collect(),
            ..self
        }
    }
}

fn job(book: &Book, coordinator: &Coordinator, now: Duration) -> JobStatus {
    let standing = book.ledger().standing();
    let tried = standing.keys as f64;
    let (share, cells) = book.coverage(CELLS).unzip();
    let devices = coordinator.workers().values().flat_map(|info| info.devices.values());
    let at_it =
        devices.filter(|device| device.job == Some(book.id()) && !coordinator.is_away(device.seen, now));
    let status = JobStatus {
        job: Some(book.descriptor().summary()),
        units: standing.units,
        tried,
        leased: book.leases().len(),
        expired: book.leases().expired,
        expected: tried * book.duty().odds(),
        priority: book.wishes().priority,
        over: book.is_over(),
        cancelled: book.cancelled,
        share,
        // Hundredths are enough for a picture.
        cells: cells.unwrap_or_default().iter().map(|part| (part * 100.0).round() / 100.0).collect(),
        rate: at_it.map(|device| device.rate).fold(0.0, |sum, rate| sum + rate),
        ..JobStatus::new(book.id())
    };
    status.with_found(book.found())
}

fn rate(info: &WorkerInfo) -> f64 {
    info.devices.values().map(|device| device.rate).sum()
}

fn worker(id: u32, info: &WorkerInfo, member: Option<&Member>, away: bool, now: Duration) -> WorkerStatus {
    let (trust, why) = match info.record.trust() {
        _ if info.removed => ("removed", Some("it was put out".to_owned())),
        Trust::Honest => ("honest", None),
        Trust::Flagged(why) => ("flagged", Some(why.clone())),
        Trust::Aside(why) => ("aside", Some(why.clone())),
    };
    let price = member.and_then(|member| member.price);
    let seen = info.seen();
    let hours = seen.saturating_sub(info.since.unwrap_or(seen)).as_secs_f64() / 3600.0;
    let cost = price.map(|price| price * hours);
    let mut devices: Vec<String> =
        info.devices.values().take(DEVICES).map(|device| device.device.clone()).collect();
    if let Some(more) = info.devices.len().checked_sub(DEVICES).filter(|more| *more > 0) {
        devices.push(format!("and {more} more"));
    }
    WorkerStatus {
        id,
        name: member.map(|member| member.name.clone()).unwrap_or_default(),
        trust: trust.to_owned(),
        why,
        away,
        units: info.record.units,
        refused: info.refused,
        z: info.record.z(),
        claimed: if away { 0.0 } else { rate(info) },
        proven: if info.seconds > 0.0 { info.keys as f64 / info.seconds } else { 0.0 },
        tried: info.keys as f64,
        seen_s: now.saturating_sub(seen).as_secs_f64(),
        devices,
        price,
        cost,
        tried_per_cost: cost.filter(|cost| *cost > 0.0).map(|cost| info.keys as f64 / cost),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::coordinator::{MOST_SLOTS, Policy};
    use crate::folder::Wishes;
    use crate::job::Sought;
    use crate::net::submit::{cancel, status, submit};
    use crate::wire::{Ask, MOST_BYTES, Ready, VERSION};

    fn job(pattern: &str) -> Descriptor {
        let text = format!(
            r#"{{"fleet":1,"round":0,"sought":{{"kind":"key","chain":"npub"}},"liked":{{"by":"patterns","patterns":["{pattern}"],"ignore_case":false,"checksum":false}}}}"#
        );
        serde_json::from_str(&text).expect("a job")
    }

    /// A heartbeat makes a worker known to a coordinator that gave it nothing; without heartbeats it is away soon.
    #[test]
    fn heartbeats_say_who_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::init(&folder.path().join("fleet"), "127.0.0.1:1").expect("made");
        let wishes = Wishes { count: Some(1), enough: None, priority: 1.0 };
        let id = submit(&home, job("qqqqqqqqqq"), &wishes).expect("made");
        let policy = Policy::default();
        let mut coordinator = Coordinator::new(policy);
        let path = home.jobs().join(id.to_string());
        coordinator.add(Book::open(&path, 1, Duration::ZERO, policy.unit_time).expect("opened"));
        let ready = Some(Ready { job: id, half: 512, grain: 8, rate: 5e6 });
        let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), vec![7]);
        let ask = Ask { version: VERSION, slot: 0, device, ready, unable, holding, busy: true };
        coordinator.get(1, &ask, Duration::from_secs(3));
        let page = |seconds, at| Status::page(&coordinator, &home, 1, Duration::from_secs(seconds), at);
        let sums = |status: Status| (status.active, status.claimed, status.jobs[0].rate);
        assert_eq!(sums(page(4, 0)), (1, 5e6, 5e6));
        assert!(!page(22, 1).workers[0].away);
        assert_eq!(sums(page(23, 0)), (0, 0.0, 0.0));
        let worker = page(23, 1).workers.remove(0);
        assert_eq!((worker.away, worker.claimed, worker.trust.as_str()), (true, 0.0, "honest"));
        // What no device does is not believed.
        for (worker, rate) in [(2, 1e300), (3, -5.0)] {
            let ready = ready.map(|ready| Ready { rate, ..ready });
            coordinator.get(worker, &Ask { ready, ..ask.clone() }, Duration::from_secs(30));
        }
        let workers = Status::page(&coordinator, &home, 1, Duration::from_secs(30), 1).workers;
        assert_eq!(workers.iter().map(|worker| worker.claimed).collect::<Vec<_>>(), [0.0, 1e12, 0.0]);
    }

    /// Without server and coordinator: open jobs, those that are over, and a damaged one.
    #[test]
    fn jobs_of_a_folder_are_listed_without_a_coordinator() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::init(&folder.path().join("fleet"), "127.0.0.1:1").expect("made");
        let wishes = Wishes { count: Some(1), enough: None, priority: 2.0 };
        let [open, over, damaged] =
            ["qq", "pp", "zz"].map(|pattern| submit(&home, job(pattern), &wishes).expect("made"));
        cancel(&home, over).expect("there");
        std::fs::write(home.jobs().join(damaged.to_string()).join("wishes.json"), "{").expect("written");
        let status = status(&home).expect("read");
        assert!(status.unreachable.as_ref().is_some_and(|why| why.contains("connection refused")));
        assert!(status.epoch.is_none() && status.workers.is_empty());
        let of = |id| status.jobs.iter().find(|job| job.id == id).expect("listed");
        assert_eq!((of(open).over, of(open).priority, of(open).problem.as_ref()), (false, 2.0, None));
        assert!(of(over).over && of(over).cancelled);
        let problem = of(damaged).problem.as_ref().expect("damaged");
        assert!(problem.contains("wishes.json") && !problem.contains("line 1 column"), "{problem}");
        // What is searched is a document of its own, not text.
        let json = serde_json::to_value(of(open)).expect("plain");
        assert_eq!(json["job"]["liked"]["patterns"][0], "qq");
        assert_eq!(of(open).job.as_ref().expect("read").title(), "npub qq");
    }

    #[test]
    fn counts_that_doubles_round_are_decimal_texts() {
        let worker = serde_json::json!({
            "id": 1, "name": "a", "trust": "honest", "why": null, "units": 1, "refused": 0, "z": 0.0, "claimed": 0.0,
            "proven": 0.0, "tried": "18446744073709552000", "away": false, "seen_s": 0.0, "devices": [], "tried_per_cost": "0.5",
        });
        let read: WorkerStatus = serde_json::from_value(worker.clone()).unwrap();
        assert_eq!((read.tried, read.tried_per_cost), (2f64.powi(64), Some(0.5)));
        assert_eq!(serde_json::to_value(read).unwrap(), worker);
    }

    /// A job's own text, by which it is named, has numbers; its status has texts.
    #[test]
    fn nonces_and_chain_ids_of_jobs_are_decimal_texts() {
        let text = r#"{"fleet":1,"round":0,"sought":{"kind":"key","chain":"eth","nonce":18446744073709551614},"liked":{"by":"zeros"}}"#;
        let job: Descriptor = serde_json::from_str(text).expect("a job");
        let status = JobStatus { job: Some(job.clone()), ..JobStatus::new(job.id()) };
        let document = serde_json::to_value(&status).expect("plain");
        assert_eq!(document["job"]["sought"]["nonce"], "18446744073709551614");
        let read: JobStatus = serde_json::from_value(document).expect("a status");
        assert_eq!((read.job.as_ref(), job.text().as_str()), (Some(&job), text));
        let chain = Sought::Salt {
            with: "create2".to_owned(),
            factory: "createx".to_owned(),
            rule: None,
            inputs: BTreeMap::new(),
            deployer: None,
            code_hash: None,
            caller: None,
            chain_id: Some(u64::MAX),
            mask: None,
        };
        let status = JobStatus { job: Some(Descriptor { sought: chain.clone(), ..job }), ..status };
        let document = serde_json::to_value(status).expect("plain");
        assert_eq!(document["job"]["sought"]["chain_id"], u64::MAX.to_string());
        let read: JobStatus = serde_json::from_value(document).expect("a status");
        assert_eq!(read.job.map(|job| job.sought), Some(chain));
    }

    /// Workers with many devices of long names: every page fits a message, and the pages have all of them, once.
    #[test]
    fn pages_fit_messages_and_have_everybody() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::init(&folder.path().join("fleet"), "127.0.0.1:1").expect("made");
        let mut coordinator = Coordinator::new(Policy::default());
        for id in 1..=200 {
            for slot in 0..if id % 3 == 0 { MOST_SLOTS } else { 1 } {
                let (device, unable, holding) = ("x".repeat(100), Vec::new(), Vec::new());
                let ask = Ask { version: VERSION, slot, device, ready: None, unable, holding, busy: false };
                coordinator.get(id, &ask, Duration::from_secs(1));
            }
        }
        let page = |at| Status::page(&coordinator, &home, 1, Duration::from_secs(2), at);
        assert_eq!((page(0).known, page(0).active, page(0).workers.len()), (200, 200, 0));
        let (mut ids, mut at) = (Vec::new(), 1);
        loop {
            let page = page(at);
            assert!(serde_json::to_vec(&page).expect("plain").len() < MOST_BYTES, "page {at}");
            ids.extend(page.workers.iter().map(|worker| worker.id));
            if !page.is_full() {
                break;
            }
            at += 1;
        }
        assert_eq!(ids, (1..=200).collect::<Vec<_>>());
    }
}
