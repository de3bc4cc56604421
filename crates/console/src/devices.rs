//! Flags that select devices.

use std::sync::LazyLock;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use warpsmith_device::{CardOptions, Inline, Selector};

use crate::{config, human, program_name};

/// Heading of these flags in help.
const HEADING: &str = "Devices";

/// Flags that select devices and say how they are used; settings are their defaults.
#[derive(Args)]
pub struct DeviceFlags {
    #[arg(short, long, value_name = "SEL", help = device_help(), value_parser = DeviceNames, hide_possible_values = true,
        help_heading = HEADING)]
    device: Vec<Selector>,

    /// CPU worker threads [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = human::parse_threads, help_heading = HEADING)]
    threads: Option<usize>,

    /// Whether GPU kernels have their helper functions inlined: auto, yes or no. Out of line, AMD's compiler needs
    /// seconds instead of minutes, and the search is several times slower
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true, help_heading = HEADING,
        value_parser = inline_parser(), hide_possible_values = true)]
    inline: Inline,

    /// Target duration of a GPU launch, 1 to 1000 ms [default: 100]; 10 keeps the desktop responsive
    #[arg(long, value_name = "N", value_parser = human::whole(config::LAUNCH_MS), help_heading = HEADING)]
    launch_ms: Option<u32>,
}

/// Parser of selectors. Completions propose the usual names; there are others, as of single cards.
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
            let refuse = |why| format!("{why}; `{} devices` lists what this machine has", program_name());
            text.parse::<Selector>().map_err(refuse)
        };
        // Errors in the form of any value parser.
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        static NAMES: LazyLock<String> = LazyLock::new(|| Selector::examples().replace(" or ", ", "));
        Some(Box::new(NAMES.split(", ").map(PossibleValue::new)))
    }
}

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
    /// Returns whether the flags choose devices or threads.
    pub fn is_given(&self) -> bool {
        !self.device.is_empty() || self.threads.is_some()
    }

    /// Returns the number of CPU threads: as asked for, or one for each core.
    pub fn thread_count(&self) -> usize {
        self.threads().unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }

    /// Returns the number of CPU threads asked for, by the flag or the settings.
    pub fn threads(&self) -> Option<usize> {
        self.threads.or(config::get().threads.value)
    }

    /// Returns the devices named by the flag, or else by the settings.
    pub fn selectors(&self) -> &[Selector] {
        let default = config::get().device.value.as_deref().unwrap_or_default();
        if self.device.is_empty() { default } else { &self.device }
    }

    /// Returns how GPUs are used.
    pub fn cards(&self) -> CardOptions {
        let mut cards = CardOptions::from(self.inline);
        cards.launch_ms = self.launch_ms.or(config::get().launch_ms.value).unwrap_or(cards.launch_ms);
        cards
    }
}
