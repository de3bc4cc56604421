//! What a person sees on stderr while a command runs: how it goes, what happened, how it ended.
//!
//! On a terminal a block of rows is drawn again and again in its place (`live`): what is known is kept in a `model`, laid out by `drawing`,
//! and `keys` are listened to; `health` asks cards how they are. Elsewhere there are `plain` lines. Terminal, bar and messages are those
//! of `warpsmith_console`. Never shows a result's secret. A stderr that cannot be written does not disturb anything.

mod drawing;
mod health;
mod keys;
mod live;
mod model;
mod nvml;
mod plain;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use warpsmith::search::Progress;
use warpsmith_console::human;
use warpsmith_console::screen::{LINE_INTERVAL, Screen};

use live::Live;
pub(crate) use live::Reins;
pub(crate) use model::Model;
use model::Task;
pub(crate) use plain::{scan_model, search_model};

/// A rate older than this says something about the time a search will take.
const SETTLED: Duration = Duration::from_millis(900);

/// How progress is told.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct ScreenFlags {
    /// Where progress is told in lines: so often, as 1s, 1m or 500ms [default: 10s, and 1s with --progress json]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub progress_interval: Option<Duration>,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let time = human::parse_duration(text)?;
    match time >= Duration::from_millis(100) {
        true => Ok(time),
        false => Err("that is more often than anybody reads; give 100ms or more".to_owned()),
    }
}

/// Screen of a search or scan: live on a terminal, lines elsewhere.
pub(crate) struct LiveScreen {
    live: Option<Live>,
    screen: Screen,
    /// Whether the expected time has been told.
    forecast: bool,
}

impl LiveScreen {
    pub fn new(quiet: bool, flags: &ScreenFlags) -> LiveScreen {
        let interval = flags.progress_interval.unwrap_or(LINE_INTERVAL);
        LiveScreen { live: None, screen: Screen::with_interval(quiet, interval), forecast: false }
    }

    /// Returns how often a run should report.
    pub fn interval(&self) -> Duration {
        self.screen.interval()
    }

    /// Shows a run live, where that can be. From here on it must be told how the run goes.
    pub fn begin(&mut self, model: impl FnOnce() -> Model, reins: &Reins) {
        if self.screen.can_draw() {
            self.live = Live::start(model(), reins.clone());
        }
    }

    /// What is known of a run that is shown live.
    pub fn model(&self) -> Option<Arc<Mutex<Model>>> {
        self.live.as_ref().map(Live::shared)
    }

    /// Says how a search goes; `odds` are those of the next match.
    pub fn progress(&mut self, progress: &Progress, odds: f64) {
        match &self.live {
            Some(live) => live.model().search(progress, odds),
            None => {
                self.tell_forecast(progress, odds);
                if self.screen.is_time() {
                    self.screen.stamped(&plain::of_search(progress));
                }
            }
        }
    }

    /// The same of a search for one of each pattern, whose forecast is not that of so many matches of one kind: `all` are the seconds
    /// until each has one with 50 and 90 %.
    pub fn progress_of_each(&mut self, progress: &Progress, odds: f64, all: [f64; 2]) {
        match &self.live {
            Some(live) => live.model().search_each(progress, odds, all),
            None if self.screen.is_time() => self.screen.stamped(&plain::of_search(progress)),
            None => {}
        }
    }

    /// Says how a scan goes.
    pub fn scan_progress(&mut self, progress: &Progress) {
        match &self.live {
            Some(live) => live.model().scan(progress),
            None if self.screen.is_time() => self.screen.stamped(&plain::of_scan(progress)),
            None => {}
        }
    }

    /// Notes that something was found. SEC: its address and nothing else.
    pub fn found(&mut self, address: &str) {
        if let Some(live) = &self.live {
            live.model().found(address);
        }
    }

    /// Shows the progress of work that a run may have to wait for, as [`Screen::bar`] does.
    pub fn bar(&mut self, label: &str, share: Option<f64>, more: &str) {
        let Some(live) = &self.live else { return self.screen.bar(label, share, more) };
        if let Some(due) = self.screen.progress(label, share, more, true) {
            live.model().work(label, due.share, &due.more);
        }
    }

    /// Ends what is shown live.
    pub fn clear(&mut self) {
        self.live = None;
        self.screen.clear();
    }

    /// Prints a warning, also where quiet was asked for.
    pub fn warn(&mut self, text: &str) {
        self.screen.warn(text);
    }

    /// Shows an event, unless quiet was asked for.
    pub fn note(&mut self, text: &str) {
        match &self.live {
            // Lines have columns, and there are none here.
            Some(live) => live.model().note(&text.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => self.screen.note(text),
        }
    }

    /// Prints a message, unless quiet was asked for.
    pub fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.screen.say(line);
    }

    /// Whether there is a block that says what is searched.
    fn is_live(&self) -> bool {
        self.live.is_some()
    }
}

/// Notes when a map was saved.
pub(crate) fn note_saved(model: &Mutex<Model>) {
    model.lock().unwrap_or_else(PoisonError::into_inner).saved();
}
