//! What is asked and answered over HTTP.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Serialize;
use warpsmith::salts::{QueueError, SaltEstimate, SaltResults, SaltScheduler, SaltSearch};
use warpsmith_console::stdout::JSON_VERSION;
use warpsmith_console::web::is_address_or_localhost;
use warpsmith_files::Token;
use warpsmith_http::{
    BODY_TIMEOUT, BodyError, ConnectionCounts, ConnectionLimits, FairQueue, Peer, read_body,
};
use warpsmith_text::json_mistake;

use super::metrics::Metrics;
use super::request::Request;
use crate::record::{Deliverable, Telling};

/// What goes for every request.
pub(super) struct Rules {
    pub token: Option<Token>,
    pub longest: Duration,
    pub least_chance: f64,
    pub metrics: Metrics,
}

struct Service {
    scheduler: Arc<SaltScheduler>,
    rules: Rules,
    /// Ends all searches when the service does.
    stop: Arc<AtomicBool>,
    /// Permits to compile patterns: many take time and memory, before a request has a permit to run.
    compiling: Arc<FairQueue>,
}

/// Requests whose patterns are compiled at once, and that wait for it.
const COMPILING: usize = 2;
const MAX_COMPILE_WAITING: usize = 256;

/// The longest body.
const MAX_BYTES: usize = 256 << 10;
/// How often it is checked whether the service is to stop, or a deadline has passed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time after its deadline in which a search can end by itself; the answer does not wait longer.
const GRACE: Duration = Duration::from_millis(500);
/// Time for answers, and then for work that nobody waits for, once the service stops.
const SHUTDOWN: Duration = Duration::from_secs(10);
const SHUTDOWN_OF_WORK: Duration = Duration::from_secs(5);
/// Connections of one address beside those whose requests are searched for or wait.
const SPARE_CONNECTIONS: usize = 16;

/// Answers until it is stopped. Searches that are under way then end, and are answered with what they found.
pub(super) fn serve(
    listener: TcpListener,
    scheduler: Arc<SaltScheduler>,
    rules: Rules,
    stop: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limits = limits_for(scheduler.capacity());
    let compiling = FairQueue::new(COMPILING, MAX_COMPILE_WAITING);
    let service = Arc::new(Service { scheduler, rules, stop: Arc::clone(stop), compiling });
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let stopped = async {
            while !service.stop.load(Ordering::Relaxed) {
                service.rules.metrics.update(&service.scheduler);
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        let router = router(Arc::clone(&service));
        warpsmith_http::serve(listener, router, limits, ConnectionCounts::default(), stopped).await;
        Ok(())
    });
    runtime.shutdown_timeout(SHUTDOWN_OF_WORK);
    served
}

/// Connection limits of a service with so many places, those to wait in included. Behind a proxy for TLS all clients have one
/// address, so that one may fill the places.
fn limits_for(places: usize) -> ConnectionLimits {
    let usual = ConnectionLimits::DEFAULT;
    let address_connections = usual.address_connections.max(places + SPARE_CONNECTIONS);
    let connections = usual.connections.max(address_connections);
    let limits =
        ConnectionLimits { connections, address_connections, shutdown: SHUTDOWN, http2: false, ..usual };
    limits.within_open_files().0
}

fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v1/salts", post(salts))
        .route("/health", get(health))
        .fallback(async || {
            let why =
                "there is nothing at this path: POST /v1/salts asks for a salt, GET /health for the load";
            Refused::new(StatusCode::NOT_FOUND, why).answer()
        })
        .method_not_allowed_fallback(async || {
            let why =
                "this path has another method: POST /v1/salts asks for a salt, GET /health for the load";
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, why).answer()
        })
        .with_state(service)
}

#[derive(Serialize)]
struct Health {
    busy: usize,
    waiting: usize,
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let health = Health { busy: service.scheduler.running(), waiting: service.scheduler.waiting() };
    json(StatusCode::OK, serde_json::to_vec(&health).expect("plain values"))
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body)
        .into_response()
}

