//! Scheduling of salt requests: many clients share the devices, and each request has a deadline.
//!
//! A [`SaltScheduler`] runs a number of searches at a time, each on all devices, of which all get the same time ([`FairShare`]).
//! Other requests wait in a queue that is fair by client. A permit to run belongs to the search: it is free when the search has
//! ended, also where its client has gone. Nothing here knows how requests arrive.

mod fairness;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warpsmith_chain::ethereum::{Deployment, Factory, SaltRequest};
use warpsmith_engine::{Devices, Event, Job, Match, Pause, Show, Subject, Wanted, quick_rate, run, time_to};
use warpsmith_http::FairQueue;
pub use warpsmith_http::{Permit, QueueError};
use warpsmith_pattern::{Options, Patterns, Ranking, compile};

use crate::error::Result;

pub use fairness::{FairShare, Participant};

/// Interval at which the progress of concurrent searches is compared.
const COMPARE_INTERVAL: Duration = Duration::from_millis(20);

/// A search for a salt.
///
/// See [`SaltScheduler`].
pub struct SaltSearch {
    /// The factory, and what it creates.
    pub target: Arc<Deployment>,
    /// What the address has to be.
    pub goal: SaltGoal,
}

/// The addresses that a search for a salt accepts.
///
/// See [`SaltScheduler`].
pub enum SaltGoal {
    /// Those that match one of these patterns.
    Patterns(Box<Patterns>),
    /// Those with the best score by the deadline.
    Best {
        /// The score, and patterns beside it.
        ranking: Box<Ranking>,
        /// The results among them.
        show: Show,
        /// The score that ends the search.
        enough: Option<u32>,
    },
}

impl SaltSearch {
    fn wanted(&self) -> Wanted<'_> {
        match &self.goal {
            SaltGoal::Patterns(patterns) => Wanted::Patterns(patterns),
            SaltGoal::Best { ranking, show, enough } => {
                Wanted::Best { ranking, show: *show, enough: *enough }
            }
        }
    }

    /// Returns the odds of a salt; none where the best by the deadline is the result.
    pub fn odds(&self) -> Option<f64> {
        match &self.goal {
            SaltGoal::Patterns(patterns) => Some(patterns.odds()),
            SaltGoal::Best { ranking, show: Show::AtLeast(least), .. } => Some(ranking.odds(*least)),
            SaltGoal::Best { .. } => None,
        }
    }

    fn kind(&self) -> SaltKind {
        SaltKind::of(&self.target)
    }
}

/// The hashes between a salt and its address, by which the rate of a search goes.
///
/// See [`SaltScheduler`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SaltKind {
    /// Whether the factory hashes the salt first.
    pub hashes_salt: bool,
    /// Whether a proxy creates the contract, as in CREATE3.
    pub is_create3: bool,
}

impl SaltKind {
    fn of(target: &Deployment) -> SaltKind {
        let (hashes_salt, is_create3) = target.stages();
        SaltKind { hashes_salt, is_create3 }
    }
}

impl fmt::Display for SaltKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_create3 { "CREATE3" } else { "CREATE2" })?;
        f.write_str(if self.hashes_salt { " by a factory that hashes the salt" } else { "" })
    }
}

/// Results of a search up to now. They can be read at the deadline while the search still ends.
///
/// See [`SaltScheduler`].
#[derive(Default)]
pub struct SaltResults(Mutex<SaltResult>);

/// The result of a search up to now.
///
/// See [`SaltScheduler`].
#[derive(Default)]
pub struct SaltResult {
    /// The best salt.
    pub best: Option<Match>,
    /// Salts tried.
    pub tried: u64,
}

impl SaltResults {
    /// Locks the results.
    pub fn lock(&self) -> MutexGuard<'_, SaltResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The prospects of a request.
///
/// See [`SaltScheduler`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SaltEstimate {
    /// Salts per match, on average.
    pub difficulty: f64,
    /// Salts per second that the request gets now.
    pub rate: f64,
    /// The probability of a match by the deadline.
    pub probability: f64,
    /// The seconds after which half of such requests have their salt.
    pub p50_s: f64,
}

