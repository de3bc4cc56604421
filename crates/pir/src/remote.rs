//! A server as its clients see it, over HTTP/1.1, plain or with TLS: one connection a request.
//!
//! What comes is checked: blocks against the digests, digests against the identity, all lengths against limits. A download
//! that breaks off goes on where it was; a query is repeated byte for byte.

mod connection;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Take, Write};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::client::{Asked, Client, Fetched};
use crate::database::{Description, HEAD_BYTES, SEGMENT_BYTES};
use crate::error::{Error, Result};
use crate::maker::Request;
use crate::params::Params;
use crate::wire::{Update, read_updates};

/// Attempts at one request.
const ATTEMPTS: u32 = 4;
/// Time without a byte after which an attempt is given up: of most requests, and of one for hints, which take long to make.
const SILENCE: Duration = Duration::from_secs(60);
const SILENCE_OF_MAKERS: Duration = Duration::from_secs(3600);
/// Where hints are asked for.
const HINTS: &str = "/v1/hints";
/// The longest answer that is not blocks or hints.
const LONGEST: u64 = 1 << 30;

/// A server.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Host and port.
    authority: String,
    /// Whether TLS is used.
    secure: bool,
    /// What comes before `/v1`.
    prefix: String,
}

/// What a server has, and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The database's file.
    pub description: Description,
    /// The newest epoch.
    pub epoch: u64,
    /// The most queries of one request; 0 where it does not answer queries.
    pub batch: usize,
}

/// An answer whose body has not been read yet.
struct Response {
    status: u16,
    epoch: Option<u64>,
    batch: Option<usize>,
    body: Box<dyn Read>,
}

/// An answer that was read.
struct Whole {
    bytes: Vec<u8>,
    epoch: Option<u64>,
    batch: Option<usize>,
}

