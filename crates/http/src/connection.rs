//! Connections: how many, how long one may be silent, and how they end.
//!
//! A connection is there for requests. One that has none in progress and made none for a while is closed, whatever else it
//! says (an HTTP/2 client can answer pings for ever). An answer that is taken too slowly ends its connection too. Over the
//! limits a new connection takes the place of the one that has waited longest without a complete request, so that
//! connections that send half a request, or none, never keep others out; where all have one, the new connection is closed.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
#[cfg(feature = "http2")]
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::{TokioIo, TokioTimer};
#[cfg(feature = "http2")]
use hyper_util::server::conn::auto;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;

use crate::{Full, Peer, Quota, Share, host_of, open_files};

/// Time for a connection without a request once the server stops, of which half a head may be there: its client asks again,
/// and finds the next server the sooner.
const LEAVE: Duration = Duration::from_millis(500);
/// Time to say goodbye on a connection that is closed since it is idle.
const GOODBYE: Duration = Duration::from_secs(3);
/// Bytes a second at which an answer must be taken, on average.
const PACE: u64 = 16 << 10;
/// The most of a request's head, in bytes and in fields.
#[cfg(feature = "http2")]
const HEAD_BYTES: u32 = 16 << 10;
const HEAD_FIELDS: usize = 64;
/// Requests in progress on one connection, and the bytes that are kept for each before somebody takes them.
#[cfg(feature = "http2")]
const STREAMS: u32 = 16;
const BUFFER: usize = 64 << 10;
/// Files a process has open beside its connections: databases, listeners, drivers, connections of its own to others.
const OTHER_FILES: u64 = 128;

/// Limits on the connections of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub connections: usize,
    /// Connections of one address at once. (A network of 64 bits counts as one IPv6 address.)
    pub address_connections: usize,
    /// Time without a request, or until the head of one is complete, after which a connection is closed; and what an
    /// answer may take longer than at 16 KiB a second.
    pub idle: Duration,
    /// Time for open connections to end once the server stops.
    pub shutdown: Duration,
    /// Whether HTTP/2 is spoken beside HTTP/1.1, where the crate was built with the feature `http2`.
    pub http2: bool,
}

impl ConnectionLimits {
    /// The limits of a service.
    pub const DEFAULT: ConnectionLimits = ConnectionLimits {
        connections: 1024,
        address_connections: 64,
        idle: Duration::from_secs(60),
        shutdown: Duration::from_secs(3),
        http2: true,
    };

    /// The limits of a listener for metrics or a status page: few connections are enough, and they must not be in the way
    /// of what they watch.
    pub const MONITORING: ConnectionLimits = ConnectionLimits {
        connections: 16,
        address_connections: 8,
        idle: Duration::from_secs(10),
        ..ConnectionLimits::DEFAULT
    };

    /// Raises this process's limit of open files as far as these connections need, and returns the limits with as many
    /// connections as there can be, and the number of open files.
    pub fn within_open_files(self) -> (ConnectionLimits, u64) {
        let files = open_files::raise(self.connections as u64 + OTHER_FILES);
        let most = files.saturating_sub(OTHER_FILES).max(1);
        let connections = self.connections.min(usize::try_from(most).unwrap_or(usize::MAX));
        (ConnectionLimits { connections, ..self }, files)
    }
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits::DEFAULT
    }
}

/// Numbers of connections, for metrics. Clones share them.
#[derive(Clone, Default)]
pub struct ConnectionCounts {
    /// Open connections.
    pub open: Gauge,
    /// Connections over the limits: each was closed, or took the place of one without a request.
    pub turned_away: Counter,
}

/// A listener's router, rules and connections.
struct Listening {
    router: Router,
    limits: ConnectionLimits,
    places: Arc<Quota>,
    counts: ConnectionCounts,
    open: Mutex<Vec<Arc<Connection>>>,
}

