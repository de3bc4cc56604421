//! `fleet submit DIR pir hint`: the offline phase of private retrieval, by machines of one's own.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use warpsmith::fleet::folder::Wishes;
use warpsmith::fleet::hints::{HintOrder, HintTask};
use warpsmith::fleet::net::submit::{Ended, submit_hints};
use warpsmith::pir::updates::Live;
use warpsmith::pir::{Client, Lanes, Version};

use super::submit::{Submission, refuse_devices};
use crate::command::pir::{ShapeFlags, introduce, show_state};
use crate::ending::{Ending, Failure};
use crate::results::Results;
use crate::running::RunFlags;
use crate::screen::Screen;
use crate::stdout::Stdout;

/// By itself clap would leave out the folder, two commands further up.
const USAGE: &str = "warpsmith fleet submit <DIR> pir hint [OPTIONS] --database <DBFILE> --state <FILE>";

/// Prepare to read a database in private, with the machines of a fleet
#[derive(Args)]
pub(super) struct PirJob {
    #[command(subcommand)]
    command: PirCommand,
}

#[derive(Subcommand)]
enum PirCommand {
    Hint(Box<FleetHint>),
}

/// Have a fleet make the hints of a state
///
/// For machines of your own: each has the database (`fleet work --database DBFILE`) and learns the key of the hints. What they make is
/// compared by lot with what the database here gives.
#[derive(Args)]
#[command(override_usage = USAGE)]
struct FleetHint {
    /// The database, on this machine
    #[arg(long, value_name = "DBFILE")]
    database: PathBuf,

    /// The state to make; nothing may be there yet
    #[arg(long, value_name = "FILE")]
    state: PathBuf,

    #[command(flatten)]
    shape: ShapeFlags,

    /// Whoever works, and whoever runs the fleet's server, may learn the key of the hints: with it and the queries of this state one
    /// can tell what was asked
    #[arg(long)]
    workers_may_learn_queries: bool,

    #[command(flatten)]
    run: RunFlags,
}

impl PirJob {
    pub fn run(&self, submission: &Submission, stdout: Stdout) -> Result<Ending, Failure> {
        let PirCommand::Hint(hint) = &self.command;
        hint.run(submission, stdout)
    }
}

impl FleetHint {
    fn run(&self, submission: &Submission, stdout: Stdout) -> Result<Ending, Failure> {
        refuse_devices(&self.run)?;
        if self.run.output.is_some() {
            return Err(Failure::Usage(
                "--output is for keys that are found; hints go to --state FILE".to_owned(),
            ));
        }
        if !self.workers_may_learn_queries {
            return Err(Failure::Usage(
                "every worker of the fleet, and its server, learns the key of these hints: whoever has it and sees the queries of \
                 this state can tell what was asked. If all of them are machines of your own, say --workers-may-learn-queries; \
                 else make the hints here: warpsmith pir hint"
                    .to_owned(),
            ));
        }
        let live = Live::open(&self.database, Lanes::detect(), 0)?;
        let params = self.shape.params(&live.params())?;
        let version = Version { database: live.base().description().lineage(), epoch: live.epoch() };
        let order = HintOrder::new(version, &params);
        // What workers will make of it is tried here first.
        HintTask::open(&order)?;
        let home = submission.home()?;
        let reserved = Client::reserve(&self.state)?;
        let mut screen = Screen::new(self.run.quiet);
        introduce(&params, &mut screen);
        let mut results = Results::open(stdout, None, self.run.json, None)?;
        let wishes = Wishes { count: None, enough: None, priority: submission.priority() };
        let led = submission.lead(&home, &self.run, &mut results, &mut screen, || {
            let id = submit_hints(&home, order, &self.database, &wishes)?;
            Ok((id, "workers have the database and the key of the hints"))
        })?;
        match led.ended {
            Ended::Over => {}
            Ended::Stopped => return Ok(Ending::Interrupted),
            Ended::TimeLimit => return Ok(Ending::NoMatch),
        }
        let hints = led.job.hints().filter(|_| !led.job.is_cancelled());
        let hints =
            hints.ok_or_else(|| Failure::Other("the job was cancelled, and no state made".to_owned()))?;
        // From here on nobody makes another state of them, even if this one fails to be written.
        let made = hints.take()?;
        let client =
            Client::create(&self.state, params, version, hints.key().clone(), made, Lanes::detect())?;
        drop(reserved);
        hints.clear()?;
        let workers = "fleet".to_owned();
        show_state(&self.state, &client, workers, led.elapsed, self.run.json, results.stdout())?;
        Ok(Ending::Done)
    }
}
