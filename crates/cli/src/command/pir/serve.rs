//! `warpsmith pir serve`: answers queries, or makes hints for clients that have somebody else answer.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use warpsmith::pir::Error;
use warpsmith::pir::server::{Limits, Role, Server};
use warpsmith::pir::updates::Live;

use super::maker::Maker;
use super::{bytes, lanes};
use crate::ending::{Ending, Failure};
use crate::human;
use crate::running::{DeviceFlags, interrupt};
use crate::screen::Screen;
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith pir serve data.pir --listen 127.0.0.1:8080
  warpsmith pir serve data.pir --listen [::]:8080 --rate 20 --burst 100
  warpsmith pir serve data.pir --listen 127.0.0.1:8081 --hint-maker --device cuda:0

Plain HTTP/1.1 and HTTP/2. For TLS put a proxy before it (docs/private-retrieval.md has two); clients take https://.
GET /health and GET /metrics are for those who watch it. What `warpsmith pir update` appends is served within a
second or two.

A hint maker sees no queries and holds its clients' keys: whoever runs it must not run, nor speak with, the server
that answers them.";

/// Answer the queries of clients, or make hints for them
///
/// Runs until it is interrupted.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The database
    #[arg(value_name = "DBFILE")]
    database: PathBuf,

    /// Where to listen: an address and a port, 0 for any free one
    #[arg(long, value_name = "ADDR")]
    listen: String,

    /// Make hints instead of answering queries
    #[arg(long)]
    hint_maker: bool,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Queries in one request
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    batch: u32,

    /// Connections at once; others wait
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,

    /// Requests that are worked on at once; others are told to come again [default: 64, of a hint maker 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    working: Option<u32>,

    /// Requests a second from one address, on average
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = parse_rate)]
    rate: f64,

    /// Requests from one address at once
    #[arg(long, value_name = "N", default_value_t = 400.0, value_parser = parse_rate)]
    burst: f64,

    /// Time for a request to arrive
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = human::parse_duration)]
    request_time: Duration,

    /// Time without a byte after which a connection is closed [default: 60s, of a hint maker 1h]
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    idle: Option<Duration>,

    /// Changes that may be taken back for a query of an older epoch; beyond, the client must update first
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    most_taken_back: u64,

    /// Where entries are read from: a copy in memory, or the file, with slower answers [default: memory, if there is room]
    #[arg(long, value_name = "WHERE")]
    entries: Option<EntriesIn>,

    /// Print where it listens as JSON
    #[arg(long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EntriesIn {
    Memory,
    File,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.001..=1e9).contains(rate));
    rate.ok_or_else(|| "give a number from 0.001 to 1000000000".to_owned())
}

#[derive(Serialize)]
struct ListeningLine {
    event: &'static str,
    address: String,
    url: String,
    role: &'static str,
    epoch: u64,
}