/// Accepts connections within the limits, and answers their requests by the router, each with the [`Peer`] it came from as
/// an extension. When `stop` completes, returns what it gave within [`ConnectionLimits::shutdown`], whatever is connected.
pub async fn serve<T>(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    counts: ConnectionCounts,
    stop: impl Future<Output = T>,
) -> T {
    let places = Quota::new(limits.connections as u64, limits.address_connections as u64);
    let listening = Arc::new(Listening { router, limits, places, counts, open: Mutex::default() });
    let (stopping, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut stop = pin!(stop);
    let ended = loop {
        let accepted = poll_fn(|context| {
            if let Poll::Ready(ended) = stop.as_mut().poll(context) {
                return Poll::Ready(Err(ended));
            }
            // What has ended is forgotten.
            while let Poll::Ready(Some(_)) = tasks.poll_join_next(context) {}
            listener.poll_accept(context).map(Ok)
        });
        let (stream, address) = match accepted.await {
            Err(ended) => break ended,
            Ok(Ok(connection)) => connection,
            // Too many open files, or a connection that ended before it was taken: neither ends the server.
            Ok(Err(_)) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(connection) = listening.admit(address.ip()) else { continue };
        let (listening, stopped) = (Arc::clone(&listening), stopped.clone());
        tasks.spawn(async move {
            listening.counts.open.inc();
            // An error here is the other side's: it left, or spoke no HTTP.
            let _ = converse(stream, Peer(address), &listening, &connection, stopped).await;
            listening.counts.open.dec();
            listening.forget(&connection);
        });
    };
    drop(listener);
    let _ = stopping.send(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    if timeout(limits.shutdown, all).await.is_err() {
        tasks.shutdown().await;
    }
    ended
}

impl Listening {
    /// A place for a connection of this address, if need be that of another one without a complete request.
    fn admit(&self, address: IpAddr) -> Option<Arc<Connection>> {
        let mut is_over = false;
        let place = loop {
            match self.places.take(address, 1) {
                Ok(place) => break Some(place),
                Err(full) => {
                    is_over = true;
                    if !self.evict((full == Full::Address).then(|| host_of(address))) {
                        break None;
                    }
                }
            }
        };
        if is_over {
            self.counts.turned_away.inc();
        }
        let connection = Arc::new(Connection::new(self.limits.idle, host_of(address), Some(place?)));
        self.lock().push(Arc::clone(&connection));
        Some(connection)
    }

    /// Ends the connection, of this host or of any, that has waited longest without a complete request. Its place is free
    /// at once.
    fn evict(&self, host: Option<IpAddr>) -> bool {
        let mut open = self.lock();
        let of_host = open.iter().enumerate().filter(|(_, other)| host.is_none_or(|host| other.host == host));
        let waiting = of_host.filter_map(|(at, other)| Some((other.waiting_since()?, at)));
        let Some((_, at)) = waiting.min() else { return false };
        let evicted = open.swap_remove(at);
        evicted.give_place_back();
        evicted.evicted.notify_one();
        true
    }

    fn forget(&self, connection: &Arc<Connection>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, connection));
        connection.give_place_back();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What ended a wait.
enum Event<T> {
    /// The connection.
    Done(T),
    /// The server.
    Stop,
    /// Another connection, which takes the place of this one.
    Evicted,
    /// Nothing: it is time to look.
    Look,
}

async fn converse(
    stream: TcpStream,
    peer: Peer,
    listening: &Listening,
    state: &Arc<Connection>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let limits = &listening.limits;
    let (router, requests) = (listening.router.clone(), Arc::clone(state));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let in_progress = requests.begin(hyper::body::Body::is_end_stream(request.body()));
        let request = request.map(|body| Body::new(in_progress.until_arrived(body)));
        let answer = router.clone().call(request);
        async move { answer.await.map(|answer| answer.map(|body| in_progress.until_taken(body))) }
    });
    #[cfg(feature = "http2")]
    let mut builder = http1_and_http2(limits);
    #[cfg(not(feature = "http2"))]
    let mut builder = hyper::server::conn::http1::Builder::new();
    #[cfg(feature = "http2")]
    let mut http1 = builder.http1();
    #[cfg(not(feature = "http2"))]
    let http1 = &mut builder;
    // Until the head of the next request is there, however slowly that comes: hyper counts from the end of the answer before.
    http1.timer(TokioTimer::new()).header_read_timeout(limits.idle);
    http1.max_buf_size(BUFFER).max_headers(HEAD_FIELDS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stop = pin!(stopped.wait_for(|stopped| *stopped));
    let mut evicted = pin!(state.evicted.notified());
    let often = (limits.idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
    // When it was asked to end, and whether that was since all do.
    let (mut asked, mut all_end): (Option<Instant>, bool) = (None, false);
    loop {
        let mut look = pin!(sleep(if all_end { LEAVE } else { often }));
        let event = poll_fn(|context| {
            if let Poll::Ready(done) = connection.as_mut().poll(context) {
                return Poll::Ready(Event::Done(done.map_err(boxed)));
            }
            if evicted.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Evicted);
            }
            if !all_end && stop.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Stop);
            }
            look.as_mut().poll(context).map(|()| Event::Look)
        });
        let now = match event.await {
            Event::Done(done) => return done,
            Event::Evicted => return Ok(()),
            // From here on it has as long as all have, see above.
            Event::Stop => {
                connection.as_mut().graceful_shutdown();
                (asked, all_end) = (Some(Instant::now()), true);
                continue;
            }
            Event::Look => Instant::now(),
        };
        match (state.state(now), asked) {
            (State::Overdue, _) => return Ok(()),
            _ if all_end && state.is_quiet(now) => return Ok(()),
            (State::Idle, None) => {
                connection.as_mut().graceful_shutdown();
                asked = Some(now);
            }
            // It does not even take its leave.
            (State::Idle, Some(asked)) if now >= asked + GOODBYE => return Ok(()),
            (State::Idle | State::Alive, _) => {}
        }
    }
}

