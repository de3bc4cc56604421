//! What Prometheus is told of a search, a scan or a fleet: the same names for all of them. SEC: numbers, and names of jobs, devices
//! and workers; nothing of what was found.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use warpsmith_console::exit::Failure;
use warpsmith_console::web;

/// Whose numbers they are: a job by its name, or the command.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Of {
    job: String,
}

/// The same of one device of this machine, or one worker of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct By {
    by: String,
}

type Number = Gauge<f64, AtomicU64>;
type Count = Counter<f64, AtomicU64>;

/// How a job stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobNumbers {
    /// Candidates tried.
    pub tried: f64,
    /// Matches.
    pub matches: f64,
    /// Candidates a second.
    pub rate: f64,
    /// How much of it is done, where it has an end.
    pub share: Option<f64>,
    /// Units that are done, and those in somebody's hands, of a fleet.
    pub units: Option<(f64, f64)>,
}

/// How a device or a worker stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunnerNumbers {
    /// Candidates a second.
    pub rate: f64,
    /// Candidates that count, standard deviations of the shares, units refused and seconds since it was heard of: of a worker.
    pub worker: Option<[f64; 4]>,
}

/// What is told. Clones share it.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    tried: Family<Of, Count>,
    matches: Family<Of, Count>,
    rate: Family<Of, Number>,
    share: Family<Of, Number>,
    units: Family<Of, Count>,
    leased: Family<Of, Number>,
    runner_rate: Family<By, Number>,
    runner_tried: Family<By, Count>,
    share_z: Family<By, Number>,
    refused: Family<By, Count>,
    silent: Family<By, Number>,
    elapsed: Number,
}

impl Metrics {
    fn new() -> Metrics {
        let mut registry = Registry::with_prefix("warpsmith");
        let mut metrics = Metrics {
            registry: Arc::default(),
            tried: Family::default(),
            matches: Family::default(),
            rate: Family::default(),
            share: Family::default(),
            units: Family::default(),
            leased: Family::default(),
            runner_rate: Family::default(),
            runner_tried: Family::default(),
            share_z: Family::default(),
            refused: Family::default(),
            silent: Family::default(),
            elapsed: Number::default(),
        };
        registry.register("tried", "Candidates tried", metrics.tried.clone());
        registry.register("matches", "Matches found", metrics.matches.clone());
        registry.register("rate", "Candidates a second", metrics.rate.clone());
        registry.register("covered_ratio", "Done of a job that has an end, 0 to 1", metrics.share.clone());
        registry.register("units", "Units of a fleet's job that are done", metrics.units.clone());
        registry.register("units_leased", "Units in a worker's hands", metrics.leased.clone());
        registry.register(
            "runner_rate",
            "Candidates a second of a device or worker",
            metrics.runner_rate.clone(),
        );
        registry.register("runner_tried", "Candidates of a worker that count", metrics.runner_tried.clone());
        registry.register(
            "runner_share_z",
            "Standard deviations of a worker's shares",
            metrics.share_z.clone(),
        );
        registry.register("runner_refused", "Units of a worker that were refused", metrics.refused.clone());
        registry.register("runner_silent_seconds", "Since a worker was heard of", metrics.silent.clone());
        registry.register("elapsed_seconds", "Since the start", metrics.elapsed.clone());
        metrics.registry = Arc::new(registry);
        metrics
    }

    /// Tells them at this address, if one was given.
    pub fn at(address: Option<&str>) -> Result<Option<(Metrics, SocketAddr)>, Failure> {
        let Some(address) = address else { return Ok(None) };
        let (listener, address) = web::listen("--metrics", address)?;
        let metrics = Metrics::new();
        let told = metrics.clone();
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let router = Router::new()
            .route("/metrics", get(move || async move { ([(header::CONTENT_TYPE, kind)], told.text()) }))
            .route("/health", get(|| async { "ok\n" }));
        web::serve_monitoring(listener, router)?;
        Ok(Some((metrics, address)))
    }

    /// Since the start.
    pub fn elapsed(&self, seconds: f64) {
        self.elapsed.set(seconds);
    }

    /// How a job stands.
    pub fn job(&self, name: &str, numbers: &JobNumbers) {
        let of = Of { job: name.to_owned() };
        set(&self.tried.get_or_create(&of), numbers.tried);
        set(&self.matches.get_or_create(&of), numbers.matches);
        self.rate.get_or_create(&of).set(numbers.rate);
        if let Some(share) = numbers.share {
            self.share.get_or_create(&of).set(share);
        }
        if let Some((units, leased)) = numbers.units {
            set(&self.units.get_or_create(&of), units);
            self.leased.get_or_create(&of).set(leased);
        }
    }

    /// How a search or a scan of this machine stands.
    pub fn run(&self, name: &str, numbers: &JobNumbers, devices: &[(String, f64)], elapsed: Duration) {
        self.job(name, numbers);
        for (id, rate) in devices {
            self.runner(id, &RunnerNumbers { rate: *rate, worker: None });
        }
        self.elapsed(elapsed.as_secs_f64());
    }

    /// How a device or a worker stands.
    pub fn runner(&self, name: &str, numbers: &RunnerNumbers) {
        let by = By { by: name.to_owned() };
        self.runner_rate.get_or_create(&by).set(numbers.rate);
        if let Some([tried, z, refused, silent]) = numbers.worker {
            set(&self.runner_tried.get_or_create(&by), tried);
            self.share_z.get_or_create(&by).set(z);
            set(&self.refused.get_or_create(&by), refused);
            self.silent.get_or_create(&by).set(silent);
        }
    }

    /// The text for Prometheus.
    fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

/// Counts are kept elsewhere, and only told here.
fn set(count: &Count, value: f64) {
    count.inner().store(value.to_bits(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_scans_and_fleets_have_the_same_names() {
        let metrics = Metrics::new();
        let numbers =
            JobNumbers { tried: 1e12, matches: 2.0, rate: 5.5, share: Some(0.25), units: Some((7.0, 3.0)) };
        metrics.job("npub", &numbers);
        metrics.runner("cuda:0", &RunnerNumbers { rate: 9.0, worker: None });
        metrics.runner("rig-1", &RunnerNumbers { rate: 8.0, worker: Some([5.0, -1.5, 1.0, 2.5]) });
        metrics.elapsed(3.0);
        let text = metrics.text();
        for line in [
            "warpsmith_tried_total{job=\"npub\"} 1000000000000.0",
            "warpsmith_matches_total{job=\"npub\"} 2.0",
            "warpsmith_covered_ratio{job=\"npub\"} 0.25",
            "warpsmith_units_total{job=\"npub\"} 7.0",
            "warpsmith_runner_rate{by=\"cuda:0\"} 9.0",
            "warpsmith_runner_share_z{by=\"rig-1\"} -1.5",
            "warpsmith_elapsed_seconds 3.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
    }
}
