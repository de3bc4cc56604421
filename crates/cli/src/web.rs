//! A listener for those who watch (metrics, and the page of a fleet) and for wallets of this machine. On a thread of its own, which ends with the program.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use crate::ending::Failure;

/// How long a request may take: what is told lies in memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is said in JSON by whoever listens: where, and what it is besides.
#[derive(Serialize)]
pub(crate) struct ListeningLine<T: Serialize> {
    event: &'static str,
    address: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    #[serde(flatten)]
    more: T,
}

impl<T: Serialize> ListeningLine<T> {
    pub fn new(address: SocketAddr, metrics: Option<SocketAddr>, more: T) -> Self {
        let (metrics, url) = (metrics.map(|metrics| metrics.to_string()), format!("http://{address}"));
        ListeningLine { event: "listening", address: address.to_string(), url, metrics, more }
    }
}

/// A listener, and where it is.
pub(crate) fn listen(flag: &str, address: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| {
        Failure::Other(format!(
            "{flag} {address} is not possible: {error}; give an address of this machine and a free port, such as \
             127.0.0.1:8080"
        ))
    })
}

/// Answers those who ask there, until the program ends.
pub(crate) fn answer(listener: TcpListener, router: Router) -> Result<(), Failure> {
    answer_within(PATIENCE, listener, router)
}

/// The same where an answer may take longer.
pub(crate) fn answer_within(
    patience: Duration,
    listener: TcpListener,
    router: Router,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Other(format!("nobody can be answered: {error}"));
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let router = router.layer(from_fn(move |request, next| guard(patience, request, next)));
    let serve = move || {
        runtime.block_on(async {
            // The program ends with its own exit code, whatever becomes of those who watch.
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                let _ = axum::serve(listener, router).await;
            }
        });
    };
    std::thread::Builder::new().name("watchers".to_owned()).spawn(serve).map(drop).map_err(failed)
}

/// What goes for every request: it names the machine by its number, so that no web page elsewhere can ask under a name of its own
/// (DNS rebinding); and what is answered is shown, kept and embedded nowhere else.
async fn guard(patience: Duration, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_plain) {
        let why = "ask by the address or by localhost, not by another name\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let answered = tokio::time::timeout(patience, next.run(request)).await;
    let mut response = answered.unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response());
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Whether a host is an address, or this machine, and no name that somebody else decides about.
pub(crate) fn is_plain(host: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    host.parse::<SocketAddr>().is_ok()
        || host.parse::<std::net::IpAddr>().is_ok()
        || host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
        || host == "localhost"
        || host.strip_prefix("localhost:").is_some_and(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_hosts() {
        for host in
            ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "[::1]", "10.0.0.7:1", "localhost", "localhost:80"]
        {
            assert!(is_plain(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "127.0.0.1.example.org:80", "localhost:x", "a@b"]
        {
            assert!(!is_plain(host), "{host}");
        }
    }
}
