//! `warpsmith-pir hint`: the offline phase. Streams the database once and leaves a state.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use serde::Serialize;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::{StartupGuard, interrupt};
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::token::read_token;
use warpsmith_eth_state::look_up::same_database;
use warpsmith_rms24::database::Description;
use warpsmith_rms24::hints::Hints;
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::two_server::{Request, read};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Client, Error, Key, Params, Version};

use super::info::ShapeFlags;
use super::{Route, bytes, lanes, open_state};
use crate::devices::Maker;
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir hint --server http://127.0.0.1:8080 --state my.state
  warpsmith-pir hint --database data.pir --state my.state --queries 1000
  warpsmith-pir hint --hint-maker https://maker.example.org --token-file token --state my.state
  warpsmith-pir hint --hint-maker https://maker.example.org --token-file token --state my.state --top-up 4096

The state holds the key of the hints and is written with mode 0600. Do not copy it and do not back it up: two copies
would send the same hints, and the server could tell what was asked. Make a new one instead.";

/// Prepare to read a database: stream it once and keep hints
///
/// With --server or --database the hints are made here, and nobody else learns the key. A hint maker makes them elsewhere;
/// it learns the key, and must not be, nor speak with, the server that answers.
#[derive(Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("source").required(true))]
pub(crate) struct Hint {
    /// The server to stream the database from: http://HOST:PORT
    #[arg(long, value_name = "URL", group = "source")]
    server: Option<String>,

    /// The database itself, where it is on this machine
    #[arg(long, value_name = "DBFILE", group = "source")]
    database: Option<PathBuf>,

    /// A server that makes the hints, and answers no queries
    #[arg(long, value_name = "URL", group = "source")]
    hint_maker: Option<String>,

    /// With --hint-maker: send it the token in this file: one line, readable by you alone
    #[arg(long, value_name = "FILE", requires = "hint_maker", conflicts_with_all = ["server", "database"])]
    token_file: Option<PathBuf>,

    /// With --hint-maker: let it be http:// on another machine. Whoever sees the network between then learns the key of the
    /// hints, and with it can read every query of this state that he also sees; he learns the token too
    #[arg(long, requires = "hint_maker", conflicts_with_all = ["server", "database"])]
    allow_plain_http: bool,

    /// The state to make; nothing may be there yet
    #[arg(long, value_name = "FILE")]
    state: PathBuf,

    /// With --hint-maker: fetch so many further pairs for a state that is there already
    #[arg(long, value_name = "N", requires = "hint_maker", conflicts_with_all = ["server", "database", "lambda", "queries"],
        value_parser = human::whole::<u64>(1..=1 << 32))]
    top_up: Option<u64>,

    /// Print how large the hints would be and how long making them would take, and stop
    #[arg(long, conflicts_with_all = ["hint_maker", "top_up"])]
    estimate: bool,

    #[command(flatten)]
    route: Route,

    #[command(flatten)]
    shape: ShapeFlags,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct HintsLine {
    event: &'static str,
    state: String,
    epoch: u64,
    hints: u64,
    backup_pairs: u64,
    remaining: u64,
    bytes: u64,
    device: String,
    seconds: f64,
}

#[derive(Serialize)]
struct EstimateLine {
    event: &'static str,
    /// Of the database, all of which is read.
    bytes: u64,
    state_bytes: u64,
    queries: u64,
    whole_s: f64,
}

/// Seconds of measuring.
const MEASURED: f64 = 1.0;

/// New hints, and where they are from.
struct Made {
    version: Version,
    params: Params,
    key: Key,
    hints: Hints,
    device: String,
}

