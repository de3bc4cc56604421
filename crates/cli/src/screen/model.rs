//! What is known of a run, kept up to date by those who know it, and [`View`], what of it is to be drawn now.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use warpsmith::devices::{Preparing, UnderWay};
use warpsmith::search::{Progress, time_to};
use warpsmith_console::redact::redacted;
use warpsmith_console::times::Time;
use warpsmith_console::{human, times};

/// How long something that prepares a device lasts before it is worth a line. Programs come from the cache faster.
const NOTICED: Duration = Duration::from_millis(400);

/// How long a note stays where no details are shown.
const NOTE: Duration = Duration::from_secs(15);

/// The span of the slower of the two rates.
const MINUTE: Duration = Duration::from_secs(60);

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// A search; for the best, where something is scored.
    Search { scored: bool },
    /// A scan for so many addresses.
    Scan { addresses: u64 },
}

/// How it stood when it was told last.
#[derive(Clone, Debug)]
struct Standing {
    tried: u64,
    rate: f64,
    elapsed: Duration,
    /// The chance that it was done by now, or how much of it is.
    share: f64,
    matches: u64,
    wanted: Option<u64>,
    /// Until the next match is as likely there as not, until all wanted are, and until they are with 90 %; of a scan until it ends.
    next: Option<f64>,
    all: Option<f64>,
    surely: Option<f64>,
    /// The best score, and the odds of a better one.
    best: Option<(u32, f64)>,
    devices: Vec<(String, f64)>,
}

/// What a card's own watch tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Health {
    pub celsius: Option<u32>,
    pub watts: Option<f64>,
    /// Why its clock is held down.
    pub throttled: Option<&'static str>,
}

/// What is known of a run.
pub(crate) struct Model {
    task: Task,
    /// What is sought, and how rare that is, in few words and in more.
    sought: String,
    odds: [String; 2],
    /// Each device and a line about it.
    about: Vec<(String, String)>,
    /// What is shown among the details.
    remarks: Vec<String>,
    output: Option<String>,
    standing: Option<Standing>,
    /// Tried by then, for the last minute.
    past: VecDeque<(Duration, u64)>,
    last: Option<String>,
    note: Option<(Instant, String)>,
    health: Vec<(String, Health)>,
    /// When the map was saved.
    saved: Option<Instant>,
    /// What has to be done before it begins, how much of it is, and what is to be said of it.
    work: Option<(String, Option<f64>, String)>,
    pub details: bool,
    /// Whether the run can be paused from here.
    pub can_pause: bool,
}

impl Standing {
    /// How a search stands whose next match has these odds.
    fn of(progress: &Progress, odds: f64) -> Standing {
        let left = progress.wanted.map(|wanted| wanted.saturating_sub(progress.matches));
        let until = |share, matches| {
            let seconds = time_to(share, matches, odds, progress.rate);
            (progress.rate > 0.0 && seconds.is_finite()).then_some(seconds)
        };
        let several = left.filter(|left| *left > 1);
        Standing {
            tried: progress.tried,
            rate: progress.rate,
            elapsed: progress.elapsed,
            share: progress.probability.unwrap_or_default(),
            matches: progress.matches,
            wanted: progress.wanted,
            next: until(0.5, 1),
            all: several.and_then(|left| until(0.5, left)),
            surely: until(0.9, left.unwrap_or(1)),
            best: progress.best.map(|best| (best, odds)),
            devices: progress.devices.clone(),
        }
    }
}

impl Model {
    /// SEC: what people give is shown as it would be in a message.
    pub fn new(task: Task, sought: &str, odds: [String; 2]) -> Model {
        Model {
            task,
            sought: redacted(sought),
            odds,
            about: Vec::new(),
            remarks: Vec::new(),
            output: None,
            standing: None,
            past: VecDeque::new(),
            last: None,
            note: None,
            health: Vec::new(),
            saved: None,
            work: None,
            details: false,
            can_pause: true,
        }
    }

