//! The server: HTTP/1.1 and HTTP/2 on one port, without encryption (put a proxy for TLS in front of it).
//!
//! One of two roles. A *library* streams its blocks and answers queries; a *hint maker* makes hints from keys. No server has
//! both: who has a client's key and its queries can read them.
//!
//! | request | role | answer |
//! |---|---|---|
//! | `GET /v1/info` | both | the head of the database file, 4096 bytes; the newest epoch in `warpsmith-epoch`, the changes since the file in `warpsmith-changes`, and of a state that tells its block that in `warpsmith-head` |
//! | `GET /v1/digests` | library | SHA-256 of each MiB of the blocks |
//! | `GET /v1/blocks` | library | the blocks; with `Range: bytes=..` a part of them |
//! | the same, with `If-Match: "IDENTITY"` | library | those of that file, also when another was folded from it meanwhile |
//! | `GET /v1/updates/EPOCH` | both | changes after that epoch, as many epochs as fit one answer; how many changes there are in all in `warpsmith-changes` |
//! | `POST /v1/query` | library | answers to a batch of queries |
//! | `POST /v1/hints` | hint maker | hints |
//! | `GET /health` | both | `ok` |
//! | `GET /metrics` | on a listener of its own | Prometheus |
//!
//! Refusals are short texts: 400 malformed, 401 without the token, 404, 408 too slow, 409 an epoch that is not served, 413 too
//! large, 412 a file that was folded away, 416 a range outside, 429 too many requests from one address, 503 too many at once.
//!
//! What a request takes is known before anything is allocated for it, and is its own until the last byte of the answer has
//! gone: memory of all requests, of each, and of those of one address ([`Limits`]).

mod body;
mod limits;
mod metrics;
mod routes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use warpsmith_files::Token;
use warpsmith_http::{BODY_TIMEOUT, ConnectionLimits, Quota};

use crate::hints::make::Make;
use crate::memory;
use crate::updates::Live;

/// What a server does.
#[derive(Clone)]
pub enum Role {
    /// Streams blocks and answers queries.
    Library,
    /// Makes hints with this.
    HintMaker(Arc<dyn Make>),
}

/// What a server allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Queries in one request.
    pub batch: usize,
    /// Connections at once; one more takes the place of one without a request, or is closed.
    pub connections: usize,
    /// Connections of one address at once; likewise. (A network of 64 bits counts as one IPv6 address, here and below.)
    pub address_connections: usize,
    /// Requests that are worked on at once; others are told to come again.
    pub working: usize,
    /// Requests a second from one address, on average; and how many at once.
    pub rate: f64,
    /// See `rate`.
    pub burst: f64,
    /// Time for a request's body.
    pub request_time: Duration,
    /// Time without a request, or until the head of one is there, after which a connection is closed; and what an answer may take longer than at 16 KiB a second.
    pub idle: Duration,
    /// Bytes of memory for all requests under way, their answers among them.
    pub memory: u64,
    /// Bytes of memory for one request.
    pub request_memory: u64,
    /// Bytes of memory for the requests of one address.
    pub address_memory: u64,
    /// Bytes of one answer of updates.
    pub updates_bytes: usize,
    /// (hint, block) pairs a hint maker computes for one request.
    pub hint_pairs: u64,
    /// Requests for hints of one address that are worked on at once.
    pub address_hints: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        // So that what else runs here, and the database in the system's cache, has room.
        let memory = memory::of_machine() / 4;
        Limits {
            batch: 64,
            connections: ConnectionLimits::DEFAULT.connections,
            address_connections: ConnectionLimits::DEFAULT.address_connections,
            working: 64,
            rate: 200.0,
            burst: 400.0,
            request_time: BODY_TIMEOUT,
            idle: ConnectionLimits::DEFAULT.idle,
            memory,
            request_memory: memory / 2,
            address_memory: memory / 2,
            updates_bytes: 16 << 20,
            hint_pairs: 1 << 40,
            address_hints: 1,
        }
    }
}

/// What all requests share.
struct Shared {
    live: Arc<Live>,
    role: Role,
    limits: Limits,
    working: Arc<Semaphore>,
    rates: limits::Rates,
    memory: Arc<Quota>,
    making: Arc<Quota>,
    token: Option<Token>,
    /// Held by those who make hints, which takes long, and by who takes updates over: who waited for the entries' own lock
    /// would make everybody wait.
    refreshing: RwLock<()>,
    metrics: Arc<metrics::Metrics>,
}

