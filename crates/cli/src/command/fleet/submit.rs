//! `fleet submit` and `result`: every command that mines, with its own flags, done by a fleet.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::fleet::book::Wishes;
use warpsmith::fleet::coordinator::Policy;
use warpsmith::fleet::job::{Descriptor, Liked};
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::submit::{Ended, LocalServer, News, OwnJob, find, submit, wait};
use warpsmith::fleet::{self};
use warpsmith::pattern::Score;
use warpsmith::search::Subject;

use crate::command::{chain, cosmos, ethereum};
use crate::encryption::EncryptFlags;
use crate::ending::{Ending, Failure};
use crate::human;
use crate::patterns::Written;
use crate::qr::Qr;
use crate::quest::Quest;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{RunFlags, interrupt};
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
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
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
}

/// The fleet that does a search.
#[derive(Clone)]
pub(crate) struct Submission {
    folder: PathBuf,
    how: How,
}

impl Submit {
    pub fn run(self, stdout: Stdout) -> Result<Ending, Failure> {
        let submission = Some(Submission { folder: self.folder, how: self.how });
        match self.what {
            What::Mine(mut mine) => {
                mine.mining.fleet = submission;
                mine.run(stdout)
            }
            What::Cosmos(mut cosmos) => {
                cosmos.mining.fleet = submission;
                cosmos.run(stdout)
            }
            What::Eth(mut eth) => {
                eth.mining.fleet = submission;
                eth.run(stdout)
            }
            What::Create2(mut create2) => {
                create2.mining.fleet = submission;
                create2.run(stdout)
            }
            What::Create3(mut create3) => {
                create3.mining.fleet = submission;
                create3.run(stdout)
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
        if flags.devices.is_given() {
            return Err(Failure::Usage(
                "--device and --threads are for the machine that searches: give them to `warpsmith fleet work`".to_owned(),
            ));
        }
        let liked = match quest.score {
            None => Liked::Patterns {
                patterns: written.all().map(str::to_owned).collect(),
                ignore_case: quest.options.ignore_case,
                checksum: quest.options.checksum,
            },
            Some((Score::LeadingZeros, _)) => Liked::Zeros,
            Some((Score::Leading(digit), _)) => Liked::Digit { digit },
            Some((Score::Zeros, _)) => {
                return Err(Failure::Usage(
                    "--zeros: what a worker did for the most zero bytes anywhere cannot be proved; search for \
                     --leading-zeros or --leading HEXDIGIT with a fleet, or for --zeros on one machine"
                        .to_owned(),
                ));
            }
        };
        let split = quest.split.map(|key| const_hex::encode(key.serialize()));
        let descriptor =
            Descriptor { fleet: Descriptor::FORMAT, round: 0, sought: quest.sought.clone(), liked, split };
        let wishes = Wishes {
            count: (count > 0).then_some(count),
            enough: quest.score.and_then(|(_, enough)| enough),
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
            screen.warn(caution);
        }
        let mut results =
            Results::open(stdout, flags.output.as_deref(), flags.json, encryption)?.with_codes(qr);
        let stop = interrupt()?;
        let _server = if self.how.local { Some(LocalServer::start(&home)?) } else { None };
        let id = submit(&home, descriptor, &wishes)?;
        let job = OwnJob::open(id, home.jobs().join(id.to_string()))?.skip_told();
        if !flags.quiet {
            tell(&format!("job {}; secrets stay on this machine, workers get public points", id.short()));
        }
        let policy =
            Policy { unit_time: self.how.unit_time.max(Duration::from_millis(10)), ..Policy::default() };
        let mut failure = None;
        let (mut matches, mut shown) = (0, None::<Instant>);
        let ended = wait(&home, job, policy, flags.time_limit, &stop, &mut |news| {
            let done = match news {
                News::Found(found) => {
                    screen.clear();
                    matches += found.len();
                    results.publish(found.into_iter().map(Deliverable::Match).collect())
                }
                News::Note(text) => {
                    screen.warn(&text);
                    Ok(())
                }
                News::Status(status) => {
                    let due = shown.is_none_or(|shown| shown.elapsed() > Duration::from_secs(10));
                    if due && !flags.quiet {
                        shown = Some(Instant::now());
                        let job = status.jobs.iter().find(|job| job.id == id);
                        let active: Vec<f64> =
                            status.workers.iter().filter(|w| w.seen_s < 180.0).map(|w| w.claimed).collect();
                        tell(&format!(
                            "workers: {}, {}, {} tried in {} units",
                            active.len(),
                            human::rate(active.iter().sum()),
                            human::count(job.map_or(0.0, |job| job.tried)),
                            job.map_or(0, |job| job.units)
                        ));
                    }
                    results.keep_ready()
                }
            };
            done.map_err(|error| {
                let text = error.to_string();
                failure = Some(error);
                fleet::Error::Network(text)
            })
        });
        let delivered = results.finish();
        if let Some(failure) = failure {
            return Err(failure);
        }
        let ended = ended?;
        delivered?;
        Ok(match ended {
            Ended::Stopped => Ending::Interrupted,
            Ended::Over | Ended::TimeLimit if matches == 0 => Ending::NoMatch,
            Ended::Over | Ended::TimeLimit => Ending::Done,
        })
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
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    encrypt: EncryptFlags,

    /// Print results as JSON, one document per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DoneLine {
    event: &'static str,
    matches: usize,
    over: bool,
}

impl ResultOf {
    pub fn run(&self, stdout: Stdout) -> Result<Ending, Failure> {
        let home = Home::open(&self.folder)?;
        let (id, folder) = find(&home, &self.job)?;
        let mut job = OwnJob::open(id, folder)?;
        let over = job.is_over();
        let found = job.take_new()?;
        let matches = found.len();
        let mut results = Results::open(stdout, self.output.as_deref(), self.json, self.encrypt.open()?)?;
        results.publish(found.into_iter().map(Deliverable::Match).collect())?;
        results.finish()?;
        if self.json {
            results.stdout().show_json(&DoneLine { event: "done", matches, over })?;
        } else if matches == 0 {
            tell(if over { "the job ended without a match" } else { "nothing was found yet" });
        }
        Ok(if matches > 0 { Ending::Done } else { Ending::NoMatch })
    }
}
