//! Where requests wait, and the devices they share.
//!
//! So many are searched for at a time, each by a search of its own on all devices, of which all get the same time ([`Turns`]). The others
//! wait in a queue that is fair by client.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use warpsmith::Devices;
use warpsmith::chain::ethereum::{Deployment, Factory, SaltRequest};
use warpsmith::pattern::{Options, compile};
use warpsmith::proof::quick_rate;
use warpsmith::search::{Event, Job, Match, Pause, Subject, Wanted, run};
use warpsmith_console::exit::Failure;
use warpsmith_console::web;
use warpsmith_http::{FairQueue, Permit, QueueError};

use super::order::Order;
use super::turns::Turns;
use crate::failures::OrFail as _;

/// How often searches are compared.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Desk {
    devices: Devices,
    /// Salts a second, by the hashes between a salt and its address.
    rates: BTreeMap<(bool, bool), f64>,
    seats: Arc<FairQueue>,
    turns: Turns,
    jobs: usize,
    queue: usize,
}

/// Results of a search up to now, read by its request at the deadline even where the search has not ended.
#[derive(Default)]
pub(super) struct Results(Mutex<Found>);

#[derive(Default)]
pub(super) struct Found {
    pub best: Option<Match>,
    pub tried: u64,
}

impl Results {
    pub fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// Measures the devices, by each kind of factory.
    pub fn open(devices: Devices, jobs: usize, queue: usize) -> Result<Desk, Failure> {
        let mut rates = BTreeMap::new();
        for target in samples() {
            // Nobody finds this.
            let patterns = compile(["0123456789abcdef0123456789"], &target, &Options::default());
            let patterns = patterns.map_err(|error| Failure::Other(error.to_string()))?;
            let rate = quick_rate(&devices, Subject::Salt(&target), Wanted::Patterns(&patterns)).or_fail()?;
            rates.insert(target.stages(), rate);
        }
        Ok(Desk { devices, rates, seats: FairQueue::new(jobs, queue), turns: Turns::default(), jobs, queue })
    }

    /// What was measured, in words.
    pub fn rates(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.rates.iter().map(|(stages, rate)| match stages {
            (false, false) => ("CREATE2", *rate),
            (true, false) => ("CREATE2 by a factory that hashes the salt", *rate),
            (false, true) => ("CREATE3", *rate),
            (true, true) => ("CREATE3 by a factory that hashes the salt", *rate),
        })
    }

    /// Requests that can be searched for or wait.
    pub fn places(&self) -> usize {
        self.jobs + self.queue
    }

    /// How many are searched for.
    pub fn busy(&self) -> usize {
        self.seats.busy()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.seats.waiting()
    }

    /// Salts a second that a request gets now.
    pub fn share(&self, order: &Order) -> f64 {
        self.rate(order) / (self.busy() + 1).min(self.jobs) as f64
    }

    /// Salts a second of the devices, for it alone.
    fn rate(&self, order: &Order) -> f64 {
        self.rates.get(&order.stages()).copied().unwrap_or(0.0)
    }

    /// Waits for a seat until the deadline.
    pub async fn sit(&self, client: IpAddr, until: Instant) -> Result<Permit, QueueError> {
        self.seats.acquire(client, until).await
    }

    /// Searches until the time is over; of scores the best that was found by then.
    pub fn search(
        &self,
        order: &Order,
        until: Instant,
        interrupt: &AtomicBool,
        results: &Results,
    ) -> Result<(), String> {
        let pause = Pause::default();
        let job = Job {
            count: order.count(),
            // Its clock stands still while it rests; the deadline is kept by whoever interrupts it.
            time_limit: Some(until.saturating_duration_since(Instant::now())),
            interval: LOOK,
            pause: Some(&pause),
            ..Job::new(order.subject(), order.wanted())
        };
        let turn = self.turns.join(self.rate(order));
        let outcome = run(&job, &self.devices, interrupt, &mut |event| {
            match event {
                Event::Found(found) => {
                    if let Some(last) = found.into_iter().last() {
                        results.lock().best = Some(last);
                    }
                }
                Event::Progress(progress) => {
                    results.lock().tried = progress.tried;
                    pause.set(turn.told(progress.tried, Instant::now()));
                }
                _ => {}
            }
            Ok(())
        });
        results.lock().tried = outcome.map_err(|error| error.to_string())?.tried;
        Ok(())
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct How {
    how: &'static str,
}

/// What Prometheus is told. Clones share it.
#[derive(Clone)]
pub(super) struct Numbers {
    registry: Arc<Registry>,
    requests: Family<How, Counter>,
    salts: Counter,
    seconds: Counter<f64, AtomicU64>,
    busy: Gauge,
    waiting: Gauge,
}

impl Numbers {
    pub fn of(desk: &Desk) -> Numbers {
        let mut registry = Registry::with_prefix("warpsmith_salts");
        let (requests, salts, seconds) = (Family::default(), Counter::default(), Counter::default());
        let (busy, waiting, rate) = (Gauge::default(), Gauge::default(), Gauge::<f64, AtomicU64>::default());
        registry.register("requests", "Requests, by how they ended", Family::clone(&requests));
        registry.register("tried", "Salts tried", salts.clone());
        registry.register("seconds", "Seconds of searching, of all requests", seconds.clone());
        registry.register("busy", "Requests that are searched for", busy.clone());
        registry.register("waiting", "Requests that wait", waiting.clone());
        registry.register("rate", "Salts a second of CREATE2, as measured at the start", rate.clone());
        rate.set(desk.rates.get(&(false, false)).copied().unwrap_or(0.0));
        Numbers { registry: Arc::new(registry), requests, salts, seconds, busy, waiting }
    }

    /// A request has ended.
    pub fn ended(&self, how: &'static str) {
        self.requests.get_or_create(&How { how }).inc();
    }

    /// A search has ended.
    pub fn searched(&self, tried: u64, elapsed: Duration) {
        self.salts.inc_by(tried);
        self.seconds.inc_by(elapsed.as_secs_f64());
    }

    /// How it stands.
    pub fn stand(&self, desk: &Desk) {
        self.busy.set(desk.busy() as i64);
        self.waiting.set(desk.waiting() as i64);
    }

    /// How many were answered with a salt, or that there is none.
    pub fn answered(&self) -> u64 {
        ["found", "nothing"].map(|how| self.requests.get_or_create(&How { how }).get()).iter().sum()
    }

    /// Tells them to whoever asks there.
    pub fn tell(&self, watchers: TcpListener) -> Result<(), Failure> {
        let told = Arc::clone(&self.registry);
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let text = move || async move {
            let mut text = String::new();
            encode(&mut text, &told).expect("writing to a string does not fail");
            ([(header::CONTENT_TYPE, kind)], text)
        };
        web::serve_monitoring(watchers, Router::new().route("/metrics", get(text)))
    }
}
