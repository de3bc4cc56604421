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
use serde::Serialize;
use tokio::sync::mpsc;

use super::connect::as_coordinator;
use super::home::Home;
use super::leader::Leadership;
use super::status::Status;
use super::text::{TextRequest, encode_part};
use crate::blocklist;
use crate::book::Book;
use crate::coordinator::{Coordinator, MOST_SLOTS, Policy};
use crate::error::{Error, Result};
use crate::id::JobId;
use crate::wire::{Ask, MOST_BYTES, Report};

/// Requests that wait for the clerk, at most; more are not answered, and asked again.
const QUEUE: usize = 1 << 14;
/// Requests of one worker that wait for the clerk, at most: each of its devices has one or two.
const MAX_WAITING: usize = 2 * MOST_SLOTS as usize;
/// Requests that are taken at a time.
const TOGETHER: usize = 256;
/// Interval at which a leader checks that it still leads, and that it is connected.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);
/// Time after which a coordinator that was asked whether it leads is taken for gone.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a request is.
#[derive(Clone, Copy)]
enum Kind {
    Get,
    Put,
    Text,
    Status,
    Cancel,
}

struct Letter {
    kind: Kind,
    worker: u32,
    payload: Bytes,
    reply: async_nats::Subject,
    /// Counts against the worker's quota until the letter is taken.
    _waiting: Waiting,
}

/// An answer, and the subject it goes to.
type Reply = (async_nats::Subject, Vec<u8>);

/// Numbers of requests that wait for the clerk, by worker. One that sends more than [`MAX_WAITING`] takes no room from others.
#[derive(Clone, Default)]
struct Quotas(Arc<Mutex<HashMap<u32, usize>>>);

impl Quotas {
    /// Counts one more request of a worker; none if it has as many waiting as it may.
    fn take(&self, worker: u32) -> Option<Waiting> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.entry(worker).or_default();
        (*count < MAX_WAITING).then(|| {
            *count += 1;
            Waiting { quotas: self.clone(), worker }
        })
    }
}

/// A request that counts against its worker's quota.
struct Waiting {
    quotas: Quotas,
    worker: u32,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self.quotas.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = waiting.get_mut(&self.worker) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.worker);
            }
        }
    }
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

/// Waits until no other coordinator leads; none if it is stopped before.
async fn take_lead(service: &Service, client: &async_nats::Client) -> Result<Option<Leadership>> {
    loop {
        if service.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(lead) = Leadership::take(service.home.folder())? else {
            tokio::time::sleep(Duration::from_millis(500)).await;
            continue;
        };
        // This folder's lead is ours, so whoever answers leads another copy of it.
        let asked = tokio::time::timeout(PROBE_TIMEOUT, client.request("co.status", "0".into())).await;
        if let Ok(Ok(_)) = asked {
            return Err(Error::Network(format!(
                "a coordinator with another copy of this folder answers at {}: waiting until it ends; a fleet is led from one \
                 folder only",
                service.home.server()
            )));
        }
        return Ok(Some(lead));
    }
}

