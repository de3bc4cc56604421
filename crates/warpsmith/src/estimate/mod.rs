//! Estimates: how long a search or a scan takes, and what would be feasible instead.
//!
//! Everything here is plain data computed from odds and a rate in candidates per second. [`Mine::estimate`](crate::Mine::estimate)
//! and [`Scan::estimate`](crate::scan::Scan::estimate) measure the rate on the devices first.

mod collector;
mod scan;

use std::f64::consts::LN_2;

use warpsmith_chain::Target;
use warpsmith_engine::{Wanted, time_to};
use warpsmith_pattern::{Options, Patterns, Ranking, compile};

pub use collector::CollectorOdds;
pub use scan::{ScanEstimate, ScanTooLong, scan_rate};

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;

/// Seconds of a year.
pub const YEAR: f64 = 365.25 * DAY;

/// Candidates per second that every machine exceeds. Work that fits a year at this rate needs no measurement.
pub const MIN_RATE: f64 = 1e6;

/// Longest median of a score that [`score_times`] lists, after the first.
const MAX_SCORE_TIME: f64 = 100.0 * YEAR;

/// Highest score up to which each is listed; above it only those that take noticeably longer than the one before.
const MAX_LISTED_SCORE: u32 = 50;

/// The matches a search waits for, and their odds.
///
/// ```
/// use warpsmith::estimate::Goal;
/// use warpsmith::npub;
/// use warpsmith::pattern::{Options, compile};
///
/// let patterns = compile(["qqq", "ppp"], &npub(), &Options::default())?;
/// let goal = Goal::each(&patterns);
/// assert_eq!((goal.count(), goal.odds()), (2, 2.0 / 32_768.0));
/// // Half of such searches end within this many seconds at a million candidates per second.
/// assert!((0.03..0.05).contains(&goal.time_to(0.5, 1e6)));
/// assert!(!goal.may_exceed_a_year());
/// # Ok::<(), warpsmith::pattern::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Goal {
    /// A number of matches.
    Matches {
        /// The odds of a match.
        odds: f64,
        /// How many matches.
        count: u64,
    },
    /// One match of each pattern.
    Each {
        /// The odds of a match of any pattern.
        odds: f64,
        /// The odds of each pattern.
        patterns: CollectorOdds,
    },
}

impl Goal {
    /// So many matches, or the first one. In a search for the best, the score that ends it, or any.
    pub fn matches(wanted: Wanted<'_>, count: Option<u64>) -> Goal {
        match wanted {
            Wanted::Best { ranking, enough: Some(enough), .. } => {
                Goal::Matches { odds: ranking.odds(enough), count: 1 }
            }
            _ => Goal::Matches { odds: wanted.odds(0), count: count.unwrap_or(1).max(1) },
        }
    }

    /// One match of each pattern.
    pub fn each(patterns: &Patterns) -> Goal {
        Goal::Each { odds: patterns.odds(), patterns: patterns.distinct().map(|(_, odds)| odds).collect() }
    }

    /// Returns the odds that a candidate is a match.
    pub fn odds(&self) -> f64 {
        match self {
            Goal::Matches { odds, .. } | Goal::Each { odds, .. } => *odds,
        }
    }

    /// Returns the number of matches.
    pub fn count(&self) -> u64 {
        match self {
            Goal::Matches { count, .. } => *count,
            Goal::Each { patterns, .. } => patterns.count(),
        }
    }

    /// Returns the seconds within which the search has ended with this probability.
    pub fn time_to(&self, probability: f64, rate: f64) -> f64 {
        match self {
            Goal::Matches { odds, count } => time_to(probability, *count, *odds, rate),
            Goal::Each { patterns, .. } => patterns.candidates_to(probability) / rate,
        }
    }

    /// Returns the average time and its quantiles.
    pub fn times(&self, rate: f64) -> Times {
        let expected_s = match self {
            Goal::Matches { odds, count } => *count as f64 / odds / rate,
            Goal::Each { patterns, .. } => patterns.expected_candidates() / rate,
        };
        Times { expected_s, p50_s: self.time_to(0.5, rate), p90_s: self.time_to(0.9, rate) }
    }

    /// Whether the median may exceed a year, so that measuring the devices is worth its time.
    pub fn may_exceed_a_year(&self) -> bool {
        self.time_to(0.5, MIN_RATE) > YEAR
    }
}

/// The time that a search takes, in seconds. Beyond what anybody waits for it may be infinite.
///
/// See [`Goal::times`](Goal).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The average.
    pub expected_s: f64,
    /// The time within which half of such searches end.
    pub p50_s: f64,
    /// The time within which nine of ten end.
    pub p90_s: f64,
}

/// The time until a score is reached.
///
/// See [`score_times`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreTime {
    /// The score.
    pub score: u32,
    /// Candidates per match, on average.
    pub difficulty: f64,
    /// The time to reach it.
    pub times: Times,
}

