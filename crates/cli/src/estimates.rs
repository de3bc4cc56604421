//! Texts and JSON fields of estimates: what `--estimate` prints, and the warning before a search or a scan that takes more than a
//! year. The numbers come from [`warpsmith::estimate`].

use serde::Serialize;
use warpsmith::estimate::{Estimate, Reachable, ScanTooLong, ScoreTime, Times, TooLong};
use warpsmith::search::{Show, Wanted};

use warpsmith_console::human;
use warpsmith_console::json;

/// The document of an estimate of a search.
#[derive(Serialize)]
pub(crate) struct EstimateLine {
    event: &'static str,
    #[serde(serialize_with = "json::text")]
    difficulty: f64,
    rate: f64,
    count: u64,
    /// Whether the times are those of one result for every pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    each: Option<bool>,
    #[serde(flatten)]
    times: TimesFields,
    /// The times of each score, in a search for the best.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scores: Vec<ScoreFields>,
}

#[derive(Serialize)]
struct TimesFields {
    #[serde(serialize_with = "json::seconds")]
    expected_s: f64,
    #[serde(serialize_with = "json::seconds")]
    p50_s: f64,
    #[serde(serialize_with = "json::seconds")]
    p90_s: f64,
}

#[derive(Serialize)]
struct ScoreFields {
    score: u32,
    #[serde(serialize_with = "json::text")]
    difficulty: f64,
    #[serde(flatten)]
    times: TimesFields,
}

impl From<Times> for TimesFields {
    fn from(Times { expected_s, p50_s, p90_s }: Times) -> TimesFields {
        TimesFields { expected_s, p50_s, p90_s }
    }
}

impl From<&ScoreTime> for ScoreFields {
    fn from(row: &ScoreTime) -> ScoreFields {
        ScoreFields { score: row.score, difficulty: row.difficulty, times: row.times.into() }
    }
}

impl EstimateLine {
    pub fn new(estimate: &Estimate, each: bool) -> EstimateLine {
        EstimateLine {
            event: "estimate",
            difficulty: estimate.difficulty,
            rate: estimate.rate,
            count: estimate.count,
            each: each.then_some(true),
            times: estimate.times.into(),
            scores: estimate.scores.iter().map(ScoreFields::from).collect(),
        }
    }
}

/// The text of an estimate of a search on these devices.
pub(crate) fn estimate_text(
    estimate: &Estimate,
    each: bool,
    devices: &[(String, String)],
    wanted: Wanted<'_>,
) -> String {
    let names: Vec<&str> = devices.iter().map(|(id, _)| id.as_str()).collect();
    let count = human::count(estimate.count as f64);
    let all = match (each, estimate.count) {
        (true, _) => format!("patterns    {count}, each with a result:\n"),
        (false, 1) => String::new(),
        (false, _) => format!("matches     {count}, all of them:\n"),
    };
    let Times { expected_s, p50_s, p90_s } = estimate.times;
    format!(
        "difficulty  1 in {} ({})\nrate        {} on {}\n{all}expected    {}\n50 %        {}\n90 %        {}\n{}{}",
        human::count(estimate.difficulty),
        human::power_of_two(estimate.difficulty),
        human::rate(estimate.rate),
        names.join(", "),
        human::seconds(expected_s),
        human::seconds(p50_s),
        human::seconds(p90_s),
        estimate.too_long.as_ref().map_or(String::new(), |why| Hopeless::of_search(why, wanted).estimate()),
        score_table(&estimate.scores),
    )
}

fn score_table(rows: &[ScoreTime]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text =
        format!("\n{:>5}  {:>25}  {:>13}  {:>13}  {:>13}\n", "score", "1 in", "expected", "50 %", "90 %");
    for ScoreTime { score, difficulty, times } in rows {
        let [expected, half, most] = [times.expected_s, times.p50_s, times.p90_s].map(human::seconds);
        text += &format!(
            "{score:>5}  {:>25}  {expected:>13}  {half:>13}  {most:>13}\n",
            human::count(*difficulty)
        );
    }
    text
}

/// The lines about a search or a scan whose median exceeds a year.
#[derive(Debug)]
pub(crate) struct Hopeless {
    /// The median.
    takes: String,
    /// What is feasible in a day, and in a year.
    instead: [String; 2],
}

impl Hopeless {
    pub fn of_search(why: &TooLong, wanted: Wanted<'_>) -> Hopeless {
        let fits = match &why.in_a_day {
            Reachable::Score(score) => format!("a score of {score}"),
            Reachable::Characters { count, example } => {
                let example = example.as_ref().map_or(String::new(), |text| format!(", such as '{text}'"));
                format!("some {count} fixed characters{example}")
            }
        };
        let fewer = match (why.fewer_characters, wanted) {
            (Some(1), _) => "one fewer character".to_owned(),
            (Some(fewer), _) => format!("{fewer} fewer characters"),
            (None, Wanted::Best { show: Show::AtLeast(_), .. }) => "a lower --min-score".to_owned(),
            (None, _) => "a lower --score".to_owned(),
        };
        Hopeless {
            takes: format!("50 % within {} at {}", human::seconds(why.p50_s), human::rate(why.rate)),
            instead: [
                format!("a day is enough for {fits}"),
                format!(
                    "{fewer} would bring it under a year, or {} times the speed (more cards, or a fleet)",
                    human::rough(why.speedup.ceil())
                ),
            ],
        }
    }

    pub fn of_scan(why: &ScanTooLong) -> Hopeless {
        Hopeless {
            takes: format!(
                "half of the range takes {} at {}",
                human::seconds(why.p50_s),
                human::rate(why.rate)
            ),
            instead: [
                format!("a day is enough for {} keys", human::power_of_two(why.keys_in_a_day)),
                format!(
                    "{} times the speed would bring half of it under a year, or a range of {} keys",
                    human::rough(why.speedup.ceil()),
                    human::power_of_two(why.keys_of_a_year)
                ),
            ],
        }
    }

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