    /// Of a run whose devices are elsewhere, and are not paused from here.
    pub fn without_pause(self) -> Model {
        Model { can_pause: false, ..self }
    }

    /// With devices, where results go, and what else is worth a line.
    pub fn with(self, about: Vec<(String, String)>, output: Option<String>, remarks: Vec<String>) -> Model {
        Model { about, output: output.map(|file| redacted(&file)), remarks, ..self }
    }

    /// What a scan is for, once that is known.
    pub fn describe_scan(
        &mut self,
        addresses: u64,
        targets: [String; 2],
        about: Vec<(String, String)>,
        output: Option<String>,
        remarks: Vec<String>,
    ) {
        (self.task, self.odds) = (Task::Scan { addresses }, targets);
        (self.about, self.output) = (about, output.map(|file| redacted(&file)));
        self.remarks = remarks.iter().map(|remark| redacted(remark)).collect();
    }

    /// A search stands so; `odds` are those of the next match.
    pub fn search(&mut self, progress: &Progress, odds: f64) {
        self.stand(Standing::of(progress, odds));
    }

    /// A search for one of each pattern stands so; `all` are the seconds until each has one with 50 and 90 %.
    pub fn search_each(&mut self, progress: &Progress, odds: f64, all: [f64; 2]) {
        let [half, surely] = all.map(|seconds| seconds.is_finite().then_some(seconds));
        self.stand(Standing { all: half, surely, ..Standing::of(progress, odds) });
    }

    /// A scan stands so.
    pub fn scan(&mut self, progress: &Progress) {
        let left = progress.eta.map(|left| left.as_secs_f64());
        self.stand(Standing {
            tried: progress.tried,
            rate: progress.rate,
            elapsed: progress.elapsed,
            share: progress.coverage.unwrap_or_default(),
            matches: progress.matches,
            wanted: None,
            next: left,
            all: None,
            surely: None,
            best: None,
            devices: progress.devices.clone(),
        });
    }

    fn stand(&mut self, standing: Standing) {
        let now = (standing.elapsed, standing.tried);
        // Once a second is enough, and a run that rests stands still.
        if self.past.back().is_none_or(|(last, _)| now.0 >= *last + Duration::from_secs(1)) {
            self.past.push_back(now);
        }
        while self.past.len() > 1 && now.0.saturating_sub(self.past[1].0) >= MINUTE {
            self.past.pop_front();
        }
        self.standing = Some(standing);
    }

    /// Something was found. SEC: its address and nothing else.
    pub fn found(&mut self, address: &str) {
        self.last = Some(address.to_owned());
    }

    pub fn note(&mut self, text: &str) {
        self.note = Some((Instant::now(), redacted(text)));
    }

    pub fn saved(&mut self) {
        self.saved = Some(Instant::now());
    }

    /// Something has to be done before it begins, and is when its share is 1.
    pub fn work(&mut self, label: &str, share: Option<f64>, more: &str) {
        let is_done = share.is_some_and(|share| share >= 1.0);
        self.work = (!is_done).then(|| (label.to_owned(), share, more.to_owned()));
    }

    pub fn healthy(&mut self, health: Vec<(String, Health)>) {
        self.health = health;
    }

    /// The devices in use.
    pub fn devices(&self) -> Vec<String> {
        self.standing.iter().flat_map(|standing| &standing.devices).map(|(id, _)| id.clone()).collect()
    }

    /// Over the last minute; none of a run that is younger.
    fn minute(&self) -> Option<f64> {
        let (standing, first) = (self.standing.as_ref()?, self.past.front()?);
        let span = standing.elapsed.checked_sub(first.0).filter(|span| *span >= MINUTE)?;
        Some(standing.tried.saturating_sub(first.1) as f64 / span.as_secs_f64())
    }

