//! `warpsmith pir follow`: keeps a database of Ethereum's state up with its chain.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpsmith::pir::Error;
use warpsmith::pir::ethereum::ChainHead;
use warpsmith::pir::keyword::{Layout, Names, TableShape, entries_of_changes_moving, standing};
use warpsmith::pir::updates::Live;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};

use super::codes::{Codes, chunks_of_all};
use super::fold::{self, FoldedLine, Folding, KeepFlags};
use super::growth::{Telling, grow};
use super::node::{Node, Records, Told, pause};
use super::{Route, lanes};
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith pir follow state.pir --rpc http://127.0.0.1:8545
  warpsmith pir follow state.pir --rpc http://127.0.0.1:8545 --behind 2
  warpsmith pir follow state.pir --rpc http://127.0.0.1:8545 --codes codes.pir
  warpsmith pir follow state.pir --rpc http://127.0.0.1:8545 --until 23876768

The node must trace blocks (debug_traceBlockByNumber with prestateTracer) and know the state after each. Every block is an epoch, which
a running `warpsmith pir serve` has a second or two later. Where the chain takes back blocks, one epoch takes back theirs. It can be
stopped at any time, and goes on from the database's own block. Now and then it folds the epochs into the database's file, as
`warpsmith pir fold` does, and goes on meanwhile. A table that is full grows, and clients must then make new hints.";

/// Keep a database of Ethereum's state up with its chain
///
/// Runs until it is interrupted.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Follow {
    /// The database, which says of which block it is (`warpsmith pir build --rpc` or --chain-id)
    #[arg(value_name = "DBFILE")]
    database: PathBuf,

    /// The node: http://HOST:PORT, or https://
    #[arg(long, value_name = "URL")]
    rpc: String,

    #[command(flatten)]
    route: Route,

    /// The database of codes that belongs to it (`warpsmith pir build --rpc URL --codes FILE`): gets those of new contracts
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

/// What was done about the chain.
enum Step {
    /// An epoch, with so many changes; it may take blocks back.
    Epoch { head: ChainHead, changes: usize, taken_back: bool },
    /// One of so many changes is of a new key that has no place: the table must grow.
    Full { new: usize },
    /// The same of the codes' table, and so many chunks.
    CodesFull { new: usize },
    /// There is nothing new.
    Still,
}

impl Follow {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let mut screen = Screen::new(self.quiet);
        let remote = self.route.to(&self.rpc)?;
        let live = Live::open(&self.database, lanes(), 0).or_fail()?;
        let codes = self.codes.as_deref().map(Codes::open).transpose()?;
        let (description, _, head) = live.offer();
        let (Some(_), Some(head)) = (shape_of(&live), head) else {
            return Err(Failure::Usage(format!(
                "{} does not say of which chain and block it is; build it with --rpc, or from a state with --chain-id, \
                 --block-number and --block-hash",
                self.database.display()
            )));
        };
        let stop = interrupt()?;
        let node = Node::new(remote, &stop);
        let names =
            Names::open(&self.database, &description.lineage(), &description.predecessors).or_fail()?;
        if names.is_none() {
            screen.warn(
                "the database has no list of its names (.names): records cannot move, nor the table grow, so a new key whose \
                 places are taken ends this; `warpsmith pir build --names` writes the list",
            );
        }
        let chain_id = match node.chain_id() {
            Err(_) if stop.load(Ordering::Relaxed) => return Err(Failure::Interrupted),
            told => told.map_err(|error| self.failure(&error))?,
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
            codes.as_ref().map(|codes| Folding::new(&codes.path, self.fold_every, self.keep.keep()));
        let (behind, missing) = (self.behind, 0);
        let mut follower = Follower { live: &live, node: &node, names, codes, behind, missing };
        let mut trouble = String::new();
        loop {
            let at = live.newest().1.map(|head| head.number);
            if stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| at >= Some(until)) {
                break;
            }
            self.look_after(&mut folding, &live, &mut screen, stdout)?;
            if let (Some(folding), Some(codes)) = (&mut folding_codes, &follower.codes) {
                self.look_after(folding, &codes.live, &mut screen, stdout)?;
            }
            match follower.step()? {
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
                    grow(&codes.path, &codes.live, &mut None, new, telling)?;
                    continue;
                }
                Ok(Step::Epoch { head, changes, taken_back }) => {
                    trouble.clear();
                    self.tell(&live, &head, changes, taken_back, &mut screen, stdout)?;
                    continue;
                }
                // A node that is away may come back; what stays wrong is told once.
                Err(reason) => {
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

    fn failure(&self, reason: &str) -> Failure {
        Failure::Other(format!("--rpc: {reason}"))
    }
}

/// The table of a state.
fn shape_of(live: &Live) -> Option<TableShape> {
    live.base().description().keyword.clone().filter(|shape| shape.layout == Layout::State)
}

struct Follower<'a> {
    live: &'a Live,
    node: &'a Node<'a>,
    names: Option<Names>,
    codes: Option<Codes>,
    behind: u64,
    /// How often in a row the node did not have our block.
    missing: u32,
}

/// A node that has not our block may be behind another that had it (many stand behind one address): only after so many times was it taken
/// back.
const MISSING: u32 = 3;

impl Follower<'_> {
    /// The next epoch, if there is one. What the node does not do is the inner error, and may pass.
    fn step(&mut self) -> Result<Told<Step>, Failure> {
        let (_, Some(head)) = self.live.newest() else {
            return Err(Failure::Other("the database does not say of which block it is any more".to_owned()));
        };
        match self.next(&head) {
            Err(told) => Ok(Err(told)),
            Ok(Next::Still) => Ok(Ok(Step::Still)),
            Ok(Next::Back) => self.back(&head),
            Ok(Next::Block(head, changes)) => self.append(head, changes).map(Ok),
        }
    }

