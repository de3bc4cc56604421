//! `fleet status` and `watch`: how jobs and workers stand.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::lead;
use warpsmith::fleet::net::submit::status;

use crate::ending::{Ending, Failure};
use crate::human;
use crate::running::interrupt;
use crate::stdout::Stdout;

/// Show how jobs and workers stand
#[derive(Args)]
pub(crate) struct Status {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// What a worker costs an hour, for how much a worker does for that
    #[arg(long, value_name = "PRICE")]
    price: Option<f64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show how jobs and workers stand, again and again until stopped
#[derive(Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    status: Status,

    /// How often
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = human::parse_duration)]
    every: Duration,
}

#[derive(Serialize)]
struct StatusLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    status: &'a lead::Status,
}

impl Status {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        self.show(&Home::open(&self.folder)?, stdout)?;
        Ok(Ending::Done)
    }

    fn show(&self, home: &Home, stdout: &mut Stdout) -> Result<(), Failure> {
        let status = status(home)?;
        if self.json {
            stdout.show_json(&StatusLine { event: "status", status: &status })
        } else {
            stdout.show(self.text(&status).as_bytes())
        }
    }

    fn text(&self, status: &lead::Status) -> String {
        let mut text = String::new();
        let claimed: f64 = status.workers.iter().map(|worker| worker.claimed).sum();
        for job in &status.jobs {
            let _ = writeln!(
                text,
                "job {}  {} units, {} tried, {} leased, {} matches where {:.2} were expected{}",
                job.id.short(),
                job.units,
                human::count(job.tried),
                job.leased,
                job.matches,
                job.expected,
                if job.expected > 0.0 && claimed > 0.0 && !job.over {
                    let rest = job.tried / job.expected;
                    format!(
                        ", half a chance of the next in {}",
                        human::seconds(std::f64::consts::LN_2 * rest / claimed)
                    )
                } else {
                    String::new()
                }
            );
        }
        for worker in &status.workers {
            let _ = writeln!(
                text,
                "worker {} {:<12} {:<7} {} units, {} claimed, {} proven, z {:+.1}, seen {} ago, {}{}",
                worker.id,
                worker.name,
                worker.trust,
                worker.units,
                human::rate(worker.claimed),
                human::rate(worker.proven),
                worker.z,
                human::seconds(worker.seen_s),
                worker.devices.join(" "),
                match (self.price, &worker.why) {
                    (_, Some(why)) => format!("; {why}"),
                    (Some(price), None) if price > 0.0 =>
                        format!(", {} for 1 of what it costs", human::count(worker.proven * 3600.0 / price)),
                    _ => String::new(),
                }
            );
        }
        if text.is_empty() {
            text.push_str("no open job, and no worker was heard of\n");
        }
        text
    }
}

impl Watch {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let home = Home::open(&self.status.folder)?;
        let stop = interrupt()?;
        while !stop.load(Ordering::Relaxed) {
            self.status.show(&home, stdout)?;
            let until = Instant::now() + self.every;
            while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(Ending::Interrupted)
    }
}