    /// What is to be drawn now.
    pub fn view(&self, now: &Time, mood: Mood, under_way: &[UnderWay], keys: bool) -> View {
        let noticed = |busy: &&UnderWay| busy.lasts >= NOTICED;
        let busy: Vec<_> = under_way.iter().filter(noticed).map(preparing).collect();
        let work = self.work.as_ref().filter(|_| self.standing.is_none());
        let phase = match (mood, &self.standing, work, busy.first()) {
            (Mood::Stopping, ..) => "stopping".to_owned(),
            (Mood::Paused, ..) => "paused".to_owned(),
            (Mood::Running, Some(_), ..) => "running".to_owned(),
            (Mood::Running, None, Some((label, _, more)), _) if more.is_empty() => label.clone(),
            (Mood::Running, None, Some((label, _, more)), _) => format!("{label}, {more}"),
            (Mood::Running, None, None, Some((device, doing))) => format!("{doing}{}", of(device.as_deref())),
            (Mood::Running, None, None, None) => "starting".to_owned(),
        };
        let is_search = matches!(self.task, Task::Search { .. });
        let mut view = View {
            mood,
            phase,
            sought: self.sought.clone(),
            odds: self.odds.clone(),
            share_is: if is_search { "luck" } else { "covered" },
            work: work.and_then(|(_, share, _)| *share),
            output: self.output.clone(),
            last: self.last.clone(),
            details: self.details,
            keys,
            can_pause: self.can_pause,
            ..View::default()
        };
        let shown = |(at, _): &&(Instant, String)| self.details || at.elapsed() < NOTE;
        view.note = self.note.as_ref().filter(shown).map(|(_, text)| text.clone());
        view.saved = self.saved.map(|saved| human::seconds(saved.elapsed().as_secs_f64().floor()));
        if self.details {
            view.remarks = self.remarks.clone();
        }
        let Some(standing) = &self.standing else { return view };
        let whole: f64 = standing.devices.iter().map(|(_, rate)| rate).sum();
        // A run that rests has no rate, whatever it was before.
        let is_paused = mood == Mood::Paused;
        let device = |(id, rate): &(String, f64)| DeviceView {
            id: id.clone(),
            speed: (!is_paused).then_some((*rate, if whole > 0.0 { rate / whole } else { 0.0 })),
            health: self.health.iter().find(|(of, _)| of == id).map(|(_, health)| health.clone()),
            about: self.about.iter().find(|(of, _)| of == id && self.details).map(|(_, line)| line.clone()),
        };
        view.devices = standing.devices.iter().map(device).collect();
        view.busy = busy;
        view.figures = Some(Figures {
            elapsed: standing.elapsed.as_secs_f64(),
            rate: (!is_paused).then_some(standing.rate),
            minute: self.minute().filter(|_| !is_paused),
            tried: standing.tried as f64,
            share: standing.share,
        });
        view.found = match (self.task, standing.wanted, standing.matches) {
            (Task::Scan { addresses }, _, found) => Some((found, Some(addresses).filter(|all| *all > 0))),
            (_, Some(1), _) => None,
            (_, Some(wanted), found) => Some((found, Some(wanted))),
            (_, None, 0) => None,
            (_, None, found) => Some((found, None)),
        };
        if let (Task::Search { scored: true }, Some((best, odds))) = (self.task, standing.best) {
            let next = format!("the next 1 in {}", human::power_of_two(1.0 / odds));
            view.best = Some(if best == 0 { next } else { format!("best {best}, {next}") });
        }
        // Nothing is to be expected at any time of day as long as it rests.
        if mood == Mood::Running {
            let by = |seconds: f64| times::by(now, seconds);
            let within = |seconds: f64| match by(seconds) {
                long if long.starts_with("in ") => long,
                time => format!("{time}, in {}", human::seconds(seconds)),
            };
            let half = if is_search { "50 %" } else { "ends" };
            view.when = standing.next.map(|next| {
                let short = match is_search {
                    true => format!("{half} {}", by(next)),
                    false => format!("{half} {}", by(next).trim_start_matches("by ")),
                };
                let mut long = match is_search {
                    true => format!("next match {half} {}", within(next)),
                    false => format!("{half} {}", within(next).trim_start_matches("by ")),
                };
                if let (Some(all), Some(wanted)) = (standing.all, standing.wanted) {
                    long += &format!("; all {} {}", human::count(wanted as f64), by(all));
                }
                [short, long]
            });
            if let Some(surely) = standing.surely.filter(|_| self.details) {
                let average = standing.tried as f64 / standing.elapsed.as_secs_f64().max(1e-9);
                view.remarks.insert(
                    0,
                    format!("90 % {}; on average {} since the start", within(surely), human::rate(average)),
                );
            }
        }
        view
    }
}