/// Why there is no salt.
#[derive(Serialize)]
struct Refused {
    version: u32,
    event: &'static str,
    message: String,
    code: u16,
    /// One salt in so many is wanted.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "warpsmith_console::json::text_if_any"
    )]
    difficulty: Option<f64>,
    /// Salts a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    /// Of a salt in the time given.
    #[serde(skip_serializing_if = "Option::is_none")]
    chance: Option<f64>,
    /// The time after which half of such requests have their salt.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "warpsmith_console::json::seconds_if_any"
    )]
    p50_s: Option<f64>,
}

impl Refused {
    fn new(status: StatusCode, message: impl Into<String>) -> Refused {
        Refused {
            version: JSON_VERSION,
            event: "error",
            message: message.into(),
            code: status.as_u16(),
            difficulty: None,
            rate: None,
            chance: None,
            p50_s: None,
        }
    }

    fn answer(self) -> Response {
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, serde_json::to_vec(&self).expect("plain values"))
    }
}

/// Nothing was found in time.
#[derive(Serialize)]
struct Nothing {
    version: u32,
    event: &'static str,
    matches: u64,
    #[serde(serialize_with = "warpsmith_console::json::text")]
    tried: u64,
    elapsed_s: f64,
    ended: &'static str,
}

async fn salts(
    State(service): State<Arc<Service>>,
    Extension(Peer(client)): Extension<Peer>,
    request: HttpRequest,
) -> Response {
    match service.answer(client.ip(), request).await {
        Ok((how, response)) => {
            service.rules.metrics.ended(how);
            response
        }
        Err(refused) => {
            let is_for_now = refused.code == 429 || refused.code == 503;
            service.rules.metrics.ended(if is_for_now { "turned away" } else { "refused" });
            match refused.code {
                429 | 503 => ([(header::RETRY_AFTER, "1")], refused.answer()).into_response(),
                401 => ([(header::WWW_AUTHENTICATE, "Bearer")], refused.answer()).into_response(),
                _ => refused.answer(),
            }
        }
    }
}

/// Ends the work for a request when its answer is given, or when the client has gone and the answer is dropped.
#[derive(Default)]
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The answer to a request whose deadline passed before its search began.
fn late() -> Refused {
    Refused::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the deadline passed before it was this request's turn; give more time or ask again later",
    )
}

fn turned_away(error: QueueError) -> Refused {
    match error {
        QueueError::Full => Refused::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests wait already; ask again in a second",
        ),
        QueueError::Late => late(),
    }
}

