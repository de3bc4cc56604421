//! Lines for people and logs: what is searched for, how it goes where there is no block for that, and how it ended.

use warpsmith::search::{Ended, Outcome, Progress, Show, Subject, Wanted, time_to};
use warpsmith_console::human;
use warpsmith_text::Shown;

use super::{LiveScreen, Model, SETTLED, Task};
use crate::quest::Quest;

/// What keys are, in a search for them.
fn about_keys(quest: &Quest<'_>) -> Option<&'static str> {
    match (quest.subject, quest.split) {
        (Subject::Key(_), Some(_)) => Some(
            "mined from your public key: no private key is here; `warpsmith join` makes it of the result",
        ),
        (Subject::Key(_), None) => {
            Some("the private key never leaves this machine; workers see public points only")
        }
        (Subject::Salt(_), _) => None,
    }
}

fn target_name(quest: &Quest<'_>) -> String {
    let target = quest.subject.target();
    match target.variant() {
        Some(variant) => format!("{} ({variant})", target.name()),
        None => target.name().to_owned(),
    }
}

/// What a search is for, as the live screen has it.
pub(crate) fn search_model(
    quest: &Quest<'_>,
    wanted: &Wanted<'_>,
    devices: Vec<(String, String)>,
    output: Option<String>,
) -> Model {
    let name = target_name(quest);
    let remarks = about_keys(quest).map(|text| format!("keys: {text}")).into_iter().collect();
    let model = match wanted {
        Wanted::Patterns(patterns) => {
            let what = match patterns.distinct_len() {
                1 => Shown(patterns.text(0)).to_string(),
                n => format!("any of {} patterns", human::count(n as f64)),
            };
            let difficulty = 1.0 / patterns.odds();
            let power = human::power_of_two(difficulty);
            let odds = [format!("1 in {power}"), format!("1 in {} ({power})", human::count(difficulty))];
            Model::new(Task::Search { scored: false }, &format!("{name}  {what}"), odds)
        }
        Wanted::Best { .. } => {
            let (what, until) = contest(wanted);
            let sought = format!("{name}  {what}");
            Model::new(Task::Search { scored: true }, &sought, [until.clone(), until])
        }
    };
    model.with(devices, output, remarks)
}

/// What is counted among what, and until when.
fn contest(wanted: &Wanted<'_>) -> (String, String) {
    let Wanted::Best { ranking, show, enough } = wanted else { return Default::default() };
    let score = ranking.score();
    let what = match show {
        Show::AtLeast(least) => format!("{least} or more {score}"),
        Show::Better => format!("the most {score}"),
        Show::Ties => format!("the most {score}, ties too"),
    };
    let among = match ranking.patterns() {
        None => String::new(),
        Some(patterns) if patterns.distinct_len() == 1 => format!(" among {}", Shown(patterns.text(0))),
        Some(patterns) => format!(" among {} patterns", human::count(patterns.distinct_len() as f64)),
    };
    let until = enough.map_or("until stopped".to_owned(), |enough| format!("until {enough}"));
    (what + &among, until)
}

/// What a scan is of, as the live screen has it before anything else is known.
pub(crate) fn scan_model(range: &str) -> Model {
    Model::new(Task::Scan { addresses: 0 }, &format!("scan  {range}"), Default::default())
}

impl LiveScreen {
    /// Says what will be done, where no block does.
    pub fn introduce(&mut self, quest: &Quest<'_>, wanted: &Wanted<'_>, devices: &[(String, String)]) {
        if self.is_live() {
            return;
        }
        let name = target_name(quest);
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
            Wanted::Best { ranking, show, .. } => {
                let (what, until) = contest(wanted);
                self.say(format_args!("target    {name}, {what}, {until}"));
                if let Show::AtLeast(least) = show {
                    let difficulty = 1.0 / ranking.odds(*least);
                    let power = human::power_of_two(difficulty);
                    self.say(format_args!("odds      1 in {} ({power})", human::count(difficulty)));
                }
            }
        }
        self.introduce_devices(devices);
        if let Some(text) = about_keys(quest) {
            self.say(format_args!("keys      {text}"));
        }
    }

    /// Says on what it will be done, where no block does.
    pub fn introduce_devices(&mut self, devices: &[(String, String)]) {
        for (id, description) in devices.iter().filter(|_| !self.is_live()).collect::<Vec<_>>() {
            self.say(format_args!("device    {id}: {description}"));
        }
    }

    /// Says once how long it will take.
    pub(super) fn tell_forecast(&mut self, progress: &Progress, odds: f64) {
        if self.forecast || progress.elapsed < SETTLED || progress.rate <= 0.0 {
            return;
        }
        self.forecast = true;
        let wanted = progress.wanted.unwrap_or(1);
        let within = |share: f64| human::seconds(time_to(share, wanted, odds, progress.rate));
        let all = if wanted > 1 { format!("all {}: ", human::count(wanted as f64)) } else { String::new() };
        self.say(format_args!(
            "expected  {all}50 % within {}, 90 % within {}, at {}",
            within(0.5),
            within(0.9),
            human::rate(progress.rate)
        ));
    }

    /// Says how a search ended.
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
        let passed_over = skipped(outcome.passed_over, outcome.ended);
        self.say(format_args!(
            "{what}: {matches}{passed_over}, {} tried ({}) in {}, {}",
            human::count(tried),
            human::power_of_two(tried),
            human::seconds(elapsed),
            human::rate(tried / elapsed.max(1e-9))
        ));
        if outcome.ended == Ended::Interrupted {
            let delivered = if outcome.matches > 0 { "what was found is delivered, and " } else { "" };
            self.say(format_args!(
                "nothing is lost by stopping: {delivered}a search has no memory, so the next one is as near to a match"
            ));
        }
    }
}