/// `cuda:0`, and what it is at.
fn preparing(busy: &UnderWay) -> (Option<String>, String) {
    let seconds = human::seconds(busy.lasts.as_secs_f64().floor().max(1.0));
    let doing = match busy.what {
        Preparing::Finding => format!("finding devices, {seconds}"),
        Preparing::Compiling => format!("compiling kernels, {seconds}, first run only"),
        Preparing::Proving => format!("self-test, {seconds}"),
    };
    (busy.device.clone(), doing)
}

fn of(device: Option<&str>) -> String {
    device.map_or(String::new(), |device| format!(" ({device})"))
}

/// Whether it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Running,
    Paused,
    Stopping,
}

/// What is to be drawn: the same view looks the same, whenever it is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub mood: Mood,
    pub phase: String,
    pub sought: String,
    pub odds: [String; 2],
    pub figures: Option<Figures>,
    /// How much is done of what has to be done first.
    pub work: Option<f64>,
    /// What the share of the figures is called.
    pub share_is: &'static str,
    /// When something is to be expected, in few words and in more.
    pub when: Option<[String; 2]>,
    /// How many were found, of how many.
    pub found: Option<(u64, Option<u64>)>,
    pub output: Option<String>,
    /// How long ago the map was saved.
    pub saved: Option<String>,
    pub best: Option<String>,
    pub last: Option<String>,
    pub devices: Vec<DeviceView>,
    /// Devices that get ready meanwhile.
    pub busy: Vec<(Option<String>, String)>,
    pub note: Option<String>,
    pub remarks: Vec<String>,
    pub details: bool,
    /// Whether keys are listened to.
    pub keys: bool,
    /// Whether the run can be paused.
    pub can_pause: bool,
}

