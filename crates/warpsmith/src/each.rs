//! Searches for one result of every pattern.
//!
//! All patterns are searched for together. A pattern stays in the devices' filter for a while after its match, and more of its matches
//! are passed over; after about half as many matches as there are patterns left, the search goes on with those alone. So a
//! pattern that is found at once does not drown the others, and the devices are set up only a few times.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith_engine::{
    Devices, Ended, Event, Job as SearchJob, Match, Outcome, Pause, Progress, PublicKey, Subject, Wanted,
    run as search,
};
use warpsmith_pattern::{Options, Patterns, compile};

use crate::error::Result;
use crate::estimate::CollectorOdds;

/// A search for one result of every pattern.
///
/// See [`run`].
pub struct Job<'a> {
    /// What is searched: keys or salts, and their addresses.
    pub subject: Subject<'a>,
    /// The patterns.
    pub patterns: &'a Patterns,
    /// How the patterns were compiled.
    pub options: &'a Options,
    /// The public key to mine from, for results that are split keys.
    pub split: Option<PublicKey>,
    /// Time after which the search ends.
    pub time_limit: Option<Duration>,
    /// Interval between reports of progress.
    pub interval: Duration,
    /// Holds the search, and lets it continue.
    pub pause: Option<&'a Pause>,
}

impl<'a> Job<'a> {
    /// A search without a time limit that reports progress every second.
    pub fn new(subject: Subject<'a>, patterns: &'a Patterns, options: &'a Options) -> Job<'a> {
        let interval = Duration::from_secs(1);
        Job { subject, patterns, options, split: None, time_limit: None, interval, pause: None }
    }
}

/// Patterns, and which of them have a result.
///
/// See [`run`].
#[derive(Clone, Debug)]
pub struct PatternTracker {
    /// The odds of patterns without a result, by their texts.
    missing: HashMap<String, f64>,
    /// All texts, in the order given.
    order: Vec<String>,
    odds: CollectorOdds,
    missing_odds: CollectorOdds,
}

impl PatternTracker {
    /// Patterns of which none has a result. Equal ones count once.
    pub fn new(patterns: &Patterns) -> PatternTracker {
        let mut tracker = PatternTracker {
            missing: HashMap::new(),
            order: Vec::with_capacity(patterns.distinct_len()),
            odds: CollectorOdds::default(),
            missing_odds: CollectorOdds::default(),
        };
        for (index, odds) in patterns.distinct() {
            let text = patterns.text(index).to_owned();
            if tracker.missing.insert(text.clone(), odds).is_none() {
                tracker.order.push(text);
                tracker.odds.add(odds);
                tracker.missing_odds.add(odds);
            }
        }
        tracker
    }

    /// Returns the number of patterns.
    pub fn total(&self) -> u64 {
        self.order.len() as u64
    }

    /// Returns the number of patterns with a result.
    pub fn found(&self) -> u64 {
        self.total() - self.missing.len() as u64
    }

    /// Iterates over the patterns without a result, in the order given.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str).filter(|text| self.missing.contains_key(*text))
    }

    /// Returns the odds of all patterns.
    pub fn odds(&self) -> &CollectorOdds {
        &self.odds
    }

    /// Returns the odds of the patterns without a result.
    pub fn missing_odds(&self) -> &CollectorOdds {
        &self.missing_odds
    }

    /// Notes a match of this pattern. Returns whether it is the first.
    fn note(&mut self, pattern: Option<&str>) -> bool {
        let odds = pattern.and_then(|pattern| self.missing.remove(pattern));
        if let Some(odds) = odds {
            self.missing_odds.remove(odds);
        }
        odds.is_some()
    }

    /// Progress of the whole search, from that of a part of it and what came before.
    fn whole(&self, part: &Progress, (tried, elapsed): (u64, Duration)) -> Progress {
        let tried = part.tried + tried;
        let left = self.missing_odds.candidates_to(0.5) / part.rate;
        Progress {
            tried,
            elapsed: part.elapsed + elapsed,
            eta: (left.is_finite() && left < 1e18).then(|| Duration::from_secs_f64(left)),
            probability: Some(self.odds.probability(tried as f64)),
            matches: self.found(),
            wanted: Some(self.total()),
            ..part.clone()
        }
    }
}

/// Receives events, with the patterns as they are then; an error ends the search.
///
/// See [`run`].
pub type EventHandler<'h> = dyn FnMut(Event<'_, Match>, &PatternTracker) -> std::result::Result<(), Box<dyn StdError + Send + Sync>>
    + 'h;

