//! `warpsmith-pir proxy`: a node of Ethereum for the wallets of this machine, whose answers are looked up privately.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::web::{self, ListeningLine, listen};
use warpsmith_eth_state::STATE;
use warpsmith_eth_state::look_up::Library;
use warpsmith_eth_state::proxy::{
    Advice, CALL_TIMEOUT, Fallback, Front, HintsNews, Known, Libraries, MAX_WAITING, News, Rhythm, Servers,
    Terms, Which, catch_up, is_private_method, router, run,
};
use warpsmith_http::ConnectionLimits;
use warpsmith_rms24::keyword::{Layout, TableShape};

use super::catching::{NewHintsFlag, caught_up_text, needed_text};
use super::{Route, open_state};
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir proxy --server https://library.example.org --state my.state
  warpsmith-pir proxy --server http://library.onion --proxy socks5://127.0.0.1:9050 --state my.state --every 15s
  warpsmith-pir proxy --server https://library.example.org --state my.state \\
    --fallback https://node.example.org --allow eth_call,eth_estimateGas,eth_gasPrice,eth_sendRawTransaction
  cast balance 0x00000000219ab540356cbb839cbe05303d7705fa --rpc-url http://127.0.0.1:8545

Privately answered: eth_getBalance, eth_getTransactionCount, eth_getStorageAt, and eth_getCode of accounts without code; each
is one look-up. With --codes the codes of contracts are, too: two look-ups, and one in the database of codes. Look-ups leave in
rounds of --round, filled up with others at random: what fits in one round looks the same to the server, whatever is asked and by
whichever methods. How many rounds there are follows from the number of look-ups; with --every from the clock alone. Chain id and
number of the block come with the database. Everything else is refused, unless --allow passes it to --fallback.";

/// Answer the wallets of this machine like a node, by private look-ups
///
/// Speaks JSON-RPC over HTTP and runs until it is interrupted. The server has Ethereum's state; it does not learn which accounts are asked for.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Proxy {
    /// Where wallets find it: an address and a port, 0 for any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8545")]
    listen: String,

    /// The server that answers: http://HOST:PORT, or https://
    #[arg(long, value_name = "URL")]
    server: String,

    /// The state that `warpsmith-pir hint` made
    #[arg(long, value_name = "FILE")]
    state: PathBuf,

    #[command(flatten)]
    route: Route,

    #[command(flatten)]
    new_hints: NewHintsFlag,
    /// The server of the database of codes, for eth_getCode: http://HOST:PORT, or https://
    #[arg(long, value_name = "URL", requires = "codes_state")]
    codes: Option<String>,

    /// The state that `warpsmith-pir hint` made for --codes
    #[arg(long, value_name = "FILE", requires = "codes")]
    codes_state: Option<PathBuf>,

    /// Look-ups of a round: so many leave together, however few are asked for
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = human::whole::<u16>(1..=1000))]
    round: u16,

    /// Send a round so often, whether anything is asked or not, and at no other time: 15s, 1m
    #[arg(long, value_name = "TIME", value_parser = parse_every)]
    every: Option<Duration>,

    /// A node that gets what --allow names
    #[arg(long, value_name = "URL", requires = "allow")]
    fallback: Option<String>,

    /// Methods to pass to --fallback as they are: it learns what they say, and from where they come
    #[arg(long, value_name = "METHOD", requires = "fallback", value_delimiter = ',')]
    allow: Vec<String>,

    /// Answer web pages and browser extensions of this origin, such as `https://wallet.example.org`; others are refused
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// Print where it listens as JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// Queries of a look-up.
fn queries_of(library: &Library) -> usize {
    library.description().keyword.as_ref().map_or(1, TableShape::queries)
}

fn parse_every(text: &str) -> Result<Duration, String> {
    let time = human::parse_duration(text)?;
    match time >= Duration::from_millis(100) {
        true => Ok(time),
        false => Err("give 100ms or more".to_owned()),
    }
}

/// What to add to answers of the proxy.
const ADVICE: Advice = Advice {
    fallback: Some(
        "`warpsmith-pir proxy --fallback URL --allow METHOD` passes it to a node, which then learns what it says",
    ),
    codes: Some(
        "`--codes URL --codes-state FILE` looks codes up privately; `--fallback URL --allow eth_getCode` asks a node, which \
         then learns of all accounts whose code is asked for",
    ),
    code_hashes: Some("`warpsmith-pir build --code-hashes` builds one with them"),
    origin: Some("`warpsmith-pir proxy --allow-origin ORIGIN` answers those of one origin"),
};

