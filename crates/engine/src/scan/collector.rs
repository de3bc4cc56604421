//! The collector of a scan: confirms what was found, publishes it, and keeps the map.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use warpsmith_chain::{AddressKind, Digest, KeyType};
use warpsmith_store::{Map, Record, U256};
use zeroize::Zeroizing;

use super::thread::{Done, Message, Shared};
use super::{Finding, Ledger, ScanJob, Sink, now};
use crate::error::{Error, Result};
use crate::origin::{Secret, public_point};
use crate::run::clock::Tick;
use crate::run::pool::PoolEvent;
use crate::run::report::{Ended, Event, Outcome, Progress};
use crate::run::session::{Member, Session};
use crate::secret::wiping_stack;
use crate::worker::Fault;
use crate::worker::scanner::Survivor;

/// How long what was covered may wait for the map to be written: batches of a processor with many cores, and pieces of a small
/// range, come more often than a disk can be waited for.
const UNSAVED: Duration = Duration::from_millis(100);

pub(super) struct Collector<'c, 's> {
    job: &'c ScanJob<'c>,
    session: Session<'c>,
    ledger: &'c mut dyn Ledger,
    sink: &'c mut Sink<'s>,
    /// When the last keys were taken in: giving memory back takes a card a tenth of a second.
    until: Instant,
    matches: u64,
    /// Addresses that were found, by earlier runs too.
    found: HashSet<(AddressKind, Digest)>,
    /// When the map is to be written, if it holds anything new.
    save_by: Option<Instant>,
    /// Whether the scan has ended: who fails now ends nothing.
    draining: bool,
}

impl<'c, 's> Collector<'c, 's> {
    pub fn new(
        job: &'c ScanJob<'c>,
        session: Session<'c>,
        ledger: &'c mut dyn Ledger,
        sink: &'c mut Sink<'s>,
    ) -> Self {
        let (until, found) = (session.clock.started(), job.targets.found_in(ledger.map()));
        Collector { job, session, ledger, sink, until, matches: 0, found, save_by: None, draining: false }
    }

    pub fn map(&self) -> &Map {
        self.ledger.map()
    }

    /// The run begins.
    pub fn begin(&mut self) {
        self.ledger.map_mut().begin(now());
    }

    pub fn save(&mut self) -> Result<()> {
        self.ledger.save()
    }

    /// The outcome, once every scanner has ended.
    pub fn outcome(&self, ended: Ended, false_hits: u64) -> Outcome {
        Outcome {
            ended,
            tried: self.session.tried(),
            matches: self.matches,
            false_hits,
            passed_over: 0,
            all_found: self.has_all(),
            elapsed: self.session.elapsed(self.until),
            steady_rate: None,
            host_cpu: None,
        }
    }

    /// Whether every address of a list was found.
    fn has_all(&self) -> bool {
        self.job.targets.count().is_some_and(|count| self.found.len() >= count)
    }

    /// Whether what was asked for is there, or nothing is left to be scanned.
    pub fn is_done(&self) -> Option<Ended> {
        let is_enough = self.job.count.is_some_and(|count| self.matches >= count);
        if is_enough || (self.job.until_found && self.has_all()) {
            return Some(Ended::Count);
        }
        self.map().is_complete().then_some(Ended::Exhausted)
    }

