//! `warpsmith scan`: every key of a range against addresses, with a map of what was covered.

mod estimate;
mod fleet;
mod given;
mod masks;
mod public_keys;

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, ValueHint};
use serde::Serialize;
use warpsmith::Devices;
use warpsmith::chain::{Birthday, KeyType, TYPES};
use warpsmith::scan::{
    Ended, Event, FilterNews, FilterWish, Ledger, Outcome, Progress, ScanJob, ScanTargets, ledger,
    mask_ledger, run, with_filter,
};
use warpsmith::store::{Database, Interval, Map, RangeError, TargetList, Width, parse_range};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::signals::{StartupGuard, interrupt};
use warpsmith_console::stdout::Stdout;
use warpsmith_console::{human, input, json};

use super::db::remarks;
use crate::advice;
use crate::encryption::RecipientFlags;
use crate::failures::{IntoFailure as _, OrFail as _, failure_of};
use crate::keys;
use crate::metrics::JobNumbers;
use crate::mining::NOT_BEGUN;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::OpenDevices as _;
use crate::running::{DeviceRate, ProgressFormat, RESULTS, RunFlags, WHEN, device_rates, ended_by};
use crate::screen::{LiveScreen, Model, Reins, note_saved, scan_model};
use crate::values::parse_birthday;
use masks::Scanned;

const EXAMPLES: &str = "\
Bounds are private keys, both included: hexadecimal digits, or powers of two.

Examples:
  warpsmith scan --range 2^65:2^66-1 --targets puzzle.txt --map puzzle.map
  warpsmith scan --range 8000:ffff --targets 1BDyrQ6WoF8VN3g9SAS1iKZcPzFfnDVieY --output keys.txt
  warpsmith scan --range-file lost.range --targets mine.txt --output keys.txt     bounds of a key of yours
  warpsmith scan --mask-file half.txt --targets mine.txt --output keys.txt        what is left of a key of yours
  warpsmith scan --mask-file wif.txt --output key.txt                             its checksum tells the key
  warpsmith scan --keys wallet-keys.txt --database addresses.db --output used.txt keys of a list
  warpsmith map show puzzle.map

The same command with the same --map goes on where it ended. Scan only for keys that are yours,
or that their owner has published as a puzzle.";

/// Test every key of a range against addresses
///
/// Tests each key once, in every form an address of the targets can have, and goes on after each match until every address of a list
/// is found or the range is done. With --map what was covered survives a crash, and the same command goes on from there.
#[derive(Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("scanned").required(true),
    group = ArgGroup::new("sought")
)]
pub(crate) struct Scan {
    /// The first and the last key, both included: 8000:ffff, or 2^65:2^66-1; or the first and how many: 8000:+2^20
    #[arg(long, value_name = "A:B", group = "scanned", help_heading = SCANNED)]
    range: Option<String>,

