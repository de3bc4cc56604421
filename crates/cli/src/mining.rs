//! Mining: the flags every target's command shares, and the plan they make.
//!
//! A command for another target flattens [`Mining`] and calls [`Mining::run`] with what it searches. Flags are read and checked
//! into a [`Plan`], which then runs on this machine (`local`) or on a fleet. Everything is checked before any work begins:
//! patterns, split key, devices, and last the output file, so that a mistake elsewhere leaves none behind.

mod local;

use std::path::Path;

use clap::{Args, ValueHint};
use warpsmith::Devices;
use warpsmith::estimate::{Estimate, Goal, TooLong};
use warpsmith::keys::{PublicKey, PublicKeyError, parse_public_key};
use warpsmith::pattern::{Patterns, Ranking};
use warpsmith::proof::quick_rate;
use warpsmith::search::{Subject, Wanted};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::{NoSummary, Stdout};

use crate::encryption::EncryptFlags;
use crate::estimates::{EstimateLine, Hopeless, estimate_text};
use crate::failures::OrFail as _;
use crate::hooks;
use crate::patterns::Written;
use crate::qr::QrFlags;
use crate::quest::Quest;
use crate::running::{OpenDevices as _, PATTERNS, RESULTS, RunFlags, WHEN};
use crate::submission::Submission;
use crate::values::parse_count;

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
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count,
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
}

/// The machines that run a search.
#[derive(Clone, Copy)]
pub(crate) enum Executor<'a> {
    /// This one.
    Local,
    /// A fleet's workers.
    Fleet(&'a Submission),
}

/// A search as its flags describe it: checked, and nothing of it opened.
pub(crate) struct Plan<'a> {
    pub quest: &'a Quest<'a>,
    /// What matches, where nothing is scored.
    patterns: Option<Patterns>,
    /// What is scored, where the best is searched for.
    ranking: Option<Ranking>,
    /// The number of matches that ends the search; 0: none does.
    pub count: u64,
    /// Whether one result of every pattern is searched for.
    pub each: bool,
    /// Whether results name their pattern.
    pub names_patterns: bool,
}

impl<'a> Plan<'a> {
    fn new(
        flags: &Mining,
        written: &mut Written<'_>,
        quest: &'a Quest<'a>,
        on: Executor<'_>,
    ) -> Result<Plan<'a>, Failure> {
        let contest = quest.contest.as_ref();
        // Beside a score patterns may be left out.
        let is_matched = contest.is_none() || !written.is_empty() || quest.options.low_bits.is_some();
        let target = quest.subject.target();
        let mut patterns = is_matched.then(|| written.compile(target, &quest.options)).transpose()?;
        let names_patterns = patterns.as_ref().is_some_and(|patterns| patterns.distinct_len() > 1);
        if flags.each {
            check_each(patterns.as_ref(), quest, on)?;
        }
        let ranking = contest.map(|contest| {
            let score = contest.score.clone();
            patterns
                .take()
                .map_or_else(|| Ranking::new(score.clone()), |among| Ranking::among(score.clone(), among))
        });
        if let (Some(contest), Some(ranking)) = (contest, &ranking) {
            contest.check(ranking)?;
        }
        let count = flags.count.unwrap_or(if contest.is_some() { 0 } else { 1 });
        Ok(Plan { quest, patterns, ranking, count, each: flags.each, names_patterns })
    }

    /// What is searched for.
    pub fn wanted(&self) -> Wanted<'_> {
        match (&self.ranking, &self.quest.contest, &self.patterns) {
            (Some(ranking), Some(contest), _) => {
                Wanted::Best { ranking, show: contest.show, enough: contest.enough }
            }
            (_, _, Some(patterns)) => Wanted::Patterns(patterns),
            _ => unreachable!("patterns are compiled where nothing is scored"),
        }
    }

    /// The patterns, where one result of each is searched for.
    fn patterns_of_each(&self) -> Option<&Patterns> {
        self.patterns.as_ref().filter(|_| self.each)
    }

    /// The matches that end the search, or the first where none does.
    fn goal(&self) -> Goal {
        match self.patterns_of_each() {
            Some(patterns) => Goal::each(patterns),
            None => Goal::matches(self.wanted(), Some(self.count)),
        }
    }

    /// The feasible alternative at this rate, where the median exceeds a year.
    fn too_long(&self, rate: f64) -> Option<TooLong> {
        let Quest { subject, options, .. } = self.quest;
        TooLong::check(subject.target(), self.wanted(), options, &self.goal(), rate)
    }
}

