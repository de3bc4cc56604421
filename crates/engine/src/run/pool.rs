//! The worker pool of a run, a search and a scan alike. Each device gets a thread that finds out whether it can do the work, has it
//! prove that it computes rightly, and runs its workers. So a device takes part as soon as it is ready: the processor at once, a card
//! once it was found and its programs are compiled. A run that ends before that does not wait for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::scope;

use crossbeam_channel::{Receiver, Sender, select, unbounded};

use crate::devices::Devices;
use crate::error::Error;
use crate::run::threads::spawn;
use crate::worker::{Backend, Fault, Held};
use warpsmith_device::{Busy, Preparing};

/// What the devices of a run do.
pub(crate) trait Work: Sync {
    /// The thread of a device, from the question whether it can do the work to its end.
    fn enlist(&self, entry: Entry<'_>);
    /// Sends an event to the collector of the run.
    fn report(&self, event: PoolEvent) -> Result<(), Closed>;
}

/// What the pool tells the collector of the run besides the workers that join.
pub(crate) enum PoolEvent {
    /// Every device has joined or was refused.
    Settled,
    /// What a person should know.
    Warning(String),
    /// What a person may like to know.
    Note(String),
    /// Nobody can do the work.
    Failed(Error),
}

/// The collector has ended and receives no more.
pub(crate) struct Closed;

/// Why a device does not take part.
pub(crate) enum Refusal {
    /// It cannot do it.
    Unable(Fault),
    /// It said it could, and failed its self-test.
    Failed(Error),
}

/// The answer of a device, or of one of its workers.
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

/// A device, or one of its workers, on the way into a run. Dropped without an answer where the run has ended.
pub(crate) struct Entry<'e> {
    device: Arc<dyn Backend>,
    answer: Sender<Answer>,
    /// Workers that have joined.
    joined: &'e Mutex<usize>,
    /// Closes when the run ends.
    over: &'e Receiver<()>,
}

/// How many devices gave which answer, and the last failure.
#[derive(Default)]
struct Tally {
    joined: usize,
    unable: usize,
    failed: Option<Error>,
}

/// Asks every device to join, those that are found later too, and tells the collector how that went; returns when the last of them
/// has ended.
pub(crate) fn run_pool(work: &dyn Work, devices: &Devices, stop: &AtomicBool, over: &Receiver<()>) {
    let joined = Mutex::new(0);
    let joined = &joined;
    scope(|scope| {
        let (answer, answers) = unbounded();
        let ask = |device: &Arc<dyn Backend>, answer: &Sender<Answer>| {
            let (lost, id) = (answer.clone(), device.id());
            let entry = Entry { device: Arc::clone(device), answer: answer.clone(), joined, over };
            spawn(
                scope,
                move || work.enlist(entry),
                |what| drop(lost.send(Answer::Lost { device: id, what })),
            );
        };
        devices.list.iter().for_each(|device| ask(device, &answer));
        if let Some(later) = devices.later() {
            select! {
                recv(later.found()) -> cards => cards.iter().flatten().for_each(|card| ask(card, &answer)),
                recv(over) -> _ => return,
            }
        }
        drop(answer);
        let Some(tally) = hear(work, &answers, devices.later().is_some()) else { return };
        if stop.load(Ordering::Relaxed) {
            // Whoever did not answer was told that it is over.
            return;
        }
        let all_unable = tally.unable > 0 && tally.unable == devices.list.len() && devices.are_cards();
        let failed = match (tally.joined, tally.failed) {
            (1.., _) => return drop(work.report(PoolEvent::Settled)),
            (0, None) if all_unable => match devices.processor_instead() {
                Ok((cpu, says)) => {
                    drop(work.report(PoolEvent::Warning(says)));
                    let (answer, answers) = unbounded();
                    cpu.list.iter().for_each(|device| ask(device, &answer));
                    drop(answer);
                    match hear(work, &answers, false) {
                        Some(Tally { joined: 0, failed, .. }) => failed,
                        _ => return drop(work.report(PoolEvent::Settled)),
                    }
                }
                Err(error) => Some(error),
            },
            (0, failed) => failed,
        };
        let why =
            if devices.list.is_empty() { "none was selected" } else { "none of those selected can do this" };
        let error = failed.unwrap_or_else(|| Error::NoDevice(why.to_owned()));
        drop(work.report(PoolEvent::Failed(error)));
    });
}

/// Hears all answers and warns of refusals; none if nobody listens any more. A card that nobody asked for and that is not needed
/// (`beside`) may be unable without a warning.
fn hear(work: &dyn Work, answers: &Receiver<Answer>, beside: bool) -> Option<Tally> {
    let mut tally = Tally::default();
    let warn = |text: String| work.report(PoolEvent::Warning(text)).ok();
    for answer in answers {
        match answer {
            Answer::Joined => tally.joined += 1,
            Answer::Refused { device, refusal: Refusal::Unable(why) } => {
                tally.unable += 1;
                let text = format!("{device} is not used: {why}");
                match beside {
                    true => work.report(PoolEvent::Note(text)).ok()?,
                    false => warn(text)?,
                }
            }
            Answer::Refused { refusal: Refusal::Failed(error), .. } => {
                warn(format!("{error}; it is not used"))?;
                tally.failed = Some(error);
            }
            Answer::Lost { device, what } => {
                warn(format!("{device} is not used: {what}"))?;
                tally.failed = Some(Error::DevicesLost { device, what });
            }
        }
    }
    Some(tally)
}