    /// The file with the range, mode 0600 (- for standard input): bounds that come from a key of yours are as secret as it is,
    /// and are not shown
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "scanned", help_heading = SCANNED)]
    range_file: Option<String>,

    /// A key of which some characters are unknown: hexadecimal, WIF or nsec, with ? for each, or what it may be in brackets, as in
    /// `[8b]` or `[0-9]`
    #[arg(long, value_name = "KEY", group = "scanned", help_heading = SCANNED)]
    mask: Option<String>,

    /// The file with the mask, mode 0600 (- for standard input): what is known of a key of yours is nearly as secret as it is
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "scanned", help_heading = SCANNED)]
    mask_file: Option<String>,

    /// With a mask: so many characters are missing at places that are not known
    #[arg(long, value_name = "N", value_parser = human::whole::<u8>(1..=4), help_heading = SCANNED)]
    missing: Option<u8>,

    /// Test the keys in this file instead of a range, one per line: hex, WIF or nsec, plain or .gz or .zst (- for standard input)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "scanned", help_heading = SCANNED)]
    keys: Option<String>,

    /// Addresses to look for, or files with one address per line, plain or .gz or .zst (- for standard input); repeatable. A mask of a
    /// WIF key or an nsec with few unknown characters needs none
    #[arg(long, value_name = "ADDRESS|FILE", value_hint = ValueHint::FilePath, group = "sought", num_args = 1..,
        help_heading = SCANNED)]
    targets: Vec<PathBuf>,

    /// A public key to look for instead, where it is known: hex, compressed, uncompressed or x-only, or npub; repeatable
    #[arg(long, value_name = "HEX", group = "sought", conflicts_with_all = ["types", "birthday"],
        help_heading = SCANNED)]
    public_key: Vec<String>,

    /// The database to look in instead, made by `warpsmith db build`; repeatable
    #[arg(long, value_name = "DB", value_hint = ValueHint::FilePath, group = "sought", help_heading = SCANNED)]
    database: Vec<PathBuf>,

    /// With --database: the filter that devices test first, fuse8 or fuse16; or none: the CPU looks every key up, slowly and in
    /// little memory [default: the finer that fits]
    #[arg(long, value_name = "NAME", conflicts_with = "targets", value_parser = filter_names(), hide_possible_values = true,
        help_heading = SCANNED)]
    filter: Option<FilterWish>,

    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = scanned_types(), help = type_help(),
        hide_possible_values = true, help_heading = SCANNED)]
    types: Vec<&'static KeyType>,

    /// The record of what was covered; made if there is none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = SCANNED)]
    map: Option<PathBuf>,

    /// Take the range in pieces in a random order, each once; a map keeps the order it was begun in
    #[arg(long, help_heading = SCANNED)]
    random: bool,

    /// Stop once N are found, and deliver what was found with them [default: when every address is found, or the range is done]
    #[arg(short = 'n', long, value_name = "N", value_parser = human::whole::<u64>(1..), help_heading = WHEN)]
    count: Option<u64>,

    /// Print how many keys are left to test, the speed and the time it takes on these devices, and stop
    #[arg(long, help_heading = WHEN)]
    estimate: bool,

    /// Stop at the first line of a targets file that is no address, instead of counting such lines
    #[arg(long, help_heading = SCANNED)]
    strict: bool,

    #[command(flatten)]
    run: RunFlags,

    /// Day from which on the addresses can have been paid, e.g. 2013-04-01: wallets that import a key look for payments from there
    /// [default: the whole chain]
    #[arg(long, value_name = "DATE", value_parser = parse_birthday, help_heading = RESULTS)]
    birthday: Option<Birthday>,

    #[command(flatten)]
    recipient: RecipientFlags,
}

/// The types a scan can look for.
fn type_names() -> String {
    let kept = TYPES.iter().filter(|known| !known.kinds.is_empty());
    kept.map(|known| known.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn type_help() -> String {
    format!("Only these types of addresses: {} [default: all that the targets can be]", type_names())
}

/// The types by their names, for the command line and its completions.
pub(crate) fn scanned_types() -> impl TypedValueParser<Value = &'static KeyType> {
    let kept = TYPES.iter().filter(|known| !known.kinds.is_empty());
    PossibleValuesParser::new(kept.map(|known| known.name.as_str()))
        .map(|name| KeyType::find(&name).expect("one of the names"))
}

/// The filters of a database by their names.
pub(crate) fn filter_names() -> impl TypedValueParser<Value = FilterWish> {
    PossibleValuesParser::new(["fuse8", "fuse16", "none"])
        .map(|name| Width::find(&name).map_or(FilterWish::Nothing, FilterWish::Of))
}

/// The heading of what is scanned, and for what.
const SCANNED: &str = "Keys and addresses";

/// How a scan went.
#[derive(Serialize)]
struct Covered {
    /// Keys of the range that are covered, earlier runs included.
    covered: String,
    matches: u64,
    #[serde(serialize_with = "json::text")]
    tried: u64,
    elapsed_s: f64,
    ended: &'static str,
}

/// Progress of a scan for programs.
#[derive(Serialize)]
struct ProgressLine<'a> {
    event: &'static str,
    #[serde(serialize_with = "json::text")]
    tried: u64,
    rate: f64,
    elapsed_s: f64,
    share: f64,
    #[serde(serialize_with = "json::seconds_if_any")]
    left_s: Option<f64>,
    matches: u64,
    devices: Vec<DeviceRate<'a>>,
}

