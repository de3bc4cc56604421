//! One request and its answer: sent, read, and sent again where the network fails and that does no harm.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ureq::http::{HeaderValue, Request as HttpRequest, header};
use ureq::{Agent, SendBody};
use warpsmith_files::Token;
use zeroize::Zeroizing;

use super::text::shown;
use super::transport::{self, Response, is_hang_up};
use super::{HINTS, Remote, UPDATES};
use crate::error::{Error, Result};

/// Attempts at one request, within seven and a half seconds: a server that is started again is back by then, and who gave a wrong
/// address does not wait long.
pub(super) const ATTEMPTS: u32 = 5;
/// Time after the first attempt in which another may begin: a server that is silent or slow is not asked five times.
const RETRY_WINDOW: Duration = Duration::from_secs(10);
/// The same where somebody waits for the answer.
const FAST_RETRY_WINDOW: Duration = Duration::from_secs(2);
/// Time without a byte after which an attempt is given up: of most requests, and of one for hints, which take long to make.
const SILENCE: Duration = Duration::from_secs(60);
const SILENCE_OF_MAKERS: Duration = Duration::from_secs(3600);

/// A file of a database, by its tag, and the bytes of it that are wanted: so a stream goes on with the same one when the server
/// has folded it meanwhile.
#[derive(Clone)]
pub(super) struct Of<'a> {
    pub file: &'a str,
    pub range: Option<Range<u64>>,
}

/// When a request may be sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Whenever the network fails: the server does the same twice.
    Always,
    /// Only when nothing of it was sent.
    UnlessSent,
}

/// A request, and the longest answer to it that is taken.
#[derive(Clone)]
pub(super) struct Exchange<'a> {
    pub of: Option<Of<'a>>,
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a [u8],
    pub longest: u64,
    pub repeat: Repeat,
}

/// An answer that was read.
pub(super) struct Whole {
    pub bytes: Vec<u8>,
    pub epoch: Option<u64>,
    pub batch: Option<u64>,
    pub head: Option<String>,
    pub changes: Option<u64>,
}

impl Remote {
    /// Opens a pool of connections.
    fn connections(&self) -> std::result::Result<Agent, String> {
        transport::agent(self.secure, self.proxy.as_ref().map(|(proxy, _)| proxy), self.fails_fast)
    }

    /// Sends a request and reads the head of its answer. `sent` says afterwards whether any of its body was sent.
    pub(super) fn send(&self, exchange: &Exchange<'_>, sent: &mut bool) -> io::Result<Response> {
        let Exchange { of, method, path, body, longest, repeat } = exchange;
        let agent = match repeat {
            Repeat::Always => self.agent.get_or_init(|| self.connections()).clone(),
            // On a connection of its own: one that was kept may have been closed meanwhile, and what was sent on that cannot be
            // sent again.
            Repeat::UnlessSent => self.connections(),
        };
        let agent = &agent.map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
        let mut request = HttpRequest::builder().method(*method).uri(format!("{}{path}", self.url()));
        if let Some(Of { file, range }) = of {
            request = request.header(header::IF_MATCH, *file);
            if let Some(Range { start, end }) = range {
                request = request.header(header::RANGE, format!("bytes={start}-{}", end - 1));
            }
        }
        if path.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(token) = self.token.as_ref().filter(|_| *path == HINTS) {
            request = request.header(header::AUTHORIZATION, bearer(token)?);
        }
        let silence = if *path == HINTS { SILENCE_OF_MAKERS } else { SILENCE };
        if *method == "GET" {
            return transport::send(agent, request.body(()).map_err(io::Error::other)?, silence, *longest);
        }
        let mut reader = Watched { bytes: body, is_read: sent };
        let request = request.header(header::CONTENT_LENGTH, body.len());
        let request = request.body(SendBody::from_reader(&mut reader)).map_err(io::Error::other)?;
        transport::send(agent, request, silence, *longest)
    }

    /// A request whose whole answer is read; repeated where the network fails or the server is busy.
    pub(super) fn ask(&self, method: &str, path: &str, body: &[u8], longest: u64) -> Result<Whole> {
        self.ask_of(None, method, path, body, longest)
    }

    /// The same, of one file of the database.
    pub(super) fn ask_of(
        &self,
        of: Option<Of<'_>>,
        method: &str,
        path: &str,
        body: &[u8],
        longest: u64,
    ) -> Result<Whole> {
        let exchange = Exchange { of, method, path, body, longest, repeat: Repeat::Always };
        self.exchange(&exchange, &mut |response| {
            let mut bytes = Vec::new();
            response.body.read_to_end(&mut bytes)?;
            let Response { epoch, batch, head, changes, .. } = response;
            Ok(Whole { bytes, epoch: *epoch, batch: *batch, head: head.clone(), changes: *changes })
        })
    }

