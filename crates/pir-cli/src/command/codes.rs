//! What a database of contracts' codes has room for.

use clap::Args;
use warpsmith_console::human::whole;
use warpsmith_eth_state::CodeTable;

/// What a database of codes has room for.
#[derive(Args)]
pub(super) struct CodeFlags {
    /// Codes: leave room for so many more chunks of 4 KB; most codes have one to three
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..), default_value_t = CodeTable::USUAL.room)]
    codes_room: u64,

    /// Codes: the longest there may ever be; every look-up asks for as many chunks as that has
    #[arg(long, value_name = "BYTES", default_value_t = CodeTable::USUAL.longest, value_parser = whole::<u32>(1..=1 << 24))]
    code_size: u32,
}

impl CodeFlags {
    pub fn table(&self) -> CodeTable {
        CodeTable { room: self.codes_room, longest: self.code_size }
    }
}
