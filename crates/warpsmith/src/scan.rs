//! Scanning in a line: which keys, for which addresses, and the findings one by one. The parts of it are here for programs
//! that need more say, such as the command line.

#[cfg(feature = "keystore")]
pub mod listed;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith_chain::KeyType;
use warpsmith_engine::{Devices, Inline};
pub use warpsmith_engine::{
    Ended, Event, Finding, GivenKeys, Ledger, Outcome, Progress, ScanJob, ScanTargets, Unkept, scan as run,
};
use warpsmith_store::{
    Database, Databases, Filter, Interval, Job, KeyMask, Load, Map, MapFile, Order, Pace, TargetList, Width,
    choose, parse_range,
};

use crate::background::{Note, Outlet, Running, Watcher};
use crate::error::Result;
use crate::estimate::{ScanEstimate, scan_rate};

/// Survivors of a filter that a thread looks up in a second.
const CONFIRMED: f64 = 4e5;

/// Tests every key of a range, and finds those that have one of these addresses.
///
/// The range is written as on the command line: the first and the last key, both included, in hexadecimal digits or as powers
/// of two. Nothing happens before [`Scan::first`] or [`Scan::all`] is called or the findings are iterated over.
///
/// ```
/// use warpsmith::{Devices, scan};
///
/// // The eighth address of a well-known puzzle: its key has eight bits.
/// let found = scan("80:ff", ["1M92tSqNmQLYw33fuBvjmeadirh1ysMBxK"]).on(Devices::cpu()?).all()?;
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].secret().as_bytes()[31], 0xe0);
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub fn scan(range: impl Into<String>, addresses: impl IntoIterator<Item = impl Into<String>>) -> Scan {
    Scan::new(range, Sought::Addresses(addresses.into_iter().map(Into::into).collect()))
}

/// Where the addresses come from.
enum Sought {
    Addresses(Vec<String>),
    Files(Vec<PathBuf>),
    Databases(Vec<PathBuf>),
}

/// A scan that was described and not begun: see [`scan`](fn@crate::scan).
///
/// ```
/// use std::time::Duration;
/// use warpsmith::{Devices, Note, scan};
///
/// let found = scan("1:ff", ["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"])
///     .on(Devices::cpu()?)
///     .random_order()
///     .time_limit(Duration::from_secs(60))
///     .watch(|note| {
///         if let Note::Warning(text) = note {
///             eprintln!("{text}");
///         }
///     })
///     .first()?;
/// assert_eq!(found.map(|found| found.secret().as_bytes()[31]), Some(1));
/// # Ok::<(), warpsmith::Error>(())
/// ```
#[must_use = "nothing is scanned before `first`, `all` or an iteration"]
pub struct Scan {
    range: String,
    mask: Option<Arc<KeyMask>>,
    sought: Sought,
    types: Vec<&'static KeyType>,
    map: Option<PathBuf>,
    random: bool,
    devices: Option<Devices>,
    time_limit: Option<Duration>,
    watcher: Option<Watcher<Progress>>,
}

impl Scan {
    fn new(range: impl Into<String>, sought: Sought) -> Scan {
        Scan {
            range: range.into(),
            mask: None,
            sought,
            types: Vec::new(),
            map: None,
            random: false,
            devices: None,
            time_limit: None,
            watcher: None,
        }
    }