/// Searches until every pattern has a result, the time is up, or `interrupt` is set. Returns the outcome, whose matches are those
/// that `on_event` received, and the patterns as they are then.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use warpsmith::each::{Job, run};
/// use warpsmith::pattern::{Options, compile};
/// use warpsmith::search::{Ended, Event, Subject};
/// use warpsmith::{Devices, npub};
///
/// let (npub, options) = (npub(), Options::default());
/// let patterns = compile(["q", "p", "..z"], &npub, &options)?;
/// let job = Job::new(Subject::Key(&npub), &patterns, &options);
/// let mut found = Vec::new();
/// let (outcome, patterns) = run(&job, &Devices::cpu()?, &AtomicBool::new(false), &mut |event, _| {
///     if let Event::Found(matches) = event {
///         found.extend(matches.into_iter().filter_map(|found| found.pattern().map(str::to_owned)));
///     }
///     Ok(())
/// })?;
/// found.sort();
/// assert_eq!(found, ["..z", "p", "q"]);
/// assert_eq!((outcome.ended, outcome.matches, patterns.missing().count()), (Ended::Count, 3, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When no device can be used, all are lost, or `on_event` fails.
pub fn run(
    job: &Job<'_>,
    devices: &Devices,
    interrupt: &AtomicBool,
    on_event: &mut EventHandler<'_>,
) -> Result<(Outcome, PatternTracker)> {
    let mut tracker = PatternTracker::new(job.patterns);
    let mut total: Option<Outcome> = None;
    loop {
        let before = total.as_ref().map_or((0, Duration::ZERO), |total| (total.tried, total.elapsed));
        let patterns = compile(tracker.missing(), job.subject.target(), job.options)?;
        let round = SearchJob {
            split: job.split,
            count: Some((tracker.missing.len() as u64 / 2).max(1)),
            time_limit: job.time_limit.map(|limit| limit.saturating_sub(before.1)),
            interval: job.interval,
            pause: job.pause,
            ..SearchJob::new(job.subject, Wanted::Patterns(&patterns))
        };
        let outcome = search(&round, devices, interrupt, &mut |event| match event {
            Event::Found(found) => {
                let first: Vec<Match> =
                    found.into_iter().filter(|found| tracker.note(found.pattern())).collect();
                on_event(Event::Found(first), &tracker)
            }
            Event::Progress(progress) => {
                on_event(Event::Progress(&tracker.whole(progress, before)), &tracker)
            }
            Event::Warning(text) => on_event(Event::Warning(text), &tracker),
            Event::Note(text) => on_event(Event::Note(text), &tracker),
        })?;
        let is_over = outcome.ended != Ended::Count || tracker.missing.is_empty();
        let sum = added(total, outcome);
        if is_over {
            return Ok((Outcome { matches: tracker.found(), ..sum }, tracker));
        }
        total = Some(sum);
    }
}

/// The outcome of two parts of a search.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npub;

    fn tracker(texts: &[&str]) -> PatternTracker {
        PatternTracker::new(&compile(texts, &npub(), &Options::default()).expect("patterns"))
    }

    #[test]
    fn equal_patterns_count_once_and_keep_their_order() {
        let mut tracker = tracker(&["qq", "p", "qq", "/^y/"]);
        assert_eq!((tracker.total(), tracker.found(), tracker.odds().count()), (3, 0, 3));
        assert_eq!(tracker.missing().collect::<Vec<_>>(), ["qq", "p", "/^y/"]);
        assert!(tracker.note(Some("p")) && !tracker.note(Some("p")) && !tracker.note(None));
        assert_eq!((tracker.found(), tracker.missing_odds().count(), tracker.odds().count()), (1, 2, 3));
        assert_eq!(tracker.missing().collect::<Vec<_>>(), ["qq", "/^y/"]);
    }

    #[test]
    fn progress_is_that_of_all_rounds() {
        let mut tracker = tracker(&["qq", "pp"]);
        tracker.note(Some("pp"));
        let part = Progress {
            tried: 1000,
            rate: 1000.0,
            elapsed: Duration::from_secs(1),
            eta: None,
            coverage: None,
            probability: None,
            matches: 7,
            wanted: Some(1),
            best: None,
            devices: Vec::new(),
        };
        let whole = tracker.whole(&part, (500, Duration::from_secs(2)));
        assert_eq!((whole.tried, whole.elapsed), (1500, Duration::from_secs(3)));
        assert_eq!((whole.matches, whole.wanted), (1, Some(2)));
        assert!((whole.probability.expect("known") - tracker.odds().probability(1500.0)).abs() < 1e-12);
        // One pattern of 10 bits is left, at 1000 candidates per second.
        let left = whole.eta.expect("finite").as_secs_f64();
        assert!((left / (1.024 * std::f64::consts::LN_2) - 1.0).abs() < 1e-2, "{left}");
    }

    #[test]
    fn patterns_without_a_result_are_named_when_the_time_is_up() {
        let (npub, options) = (npub(), Options::default());
        let patterns = compile(["q", "qqqqqqqqqqqqqqqqqqqq"], &npub, &options).expect("patterns");
        let time_limit = Some(Duration::from_secs(2));
        let job = Job { time_limit, ..Job::new(Subject::Key(&npub), &patterns, &options) };
        let devices = Devices::cpu().expect("a processor");
        let mut found = Vec::new();
        let ended = run(&job, &devices, &AtomicBool::new(false), &mut |event, tracker| {
            if let Event::Found(matches) = event {
                found.extend(matches.into_iter().map(|found| found.address));
                assert_eq!(tracker.found(), found.len() as u64);
            }
            Ok(())
        });
        let (outcome, tracker) = ended.expect("a search");
        assert_eq!((outcome.ended, outcome.matches, found.len()), (Ended::TimeLimit, 1, 1));
        assert_eq!(tracker.missing().collect::<Vec<_>>(), ["qqqqqqqqqqqqqqqqqqqq"]);
    }

    #[test]
    fn an_interrupt_ends_the_search() {
        let (npub, options) = (npub(), Options::default());
        let patterns = compile(["qqqqqqqqqqqqqqqqqqqq"], &npub, &options).expect("patterns");
        let job = Job::new(Subject::Key(&npub), &patterns, &options);
        let devices = Devices::cpu().expect("a processor");
        let (outcome, _) = run(&job, &devices, &AtomicBool::new(true), &mut |_, _| Ok(())).expect("a search");
        assert_eq!(outcome.ended, Ended::Interrupted);
    }
}
