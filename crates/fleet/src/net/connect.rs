//! A connection that trusts one certificate, by its fingerprint, and no authority.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{ClientError, ConnectErrorKind, Event, ServerError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use sha2::{Digest as _, Sha256};

use super::home::{Home, Invitation};
use crate::error::{Error, Result};

/// Takes the one certificate with this SHA-256. Who holds its key is proved by the handshake's signature, as always.
#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; 32],
    provider: CryptoProvider,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if Sha256::digest(certificate).as_slice() == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Options of a connection to the server with this certificate.
fn options(fingerprint: &str, seed: &str, inbox: &str) -> Result<async_nats::ConnectOptions> {
    let mut bytes = [0; 32];
    const_hex::decode_to_slice(fingerprint, &mut bytes)
        .map_err(|_| Error::Usage("the fingerprint of the server's certificate is damaged".to_owned()))?;
    let provider = ring::default_provider();
    let tls = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Network(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { fingerprint: bytes, provider }))
        .with_no_client_auth();
    // After a second, then two, then four, up to a minute, and never all at once: workers that lost a server do not overrun it. Only
    // who was never connected need not wait.
    let has_begun = AtomicBool::new(false);
    let delay = move |attempts: usize| {
        if !has_begun.swap(true, Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let mut lot = [0; 2];
        let _ = warpsmith_entropy::fill(&mut lot);
        let base = (1000 << attempts.min(6)).min(60_000);
        Duration::from_millis(base / 4 + base * u64::from(u16::from_le_bytes(lot)) / 65536)
    };
    Ok(async_nats::ConnectOptions::with_nkey(seed.to_owned())
        .require_tls(true)
        .tls_client_config(tls)
        .custom_inbox_prefix(inbox)
        .ignore_discovered_servers()
        .reconnect_delay_callback(delay)
        .request_timeout(Some(Duration::from_secs(20)))
        .connection_timeout(Duration::from_secs(20)))
}

/// Says why there is no connection, and what can be done about it.
fn failed(server: &str) -> impl FnOnce(async_nats::ConnectError) -> Error {
    move |error| {
        use std::error::Error as _;
        let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        let is_refused = source.is_some_and(|why| why.kind() == std::io::ErrorKind::ConnectionRefused);
        Error::Network(match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => refused(server),
            _ if is_refused => format!(
                "the fleet's server at {server} cannot be reached: connection refused. Nothing listens there: start nats-server, or \
                 check the address"
            ),
            _ => format!(
                "the fleet's server at {server} cannot be reached: {error}; check that nats-server runs there, with this fleet's \
                 certificate, and that no firewall is in between"
            ),
        })
    }
}

fn refused(server: &str) -> String {
    format!(
        "the fleet's server at {server} does not accept this key: it was removed from the fleet, or the server has not read its \
         configuration since the invitation (nats-server --signal reload)"
    )
}

/// Connects as the coordinator.
pub async fn as_coordinator(home: &Home) -> Result<async_nats::Client> {
    let options = options(home.fingerprint(), &home.seed()?, "_INBOX_co")?.name("coordinator");
    options.connect(format!("tls://{}", home.server())).await.map_err(failed(home.server()))
}

/// Connects as an invited worker.
pub async fn as_worker(invitation: &Invitation) -> Result<async_nats::Client> {
    as_worker_watched(invitation, |_| {}).await
}

/// Connects as an invited worker. `report` is given a message when the connection is lost, restored, or refused for good.
pub async fn as_worker_watched(
    invitation: &Invitation,
    report: impl Fn(String) + Send + Sync + 'static,
) -> Result<async_nats::Client> {
    let Invitation { server, fingerprint, id, seed, .. } = invitation;
    let (link, at) = (Mutex::new(Link::Up), server.clone());
    let watch = move |event| {
        let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
        let now = link.after(&event);
        let was = std::mem::replace(&mut *link, now);
        if let Some(text) = now.message(was, &at) {
            report(text);
        }
        std::future::ready(())
    };
    let options = options(fingerprint, seed, &format!("_INBOX_{id}"))?.name(format!("worker {id}"));
    options.event_callback(watch).connect(format!("tls://{server}")).await.map_err(failed(server))
}

/// State of a connection that is kept up by reconnecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    Lost,
    /// Lost, and the server does not accept the key.
    Refused,
}

impl Link {
    fn after(self, event: &Event) -> Link {
        let violation = ConnectErrorKind::AuthorizationViolation.to_string();
        match event {
            Event::Connected => Link::Up,
            Event::ServerError(ServerError::AuthorizationViolation) => Link::Refused,
            Event::ClientError(ClientError::Other(why)) if *why == violation => Link::Refused,
            Event::Disconnected | Event::Closed if self == Link::Up => Link::Lost,
            _ => self,
        }
    }

    /// The message of a change; none where nothing changed.
    fn message(self, was: Link, server: &str) -> Option<String> {
        (self != was).then(|| match self {
            Link::Up => format!("the connection to the fleet's server at {server} is restored"),
            Link::Lost => format!(
                "the connection to the fleet's server at {server} is lost; reconnecting, and finished units are kept until then"
            ),
            Link::Refused => format!("{}; still trying", refused(server)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each change is reported once, whatever number of attempts it takes.
    #[test]
    fn a_lost_connection_is_reported_once() {
        let other = |why: &str| Event::ClientError(ClientError::Other(why.to_owned()));
        let events = [
            (Event::Connected, None),
            (Event::Disconnected, Some("is lost")),
            (other("IO error"), None),
            (other("IO error"), None),
            (Event::Connected, Some("is restored")),
            (Event::Disconnected, Some("is lost")),
            (other("authorization violation"), Some("removed from the fleet")),
            (other("authorization violation"), None),
            (Event::Connected, Some("is restored")),
            (Event::ServerError(ServerError::AuthorizationViolation), Some("removed from the fleet")),
            (Event::Disconnected, None),
        ];
        let mut link = Link::Up;
        for (at, (event, says)) in events.into_iter().enumerate() {
            let now = link.after(&event);
            let message = now.message(link, "203.0.113.7:4222");
            assert_eq!(message.is_some(), says.is_some(), "{at}: {message:?}");
            assert!(message.unwrap_or_default().contains(says.unwrap_or_default()), "{at}");
            link = now;
        }
    }
}
