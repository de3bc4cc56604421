//! `warpsmith fleet`: searches on many machines that nobody has to trust.

mod home;
mod page;
pub(crate) mod progress;
pub(crate) mod submit;
mod watch;
mod work;

use clap::{Args, Subcommand};
use warpsmith::fleet;

use crate::advice;
use crate::ending::{Ending, Failure};
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
A trial on one machine:
  warpsmith fleet init trial && warpsmith fleet invite trial me --output me.invitation
  warpsmith fleet work me.invitation &
  warpsmith fleet submit trial --local npub cafe

With a server of your own (nats-server, as `fleet init` says), the same without --local; `fleet
work INVITATION` is all that a rented machine needs. docs/fleet.md says what a worker, the server
and a thief can and cannot do.";

/// Search on many machines that nobody has to trust
///
/// The machine that submits keeps every secret; workers are given public points and answer with places, which are joined
/// and verified by libsecp256k1 at home. What they do is proved by shares.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(home::Init),
    Invite(home::Invite),
    Remove(home::Remove),
    Work(work::Work),
    Submit(Box<submit::Submit>),
    Status(watch::Status),
    Watch(watch::Watch),
    Cancel(home::Cancel),
    Result(submit::ResultOf),
}

impl Fleet {
    pub fn run(self, mut stdout: Stdout) -> Result<Ending, Failure> {
        match self.command {
            Command::Init(init) => init.run(&mut stdout),
            Command::Invite(invite) => invite.run(&mut stdout),
            Command::Remove(remove) => remove.run(&mut stdout),
            Command::Work(work) => work.run(),
            Command::Submit(submit) => submit.run(stdout),
            Command::Status(status) => status.run(&mut stdout),
            Command::Watch(watch) => watch.run(&mut stdout),
            Command::Cancel(cancel) => cancel.run(&mut stdout),
            Command::Result(result) => result.run(stdout),
        }
    }
}

impl From<fleet::Error> for Failure {
    fn from(error: fleet::Error) -> Failure {
        if let Some(text) = advice::of_fleet(&error) {
            return Failure::Usage(text);
        }
        match error {
            fleet::Error::Engine(error) => error.into(),
            other => Failure::of("", &other),
        }
    }
}