    /// Scans for the addresses in these files, one address per line, plain or compressed (`.gz`, `.zst`). A line that is no
    /// address is an error.
    pub fn for_files(range: impl Into<String>, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Scan {
        Scan::new(range, Sought::Files(files.into_iter().map(Into::into).collect()))
    }

    /// Scans for the addresses of a database that `warpsmith db build` or [`Database::build`] made.
    pub fn for_database(range: impl Into<String>, database: impl Into<PathBuf>) -> Scan {
        Scan::for_databases(range, [database])
    }

    /// Scans for the addresses of several databases at once. In whatever order they are given, a map goes on.
    ///
    /// # Panics
    ///
    /// Without any.
    pub fn for_databases(
        range: impl Into<String>,
        databases: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Scan {
        let databases: Vec<PathBuf> = databases.into_iter().map(Into::into).collect();
        assert!(!databases.is_empty(), "there is a database at least");
        Scan::new(range, Sought::Databases(databases))
    }

    /// Scans the keys that a text with unknown characters can be, instead of a range.
    ///
    /// ```
    /// use warpsmith::{Devices, scan::Scan, store::KeyMask};
    ///
    /// let mask = KeyMask::parse(&format!("{}?[0-9a-f]", "0".repeat(62)), 0)?;
    /// let found = Scan::for_mask(mask, ["1M92tSqNmQLYw33fuBvjmeadirh1ysMBxK"]).on(Devices::cpu()?).first()?;
    /// assert_eq!(found.map(|found| found.secret().as_bytes()[31]), Some(0xe0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_mask(mask: KeyMask, addresses: impl IntoIterator<Item = impl Into<String>>) -> Scan {
        let sought = Sought::Addresses(addresses.into_iter().map(Into::into).collect());
        Scan { mask: Some(Arc::new(mask)), ..Scan::new("", sought) }
    }

    /// Scans on these devices. Without it the processor scans at once, and every GPU as soon as it is ready; the processor steps
    /// aside where it adds next to nothing.
    pub fn on(self, devices: Devices) -> Scan {
        Scan { devices: Some(devices), ..self }
    }

    /// Looks for these types of addresses only, instead of all that the addresses can be.
    pub fn types(self, types: impl IntoIterator<Item = &'static KeyType>) -> Scan {
        Scan { types: types.into_iter().collect(), ..self }
    }

    /// Keeps a record of what was covered in this file. The same scan with the same file goes on where it ended; another scan
    /// with it is an error.
    pub fn map_file(self, path: impl Into<PathBuf>) -> Scan {
        Scan { map: Some(path.into()), ..self }
    }

    /// Takes the range in pieces in a random order, each once. A map that is there must be one of a random order, and keeps its pieces.
    pub fn random_order(self) -> Scan {
        Scan { random: true, ..self }
    }

    /// Ends the scan after this time.
    pub fn time_limit(self, limit: Duration) -> Scan {
        Scan { time_limit: Some(limit), ..self }
    }

    /// Tells this function how the scan goes, every second, and of devices that were dropped. It is called on the thread of
    /// the scan.
    pub fn watch(self, watcher: impl FnMut(Note<Progress>) + Send + 'static) -> Scan {
        Scan { watcher: Some(Box::new(watcher)), ..self }
    }

    /// Scans until something is found; none if the range holds nothing, or the time was up.
    ///
    /// # Errors
    ///
    /// When range, addresses or map cannot be used, or every device was lost.
    pub fn first(self) -> Result<Option<Finding>> {
        self.into_iter().next().transpose()
    }

    /// Scans the whole range, or until the time is up.
    ///
    /// # Errors
    ///
    /// As for [`Scan::first`].
    pub fn all(self) -> Result<Vec<Finding>> {
        self.into_iter().collect()
    }

    /// Measures the devices for about a second each, and estimates how long the scan takes. Keys that a map knows as covered do
    /// not count.
    ///
    /// # Errors
    ///
    /// As for [`Scan::first`]. See [`ScanEstimate`].
    pub fn estimate(mut self) -> Result<ScanEstimate> {
        let range = self.range()?;
        let devices = self.devices.take().map_or_else(Devices::auto, Ok)?;
        let targets = self.targets(&devices)?;
        // A map is only read, so that a scan may run meanwhile.
        let map = self.map.as_deref().filter(|path| path.exists()).map(MapFile::read).transpose()?;
        let left = map.map_or_else(|| range.count(), |map| map.remaining());
        let rate = scan_rate(&targets, self.mask.as_ref(), &devices)?;
        Ok(ScanEstimate::at_rate(left, rate))
    }

    /// The range, or the numbers of a mask's candidates.
    fn range(&self) -> Result<Interval> {
        Ok(match &self.mask {
            Some(mask) => mask.numbers(),
            None => parse_range(&self.range)?,
        })
    }

    fn targets(&self, devices: &Devices) -> Result<ScanTargets> {
        Ok(match &self.sought {
            Sought::Addresses(addresses) => ScanTargets::list(&TargetList::of(addresses)?, &self.types)?,
            Sought::Files(files) => ScanTargets::list(&TargetList::read(files, true)?, &self.types)?,
            Sought::Databases(paths) => {
                let databases = paths.iter().map(|path| Database::open(path));
                let databases = databases.collect::<std::result::Result<_, _>>()?;
                with_filter(databases, &self.types, FilterWish::Finest, devices, &mut |_| ())?
            }
        })
    }

    /// Scans on the calling thread.
    fn run(mut self, interrupt: &AtomicBool, outlet: &Outlet<Finding>) -> Result<Outcome> {
        let range = self.range()?;
        let named = self.devices.take();
        // For what has to be known of all devices before the scan begins.
        let found = match (&named, &self.sought) {
            (None, Sought::Databases(_)) => Some(Devices::auto()?),
            (None, _) if self.random => Some(Devices::auto()?),
            _ => None,
        };
        let devices = named.unwrap_or_else(|| Devices::at_once(None, Inline::Auto));
        let all_devices = found.as_ref().unwrap_or(&devices);
        let mut tell = self.watcher.take().unwrap_or_else(|| Box::new(|_| ()));
        let targets = self.targets(all_devices)?;
        let (map, mask) = (self.map.as_deref(), self.mask.as_ref());
        let random = self.random.then(|| targets.pace(all_devices));
        let mut ledger = match mask {
            None => ledger(range, &targets, map, random)?,
            Some(mask) => mask_ledger(mask, &targets, map, random)?,
        };
        let job = ScanJob { time_limit: self.time_limit, mask, ..ScanJob::new(&targets) };
        let outcome = run(&job, ledger.as_mut(), &devices, interrupt, &mut |event| {
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

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("range", &self.range).finish_non_exhaustive()
    }
}

impl IntoIterator for Scan {
    type Item = Result<Finding>;
    type IntoIter = Findings;

    /// Begins the scan, on a thread of its own.
    fn into_iter(self) -> Findings {
        Running::start(move |interrupt, outlet| self.run(interrupt, outlet))
    }
}

/// What a scan finds, as it is found; ends with the range.
///
/// A finding's keys count as covered when it was taken. Dropping the iterator stops the scan, and a map knows by then what
/// was covered. An error comes through the iterator and ends it.
///
/// ```
/// use warpsmith::scan::Ended;
/// use warpsmith::{Devices, scan};
///
/// let mut findings = scan("1:ff", ["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"]).on(Devices::cpu()?).into_iter();
/// for found in &mut findings {
///     println!("{}", found?.address);
/// }
/// assert_eq!(findings.outcome().map(|outcome| outcome.ended), Some(Ended::Exhausted));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub type Findings = Running<Finding, Outcome>;

/// The filter before a database.
///
/// See [`with_filter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterWish {
    /// The finest that the devices have room for and that is worth it.
    Finest,
    /// One of this width.
    Of(Width),
    /// None: every key is looked up. Only processors do that, and slowly, but it takes no memory.
    Nothing,
}

/// What is told of the filter before a database.
///
/// See [`with_filter`].
#[derive(Clone, Debug, PartialEq)]
pub enum FilterNews {
    /// Which one it is, and why.
    Chosen(String),
    /// One has to be made, which is kept beside the database: so much of it is done, from 0 to 1.
    Making(Width, f64),
}

/// The addresses of databases, with one filter before them. `tell` hears which one and why, and of a filter that has to be made.
///
/// ```
/// use warpsmith::Devices;
/// use warpsmith::scan::{FilterWish, with_filter};
/// use warpsmith::store::{BuildOptions, Database, Width};
///
/// # let folder = std::env::temp_dir().join(format!("warpsmith-with-filter-{}", std::process::id()));
/// # std::fs::create_dir(&folder)?;
/// # let (list, path) = (folder.join("list.txt"), folder.join("addresses.db"));
/// std::fs::write(&list, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n")?;
/// Database::build(&path, &[list], &BuildOptions::default())?;
/// let (databases, wish) = (vec![Database::open(&path)?], FilterWish::Of(Width::Fuse8));
/// let targets = with_filter(databases, &[], wish, &Devices::cpu()?, &mut |news| eprintln!("{news:?}"))?;
/// assert!(targets.types().iter().any(|wanted| wanted.name == "p2pkh"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When the databases have no address of these types, or the filter can be neither read nor made.
///
/// # Panics
///
/// Without any database.
pub fn with_filter(
    databases: Vec<Database>,
    types: &[&'static KeyType],
    wish: FilterWish,
    devices: &Devices,
    tell: &mut dyn FnMut(FilterNews),
) -> Result<ScanTargets> {
    let together = Databases::from(&databases[..]);
    let (types, kinds) = ScanTargets::choose(&together, types)?;
    let room = devices.filter_room();
    let keys = kinds.iter().map(|kind| together.count(*kind)).sum();
    let load = |memory: u64| Load {
        keys,
        memory,
        tests_per_second: room.tests_per_second,
        survivors_per_second: CONFIRMED,
    };
    let width = match wish {
        FilterWish::Nothing => return Ok(ScanTargets::unfiltered(databases, types)),
        FilterWish::Of(width) => width,
        FilterWish::Finest => {
            let choice = choose(&load(room.memory));
            tell(FilterNews::Chosen(choice.reason));
            choice.width.unwrap_or(Width::Fuse8)
        }
    };
    let mut open = |width: Width| {
        let mut making = |share| tell(FilterNews::Making(width, share));
        Filter::open_or_build(together.clone(), &kinds, width, &mut making)
    };
    let filter = open(width)?;
    // A card lets more pass a coarse filter than can be looked up: the processor tests it by a finer one, where there is memory.
    let floods = devices.has_cards() && room.tests_per_second * width.false_share() > CONFIRMED;
    let finer = choose(&load(room.host)).width;
    let second = match (width, finer) {
        (Width::Fuse8, Some(Width::Fuse16)) if floods => Some(open(Width::Fuse16)?),
        _ => None,
    };
    Ok(ScanTargets::databases(databases, types, filter, second))
}

/// The map of a scan: from its file, new in a file, or forgotten at the end where no file is given. A new map takes the range
/// from the first key to the last, or in a random order in pieces that suit devices of this pace ([`ScanTargets::pace`]).
///
/// # Errors
///
/// When the file cannot be used, or is the map of another scan or one in the other order.
///
/// ```
/// use warpsmith::scan::{ScanTargets, ledger};
/// use warpsmith::store::{TargetList, parse_range};
///
/// let targets = ScanTargets::list(&TargetList::of(&["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH".to_owned()])?, &[])?;
/// // Without a file the map is forgotten at the end.
/// let ledger = ledger(parse_range("1:ff")?, &targets, None, None)?;
/// assert!(!ledger.map().is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ledger(
    range: Interval,
    targets: &ScanTargets,
    file: Option<&Path>,
    random: Option<Pace>,
) -> std::result::Result<Box<dyn Ledger>, warpsmith_store::Error> {
    open_ledger(job(range, targets), file, random)
}

/// The same of the candidates of a mask.
///
/// # Errors
///
/// As for [`ledger`].
///
/// ```
/// use warpsmith::scan::{ScanTargets, mask_ledger};
/// use warpsmith::store::{KeyMask, TargetList};
///
/// let targets = ScanTargets::list(&TargetList::of(&["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH".to_owned()])?, &[])?;
/// let mask = KeyMask::parse(&format!("{}??", "0".repeat(62)), 0)?;
/// assert_eq!(mask_ledger(&mask, &targets, None, None)?.map().remaining(), 256);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn mask_ledger(
    mask: &KeyMask,
    targets: &ScanTargets,
    file: Option<&Path>,
    random: Option<Pace>,
) -> std::result::Result<Box<dyn Ledger>, warpsmith_store::Error> {
    open_ledger(job(mask.numbers(), targets).by_mask(mask), file, random)
}

fn job(range: Interval, targets: &ScanTargets) -> Job {
    let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
    Job::new(range, &names, *targets.identity())
}

fn open_ledger(
    job: Job,
    file: Option<&Path>,
    random: Option<Pace>,
) -> std::result::Result<Box<dyn Ledger>, warpsmith_store::Error> {
    let order = |job: &Job| match random {
        None => Order::Sequential,
        Some(pace) => {
            let mut seed = [0; 8];
            let seeded = warpsmith_entropy::fill(&mut seed);
            // The order is no secret; without randomness any will do.
            let seed = if seeded.is_ok() { u64::from_le_bytes(seed) } else { 1 };
            Order::paced(&job.range(), seed, &pace)
        }
    };
    match file {
        Some(path) => Ok(Box::new(MapFile::open(path, job, order)?)),
        None => {
            let order = order(&job);
            Ok(Box::new(Unkept(Map::new(job, order))))
        }
    }
}
