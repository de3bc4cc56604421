//! `fleet status` and `watch`: how jobs and workers stand.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::status;
use warpsmith::fleet::net::submit;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::redact::redacted;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::web::ListeningLine;

use super::page::{self, Told};
use crate::failures::OrFail as _;

/// Show jobs and workers
///
/// Jobs are read from the folder, open ones and those that are over. How fast they are and who works, the coordinator reports,
/// where one is running.
#[derive(Args)]
pub(crate) struct Status {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// What an hour of a worker costs, of those whose invitation says nothing of it
    #[arg(long, value_name = "PRICE", value_parser = super::home::parse_price)]
    price: Option<f64>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Show jobs and workers, again and again until stopped
#[derive(Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    status: Status,

    /// How often
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = human::parse_duration)]
    every: Duration,

    /// Show it as a page for browsers of this machine instead: an address and a port, as 127.0.0.1:8080
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

#[derive(Serialize)]
struct Unheard {
    error: String,
}

#[derive(Serialize)]
struct StatusLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    status: &'a status::Status,
}

impl Status {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        self.show(&Home::open(&self.folder).or_fail()?, stdout)?;
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    fn show(&self, home: &Home, stdout: &mut Stdout) -> Result<(), Failure> {
        let status = submit::status(home).or_fail()?;
        if self.json {
            stdout.show_json(&StatusLine { event: "status", status: &status })
        } else {
            stdout.show_text(&self.text(&status))
        }
    }

    fn text(&self, status: &status::Status) -> String {
        let mut text = String::new();
        if let Some(why) = &status.unreachable {
            let _ = writeln!(text, "no coordinator: {why}");
        }
        for job in &status.jobs {
            let _ = writeln!(text, "job {}  {}", job.id.short(), job_text(job));
        }
        for worker in &status.workers {
            let trust = if worker.away && worker.trust == "honest" { "away" } else { &worker.trust };
            let _ = writeln!(
                text,
                "worker {} {:<12} {trust:<7} {} units, {} claimed, {} proven, z {:+.1}, seen {} ago, {}{}",
                worker.id,
                worker.name,
                worker.units,
                human::rate(worker.claimed),
                human::rate(worker.proven),
                worker.z,
                human::seconds(worker.seen_s),
                worker.devices.join(" "),
                match (worker.price.or(self.price), &worker.why) {
                    (_, Some(why)) => format!("; {why}"),
                    (Some(price), None) if price > 0.0 => {
                        let cost =
                            worker.cost.map_or(String::new(), |cost| format!(", cost {cost:.2} so far"));
                        format!(
                            "{cost}, {} candidates per unit of cost",
                            human::count(worker.proven * 3600.0 / price)
                        )
                    }
                    _ => String::new(),
                }
            );
        }
        if status.jobs.is_empty() {
            text.push_str("no job\n");
        }
        if status.workers.is_empty() && status.unreachable.is_none() {
            text.push_str("no worker was heard of\n");
        }
        text
    }
}

/// A job as one line of text.
fn job_text(job: &status::JobStatus) -> String {
    let title = job.job.as_ref().map_or_else(String::new, |job| redacted(&job.title()));
    if let Some(problem) = &job.problem {
        return format!("cannot be read: {problem}");
    }
    let state = match (job.over, job.cancelled) {
        (_, true) => ", cancelled",
        (true, false) => ", over",
        (false, false) => "",
    };
    let mut text = format!(
        "{title}{state}: {} units, {} tried, {} leased, {} matches",
        job.units,
        human::count(job.tried),
        job.leased,
        job.matches
    );
    if job.expected > 0.0 {
        let _ = write!(text, " where {:.2} were expected", job.expected);
    }
    if let Some(share) = job.share {
        let _ = write!(text, ", {} covered", human::percent(share));
    } else if job.expected > 0.0 && job.rate > 0.0 && !job.over {
        let seconds = std::f64::consts::LN_2 * job.tried / job.expected / job.rate;
        let _ = write!(text, ", median time to next match {}", human::seconds(seconds));
    }
    text
}

/// The status, or why it cannot be had, as JSON.
fn ask(home: &Home) -> String {
    match submit::status(home) {
        Ok(status) => serde_json::to_string(&status).expect("plain values"),
        Err(error) => serde_json::to_string(&Unheard { error: error.to_string() }).expect("plain values"),
    }
}

impl Watch {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let home = Home::open(&self.status.folder).or_fail()?;
        let stop = interrupt()?;
        let told = Told::default();
        if let Some(listen) = &self.listen {
            let address = page::show(listen, &told)?;
            match self.status.json {
                true => stdout.show_json(&ListeningLine::new(address, None, ()))?,
                false => stdout.show_text(&format!("http://{address}/\n"))?,
            }
        }
        while !stop.load(Ordering::Relaxed) {
            match self.listen {
                None => self.status.show(&home, stdout)?,
                Some(_) => told.set(ask(&home)),
            }
            let until = Instant::now() + self.every;
            while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        stdout.done(self.status.json, &NoSummary {})?;
        Ok(ExitStatus::Interrupted)
    }
}
