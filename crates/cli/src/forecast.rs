//! How long a search takes: what `--estimate` says, and what is said before one whose end nobody will see.

use std::collections::BTreeMap;

use serde::Serialize;
use warpsmith::pattern::{Patterns, Ranking, compile};
use warpsmith::search::{Show, Wanted, time_to};
use warpsmith_console::{human, json};

use crate::each::Each;
use crate::quest::Quest;

pub(crate) const DAY: f64 = 86_400.0;
pub(crate) const YEAR: f64 = 365.25 * DAY;

/// A rate that every machine exceeds: what does not take a year even so needs no look at the devices.
pub(crate) const SLOW: f64 = 1e6;

/// What a search waits for.
pub(crate) enum Goal<'a> {
    /// So many matches, each of these odds.
    Count { odds: f64, count: u64 },
    /// One of each pattern.
    Each { odds: f64, each: &'a Each },
}

/// The average, and within which time half of such searches have ended, and nine of ten.
#[derive(Serialize)]
pub(crate) struct Times {
    #[serde(serialize_with = "json::seconds")]
    expected_s: f64,
    #[serde(serialize_with = "json::seconds")]
    p50_s: f64,
    #[serde(serialize_with = "json::seconds")]
    p90_s: f64,
}

impl Times {
    pub fn text(&self) -> String {
        format!(
            "expected    {}\n50 %        {}\n90 %        {}\n",
            human::seconds(self.expected_s),
            human::seconds(self.p50_s),
            human::seconds(self.p90_s)
        )
    }
}

impl<'a> Goal<'a> {
    /// Without a number it is the first match; of scores what is enough, or any.
    pub fn new(wanted: Wanted<'_>, count: Option<u64>, each: Option<&'a Each>) -> Goal<'a> {
        match (wanted, each) {
            (_, Some(each)) => Goal::Each { odds: wanted.odds(0), each },
            (Wanted::Best { ranking, enough: Some(enough), .. }, None) => {
                Goal::Count { odds: ranking.odds(enough), count: 1 }
            }
            (_, None) => Goal::Count { odds: wanted.odds(0), count: count.unwrap_or(1).max(1) },
        }
    }

    /// The odds of one match.
    pub fn odds(&self) -> f64 {
        match self {
            Goal::Count { odds, .. } | Goal::Each { odds, .. } => *odds,
        }
    }

    /// How many matches it takes.
    pub fn count(&self) -> u64 {
        match self {
            Goal::Count { count, .. } => *count,
            Goal::Each { each, .. } => each.total(),
        }
    }

    /// The seconds within which the search has ended with this probability.
    pub fn time_to(&self, share: f64, rate: f64) -> f64 {
        match self {
            Goal::Count { odds, count } => time_to(share, *count, *odds, rate),
            Goal::Each { each, .. } => each.odds().tries_to(share) / rate,
        }
    }

    pub fn times(&self, rate: f64) -> Times {
        let expected_s = match self {
            Goal::Count { odds, count } => *count as f64 / odds / rate,
            Goal::Each { each, .. } => each.odds().expected_tries() / rate,
        };
        Times { expected_s, p50_s: self.time_to(0.5, rate), p90_s: self.time_to(0.9, rate) }
    }

    /// Whether it may be hopeless, so that the devices are worth a look.
    pub fn is_rare(&self) -> bool {
        self.time_to(0.5, SLOW) > YEAR
    }
}

/// Odds of several patterns that are found one by one, and how many have them.
#[derive(Clone, Default)]
pub(crate) struct OddsOfEach(BTreeMap<u64, u64>);

impl OddsOfEach {
    pub fn add(&mut self, odds: f64) {
        *self.0.entry(odds.to_bits()).or_default() += 1;
    }

    pub fn remove(&mut self, odds: f64) {
        if let Some(count) = self.0.get_mut(&odds.to_bits()) {
            *count -= 1;
        }
        self.0.retain(|_, count| *count > 0);
    }

    /// The chance that so many candidates hold a match of each: patterns count as independent.
    pub fn chance(&self, tried: f64) -> f64 {
        let each = self.0.iter().map(|(odds, count)| {
            let found = -f64::exp_m1(tried * f64::ln_1p(-f64::from_bits(*odds).min(1.0 - f64::EPSILON)));
            *count as f64 * found.ln()
        });
        each.sum::<f64>().exp()
    }

