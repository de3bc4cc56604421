//! `warpsmith db`: the address database that scans compare keys with.

mod build;
mod diff;
mod list;
mod lookup;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::store::{About, Database, Report};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::{NoSummary, Stdout};

use self::build::{Add, Build};
use self::diff::Diff;
use self::list::List;
use self::lookup::Lookup;
use crate::failures::failure_of;

/// Build and inspect an address database for `scan`
#[derive(Args)]
pub(crate) struct Db {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build a database from lists of addresses
    Build(Build),
    /// Add addresses to a database
    ///
    /// A new database is made beside the old one and takes its place at the end: until then, and whatever happens, the old one is whole.
    Add(Add),
    /// Print what is in a database
    Info(Info),
    /// Look addresses up
    Lookup(Lookup),
    /// Print every address, as `db build` reads them
    List(List),
    /// Compare two databases
    ///
    /// Prints what only the second has (+), what only the first has (-), and what both have with another amount (~). The exit code is 0
    /// when there is no difference, and 1 when there is one.
    Diff(Diff),
    /// Read every record and check it
    Verify(Verify),
}

#[derive(Args)]
struct Info {
    /// The database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Args)]
struct Verify {
    /// The database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct AboutLine {
    event: &'static str,
    identity: String,
    created: u64,
    records: u64,
    kinds: std::collections::BTreeMap<&'static str, u64>,
    addresses_digest: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scripts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    snapshots: Vec<SnapshotLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

/// A UTXO set among the sources.
#[derive(Serialize)]
struct SnapshotLine {
    file: String,
    network: &'static str,
    block: String,
    coins: u64,
    scripts: u64,
}

impl Db {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        match &self.command {
            Command::Build(build) => build.run(stdout),
            Command::Add(add) => add.run(stdout),
            Command::Info(info) => info.run(stdout),
            Command::Lookup(lookup) => lookup.run(stdout),
            Command::List(list) => list.run(stdout),
            Command::Diff(diff) => diff.run(stdout),
            Command::Verify(verify) => verify.run(stdout),
        }
    }
}

fn failed(error: warpsmith::store::Error) -> Failure {
    failure_of("", &error)
}

/// What a person should know of the lines of a list.
pub(crate) fn remarks(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.bad > 0 {
        let shown = report.bad_lines.len() as u64;
        let first = if shown < report.bad { format!("; the first {shown}:") } else { ":".to_owned() };
        lines.push(format!(
            "{} lines are no addresses and were left out{first}",
            human::count(report.bad as f64)
        ));
        lines.extend(report.bad_lines.iter().map(|line| format!("  {line}")));
    }
    if report.scripts > 0 {
        let count = human::count(report.scripts as f64);
        lines.push(format!("{count} addresses are of scripts, which no single key has, and were left out"));
    }
    lines
}

fn about_line(event: &'static str, database: &Database) -> AboutLine {
    let About { created, records, addresses, kinds, .. } = database.about();
    AboutLine {
        event,
        identity: database.about().identity_text(),
        created: *created,
        records: *records,
        kinds: kinds.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        addresses_digest: const_hex::encode(addresses),
        bytes: database.size(),
        added: None,
        duplicates: None,
        scripts: None,
        bad: None,
        snapshots: Vec::new(),
        seconds: None,
    }
}

fn about_text(database: &Database) -> String {
    let about = database.about();
    let mut text = format!(
        "database   {}\nidentity   {}\nbuilt      {}\naddresses  {}\n",
        database.path().display(),
        about.identity_text(),
        human::date(about.created),
        human::count(about.records as f64),
    );
    for (kind, count) in &about.kinds {
        text += &format!("{:<11}{} {}\n", "", human::count(*count as f64), kind.name());
    }
    let bytes = database.size() as f64;
    text += &format!(
        "size       {:.1} MiB, {:.1} bytes an address\n",
        bytes / f64::from(1 << 20),
        bytes / (about.records as f64).max(1.0)
    );
    text
}

impl Info {
    fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let database = Database::open(&self.database).map_err(failed)?;
        if self.json {
            stdout.show_json(&about_line("database", &database))?;
        } else {
            stdout.show_text(&about_text(&database))?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}

impl Verify {
    fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let database = Database::open(&self.database).map_err(failed)?;
        let (mut screen, total) = (Screen::new(self.quiet), database.about().records);
        database
            .verify(|done| {
                screen.bar("verified", Some(done as f64 / (total as f64).max(1.0)), "");
            })
            .map_err(failed)?;
        screen.clear();
        let text = format!("every record is as it was built: {} addresses\n", human::count(total as f64));
        stdout.show_text(&text)?;
        Ok(ExitStatus::Done)
    }
}