    /// Sends a request, again where that is allowed and the network fails or the server is busy, and has `read` read the answer.
    pub(super) fn exchange<T>(
        &self,
        exchange: &Exchange<'_>,
        read: &mut dyn FnMut(&mut Response) -> io::Result<T>,
    ) -> Result<T> {
        let Exchange { method, path, repeat, .. } = exchange;
        let what = format!("{method} {path}");
        let what = what.trim_end();
        let window = if self.fails_fast { FAST_RETRY_WINDOW } else { RETRY_WINDOW };
        let (mut last, mut hung_up, begin) = (String::new(), false, Instant::now());
        self.contact.asked();
        for attempt in 0..ATTEMPTS {
            // A connection that was kept may have been closed meanwhile: the first time another is opened at once.
            if attempt > 1 || attempt == 1 && !hung_up {
                let pause = Duration::from_millis(250 << attempt);
                if begin.elapsed() + pause > window {
                    break;
                }
                std::thread::sleep(pause);
            }
            let mut sent = false;
            let result = self.send(exchange, &mut sent).and_then(|mut response| match response.status {
                200 => read(&mut response).map(Ok),
                _ => Ok(Err((response.status, message(response.body), response.location))),
            });
            let (status, said, location) = match result {
                Ok(Ok(answer)) => {
                    self.contact.answered();
                    return Ok(answer);
                }
                Ok(Err(refusal)) => refusal,
                // Another attempt would bring the same.
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Err(self.lost(format!("{what}: {error}")));
                }
                Err(error) if sent && *repeat == Repeat::UnlessSent => {
                    return Err(self.lost(format!(
                        "{what}: {error}; the call may have arrived, so it is not sent again: look whether it was done"
                    )));
                }
                Err(error) => {
                    hung_up = is_hang_up(&error);
                    last = format!("{what}: {error}");
                    self.contact.failed(&shown(&last));
                    continue;
                }
            };
            let text = String::from_utf8_lossy(&said);
            // What a gateway gave up waiting for may have been done: hints, which take long to make, or a call.
            let may_be_done = status == 504 && *path == HINTS || is_gateway(status) && path.is_empty();
            let reason = match location {
                _ if is_busy(status) && !may_be_done && *repeat == Repeat::Always => {
                    last = busy(status, &said);
                    self.contact.failed(&shown(&last));
                    continue;
                }
                Some(place) if (300..400).contains(&status) => format!(
                    "{what}: {status}, which leads to {place}; that is not followed, so give the address itself"
                ),
                _ => format!("{what}: {status} {}", text.trim()),
            };
            self.contact.answered();
            // An epoch too long for the server to send is as good as gone.
            let is_gone = status == 409 || status == 413 && path.starts_with(UPDATES);
            return Err(if is_gone { Error::Mismatch(shown(&reason)) } else { self.failed(reason) });
        }
        Err(self.lost(last))
    }

    /// An error of a request without an answer.
    fn lost(&self, reason: String) -> Error {
        self.contact.failed(&shown(&reason));
        self.failed(reason)
    }
}

/// The body of a request, which notes whether any of it was read to be sent.
struct Watched<'a> {
    bytes: &'a [u8],
    is_read: &'a mut bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        *self.is_read = true;
        self.bytes.read(buffer)
    }
}

/// A token as it travels, of which nothing is left in memory afterwards.
fn bearer(token: &Token) -> io::Result<HeaderValue> {
    let mut value = Zeroizing::new(Vec::with_capacity(7 + token.expose().len()));
    value.extend_from_slice(b"Bearer ");
    value.extend_from_slice(token.expose().as_bytes());
    let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(value)).map_err(io::Error::other)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What came with an answer that is no success: only for the message, and what does not come is not missed.
pub(super) fn message(body: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = body.take(2000).read_to_end(&mut bytes);
    bytes
}

/// Whether to ask again later: too many requests, or a gateway before a server that is just being started.
pub(super) fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 503) || is_gateway(status)
}

/// Whether it is a gateway that got no answer.
fn is_gateway(status: u16) -> bool {
    matches!(status, 502 | 504)
}

/// Why to ask again later.
pub(super) fn busy(status: u16, message: &[u8]) -> String {
    format!("it is busy ({status}): {}", String::from_utf8_lossy(message).trim())
}
