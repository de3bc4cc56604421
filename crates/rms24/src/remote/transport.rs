//! Requests to a server over connections that stay open from one to the next: plain, with TLS where the address begins with
//! `https://`, and through a SOCKS proxy where one is given.
//!
//! What a server sends back is read without trust: no more than was asked for, and not for ever. Servers are believed by the
//! certificates the system trusts; `SSL_CERT_FILE` names others, as for other programs. Proxies that the environment names are
//! not used: who passes on what is asked is said in the command itself.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, Request, header};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};
use ureq::{Agent, AsSendBody, Body, BodyReader, Proxy, Timeout};
use zeroize::Zeroize;

/// The most connections, which are kept from one request to the next. It is the same on every machine, as a server sees how many there are.
pub(super) const CONNECTIONS: usize = 8;
/// Timeout of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The same where somebody waits for the answer and nothing stands between.
const FAST_CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// Time without a request after which a connection is not used again: our servers close it after a minute.
const IDLE: Duration = Duration::from_secs(45);
/// The most of an answer's head.
const HEAD_BYTES: usize = 1 << 16;
/// Minimum rate of a response in bytes a second, from its first byte on: a server that drips bytes is given up.
const MIN_RATE: u64 = 16 << 10;
/// Time that a response of any length may take beyond what its bytes take at the minimum rate.
const RATE_GRACE: Duration = Duration::from_secs(10);

/// Keeps connections to a server. It says nothing of this program, nor of what it could read.
pub(super) fn agent(secure: bool, proxy: Option<&Proxy>, fails_fast: bool) -> Result<Agent, String> {
    // Through a proxy such as Tor's, connecting takes many seconds.
    let connect_timeout = if fails_fast && proxy.is_none() { FAST_CONNECT_TIMEOUT } else { CONNECT_TIMEOUT };
    agent_with(secure, proxy, connect_timeout, RATE_GRACE)
}

fn agent_with(
    secure: bool,
    proxy: Option<&Proxy>,
    connect_timeout: Duration,
    grace: Duration,
) -> Result<Agent, String> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(HEAD_BYTES)
        .user_agent("")
        .accept("")
        .accept_encoding("")
        .timeout_connect(Some(connect_timeout))
        .max_idle_age(IDLE)
        .max_idle_connections_per_host(CONNECTIONS)
        .proxy(proxy.cloned());
    #[cfg(feature = "tls")]
    let config = if secure { config.tls_config(tls::config()?) } else { config };
    #[cfg(not(feature = "tls"))]
    if secure {
        return Err("this build knows no TLS".to_owned());
    }
    let connector = DefaultConnector::new().chain(Guard { grace });
    Ok(Agent::with_parts(config.build(), connector, DefaultResolver::default()))
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub(super) struct Response {
    pub status: u16,
    pub epoch: Option<u64>,
    pub batch: Option<u64>,
    pub head: Option<String>,
    pub changes: Option<u64>,
    pub location: Option<String>,
    pub body: Bounded,
}

/// Sends a request and reads the head of its answer. Whichever side is silent for `silence` is given up, and so is a response that
/// comes slower than [`MIN_RATE`]. A body that is announced to be longer is an error at once, one that proves
/// longer when it is. An error is `InvalidData` where another attempt would bring the same.
pub(super) fn send(
    agent: &Agent,
    request: Request<impl AsSendBody>,
    silence: Duration,
    longest: u64,
) -> io::Result<Response> {
    let request = agent
        .configure_request(request)
        .timeout_per_read(Some(silence))
        .timeout_per_write(Some(silence))
        .timeout_recv_response(Some(silence))
        .timeout_recv_body(Some(silence.saturating_add(Duration::from_secs(longest / MIN_RATE))))
        .build();
    let (head, body) = agent.run(request).map_err(failure)?.into_parts();
    let text = |name: &str| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let number = |name: &str| text(name).and_then(|value| value.trim().parse::<u64>().ok());
    let is_success = matches!(head.status.as_u16(), 200 | 206);
    let length = number("content-length");
    match (length.is_some(), is_chunked(&head.headers)) {
        // Its end could not be told from a connection that broke.
        (false, false) if is_success => return Err(invalid("no length came back")),
        // Who stands between may take the other of them for true.
        (true, true) => return Err(invalid("a length came back, and chunks too")),
        _ => {}
    }
    if let Some(length) = length.filter(|length| is_success && *length > longest) {
        return Err(invalid(format!("an answer of {length} bytes, where at most {longest} were asked for")));
    }
    // What a server says in a refusal is short, and nobody needs it whole.
    let left = if is_success { longest } else { HEAD_BYTES as u64 };
    Ok(Response {
        status: head.status.as_u16(),
        epoch: number("warpsmith-epoch"),
        batch: number("warpsmith-batch"),
        changes: number("warpsmith-changes"),
        head: text("warpsmith-head").map(|head| head.into_owned()),
        location: text("location").map(|place| place.into_owned()),
        body: Bounded::new(body, left),
    })
}

