//! `warpsmith map`: what a scan's map says, and several of them made one.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::store::{Map, MapFile, MergeError, Order};

use crate::ending::{Ending, Failure};
use crate::human;
use crate::stdout::{AsAsked, Stdout};

/// Explain the map of a scan, or join maps of one job
#[derive(Args)]
pub(crate) struct MapCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print what is covered, what is not, and how fast it went
    Show(Show),
    /// Join maps of one job into a new one: what any of them covers is covered
    Merge(Merge),
}

#[derive(Args)]
struct Show {
    /// The map
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// List at most so many gaps
    #[arg(long, value_name = "N", default_value_t = 20)]
    gaps: usize,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Args)]
struct Merge {
    /// The new map; it must not be there yet
    #[arg(value_name = "NEW")]
    into: PathBuf,

    /// The maps to join
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct MapLine {
    event: &'static str,
    range: [String; 2],
    types: Vec<String>,
    targets: u64,
    targets_digest: String,
    order: &'static str,
    covered: String,
    remaining: String,
    share: f64,
    gaps: Vec<[String; 2]>,
    more_gaps: usize,
    history: Vec<HistoryLine>,
}

#[derive(Serialize)]
struct HistoryLine {
    began: u64,
    seconds: u64,
    keys: String,
    rate: f64,
}

impl MapCommand {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        match &self.command {
            Command::Show(show) => show.run(stdout),
            Command::Merge(merge) => merge.run(stdout),
        }
    }
}

fn failed(error: impl std::error::Error + 'static) -> Failure {
    Failure::of("", &error)
}

impl Show {
    fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let map = MapFile::read(&self.file).map_err(failed)?;
        let all = map.gaps().map_err(failed)?;
        let gaps: Vec<[String; 2]> = all
            .iter()
            .take(self.gaps)
            .map(|gap| [format!("{:x}", gap.first()), format!("{:x}", gap.last())])
            .collect();
        let more = all.len() - gaps.len();
        if self.json {
            stdout.show_json(&line(&map, gaps, more))?;
        } else {
            stdout.show(text(&map, &gaps, more).as_bytes())?;
        }
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}

fn order(map: &Map) -> &'static str {
    match map.order() {
        Order::Sequential => "sequential",
        Order::Random { .. } => "random",
    }
}

fn line(map: &Map, gaps: Vec<[String; 2]>, more_gaps: usize) -> MapLine {
    let job = map.job();
    let history = map.history().iter().map(|stretch| HistoryLine {
        began: stretch.began,
        seconds: stretch.seconds,
        keys: stretch.keys.to_string(),
        rate: stretch.rate(),
    });
    MapLine {
        event: "map",
        range: [format!("{:x}", job.range().first()), format!("{:x}", job.range().last())],
        types: job.types().to_vec(),
        targets: job.targets().count,
        targets_digest: const_hex::encode(job.targets().digest),
        order: order(map),
        covered: map.covered().to_string(),
        remaining: map.remaining().to_string(),
        share: map.share(),
        gaps,
        more_gaps,
        history: history.collect(),
    }
}

fn text(map: &Map, gaps: &[[String; 2]], more: usize) -> String {
    let job = map.job();
    let count = |number: f64| format!("{} ({})", human::count(number), human::power_of_two(number));
    let (label, of) = match job.mask() {
        None => ("range    ", "keys"),
        Some(_) => ("mask     ", "candidates"),
    };
    let mut text = format!(
        "{label}  {} ({} {of})\ntypes      {}\ntargets    {} ({}), digest {}\norder      {}\ncovered    {} of the \
         range, {} keys\nleft       {} keys\n",
        job.range(),
        human::power_of_two(job.range().count().as_f64()),
        job.types().join(", "),
        human::count(job.targets().count as f64),
        job.targets().source.name(),
        const_hex::encode(&job.targets().digest[..8]),
        order(map),
        human::percent(map.share()),
        count(map.covered().as_f64()),
        count(map.remaining().as_f64()),
    );
    for (at, [first, last]) in gaps.iter().enumerate() {
        text += &format!("{:<11}{first}:{last}\n", if at == 0 { "gaps" } else { "" });
    }
    if more > 0 {
        text += &format!("           and {} more\n", human::count(more as f64));
    }
    for (at, stretch) in map.history().iter().enumerate() {
        let label = if at == 0 { "history" } else { "" };
        text += &format!(
            "{label:<11}{}: {} keys in {}, {}\n",
            human::date(stretch.began),
            human::count(stretch.keys.as_f64()),
            human::seconds(stretch.seconds as f64),
            human::rate(stretch.rate())
        );
    }
    text
}

impl Merge {
    fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let maps = self.files.iter().map(|file| MapFile::read(file));
        let maps: Vec<Map> = maps.collect::<Result<_, _>>().map_err(failed)?;
        let merged = Map::merge(&maps).map_err(|error| match &error {
            MergeError::OtherJob { map, .. } => {
                Failure::of(&self.files[map - 1].display().to_string(), &error)
            }
            _ => failed(error),
        })?;
        let Some(merged) = merged else {
            return Err(Failure::Usage("no map to join was given".to_owned()));
        };
        let share = merged.share();
        MapFile::create(&self.into, merged).map_err(failed)?;
        let text = format!("{}: {} covered\n", self.into.display(), human::percent(share));
        stdout.show(text.as_bytes())?;
        Ok(Ending::Done)
    }
}