/// Boxes an error of either protocol.
fn boxed(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Box<dyn std::error::Error + Send + Sync> {
    error.into()
}

/// A builder of connections that speak HTTP/1.1, and HTTP/2 where the limits allow it.
#[cfg(feature = "http2")]
fn http1_and_http2(limits: &ConnectionLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if !limits.http2 {
        builder = builder.http1_only();
    }
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(limits.idle / 2);
    http2.max_concurrent_streams(STREAMS).max_header_list_size(HEAD_BYTES).max_send_buf_size(BUFFER);
    http2.initial_stream_window_size(BUFFER as u32).initial_connection_window_size(4 * BUFFER as u32);
    builder
}

/// An open connection: its place, and the requests on it.
struct Connection {
    host: IpAddr,
    idle: Duration,
    place: Mutex<Option<Share>>,
    evicted: Notify,
    requests: Mutex<Requests>,
}

struct Requests {
    in_progress: HashMap<u64, Stage>,
    next: u64,
    /// When a request last began or ended, at first when the connection was made.
    since: Instant,
}

/// How far a request is.
struct Stage {
    /// Whether all of it has arrived.
    has_arrived: bool,
    /// When the answer must have been taken, once there is one.
    due: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// There are requests, or were not long ago.
    Alive,
    /// There is no request, and was none for long.
    Idle,
    /// An answer is not taken.
    Overdue,
}

impl Connection {
    fn new(idle: Duration, host: IpAddr, place: Option<Share>) -> Connection {
        let requests = Requests { in_progress: HashMap::new(), next: 0, since: Instant::now() };
        let (place, requests) = (Mutex::new(place), Mutex::new(requests));
        Connection { host, idle, place, evicted: Notify::new(), requests }
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_place_back(&self) {
        drop(self.place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn begin(self: &Arc<Connection>, has_arrived: bool) -> InProgress {
        let mut requests = self.lock();
        let number = requests.next;
        requests.next += 1;
        requests.in_progress.insert(number, Stage { has_arrived, due: None });
        requests.since = Instant::now();
        InProgress { connection: Arc::clone(self), number }
    }

    /// Since when it has waited without a complete request; none while there is one.
    fn waiting_since(&self) -> Option<Instant> {
        let requests = self.lock();
        let is_working = requests.in_progress.values().any(|stage| stage.has_arrived || stage.due.is_some());
        (!is_working).then_some(requests.since)
    }

    /// Whether there is no request, and the end of the last answer had a moment to leave.
    fn is_quiet(&self, now: Instant) -> bool {
        let requests = self.lock();
        requests.in_progress.is_empty() && now >= requests.since + LEAVE
    }

    fn state(&self, now: Instant) -> State {
        let requests = self.lock();
        if requests.in_progress.values().filter_map(|stage| stage.due).any(|due| now > due) {
            State::Overdue
        } else if requests.in_progress.is_empty() && now >= requests.since + self.idle {
            State::Idle
        } else {
            State::Alive
        }
    }
}

/// A request, from its head to the last byte of its answer.
struct InProgress {
    connection: Arc<Connection>,
    number: u64,
}

impl InProgress {
    /// The request's body, which says when all of it has arrived.
    fn until_arrived(&self, body: Incoming) -> Arriving {
        Arriving { body, connection: Arc::clone(&self.connection), number: self.number }
    }

    /// The request is in progress until its answer was taken; and there is a time for that.
    fn until_taken(self, body: Body) -> Answer {
        let length = hyper::body::Body::size_hint(&body).exact().unwrap_or(0);
        let due = Instant::now() + self.connection.idle + Duration::from_secs(length / PACE);
        let stage = Stage { has_arrived: true, due: Some(due) };
        self.connection.lock().in_progress.insert(self.number, stage);
        Answer { body, _in_progress: self }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut requests = self.connection.lock();
        requests.in_progress.remove(&self.number);
        requests.since = Instant::now();
    }
}

/// The body of a request.
struct Arriving {
    body: Incoming,
    connection: Arc<Connection>,
    number: u64,
}

impl hyper::body::Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            let mut requests = self.connection.lock();
            if let Some(stage) = requests.in_progress.get_mut(&self.number) {
                stage.has_arrived = true;
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer.
struct Answer {
    body: Body,
    _in_progress: InProgress,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn connections_live_by_their_requests() {
        let idle = Duration::from_secs(60);
        let connection = Arc::new(Connection::new(idle, [127, 0, 0, 1].into(), None));
        let start = Instant::now();
        let after = |seconds| connection.state(start + Duration::from_secs(seconds));
        assert_eq!((after(0), after(59), after(62)), (State::Alive, State::Alive, State::Idle));
        // While an answer is made nothing is due; once it is there, it has to be taken.
        let (one, two) = (connection.begin(true), connection.begin(true));
        assert_eq!(after(100_000), State::Alive);
        let answer = one.until_taken(Body::from(vec![0; 10 * PACE as usize]));
        assert_eq!((after(69), after(72)), (State::Alive, State::Overdue));
        drop(answer);
        assert_eq!(after(100_000), State::Alive);
        drop(two);
        assert_eq!((after(59), after(62)), (State::Alive, State::Idle));
    }

    /// A service with one request that ends when it is let go, and one that reads its body.
    struct Trial {
        address: std::net::SocketAddr,
        go: Arc<Semaphore>,
        waiting: Arc<AtomicUsize>,
        counts: ConnectionCounts,
    }

    /// Runs a test beside a service with these limits.
    fn beside<T: Future<Output = ()>>(limits: ConnectionLimits, test: impl FnOnce(Trial) -> T) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (go, counts) = (Arc::new(Semaphore::new(0)), ConnectionCounts::default());
            let (address, waiting) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
            let trial = Trial { address, go, waiting, counts };
            let (go, waiting) = (Arc::clone(&trial.go), Arc::clone(&trial.waiting));
            let counts = trial.counts.clone();
            let wait = move || async move {
                waiting.fetch_add(1, Ordering::Relaxed);
                go.acquire().await.unwrap().forget();
                "waited\n"
            };
            let router = Router::new()
                .route("/quick", get(|| async { "quick\n" }))
                .route("/wait", get(wait))
                .route("/body", post(|body: Bytes| async move { body }));
            serve(listener, router, limits, counts, test(trial)).await;
        });
    }

    async fn send(address: std::net::SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(text.as_bytes()).await;
        stream
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut text = Vec::new();
        let read = timeout(Duration::from_secs(300), stream.read_to_end(&mut text)).await;
        let _ = read.expect("the connection ends");
        String::from_utf8(text).unwrap()
    }

    const QUICK: &str = "GET /quick HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    /// Many connections with half a request, by its head or by its body: others are answered beside them.
    #[test]
    fn half_requests_keep_nobody_out() {
        let limits =
            ConnectionLimits { connections: 20, address_connections: 10, ..ConnectionLimits::DEFAULT };
        beside(limits, async |trial| {
            let mut held = Vec::new();
            for _ in 0..50 {
                held.push(send(trial.address, "").await);
                held.push(send(trial.address, "GET /quick HTTP/1.1\r\nHo").await);
                let body = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf";
                held.push(send(trial.address, body).await);
                assert!(rest(send(trial.address, QUICK).await).await.ends_with("quick\n"));
            }
            assert!(trial.counts.open.get() <= 20, "{}", trial.counts.open.get());
            assert!(trial.counts.turned_away.get() >= 100);
        });
    }

    /// Where every connection has a request in progress, the next one is closed; and there is room when one has ended.
    #[test]
    fn requests_in_progress_are_not_displaced() {
        let limits = ConnectionLimits { connections: 3, address_connections: 3, ..ConnectionLimits::DEFAULT };
        beside(limits, async |trial| {
            let mut working = Vec::new();
            for _ in 0..3 {
                working.push(send(trial.address, WAIT).await);
            }
            // The connections are made before their requests are read.
            while trial.waiting.load(Ordering::Relaxed) < 3 {
                sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(rest(send(trial.address, QUICK).await).await, "");
            trial.go.add_permits(3);
            for stream in working {
                assert!(rest(stream).await.ends_with("waited\n"));
            }
            assert!(rest(send(trial.address, QUICK).await).await.ends_with("quick\n"));
        });
    }

    /// A head that does not arrive ends its connection after the time for it.
    #[test]
    fn half_a_head_is_closed_in_time() {
        let limits = ConnectionLimits { idle: Duration::from_millis(300), ..ConnectionLimits::DEFAULT };
        beside(limits, async |trial| {
            let streams = [send(trial.address, "GET /qu").await, send(trial.address, "").await];
            for stream in streams {
                assert!(!rest(stream).await.contains("200 OK"));
            }
        });
    }
}
