//! What each request gets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use warpsmith_http::{BodyError, Full, Peer, Share, read_body};

use super::body::{Part, STREAM_BYTES, Stretch, held};
use super::metrics::Reason;
use super::{Role, Shared};
use crate::database::Database;
use crate::error::Error;
use crate::two_server::{self, REQUEST_BYTES};
use crate::wire::HEAD_BYTES;

type App = State<Arc<Shared>>;
type Answer = Result<Response, Refused>;

const BINARY: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/octet-stream")];

pub(super) fn router(shared: Arc<Shared>) -> Router {
    let router = Router::new().route("/v1/info", get(info)).route("/v1/updates/{epoch}", get(updates));
    let router = match &shared.role {
        Role::Library => router
            .route("/v1/digests", get(digests))
            .route("/v1/blocks", get(blocks))
            .route("/v1/query", post(query)),
        Role::HintMaker(_) => router.route("/v1/hints", post(hints)),
    };
    let limited = router.layer(from_fn_with_state(shared.clone(), limit));
    limited.route("/health", get(health)).with_state(shared)
}

/// For those who watch the server, on a listener of its own.
pub(super) fn for_watchers(shared: Arc<Shared>) -> Router {
    Router::new().route("/metrics", get(metrics)).route("/health", get(health)).with_state(shared)
}

/// A refusal, with what to do where that is known.
struct Refused(StatusCode, Reason, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let retry = matches!(self.0, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let mut response = (self.0, format!("{}\n", self.2)).into_response();
        if retry {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        if self.0 == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(self.1);
        response
    }
}

/// The most that any request can have.
fn most_memory(shared: &Shared) -> u64 {
    shared.memory.most().min(shared.limits.request_memory)
}

/// A share of the memory for something an address asked for. Nothing may be allocated for it before.
fn memory(shared: &Shared, peer: Peer, bytes: u64) -> Result<Share, Refused> {
    let most = most_memory(shared);
    if bytes > most {
        let text = format!(
            "this takes {bytes} bytes of memory, and one request may take {most}; ask for less at a time"
        );
        return Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, Reason::Large, text));
    }
    shared.memory.take(peer.0.ip(), bytes).map_err(|full| {
        let text = match full {
            Full::All => "no memory is left beside the requests under way; come again",
            Full::Address => "the requests of this address take all the memory it may have; come again",
        };
        Refused(StatusCode::SERVICE_UNAVAILABLE, Reason::Busy, text.into())
    })
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        let (status, reason) = match error {
            Error::Mismatch(_) => (StatusCode::CONFLICT, Reason::Epoch),
            // Where files are, and what is wrong with them, is the operator's business.
            Error::Damaged { .. } | Error::Io { .. } => {
                let text = "the database of this server is damaged or cannot be read".to_owned();
                return Refused(StatusCode::SERVICE_UNAVAILABLE, Reason::Failed, text);
            }
            Error::Wrong { .. } => (StatusCode::INTERNAL_SERVER_ERROR, Reason::Failed),
            #[cfg(feature = "device")]
            Error::Device(_) => (StatusCode::INTERNAL_SERVER_ERROR, Reason::Failed),
            _ => (StatusCode::BAD_REQUEST, Reason::Malformed),
        };
        Refused(status, reason, error.to_string())
    }
}

/// Counts refusals, and refuses addresses that ask too often.
async fn limit(
    State(shared): App,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let response = if shared.rates.take(peer.0.ip(), Instant::now()) {
        next.run(request).await
    } else {
        Refused(StatusCode::TOO_MANY_REQUESTS, Reason::Rate, "too many requests from this address".into())
            .into_response()
    };
    if let Some(reason) = response.extensions().get::<Reason>() {
        shared.metrics.refuse(*reason);
    }
    response
}

async fn health() -> &'static str {
    "ok\n"
}

async fn metrics(State(shared): App) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.text(shared.live.epoch())).into_response()
}

async fn info(State(shared): App) -> Response {
    let (description, epoch, head) = shared.live.offer();
    let mut response = (BINARY, description.to_bytes()).into_response();
    response.headers_mut().insert("warpsmith-epoch", epoch.into());
    response.headers_mut().insert("warpsmith-changes", shared.live.changes().into());
    if let Some(head) = head.and_then(|head| head.parse().ok()) {
        response.headers_mut().insert("warpsmith-head", head);
    }
    if matches!(shared.role, Role::Library) {
        response.headers_mut().insert("warpsmith-batch", shared.limits.batch.into());
    }
    response
}

/// The file that a request wants: the one it names (RFC 9110, If-Match), or else the present one. Who streams a file has begun
/// with its head, and cannot go on with another that a fold put in its place.
fn wanted(shared: &Shared, headers: &HeaderMap) -> Result<Arc<Database>, Refused> {
    let Some(named) = headers.get(header::IF_MATCH) else { return Ok(shared.live.base()) };
    shared.live.file(named.as_bytes()).ok_or_else(|| {
        let text = "the database was folded, and this file of it is gone; begin again with the present one";
        Refused(StatusCode::PRECONDITION_FAILED, Reason::Epoch, text.into())
    })
}