/// Connects, waits until it leads, and serves until it leads no longer.
async fn lead_once(service: &Arc<Service>) -> Result<()> {
    let client = as_coordinator(&service.home).await?;
    let Some(lead) = take_lead(service, &client).await? else { return Ok(()) };
    let failed = |error: &dyn std::fmt::Display| Error::Network(format!("requests cannot be taken: {error}"));
    let mut requests = Vec::new();
    for subject in ["req.get.*", "req.put.*", "req.job.*", "co.*"] {
        let subscribed = client.queue_subscribe(subject, "co".to_owned()).await;
        requests.push(subscribed.map_err(|error| failed(&error))?);
    }
    let mut requests = futures_util::stream::select_all(requests);
    let (letters, inbox) = bounded(QUEUE);
    let (replies, mut outbox) = mpsc::unbounded_channel();
    let ended = Arc::new(Mutex::new(None));
    let clerk = {
        let (service, ended, epoch) = (Arc::clone(service), Arc::clone(&ended), lead.epoch());
        std::thread::Builder::new().name("clerk".to_owned()).spawn(move || {
            let outcome = Clerk::new(&service, epoch).and_then(|mut clerk| clerk.work(&inbox, &replies));
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        })
    };
    let clerk = clerk.map_err(|error| Error::Network(format!("no thread: {error}")))?;
    // Without a connection, sending waits once many answers are queued: what is done below must not.
    let mut sender = {
        let client = client.clone();
        tokio::spawn(async move {
            while let Some((to, payload)) = outbox.recv().await {
                let _ = client.publish(to, payload.into()).await;
            }
        })
    };
    let (quotas, mut checked, mut is_connected) = (Quotas::default(), Instant::now(), true);
    let mut tick = tokio::time::interval(CHECK_INTERVAL / 12);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let lost = loop {
        tokio::select! {
            Some(message) = requests.next() => take(&letters, &quotas, message),
            _ = tick.tick() => {
                is_connected = note_connection(service, &client, is_connected);
                if checked.elapsed() >= CHECK_INTERVAL {
                    checked = Instant::now();
                    if let Err(error) = lead.check() {
                        break Some(error);
                    }
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
    if tokio::time::timeout(CHECK_INTERVAL, &mut sender).await.is_err() {
        sender.abort();
    }
    let _ = tokio::time::timeout(CHECK_INTERVAL, client.flush()).await;
    let outcome = ended.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome.unwrap_or(Ok(())).and(lost.map_or(Ok(()), Err))
}

/// Says when the connection is lost, and when it is back. The client reconnects by itself, and leading goes on.
fn note_connection(service: &Service, client: &async_nats::Client, before: bool) -> bool {
    let is_connected = client.connection_state() == async_nats::connection::State::Connected;
    let server = service.home.server();
    match (before, is_connected) {
        (true, false) => (service.note)(format!(
            "the connection to the fleet's server at {server} was lost; reconnecting, and workers keep finished units until then"
        )),
        (false, true) => (service.note)(format!("connected to the fleet's server at {server} again")),
        _ => {}
    }
    is_connected
}

/// Hands a request to the clerk. One there is no room for is not answered, and comes again.
fn take(letters: &Sender<Letter>, quotas: &Quotas, message: async_nats::Message) {
    let mut words = message.subject.split('.').skip(1);
    let kind = match (message.subject.starts_with("co."), words.next()) {
        (false, Some("get")) => Kind::Get,
        (false, Some("put")) => Kind::Put,
        (false, Some("job")) => Kind::Text,
        (true, Some("status")) => Kind::Status,
        (true, Some("cancel")) => Kind::Cancel,
        _ => return,
    };
    // SEC: the server lets a worker publish to subjects with its own number alone.
    let worker = words.next().and_then(|id| id.parse().ok()).unwrap_or(0);
    // SEC: the server lets a worker name any subject for the answer, and us publish to all: to its own inbox and nowhere else, or it
    // could speak by our hand.
    let own = if message.subject.starts_with("co.") {
        "_INBOX_co.".to_owned()
    } else {
        format!("_INBOX_{worker}.")
    };
    let reply = message.reply.filter(|reply| reply.starts_with(&own));
    if message.payload.len() <= MOST_BYTES
        && let Some(reply) = reply
        && let Some(waiting) = quotas.take(worker)
    {
        let _ = letters.try_send(Letter { kind, worker, payload: message.payload, reply, _waiting: waiting });
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
    /// Texts of jobs that are led, as workers ask for them.
    texts: HashMap<JobId, String>,
    /// Workers in the fleet's blocklist.
    blocked: HashSet<u32>,
}

impl<'s> Clerk<'s> {
    fn new(service: &'s Service, epoch: u64) -> Result<Clerk<'s>> {
        let (entries, damaged) = blocklist::read(&service.home.blocklist())?;
        for line in damaged {
            (service.note)(format!(
                "{}: line {line} is damaged, so a worker that was caught cheating may be trusted again",
                service.home.blocklist().display()
            ));
        }
        let mut coordinator = Coordinator::new(service.policy);
        for entry in &entries {
            coordinator.set_aside(entry.worker, &entry.why)?;
        }
        coordinator.take_blocked();
        let home = service.home.clone();
        let clerk = Clerk {
            service,
            coordinator,
            epoch,
            started: Instant::now(),
            closed: HashSet::new(),
            failed: HashMap::new(),
            home,
            changed: None,
            texts: HashMap::new(),
            blocked: entries.iter().map(|entry| entry.worker).collect(),
        };
        for entry in &entries {
            if let Some(name) = clerk.name_of(entry.worker) {
                (service.note)(format!(
                    "worker {} {name} stays set aside: {}; for another chance remove it and invite it again",
                    entry.worker, entry.why
                ));
            }
        }
        Ok(clerk)
    }

    /// Name of a worker; none if it was removed.
    fn name_of(&self, worker: u32) -> Option<&str> {
        let mut members = self.home.workers().iter();
        members.find(|member| member.id == worker).map(|member| member.name.as_str())
    }

    /// Keeps workers that were just set aside in the fleet's folder, for every later job and coordinator.
    fn keep_blocked(&mut self) -> Result<()> {
        let mut new = self.coordinator.take_blocked();
        new.retain(|entry| self.blocked.insert(entry.worker));
        if new.is_empty() {
            return Ok(());
        }
        blocklist::append(&self.home.blocklist(), &new)?;
        for entry in new {
            let name = self.name_of(entry.worker).unwrap_or_default();
            (self.service.note)(format!(
                "worker {} {name} is set aside, and its units are done again: {}",
                entry.worker, entry.why
            ));
        }
        Ok(())
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

    fn work(&mut self, inbox: &Receiver<Letter>, replies: &mpsc::UnboundedSender<Reply>) -> Result<()> {
        let mut looked: Option<Instant> = None;
        loop {
            if looked.is_none_or(|looked| looked.elapsed() > Duration::from_millis(500)) {
                self.look_for_workers();
                self.look_for_jobs()?;
                self.keep_blocked()?;
                looked = Some(Instant::now());
            }
            let first = match inbox.recv_timeout(Duration::from_millis(200)) {
                Ok(letter) => letter,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return self.coordinator.sync(),
            };
            let mut answers = Vec::new();
            for letter in std::iter::once(first).chain(inbox.try_iter().take(TOGETHER - 1)) {
                let Letter { kind, worker, payload, reply, .. } = letter;
                answers.extend(self.answer(kind, worker, &payload)?.map(|answer| (reply, answer)));
            }
            self.keep_blocked()?;
            self.coordinator.sync()?;
            for answer in answers {
                let _ = replies.send(answer);
            }
        }
    }

    fn answer(&mut self, kind: Kind, worker: u32, payload: &[u8]) -> Result<Option<Vec<u8>>> {
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
            Kind::Text => serde_json::from_slice::<TextRequest>(payload).ok().map(|request| {
                let text = self.texts.get(&request.job);
                text.map_or(Vec::new(), |text| encode_part(text, request.part))
            }),
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
    fn look_for_jobs(&mut self) -> Result<()> {
        self.coordinator.tick(self.started.elapsed());
        let over: Vec<JobId> =
            self.coordinator.books().iter().filter(|book| book.is_over()).map(Book::id).collect();
        for id in over {
            // SEC: results are on disk already; this only says that there will be no more.
            let path = self.service.home.jobs().join(id.to_string()).join("over");
            std::fs::write(&path, "").map_err(Error::io(&path))?;
            self.coordinator.remove(id);
            self.texts.remove(&id);
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
                Ok(mut book) => {
                    book.ledger().damage().into_iter().for_each(|text| (self.service.note)(text));
                    // Of units that a worker did before it was caught in another job nothing counts either.
                    let caught =
                        self.blocked.iter().filter(|worker| !book.ledger().revoked().contains(*worker));
                    for worker in caught.copied().collect::<Vec<_>>() {
                        book.forget(worker)?;
                    }
                    self.texts.insert(id, book.descriptor().text());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::{Wishes, create};
    use crate::job::Descriptor;
    use crate::wire::{Answer, VERSION};

    fn letter(subject: &str, reply: &str) -> async_nats::Message {
        async_nats::Message {
            subject: subject.into(),
            reply: Some(reply.into()),
            payload: Bytes::from_static(b"{}"),
            headers: None,
            status: None,
            description: None,
            length: 2,
        }
    }

    /// One that floods the queue has its quota of it, and others have room; what is taken makes room again.
    #[test]
    fn a_flood_takes_no_room_from_others() {
        let ((letters, inbox), quotas) = (bounded(QUEUE), Quotas::default());
        let flood = || (0..QUEUE).for_each(|_| take(&letters, &quotas, letter("req.get.1", "_INBOX_1.x")));
        flood();
        assert_eq!(inbox.len(), MAX_WAITING);
        take(&letters, &quotas, letter("req.put.2", "_INBOX_2.x"));
        assert_eq!(inbox.len(), MAX_WAITING + 1);
        assert_eq!(inbox.try_iter().take(10).filter(|letter| letter.worker == 1).count(), 10);
        flood();
        assert_eq!(inbox.len(), MAX_WAITING + 1);
        assert_eq!(inbox.try_iter().filter(|letter| letter.worker == 2).count(), 1);
        assert!(
            quotas.0.lock().expect("whole").is_empty(),
            "nothing is kept of workers that have nothing waiting"
        );
    }

    /// Answers go to the inbox of the worker whose subject it is, and nowhere else.
    #[test]
    fn only_a_workers_own_inbox_is_answered() {
        let ((letters, inbox), quotas) = (bounded(QUEUE), Quotas::default());
        for subject in ["req.get.1", "req.put.1", "req.job.1"] {
            for reply in
                ["_INBOX_2.x", "_INBOX_co.x", "_INBOX_1", "_INBOX_11.x", "$KV.LEAD.leader", "co.cancel", ">"]
            {
                take(&letters, &quotas, letter(subject, reply));
                assert!(inbox.is_empty(), "{subject} {reply}");
            }
            take(&letters, &quotas, letter(subject, "_INBOX_1.x"));
            assert_eq!(inbox.try_iter().count(), 1);
        }
    }

    const JOB: &str = r#"{"fleet":1,"round":0,"sought":{"kind":"key","chain":"npub"},"liked":{"by":"patterns","patterns":["qqqqqqqqqq"],"ignore_case":false,"checksum":false}}"#;

    /// A worker that was caught stays set aside in every job and for every coordinator of the folder, by number; others do not.
    #[test]
    fn a_caught_worker_stays_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut home = Home::init(&folder.path().join("fleet"), "127.0.0.1:1").expect("made");
        for name in ["one", "two"] {
            home.invite(name).expect("invited");
        }
        let notes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&notes);
        let service = Service {
            home: home.clone(),
            policy: Policy::default(),
            stop: Arc::default(),
            note: Box::new(move |text| heard.lock().expect("whole").push(text)),
        };
        let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), Vec::new());
        let ask = Ask { version: VERSION, slot: 0, device, ready: None, unable, holding, busy: false };
        let ask = serde_json::to_vec(&ask).expect("plain");
        let answer = |clerk: &mut Clerk<'_>, worker| -> Answer {
            let bytes = clerk.answer(Kind::Get, worker, &ask).expect("answered").expect("an answer");
            serde_json::from_slice(&bytes).expect("JSON")
        };
        let mut first = Clerk::new(&service, 1).expect("begun");
        assert!(matches!(answer(&mut first, 1), Answer::Wait { .. }));
        first.coordinator.set_aside(1, "a share is false").expect("set aside");
        first.keep_blocked().expect("kept");
        drop(first);
        // Another job, in which that worker had done a unit.
        let descriptor: Descriptor = serde_json::from_str(JOB).expect("a job");
        let wishes = Wishes { count: None, enough: None, priority: 1.0 };
        let id = create(&home.jobs(), &descriptor, None, &wishes).expect("made");
        let mut ledger = crate::ledger::Ledger::open(&home.jobs().join(id.to_string()).join("ledger"), id, 1)
            .expect("made");
        assert!(ledger.done(1, 1, 1, 100) && ledger.done(2, 2, 1, 100));
        ledger.sync().expect("synced");
        drop(ledger);
        let mut second = Clerk::new(&service, 2).expect("begun");
        second.look_for_jobs().expect("opened");
        let refused = answer(&mut second, 1);
        assert!(
            matches!(&refused, Answer::Refused { why } if why.contains("a share is false")),
            "{refused:?}"
        );
        assert!(matches!(answer(&mut second, 2), Answer::Prepare { job } if job == id));
        let standing = second.coordinator.books()[0].ledger().standing();
        assert_eq!((standing.units, standing.keys), (1, 100), "what it did before does not count");
        second.keep_blocked().expect("kept");
        let (entries, damaged) = blocklist::read(&home.blocklist()).expect("read");
        assert_eq!((entries.len(), entries[0].worker, damaged.len()), (1, 1, 0), "kept once");
        let notes = notes.lock().expect("whole");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("worker 1 one is set aside") && notes[1].contains("stays set aside"));
        // Texts of jobs come in parts.
        let request = serde_json::to_vec(&TextRequest { job: id, part: 0 }).expect("plain");
        let part = second.answer(Kind::Text, 2, &request).expect("answered").expect("a part");
        assert_eq!(part, [b"1\n", descriptor.text().as_bytes()].concat());
        let request = serde_json::to_vec(&TextRequest { job: JobId([1; 32]), part: 0 }).expect("plain");
        assert_eq!(second.answer(Kind::Text, 2, &request).expect("answered"), Some(Vec::new()));
    }
}
