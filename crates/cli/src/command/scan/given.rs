//! `warpsmith scan --keys FILE`: keys of a list instead of a range, to find out which of those one is responsible for are in use.

use std::path::Path;
use std::time::{Duration, Instant};

use warpsmith::Devices;
use warpsmith::scan::listed::{BadLine, Event, Job, Outcome, Progress, run};
use warpsmith::search::{self, Ended};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::Stdout;

use super::{Covered, Scan, described, progress_line, remarks};
use crate::failures::{IntoFailure as _, OrFail as _, failure_of};
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::{ProgressFormat, ended_by};
use crate::screen::LiveScreen;

/// Lines that are no keys and are shown, at most.
const MAX_BAD_LINES: u64 = 20;

impl Scan {
    /// Tests the keys of a list.
    pub(super) fn test_keys(&self, file: &str, stdout: Stdout) -> Result<ExitStatus, Failure> {
        self.refuse_of_keys()?;
        if file != "-" {
            // Before anything is said or made.
            let readable =
                std::fs::File::open(file).map_err(|error| format!("could not read {file}: {error}"));
            readable.map_err(|why| {
                Failure::Usage(format!("--keys: {why}; give the name of one that is there"))
            })?;
        }
        let mut screen = self.run.screen();
        let listed = self.database.is_empty().then(|| self.read_targets()).transpose()?;
        let (targets, remarks) = match listed {
            None => (self.open_databases(&Devices::cpu().or_fail()?, &mut screen)?, Vec::new()),
            Some((targets, list)) => (targets, remarks(&list.report)),
        };
        let encryption = self.recipient.open()?;
        let mut results = Results::open(stdout, self.run.output.as_deref(), self.run.json, encryption)?;
        results.notify(self.run.notify.as_deref());
        results.answer_with(self.asked()?);
        results.born(self.birthday.unwrap_or_default());
        remarks.iter().for_each(|line| screen.warn(line));
        screen.say(format_args!("targets   {}", described(&targets)[1]));
        let job = Job {
            file: Path::new(file),
            targets: &targets,
            threads: self.run.devices.thread_count(),
            count: self.count,
            time_limit: self.run.time_limit,
        };
        let (mut bad_lines, every, mut reported) = (0, self.run.interval(&screen), Instant::now());
        let outcome = run(&job, &*interrupt()?, &mut |event| {
            match event {
                Event::Found(found) => {
                    results.publish(found.into_iter().map(Deliverable::Finding).collect())?;
                    // The next block may be long in coming.
                    results.finish()?;
                }
                Event::BadLine(line, why) => {
                    bad_lines += 1;
                    self.report_bad_line(&mut screen, (line, &why), bad_lines)?;
                }
                Event::Progress(progress) => {
                    show_progress(&mut screen, progress);
                    if let (Some(ProgressFormat::Json), true) =
                        (self.run.progress, reported.elapsed() >= every)
                    {
                        reported = Instant::now();
                        let progress = scan_progress(progress);
                        results.stdout().progress_json(&progress_line(&progress))?;
                    }
                }
                _ => {}
            }
            Ok(())
        });
        screen.clear();
        let delivered = results.finish();
        let outcome = outcome.map_err(|error| match error {
            warpsmith::Error::Store(error) => failure_of("--keys", &error),
            error => error.into_failure(),
        })?;
        delivered?;
        self.conclude_keys(file, &outcome, &mut screen, &mut results)
    }

    fn report_bad_line(
        &self,
        screen: &mut LiveScreen,
        (line, why): (u64, &BadLine),
        count: u64,
    ) -> Result<(), Failure> {
        let text = format!("--keys, line {line}: {why}");
        if self.strict {
            return Err(Failure::Usage(text + "; without --strict such lines are counted"));
        }
        if count <= MAX_BAD_LINES {
            screen.warn(&text);
        }
        Ok(())
    }

    fn conclude_keys(
        &self,
        file: &str,
        outcome: &Outcome,
        screen: &mut LiveScreen,
        results: &mut Results,
    ) -> Result<ExitStatus, Failure> {
        let Outcome { ended, progress } = outcome;
        let Progress { tried, matches, repeated, bad_lines, .. } = *progress;
        if tried == 0 && *ended == Ended::Exhausted {
            return Err(Failure::Usage(format!(
                "--keys {file}: there is no key in it; each line is one: 64 hex digits, a WIF key or an nsec"
            )));
        }
        let seconds = progress.elapsed.as_secs_f64();
        let lines = match bad_lines {
            0 => String::new(),
            1 => ", 1 line is no key".to_owned(),
            n => format!(", {} lines are no keys", human::count(n as f64)),
        };
        let again = match repeated {
            0 => String::new(),
            n => format!(" ({} more on lines that repeat a key)", human::count(n as f64)),
        };
        screen.say(format_args!(
            "{} keys tested in {}, {}: {} found{again}{lines}",
            human::count(tried as f64),
            human::seconds(seconds),
            human::rate(tried as f64 / seconds.max(1e-9)),
            human::count(matches as f64)
        ));
        let (covered, elapsed_s, by) = (tried.to_string(), seconds, ended_by(*ended));
        results.stdout().done(self.run.json, &Covered { covered, matches, tried, elapsed_s, ended: by })?;
        Ok(match (ended, matches) {
            (Ended::Interrupted, _) => ExitStatus::Interrupted,
            (_, 0) => ExitStatus::NoMatch,
            _ => ExitStatus::Done,
        })
    }

    /// What a list of keys has no use for.
    fn refuse_of_keys(&self) -> Result<(), Failure> {
        let given = [("--map", self.map.is_some()), ("--random", self.random), ("--estimate", self.estimate)];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} is for ranges; a list of keys (--keys) is read once from its first line to its last. Leave it out"
            ))),
            None => Ok(()),
        }
    }
}

/// Progress through a list, of which a share has been read where its length is known.
fn scan_progress(progress: &Progress) -> search::Progress {
    let Progress { tried, matches, elapsed, share, .. } = *progress;
    let (seconds, share) = (elapsed.as_secs_f64(), share.unwrap_or(0.0).min(1.0));
    let rate = tried as f64 / seconds.max(1e-9);
    search::Progress {
        tried,
        rate,
        elapsed,
        matches,
        wanted: None,
        eta: Duration::try_from_secs_f64(seconds * (1.0 - share) / share).ok(),
        probability: None,
        best: None,
        coverage: Some(share),
        devices: vec![("cpu".to_owned(), rate)],
    }
}

fn show_progress(screen: &mut LiveScreen, progress: &Progress) {
    let tried = progress.tried as f64;
    let rate = human::rate(tried / progress.elapsed.as_secs_f64());
    screen.bar("keys of the list", progress.share, &format!("{} keys, {rate}", human::count(tried)));
}
