//! `warpsmith-pir follow`: keeps a database of Ethereum's state up with its chain.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_eth_state::follow::{Follower, Step, state_shape};
use warpsmith_eth_state::node::{Node, pause};
use warpsmith_eth_state::{ChainHead, Codes, Error, Names, newest, open_database};
use warpsmith_rms24::updates::Live;

use super::fold::{self, FoldedLine, Folding, KeepFlags};
use super::growth::{Telling, grow};
use super::{Route, lanes, warn_of_node};
use crate::failures::{IntoFailure as _, OrFail as _};

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir follow state.pir --rpc http://127.0.0.1:8545
  warpsmith-pir follow state.pir --rpc http://127.0.0.1:8545 --behind 2
  warpsmith-pir follow state.pir --rpc http://127.0.0.1:8545 --codes codes.pir
  warpsmith-pir follow state.pir --rpc http://127.0.0.1:8545 --until 23876768

The node must trace blocks (debug_traceBlockByNumber with prestateTracer) and know the state after each. Every block is an epoch, which
a running `warpsmith-pir serve` has a second or two later. Where the chain takes back blocks, one epoch takes back theirs. It can be
stopped at any time, and goes on from the database's own block. Now and then it folds the epochs into the database's file, as
`warpsmith-pir fold` does, and goes on meanwhile. A table that is full grows, and clients must then make new hints.";

/// Keep a database of Ethereum's state up with its chain
///
/// Runs until it is interrupted.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Follow {
    /// The database, which says of which block it is (`warpsmith-pir build --rpc` or --chain-id)
    #[arg(value_name = "DBFILE")]
    database: PathBuf,

    /// The node: http://HOST:PORT, or https://
    #[arg(long, value_name = "URL")]
    rpc: String,

    #[command(flatten)]
    route: Route,

    /// The database of codes that belongs to it (`warpsmith-pir build --rpc URL --codes FILE`): gets those of new contracts
    #[arg(long, value_name = "DBFILE")]
    codes: Option<PathBuf>,

    /// Stay so many blocks behind the newest: fewer are taken back again
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), default_value_t = 0)]
    behind: u64,

    /// How often the node is asked for a new block, as 1s or 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = human::parse_duration)]
    poll: Duration,

    /// End when the database is at this block
    #[arg(long, value_name = "NUMBER", value_parser = human::whole::<u64>(..))]
    until: Option<u64>,

    /// Fold after so many epochs; 0 for never [default: when the changes take a quarter of the database's bytes, or 64 MiB]
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..))]
    fold_every: Option<u64>,

    #[command(flatten)]
    keep: KeepFlags,

    /// Print a line of JSON for every epoch
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct FollowedLine {
    event: &'static str,
    epoch: u64,
    changes: usize,
    block_number: u64,
    block_hash: String,
    /// Whether this epoch takes blocks back.
    taken_back: bool,
}

