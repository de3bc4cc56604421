//! The coordinator as a service: connects, waits until it leads, and answers until it does not.
//!
//! What decides is done by one thread, the clerk, that owns the [`Coordinator`]. Requests wait for it in a queue; it takes many at
//! a time, so that one write to disk serves all reports among them, and answers those when that write is done.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::connect::as_coordinator;
use super::home::Home;
use super::leader::{LASTS, RENEWED, Stores, own_name};
use super::status::Status;
use crate::book::Book;
use crate::coordinator::{Coordinator, Policy};
use crate::error::{Error, Result};
use crate::job::JobId;
use crate::wire::{Ask, Lease, MOST_BYTES, Report};

/// Requests that wait for the clerk, at most; more are not answered, and asked again.
const QUEUE: usize = 1 << 14;
/// Requests that are taken at a time.
const TOGETHER: usize = 256;

/// What a request is.
enum Kind {
    Get,
    Put,
    Status,
    Cancel,
    /// A match, and whom to tell that it is safe.
    Hit(tokio::sync::oneshot::Sender<()>),
}

struct Letter {
    kind: Kind,
    worker: u32,
    payload: Bytes,
    reply: Option<async_nats::Subject>,
}

/// What the clerk has done by others.
enum Errand {
    Reply(async_nats::Subject, Vec<u8>),
    Publish(JobId, String),
}

/// A match ahead of its report.
#[derive(Debug, Serialize, Deserialize)]
pub struct HitNote {
    /// The lease.
    pub lease: Lease,
    /// Where.
    pub spot: u64,
}

/// What a coordinator does, besides leading.
pub struct Service {
    /// The folder.
    pub home: Home,
    /// How the fleet is led.
    pub policy: Policy,
    /// Ends it.
    pub stop: Arc<AtomicBool>,
    /// What it has to say.
    pub note: Box<dyn Fn(String) + Send + Sync>,
}

