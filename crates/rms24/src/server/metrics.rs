//! What the server counts. Nothing of it depends on what was asked for.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use warpsmith_http::ConnectionCounts;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Reason {
    Malformed,
    Slow,
    Large,
    Epoch,
    Rate,
    Busy,
    Token,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: Reason,
}

pub(super) struct Metrics {
    registry: Registry,
    pub(super) queries: Counter,
    pub(super) batches: Counter,
    pub(super) answer_seconds: Histogram,
    pub(super) streamed: Counter,
    pub(super) hint_requests: Counter,
    pub(super) connections: ConnectionCounts,
    refused: Family<RefusalLabels, Counter>,
    epoch: Gauge,
    elapsed: Gauge<f64, AtomicU64>,
    started: Instant,
}

impl Metrics {
    pub(super) fn new() -> Metrics {
        let mut all = Registry::default();
        let metrics = Metrics {
            queries: Counter::default(),
            batches: Counter::default(),
            answer_seconds: Histogram::new(exponential_buckets(1e-5, 2.0, 20)),
            streamed: Counter::default(),
            hint_requests: Counter::default(),
            connections: ConnectionCounts::default(),
            refused: Family::default(),
            epoch: Gauge::default(),
            elapsed: Gauge::default(),
            started: Instant::now(),
            registry: Registry::default(),
        };
        // What every command that runs for a while tells, by the same name.
        let since = "Seconds since the start";
        all.register("warpsmith_elapsed_seconds", since, metrics.elapsed.clone());
        let registry = all.sub_registry_with_prefix("warpsmith_pir");
        registry.register("queries", "Queries answered", metrics.queries.clone());
        registry.register("batches", "Requests with queries answered", metrics.batches.clone());
        registry.register("answer_seconds", "Time to answer a batch", metrics.answer_seconds.clone());
        registry.register("streamed_bytes", "Bytes of blocks offered", metrics.streamed.clone());
        registry.register("hint_requests", "Requests for hints fulfilled", metrics.hint_requests.clone());
        registry.register("connections", "Open connections", metrics.connections.open.clone());
        registry.register(
            "turned_away",
            "Connections over the limits",
            metrics.connections.turned_away.clone(),
        );
        registry.register("refused", "Requests refused", metrics.refused.clone());
        registry.register("epoch", "The newest epoch", metrics.epoch.clone());
        Metrics { registry: all, ..metrics }
    }

    pub(super) fn refuse(&self, reason: Reason) {
        self.refused.get_or_create(&RefusalLabels { reason }).inc();
    }

    /// The text for Prometheus.
    pub(super) fn text(&self, epoch: u64) -> String {
        self.epoch.set(epoch as i64);
        self.elapsed.set(self.started.elapsed().as_secs_f64());
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}
