//! Mining in a line: what is searched, on what, and the matches one by one.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith_chain::{KeyTarget, SaltTarget};
use warpsmith_engine::{
    Devices, Event, Inline, Job, Match, Outcome, Progress, PublicKey, Show, Subject, Wanted, run,
};
use warpsmith_pattern::{Options, Ranking, Score, compile};

use crate::background::{Note, Outlet, Running, Watcher};
use crate::error::{Error, Result};

/// Searches keys whose address, in the notation of `chain`, matches one of the patterns.
///
/// Nothing happens before [`Mine::first`] is called or the matches are iterated over. Without [`Mine::on`] every GPU of this
/// machine is used, or else its processor. What can be written as a pattern is described in `docs/mining.md`.
///
/// ```
/// use warpsmith::{Devices, mine, npub};
///
/// let found = mine(npub(), ["qq", "..zz"]).on(Devices::cpu()?).first()?;
/// assert!(found.address.starts_with("npub1qq") || found.address.ends_with("zz"));
/// // `found.export()` is the key as its users import it: an nsec. Nothing else has it.
/// assert!(found.export().is_some_and(|nsec| nsec.starts_with("nsec1")));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub fn mine(chain: impl KeyTarget + 'static, patterns: impl IntoIterator<Item = impl Into<String>>) -> Mine {
    Mine::new(Searched::Keys(Box::new(chain)), Wish::patterns(patterns))
}

/// Searches salts with which a contract factory gives an address that matches one of the patterns.
///
/// ```
/// use warpsmith::chain::ethereum::{Deployment, Factory, SaltRequest};
/// use warpsmith::{Devices, mine_salts};
///
/// let factory = Factory::find("arachnid").unwrap();
/// let factory = Deployment::create2(factory, None, Some([0x22; 32]), &SaltRequest::default())?;
/// let found = mine_salts(factory, ["ab"]).on(Devices::cpu()?).first()?;
/// assert!(found.salt().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn mine_salts(
    factory: impl SaltTarget + 'static,
    patterns: impl IntoIterator<Item = impl Into<String>>,
) -> Mine {
    Mine::new(Searched::Salts(Box::new(factory)), Wish::patterns(patterns))
}

/// Searches keys whose address scores highest: each match is better than all before it, and there is no last one.
///
/// ```
/// use warpsmith::pattern::Feature;
/// use warpsmith::{Devices, eth, mine_best};
///
/// let mut matches = mine_best(eth(), Feature::LeadingZeros).on(Devices::cpu()?).into_iter();
/// let (first, second) = (matches.next().unwrap()?, matches.next().unwrap()?);
/// assert!(first.score() < second.score());
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub fn mine_best(chain: impl KeyTarget + 'static, score: impl Into<Score>) -> Mine {
    Mine::new(
        Searched::Keys(Box::new(chain)),
        Wish::Best { ranking: Box::new(Ranking::new(score)), enough: None },
    )
}

/// What is searched.
enum Searched {
    Keys(Box<dyn KeyTarget>),
    Salts(Box<dyn SaltTarget>),
}

/// What is wanted of it.
enum Wish {
    Patterns(Vec<String>),
    Best { ranking: Box<Ranking>, enough: Option<u32> },
}

impl Wish {
    fn patterns(patterns: impl IntoIterator<Item = impl Into<String>>) -> Wish {
        Wish::Patterns(patterns.into_iter().map(Into::into).collect())
    }
}

/// A search that was described and not begun: see [`mine`], [`mine_salts`] and [`mine_best`].
///
/// ```
/// use std::time::Duration;
/// use warpsmith::pattern::Options;
/// use warpsmith::{Devices, Error, mine, npub};
///
/// // Nobody finds twenty letters in a tenth of a second.
/// let search = mine(npub(), ["QQQQQQQQQQQQQQQQQQQQ"])
///     .on(Devices::cpu()?)
///     .options(Options { ignore_case: true, ..Options::default() })
///     .time_limit(Duration::from_millis(100))
///     .watch(|note| eprintln!("{note:?}"));
/// assert!(matches!(search.first(), Err(Error::NoMatch { .. })));
/// # Ok::<(), Error>(())
/// ```
#[must_use = "nothing is searched before `first` or an iteration"]
pub struct Mine {
    searched: Searched,
    wish: Wish,
    devices: Option<Devices>,
    options: Options,
    split: Option<PublicKey>,
    time_limit: Option<Duration>,
    watcher: Option<Watcher<Progress>>,
}