impl Follow {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let mut screen = Screen::new(self.quiet);
        let remote = self.route.to(&self.rpc)?;
        let live = open_database(&self.database, lanes(), 0).or_fail()?;
        let codes = self.codes.as_deref().map(open_codes).transpose()?;
        let description = live.base().description().clone();
        let (Some(_), (_, Some(head))) = (state_shape(&live), newest(&live)) else {
            return Err(Failure::Usage(format!(
                "{} does not say of which chain and block it is; build it with --rpc, or from a state with --chain-id, \
                 --block-number and --block-hash",
                self.database.display()
            )));
        };
        let stop = interrupt()?;
        let node = Node::new(remote, &stop, &warn_of_node);
        let names =
            Names::open(&self.database, &description.lineage(), &description.predecessors).or_fail()?;
        if names.is_none() {
            screen.warn(
                "the database has no list of its names (.names): records cannot move, nor the table grow, so a new key whose \
                 places are taken ends this; `warpsmith-pir build --names` writes the list",
            );
        }
        let chain_id = match node.chain_id() {
            Err(_) if stop.load(Ordering::Relaxed) => return Err(Failure::Interrupted),
            told => told.map_err(|error| Failure::Other(format!("--rpc: {error}")))?,
        };
        if chain_id != head.chain_id {
            return Err(Failure::Usage(format!(
                "--rpc {} is of chain {chain_id}, and {} of chain {}; give a node of the same chain",
                self.rpc,
                self.database.display(),
                head.chain_id
            )));
        }
        screen.say(format_args!(
            "database  at block {} of chain {chain_id}, epoch {}",
            head.number,
            live.epoch()
        ));
        let mut folding = Folding::new(&self.database, self.fold_every, self.keep.keep());
        let mut folding_codes =
            codes.as_ref().map(|codes| Folding::new(codes.path(), self.fold_every, self.keep.keep()));
        let mut follower = Follower::new(&live, &node, names, codes);
        follower.confirmations = self.behind;
        let mut trouble = String::new();
        loop {
            let at = newest(&live).1.map(|head| head.number);
            if stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| at >= Some(until)) {
                break;
            }
            self.look_after(&mut folding, &live, &mut screen, stdout)?;
            if let (Some(folding), Some(codes)) = (&mut folding_codes, &follower.codes) {
                self.look_after(folding, codes.live(), &mut screen, stdout)?;
            }
            match follower.step().map_err(with_flags)? {
                Ok(Step::Still) => trouble.clear(),
                Ok(Step::Full { new }) => {
                    folding.give_up();
                    let telling = Telling { json: self.json, stop: &stop, screen: &mut screen, stdout };
                    grow(&self.database, &live, &mut follower.names, new, telling)?;
                    continue;
                }
                Ok(Step::CodesFull { new }) => {
                    folding_codes.iter_mut().for_each(Folding::give_up);
                    let telling = Telling { json: self.json, stop: &stop, screen: &mut screen, stdout };
                    let codes = follower.codes.as_ref().expect("they are full");
                    grow(codes.path(), codes.live(), &mut None, new, telling)?;
                    continue;
                }
                Ok(Step::Epoch { head, changes, taken_back }) => {
                    trouble.clear();
                    self.tell(&live, &head, changes, taken_back, &mut screen, stdout)?;
                    continue;
                }
                // A node that is away may come back; what stays wrong is told once.
                Err(error) => {
                    let reason = error.to_string();
                    if trouble != reason && !stop.load(Ordering::Relaxed) {
                        screen.warn(&format!("{reason}; the node is asked again"));
                        trouble = reason;
                    }
                }
            }
            pause(self.poll, &stop);
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(if stop.load(Ordering::Relaxed) { ExitStatus::Interrupted } else { ExitStatus::Done })
    }

    /// Folds a database where that is due, and takes over what others did with it.
    fn look_after(
        &self,
        folding: &mut Folding,
        live: &Live,
        screen: &mut Screen,
        stdout: &mut Stdout,
    ) -> Result<(), Failure> {
        match folding.look(live) {
            None => {}
            Some(Ok((folded, seconds))) if self.json => {
                stdout.show_json(&FoldedLine::new(folding.database(), &folded, seconds))?;
            }
            Some(Ok((folded, _))) => screen.say(format_args!("{}", fold::text(&folded))),
            Some(Err(error)) => {
                let database = folding.database().display();
                screen.warn(&format!("{database} was not folded: {error}; it is tried again in ten minutes"));
            }
        }
        // Somebody else may have folded it too.
        live.refresh().or_fail()?;
        Ok(())
    }

    fn tell(
        &self,
        live: &Live,
        head: &ChainHead,
        changes: usize,
        taken_back: bool,
        screen: &mut Screen,
        stdout: &mut Stdout,
    ) -> Result<(), Failure> {
        let epoch = live.epoch();
        if self.json {
            return stdout.show_json(&FollowedLine {
                event: "followed",
                epoch,
                changes,
                block_number: head.number,
                block_hash: format!("0x{}", const_hex::encode(head.hash)),
                taken_back,
            });
        }
        let what = if taken_back { "taken back to block" } else { "block" };
        screen.say(format_args!(
            "{what} {}: epoch {epoch}, {} changes",
            head.number,
            human::count(changes as f64)
        ));
        Ok(())
    }
}

fn open_codes(path: &Path) -> Result<Codes, Failure> {
    Codes::open(path, lanes()).map_err(|error| match error {
        Error::NotCodes => Failure::Usage(format!(
            "--codes {} is no database of codes; `warpsmith-pir build DBFILE --rpc URL --codes FILE` makes one",
            path.display()
        )),
        error => error.into_failure(),
    })
}

/// What ends following, with the flags that help.
fn with_flags(error: Error) -> Failure {
    match error {
        Error::TooFarBack => Failure::Other(format!("{error}; --keep says how many updates a fold keeps")),
        Error::NoNames => {
            Failure::Other(format!("{error}: `warpsmith-pir build` with --names, or with more --room"))
        }
        Error::Codes(error) => Failure::Other(format!("--codes: {error}")),
        error => error.into_failure(),
    }
}