impl Entry<'_> {
    /// The device.
    pub fn device(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.device)
    }

    /// Has a card opened and its programs compiled, where the end of the run need not be awaited, and has the device prove itself.
    /// Returns what keeps it open; none if it was refused, or the run has ended.
    pub fn prepare(
        &self,
        warm: &dyn Fn() -> Receiver<Result<Held, Fault>>,
        prove: &dyn Fn() -> Result<(), Refusal>,
    ) -> Option<Held> {
        let mut held = Held(None);
        if self.device.is_card() {
            held = select! {
                recv(warm()) -> said => match said {
                    Ok(Ok(held)) => held,
                    // The proof below has the words for what is wrong.
                    Ok(Err(_)) | Err(_) => Held(None),
                },
                recv(self.over) -> _ => return None,
            };
        }
        let _busy = Busy::with(Preparing::Proving, Some(self.device.id()));
        prove().map_err(|refusal| self.refuse(refusal)).ok()?;
        Some(held)
    }

    /// Says why the device does not take part.
    pub fn refuse(&self, refusal: Refusal) {
        drop(self.answer.send(Answer::Refused { device: self.device.id(), refusal }));
    }

    /// Runs so many workers of the device side by side, the last of them on this thread.
    pub fn spread(self, workers: usize, held: Held, serve: &(dyn Fn(Held, Entry<'_>) + Sync)) {
        scope(|scope| {
            for _ in 1..workers {
                let entry = Entry { device: self.device(), answer: self.answer.clone(), ..self };
                let (lost, id) = (self.answer.clone(), self.device.id());
                spawn(
                    scope,
                    move || serve(Held(None), entry),
                    |what| drop(lost.send(Answer::Lost { device: id, what })),
                );
            }
            serve(held, self);
        });
    }

    /// Counts a worker in once `tell` has told the collector of it. Returns its number, by which they speak of it.
    pub fn join(self, tell: impl FnOnce() -> bool) -> Option<usize> {
        // Numbers are told in order.
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if !tell() {
            return None;
        }
        *joined += 1;
        drop(self.answer.send(Answer::Joined));
        Some(*joined - 1)
    }

    /// Says that a worker could not be made.
    pub fn lose(self, what: Fault) {
        drop(self.answer.send(Answer::Lost { device: self.device.id(), what }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use crossbeam_channel::bounded;

    use super::*;
    use crate::cpu::Cpu;
    use crate::simd::Simd;

    /// Work that some devices refuse, by their number.
    struct Refusing {
        together: Barrier,
        asked: Mutex<usize>,
        refused: fn(usize) -> Option<Refusal>,
        events: Sender<PoolEvent>,
        joined: Mutex<Vec<usize>>,
    }

    impl Work for Refusing {
        fn enlist(&self, entry: Entry<'_>) {
            let at = {
                let mut asked = self.asked.lock().expect("no panic");
                *asked += 1;
                *asked - 1
            };
            // It would wait here for good if they were asked one after the other.
            self.together.wait();
            match (self.refused)(at) {
                Some(refusal) => entry.refuse(refusal),
                None => self.joined.lock().expect("no panic").extend(entry.join(|| true)),
            }
        }
        fn report(&self, event: PoolEvent) -> Result<(), Closed> {
            self.events.send(event).map_err(|_| Closed)
        }
    }

    /// What a pool of so many processors reports, as text, and the numbers of those that joined.
    fn run(count: usize, refused: fn(usize) -> Option<Refusal>) -> (Vec<String>, Vec<usize>) {
        let cpu = || Arc::new(Cpu::new(Simd::Portable, 1)) as Arc<dyn Backend>;
        let devices = Devices::of((0..count).map(|_| cpu()).collect());
        let ((events, told), (_end, over)) = (unbounded(), bounded(0));
        let (together, asked) = (Barrier::new(count), Mutex::new(0));
        let work = Refusing { together, asked, refused, events, joined: Mutex::new(Vec::new()) };
        run_pool(&work, &devices, &AtomicBool::new(false), &over);
        let text = |event| match event {
            PoolEvent::Settled => "settled".to_owned(),
            PoolEvent::Warning(text) | PoolEvent::Note(text) => text,
            PoolEvent::Failed(error) => error.to_string(),
        };
        let mut joined = work.joined.into_inner().expect("no panic");
        joined.sort_unstable();
        (told.try_iter().map(text).collect(), joined)
    }

    #[test]
    fn devices_are_asked_side_by_side() {
        let unable = |at| (at == 1).then(|| Refusal::Unable("it will not".to_owned()));
        let (events, joined) = run(3, unable);
        assert_eq!(events, ["cpu:portable is not used: it will not", "settled"]);
        assert_eq!(joined, [0, 1]);
    }

    #[test]
    fn a_pool_without_workers_fails() {
        let (events, _) = run(0, |_| None);
        assert!(events.len() == 1 && events[0].contains("none was selected"), "{events:?}");
        let (events, _) = run(2, |_| Some(Refusal::Unable("it will not".to_owned())));
        assert!(events.len() == 3 && events[2].contains("none of those selected can"), "{events:?}");
        let failed = |_| {
            let (device, what) = ("cpu".to_owned(), "wrong".to_owned());
            Some(Refusal::Failed(Error::SelfTest { device, what }))
        };
        let (events, _) = run(1, failed);
        assert!(events.len() == 2 && events[1].contains("self-test"), "{events:?}");
    }
}