/// Whether one result of every pattern can be searched for.
fn check_each(patterns: Option<&Patterns>, quest: &Quest<'_>, on: Executor<'_>) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::Usage(format!("--each: {why}")));
    match (patterns, on) {
        _ if quest.contest.is_some() => {
            refuse("a search for the best goes on until it is stopped; leave the flag out")
        }
        (None, _) => refuse("it needs patterns"),
        (Some(_), Executor::Fleet(_)) => refuse(
            "a fleet goes by the number of results; search on one machine, or submit the patterns one by one",
        ),
        (Some(_), Executor::Local) => Ok(()),
    }
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
    pub fn run(&self, quest: &Quest<'_>, on: Executor<'_>, stdout: Stdout) -> Result<ExitStatus, Failure> {
        self.run_for(&mut self.patterns()?, quest, on, stdout)
    }

    /// Searches for these patterns.
    pub fn run_for(
        &self,
        written: &mut Written<'_>,
        quest: &Quest<'_>,
        on: Executor<'_>,
        mut stdout: Stdout,
    ) -> Result<ExitStatus, Failure> {
        if let (Executor::Fleet(_), Some(low)) = (on, &quest.options.low_bits) {
            return Err(Failure::Usage(format!(
                "--hook-flags: a fleet's workers are told patterns alone; give the flags as one: '{}'",
                hooks::pattern(low)
            )));
        }
        let plan = Plan::new(self, written, quest, on)?;
        self.check_encryption(quest)?;
        let qr = self.qr.read(self.run.output.is_some() || self.encrypt.is_given(), no_key(quest))?;
        match on {
            Executor::Fleet(_) if self.estimate => Err(Failure::Usage(
                "--estimate measures the devices of one machine: ask it of the same command without `fleet submit`, where \
                 the devices are; how fast a fleet is `warpsmith fleet status` says"
                    .to_owned(),
            )),
            Executor::Fleet(fleet) => {
                let wanted = plan.wanted();
                fleet.run(written, (quest, &wanted), plan.count, (&self.run, &self.encrypt), qr, stdout)
            }
            Executor::Local if self.estimate => {
                self.estimate(&plan, &self.run.devices.open()?, &mut stdout)
            }
            Executor::Local => self.run_here(&plan, qr, stdout),
        }
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

    /// The warning before a search that takes more than a year on these devices. They are measured only where that may be.
    fn hopeless(&self, plan: &Plan<'_>) -> Result<Option<Hopeless>, Failure> {
        if self.run.quiet || !plan.goal().may_exceed_a_year() {
            return Ok(None);
        }
        let rate = quick_rate(&self.run.devices.open()?, plan.quest.subject, plan.wanted()).or_fail()?;
        Ok(plan.too_long(rate).map(|why| Hopeless::of_search(&why, plan.wanted())))
    }

    fn estimate(
        &self,
        plan: &Plan<'_>,
        devices: &Devices,
        stdout: &mut Stdout,
    ) -> Result<ExitStatus, Failure> {
        let (quest, wanted) = (plan.quest, plan.wanted());
        let rate = quick_rate(devices, quest.subject, wanted).or_fail()?;
        let estimate = Estimate::at_rate(quest.subject.target(), wanted, &quest.options, &plan.goal(), rate);
        if self.run.json {
            stdout.show_json(&EstimateLine::new(&estimate, plan.each))?;
        } else {
            stdout.show(estimate_text(&estimate, plan.each, &devices.describe(), wanted).as_bytes())?;
        }
        stdout.done(self.run.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
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
