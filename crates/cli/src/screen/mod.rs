//! What a person sees on stderr while a command runs: how it goes, what happened, how it ended.
//!
//! On a terminal a block of rows is drawn again and again in its place (`live`): what is known is kept in a `model`, laid out by `drawing`,
//! put on the `terminal`, and `keys` are listened to; `health` asks cards how they are. Shorter work has a bar. Elsewhere there are `plain`
//! lines. Never shows a result's secret. A stderr that cannot be written does not disturb anything.

mod drawing;
mod health;
mod keys;
mod live;
mod model;
mod plain;
pub(crate) mod terminal;
mod times;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Zoned;
use warpsmith::search::Progress;

use crate::colour;
use crate::human;
use crate::telling::tell;
use drawing::{Block, Looks};
pub(crate) use live::Reins;
use live::{FRAME, Live};
pub(crate) use model::Model;
use model::Task;
pub(crate) use plain::{scan_model, search_model};

/// How often a plain line appears, unless somebody says otherwise.
const PLAIN: Duration = Duration::from_secs(10);

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

/// Work of which is known how much there is.
struct Bar {
    label: String,
    /// When it began, and what was done then.
    since: (Instant, f64),
}

pub(crate) struct Screen {
    quiet: bool,
    terminal: bool,
    live: Option<Live>,
    bar: Option<Bar>,
    /// When a bar was drawn, or a plain line written.
    shown: Instant,
    every: Duration,
    /// Whether the expected time has been told.
    forecast: bool,
}

impl Screen {
    pub fn new(quiet: bool) -> Screen {
        Screen::with(quiet, &ScreenFlags::default())
    }

    /// With a say in how often lines appear.
    pub fn with(quiet: bool, flags: &ScreenFlags) -> Screen {
        Screen {
            quiet,
            terminal: terminal::can_draw(),
            live: None,
            bar: None,
            shown: Instant::now(),
            every: flags.progress_interval.unwrap_or(PLAIN),
            forecast: false,
        }
    }

    /// How often a run should report.
    pub fn interval(&self) -> Duration {
        let plain = self.every.min(Duration::from_secs(1));
        if self.terminal && !self.quiet { FRAME } else { plain }
    }

    /// Shows a run live, where that can be. From here on it must be told how the run goes.
    pub fn begin(&mut self, model: impl FnOnce() -> Model, reins: &Reins) {
        if self.terminal && !self.quiet {
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
                if self.is_time() {
                    self.stamped(&plain::of_search(progress));
                }
            }
        }
    }

    /// The same of a search for one of each pattern, whose forecast is not that of so many matches of one kind: `all` are the seconds
    /// until each has one with 50 and 90 %.
    pub fn progress_of_each(&mut self, progress: &Progress, odds: f64, all: [f64; 2]) {
        match &self.live {
            Some(live) => live.model().search_each(progress, odds, all),
            None if self.is_time() => self.stamped(&plain::of_search(progress)),
            None => {}
        }
    }

    /// Says how a scan goes.
    pub fn scan_progress(&mut self, progress: &Progress) {
        match &self.live {
            Some(live) => live.model().scan(progress),
            None if self.is_time() => self.stamped(&plain::of_scan(progress)),
            None => {}
        }
    }

    /// Notes that something was found. SEC: its address and nothing else.
    pub fn found(&mut self, address: &str) {
        if let Some(live) = &self.live {
            live.model().found(address);
        }
    }

    /// Shows how far work is, also such that a run has to wait for: a share of 0 to 1 if that is known, with the time that is left, and what else is worth saying.
    pub fn bar(&mut self, label: &str, share: Option<f64>, more: &str) {
        if self.quiet {
            return;
        }
        let share = share.map(|share| share.clamp(0.0, 1.0));
        let is_new = self.bar.as_ref().is_none_or(|bar| bar.label != label);
        if is_new {
            self.bar = Some(Bar { label: label.to_owned(), since: (Instant::now(), share.unwrap_or(0.0)) });
        }
        let is_due = self.live.is_some() && share == Some(1.0);
        // Of what cannot be measured nobody may tell more.
        let is_due = is_due || (self.terminal && is_new && share.is_none());
        let is_time = is_due || if self.terminal { self.shown.elapsed() >= FRAME } else { self.is_time() };
        let Some(bar) = self.bar.as_ref().filter(|_| is_time) else { return };
        self.shown = Instant::now();
        let done = share.unwrap_or(0.0) - bar.since.1;
        let left = bar.since.0.elapsed().as_secs_f64() * (1.0 - share.unwrap_or(0.0)) / done;
        let left = (done > 0.0 && left.is_finite()).then(|| match left < 60.0 {
            true => format!("{} left", human::seconds(left)),
            false => format!("{} left, {}", human::seconds(left), times::by(&Zoned::now(), left)),
        });
        let more = [left.as_deref(), (!more.is_empty()).then_some(more)];
        let more = more.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if let Some(live) = &self.live {
            live.model().work(label, share, &more);
        } else if self.terminal {
            let looks = Looks { colours: colour::on_stderr(), unicode: terminal::knows_unicode() };
            let (columns, _) = terminal::size();
            terminal::draw(Block::bar(label, share, &more, columns, looks).rows(columns, looks));
        } else {
            let share = share.map(|share| format!("{} ", human::percent(share))).unwrap_or_default();
            let more = if more.is_empty() { String::new() } else { format!(", {more}") };
            self.stamped(&format!("{share}{label}{more}"));
        }
    }

    /// Ends what is shown live.
    pub fn clear(&mut self) {
        (self.live, self.bar) = (None, None);
        if self.terminal {
            terminal::clear();
        }
    }

    /// Says what a person should know even if he asked for quiet.
    pub fn warn(&mut self, text: &str) {
        tell(&format!("warning: {text}"));
    }

    /// Says what happened on the way.
    pub fn note(&mut self, text: &str) {
        match &self.live {
            // Lines have columns, and there are none here.
            Some(live) => live.model().note(&text.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => self.say(format_args!("{text}")),
        }
    }

    /// Says something, unless quiet was asked for.
    pub fn say(&mut self, line: std::fmt::Arguments<'_>) {
        if !self.quiet {
            tell(&line.to_string());
        }
    }

    /// Whether there is a block that says what is searched.
    fn is_live(&self) -> bool {
        self.live.is_some()
    }

    fn is_time(&self) -> bool {
        // Reports come about so often, some a moment early.
        self.shown.elapsed() + Duration::from_millis(50) >= self.every
    }

    /// A line with the time before it.
    fn stamped(&mut self, text: &str) {
        self.shown = Instant::now();
        self.say(format_args!("{}  {text}", times::stamp(&Zoned::now())));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Notes when a map was saved.
pub(crate) fn note_saved(model: &Mutex<Model>) {
    model.lock().unwrap_or_else(PoisonError::into_inner).saved();
}