fn is_chunked(headers: &HeaderMap) -> bool {
    headers
        .get(header::TRANSFER_ENCODING)
        .is_some_and(|kind| kind.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// Whether a connection ended that the server may have closed before the request came: then another is tried at once.
pub(super) fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// What went wrong, in words.
fn failure(error: ureq::Error) -> io::Error {
    use io::ErrorKind::{NotFound, TimedOut, UnexpectedEof};
    use ureq::Error as E;
    let (kind, text) = match error {
        E::Io(error) if error.kind() == UnexpectedEof => (UnexpectedEof, "the connection ended too early"),
        // In the middle of a chunk's size.
        E::BodyStalled => (UnexpectedEof, "the connection ended too early"),
        E::Io(error) => return error,
        E::Timeout(Timeout::Connect) => (TimedOut, "no connection came about in time"),
        E::Timeout(Timeout::RecvBody) => {
            (TimedOut, "the answer comes too slowly, at less than 16 KiB a second")
        }
        E::Timeout(_) => (TimedOut, "the other side was silent for too long"),
        E::HostNotFound => (NotFound, "the host has no address"),
        E::LargeResponseHeader(..) => return invalid(large_head()),
        E::Protocol(error) if error.to_string().contains("too many headers") => return invalid(large_head()),
        E::Protocol(error) => return invalid(format!("no HTTP came back ({error})")),
        error => return error.into_io(),
    };
    io::Error::new(kind, text)
}

fn large_head() -> String {
    format!("a head of more than {HEAD_BYTES} bytes or 128 lines came back")
}

/// A body of no more than so many bytes; a longer one is an error, and so is one that ends too early.
pub(super) struct Bounded {
    reader: BodyReader<'static>,
    left: u64,
}

impl Bounded {
    fn new(body: Body, left: u64) -> Bounded {
        Bounded { reader: body.into_reader(), left }
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer).map_err(|error| failure(error.into()))?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| invalid("the answer is longer than what was asked for"))?;
        Ok(read)
    }
}

impl std::fmt::Debug for Bounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bounded").field("left", &self.left).finish_non_exhaustive()
    }
}

/// Wraps every connection in [`Guarded`].
#[derive(Debug)]
struct Guard {
    grace: Duration,
}

impl Connector<Box<dyn Transport>> for Guard {
    type Out = Guarded;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<Box<dyn Transport>>,
    ) -> Result<Option<Guarded>, ureq::Error> {
        Ok(chained.map(|transport| Guarded { transport, pace: Pace::new(self.grace) }))
    }
}

/// A connection whose responses keep the minimum rate, and whose buffers keep nothing of a request: one for hints has a key in
/// it, and a token.
#[derive(Debug)]
struct Guarded {
    transport: Box<dyn Transport>,
    pace: Pace,
}

