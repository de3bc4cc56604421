//! Metrics of the service, for Prometheus.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
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
use warpsmith::salts::SaltScheduler;

use warpsmith_console::exit::Failure;
use warpsmith_console::web;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    how: &'static str,
}

/// The metrics. Clones share them.
#[derive(Clone)]
pub(super) struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Outcome, Counter>,
    salts: Counter,
    seconds: Counter<f64, AtomicU64>,
    busy: Gauge,
    waiting: Gauge,
}

impl Metrics {
    pub fn new(scheduler: &SaltScheduler) -> Metrics {
        let mut registry = Registry::with_prefix("warpsmith_salts");
        let (requests, salts, seconds) = (Family::default(), Counter::default(), Counter::default());
        let (busy, waiting, rate) = (Gauge::default(), Gauge::default(), Gauge::<f64, AtomicU64>::default());
        registry.register("requests", "Requests, by how they ended", Family::clone(&requests));
        registry.register("tried", "Salts tried", salts.clone());
        registry.register("seconds", "Seconds of searching, of all requests", seconds.clone());
        registry.register("busy", "Requests that are searched for", busy.clone());
        registry.register("waiting", "Requests that wait", waiting.clone());
        registry.register("rate", "Salts a second of CREATE2, as measured at the start", rate.clone());
        // The plainest kind is first.
        rate.set(scheduler.rates().next().map_or(0.0, |(_, rate)| rate));
        Metrics { registry: Arc::new(registry), requests, salts, seconds, busy, waiting }
    }

    /// Counts a request that has ended.
    pub fn ended(&self, how: &'static str) {
        self.requests.get_or_create(&Outcome { how }).inc();
    }

    /// Counts a search that has ended.
    pub fn searched(&self, tried: u64, elapsed: Duration) {
        self.salts.inc_by(tried);
        self.seconds.inc_by(elapsed.as_secs_f64());
    }

    /// Updates the load.
    pub fn update(&self, scheduler: &SaltScheduler) {
        self.busy.set(scheduler.running() as i64);
        self.waiting.set(scheduler.waiting() as i64);
    }

    /// Returns the number of requests answered with a salt, or that there is none.
    pub fn answered(&self) -> u64 {
        ["found", "nothing"].map(|how| self.requests.get_or_create(&Outcome { how }).get()).iter().sum()
    }

    /// Serves them on this listener.
    pub fn serve(&self, listener: TcpListener) -> Result<(), Failure> {
        let registry = Arc::clone(&self.registry);
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let text = move || async move {
            let mut text = String::new();
            encode(&mut text, &registry).expect("writing to a string does not fail");
            ([(header::CONTENT_TYPE, kind)], text)
        };
        web::serve_monitoring(listener, Router::new().route("/metrics", get(text)))
    }
}
