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
mod order;
mod range;
mod record;
mod targets;

pub use database::{
    About, BuildOptions, Built, Database, Databases, Difference, Differences, Progress, Reader, Snapshot,
    Stage,
};
pub use error::Error;
pub use filter::{Choice, Filter, FilterPart, Fingerprints, Load, Width, choose, key_of};
pub use input::{BadLine, Block, Line, Report, address_column, read_blocks, read_line};
pub use interval::{Interval, IntervalSet, U256};
pub use map::{Batch, Job, Map, MapFile, MergeError, Planner, Source, Stretch, Targets};
pub use order::Order;
pub use range::{RangeError, key_order, parse_range};
pub use record::Record;
pub use targets::TargetList;
