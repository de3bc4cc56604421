//! `fleet submit` and `result`: every command that mines, with its own flags, done by a fleet.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::fleet::coordinator::Policy;
use warpsmith::fleet::duty::Found;
use warpsmith::fleet::folder::Wishes;
use warpsmith::fleet::job::{Descriptor, JobId, Liked};
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::status::Status;
use warpsmith::fleet::net::submit::{Ended, LocalServer, NewMatches, News, OwnJob, find, submit, wait};
use warpsmith::fleet::{self};
use warpsmith::pattern::Feature;
use warpsmith::search::{Show, Subject};

use crate::command::{chain, cosmos, ethereum, scan};
use crate::encryption::EncryptFlags;
use crate::ending::{Ending, Failure};
use crate::human;
use crate::json;
use crate::metrics::{JobNumbers, Metrics, RunnerNumbers};
use crate::mining::Mined;
use crate::patterns::Written;
use crate::qr::Qr;
use crate::quest::Quest;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{ProgressFormat, RunFlags, interrupt};
use crate::scores::Contest;
use crate::screen::Screen;
use crate::stdout::Stdout;
use crate::telling::tell;

/// Have a fleet do a search, with the flags of its own command
///
/// Coordinates the fleet until the job is done, or stands by where another coordinator leads. Stopped, it can be gone on
/// with by the same command line.
#[derive(Args)]
pub(crate) struct Submit {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    #[command(flatten)]
    how: How,

    #[command(subcommand)]
    what: What,
}

#[derive(Args, Clone)]
struct How {
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

#[derive(Subcommand)]
enum What {
    #[command(flatten)]
    Mine(chain::Mine),
    Cosmos(cosmos::Cosmos),
    Eth(ethereum::Eth),
    Create2(ethereum::Create2),
    Create3(ethereum::Create3),
    Scan(OpenScan),
}

/// Test every key of a range against addresses
///
/// With the flags of `warpsmith scan`. A --public-key is looked for without showing it: workers get points and answer with
/// distances. Of an address a worker that finds it learns the private key.
#[derive(Args)]
struct OpenScan {
    #[command(flatten)]
    scan: scan::Scan,

    /// For addresses: whoever works, and whoever runs the server, may learn the private keys that are found
    #[arg(long)]
    workers_may_learn_keys: bool,
}

/// The fleet that does a search.
#[derive(Clone)]
pub(crate) struct Submission {
    folder: PathBuf,
    how: How,
}

impl Submit {
    pub fn run(self, stdout: Stdout) -> Result<Ending, Failure> {
        let submission = Submission { folder: self.folder, how: self.how };
        match self.what {
            What::Mine(mut mine) => {
                mine.mining.fleet = Some(submission);
                mine.run(stdout)
            }
            What::Cosmos(mut cosmos) => {
                cosmos.mining.fleet = Some(submission);
                cosmos.run(stdout)
            }
            What::Eth(mut eth) => {
                eth.mining.fleet = Some(submission);
                eth.run(stdout)
            }
            What::Create2(mut create2) => {
                create2.mining.fleet = Some(submission);
                create2.run(stdout)
            }
            What::Create3(mut create3) => {
                create3.mining.fleet = Some(submission);
                create3.run(stdout)
            }
            What::Scan(OpenScan { mut scan, workers_may_learn_keys }) => {
                scan.fleet = Some((submission, workers_may_learn_keys));
                scan.run(stdout)
            }
        }
    }
}

impl Submission {
    /// Has the fleet search for these patterns.
    pub fn run(
        &self,
        written: &Written<'_>,
        quest: &Quest<'_>,
        count: u64,
        (flags, encrypt): (&RunFlags, &EncryptFlags),
        qr: Option<Qr>,
        stdout: Stdout,
    ) -> Result<Ending, Failure> {
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
            priority: f64::from(self.how.priority),
        };
        // What workers will make of it is tried here first.
        descriptor.open()?;
        let home = Home::open(&self.folder)?;
        let mut screen = Screen::new(flags.quiet);
        let encryption = encrypt.open()?;
        if let (Subject::Key(target), Some(encryption)) = (quest.subject, &encryption)
            && let Some(caution) = encrypt.caution(target, encryption)
        {
            screen.warn(&caution);
        }
        let mut results =
            Results::open(stdout, flags.output.as_deref(), flags.json, encryption)?.with_codes(qr);
        results.notify(flags.notify.as_deref());
        results.name_patterns(quest.contest.is_none() && written.all().nth(1).is_some());
        let led = self.lead(&home, flags, &mut results, &mut screen, || {
            let id = submit(&home, descriptor, &wishes)?;
            Ok((id, "secrets stay on this machine, workers get public points"))
        });
        let delivered = results.finish();
        let led = led?;
        delivered?;
        let (matches, elapsed_s) = (led.matches as u64, led.elapsed.as_secs_f64());
        let how = Mined { matches, tried: None, elapsed_s, ended: led.ended_by(), missing: None };
        results.stdout().done(flags.json, &how)?;
        Ok(led.ending())
    }

