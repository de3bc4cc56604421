//! A search on this machine, and the reports of how it goes.

use std::sync::Arc;

use warpsmith::each::{self, PatternTracker};
use warpsmith::search::{Ended, Event, Job, Match, Outcome, Progress, Show, Subject, Wanted, run};

use super::{Mining, NOT_BEGUN, Plan};
use crate::estimates::Hopeless;
use crate::failures::{IntoFailure as _, OrFail as _};
use crate::metrics::Metrics;
use crate::progress::{ProgressLine, SearchSummary, update_metrics};
use crate::qr::Qr;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{OpenDevices as _, ProgressFormat, RunFlags, ended_by};
use crate::screen::{LiveScreen, Reins, search_model};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::signals::StartupGuard;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::Stdout;

impl Mining {
    /// Searches on this machine.
    pub(super) fn run_here(
        &self,
        plan: &Plan<'_>,
        qr: Option<Qr>,
        stdout: Stdout,
    ) -> Result<ExitStatus, Failure> {
        let (quest, wanted) = (plan.quest, plan.wanted());
        let hopeless = self.hopeless(plan)?;
        // In a search for each they are set up several times, so all of them are waited for.
        let devices = match plan.each {
            true => self.run.devices.open()?,
            false => self.run.devices.open_at_once()?,
        };
        let mut screen = self.run.screen();
        let encryption = self.encrypt.open()?;
        if let (Subject::Key(target), Some(encryption)) = (quest.subject, &encryption)
            && let Some(caution) = self.encrypt.caution(target, encryption)
        {
            screen.warn(&caution);
        }
        let mut results =
            Results::open(stdout, self.run.output.as_deref(), self.run.json, encryption)?.with_codes(qr);
        quest.prepare()?;
        results.notify(self.run.notify.as_deref());
        results.name_patterns(plan.names_patterns);
        results.keep_brief(matches!(wanted, Wanted::Best { show: Show::Better | Show::Ties, .. }));
        let interrupt = interrupt()?;
        let metrics = self.run.metrics()?;
        let reins = Reins { interrupt: Arc::clone(&interrupt), pause: Arc::default() };
        if self.run.progress.is_none() {
            let output = self.run.output.as_ref().map(|path| path.display().to_string());
            screen.begin(|| search_model(quest, &wanted, devices.describe(), output), &reins);
        }
        screen.introduce(quest, &wanted, &devices.describe());
        for line in hopeless.iter().flat_map(Hopeless::warning) {
            screen.say(format_args!("{line}"));
        }
        let (split, time_limit, pause) = (quest.split, self.run.time_limit, Some(&*reins.pause));
        let interval = self.run.interval(&screen);
        let mut reporter = Reporter { plan, flags: &self.run, metrics, results, screen, told: false };
        let (outcome, tracker) = if let Some(patterns) = plan.patterns_of_each() {
            let job = each::Job::new(quest.subject, patterns, &quest.options);
            let job = each::Job { split, time_limit, interval, pause, ..job };
            let ended = each::run(&job, &devices, &interrupt, &mut |event, tracker| {
                Ok(reporter.report(event, Some(tracker))?)
            });
            match ended {
                Ok((outcome, tracker)) => (Ok(outcome), Some(tracker)),
                Err(error) => (Err(error.into_failure()), None),
            }
        } else {
            let count = (plan.count > 0).then_some(plan.count);
            let job = Job { split, count, time_limit, interval, pause, ..Job::new(quest.subject, wanted) };
            let mut starting = Some(StartupGuard::new(self.run.quiet, NOT_BEGUN));
            let outcome = run(&job, &devices, &interrupt, &mut |event| {
                if let Event::Found(_) | Event::Progress(_) = event {
                    starting = None;
                }
                Ok(reporter.report(event, None)?)
            });
            drop(starting);
            (outcome.or_fail(), None)
        };
        reporter.conclude(outcome, tracker.as_ref())
    }
}

/// Reports a search to the screen, stdout, metrics and the user's command.
struct Reporter<'a> {
    plan: &'a Plan<'a>,
    flags: &'a RunFlags,
    metrics: Option<Metrics>,
    results: Results,
    screen: LiveScreen,
    /// Whether the expected times of a search for each were shown.
    told: bool,
}