/// An estimate of a search.
///
/// ```
/// use warpsmith::{Devices, mine, npub};
///
/// let estimate = mine(npub(), ["qqq"]).on(Devices::cpu()?).estimate()?;
/// assert_eq!(estimate.difficulty, 32_768.0);
/// assert!(estimate.rate > 0.0 && estimate.times.p50_s < estimate.times.p90_s);
/// assert!(estimate.too_long.is_none());
/// # Ok::<(), warpsmith::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Candidates per match, on average.
    pub difficulty: f64,
    /// Candidates per second.
    pub rate: f64,
    /// Matches that end the search.
    pub count: u64,
    /// The time until then.
    pub times: Times,
    /// In a search for the best, the times of each score.
    pub scores: Vec<ScoreTime>,
    /// The feasible alternative, where the median exceeds a year.
    pub too_long: Option<TooLong>,
}

impl Estimate {
    /// Estimates a search at this rate. `options` are those its patterns were compiled with.
    pub fn at_rate(
        target: &dyn Target,
        wanted: Wanted<'_>,
        options: &Options,
        goal: &Goal,
        rate: f64,
    ) -> Estimate {
        Estimate {
            difficulty: 1.0 / goal.odds(),
            rate,
            count: goal.count(),
            times: goal.times(rate),
            scores: match wanted {
                Wanted::Best { ranking, .. } => score_times(ranking, rate),
                Wanted::Patterns(_) => Vec::new(),
            },
            too_long: TooLong::check(target, wanted, options, goal, rate),
        }
    }
}

/// Lists the scores that are reached within a lifetime, and the first one in any case.
///
/// Of many scores that are nearly equal, as sums have them, it lists those from which on it takes noticeably longer.
///
/// ```
/// use warpsmith::estimate::score_times;
/// use warpsmith::pattern::{Feature, Ranking};
///
/// let times = score_times(&Ranking::new(Feature::LeadingZeros), 1e6);
/// assert_eq!((times[0].score, times[0].difficulty), (1, 256.0));
/// assert!(times.windows(2).all(|pair| pair[0].times.p50_s < pair[1].times.p50_s));
/// ```
pub fn score_times(ranking: &Ranking, rate: f64) -> Vec<ScoreTime> {
    let row = |score: u32| {
        let odds = ranking.odds(score);
        let times = Goal::Matches { odds, count: 1 }.times(rate);
        ScoreTime { score, difficulty: 1.0 / odds, times }
    };
    let rows = (1..=ranking.max()).filter(|score| is_listed(ranking, *score)).map(row);
    rows.enumerate()
        .take_while(|(at, row)| *at == 0 || row.times.p50_s < MAX_SCORE_TIME)
        .map(|(_, row)| row)
        .collect()
}

/// Whether a score is worth a row.
fn is_listed(ranking: &Ranking, score: u32) -> bool {
    let scale = if ranking.max() > MAX_LISTED_SCORE { 0.5 } else { 1e6 };
    let step = |at: u32| (-ranking.odds(at).log2() * scale).floor();
    score == 1 || ranking.odds(score) > 0.0 && step(score) > step(score - 1)
}

/// The feasible alternative to a search whose median exceeds a year.
///
/// ```
/// use warpsmith::estimate::{Goal, Reachable, TooLong};
/// use warpsmith::npub;
/// use warpsmith::pattern::{Options, compile};
/// use warpsmith::search::Wanted;
///
/// let (npub, options) = (npub(), Options::default());
/// let patterns = compile(["q".repeat(12)], &npub, &options)?;
/// let wanted = Wanted::Patterns(&patterns);
/// let too_long = TooLong::check(&npub, wanted, &options, &Goal::matches(wanted, None), 1e6);
/// let too_long = too_long.expect("60 bits at a million candidates per second");
/// let Reachable::Characters { count: 7, example } = too_long.in_a_day else { panic!() };
/// assert_eq!((example.as_deref(), too_long.fewer_characters), (Some("qqqqqqq"), Some(3)));
/// # Ok::<(), warpsmith::pattern::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TooLong {
    /// The time within which half of such searches end, in seconds.
    pub p50_s: f64,
    /// Candidates per second.
    pub rate: f64,
    /// What has a median below a day.
    pub in_a_day: Reachable,
    /// How many characters less would have a median below a year; none in a search for the best.
    pub fewer_characters: Option<u32>,
    /// The factor by which a rate would have to be higher for a median of a year.
    pub speedup: f64,
}

/// What a search reaches within a day.
///
/// See [`TooLong`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachable {
    /// A score.
    Score(u32),
    /// A number of fixed characters.
    Characters {
        /// How many.
        count: u32,
        /// The longest part of the pattern that is feasible, where there is one pattern and it has fixed characters.
        example: Option<String>,
    },
}