    /// The job's share of the fleet.
    pub fn priority(&self) -> f64 {
        f64::from(self.how.priority)
    }

    /// The fleet's folder.
    pub fn home(&self) -> Result<Home, Failure> {
        Ok(Home::open(&self.folder)?)
    }

    /// Submits a job and coordinates until it is over.
    pub fn lead(
        &self,
        home: &Home,
        flags: &RunFlags,
        results: &mut Results,
        screen: &mut Screen,
        submit: impl FnOnce() -> Result<(JobId, &'static str), fleet::Error>,
    ) -> Result<Led, Failure> {
        let stop = interrupt()?;
        let metrics = flags.metrics()?;
        let _server = if self.how.local { Some(LocalServer::start(home)?) } else { None };
        let (id, secrets) = submit()?;
        let folder = home.jobs().join(id.to_string());
        let job = OwnJob::open(id, folder.clone())?.skip_told()?;
        if !flags.quiet {
            tell(&format!("job {}; {secrets}", id.short()));
        }
        let policy =
            Policy { unit_time: self.how.unit_time.max(Duration::from_millis(10)), ..Policy::default() };
        let mut failure = None;
        let (mut matches, mut shown, started) = (0, None::<Instant>, Instant::now());
        let ended = wait(home, job, policy, flags.time_limit, metrics.is_some(), &stop, &mut |news| {
            let done = match news {
                News::Found(found) => {
                    screen.clear();
                    matches += found.len();
                    // What was told is not told again, so it must have arrived.
                    results.publish(found.into_iter().map(Deliverable::from).collect()).and_then(|()| {
                        results.finish()?;
                        results.keep_ready()
                    })
                }
                News::Note(text) => {
                    screen.warn(&text);
                    Ok(())
                }
                News::Status(status) => {
                    let line = ProgressLine::new(&status, id, matches, started.elapsed());
                    if let Some(metrics) = &metrics {
                        tell_metrics(metrics, &status);
                    }
                    let due = shown.is_none_or(|shown| shown.elapsed() > Duration::from_secs(10));
                    let told = match flags.progress {
                        Some(ProgressFormat::Json) => results.stdout().progress_json(&line),
                        _ => Ok(()),
                    };
                    if due && !flags.quiet {
                        shown = Some(Instant::now());
                        tell(&line.text());
                    }
                    told.and_then(|()| results.keep_ready())
                }
            };
            done.map_err(|error| {
                let text = error.to_string();
                failure = Some(error);
                fleet::Error::Network(text)
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        Ok(Led { ended: ended?, matches, job: OwnJob::open(id, folder)?, elapsed: started.elapsed() })
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

/// What came of leading a job.
pub(crate) struct Led {
    pub ended: Ended,
    pub matches: usize,
    pub job: OwnJob,
    pub elapsed: Duration,
}

impl Led {
    /// What ended it, as the last document says it.
    pub fn ended_by(&self) -> &'static str {
        match self.ended {
            Ended::Stopped => "interrupted",
            Ended::TimeLimit => "time_limit",
            Ended::Over => "over",
        }
    }

    pub fn ending(&self) -> Ending {
        match self.ended {
            Ended::Stopped => Ending::Interrupted,
            Ended::Over | Ended::TimeLimit if self.matches == 0 => Ending::NoMatch,
            Ended::Over | Ended::TimeLimit => Ending::Done,
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

/// The numbers of a fleet, under the names of a search on one machine.
fn tell_metrics(metrics: &Metrics, status: &Status) {
    for job in &status.jobs {
        let numbers = JobNumbers {
            tried: job.tried,
            matches: job.matches as f64,
            rate: job.rate,
            share: job.share,
            units: Some((job.units as f64, job.leased as f64)),
        };
        metrics.job(&job.id.short(), &numbers);
    }
    for worker in &status.workers {
        let more = [worker.tried, worker.z, worker.refused as f64, worker.seen_s];
        metrics.runner(&worker.name, &RunnerNumbers { rate: worker.claimed, worker: Some(more) });
    }
    metrics.elapsed(status.elapsed_s);
}

#[derive(Serialize)]
struct ProgressLine {
    event: &'static str,
    #[serde(serialize_with = "json::text")]
    tried: f64,
    rate: f64,
    elapsed_s: f64,
    units: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    matches: usize,
    workers: usize,
}

impl ProgressLine {
    fn new(status: &Status, id: JobId, matches: usize, elapsed: Duration) -> ProgressLine {
        let job = status.jobs.iter().find(|job| job.id == id);
        ProgressLine {
            event: "progress",
            tried: job.map_or(0.0, |job| job.tried),
            rate: status.claimed,
            elapsed_s: elapsed.as_secs_f64(),
            units: job.map_or(0, |job| job.units),
            share: job.and_then(|job| job.share),
            matches,
            workers: status.active,
        }
    }

    fn text(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!(", {} covered", human::percent(share)));
        format!(
            "workers: {}, {}, {} tried in {} units{share}",
            self.workers,
            human::rate(self.rate),
            human::count(self.tried),
            self.units
        )
    }
}

/// Print the results of a job again
#[derive(Args)]
pub(crate) struct ResultOf {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The job, by the first digits of its name
    #[arg(value_name = "JOB")]
    job: String,

    /// Append results to FILE (created with mode 0600); secrets go there alone and stdout names the file
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, default_values_os = crate::config::output(),
        hide_default_value = true)]
    output: Option<PathBuf>,

    #[command(flatten)]
    encrypt: EncryptFlags,

    /// Print results as JSON, one document per line
    #[arg(short, long)]
    json: bool,
}

/// What there is of a job's results.
#[derive(Serialize)]
struct Told {
    matches: usize,
    over: bool,
}

impl ResultOf {
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
        let home = Home::open(&self.folder)?;
        let (id, folder) = find(&home, &self.job)?;
        let mut job = OwnJob::open(id, folder)?;
        let over = job.is_over();
        let NewMatches { found, damage } = job.take_new()?;
        damage.iter().for_each(|text| tell(text));
        let matches = found.len();
        let mut results = Results::open(stdout, self.output.as_deref(), self.json, self.encrypt.open()?)?;
        results.publish(found.into_iter().map(Deliverable::from).collect())?;
        results.finish()?;
        results.stdout().done(self.json, &Told { matches, over })?;
        if !self.json && matches == 0 {
            tell(if over { "the job ended without a match" } else { "nothing was found yet" });
        }
        // What is missing has been named.
        let is_whole = damage.is_empty();
        Ok(match (is_whole, matches) {
            (false, _) => Ending::Failed(4),
            (true, 0) => Ending::NoMatch,
            (true, _) => Ending::Done,
        })
    }
}
