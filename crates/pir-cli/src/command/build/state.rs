//! States of Ethereum: from folders of extractors, from accounts in CSV, from dumps of nodes, from a node, or made up.

use std::path::Path;
use std::sync::atomic::Ordering;

use warpsmith_console::exit::Failure;
use warpsmith_eth_state::import::{Accounts, CodeList, Dump, Folder, StateTable, Synthetic, quoted};
use warpsmith_eth_state::node::{Node, NodeError};
use warpsmith_eth_state::{Address, ChainHead, code_hash_record};
use warpsmith_rms24::Result;
use warpsmith_rms24::database::Description;
use warpsmith_rms24::table::Take;

use super::super::warn_of_node;
use super::{Build, Watch};
use crate::failures::OrFail as _;

impl Build {
    pub(super) fn build_synthetic(
        &self,
        records: u64,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let synthetic = Synthetic::new(records, self.seed).or_fail()?;
        self.build_state(synthetic.keys(), &|take| synthetic.each(take), watch).or_fail()
    }

    /// A state, and of which block it is where that is known.
    fn build_state(
        &self,
        keys: u64,
        each: &dyn Fn(&mut Take<'_>) -> Result<()>,
        watch: &mut Watch<'_>,
    ) -> Result<Description> {
        self.table(self.head.head()).build(keys, each, &mut |share| watch.tell(Some(share)))
    }

    /// What the flags say of a state of this block.
    fn table(&self, head: Option<ChainHead>) -> StateTable {
        StateTable {
            database: self.database.clone(),
            block_size: self.block_size,
            epoch: self.epoch,
            room: self.room,
            names: self.names || self.rpc.is_some(),
            head,
        }
    }

    /// The whole state of a node.
    pub(super) fn build_node(
        &self,
        url: &str,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let node = Node::new(self.route.to(url)?, watch.stop, &warn_of_node);
        let (head, dump) = match node.dump() {
            Err(_) if watch.stop.load(Ordering::Relaxed) => return Err(Failure::Interrupted),
            told => told.map_err(|error| {
                let advice = match error {
                    NodeError::NoDump(_) | NodeError::Moving(_) => ": `warpsmith-pir build DBFILE DUMP`",
                    _ => "",
                };
                Failure::Other(format!("--rpc: {error}{advice}"))
            })?,
        };
        if let Some(codes) = &self.codes {
            self.code_flags.table().build(codes, &dump.codes, &mut |_| watch.tell(None)).or_fail()?;
        }
        let records: Vec<_> =
            dump.records.into_iter().filter_map(|(key, record)| Some((key, record?))).collect();
        let each = |take: &mut Take<'_>| records.iter().try_for_each(|(key, record)| take(key, record));
        let table = self.table(Some(head));
        table.build(records.len() as u64, &each, &mut |share| watch.tell(Some(share))).or_fail()
    }

    pub(super) fn build_folder(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let folder = Folder::open(input).or_fail()?;
        if !self.code_hashes {
            return self.build_state(folder.keys(), &|take| folder.each(take), watch).or_fail();
        }
        let codes = CodeList::open(input).or_fail()?;
        // How many contracts there are no file says.
        let mut contracts = 0;
        folder
            .each(&mut |key, record| {
                contracts += u64::from(key.len() == 20 && codes.of(record)?.is_some());
                Ok(())
            })
            .or_fail()?;
        let each = |take: &mut Take<'_>| {
            folder.each(&mut |key, record| {
                take(key, record)?;
                let Ok(address) = <&Address>::try_from(key) else { return Ok(()) };
                match codes.of(record)?.map(|hash| code_hash_record(address, &hash)) {
                    Some((key, record)) => take(&key, &record),
                    None => Ok(()),
                }
            })
        };
        self.build_state(folder.keys() + contracts, &each, watch).or_fail()
    }

    /// Accounts in CSV.
    pub(super) fn build_accounts(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let accounts = Accounts::survey(input, &mut || watch.tell(None)).or_fail()?;
        if accounts.keys == 0 {
            return Err(Failure::Usage(format!(
                "{} has no accounts; give a line with the names of the columns, and one for each account",
                input.display()
            )));
        }
        if !accounts.left_out.is_empty() {
            let columns = accounts.left_out.iter().map(|title| quoted(title)).collect::<Vec<_>>().join(", ");
            watch.screen.note(&format!("a state has no place for {columns}: left out"));
        }
        let built = self.build_state(accounts.keys, &|take| accounts.each(take), watch);
        built.map_err(|error| accounts.with_lines(error)).or_fail()
    }

    /// A dump of a node.
    pub(super) fn build_dump(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let dump = Dump::survey(input, &mut || watch.tell(None)).or_fail()?;
        if dump.keys == 0 {
            return Err(Failure::Usage(format!(
                "{} has no accounts; give what `geth dump --iterative` prints or `anvil --dump-state` writes",
                input.display()
            )));
        }
        if dump.without_slots > 0 {
            let accounts = dump.without_slots;
            watch.screen.note(&format!(
                "{accounts} accounts have slots that the dump leaves out, and that would be answered as zero; dump them without \
                 --nostorage"
            ));
        }
        let built = self.build_state(dump.keys, &|take| dump.each(take), watch);
        built.map_err(|error| dump.with_key(error)).or_fail()
    }
}
