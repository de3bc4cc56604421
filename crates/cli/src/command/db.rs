//! `warpsmith db`: the address database that scans compare keys with.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::chain::{Address, identify};
use warpsmith::store::{About, BuildOptions, Database, Progress, Report, Stage};

use crate::ending::{Ending, Failure};
use crate::human;
use crate::running::interrupt;
use crate::screen::Screen;
use crate::stdout::{AsAsked, Stdout};

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
    /// Print what is in a database
    Info(Info),
    /// Look addresses up
    Lookup(Lookup),
    /// Read every record and check it
    Verify(Verify),
}

#[derive(Args)]
struct Build {
    /// The database to make; nothing may be there yet
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// Text with one address a line, or tab-separated address and amount, plain or .gz or .zst; another database; or an LMDB
    /// folder of BitcoinAddressFinder or of an earlier version
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    sources: Vec<PathBuf>,

    /// Stop at the first line that is no address, instead of counting such lines
    #[arg(long)]
    strict: bool,

    /// Threads that read and sort [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = human::parse_threads)]
    threads: Option<usize>,

    /// Memory for sorting, in mebibytes
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(16..))]
    memory: u32,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
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
struct Lookup {
    /// The database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// Addresses to look up
    #[arg(value_name = "ADDRESS", required = true, num_args = 1..)]
    addresses: Vec<String>,

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
    duplicates: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scripts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct LookupLine<'a> {
    event: &'static str,
    address: &'a str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
}

impl Db {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        match &self.command {
            Command::Build(build) => build.run(stdout),
            Command::Info(info) => info.run(stdout),
            Command::Lookup(lookup) => lookup.run(stdout),
            Command::Verify(verify) => verify.run(stdout),
        }
    }
}

fn failed(error: warpsmith::store::Error) -> Failure {
    Failure::of("", &error)
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

impl Build {
    fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let stop = interrupt()?;
        let started = Instant::now();
        let screen = std::sync::Mutex::new(Screen::new(self.quiet));
        let progress = |progress: Progress| {
            let Ok(mut screen) = screen.try_lock() else { return };
            let (what, rate) = match progress.stage {
                Stage::Reading => ("read", progress.addresses),
                Stage::Writing => ("written", progress.done),
            };
            let rate = human::rate(rate as f64 / started.elapsed().as_secs_f64().max(1e-9));
            let count = human::count(progress.addresses as f64);
            let share = progress.done as f64 / (progress.total as f64).max(1.0);
            screen.bar(what, Some(share), &format!("{count} addresses, {rate}"));
        };
        let options = BuildOptions {
            strict: self.strict,
            threads: self.threads.unwrap_or_else(|| available_parallelism().map_or(1, |n| n.get())),
            memory: self.memory as usize * (1 << 20),
            stop: &stop,
            progress: &progress,
        };
        let built = Database::build(&self.database, &self.sources, &options);
        let mut screen = screen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        screen.clear();
        if stop.load(Ordering::Relaxed) && built.is_err() {
            return Err(Failure::Interrupted);
        }
        let built = built.map_err(failed)?;
        for line in remarks(&built.report) {
            screen.warn(&line);
        }
        let database = Database::open(&self.database).map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        if self.json {
            let mut line = about_line("built", &database);
            line.duplicates = Some(built.report.duplicates);
            line.scripts = Some(built.report.scripts);
            line.bad = Some(built.report.bad);
            line.seconds = Some(seconds);
            stdout.show_json(&line)?;
        } else {
            stdout.show(about_text(&database).as_bytes())?;
        }
        screen.say(format_args!(
            "built in {}, {}, {} duplicates left out",
            human::seconds(seconds),
            human::rate(built.report.addresses as f64 / seconds.max(1e-9)),
            human::count(built.report.duplicates as f64)
        ));
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
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
        duplicates: None,
        scripts: None,
        bad: None,
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
    fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let database = Database::open(&self.database).map_err(failed)?;
        if self.json {
            stdout.show_json(&about_line("database", &database))?;
        } else {
            stdout.show(about_text(&database).as_bytes())?;
        }
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}

impl Lookup {
    fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let wanted = self.addresses.iter().map(|text| {
            let address = identify(text).map_err(|error| Failure::Usage(format!("'{text}': {error}")))?;
            match address {
                Address::Key(kind, digest) => Ok((kind, digest)),
                Address::Script(_) => {
                    Err(Failure::Usage(format!("'{text}' is the address of a script; no single key has it")))
                }
            }
        });
        let wanted: Vec<_> = wanted.collect::<Result<_, Failure>>()?;
        let database = Database::open(&self.database).map_err(failed)?;
        let reader = database.reader();
        let mut all = true;
        for (text, (kind, digest)) in self.addresses.iter().zip(wanted) {
            let record = reader.find(kind, digest.as_bytes()).map_err(failed)?;
            all &= record.is_some();
            let amount = record.and_then(|record| record.amount).map(|amount| amount.to_string());
            if self.json {
                stdout.show_json(&LookupLine {
                    event: "lookup",
                    address: text,
                    found: record.is_some(),
                    amount,
                })?;
            } else {
                let says = match (record, amount) {
                    (Some(_), Some(amount)) => format!("found, {amount}"),
                    (Some(_), None) => "found".to_owned(),
                    (None, _) => "not there".to_owned(),
                };
                stdout.show(format!("{text}  {says}\n").as_bytes())?;
            }
        }
        stdout.done(self.json, &AsAsked {})?;
        Ok(if all { Ending::Done } else { Ending::NoMatch })
    }
}

impl Verify {
    fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let database = Database::open(&self.database).map_err(failed)?;
        let (mut screen, total) = (Screen::new(self.quiet), database.about().records);
        database
            .verify(|done| {
                screen.bar("verified", Some(done as f64 / (total as f64).max(1.0)), "");
            })
            .map_err(failed)?;
        screen.clear();
        let text = format!("every record is as it was built: {} addresses\n", human::count(total as f64));
        stdout.show(text.as_bytes())?;
        Ok(Ending::Done)
    }
}