impl Remote {
    /// A server by its address: `http://HOST[:PORT][/PATH]`, or `https://`.
    ///
    /// # Errors
    ///
    /// When it is not of that form.
    pub fn new(url: &str) -> Result<Remote> {
        let wrong = |reason: &str| Error::Remote { server: url.to_owned(), reason: reason.to_owned() };
        let (secure, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(wrong("an address begins with http:// or https://")),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // Nothing of it may end a line of the request.
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
            return Err(wrong("there is no host in it"));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if secure { 443 } else { 80 };
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        let prefix = path.trim_end_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        Ok(Remote { authority, secure, prefix })
    }

    fn failed(&self, reason: impl Into<String>) -> Error {
        let scheme = if self.secure { "https" } else { "http" };
        let server = format!("{scheme}://{}{}", self.authority, self.prefix);
        Error::Remote { server, reason: reason.into() }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> std::io::Result<Response> {
        let silence = if path == HINTS { SILENCE_OF_MAKERS } else { SILENCE };
        let mut stream = connection::open(&self.authority, self.secure, silence)?;
        let (host, prefix, length) = (&self.authority, &self.prefix, body.len());
        let mut request = format!(
            "{method} {prefix}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        )
        .into_bytes();
        request.extend_from_slice(body);
        stream.write_all(&request)?;
        stream.flush()?;
        let mut reader = BufReader::with_capacity(1 << 18, stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if head.len() > 1 << 16 || reader.by_ref().take(1 << 16).read_line(&mut head)? == 0 {
                return Err(invalid("no HTTP came back"));
            }
        }
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| invalid("no status came back"))?;
        let header = |name: &str| {
            head.lines().find_map(|line| {
                line.split_once(':')
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.trim())
            })
        };
        let body: Box<dyn Read> =
            if header("transfer-encoding").is_some_and(|kind| kind.eq_ignore_ascii_case("chunked")) {
                Box::new(Chunked { reader, left: 0, done: false })
            } else {
                let length = header("content-length").and_then(|length| length.parse().ok());
                Box::new(Exact { reader: reader.take(length.ok_or_else(|| invalid("no length came back"))?) })
            };
        let number = |name| header(name).and_then(|value| value.parse::<u64>().ok());
        let batch = number("warpsmith-batch").and_then(|batch| usize::try_from(batch).ok());
        Ok(Response { status, epoch: number("warpsmith-epoch"), batch, body })
    }

    /// A request whose whole answer is read; repeated where the network fails or the server is busy.
    fn ask(&self, method: &str, path: &str, body: &[u8], longest: u64) -> Result<Whole> {
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(250 << attempt));
            }
            let result = self.send(method, path, "", body).and_then(|response| {
                let mut bytes = Vec::new();
                let Response { status, epoch, batch, body } = response;
                body.take(longest + 1).read_to_end(&mut bytes)?;
                Ok((status, bytes, epoch, batch))
            });
            match result {
                Ok((200, bytes, epoch, batch)) if bytes.len() as u64 <= longest => {
                    return Ok(Whole { bytes, epoch, batch });
                }
                Ok((200, ..)) => return Err(self.failed(format!("the answer to {path} is too long"))),
                Ok((status @ (429 | 503), ..)) => last = format!("it is busy ({status})"),
                Ok((status, bytes, ..)) => {
                    let text: String =
                        String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).trim().to_owned();
                    let reason = format!("{method} {path}: {status} {text}");
                    return Err(if status == 409 { Error::Mismatch(reason) } else { self.failed(reason) });
                }
                Err(error) => last = format!("{method} {path}: {error}"),
            }
        }
        Err(self.failed(last))
    }

    /// What the server has.
    ///
    /// # Errors
    ///
    /// When it cannot be reached or says something else.
    pub fn offer(&self) -> Result<Offer> {
        let Whole { bytes, epoch, batch } = self.ask("GET", "/v1/info", b"", HEAD_BYTES as u64)?;
        let description = Description::read(&self.authority, &bytes)?;
        Ok(Offer { epoch: epoch.unwrap_or(description.epoch), batch: batch.unwrap_or(0), description })
    }

    /// Streams all entries of the database's file to `push`, each segment once its digest is found right.
    ///
    /// # Errors
    ///
    /// When the server sends something else than it described, or the network fails for good.
    pub fn entries(
        &self,
        description: &Description,
        push: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let digests = self.ask("GET", "/v1/digests", b"", 32 * description.segments())?.bytes;
        if digests.len() as u64 != 32 * description.segments()
            || description.identity_of(&digests) != description.identity
        {
            return Err(self.failed("the digests are not those of the database it described"));
        }
        // Zero entries that only fill the last blocks are not needed.
        let wanted = description.params.entries() * description.params.entry_size() as u64;
        let (whole, mut at, mut failures) = (description.data_bytes(), 0, 0);
        while at < wanted {
            let before = at;
            let error = match self.stretch(description, &digests, wanted, &mut at, push)? {
                None => continue,
                Some(error) => error,
            };
            failures = if at > before { 0 } else { failures + 1 };
            if failures == ATTEMPTS {
                return Err(self
                    .failed(format!("the stream of the blocks ended after {at} of {whole} bytes: {error}")));
            }
            std::thread::sleep(Duration::from_millis(250 << failures));
        }
        Ok(())
    }

    /// Streams all entries as they are in the newest epoch, and says which that is. The changes are fetched first: to apply
    /// them to the stream is far less work than to hints.
    ///
    /// # Errors
    ///
    /// As for [`Remote::entries`].
    pub fn newest_entries(
        &self,
        description: &Description,
        push: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut overlay = Overlay::new(description.params.entry_size());
        let mut epoch = description.epoch;
        loop {
            let updates = self.updates(&description.params, epoch)?;
            let Some(last) = updates.last() else { break };
            if last.number <= epoch {
                return Err(self.failed(format!("it sent update {} again", last.number)));
            }
            epoch = last.number;
            updates.iter().for_each(|update| overlay.add(update));
        }
        let mut at = 0;
        self.entries(description, &mut |bytes| {
            let mut bytes = bytes.to_vec();
            overlay.apply(at, &mut bytes);
            at += bytes.len() as u64;
            push(&bytes)
        })?;
        Ok(epoch)
    }

    /// One connection's worth of blocks from `at` on; what ended it, if not the end.
    fn stretch(
        &self,
        description: &Description,
        digests: &[u8],
        wanted: u64,
        at: &mut u64,
        push: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Option<String>> {
        let mut response = match self.send("GET", "/v1/blocks", &format!("Range: bytes={at}-\r\n"), b"") {
            Ok(response) if response.status == 206 => response,
            Ok(response) if matches!(response.status, 429 | 503) => return Ok(Some("it is busy".into())),
            Ok(response) => {
                return Err(self.failed(format!("no ranges of blocks: status {}", response.status)));
            }
            Err(error) => return Ok(Some(error.to_string())),
        };
        let mut segment = vec![0; SEGMENT_BYTES];
        while *at < wanted {
            let length = (description.data_bytes() - *at).min(SEGMENT_BYTES as u64) as usize;
            if let Err(error) = response.body.read_exact(&mut segment[..length]) {
                return Ok(Some(error.to_string()));
            }
            let number = (*at / SEGMENT_BYTES as u64) as usize;
            if <[u8; 32]>::from(Sha256::digest(&segment[..length])) != digests[32 * number..][..32] {
                return Err(
                    self.failed(format!("segment {number} of the blocks is not what its digest says"))
                );
            }
            push(&segment[..length.min((wanted - *at) as usize)])?;
            *at += length as u64;
        }
        Ok(None)
    }

    /// Changes after an epoch: as many epochs as the server sends at once; none when there are no more.
    ///
    /// # Errors
    ///
    /// When the server does not know the epoch, or cannot be reached.
    pub fn updates(&self, params: &Params, epoch: u64) -> Result<Vec<Update>> {
        read_updates(params, &self.ask("GET", &format!("/v1/updates/{epoch}"), b"", LONGEST)?.bytes)
    }

    /// Hints from a hint maker, as [`crate::maker::read`] takes them.
    ///
    /// # Errors
    ///
    /// When it cannot be reached or refuses.
    pub fn hints(&self, request: &Request) -> Result<Vec<u8>> {
        Ok(self.ask("POST", HINTS, &request.to_bytes(), u64::MAX - 1)?.bytes)
    }

    /// Brings a client's hints to the server's newest epoch.
    ///
    /// # Errors
    ///
    /// When queries wait for answers, or the updates cannot be had.
    pub fn synchronise(&self, client: &mut Client) -> Result<()> {
        loop {
            let updates = self.updates(client.params(), client.version().epoch)?;
            if updates.is_empty() {
                return Ok(());
            }
            updates.iter().try_for_each(|update| client.update(update))?;
        }
    }

    /// Sends what was asked and takes the answers. When it fails the queries still wait, and [`Client::resend`] gives them
    /// again.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, refuses, or answers something else.
    pub fn fetch(&self, client: &mut Client, asked: &Asked) -> Result<Vec<Result<Fetched>>> {
        let answers = self.ask("POST", "/v1/query", &asked.body, LONGEST)?;
        client.receive(asked, &answers.bytes)
    }
}

