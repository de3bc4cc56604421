//! What a scan keeps on disk: the map of what it covered, the address database, and the filters made from it.
//!
//! Knows numbers, digests and fixed-width records. Reads addresses through `warpsmith-chain`; knows no curve, no device
//! and no search. The formats are described in `docs/formats`.

mod database;
mod error;
mod filter;
mod input;
mod interval;
mod map;
mod mask;
mod order;
mod range;
mod record;
mod targets;

pub use database::{
    About, BuildOptions, Built, Database, Databases, Difference, Differences, Progress, Reader, ScriptCoins,
    Snapshot, Stage,
};
pub use error::Error;
pub use filter::{Choice, Filter, FilterPart, Fingerprints, Load, Width, choose};
pub use input::{BadLine, Block, Line, Report, address_column, read_blocks, read_line};
pub use interval::{Interval, IntervalSet, U256};
pub use map::{Batch, Gaps, Job, Map, MapFile, MergeError, Pieces, Planner, Source, Stretch, Targets};
pub use mask::{DigitMask, KeyMask, MaskError, TextMask};
pub use order::{Order, Pace};
pub use range::{RangeError, key_order, parse_range};
pub use record::{Record, key_of};
pub use targets::TargetList;
