//! Private retrieval in a line: entries of a server's database, without telling the server which.

mod query;
mod renewal;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

pub use query::{Answer, KeyError, NoAnswer, Query, amount_bytes, coins_bytes, key_of, parse_hex, parse_key};
pub use renewal::{NextHints, Renewal};
use warpsmith_device::Device;
use warpsmith_rms24::database::Description;
use warpsmith_rms24::device::{OnDevice, Tuning};
use warpsmith_rms24::hints::make::{Make, Processor};
use warpsmith_rms24::keyword::{TableShape, is_at_home};
pub use warpsmith_rms24::remote::{CaughtUp, Cost, Weighed};
use warpsmith_rms24::remote::{Offer, Remote};
use warpsmith_rms24::{Choice, Client, Fetched, Lanes, Params, Version};

use crate::error::{Error, Result};
use crate::head::ChainHead;

/// Reads a database at this server, with the hints in this file.
///
/// Where there is no such file, the database is streamed once, hints are made of it, and the file
/// is written. It is worth a password: whoever has it and sees the queries knows what was asked.
/// Never copy it, for a hint that is sent twice tells the server what it was for.
///
/// ```no_run
/// let mut library = warpsmith_eth_state::look_up("https://library.example.org", "my.state").open()?;
/// println!("{:?}", library.get("0x00000000219ab540356cbb839cbe05303d7705fa")?);
/// println!("{} queries remain", library.remaining());
/// # Ok::<(), warpsmith_eth_state::Error>(())
/// ```
///
/// `examples/private_look_up.rs` does it with a server of its own.
pub fn look_up(server: impl Into<String>, state: impl Into<PathBuf>) -> LookUp {
    LookUp { server: server.into(), state: state.into(), proxy: None, maker: None, queries: None }
}

/// A look-up that was described and not begun: see [`look_up`](fn@crate::look_up).
#[must_use = "nothing is read before `open`"]
pub struct LookUp {
    server: String,
    state: PathBuf,
    proxy: Option<String>,
    maker: Option<Arc<dyn Make>>,
    queries: Option<u64>,
}

impl fmt::Debug for LookUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LookUp { server, state, proxy, queries, .. } = self;
        let mut shown = f.debug_struct("LookUp");
        shown.field("server", server).field("state", state).field("proxy", proxy).field("queries", queries);
        shown.finish_non_exhaustive()
    }
}

impl LookUp {
    /// Reaches the server through a SOCKS5 proxy, such as Tor's at `socks5://127.0.0.1:9050`.
    pub fn through(self, proxy: impl Into<String>) -> LookUp {
        LookUp { proxy: Some(proxy.into()), ..self }
    }

    /// Makes hints with this: the processor ([`Processor`]) or a device ([`OnDevice`]); without it
    /// with a graphics card, or else the processor.
    pub fn on(self, maker: impl Make + 'static) -> LookUp {
        LookUp { maker: Some(Arc::new(maker)), ..self }
    }

    /// Makes hints for so many queries; without it for as many as the database has blocks, which is
    /// some ten thousand of a large one. A key takes as many queries as it has places, one to
    /// three.
    pub fn queries(self, count: u64) -> LookUp {
        LookUp { queries: Some(count), ..self }
    }

    /// Opens the hints, or makes them, and brings them to the newest state of the database.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, has another database than the hints are for or answers no
    /// queries, and when the hints can be neither read nor made.
    pub fn open(self) -> Result<Library> {
        let mut remote = Remote::new(&self.server)?;
        if let Some(proxy) = &self.proxy {
            remote = remote.through(proxy)?;
        }
        let offer = remote.offer()?;
        if offer.batch == 0 {
            let text = "makes hints and answers no queries; give the server that answers";
            return Err(Error::Query(format!("{} {text}", self.server)));
        }
        let client = match self.state.symlink_metadata() {
            Ok(_) => Client::open(&self.state, Lanes::detect())?,
            Err(_) => self.make(&remote, &offer.description)?,
        };
        let mut library = Library::new(remote, offer, client)?;
        library.resume()?;
        library.catch_up()?;
        Ok(library)
    }

