//! `warpsmith map`: what a scan's map says, and several of them made one.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::estimate::YEAR;
use warpsmith::store::{Gaps, Interval, Map, MapFile, MergeError};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::{human, json};

use crate::failures::failure_of;

/// Explain the map of a scan, or join maps of one job
#[derive(Args)]
pub(crate) struct MapCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print what is covered, what is not, what was found, how fast it went and when it will end
    Show(Show),
    /// Join maps of one job into a new one: what any of them covers is covered, what any of them found is found
    Merge(Merge),
}

#[derive(Args)]
struct Show {
    /// The map
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// List at most so many gaps
    #[arg(long, value_name = "N", value_parser = human::whole::<usize>(..), default_value_t = 20)]
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
    #[serde(serialize_with = "json::whole")]
    targets: u64,
    targets_digest: String,
    order: &'static str,
    /// Of a random order.
    pieces: Option<PiecesLine>,
    covered: String,
    remaining: String,
    share: f64,
    /// None where gaps are not told as keys: see `pieces`.
    gap_count: Option<usize>,
    largest_gap: Option<[String; 2]>,
    gaps: Vec<[String; 2]>,
    more_gaps: Option<usize>,
    matches: Vec<MatchLine>,
    #[serde(serialize_with = "json::whole")]
    unlisted_matches: u64,
    /// Over all, and lately.
    #[serde(serialize_with = "json::rate_if_any")]
    rate: Option<f64>,
    #[serde(serialize_with = "json::rate_if_any")]
    last_rate: Option<f64>,
    /// At the last rate.
    #[serde(serialize_with = "json::seconds_if_any")]
    left_s: Option<f64>,
    end: Option<u64>,
    history: Vec<HistoryLine>,
}

/// An address, never its key.
#[derive(Serialize)]
struct MatchLine {
    address: String,
    #[serde(serialize_with = "json::whole")]
    found: u64,
}

#[derive(Serialize)]
struct PiecesLine {
    keys: String,
    all: String,
    done: String,
    begun: String,
}

#[derive(Serialize)]
struct HistoryLine {
    #[serde(serialize_with = "json::whole")]
    began: u64,
    #[serde(serialize_with = "json::whole")]
    seconds: u64,
    keys: String,
    /// None where it took less than a second.
    #[serde(serialize_with = "json::rate_if_any")]
    rate: Option<f64>,
}

impl MapCommand {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        match &self.command {
            Command::Show(show) => show.run(stdout),
            Command::Merge(merge) => merge.run(stdout),
        }
    }
}

fn failed(error: impl std::error::Error + 'static) -> Failure {
    failure_of("", &error)
}

impl Show {
    fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let map = MapFile::read(&self.file).map_err(failed)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let told = Told { gaps: map.survey(self.gaps), end: End::of(&map, now), map: &map };
        if self.json {
            stdout.show_json(&told.line())?;
        } else {
            stdout.show_text(&told.text())?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}

/// When the rest is covered at the last rate, if somebody goes on now.
#[derive(Clone, Copy)]
struct End {
    seconds: f64,
    /// Since 1970; none where no calendar is of use.
    date: Option<u64>,
}

impl End {
    /// None where all is covered, or nothing is known of the speed.
    fn of(map: &Map, now: u64) -> Option<End> {
        let rate = map.last_rate().filter(|rate| *rate > 0.0 && !map.is_complete())?;
        let seconds = map.remaining().as_f64() / rate;
        let date = (seconds < 1000.0 * YEAR).then(|| now.saturating_add(seconds.ceil() as u64));
        Some(End { seconds, date })
    }
}

/// What is told of a map.
struct Told<'m> {
    map: &'m Map,
    gaps: Option<Gaps>,
    end: Option<End>,
}

/// Both ends in hexadecimal digits.
fn ends(interval: &Interval) -> [String; 2] {
    [format!("{:x}", interval.first()), format!("{:x}", interval.last())]
}

fn count(number: f64) -> String {
    format!("{} ({})", human::count(number), human::power_of_two(number))
}

