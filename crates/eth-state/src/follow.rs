//! Follows a chain: every block is an epoch of the database, and so is going back where the chain
//! takes blocks back (a reorg).

use warpsmith_rms24::keyword::TableShape;
use warpsmith_rms24::updates::{Live, entries_of_changes_moving, standing};

use crate::codes::{Codes, chunks_of_all};
use crate::error::{Error, Result};
use crate::head::ChainHead;
use crate::layout::{STATE, heads, newest};
use crate::names::Names;
use crate::node::{Node, NodeError, Records};

/// Times in a row that a node has not our block before that counts as taken back: it may be behind
/// another that had it, as many stand behind one address.
const MISSING: u32 = 3;

/// What was done about the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An epoch was appended.
    Epoch {
        /// The block that it leads to.
        head: ChainHead,
        /// Entries that changed.
        changes: usize,
        /// Whether it takes blocks back.
        taken_back: bool,
    },
    /// A new key has no place: the table must [`grow`](crate::grow), by room for these changes.
    Full {
        /// Changes that wait.
        new: usize,
    },
    /// The table of codes must grow.
    CodesFull {
        /// Chunks that wait.
        new: usize,
    },
    /// There is nothing new.
    Still,
}

/// What follows a block of ours.
enum Next {
    Still,
    Back,
    Block(ChainHead, Records),
}

/// Keeps a database of a state, and that of its codes where there is one, up with a node.
pub struct Follower<'a> {
    /// The database of the state, opened by [`open_database`](crate::open_database).
    pub live: &'a Live,
    /// The node.
    pub node: &'a Node<'a>,
    /// The names of its records, without which none of them moves.
    pub names: Option<Names>,
    /// The database of codes.
    pub codes: Option<Codes>,
    /// Number of confirmations to wait for, to avoid reorgs.
    pub confirmations: u64,
    /// How often in a row the node did not have our block.
    missing: u32,
}

/// Returns the table of a state; none of another database.
pub fn state_shape(live: &Live) -> Option<TableShape> {
    live.base().description().keyword.clone().filter(|shape| shape.layout == STATE)
}

impl<'a> Follower<'a> {
    /// A follower of all blocks as soon as they are there.
    pub fn new(live: &'a Live, node: &'a Node<'a>, names: Option<Names>, codes: Option<Codes>) -> Self {
        Follower { live, node, names, codes, confirmations: 0, missing: 0 }
    }

    /// Makes the next epoch, if there is a block for it. The inner error says why the node cannot
    /// be asked, which may pass.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written, the chain went back too far ([`Error::TooFarBack`]),
    /// or a new key has no place and the names are not known ([`Error::NoNames`]).
    pub fn step(&mut self) -> Result<std::result::Result<Step, NodeError>> {
        let (_, Some(head)) = newest(self.live) else { return Err(Error::NoHead) };
        match self.next(&head) {
            Err(error) => Ok(Err(error)),
            Ok(Next::Still) => Ok(Ok(Step::Still)),
            Ok(Next::Back) => self.back(&head),
            Ok(Next::Block(head, changes)) => self.append(head, changes).map(Ok),
        }
    }

    /// What follows a block of ours.
    fn next(&mut self, head: &ChainHead) -> std::result::Result<Next, NodeError> {
        match self.node.block(head.chain_id, head.number)? {
            Some(ours) if ours.head.hash != head.hash => return Ok(Next::Back),
            Some(_) => self.missing = 0,
            None => {
                self.missing += 1;
                return Ok(if self.missing < MISSING { Next::Still } else { Next::Back });
            }
        }
        if self.node.newest()? < head.number + 1 + self.confirmations {
            return Ok(Next::Still);
        }
        let Some(block) = self.node.block(head.chain_id, head.number + 1)? else { return Ok(Next::Still) };
        if block.parent != head.hash {
            return Ok(Next::Still);
        }
        Ok(self.node.changes(&block)?.map_or(Next::Still, |changes| Next::Block(block.head, changes)))
    }

    /// Goes back to the newest epoch whose block is of the chain.
    fn back(&self, head: &ChainHead) -> Result<std::result::Result<Step, NodeError>> {
        for (epoch, earlier) in heads(self.live) {
            let Some(earlier) = earlier else { continue };
            let block = match self.node.block(head.chain_id, earlier.number) {
                Ok(block) => block,
                Err(error) => return Ok(Err(error)),
            };
            if block.is_some_and(|block| block.head.hash == earlier.hash) {
                // It is there again.
                if epoch == self.live.epoch() {
                    return Ok(Ok(Step::Still));
                }
                let update = self.live.back_to(epoch)?;
                let changes = update.indices.len();
                self.live.update(update)?;
                return Ok(Ok(Step::Epoch { head: earlier, changes, taken_back: true }));
            }
        }
        Err(Error::TooFarBack)
    }

    fn append(&mut self, head: ChainHead, changes: Records) -> Result<Step> {
        let Records { records: mut changes, codes } = changes;
        // Before the state tells of them.
        if let Some(known) = &self.codes {
            match known.add(&codes) {
                Err(warpsmith_rms24::Error::Full(_)) => {
                    return Ok(Step::CodesFull { new: chunks_of_all(&codes) });
                }
                added => added.map_err(Error::Codes)?,
            };
        }
        let shape = state_shape(self.live).ok_or(Error::NoHead)?;
        changes.extend(head.records().map(|(key, record)| (key, Some(record.to_vec()))));
        // What stays as it is costs clients nothing.
        let mut news = Vec::with_capacity(changes.len());
        for (key, record) in changes {
            if standing(self.live, &shape, &key)? != record {
                news.push((key, record));
            }
        }
        if let Some(names) = &mut self.names {
            names.add(news.iter().filter(|(_, record)| record.is_some()).map(|(key, _)| &key[..]))?;
        }
        let name_of = |record: &[u8]| self.names.as_ref().and_then(|names| names.of(record));
        let values = match entries_of_changes_moving(self.live, &shape, &news, &name_of) {
            Err(warpsmith_rms24::Error::Full(_)) if self.names.is_some() => {
                return Ok(Step::Full { new: news.len() });
            }
            Err(warpsmith_rms24::Error::Full(_)) => return Err(Error::NoNames),
            other => other?,
        };
        let update = self.live.difference(&values)?;
        let changes = update.indices.len();
        self.live.update(update)?;
        Ok(Step::Epoch { head, changes, taken_back: false })
    }
}
