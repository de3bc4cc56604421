//! The blocks of a server's database, over several connections at once. One alone brings less than a card takes: whoever
//! receives a segment also compares it with its digest. They are handed over in order.
//!
//! How much is asked for at once follows what the line bears, as TCP does it: one segment at first, more while they come
//! quickly, fewer when they come slowly or break off. So a slow line is not shared by many connections of which none gets on.
//! Whoever gets no answer may be one of too many at once: then there are fewer requests, and none of them is for less, or there
//! would be more of them for the same bytes. So a server that allows one connection, or few requests a second, is content.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::Remote;
use super::exchange::{ATTEMPTS, Exchange, Of, Repeat, busy, is_busy, message};
use super::transport::{CONNECTIONS, Response, is_hang_up};
use crate::database::{Description, SEGMENT_BYTES};
use crate::error::Result;

/// The most segments of one request. At most as many such lots as connections are claimed and not yet taken.
const LOT: u64 = 32;
/// The time between two lots, on average, and how far ahead of that they may be. A server allows an address 200 requests a second
/// by default, and 400 at once; with lots of 32 MiB this is 5 GB a second.
const PACE: Duration = Duration::from_micros(6_250);
const AHEAD: Duration = Duration::from_secs(1);
/// Bytes after which a connection looks whether anybody still wants what it reads.
const LOOK: usize = 1 << 16;
/// A lot that came within the first is quick, and one that took longer than the second is slow: counted from the first byte on, so that
/// a line which is only long is not taken for a slow one. About so much is under way at most as comes in that time.
const QUICK: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_secs(4);
/// How long it is gone on without any progress at all: a server that is started again, or a line that fails for a moment, is back by then.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest rest before the next attempt.
const REST: Duration = Duration::from_secs(2);
/// How often whoever takes the segments is asked whether they are still wanted while none come.
const STILL: Duration = Duration::from_millis(250);

/// Lots without a failure after which more is tried again.
const CALM: u64 = 64;

/// What is streamed.
struct Stream<'a> {
    description: &'a Description,
    tag: String,
    digests: Vec<u8>,
}

impl Stream<'_> {
    /// The bytes of a segment.
    fn place(&self, segment: u64) -> Range<u64> {
        let start = segment * SEGMENT_BYTES as u64;
        start..self.description.data_bytes().min(start + SEGMENT_BYTES as u64)
    }

    fn fits(&self, segment: u64, bytes: &[u8]) -> bool {
        Sha256::digest(bytes)[..] == self.digests[32 * segment as usize..][..32]
    }
}

impl Remote {
    /// Streams all entries of the database's file to `push`, each segment once its digest is found right. While none come it is given
    /// nothing now and then, so that it may end this.
    ///
    /// # Errors
    ///
    /// When the server sends something else than it described, or the network fails for good. Nothing after that was pushed.
    pub fn entries(
        &self,
        description: &Description,
        push: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let tag = description.tag();
        let of = Of { file: &tag, range: None };
        let digests = self.ask_of(Some(of), "GET", "/v1/digests", b"", 32 * description.segments())?.bytes;
        if digests.len() as u64 != 32 * description.segments()
            || description.identity_of(&digests) != description.identity
        {
            return Err(self.failed("the digests are not those of the database it described"));
        }
        // Zero entries that only fill the last blocks are not needed.
        let wanted = description.params.entries() * description.params.entry_size() as u64;
        let stream = Stream { description, tag, digests };
        let shelf = Shelf::new(wanted.div_ceil(SEGMENT_BYTES as u64), CONNECTIONS as u64);
        std::thread::scope(|scope| {
            let _end = End { shelf: &shelf, only_by_panic: false };
            for _ in 0..CONNECTIONS {
                scope.spawn(|| self.connection(&stream, &shelf));
            }
            let mut left = wanted;
            while left > 0 {
                let Some(lot) = shelf.take(STILL)? else {
                    push(&[])?;
                    continue;
                };
                for segment in lot.chunks(SEGMENT_BYTES) {
                    let length = left.min(segment.len() as u64);
                    push(&segment[..length as usize])?;
                    left -= length;
                }
            }
            Ok(())
        })
    }

    /// Fetches lot after lot until there are no more, or nobody wants them.
    fn connection(&self, stream: &Stream<'_>, shelf: &Shelf) {
        let _end = End { shelf, only_by_panic: true };
        while let Some(segments) = shelf.claim() {
            let (first, mut took) = (segments.start, Duration::ZERO);
            let Some(lot) = self.lot(stream, segments, shelf, &mut took).transpose() else { return };
            let failed = lot.is_err();
            shelf.put(first, lot, took);
            if failed {
                return;
            }
        }
    }