async fn digests(State(shared): App, Extension(peer): Extension<Peer>, headers: HeaderMap) -> Answer {
    let base = wanted(&shared, &headers)?;
    let share = memory(&shared, peer, STREAM_BYTES)?;
    let end = base.digests().len() as u64;
    let stretch = Stretch::begin(base, Part::Digests, 0..end, share)?;
    Ok((BINARY, Body::new(stretch)).into_response())
}

async fn updates(State(shared): App, Extension(peer): Extension<Peer>, Path(epoch): Path<u64>) -> Answer {
    let limit = shared.limits.updates_bytes.min((most_memory(&shared) / 4) as usize);
    // Each update is copied once on its way to the body. What others ask for does not count: one long epoch is in nobody's way who
    // has it already.
    let longest = shared.live.updates_bytes(epoch, limit as u64)?;
    let mut share = memory(&shared, peer, 2 * longest + 64)?;
    let body = work(&shared, move |shared| {
        let changes = shared.live.changes_after(epoch)?;
        let body = shared.live.updates_after(epoch, limit)?;
        share.shrink(body.len() as u64);
        Ok((changes, held(body, share)))
    });
    let (changes, body) = body.await?;
    let mut response = (BINARY, body).into_response();
    response.headers_mut().insert("warpsmith-changes", changes.into());
    Ok(response)
}

/// The blocks of the file, whole or a range of their bytes. They never change, so a download can go on where it broke off.
async fn blocks(State(shared): App, Extension(peer): Extension<Peer>, headers: HeaderMap) -> Answer {
    let base = wanted(&shared, &headers)?;
    let description = base.description();
    let whole = description.data_bytes();
    let tag = description.tag();
    // A range of another database would be of no use: then the whole of this one is sent, as RFC 9110 says.
    let same = headers.get(header::IF_RANGE).is_none_or(|condition| condition.as_bytes() == tag.as_bytes());
    let range = headers.get(header::RANGE).filter(|_| same).and_then(|range| range.to_str().ok());
    let (status, start, end) = match range.map(|range| parse_range(range, whole)) {
        None | Some(Range::Ignored) => (StatusCode::OK, 0, whole),
        Some(Range::Of(start, end)) => (StatusCode::PARTIAL_CONTENT, start, end),
        Some(Range::Outside) => {
            let text = format!("there are {whole} bytes");
            return Err(Refused(StatusCode::RANGE_NOT_SATISFIABLE, Reason::Malformed, text));
        }
    };
    let share = memory(&shared, peer, STREAM_BYTES)?;
    let stretch = Stretch::begin(base, Part::Blocks, start..end, share)?;
    shared.metrics.streamed.inc_by(end - start);
    let mut response = Body::new(stretch).into_response();
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(BINARY[0].1));
    headers.insert(header::ACCEPT_RANGES, header::HeaderValue::from_static("bytes"));
    if let Ok(tag) = tag.parse() {
        headers.insert(header::ETAG, tag);
    }
    if let Some(range) = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| format!("bytes {start}-{}/{whole}", end - 1))
        .and_then(|range| range.parse().ok())
    {
        headers.insert(header::CONTENT_RANGE, range);
    }
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum Range {
    /// From the first byte to before the second.
    Of(u64, u64),
    Outside,
    /// Several ranges, or another unit: the whole is sent.
    Ignored,
}

/// `bytes=A-B`, `bytes=A-` or `bytes=-N`.
fn parse_range(text: &str, whole: u64) -> Range {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Range::Ignored;
    };
    let (start, end) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, last.saturating_add(1).min(whole)),
        (Ok(first), Err(_)) if last.trim().is_empty() => (first, whole),
        (Err(_), Ok(length)) if first.trim().is_empty() => (whole.saturating_sub(length), whole),
        _ => return Range::Ignored,
    };
    if start < end { Range::Of(start, end) } else { Range::Outside }
}

/// The length a request says its body has.
fn announced(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The body of a request, if it comes in time and is not too long.
async fn body(shared: &Shared, request: Request, limit: usize) -> Result<Bytes, Refused> {
    let body = read_body(request.into_body(), limit, shared.limits.request_time).await;
    body.map_err(|error| {
        let (status, reason) = match error {
            BodyError::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, Reason::Large),
            BodyError::Timeout(_) => (StatusCode::REQUEST_TIMEOUT, Reason::Slow),
        };
        Refused(status, reason, error.to_string())
    })
}

