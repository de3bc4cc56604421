//! What every command that runs for a while shares: devices, when to stop, where results go, how progress is told.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use warpsmith::devices::{CardOptions, Devices, Inline, Selector};
use warpsmith::proof::{Sample, distinct_samples, samples};
use warpsmith::search::Ended;

use crate::config;
use crate::ending::Failure;
use crate::human;
use crate::metrics::Metrics;
use crate::screen::{Screen, ScreenFlags};
use crate::signals;
pub(crate) use crate::signals::interrupt;
use crate::telling::{detail, tell};

/// The headings under which help lists flags.
pub(crate) const PATTERNS: &str = "Patterns";
pub(crate) const WHEN: &str = "When it ends";
pub(crate) const DEVICES: &str = "Devices";
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
    #[arg(short, long, value_name = "SEL", help = device_help(), value_parser = DeviceNames, hide_possible_values = true,
        help_heading = DEVICES)]
    device: Vec<Selector>,

    /// CPU worker threads [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = human::parse_threads, help_heading = DEVICES)]
    threads: Option<usize>,

    /// Whether GPU kernels have their helper functions inlined: auto, yes or no. Out of line, AMD's compiler needs
    /// seconds instead of minutes, and the search is several times slower
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true, help_heading = DEVICES,
        value_parser = inline_parser(), hide_possible_values = true)]
    inline: Inline,

    /// How long a launch on a GPU shall take, 1 to 1000 ms [default: 100]; 10 leaves a card that also draws a desktop fluent
    #[arg(long, value_name = "N", value_parser = human::whole(config::LAUNCH_MS), help_heading = DEVICES)]
    launch_ms: Option<u32>,
}

/// A device as a person names it. Completions propose the usual names; there are others, as of single cards.
#[derive(Clone)]
struct DeviceNames;

impl TypedValueParser for DeviceNames {
    type Value = Selector;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Selector, clap::Error> {
        let parse = |text: &str| {
            let refuse = |why| format!("{why}; `warpsmith devices` lists what this machine has");
            text.parse::<Selector>().map_err(refuse)
        };
        // Words for what is wrong as those of any function that reads a value.
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        static NAMES: LazyLock<String> = LazyLock::new(|| Selector::examples().replace(" or ", ", "));
        Some(Box::new(NAMES.split(", ").map(PossibleValue::new)))
    }
}

/// Whether helper functions are inlined: the library reads the words.
fn inline_parser() -> impl TypedValueParser<Value = Inline> {
    PossibleValuesParser::new(["auto", "yes", "no"]).try_map(|text| text.parse::<Inline>())
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
        self.threads().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }

    /// Threads that were asked for here, or else in the defaults.
    fn threads(&self) -> Option<usize> {
        self.threads.or(config::get().threads.value)
    }

    /// The devices that were named here, or else in the defaults.
    fn named(&self) -> &[Selector] {
        let default = config::get().device.value.as_deref().unwrap_or_default();
        if self.device.is_empty() { default } else { &self.device }
    }

    pub fn open(&self) -> Result<Devices, Failure> {
        // Drivers may bring handlers of their own.
        signals::hold()?;
        Ok(opened(Devices::open_with(self.named(), self.threads(), self.cards())?))
    }

    /// The same for what only processors do, where no device is named.
    pub fn open_processor(&self) -> Result<Devices, Failure> {
        if !self.named().is_empty() {
            return self.open();
        }
        signals::hold()?;
        let processor = "cpu".parse::<Selector>().expect("there is always one");
        Ok(opened(Devices::open_with(&[processor], self.threads(), self.cards())?))
    }

    /// The same for a search: where no device is named the processor is there at once, and GPUs join it.
    pub fn open_at_once(&self) -> Result<Devices, Failure> {
        if !self.named().is_empty() {
            return self.open();
        }
        signals::hold()?;
        Ok(opened(Devices::at_once(self.threads(), self.cards())))
    }

    fn cards(&self) -> CardOptions {
        let mut cards = CardOptions::from(self.inline);
        cards.launch_ms = self.launch_ms.or(config::get().launch_ms.value).unwrap_or(cards.launch_ms);
        cards
    }
}

/// Logs the devices of a run.
fn opened(devices: Devices) -> Devices {
    for (id, description) in devices.describe() {
        detail(|| format!("device {id}: {description}"));
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
