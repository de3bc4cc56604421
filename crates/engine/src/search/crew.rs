//! Who takes part in a search. Each device gets a thread that finds out whether it can do it, has it prove that it computes rightly,
//! and then works; so each joins as soon as it is ready, and nobody waits for the slowest.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::scope;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use warpsmith_chain::Recipe;
use warpsmith_device::{Busy, Preparing};
use warpsmith_pattern::Filter;

use super::Job;
use super::claims::{Roots, Sift, Spares};
use super::collector::Slot;
use super::judge::{Claims, Facts};
use super::steady::Track;
use super::thread::{Message, Ports, Tally, WorkerThread, work};
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::later::warm;
use crate::origins::{Maker, Spare};
use crate::run::roster::Refusal;
use crate::run::threads::spawn;
use crate::selftest::prove_program;
use crate::space::Start;
use crate::worker::{Backend, Fault, Held, Search, Worker, suits};

/// What all devices of a search have in common.
pub(super) struct Crew<'c> {
    pub job: &'c Job<'c>,
    pub recipe: &'c Recipe,
    pub maker: &'c Maker,
    /// Where spare origins come from; none where none are retired.
    pub spares: Option<Receiver<Vec<Spare>>>,
    pub sift: &'c Sift<'c>,
    pub stop: &'c AtomicBool,
    /// Closes when the search ends.
    pub over: Receiver<()>,
    pub claims: Sender<Claims>,
    pub collector: Sender<Message>,
    /// How many workers have joined.
    pub joined: Mutex<usize>,
}

/// What a device answers.
enum Answer {
    Joined,
    Refused {
        device: String,
        refusal: Refusal,
    },
    /// It said it could, and got no worker.
    Lost {
        device: String,
        what: Fault,
    },
}

/// The search has ended.
struct Over;

/// Has every device asked, those that are found later too, and tells the collector how that went; returns when the last of them has
/// ended.
pub(super) fn muster(crew: &Crew<'_>, devices: &Devices) {
    scope(|scope| {
        let (answer, answers) = unbounded();
        let ask = |device: Arc<dyn Backend>, answer: Sender<Answer>| {
            let (lost, id) = (answer.clone(), device.id());
            spawn(
                scope,
                move || crew.enlist(&device, answer),
                |what| drop(lost.send(Answer::Lost { device: id, what })),
            );
        };
        devices.list.iter().for_each(|device| ask(Arc::clone(device), answer.clone()));
        if let Some(later) = devices.later() {
            select! {
                recv(later.found()) -> cards => cards.into_iter().flatten().for_each(|card| ask(card, answer.clone())),
                recv(crew.over) -> _ => return,
            }
        }
        drop(answer);
        let Some(tally) = crew.hear(&answers, devices.later().is_some()) else { return };
        if crew.stop.load(Ordering::Relaxed) {
            // Whoever did not answer was told that it is over.
            return;
        }
        let all_unable = tally.unable > 0 && tally.unable == devices.list.len() && devices.are_cards();
        let failed = match (tally.joined, tally.failed) {
            (1.., _) => return drop(crew.collector.send(Message::Settled)),
            (0, None) if all_unable => match devices.processor_instead() {
                Ok((cpu, says)) => {
                    drop(crew.collector.send(Message::Warning(says)));
                    let (answer, answers) = unbounded();
                    cpu.list.iter().for_each(|device| ask(Arc::clone(device), answer.clone()));
                    drop(answer);
                    match crew.hear(&answers, false) {
                        Some(Roll { joined: 0, failed, .. }) => failed,
                        _ => return drop(crew.collector.send(Message::Settled)),
                    }
                }
                Err(error) => Some(error),
            },
            (0, failed) => failed,
        };
        let error = failed.unwrap_or_else(|| Error::NoDevice("none was selected".to_owned()));
        drop(crew.collector.send(Message::Failed(error)));
    });
}

/// How many devices gave which answer, and the last failure.
#[derive(Default)]
struct Roll {
    joined: usize,
    unable: usize,
    failed: Option<Error>,
}

