//! Runs a search or a scan on a fleet: submits the job, coordinates until it is over, reports progress and delivers its results.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use warpsmith::fleet::coordinator::Policy;
use warpsmith::fleet::duty::Found;
use warpsmith::fleet::folder::Wishes;
use warpsmith::fleet::id::JobId;
use warpsmith::fleet::job::{Descriptor, Liked};
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::own::OwnJob;
use warpsmith::fleet::net::submit::{Ended, LocalServer, News, submit, wait};
use warpsmith::fleet::{self};
use warpsmith::pattern::Feature;
use warpsmith::search::{self, Outcome, Show, Subject, Wanted};
use zeroize::Zeroizing;

use crate::command::fleet::progress::{JobProgress, View, report_metrics};
use crate::encryption::EncryptFlags;
use crate::failures::OrFail as _;
use crate::patterns::Written;
use crate::progress::{ProgressLine, SearchSummary};
use crate::qr::Qr;
use crate::quest::Quest;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{ProgressFormat, RunFlags};
use crate::scores::Contest;
use crate::screen::{LiveScreen, Model, Reins, search_model};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::Stdout;

/// Flags of every submission.
#[derive(Args, Clone)]
pub(crate) struct SubmitFlags {
    /// Start a nats-server that is on the PATH: for a trial on one machine
    #[arg(long)]
    local: bool,

    /// The job's share of the fleet, relative to other jobs
    #[arg(long, value_name = "N", default_value = "1", value_parser = human::whole::<u32>(1..=1000))]
    priority: u32,

    /// How long a unit shall take a device: 60 s suits any fleet
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = human::parse_duration)]
    unit_time: Duration,
}

/// A fleet that runs a search or a scan.
pub(crate) struct Submission {
    folder: PathBuf,
    flags: SubmitFlags,
}

impl Submission {
    pub fn new(folder: PathBuf, flags: SubmitFlags) -> Submission {
        Submission { folder, flags }
    }

    /// Has the fleet search for these patterns.
    pub fn run(
        &self,
        written: &Written<'_>,
        (quest, wanted): (&Quest<'_>, &Wanted<'_>),
        count: u64,
        (flags, encrypt): (&RunFlags, &EncryptFlags),
        qr: Option<Qr>,
        stdout: Stdout,
    ) -> Result<ExitStatus, Failure> {
        refuse_devices(flags)?;
        let by_score = |contest: &Contest| {
            let feature =
                contest.score.feature().filter(|_| written.is_empty() && contest.show == Show::Better);
            match feature {
                Some(Feature::LeadingZeros) => Ok(Liked::Zeros),
                Some(Feature::Leading(digit)) => Ok(Liked::Digit { digit }),
                _ => Err(Failure::Usage(format!(
                    "what a worker did for the most {} cannot be proved; with a fleet search for --leading-zeros or --leading \
                     HEXDIGIT, without patterns, --ties and --min-score, or search on one machine",
                    contest.score
                ))),
            }
        };
        let liked = match &quest.contest {
            None => Liked::Patterns {
                patterns: written.all().map(str::to_owned).collect(),
                ignore_case: quest.options.ignore_case,
                checksum: quest.options.checksum,
            },
            Some(contest) => by_score(contest)?,
        };
        let split = quest.split.map(|key| const_hex::encode(key.serialize()));
        let descriptor =
            Descriptor { fleet: Descriptor::FORMAT, round: 0, sought: quest.sought.clone(), liked, split };
        let wishes = Wishes {
            count: (count > 0).then_some(count),
            enough: quest.contest.as_ref().and_then(|contest| contest.enough),
            priority: f64::from(self.flags.priority),
        };
        // What workers will make of it is tried here first.
        descriptor.open().or_fail()?;
        let home = Home::open(&self.folder).or_fail()?;
        let mut screen = flags.screen();
        let encryption = encrypt.open()?;
        if let (Subject::Key(target), Some(encryption)) = (quest.subject, &encryption)
            && let Some(caution) = encrypt.caution(target, encryption)
        {
            screen.warn(&caution);
        }
        let mut results =
            Results::open(stdout, flags.output.as_deref(), flags.json, encryption)?.with_codes(qr);
        quest.prepare()?;
        results.notify(flags.notify.as_deref());
        results.name_patterns(quest.contest.is_none() && written.all().nth(1).is_some());
        results.keep_brief(quest.contest.is_some());
        let output = flags.output.as_ref().map(|path| path.display().to_string());
        let view = SearchView { quest, wanted, count, output };
        let led = self.lead(&home, flags, (&mut results, &mut screen), &view, || {
            let id = submit(&home, descriptor, &wishes)?;
            Ok((id, "secrets stay on this machine, workers get public points"))
        });
        let delivered = results.finish();
        let led = led?;
        delivered?;
        screen.conclude(&led.outcome()?, wanted.odds(0));
        self.conclude(&led, &mut screen);
        let (matches, tried, elapsed_s) = (led.matches, Some(led.tried), led.elapsed.as_secs_f64());
        let summary = SearchSummary { matches, tried, elapsed_s, ended: led.ended_by(), missing: None };
        results.stdout().done(flags.json, &summary)?;
        Ok(led.ending())
    }

