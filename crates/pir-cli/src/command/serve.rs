//! `warpsmith-pir serve`: answers queries, or makes hints for clients that have somebody else answer.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use serde::Serialize;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::token::read_token;
use warpsmith_console::web::{ListeningLine, listen};
use warpsmith_eth_state::open_database;
use warpsmith_rms24::Error;
use warpsmith_rms24::hints::make::Make;
use warpsmith_rms24::server::{Limits, Role, Server};
use warpsmith_rms24::two_server::Request;
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Choice, Key, Params};

use super::limits::LimitFlags;
use super::{bytes, lanes};
use crate::devices::Maker;
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir serve data.pir --listen 127.0.0.1:8080
  warpsmith-pir serve data.pir --listen [::]:8080 --rate 20 --burst 100
  warpsmith-pir serve data.pir --listen [::]:8080 --metrics 127.0.0.1:9090
  warpsmith-pir serve data.pir --listen 127.0.0.1:8081 --hint-maker --device cuda:0 --token-file token --memory 8G

Plain HTTP/1.1 and HTTP/2. For TLS put a proxy before it (docs/private-retrieval.md has two); clients take https://.
Behind a proxy all clients have its address: raise the limits of one address to those of all. GET /health says that it
runs. One signal ends it within five seconds, whatever is connected. What `warpsmith-pir update` appends is served within a
second or two, and the file that `warpsmith-pir fold` makes of it too.

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

    /// Make hints only for clients that send the token in this file: one line, readable by you alone
    #[arg(long, value_name = "FILE", requires = "hint_maker")]
    token_file: Option<PathBuf>,

    /// Where GET /metrics is answered, for Prometheus: an address and a port of its own, which clients need not reach
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,

    #[command(flatten)]
    limits: LimitFlags,

    /// Changes that may be taken back for a query of an older epoch; beyond, the client must update first
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), default_value_t = 10_000)]
    most_taken_back: u64,

    /// Where entries are read from: a copy in memory, or the file, with slower answers [default: memory, if there is room]
    #[arg(long, value_name = "WHERE")]
    entries: Option<EntriesIn>,

    /// Print where it listens as JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EntriesIn {
    Memory,
    File,
}

#[derive(Serialize)]
struct Serving {
    role: &'static str,
    epoch: u64,
}

impl Serve {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let stop = interrupt()?;
        let mut screen = Screen::new(self.quiet);
        let limits = self.limits.limits(self.hint_maker, &mut screen)?;
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        let (role, name) = self.role()?;
        let mut live = open_database(&self.database, lanes(), self.most_taken_back).or_fail()?;
        let (listener, address) = listen("--listen", &self.listen)?;
        let watchers = self.metrics.as_deref().map(|metrics| listen("--metrics", metrics)).transpose()?;
        self.load(&mut live, &stop, &mut screen)?;
        if let Role::HintMaker(make) = &role {
            warn_of_memory(&live, make.as_ref(), &limits, &mut screen)?;
        }
        let (live, screen) = (Arc::new(live), Mutex::new(screen));
        let say = |text: std::fmt::Arguments<'_>| screen.lock().expect("nothing panics with it").say(text);
        // Not the file itself, which would stay open after it was folded away.
        let description = live.base().description().clone();
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
        if let Some((_, address)) = &watchers {
            say(format_args!("metrics   http://{address}/metrics"));
        }
        say(format_args!(
            "limits    memory {}, of one request {}, of one address {}; connections {}, of one address {}",
            bytes(limits.memory),
            bytes(limits.request_memory),
            bytes(limits.address_memory),
            human::count(limits.connections as f64),
            human::count(limits.address_connections as f64)
        ));
        if self.hint_maker {
            say(format_args!(
                "keys      a hint maker holds the keys of its clients: do not let it answer their queries too"
            ));
        }
        if self.json {
            let metrics = watchers.as_ref().map(|(_, address)| *address);
            let serving = Serving { role: name, epoch: live.epoch() };
            stdout.show_json(&ListeningLine::new(address, metrics, serving))?;
        }
        // What is wrong stays wrong: it is told once.
        let told = Mutex::new(BTreeSet::new());
        let of_file = Mutex::new(description.epoch);
        let news = |news: warpsmith_rms24::Result<usize>| match news {
            Ok(_) if is_folded(&live, &of_file) => say(format_args!(
                "folded    the file is of epoch {} now; clients can come from epoch {} on",
                live.base().description().epoch,
                live.oldest()
            )),
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
        let mut server = Server::new(Arc::clone(&live), role, limits);
        if let Some(token) = token {
            server = server.with_token(token);
        }
        if let Some((watchers, _)) = watchers {
            server = server.with_metrics(watchers);
        }
        let served = server.run(listener, &stop, &news);
        served.map_err(|error| Failure::Other(format!("the server ended: {error}")))?;
        say(format_args!("stopped"));
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Interrupted)
    }

    /// Reads the entries and compares them with their digests.
    fn load(&self, live: &mut Live, stop: &AtomicBool, screen: &mut Screen) -> Result<(), Failure> {
        let in_memory = self.entries.map_or_else(|| live.has_room(), |place| place == EntriesIn::Memory);
        let whole = live.base().description().data_bytes();
        live.load(in_memory, &mut |done| {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            screen.bar("of the database read", Some(done as f64 / whole as f64), "");
            Ok(())
        })
        .or_fail()?;
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
}

/// Whether the database has another file than when it was last asked.
fn is_folded(live: &Live, of_file: &Mutex<u64>) -> bool {
    let mut known = of_file.lock().expect("nothing panics with it");
    let before = std::mem::replace(&mut *known, live.base().description().epoch);
    before != *known
}

/// Says so beforehand if the usual client of this database would be refused.
fn warn_of_memory(live: &Live, make: &dyn Make, limits: &Limits, screen: &mut Screen) -> Result<(), Failure> {
    let params = Params::new(Choice { lambda: 80, backups: None, ..live.params().choice() }).or_fail()?;
    let key = Key::random().or_fail()?;
    let usual = Request { key, lambda: 80, regular: true, first: params.regular(), pairs: params.backups() };
    let (needed, most) = (
        usual.memory(live, make).or_fail()?,
        limits.memory.min(limits.request_memory).min(limits.address_memory),
    );
    if needed > most {
        screen.warn(&format!(
            "the usual request of a client of this database takes {} of memory, and one may take {}: it will be refused; \
             give more with --memory and --request-memory, or let clients ask for fewer --queries",
            bytes(needed),
            bytes(most)
        ));
    }
    Ok(())
}