/// Whose hints: said after the word.
fn of(which: Which) -> &'static str {
    match which {
        Which::State => "",
        Which::Codes => " of codes",
    }
}

/// What became of hints, for people.
fn hints_text(which: Which, news: &HintsNews<'_>) -> String {
    let (of, begin) = (of(which), if which == Which::Codes { "codes: " } else { "" });
    match news {
        HintsNews::Forward(caught_up) => format!("{begin}{}", caught_up_text(caught_up)),
        HintsNews::Making(needed) => format!("{begin}{}; new hints are made", needed_text(needed)),
        HintsNews::MakingBeside(needed) => {
            format!("{}; new hints{of} are made meanwhile", needed_text(needed))
        }
        HintsNews::FewLeft(queries) => {
            format!("{} queries{of} remain; new hints{of} are made meanwhile", human::count(*queries as f64))
        }
        HintsNews::InUse(queries) => {
            format!("new hints{of} are in use: {} queries", human::count(*queries as f64))
        }
        HintsNews::NotUsed(reason) => format!("new hints{of} are not used: {reason}"),
        HintsNews::Failed(error) => format!("new hints{of} could not be made: {error}"),
    }
}

/// Warns, unless that was the last warning of its kind.
fn warn_once(screen: &mut Screen, last: &mut String, reason: String) {
    if *last != reason {
        screen.warn(&reason);
        *last = reason;
    }
}

#[derive(Serialize)]
struct Serving {
    role: &'static str,
    epoch: u64,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "warpsmith_console::json::text_if_any"
    )]
    chain_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_number: Option<u64>,
}