    /// Says what becomes of a job that was cancelled, or is not over.
    pub fn conclude(&self, led: &Led, screen: &mut LiveScreen) {
        let (job, folder) = (led.job.id().short(), self.folder.display());
        if led.job.is_cancelled() {
            screen.say(format_args!("job {job} was cancelled"));
        } else if led.ended != Ended::Over {
            screen.say(format_args!(
                "job {job} stays open: the same command continues it, `warpsmith fleet cancel {folder} {job}` ends it"
            ));
        }
    }

    /// The job's share of the fleet.
    pub fn priority(&self) -> f64 {
        f64::from(self.flags.priority)
    }

    /// The fleet's folder.
    pub fn home(&self) -> Result<Home, Failure> {
        Home::open(&self.folder).or_fail()
    }

    /// Submits a job and coordinates until it is over.
    pub fn lead(
        &self,
        home: &Home,
        flags: &RunFlags,
        (results, screen): (&mut Results, &mut LiveScreen),
        view: &dyn View,
        submit: impl FnOnce() -> Result<(JobId, &'static str), fleet::Error>,
    ) -> Result<Led, Failure> {
        let stop = interrupt()?;
        let metrics = flags.metrics()?;
        let _server = if self.flags.local { Some(LocalServer::start(home).or_fail()?) } else { None };
        let (id, secrets) = submit().or_fail()?;
        let folder = home.jobs().join(id.to_string());
        let job = OwnJob::open(id, folder.clone()).or_fail()?.skip_told().or_fail()?;
        let before = job.covered().or_fail()?;
        screen.say(format_args!("job {}; {secrets}", id.short()));
        if flags.progress.is_none() {
            let reins = Reins { interrupt: Arc::clone(&stop), pause: Arc::default() };
            screen.begin(|| view.model().without_pause(), &reins);
        }
        view.introduce(screen);
        let policy =
            Policy { unit_time: self.flags.unit_time.max(Duration::from_millis(10)), ..Policy::default() };
        let worker_pages = if metrics.is_some() { usize::MAX } else { 1 };
        let (every, mut printed) = (flags.interval(screen), None::<Instant>);
        let (mut matches, mut tried, mut tried_at_match, started) = (0, 0, 0, Instant::now());
        let (mut has_begun, mut failure) = (false, None);
        let ended = wait(home, job, policy, flags.time_limit, worker_pages, &stop, &mut |news| {
            let done = match news {
                News::Found(mut found) => {
                    found.iter_mut().for_each(|found| view.complete(found));
                    if let Some(last) = found.last() {
                        screen.found(last.address());
                    }
                    (matches, tried_at_match) = (matches + found.len() as u64, tried);
                    // What was told is not told again, so it must have arrived.
                    results.publish(found.into_iter().map(Deliverable::from).collect()).and_then(|()| {
                        results.flush()?;
                        results.keep_ready()
                    })
                }
                News::Note(text) => {
                    screen.warn(&text);
                    Ok(())
                }
                News::Status(status) => {
                    if let Some(metrics) = &metrics {
                        report_metrics(metrics, &status);
                    }
                    let job = status.jobs.iter().find(|job| job.id == id);
                    tried = job.map_or(tried, |job| (job.tried - before as f64).max(0.0) as u64);
                    let elapsed = started.elapsed();
                    let progress =
                        JobProgress { status: &status, job, tried, tried_at_match, matches, elapsed };
                    // Reports come about so often, some a moment early.
                    let is_due = |at: Instant| at.elapsed() + Duration::from_millis(50) >= every;
                    let printed = match flags.progress {
                        Some(ProgressFormat::Json) if printed.is_none_or(is_due) => {
                            printed = Some(Instant::now());
                            view.print(&progress, results.stdout())
                        }
                        Some(ProgressFormat::Json) => Ok(()),
                        None if progress.is_waiting() && !has_begun => {
                            screen.bar("waiting for workers", None, "");
                            Ok(())
                        }
                        None => {
                            has_begun = true;
                            view.show(&progress, screen);
                            Ok(())
                        }
                    };
                    printed.and_then(|()| results.keep_ready())
                }
            };
            done.map_err(|error| {
                let text = error.to_string();
                failure = Some(error);
                fleet::Error::Network(text)
            })
        });
        screen.clear();
        if let Some(failure) = failure {
            return Err(failure);
        }
        let (ended, job) = (ended.or_fail()?, OwnJob::open(id, folder).or_fail()?);
        let tried = job.covered().or_fail()?.saturating_sub(before).min(u128::from(u64::MAX)) as u64;
        Ok(Led { ended, matches, tried, job, elapsed: started.elapsed() })
    }
}

/// Presentation of a search.
struct SearchView<'a> {
    quest: &'a Quest<'a>,
    wanted: &'a Wanted<'a>,
    count: u64,
    output: Option<String>,
}

