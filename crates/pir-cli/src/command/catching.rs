//! Hints that are older than the database: the flag for how they come to it, and what is said of
//! that.

use std::sync::atomic::AtomicBool;

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::Failure;
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_eth_state::look_up::{Cost, Library, Weighed};
use warpsmith_eth_state::{CatchUp, Forward, NewHints, NewHintsNeeded};

use super::bytes;
use crate::failures::OrFail as _;

/// Whether hints may be made anew.
#[derive(Args, Clone, Copy)]
pub(super) struct NewHintsFlag {
    /// Never make new hints: catch up by changes, however many there are, and end where the server
    /// has not all of them
    #[arg(long)]
    no_new_hints: bool,
}

/// How hints came to the newest epoch, in JSON.
#[derive(Serialize)]
pub(super) struct CaughtUpFields {
    /// `updates` or `hints`.
    by: &'static str,
    from_epoch: u64,
    epoch: u64,
    #[serde(flatten)]
    weighed: Option<WeighedFields>,
}

/// What either way takes.
#[derive(Serialize)]
struct WeighedFields {
    changes: u64,
    update_bytes: u64,
    update_s: f64,
    hints_bytes: u64,
    hints_s: f64,
}

impl From<&CatchUp> for CaughtUpFields {
    fn from(caught_up: &CatchUp) -> CaughtUpFields {
        CaughtUpFields {
            by: if caught_up.is_new { "hints" } else { "updates" },
            from_epoch: caught_up.from_epoch,
            epoch: caught_up.epoch,
            weighed: caught_up.weighed.map(|Weighed { changes, updates, hints }| WeighedFields {
                changes,
                update_bytes: updates.bytes,
                update_s: updates.seconds,
                hints_bytes: hints.bytes,
                hints_s: hints.seconds,
            }),
        }
    }
}

/// How hints came to the newest epoch, for people.
pub(super) fn caught_up_text(caught_up: &CatchUp) -> String {
    let CatchUp { is_new, from_epoch, epoch, weighed } = caught_up;
    match weighed {
        Some(Weighed { changes, updates, hints }) if !is_new => format!(
            "hints brought from epoch {from_epoch} to {epoch} by {} changes, {}; new ones take {}",
            human::count(*changes as f64),
            bytes(updates.bytes),
            bytes(hints.bytes)
        ),
        _ => format!("new hints are of epoch {epoch}"),
    }
}

fn cost(cost: &Cost) -> String {
    format!("{} and about {}", bytes(cost.bytes), human::seconds(cost.seconds))
}

/// Why hints are made anew, for people.
pub(super) fn needed_text(needed: &NewHintsNeeded) -> String {
    match needed {
        NewHintsNeeded::Gone(reason) => reason.clone(),
        NewHintsNeeded::Cheaper(Weighed { changes, updates, hints }) => format!(
            "{} changes are left, which take {}; new hints take {}",
            human::count(*changes as f64),
            cost(updates),
            cost(hints)
        ),
    }
}

impl From<NewHintsFlag> for NewHints {
    fn from(flag: NewHintsFlag) -> NewHints {
        if flag.no_new_hints { NewHints::Never } else { NewHints::Allowed }
    }
}

impl NewHintsFlag {
    /// Brings hints to the newest epoch that the server told of, the cheaper way, and says on the
    /// screen which one that is and why. None where they are of that epoch already.
    pub(super) fn catch_up_on(
        self,
        library: &mut Library,
        stop: &AtomicBool,
        screen: &mut Screen,
    ) -> Result<Option<CaughtUpFields>, Failure> {
        let caught_up = match library.bring_forward(self.into()).or_fail()? {
            Forward::Newest => return Ok(None),
            Forward::Brought(caught_up) => caught_up,
            Forward::Needed(needed) => {
                screen.say(format_args!("{}; new hints are made", needed_text(&needed)));
                let mut watch = |share: f64| screen.bar("of the database", Some(share), "");
                let renewed = library.renew_as_needed(needed, stop, &mut watch);
                screen.clear();
                renewed.or_fail()?
            }
        };
        screen.say(format_args!("{}", caught_up_text(&caught_up)));
        Ok(Some(CaughtUpFields::from(&caught_up)))
    }
}
