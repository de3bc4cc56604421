//! `warpsmith fleet submit DIR scan`: a range by a fleet, open or hidden.

use warpsmith::chain::Form;
use warpsmith::fleet::folder::Wishes;
use warpsmith::fleet::job::{Descriptor, Liked, Sought};
use warpsmith::fleet::net::submit::{Ended, submit, submit_hidden};
use warpsmith::fleet::scan::{Order, ScanTask};
use warpsmith::store::{Record, U256};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::stdout::Stdout;

use super::{Covered, Scan, Scanned, described, progress_line, remarks};
use crate::command::fleet::progress::{JobProgress, View};
use crate::failures::OrFail as _;
use crate::results::Results;
use crate::screen::{LiveScreen, Model, scan_model};
use crate::submission::{Submission, refuse_devices};

impl Scan {
    /// Has a fleet do it.
    pub(crate) fn submit(
        &self,
        fleet: &Submission,
        may_learn: bool,
        stdout: Stdout,
    ) -> Result<ExitStatus, Failure> {
        self.check_missing()?;
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        refuse_devices(&self.run)?;
        if !self.database.is_empty() {
            return usage(
                "--database: a fleet's workers are sent what they look for, and a database is too large for that; give addresses \
                 with --targets, or scan for a database on one machine",
            );
        }
        if self.map.is_some() {
            return usage(
                "--map: a fleet keeps its own record of what is covered, and the same command goes on with it; leave it out",
            );
        }
        if self.estimate {
            return usage(
                "--estimate measures the devices of one machine: ask it of the same command without `fleet submit`, where the devices \
                 are; how fast a fleet is `warpsmith fleet status` says",
            );
        }
        if self.keys.is_some() {
            return usage("--keys: a list of keys is read by one machine; a fleet scans a --range");
        }
        if self.mask.is_some() || self.mask_file.is_some() {
            return usage(
                "--mask: a mask tells most of a key, and a fleet's workers would learn it; scan by it on a machine of your own",
            );
        }
        if self.random {
            return usage("--random: a fleet gives pieces out from the first to the last; leave it out");
        }
        let range = self.read_range()?;
        let (targets, list) = self.read_targets()?;
        // A public key is known by its x coordinate.
        let is_hidden = targets.forms() == [Form::X];
        if !is_hidden && self.range_file.is_some() {
            return usage(
                "--range-file: workers that look for addresses are told which keys they test, so a range that is a secret is none \
                 any more. Look for its --public-key, which hides it, or scan on your own machine",
            );
        }
        if !is_hidden && !may_learn {
            return usage(
                "a worker that finds one of these addresses learns its private key before you do, and so does whoever runs the \
                 server. If all of them are yours, or you accept that, say --workers-may-learn-keys. Where the public key is known, \
                 give that with --public-key instead: then a worker learns the key only if it can guess the range",
            );
        }
        let order = Order {
            range: range.to_string(),
            types: targets.types().iter().map(|wanted| wanted.name.clone()).collect(),
            addresses: list.records.iter().map(Record::text).collect(),
        };
        // What workers will make of it is tried here first.
        ScanTask::open(&order).or_fail()?;
        // One key may be several of them: then it ends with the range.
        let count = self.count.unwrap_or(order.addresses.len() as u64);
        let wishes = Wishes { count: Some(count), enough: None, priority: fleet.priority() };
        let home = fleet.home()?;
        let mut screen = self.run.screen();
        let encryption = self.recipient.open()?;
        let mut results = Results::open(stdout, self.run.output.as_deref(), self.run.json, encryption)?;
        results.notify(self.run.notify.as_deref());
        results.born(self.birthday.unwrap_or_default());
        for line in &remarks(&list.report) {
            screen.warn(line);
        }
        let view = ScanView {
            scan: self,
            name: self.name_of(&Scanned::Range(range)),
            keys: range.count().as_f64(),
            targets: described(&targets),
            addresses: targets.identity().count,
        };
        let asked = self.asked()?;
        let led = fleet.lead(&home, &self.run, (&mut results, &mut screen), &view, || {
            if is_hidden {
                let id = submit_hidden(&home, &order, &asked, &wishes)?;
                return Ok((id, "workers are told neither keys, nor what is looked for, nor where; who guesses the range can find the key"));
            }
            let Order { range, types, addresses } = order;
            let (sought, liked) = (Sought::Range { range }, Liked::Targets { types, addresses });
            let descriptor = Descriptor { fleet: Descriptor::FORMAT, round: 0, sought, liked, split: None };
            Ok((submit(&home, descriptor, &wishes)?, "workers may learn the keys they find"))
        });
        let delivered = results.finish();
        let led = led?;
        delivered?;
        // A hidden scan reaches somewhat beyond its range.
        let covered = U256::from(led.job.covered().or_fail()?).min(range.count());
        let elapsed_s = led.elapsed.as_secs_f64();
        let what = match led.ended {
            Ended::Over if covered == range.count() => "the whole range is covered",
            Ended::Over if led.job.is_cancelled() => "cancelled",
            Ended::Over => "every address is found",
            Ended::TimeLimit => "time limit reached",
            Ended::Stopped => "interrupted",
        };
        let matches = match led.matches {
            0 => "no match".to_owned(),
            1 => "1 match".to_owned(),
            n => format!("{} matches", human::count(n as f64)),
        };
        screen.say(format_args!(
            "{what}: {matches}, {} keys tested in {}, {}, {} of the range covered",
            human::count(led.tried as f64),
            human::seconds(elapsed_s),
            human::rate(led.tried as f64 / elapsed_s.max(1e-9)),
            human::percent(covered.as_f64() / range.count().as_f64())
        ));
        fleet.conclude(&led, &mut screen);
        let (matches, tried) = (led.matches, u64::try_from(covered).unwrap_or(u64::MAX));
        let (covered, ended) = (covered.to_string(), led.ended_by());
        results.stdout().done(self.run.json, &Covered { covered, matches, tried, elapsed_s, ended })?;
        Ok(led.ending())
    }
}

/// Presentation of a scan by a fleet.
struct ScanView<'a> {
    scan: &'a Scan,
    name: String,
    keys: f64,
    targets: [String; 2],
    addresses: u64,
}

impl View for ScanView<'_> {
    fn model(&self) -> Model {
        let output = self.scan.run.output.as_ref().map(|path| path.display().to_string());
        let mut model = scan_model(&self.name);
        model.describe_scan(self.addresses, self.targets.clone(), Vec::new(), output, Vec::new());
        model
    }

    fn introduce(&self, screen: &mut LiveScreen) {
        if screen.model().is_none() {
            screen.say(format_args!("range     {}", self.name));
            screen.say(format_args!("targets   {}", self.targets[1]));
        }
    }

    fn show(&self, progress: &JobProgress<'_>, screen: &mut LiveScreen) {
        screen.scan_progress(&progress.scan(self.keys));
    }

    fn print(&self, progress: &JobProgress<'_>, stdout: &mut Stdout) -> Result<(), Failure> {
        stdout.progress_json(&progress.line(progress_line(&progress.scan(self.keys))))
    }
}
