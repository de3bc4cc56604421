//! `warpsmith-pir info`: what a database or a client's state is, and every figure that follows from its shape.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_eth_state::{ADDRESS, SCRIPT, newest, open_database};
use warpsmith_rms24::database::{Database, Description, HEAD_BYTES};
use warpsmith_rms24::keyword::{Layout, TAG_BYTES, TableShape};
use warpsmith_rms24::{Choice, Client, Params};

use super::{bytes, lanes};
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir info data.pir
  warpsmith-pir info data.pir --lambda 128 --queries 100000
  warpsmith-pir info data.pir --verify           read everything and compare it with the checksums
  warpsmith-pir info my.state --json";

/// Print what a database or a client's state is, and what it costs to use
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Info {
    /// A database, or the state of a client
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    shape: ShapeFlags,

    /// A database: read all entries and compare them with the checksums
    #[arg(long)]
    verify: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// What a client chooses.
#[derive(Args)]
pub(crate) struct ShapeFlags {
    /// Hints for each offset of a block: the chance that a query finds none is below e^(-N/2) [default: 80]
    #[arg(long, value_name = "N", value_parser = human::whole::<u32>(..))]
    pub lambda: Option<u32>,

    /// Queries until the next offline phase [default: half as many as there are hints]
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(1..))]
    pub queries: Option<u64>,
}

impl ShapeFlags {
    /// The parameters of a client of a database.
    pub fn params(&self, database: &Params) -> Result<Params, Failure> {
        let choice = database.choice();
        Params::new(Choice { lambda: self.lambda.unwrap_or(80), backups: self.queries, ..choice }).or_fail()
    }
}

/// What a client of such parameters needs.
#[derive(Serialize)]
pub(super) struct Figures {
    lambda: u32,
    hints: u64,
    backup_pairs: u64,
    /// Queries of one offline phase.
    queries: u64,
    storage_bytes: u64,
    query_bytes: u64,
    answer_bytes: u64,
    /// Binary logarithm of the chance that a query finds no hint, and that any of all queries does.
    log2_failure: f64,
    log2_failure_of_all: f64,
    download_bytes: u64,
    pairs: u64,
    gathers: u64,
}

impl Figures {
    pub fn new(params: &Params) -> Figures {
        Figures {
            lambda: params.lambda(),
            hints: params.regular(),
            backup_pairs: params.backups(),
            queries: params.backups(),
            storage_bytes: params.storage_bytes(),
            query_bytes: params.query_bytes() as u64,
            answer_bytes: params.answer_bytes() as u64,
            log2_failure: params.log2_miss(),
            log2_failure_of_all: (params.log2_miss() + (params.backups() as f64).log2()).min(0.0),
            download_bytes: params.entries() * params.entry_size() as u64,
            pairs: params.pairs(),
            gathers: params.gathers(),
        }
    }

    fn text(&self, each: Option<usize>) -> String {
        let count = |number: u64| human::count(number as f64);
        let lookups = match each {
            Some(each) => {
                let lookups = count(self.queries / each as u64);
                format!("; a lookup by key takes {each}, so {lookups} lookups")
            }
            None => String::new(),
        };
        format!(
            "client     lambda {}: {} hints and {} backup pairs, {} of state\n\
             queries    {} until the next offline phase{lookups}\n\
             a query    {} bytes up, {} bytes down\n\
             failure    2^{:.1} a query, 2^{:.1} in all of them\n\
             offline    reads {} once; {} (hint, block) pairs, {} entries added up\n",
            self.lambda,
            count(self.hints),
            count(self.backup_pairs),
            bytes(self.storage_bytes),
            count(self.queries),
            count(self.query_bytes),
            count(self.answer_bytes),
            self.log2_failure,
            self.log2_failure_of_all,
            bytes(self.download_bytes),
            count(self.pairs),
            count(self.gathers),
        )
    }
}

#[derive(Serialize)]
struct KeywordFields {
    layout: &'static str,
    keys: u64,
    places: u8,
    partitions: u32,
    /// Where values stand in chunks: those that a look-up asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<u16>,
}