impl Scan {
    pub fn run(&self, stdout: Stdout) -> Result<ExitStatus, Failure> {
        self.check_missing()?;
        if let Some(file) = &self.keys {
            return self.test_keys(file, stdout);
        }
        let keys = self.read_scanned()?;
        let mut screen = self.run.screen();
        let listed = match keys.mask() {
            _ if !self.database.is_empty() => None,
            Some(mask) if self.names_no_target() => {
                let every = ScanTargets::every_key(mask);
                Some((
                    every.map_err(|error| {
                        Failure::Usage(format!("--mask: {error} (--targets, --public-key, --database)"))
                    })?,
                    Vec::new(),
                ))
            }
            _ => Some(self.read_targets().map(|(targets, list)| (targets, remarks(&list.report)))?),
        };
        let reins = Reins { interrupt: interrupt()?, pause: Arc::default() };
        // Up to the first key there is nothing to be ended in order.
        let starting = StartupGuard::new(self.run.quiet, NOT_BEGUN);
        if self.run.progress.is_none() {
            screen.begin(|| scan_model(&self.name_of(&keys)), &reins);
        }
        // For what has to be known of all devices before the scan begins.
        let all_devices = || match &keys {
            // A card cannot tell a checksum.
            Scanned::Mask(mask) if mask.texts().is_some() => self.run.devices.open_processor(),
            _ => self.run.devices.open(),
        };
        let (targets, remarks) = match listed {
            None => (self.open_databases(&all_devices()?, &mut screen)?, Vec::new()),
            Some(listed) => listed,
        };
        if self.estimate {
            return self.tell_estimate(&keys, &targets, &all_devices()?, stdout);
        }
        let random = self.random.then(|| Ok::<_, Failure>(targets.pace(&all_devices()?)));
        let (map, random) = (self.map.as_deref(), random.transpose()?);
        let ledger = match &keys {
            Scanned::Range(range) => ledger(*range, &targets, map, random),
            Scanned::Mask(mask) => mask_ledger(mask, &targets, map, random),
        };
        let mut ledger = ledger.map_err(|error| match failure_of("--map", &error) {
            Failure::Other(text) => {
                let text = text + advice::of_map(&error);
                Failure::Other(if self.range_file.is_some() { without_bounds(&text) } else { text })
            }
            failure => failure,
        })?;
        let encryption = self.recipient.open()?;
        let mut results = Results::open(stdout, self.run.output.as_deref(), self.run.json, encryption)?;
        results.notify(self.run.notify.as_deref());
        results.answer_with(self.asked()?);
        results.born(self.birthday.unwrap_or_default());
        for line in &remarks {
            screen.warn(line);
        }
        let devices = match &keys {
            Scanned::Mask(mask) if mask.texts().is_some() => all_devices()?,
            _ => self.run.devices.open_at_once()?,
        };
        self.introduce(&mut screen, &keys, &targets, ledger.map(), &devices.describe());
        if !targets.has_all(ledger.map()) {
            self.warn_of_length(&keys, ledger.map(), &targets, &all_devices, &mut screen)?;
        }
        let job = ScanJob {
            mask: keys.mask(),
            time_limit: self.run.time_limit,
            count: self.count,
            until_found: true,
            interval: self.run.interval(&screen),
            pause: Some(&reins.pause),
            ..ScanJob::new(&targets)
        };
        let outcome =
            self.scan(&job, ledger.as_mut(), &devices, (&reins, starting), &mut results, &mut screen);
        screen.clear();
        let delivered = results.finish();
        let outcome = outcome?;
        delivered?;
        self.conclude(&mut screen, &mut results, &outcome, ledger.map())?;
        Ok(match (outcome.ended, outcome.matches) {
            (Ended::Interrupted, _) => ExitStatus::Interrupted,
            (_, 0) if !outcome.all_found => ExitStatus::NoMatch,
            _ => ExitStatus::Done,
        })
    }