    /// One lot, over as many connections as it takes; nothing when nobody wants it any more. Adds up the time it took to come.
    fn lot(
        &self,
        stream: &Stream<'_>,
        segments: Range<u64>,
        shelf: &Shelf,
        took: &mut Duration,
    ) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::with_capacity((segments.end - segments.start) as usize * SEGMENT_BYTES);
        let (mut failures, mut received, mut progress) = (0, shelf.received(), Instant::now());
        let mut is_kept = true;
        while !shelf.is_over() {
            let mark = shelf.mark();
            let (error, lack) = match self.request(stream, &segments, bytes.len() as u64)? {
                Ok(response) => {
                    let began = Instant::now();
                    let ended = receive(stream, &segments, response, &mut bytes, shelf)
                        .map_err(|reason| self.failed(reason))?;
                    *took += began.elapsed();
                    let Some(error) = ended else {
                        if *took > SLOW {
                            shelf.slow_down(mark, Lack::Speed);
                        }
                        return Ok(Some(bytes));
                    };
                    (error, Lack::Rest)
                }
                // A connection that was kept may have been closed meanwhile: the first time another is opened at once.
                Err(Unanswered { hung_up: true, .. }) if is_kept => {
                    is_kept = false;
                    continue;
                }
                Err(Unanswered { reason, .. }) => (reason, Lack::Answer),
            };
            // What others receive counts too: a server that has no room for this connection still serves.
            if shelf.received() > received {
                (failures, received, progress) = (0, shelf.received(), Instant::now());
            }
            failures += 1;
            if failures >= ATTEMPTS && progress.elapsed() >= PATIENCE {
                let (at, whole) = (stream.place(segments.start).start, stream.description.data_bytes());
                let at = at + bytes.len() as u64;
                return Err(self
                    .failed(format!("the stream of the blocks ended after {at} of {whole} bytes: {error}")));
            }
            shelf.slow_down(mark, lack);
            shelf.rest(REST.min(Duration::from_millis(250 << failures.min(8))));
        }
        Ok(None)
    }

    /// Asks for a lot but for the bytes that are there already. An answer, or why there is none and may be one another time.
    fn request(
        &self,
        stream: &Stream<'_>,
        segments: &Range<u64>,
        there: u64,
    ) -> Result<std::result::Result<Response, Unanswered>> {
        let range = stream.place(segments.start).start + there..stream.place(segments.end - 1).end;
        let longest = range.end - range.start;
        let of = Some(Of { file: &stream.tag, range: Some(range) });
        let (path, repeat) = ("/v1/blocks", Repeat::Always);
        let exchange = Exchange { of, method: "GET", path, body: b"", longest, repeat };
        Ok(match self.send(&exchange, &mut false) {
            Ok(response) if response.status == 206 => Ok(response),
            Ok(Response { status, body, .. }) if is_busy(status) => {
                Err(Unanswered { reason: busy(status, &message(body)), hung_up: false })
            }
            Ok(response) if response.status == 412 => {
                let text = "the server's database was folded since this began, and it has the file no longer that this was of; run \
                            this again";
                return Err(self.failed(text));
            }
            Ok(response) => {
                return Err(self.failed(format!("no ranges of blocks: status {}", response.status)));
            }
            // Another attempt would bring the same.
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(self.failed(format!("GET /v1/blocks: {error}")));
            }
            Err(error) => Err(Unanswered { reason: error.to_string(), hung_up: is_hang_up(&error) }),
        })
    }
}

/// Why there is no answer, where there may be one another time.
struct Unanswered {
    reason: String,
    /// Whether the connection had ended.
    hung_up: bool,
}

/// Reads what is missing of a lot; what ended it, if not the end. An error is what another attempt would not mend.
fn receive(
    stream: &Stream<'_>,
    segments: &Range<u64>,
    mut response: Response,
    bytes: &mut Vec<u8>,
    shelf: &Shelf,
) -> std::result::Result<Option<String>, String> {
    for number in segments.start + (bytes.len() / SEGMENT_BYTES) as u64..segments.end {
        let (at, place) = (bytes.len(), stream.place(number));
        bytes.resize(at + (place.end - place.start) as usize, 0);
        for piece in bytes[at..].chunks_mut(LOOK) {
            let read = if shelf.is_over() {
                Err(ErrorKind::Interrupted.into())
            } else {
                response.body.read_exact(piece)
            };
            if let Err(error) = read {
                bytes.truncate(at);
                return Ok(Some(error.to_string()));
            }
        }
        if !stream.fits(number, &bytes[at..]) {
            return Err(format!("segment {number} of the blocks is not what its digest says"));
        }
        shelf.receive();
    }
    // A connection can be used again once the end of an answer was seen. All that is wanted is here, whatever comes of this.
    let _ = response.body.read(&mut [0]);
    Ok(None)
}

/// What a lot lacked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// An answer: the server has no room for as many, or is not there.
    Answer,
    /// Its rest: it broke off.
    Rest,
    /// Speed.
    Speed,
}

/// Where connections put what they fetched, and one takes it in order.
struct Shelf {
    /// Segments in all.
    segments: u64,
    connections: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Segments that came, in whatever order.
    received: AtomicU64,
}

