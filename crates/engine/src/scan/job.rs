//! What a person asks of a scan.

use std::sync::Arc;
use std::time::Duration;

use warpsmith_store::KeyMask;

use super::ScanTargets;
use crate::run::pause::Pause;

/// What a person asked for.
///
/// See [`scan`](crate::scan()).
pub struct ScanJob<'a> {
    /// What is looked for.
    pub targets: &'a ScanTargets,
    /// Whose candidates the numbers of the map are, counted from 1; none where they are keys themselves.
    pub mask: Option<&'a Arc<KeyMask>>,
    /// Stop then.
    pub time_limit: Option<Duration>,
    /// Stop once so many are found. What was found with the last of them is told too: its keys count as covered, and nobody would
    /// find it again.
    pub count: Option<u64>,
    /// Stop when every address of a list is found, in this run or by the map in an earlier one.
    pub until_found: bool,
    /// How often progress is reported.
    pub interval: Duration,
    /// What holds it and lets it go on.
    pub pause: Option<&'a Pause>,
}

impl<'a> ScanJob<'a> {
    /// A scan that goes on to the end of its range and reports progress every second. Other wishes are said as
    /// `ScanJob { time_limit: Some(limit), ..ScanJob::new(&targets) }`.
    pub fn new(targets: &'a ScanTargets) -> ScanJob<'a> {
        let interval = Duration::from_secs(1);
        ScanJob {
            targets,
            mask: None,
            time_limit: None,
            count: None,
            until_found: false,
            interval,
            pause: None,
        }
    }
}
