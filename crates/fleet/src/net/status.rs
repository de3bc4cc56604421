//! How a fleet stands, as its coordinator tells it: in pages that fit a message, whatever the number of workers.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::home::{Home, Member};
use crate::book::Book;
use crate::coordinator::{Coordinator, WorkerInfo};
use crate::folder::FoundAt;
use crate::job::JobId;
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
/// How long ago lately is.
const LATELY: Duration = Duration::from_secs(180);

/// How a fleet stands: what `status` and `watch` show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Of the coordinator that says so.
    pub epoch: u64,
    /// Seconds since it began to lead.
    pub elapsed_s: f64,
    /// Jobs: all of them, but for those beyond [`MOST_JOBS`].
    pub jobs: Vec<JobStatus>,
    /// Workers: those of this page, or all of them where pages were put together.
    pub workers: Vec<WorkerStatus>,
    /// How many workers were heard of.
    #[serde(default)]
    pub known: usize,
    /// How many of them lately.
    #[serde(default)]
    pub active: usize,
    /// Candidates a second of these, as their devices say.
    #[serde(default)]
    pub claimed: f64,
}

/// How a job stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its name.
    pub id: JobId,
    /// What is searched, as text.
    pub job: String,
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
    /// Units that were judged.
    pub units: u64,
    /// Units that were refused.
    pub refused: u64,
    /// Standard deviations of its shares from what is expected.
    pub z: f64,
    /// Candidates a second, as its devices say.
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

impl Status {
    /// The first page, 0, has the jobs and the sums; those from 1 on have workers, and no more of these come after one that is not full.
    pub fn page(coordinator: &Coordinator, home: &Home, epoch: u64, now: Duration, page: usize) -> Status {
        let heard = || coordinator.workers().iter().filter(|(_, info)| info.since.is_some());
        let mut status = Status { epoch, elapsed_s: now.as_secs_f64(), ..Status::default() };
        if let Some(before) = page.checked_sub(1) {
            let members: HashMap<u32, &Member> =
                home.workers().iter().map(|member| (member.id, member)).collect();
            let workers = heard().skip(before.saturating_mul(WORKERS)).take(WORKERS);
            status.workers =
                workers.map(|(id, info)| worker(*id, info, members.get(id).copied(), now)).collect();
            return status;
        }
        let active = heard().filter(|(_, info)| !info.removed && seen(info) + LATELY > now);
        // A sum of nothing is -0.
        status.claimed = active.clone().map(|(_, info)| rate(info)).fold(0.0, |sum, rate| sum + rate);
        (status.known, status.active) = (heard().count(), active.count());
        let jobs = coordinator.books().iter().take(MOST_JOBS);
        status.jobs = jobs.map(|book| job(book, coordinator)).collect();
        status
    }

    /// Whether there is another page of workers behind this one.
    pub fn is_full(&self) -> bool {
        self.workers.len() == WORKERS
    }
}

fn job(book: &Book, coordinator: &Coordinator) -> JobStatus {
    let standing = book.ledger().standing();
    let tried = standing.keys as f64;
    let (share, cells) = book.coverage(CELLS).unzip();
    let devices = coordinator.workers().values().flat_map(|info| info.devices.values());
    let at_it = devices.filter(|device| device.job == Some(book.id()));
    let told =
        |found: &FoundAt| Some(FoundStatus { address: found.address.clone()?, seconds: found.seconds });
    JobStatus {
        id: book.id(),
        job: book.descriptor().summary(),
        units: standing.units,
        tried,
        leased: book.leases().len(),
        expired: book.leases().expired,
        matches: book.matches(),
        expected: tried * book.duty().odds(),
        priority: book.wishes().priority,
        over: book.is_over(),
        share,
        // Hundredths are enough for a picture.
        cells: cells.unwrap_or_default().iter().map(|part| (part * 100.0).round() / 100.0).collect(),
        rate: at_it.map(|device| device.rate).sum(),
        found: book.found().iter().rev().take(TOLD).filter_map(told).collect(),
    }
}

/// When a worker was last heard of.
fn seen(info: &WorkerInfo) -> Duration {
    info.devices.values().map(|device| device.seen).max().or(info.since).unwrap_or_default()
}

fn rate(info: &WorkerInfo) -> f64 {
    info.devices.values().map(|device| device.rate).sum()
}

fn worker(id: u32, info: &WorkerInfo, member: Option<&Member>, now: Duration) -> WorkerStatus {
    let (trust, why) = match info.record.trust() {
        _ if info.removed => ("removed", Some("it was put out".to_owned())),
        Trust::Honest => ("honest", None),
        Trust::Flagged(why) => ("flagged", Some(why.clone())),
        Trust::Aside(why) => ("aside", Some(why.clone())),
    };
    let price = member.and_then(|member| member.price);
    let seen = seen(info);
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
        units: info.record.units,
        refused: info.refused,
        z: info.record.z(),
        claimed: rate(info),
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
    use super::*;
    use crate::coordinator::{MOST_SLOTS, Policy};
    use crate::wire::{Ask, MOST_BYTES, VERSION};

    /// Workers with many devices of long names: every page fits a message, and the pages have all of them, once.
    #[test]
    fn counts_that_doubles_round_are_decimal_texts() {
        let worker = serde_json::json!({
            "id": 1, "name": "a", "trust": "honest", "why": null, "units": 1, "refused": 0, "z": 0.0, "claimed": 0.0,
            "proven": 0.0, "tried": "18446744073709551616", "seen_s": 0.0, "devices": [], "tried_per_cost": "0.5",
        });
        let read: WorkerStatus = serde_json::from_value(worker.clone()).unwrap();
        assert_eq!((read.tried, read.tried_per_cost), (2f64.powi(64), Some(0.5)));
        assert_eq!(serde_json::to_value(read).unwrap(), worker);
    }

    #[test]
    fn pages_fit_messages_and_have_everybody() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::init(&folder.path().join("fleet"), "127.0.0.1:1").expect("made");
        let mut coordinator = Coordinator::new(Policy::default());
        for id in 1..=200 {
            for slot in 0..if id % 3 == 0 { MOST_SLOTS } else { 1 } {
                let (device, unable, holding) = ("x".repeat(100), Vec::new(), Vec::new());
                let ask = Ask { version: VERSION, slot, device, ready: None, unable, holding };
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
