//! What every command that runs for a while shares: devices, when to stop, where results go, how progress is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use warpsmith::devices::{CardOptions, Devices, Inline, Selector};
use warpsmith::proof::{Sample, distinct_samples, samples};

use crate::ending::Failure;
use crate::human;
use crate::metrics::Metrics;
use crate::screen::{Screen, ScreenFlags};
use crate::signals;
pub(crate) use crate::signals::interrupt;
use crate::telling::tell;

/// How a search or a scan runs.
#[derive(Args)]
pub(crate) struct RunFlags {
    /// Stop after this time: 90, 90s, 1.5m, 2h, 1d or 500ms
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    pub time_limit: Option<Duration>,

    #[command(flatten)]
    pub devices: DeviceFlags,

    /// Append results to FILE (created with mode 0600); secrets go there alone and stdout names the file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print results as JSON, one document per line
    #[arg(long)]
    pub json: bool,

    /// With --json: print progress on stdout as well, in this format
    #[arg(long, value_name = "FORMAT", requires = "json")]
    pub progress: Option<ProgressFormat>,

    /// Print nothing on stderr but warnings and errors
    #[arg(long)]
    pub quiet: bool,

    #[command(flatten)]
    pub screen: ScreenFlags,

    /// Where GET /metrics is answered, for Prometheus: an address and a port, as 127.0.0.1:9090
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,
}

impl RunFlags {
    /// Tells numbers where that was asked for.
    pub fn metrics(&self) -> Result<Option<Metrics>, Failure> {
        let Some((metrics, address)) = Metrics::at(self.metrics.as_deref())? else { return Ok(None) };
        if !self.quiet {
            tell(&format!("metrics: http://{address}/metrics"));
        }
        Ok(Some(metrics))
    }

    /// What shows how it goes.
    pub fn screen(&self) -> Screen {
        Screen::with(self.quiet, &self.screen)
    }

    /// How often progress is to be reported.
    pub fn interval(&self, screen: &Screen) -> Duration {
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

/// Which devices, for every command that uses them.
#[derive(Args)]
pub(crate) struct DeviceFlags {
    // Which names there are, the library says.
    #[arg(long, value_name = "SEL", help = device_help(), value_parser = selector)]
    device: Vec<Selector>,

    /// CPU worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = human::parse_threads)]
    pub threads: Option<usize>,

    /// Whether GPU kernels have their helper functions inlined: auto, yes or no. Out of line, AMD's compiler needs
    /// seconds instead of minutes, and the search is several times slower
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    inline: Inline,

    /// How long a launch on a GPU shall take, 1 to 1000 ms [default: 100]; 10 leaves a card that also draws a desktop fluent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    launch_ms: Option<u32>,
}

/// A device as a person names it.
fn selector(text: &str) -> Result<Selector, String> {
    text.parse::<Selector>().map_err(|why| format!("{why}; `warpsmith devices` lists what this machine has"))
}

fn device_help() -> String {
    format!(
        "Use this device: {}; repeatable [default: every GPU, and the CPU where it helps]",
        Selector::examples()
    )
}

impl DeviceFlags {
    /// Whether a person chose anything.
    pub fn is_given(&self) -> bool {
        !self.device.is_empty() || self.threads.is_some()
    }

    /// Threads of the processor.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }

    pub fn open(&self) -> Result<Devices, Failure> {
        // Drivers may bring handlers of their own.
        signals::hold()?;
        Ok(Devices::open_with(&self.device, self.threads, self.cards())?)
    }

    /// The same for a search: where no device is named the processor is there at once, and GPUs join it.
    pub fn open_at_once(&self) -> Result<Devices, Failure> {
        if !self.device.is_empty() {
            return self.open();
        }
        signals::hold()?;
        Ok(Devices::at_once(self.threads, self.cards()))
    }

    fn cards(&self) -> CardOptions {
        let mut cards = CardOptions::from(self.inline);
        cards.launch_ms = self.launch_ms.unwrap_or(cards.launch_ms);
        cards
    }
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

/// A device's share in a line of progress.
#[derive(Serialize)]
pub(crate) struct DeviceRate<'a> {
    id: &'a str,
    rate: f64,
}

pub(crate) fn device_rates(rates: &[(String, f64)]) -> Vec<DeviceRate<'_>> {
    rates.iter().map(|(id, rate)| DeviceRate { id, rate: *rate }).collect()
}
