//! What tables are built of: folders of extractors, dumps of nodes, accounts in CSV, made-up
//! states, and lines of keys and values.

mod accounts;
pub mod changes;
mod code_list;
mod dump;
mod folder;
mod lines;
mod state;
mod synthetic;

use std::path::Path;

use warpsmith_rms24::{Error, Result};

pub use self::accounts::Accounts;
pub use self::code_list::CodeList;
pub use self::dump::Dump;
pub use self::folder::{Folder, read_delta};
pub use self::lines::{Form, Pairs, is_not_text, quoted};
pub use self::state::{StateTable, build, plan};
pub use self::synthetic::Synthetic;

/// The record of a slot with its value the other way round: as files have it, and as databases do.
fn turned(record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    record[..32].reverse();
    record
}

/// How many records of this size a file has.
fn whole(path: &Path, length: u64, each: usize) -> Result<u64> {
    match length.is_multiple_of(each as u64) {
        true => Ok(length / each as u64),
        false => {
            let reason = format!("{length} bytes are not of records of {each}");
            Err(Error::format(path.display().to_string(), reason))
        }
    }
}