    /// Whether characters are only said to be missing where there is a mask.
    fn check_missing(&self) -> Result<(), Failure> {
        match self.missing.is_some() && self.mask.is_none() && self.mask_file.is_none() {
            true => Err(Failure::Usage(
                "--missing says how many characters of a mask are missing: give that with --mask or --mask-file"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// What is scanned, as it was given.
    fn read_scanned(&self) -> Result<Scanned, Failure> {
        if self.mask.is_some() || self.mask_file.is_some() {
            return self.read_mask().map(|mask| Scanned::Mask(Arc::new(mask)));
        }
        self.read_range().map(Scanned::Range)
    }

    /// The range as it was given. SEC: of one from a file no message repeats anything.
    fn read_range(&self) -> Result<Interval, Failure> {
        if let Some(range) = &self.range {
            return parse_range(range).map_err(|error| Failure::Usage(format!("--range: {error}")));
        }
        let file = self.range_file.as_deref().unwrap_or("-");
        let bad = |why: String| {
            Failure::Usage(format!(
                "--range-file {}: {why}. It must hold a range and nothing else: 8000:ffff, or 2^65:2^66-1",
                input::name(file)
            ))
        };
        let content = keys::content("--range-file", file, &bad)?;
        let text = std::str::from_utf8(&content).map_err(|_| bad("it is not text".to_owned()))?;
        parse_range(text.trim()).map_err(|error| {
            bad(match error {
                RangeError::Shape(_) => "it has no two bounds with a colon between",
                RangeError::Bound(_) => "a bound is neither of hexadecimal digits nor a power of two",
                RangeError::Large(_) | RangeError::NoKey(_) => "a bound is 0, or beyond the last key",
                RangeError::Reversed(_) => "it ends before it begins: exchange the bounds",
                _ => "it cannot be read",
            }
            .to_owned())
        })
    }

    /// Whether nothing says which keys are looked for.
    fn names_no_target(&self) -> bool {
        self.targets.is_empty() && self.public_key.is_empty() && self.database.is_empty()
    }

    /// The addresses that are given, or lie in the files given.
    fn read_targets(&self) -> Result<(ScanTargets, TargetList), Failure> {
        if self.names_no_target() {
            return Err(Failure::Usage(
                "nothing says what to look for: give addresses or files of them (--targets), public keys (--public-key) or a \
                 --database. Only a --mask of a WIF key or an nsec with few unknown characters needs none"
                    .to_owned(),
            ));
        }
        if !self.public_key.is_empty() {
            return self.read_public_keys();
        }
        let from_stdin = self.targets.iter().filter(|path| path.as_os_str() == "-").count();
        let others = [&self.range_file, &self.mask_file, &self.keys];
        let others = others.into_iter().filter(|file| file.as_deref() == Some("-")).count();
        if from_stdin + others > 1 {
            return Err(Failure::Usage(
                "standard input can be read once: give - for one of --targets, --keys, --mask-file and --range-file, and files for \
                 the others"
                    .to_owned(),
            ));
        }
        let list = TargetList::read_given(&self.targets, self.strict);
        let list = list.map_err(|error| Failure::Usage(format!("--targets: {error}")))?;
        let targets = ScanTargets::list(&list, &self.types);
        Ok((targets.map_err(|error| Failure::Usage(error.to_string()))?, list))
    }

    /// The databases, with the filter that goes before them.
    fn open_databases(&self, devices: &Devices, screen: &mut LiveScreen) -> Result<ScanTargets, Failure> {
        let failed = |error: warpsmith::Error| match error {
            warpsmith::Error::Store(error) => failure_of("--database", &error),
            error => error.into_failure(),
        };
        let databases = self.database.iter().map(|path| Database::open(path));
        let databases = databases.collect::<Result<_, _>>().map_err(|error| failed(error.into()))?;
        let mut tell = |news| tell_filter(screen, &news);
        let wish = self.filter.unwrap_or(FilterWish::Finest);
        with_filter(databases, &self.types, wish, devices, &mut tell).map_err(failed)
    }

    fn scan(
        &self,
        job: &ScanJob<'_>,
        ledger: &mut dyn Ledger,
        devices: &Devices,
        (reins, starting): (&Reins, StartupGuard),
        results: &mut Results,
        screen: &mut LiveScreen,
    ) -> Result<Outcome, Failure> {
        let metrics = self.run.metrics()?;
        let starting = Cell::new(Some(starting));
        let shown = screen.model().filter(|_| self.map.is_some());
        let mut watched = Watched { ledger, shown, starting: &starting };
        let outcome = run(job, &mut watched, devices, &reins.interrupt, &mut |event| {
            if let Event::Found(_) | Event::Progress(_) = event {
                starting.set(None);
            }
            match event {
                Event::Found(findings) => {
                    if let Some(last) = findings.last() {
                        screen.found(results.answer(&last.address));
                    }
                    results.publish(findings.into_iter().map(Deliverable::Finding).collect())?;
                    // The map learns of these keys next, so nothing may be under way.
                    results.finish()?;
                    results.keep_ready()?;
                }
                Event::Progress(progress) => {
                    results.keep_ready()?;
                    if let Some(metrics) = &metrics {
                        let numbers = JobNumbers {
                            tried: progress.tried as f64,
                            matches: progress.matches as f64,
                            rate: progress.rate,
                            share: progress.coverage,
                            units: None,
                        };
                        metrics.run("scan", &numbers, &progress.devices, progress.elapsed);
                    }
                    match self.run.progress {
                        Some(ProgressFormat::Json) => {
                            results.stdout().progress_json(&progress_line(progress))?
                        }
                        None => screen.scan_progress(progress),
                    }
                }
                Event::Warning(text) => screen.warn(&text),
                Event::Note(text) => screen.note(&text),
            }
            Ok(())
        });
        outcome.or_fail()
    }

    /// What is scanned, as it may be shown. SEC: not what a file has, and nothing of a mask.
    fn name_of(&self, keys: &Scanned) -> String {
        let count = human::power_of_two(keys.count().as_f64());
        match (keys, &self.range_file) {
            (Scanned::Mask(mask), _) => {
                format!("{} with unknown characters ({count} candidates)", mask.kind())
            }
            (Scanned::Range(range), None) => format!("{range} ({count} keys)"),
            (Scanned::Range(_), Some(file)) => format!("of {} ({count} keys)", input::name(file)),
        }
    }

    fn introduce(
        &self,
        screen: &mut LiveScreen,
        keys: &Scanned,
        targets: &ScanTargets,
        map: &Map,
        devices: &[(String, String)],
    ) {
        let (count, [addresses, long]) = (targets.identity().count, described(targets));
        let covered = self
            .map
            .as_ref()
            .map(|path| format!("{}, {} covered", path.display(), human::percent(map.share())))
            .map(|covered| match map.matches().len() {
                0 => covered,
                found => format!("{covered}, {} found in earlier runs", human::count(found as f64)),
            });
        if let Some(model) = screen.model() {
            let output = self.run.output.as_ref().map(|path| path.display().to_string());
            let remarks =
                covered.into_iter().map(|covered| format!("map: {covered} when it began")).collect();
            let mut model = model.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            model.describe_scan(count, [addresses, long], devices.to_vec(), output, remarks);
            return;
        }
        let label = if keys.mask().is_some() { "mask " } else { "range" };
        screen.say(format_args!("{label}     {}", self.name_of(keys)));
        screen.say(format_args!("targets   {long}"));
        if let Some(covered) = covered {
            screen.say(format_args!("map       {covered}"));
        }
        screen.introduce_devices(devices);
    }

    fn conclude(
        &self,
        screen: &mut LiveScreen,
        results: &mut Results,
        outcome: &Outcome,
        map: &Map,
    ) -> Result<(), Failure> {
        if outcome.all_found && outcome.matches == 0 && outcome.tried == 0 {
            // The last that was found.
            let date = map.matches().map(|(_, found)| found).max().map_or_else(String::new, human::date);
            screen.say(format_args!(
                "every address was found in an earlier run, the last on {date}: nothing was tested"
            ));
            screen.say(format_args!(
                "the keys are where that run delivered them; `warpsmith map show` lists the addresses"
            ));
            return results.stdout().done(self.run.json, &covered(outcome, map));
        }
        let what = match outcome.ended {
            Ended::Count if outcome.all_found => "every address is found",
            Ended::Count => "done",
            Ended::Exhausted => "the whole range is covered",
            Ended::TimeLimit => "time limit reached",
            Ended::Interrupted => "interrupted",
        };
        let matches = match outcome.matches {
            0 => "no match".to_owned(),
            1 => "1 match".to_owned(),
            n => format!("{} matches", human::count(n as f64)),
        };
        let (tried, seconds) = (outcome.tried as f64, outcome.elapsed.as_secs_f64());
        screen.say(format_args!(
            "{what}: {matches}, {} keys tested in {}, {}, {} of the range covered",
            human::count(tried),
            human::seconds(seconds),
            human::rate(tried / seconds.max(1e-9)),
            human::percent(map.share()),
        ));
        match (outcome.ended, &self.map) {
            (Ended::Exhausted, _) => {}
            (Ended::Count, _) if outcome.all_found => {}
            (Ended::Interrupted, Some(_)) => {
                screen.say(format_args!("nothing is lost by stopping: the same command goes on from here"));
            }
            (_, Some(_)) => screen.say(format_args!("the same command goes on from here")),
            (_, None) => screen.say(format_args!(
                "what was found is delivered, but without --map nothing remembers what was covered: the same command begins anew"
            )),
        }
        results.stdout().done(self.run.json, &covered(outcome, map))
    }
}

fn covered(outcome: &Outcome, map: &Map) -> Covered {
    Covered {
        covered: map.covered().to_string(),
        matches: outcome.matches,
        tried: outcome.tried,
        elapsed_s: outcome.elapsed.as_secs_f64(),
        ended: ended_by(outcome.ended),
    }
}

/// Says which filter stands before a database, and how far one is that has to be made.
pub(crate) fn tell_filter(screen: &mut LiveScreen, news: &FilterNews) {
    match news {
        FilterNews::Chosen(reason) => screen.note(&format!("filter    {reason}")),
        FilterNews::Making(width, share) => {
            if *share == 0.0 && screen.model().is_none() {
                screen.note(&format!(
                    "filter    {} is being made; it is kept beside the database",
                    width.name()
                ));
            }
            screen.bar(&format!("making {}", width.name()), Some(*share), "");
        }
    }
}

/// How many addresses are looked for, and as what.
fn described(targets: &ScanTargets) -> [String; 2] {
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    if targets.is_every_key() {
        let every = "every key whose checksum is right".to_owned();
        return [every.clone(), format!("{every}, as {}", names.join(", "))];
    }
    let count = targets.identity().count;
    let noun = if count == 1 { "address" } else { "addresses" };
    let addresses = format!("{} {noun}", human::count(count as f64));
    let long = format!("{addresses}, as {}", names.join(", "));
    [addresses, long]
}

/// A message without the ranges in it.
fn without_bounds(text: &str) -> String {
    let is_bound = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_range = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        bare.split_once(':').is_some_and(|(first, last)| is_bound(first) && is_bound(last))
    };
    text.split(' ').map(|word| if is_range(word) { "[a range]" } else { word }).collect::<Vec<_>>().join(" ")
}

fn progress_line(progress: &Progress) -> ProgressLine<'_> {
    ProgressLine {
        event: "progress",
        tried: progress.tried,
        rate: progress.rate,
        elapsed_s: progress.elapsed.as_secs_f64(),
        share: progress.coverage.unwrap_or_default(),
        left_s: progress.eta.map(|left| left.as_secs_f64()),
        matches: progress.matches,
        devices: device_rates(&progress.devices),
    }
}

/// A ledger that lets the screen know when it was saved, and ends the start before: keys are covered then.
struct Watched<'a> {
    ledger: &'a mut dyn Ledger,
    shown: Option<Arc<Mutex<Model>>>,
    starting: &'a Cell<Option<StartupGuard>>,
}

impl Ledger for Watched<'_> {
    fn map(&self) -> &Map {
        self.ledger.map()
    }
    fn map_mut(&mut self) -> &mut Map {
        self.ledger.map_mut()
    }
    fn save(&mut self) -> warpsmith::search::Result<()> {
        self.starting.set(None);
        self.ledger.save()?;
        if let Some(model) = &self.shown {
            note_saved(model);
        }
        Ok(())
    }
}
