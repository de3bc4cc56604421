//! Connections: how many, how long one may be silent, and how they end.
//!
//! A connection is there for requests. One that has none under way and made none for a while is closed, whatever else it
//! says (an HTTP/2 client can answer pings for ever). An answer that is taken too slowly ends its connection too.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;

use super::Peer;
use super::metrics::Metrics;
use super::quota::Quota;

/// Time for open connections once the server stops; the whole of it is to take no more than five seconds.
const FAREWELL: Duration = Duration::from_secs(3);
/// The same for one without a request, of which half a head may be there: whoever sends it asks again, and finds the next server the sooner.
const LEAVE: Duration = Duration::from_millis(500);
/// Bytes a second at which an answer must be taken, on average.
const PACE: u64 = 16 << 10;
/// The most of a request's head, in bytes and in fields.
const HEAD_BYTES: u32 = 16 << 10;
const HEAD_FIELDS: usize = 64;
/// Requests under way on one connection, and the bytes that are kept for each before somebody takes them.
const STREAMS: u32 = 16;
const BUFFER: usize = 64 << 10;

/// A listener's rules, and what it serves.
pub(super) struct Door {
    pub router: Router,
    pub places: Arc<Quota>,
    pub idle: Duration,
    pub metrics: Arc<Metrics>,
}

