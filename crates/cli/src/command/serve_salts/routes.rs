//! What is asked and answered over HTTP.

use std::future::IntoFuture as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::sync::Semaphore;
use warpsmith::pir::Token;
use warpsmith::search::time_to;

use super::desk::{Desk, Done, Numbers, Turned};
use super::order::{Order, Request};
use crate::record::{Deliverable, Telling};
use crate::stdout::JSON_VERSION;
use crate::web::is_plain;

/// What goes for every request.
pub(super) struct Rules {
    pub token: Option<Token>,
    pub longest: Duration,
    pub least_chance: f64,
    pub numbers: Numbers,
}

struct Service {
    desk: Arc<Desk>,
    rules: Rules,
    /// Ends all searches when the service does.
    stop: Arc<AtomicBool>,
    /// Leave to compile what a request asks for: many patterns take time and memory, before anybody has a seat.
    reading: Semaphore,
}

/// Requests that are compiled at once.
const READING: usize = 2;

/// The longest body, and how long it may take to come.
const MOST_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the service shall end.
const LOOK: Duration = Duration::from_millis(50);

/// Answers until it is stopped. Searches that are under way then end, and are answered with what they found.
pub(super) fn serve(
    listener: TcpListener,
    desk: Arc<Desk>,
    rules: Rules,
    stop: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let service = Arc::new(Service { desk, rules, stop: Arc::clone(stop), reading: Semaphore::new(READING) });
    let router = Router::new()
        .route("/v1/salts", post(salts))
        .route("/health", get(health))
        .with_state(Arc::clone(&service));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let stopped = async move {
            while !service.stop.load(Ordering::Relaxed) {
                service.rules.numbers.stand(&service.desk);
                tokio::time::sleep(LOOK).await;
            }
        };
        // Who does not finish its request or take its answer holds nobody up for ever.
        let late = async {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            ended = axum::serve(listener, router).with_graceful_shutdown(stopped).into_future() => ended,
            () = late => Ok(()),
        }
    })
}

#[derive(Serialize)]
struct Health {
    busy: usize,
    waiting: usize,
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let health = Health { busy: service.desk.busy(), waiting: service.desk.waiting() };
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
    #[serde(skip_serializing_if = "Option::is_none")]
    difficulty: Option<f64>,
    /// Salts a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    /// Of a salt in the time given.
    #[serde(skip_serializing_if = "Option::is_none")]
    chance: Option<f64>,
    /// The time after which half of such requests have their salt.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    tried: u64,
    elapsed_s: f64,
    ended: &'static str,
}

async fn salts(State(service): State<Arc<Service>>, request: HttpRequest) -> Response {
    match service.answer(request).await {
        Ok((how, response)) => {
            service.rules.numbers.ended(how);
            response
        }
        Err(refused) => {
            let is_for_now = refused.code == 429 || refused.code == 503;
            service.rules.numbers.ended(if is_for_now { "turned away" } else { "refused" });
            match is_for_now {
                true => ([(header::RETRY_AFTER, "1")], refused.answer()).into_response(),
                false => refused.answer(),
            }
        }
    }
}

/// Ends a search whose client has gone: what is dropped with the answer that nobody awaits.
struct Interest(Arc<AtomicBool>);

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Service {
    async fn answer(self: &Arc<Self>, request: HttpRequest) -> Result<(&'static str, Response), Refused> {
        self.admit(request.headers())?;
        let began = Instant::now();
        let order = self.read(request.into_body()).await?;
        let until = began + order.deadline;
        self.refuse_hopeless(&order)?;
        let service = Arc::clone(self);
        let seat = self.desk.sit(until).await.map_err(|turned| match turned {
            Turned::Full => Refused::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests wait already; ask again in a second",
            ),
            Turned::Late => Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the deadline was over before it was this request's turn; give more time or ask again later",
            ),
        })?;
        let gone = Arc::new(AtomicBool::new(false));
        let (interest, interrupt) = (Interest(Arc::clone(&gone)), gone);
        // What ends the service ends its searches. The deadline ends one whose device is still being made ready, too, of which the search's
        // own clock knows nothing.
        let (stop, watched) = (Arc::clone(&self.stop), Arc::clone(&interrupt));
        let watch = async move {
            while !stop.load(Ordering::Relaxed) && Instant::now() < until {
                tokio::time::sleep(LOOK).await;
            }
            watched.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await
        };
        let search = tokio::task::spawn_blocking(move || service.desk.search(&order, until, &interrupt));
        let done = tokio::select! {
            done = search => done,
            () = watch => unreachable!("it waits for ever"),
        };
        drop((seat, interest));
        let internal = |what: String| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, what);
        let done = done.map_err(|error| internal(error.to_string()))?.map_err(internal)?;
        self.rules.numbers.searched(&done);
        Ok(told(done))
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
                if !host.is_some_and(is_plain) {
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

    async fn read(&self, body: Body) -> Result<Order, Refused> {
        let bytes = tokio::time::timeout(PATIENCE, to_bytes(body, MOST_BYTES)).await;
        let bytes = bytes
            .map_err(|_| Refused::new(StatusCode::REQUEST_TIMEOUT, "the request did not come in time"))?;
        let bytes = bytes.map_err(|_| {
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a request has {MOST_BYTES} bytes at most"))
        })?;
        let bad = |why: String| Refused::new(StatusCode::BAD_REQUEST, why);
        let request: Request = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        let longest = self.rules.longest;
        let busy = || {
            Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests are read already; ask again in a second",
            )
        };
        let leave = tokio::time::timeout(PATIENCE, self.reading.acquire()).await.map_err(|_| busy())?;
        let leave = leave.map_err(|_| busy())?;
        // Many patterns take a while to compile: others are answered meanwhile.
        let read = tokio::task::spawn_blocking(move || request.read(longest)).await;
        drop(leave);
        read.map_err(|error| bad(error.to_string()))?.map_err(bad)
    }

    /// Refuses what is not likely to be found in its time.
    fn refuse_hopeless(&self, order: &Order) -> Result<(), Refused> {
        let Some(odds) = order.odds() else { return Ok(()) };
        let rate = self.desk.share(order);
        let seconds = order.deadline.as_secs_f64();
        let chance = -f64::exp_m1(-odds * rate * seconds);
        if chance >= self.rules.least_chance {
            return Ok(());
        }
        let p50_s = time_to(0.5, 1, odds, rate);
        let message = format!(
            "one salt in {:.3e} has that, and {:.3e} are tried a second: a chance of {:.2} % within {seconds} s; half of such requests \
             have their salt after {p50_s:.1} s. Ask for less or give more time",
            1.0 / odds,
            rate,
            100.0 * chance
        );
        let refused = Refused::new(StatusCode::UNPROCESSABLE_ENTITY, message);
        let (difficulty, rate) = (Some(1.0 / odds), Some(rate));
        Err(Refused { difficulty, rate, chance: Some(chance), p50_s: Some(p50_s), ..refused })
    }
}

fn told(done: Done) -> (&'static str, Response) {
    let Done { found, tried, elapsed } = done;
    match found {
        Some(found) => {
            let text = Deliverable::Match(found).text(true, Telling::Plain, true);
            ("found", json(StatusCode::OK, text.to_vec()))
        }
        None => {
            let (version, elapsed_s) = (JSON_VERSION, elapsed.as_secs_f64());
            let line = Nothing { version, event: "done", matches: 0, tried, elapsed_s, ended: "time_limit" };
            ("nothing", json(StatusCode::OK, serde_json::to_vec(&line).expect("plain values")))
        }
    }
}
