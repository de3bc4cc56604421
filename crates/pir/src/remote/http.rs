//! What a server sends back, read without trust: no more than was asked for, and not for ever.

use std::io::{self, BufRead, BufReader, Read, Take};
use std::time::{Duration, Instant};

/// The most of an answer's head.
const HEAD_BYTES: usize = 1 << 16;
/// The most of a line with a chunk's size.
const CHUNK_LINE: u64 = 1 << 12;
/// Bytes a second at which an answer must come, on average: a server that sends now and then a byte is given up too.
const PACE: u64 = 16 << 10;

/// An answer whose body has not been read yet.
pub(super) struct Response {
    pub status: u16,
    pub epoch: Option<u64>,
    pub batch: Option<u64>,
    pub location: Option<String>,
    pub body: Box<dyn Read>,
}

impl Response {
    /// Reads the head of an answer, which must begin within `silence`; its body ends within that and the time for `longest`
    /// bytes. A body that is announced to be longer is an error at once, one that proves longer when it is.
    pub fn read(from: impl Read + 'static, silence: Duration, longest: u64) -> io::Result<Response> {
        let now = Instant::now();
        let until = now + silence;
        let mut reader = BufReader::with_capacity(1 << 18, Patient { reader: from, until });
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let room = (HEAD_BYTES + 1).saturating_sub(head.len()) as u64;
            if reader.by_ref().take(room).read_until(b'\n', &mut head)? == 0 {
                return Err(invalid(match head.len() {
                    0 => "nothing came back".to_owned(),
                    length if length > HEAD_BYTES => {
                        format!("a head of more than {HEAD_BYTES} bytes came back")
                    }
                    _ => "no HTTP came back".to_owned(),
                }));
            }
        }
        let head = String::from_utf8_lossy(&head);
        let status =
            head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.trim().parse().ok());
        let status = status.ok_or_else(|| invalid("no HTTP came back"))?;
        let header = |name: &str| {
            head.lines().find_map(|line| {
                line.split_once(':')
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.trim())
            })
        };
        let number = |name| header(name).and_then(|value| value.parse::<u64>().ok());
        // What a server says in a refusal is short, and nobody needs it whole.
        let longest = if matches!(status, 200 | 206) { longest } else { HEAD_BYTES as u64 };
        reader.get_mut().until += Duration::from_secs(longest / PACE);
        let chunked = header("transfer-encoding").is_some_and(|kind| kind.eq_ignore_ascii_case("chunked"));
        let body: Box<dyn Read> = if chunked {
            Box::new(Bounded { reader: Chunked { reader, left: 0, done: false }, left: longest })
        } else {
            let length = number("content-length").ok_or_else(|| invalid("no length came back"))?;
            if length > longest && matches!(status, 200 | 206) {
                return Err(too_long(length, longest));
            }
            Box::new(Bounded { reader: Exact { reader: reader.take(length) }, left: longest })
        };
        let location = header("location").map(str::to_owned);
        Ok(Response {
            status,
            epoch: number("warpsmith-epoch"),
            batch: number("warpsmith-batch"),
            location,
            body,
        })
    }
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

fn too_long(length: u64, longest: u64) -> io::Error {
    invalid(format!("an answer of {length} bytes, where at most {longest} were asked for"))
}

/// Bytes until some moment.
struct Patient<R> {
    reader: R,
    until: Instant,
}

impl<R: Read> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A single read ends with the silence that the connection bears.
        if Instant::now() > self.until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the answer comes too slowly"));
        }
        self.reader.read(buffer)
    }
}

/// A body of no more than so many bytes; a longer one is an error.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| invalid("the answer is longer than what was asked for"))?;
        Ok(read)
    }
}

/// A body of a known length, which ends early only with an error.
struct Exact<R> {
    reader: Take<R>,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if read == 0 && self.reader.limit() > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
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
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.done && !buffer.is_empty() {
            let mut line = String::new();
            self.reader.by_ref().take(CHUNK_LINE).read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
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
            return Err(io::ErrorKind::UnexpectedEof.into());
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

    #[test]
    fn no_more_than_was_asked_for() {
        let read = |text: &'static str, longest: u64| {
            let mut response = Response::read(text.as_bytes(), Duration::from_secs(60), longest)?;
            let mut bytes = Vec::new();
            response.body.read_to_end(&mut bytes).map(|_| (response.status, bytes))
        };
        let fixed = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        for text in [fixed, chunked] {
            assert_eq!(read(text, 5).unwrap(), (200, b"hello".to_vec()));
            assert_eq!(read(text, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 xyz OK\r\n\r\n",
            "SSH-2.0-x 200\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        ] {
            assert_eq!(read(text, 5).unwrap_err().kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn endless_heads_and_slow_bodies_end() {
        let start = io::Cursor::new("HTTP/1.1 200 OK\r\n");
        let silence = Duration::from_secs(60);
        let lines = start.clone().chain(io::repeat(b'\n'));
        assert!(Response::read(lines, silence, 5).is_err_and(|error| error.to_string().contains("65536")));
        let one_line = start.chain(io::repeat(b'x'));
        assert!(Response::read(one_line, silence, 5).is_err_and(|error| error.to_string().contains("65536")));
        let late = Response::read(io::repeat(b'x'), Duration::ZERO, 5);
        assert_eq!(late.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let endless = endless.as_bytes().chain(io::repeat(b'1'));
        let mut response = Response::read(endless, silence, 5).unwrap();
        assert!(response.body.read_to_end(&mut Vec::new()).is_err());
    }
}
