//! Mining: the flags every target's command shares, and the search they describe.
//!
//! A command for another target flattens [`Mining`] and calls [`Mining::run`] with what it searches. Everything
//! is read and checked before any work begins: patterns, split key, devices, and last the output file, so that a
//! mistake elsewhere leaves none behind.

use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueHint};
use serde::Serialize;
use warpsmith::Devices;
use warpsmith::keys::{PublicKey, PublicKeyError, parse_public_key};
use warpsmith::pattern::{Patterns, Ranking};
use warpsmith::proof::quick_rate;
use warpsmith::search::{Ended, Event, Job, Progress, Show, Subject, Wanted, run};

use crate::command::fleet::submit::Submission;
use crate::each::{Each, Running};
use crate::encryption::EncryptFlags;
use crate::ending::{Ending, Failure};
use crate::forecast::{Goal, Hopeless, Scored, Times, hopeless};
use crate::hooks;
use crate::human;
use crate::json;
use crate::metrics::{JobNumbers, Metrics};
use crate::patterns::Written;
use crate::qr::QrFlags;
use crate::quest::Quest;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{DeviceRate, ProgressFormat, RunFlags, device_rates, ended_by, interrupt};
use crate::running::{PATTERNS, RESULTS, WHEN};
use crate::screen::{Reins, search_model};
use crate::signals::Starting;
use crate::stdout::{AsAsked, Stdout};

/// What is told where a search or a scan is ended before its first key.
pub(crate) const NOT_BEGUN: &str =
    "interrupted: no match, the search had not begun; nothing is lost by stopping";

#[derive(Args)]
pub(crate) struct Mining {
    /// What the text shall look like; several patterns: any one of them
    #[arg(value_name = "PATTERN")]
    pattern: Vec<String>,

    /// More patterns from FILE, one per line (- for standard input); blank lines and lines that begin with # are skipped
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = PATTERNS)]
    patterns: Option<String>,

    /// Stop at the first pattern that cannot be searched for, instead of leaving such patterns out
    #[arg(long, help_heading = PATTERNS)]
    strict: bool,

    /// Find one result for every pattern, and stop when each has one
    #[arg(long, conflicts_with = "count", help_heading = WHEN)]
    each: bool,

    /// Stop after N matches (0: never) [default: 1; in a search for the best: never]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = human::parse_count,
        help_heading = WHEN)]
    count: Option<u64>,

    #[command(flatten)]
    run: RunFlags,

    #[command(flatten)]
    encrypt: EncryptFlags,

    #[command(flatten)]
    qr: QrFlags,

    /// Print difficulty, speed and expected times on these devices, and stop
    #[arg(long, help_heading = WHEN)]
    estimate: bool,

    /// The fleet that does it, where `fleet submit` says so.
    #[arg(skip)]
    pub fleet: Option<Submission>,
}

/// Mining for somebody else's key, for every command that mines keys.
#[derive(Args)]
pub(crate) struct SplitFlags {
    /// Mine from this public key (compressed, uncompressed or x-only hex, or npub): no private key is ever here;
    /// the result is an offset for `warpsmith join`
    #[arg(long, value_name = "HEX", help_heading = RESULTS)]
    split_key: Option<String>,
}

impl SplitFlags {
    pub fn read(&self) -> Result<Option<PublicKey>, Failure> {
        let read = |text: &String| {
            parse_public_key(text).map_err(|error| bad_public_key("--split-key", text, &error))
        };
        self.split_key.as_ref().map(read).transpose()
    }
}

#[derive(Serialize)]
pub(crate) struct ProgressLine<'a> {
    event: &'static str,
    #[serde(serialize_with = "json::text")]
    tried: u64,
    rate: f64,
    elapsed_s: f64,
    #[serde(serialize_with = "json::seconds_if_any")]
    eta_50_s: Option<f64>,
    probability: f64,
    matches: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    devices: Vec<DeviceRate<'a>>,
}

impl<'a> From<&'a Progress> for ProgressLine<'a> {
    fn from(progress: &'a Progress) -> ProgressLine<'a> {
        ProgressLine {
            event: "progress",
            tried: progress.tried,
            rate: progress.rate,
            elapsed_s: progress.elapsed.as_secs_f64(),
            eta_50_s: progress.eta.map(|eta| eta.as_secs_f64()),
            probability: progress.probability.unwrap_or_default(),
            matches: progress.matches,
            count: progress.wanted,
            devices: device_rates(&progress.devices),
        }
    }
}

