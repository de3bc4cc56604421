//! The sieve for many prefixes, up to millions, whose first table lets some percent of all keys pass.
//!
//! Every key asks a table that is too large for the first-level cache, and some percent of them a second one that is too
//! large for any private cache. Neither may be waited for, and no branch may depend on a single answer: a wrong guess
//! every few keys would cost more than the walk. So all of it is a pipeline:
//!
//! 1. the sums of an entry ask the first table between the multiplications of the next entry, one a slice. The words that
//!    passed are appended to a queue without a branch;
//! 2. at the end of the entry, what they will read of the second table is asked for;
//! 3. every [`BATCH`] entries, all words for which that was an entry ago or longer read it;
//! 4. a batch later, for what passed that too, about two keys in a thousand, the top 64 bits are computed, and the third
//!    table beside the second asked, then the ranges. Not at once: how many these are is guessed wrong every other time,
//!    and a guess that waits for the second table throws away all that was begun meanwhile.
//!
//! Instructions are what counts: each of the walk's waits for others, and the more stand between, the fewer of those the
//! processor sees ahead. So of a key only its word is queued. Which key it was follows from its place in the queue and the
//! masks of the entry's sums.

use core::hint::black_box;

use super::bits::Bits;
use super::many::{Judge, Level, Tops, top, tops, words};
use super::{Hit, Leading, Orbit, SLICES, Visitor};
use crate::Fe;

/// Entries between two readings of the second table.
const BATCH: usize = 2;
/// Entries of which tops and masks are kept: those of two batches, and the two whose words are not read with the second.
/// A power of two.
const KEPT: usize = 8;
/// The most keys of an entry: nine sums in both signs of at most eight lanes.
const MOST: usize = SLICES * 16;
/// Words for which there is room in the queue before it begins anew.
const ROOM: usize = 2048;

/// What is remembered of an entry.
struct Visited<L: Leading> {
    /// Its number. Zero is no entry, and its keys are none.
    index: u32,
    /// Which places of its sums passed.
    masks: [u16; 12],
    tops: Tops<L>,
}

/// What is remembered of some entries and their keys.
struct Pending<L: Leading> {
    visited: [Visited<L>; KEPT],
    /// Where the words of each begin in the queue.
    starts: [u32; KEPT],
    /// The queue, with room for the vector that is written last.
    words: [u32; ROOM + 16],
    /// Places in the queue of words that passed the second table.
    passed: [u32; KEPT * MOST + 16],
}

/// The visitor that asks the tables.
pub(super) struct Dense<'a, L: Leading> {
    judge: Judge<'a>,
    pending: Box<Pending<L>>,
    /// Entries visited.
    count: usize,
    /// The words of the last one.
    words: [L::Words; SLICES],
    /// Words in the queue, those that were when it was visited, and those that read the second table.
    end: usize,
    ready: usize,
    read: usize,
    /// How many of these passed and have not been settled.
    passed: usize,
    coarse: Level<L>,
    fine: Level<L>,
}

impl<'a, L: Leading> Dense<'a, L> {
    /// Keys of a sum.
    const KEYS: usize = 2 * L::N;
    /// Words of an entry for which the second table is asked for; of 144 keys with 6 % that pass more do in 1 of 20
    /// cases, and have to wait.
    const FETCHED: usize = if L::N == 1 { 4 } else { 14 };

    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn new(bits: &'a Bits, step: u64, hits: &'a mut Vec<Hit>) -> Self {
        // SAFETY: the caller's.
        let (coarse, fine, word) =
            unsafe { (Level::new(bits.coarse()), Level::new(bits.fine()), L::word_splat(0)) };
        let judge = Judge::new(bits, step, hits);
        let (pending, words) = (Pending::new(), [word; SLICES]);
        Dense { judge, pending, count: 0, words, end: 0, ready: 0, read: 0, passed: 0, coarse, fine }
    }

    /// The entry visited last.
    #[inline(always)]
    fn last(&mut self) -> &mut Visited<L> {
        &mut self.pending.visited[self.count % KEPT]
    }