/// What a database is.
#[derive(Serialize)]
pub(super) struct DatabaseLine {
    event: &'static str,
    database: String,
    identity: String,
    entries: u64,
    entry_size: usize,
    block_size: u32,
    blocks: u32,
    bytes: u64,
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_epoch: Option<u64>,
    /// The oldest epoch that clients can come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_epoch: Option<u64>,
    /// The identity of the file that was built, which states know it by, where this one was folded from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword: Option<KeywordFields>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "warpsmith_console::json::text_if_any"
    )]
    chain_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<String>>,
}

fn layout_name(shape: &TableShape) -> &'static str {
    match shape.layout {
        Layout::Tagged => "pairs",
        Layout::Records => "state",
        ADDRESS => "addresses",
        Layout::Chunked(_) => "chunks",
        Layout::Text(_) => "text",
        SCRIPT => "scripts",
        Layout::Defined(_) => "unknown",
    }
}

impl DatabaseLine {
    pub fn new(event: &'static str, path: &Path, description: &Description) -> DatabaseLine {
        let params = &description.params;
        DatabaseLine {
            event,
            database: path.display().to_string(),
            identity: const_hex::encode(description.identity),
            entries: params.entries(),
            entry_size: params.entry_size(),
            block_size: params.block_size(),
            blocks: params.blocks(),
            bytes: HEAD_BYTES as u64 + description.data_bytes() + 32 * description.segments(),
            epoch: description.epoch,
            newest_epoch: None,
            oldest_epoch: None,
            origin: description.origin.map(const_hex::encode),
            keyword: description.keyword.as_ref().map(|shape| KeywordFields {
                layout: layout_name(shape),
                keys: shape.keys,
                places: shape.places,
                partitions: shape.partitions,
                chunks: shape.layout.chunks(),
            }),
            chain_id: None,
            block_number: None,
            block_hash: None,
            verified: None,
            client: None,
            seconds: None,
            examples: None,
        }
    }
}

/// The same for people.
pub(super) fn database_text(path: &Path, description: &Description) -> String {
    let params = &description.params;
    let count = |number: u64| human::count(number as f64);
    let mut text = format!(
        "database   {}\nidentity   {}\nentries    {} of {} bytes, in {} blocks of {}\nsize       {}\nepoch      {}\n",
        path.display(),
        const_hex::encode(description.identity),
        count(params.entries()),
        params.entry_size(),
        count(params.blocks().into()),
        count(params.block_size().into()),
        bytes(description.data_bytes()),
        description.epoch,
    );
    if let Some(origin) = &description.origin {
        let _ = writeln!(text, "origin     {}, as states know it", const_hex::encode(origin));
    }
    if let Some(shape) = &description.keyword {
        let what = match shape.layout {
            Layout::Tagged => "keys with values",
            Layout::Records => "keys of a state",
            ADDRESS => "addresses",
            Layout::Chunked(_) | Layout::Text(_) => "chunks of values",
            SCRIPT => "output scripts",
            Layout::Defined(_) => "keys",
        };
        let load = human::percent(shape.keys as f64 / shape.entries as f64);
        let _ = writeln!(
            text,
            "by key     {} {what}, {} places each, {load} of the entries in use",
            count(shape.keys),
            shape.places
        );
        if let Some(chunks) = shape.layout.chunks() {
            let longest = usize::from(chunks) * (params.entry_size() - TAG_BYTES) - 1;
            let longest = count(longest as u64);
            let _ = writeln!(
                text,
                "values     up to {longest} bytes; a look-up asks for {chunks} chunks, always"
            );
        }
    }
    text
}

#[derive(Serialize)]
struct StateLine {
    event: &'static str,
    state: String,
    database_identity: String,
    entries: u64,
    entry_size: usize,
    block_size: u32,
    blocks: u32,
    epoch: u64,
    made: u64,
    waiting: usize,
    remaining: u64,
    journal_bytes: u64,
    client: Figures,
}

