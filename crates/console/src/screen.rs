//! Progress, notes and warnings on stderr while a command works: a bar on a terminal, timestamped lines elsewhere.

use std::time::{Duration, Instant};

use crate::block::{Block, Looks};
use crate::stderr::{self, report};
use crate::times::Time;
use crate::{human, signals, terminal, times};

/// Default interval between progress lines.
pub const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Interval between frames on a terminal. A command that is done before the first leaves the terminal alone.
pub const FRAME_INTERVAL: Duration = Duration::from_millis(200);

/// Work whose progress is shown.
struct Work {
    label: String,
    /// When it began, and its share then.
    since: (Instant, f64),
}

/// Progress that is due to be shown.
pub struct Progress {
    /// The share that is done, 0 to 1; none if it is unknown.
    pub share: Option<f64>,
    /// The time left, and the caller's text.
    pub more: String,
}

/// Progress, notes and warnings of a command.
pub struct Screen {
    quiet: bool,
    is_terminal: bool,
    work: Option<Work>,
    /// When progress was shown last.
    shown: Instant,
    interval: Duration,
}

impl Screen {
    /// Creates a screen; `quiet` shows warnings only.
    pub fn new(quiet: bool) -> Screen {
        Screen::with_interval(quiet, LINE_INTERVAL)
    }

    /// Creates a screen with this interval between progress lines.
    pub fn with_interval(quiet: bool, interval: Duration) -> Screen {
        let is_terminal = terminal::can_draw();
        Screen { quiet, is_terminal, work: None, shown: Instant::now(), interval }
    }

    /// Returns how often work should report its progress.
    pub fn interval(&self) -> Duration {
        if self.can_draw() { FRAME_INTERVAL } else { self.interval.min(Duration::from_secs(1)) }
    }

    /// Returns whether progress is drawn on a terminal.
    pub fn can_draw(&self) -> bool {
        self.is_terminal && !self.quiet
    }

    /// Shows the progress of work: a share of 0 to 1 if it is known, with the time left, and further text.
    pub fn bar(&mut self, label: &str, share: Option<f64>, more: &str) {
        let Some(Progress { share, more }) = self.progress(label, share, more, false) else { return };
        if self.is_terminal {
            let looks = Looks::of_stderr();
            let (columns, _) = terminal::size();
            // Where a signal cannot be handled, the command itself says so.
            let _ = signals::hold();
            terminal::draw(Block::bar(label, share, &more, columns, looks).rows(columns, looks));
        } else {
            let share = share.map(|share| format!("{} ", human::percent(share))).unwrap_or_default();
            let more = if more.is_empty() { String::new() } else { format!(", {more}") };
            self.stamped(&format!("{share}{label}{more}"));
        }
    }

    /// Records the progress of work and returns it if it is due to be shown; with `always_last`, also when the work is done.
    pub fn progress(
        &mut self,
        label: &str,
        share: Option<f64>,
        more: &str,
        always_last: bool,
    ) -> Option<Progress> {
        if self.quiet {
            return None;
        }
        let share = share.map(|share| share.clamp(0.0, 1.0));
        let is_new = self.work.as_ref().is_none_or(|work| work.label != label);
        if is_new {
            self.work = Some(Work { label: label.to_owned(), since: (Instant::now(), share.unwrap_or(0.0)) });
        }
        let is_last = always_last && share == Some(1.0);
        // Work of unknown length may never report again.
        let is_only = self.is_terminal && is_new && share.is_none();
        let is_due = if self.is_terminal { self.shown.elapsed() >= FRAME_INTERVAL } else { self.is_time() };
        let work = self.work.as_ref().filter(|_| is_last || is_only || is_due)?;
        self.shown = Instant::now();
        let done = share.unwrap_or(0.0) - work.since.1;
        let left = work.since.0.elapsed().as_secs_f64() * (1.0 - share.unwrap_or(0.0)) / done;
        let left = (done > 0.0 && left.is_finite()).then(|| match left < 60.0 {
            true => format!("{} left", human::seconds(left)),
            false => format!("{} left, {}", human::seconds(left), times::by(&Time::now(), left)),
        });
        let more = [left.as_deref(), (!more.is_empty()).then_some(more)];
        Some(Progress { share, more: more.into_iter().flatten().collect::<Vec<_>>().join(", ") })
    }

    /// Ends the progress that is shown.
    pub fn clear(&mut self) {
        self.work = None;
        if self.is_terminal {
            terminal::clear();
        }
    }

    /// Prints a warning, also where `quiet`.
    pub fn warn(&mut self, text: &str) {
        stderr::warn(text);
    }

    /// Prints an event, unless `quiet`.
    pub fn note(&mut self, text: &str) {
        self.say(format_args!("{text}"));
    }

    /// Prints a message, unless `quiet`.
    pub fn say(&mut self, line: std::fmt::Arguments<'_>) {
        if !self.quiet {
            report(&line.to_string());
        }
    }

    /// Returns whether a progress line is due.
    pub fn is_time(&self) -> bool {
        // Reports come about this often, some a moment early.
        self.shown.elapsed() + Duration::from_millis(50) >= self.interval
    }

    /// Prints a line of progress with a timestamp, unless `quiet`.
    pub fn stamped(&mut self, text: &str) {
        self.shown = Instant::now();
        self.say(format_args!("{}  {text}", times::timestamp(&Time::now())));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
