//! Mining in a line: what is searched, on what, and the matches one by one.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith_chain::{KeyTarget, SaltTarget};
use warpsmith_engine::{
    Devices, Event, Inline, Job, Match, Outcome, Progress, PublicKey, Show, Subject, Wanted, quick_rate, run,
};
use warpsmith_pattern::{Options, Patterns, Ranking, Score, compile};

use crate::background::{Note, Outlet, Running, Watcher};
use crate::each;
use crate::error::{Error, Result};
use crate::estimate::{Estimate, Goal};

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
    one_of_each: bool,
    watcher: Option<Watcher<Progress>>,
}

impl Mine {
    fn new(searched: Searched, wish: Wish) -> Mine {
        Mine {
            searched,
            wish,
            devices: None,
            options: Options::default(),
            split: None,
            time_limit: None,
            one_of_each: false,
            watcher: None,
        }
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

    /// Searches for one match of each pattern, and ends when each has one. Of no effect in a search for the best.
    ///
    /// ```
    /// use warpsmith::{Devices, mine, npub};
    ///
    /// let matches = mine(npub(), ["q", "p", "..z"]).one_of_each().on(Devices::cpu()?);
    /// let matches = matches.into_iter().collect::<warpsmith::Result<Vec<_>>>()?;
    /// let mut patterns: Vec<_> = matches.iter().filter_map(|found| found.pattern()).collect();
    /// patterns.sort();
    /// assert_eq!(patterns, ["..z", "p", "q"]);
    /// # Ok::<(), warpsmith::Error>(())
    /// ```
    pub fn one_of_each(self) -> Mine {
        Mine { one_of_each: true, ..self }
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

    /// Measures the devices for about a second, and estimates how long the search takes.
    ///
    /// # Errors
    ///
    /// When a pattern cannot be searched for, or no device can be used. See [`Estimate`].
    pub fn estimate(mut self) -> Result<Estimate> {
        let devices = self.devices.take().map_or_else(Devices::auto, Ok)?;
        let patterns = self.patterns()?;
        let (subject, wanted) = (self.subject(), self.wanted(patterns.as_ref()));
        let goal = match &patterns {
            Some(patterns) if self.one_of_each => Goal::each(patterns),
            _ => Goal::matches(wanted, None),
        };
        let rate = quick_rate(&devices, subject, wanted)?;
        Ok(Estimate::at_rate(subject.target(), wanted, &self.options, &goal, rate))
    }

    fn subject(&self) -> Subject<'_> {
        match &self.searched {
            Searched::Keys(chain) => Subject::Key(chain.as_ref()),
            Searched::Salts(factory) => Subject::Salt(factory.as_ref()),
        }
    }

    /// Compiles the patterns, where there are any.
    fn patterns(&self) -> Result<Option<Patterns>> {
        match &self.wish {
            Wish::Patterns(texts) => Ok(Some(compile(texts, self.subject().target(), &self.options)?)),
            Wish::Best { .. } => Ok(None),
        }
    }

    fn wanted<'a>(&'a self, patterns: Option<&'a Patterns>) -> Wanted<'a> {
        match (&self.wish, patterns) {
            (Wish::Best { ranking, enough }, _) => {
                Wanted::Best { ranking, show: Show::Better, enough: *enough }
            }
            (Wish::Patterns(_), Some(patterns)) => Wanted::Patterns(patterns),
            (Wish::Patterns(_), None) => unreachable!("patterns are compiled where nothing is scored"),
        }
    }

    /// Searches on the calling thread.
    fn run(mut self, interrupt: &AtomicBool, outlet: &Outlet<Match>) -> Result<Outcome> {
        let patterns = self.patterns()?;
        let devices = self.devices.take();
        let mut tell = self.watcher.take().unwrap_or_else(|| Box::new(|_| ()));
        let mut on_event = |event: Event<'_, Match>| {
            match event {
                Event::Found(found) => found.into_iter().try_for_each(|found| outlet.give(found))?,
                Event::Progress(progress) => tell(Note::Progress(progress.clone())),
                Event::Warning(text) => tell(Note::Warning(text)),
                Event::Note(text) => tell(Note::Told(text)),
            }
            Ok(())
        };
        let (subject, split, time_limit) = (self.subject(), self.split, self.time_limit);
        if let Some(patterns) = patterns.as_ref().filter(|_| self.one_of_each) {
            // They are set up once a round, so all of them are waited for.
            let devices = devices.map_or_else(Devices::auto, Ok)?;
            let job = each::Job { split, time_limit, ..each::Job::new(subject, patterns, &self.options) };
            let ended = each::run(&job, &devices, interrupt, &mut |event, _| on_event(event));
            return ended.map(|(outcome, _)| outcome);
        }
        let devices = devices.unwrap_or_else(|| Devices::at_once(None, Inline::Auto));
        let job = Job { split, time_limit, ..Job::new(subject, self.wanted(patterns.as_ref())) };
        Ok(run(&job, &devices, interrupt, &mut on_event)?)
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
