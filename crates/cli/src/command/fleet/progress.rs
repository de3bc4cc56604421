//! Progress of a fleet's job, made of its coordinator's status: for the screen, for programs and for Prometheus.

use std::time::Duration;

use serde::Serialize;
use warpsmith::fleet::duty::Found;
use warpsmith::fleet::net::status::{JobStatus, Status};
use warpsmith::search::{Progress, Wanted};
use warpsmith_console::exit::Failure;
use warpsmith_console::stdout::Stdout;

use crate::metrics::{JobNumbers, Metrics, RunnerNumbers};
use crate::screen::{LiveScreen, Model};

/// Workers that have a row of their own on the screen.
const MAX_WORKER_ROWS: usize = 8;

/// Presentation of one kind of job.
pub(crate) trait View {
    /// The live screen before anything is known.
    fn model(&self) -> Model;
    /// Adds to a result what workers are not told, such as the file with a contract's code.
    fn complete(&self, _found: &mut Found) {}
    /// Says what will be done, where there is no live screen.
    fn introduce(&self, screen: &mut LiveScreen);
    /// Shows progress to people.
    fn show(&self, progress: &JobProgress<'_>, screen: &mut LiveScreen);
    /// Prints progress for programs.
    fn print(&self, progress: &JobProgress<'_>, stdout: &mut Stdout) -> Result<(), Failure>;
}

/// A job's progress since this run of `submit` began.
pub(crate) struct JobProgress<'s> {
    pub status: &'s Status,
    pub job: Option<&'s JobStatus>,
    /// Candidates of units that were done in this run, and of those until the last match.
    pub tried: u64,
    pub tried_at_match: u64,
    pub matches: u64,
    pub elapsed: Duration,
}

/// A document of progress, with what only a fleet has.
#[derive(Serialize)]
pub(crate) struct FleetLine<T> {
    #[serde(flatten)]
    line: T,
    units: u64,
    workers: usize,
}

impl JobProgress<'_> {
    /// Whether the job waits for a worker.
    pub fn is_waiting(&self) -> bool {
        self.status.active == 0
    }

    /// Candidates a second of the devices that work at it, as they measured.
    fn rate(&self) -> f64 {
        self.job.map_or(0.0, |job| job.rate)
    }

    /// The fastest workers by name, and the sum of the others.
    fn workers(&self) -> Vec<(String, f64)> {
        let present = self.status.workers.iter().filter(|worker| !worker.away && worker.claimed > 0.0);
        let mut rates: Vec<_> = present.map(|worker| (worker.name.clone(), worker.claimed)).collect();
        rates.sort_by(|a, b| b.1.total_cmp(&a.1));
        if rates.len() > MAX_WORKER_ROWS {
            let others = rates.split_off(MAX_WORKER_ROWS);
            rates.push((format!("{} more", others.len()), others.iter().map(|(_, rate)| rate).sum()));
        }
        rates
    }

    /// Progress of a search.
    pub fn search(&self, wanted: &Wanted<'_>, count: u64) -> Progress {
        let best =
            matches!(wanted, Wanted::Best { .. }).then(|| self.job.and_then(|job| job.best).unwrap_or(0));
        let progress = Progress {
            tried: self.tried,
            rate: self.rate(),
            elapsed: self.elapsed,
            matches: self.matches,
            wanted: (count > 0).then_some(count),
            best,
            devices: self.workers(),
            ..Progress::default()
        };
        progress.with_odds(wanted.odds(best.unwrap_or(0)), self.tried_at_match)
    }

    /// Progress of a scan of so many keys.
    pub fn scan(&self, keys: f64) -> Progress {
        let (share, rate) = (self.job.and_then(|job| job.share).unwrap_or(0.0), self.rate());
        Progress {
            tried: self.tried,
            rate,
            elapsed: self.elapsed,
            coverage: Some(share),
            eta: Duration::try_from_secs_f64((1.0 - share).max(0.0) * keys / rate).ok(),
            matches: self.matches,
            devices: self.workers(),
            ..Progress::default()
        }
    }

    /// A document of progress.
    pub fn line<T: Serialize>(&self, line: T) -> FleetLine<T> {
        FleetLine { line, units: self.job.map_or(0, |job| job.units), workers: self.status.active }
    }
}

/// The numbers of a fleet, under the names of a search on one machine.
pub(crate) fn report_metrics(metrics: &Metrics, status: &Status) {
    for job in &status.jobs {
        let numbers = JobNumbers {
            tried: job.tried,
            matches: job.matches as f64,
            rate: job.rate,
            share: job.share,
            units: Some((job.units as f64, job.leased as f64)),
        };
        metrics.job(&job.id.short(), &numbers);
    }
    for worker in &status.workers {
        let more = [worker.tried, worker.z, worker.refused as f64, worker.seen_s];
        metrics.runner(&worker.name, &RunnerNumbers { rate: worker.claimed, worker: Some(more) });
    }
    metrics.elapsed(status.elapsed_s.unwrap_or_default());
}