impl TooLong {
    /// Returns the alternative to a search whose median exceeds a year at this rate; `None` for other searches.
    pub fn check(
        target: &dyn Target,
        wanted: Wanted<'_>,
        options: &Options,
        goal: &Goal,
        rate: f64,
    ) -> Option<TooLong> {
        let p50_s = goal.time_to(0.5, rate);
        if p50_s <= YEAR {
            return None;
        }
        let alphabet = target.encoding().alphabet().len() as f64;
        let is_feasible = |odds: f64| time_to(0.5, 1, odds, rate) <= DAY;
        let speedup = p50_s / YEAR;
        let (in_a_day, fewer_characters) = match wanted {
            Wanted::Best { ranking, .. } => {
                let score = (1..=ranking.max()).rev().find(|score| is_feasible(ranking.odds(*score)));
                (Reachable::Score(score.unwrap_or(0)), None)
            }
            Wanted::Patterns(patterns) => {
                let count = (rate * DAY / LN_2).log(alphabet).floor() as u32;
                let is_single = patterns.len() == 1;
                let example = is_single.then(|| shortened(patterns, target, options, &is_feasible)).flatten();
                let fewer = speedup.log(alphabet).ceil() as u32;
                (Reachable::Characters { count, example }, Some(fewer))
            }
        };
        Some(TooLong { p50_s, rate, in_a_day, fewer_characters, speedup })
    }
}

/// Returns the longest part of the only pattern that is feasible; `None` if the pattern is not one of fixed characters.
fn shortened(
    patterns: &Patterns,
    target: &dyn Target,
    options: &Options,
    is_feasible: &dyn Fn(f64) -> bool,
) -> Option<String> {
    let mut text = patterns.text(0).to_owned();
    if text.starts_with('/') || !text.is_ascii() {
        return None;
    }
    loop {
        // A suffix keeps its end, all else its start.
        match text.strip_prefix("..") {
            Some(run) if !run.ends_with("..") => text = format!("..{}", run.get(1..)?),
            Some(run) => {
                text = format!(
                    "..{}..",
                    run.strip_suffix("..").and_then(|run| run.get(..run.len().checked_sub(1)?))?
                )
            }
            None => drop(text.pop()?),
        }
        let compiled = compile([&text], target, options).ok()?;
        if is_feasible(compiled.odds()) {
            return Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use warpsmith_pattern::Feature;

    use super::*;

    fn too_long(pattern: &str, rate: f64) -> Option<TooLong> {
        let (target, options) = (crate::eth(), Options::default());
        let patterns = compile([pattern], &target, &options).expect("a pattern");
        let wanted = Wanted::Patterns(&patterns);
        TooLong::check(&target, wanted, &options, &Goal::matches(wanted, None), rate)
    }

    #[test]
    fn infeasible_patterns_are_shortened_at_the_right_end() {
        let example = |pattern: &str| match too_long(pattern, 1e6)?.in_a_day {
            Reachable::Characters { example, .. } => example,
            Reachable::Score(_) => None,
        };
        assert_eq!(example("abcdef0123456789").as_deref(), Some("abcdef012"));
        assert_eq!(example("..abcdef0123456789").as_deref(), Some("..123456789"));
        assert!(example("..abcdef0123456789..").is_some_and(|text| text.starts_with("..abcdef01")));
        assert_eq!(example("/^(a{15}|b{15})/"), None);
        assert_eq!(too_long("abcd", 1e6), None);
    }

    #[test]
    fn a_year_is_the_limit() {
        // 16^-n per candidate: ln 2 / odds candidates are the median.
        let pattern = "0123456789ab";
        let median_year = LN_2 * 16f64.powi(12) / YEAR;
        assert_eq!(too_long(pattern, median_year * 1.001), None);
        let slow = too_long(pattern, median_year / 3.0).expect("three years");
        assert!((slow.speedup - 3.0).abs() < 1e-6 && slow.fewer_characters == Some(1), "{slow:?}");
        assert_eq!(too_long(pattern, median_year / 20.0).and_then(|slow| slow.fewer_characters), Some(2));
    }

    #[test]
    fn a_search_for_the_best_is_offered_a_score() {
        let ranking = Ranking::new(Feature::LeadingZeros);
        let wanted =
            Wanted::Best { ranking: &ranking, show: warpsmith_engine::Show::Better, enough: Some(9) };
        let (goal, options) = (Goal::matches(wanted, Some(5)), Options::default());
        assert_eq!((goal.count(), goal.odds()), (1, 256f64.powi(-9)));
        let estimate = Estimate::at_rate(&crate::eth(), wanted, &options, &goal, 1e6);
        let too_long = estimate.too_long.expect("72 bits");
        assert_eq!((too_long.in_a_day, too_long.fewer_characters), (Reachable::Score(4), None));
        let scores: Vec<u32> = estimate.scores.iter().map(|row| row.score).collect();
        assert_eq!(scores, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn equal_patterns_count_once() {
        let options = Options::default();
        let patterns = compile(["qqq", "ppp", "qqq", "q"], &crate::npub(), &options).expect("patterns");
        let goal = Goal::each(&patterns);
        assert_eq!(goal.count(), 3);
        let times = goal.times(1.0);
        assert!((times.expected_s / 32_768.0 - 1.5).abs() < 0.01, "{times:?}");
        assert!(times.p50_s < times.expected_s && times.expected_s < times.p90_s);
    }
}