    /// One sum of the entry visited last: both signs in all lanes ask the first table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        debug_assert!(self.end + 16 <= self.pending.words.len());
        // SAFETY: the caller's; the table is borrowed; there is room for a vector at the end of the queue.
        unsafe {
            let passed = self.coarse.ask::<1>(self.words[sum], u32::MAX);
            *self.last().masks.get_unchecked_mut(sum) = passed as u16;
            self.end +=
                L::word_append(self.words[sum], passed, self.pending.words.as_mut_ptr().add(self.end));
        }
    }

    /// Asks for what the words of the entry visited last will read of the second table.
    #[inline(always)]
    fn fetch(&mut self) {
        for at in self.ready..self.ready + Self::FETCHED {
            // SAFETY: within the queue and its room.
            let word = unsafe { *self.pending.words.get_unchecked(at) };
            // What is no key asks for the first entry, which does no harm; any other would cost as much as a key's. Vectors
            // are appended whole, with zeros after the words.
            self.judge.bits.prefetch(if L::N > 1 || at < self.end { word } else { 0 });
        }
    }

    /// Settles what passed the second table last time, then reads that for the words up to a place of the queue.
    #[inline(always)]
    unsafe fn drain(&mut self, to: usize) {
        for at in 0..core::mem::take(&mut self.passed) {
            self.near(self.pending.passed[at]);
        }
        while self.read < to {
            // SAFETY: the caller's; the table is borrowed; there is room for a vector after the queue, and after all words
            // of the entries that are kept.
            unsafe {
                let words = L::word_load(self.pending.words.as_ptr().add(self.read));
                let count = (to - self.read).min(Self::KEYS);
                let held = self.fine.ask::<2>(words, (1 << count) - 1);
                let places = L::word_add(L::word_places(), L::word_splat(self.read as u32));
                self.passed +=
                    L::word_append(places, held, self.pending.passed.as_mut_ptr().add(self.passed));
                self.read += count;
            }
        }
    }

    /// Asks the third table for the word in a place of the queue.
    #[inline(always)]
    fn near(&mut self, place: u32) {
        // The latest entry whose words do not begin after it.
        let after = self.pending.starts.iter().filter(|&&start| start > place).count();
        let at = (self.count - after) % KEPT;
        let (visited, mut n) = (&self.pending.visited[at], place - self.pending.starts[at]);
        // The masks of four sums at a time, until the word is among them.
        let four = |i: usize| (0..4).fold(0, |all, j| all | u64::from(visited.masks[4 * i + j]) << (16 * j));
        let (mut mask, mut sum) = (four(0), 0);
        for i in 1..3 {
            let before = mask.count_ones();
            if n >= before {
                (mask, sum, n) = (four(i), 4 * i, n - before);
            }
        }
        // SAFETY: a visitor exists only where its instruction set does.
        let bit = unsafe { L::set_bit(mask, n) } as usize;
        let (sum, place) = (sum + bit / 16, bit % 16);
        let top = top::<L>(sum, place, &visited.tops);
        if self.judge.bits.near(top) {
            settle(&mut self.judge, visited.index, sum, place as u32, top);
        }
    }
}

/// Decides a key that passed all tables. Apart from `Dense`, whose fields can so stay in registers.
#[cold]
#[inline(never)]
fn settle(judge: &mut Judge<'_>, index: u32, sum: usize, place: u32, top: u64) {
    if index != 0 {
        judge.decide(index, sum, place, top);
    }
}

impl<L: Leading> Pending<L> {
    /// Nothing yet.
    fn new() -> Box<Self> {
        let mut pending = Box::<Self>::new_uninit();
        // SAFETY: all of it is plain integers, for which zero is a value.
        unsafe {
            pending.as_mut_ptr().write_bytes(0, 1);
            pending.assume_init()
        }
    }
}

impl<L: Leading> Visitor<L> for Dense<'_, L> {
    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        // SAFETY: the caller's.
        unsafe { self.judge.centre(c, skip) }
    }

    #[inline(always)]
    unsafe fn between(&mut self, slice: usize, product: L) -> L {
        // SAFETY: the caller's.
        unsafe {
            let product = product.now();
            self.ask(slice);
            product
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        self.fetch();
        // SAFETY: the caller's.
        unsafe {
            if self.end > ROOM - MOST {
                // Twice: what passes the first time is settled the second.
                for _ in 0..black_box(2) {
                    self.drain(self.end);
                }
                (self.end, self.read) = (0, 0);
                self.pending.starts = [0; KEPT];
            } else if self.count.is_multiple_of(BATCH) {
                self.drain(self.ready);
            }
            self.ready = self.end;
            self.count += 1;
            let tops = tops(orbit);
            self.pending.starts[self.count % KEPT] = self.end as u32;
            *self.last() = Visited { index, masks: [0; 12], tops };
            self.words = words::<L>(&tops);
        }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {
        // A loop, not nine copies: once a group there is no hurry.
        for sum in 0..black_box(SLICES) {
            // SAFETY: the caller's.
            unsafe { self.ask(sum) }
        }
        // What passes the first time is settled the second.
        for _ in 0..black_box(2) {
            // SAFETY: the caller's.
            unsafe { self.drain(self.end) }
        }
    }

    fn exact(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        self.judge.exact(lane, index, minus, orbit, x);
    }
}
