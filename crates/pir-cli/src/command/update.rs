//! `warpsmith-pir update`: appends an epoch of changes to a database.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human::whole;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_eth_state::import::changes::{self, Keys, Listed};
use warpsmith_eth_state::import::read_delta;
use warpsmith_eth_state::{Names, RECORD, STATE, open_database};
use warpsmith_rms24::keyword::{Layout, chunks_of};
use warpsmith_rms24::updates::{Keep, Live};
use warpsmith_rms24::{Error, wire};

use super::fold::fold_and_tell;
use super::growth::{Telling, grow};
use super::lanes;
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
A line of CHANGES is an index or a key, blanks, and the new value; lines that begin with # are skipped:
  flat database    17 00ff...             the entry's new value in hex
  pairs            a1b2 00ff              a value no longer than the database has room for
  text             a page<TAB>its text    all of it after the first tab; a key without a tab is taken out
  addresses        1Love... 5000          the amount
  coins            1Love... 5000,2        the amount and the number of coins
  state            0xabc...:0x2a 00ff...  the 32 bytes of a slot
                   0xabc... 1000,5,0      balance, nonce and code of an account
A key with - instead of a value is taken out. New keys are put in; where one has no place, all keys move to a larger table, and
clients must make new hints. Of a state this needs the list of its names (`warpsmith-pir build --names`).

Examples:
  warpsmith-pir update data.pir changes.txt
  echo '17 0011223344556677' | warpsmith-pir update data.pir -
  warpsmith-pir update state.bin.pir block-100.delta --delta";

/// Changes that are not folded yet, from which on they are. Whoever opens the database has them in memory, some 170 bytes each.
const FOLD_AFTER: u64 = 4_000_000;
/// What is kept of them then: as many as are cheaper than new hints, and the last epoch at the least.
const KEPT: Keep = Keep { epochs: 1, changes: None };

/// Append an epoch of changes to a database
///
/// A server that has it open serves them within a second or two; clients bring their hints forward by themselves. The
/// changes are durable before anybody is told of them, and all of them count or none.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Update {
    /// The database
    #[arg(value_name = "DBFILE")]
    database: PathBuf,

    /// The changes, a line each; - for standard input
    #[arg(value_name = "CHANGES")]
    changes: PathBuf,

    /// CHANGES is a delta file of plinko-rs or rms24-rs, for a flat database of 40-byte records
    #[arg(long)]
    delta: bool,

    /// Fold the database, as `warpsmith-pir fold` does, when so many changes are not folded yet; 0 for never
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..), default_value_t = FOLD_AFTER)]
    fold_after: u64,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct UpdatedLine {
    event: &'static str,
    epoch: u64,
    changes: usize,
}

impl Update {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let live = open_database(&self.database, lanes(), 0).or_fail()?;
        let update = self.read(&live, stdout).map_err(Failure::of_input)?;
        let changes = update.indices.len();
        if changes == 0 {
            return Err(Failure::Usage(format!(
                "{} has no changes; nothing was appended",
                self.changes.display()
            )));
        }
        live.update(update).or_fail()?;
        if self.json {
            stdout.show_json(&UpdatedLine { event: "updated", epoch: live.epoch(), changes })?;
        } else {
            let entries = if changes == 1 {
                "1 entry changed".to_owned()
            } else {
                format!("{changes} entries changed")
            };
            stdout.show(format!("epoch {}: {entries}\n", live.epoch()).as_bytes())?;
        }
        // What is unfolded beside the file, before its memory goes back.
        let unfolded = live.changes();
        drop(live);
        if self.fold_after > 0 && unfolded >= self.fold_after {
            let mut screen = Screen::new(false);
            // The changes count, whatever becomes of this.
            if let Err(failure) = fold_and_tell(&self.database, KEPT, self.json, &mut screen, stdout) {
                screen.warn(&format!("the changes are there, and were not folded: {failure}"));
            }
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// Reads the changes.
    fn read(&self, live: &Live, stdout: &mut Stdout) -> Result<wire::Update, Failure> {
        let failed = |error: std::io::Error| Failure::of_file(&self.changes.display(), &error);
        if self.delta {
            let params = live.params();
            if live.base().description().keyword.is_some() || params.entry_size() != RECORD {
                return Err(Failure::Usage(format!(
                    "--delta is for flat databases of {}-byte records, and {} is none",
                    RECORD,
                    self.database.display()
                )));
            }
            let bytes = std::fs::read(&self.changes).map_err(failed)?;
            read_delta(live.epoch() + 1, &bytes).or_fail()
        } else {
            let listed = if self.changes == Path::new("-") {
                changes::read(live, Path::new("standard input"), &mut std::io::stdin().lock()).or_fail()?
            } else {
                let file = std::fs::File::open(&self.changes).map_err(failed)?;
                changes::read(live, &self.changes, &mut BufReader::new(file)).or_fail()?
            };
            let values = match listed {
                Listed::Entries(values) => values,
                Listed::Keys(keys) => self.places(live, &keys, stdout)?,
            };
            live.difference(&values).or_fail()
        }
    }

    /// The entries that change, in a larger table if need be.
    fn places(&self, live: &Live, keys: &Keys, stdout: &mut Stdout) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
        let base = live.base();
        let description = base.description();
        let is_state = description.keyword.as_ref().is_some_and(|shape| shape.layout == STATE);
        let mut names = match is_state {
            true => {
                Names::open(&self.database, &description.lineage(), &description.predecessors).or_fail()?
            }
            false => None,
        };
        if let Some(names) = &mut names {
            names
                .add(keys.changes.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| &key[..]))
                .or_fail()?;
        }
        let name_of =
            |names: &Option<Names>, record: &[u8]| names.as_ref().and_then(|names| names.of(record));
        match keys.entries(live, &|record| name_of(&names, record)) {
            Err(Error::Full(number)) if is_state && names.is_none() => Err(Failure::Other(format!(
                "{}: there is no place for this new key, and the table cannot grow, since the database has no list of its names \
                 (.names); build it anew with --names, or with more --room",
                keys.place(number)
            ))),
            Err(Error::Full(_)) => {
                let (stop, mut screen) = (interrupt()?, Screen::new(false));
                let telling = Telling { json: self.json, stop: &stop, screen: &mut screen, stdout };
                let entry_size = description.params.entry_size();
                let layout = description.keyword.as_ref().map(|shape| shape.layout);
                let in_chunks = matches!(layout, Some(Layout::Chunked(_) | Layout::Text(_)));
                let entries =
                    |value: &Vec<u8>| if in_chunks { chunks_of(value.len(), entry_size) } else { 1 };
                let new = keys.changes.iter().filter_map(|(_, value)| value.as_ref()).map(entries).sum();
                grow(&self.database, live, &mut names, new, telling)?;
                keys.entries(live, &|record| name_of(&names, record)).or_fail()
            }
            other => Ok(other.or_fail()?),
        }
    }
}
