//! Look-ups leave in rounds of a fixed number, so that how many are made, and when, says little
//! about what is asked.
//!
//! SEC: a round is filled up with look-ups of random keys, which nobody can tell from others.
//! Without a clock it leaves when something waits; with one, at every beat, whether anything waits
//! or not. When the server is asked for what is new depends on the time alone. A code takes a
//! look-up in the database of codes after its round, whether the account has one or not; with a
//! clock every beat has one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::known::Known;
use super::spares::Spares;
use super::{Advice, After, HintsNews, Libraries, News, Which};
use crate::catch_up::{Forward, NewHints, NewHintsNeeded};
use crate::code::code_hash;
use crate::error::{Error, Result};
use crate::look_up::{Answer, Answered, Library, NoAnswer, Query};

/// How often the server is asked whether there is a new epoch.
const EPOCH_INTERVAL: Duration = Duration::from_secs(4);
/// Interval of looking whether `stop` was raised.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// How long a call waits for new hints where there is no other way: as long as a wallet does with
/// ease.
const HINTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Calls that come together go together.
const GATHER: Duration = Duration::from_millis(20);

/// Calls that may wait: more than a wallet asks at once.
pub const MAX_WAITING: usize = 1000;

/// What somebody waits for.
pub struct Wanted {
    /// Look-ups that leave in one round.
    pub queries: Vec<Query>,
    /// Whether these are an account and the hash of its code, and the code is wanted.
    pub wants_code: bool,
    /// The block that the state must be of, where one was named.
    pub block: Option<u64>,
    /// When it came.
    pub since: Instant,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Answered>,
}

/// A code that somebody waits for.
struct WantedCode {
    since: Instant,
    /// Its hash, none of an account without code; or why it is not known.
    hash: std::result::Result<Option<[u8; 32]>, NoAnswer>,
    answer: oneshot::Sender<Answered>,
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
        if self.records.len() >= MAX_WAITING {
            self.records.retain(|wanted| !wanted.answer.is_closed());
        }
        match self.records.len() < MAX_WAITING {
            true => self.records.push_back(wanted),
            false => {
                let reason = format!("{MAX_WAITING} calls wait for a look-up already; ask again later");
                let _ = wanted.answer.send(Err(reason.into()));
            }
        }
    }

    /// Tells those who waited for long that there are no hints.
    fn give_up(&mut self, state: Option<&NewHintsNeeded>, codes: Option<&NewHintsNeeded>) {
        let told = |reason: &NewHintsNeeded| {
            Err(NoAnswer(format!("{reason}; new hints are being made, ask again in a while")))
        };
        let is_over = |since: Instant| since.elapsed() >= HINTS_TIMEOUT;
        if let Some(reason) = state {
            while self.records.front().is_some_and(|wanted| is_over(wanted.since)) {
                self.records.pop_front().map(|wanted| wanted.answer.send(told(reason)));
            }
        }
        if let Some(reason) = codes {
            while self.codes.front().is_some_and(|wanted| is_over(wanted.since)) {
                self.codes.pop_front().map(|wanted| wanted.answer.send(told(reason)));
            }
        }
    }
}

/// When rounds leave, and how large they are.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    /// Look-ups of a round.
    pub round: usize,
    /// The time between rounds, where they leave by the clock.
    pub every: Option<Duration>,
}

/// What rounds are made by.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// What is known without a look-up.
    pub known: &'a Known,
    /// When rounds leave.
    pub rhythm: Rhythm,
    /// Whether hints may be made anew.
    pub new_hints: NewHints,
    /// Ends them when it is raised.
    pub stop: &'a AtomicBool,
    /// What to add to refusals.
    pub advice: Advice,
}

/// Does what is wanted until `stop` is raised, and tells what happens.
///
/// # Errors
///
/// When the state cannot be written.
pub fn run(
    libraries: &mut Libraries,
    wanted: &Receiver<Wanted>,
    terms: Terms<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<()> {
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
    Terms { known, rhythm, new_hints, stop, advice }: Terms<'_>,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<()> {
    let mut waiting = Waiting::default();
    let (mut look_at, mut round_at) = (Instant::now() + EPOCH_INTERVAL, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let went_over = spares.look_after(libraries, tell)?;
        if went_over[0] {
            known.set(None);
        }
        if went_over.contains(&true) {
            look_at = Instant::now();
        }
        let until = [Some(look_at), rhythm.every.map(|_| round_at)].into_iter().flatten().min();
        let pause = until.map_or(STOP_INTERVAL, |until| {
            until.saturating_duration_since(Instant::now()).min(STOP_INTERVAL)
        });
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
            look_at = Instant::now() + EPOCH_INTERVAL;
            match bring_forward(spares, libraries, known, new_hints, tell) {
                Ok(epoch) => tell(News::Epoch(epoch)),
                Err(error) => tell(News::Away(&error)),
            }
        }
        let (state_missing, codes_missing) = (spares.state.missing(), spares.codes.missing());
        waiting.give_up(state_missing, codes_missing);
        let has_state = state_missing.is_none();
        // With no hints there is no round.
        let mut codes = libraries.codes.as_mut().filter(|_| codes_missing.is_none());
        match rhythm.every {
            Some(every) if Instant::now() >= round_at => {
                // Beats that were missed are not made up for: how long the last round took is not
                // told either.
                while round_at <= Instant::now() {
                    round_at += every;
                }
                let state = match has_state {
                    true => go(&mut libraries.state, &mut waiting, known, rhythm.round, &advice)?,
                    false => None,
                };
                let codes = codes.map(|codes| go_for_code(codes, &mut waiting)).transpose()?;
                state.into_iter().chain(codes.flatten()).for_each(|reason| tell(News::Lost(&reason)));
            }
            Some(_) => {}
            None => {
                while !stop.load(Ordering::Relaxed) {
                    let lost = if has_state && !waiting.records.is_empty() {
                        go(&mut libraries.state, &mut waiting, known, rhythm.round, &advice)?
                    } else if let Some(codes) = codes.as_mut().filter(|_| !waiting.codes.is_empty()) {
                        go_for_code(codes, &mut waiting)?
                    } else {
                        break;
                    };
                    lost.into_iter().for_each(|reason| tell(News::Lost(&reason)));
                }
            }
        }
    }
    Ok(())
}