impl Told<'_> {
    fn line(&self) -> MapLine {
        let (map, job) = (self.map, self.map.job());
        let history = map.history().iter().map(|stretch| HistoryLine {
            began: stretch.began,
            seconds: stretch.seconds,
            keys: stretch.keys.to_string(),
            rate: stretch.rate(),
        });
        let pieces = map.pieces().map(|pieces| PiecesLine {
            keys: pieces.keys.to_string(),
            all: pieces.all.to_string(),
            done: pieces.done.to_string(),
            begun: pieces.begun.to_string(),
        });
        let matches = map.matches().map(|(address, found)| MatchLine { address: address.to_owned(), found });
        let gaps = self.gaps.as_ref();
        MapLine {
            event: "map",
            range: ends(&job.range()),
            types: job.types().to_vec(),
            targets: job.targets().count,
            targets_digest: const_hex::encode(job.targets().digest),
            order: map.order().name(),
            pieces,
            covered: map.covered().to_string(),
            remaining: map.remaining().to_string(),
            share: map.share(),
            gap_count: gaps.map(|gaps| gaps.count),
            largest_gap: gaps.and_then(|gaps| gaps.largest.as_ref().map(ends)),
            gaps: gaps.map_or_else(Vec::new, |gaps| gaps.first.iter().map(ends).collect()),
            more_gaps: gaps.map(|gaps| gaps.count - gaps.first.len()),
            matches: matches.collect(),
            unlisted_matches: map.unlisted_matches(),
            rate: map.rate(),
            last_rate: map.last_rate(),
            left_s: self.end.map(|end| end.seconds),
            end: self.end.and_then(|end| end.date),
            history: history.collect(),
        }
    }

    fn text(&self) -> String {
        let (map, job) = (self.map, self.map.job());
        let (label, of) = match job.mask() {
            None => ("range", "keys"),
            Some(_) => ("mask ", "candidates"),
        };
        let mut text = format!(
            "{label}      {} ({} {of})\ntypes      {}\ntargets    {} ({}), digest {}\norder      {}\ncovered    {} of the \
             range, {} keys\nleft       {} keys\n",
            job.range(),
            human::power_of_two(job.range().count().as_f64()),
            job.types().join(", "),
            human::count(job.targets().count as f64),
            job.targets().source.name(),
            const_hex::encode(&job.targets().digest[..8]),
            map.order().name(),
            human::percent(map.share()),
            count(map.covered().as_f64()),
            count(map.remaining().as_f64()),
        );
        if let Some(pieces) = map.pieces() {
            text += &format!(
                "pieces     {} of {} done, {} begun; each has {} keys\n",
                human::count(pieces.done.as_f64()),
                human::count(pieces.all.as_f64()),
                human::count(pieces.begun.as_f64()),
                count(pieces.keys.as_f64())
            );
        }
        text += &self.gaps.as_ref().map_or_else(String::new, gaps_text);
        text += &matches_text(map);
        text += &self.speed();
        for (at, stretch) in map.history().iter().enumerate() {
            let label = if at == 0 { "history" } else { "" };
            let pace = match stretch.rate() {
                Some(rate) => format!("{}, {}", human::seconds(stretch.seconds as f64), human::rate(rate)),
                // Seconds are counted whole.
                None => "under 1 s".to_owned(),
            };
            text += &format!(
                "{label:<11}{}: {} keys in {pace}\n",
                human::date(stretch.began),
                human::count(stretch.keys.as_f64()),
            );
        }
        text
    }

    /// How fast it went, and when it will end.
    fn speed(&self) -> String {
        let (Some(last), Some(over_all)) = (self.map.last_rate(), self.map.rate()) else {
            return String::new();
        };
        let mut text = format!("rate       {} last, {} over all\n", human::rate(last), human::rate(over_all));
        if let Some(End { seconds, date }) = self.end {
            let date = date.map_or_else(String::new, |date| format!("{}: ", human::date(date)));
            text += &format!("end        {date}{} from now on at the last rate\n", human::seconds(seconds));
        }
        text
    }
}

/// The most matches that a page shows; JSON has all that the map lists.
const MATCHES: usize = 20;

/// What was found, the newest first.
fn matches_text(map: &Map) -> String {
    let mut listed: Vec<(&str, u64)> = map.matches().collect();
    listed.sort_by_key(|(_, found)| std::cmp::Reverse(*found));
    let all = listed.len() as f64 + map.unlisted_matches() as f64;
    let mut text = if all > 0.0 { format!("matches    {}\n", human::count(all)) } else { String::new() };
    for (address, found) in listed.iter().take(MATCHES) {
        text += &format!("           {}: {address}\n", human::date(*found));
    }
    if all > MATCHES as f64 {
        text += &format!("           and {} more\n", human::count(all - MATCHES as f64));
    }
    text
}

/// How many gaps there are, the largest, and the first.
fn gaps_text(gaps: &Gaps) -> String {
    let Some(largest) = &gaps.largest else { return String::new() };
    let mut text = match gaps.count {
        1 => "gaps       1\n".to_owned(),
        all => format!(
            "gaps       {}, the largest {largest} ({} keys)\n",
            human::count(all as f64),
            human::power_of_two(largest.count().as_f64())
        ),
    };
    for gap in &gaps.first {
        text += &format!("           {gap}\n");
    }
    if gaps.count > gaps.first.len() {
        text += &format!("           and {} more\n", human::count((gaps.count - gaps.first.len()) as f64));
    }
    text
}

impl Merge {
    fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let maps = self.files.iter().map(|file| MapFile::read(file));
        let maps: Vec<Map> = maps.collect::<Result<_, _>>().map_err(failed)?;
        let merged = Map::merge(&maps).map_err(|error| match &error {
            MergeError::OtherJob { map, .. } => {
                failure_of(&self.files[map - 1].display().to_string(), &error)
            }
            _ => failed(error),
        })?;
        let Some(merged) = merged else {
            return Err(Failure::Usage("no map to join was given".to_owned()));
        };
        let share = merged.share();
        MapFile::create(&self.into, merged).map_err(failed)?;
        let text = format!("{}: {} covered\n", self.into.display(), human::percent(share));
        stdout.show_text(&text)?;
        Ok(ExitStatus::Done)
    }
}