impl Reporter<'_> {
    /// Reports an event; of a search for each, with the patterns as they are.
    fn report(&mut self, event: Event<'_, Match>, tracker: Option<&PatternTracker>) -> Result<(), Failure> {
        match event {
            Event::Found(found) => self.found(found, tracker.is_some()),
            Event::Progress(progress) => {
                self.results.keep_ready()?;
                let target = self.plan.quest.subject.target();
                if let Some(metrics) = &self.metrics {
                    update_metrics(metrics, target.name(), progress);
                }
                match (self.flags.progress, tracker) {
                    (Some(ProgressFormat::Json), _) => {
                        self.results.stdout().progress_json(&ProgressLine::from(progress))?;
                    }
                    (None, Some(tracker)) => self.show_each(progress, tracker),
                    (None, None) => {
                        let odds = self.plan.wanted().odds(progress.best.unwrap_or(0));
                        self.screen.progress(progress, odds);
                    }
                }
                Ok(())
            }
            Event::Warning(text) => {
                self.screen.warn(&text);
                Ok(())
            }
            Event::Note(text) => {
                self.screen.note(&text);
                Ok(())
            }
        }
    }

    fn found(&mut self, found: Vec<Match>, is_each: bool) -> Result<(), Failure> {
        let best = found.last().and_then(Match::score);
        if let Some(last) = found.last() {
            self.screen.found(&last.address);
        }
        self.results.publish(found.into_iter().map(Deliverable::Match).collect())?;
        let is_enough = match self.plan.wanted() {
            _ if is_each => false,
            Wanted::Best { enough: Some(enough), .. } if best >= Some(enough) => true,
            _ => self.results.taken() == self.plan.count,
        };
        if is_enough { Ok(()) } else { self.results.keep_ready() }
    }

    /// Shows the progress of a search for each.
    fn show_each(&mut self, progress: &Progress, tracker: &PatternTracker) {
        if !self.told && progress.rate > 0.0 {
            self.told = true;
            let within = |share: f64| human::seconds(tracker.odds().candidates_to(share) / progress.rate);
            self.screen.say(format_args!(
                "expected  a result for each: 50 % within {}, 90 % within {}, at {}",
                within(0.5),
                within(0.9),
                human::rate(progress.rate)
            ));
        }
        let missing = tracker.missing_odds();
        let all = [0.5, 0.9].map(|share| missing.candidates_to(share) / progress.rate);
        self.screen.progress_of_each(progress, missing.sum(), all);
    }

    /// Reports the end of the search. However it ended, what was found is delivered.
    fn conclude(
        mut self,
        outcome: Result<Outcome, Failure>,
        tracker: Option<&PatternTracker>,
    ) -> Result<ExitStatus, Failure> {
        self.screen.clear();
        let delivered = self.results.finish();
        let outcome = outcome?;
        delivered?;
        match tracker {
            Some(tracker) => self.screen.say(format_args!(
                "{} of {} patterns have a result, {} tried in {}",
                human::count(tracker.found() as f64),
                human::count(tracker.total() as f64),
                human::count(outcome.tried as f64),
                human::seconds(outcome.elapsed.as_secs_f64())
            )),
            None => self.screen.conclude(&outcome, self.plan.wanted().odds(0)),
        }
        let summary = SearchSummary {
            matches: outcome.matches,
            tried: Some(outcome.tried),
            elapsed_s: outcome.elapsed.as_secs_f64(),
            ended: ended_by(outcome.ended),
            missing: tracker.map(|tracker| tracker.total() - tracker.found()),
        };
        self.results.stdout().done(self.flags.json, &summary)?;
        Ok(match (outcome.ended, outcome.matches) {
            (Ended::Interrupted, _) => ExitStatus::Interrupted,
            (Ended::TimeLimit | Ended::Exhausted, 0) => ExitStatus::NoMatch,
            (Ended::TimeLimit | Ended::Exhausted | Ended::Count, _) => ExitStatus::Done,
        })
    }
}