/// Changes of many epochs, added up for each entry.
struct Overlay {
    size: usize,
    deltas: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    fn new(size: usize) -> Overlay {
        Overlay { size, deltas: BTreeMap::new() }
    }

    fn add(&mut self, update: &Update) {
        for (index, delta) in update.changes(self.size) {
            let sum = self.deltas.entry(index).or_insert_with(|| vec![0; self.size]);
            sum.iter_mut().zip(delta).for_each(|(sum, byte)| *sum ^= byte);
        }
    }

    /// Changes a part of the entries' bytes, which begins anywhere, also within an entry.
    fn apply(&self, at: u64, bytes: &mut [u8]) {
        let size = self.size as u64;
        let end = at + bytes.len() as u64;
        for (index, delta) in self.deltas.range(at / size..end.div_ceil(size)) {
            for (place, byte) in (index * size..).zip(delta) {
                if (at..end).contains(&place) {
                    bytes[(place - at) as usize] ^= byte;
                }
            }
        }
    }
}

fn invalid(reason: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}

/// A body of a known length, which ends early only with an error.
struct Exact<R> {
    reader: Take<R>,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if read == 0 && self.reader.limit() > 0 && !buffer.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

/// A body in chunks, as some proxies send it.
struct Chunked<R> {
    reader: R,
    left: u64,
    done: bool,
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.done && !buffer.is_empty() {
            let mut line = String::new();
            self.reader.by_ref().take(1 << 12).read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let size = line.trim_end().split(';').next().unwrap_or("");
            self.left = u64::from_str_radix(size.trim(), 16).map_err(|_| invalid("a chunk has no size"))?;
            self.done = self.left == 0;
        }
        if self.done || buffer.is_empty() {
            return Ok(0);
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.reader.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        if self.left == 0 {
            let mut end = [0; 2];
            self.reader.read_exact(&mut end)?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (url, authority, prefix) in [
            ("http://a", "a:80", ""),
            ("http://a:81/", "a:81", ""),
            ("http://[::1]:9/x/y/", "[::1]:9", "/x/y"),
            ("http://[::1]/x", "[::1]:80", "/x"),
            ("https://a", "a:443", ""),
            ("https://a:80/x", "a:80", "/x"),
        ] {
            let remote = Remote::new(url).unwrap();
            assert_eq!((&remote.authority[..], &remote.prefix[..]), (authority, prefix), "{url}");
            assert_eq!(remote.secure, url.starts_with("https"));
        }
        for url in [
            "",
            "a:80",
            "ftp://a",
            "https://",
            "http://",
            "http:///x",
            "http://a b",
            "http://a\r\nX: y",
            "http://u@a",
        ] {
            assert!(Remote::new(url).is_err(), "{url}");
        }
    }

    #[test]
    fn changes_reach_every_byte_of_their_entries_wherever_a_stream_is_cut() {
        let mut overlay = Overlay::new(5);
        overlay.add(&Update { number: 1, indices: vec![0, 3, 9], deltas: (1..=15).collect() });
        overlay.add(&Update {
            number: 2,
            indices: vec![3, 3],
            deltas: vec![0x80, 0, 0, 0, 1, 0, 0, 0, 0, 2],
        });
        let mut expected = vec![0; 50];
        expected[..5].copy_from_slice(&[1, 2, 3, 4, 5]);
        expected[15..20].copy_from_slice(&[6 ^ 0x80, 7, 8, 9, 10 ^ 3]);
        expected[45..].copy_from_slice(&[11, 12, 13, 14, 15]);
        for piece in 1..=50 {
            let mut bytes = vec![0; 50];
            for (i, bytes) in bytes.chunks_mut(piece).enumerate() {
                overlay.apply((i * piece) as u64, bytes);
            }
            assert_eq!(bytes, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn bodies_in_chunks_and_cut_short() {
        let mut text = String::new();
        let whole = &b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"[..];
        Chunked { reader: whole, left: 0, done: false }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello world");
        for length in [3, 8, 20, 26] {
            let cut = Chunked { reader: &whole[..length], left: 0, done: false }.read_to_end(&mut Vec::new());
            assert!(cut.is_err(), "{length}");
        }
        assert!(Exact { reader: b"abc".take(4) }.read_to_end(&mut Vec::new()).is_err());
        assert_eq!(Exact { reader: b"abcd".take(3) }.read_to_end(&mut Vec::new()).unwrap(), 3);
    }
}
