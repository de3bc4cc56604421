//! `warpsmith serve-salts`: salts for others, by HTTP, each within a deadline of its own.
//!
//! A request is read and checked (`request`), scheduled by the library ([`warpsmith::salts`]), and answered (`routes`). No key is involved:
//! salts are no secret.

mod metrics;
mod request;
mod routes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::failures::OrFail as _;
use crate::running::OpenDevices as _;
use clap::Args;
use metrics::Metrics;
use warpsmith::salts::SaltScheduler;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::token::read_token;
use warpsmith_console::web::{ListeningLine, listen};

const EXAMPLES: &str = "\
Examples:
  warpsmith serve-salts --listen 127.0.0.1:8090
  warpsmith serve-salts --listen 0.0.0.0:8090 --token-file token --metrics 127.0.0.1:9090

  curl -H 'content-type: application/json' http://127.0.0.1:8090/v1/salts -d \\
    '{\"factory\": \"arachnid\", \"init_code_hash\": \"0x2b..90\", \"patterns\": [\"cafe\"], \"deadline_s\": 5}'

Plain HTTP/1.1: for TLS put a proxy before it. docs/salt-service.md has every field of a request and an answer.";

/// Find salts for others, by HTTP, each within a deadline
///
/// Takes requests (factory, hash of the creation code, caller, pattern or score, deadline) and answers each with the best salt found in
/// time. Requests under way share the devices evenly. Runs until it is interrupted.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeSalts {
    /// Where to listen: an address and a port, 0 for any free one
    #[arg(long, value_name = "ADDR")]
    listen: String,

    /// Answer only those who send the token in this file: one line, readable by you alone; needed beyond this machine
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Requests that are searched for at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = human::whole::<u16>(1..=64))]
    jobs: u16,

    /// Requests that may wait for one of those to end; more are turned away
    #[arg(long, value_name = "N", value_parser = human::whole::<u16>(..), default_value_t = 64)]
    queue: u16,

    /// The longest deadline of a request
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = human::parse_duration)]
    longest: Duration,

    /// The least chance in percent that a request must have in its time; others are refused with the odds
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = human::whole::<u8>(0..=99))]
    least_chance: u8,

    /// Where GET /metrics is answered, for Prometheus: an address and a port of its own
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Print where it listens as JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

impl ServeSalts {
    pub fn run(&self, mut stdout: Stdout) -> Result<ExitStatus, Failure> {
        let stop = interrupt()?;
        let mut screen = Screen::new(self.quiet);
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        let (listener, address) = listen("--listen", &self.listen)?;
        if token.is_none() && !address.ip().is_loopback() {
            return Err(Failure::Usage(format!(
                "--listen {address} can be reached from other machines: give --token-file FILE, so that only those are answered who \
                 have the token, or listen on 127.0.0.1"
            )));
        }
        let watchers = self.metrics.as_deref().map(|metrics| listen("--metrics", metrics)).transpose()?;
        let devices = self.devices.open()?;
        for (id, about) in devices.describe() {
            screen.say(format_args!("device    {id}: {about}"));
        }
        let scheduler =
            SaltScheduler::new(devices, usize::from(self.jobs), usize::from(self.queue)).or_fail()?;
        for (kind, rate) in scheduler.rates() {
            screen.say(format_args!("rate      {} for {kind}", human::rate(rate)));
        }
        let metrics = Metrics::new(&scheduler);
        let metrics_address =
            watchers.map(|(watchers, address)| metrics.serve(watchers).map(|()| address)).transpose()?;
        self.introduce(address, metrics_address, &mut screen, &mut stdout)?;
        let rules = routes::Rules {
            token,
            longest: self.longest,
            least_chance: f64::from(self.least_chance) / 100.0,
            metrics: metrics.clone(),
        };
        let served = routes::serve(listener, Arc::new(scheduler), rules, &stop);
        served.map_err(|error| Failure::Other(format!("the service ended: {error}")))?;
        screen.say(format_args!("stopped   {} answered", human::count(metrics.answered() as f64)));
        stdout.done(self.json, &NoSummary {})?;
        debug_assert!(stop.load(Ordering::Relaxed));
        Ok(ExitStatus::Interrupted)
    }

    fn introduce(
        &self,
        address: SocketAddr,
        metrics: Option<SocketAddr>,
        screen: &mut Screen,
        stdout: &mut Stdout,
    ) -> Result<(), Failure> {
        screen.say(format_args!("serving   http://{address}/v1/salts; Ctrl-C ends it"));
        if let Some(metrics) = metrics {
            screen.say(format_args!("metrics   http://{metrics}/metrics"));
        }
        screen.say(format_args!(
            "limits    {} at a time, {} waiting, deadlines up to {}",
            self.jobs,
            self.queue,
            human::seconds(self.longest.as_secs_f64())
        ));
        if self.json {
            stdout.show_json(&ListeningLine::new(address, metrics, ()))?;
        }
        Ok(())
    }
}