    /// What follows a block of ours.
    fn next(&mut self, head: &ChainHead) -> Told<Next> {
        match self.node.block(head.chain_id, head.number)? {
            Some(ours) if ours.head.hash != head.hash => return Ok(Next::Back),
            Some(_) => self.missing = 0,
            None => {
                self.missing += 1;
                return Ok(if self.missing < MISSING { Next::Still } else { Next::Back });
            }
        }
        if self.node.newest()? < head.number + 1 + self.behind {
            return Ok(Next::Still);
        }
        let Some(block) = self.node.block(head.chain_id, head.number + 1)? else { return Ok(Next::Still) };
        if block.parent != head.hash {
            return Ok(Next::Still);
        }
        Ok(self.node.changes(&block)?.map_or(Next::Still, |changes| Next::Block(block.head, changes)))
    }

    /// Goes back to the newest epoch whose block is of the chain.
    fn back(&self, head: &ChainHead) -> Result<Told<Step>, Failure> {
        for (epoch, earlier) in self.live.heads() {
            let Some(earlier) = earlier else { continue };
            let block = match self.node.block(head.chain_id, earlier.number) {
                Ok(block) => block,
                Err(told) => return Ok(Err(told)),
            };
            if block.is_some_and(|block| block.head.hash == earlier.hash) {
                // It is there again.
                if epoch == self.live.epoch() {
                    return Ok(Ok(Step::Still));
                }
                let update = self.live.back_to(epoch).or_fail()?;
                let changes = update.indices.len();
                self.live.update(update).or_fail()?;
                return Ok(Ok(Step::Epoch { head: earlier, changes, taken_back: true }));
            }
        }
        Err(Failure::Other(
            "the chain has taken back more blocks than the database's updates hold (a fold keeps as many as --keep says, and a \
             table that grows begins anew), or it is another chain; build the database anew"
                .to_owned(),
        ))
    }

    fn append(&mut self, head: ChainHead, changes: Records) -> Result<Step, Failure> {
        let Records { records: mut changes, codes } = changes;
        // Before the state tells of them.
        if let Some(known) = &self.codes {
            match known.add(&codes) {
                Err(Error::Full(_)) => return Ok(Step::CodesFull { new: chunks_of_all(&codes) }),
                added => added.map_err(|error| Failure::Other(format!("--codes: {error}")))?,
            };
        }
        let shape = shape_of(self.live).expect("it was one when this began");
        changes.extend(head.records().map(|(key, record)| (key, Some(record.to_vec()))));
        // What stays as it is costs clients nothing.
        let mut news = Vec::with_capacity(changes.len());
        for (key, record) in changes {
            if standing(self.live, &shape, &key).or_fail()? != record {
                news.push((key, record));
            }
        }
        if let Some(names) = &mut self.names {
            names
                .add(news.iter().filter(|(_, record)| record.is_some()).map(|(key, _)| &key[..]))
                .or_fail()?;
        }
        let name_of = |record: &[u8]| self.names.as_ref().and_then(|names| names.of(record));
        let values = match entries_of_changes_moving(self.live, &shape, &news, &name_of) {
            Err(Error::Full(_)) if self.names.is_some() => return Ok(Step::Full { new: news.len() }),
            Err(Error::Full(_)) => {
                let text = "a new key has no place, and the table cannot grow without the list of its names (.names); build it anew \
                            with --names, or with more --room";
                return Err(Failure::Other(text.to_owned()));
            }
            other => other.or_fail()?,
        };
        let update = self.live.difference(&values).or_fail()?;
        let changes = update.indices.len();
        self.live.update(update).or_fail()?;
        Ok(Step::Epoch { head, changes, taken_back: false })
    }
}

enum Next {
    Still,
    Back,
    Block(ChainHead, Records),
}