/// Completes what was left without an answer, and brings the hints to the newest epoch, with new
/// ones where that is cheaper; returns that epoch. For the beginning, when nobody waits.
///
/// # Errors
///
/// When the server cannot be reached, the hints cannot be made, or the state cannot be written.
pub fn catch_up(
    libraries: &mut Libraries,
    known: &Known,
    new_hints: NewHints,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<u64> {
    let state = forward_state(&mut libraries.state, known, new_hints, tell)?;
    let codes = forward_codes(libraries.codes.as_mut(), new_hints, tell)?;
    if state.is_none() && codes.is_none() {
        return Ok(libraries.state.client().version().epoch);
    }
    let mut renew = |needed: Option<NewHintsNeeded>, library: &mut Library, of: Which| -> Result<()> {
        let Some(needed) = needed else { return Ok(()) };
        tell(News::Hints(of, HintsNews::Making(&needed)));
        let caught_up = library.renew_as_needed(needed, stop, &mut |_| ())?;
        tell(News::Hints(of, HintsNews::Forward(&caught_up)));
        Ok(())
    };
    renew(state, &mut libraries.state, Which::State)?;
    if let Some(library) = &mut libraries.codes {
        renew(codes, library, Which::Codes)?;
    }
    // There may be an epoch after theirs by now, and what that takes is seen to when calls come.
    forward_state(&mut libraries.state, known, new_hints, tell)?;
    Ok(libraries.state.client().version().epoch)
}

/// The same while calls come: new hints are made beside. Whichever are needed, of the state or of
/// codes, does not wait for the others.
fn bring_forward(
    spares: &mut Spares<'_, '_>,
    libraries: &mut Libraries,
    known: &Known,
    new_hints: NewHints,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<u64> {
    if !spares.state.is_awaited() {
        spares.state.need(forward_state(&mut libraries.state, known, new_hints, tell)?);
    }
    // After the state: what that tells of is in there by then.
    if !spares.codes.is_awaited() {
        spares.codes.need(forward_codes(libraries.codes.as_mut(), new_hints, tell)?);
    }
    Ok(libraries.state.client().version().epoch)
}

/// Brings the hints of the state forward as they are, and says why that is not enough, where it is
/// not.
fn forward_state(
    library: &mut Library,
    known: &Known,
    new_hints: NewHints,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Option<NewHintsNeeded>> {
    let before = library.client().version().epoch;
    let mut needs = Ok(None);
    // Epochs may come faster than their changes are added: what is said of the block must fit the
    // hints.
    for _ in 0..3 {
        needs = forward(library, Which::State, new_hints, tell);
        if !matches!(needs, Ok(None)) || library.client().version().epoch == library.epoch() {
            break;
        }
    }
    let epoch = library.client().version().epoch;
    match &needs {
        Ok(None) if epoch == library.epoch() => known.set(library.head()),
        // Some changes may have been added before it ended.
        _ if epoch == before && !matches!(needs, Ok(None)) => {}
        _ => known.set(None),
    }
    needs
}

/// The same for the database of codes, where there is one.
fn forward_codes(
    codes: Option<&mut Library>,
    new_hints: NewHints,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Option<NewHintsNeeded>> {
    codes.map_or(Ok(None), |codes| forward(codes, Which::Codes, new_hints, tell))
}

/// Completes what was left without an answer, asks for the newest epoch, and brings hints there.
fn forward(
    library: &mut Library,
    of: Which,
    new_hints: NewHints,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Option<NewHintsNeeded>> {
    library.resume()?;
    library.look_around()?;
    match library.bring_forward(new_hints)? {
        Forward::Newest => Ok(None),
        Forward::Brought(caught_up) => {
            if caught_up.is_news() {
                tell(News::Hints(of, HintsNews::Forward(&caught_up)));
            }
            Ok(None)
        }
        Forward::Needed(needed) => Ok(Some(needed)),
    }
}

/// One round: as many look-ups as it has, those that wait first. Says why it brought nothing, if
/// so.
fn go(
    library: &mut Library,
    waiting: &mut Waiting,
    known: &Known,
    round: usize,
    advice: &Advice,
) -> Result<Option<Error>> {
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
                let _ = wanted.answer.send(Err(reason.into()));
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
            for Wanted { wants_code, since, answer, .. } in now {
                if wants_code {
                    waiting.codes.push_back(WantedCode {
                        since,
                        hash: hash_of(next(), next(), advice),
                        answer,
                    });
                } else {
                    // Whoever does not wait any more is not told.
                    let _ = answer.send(next());
                }
            }
            Ok(None)
        }
        Err(error) => {
            let reason = lost(error)?;
            let told = NoAnswer(reason.to_string());
            now.into_iter().for_each(|wanted| drop(wanted.answer.send(Err(told.clone()))));
            Ok(Some(reason))
        }
    }
}

/// The hash of an account's code, as the state has the two.
fn hash_of(
    account: Answered,
    hash: Answered,
    advice: &Advice,
) -> std::result::Result<Option<[u8; 32]>, NoAnswer> {
    match (account?, hash?) {
        (_, Answer::Value(Some(hash))) => match hash.try_into() {
            Ok(hash) => Ok(Some(hash)),
            Err(_) => Err("the server's answer is wrong: a hash has 32 bytes".into()),
        },
        (Answer::Account(Some(account)), _) if account.code != 0 => Err(NoAnswer(format!(
            "this is a contract, and the state does not tell the hash of its code: it was built without{}",
            After(advice.code_hashes)
        ))),
        _ => Ok(None),
    }
}

/// One look-up in the database of codes: of the first that waits, or of none. Says why it brought
/// nothing, if so.
fn go_for_code(codes: &mut Library, waiting: &mut Waiting) -> Result<Option<Error>> {
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
            (Some(Err(NoAnswer(reason.to_string()))), Some(reason))
        }
    };
    if let Some(WantedCode { hash: known, answer: to, .. }) = wanted {
        let answer = known.and_then(|_| match (hash, answer) {
            (None, None) => Ok(Answer::Value(None)),
            (Some(hash), Some(answer)) => code_of(&hash, answer?),
            (_, answer) => answer.unwrap_or_else(|| Err("there is no answer".into())),
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
                .into(),
        ),
        _ => Err("the answer of the server of codes is wrong: the code has another hash".into()),
    }
}

/// Why a round brought nothing. A server that does not answer may do so again, and hints can be
/// made anew; a state that cannot be written ends it.
fn lost(error: Error) -> Result<Error> {
    match error {
        Error::Unanswered(_) | Error::Query(_) | Error::Retrieval(warpsmith_rms24::Error::Remote { .. }) => {
            Ok(error)
        }
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> (Wanted, oneshot::Receiver<Answered>) {
        let (answer, told) = oneshot::channel();
        let since = Instant::now();
        (Wanted { queries: vec![Query::Index(0)], wants_code: false, block: None, since, answer }, told)
    }

    #[test]
    fn those_who_left_make_room_and_beyond_that_it_is_said() {
        let (mut waiting, mut patient) = (Waiting::default(), Vec::new());
        for number in 0..MAX_WAITING {
            let (wanted, told) = wanted();
            waiting.add(wanted);
            // Half of them leave.
            patient.extend((number % 2 == 0).then_some(told));
        }
        assert_eq!(waiting.records.len(), MAX_WAITING);
        for _ in 0..MAX_WAITING / 2 {
            let (wanted, told) = wanted();
            waiting.add(wanted);
            patient.push(told);
        }
        assert_eq!(waiting.records.len(), MAX_WAITING);
        assert!(patient.iter_mut().all(|told| told.try_recv().is_err()));
        let (one_more, mut told) = wanted();
        waiting.add(one_more);
        assert!(told.try_recv().unwrap().unwrap_err().to_string().contains("ask again later"));
        assert_eq!(waiting.records.len(), MAX_WAITING);
    }

    /// Who came lately waits; who waited for long is told why, and only where it is the hints that
    /// are missing.
    #[test]
    fn those_who_wait_for_new_hints_are_told_in_time() {
        let (mut waiting, began) = (Waiting::default(), Instant::now());
        let (mut old, mut told) = wanted();
        // A machine that has not been on for as long has no such time; then there is nothing to see
        // here.
        let Some(since) = began.checked_sub(HINTS_TIMEOUT) else { return };
        old.since = since;
        let (mut young, mut not_told) = wanted();
        young.since = began + Duration::from_secs(3600);
        waiting.add(old);
        waiting.add(young);
        let gone = |reason: &str| NewHintsNeeded::Gone(reason.to_owned());
        waiting.give_up(None, Some(&gone("of codes")));
        assert!(told.try_recv().is_err());
        waiting.give_up(Some(&gone("the table has grown")), None);
        let told = told.try_recv().unwrap().unwrap_err().to_string();
        assert!(told.starts_with("the table has grown; new hints are being made"), "{told}");
        assert!(not_told.try_recv().is_err() && waiting.records.len() == 1);
    }
}
