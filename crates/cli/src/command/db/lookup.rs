//! `warpsmith db lookup`: addresses in a database, one or many.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;
use warpsmith::store::{
    BadLine, Block, Database, Line, Reader, Record, Report, address_column, read_blocks, read_line,
};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::input;
use warpsmith_console::stderr::warn;
use warpsmith_console::stdout::{BufferedLines, NoSummary, Stdout};

use super::{failed, remarks};
use crate::failures::failure_of;

#[derive(Args)]
pub(super) struct Lookup {
    /// The database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// Addresses to look up, or hashes of 20 bytes: hash160: and 40 hex digits
    #[arg(value_name = "ADDRESS", required_unless_present = "from", num_args = 1..)]
    addresses: Vec<String>,

    /// A file with more of them, one per line, plain or .gz or .zst (- for standard input); further columns are ignored
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Option<String>,

    /// Stop at the first line of the file that is no address, instead of counting such lines
    #[arg(long, requires = "from")]
    strict: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct LookupLine<'a> {
    event: &'static str,
    address: &'a str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<RecordLine>,
}

/// A record that an address was found by.
#[derive(Serialize)]
struct RecordLine {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
}

impl Lookup {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let wanted = self.addresses.iter().map(|text| {
            let record = Record::parse(text).map_err(|error| Failure::Usage(format!("'{text}': {error}")))?;
            record.ok_or_else(|| {
                Failure::Usage(format!("'{text}' is the address of a script; no single key has it"))
            })
        });
        let wanted: Vec<Record> = wanted.collect::<Result<_, Failure>>()?;
        let database = Database::open(&self.database).map_err(failed)?;
        let mut search =
            Search { reader: database.reader(), shown: stdout.buffered(), json: self.json, all: true };
        let mut report = Report::default();
        let mut looked = self
            .addresses
            .iter()
            .zip(&wanted)
            .try_for_each(|(text, address)| search.show(text, address))
            .and_then(|()| search.shown.flush());
        if let Some(file) = self.from.as_deref().filter(|_| looked.is_ok()) {
            let read = read_blocks(
                file.as_ref(),
                |_| (),
                |block| {
                    let found = self.look_up(&block, &mut search, &mut report);
                    // What was found before something fails is right.
                    let shown = search.shown.flush();
                    looked = found.and(shown);
                    looked.is_ok()
                },
            );
            let read = read.map_err(|error| failure_of(&format!("--from {}", input::name(file)), &error));
            looked = looked.and(read);
        }
        looked?;
        for line in remarks(&report) {
            warn(&line.to_string());
        }
        let all = search.all && report.bad + report.scripts == 0;
        stdout.done(self.json, &NoSummary {})?;
        Ok(if all { ExitStatus::Done } else { ExitStatus::NoMatch })
    }

    /// Looks up the addresses of a file's lines.
    fn look_up(&self, block: &Block, search: &mut Search<'_>, report: &mut Report) -> Result<(), Failure> {
        for (number, line) in block.lines() {
            let column = address_column(line);
            // Further columns are ignored, but where there is no first one all of the line says what it is.
            match read_line(number, if column.is_empty() { line } else { column.as_bytes() }) {
                Line::Record(address) => search.show(column, &address)?,
                Line::Script => report.scripts += 1,
                Line::Nothing => {}
                Line::Bad(reason) => {
                    let bad = BadLine { path: block.path.to_path_buf(), line: number, reason };
                    if self.strict {
                        return Err(Failure::Usage(format!(
                            "--from: {bad}; without --strict such lines are counted"
                        )));
                    }
                    report.add_bad(bad);
                }
            }
        }
        Ok(())
    }
}

/// Look-ups under way.
struct Search<'a> {
    reader: Reader<'a>,
    shown: BufferedLines<'a>,
    json: bool,
    /// Whether all were found so far.
    all: bool,
}

impl Search<'_> {
    /// Looks an address up and says what was found, by the text it was given as.
    fn show(&mut self, text: &str, address: &Record) -> Result<(), Failure> {
        let found = self.reader.find_address(address).map_err(failed)?;
        self.all &= !found.is_empty();
        let amount = |record: &Record| record.amount.map(|amount| amount.to_string());
        if !self.json {
            return self.shown.add(format!("{text}  {}\n", in_words(address, &found)).as_bytes());
        }
        self.shown.add_json(&LookupLine {
            event: "lookup",
            address: text,
            found: !found.is_empty(),
            amount: found.iter().find_map(amount),
            records: found
                .iter()
                .map(|record| RecordLine { kind: record.kind.name(), amount: amount(record) })
                .collect(),
        })
    }
}

/// What was found of an address. A kind other than its own is said: the source knew no more, or less was asked for.
fn in_words(address: &Record, found: &[Record]) -> String {
    if found.is_empty() {
        return "not there".to_owned();
    }
    let each = found.iter().map(|record| {
        let kind = (record.kind != address.kind).then(|| format!("as {}", record.kind.name()));
        let amount = record.amount.map(|amount| amount.to_string());
        let words: Vec<String> = kind.into_iter().chain(amount).collect();
        words.join(", ")
    });
    let each: Vec<String> = each.filter(|words| !words.is_empty()).collect();
    match each.is_empty() {
        true => "found".to_owned(),
        false => format!("found, {}", each.join("; ")),
    }
}