/// Serves until it is stopped. Whatever happens to server or connection, it tries again.
pub async fn serve(service: Arc<Service>) {
    let mut last = String::new();
    while !service.stop.load(Ordering::Relaxed) {
        if let Err(error) = lead_once(&service).await {
            let text = error.to_string();
            if text != last {
                (service.note)(text.clone());
                last = text;
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Connects, waits until it leads, and serves until it leads no longer.
async fn lead_once(service: &Arc<Service>) -> Result<()> {
    let client = as_coordinator(&service.home).await?;
    let stores = Stores::open(&client).await?;
    let name = own_name();
    let mut revision = loop {
        if service.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        match stores.try_lead(&name).await {
            Some(revision) => break revision,
            None => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    };
    let failed = |error: &dyn std::fmt::Display| Error::Network(format!("requests cannot be taken: {error}"));
    let mut requests = Vec::new();
    for subject in ["req.get.*", "req.put.*", "co.*"] {
        let subscribed = client.queue_subscribe(subject, "co".to_owned()).await;
        requests.push(subscribed.map_err(|error| failed(&error))?);
    }
    let mut requests = futures_util::stream::select_all(requests);
    let mut hits = stores.hits().await?;
    let (letters, inbox) = bounded(QUEUE);
    let (errands, mut outbox) = mpsc::unbounded_channel();
    let ended = Arc::new(Mutex::new(None));
    let clerk = {
        let (service, ended, epoch) = (Arc::clone(service), Arc::clone(&ended), revision);
        std::thread::Builder::new().name("clerk".to_owned()).spawn(move || {
            let outcome = Clerk::new(&service, epoch).and_then(|mut clerk| clerk.work(&inbox, &errands));
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        })
    };
    let clerk = clerk.map_err(|error| Error::Network(format!("no thread: {error}")))?;
    let (mut renewed, mut tick) = (Instant::now(), tokio::time::interval(RENEWED / 12));
    let mut tried = Instant::now();
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let lost = loop {
        tokio::select! {
            Some(message) = requests.next() => take(&letters, message),
            Some(Ok(message)) = hits.next() => take_hit(&letters, message),
            Some(errand) = outbox.recv() => match errand {
                Errand::Reply(to, payload) => drop(client.publish(to, payload.into()).await),
                Errand::Publish(id, text) => if let Err(error) = stores.publish(id, &text).await {
                    break Some(error);
                },
            },
            _ = tick.tick() => {
                let is_due = tried.elapsed() >= RENEWED;
                if is_due {
                    tried = Instant::now();
                }
                match if is_due { stores.renew(&name, revision).await } else { Ok(revision) } {
                    Ok(_) if !is_due => {}
                    Ok(next) => (revision, renewed) = (next, Instant::now()),
                    // Another may lead from now on, or nobody can tell.
                    Err(error) if renewed.elapsed() + RENEWED > LASTS => break Some(error),
                    Err(Error::Network(text)) if text.contains("wrong last sequence") => break Some(Error::Network(text)),
                    Err(_) => {}
                }
                if clerk.is_finished() || service.stop.load(Ordering::Relaxed) {
                    break None;
                }
            }
        }
        if clerk.is_finished() || service.stop.load(Ordering::Relaxed) {
            break None;
        }
    };
    // The clerk ends when nobody writes to it any more; what it answered meanwhile is sent.
    drop(letters);
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    while let Ok(Errand::Reply(to, payload)) = outbox.try_recv() {
        let _ = client.publish(to, payload.into()).await;
    }
    let _ = tokio::time::timeout(RENEWED, client.flush()).await;
    if lost.is_none() {
        stores.resign().await;
    }
    let outcome = ended.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome.unwrap_or(Ok(())).and(lost.map_or(Ok(()), Err))
}

/// Hands a request to the clerk. What it has no room for is not answered, and comes again.
fn take(letters: &Sender<Letter>, message: async_nats::Message) {
    let mut words = message.subject.split('.').skip(1);
    let kind = match (message.subject.starts_with("co."), words.next()) {
        (false, Some("get")) => Kind::Get,
        (false, Some("put")) => Kind::Put,
        (true, Some("status")) => Kind::Status,
        (true, Some("cancel")) => Kind::Cancel,
        _ => return,
    };
    // SEC: the server lets a worker publish to subjects with its own number alone.
    let worker = words.next().and_then(|id| id.parse().ok()).unwrap_or(0);
    // SEC: the server lets a worker name any subject for the answer, and us publish to all: to its own inbox and nowhere else, or it could
    // write into our stores by our hand.
    let own = if message.subject.starts_with("co.") {
        "_INBOX_co.".to_owned()
    } else {
        format!("_INBOX_{worker}.")
    };
    let reply = message.reply.filter(|reply| reply.starts_with(&own));
    if message.payload.len() <= MOST_BYTES && reply.is_some() {
        let _ = letters.try_send(Letter { kind, worker, payload: message.payload, reply });
    }
}

fn take_hit(letters: &Sender<Letter>, message: async_nats::jetstream::Message) {
    let worker = message.subject.split('.').nth(1).and_then(|id| id.parse().ok()).unwrap_or(0);
    let (safe, is_safe) = tokio::sync::oneshot::channel();
    let payload = message.payload.clone();
    if letters.try_send(Letter { kind: Kind::Hit(safe), worker, payload, reply: None }).is_ok() {
        tokio::spawn(async move {
            if is_safe.await.is_ok() {
                let _ = message.ack().await;
            }
        });
    }
}

/// Time after which a job that could not be opened is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Who decides.
struct Clerk<'s> {
    service: &'s Service,
    coordinator: Coordinator,
    epoch: u64,
    started: Instant,
    /// Jobs that are over.
    closed: HashSet<JobId>,
    /// Jobs that could not be opened, and when that was last tried: another may still hold one, and disks recover.
    failed: HashMap<JobId, Instant>,
    /// The folder as it was when its list of workers was last changed.
    home: Home,
    changed: Option<SystemTime>,
}

impl<'s> Clerk<'s> {
    fn new(service: &'s Service, epoch: u64) -> Result<Clerk<'s>> {
        let coordinator = Coordinator::new(service.policy);
        let (started, closed, failed) = (Instant::now(), HashSet::new(), HashMap::new());
        let home = service.home.clone();
        Ok(Clerk { service, coordinator, epoch, started, closed, failed, home, changed: None })
    }

    /// Reads who was let in, and puts out who was put out.
    fn look_for_workers(&mut self) {
        let changed = self.home.changed();
        if changed == self.changed {
            return;
        }
        // A file that is just being replaced is read the next time.
        if let Ok(home) = Home::open(self.service.home.folder()) {
            home.removed().iter().for_each(|worker| self.coordinator.put_out(*worker));
            (self.home, self.changed) = (home, changed);
        }
    }

    fn work(&mut self, inbox: &Receiver<Letter>, errands: &mpsc::UnboundedSender<Errand>) -> Result<()> {
        let mut looked: Option<Instant> = None;
        loop {
            if looked.is_none_or(|looked| looked.elapsed() > Duration::from_millis(500)) {
                self.look_for_workers();
                self.look_for_jobs(errands)?;
                looked = Some(Instant::now());
            }
            let first = match inbox.recv_timeout(Duration::from_millis(200)) {
                Ok(letter) => letter,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return self.coordinator.sync(),
            };
            let (mut replies, mut safe) = (Vec::new(), Vec::new());
            for letter in std::iter::once(first).chain(inbox.try_iter().take(TOGETHER - 1)) {
                let Letter { kind, worker, payload, reply } = letter;
                let answer = self.answer(&kind, worker, &payload)?;
                if let (Some(answer), Some(reply)) = (answer, reply) {
                    replies.push(Errand::Reply(reply, answer));
                }
                if let Kind::Hit(done) = kind {
                    safe.push(done);
                }
            }
            self.coordinator.sync()?;
            for reply in replies {
                let _ = errands.send(reply);
            }
            for done in safe {
                let _ = done.send(());
            }
        }
    }

    fn answer(&mut self, kind: &Kind, worker: u32, payload: &[u8]) -> Result<Option<Vec<u8>>> {
        let (now, seconds) = (self.started.elapsed(), self.started.elapsed().as_secs_f64());
        Ok(match kind {
            Kind::Get => serde_json::from_slice::<Ask>(payload)
                .ok()
                .and_then(|ask| json(&self.coordinator.get(worker, &ask, now))),
            Kind::Put => match serde_json::from_slice::<Report>(payload) {
                // Not refused, or the worker would throw it away: it comes again.
                Ok(report) if self.failed.contains_key(&report.lease.job) => None,
                Ok(report) => json(&self.coordinator.put(worker, &report, seconds)?),
                Err(_) => None,
            },
            Kind::Hit(_) => {
                if let Ok(HitNote { lease, spot }) = serde_json::from_slice(payload) {
                    self.coordinator.hit(worker, &lease, spot, seconds)?;
                }
                None
            }
            Kind::Status => {
                let page = std::str::from_utf8(payload).ok().and_then(|text| text.parse().ok());
                json(&Status::page(&self.coordinator, &self.home, self.epoch, now, page.unwrap_or(0)))
            }
            Kind::Cancel => {
                let id = std::str::from_utf8(payload).ok().and_then(|text| text.parse().ok());
                json(&id.is_some_and(|id| self.coordinator.cancel(id)))
            }
        })
    }

    /// Takes on jobs that are new in the folder, and lets go of those that are over.
    fn look_for_jobs(&mut self, errands: &mpsc::UnboundedSender<Errand>) -> Result<()> {
        self.coordinator.tick(self.started.elapsed());
        let over: Vec<JobId> =
            self.coordinator.books().iter().filter(|book| book.is_over()).map(Book::id).collect();
        for id in over {
            // SEC: results are on disk already; this only says that there will be no more.
            let path = self.service.home.jobs().join(id.to_string()).join("over");
            std::fs::write(&path, "").map_err(Error::io(&path))?;
            self.coordinator.remove(id);
            self.closed.insert(id);
        }
        for (id, folder) in open_jobs(&self.service.home)? {
            let is_soon = |tried: &Instant| tried.elapsed() < AGAIN;
            if self.closed.contains(&id) || self.failed.get(&id).is_some_and(is_soon) {
                continue;
            }
            if let Some(book) = self.coordinator.book(id) {
                if folder.join("cancelled").exists() && !book.cancelled {
                    self.coordinator.cancel(id);
                }
                continue;
            }
            let before = crate::ledger::look(&folder.join("ledger"), id).map_or(0, |standing| standing.epoch);
            let epoch = self.epoch.max(before + 1);
            let unit_time = self.service.policy.unit_time;
            match Book::open(&folder, epoch, self.started.elapsed(), unit_time) {
                Ok(book) => {
                    let _ = errands.send(Errand::Publish(id, book.descriptor().text()));
                    self.coordinator.add(book);
                    self.failed.remove(&id);
                }
                Err(error) => {
                    if self.failed.insert(id, Instant::now()).is_none() {
                        let text = format!("job {} cannot be led: {error}; it is tried again", id.short());
                        (self.service.note)(text);
                    }
                }
            }
        }
        Ok(())
    }
}

fn json(answer: &impl Serialize) -> Option<Vec<u8>> {
    Some(serde_json::to_vec(answer).expect("plain values"))
}

/// Jobs of a folder that are not over.
pub fn open_jobs(home: &Home) -> Result<Vec<(JobId, std::path::PathBuf)>> {
    let folder = home.jobs();
    let mut jobs = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Error::io(&folder))?.flatten() {
        let path = entry.path();
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(id) = id.filter(|_| is_open(&path)) {
            jobs.push((id, path));
        }
    }
    jobs.sort();
    Ok(jobs)
}

fn is_open(job: &Path) -> bool {
    job.join("job.json").exists() && !job.join("over").exists()
}
