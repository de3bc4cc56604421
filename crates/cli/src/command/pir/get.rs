//! `warpsmith pir get`: reads entries; the server does not learn which.

use std::path::PathBuf;

use clap::Args;
use warpsmith::pir::keyword::{Shape, is_at_home};
use warpsmith::pir::remote::{Offer, Remote};
use warpsmith::pir::{Asked, Client, Error, Fetched};

use super::hint::same_database;
use super::keys::{EntryLine, Wanted};
use super::{lanes, remote};
use crate::ending::{Ending, Failure};
use crate::human;
use crate::screen::Screen;
use crate::stdout::Stdout;

const EXAMPLES: &str = "\
Examples:
  warpsmith pir get --server http://127.0.0.1:8080 --state my.state 17
  warpsmith pir get --server http://127.0.0.1:8080 --state my.state 17 4711 17 --json
  warpsmith pir get --server http://127.0.0.1:8080 --state my.state 0x00000000219ab540356cbb839cbe05303d7705fa

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

    /// The state that `warpsmith pir hint` made
    #[arg(long, value_name = "FILE")]
    state: PathBuf,

    /// What to read: the index of an entry, or a key, as the database has it
    #[arg(value_name = "INDEX|KEY", required = true, num_args = 1..)]
    wanted: Vec<String>,

    /// Print JSON, one document a line
    #[arg(long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(long)]
    quiet: bool,
}

impl Get {
    pub fn run(&self, stdout: &mut Stdout) -> Result<Ending, Failure> {
        let mut screen = Screen::new(self.quiet);
        let remote = remote(&self.server)?;
        let mut client = Client::open(&self.state, lanes())?;
        let offer = remote.offer()?;
        same_database(&offer.description, &client, "server")?;
        if offer.batch == 0 {
            let text = "makes hints and answers no queries; give the server that answers";
            return Err(Failure::Usage(format!("--server {} {text}", self.server)));
        }
        let shape = offer.description.keyword.as_ref();
        let wanted = self.wanted.iter().map(|text| Wanted::parse(&offer.description, text));
        let wanted: Vec<Wanted> = wanted.collect::<Result<_, _>>().map_err(Failure::Usage)?;
        self.catch_up(&remote, &offer, &mut client, &mut screen)?;
        let each = shape.map_or(1, |shape| usize::from(shape.places));
        if (wanted.len() * each) as u64 > client.remaining() {
            return Err(Failure::Other(format!(
                "{} queries are needed and {} remain; make a new state with `warpsmith pir hint`",
                wanted.len() * each,
                client.remaining()
            )));
        }
        let (mut all_found, mut failed) = (true, None);
        for wanted in wanted.chunks((offer.batch / each).max(1)) {
            let places: Vec<u64> = wanted.iter().flat_map(|wanted| wanted.places(shape)).collect();
            let asked = client.ask(&places)?;
            let fetched = self.fetch(&remote, &mut client, &asked)?;
            for (wanted, (places, fetched)) in
                wanted.iter().zip(places.chunks(each).zip(fetched.chunks(each)))
            {
                match entries(&mut client, shape, places, fetched)? {
                    Ok(entries) => {
                        let line = EntryLine::new(wanted, shape, &entries);
                        all_found &= line.found != Some(false);
                        match self.json {
                            true => stdout.show_json(&line)?,
                            false => stdout.show(line.text().as_bytes())?,
                        }
                    }
                    Err(reason) => {
                        screen.warn(&format!("{}: {reason}", name(wanted)));
                        failed = Some(reason);
                    }
                }
            }
        }
        client.tidy()?;
        screen.say(format_args!("{} queries remain", human::count(client.remaining() as f64)));
        match (failed, all_found) {
            (Some(_), _) => Err(Failure::Other("not everything could be read; see above".to_owned())),
            (None, true) => Ok(Ending::Done),
            (None, false) => Ok(Ending::NoMatch),
        }
    }

    /// Completes what an earlier run left, and brings the hints to the server's epoch.
    fn catch_up(
        &self,
        remote: &Remote,
        offer: &Offer,
        client: &mut Client,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        if client.waiting() > 0 {
            let waiting = client.resend()?;
            match remote.fetch(client, &waiting) {
                Ok(_) => screen.say(format_args!(
                    "{} queries of an interrupted run were sent again as they were, and answered",
                    waiting.len()
                )),
                // The server goes back so far and no further; without their answers their hints are worthless.
                Err(Error::Mismatch(reason)) => {
                    let count = client.abandon()?;
                    screen.warn(&format!("{count} queries of an interrupted run were given up: {reason}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let before = client.version().epoch;
        if before > offer.epoch {
            return Err(Failure::Other(format!(
                "the state is of epoch {before}, and the server has only {}; was it started from an old copy?",
                offer.epoch
            )));
        }
        remote.synchronise(client)?;
        if client.version().epoch > before {
            screen.say(format_args!("hints brought from epoch {before} to {}", client.version().epoch));
        }
        client.tidy()?;
        Ok(())
    }

    fn fetch(
        &self,
        remote: &Remote,
        client: &mut Client,
        asked: &Asked,
    ) -> Result<Vec<warpsmith::pir::Result<Fetched>>, Failure> {
        remote.fetch(client, asked).map_err(|error| {
            Failure::Other(format!(
                "{error}\nthe queries wait in {}: `warpsmith pir get` sends them again as they are, which tells the server \
                 nothing new",
                self.state.display()
            ))
        })
    }
}

fn name(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Index(index) => format!("entry {index}"),
        Wanted::Key { text, .. } => text.clone(),
    }
}

/// The entries of all places of one thing that was wanted, or why they cannot be known. One that cannot stand where it is
/// said to stand is a wrong answer: the hint made from it is worthless.
fn entries(
    client: &mut Client,
    shape: Option<&Shape>,
    places: &[u64],
    fetched: &[warpsmith::pir::Result<Fetched>],
) -> Result<Result<Vec<Vec<u8>>, String>, Failure> {
    let (mut entries, mut failed) = (Vec::new(), None);
    for (place, fetched) in places.iter().zip(fetched) {
        match fetched {
            Ok(fetched) if shape.is_none_or(|shape| is_at_home(shape, *place, &fetched.entry)) => {
                entries.push(fetched.entry.clone());
            }
            Ok(fetched) => {
                client.spoil(fetched)?;
                failed = Some("the server's answer is wrong".to_owned());
            }
            Err(error) => failed = Some(error.to_string()),
        }
    }
    Ok(failed.map_or(Ok(entries), Err))
}
