//! What a person sees on stderr during a search: what is searched for, how it goes, how it ended.
//!
//! On a terminal one line is redrawn in place; elsewhere a plain line appears every ten seconds. Never shows a
//! result or a secret. A stderr that cannot be written does not disturb the search.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use warpsmith::chain::Shown;
use warpsmith::search::{Ended, Outcome, Progress, Subject, Wanted, time_to};

use crate::human;
use crate::quest::Quest;
use crate::telling::{discreet, tell};

/// How often a plain line appears.
const PLAIN: Duration = Duration::from_secs(10);

/// A rate older than this says something about the time a search will take.
const SETTLED: Duration = Duration::from_millis(900);

pub(crate) struct Screen {
    quiet: bool,
    terminal: bool,
    /// Whether a live line is on the terminal now.
    drawn: bool,
    /// Whether the expected time has been told.
    forecast: bool,
    last_plain: Instant,
}

impl Screen {
    pub fn new(quiet: bool) -> Screen {
        // A dumb terminal cannot clear a line.
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = std::io::stderr().is_terminal() && !dumb;
        Screen { quiet, terminal, drawn: false, forecast: false, last_plain: Instant::now() }
    }

    /// How often the search should report.
    pub fn interval(&self) -> Duration {
        if self.terminal && !self.quiet { Duration::from_millis(200) } else { Duration::from_secs(1) }
    }

    /// Says what will be done.
    pub fn introduce(&mut self, quest: &Quest<'_>, wanted: &Wanted<'_>, devices: &[(String, String)]) {
        let target = quest.subject.target();
        let name = match target.variant() {
            Some(variant) => format!("{} ({variant})", target.name()),
            None => target.name().to_owned(),
        };
        match wanted {
            Wanted::Patterns(patterns) => {
                let what = match patterns.distinct_len() {
                    1 => format!("pattern {}", Shown(patterns.text(0))),
                    n => format!("any of {} patterns", human::count(n as f64)),
                };
                self.say(format_args!("target    {name}, {what}"));
                let difficulty = 1.0 / patterns.odds();
                let power = human::power_of_two(difficulty);
                self.say(format_args!("odds      1 in {} ({power})", human::count(difficulty)));
            }
            Wanted::Best { score, enough } => {
                let until = enough.map_or("until stopped".to_owned(), |enough| format!("until {enough}"));
                self.say(format_args!("target    {name}, the most {score}, {until}"));
            }
        }
        for (id, description) in devices {
            self.say(format_args!("device    {id}: {description}"));
        }
        match (quest.subject, quest.split) {
            (Subject::Key(_), Some(_)) => self.say(format_args!(
                "keys      mined from your public key: no private key is here; `warpsmith join` makes it of the result"
            )),
            (Subject::Key(_), None) => self.say(format_args!(
                "keys      the private key never leaves this machine; workers see public points only"
            )),
            (Subject::Salt(_), _) => {}
        }
    }

    /// Says how it goes.
    pub fn progress(&mut self, progress: &Progress, odds: f64) {
        if self.quiet {
            return;
        }
        if !self.forecast && progress.elapsed >= SETTLED && progress.rate > 0.0 {
            self.forecast = true;
            let wanted = progress.wanted.unwrap_or(1);
            let within = |share: f64| human::seconds(time_to(share, wanted, odds, progress.rate));
            let all =
                if wanted > 1 { format!("all {}: ", human::count(wanted as f64)) } else { String::new() };
            self.say(format_args!(
                "expected  {all}50 % within {}, 90 % within {}, at {}",
                within(0.5),
                within(0.9),
                human::rate(progress.rate)
            ));
        }
        self.live(&[&status(progress, true), &status(progress, false)]);
    }

    /// Shows how it goes: the first of these lines that fits, else what fits of the last.
    pub fn live(&mut self, lines: &[&str]) {
        let Some(last) = lines.last().filter(|_| !self.quiet) else { return };
        if self.terminal {
            let size = terminal_size::terminal_size_of(std::io::stderr());
            // The last column stays free: some terminals wrap as soon as it is filled.
            let room = size.map_or(80, |(width, _)| usize::from(width.0)).saturating_sub(1);
            let line = lines.iter().find(|line| line.len() <= room).unwrap_or(last);
            let line: String = line.chars().take(room).collect();
            let _ = write!(std::io::stderr(), "\r{}\x1b[K", discreet(&line));
            self.drawn = true;
        } else if self.last_plain.elapsed() >= PLAIN {
            self.last_plain = Instant::now();
            self.say(format_args!("{}", lines[0]));
        }
    }

    /// Makes room, if the live line is in the way of something else.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// Says what a person should know even if he asked for quiet.
    pub fn warn(&mut self, text: &str) {
        self.clear();
        tell(&format!("warning: {text}"));
    }

    /// Says what happened on the way.
    pub fn note(&mut self, text: &str) {
        self.clear();
        self.say(format_args!("{text}"));
    }

    /// Says how it ended.
    pub fn conclude(&mut self, outcome: &Outcome, odds: f64) {
        let tried = outcome.tried as f64;
        let elapsed = outcome.elapsed.as_secs_f64();
        let what = match (outcome.ended, outcome.matches) {
            (Ended::Count, _) => "done",
            (Ended::TimeLimit, _) => "time limit reached",
            (Ended::Exhausted, _) => "every candidate tested",
            (Ended::Interrupted, _) => "interrupted",
        };
        let matches = match outcome.matches {
            0 => {
                let chance = -f64::exp_m1(tried * f64::ln_1p(-odds));
                format!("no match (the chance of one was {})", human::percent(chance))
            }
            1 => "1 match".to_owned(),
            n => format!("{} matches", human::count(n as f64)),
        };
        let passed_over = match outcome.passed_over {
            0 => String::new(),
            n => format!(" ({} more passed over, as related to one of them)", human::count(n as f64)),
        };
        self.say(format_args!(
            "{what}: {matches}{passed_over}, {} tried ({}) in {}, {}",
            human::count(tried),
            human::power_of_two(tried),
            human::seconds(elapsed),
            human::rate(tried / elapsed.max(1e-9))
        ));
    }

    /// Says something, unless quiet was asked for.
    pub fn say(&mut self, line: std::fmt::Arguments<'_>) {
        if !self.quiet {
            self.clear();
            tell(&line.to_string());
        }
    }
}

/// `312.4 M/s, 2^31.2 tried (2,471,395,328), chance so far 12.3 %, 50 % in 3 min 20 s, 4 of 20 found`; the exact number on
/// wish. Chance and time are those of all that are wanted.
fn status(progress: &Progress, exact: bool) -> String {
    let tried = progress.tried as f64;
    let mut line = format!("{}, {} tried", human::rate(progress.rate), human::power_of_two(tried));
    if exact {
        line += &format!(" ({})", human::count(tried));
    }
    line += &format!(", chance so far {}", human::percent(progress.probability));
    if let Some(eta) = progress.eta_50 {
        line += &format!(", 50 % in {}", human::seconds(eta.as_secs_f64()));
    }
    if let Some(best) = progress.best {
        line += &format!(", best {best}");
    } else if let Some(wanted) = progress.wanted.filter(|wanted| *wanted > 1) {
        line +=
            &format!(", {} of {} found", human::count(progress.matches as f64), human::count(wanted as f64));
    } else if progress.matches > 0 {
        line += &format!(", {} found", human::count(progress.matches as f64));
    }
    line
}
