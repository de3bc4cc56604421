//! `warpsmith-pir get`: reads entries; the server does not learn which.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::Stdout;
use warpsmith_eth_state::look_up::{Answer, Library, Query, Resumed};
use warpsmith_eth_state::{ADDRESS, Error, SCRIPT, STATE};
use warpsmith_rms24::keyword::Layout;

use super::catching::{CaughtUpFields, NewHintsFlag};
use super::keys::EntryLine;
use super::{Route, open_state};
use crate::failures::{IntoFailure as _, OrFail as _};

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir get --server http://127.0.0.1:8080 --state my.state 17
  warpsmith-pir get --server http://127.0.0.1:8080 --state my.state 17 4711 17 --json
  warpsmith-pir get --server http://127.0.0.1:8080 --state my.state 0x00000000219ab540356cbb839cbe05303d7705fa
  warpsmith-pir get --server http://127.0.0.1:8080 --state my.state Privacy --raw > privacy.txt
  warpsmith-pir get --server http://library.onion --proxy socks5://127.0.0.1:9050 --state my.state 17

Every query uses up a hint, also for what was asked before. A lookup by key asks for all places of the key, whether
it is there or not. The server sees how many queries are made, and when; nothing else depends on what is asked.
Exit code 1: some key is not in the database.";

/// Read entries by index or key, without telling the server which
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Get {
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

    /// What to read: the index of an entry, or a key, as the database has it
    #[arg(value_name = "INDEX|KEY", required = true, num_args = 1..)]
    wanted: Vec<String>,

    /// Write the bytes of the one value asked for to stdout, as they are, and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Print JSON, one document per line
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct GotLine {
    /// Queries that can still be made.
    remaining: u64,
    /// How the hints came to the newest epoch, where they were older.
    #[serde(skip_serializing_if = "Option::is_none")]
    caught_up: Option<CaughtUpFields>,
}

impl Get {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let mut screen = Screen::new(self.quiet);
        let remote = self.route.to(&self.server)?;
        let client = open_state(&self.state)?;
        let offer = remote.offer().or_fail()?;
        let batch = offer.batch;
        let mut library = Library::new(remote, offer, client).or_fail()?;
        if batch == 0 {
            let text = "makes hints and answers no queries; give the server that answers";
            return Err(Failure::Usage(format!("--server {} {text}", self.server)));
        }
        let queries = self.wanted.iter().map(|text| Query::parse(library.description(), text));
        let queries: Vec<Query> =
            queries.collect::<Result<_, _>>().map_err(|error| Failure::Usage(error.to_string()))?;
        let layout = library.description().keyword.as_ref().map(|shape| shape.layout);
        if self.raw {
            check_raw(layout, &queries)?;
        }
        let is_text = matches!(layout, Some(Layout::Text(_)));
        let caught_up = self.catch_up(&mut library, &mut screen)?;
        let (mut all_found, mut failed) = (true, false);
        let read = library.get_each(&queries, &mut |query, answer| {
            match answer {
                Ok(answer) => {
                    all_found &= answer.is_there();
                    match (self.raw, answer) {
                        (true, Answer::Entry(value) | Answer::Value(Some(value))) => stdout.show(&value)?,
                        (true, _) => screen.warn(&format!("{}: not there", name(query))),
                        (false, answer) => {
                            let line = EntryLine::new(query, &answer, is_text);
                            match self.json {
                                true => stdout.show_json(&line)?,
                                false => stdout.show_text(&line.for_people())?,
                            }
                        }
                    }
                }
                Err(reason) => {
                    screen.warn(&format!("{}: {reason}", name(query)));
                    failed = true;
                }
            }
            Ok(())
        });
        read.map_err(|stopped| self.failure(stopped))?;
        let remaining = library.remaining();
        screen.say(format_args!("{} queries remain", human::count(remaining as f64)));
        if failed {
            return Err(Failure::Other("not everything could be read; see above".to_owned()));
        }
        stdout.done(self.json, &GotLine { remaining, caught_up })?;
        Ok(if all_found { ExitStatus::Done } else { ExitStatus::NoMatch })
    }

    /// The words for what ended a look-up.
    fn failure(&self, stopped: Stopped) -> Failure {
        match stopped {
            Stopped::Told(failure) => failure,
            Stopped::Library(Error::Unanswered(error)) => Failure::Other(format!(
                "{error}\nthe queries wait in {}: `warpsmith-pir get` sends them again as they are, which tells the server \
                 nothing new",
                self.state.display()
            )),
            Stopped::Library(error) => error.into_failure(),
        }
    }
}

/// Refuses what has no bytes of its own, and several values, whose ends nobody would see.
fn check_raw(layout: Option<Layout>, queries: &[Query]) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    match (layout, queries) {
        (Some(ADDRESS | SCRIPT), _) => {
            usage("--raw is for values, and this database has amounts; leave it out")
        }
        (Some(STATE), [Query::Key { key, .. }]) if key.len() == 20 => {
            usage("--raw is for values, and this is an account; leave it out, or give ADDRESS:SLOT")
        }
        (_, [_]) => Ok(()),
        _ => usage("--raw writes one value; give one key or index"),
    }
}

/// What ends a look-up before all answers are told.
enum Stopped {
    /// Telling one failed.
    Told(Failure),
    Library(Error),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Told(failure)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Library(error)
    }
}

impl Get {
    /// Completes what an earlier run left, and brings the hints to the server's epoch.
    fn catch_up(
        &self,
        library: &mut Library,
        screen: &mut Screen,
    ) -> Result<Option<CaughtUpFields>, Failure> {
        match library.resume().or_fail()? {
            None => {}
            Some(Resumed::Answered(count)) => screen.say(format_args!(
                "{count} queries of an interrupted run were sent again as they were, and answered"
            )),
            Some(Resumed::GivenUp { count, reason }) => {
                screen.warn(&format!("{count} queries of an interrupted run were given up: {reason}"));
            }
        }
        // Whoever does not want to wait ends the program: there is nothing to put away.
        self.new_hints.catch_up_on(library, &AtomicBool::new(false), screen)
    }
}

fn name(query: &Query) -> String {
    match query {
        Query::Index(index) => format!("entry {index}"),
        Query::Key { text, .. } => text.clone(),
    }
}
