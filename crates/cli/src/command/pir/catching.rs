//! Hints that are older than the database: brought forward by its changes, or made anew where that is cheaper.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde::Serialize;
use warpsmith::look_up::{CaughtUp, Cost, Library, Weighed};
use warpsmith::pir::Error;
use warpsmith_console::exit::Failure;
use warpsmith_console::human;
use warpsmith_console::screen::Screen;

use super::bytes;
use crate::failures::OrFail as _;

/// Whether hints may be made anew.
#[derive(Args, Clone, Copy)]
pub(super) struct NewHintsFlag {
    /// Never make new hints: catch up by changes, however many there are, and end where the server has not all of them
    #[arg(long)]
    no_new_hints: bool,
}

/// How hints came to the newest epoch.
#[derive(Serialize)]
pub(super) struct CaughtUpFields {
    /// `updates` or `hints`.
    by: &'static str,
    from_epoch: u64,
    epoch: u64,
    #[serde(flatten)]
    weighed: Option<WeighedFields>,
}

impl CaughtUpFields {
    /// The same for people.
    pub(super) fn text(&self) -> String {
        let CaughtUpFields { by, from_epoch, epoch, weighed } = self;
        match weighed {
            Some(WeighedFields { changes, update_bytes, hints_bytes, .. }) if *by == "updates" => format!(
                "hints brought from epoch {from_epoch} to {epoch} by {} changes, {}; new ones take {}",
                human::count(*changes as f64),
                bytes(*update_bytes),
                bytes(*hints_bytes)
            ),
            _ => format!("new hints are of epoch {epoch}"),
        }
    }

    /// Whether it is worth a word where epochs come all the time.
    pub(super) fn is_news(&self) -> bool {
        self.by == "hints" || self.epoch - self.from_epoch > FEW_EPOCHS
    }
}

/// How far hints could be brought as they are.
pub(super) enum Forward {
    /// They are of the newest epoch already.
    Newest,
    /// To the newest epoch.
    Brought(CaughtUpFields),
    /// New ones are to be made.
    Needs(Needs),
}

/// Why new hints are to be made.
pub(super) struct Needs {
    pub reason: String,
    /// What either way takes, where changes would do too.
    weighed: Option<WeighedFields>,
}

impl Needs {
    /// Makes them, and waits until they are there.
    pub(super) fn renew(
        self,
        library: &mut Library,
        stop: &AtomicBool,
        begin: &mut dyn FnMut(&str),
        watch: &mut dyn FnMut(f64),
    ) -> Result<CaughtUpFields, warpsmith::Error> {
        let from_epoch = library.client().version().epoch;
        begin(&format!("{}; new hints are made", self.reason));
        library.renew(stop, &mut |share| {
            watch(share);
            if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
        })?;
        let epoch = library.client().version().epoch;
        Ok(CaughtUpFields { by: "hints", from_epoch, epoch, weighed: self.weighed })
    }
}

/// Epochs that are not worth a word.
const FEW_EPOCHS: u64 = 16;

/// What either way takes.
#[derive(Serialize)]
struct WeighedFields {
    changes: u64,
    update_bytes: u64,
    update_s: f64,
    hints_bytes: u64,
    hints_s: f64,
}

impl From<&Weighed> for WeighedFields {
    fn from(weighed: &Weighed) -> WeighedFields {
        let Weighed { changes, updates, hints } = weighed;
        WeighedFields {
            changes: *changes,
            update_bytes: updates.bytes,
            update_s: updates.seconds,
            hints_bytes: hints.bytes,
            hints_s: hints.seconds,
        }
    }
}

fn cost(cost: &Cost) -> String {
    format!("{} and about {}", bytes(cost.bytes), human::seconds(cost.seconds))
}

/// Why hints are made anew.
fn reason(caught_up: &CaughtUp) -> String {
    match caught_up {
        CaughtUp::Gone(reason) => reason.clone(),
        CaughtUp::ByUpdates(Weighed { changes, updates, hints })
        | CaughtUp::HintsAreCheaper(Weighed { changes, updates, hints }) => format!(
            "{} changes are left, which take {}; new hints take {}",
            human::count(*changes as f64),
            cost(updates),
            cost(hints)
        ),
    }
}

impl NewHintsFlag {
    /// Whether hints may be made anew.
    pub(super) fn allows(self) -> bool {
        !self.no_new_hints
    }

    /// Brings hints to the newest epoch that the server told of by its changes, unless new hints are needed.
    pub(super) fn bring_forward(&self, library: &mut Library) -> Result<Forward, warpsmith::Error> {
        let from_epoch = library.client().version().epoch;
        let Some(caught_up) = library.catch_up_if_cheaper()? else { return Ok(Forward::Newest) };
        let weighed = match &caught_up {
            CaughtUp::ByUpdates(weighed) => weighed,
            CaughtUp::HintsAreCheaper(weighed) if self.no_new_hints => {
                library.catch_up()?;
                weighed
            }
            CaughtUp::Gone(reason) if self.no_new_hints => {
                return Err(warpsmith::Error::Query(reason.clone()));
            }
            CaughtUp::HintsAreCheaper(weighed) => {
                let weighed = Some(WeighedFields::from(weighed));
                return Ok(Forward::Needs(Needs { reason: reason(&caught_up), weighed }));
            }
            CaughtUp::Gone(_) => {
                return Ok(Forward::Needs(Needs { reason: reason(&caught_up), weighed: None }));
            }
        };
        let (epoch, weighed) = (library.client().version().epoch, Some(WeighedFields::from(weighed)));
        Ok(Forward::Brought(CaughtUpFields { by: "updates", from_epoch, epoch, weighed }))
    }

    /// Brings hints to the newest epoch that the server told of, the cheaper way, and says which one that is and why. None where
    /// they are of that epoch already. `begin` is told why new hints are made, before that begins, and `watch` the share of the
    /// database that was read for them.
    pub(super) fn catch_up(
        &self,
        library: &mut Library,
        stop: &AtomicBool,
        begin: &mut dyn FnMut(&str),
        watch: &mut dyn FnMut(f64),
    ) -> Result<Option<CaughtUpFields>, warpsmith::Error> {
        Ok(match self.bring_forward(library)? {
            Forward::Newest => None,
            Forward::Brought(caught_up) => Some(caught_up),
            Forward::Needs(needs) => Some(needs.renew(library, stop, begin, watch)?),
        })
    }

    /// The same, told on the screen.
    pub(super) fn catch_up_on(
        &self,
        library: &mut Library,
        stop: &AtomicBool,
        screen: &mut Screen,
    ) -> Result<Option<CaughtUpFields>, Failure> {
        let screen = std::cell::RefCell::new(screen);
        let mut begin = |text: &str| screen.borrow_mut().say(format_args!("{text}"));
        let mut watch = |share: f64| screen.borrow_mut().bar("of the database", Some(share), "");
        let caught_up = self.catch_up(library, stop, &mut begin, &mut watch);
        let screen = screen.into_inner();
        screen.clear();
        let caught_up = caught_up.or_fail()?;
        if let Some(caught_up) = &caught_up {
            screen.say(format_args!("{}", caught_up.text()));
        }
        Ok(caught_up)
    }
}
