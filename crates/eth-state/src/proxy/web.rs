//! The face to wallets: HTTP on this machine. A web page elsewhere must not use it: its browser
//! says where a page is from. Whoever serves it refuses requests under foreign names of a host (DNS
//! rebinding).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, post};
use serde_json::Value;
use tokio::sync::oneshot;
use warpsmith_http::{BODY_TIMEOUT, BodyError, read_body};

use super::fallback::Fallback;
use super::known::Known;
use super::outage::Servers;
use super::rounds::Wanted;
use super::rpc::{self, Call, Part, Plan, Wrong};
use super::{Advice, After};
use crate::look_up::Answered;

/// Bytes of a request.
const MAX_BYTES: usize = 1 << 20;
/// How long a call may take: a server that is busy is asked again, and rounds by the clock wait for
/// their time.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// What answers calls.
pub struct Front {
    /// Where look-ups go.
    pub wants: SyncSender<Wanted>,
    /// What is known without any.
    pub known: Arc<Known>,
    /// Whose answers look-ups wait for.
    pub servers: Servers,
    /// Whether codes can be looked up.
    pub has_codes: bool,
    /// Where calls go that cannot be looked up.
    pub fallback: Option<Fallback>,
    /// Whose pages may ask.
    pub origins: BTreeSet<String>,
    /// What to add to refusals.
    pub advice: Advice,
}

/// Returns what answers wallets, for an HTTP server whose timeout is [`CALL_TIMEOUT`].
pub fn router(front: Front) -> Router {
    let front = Arc::new(front);
    let calls: MethodRouter<Arc<Front>> = post(calls).options(preflight);
    Router::new()
        .route("/", calls.fallback(only_posts))
        .layer(from_fn_with_state(Arc::clone(&front), of_whom))
        .with_state(front)
}

async fn only_posts() -> (StatusCode, &'static str) {
    (StatusCode::METHOD_NOT_ALLOWED, "JSON-RPC is asked by POST\n")
}

/// Refuses pages of strangers, and tells the browser of a page that may ask.
async fn of_whom(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(header::ORIGIN).cloned() else { return next.run(request).await };
    if !origin.to_str().is_ok_and(|origin| front.origins.contains(origin)) {
        let why = format!("web pages are not answered{}\n", After(front.advice.origin));
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    response
}

/// What a browser asks before its page may.
async fn preflight() -> Response {
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (header::HeaderName::from_static("access-control-allow-private-network"), "true"),
    ];
    (StatusCode::NO_CONTENT, allowed).into_response()
}

async fn calls(State(front): State<Arc<Front>>, request: Request) -> Response {
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content-type of a call is application/json\n")
            .into_response();
    }
    let body = match read_body(request.into_body(), MAX_BYTES, BODY_TIMEOUT).await {
        Ok(body) => body,
        Err(error) => {
            let status = match error {
                BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
                BodyError::Timeout(_) => StatusCode::REQUEST_TIMEOUT,
            };
            return (status, format!("{error}\n")).into_response();
        }
    };
    let refuse = |code, message: &str| Some(rpc::reply(&Value::Null, &Err(Wrong::new(code, message))));
    let answer = match serde_json::from_slice(&body) {
        Err(_) => refuse(rpc::PARSE, "this is no JSON"),
        Ok(Value::Array(calls)) if calls.is_empty() => refuse(rpc::INVALID, "there is no call in it"),
        Ok(Value::Array(calls)) if calls.len() > rpc::MOST_CALLS => {
            refuse(rpc::INVALID, &format!("{} calls at once; at most {}", calls.len(), rpc::MOST_CALLS))
        }
        Ok(Value::Array(calls)) => {
            let answers = all(&front, calls).await;
            (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
        }
        Ok(call) => all(&front, vec![call]).await.pop(),
    };
    match answer {
        // Notifications alone.
        None => StatusCode::NO_CONTENT.into_response(),
        Some(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
    }
}

/// What becomes of a call before it is waited for.
enum Begun {
    Ready(Result<Value, Wrong>),
    Waits(Part, Instant, oneshot::Receiver<Answered>),
    Passed(tokio::task::JoinHandle<Result<String, Wrong>>),
}

/// Begins all calls, then waits for them: look-ups that come together leave together.
async fn all(front: &Arc<Front>, calls: Vec<Value>) -> Vec<String> {
    let mut begun = Vec::new();
    for call in calls {
        match rpc::read(call) {
            Err((id, wrong)) => begun.push((id, Begun::Ready(Err(wrong)))),
            // Nobody waits for the answer to a notification.
            Ok(Call { id: None, .. }) => {}
            Ok(Call { id: Some(id), method, params }) => {
                let begin = begin(front, &id, method, params);
                begun.push((id, begin));
            }
        }
    }
    let mut answers = Vec::with_capacity(begun.len());
    for (id, begun) in begun {
        let ended = || Wrong::new(rpc::FAILED, "the proxy ends");
        let outcome = match begun {
            Begun::Ready(outcome) => outcome,
            Begun::Waits(part, since, answer) => match front.servers.wait(answer, since).await {
                Ok(answer) => rpc::found(part, answer, &front.advice),
                Err(_) => Err(ended()),
            },
            Begun::Passed(reply) => match reply.await.unwrap_or_else(|_| Err(ended())) {
                Ok(reply) => {
                    answers.push(reply);
                    continue;
                }
                Err(wrong) => Err(wrong),
            },
        };
        answers.push(rpc::reply(&id, &outcome));
    }
    answers
}

fn begin(front: &Arc<Front>, id: &Value, method: String, params: Vec<Value>) -> Begun {
    let passes = |method: &str| front.fallback.as_ref().is_some_and(|other| other.allowed.contains(method));
    match rpc::plan(&method, &params, front.known.facts(), front.has_codes, &front.advice, passes) {
        Err(wrong) => Begun::Ready(Err(wrong)),
        Ok(Plan::Known(value)) => Begun::Ready(Ok(value)),
        Ok(Plan::LookUp { queries, part, block }) => {
            let (answer, waits) = oneshot::channel();
            let wants_code = part == Part::Code && front.has_codes;
            let since = Instant::now();
            match front.wants.try_send(Wanted { queries, wants_code, block, since, answer }) {
                Ok(()) => Begun::Waits(part, since, waits),
                Err(TrySendError::Full(_)) => {
                    Begun::Ready(Err(Wrong::new(rpc::FAILED, "too many look-ups wait already; come again")))
                }
                Err(TrySendError::Disconnected(_)) => {
                    Begun::Ready(Err(Wrong::new(rpc::FAILED, "the proxy ends")))
                }
            }
        }
        Ok(Plan::Pass) => {
            let (front, id) = (Arc::clone(front), id.clone());
            Begun::Passed(tokio::spawn(async move {
                match &front.fallback {
                    Some(fallback) => fallback.pass(&id, &method, &params).await,
                    None => Err(Wrong::new(rpc::FAILED, "there is no node")),
                }
            }))
        }
    }
}