/// The figures of a run that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub elapsed: f64,
    /// Over the last seconds; none while it is paused.
    pub rate: Option<f64>,
    pub minute: Option<f64>,
    pub tried: f64,
    pub share: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct DeviceView {
    pub id: String,
    /// Its rate and its share of all; none while it is paused.
    pub speed: Option<(f64, f64)>,
    pub health: Option<Health>,
    pub about: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(elapsed: u64, tried: u64) -> Progress {
        Progress {
            tried,
            rate: 1e6,
            elapsed: Duration::from_secs(elapsed),
            probability: Some(0.25),
            matches: 1,
            wanted: Some(3),
            devices: vec![("cpu".to_owned(), 2.5e5), ("cuda:0".to_owned(), 7.5e5)],
            ..Progress::default()
        }
    }

    fn model() -> Model {
        let odds = ["1 in 2^20.0".to_owned(), "1 in 1,048,576 (2^20.0)".to_owned()];
        Model::new(Task::Search { scored: false }, "npub  cafe", odds)
    }

    fn view(model: &Model, mood: Mood, busy: &[UnderWay]) -> View {
        let now = Time::utc(1_794_925_930);
        model.view(&now, mood, busy, true)
    }

    #[test]
    fn the_phase_is_what_it_waits_for_until_it_runs() {
        let mut model = model();
        let busy = |what, seconds| UnderWay {
            what,
            device: Some("cuda:0".to_owned()),
            lasts: Duration::from_secs_f64(seconds),
        };
        assert_eq!(view(&model, Mood::Running, &[]).phase, "starting");
        // From the cache it is a matter of milliseconds.
        assert_eq!(view(&model, Mood::Running, &[busy(Preparing::Compiling, 0.1)]).phase, "starting");
        let compiling = [busy(Preparing::Compiling, 12.3)];
        let phase = view(&model, Mood::Running, &compiling).phase;
        assert_eq!(phase, "compiling kernels, 12 s, first run only (cuda:0)");
        assert_eq!(
            view(&model, Mood::Running, &[busy(Preparing::Proving, 2.0)]).phase,
            "self-test, 2.0 s (cuda:0)"
        );
        assert_eq!(view(&model, Mood::Stopping, &compiling).phase, "stopping");
        // A card that joins later has a row of its own.
        model.search(&progress(5, 5_000_000), 2f64.powi(-20));
        let shown = view(&model, Mood::Running, &compiling);
        assert_eq!(shown.phase, "running");
        assert_eq!(
            shown.busy,
            [(Some("cuda:0".to_owned()), "compiling kernels, 12 s, first run only".to_owned())]
        );
        assert_eq!(view(&model, Mood::Paused, &[]).phase, "paused");
    }

    #[test]
    fn what_has_to_be_done_first_is_shown_until_it_is() {
        let mut model = model();
        model.work("making fuse16", Some(0.25), "3 min left");
        let shown = view(&model, Mood::Running, &[]);
        assert_eq!((shown.phase.as_str(), shown.work), ("making fuse16, 3 min left", Some(0.25)));
        model.work("making fuse16", Some(1.0), "");
        let shown = view(&model, Mood::Running, &[]);
        assert_eq!((shown.phase.as_str(), shown.work), ("starting", None));
    }

    #[test]
    fn figures_are_those_of_the_last_report() {
        let mut model = model();
        model.search(&progress(5, 5_000_000), 2f64.powi(-20));
        let shown = view(&model, Mood::Running, &[]);
        assert_eq!(shown.found, Some((1, Some(3))));
        let when = shown.when.expect("a rate is known");
        assert_eq!(when[0], "50 % by 14:32");
        assert_eq!(when[1], "next match 50 % by 14:32, in 0.7 s; all 3 by 14:32");
        assert_eq!(
            shown.devices.iter().map(|device| device.speed.unwrap().1).collect::<Vec<_>>(),
            [0.25, 0.75]
        );
        let paused = view(&model, Mood::Paused, &[]);
        assert!(paused.when.is_none(), "nothing is to be expected while it rests");
        assert!(paused.figures.is_some_and(|figures| figures.rate.is_none() && figures.minute.is_none()));
        assert!(paused.devices.iter().all(|device| device.speed.is_none()));
        // Nothing of a key is here, so that nothing can be shown.
        model.found("npub1cafe");
        assert_eq!(view(&model, Mood::Running, &[]).last.as_deref(), Some("npub1cafe"));
    }

    #[test]
    fn the_rate_over_a_minute_is_over_a_minute() {
        let mut model = model();
        // A million a second, and from the hundredth second on three.
        let tried = |second: u64| 1_000_000 * (second + 2 * second.saturating_sub(100));
        for second in 0..=59 {
            model.search(&progress(second, tried(second)), 1e-6);
        }
        assert_eq!(model.minute(), None);
        let mut at = |seconds: std::ops::RangeInclusive<u64>| {
            seconds.clone().for_each(|second| model.search(&progress(second, tried(second)), 1e-6));
            // What comes in a pause has the same time.
            (0..50).for_each(|_| model.search(&progress(*seconds.end(), tried(*seconds.end())), 1e-6));
            model.minute()
        };
        assert_eq!(at(60..=100), Some(1e6));
        assert_eq!(at(101..=130), Some(2e6));
        assert_eq!(at(131..=200), Some(3e6));
        assert!(model.past.len() <= 62, "{} reports are kept", model.past.len());
    }

    #[test]
    fn what_a_person_gave_is_shown_as_it_would_be_in_a_message() {
        let secret = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let model =
            Model::new(Task::Search { scored: false }, &format!("npub  {secret}"), Default::default());
        let sought = view(&model, Mood::Running, &[]).sought;
        assert!(!sought.contains(secret) && sought.contains("64 hexadecimal digits"), "{sought}");
    }
}