#[derive(Serialize)]
struct Estimate {
    event: &'static str,
    #[serde(serialize_with = "json::text")]
    difficulty: f64,
    rate: f64,
    count: u64,
    /// Whether the times are those of one result for every pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    each: Option<bool>,
    #[serde(flatten)]
    times: Times,
    /// In a search for the best: of each score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scores: Vec<Scored>,
}

/// How a search went.
#[derive(Serialize)]
pub(crate) struct Mined {
    pub matches: u64,
    /// Addresses tested, where they were tested here.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::text_if_any")]
    pub tried: Option<u64>,
    pub elapsed_s: f64,
    pub ended: &'static str,
    /// Of a search for each pattern: those without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

/// Tells how it goes to whoever asks for numbers.
pub(crate) fn tell_metrics(metrics: &Metrics, target: &str, progress: &Progress) {
    let numbers = JobNumbers {
        tried: progress.tried as f64,
        matches: progress.matches as f64,
        rate: progress.rate,
        ..JobNumbers::default()
    };
    metrics.run(target, &numbers, &progress.devices, progress.elapsed);
}

impl Mining {
    /// The patterns as they were written, for a command whose target follows from them. Standard input can be read
    /// once only.
    pub fn patterns(&self) -> Result<Written<'_>, Failure> {
        Written::read(&self.pattern, self.patterns.as_deref(), self.strict)
    }

    /// The file of --output.
    pub fn output(&self) -> Option<&Path> {
        self.run.output.as_deref()
    }

    /// Searches.
    pub fn run(&self, quest: &Quest<'_>, stdout: Stdout) -> Result<Ending, Failure> {
        self.run_for(&mut self.patterns()?, quest, stdout)
    }