impl Serve {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let stop = interrupt()?;
        let (role, name) = self.role()?;
        let mut live = Live::open(&self.database, lanes(), self.most_taken_back)?;
        let listener = TcpListener::bind(&self.listen).map_err(|error| {
            Failure::Other(format!(
                "--listen {} is not possible: {error}; give an address of this machine and a free port, such as \
                 127.0.0.1:8080",
                self.listen
            ))
        })?;
        let address = listener.local_addr().map_err(|error| Failure::Other(error.to_string()))?;
        let mut screen = Screen::new(self.quiet);
        self.load(&mut live, &stop, &mut screen)?;
        let (live, screen) = (Arc::new(live), Mutex::new(screen));
        let say = |text: std::fmt::Arguments<'_>| screen.lock().expect("nothing panics with it").say(text);
        let description = live.base().description();
        say(format_args!(
            "database  {}: {} entries of {} bytes, {}, epoch {}",
            self.database.display(),
            human::count(description.params.entries() as f64),
            description.params.entry_size(),
            bytes(description.data_bytes()),
            live.epoch()
        ));
        let place = if live.is_in_memory() { "a copy in memory" } else { "the file" };
        say(format_args!("entries   all of them fit their digests; read from {place}"));
        say(format_args!("serving   http://{address} ({name}); Ctrl-C ends it"));
        if self.hint_maker {
            say(format_args!(
                "keys      a hint maker holds the keys of its clients: do not let it answer their queries too"
            ));
        }
        if self.json {
            let (address, url) = (address.to_string(), format!("http://{address}"));
            let line = ListeningLine { event: "listening", address, url, role: name, epoch: live.epoch() };
            stdout.show_json(&line)?;
        }
        // What is wrong stays wrong: it is told once.
        let told = Mutex::new(BTreeSet::new());
        let news = |news: warpsmith::pir::Result<usize>| match news {
            Ok(_) => say(format_args!(
                "updates   epoch {}; entries changed since the file: {}",
                live.epoch(),
                human::count(live.changes() as f64)
            )),
            Err(error) => {
                if told.lock().expect("nothing panics with it").insert(error.to_string()) {
                    let text = format!("{error}; {}", self.what_remains(&live, &error));
                    screen.lock().expect("nothing panics with it").warn(&text);
                }
            }
        };
        let served = Server::new(Arc::clone(&live), role, self.limits()).run(listener, &stop, &news);
        served.map_err(|error| Failure::Other(format!("the server ended: {error}")))?;
        say(format_args!("stopped"));
        Ok(Ending::Interrupted)
    }

    /// Reads the entries and compares them with their digests.
    fn load(&self, live: &mut Live, stop: &AtomicBool, screen: &mut Screen) -> Result<(), Failure> {
        let in_memory = self.entries.map_or_else(|| live.has_room(), |place| place == EntriesIn::Memory);
        let whole = live.base().description().data_bytes();
        let mut shown = Instant::now();
        live.load(in_memory, &mut |done| {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if shown.elapsed() >= screen.interval() {
                shown = Instant::now();
                screen
                    .live(&[&format!("{} of the database read", human::percent(done as f64 / whole as f64))]);
            }
            Ok(())
        })?;
        screen.clear();
        if self.entries == Some(EntriesIn::Memory) && !live.is_in_memory() {
            return Err(Failure::Other(format!(
                "--entries memory needs {} more than the system gives; --entries file reads them from the file",
                bytes(whole)
            )));
        }
        Ok(())
    }

    /// What a server still does after something went wrong with its files.
    fn what_remains(&self, live: &Live, error: &Error) -> String {
        let of_database = matches!(error, Error::Damaged { path, .. } if *path == self.database);
        match (of_database, live.is_in_memory()) {
            (false, _) => format!("epoch {} is still served, and nothing newer", live.epoch()),
            (true, true) => "answers go on from memory, and what needs the file is refused".to_owned(),
            (true, false) => "what needs the damaged part is refused".to_owned(),
        }
    }

    fn role(&self) -> Result<(Role, &'static str), Failure> {
        match self.hint_maker {
            true => Ok((Role::HintMaker(Maker::open(&self.devices)?.make), "hint-maker")),
            false if self.devices.is_given() => Err(Failure::Usage(
                "--device and --threads are for --hint-maker; a server that answers queries uses every core"
                    .to_owned(),
            )),
            false => Ok((Role::Library, "library")),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            batch: self.batch as usize,
            connections: self.connections as usize,
            // Each request for hints takes all the threads it may have, for seconds or minutes.
            working: self.working.unwrap_or(if self.hint_maker { 1 } else { 64 }) as usize,
            rate: self.rate,
            burst: self.burst.max(self.rate),
            request_time: self.request_time,
            // While hints are made nothing travels.
            idle: self.idle.unwrap_or(Duration::from_secs(if self.hint_maker { 3600 } else { 60 })),
            ..Limits::default()
        }
    }
}