/// Runs searches for salts for many clients.
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
/// use std::time::{Duration, Instant};
/// use warpsmith::Devices;
/// use warpsmith::chain::ethereum::{Deployment, Factory, SaltRequest};
/// use warpsmith::pattern::{Options, compile};
/// use warpsmith::salts::{SaltGoal, SaltResults, SaltScheduler, SaltSearch};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let factory = Factory::find("arachnid").unwrap();
/// let target = Deployment::create2(factory, None, Some([0x22; 32]), &SaltRequest::default())?;
/// let goal = SaltGoal::Patterns(Box::new(compile(["a"], &target, &Options::default())?));
/// let search = SaltSearch { target: Arc::new(target), goal };
///
/// let scheduler = SaltScheduler::new(Devices::cpu()?, 4, 64)?;
/// let time = Duration::from_secs(60);
/// assert!(scheduler.estimate(&search, time).is_some_and(|estimate| estimate.probability > 0.9));
/// let (client, deadline) = (IpAddr::from([127, 0, 0, 1]), Instant::now() + time);
/// let permit = scheduler.acquire(client, deadline).await?;
/// let results = SaltResults::default();
/// scheduler.search(permit, &search, deadline, &AtomicBool::new(false), &results)?;
/// assert!(results.lock().best.as_ref().is_some_and(|found| found.address.to_lowercase().starts_with("0xa")));
/// # Ok(())
/// # }
/// ```
pub struct SaltScheduler {
    devices: Devices,
    /// Salts per second, measured at the start.
    rates: BTreeMap<SaltKind, f64>,
    queue: Arc<FairQueue>,
    searches: FairShare,
    max_running: usize,
    max_waiting: usize,
}

impl SaltScheduler {
    /// Measures the devices for each kind of factory. So many searches run at a time, and so many requests may wait.
    ///
    /// # Errors
    ///
    /// When no device can be used.
    pub fn new(devices: Devices, max_running: usize, max_waiting: usize) -> Result<SaltScheduler> {
        let mut rates = BTreeMap::new();
        for target in samples() {
            // Nobody finds this.
            let patterns = compile(["0123456789abcdef0123456789"], &target, &Options::default())?;
            let rate = quick_rate(&devices, Subject::Salt(&target), Wanted::Patterns(&patterns))?;
            rates.insert(SaltKind::of(&target), rate);
        }
        let queue = FairQueue::new(max_running, max_waiting);
        Ok(SaltScheduler { devices, rates, queue, searches: FairShare::default(), max_running, max_waiting })
    }

    /// Iterates over the measured rates.
    pub fn rates(&self) -> impl Iterator<Item = (SaltKind, f64)> {
        self.rates.iter().map(|(kind, rate)| (*kind, *rate))
    }

    /// Returns the number of requests that can run or wait.
    pub fn capacity(&self) -> usize {
        self.max_running + self.max_waiting
    }

    /// Returns the number of searches that run.
    pub fn running(&self) -> usize {
        self.queue.busy()
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Returns salts per second of the devices for this search alone.
    fn rate(&self, search: &SaltSearch) -> f64 {
        self.rates.get(&search.kind()).copied().unwrap_or(0.0)
    }

    /// Estimates a request that has so much time, at the rate it gets now; none where the best by the deadline is the result.
    pub fn estimate(&self, search: &SaltSearch, time: Duration) -> Option<SaltEstimate> {
        let odds = search.odds()?;
        let rate = self.rate(search) / (self.running() + 1).min(self.max_running) as f64;
        Some(SaltEstimate {
            difficulty: 1.0 / odds,
            rate,
            probability: -f64::exp_m1(-odds * rate * time.as_secs_f64()),
            p50_s: time_to(0.5, 1, odds, rate),
        })
    }

    /// Waits for a permit until the deadline.
    ///
    /// # Errors
    ///
    /// When the queue is full, or the deadline passes.
    pub async fn acquire(
        &self,
        client: IpAddr,
        deadline: Instant,
    ) -> std::result::Result<Permit, QueueError> {
        self.queue.acquire(client, deadline).await
    }

    /// Searches on the calling thread until a salt is found, the deadline passes, or `interrupt` is set. Then the permit is free.
    ///
    /// # Errors
    ///
    /// When all devices are lost.
    pub fn search(
        &self,
        permit: Permit,
        search: &SaltSearch,
        deadline: Instant,
        interrupt: &AtomicBool,
        results: &SaltResults,
    ) -> Result<()> {
        let pause = Pause::default();
        let subject = Subject::Salt(search.target.as_ref());
        let job = Job {
            count: search.odds().map(|_| 1),
            // Its clock stands still while it is paused; the caller keeps the deadline by the interrupt.
            time_limit: Some(deadline.saturating_duration_since(Instant::now())),
            interval: COMPARE_INTERVAL,
            pause: Some(&pause),
            ..Job::new(subject, search.wanted())
        };
        let share = self.searches.join(self.rate(search));
        let outcome = run(&job, &self.devices, interrupt, &mut |event| {
            match event {
                Event::Found(found) => {
                    if let Some(last) = found.into_iter().last() {
                        results.lock().best = Some(last);
                    }
                }
                Event::Progress(progress) => {
                    results.lock().tried = progress.tried;
                    pause.set(share.must_pause(progress.tried, Instant::now()));
                }
                _ => {}
            }
            Ok(())
        });
        drop((share, permit));
        results.lock().tried = outcome?.tried;
        Ok(())
    }
}

impl fmt::Debug for SaltScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaltScheduler").field("rates", &self.rates).finish_non_exhaustive()
    }
}