/// Does something that takes a processor's time, if not too much else is going on.
async fn work<T: Send + 'static>(
    shared: &Arc<Shared>,
    what: impl FnOnce(&Shared) -> crate::Result<T> + Send + 'static,
) -> Result<T, Refused> {
    let Ok(place) = shared.working.clone().try_acquire_owned() else {
        let text = "too many requests at once".to_owned();
        return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, Reason::Busy, text));
    };
    let shared = shared.clone();
    let done = tokio::task::spawn_blocking(move || {
        // Held until the work ends, also when the client has gone.
        let _place = place;
        what(&shared)
    });
    match done.await {
        Ok(result) => Ok(result?),
        Err(_) => {
            Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, Reason::Failed, "the request failed".into()))
        }
    }
}

async fn query(State(shared): App, Extension(peer): Extension<Peer>, request: Request) -> Answer {
    let (params, batch) = (shared.live.params(), shared.limits.batch);
    let limit = HEAD_BYTES + batch * params.query_bytes();
    // The queries twice while they come, then as bytes and read; and the answers, twice.
    let each = 2 * params.query_bytes() + 9 * params.blocks() as usize + 2 * params.answer_bytes();
    let count = announced(&request).map_or(batch as u64, |length| length / params.query_bytes() as u64);
    let mut share =
        memory(&shared, peer, 4 * HEAD_BYTES as u64 + (count.min(batch as u64) + 1) * each as u64)?;
    let body = body(&shared, request, limit).await?;
    let answers = work(&shared, move |shared| {
        let begin = Instant::now();
        let answers = shared.live.answer(&body, shared.limits.batch)?;
        shared.metrics.answer_seconds.observe(begin.elapsed().as_secs_f64());
        shared.metrics.batches.inc();
        let each = shared.live.params().answer_bytes();
        shared.metrics.queries.inc_by(((answers.len() - HEAD_BYTES) / each) as u64);
        drop(body);
        share.shrink(answers.len() as u64);
        Ok(held(answers, share))
    });
    Ok((BINARY, answers.await?).into_response())
}

async fn hints(State(shared): App, Extension(peer): Extension<Peer>, request: Request) -> Answer {
    let Role::HintMaker(make) = &shared.role else {
        return Err(Error::Mismatch("this server makes no hints".into()).into());
    };
    if let Some(token) = &shared.token {
        let given = request.headers().get(header::AUTHORIZATION);
        if !given.is_some_and(|given| token.is_in(given.as_bytes())) {
            let text = "this hint maker asks for a token (warpsmith-pir hint --token-file)";
            return Err(Refused(StatusCode::UNAUTHORIZED, Reason::Token, text.into()));
        }
    }
    let body = body(&shared, request, REQUEST_BYTES).await?;
    let request = two_server::Request::read(&body)?;
    let (cost, most) = (request.cost(&shared.live.params())?, shared.limits.hint_pairs);
    if cost > most {
        let text = format!(
            "this takes {cost} pairs of a hint and a block, and one request may take {most}; ask for less at a time"
        );
        return Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, Reason::Large, text));
    }
    let mut share = memory(&shared, peer, request.memory(&shared.live, make.as_ref())?)?;
    let Ok(turn) = shared.making.take(peer.0.ip(), 1) else {
        let text = "hints are being made for this address already; come again";
        return Err(Refused(StatusCode::TOO_MANY_REQUESTS, Reason::Rate, text.into()));
    };
    // Raised when this future is dropped before its end: the sender has left.
    let gone = Gone::default();
    let (make, stop) = (Arc::clone(make), Arc::clone(&gone.0));
    let made = work(&shared, move |shared| {
        // Epochs begin between requests: here, and when somebody looks while nothing is made. What is wrong with one is told
        // then.
        if let Ok(_alone) = shared.refreshing.try_write() {
            let _ = shared.live.refresh();
        }
        let _epoch = shared.refreshing.read().unwrap_or_else(PoisonError::into_inner);
        let (epoch, hints) = request.fulfil(&shared.live, make.as_ref(), &stop)?;
        let body = two_server::body(epoch, &hints);
        drop((hints, turn));
        share.shrink(body.len() as u64);
        shared.metrics.hint_requests.inc();
        Ok(held(body, share))
    });
    Ok((BINARY, made.await?).into_response())
}

/// Tells work that nobody waits for it any more.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("bytes=0-9", Range::Of(0, 10)),
            ("bytes=5-", Range::Of(5, 100)),
            ("bytes=-7", Range::Of(93, 100)),
            ("bytes=-700", Range::Of(0, 100)),
            ("bytes=99-99", Range::Of(99, 100)),
            ("bytes=0-18446744073709551615", Range::Of(0, 100)),
            ("bytes=100-", Range::Outside),
            ("bytes=-0", Range::Outside),
            ("bytes=9-5", Range::Ignored),
            ("bytes=0-1,3-4", Range::Ignored),
            ("bytes=a-b", Range::Ignored),
            ("lines=0-1", Range::Ignored),
            ("bytes=-", Range::Ignored),
        ] {
            assert_eq!(parse_range(text, 100), expected, "{text}");
        }
    }
}