impl Hint {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let started = Instant::now();
        let mut screen = Screen::new(self.quiet);
        // Whoever waits for a hint maker is ended at once: there is nothing to put away.
        let stop = if self.hint_maker.is_some() { Arc::default() } else { interrupt()? };
        if self.estimate {
            return self.tell_estimate(&stop, &mut screen, stdout);
        }
        let hint_maker = self.hint_maker.as_deref().map(|url| self.hint_maker(url)).transpose()?;
        let (client, device) = if let (Some(maker), Some(pairs)) = (&hint_maker, self.top_up) {
            (self.top_up(maker, pairs, &mut screen)?, "hint maker".to_owned())
        } else {
            let reserved = Client::reserve(&self.state).or_fail()?;
            // Up to the first entry there is nothing to be ended in order: the next that reserves takes the place over.
            let starting = StartupGuard::new(
                self.quiet,
                "interrupted: no hint was made yet; nothing is lost by stopping",
            );
            let watched = Watched { stop: &stop, starting, measured: None };
            let made = match (&self.server, &self.database, &hint_maker) {
                (Some(url), ..) => self.stream_server(&self.route.to(url)?, watched, &mut screen)?,
                (_, Some(_), _) => self.stream_database(watched, &mut screen)?,
                (.., Some(maker)) => self.ask_maker(maker, &mut screen)?,
                (None, None, None) => unreachable!("clap asks for one of them"),
            };
            screen.clear();
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let Made { version, params, key, hints, device } = made;
            let client = Client::create(&self.state, params, version, key, hints, lanes()).or_fail()?;
            drop(reserved);
            (client, device)
        };
        screen.clear();
        let seconds = started.elapsed().as_secs_f64();
        show_state(&self.state, &client, device, started.elapsed(), self.json, stdout)?;
        screen.say(format_args!("done in {}", human::seconds(seconds)));
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// Streams for a moment, and says how long all of it would take.
    fn tell_estimate(
        &self,
        stop: &AtomicBool,
        screen: &mut Screen,
        stdout: &mut Stdout,
    ) -> Result<ExitStatus, Failure> {
        let measured = Cell::new(None);
        let starting = StartupGuard::new(self.quiet, "interrupted");
        let watched = Watched { stop, starting, measured: Some(&measured) };
        let begun = Instant::now();
        let made = match &self.server {
            Some(url) => self.stream_server(&self.route.to(url)?, watched, screen),
            None => self.stream_database(watched, screen),
        };
        screen.clear();
        let (params, seconds) = match (made, measured.get()) {
            // All of it, in less time than one measures.
            (Ok(made), _) => (Some(made.params), begun.elapsed().as_secs_f64()),
            (Err(_), Some(Measured { whole, done, seconds }))
                if !stop.load(Ordering::Relaxed) && done > 0 =>
            {
                let description = match (&self.server, &self.database) {
                    (Some(url), _) => self.route.to(url)?.offer().or_fail()?.description,
                    (None, Some(path)) => {
                        Live::open(path, lanes(), 0).or_fail()?.base().description().clone()
                    }
                    (None, None) => unreachable!("clap asks for one of them"),
                };
                (Some(self.shape.params(&description.params)?), whole as f64 * seconds / done as f64)
            }
            (Err(_), _) if stop.load(Ordering::Relaxed) => return Err(Failure::Interrupted),
            (Err(error), _) => return Err(error),
        };
        let params = params.expect("told above");
        let (read, state) = (params.entries() * params.entry_size() as u64, params.storage_bytes());
        if self.json {
            let queries = params.backups();
            stdout.show_json(&EstimateLine {
                event: "estimate",
                bytes: read,
                state_bytes: state,
                queries,
                whole_s: seconds,
            })?;
        } else {
            let text = format!(
                "reads       {}\nstate       {} for {} queries\nall         {}\n",
                bytes(read),
                bytes(state),
                human::count(params.backups() as f64),
                human::seconds(seconds)
            );
            stdout.show_text(&text)?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// A hint maker, to which a key may be sent.
    fn hint_maker(&self, url: &str) -> Result<Remote, Failure> {
        let mut maker = self.route.to(url)?;
        if self.allow_plain_http {
            maker = maker.allowing_plain_http();
        } else if !maker.is_private() {
            return Err(Failure::Usage(
                "--hint-maker is http:// on another machine: the key of the hints would travel in clear, and whoever sees it \
                 and the queries can read them; give an https:// address, or a tunnel's end on this machine \
                 (http://127.0.0.1:PORT), or --allow-plain-http if the network between is yours"
                    .to_owned(),
            ));
        }
        match &self.token_file {
            Some(path) => Ok(maker.with_token(read_token(path)?)),
            None => Ok(maker),
        }
    }

    fn stream_server(
        &self,
        remote: &Remote,
        watched: Watched<'_>,
        screen: &mut Screen,
    ) -> Result<Made, Failure> {
        let maker = Maker::open(&self.devices)?;
        let description = remote.offer().or_fail()?.description;
        let params = self.begin(&description, &maker, screen)?;
        let mut epoch = description.epoch;
        let stop = watched.stop;
        let (key, hints) = {
            let mut watch = Watch::new(&params, watched, screen);
            maker
                .make
                .offline(&params, stop, &mut |push| {
                    epoch = remote.newest_entries(&description, &mut |part| {
                        watch.tell(part)?;
                        push(part)
                    })?;
                    Ok(())
                })
                .or_fail()?
        };
        let version = Version { database: description.lineage(), epoch };
        Ok(Made { version, params, key, hints, device: maker.id })
    }

    fn stream_database(&self, watched: Watched<'_>, screen: &mut Screen) -> Result<Made, Failure> {
        let path = self.database.as_deref().expect("the caller looked");
        let live = Live::open(path, lanes(), 0).or_fail()?;
        let description = live.base().description().clone();
        let maker = Maker::open(&self.devices)?;
        let params = self.begin(&description, &maker, screen)?;
        let mut newest = 0;
        let stop = watched.stop;
        let (key, hints) = {
            let mut watch = Watch::new(&params, watched, screen);
            maker
                .make
                .offline(&params, stop, &mut |push| {
                    live.with_entries(|epoch, entries| {
                        newest = epoch;
                        // Nothing is handed over before its digest fits.
                        entries.stream(&mut |part| {
                            watch.tell(part)?;
                            push(part)
                        })
                    })
                })
                .or_fail()?
        };
        let version = Version { database: description.lineage(), epoch: newest };
        Ok(Made { version, params, key, hints, device: maker.id })
    }

    /// Says what will be done, and by whom.
    fn begin(
        &self,
        description: &Description,
        maker: &Maker,
        screen: &mut Screen,
    ) -> Result<Params, Failure> {
        let params = self.shape.params(&description.params)?;
        introduce(&params, screen);
        screen.say(format_args!("device    {}: {}", maker.id, maker.description));
        // Which entries each hint is of is found out first, and on a card kernels are compiled.
        screen.bar("getting ready to read the database", None, "");
        Ok(params)
    }

    fn ask_maker(&self, remote: &Remote, screen: &mut Screen) -> Result<Made, Failure> {
        let description = remote.offer().or_fail()?.description;
        let params = self.shape.params(&description.params)?;
        introduce(&params, screen);
        warn_of_maker(screen);
        let key = Key::random().or_fail()?;
        let (lambda, first, pairs) = (params.lambda(), params.regular(), params.backups());
        let request = Request { key: key.clone(), lambda, regular: true, first, pairs };
        let (epoch, hints) = read(&params, &remote.hints(&request, &params).or_fail()?).or_fail()?;
        if remote.offer().or_fail()?.description.lineage() != description.lineage() {
            let text = "the hint maker's database moved to a larger table meanwhile; run this again";
            return Err(Failure::Other(text.to_owned()));
        }
        let version = Version { database: description.lineage(), epoch };
        Ok(Made { version, params, key, hints, device: "hint maker".to_owned() })
    }

    fn top_up(&self, remote: &Remote, pairs: u64, screen: &mut Screen) -> Result<Client, Failure> {
        let mut client = open_state(&self.state)?;
        same_database(&remote.offer().or_fail()?.description, &client, "hint maker").or_fail()?;
        warn_of_maker(screen);
        if client.waiting() > 0 {
            return Err(Failure::Other(format!(
                "{} queries of this state wait for their answers; `warpsmith-pir get` fetches those first",
                client.waiting()
            )));
        }
        // An epoch may begin between the two requests, and the pairs then are of the new one: once more.
        for attempt in 0.. {
            remote.synchronise(&mut client).or_fail()?;
            let (first, key) = client.next_pair();
            let (key, lambda) = (key.clone(), client.params().lambda());
            let request = Request { key, lambda, regular: false, first, pairs: pairs.next_multiple_of(16) };
            match client.top_up(&remote.hints(&request, client.params()).or_fail()?) {
                Err(Error::Mismatch(_)) if attempt < 3 => {}
                other => {
                    other.or_fail()?;
                    break;
                }
            }
        }
        client.tidy().or_fail()?;
        Ok(client)
    }
}

/// Shows a state that was made.
pub(crate) fn show_state(
    state: &Path,
    client: &Client,
    device: String,
    took: Duration,
    json: bool,
    stdout: &mut Stdout,
) -> Result<(), Failure> {
    let (params, epoch) = (client.params(), client.version().epoch);
    let length = std::fs::metadata(state).map_or(0, |facts| facts.len());
    if json {
        return stdout.show_json(&HintsLine {
            event: "hints",
            state: state.display().to_string(),
            epoch,
            hints: params.regular(),
            backup_pairs: params.backups(),
            remaining: client.remaining(),
            bytes: length,
            device,
            seconds: took.as_secs_f64(),
        });
    }
    let text = format!(
        "{}: {} hints for {} queries at epoch {epoch}, {}\n",
        state.display(),
        human::count(params.regular() as f64),
        human::count(client.remaining() as f64),
        bytes(length)
    );
    stdout.show_text(&text)
}

/// Says what is read, and what a client of it holds.
pub(crate) fn introduce(params: &Params, screen: &mut Screen) {
    let count = |number: u64| human::count(number as f64);
    screen.say(format_args!(
        "database  {} entries of {} bytes, {}",
        count(params.entries()),
        params.entry_size(),
        bytes(params.entries() * params.entry_size() as u64)
    ));
    screen.say(format_args!(
        "hints     {} for {} queries, {}; a query fails with a chance of 2^{:.0}",
        count(params.regular()),
        count(params.backups()),
        bytes(params.storage_bytes()),
        params.log2_miss()
    ));
}

fn warn_of_maker(screen: &mut Screen) {
    screen.say(format_args!(
        "keys      the hint maker learns the key: it must not be, nor speak with, the server that answers"
    ));
}

/// How a stream is watched.
struct Watched<'a> {
    stop: &'a AtomicBool,
    /// Until the first part came.
    starting: StartupGuard,
    /// Of an estimate: how fast it went, after which it ends.
    measured: Option<&'a Cell<Option<Measured>>>,
}

/// A part of a stream that was timed.
#[derive(Clone, Copy)]
struct Measured {
    whole: u64,
    done: u64,
    seconds: f64,
}

/// Progress of a stream, and its end when a person wants one.
struct Watch<'a> {
    whole: u64,
    done: u64,
    /// When the first part came, and how much that was.
    since: Option<(Instant, u64)>,
    stop: &'a AtomicBool,
    starting: Option<StartupGuard>,
    measured: Option<&'a Cell<Option<Measured>>>,
    screen: &'a mut Screen,
}

impl<'a> Watch<'a> {
    fn new(params: &Params, watched: Watched<'a>, screen: &'a mut Screen) -> Watch<'a> {
        let whole = params.entries() * params.entry_size() as u64;
        let Watched { stop, starting, measured } = watched;
        Watch { whole, done: 0, since: None, stop, starting: Some(starting), measured, screen }
    }

    fn tell(&mut self, part: &[u8]) -> warpsmith_rms24::Result<()> {
        // Before the first part a signal ends the program at once.
        if self.since.is_none() && part.is_empty() {
            return Ok(());
        }
        self.starting = None;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        // It waits for the next, and there is nothing to be timed.
        if part.is_empty() {
            return Ok(());
        }
        self.done += part.len() as u64;
        let (since, first) = *self.since.get_or_insert((Instant::now(), part.len() as u64));
        self.screen.bar("of the database", Some(self.done as f64 / self.whole as f64), "");
        if let Some(measured) = self.measured {
            let seconds = since.elapsed().as_secs_f64();
            measured.set(Some(Measured { whole: self.whole, done: self.done - first, seconds }));
            if seconds >= MEASURED {
                return Err(Error::Stopped);
            }
        }
        Ok(())
    }
}