/// A server on a listener.
pub struct Server {
    shared: Shared,
    watchers: Option<std::net::TcpListener>,
}

impl Server {
    /// A server for a database.
    pub fn new(live: Arc<Live>, role: Role, limits: Limits) -> Server {
        let shared = Shared {
            live,
            role,
            limits,
            working: Arc::new(Semaphore::new(limits.working)),
            rates: limits::Rates::new(limits.rate, limits.burst),
            memory: Quota::new(limits.memory, limits.address_memory),
            making: Quota::new(u64::MAX, limits.address_hints as u64),
            token: None,
            refreshing: RwLock::new(()),
            metrics: Arc::new(metrics::Metrics::new()),
        };
        Server { shared, watchers: None }
    }

    /// Makes hints only for those who have this token.
    #[must_use]
    pub fn with_token(mut self, token: Token) -> Server {
        self.shared.token = Some(token);
        self
    }

    /// Tells what it counts to those who ask at this listener, and at no other.
    #[must_use]
    pub fn with_metrics(mut self, listener: std::net::TcpListener) -> Server {
        self.watchers = Some(listener);
        self
    }

    /// Serves until `stop` completes; then no connection is taken any more, and those there are get a moment to end. Returns
    /// within five seconds of `stop`, whatever is connected.
    ///
    /// # Errors
    ///
    /// When the system does not let it listen.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let Server { shared, watchers } = self;
        serve(Arc::new(shared), watchers, listener, stop).await
    }
}

async fn serve(
    shared: Arc<Shared>,
    watchers: Option<std::net::TcpListener>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let limits = shared.limits;
    let connections = ConnectionLimits {
        connections: limits.connections,
        address_connections: limits.address_connections,
        idle: limits.idle,
        ..ConnectionLimits::DEFAULT
    };
    let watching = match watchers {
        None => None,
        Some(watchers) => {
            watchers.set_nonblocking(true)?;
            let (watchers, (ended, end)) = (TcpListener::from_std(watchers)?, oneshot::channel::<()>());
            let router = routes::for_watchers(Arc::clone(&shared));
            let counts = shared.metrics.connections.clone();
            let until = async { drop(end.await) };
            let serving =
                warpsmith_http::serve(watchers, router, ConnectionLimits::MONITORING, counts, until);
            Some((ended, tokio::spawn(serving)))
        }
    };
    // Both get their moment at the same time.
    let stop = async {
        stop.await;
        watching.map(|(ended, task)| {
            drop(ended);
            task
        })
    };
    let (router, counts) = (routes::router(Arc::clone(&shared)), shared.metrics.connections.clone());
    if let Some(watching) = warpsmith_http::serve(listener, router, connections, counts, stop).await {
        let _ = watching.await;
    }
    Ok(())
}

/// How often it is looked whether a server shall stop.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is looked for updates of another process.
const REFRESH: Duration = Duration::from_secs(1);

impl Server {
    /// Serves until `stop` is raised, on threads of its own, and takes over what other processes add to the updates, and the file
    /// that they fold them into; `news` is told how many epochs came, none where only the file is another, or why they could not
    /// be read.
    ///
    /// # Errors
    ///
    /// When the system gives no threads, or the listener fails for good.
    pub fn run(
        self,
        listener: std::net::TcpListener,
        stop: &AtomicBool,
        news: &(dyn Fn(crate::Result<usize>) + Sync),
    ) -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let Server { shared, watchers } = self;
        let (shared, ended) = (Arc::new(shared), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut looked = Instant::now();
                while !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK);
                    if looked.elapsed() >= REFRESH {
                        looked = Instant::now();
                        // While hints are made there is no new epoch; the next look finds it.
                        let Ok(_alone) = shared.refreshing.try_write() else { continue };
                        let before = shared.live.base();
                        match shared.live.refresh() {
                            Ok(0) if Arc::ptr_eq(&before, &shared.live.base()) => {}
                            other => news(other),
                        }
                    }
                }
            });
            let served = runtime.block_on(async {
                let stopped = async {
                    while !stop.load(Ordering::Relaxed) {
                        tokio::time::sleep(LOOK).await;
                    }
                };
                serve(Arc::clone(&shared), watchers, TcpListener::from_std(listener)?, stopped).await
            });
            ended.store(true, Ordering::Relaxed);
            // Work that goes on, such as hints for somebody who waits no longer, is not waited for.
            runtime.shutdown_background();
            served
        })
    }
}