    /// The offline phase: streams the database and writes the state.
    fn make(self, remote: &Remote, description: &Description) -> Result<Client> {
        let choice = description.params.choice();
        let params = Params::new(Choice { backups: self.queries.or(choice.backups), ..choice })?;
        let maker = self.maker.unwrap_or_else(usual_maker);
        let reserved = Client::reserve(&self.state)?;
        let mut epoch = description.epoch;
        let (key, hints) = maker.offline(&params, &AtomicBool::new(false), &mut |push| {
            epoch = remote.newest_entries(description, push)?;
            Ok(())
        })?;
        let version = Version { database: description.lineage(), epoch };
        let client = Client::create(&self.state, params, version, key, hints, Lanes::detect())?;
        drop(reserved);
        Ok(client)
    }
}

/// Returns what makes hints where nobody chose: the first graphics card of this machine, or else
/// the processor with all its threads.
fn usual_maker() -> Arc<dyn Make> {
    let threads = available_parallelism().map_or(1, |n| n.get());
    let host = Processor { lanes: Lanes::detect(), threads };
    let is_usable = |card: &Arc<dyn Device>| card.info().is_gpu && card.can_build().is_ok();
    match warpsmith_device::survey().devices.into_iter().find(is_usable) {
        Some(card) => Arc::new(OnDevice::new(card, host, Tuning::default())),
        None => Arc::new(host),
    }
}

/// What came of one query: its answer, or why that cannot be known.
///
/// See [`Library::get_all`].
pub type Answered = std::result::Result<Answer, NoAnswer>;

/// A database at a server that is read without telling which of its entries: see
/// [`look_up`](fn@crate::look_up).
///
/// Every query uses up a hint, also for what was asked before. A key is asked for at all of its
/// places, whether it is there or not. So the server sees how many queries are made, and when, and
/// nothing else.
///
/// ```no_run
/// use warpsmith_eth_state::look_up::{Answer, Query};
///
/// let mut library = warpsmith_eth_state::look_up("http://127.0.0.1:8080", "my.state").queries(1000).open()?;
/// let queries = ["17", "4711"].map(|text| Query::parse(library.description(), text).unwrap());
/// for answer in library.get_all(&queries)? {
///     assert!(matches!(answer, Ok(Answer::Entry(_))));
/// }
/// # Ok::<(), warpsmith_eth_state::Error>(())
/// ```
pub struct Library {
    remote: Remote,
    offer: Offer,
    client: Client,
}

impl Library {
    /// A database and the hints to read it with.
    ///
    /// # Errors
    ///
    /// When the hints are for another database, or for this one in another shape than the server
    /// says it has. Those for a table that this one took the place of are good for nothing but
    /// [`Library::renew`].
    pub fn new(remote: Remote, offer: Offer, client: Client) -> Result<Library> {
        same_or_larger(&offer.description, &client)?;
        Ok(Library { remote, offer, client })
    }

    /// What the server says of its database.
    pub fn description(&self) -> &Description {
        &self.offer.description
    }

    /// The hints.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The newest epoch that the server told of.
    pub fn epoch(&self) -> u64 {
        self.offer.epoch
    }

    /// Returns the block that this epoch is of, where the database is a state that tells it.
    pub fn head(&self) -> Option<ChainHead> {
        self.offer.head.as_ref()?.parse().ok()
    }

    /// Queries that can still be made with these hints.
    pub fn remaining(&self) -> u64 {
        self.client.remaining()
    }