    /// Searches for these patterns.
    pub fn run_for(
        &self,
        written: &mut Written<'_>,
        quest: &Quest<'_>,
        mut stdout: Stdout,
    ) -> Result<Ending, Failure> {
        let target = quest.subject.target();
        if let (Some(_), Some(low)) = (&self.fleet, &quest.options.low_bits) {
            return Err(Failure::Usage(format!(
                "--hook-flags: a fleet's workers are told patterns alone; give the flags as one: '{}'",
                hooks::pattern(low)
            )));
        }
        // Beside a score patterns may be left out.
        let is_matched = quest.contest.is_none() || !written.is_empty() || quest.options.low_bits.is_some();
        let mut patterns = is_matched.then(|| written.compile(target, &quest.options)).transpose()?;
        let named = patterns.as_ref().is_some_and(|patterns| patterns.distinct_len() > 1);
        let each = self.each(patterns.as_ref(), quest)?;
        let ranking = quest.contest.as_ref().map(|contest| {
            let score = contest.score.clone();
            patterns
                .take()
                .map_or_else(|| Ranking::new(score.clone()), |among| Ranking::among(score.clone(), among))
        });
        let wanted = match (&ranking, &quest.contest, &patterns) {
            (Some(ranking), Some(contest), _) => {
                contest.check(ranking)?;
                Wanted::Best { ranking, show: contest.show, enough: contest.enough }
            }
            (_, _, Some(patterns)) => Wanted::Patterns(patterns),
            _ => unreachable!("patterns are loaded where nothing is scored"),
        };
        self.check_encryption(quest)?;
        let goal = Goal::new(wanted, self.count, each.as_ref());
        let qr = self.qr.read(self.run.output.is_some() || self.encrypt.is_given(), no_key(quest))?;
        if let Some(fleet) = &self.fleet {
            if self.estimate {
                return Err(Failure::Usage(
                    "--estimate measures the devices of one machine: ask it of the same command without `fleet submit`, where \
                     the devices are; how fast a fleet is `warpsmith fleet status` says"
                        .to_owned(),
                ));
            }
            let count = self.count.unwrap_or(if quest.contest.is_some() { 0 } else { 1 });
            quest.prepare()?;
            return fleet.run(written, (quest, &wanted), count, (&self.run, &self.encrypt), qr, stdout);
        }
        if self.estimate {
            return self.estimate(quest, wanted, &goal, &self.run.devices.open()?, &mut stdout);
        }
        let hopeless = self.hopeless(quest, wanted, &goal)?;
        // Which are set up several times there, so all of them are waited for.
        let devices = match each {
            Some(_) => self.run.devices.open()?,
            None => self.run.devices.open_at_once()?,
        };
        let mut screen = self.run.screen();
        let encryption = self.encrypt.open()?;
        if let (Subject::Key(target), Some(encryption)) = (quest.subject, &encryption)
            && let Some(caution) = self.encrypt.caution(target, encryption)
        {
            screen.warn(&caution);
        }
        let mut results =
            Results::open(stdout, self.run.output.as_deref(), self.run.json, encryption)?.with_codes(qr);
        quest.prepare()?;
        results.notify(self.run.notify.as_deref());
        results.name_patterns(named);
        results.keep_brief(matches!(wanted, Wanted::Best { show: Show::Better | Show::Ties, .. }));
        let interrupt = interrupt()?;
        let metrics = self.run.metrics()?;

        let reins = Reins { interrupt: Arc::clone(&interrupt), pause: Arc::default() };
        if self.run.progress.is_none() {
            let output = self.run.output.as_ref().map(|path| path.display().to_string());
            screen.begin(|| search_model(quest, &wanted, devices.describe(), output), &reins);
        }
        screen.introduce(quest, &wanted, &devices.describe());
        for line in hopeless.iter().flat_map(Hopeless::warning) {
            screen.say(format_args!("{line}"));
        }
        if let Some(each) = each {
            let (run, devices, pause) = (&self.run, &devices, &reins.pause);
            let running = Running { quest, run, devices, interrupt: &interrupt, pause, metrics };
            return each.run(&running, results, screen);
        }
        let count = self.count.unwrap_or(if quest.contest.is_some() { 0 } else { 1 });
        let job = Job {
            split: quest.split,
            count: (count > 0).then_some(count),
            time_limit: self.run.time_limit,
            interval: self.run.interval(&screen),
            pause: Some(&reins.pause),
            ..Job::new(quest.subject, wanted)
        };
        let mut starting = Some(Starting::new(self.run.quiet, NOT_BEGUN));
        let outcome = run(&job, &devices, &interrupt, &mut |event| {
            if let Event::Found(_) | Event::Progress(_) = event {
                starting = None;
            }
            match event {
                Event::Found(found) => {
                    let best = found.last().and_then(|found| found.score());
                    if let Some(last) = found.last() {
                        screen.found(&last.address);
                    }
                    results.publish(found.into_iter().map(Deliverable::Match).collect())?;
                    let is_enough = match wanted {
                        Wanted::Best { enough: Some(enough), .. } if best >= Some(enough) => true,
                        _ => results.taken() == count,
                    };
                    if !is_enough {
                        results.keep_ready()?;
                    }
                }
                Event::Progress(progress) => {
                    results.keep_ready()?;
                    if let Some(metrics) = &metrics {
                        tell_metrics(metrics, target.name(), progress);
                    }
                    match self.run.progress {
                        Some(ProgressFormat::Json) => {
                            results.stdout().progress_json(&ProgressLine::from(progress))?
                        }
                        None => screen.progress(progress, wanted.odds(progress.best.unwrap_or(0))),
                    }
                }
                Event::Warning(text) => screen.warn(&text),
                Event::Note(text) => screen.note(&text),
            }
            Ok(())
        });
        drop(starting);
        screen.clear();
        // However it ended, what was found is delivered.
        let delivered = results.finish();
        let outcome = outcome?;
        delivered?;
        screen.conclude(&outcome, wanted.odds(0));
        let how = Mined {
            matches: outcome.matches,
            tried: Some(outcome.tried),
            elapsed_s: outcome.elapsed.as_secs_f64(),
            ended: ended_by(outcome.ended),
            missing: None,
        };
        results.stdout().done(self.run.json, &how)?;
        Ok(match (outcome.ended, outcome.matches) {
            (Ended::Interrupted, _) => Ending::Interrupted,
            (Ended::TimeLimit | Ended::Exhausted, 0) => Ending::NoMatch,
            (Ended::TimeLimit | Ended::Exhausted | Ended::Count, _) => Ending::Done,
        })
    }

