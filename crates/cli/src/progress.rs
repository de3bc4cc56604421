//! JSON documents of a search's progress and end, and its metrics.

use serde::Serialize;
use warpsmith::search::Progress;

use crate::metrics::{JobNumbers, Metrics};
use crate::running::{DeviceRate, device_rates};
use warpsmith_console::json;

/// The document of progress.
#[derive(Serialize)]
pub(crate) struct ProgressLine<'a> {
    event: &'static str,
    #[serde(serialize_with = "json::text")]
    tried: u64,
    rate: f64,
    elapsed_s: f64,
    #[serde(serialize_with = "json::seconds_if_any")]
    eta_50_s: Option<f64>,
    probability: f64,
    matches: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    devices: Vec<DeviceRate<'a>>,
}

impl<'a> From<&'a Progress> for ProgressLine<'a> {
    fn from(progress: &'a Progress) -> ProgressLine<'a> {
        ProgressLine {
            event: "progress",
            tried: progress.tried,
            rate: progress.rate,
            elapsed_s: progress.elapsed.as_secs_f64(),
            eta_50_s: progress.eta.map(|eta| eta.as_secs_f64()),
            probability: progress.probability.unwrap_or_default(),
            matches: progress.matches,
            count: progress.wanted,
            devices: device_rates(&progress.devices),
        }
    }
}

/// The last document of a search.
#[derive(Serialize)]
pub(crate) struct SearchSummary {
    pub matches: u64,
    /// Addresses tested, where they were tested here.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::text_if_any")]
    pub tried: Option<u64>,
    pub elapsed_s: f64,
    pub ended: &'static str,
    /// Patterns without a result, in a search for one of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

/// Updates the metrics of a search.
pub(crate) fn update_metrics(metrics: &Metrics, target: &str, progress: &Progress) {
    let numbers = JobNumbers {
        tried: progress.tried as f64,
        matches: progress.matches as f64,
        rate: progress.rate,
        ..JobNumbers::default()
    };
    metrics.run(target, &numbers, &progress.devices, progress.elapsed);
}