/// Takes connections until `stop` completes, and returns what it gave soon after that, whatever is connected.
pub(super) async fn accept<T>(listener: TcpListener, door: Door, stop: impl Future<Output = T>) -> T {
    let (door, (stopping, stopped)) = (Arc::new(door), watch::channel(false));
    let mut open = JoinSet::new();
    let mut stop = pin!(stop);
    let told = loop {
        let accepted = poll_fn(|context| {
            if let Poll::Ready(told) = stop.as_mut().poll(context) {
                return Poll::Ready(Err(told));
            }
            // What has ended is forgotten.
            while let Poll::Ready(Some(_)) = open.poll_join_next(context) {}
            listener.poll_accept(context).map(Ok)
        });
        let (stream, address) = match accepted.await {
            Err(told) => break told,
            Ok(Ok(connection)) => connection,
            // Too many open files, or a connection that ended before it was taken: neither ends the server.
            Ok(Err(_)) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Who is one too many is told so by the end of the connection: nobody else waits for him.
        let Ok(place) = door.places.take(address.ip(), 1) else {
            door.metrics.turned_away.inc();
            continue;
        };
        let (door, stopped) = (Arc::clone(&door), stopped.clone());
        open.spawn(async move {
            door.metrics.connections.inc();
            // An error here is the other side's: it left, or spoke no HTTP.
            let _ = converse(stream, Peer(address), &door, stopped).await;
            door.metrics.connections.dec();
            drop(place);
        });
    };
    drop(listener);
    let _ = stopping.send(true);
    let all = async { while open.join_next().await.is_some() {} };
    if timeout(FAREWELL, all).await.is_err() {
        open.shutdown().await;
    }
    told
}

/// What ended a wait.
enum Event<T> {
    /// The connection.
    Done(T),
    /// The server.
    Stop,
    /// Nothing: it is time to look.
    Look,
}

async fn converse(
    stream: TcpStream,
    peer: Peer,
    door: &Door,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let pulse = Arc::new(Pulse::new(door.idle));
    let (router, beating) = (door.router.clone(), Arc::clone(&pulse));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let (under_way, answer) = (beating.begin(), router.clone().call(request.map(Body::new)));
        async move { answer.await.map(|answer| answer.map(|body| under_way.until_taken(body))) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    // Until the head of the next request is there, however slowly that comes: hyper counts from the end of the answer before.
    http1.timer(TokioTimer::new()).header_read_timeout(door.idle);
    http1.max_buf_size(BUFFER).max_headers(HEAD_FIELDS);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(door.idle / 2);
    http2.max_concurrent_streams(STREAMS).max_header_list_size(HEAD_BYTES).max_send_buf_size(BUFFER);
    http2.initial_stream_window_size(BUFFER as u32).initial_connection_window_size(4 * BUFFER as u32);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stop = pin!(stopped.wait_for(|stopped| *stopped));
    let often = (door.idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
    // When it was told to end, and whether that was since all do.
    let (mut told, mut all_end): (Option<Instant>, bool) = (None, false);
    loop {
        let mut look = pin!(sleep(if all_end { LEAVE } else { often }));
        let event = poll_fn(|context| {
            if let Poll::Ready(done) = connection.as_mut().poll(context) {
                return Poll::Ready(Event::Done(done));
            }
            if told.is_none() && stop.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Stop);
            }
            look.as_mut().poll(context).map(|()| Event::Look)
        });
        let now = match event.await {
            Event::Done(done) => return done,
            // From here on it has as long as all have, see above.
            Event::Stop => {
                connection.as_mut().graceful_shutdown();
                (told, all_end) = (Some(Instant::now()), true);
                continue;
            }
            Event::Look => Instant::now(),
        };
        match (pulse.state(now), told) {
            (State::Overdue, _) => return Ok(()),
            _ if all_end && pulse.is_quiet(now) => return Ok(()),
            (State::Idle, None) => {
                connection.as_mut().graceful_shutdown();
                told = Some(now);
            }
            // It does not even take its leave.
            (State::Idle, Some(told)) if now >= told + FAREWELL => return Ok(()),
            (State::Idle | State::Alive, _) => {}
        }
    }
}

/// What goes on on a connection.
struct Pulse {
    idle: Duration,
    beats: Mutex<Beats>,
}

struct Beats {
    /// The requests under way, and until when the answers there are must be taken.
    under_way: HashMap<u64, Option<Instant>>,
    next: u64,
    quiet_since: Instant,
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

impl Pulse {
    fn new(idle: Duration) -> Pulse {
        let beats = Beats { under_way: HashMap::new(), next: 0, quiet_since: Instant::now() };
        Pulse { idle, beats: Mutex::new(beats) }
    }

    fn lock(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Pulse>) -> UnderWay {
        let mut beats = self.lock();
        let number = beats.next;
        beats.next += 1;
        beats.under_way.insert(number, None);
        UnderWay { pulse: Arc::clone(self), number }
    }

    /// Whether there is no request, and the end of the last answer had a moment to leave.
    fn is_quiet(&self, now: Instant) -> bool {
        let beats = self.lock();
        beats.under_way.is_empty() && now >= beats.quiet_since + LEAVE
    }

    fn state(&self, now: Instant) -> State {
        let beats = self.lock();
        if beats.under_way.values().flatten().any(|due| now > *due) {
            State::Overdue
        } else if beats.under_way.is_empty() && now >= beats.quiet_since + self.idle {
            State::Idle
        } else {
            State::Alive
        }
    }
}

/// A request, from its head to the last byte of its answer.
struct UnderWay {
    pulse: Arc<Pulse>,
    number: u64,
}

impl UnderWay {
    /// The request is under way until its answer was taken; and there is a time for that.
    fn until_taken(self, body: Body) -> Answer {
        let length = hyper::body::Body::size_hint(&body).exact().unwrap_or(0);
        let due = Instant::now() + self.pulse.idle + Duration::from_secs(length / PACE);
        self.pulse.lock().under_way.insert(self.number, Some(due));
        Answer { body, _under_way: self }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut beats = self.pulse.lock();
        beats.under_way.remove(&self.number);
        beats.quiet_since = Instant::now();
    }
}

/// The body of an answer.
struct Answer {
    body: Body,
    _under_way: UnderWay,
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
    use super::*;

    #[test]
    fn connections_live_by_their_requests() {
        let idle = Duration::from_secs(60);
        let pulse = Arc::new(Pulse::new(idle));
        let start = Instant::now();
        let after = |seconds| pulse.state(start + Duration::from_secs(seconds));
        assert_eq!((after(0), after(59), after(62)), (State::Alive, State::Alive, State::Idle));
        // While an answer is made nothing is due; once it is there, it has to be taken.
        let (one, two) = (pulse.begin(), pulse.begin());
        assert_eq!(after(100_000), State::Alive);
        let answer = one.until_taken(Body::from(vec![0; 10 * PACE as usize]));
        assert_eq!((after(69), after(72)), (State::Alive, State::Overdue));
        drop(answer);
        assert_eq!(after(100_000), State::Alive);
        drop(two);
        assert_eq!((after(59), after(62)), (State::Alive, State::Idle));
    }
}