    /// The odds that a candidate is the first of any of them.
    pub fn sum(&self) -> f64 {
        self.0.iter().map(|(bits, times)| f64::from_bits(*bits) * *times as f64).sum()
    }

    /// The lowest odds.
    fn rarest(&self) -> f64 {
        // Positive numbers are in the order of their bits.
        self.0.keys().next().map_or(1.0, |bits| f64::from_bits(*bits))
    }

    /// Candidates until each has a match with this probability.
    pub fn tries_to(&self, share: f64) -> f64 {
        let count: u64 = self.0.values().sum();
        let (mut low, mut high) = (0.0, ((count as f64).ln() + 40.0) / self.rarest());
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            (low, high) = if self.chance(middle) >= share { (low, middle) } else { (middle, high) };
        }
        high
    }

    /// Candidates until each has a match, on average: the integral of the chance that one has none, over t = -ln(1 - u) / p with
    /// the lowest odds p, under which it stays bounded.
    pub fn expected_tries(&self) -> f64 {
        const STEPS: u32 = 4000;
        let rarest = self.rarest();
        let step = |n: u32| {
            let rest = 1.0 - (f64::from(n) + 0.5) / f64::from(STEPS);
            (1.0 - self.chance(-rest.ln() / rarest)) / rest
        };
        (0..STEPS).map(step).sum::<f64>() / f64::from(STEPS) / rarest
    }
}

/// How long one score takes.
#[derive(Serialize)]
pub(crate) struct Scored {
    score: u32,
    #[serde(serialize_with = "json::text")]
    difficulty: f64,
    #[serde(flatten)]
    times: Times,
}

impl Scored {
    /// Every score that somebody may live to see; none where no score counts.
    pub fn table(wanted: Wanted<'_>, rate: f64) -> Vec<Scored> {
        let Wanted::Best { ranking, .. } = wanted else { return Vec::new() };
        let row = |at_least: u32| {
            let odds = ranking.odds(at_least);
            let goal = Goal::Count { odds, count: 1 };
            Scored { score: at_least, difficulty: 1.0 / odds, times: goal.times(rate) }
        };
        let rows = (1..=ranking.max()).filter(|score| is_told(ranking, *score)).map(row);
        rows.enumerate()
            .take_while(|(at, row)| *at == 0 || row.times.p50_s < 100.0 * YEAR)
            .map(|(_, row)| row)
            .collect()
    }

    pub fn text(rows: &[Scored]) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let mut text =
            format!("\n{:>5}  {:>25}  {:>13}  {:>13}  {:>13}\n", "score", "1 in", "expected", "50 %", "90 %");
        for Scored { score, difficulty, times } in rows {
            let [expected, half, most] = [times.expected_s, times.p50_s, times.p90_s].map(human::seconds);
            text += &format!(
                "{score:>5}  {:>25}  {expected:>13}  {half:>13}  {most:>13}\n",
                human::count(*difficulty)
            );
        }
        text
    }
}

/// Whether a row is worth a line: nobody waits for scores that half of all addresses have, and of many that are nearly equal, as sums have
/// them, those are shown from which on it takes noticeably longer.
fn is_told(ranking: &Ranking, score: u32) -> bool {
    let step = |at: u32| (-ranking.odds(at).log2() * if ranking.max() > 50 { 0.5 } else { 1e6 }).floor();
    score == 1 || ranking.odds(score) > 0.0 && step(score) > step(score - 1)
}

/// Why a search or a scan is hopeless: its median exceeds a year.
#[derive(Debug)]
pub(crate) struct Hopeless {
    /// The median, in words.
    pub takes: String,
    /// What would take a day, and what a year.
    pub instead: [String; 2],
}

impl Hopeless {
    /// The lines before a run that begins all the same.
    pub fn warning(&self) -> Vec<String> {
        self.lines("hopeless  ", "; continuing anyway")
    }

    /// The lines of an estimate.
    pub fn estimate(&self) -> String {
        self.lines("hopeless    ", "").iter().map(|line| format!("{line}\n")).collect()
    }