/// ` (82 more skipped, as related to one of them)`; nothing where all that was asked for is there, and nothing is lacking that this
/// would explain.
fn skipped(passed_over: u64, ended: Ended) -> String {
    match (passed_over, ended) {
        (0, _) | (_, Ended::Count) => String::new(),
        (n, _) => format!(" ({} more skipped, as related to one of them)", human::count(n as f64)),
    }
}

/// `312.4 M/s, 2^31.2 tried (2,471,395,328), chance so far 12.3 %, 50 % in 3 min 20 s, 4 of 20 found`. Chance and time are those of all
/// that are wanted.
pub(super) fn of_search(progress: &Progress) -> String {
    let tried = progress.tried as f64;
    let mut line = format!(
        "{}, {} tried ({}), chance so far {}",
        human::rate(progress.rate),
        human::power_of_two(tried),
        human::count(tried),
        human::percent(progress.probability.unwrap_or_default())
    );
    if let Some(eta) = progress.eta {
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

/// `15.2 M/s, 2^31.2 keys tested (2,471,395,328), 12.3 % covered, 3 min 20 s left`.
pub(super) fn of_scan(progress: &Progress) -> String {
    let tried = progress.tried as f64;
    let mut line = format!(
        "{}, {} keys tested ({}), {} covered",
        human::rate(progress.rate),
        human::power_of_two(tried),
        human::count(tried),
        human::percent(progress.coverage.unwrap_or_default())
    );
    if let Some(left) = progress.eta {
        line += &format!(", {} left", human::seconds(left.as_secs_f64()));
    }
    if progress.matches > 0 {
        line += &format!(", {} found", human::count(progress.matches as f64));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_matches_are_named_where_something_is_lacking() {
        assert_eq!(skipped(82, Ended::Count), "");
        assert_eq!(skipped(0, Ended::TimeLimit), "");
        for ended in [Ended::TimeLimit, Ended::Exhausted, Ended::Interrupted] {
            assert_eq!(skipped(1082, ended), " (1,082 more skipped, as related to one of them)");
        }
    }
}
