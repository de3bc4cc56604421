//! The page of `fleet watch --listen`: one file, and what it asks for. Read-only, and only for this machine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Html;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use warpsmith_console::exit::Failure;
use warpsmith_console::web;

const PAGE: &str = include_str!("page.html");

/// What the page is told, as JSON.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<String>>);

impl Told {
    pub fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Shows the page at this address, which must be this machine's own.
pub(super) fn show(address: &str, told: &Told) -> Result<SocketAddr, Failure> {
    let (listener, address) = web::listen("--listen", address)?;
    if !address.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "--listen {address}: the page asks nobody for a password, so it is shown to this machine alone: give 127.0.0.1:8080, \
             and from elsewhere `ssh -L 8080:127.0.0.1:8080` to this machine"
        )));
    }
    let (told, policy) = (told.clone(), policy());
    let page = move || async move { ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE)) };
    let status = move || async move { ([(header::CONTENT_TYPE, "application/json")], told.get()) };
    let router = Router::new().route("/", get(page)).route("/status.json", get(status));
    web::serve_monitoring(listener, router)?;
    Ok(address)
}

/// The style and the script of the page, by their hashes, and nothing else from anywhere.
fn policy() -> HeaderValue {
    let hash = |name: &str| {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let text = PAGE.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
        STANDARD.encode(Sha256::digest(text.map_or("", |(text, _)| text)))
    };
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash("style"),
        hash("script")
    );
    HeaderValue::from_str(&policy).expect("plain letters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        assert!(!PAGE.contains("http:") && !PAGE.contains("https:") && !PAGE.contains("//"));
        assert!(!PAGE.contains("innerHTML") && !PAGE.contains("eval("));
        assert_eq!((PAGE.matches("<script>").count(), PAGE.matches("<style>").count()), (1, 1));
        assert!(!PAGE.contains(" style=") && !PAGE.contains(" onclick="), "the policy would not have it");
    }
}