impl View for SearchView<'_> {
    fn model(&self) -> Model {
        search_model(self.quest, self.wanted, Vec::new(), self.output.clone())
    }

    fn complete(&self, found: &mut Found) {
        if let (Subject::Salt(deployment), Found::Match(found)) = (self.quest.subject, found)
            && let Some(salt) = found.salt()
        {
            let details = deployment.explain(salt).into_iter();
            found.details = details.map(|(name, text)| (name, Zeroizing::new(text))).collect();
            found.public_details = found.details.clone();
        }
    }

    fn introduce(&self, screen: &mut LiveScreen) {
        screen.introduce(self.quest, self.wanted, &[]);
    }

    fn show(&self, progress: &JobProgress<'_>, screen: &mut LiveScreen) {
        let progress = progress.search(self.wanted, self.count);
        screen.progress(&progress, self.wanted.odds(progress.best.unwrap_or(0)));
    }

    fn print(&self, progress: &JobProgress<'_>, stdout: &mut Stdout) -> Result<(), Failure> {
        let search = progress.search(self.wanted, self.count);
        stdout.progress_json(&progress.line(ProgressLine::from(&search)))
    }
}

/// Devices are chosen where the work is done.
pub(crate) fn refuse_devices(flags: &RunFlags) -> Result<(), Failure> {
    if !flags.devices.is_given() {
        return Ok(());
    }
    Err(Failure::Usage(
        "--device and --threads are for the machine that searches: give them to `warpsmith fleet work`"
            .to_owned(),
    ))
}

/// The end of a run of `submit`.
pub(crate) struct Led {
    pub ended: Ended,
    /// Matches of this run.
    pub matches: u64,
    /// Candidates of units that were done in this run.
    pub tried: u64,
    pub job: OwnJob,
    pub elapsed: Duration,
}

impl Led {
    /// The outcome of a search, as one on this machine has it.
    fn outcome(&self) -> Result<Outcome, Failure> {
        let is_exhausted = self.job.status().or_fail()?.share.is_some_and(|share| share >= 1.0);
        let ended = match self.ended {
            Ended::Stopped => search::Ended::Interrupted,
            Ended::TimeLimit => search::Ended::TimeLimit,
            Ended::Over if is_exhausted => search::Ended::Exhausted,
            Ended::Over => search::Ended::Count,
        };
        let (tried, matches, elapsed) = (self.tried, self.matches, self.elapsed);
        let (false_hits, passed_over, all_found) = (0, 0, false);
        let (steady_rate, host_cpu) = (None, None);
        Ok(Outcome {
            ended,
            tried,
            matches,
            false_hits,
            passed_over,
            all_found,
            elapsed,
            steady_rate,
            host_cpu,
        })
    }

    /// What ended it, as the last document says it.
    pub fn ended_by(&self) -> &'static str {
        match self.ended {
            Ended::Stopped => "interrupted",
            Ended::TimeLimit => "time_limit",
            Ended::Over => "over",
        }
    }

    pub fn ending(&self) -> ExitStatus {
        match self.ended {
            Ended::Stopped => ExitStatus::Interrupted,
            Ended::Over | Ended::TimeLimit if self.matches == 0 => ExitStatus::NoMatch,
            Ended::Over | Ended::TimeLimit => ExitStatus::Done,
        }
    }
}

impl From<Found> for Deliverable {
    fn from(found: Found) -> Deliverable {
        match found {
            Found::Match(found) => Deliverable::Match(*found),
            Found::Finding(found) => Deliverable::Finding(*found),
        }
    }
}
