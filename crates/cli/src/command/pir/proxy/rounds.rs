//! Look-ups leave in rounds of a fixed number, so that how many are made, and when, says little about what is asked.
//!
//! SEC: a round is filled up with look-ups of random keys, which nobody can tell from others. Without a clock it leaves when
//! something waits; with one, at every beat, whether anything waits or not. When the server is asked for what is new depends on
//! the time alone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use warpsmith::Error;
use warpsmith::look_up::{Answered, Library, Query};
use warpsmith::pir::ethereum::ChainHead;

use super::super::catching::NewHintsFlag;

/// How often the server is asked whether there is a new epoch.
const LOOK: Duration = Duration::from_secs(4);
/// How often it is looked whether a person wants it to end.
const BEAT: Duration = Duration::from_millis(50);
/// Calls that come together go together.
const GATHER: Duration = Duration::from_millis(20);

/// One look-up that somebody waits for.
pub(super) struct Wanted {
    pub query: Query,
    /// The block that the state must be of, where one was named.
    pub block: Option<u64>,
    pub answer: oneshot::Sender<Answered>,
}

/// What is known of the database, for those who answer calls.
#[derive(Default)]
pub(super) struct Known(Mutex<Option<ChainHead>>);

impl Known {
    pub fn head(&self) -> Option<ChainHead> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, head: Option<ChainHead>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = head;
    }
}

/// When rounds leave, and how large they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// Look-ups of a round.
    pub round: usize,
    /// The time between rounds, where they leave by the clock.
    pub every: Option<Duration>,
}

/// What happens beside the answers.
pub(super) enum News<'a> {
    /// The server was asked, and the hints are of this epoch.
    Epoch(u64),
    /// The server could not be asked for what is new.
    Away(&'a str),
    /// A round brought nothing.
    Lost(&'a str),
    /// The hints were brought forward, or are made anew: how and why.
    Hints(&'a str),
}

/// Does what is wanted until `stop` is raised, and tells what happens.
pub(super) fn run(
    library: &mut Library,
    wanted: &Receiver<Wanted>,
    known: &Known,
    rhythm: Rhythm,
    new_hints: NewHintsFlag,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<(), Error> {
    let mut waiting: VecDeque<Wanted> = VecDeque::new();
    let (mut look_at, mut round_at) = (Instant::now() + LOOK, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let until = [Some(look_at), rhythm.every.map(|_| round_at)].into_iter().flatten().min();
        let pause = until.map_or(BEAT, |until| until.saturating_duration_since(Instant::now()).min(BEAT));
        match wanted.recv_timeout(pause) {
            Ok(first) => {
                waiting.push_back(first);
                if rhythm.every.is_none() {
                    std::thread::sleep(GATHER);
                }
                waiting.extend(wanted.try_iter());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if Instant::now() >= look_at {
            look_at = Instant::now() + LOOK;
            match catch_up(library, known, new_hints, stop, tell) {
                Ok(epoch) => tell(News::Epoch(epoch)),
                Err(error) => tell(News::Away(&error.to_string())),
            }
        }
        match rhythm.every {
            Some(every) if Instant::now() >= round_at => {
                // Beats that were missed are not made up for: how long the last round took is not told either.
                while round_at <= Instant::now() {
                    round_at += every;
                }
                if let Some(reason) = go(library, &mut waiting, known, rhythm.round)? {
                    tell(News::Lost(&reason));
                }
            }
            Some(_) => {}
            None => {
                while !waiting.is_empty() && !stop.load(Ordering::Relaxed) {
                    if let Some(reason) = go(library, &mut waiting, known, rhythm.round)? {
                        tell(News::Lost(&reason));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Completes what was left without an answer, and brings the hints to the newest epoch; says which that is.
pub(super) fn catch_up(
    library: &mut Library,
    known: &Known,
    new_hints: NewHintsFlag,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<u64, Error> {
    library.resume()?;
    // Epochs may come faster than their changes are added: what is said of the block must fit the hints.
    for _ in 0..3 {
        library.look_around()?;
        let mut begin = |text: &str| tell(News::Hints(text));
        if let Some(caught_up) = new_hints.catch_up(library, stop, &mut begin, &mut |_| ())?
            && caught_up.is_news()
        {
            tell(News::Hints(&caught_up.text()));
        }
        if library.client().version().epoch == library.epoch() {
            break;
        }
    }
    known.set(library.head().copied().filter(|_| library.client().version().epoch == library.epoch()));
    Ok(library.client().version().epoch)
}

/// One round: as many look-ups as it has, those that wait first. Says why it brought nothing, if so.
fn go(
    library: &mut Library,
    waiting: &mut VecDeque<Wanted>,
    known: &Known,
    round: usize,
) -> Result<Option<String>, Error> {
    let mut now = Vec::new();
    while now.len() < round {
        let Some(wanted) = waiting.pop_front() else { break };
        let head = known.head().map(|head| head.number);
        match wanted.block {
            Some(block) if head != Some(block) => {
                let reason = format!("the database has gone on from block {block}; ask for \"latest\"");
                let _ = wanted.answer.send(Err(reason));
            }
            _ => now.push(wanted),
        }
    }
    let queries: Vec<Query> = now.iter().map(|wanted| wanted.query.clone()).collect();
    let answers = library.resume().and_then(|_| library.get_padded(&queries, round));
    match answers {
        Ok(answers) => {
            // Whoever does not wait any more is not told.
            now.into_iter().zip(answers).for_each(|(wanted, answer)| drop(wanted.answer.send(answer)));
            Ok(None)
        }
        Err(error) => {
            let reason = error.to_string();
            now.into_iter().for_each(|wanted| drop(wanted.answer.send(Err(reason.clone()))));
            // A server that does not answer may do so again, and hints can be made anew; a state that cannot be written ends it.
            match error {
                Error::Unanswered(_)
                | Error::Query(_)
                | Error::Retrieval(warpsmith::pir::Error::Remote { .. }) => Ok(Some(reason)),
                error => Err(error),
            }
        }
    }
}
