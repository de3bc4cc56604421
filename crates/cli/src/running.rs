//! What every command that runs for a while shares: devices, when to stop, where results go, how progress is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use warpsmith::devices::{Devices, Selector};
use warpsmith::proof::{Sample, distinct_samples, samples};
use warpsmith::search::Ended;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::Failure;
use warpsmith_console::stderr::{report, verbose};
use warpsmith_console::{config, human, signals};

use crate::failures::OrFail as _;
use crate::metrics::Metrics;
use crate::screen::{LiveScreen, ScreenFlags};

/// The headings under which help lists flags.
pub(crate) const PATTERNS: &str = "Patterns";
pub(crate) const WHEN: &str = "When it ends";
pub(crate) const RESULTS: &str = "Results";
pub(crate) const MEANWHILE: &str = "While it runs";
pub(crate) const SCORES: &str = "Scores, in place of a pattern or beside one";
pub(crate) const CONTRACT: &str = "The contract";

/// How a search or a scan runs.
#[derive(Args)]
pub(crate) struct RunFlags {
    /// Stop after this time: 90, 90s, 1.5m, 2h, 1d or 500ms
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration, help_heading = WHEN)]
    pub time_limit: Option<Duration>,

    #[command(flatten)]
    pub devices: DeviceFlags,

    /// Append results to FILE (created with mode 0600); secrets go there alone and stdout names the file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, default_values_os = config::output(),
        hide_default_value = true, help_heading = RESULTS)]
    pub output: Option<PathBuf>,

    /// Print results as JSON, one document per line
    #[arg(short, long, help_heading = RESULTS)]
    pub json: bool,

    /// With --json: print progress on stdout as well, in this format
    #[arg(long, value_name = "FORMAT", requires = "json", help_heading = MEANWHILE)]
    pub progress: Option<ProgressFormat>,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long, help_heading = MEANWHILE)]
    pub quiet: bool,

    #[command(flatten)]
    pub screen: ScreenFlags,

    /// Where GET /metrics is answered, for Prometheus: an address and a port, as 127.0.0.1:9090
    #[arg(long, value_name = "ADDR", help_heading = MEANWHILE)]
    pub metrics: Option<String>,

    /// Run COMMAND with sh for each result, told what is public of it: $WARPSMITH_ADDRESS, _TARGET, _TYPE, _PATTERN, _PUBLIC_KEY, _SCORE, _SALT
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString, help_heading = MEANWHILE)]
    pub notify: Option<String>,
}

impl RunFlags {
    /// Tells numbers where that was asked for.
    pub fn metrics(&self) -> Result<Option<Metrics>, Failure> {
        let Some((metrics, address)) = Metrics::at(self.metrics.as_deref())? else { return Ok(None) };
        if !self.quiet {
            report(&format!("metrics: http://{address}/metrics"));
        }
        Ok(Some(metrics))
    }

    /// What shows how it goes.
    pub fn screen(&self) -> LiveScreen {
        LiveScreen::new(self.quiet, &self.screen)
    }

    /// How often progress is to be reported.
    pub fn interval(&self, screen: &LiveScreen) -> Duration {
        match self.progress {
            Some(_) => self.screen.progress_interval.unwrap_or(Duration::from_secs(1)),
            None => screen.interval(),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ProgressFormat {
    Json,
}

/// Opens the devices that flags and settings name.
pub(crate) trait OpenDevices {
    /// Opens the named devices; without any, every GPU or else the processor.
    fn open(&self) -> Result<Devices, Failure>;

    /// Opens the named devices; without any, the processor, for work that only processors do.
    fn open_processor(&self) -> Result<Devices, Failure>;

    /// Opens the named devices; without any, the processor at once, and GPUs join the search.
    fn open_at_once(&self) -> Result<Devices, Failure>;
}

impl OpenDevices for DeviceFlags {
    fn open(&self) -> Result<Devices, Failure> {
        // Drivers may bring handlers of their own.
        signals::hold()?;
        Ok(opened(Devices::open_with(self.selectors(), self.threads(), self.cards()).or_fail()?))
    }

    fn open_processor(&self) -> Result<Devices, Failure> {
        if !self.selectors().is_empty() {
            return self.open();
        }
        signals::hold()?;
        let processor = Devices::open_with(&[Selector::Cpu(None)], self.threads(), self.cards());
        Ok(opened(processor.or_fail()?))
    }

    fn open_at_once(&self) -> Result<Devices, Failure> {
        if !self.selectors().is_empty() {
            return self.open();
        }
        signals::hold()?;
        Ok(opened(Devices::at_once(self.threads(), self.cards())))
    }
}

/// Logs the devices of a run.
fn opened(devices: Devices) -> Devices {
    for (id, description) in devices.describe() {
        verbose(|| format!("device {id}: {description}"));
    }
    devices
}

/// Targets by name, for commands that run over all of them; none named are one for each program of devices. `besides` is a name that the command knows
/// too, and that is no target.
pub(crate) fn choose_samples(names: &[String], besides: &[&str]) -> Result<Vec<Sample>, Failure> {
    if names.is_empty() {
        return Ok(distinct_samples());
    }
    let samples = samples();
    let find = |name: &String| {
        samples.iter().find(|sample| sample.name == *name).copied().ok_or_else(|| {
            let known = samples.iter().map(|sample| sample.name).chain(besides.iter().copied());
            let known = known.collect::<Vec<_>>().join(", ");
            Failure::Usage(format!(
                "'{name}' is no target; give one of: {known}, or none for one of each program"
            ))
        })
    };
    names.iter().filter(|name| !besides.contains(&name.as_str())).map(find).collect()
}

/// What ended a search or a scan, as the last document says it.
pub(crate) fn ended_by(ended: Ended) -> &'static str {
    match ended {
        Ended::Count => "count",
        Ended::Exhausted => "exhausted",
        Ended::TimeLimit => "time_limit",
        Ended::Interrupted => "interrupted",
    }
}

/// A device's share in a line of progress.
#[derive(Serialize)]
pub(crate) struct DeviceRate<'a> {
    id: &'a str,
    rate: f64,
}

pub(crate) fn device_rates(rates: &[(String, f64)]) -> Vec<DeviceRate<'_>> {
    rates.iter().map(|(id, rate)| DeviceRate { id, rate: *rate }).collect()
}
