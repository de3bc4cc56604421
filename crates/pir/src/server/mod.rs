//! The server: HTTP/1.1 and HTTP/2 on one port, without encryption (put a proxy for TLS in front of it).
//!
//! One of two roles. A *library* streams its blocks and answers queries; a *hint maker* makes hints from keys. No server has
//! both: who has a client's key and its queries can read them.
//!
//! | request | role | answer |
//! |---|---|---|
//! | `GET /v1/info` | both | the head of the database file, 4096 bytes; the newest epoch in `warpsmith-epoch` |
//! | `GET /v1/digests` | library | SHA-256 of each MiB of the blocks |
//! | `GET /v1/blocks` | library | the blocks; with `Range: bytes=..` a part of them |
//! | `GET /v1/updates/EPOCH` | both | changes after that epoch, as many epochs as fit one answer |
//! | `POST /v1/query` | library | answers to a batch of queries |
//! | `POST /v1/hints` | hint maker | hints |
//! | `GET /health`, `GET /metrics` | both | `ok`; Prometheus |
//!
//! Refusals are short texts: 400 malformed, 404, 408 too slow, 409 an epoch that is not served, 413 too large, 416 a range
//! outside, 429 too many requests from one address, 503 too many at once.

mod connection;
mod limits;
mod metrics;
mod routes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::make::Make;
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
    /// Connections at once.
    pub connections: usize,
    /// Requests that are worked on at once; others are told to come again.
    pub working: usize,
    /// Requests a second from one address, on average; and how many at once.
    pub rate: f64,
    /// See `rate`.
    pub burst: f64,
    /// Time for a request's head, and for its body.
    pub request_time: Duration,
    /// Time without a byte in either direction after which a connection is closed.
    pub idle: Duration,
    /// Bytes of one answer of updates.
    pub updates_bytes: usize,
    /// (hint, block) pairs a hint maker computes for one request.
    pub hint_pairs: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            batch: 64,
            connections: 1024,
            working: 64,
            rate: 200.0,
            burst: 400.0,
            request_time: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            updates_bytes: 16 << 20,
            hint_pairs: 1 << 40,
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
    metrics: metrics::Metrics,
}

/// A server on a listener.
pub struct Server {
    shared: Arc<Shared>,
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
            metrics: metrics::Metrics::new(),
        };
        Server { shared: Arc::new(shared) }
    }

    /// Serves until `stop` completes; then no connection is taken any more, and those there are get a moment to end.
    ///
    /// # Errors
    ///
    /// When the listener fails for good.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let router = routes::router(self.shared.clone());
        connection::accept(listener, router, &self.shared, stop).await
    }
}

/// How often it is looked whether a server shall stop.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is looked for updates of another process.
const REFRESH: Duration = Duration::from_secs(1);

impl Server {
    /// Serves until `stop` is raised, on threads of its own, and takes over what other processes add to the updates; `news`
    /// is told how many epochs came, or why they could not be read.
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
        let (live, ended) = (self.shared.live.clone(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut looked = Instant::now();
                while !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK);
                    if looked.elapsed() >= REFRESH {
                        looked = Instant::now();
                        match live.refresh() {
                            Ok(0) => {}
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
                self.serve(TcpListener::from_std(listener)?, stopped).await
            });
            ended.store(true, Ordering::Relaxed);
            // Work that goes on, such as hints for somebody who waits no longer, is not waited for.
            runtime.shutdown_background();
            served
        })
    }
}

/// The address a request came from.
#[derive(Clone, Copy)]
struct Peer(SocketAddr);
