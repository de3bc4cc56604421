//! `fleet submit` and `result`: every command that mines, with its own flags, done by a fleet.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::own::{NewMatches, OwnJob, find};

use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stderr::report;
use warpsmith_console::stdout::Stdout;

use crate::command::{chain, cosmos, ethereum, scan};
use crate::encryption::EncryptFlags;
use crate::failures::OrFail as _;
use crate::mining::Executor;
use crate::record::Deliverable;
use crate::results::Results;
use crate::submission::{Submission, SubmitFlags};

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
    flags: SubmitFlags,

    #[command(subcommand)]
    what: What,
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

impl Submit {
    pub fn run(self, stdout: Stdout) -> Result<ExitStatus, Failure> {
        let fleet = Submission::new(self.folder, self.flags);
        let on = Executor::Fleet(&fleet);
        match self.what {
            What::Mine(mine) => mine.run(on, stdout),
            What::Cosmos(cosmos) => cosmos.run(on, stdout),
            What::Eth(eth) => eth.run(on, stdout),
            What::Create2(create2) => create2.run(on, stdout),
            What::Create3(create3) => create3.run(on, stdout),
            What::Scan(OpenScan { scan, workers_may_learn_keys }) => {
                scan.submit(&fleet, workers_may_learn_keys, stdout)
            }
        }
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
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, default_values_os = warpsmith_console::config::output(),
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
    pub fn run(&self, stdout: Stdout) -> Result<ExitStatus, Failure> {
        let home = Home::open(&self.folder).or_fail()?;
        let (id, folder) = find(&home, &self.job).or_fail()?;
        let mut job = OwnJob::open(id, folder).or_fail()?;
        let over = job.is_over();
        let NewMatches { found, damage } = job.take_new().or_fail()?;
        damage.iter().for_each(|text| report(text));
        let matches = found.len();
        let found: Vec<Deliverable> = found.into_iter().map(Deliverable::from).collect();
        let (encryption, target) = (self.encrypt.open()?, found.first().and_then(Deliverable::key_target));
        if let (Some(encryption), Some(target)) = (&encryption, target)
            && let Some(caution) = self.encrypt.caution(target.as_ref(), encryption)
        {
            report(&format!("warning: {caution}"));
        }
        let mut results = Results::open(stdout, self.output.as_deref(), self.json, encryption)?;
        results.publish(found)?;
        results.finish()?;
        results.stdout().done(self.json, &Told { matches, over })?;
        if !self.json && matches == 0 {
            report(if over { "the job ended without a match" } else { "nothing was found yet" });
        }
        // What is missing has been named.
        let is_whole = damage.is_empty();
        Ok(match (is_whole, matches) {
            (false, _) => ExitStatus::Failed(4),
            (true, 0) => ExitStatus::NoMatch,
            (true, _) => ExitStatus::Done,
        })
    }
}