impl Info {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let failed = |error: std::io::Error| Failure::of_file(&self.file.display(), &error);
        let mut magic = [0; 8];
        let read = File::open(&self.file).and_then(|mut file| file.read_exact(&mut magic));
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
            other => other.map_err(failed)?,
        }
        match &magic {
            b"WPIRDATA" => self.database(stdout)?,
            b"WPIRSTAT" => self.state(stdout)?,
            _ => {
                return Err(Failure::Other(format!(
                    "{} is neither a database of `warpsmith-pir build` nor a state of `warpsmith-pir hint`",
                    self.file.display()
                )));
            }
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    fn database(&self, stdout: &mut Stdout) -> Result<(), Failure> {
        let mut screen = Screen::new(false);
        if self.verify {
            screen.bar("reading all entries", None, "");
            Database::open(&self.file).or_fail()?.verify().or_fail()?;
            screen.clear();
        }
        let live = open_database(&self.file, lanes(), 0).or_fail()?;
        let base = live.base();
        let description = base.description();
        let figures = Figures::new(&self.shape.params(&description.params)?);
        let (epoch, head) = newest(&live);
        if self.json {
            let line = DatabaseLine {
                newest_epoch: Some(epoch),
                oldest_epoch: Some(live.oldest()),
                chain_id: head.map(|head| head.chain_id),
                block_number: head.map(|head| head.number),
                block_hash: head.map(|head| format!("0x{}", const_hex::encode(head.hash))),
                verified: self.verify.then_some(true),
                client: Some(figures),
                ..DatabaseLine::new("database", &self.file, description)
            };
            return stdout.show_json(&line);
        }
        let mut text = database_text(&self.file, description);
        if epoch > description.epoch {
            let changes = human::count(live.changes() as f64);
            let _ = writeln!(text, "updates    to epoch {epoch}: {changes} changes");
        }
        if description.origin.is_some() {
            let _ = writeln!(text, "folded     clients can come from epoch {} on", live.oldest());
        }
        if let Some(head) = head {
            let hash = const_hex::encode(head.hash);
            let _ = writeln!(text, "block      {} of chain {}, 0x{hash}", head.number, head.chain_id);
        }
        if self.verify {
            text += "verified   every entry is as it was built\n";
        }
        text += &figures.text(description.keyword.as_ref().map(TableShape::queries));
        stdout.show_text(&text)
    }

    fn state(&self, stdout: &mut Stdout) -> Result<(), Failure> {
        if self.verify || self.shape.lambda.is_some() || self.shape.queries.is_some() {
            let text = "--verify, --lambda and --queries are for databases; a state has its figures already";
            return Err(Failure::Usage(text.to_owned()));
        }
        let client = Client::open(&self.file, lanes()).or_fail()?;
        let (params, version) = (client.params(), client.version());
        let figures = Figures::new(params);
        if self.json {
            let line = StateLine {
                event: "state",
                state: self.file.display().to_string(),
                database_identity: const_hex::encode(version.database),
                entries: params.entries(),
                entry_size: params.entry_size(),
                block_size: params.block_size(),
                blocks: params.blocks(),
                epoch: version.epoch,
                made: client.made(),
                waiting: client.waiting(),
                remaining: client.remaining(),
                journal_bytes: client.journal_bytes(),
                client: figures,
            };
            return stdout.show_json(&line);
        }
        let count = |number: u64| human::count(number as f64);
        let waiting = match client.waiting() {
            0 => String::new(),
            n => format!(", {n} of them without an answer yet"),
        };
        let text = format!(
            "state      {}\nof         the database {}\nentries    {} of {} bytes, in {} blocks of {}\nepoch      {}\n\
             made       {} queries{waiting}\nremaining  {} queries\njournal    {}\n",
            self.file.display(),
            const_hex::encode(version.database),
            count(params.entries()),
            params.entry_size(),
            count(params.blocks().into()),
            count(params.block_size().into()),
            version.epoch,
            count(client.made()),
            count(client.remaining()),
            bytes(client.journal_bytes()),
        );
        stdout.show_text(&(text + &figures.text(None)))
    }
}