impl Crew<'_> {
    /// Hears all answers and warns of refusals; none if nobody listens any more. A card that nobody asked for and that is not needed
    /// (`beside`) may be unable without a word.
    fn hear(&self, answers: &Receiver<Answer>, beside: bool) -> Option<Roll> {
        let mut roll = Roll::default();
        let warn = |text: String| self.collector.send(Message::Warning(text)).ok();
        for answer in answers {
            match answer {
                Answer::Joined => roll.joined += 1,
                Answer::Refused { device, refusal: Refusal::Unable(why) } => {
                    roll.unable += 1;
                    let text = format!("{device} is not used: {why}");
                    match beside {
                        true => self.collector.send(Message::Note(text)).ok()?,
                        false => warn(text)?,
                    }
                }
                Answer::Refused { refusal: Refusal::Failed(error), .. } => {
                    warn(format!("{error}; it is not used"))?;
                    roll.failed = Some(error);
                }
                Answer::Lost { device, what } => {
                    warn(format!("{device} is not used: {what}"))?;
                    roll.failed = Some(Error::DevicesLost { device, what });
                }
            }
        }
        Some(roll)
    }

    /// A device's thread: from the question whether it can do the search to its end.
    fn enlist(&self, device: &Arc<dyn Backend>, answer: Sender<Answer>) {
        let filter = Arc::new(self.job.wanted.filter(device.max_false(self.recipe), 0));
        let search = Search::new(self.recipe, &filter);
        let held = match self.prepare(device, &filter, &search) {
            Ok(ControlFlow::Continue(held)) => held,
            Ok(ControlFlow::Break(Over)) => return,
            Err(refusal) => {
                return drop(answer.send(Answer::Refused { device: device.id(), refusal }));
            }
        };
        scope(|scope| {
            let (search, filter) = (&search, &filter);
            for _ in 1..device.workers() {
                let (answer, lost) = (answer.clone(), answer.clone());
                spawn(
                    scope,
                    move || self.serve(device.as_ref(), search, filter, Held(None), answer),
                    |what| drop(lost.send(Answer::Lost { device: device.id(), what })),
                );
            }
            self.serve(device.as_ref(), search, filter, held, answer);
        });
    }

    /// Opens a card and has it compile, where the end of the search need not be awaited, and has the device prove itself.
    fn prepare(
        &self,
        device: &Arc<dyn Backend>,
        filter: &Arc<Filter>,
        search: &Search<'_>,
    ) -> std::result::Result<ControlFlow<Over, Held>, Refusal> {
        suits(device.as_ref(), search, self.job.wanted.odds(0)).map_err(Refusal::Unable)?;
        let mut held = Held(None);
        if device.is_card() {
            let ready = warm(device, self.recipe, filter);
            held = select! {
                recv(ready) -> said => match said {
                    Ok(Ok(held)) => held,
                    // The proof below has the words for what is wrong.
                    Ok(Err(_)) | Err(_) => Held(None),
                },
                recv(self.over) -> _ => return Ok(ControlFlow::Break(Over)),
            };
        }
        let _busy = Busy::with(Preparing::Proving, Some(device.id()));
        prove_program(device.as_ref(), self.job.subject, search).map_err(Refusal::Failed)?;
        Ok(ControlFlow::Continue(held))
    }

    /// Makes a worker, has it join, and works until the search ends.
    fn serve(
        &self,
        device: &dyn Backend,
        search: &Search<'_>,
        filter: &Arc<Filter>,
        held: Held,
        answer: Sender<Answer>,
    ) {
        let (give, leases) = bounded(1);
        let made = match device.worker(search) {
            Ok(worker) => self.begin(worker),
            Err(fault) => Ok(Err(fault)),
        };
        let (worker, roots) = match made {
            Ok(Ok(begun)) => begun,
            Ok(Err(what)) => return drop(answer.send(Answer::Lost { device: device.id(), what })),
            Err(error) => return drop(self.collector.send(Message::Failed(error))),
        };
        // The worker keeps it open from here on; held any longer, a card that fails could not be opened anew.
        drop(held);
        let facts = Facts { device: device.id(), numbering: worker.numbering(), filter: Arc::clone(filter) };
        let (counter, track) = (Arc::new(AtomicU64::new(0)), Arc::new(Track::default()));
        let started = Instant::now();
        let slot = Slot::new(device, Arc::clone(&counter), Arc::clone(&track), give, started);
        let Some(id) = self.join(slot) else { return };
        drop(answer.send(Answer::Joined));
        drop(answer);
        let ports = Ports { claims: self.claims.clone(), collector: self.collector.clone() };
        let tally =
            Tally { started, counter: &counter, track: &track, sift: self.sift, facts: Arc::new(facts) };
        let worker = WorkerThread { worker, roots, leases, over: &self.over, pause: self.job.pause };
        work(id, worker, ports, tally, self.stop);
    }

    /// Tells the collector of a worker; its number, by which they speak of it.
    fn join(&self, slot: Slot) -> Option<usize> {
        // Numbers are told in order.
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        self.collector.send(Message::Joined(Box::new(slot))).ok()?;
        *joined += 1;
        Some(*joined - 1)
    }

    /// Draws the origins of a worker's lanes and gives it their points; one that searches salts waits for its first. An error only
    /// where none can be drawn.
    fn begin<'d>(&self, mut worker: Box<dyn Worker + 'd>) -> Result<std::result::Result<Begun<'d>, Fault>> {
        let Some(numbering) = worker.numbering() else { return Ok(Ok((worker, Roots::None))) };
        let (origins, points) = self.maker.ledger(numbering.lanes as usize)?;
        let spares = self.spares.clone().map(Spares::new);
        let started = worker.start(Start::Points(&points));
        Ok(started.map(|()| (worker, Roots::Keys { origins, spares })))
    }
}

/// A worker, and what its hits lead back to.
type Begun<'d> = (Box<dyn Worker + 'd>, Roots);
