//! `warpsmith pir update`: appends an epoch of changes to a database.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use warpsmith::pir::ethereum;
use warpsmith::pir::updates::Live;

use super::{changes, lanes};
use crate::ending::{Ending, Failure};
use crate::stdout::{AsAsked, Stdout};

const EXAMPLES: &str = "\
A line of CHANGES is an index or a key, blanks, and the new value; lines that begin with # are skipped:
  flat database    17 00ff...             the entry's new value in hex
  pairs            a1b2 00ff              a value no longer than the database has room for
  text             a page<TAB>its text    all of it after the first tab; a key without a tab is taken out
  addresses        1Love... 5000          the amount
  coins            1Love... 5000,2        the amount and the number of coins
  state            0xabc...:0x2a 00ff...  the 32 bytes of a slot
                   0xabc... 1000,5,0      balance, nonce and code of an account
A key with - instead of a value is taken out. New keys are put in.

Examples:
  warpsmith pir update data.pir changes.txt
  echo '17 0011223344556677' | warpsmith pir update data.pir -
  warpsmith pir update state.bin.pir block-100.delta --delta";

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
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let live = Live::open(&self.database, lanes(), 0)?;
        let failed = |error: std::io::Error| Failure::of_file(&self.changes.display(), &error);
        let update = if self.delta {
            let params = live.params();
            if live.base().description().keyword.is_some() || params.entry_size() != ethereum::RECORD {
                return Err(Failure::Usage(format!(
                    "--delta is for flat databases of {}-byte records, and {} is none",
                    ethereum::RECORD,
                    self.database.display()
                )));
            }
            ethereum::read_delta(live.epoch() + 1, &std::fs::read(&self.changes).map_err(failed)?)?
        } else {
            let values = if self.changes == Path::new("-") {
                changes::read(&live, Path::new("standard input"), &mut std::io::stdin().lock())?
            } else {
                let file = std::fs::File::open(&self.changes).map_err(failed)?;
                changes::read(&live, &self.changes, &mut BufReader::new(file))?
            };
            live.difference(&values)?
        };
        let changes = update.indices.len();
        if changes == 0 {
            return Err(Failure::Other(format!(
                "{} has no changes; nothing was appended",
                self.changes.display()
            )));
        }
        live.update(update)?;
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
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}
