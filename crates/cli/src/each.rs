//! `--each`: a result for every pattern.
//!
//! All are searched for together. What was found stays in the filter for a while, and more of it is passed over; after about half as
//! many matches as there are patterns left, the search goes on with those alone. So a pattern that is found at once does not
//! drown the others, and the devices are set up anew only a few times.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith::Devices;
use warpsmith::pattern::{Patterns, compile};
use warpsmith::search::{Ended, Event, Job, Match, Outcome, Pause, Progress, Wanted, run};

use crate::ending::{Ending, Failure};
use crate::forecast::OddsOfEach;
use crate::human;
use crate::metrics::Metrics;
use crate::mining::{Mined, ProgressLine, tell_metrics};
use crate::quest::Quest;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{ProgressFormat, RunFlags, ended_by};
use crate::screen::Screen;

/// The patterns, and which of them have a result.
pub(crate) struct Each {
    /// The odds of those that have none yet, by their texts.
    open: HashMap<String, f64>,
    /// The same in the order given.
    order: Vec<String>,
    /// The odds of all.
    odds: OddsOfEach,
    /// The odds of those that have none yet.
    left: OddsOfEach,
}

/// What a search runs with.
pub(crate) struct Running<'a> {
    pub quest: &'a Quest<'a>,
    pub run: &'a RunFlags,
    pub devices: &'a Devices,
    pub interrupt: &'a AtomicBool,
    pub pause: &'a Pause,
    pub metrics: Option<Metrics>,
}

impl Each {
    pub fn new(patterns: &Patterns) -> Each {
        let mut each = Each {
            open: HashMap::new(),
            order: Vec::with_capacity(patterns.distinct_len()),
            odds: OddsOfEach::default(),
            left: OddsOfEach::default(),
        };
        for (index, odds) in patterns.distinct() {
            let text = patterns.text(index).to_owned();
            if each.open.insert(text.clone(), odds).is_none() {
                each.order.push(text);
                each.odds.add(odds);
                each.left.add(odds);
            }
        }
        each
    }

    /// How many patterns there are.
    pub fn total(&self) -> u64 {
        self.order.len() as u64
    }

    /// How many have a result.
    fn found(&self) -> u64 {
        self.total() - self.open.len() as u64
    }

    /// The odds of each.
    pub fn odds(&self) -> &OddsOfEach {
        &self.odds
    }

    /// Whether this is the first of its pattern.
    fn take(&mut self, found: &Match) -> bool {
        let odds = found.pattern().and_then(|pattern| self.open.remove(pattern));
        if let Some(odds) = odds {
            self.left.remove(odds);
        }
        odds.is_some()
    }

    /// Searches until each has a result, the time is up, or somebody ends it.
    pub fn run(
        mut self,
        with: &Running<'_>,
        mut results: Results,
        mut screen: Screen,
    ) -> Result<Ending, Failure> {
        let mut all: Option<Outcome> = None;
        let mut told = false;
        let outcome = loop {
            let before = all.as_ref().map_or((0, Duration::ZERO), |all| (all.tried, all.elapsed));
            let left: Vec<&String> = self.order.iter().filter(|text| self.open.contains_key(*text)).collect();
            let target = with.quest.subject.target();
            let patterns = compile(left, target, &with.quest.options)
                .map_err(|error| Failure::Usage(error.to_string()))?;
            let job = Job {
                split: with.quest.split,
                count: Some((self.open.len() as u64 / 2).max(1)),
                time_limit: with.run.time_limit.map(|limit| limit.saturating_sub(before.1)),
                interval: with.run.interval(&screen),
                pause: Some(with.pause),
                ..Job::new(with.quest.subject, Wanted::Patterns(&patterns))
            };
            let round = run(&job, with.devices, with.interrupt, &mut |event| {
                match event {
                    Event::Found(found) => {
                        let first: Vec<Match> = found.into_iter().filter(|found| self.take(found)).collect();
                        if let Some(last) = first.last() {
                            screen.found(&last.address);
                        }
                        results.publish(first.into_iter().map(Deliverable::Match).collect())?;
                        results.keep_ready()?;
                    }
                    Event::Progress(progress) => {
                        results.keep_ready()?;
                        let progress = self.whole(progress, before);
                        if let Some(metrics) = &with.metrics {
                            tell_metrics(metrics, target.name(), &progress);
                        }
                        match with.run.progress {
                            Some(ProgressFormat::Json) => {
                                results.stdout().progress_json(&ProgressLine::from(&progress))?;
                            }
                            None => self.show(&progress, &mut told, &mut screen),
                        }
                    }
                    Event::Warning(text) => screen.warn(&text),
                    Event::Note(text) => screen.note(&text),
                }
                Ok(())
            });
            let round = match round {
                Ok(round) => round,
                Err(error) => {
                    // However it ended, what was found is delivered.
                    screen.clear();
                    results.finish()?;
                    return Err(error.into());
                }
            };
            let is_over = round.ended != Ended::Count || self.open.is_empty();
            let whole = added(all.take(), round);
            if is_over {
                break whole;
            }
            all = Some(whole);
        };
        screen.clear();
        results.finish()?;
        let (found, missing) = (self.found(), self.open.len() as u64);
        screen.say(format_args!(
            "{} of {} patterns have a result, {} tried in {}",
            human::count(found as f64),
            human::count(self.total() as f64),
            human::count(outcome.tried as f64),
            human::seconds(outcome.elapsed.as_secs_f64())
        ));
        let how = Mined {
            matches: found,
            tried: Some(outcome.tried),
            elapsed_s: outcome.elapsed.as_secs_f64(),
            ended: ended_by(outcome.ended),
            missing: Some(missing),
        };
        results.stdout().done(with.run.json, &how)?;
        Ok(match (outcome.ended, found) {
            (Ended::Interrupted, _) => Ending::Interrupted,
            (_, 0) => Ending::NoMatch,
            _ => Ending::Done,
        })
    }

    /// How all of it goes, from how this part goes.
    fn whole(&self, part: &Progress, (tried, elapsed): (u64, Duration)) -> Progress {
        let tried = part.tried + tried;
        let left = self.left.tries_to(0.5) / part.rate;
        Progress {
            tried,
            elapsed: part.elapsed + elapsed,
            eta: (left.is_finite() && left < 1e18).then(|| Duration::from_secs_f64(left)),
            probability: Some(self.odds.chance(tried as f64)),
            matches: self.found(),
            wanted: Some(self.total()),
            ..part.clone()
        }
    }

    fn show(&self, progress: &Progress, told: &mut bool, screen: &mut Screen) {
        let rate = human::rate(progress.rate);
        if !*told && progress.rate > 0.0 {
            *told = true;
            let within = |share: f64| human::seconds(self.odds.tries_to(share) / progress.rate);
            screen.say(format_args!(
                "expected  a result for each: 50 % within {}, 90 % within {}, at {rate}",
                within(0.5),
                within(0.9)
            ));
        }
        let all = [0.5, 0.9].map(|share| self.left.tries_to(share) / progress.rate);
        screen.progress_of_each(progress, self.left.sum(), all);
    }
}

/// What two parts of a search did together.
fn added(before: Option<Outcome>, after: Outcome) -> Outcome {
    match before {
        None => after,
        Some(before) => Outcome {
            tried: before.tried + after.tried,
            matches: before.matches + after.matches,
            elapsed: before.elapsed + after.elapsed,
            ..after
        },
    }
}