struct State {
    /// Segments that somebody fetches or has fetched.
    claimed: u64,
    /// Segments that were taken.
    taken: u64,
    /// Segments that may be claimed and not yet taken.
    window: u64,
    /// What the window may grow to: less after a failure, for a while. What a line did not bear is not tried at every turn.
    most: u64,
    /// Lots that are claimed and not yet taken, and how many there may be: fewer after a failure, likewise.
    lots: u64,
    abreast: u64,
    /// Lots that were taken since the last failure, or since those were raised.
    calm: u64,
    /// How often it became less. What was asked for before the last time tells nothing new.
    slowed: u64,
    /// When the next request would be due by its pace.
    due: Instant,
    /// By their first segments: what came, and how long it took.
    ready: BTreeMap<u64, (Result<Vec<u8>>, Duration)>,
    /// Nobody takes anything any more.
    over: bool,
}

impl State {
    /// Takes a request's turn, if that is now; how long it is until then, if not.
    fn early(&mut self, now: Instant) -> Duration {
        let next = self.due.max(now) + PACE;
        let early = next.saturating_duration_since(now + AHEAD);
        if early.is_zero() {
            self.due = next;
        }
        early
    }
}

impl Shelf {
    fn new(segments: u64, connections: u64) -> Shelf {
        let state = State {
            claimed: 0,
            taken: 0,
            window: 1,
            most: LOT * connections,
            lots: 0,
            abreast: connections,
            calm: 0,
            slowed: 0,
            due: Instant::now(),
            ready: BTreeMap::new(),
            over: false,
        };
        let received = AtomicU64::new(0);
        Shelf { segments, connections, state: Mutex::new(state), changed: Condvar::new(), received }
    }

    /// Whole at every moment: what a panic elsewhere left behind is as good as before.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next lot that nobody fetches, once it may be; none when there are no more.
    fn claim(&self) -> Option<Range<u64>> {
        let mut state = self.lock();
        while !state.over && state.claimed < self.segments {
            let room = (state.taken + state.window).min(self.segments).saturating_sub(state.claimed);
            if room == 0 || state.lots >= state.abreast {
                state = self.wait(state);
                continue;
            }
            let early = state.early(Instant::now());
            if !early.is_zero() {
                state = self.changed.wait_timeout(state, early).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let lot = (state.window / self.connections).clamp(1, LOT).min(room);
            state.lots += 1;
            state.claimed += lot;
            return Some(state.claimed - lot..state.claimed);
        }
        None
    }

    /// What was fetched from this segment on, or why it was not.
    fn put(&self, first: u64, lot: Result<Vec<u8>>, took: Duration) {
        self.lock().ready.insert(first, (lot, took));
        self.changed.notify_all();
    }

    /// The next lot in order; none where it does not come within this time.
    fn take(&self, time: Duration) -> Result<Option<Vec<u8>>> {
        let is_missing = |state: &mut State| !state.over && !state.ready.contains_key(&state.taken);
        let waited = self.changed.wait_timeout_while(self.lock(), time, is_missing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let next = state.taken;
        let Some((lot, took)) = state.ready.remove(&next) else {
            assert!(!state.over, "a connection's thread panicked");
            return Ok(None);
        };
        let lot = lot?;
        let segments = lot.len().div_ceil(SEGMENT_BYTES) as u64;
        state.lots -= 1;
        state.taken += segments;
        state.calm += 1;
        if state.calm >= CALM {
            state.calm = 0;
            state.most = (2 * state.most).min(LOT * self.connections);
            state.abreast = (2 * state.abreast).min(self.connections);
        }
        if took < QUICK {
            state.window = (state.window + segments).min(state.most);
        }
        drop(state);
        self.changed.notify_all();
        Ok(Some(lot))
    }

    fn receive(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// How often it became less until now: to be remembered when something is asked for.
    fn mark(&self) -> u64 {
        self.lock().slowed
    }

    /// Asks for less, since what was asked for then lacked something; unless that was done since, as all that fails together fails
    /// for one reason.
    fn slow_down(&self, mark: u64, lack: Lack) {
        let mut state = self.lock();
        state.calm = 0;
        if state.slowed != mark {
            return;
        }
        state.slowed += 1;
        if lack == Lack::Answer {
            state.abreast = (state.abreast.min(state.lots) / 2).max(1);
            return;
        }
        state.window = (state.window / 2).max(1);
        if lack == Lack::Rest {
            state.most = state.window;
        }
    }

    fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Waits, unless there is nothing more to wait for.
    fn rest(&self, time: Duration) {
        let state = self.lock();
        let _state = self
            .changed
            .wait_timeout_while(state, time, |state| !state.over)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Ends it for all when this is dropped.
struct End<'a> {
    shelf: &'a Shelf,
    /// Only if its thread panics: nobody shall wait for what it had claimed.
    only_by_panic: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() || !self.only_by_panic {
            self.shelf.lock().over = true;
            self.shelf.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