    /// Takes in what scanners report until the scan ends; returns why.
    pub fn collect(&mut self, shared: &Shared<'_>, receiver: &Receiver<Message>) -> Result<Ended> {
        loop {
            let now = Instant::now();
            let wait = match self.session.tick(now) {
                Tick::Interrupted => return Ok(Ended::Interrupted),
                Tick::TimeUp => return Ok(Ended::TimeLimit),
                Tick::Report => {
                    let now = self.session.clock.time(now);
                    if let Some((_, note)) = self.session.step_aside(now) {
                        self.tell(Event::Note(note))?;
                    }
                    let progress = self.progress(now);
                    self.tell(Event::Progress(&progress))?;
                    continue;
                }
                Tick::Wait(time) => time,
            };
            match receiver.recv_timeout(wait) {
                Ok(message) => {
                    self.take(shared, message)?;
                    // Others may have come meanwhile: one writing of the map serves all.
                    receiver.try_iter().try_for_each(|message| self.take(shared, message))?;
                    if let Some(ended) = self.is_done() {
                        return Ok(ended);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The pool has said why.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            }
            if self.save_by.is_some_and(|by| by <= Instant::now()) {
                self.ledger.save()?;
                self.save_by = None;
            }
        }
    }

    /// Takes in what scanners have covered until they hear of the end.
    pub fn drain(&mut self, shared: &Shared<'_>, receiver: &Receiver<Message>) -> Result<()> {
        self.draining = true;
        receiver.iter().try_for_each(|message| self.take(shared, message))
    }

    fn tell(&mut self, event: Event<'_, Finding>) -> Result<()> {
        (self.sink)(event).map_err(Error::Sink)
    }

    fn take(&mut self, shared: &Shared<'_>, message: Message) -> Result<()> {
        match message {
            Message::Joined(member) => self.take_in(*member),
            Message::Pool(PoolEvent::Settled) => self.session.settle(),
            Message::Pool(PoolEvent::Warning(text)) => self.tell(Event::Warning(text)),
            Message::Pool(PoolEvent::Note(text)) => self.tell(Event::Note(text)),
            Message::Pool(PoolEvent::Failed(error)) => Err(error),
            Message::Done(done) => self.count(shared, done),
            Message::Lost { worker, fault } => self.lose(worker, fault),
        }
    }

    /// Goes on with one scanner more.
    fn take_in(&mut self, member: Member) -> Result<()> {
        if !self.session.has_begun() {
            self.until = member.joined();
        }
        match self.session.join(member) {
            Some(note) => self.tell(Event::Note(note)),
            None => Ok(()),
        }
    }

    /// Counts a batch as covered if it is right, and has it scanned again if not.
    fn count(&mut self, shared: &Shared<'_>, done: Done) -> Result<()> {
        let Done { worker, batch, keys, hits, proof } = done;
        // What a scanner did after a batch that was not right does not count either: it may be one walk.
        let right = match self.session.is_lost(worker) {
            true => None,
            false => Some(proof.map_or(Ok(()), |proof| proof())),
        };
        if let Some(Ok(())) = right {
            // What was found is written at once: nobody wants it delivered twice.
            let wait = if hits.is_empty() { UNSAVED } else { Duration::ZERO };
            for (survivor, wanted) in hits {
                wiping_stack(|| self.confirm(worker, &survivor, wanted))?;
            }
            self.ledger.map_mut().complete(&batch, now());
            self.until = Instant::now();
            let by = self.until + wait;
            self.save_by = Some(self.save_by.map_or(by, |sooner| sooner.min(by)));
            return Ok(());
        }
        shared.take_back(self.session.counter(worker), batch, keys);
        match right {
            Some(Err(fault)) => self.lose(worker, fault),
            _ => Ok(()),
        }
    }

    /// Goes on without a scanner; an error if it was the last.
    fn lose(&mut self, worker: usize, fault: Fault) -> Result<()> {
        if self.session.is_lost(worker) {
            return Ok(());
        }
        match self.session.lose(worker, fault) {
            Ok(warning) => self.tell(Event::Warning(warning)),
            Err(_) if self.draining => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Recomputes a key by libsecp256k1 and the reference code, publishes it and notes its address.
    fn confirm(
        &mut self,
        worker: usize,
        survivor: &Survivor,
        wanted: Vec<(&'static KeyType, Record)>,
    ) -> Result<()> {
        let id = self.session.device(worker).to_owned();
        let wrong = |what: &str| Error::SelfTest { device: id.clone(), what: what.to_owned() };
        let number = survivor.key.to_be_bytes();
        let key = match self.job.mask {
            None => Some(number),
            Some(mask) => mask.key_at(U256::from_be_bytes(number)),
        };
        let secret = key.and_then(|key| Secret::from_bytes(&Zeroizing::new(key)));
        let secret = secret.ok_or_else(|| wrong("it found something that is no key"))?;
        if survivor.form.reference(&public_point(&secret.public_key())) != survivor.digest {
            return Err(wrong("a key it found does not have the digest it computed"));
        }
        for (found_as, record) in wanted {
            self.found.insert((record.kind, record.digest));
            let finding = Finding::new(&secret, &survivor.digest, (found_as, record), &id);
            self.matches += 1;
            (self.sink)(Event::Found(vec![finding])).map_err(Error::Sink)?;
            // Delivered, and its batch not yet covered. As it was asked for: an address that is a bare hash is found under others.
            self.ledger.map_mut().note_match(&record.kind.text(&record.digest), now());
        }
        Ok(())
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let progress = self.session.progress(now, self.matches, self.job.count);
        let map = self.ledger.map();
        let seconds = map.remaining().as_f64() / progress.rate;
        let eta = (seconds.is_finite() && seconds < 1e18).then(|| Duration::from_secs_f64(seconds));
        Progress { eta, coverage: Some(map.share()), ..progress }
    }
}
