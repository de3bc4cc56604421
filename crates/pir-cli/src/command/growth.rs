//! A table that is full, and the larger one that takes its place.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use warpsmith_console::exit::Failure;
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::Stdout;
use warpsmith_eth_state::Names;
use warpsmith_rms24::Error;
use warpsmith_rms24::updates::Live;

use crate::failures::OrFail as _;

/// A table that has grown.
#[derive(Serialize)]
struct GrownLine {
    event: &'static str,
    database: String,
    identity: String,
    epoch: u64,
    entries: u64,
    keys: u64,
}

/// Where a growth is told, and by whom it is ended.
pub(super) struct Telling<'a> {
    pub json: bool,
    pub stop: &'a AtomicBool,
    pub screen: &'a mut Screen,
    pub stdout: &'a mut Stdout,
}

/// Moves all keys of a database to a table with half as much room again, and enough for so many new entries; and says so.
pub(super) fn grow(
    database: &Path,
    live: &Live,
    names: &mut Option<Names>,
    new: usize,
    telling: Telling<'_>,
) -> Result<(), Failure> {
    let Telling { json, stop, screen, stdout } = telling;
    screen.say(format_args!("table     a new key has no place: all keys move to a larger table"));
    let grown = warpsmith_eth_state::grow(live, names, new, &mut |share| {
        screen.bar("moved", Some(share), "");
        if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    });
    screen.clear();
    grown.or_fail()?;
    let (description, epoch, _) = live.offer();
    let entries = description.params.entries();
    let keys = description.keyword.as_ref().map_or(0, |shape| shape.keys);
    if json {
        stdout.show_json(&GrownLine {
            event: "grown",
            database: database.display().to_string(),
            identity: const_hex::encode(description.identity),
            epoch,
            entries,
            keys,
        })?;
    }
    screen.note(&format!(
        "epoch {epoch}: {} keys in a table of {} entries; clients must make new hints (`warpsmith-pir hint`)",
        human::count(keys as f64),
        human::count(entries as f64)
    ));
    Ok(())
}
