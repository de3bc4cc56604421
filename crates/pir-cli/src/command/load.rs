//! `warpsmith-pir load`: what a server of queries bears.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_rms24::load::{self, Figures, Plan, Questions};
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::updates::Live;

use super::{lanes, limits};
use crate::failures::OrFail as _;

/// Files that are open beside the connections.
const OTHER_FILES: u64 = 64;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir load http://127.0.0.1:8080
  warpsmith-pir load http://127.0.0.1:8080 --connections 10000 --rate 2000 --time 30s --database data.pir --json

A server refuses what one address should not do (429, or it closes the connection). For this it is started with
  warpsmith-pir serve data.pir --listen 127.0.0.1:8080 --connections 10100 --address-connections 10100 --rate 10000
Exit code 1: answers were wrong, missing or refused.";

/// Put a server of queries under load
///
/// Opens all connections, then sends queries at an even pace, whether the answers before have come or not. Each answer is compared: with
/// the database's where that is given, or else with the first answer to the same query. The time of an answer is counted from when its
/// query was due.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    /// The server: http://HOST:PORT. One behind TLS is measured where it listens itself
    #[arg(value_name = "URL")]
    server: String,

    /// Connections, all open at once
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = human::whole::<u32>(1..=60_000))]
    connections: u32,

    /// Queries a second, of all connections together
    #[arg(long, value_name = "N", default_value_t = 100.0, value_parser = limits::parse_rate)]
    rate: f64,

    /// For how long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = human::parse_duration)]
    time: Duration,

    /// The database that the server has, to compare answers with
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct LoadLine<'a> {
    event: &'static str,
    server: &'a str,
    entries: u64,
    entry_size: usize,
    connections: usize,
    /// How long opening them took.
    opening_s: f64,
    asked: u64,
    answered: usize,
    refused: u64,
    failed: u64,
    wrong: u64,
    /// Whether answers were compared with the database.
    compared: bool,
    /// Answers a second.
    rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p999_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ms: Option<f64>,
}

impl Load {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let usage = |error: String| Failure::Usage(error);
        let remote = Remote::new(&self.server).map_err(|error| usage(error.to_string()))?;
        let (address, host) = self.address()?;
        let database =
            self.database.as_deref().map(|path| Live::open(path, lanes(), u64::MAX)).transpose().or_fail()?;
        let offer = remote.offer().or_fail()?;
        if offer.batch == 0 {
            return Err(usage(format!("{} answers no queries: it makes hints", self.server)));
        }
        let params = offer.description.params;
        let database = match database {
            Some(mut live) => {
                let (here, there) = (live.base().description().identity, offer.description.identity);
                if here != there || live.epoch() < offer.epoch {
                    return Err(usage("--database is another one than the server's, or older".to_owned()));
                }
                live.load(true, &mut |_| Ok(())).or_fail()?;
                Some(live)
            }
            None => None,
        };
        let most = warpsmith_http::open_files::raise(u64::from(self.connections) + OTHER_FILES);
        if most < u64::from(self.connections) + OTHER_FILES {
            return Err(usage(format!(
                "--connections {}: the system gives {most} open files; raise the limit with ulimit -Hn, or give fewer",
                self.connections
            )));
        }
        let mut screen = Screen::new(self.json);
        screen.say(format_args!(
            "{} connections to {}, {} queries a second for {}",
            human::count(f64::from(self.connections)),
            self.server,
            human::count(self.rate),
            human::seconds(self.time.as_secs_f64())
        ));
        let questions = Questions::draw(&params, offer.epoch, database.as_ref()).or_fail()?;
        let plan = Plan { connections: self.connections as usize, rate: self.rate, time: self.time };
        let figures = load::run(address, &host, questions, plan).or_fail()?;
        let ms = |part| figures.within(part).map(|time| time.as_secs_f64() * 1e3);
        let line = LoadLine {
            event: "load",
            server: &self.server,
            entries: params.entries(),
            entry_size: params.entry_size(),
            connections: figures.connections,
            opening_s: figures.opening.as_secs_f64(),
            asked: figures.asked(),
            answered: figures.answered.len(),
            refused: figures.refused.values().sum(),
            failed: figures.failed,
            wrong: figures.wrong,
            compared: database.is_some(),
            rate: figures.answered.len() as f64 / figures.elapsed.as_secs_f64().max(1e-9),
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: ms(1.0),
        };
        match self.json {
            true => stdout.show_json(&line)?,
            false => stdout.show(in_words(&line, &figures).as_bytes())?,
        }
        stdout.done(self.json, &NoSummary {})?;
        let is_whole = line.asked == line.answered as u64 && figures.connections == self.connections as usize;
        Ok(if is_whole { ExitStatus::Done } else { ExitStatus::NoMatch })
    }

    /// Where the server listens, and what it is called in requests.
    fn address(&self) -> Result<(SocketAddr, String), Failure> {
        let wrong = |why: &str| Failure::Usage(format!("'{}': {why}; give http://HOST:PORT", self.server));
        let rest = self.server.strip_prefix("http://").ok_or_else(|| wrong("only plain HTTP is measured"))?;
        let host = rest.trim_end_matches('/');
        if host.contains('/') {
            return Err(wrong("a path is not asked for here"));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let named = if has_port { host.to_owned() } else { format!("{host}:80") };
        let found = named.to_socket_addrs().ok().and_then(|mut all| all.next());
        found.map(|address| (address, host.to_owned())).ok_or_else(|| wrong("there is no such host"))
    }
}

fn in_words(line: &LoadLine<'_>, figures: &Figures) -> String {
    let number = |count: u64| human::count(count as f64);
    let by_status: Vec<String> =
        figures.refused.iter().map(|(status, count)| format!("{} with {status}", number(*count))).collect();
    let refused = if by_status.is_empty() { "none".to_owned() } else { by_status.join(", ") };
    let mut text = format!(
        "connections  {} in {}\nanswered     {} of {}, {} a second, {}\nrefused      {refused}\nfailed       {}\nwrong        {}\n",
        number(line.connections as u64),
        human::seconds(line.opening_s),
        number(line.answered as u64),
        number(line.asked),
        human::count(line.rate),
        if line.compared { "as the database says" } else { "the same each time" },
        number(line.failed),
        number(line.wrong),
    );
    if let (Some(half), Some(most), Some(nearly), Some(all)) =
        (line.p50_ms, line.p99_ms, line.p999_ms, line.max_ms)
    {
        text += &format!(
            "time         50 % within {half:.1} ms, 99 % within {most:.1} ms, 99.9 % within {nearly:.1} ms, all within {all:.1} ms\n"
        );
    }
    text
}