impl Proxy {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let mut screen = Screen::new(self.quiet);
        let (remote, fallback) = (self.route.to(&self.server)?, self.fallback()?);
        let stop = interrupt()?;
        let client = open_state(&self.state)?;
        let (listener, address) = listen("--listen", &self.listen)?;
        let offer = remote.offer().or_fail()?;
        let (batch, layout) = (offer.batch, offer.description.keyword.as_ref().map(|shape| shape.layout));
        let mut servers = Servers::default();
        let library = Library::new(servers.add("server", remote), offer, client).or_fail()?;
        let places = queries_of(&library);
        let rhythm = Rhythm { round: usize::from(self.round), every: self.every };
        self.check(layout, batch, places)?;
        let known = Arc::new(Known::default());
        let mut libraries = Libraries { state: library, codes: self.code_library(&mut servers)? };
        let new_hints = self.new_hints.into();
        let mut told = |news: News<'_>| {
            if let News::Hints(which, news) = news {
                screen.say(format_args!("{}", hints_text(which, &news)));
            }
        };
        let mut epoch = catch_up(&mut libraries, &known, new_hints, &stop, &mut told).or_fail()?;
        let head = known.head();
        self.warn(&address, &mut screen);
        screen.say(format_args!("answering http://{address}; Ctrl-C ends it"));
        match head {
            Some(head) => screen.say(format_args!("state     chain {}, block {}", head.chain_id, head.number)),
            None => screen.warn(
                "the database does not say of which chain and block it is: eth_chainId and eth_blockNumber are refused, and \
                 most wallets ask for them first",
            ),
        }
        screen.say(format_args!(
            "rounds    {} look-ups each{}; {} queries remain, enough for {} rounds",
            rhythm.round,
            self.every
                .map_or(String::new(), |every| format!(", one in {}", human::seconds(every.as_secs_f64()))),
            human::count(libraries.state.remaining() as f64),
            human::count((libraries.state.remaining() / (rhythm.round * places) as u64) as f64)
        ));
        if let Some(codes) = &libraries.codes {
            let each = queries_of(codes);
            screen.say(format_args!(
                "codes     {each} queries each; {} remain, enough for {} codes",
                human::count(codes.remaining() as f64),
                human::count((codes.remaining() / each as u64) as f64)
            ));
        }
        if self.json {
            let (chain_id, block_number) = (head.map(|head| head.chain_id), head.map(|head| head.number));
            let serving = Serving { role: "proxy", epoch, chain_id, block_number };
            stdout.show_json(&ListeningLine::new(address, None, serving))?;
        }
        let (wants, wanted) = sync_channel(MAX_WAITING);
        let origins =
            self.allow_origin.iter().map(|origin| origin.trim_end_matches('/').to_owned()).collect();
        let has_codes = libraries.codes.is_some();
        let known_to_front = Arc::clone(&known);
        let front =
            Front { wants, known: known_to_front, servers, has_codes, fallback, origins, advice: ADVICE };
        web::serve_in_background(listener, router(front), ConnectionLimits::DEFAULT, CALL_TIMEOUT)?;
        // What stays wrong is told once.
        let (mut away, mut lost) = (String::new(), String::new());
        let terms = Terms { known: &known, rhythm, new_hints, stop: &stop, advice: ADVICE };
        let ended = run(&mut libraries, &wanted, terms, &mut |news| match news {
            News::Hints(which, HintsNews::Failed(error)) => {
                warn_once(
                    &mut screen,
                    &mut lost,
                    format!("new hints{} could not be made: {error}", of(which)),
                );
            }
            News::Hints(which, news) => screen.say(format_args!("{}", hints_text(which, &news))),
            News::Epoch(now) => {
                if !away.is_empty() {
                    screen.note("the server answers again");
                    away.clear();
                }
                if now > epoch {
                    let block = known.head().map_or(String::new(), |head| format!(", block {}", head.number));
                    screen.say(format_args!("state     epoch {now}{block}"));
                    epoch = now;
                }
            }
            News::Away(error) => warn_once(&mut screen, &mut away, error.to_string()),
            News::Lost(error) => warn_once(&mut screen, &mut lost, error.to_string()),
        });
        ended.or_fail()?;
        let remaining = human::count(libraries.state.remaining() as f64);
        screen.say(format_args!("stopped; {remaining} queries remain"));
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Interrupted)
    }

    /// Refuses a database that has nothing for wallets, and rounds that the server would not take in one request.
    fn check(&self, layout: Option<Layout>, batch: usize, places: usize) -> Result<(), Failure> {
        let server = &self.server;
        if layout != Some(STATE) {
            return Err(Failure::Usage(format!(
                "--server {server} has no state of Ethereum; give one whose database was built from a state (`warpsmith-pir \
                 build --help`)"
            )));
        }
        if batch == 0 {
            return Err(Failure::Usage(format!(
                "--server {server} makes hints and answers no queries; give the server that answers"
            )));
        }
        if usize::from(self.round) * places > batch {
            return Err(Failure::Usage(format!(
                "--round {} takes {} queries, and the server takes {batch} at once; give at most {}",
                self.round,
                usize::from(self.round) * places,
                batch / places
            )));
        }
        if self.codes.is_some() && self.round < 2 {
            return Err(Failure::Usage(
                "--round 1 has no room for eth_getCode, which takes two look-ups with --codes; give 2 or more".to_owned(),
            ));
        }
        Ok(())
    }

    /// The database of codes, where one was given.
    fn code_library(&self, servers: &mut Servers) -> Result<Option<Library>, Failure> {
        let (Some(url), Some(state)) = (&self.codes, &self.codes_state) else { return Ok(None) };
        let (remote, client) = (self.route.to(url)?, open_state(state)?);
        let offer = remote.offer().or_fail()?;
        let layout = offer.description.keyword.as_ref().map(|shape| shape.layout);
        if !matches!(layout, Some(Layout::Chunked(_))) || offer.batch == 0 {
            return Err(Failure::Usage(format!(
                "--codes {url} does not answer for a database of codes; give the server of one (`warpsmith-pir build --rpc URL \
                 --codes FILE` makes it)"
            )));
        }
        Ok(Some(Library::new(servers.add("server of codes", remote), offer, client).or_fail()?))
    }

    /// Where the rest goes.
    fn fallback(&self) -> Result<Option<Fallback>, Failure> {
        let Some(url) = &self.fallback else { return Ok(None) };
        let allowed: BTreeSet<String> = self.allow.iter().cloned().collect();
        for method in &allowed {
            if !method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || method.is_empty() {
                return Err(Failure::Usage(
                    "--allow takes names of methods, separated by commas, such as eth_call,eth_gasPrice"
                        .to_owned(),
                ));
            }
            let is_told = method == "eth_getCode" && self.codes.is_none();
            if !is_told && is_private_method(method) {
                return Err(Failure::Usage(format!(
                    "--allow {method} would tell the node what is answered privately here; leave it out"
                )));
            }
        }
        Ok(Some(Fallback::new(self.route.to(url)?, allowed)))
    }

    fn warn(&self, address: &std::net::SocketAddr, screen: &mut Screen) {
        if !address.ip().is_loopback() {
            screen.warn(&format!(
                "{address} can be reached from other machines: what they ask travels in clear, and uses up your hints"
            ));
        }
        if self.fallback.is_some() {
            screen.warn(&format!(
                "{} go to --fallback as they are: that node learns which accounts and contracts they name, and {}",
                self.allow.join(", "),
                match self.route.proxy {
                    Some(_) => "that they belong together",
                    None => "the address of this machine",
                }
            ));
        }
    }
}
