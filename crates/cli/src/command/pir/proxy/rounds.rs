//! Look-ups leave in rounds of a fixed number, so that how many are made, and when, says little about what is asked.
//!
//! SEC: a round is filled up with look-ups of random keys, which nobody can tell from others. Without a clock it leaves when
//! something waits; with one, at every beat, whether anything waits or not. When the server is asked for what is new depends on
//! the time alone. A code takes a look-up in the database of codes after its round, whether the account has one or not; with a clock
//! every beat has one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use warpsmith::Error;
use warpsmith::look_up::{Answer, Answered, Library, Query};
use warpsmith::pir::ethereum::{ChainHead, code_hash};

use super::super::catching::NewHintsFlag;
use super::spares::Spares;

/// How often the server is asked whether there is a new epoch.
const LOOK: Duration = Duration::from_secs(4);
/// How often it is looked whether a person wants it to end.
const BEAT: Duration = Duration::from_millis(50);
/// Calls that come together go together.
const GATHER: Duration = Duration::from_millis(20);

/// Calls that may wait: more than a wallet asks at once.
pub(super) const MOST_WAITING: usize = 1000;

/// What somebody waits for.
pub(super) struct Wanted {
    /// Look-ups that leave in one round.
    pub queries: Vec<Query>,
    /// Whether these are an account and the hash of its code, and the code is wanted.
    pub wants_code: bool,
    /// The block that the state must be of, where one was named.
    pub block: Option<u64>,
    pub answer: oneshot::Sender<Answered>,
}

/// A code that somebody waits for.
struct WantedCode {
    /// Its hash, none of an account without code; or why it is not known.
    hash: Result<Option<[u8; 32]>, String>,
    answer: oneshot::Sender<Answered>,
}

/// What is looked up in.
pub(super) struct Libraries {
    pub state: Library,
    pub codes: Option<Library>,
}

/// What waits.
#[derive(Default)]
struct Waiting {
    records: VecDeque<Wanted>,
    codes: VecDeque<WantedCode>,
}

impl Waiting {
    /// Lets another wait, unless too many do.
    fn add(&mut self, wanted: Wanted) {
        // Who left is no longer waited with: a wallet gives up sooner or later.
        if self.records.len() >= MOST_WAITING {
            self.records.retain(|wanted| !wanted.answer.is_closed());
        }
        match self.records.len() < MOST_WAITING {
            true => self.records.push_back(wanted),
            false => {
                let reason = format!("{MOST_WAITING} calls wait for a look-up already; ask again later");
                let _ = wanted.answer.send(Err(reason));
            }
        }
    }
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

/// What rounds are made by.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub known: &'a Known,
    pub rhythm: Rhythm,
    pub new_hints: NewHintsFlag,
    pub stop: &'a AtomicBool,
}

/// Does what is wanted until `stop` is raised, and tells what happens.
pub(super) fn run(
    libraries: &mut Libraries,
    wanted: &Receiver<Wanted>,
    terms: Terms<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let mut spares = Spares::new(scope, terms.new_hints, terms.stop);
        let ended = go_round(&mut spares, libraries, wanted, terms, tell);
        // Hints in the making are of no use any more, also where something failed.
        terms.stop.store(true, Ordering::Relaxed);
        ended
    })
}

