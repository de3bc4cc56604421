//! `warpsmith db diff`: what one database has and another has not, and amounts that changed.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use warpsmith::store::{Database, Difference, Record};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::stderr::report;
use warpsmith_console::stdout::Stdout;

use super::failed;

#[derive(Args)]
pub(super) struct Diff {
    /// The first database
    #[arg(value_name = "A")]
    old: PathBuf,

    /// The second
    #[arg(value_name = "B")]
    new: PathBuf,

    /// Print how many differ instead of which
    #[arg(long)]
    summary: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct DifferenceLine {
    event: &'static str,
    change: &'static str,
    address: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_amount: Option<String>,
}

/// How many differ in which way.
#[derive(Default, Serialize)]
struct Counts {
    added: u64,
    removed: u64,
    changed: u64,
}

impl Diff {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let open = |path: &PathBuf| Database::open(path).map_err(failed);
        let (old, new) = (open(&self.old)?, open(&self.new)?);
        let mut counts = Counts::default();
        let mut shown = stdout.buffered();
        let mut compared = old.differences(&new).try_for_each(|difference| {
            let difference = difference.map_err(failed)?;
            counts.add(&difference);
            match (self.summary, self.json) {
                (true, _) => Ok(()),
                (false, true) => shown.add_json(&document(&difference)),
                (false, false) => shown.add(in_words(&difference).as_bytes()),
            }
        });
        if !matches!(compared, Err(Failure::ReaderGone)) {
            compared = shown.flush().and(compared);
        }
        compared?;
        let summary = counts.in_words();
        match (self.summary && !self.json, self.quiet) {
            (true, _) => stdout.show_text(&format!("{summary}\n"))?,
            (false, true) => {}
            (false, false) => report(&summary),
        }
        stdout.done(self.json, &counts)?;
        Ok(if counts.is_none() { ExitStatus::Done } else { ExitStatus::NoMatch })
    }
}

impl Counts {
    fn add(&mut self, difference: &Difference) {
        *match difference {
            Difference::Added(_) => &mut self.added,
            Difference::Removed(_) => &mut self.removed,
            Difference::Changed(..) => &mut self.changed,
        } += 1;
    }

    fn is_none(&self) -> bool {
        (self.added, self.removed, self.changed) == (0, 0, 0)
    }

    fn in_words(&self) -> String {
        if self.is_none() {
            return "no difference: the same addresses with the same amounts".to_owned();
        }
        let [added, removed, changed] =
            [self.added, self.removed, self.changed].map(|count| human::count(count as f64));
        format!("{added} only in the second, {removed} only in the first, {changed} with another amount")
    }
}

fn amount(record: &Record) -> Option<String> {
    record.amount.map(|amount| amount.to_string())
}

/// A sign, the address, and its amounts where there are any; `-` stands for none where another is beside it.
fn in_words(difference: &Difference) -> String {
    let one = |sign: char, record: &Record| {
        let amount = amount(record).map_or(String::new(), |amount| format!(" {amount}"));
        format!("{sign} {}{amount}\n", record.text())
    };
    match difference {
        Difference::Added(record) => one('+', record),
        Difference::Removed(record) => one('-', record),
        Difference::Changed(old, new) => {
            let [before, after] = [old, new].map(|record| amount(record).unwrap_or_else(|| "-".to_owned()));
            format!("~ {} {before} {after}\n", new.text())
        }
    }
}

fn document(difference: &Difference) -> DifferenceLine {
    let (change, record, old_amount) = match difference {
        Difference::Added(record) => ("added", record, None),
        Difference::Removed(record) => ("removed", record, None),
        Difference::Changed(old, new) => ("changed", new, amount(old)),
    };
    DifferenceLine {
        event: "difference",
        change,
        address: record.text(),
        kind: record.kind.name(),
        amount: amount(record),
        old_amount,
    }
}
