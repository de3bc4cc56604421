//! A connection to a server: plain, or with TLS where the address begins with `https://`.
//!
//! Servers are believed by the certificates the system trusts; `SSL_CERT_FILE` names others, as for other programs.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time after which an attempt to connect is given up.
const CONNECTING: Duration = Duration::from_secs(30);

/// Bytes to and from a server.
pub(super) trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// Connects to a host and port. A server that is silent for longer than `silence` is given up.
pub(super) fn open(authority: &str, secure: bool, silence: Duration) -> io::Result<Box<dyn Connection>> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(stream) => {
                stream.set_read_timeout(Some(silence))?;
                stream.set_write_timeout(Some(silence))?;
                stream.set_nodelay(true)?;
                return if secure { tls::wrap(authority, stream) } else { Ok(Box::new(stream)) };
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(feature = "tls")]
mod tls {
    use std::sync::{Arc, OnceLock};

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    use super::{Connection, TcpStream, io};

    pub(super) fn wrap(authority: &str, stream: TcpStream) -> io::Result<Box<dyn Connection>> {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let connection = ClientConnection::new(config()?, name).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }

    /// What the system trusts, read once.
    fn config() -> io::Result<Arc<ClientConfig>> {
        static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        let config = CONFIG.get_or_init(|| {
            let found = rustls_native_certs::load_native_certs();
            let mut roots = RootCertStore::empty();
            let (usable, _) = roots.add_parsable_certificates(found.certs);
            if usable == 0 {
                let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
                let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
                return Err(format!(
                    "this system has no certificates to trust{why}; install ca-certificates, or name a file of them in \
                     SSL_CERT_FILE"
                ));
            }
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(provider);
            let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
            Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
        });
        config.clone().map_err(io::Error::other)
    }
}

#[cfg(not(feature = "tls"))]
mod tls {
    use super::{Connection, TcpStream, io};

    pub(super) fn wrap(_: &str, _: TcpStream) -> io::Result<Box<dyn Connection>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this build knows no TLS"))
    }
}