/// A factory of each kind.
fn samples() -> Vec<Deployment> {
    let of = |name: &str| Factory::find(name).expect("it is built in");
    let request = SaltRequest { caller: Some([0x11; 20]), ..SaltRequest::default() };
    let made = [
        Deployment::create2(of("arachnid"), None, Some([0x22; 32]), &SaltRequest::default()),
        Deployment::create2(of("createx"), None, Some([0x22; 32]), &request),
        Deployment::create3(of("solmate"), Some([0x33; 20]), None, &SaltRequest::default()),
        Deployment::create3(of("createx"), None, None, &request),
    ];
    made.into_iter().map(|made| made.expect("a usual request")).collect()
}

#[cfg(test)]
mod tests {
    use warpsmith_pattern::Feature;

    use super::*;

    fn search(pattern: &str) -> SaltSearch {
        let target = samples().swap_remove(0);
        let patterns = compile([pattern], &target, &Options::default()).expect("a pattern");
        SaltSearch { target: Arc::new(target), goal: SaltGoal::Patterns(Box::new(patterns)) }
    }

    /// A scheduler of one search at a time and one waiting request, without a measurement.
    fn scheduler() -> SaltScheduler {
        let (devices, searches) = (Devices::cpu().expect("a processor"), FairShare::default());
        let rates = samples().iter().map(|target| (SaltKind::of(target), 1e6)).collect();
        let queue = FairQueue::new(1, 1);
        SaltScheduler { devices, rates, queue, searches, max_running: 1, max_waiting: 1 }
    }

    fn client(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn every_kind_of_factory_has_a_rate_and_a_name() {
        let scheduler = scheduler();
        let names: Vec<String> = scheduler.rates().map(|(kind, _)| kind.to_string()).collect();
        assert_eq!(
            names,
            [
                "CREATE2",
                "CREATE3",
                "CREATE2 by a factory that hashes the salt",
                "CREATE3 by a factory that hashes the salt"
            ]
        );
        assert_eq!(scheduler.capacity(), 2);
    }

    #[test]
    fn prospects_follow_from_odds_rate_and_time() {
        let (scheduler, search) = (scheduler(), search("abcde"));
        let estimate = scheduler.estimate(&search, Duration::from_secs(1)).expect("a pattern has odds");
        assert_eq!((estimate.difficulty, estimate.rate), (16f64.powi(5), 1e6));
        assert!((estimate.probability - (1.0 - f64::exp(-1e6 / 16f64.powi(5)))).abs() < 1e-9);
        assert!((estimate.p50_s - 0.7268).abs() < 1e-3, "{estimate:?}");
        let best = SaltGoal::Best {
            ranking: Box::new(Ranking::new(Feature::Zeros)),
            show: Show::Better,
            enough: None,
        };
        let best = SaltSearch { goal: best, ..search };
        assert!(best.odds().is_none() && scheduler.estimate(&best, Duration::from_secs(1)).is_none());
    }

    #[test]
    fn a_permit_is_free_when_its_search_has_ended() {
        let (scheduler, search) = (scheduler(), search("a"));
        let deadline = Instant::now() + Duration::from_secs(60);
        let permit = runtime().block_on(scheduler.acquire(client(1), deadline)).expect("a permit");
        assert_eq!((scheduler.running(), scheduler.waiting()), (1, 0));
        let results = SaltResults::default();
        let stop = AtomicBool::new(false);
        scheduler.search(permit, &search, deadline, &stop, &results).expect("a search");
        let result = results.lock();
        let found = result.best.as_ref().expect("a salt");
        assert!(found.address.to_lowercase().starts_with("0xa") && found.salt().is_some());
        assert!(result.tried > 0 && scheduler.running() == 0);
    }

    #[test]
    fn requests_beyond_the_queue_are_refused_and_deadlines_are_kept() {
        let scheduler = scheduler();
        let soon = || Instant::now() + Duration::from_millis(50);
        runtime().block_on(async {
            let far = Instant::now() + Duration::from_secs(60);
            let held = scheduler.acquire(client(1), far).await.expect("the only permit");
            assert!(matches!(scheduler.acquire(client(1), soon()).await, Err(QueueError::Late)));
            let (one, two) =
                tokio::join!(scheduler.acquire(client(1), soon()), scheduler.acquire(client(1), soon()));
            assert!(matches!((one, two), (Err(QueueError::Late), Err(QueueError::Full))));
            drop(held);
            assert!(scheduler.acquire(client(2), soon()).await.is_ok());
        });
    }
}
