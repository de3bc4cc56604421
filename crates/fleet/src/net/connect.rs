//! A connection that trusts one certificate, by its fingerprint, and no authority.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

fn failed(server: &str) -> impl FnOnce(async_nats::ConnectError) -> Error {
    move |error| {
        Error::Network(format!(
            "the fleet's server at {server} cannot be reached: {error}; is nats-server running there, and does its \
             configuration know this key?"
        ))
    }
}

/// As the coordinator.
pub async fn as_coordinator(home: &Home) -> Result<async_nats::Client> {
    let options = options(home.fingerprint(), &home.seed()?, "_INBOX_co")?.name("coordinator");
    options.connect(format!("tls://{}", home.server())).await.map_err(failed(home.server()))
}

/// As an invited worker.
pub async fn as_worker(invitation: &Invitation) -> Result<async_nats::Client> {
    let Invitation { server, fingerprint, id, seed, .. } = invitation;
    let options = options(fingerprint, seed, &format!("_INBOX_{id}"))?.name(format!("worker {id}"));
    options.connect(format!("tls://{server}")).await.map_err(failed(server))
}