impl Transport for Guarded {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.pace = Pace::new(self.pace.grace);
        let sent = self.transport.transmit_output(amount, timeout);
        self.transport.buffers().output()[..amount].zeroize();
        sent
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, ureq::Error> {
        if let Some(left) = self.pace.left() {
            if left.is_zero() {
                return Err(ureq::Error::Timeout(Timeout::RecvBody));
            }
            if left < *timeout.after {
                (timeout.after, timeout.reason) = (left.into(), Timeout::RecvBody);
            }
        }
        let (before, begin) = (self.transport.buffers().input().len(), Instant::now());
        let outcome = self.transport.await_input(timeout);
        let received = self.transport.buffers().input().len().saturating_sub(before);
        self.pace.add(received as u64, begin.elapsed());
        outcome
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

/// The rate of a response: its bytes, head included, and the time waited for them since the first. Time that the reader takes
/// to use them does not count.
#[derive(Debug)]
struct Pace {
    grace: Duration,
    received: u64,
    waited: Duration,
}

impl Pace {
    fn new(grace: Duration) -> Pace {
        Pace { grace, received: 0, waited: Duration::ZERO }
    }

    /// Time left for the next byte; none before the first, for which a server may have to work.
    fn left(&self) -> Option<Duration> {
        let allowed = self.grace + Duration::from_secs_f64(self.received as f64 / MIN_RATE as f64);
        (self.received > 0).then(|| allowed.saturating_sub(self.waited))
    }

    fn add(&mut self, received: u64, waited: Duration) {
        if self.received > 0 {
            self.waited += waited;
        }
        self.received += received;
    }
}

#[cfg(feature = "tls")]
mod tls {
    use std::sync::{Arc, OnceLock};

    use rustls::RootCertStore;
    use ureq::tls::{Certificate, RootCerts, TlsConfig};

    /// What the system trusts, read once.
    pub(super) fn config() -> Result<TlsConfig, String> {
        static CONFIG: OnceLock<Result<TlsConfig, String>> = OnceLock::new();
        CONFIG.get_or_init(read).clone()
    }

    fn read() -> Result<TlsConfig, String> {
        let found = rustls_native_certs::load_native_certs();
        let certificates: Vec<_> =
            found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        let (usable, _) = RootCertStore::empty().add_parsable_certificates(found.certs);
        if usable == 0 {
            let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
            let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
            return Err(format!(
                "this system has no certificates to trust{why}; install ca-certificates, or name a file of them in \
                 SSL_CERT_FILE"
            ));
        }
        Ok(TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&certificates))
            .build())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// What is made of the answer that a server gives, in pieces with a pause between them.
    fn read(
        pieces: impl IntoIterator<Item = impl AsRef<[u8]>> + Send + 'static,
        silence: Duration,
        longest: u64,
    ) -> io::Result<(u16, Vec<u8>)> {
        read_with(RATE_GRACE, pieces, silence, longest)
    }

    fn read_with(
        grace: Duration,
        pieces: impl IntoIterator<Item = impl AsRef<[u8]>> + Send + 'static,
        silence: Duration,
        longest: u64,
    ) -> io::Result<(u16, Vec<u8>)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            for piece in pieces {
                if stream.write_all(piece.as_ref()).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let agent = agent_with(false, None, CONNECT_TIMEOUT, grace).unwrap();
        let mut response = send(&agent, Request::get(url).body(()).unwrap(), silence, longest)?;
        let mut bytes = Vec::new();
        response.body.read_to_end(&mut bytes).map(|_| (response.status, bytes))
    }

    const PATIENT: Duration = Duration::from_secs(60);

    #[test]
    fn no_more_than_was_asked_for() {
        let fixed = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more";
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        for text in [fixed, chunked] {
            assert_eq!(read([text], PATIENT, 5).unwrap(), (200, b"hello".to_vec()));
            assert_eq!(read([text], PATIENT, 4).unwrap_err().kind(), io::ErrorKind::InvalidData, "{text}");
            // Cut short anywhere, it is no answer.
            for length in [text.find("\r\n\r\n").unwrap() + 2, text.find("\r\n\r\n").unwrap() + 6, 17] {
                let cut = read([&text[..length]], PATIENT, 5).unwrap_err();
                assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof, "{length} of {text}: {cut}");
                assert!(is_hang_up(&cut));
            }
        }
        assert!(is_hang_up(&read([""], PATIENT, 5).unwrap_err()));
        for text in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 xyz OK\r\n\r\n",
            "SSH-2.0-x 200\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n",
        ] {
            let error = read([text], PATIENT, 5).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}: {error}");
        }
    }

    #[test]
    fn endless_heads_and_slow_bodies_end() {
        for line in ["X-Flood: more and more\r\n", "no end of line", "\n"] {
            let pieces = ["HTTP/1.1 200 OK\r\n"].into_iter().chain(std::iter::repeat_n(line, 1 << 14));
            let pieces: Vec<u8> = pieces.flat_map(str::bytes).collect();
            let error = read([pieces], PATIENT, 5).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{line}: {error}");
        }
        // A byte now and then, which would take a day; and nothing at all.
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n";
        let slow = [head].into_iter().chain(std::iter::repeat_n("x", 3999));
        let late = read(slow, Duration::from_millis(200), 4000).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut, "{late}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let request = Request::get(url).body(()).unwrap();
        let late =
            send(&agent(false, None, false).unwrap(), request, Duration::from_millis(50), 5).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut, "{late}");
    }

    /// However long the answer may be, and wherever in it the bytes are dripped: head, body, or the size of a chunk.
    #[test]
    fn a_server_that_drips_bytes_is_given_up() {
        let fixed = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;";
        for head in ["HTTP/1.1 200 OK\r\nX: ", fixed, chunked] {
            let drips = [head].into_iter().chain(std::iter::repeat_n("x", 20_000));
            let begin = Instant::now();
            let late = read_with(Duration::from_millis(200), drips, PATIENT, 1 << 30).unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut, "{head}: {late}");
            assert!(late.to_string().contains("too slowly") && begin.elapsed() < PATIENT, "{head}: {late}");
        }
        // A server that works for long before its first byte is not slow, nor is one whose client is.
        let mut pace = Pace::new(Duration::from_secs(10));
        pace.add(0, Duration::from_secs(3000));
        assert_eq!(pace.left(), None);
        pace.add(MIN_RATE, Duration::from_secs(3000));
        assert_eq!(pace.left(), Some(Duration::from_secs(11)));
        pace.add(1, Duration::from_secs(12));
        assert_eq!(pace.left(), Some(Duration::ZERO));
        pace.add(10 * MIN_RATE, Duration::ZERO);
        assert!(pace.left().unwrap() > Duration::from_secs(8));
    }
}