impl Mine {
    fn new(searched: Searched, wish: Wish) -> Mine {
        let options = Options::default();
        Mine { searched, wish, devices: None, options, split: None, time_limit: None, watcher: None }
    }

    /// Searches on these devices.
    pub fn on(self, devices: Devices) -> Mine {
        Mine { devices: Some(devices), ..self }
    }

    /// Reads patterns in this way: whether case matters.
    pub fn options(self, options: Options) -> Mine {
        Mine { options, ..self }
    }

    /// Mines for the owner of this public key. Matches are split keys: worth nothing to whoever mines them, and joined with
    /// the owner's private key by [`crate::keys::join`].
    pub fn split_key(self, owner: PublicKey) -> Mine {
        Mine { split: Some(owner), ..self }
    }

    /// Ends the search after this time.
    pub fn time_limit(self, limit: Duration) -> Mine {
        Mine { time_limit: Some(limit), ..self }
    }

    /// Ends a search for the best as soon as this score is reached. Of no effect with patterns.
    pub fn enough(mut self, reached: u32) -> Mine {
        if let Wish::Best { enough, .. } = &mut self.wish {
            *enough = Some(reached);
        }
        self
    }

    /// Tells this function how the search goes, every second, and of devices that were dropped. It is called on the thread of
    /// the search.
    pub fn watch(self, watcher: impl FnMut(Note<Progress>) + Send + 'static) -> Mine {
        Mine { watcher: Some(Box::new(watcher)), ..self }
    }

    /// Searches until there is a match.
    ///
    /// # Errors
    ///
    /// When a pattern cannot be searched for, no device can be used, or the search ended without a match
    /// ([`Error::NoMatch`]).
    pub fn first(self) -> Result<Match> {
        let mut matches = self.into_iter();
        match matches.next() {
            Some(found) => found,
            None => Err(Error::NoMatch { tried: matches.outcome().map_or(0, |outcome| outcome.tried) }),
        }
    }

    /// Searches on the calling thread.
    fn run(mut self, interrupt: &AtomicBool, outlet: &Outlet<Match>) -> Result<Outcome> {
        let subject = match &self.searched {
            Searched::Keys(chain) => Subject::Key(chain.as_ref()),
            Searched::Salts(factory) => Subject::Salt(factory.as_ref()),
        };
        let patterns = match &self.wish {
            Wish::Patterns(texts) => Some(compile(texts, subject.target(), &self.options)?),
            Wish::Best { .. } => None,
        };
        let wanted = match (&self.wish, &patterns) {
            (Wish::Best { ranking, enough }, _) => {
                Wanted::Best { ranking, show: Show::Better, enough: *enough }
            }
            (Wish::Patterns(_), Some(patterns)) => Wanted::Patterns(patterns),
            (Wish::Patterns(_), None) => unreachable!("they were compiled above"),
        };
        let devices = self.devices.take().unwrap_or_else(|| Devices::at_once(None, Inline::Auto));
        let job = Job { split: self.split, time_limit: self.time_limit, ..Job::new(subject, wanted) };
        let mut tell = self.watcher.take().unwrap_or_else(|| Box::new(|_| ()));
        let outcome = run(&job, &devices, interrupt, &mut |event| {
            match event {
                Event::Found(found) => found.into_iter().try_for_each(|found| outlet.give(found))?,
                Event::Progress(progress) => tell(Note::Progress(progress.clone())),
                Event::Warning(text) => tell(Note::Warning(text)),
                Event::Note(text) => tell(Note::Told(text)),
            }
            Ok(())
        });
        Ok(outcome?)
    }
}

impl fmt::Debug for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mine").finish_non_exhaustive()
    }
}

impl IntoIterator for Mine {
    type Item = Result<Match>;
    type IntoIter = Matches;

    /// Begins the search, on a thread of its own.
    fn into_iter(self) -> Matches {
        Running::start(move |interrupt, outlet| self.run(interrupt, outlet))
    }
}

/// The matches of a search, as they are found. There is no last one without a time limit, but for salts, which are counted.
///
/// ```
/// use warpsmith::{Devices, mine, npub};
///
/// let mut seen = Vec::new();
/// for found in mine(npub(), ["q"]).on(Devices::cpu()?) {
///     seen.push(found?.address);
///     if seen.len() == 3 {
///         break;
///     }
/// }
/// assert!(seen.iter().all(|address| address.starts_with("npub1q")));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub type Matches = Running<Match, Outcome>;
