//! Hints are used up, one for each query, and may become too old. New ones are made on another thread: before they are used up, so that
//! no look-up waits for them, and where the database leaves no other way, so that those who ask are told in time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use super::{HintsNews, Libraries, News, Which};
use crate::catch_up::{NewHints, NewHintsNeeded};
use crate::error::{Error, Result};
use crate::look_up::{Library, NextHints};

/// New hints are begun when so many of a state's queries are left: one of four.
const RESERVE: u64 = 4;
/// How long it is waited after new hints could not be made.
const RETRY: Duration = Duration::from_secs(30);

type Making<'s> = ScopedJoinHandle<'s, Result<NextHints>>;

/// The new hints of both databases.
pub(super) struct Spares<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    allowed: bool,
    stop: &'e AtomicBool,
    pub state: Spare<'s>,
    pub codes: Spare<'s>,
}

/// Those of one database.
#[derive(Default)]
pub(super) struct Spare<'s> {
    making: Option<Making<'s>>,
    not_before: Option<Instant>,
    /// Why those there are do not do any more, however many there are.
    needs: Option<NewHintsNeeded>,
}

impl<'s, 'e> Spares<'s, 'e> {
    pub fn new(scope: &'s Scope<'s, 'e>, new_hints: NewHints, stop: &'e AtomicBool) -> Spares<'s, 'e> {
        Spares {
            scope,
            allowed: new_hints == NewHints::Allowed,
            stop,
            state: Spare::default(),
            codes: Spare::default(),
        }
    }

    /// Begins to make hints where few are left, and goes over to those that are made. Says for state and codes whether it went over: what is
    /// known of the newest epoch is of before then.
    pub fn look_after(
        &mut self,
        libraries: &mut Libraries,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<[bool; 2]> {
        if !self.allowed {
            return Ok([false; 2]);
        }
        let (scope, stop) = (self.scope, self.stop);
        let state = self.state.look_after(scope, stop, &mut libraries.state, Which::State, tell)?;
        let codes = match &mut libraries.codes {
            Some(codes) => self.codes.look_after(scope, stop, codes, Which::Codes, tell)?,
            None => false,
        };
        Ok([state, codes])
    }
}

impl<'s> Spare<'s> {
    /// New ones are to be made for this reason; or those there are do, after all.
    pub fn need(&mut self, needs: Option<NewHintsNeeded>) {
        self.needs = needs;
    }

    /// Whether those are being made that are needed: until they are, there is nothing to be brought forward.
    pub fn is_awaited(&self) -> bool {
        self.needs.is_some() && self.making.is_some()
    }

    /// Why nothing can be looked up until they are made, if so.
    pub fn missing(&self) -> Option<&NewHintsNeeded> {
        self.needs.as_ref()
    }

    fn look_after<'e>(
        &mut self,
        scope: &'s Scope<'s, 'e>,
        stop: &'e AtomicBool,
        library: &mut Library,
        of: Which,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<bool> {
        let remaining = library.remaining();
        if let Some(done) = self.making.take_if(|making| making.is_finished()) {
            match done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(next) => match library.adopt(next) {
                    Ok(()) => {
                        self.needs = None;
                        tell(News::Hints(of, HintsNews::InUse(library.remaining())));
                        return Ok(true);
                    }
                    // The table has grown meanwhile, or the server has another one: these are of no use.
                    Err(Error::Query(reason)) => {
                        self.not_before = Some(Instant::now() + RETRY);
                        tell(News::Hints(of, HintsNews::NotUsed(&reason)));
                    }
                    Err(error) => return Err(error),
                },
                Err(_) if stop.load(Ordering::Relaxed) => {}
                Err(error) => {
                    self.not_before = Some(Instant::now() + RETRY);
                    tell(News::Hints(of, HintsNews::Failed(&error)));
                }
            }
            return Ok(false);
        }
        let is_time = self.not_before.is_none_or(|time| Instant::now() >= time);
        let are_few = remaining < library.client().params().backups() / RESERVE;
        if self.making.is_none() && is_time && (are_few || self.needs.is_some()) {
            let news = match &self.needs {
                Some(needs) => HintsNews::MakingBeside(needs),
                None => HintsNews::FewLeft(remaining),
            };
            tell(News::Hints(of, news));
            // One thread stays free for the answers.
            let threads = available_parallelism().map_or(1, |n| n.get()).saturating_sub(1).max(1);
            let renewal = library.renewal();
            self.making = Some(scope.spawn(move || {
                renewal.make(threads, stop, &mut |_| match stop.load(Ordering::Relaxed) {
                    true => Err(warpsmith_rms24::Error::Stopped),
                    false => Ok(()),
                })
            }));
        }
        Ok(false)
    }
}