    /// Whether results can be encrypted as asked for, before anything else is done.
    fn check_encryption(&self, quest: &Quest<'_>) -> Result<(), Failure> {
        let refuse = |why: &str| Err(Failure::Usage(format!("--encrypt and --encrypt-to: {why}")));
        match (quest.subject, no_key(quest)) {
            _ if !self.encrypt.is_given() => Ok(()),
            (_, Some(why)) => refuse(why),
            (Subject::Salt(_), None) => Ok(()),
            (Subject::Key(target), None) => self.encrypt.check(target),
        }
    }

    /// What to say before a search that takes beyond a year on these devices. They are measured only where that may be.
    fn hopeless(
        &self,
        quest: &Quest<'_>,
        wanted: Wanted<'_>,
        goal: &Goal<'_>,
    ) -> Result<Option<Hopeless>, Failure> {
        if self.run.quiet || !goal.is_rare() {
            return Ok(None);
        }
        let rate = quick_rate(&self.run.devices.open()?, quest.subject, wanted)?;
        Ok(hopeless(quest, wanted, goal, rate))
    }

    /// The search for a result of every pattern, if that is wanted.
    fn each(&self, patterns: Option<&Patterns>, quest: &Quest<'_>) -> Result<Option<Each>, Failure> {
        let refuse = |why: &str| Err(Failure::Usage(format!("--each: {why}")));
        match patterns {
            _ if !self.each => Ok(None),
            _ if quest.contest.is_some() => {
                refuse("a search for the best goes on until it is stopped; leave the flag out")
            }
            None => refuse("it needs patterns"),
            Some(_) if self.fleet.is_some() => refuse(
                "a fleet goes by the number of results; search on one machine, or submit the patterns one by one",
            ),
            Some(patterns) => Ok(Some(Each::new(patterns))),
        }
    }

    fn estimate(
        &self,
        quest: &Quest<'_>,
        wanted: Wanted<'_>,
        goal: &Goal<'_>,
        devices: &Devices,
        stdout: &mut Stdout,
    ) -> Result<Ending, Failure> {
        let rate = quick_rate(devices, quest.subject, wanted)?;
        let line = Estimate {
            event: "estimate",
            difficulty: 1.0 / goal.odds(),
            rate,
            count: goal.count(),
            each: self.each.then_some(true),
            times: goal.times(rate),
            scores: Scored::table(wanted, rate),
        };
        if self.run.json {
            stdout.show_json(&line)?;
        } else {
            let names: Vec<String> = devices.describe().into_iter().map(|(id, _)| id).collect();
            let all = match (self.each, line.count) {
                (true, count) => format!("patterns    {}, each with a result:\n", human::count(count as f64)),
                (false, 1) => String::new(),
                (false, count) => format!("matches     {}, all of them:\n", human::count(count as f64)),
            };
            let text = format!(
                "difficulty  1 in {} ({})\nrate        {} on {}\n{all}{}{}{}",
                human::count(line.difficulty),
                human::power_of_two(line.difficulty),
                human::rate(rate),
                names.join(", "),
                line.times.text(),
                hopeless(quest, wanted, goal, rate).map_or(String::new(), |why| why.estimate()),
                Scored::text(&line.scores),
            );
            stdout.show(text.as_bytes())?;
        }
        stdout.done(self.run.json, &AsAsked {})?;
        Ok(Ending::Done)
    }
}

/// Why results hold no private key, for flags about one; `None` where they do.
fn no_key(quest: &Quest<'_>) -> Option<&'static str> {
    match quest.subject {
        Subject::Salt(_) => Some("a salt is no secret, and no private key belongs to it; leave the flag out"),
        Subject::Key(_) if quest.split.is_some() => {
            Some("a split result holds no private key; leave the flag out, and give it to `warpsmith join`")
        }
        Subject::Key(_) => None,
    }
}

/// What is wrong with a public key.
pub(crate) fn bad_public_key(flag: &str, text: &str, error: &PublicKeyError) -> Failure {
    let digits = text.trim().trim_start_matches("0x");
    // SEC: 64 digits that are no public key may well be a private one, so they are not repeated.
    if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Failure::Usage(format!(
            "{flag}: the 64 hex digits given are not the x coordinate of any public key. Give your PUBLIC key: \
             66 hex digits starting with 02 or 03, 130 starting with 04, its x coordinate, or an npub. If this was \
             your private key, treat it as exposed: command lines are kept in histories and seen by other users"
        ));
    }
    Failure::Usage(format!("{flag}: {error}"))
}
