//! HTTP listeners of commands, for metrics, status pages and proxies on this machine. Each runs on a thread of its own, which ends with
//! the program. Connection limits and timeouts are those of `warpsmith_http`.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use warpsmith_http::{ConnectionCounts, ConnectionLimits, serve};

use crate::exit::Failure;

/// Timeout of responses whose data is in memory.
const MONITORING_TIMEOUT: Duration = Duration::from_secs(10);

/// JSON document that says where a command listens, with further fields.
#[derive(Serialize)]
pub struct ListeningLine<T: Serialize> {
    event: &'static str,
    address: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    #[serde(flatten)]
    more: T,
}

impl<T: Serialize> ListeningLine<T> {
    /// Creates the document for this address, and that of metrics if there is one.
    pub fn new(address: SocketAddr, metrics: Option<SocketAddr>, more: T) -> Self {
        let (metrics, url) = (metrics.map(|metrics| metrics.to_string()), format!("http://{address}"));
        ListeningLine { event: "listening", address: address.to_string(), url, metrics, more }
    }
}

/// Opens a listener and returns its address. Text that is no address is wrong usage; an address that cannot be bound is not.
pub fn listen(flag: &str, address: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let addresses: Vec<SocketAddr> =
        address.to_socket_addrs().map_err(|error| not_an_address(flag, address, &error))?.collect();
    let bound = TcpListener::bind(&addresses[..]).and_then(|listener| {
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

fn not_an_address(flag: &str, address: &str, error: &std::io::Error) -> Failure {
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let reason = match has_port {
        true => format!("there is no host of that name ({error}); give an address of this machine"),
        false => "expected an address and a port from 0 to 65535, separated by a colon".to_owned(),
    };
    let port = if address.parse::<u16>().is_ok() { address } else { "8080" };
    Failure::Usage(format!("invalid {flag} '{address}': {reason}, such as 127.0.0.1:{port}"))
}

/// Serves metrics and status pages at a listener on a thread of its own, until the program ends.
pub fn serve_monitoring(listener: TcpListener, router: Router) -> Result<(), Failure> {
    serve_in_background(listener, router, ConnectionLimits::MONITORING, MONITORING_TIMEOUT)
}

/// Serves requests at a listener on a thread of its own, each within a timeout, until the program ends.
pub fn serve_in_background(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    timeout: Duration,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Other(format!("the listener cannot be started: {error}"));
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let router = router.layer(from_fn(move |request, next| guard(timeout, request, next)));
    let (limits, _) = ConnectionLimits { http2: false, ..limits }.within_open_files();
    let run = move || {
        runtime.block_on(async {
            // The program ends with its own exit code, whatever becomes of the listener.
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                let for_ever = std::future::pending::<()>();
                serve(listener, router, limits, ConnectionCounts::default(), for_ever).await;
            }
        });
    };
    std::thread::Builder::new().name("listener".to_owned()).spawn(run).map(drop).map_err(failed)
}

/// Refuses requests whose host is a name, so that no web page elsewhere can reach the listener under a name of its own (DNS
/// rebinding); and adds headers that forbid caching and embedding.
async fn guard(timeout: Duration, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_address_or_localhost) {
        let why = "ask by the address or by localhost, not by another name\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let answered = tokio::time::timeout(timeout, next.run(request)).await;
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

/// Returns whether a host is an address or localhost, and no name that others control.
pub fn is_address_or_localhost(host: &str) -> bool {
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

    /// Text that is no address is wrong usage (2); an address that this machine has not is another failure (4).
    #[test]
    fn what_is_no_address_is_wrong_usage() {
        for (text, says) in [
            ("18090", "such as 127.0.0.1:18090"),
            ("127.0.0.1", "a port from 0 to 65535"),
            ("127.0.0.1:99999", "a port from 0 to 65535"),
            ("127.0.0.1:x", "a port from 0 to 65535"),
            ("", "a port from 0 to 65535"),
        ] {
            match listen("--listen", text) {
                Err(Failure::Usage(why)) => {
                    assert!(why.contains(says) && why.contains(text), "{text}: {why}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let (_taken, address) = listen("--listen", "127.0.0.1:0").expect("a free port");
        for text in ["203.0.113.7:80", &address.to_string()] {
            assert!(matches!(listen("--listen", text), Err(Failure::Other(_))), "{text}");
        }
    }

    #[test]
    fn only_addresses_and_localhost_are_hosts() {
        for host in
            ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "[::1]", "10.0.0.7:1", "localhost", "localhost:80"]
        {
            assert!(is_address_or_localhost(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "127.0.0.1.example.org:80", "localhost:x", "a@b"]
        {
            assert!(!is_address_or_localhost(host), "{host}");
        }
    }
}
