//! Layouts of tables ([`Layout`]) whose keys and values have a meaning here, and the one of
//! Ethereum's records.

use std::path::Path;

use warpsmith_rms24::keyword::{Layout, RecordLayout};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Lanes, Result};

use crate::head::ChainHead;
use crate::record::belongs_to;

/// Ethereum's state: records of accounts and slots.
pub const STATE: Layout = Layout::Records;

/// Amounts by address: a key is the kind of an address and its digest, a value its amount, least
/// significant byte first and no longer than it needs to be, or nothing where no amount is known.
pub const ADDRESS: Layout = Layout::Defined(3);

/// Coins by output script of Bitcoin: a key is the script's SHA-256, a value what its coins are
/// worth (u64) and how many they are (u32).
pub const SCRIPT: Layout = Layout::Defined(6);

/// Ethereum's records, of which two tell the block.
struct StateRecords;

impl RecordLayout for StateRecords {
    fn belongs_to(&self, key: &[u8], record: &[u8]) -> bool {
        belongs_to(key, record)
    }

    fn head_keys(&self) -> Vec<Vec<u8>> {
        ChainHead::keys().into()
    }

    fn head(&self, records: &[Vec<Vec<u8>>]) -> Option<String> {
        let [numbers, hash] = records else { return None };
        ChainHead::find([numbers, hash]).map(|head| head.to_string())
    }
}

/// Opens a database, as [`Live::open`] does, one of Ethereum's state with its layout of records.
///
/// # Errors
///
/// When a file is damaged or belongs to another database.
pub fn open_database(path: &Path, lanes: Lanes, most_taken_back: u64) -> Result<Live> {
    Ok(Live::open(path, lanes, most_taken_back)?.with_records(&StateRecords))
}

/// Returns the newest epoch of a database, and the block that it is of, if the state tells it.
pub fn newest(live: &Live) -> (u64, Option<ChainHead>) {
    let (epoch, head) = live.newest();
    (epoch, parsed(head))
}

/// Returns the blocks of all epochs that are known, from the newest back.
pub fn heads(live: &Live) -> Vec<(u64, Option<ChainHead>)> {
    live.heads().into_iter().map(|(epoch, head)| (epoch, parsed(head))).collect()
}

fn parsed(head: Option<String>) -> Option<ChainHead> {
    head?.parse().ok()
}