    /// Sends queries again, as they were, to which an earlier run got no answer. It says what
    /// became of them, if there were any.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or the state cannot be written.
    pub fn resume(&mut self) -> Result<Option<Resumed>> {
        if self.client.waiting() == 0 {
            return Ok(None);
        }
        let waiting = self.client.resend()?;
        match self.remote.fetch(&mut self.client, &waiting) {
            Ok(_) => Ok(Some(Resumed::Answered(waiting.len()))),
            // The server goes back so far and no further; without their answers their hints are
            // worthless.
            Err(warpsmith_rms24::Error::Mismatch(reason)) => {
                Ok(Some(Resumed::GivenUp { count: self.client.abandon()?, reason }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the server which epoch is its newest by now, for [`Library::catch_up`].
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or has another database than before.
    pub fn look_around(&mut self) -> Result<()> {
        let offer = self.remote.offer()?;
        same_or_larger(&offer.description, &self.client)?;
        self.offer = offer;
        Ok(())
    }

    /// Brings the hints to the newest epoch that the server told of, as long as that takes less
    /// time than to make new ones: then, and where the server has not all of the changes any more,
    /// it says so, and [`Library::renew`] makes them. None where they are of that epoch already.
    ///
    /// # Errors
    ///
    /// As for [`Library::catch_up`].
    pub fn catch_up_if_cheaper(&mut self) -> Result<Option<CaughtUp>> {
        if let Err(error) = same_database(&self.offer.description, &self.client, "server") {
            return Ok(Some(CaughtUp::Gone(error.to_string())));
        }
        let before = self.client.version().epoch;
        if before >= self.offer.epoch {
            self.catch_up()?;
            return Ok(None);
        }
        let threads = available_parallelism().map_or(1, |n| n.get());
        let caught_up = self.remote.catch_up(&mut self.client, &self.offer, threads)?;
        self.client.tidy()?;
        Ok(Some(caught_up))
    }

    /// Makes new hints of the newest epoch, as many as there were, in the place of those there are:
    /// streams the database once. `watch` is told the share of the database that was read, and may
    /// end it with an error; then the hints are as before.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, the hints cannot be made, or the state cannot be written.
    pub fn renew(
        &mut self,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(f64) -> warpsmith_rms24::Result<()>,
    ) -> Result<()> {
        let threads = available_parallelism().map_or(1, |n| n.get());
        let next = self.renewal().make(threads, stop, watch)?;
        self.adopt(next)
    }

    /// Brings the hints to the newest epoch that the server told of; it says from which one, if
    /// they were older.
    ///
    /// # Errors
    ///
    /// When the server has only an older epoch or cannot be reached, or the state cannot be
    /// written.
    pub fn catch_up(&mut self) -> Result<Option<u64>> {
        let before = self.client.version().epoch;
        if before > self.offer.epoch {
            return Err(Error::Query(format!(
                "the state is of epoch {before}, and the server has only {}; was it started from an old copy?",
                self.offer.epoch
            )));
        }
        // An epoch that began since is of no concern: the server answers as of the one that a query
        // names.
        if before < self.offer.epoch {
            self.remote.synchronise(&mut self.client)?;
        }
        self.client.tidy()?;
        Ok((self.client.version().epoch > before).then_some(before))
    }

    /// Reads one thing, written as a person writes it: an index, or a key as this database has
    /// keys.
    ///
    /// # Errors
    ///
    /// When the text is neither, no query is left, or the answer is missing or wrong.
    pub fn get(&mut self, text: &str) -> Result<Answer> {
        let query =
            Query::parse(self.description(), text).map_err(|error| Error::Query(error.to_string()))?;
        let mut answers = self.get_all(&[query])?;
        let answer = answers.pop().expect("one answer for each query");
        answer.map_err(|reason| Error::Query(reason.to_string()))
    }

    /// Reads several things with as few requests as the server allows: for each its answer, or why
    /// it cannot be known.
    ///
    /// # Errors
    ///
    /// When too few queries are left, or the server or the state fails for all of them. Queries
    /// that got no answer wait in the state ([`Error::Unanswered`]), and [`Library::resume`] sends
    /// them again.
    pub fn get_all(&mut self, queries: &[Query]) -> Result<Vec<Answered>> {
        let mut answers = Vec::with_capacity(queries.len());
        self.get_each(queries, &mut |_, answer| {
            answers.push(answer);
            Ok::<(), Error>(())
        })?;
        Ok(answers)
    }

    /// Reads as [`Library::get_all`] does, with look-ups of random keys after those that are asked
    /// for, until they are `count`: so the server does not learn how many there were.
    ///
    /// # Errors
    ///
    /// As for [`Library::get_all`], and when the system gives no random numbers.
    pub fn get_padded(&mut self, queries: &[Query], count: usize) -> Result<Vec<Answered>> {
        let mut all = queries.to_vec();
        while all.len() < count {
            let mut random = [0; 20];
            warpsmith_entropy::fill(&mut random).map_err(|error| Error::Query(error.to_string()))?;
            all.push(match self.description().keyword {
                // As of an account that nobody has.
                Some(_) => Query::Key { text: String::new(), key: random.to_vec() },
                None => {
                    let number = u64::from_le_bytes(*random.first_chunk().expect("twenty bytes"));
                    Query::Index(number % self.description().params.entries())
                }
            });
        }
        let mut answers = self.get_all(&all)?;
        answers.truncate(queries.len());
        Ok(answers)
    }

    /// The same, and hands over each answer as soon as it is there.
    ///
    /// # Errors
    ///
    /// As for [`Library::get_all`], and what `take` fails with.
    pub fn get_each<E: From<Error>>(
        &mut self,
        queries: &[Query],
        take: &mut dyn FnMut(&Query, Answered) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        same_database(&self.offer.description, &self.client, "server")?;
        let shape = self.offer.description.keyword.clone();
        let each = shape.as_ref().map_or(1, TableShape::queries);
        let needed = queries.len() * each;
        if needed as u64 > self.remaining() {
            return Err(E::from(Error::Query(format!(
                "{needed} queries are needed and {} remain; make a state with new hints",
                self.remaining()
            ))));
        }
        for queries in queries.chunks((self.offer.batch / each).max(1)) {
            let places: Vec<u64> = queries.iter().flat_map(|query| query.places(shape.as_ref())).collect();
            let mut fetched = Vec::with_capacity(places.len());
            // One look-up may have more queries than the server takes at once.
            for places in places.chunks(self.offer.batch.max(1)) {
                let asked = self.client.ask(places).map_err(Error::from)?;
                fetched.extend(self.remote.fetch(&mut self.client, &asked).map_err(Error::Unanswered)?);
            }
            let parts = places.chunks(each).zip(fetched.chunks(each));
            for (query, (places, fetched)) in queries.iter().zip(parts) {
                let entries = self.entries(shape.as_ref(), places, fetched)?;
                take(query, entries.and_then(|entries| Answer::new(query, shape.as_ref(), &entries)))?;
            }
        }
        self.client.tidy().map_err(Error::from)?;
        Ok(())
    }

    /// The entries of all places of one query, or why they cannot be known. One that cannot stand
    /// where it is said to stand is a wrong answer: the hint made from it is worthless.
    fn entries(
        &mut self,
        shape: Option<&TableShape>,
        places: &[u64],
        fetched: &[warpsmith_rms24::Result<Fetched>],
    ) -> Result<std::result::Result<Vec<Vec<u8>>, NoAnswer>> {
        let (mut entries, mut failed) = (Vec::new(), None);
        for (place, fetched) in places.iter().zip(fetched) {
            match fetched {
                Ok(fetched) if shape.is_none_or(|shape| is_at_home(shape, *place, &fetched.entry)) => {
                    entries.push(fetched.entry.clone());
                }
                Ok(fetched) => {
                    self.client.spoil(fetched)?;
                    failed = Some(NoAnswer::from("the server's answer is wrong"));
                }
                Err(error) => failed = Some(error.to_string().into()),
            }
        }
        Ok(failed.map_or(Ok(entries), Err))
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("offer", &self.offer).finish_non_exhaustive()
    }
}

/// What became of queries that an earlier run left without an answer.
///
/// See [`Library::resume`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// So many were sent again as they were, and answered.
    Answered(usize),
    /// They were given up.
    GivenUp {
        /// How many.
        count: usize,
        /// What the server said.
        reason: String,
    },
}

/// The same, or the table that took the place of the one the hints are for.
fn same_or_larger(description: &Description, client: &Client) -> Result<()> {
    match description.predecessors.contains(&client.version().database) {
        true => Ok(()),
        false => same_database(description, client, "server"),
    }
}

/// Refuses a server, or another `who`, with another database than a state is for.
///
/// # Errors
///
/// That is the error: see [`Library::new`], which begins with it.
pub fn same_database(description: &Description, client: &Client, who: &str) -> Result<()> {
    if description.lineage() == client.version().database {
        // The lineage is only what the server says; a shape that belongs to another is a lie.
        let shape = |params: &Params| (params.entries(), params.entry_size(), params.block_size());
        if shape(&description.params) == shape(client.params()) {
            return Ok(());
        }
        return Err(Error::Query(format!(
            "this {who} describes the state's database in another shape than it has; do not use it"
        )));
    }
    let short = |identity: &[u8; 32]| const_hex::encode(&identity[..8]);
    if description.predecessors.contains(&client.version().database) {
        return Err(Error::Query(format!(
            "the database of this {who} has moved to a larger table, and hints of the one before are of no use in it; make a state with new hints"
        )));
    }
    Err(Error::Query(format!(
        "this {who} has the database {}..., and the state is for {}...; ask the right one, or make a state with new hints",
        short(&description.lineage()),
        short(&client.version().database)
    )))
}