impl Service {
    async fn answer(
        self: &Arc<Self>,
        client: IpAddr,
        request: HttpRequest,
    ) -> Result<(&'static str, Response), Refused> {
        self.admit(request.headers())?;
        let began = Instant::now();
        let request = read(request.into_body()).await?;
        let deadline = request.deadline(self.rules.longest).map_err(bad)?;
        let until = began + deadline;
        let abandoned = Abandoned::default();
        let salt_search = self.compile(request, client, until, &abandoned).await?;
        self.refuse_hopeless(&salt_search, deadline)?;
        let permit = self.scheduler.acquire(client, until).await.map_err(turned_away)?;
        let (began, results) = (Instant::now(), Arc::new(SaltResults::default()));
        let search = {
            let (service, results) = (Arc::clone(self), Arc::clone(&results));
            let interrupt = Arc::clone(&abandoned.0);
            // The permit is the search's, and free when that has ended, also where the client has gone.
            tokio::task::spawn_blocking(move || {
                let ended = service.scheduler.search(permit, &salt_search, until, &interrupt, &results);
                service.rules.metrics.searched(results.lock().tried, began.elapsed());
                ended
            })
        };
        // The end of the service ends its searches. The deadline ends one whose device is still being made ready, too, of which the search's
        // own clock knows nothing; and the answer does not wait for a device.
        let stopped = async {
            while !self.stop.load(Ordering::Relaxed) {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        let overdue = async {
            let _ = tokio::time::timeout_at(until.into(), stopped).await;
            abandoned.0.store(true, Ordering::Relaxed);
            tokio::time::sleep_until((Instant::now().min(until) + GRACE).into()).await;
        };
        let internal = |what: String| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, what);
        tokio::select! {
            ended = search => {
                let ended = ended.map_err(|error| internal(error.to_string()))?;
                ended.map_err(|error| internal(error.to_string()))?;
            }
            () = overdue => {}
        }
        Ok(outcome(&results, began.elapsed()))
    }

    /// Compiles the patterns of a request, when it is its turn. The permit is the work's: it is free when that has ended,
    /// also where the client has gone or the deadline has passed.
    async fn compile(
        &self,
        request: Request,
        client: IpAddr,
        until: Instant,
        abandoned: &Abandoned,
    ) -> Result<SaltSearch, Refused> {
        let permit = self.compiling.acquire(client, until).await.map_err(turned_away)?;
        let is_abandoned = Arc::clone(&abandoned.0);
        let work = tokio::task::spawn_blocking(move || {
            let compiled = request.compile(&is_abandoned);
            drop(permit);
            compiled
        });
        let compiled = tokio::time::timeout_at(until.into(), work).await.map_err(|_| late())?;
        compiled.map_err(|error| bad(error.to_string()))?.map_err(bad)
    }

    /// Whether somebody may ask.
    fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let value = |name: header::HeaderName| headers.get(name).map(|value| value.as_bytes());
        match &self.rules.token {
            Some(token) if !value(header::AUTHORIZATION).is_some_and(|given| token.is_in(given)) => {
                let why = "this service answers those who send its token: Authorization: Bearer TOKEN";
                return Err(Refused::new(StatusCode::UNAUTHORIZED, why));
            }
            Some(_) => {}
            None => {
                // A page in a browser on this machine must not ask under a name of its own (DNS rebinding).
                let host = value(header::HOST).and_then(|host| str::from_utf8(host).ok());
                if !host.is_some_and(is_address_or_localhost) {
                    let why = "ask by the address or by localhost, not by another name";
                    return Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, why));
                }
            }
        }
        // Nor by a form, which needs nobody's leave.
        let kind = value(header::CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        match kind.eq_ignore_ascii_case(b"application/json") {
            true => Ok(()),
            false => Err(Refused::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a request is a JSON document: send Content-Type: application/json",
            )),
        }
    }

    /// Refuses what is not likely to be found in its time.
    fn refuse_hopeless(&self, search: &SaltSearch, time: Duration) -> Result<(), Refused> {
        let Some(SaltEstimate { difficulty, rate, probability, p50_s }) =
            self.scheduler.estimate(search, time)
        else {
            return Ok(());
        };
        if probability >= self.rules.least_chance {
            return Ok(());
        }
        let message = format!(
            "one salt in {difficulty:.3e} has that, and {rate:.3e} are tried a second: a chance of {:.2} % within {} s; half of such \
             requests have their salt after {p50_s:.1} s. Ask for less or give more time",
            100.0 * probability,
            time.as_secs_f64()
        );
        Err(Refused {
            difficulty: Some(difficulty),
            rate: Some(rate),
            chance: Some(probability),
            p50_s: Some(p50_s),
            ..Refused::new(StatusCode::UNPROCESSABLE_ENTITY, message)
        })
    }
}

fn bad(why: String) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, why)
}

async fn read(body: Body) -> Result<Request, Refused> {
    let bytes = read_body(body, MAX_BYTES, BODY_TIMEOUT).await.map_err(|error| {
        let status = match error {
            BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Timeout(_) => StatusCode::REQUEST_TIMEOUT,
        };
        Refused::new(status, error.to_string())
    })?;
    serde_json::from_slice(&bytes).map_err(|error| bad(json_mistake(&error.to_string())))
}

/// The answer with the results there are.
fn outcome(results: &SaltResults, elapsed: Duration) -> (&'static str, Response) {
    let mut results = results.lock();
    match results.best.take() {
        Some(found) => {
            let text = Deliverable::Match(found).text(true, Telling::Plain, true);
            ("found", json(StatusCode::OK, text.to_vec()))
        }
        None => {
            let (version, elapsed_s, tried) = (JSON_VERSION, elapsed.as_secs_f64(), results.tried);
            let line = Nothing { version, event: "done", matches: 0, tried, elapsed_s, ended: "time_limit" };
            ("nothing", json(StatusCode::OK, serde_json::to_vec(&line).expect("plain values")))
        }
    }
}