fn go_round(
    spares: &mut Spares<'_, '_>,
    libraries: &mut Libraries,
    wanted: &Receiver<Wanted>,
    Terms { known, rhythm, new_hints, stop }: Terms<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<(), Error> {
    let mut waiting = Waiting::default();
    let (mut look_at, mut round_at) = (Instant::now() + LOOK, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        if spares.look_after(libraries, tell)? {
            known.set(None);
            look_at = Instant::now();
        }
        let until = [Some(look_at), rhythm.every.map(|_| round_at)].into_iter().flatten().min();
        let pause = until.map_or(BEAT, |until| until.saturating_duration_since(Instant::now()).min(BEAT));
        match wanted.recv_timeout(pause) {
            Ok(first) => {
                waiting.add(first);
                if rhythm.every.is_none() {
                    std::thread::sleep(GATHER);
                }
                wanted.try_iter().for_each(|wanted| waiting.add(wanted));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if Instant::now() >= look_at {
            look_at = Instant::now() + LOOK;
            match catch_up(libraries, known, new_hints, stop, tell) {
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
                let state = go(&mut libraries.state, &mut waiting, known, rhythm.round)?;
                let codes =
                    libraries.codes.as_mut().map(|codes| go_for_code(codes, &mut waiting)).transpose()?;
                state.into_iter().chain(codes.flatten()).for_each(|reason| tell(News::Lost(&reason)));
            }
            Some(_) => {}
            None => {
                while !stop.load(Ordering::Relaxed) {
                    let lost =
                        match (&mut libraries.codes, waiting.records.is_empty(), waiting.codes.is_empty()) {
                            (_, false, _) => go(&mut libraries.state, &mut waiting, known, rhythm.round)?,
                            (Some(codes), true, false) => go_for_code(codes, &mut waiting)?,
                            _ => break,
                        };
                    lost.into_iter().for_each(|reason| tell(News::Lost(&reason)));
                }
            }
        }
    }
    Ok(())
}

/// Completes what was left without an answer, and brings the hints to the newest epoch; says which that is.
pub(super) fn catch_up(
    libraries: &mut Libraries,
    known: &Known,
    new_hints: NewHintsFlag,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<u64, Error> {
    let library = &mut libraries.state;
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
    let epoch = library.client().version().epoch;
    // After the state: what that tells of is in there by then.
    if let Some(codes) = &mut libraries.codes {
        codes.resume()?;
        codes.look_around()?;
        let mut begin = |text: &str| tell(News::Hints(&format!("codes: {text}")));
        if let Some(caught_up) = new_hints.catch_up(codes, stop, &mut begin, &mut |_| ())?
            && caught_up.is_news()
        {
            tell(News::Hints(&format!("codes: {}", caught_up.text())));
        }
    }
    Ok(epoch)
}

/// One round: as many look-ups as it has, those that wait first. Says why it brought nothing, if so.
fn go(
    library: &mut Library,
    waiting: &mut Waiting,
    known: &Known,
    round: usize,
) -> Result<Option<String>, Error> {
    let (mut now, mut queries) = (Vec::new(), Vec::new());
    while waiting.records.front().is_some_and(|next| queries.len() + next.queries.len() <= round) {
        let Some(wanted) = waiting.records.pop_front() else { break };
        // Nobody waits for it any more: no hint is spent on it, and the round is as large as ever.
        if wanted.answer.is_closed() {
            continue;
        }
        let head = known.head().map(|head| head.number);
        match wanted.block {
            Some(block) if head != Some(block) => {
                let reason = format!("the database has gone on from block {block}; ask for \"latest\"");
                let _ = wanted.answer.send(Err(reason));
            }
            _ => {
                queries.extend(wanted.queries.iter().cloned());
                now.push(wanted);
            }
        }
    }
    match library.resume().and_then(|_| library.get_padded(&queries, round)) {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            let mut next = || answers.next().expect("an answer for each query");
            for Wanted { wants_code, answer, .. } in now {
                if wants_code {
                    waiting.codes.push_back(WantedCode { hash: hash_of(next(), next()), answer });
                } else {
                    // Whoever does not wait any more is not told.
                    let _ = answer.send(next());
                }
            }
            Ok(None)
        }
        Err(error) => {
            let reason = lost(error)?;
            now.into_iter().for_each(|wanted| drop(wanted.answer.send(Err(reason.clone()))));
            Ok(Some(reason))
        }
    }
}

/// The hash of an account's code, as the state has the two.
fn hash_of(account: Answered, hash: Answered) -> Result<Option<[u8; 32]>, String> {
    match (account?, hash?) {
        (_, Answer::Value(Some(hash))) => match hash.try_into() {
            Ok(hash) => Ok(Some(hash)),
            Err(_) => Err("the server's answer is wrong: a hash has 32 bytes".to_owned()),
        },
        (Answer::Account(Some(account)), _) if account.code != 0 => Err(
            "this is a contract, and the state does not tell the hash of its code; it was built without (`warpsmith pir build \
             --code-hashes`)"
                .to_owned(),
        ),
        _ => Ok(None),
    }
}

/// One look-up in the database of codes: of the first that waits, or of none. Says why it brought nothing, if so.
fn go_for_code(codes: &mut Library, waiting: &mut Waiting) -> Result<Option<String>, Error> {
    waiting.codes.retain(|wanted| !wanted.answer.is_closed());
    let wanted = waiting.codes.pop_front();
    let hash = wanted.as_ref().and_then(|wanted| wanted.hash.as_ref().ok().copied().flatten());
    // SEC: an account without code, or no account at all, takes the same look-up.
    let query = hash.map(|hash| Query::Key { text: String::new(), key: hash.to_vec() });
    let looked_up = codes.resume().and_then(|_| codes.get_padded(query.as_slice(), 1));
    let (answer, reason) = match looked_up {
        Ok(answers) => (answers.into_iter().next(), None),
        Err(error) => {
            let reason = lost(error)?;
            (Some(Err(reason.clone())), Some(reason))
        }
    };
    if let Some(WantedCode { hash: known, answer: to }) = wanted {
        let answer = known.and_then(|_| match (hash, answer) {
            (None, None) => Ok(Answer::Value(None)),
            (Some(hash), Some(answer)) => code_of(&hash, answer?),
            (_, answer) => answer.unwrap_or_else(|| Err("there is no answer".to_owned())),
        });
        let _ = to.send(answer);
    }
    Ok(reason)
}

/// A code that has the hash it was looked up by.
fn code_of(hash: &[u8; 32], answer: Answer) -> Answered {
    match answer {
        Answer::Value(Some(code)) if code_hash(&code) == *hash => Ok(Answer::Value(Some(code))),
        Answer::Value(None) => Err(
            "this is a contract, and the database of codes does not have its code; where it is a new one, ask again in a few \
             seconds"
                .to_owned(),
        ),
        _ => Err("the answer of the server of codes is wrong: the code has another hash".to_owned()),
    }
}

/// Why a round brought nothing. A server that does not answer may do so again, and hints can be made anew; a state that cannot be
/// written ends it.
fn lost(error: Error) -> Result<String, Error> {
    match error {
        Error::Unanswered(_) | Error::Query(_) | Error::Retrieval(warpsmith::pir::Error::Remote { .. }) => {
            Ok(error.to_string())
        }
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> (Wanted, oneshot::Receiver<Answered>) {
        let (answer, told) = oneshot::channel();
        (Wanted { queries: vec![Query::Index(0)], wants_code: false, block: None, answer }, told)
    }

    #[test]
    fn those_who_left_make_room_and_beyond_that_it_is_said() {
        let (mut waiting, mut patient) = (Waiting::default(), Vec::new());
        for number in 0..MOST_WAITING {
            let (wanted, told) = wanted();
            waiting.add(wanted);
            // Half of them leave.
            patient.extend((number % 2 == 0).then_some(told));
        }
        assert_eq!(waiting.records.len(), MOST_WAITING);
        for _ in 0..MOST_WAITING / 2 {
            let (wanted, told) = wanted();
            waiting.add(wanted);
            patient.push(told);
        }
        assert_eq!(waiting.records.len(), MOST_WAITING);
        assert!(patient.iter_mut().all(|told| told.try_recv().is_err()));
        let (one_more, mut told) = wanted();
        waiting.add(one_more);
        assert!(told.try_recv().unwrap().unwrap_err().contains("ask again later"));
        assert_eq!(waiting.records.len(), MOST_WAITING);
    }
}
