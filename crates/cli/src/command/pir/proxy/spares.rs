//! Hints are used up, one for each query. New ones are made on another thread before they are, so that no look-up waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use warpsmith::Error;
use warpsmith::look_up::{Library, NextHints};

use super::super::catching::NewHintsFlag;
use super::rounds::{Libraries, News};
use crate::human;

/// New hints are begun when so many of a state's queries are left: one of four.
const RESERVE: u64 = 4;
/// How long it is waited after new hints could not be made.
const RETRY: Duration = Duration::from_secs(30);

type Making<'s> = ScopedJoinHandle<'s, Result<NextHints, Error>>;

/// The new hints of both databases.
pub(super) struct Spares<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    allowed: bool,
    stop: &'e AtomicBool,
    state: Spare<'s>,
    codes: Spare<'s>,
}

/// Those of one database.
#[derive(Default)]
struct Spare<'s> {
    making: Option<Making<'s>>,
    not_before: Option<Instant>,
}

impl<'s, 'e> Spares<'s, 'e> {
    pub fn new(scope: &'s Scope<'s, 'e>, new_hints: NewHintsFlag, stop: &'e AtomicBool) -> Spares<'s, 'e> {
        Spares { scope, allowed: new_hints.allows(), stop, state: Spare::default(), codes: Spare::default() }
    }

    /// Begins to make hints where few are left, and goes over to those that are made. Says whether it went over: what is known of the
    /// newest epoch is of before then.
    pub fn look_after(
        &mut self,
        libraries: &mut Libraries,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<bool, Error> {
        if !self.allowed {
            return Ok(false);
        }
        let (scope, stop) = (self.scope, self.stop);
        let mut went_over = self.state.look_after(scope, stop, &mut libraries.state, "", tell)?;
        if let Some(codes) = &mut libraries.codes {
            went_over |= self.codes.look_after(scope, stop, codes, " of codes", tell)?;
        }
        Ok(went_over)
    }
}

impl<'s> Spare<'s> {
    fn look_after<'e>(
        &mut self,
        scope: &'s Scope<'s, 'e>,
        stop: &'e AtomicBool,
        library: &mut Library,
        of: &str,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<bool, Error> {
        let remaining = library.remaining();
        if let Some(done) = self.making.take_if(|making| making.is_finished()) {
            match done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(next) => match library.adopt(next) {
                    Ok(()) => {
                        let queries = human::count(library.remaining() as f64);
                        tell(News::Hints(&format!("new hints{of} are in use: {queries} queries")));
                        return Ok(true);
                    }
                    // The table has grown meanwhile, and those there are were made anew for it: these are of no use.
                    Err(Error::Query(reason)) => {
                        tell(News::Hints(&format!("new hints{of} are not used: {reason}")));
                    }
                    Err(error) => return Err(error),
                },
                Err(_) if stop.load(Ordering::Relaxed) => {}
                Err(error) => {
                    self.not_before = Some(Instant::now() + RETRY);
                    tell(News::Lost(&format!("new hints{of} could not be made: {error}")));
                }
            }
            return Ok(false);
        }
        let is_time = self.not_before.is_none_or(|time| Instant::now() >= time);
        if self.making.is_none() && is_time && remaining < library.client().params().backups() / RESERVE {
            let left = human::count(remaining as f64);
            tell(News::Hints(&format!("{left} queries{of} remain; new hints are made meanwhile")));
            // One thread stays free for the answers.
            let threads = available_parallelism().map_or(1, |n| n.get()).saturating_sub(1).max(1);
            let renewal = library.renewal();
            self.making = Some(scope.spawn(move || {
                renewal.make(threads, stop, &mut |_| match stop.load(Ordering::Relaxed) {
                    true => Err(warpsmith::pir::Error::Stopped),
                    false => Ok(()),
                })
            }));
        }
        Ok(false)
    }
}