    fn lines(&self, label: &str, end: &str) -> Vec<String> {
        let more = self.instead.iter().map(|line| format!("{:width$}{line}", "", width = label.len()));
        std::iter::once(format!("{label}{}{end}", self.takes)).chain(more).collect()
    }
}

/// Why a search takes more than a year at this rate; none of others.
pub(crate) fn hopeless(
    quest: &Quest<'_>,
    wanted: Wanted<'_>,
    goal: &Goal<'_>,
    rate: f64,
) -> Option<Hopeless> {
    let half = goal.time_to(0.5, rate);
    if half <= YEAR {
        return None;
    }
    let takes = format!("50 % within {} at {}", human::seconds(half), human::rate(rate));
    let target = quest.subject.target();
    let alphabet = target.encoding().alphabet().len() as f64;
    let within_a_day = |odds: f64| time_to(0.5, 1, odds, rate) <= DAY;
    let fits = match wanted {
        Wanted::Best { ranking, .. } => {
            let reachable = (1..=ranking.max()).rev().find(|at_least| within_a_day(ranking.odds(*at_least)));
            format!("a score of {}", reachable.unwrap_or(0))
        }
        Wanted::Patterns(patterns) => {
            let characters = (rate * DAY / std::f64::consts::LN_2).log(alphabet).floor();
            let shorter = (patterns.len() == 1).then(|| shorter(patterns, quest, &within_a_day)).flatten();
            let example = shorter.map_or(String::new(), |text| format!(", such as '{text}'"));
            format!("some {characters} fixed characters{example}")
        }
    };
    let times = half / YEAR;
    let fewer = match wanted {
        Wanted::Patterns(_) => match times.log(alphabet).ceil() {
            1.0 => "one fewer character".to_owned(),
            fewer => format!("{fewer} fewer characters"),
        },
        Wanted::Best { show: Show::AtLeast(_), .. } => "a lower --min-score".to_owned(),
        Wanted::Best { .. } => "a lower --score".to_owned(),
    };
    let instead = [
        format!("a day is enough for {fits}"),
        format!(
            "{fewer} would bring it under a year, or {} times the speed (more cards, or a fleet)",
            human::rough(times.ceil())
        ),
    ];
    Some(Hopeless { takes, instead })
}

/// The longest part of the only pattern that a day is enough for; none if it is not one of fixed characters.
fn shorter(patterns: &Patterns, quest: &Quest<'_>, within_a_day: &dyn Fn(f64) -> bool) -> Option<String> {
    let mut text = patterns.text(0).to_owned();
    if text.starts_with('/') || !text.is_ascii() {
        return None;
    }
    loop {
        // An ending keeps its end, all else its start.
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
        let compiled = compile([&text], quest.subject.target(), &quest.options).ok()?;
        if within_a_day(compiled.odds()) {
            return Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odds(each: &[f64]) -> OddsOfEach {
        let mut all = OddsOfEach::default();
        each.iter().for_each(|odds| all.add(*odds));
        all
    }

    /// Of equal odds it is the collector of coupons, who needs n times the harmonic number; of one it is that one's time.
    #[test]
    fn times_until_each_has_one_are_those_of_the_collector() {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 2e-3;
        let one = odds(&[1e-6]);
        assert!(near(one.expected_tries(), 1e6) && near(one.tries_to(0.5), 1e6 * std::f64::consts::LN_2));
        let ten = odds(&[1e-6; 10]);
        let harmonic: f64 = (1..=10).map(|n| 1.0 / f64::from(n)).sum();
        assert!(near(ten.expected_tries(), 1e6 * harmonic), "{}", ten.expected_tries());
        assert!(near(ten.chance(ten.tries_to(0.9)), 0.9));
        // Easy ones beside a hard one cost nothing.
        let mixed = odds(&[1e-2, 1e-2, 1e-9]);
        assert!(near(mixed.expected_tries(), 1e9) && near(mixed.tries_to(0.5), one.tries_to(0.5) * 1e3));
        let mut left = mixed.clone();
        left.remove(1e-9);
        assert!(left.tries_to(0.5) < 1e3);
    }
}
