//! Bodies of answers. Each holds its share of the memory until the last byte of it has gone.

use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use warpsmith_http::Share;

use crate::database::{Database, SEGMENT_BYTES};
use crate::error::{Error, Result};

/// Bytes that a connection is given at a time. It keeps a few such pieces, whatever it still has to send.
const PIECE: u64 = 1 << 16;

/// Memory of a body that is read from the file as the connection takes it, with a segment that is compared with its digest.
pub(super) const STREAM_BYTES: u64 = 8 * PIECE + SEGMENT_BYTES as u64;

/// An answer that was made in memory.
pub(super) fn held(bytes: Vec<u8>, share: Share) -> Body {
    /// The bytes go where the connection wants them; the last of them to go takes the share along.
    struct Held {
        bytes: Vec<u8>,
        _share: Share,
    }

    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    Body::new(Pieces { bytes: Bytes::from_owner(Held { bytes, _share: share }) })
}

/// Bytes in memory, piece by piece: a connection that copies what it sends copies no more than one.
struct Pieces {
    bytes: Bytes,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.bytes.len().min(PIECE as usize);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(length)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// What of a database's file is sent.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Blocks,
    Digests,
}

/// A part of the file, read as the connection takes it. The file is that one to the end, whatever is folded meanwhile.
pub(super) struct Stretch {
    base: Arc<Database>,
    part: Part,
    left: Range<u64>,
    /// What was read already.
    first: Option<Bytes>,
    _share: Share,
}

impl Stretch {
    /// Reads the first piece before anything is promised: a part that is damaged further on can only be broken off.
    pub fn begin(base: Arc<Database>, part: Part, left: Range<u64>, share: Share) -> Result<Stretch> {
        let mut stretch = Stretch { base, part, left, first: None, _share: share };
        stretch.first = stretch.next()?;
        Ok(stretch)
    }

    /// The next piece. Each MiB of blocks is compared with its digest before any of it is sent.
    fn next(&mut self) -> Result<Option<Bytes>> {
        let (at, length) = (self.left.start, (self.left.end - self.left.start).min(PIECE));
        if length == 0 {
            return Ok(None);
        }
        let bytes = match self.part {
            Part::Blocks => {
                let mut bytes = vec![0; length as usize];
                self.base.read(at, &mut bytes)?;
                bytes.into()
            }
            Part::Digests => Bytes::copy_from_slice(&self.base.digests()[at as usize..][..length as usize]),
        };
        self.left.start += length;
        Ok(Some(bytes))
    }
}

impl hyper::body::Body for Stretch {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let piece = match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.next(),
        };
        Poll::Ready(piece.transpose().map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| first.len() as u64);
        SizeHint::with_exact(self.left.end - self.left.start + first)
    }
}
