//! The sieve for many prefixes, up to millions, whose first table lets some percent of all keys pass.
//!
//! Every key asks a table that is too large for the first-level cache, and some percent of them a second one that is too
//! large for any private cache. Neither may be waited for, and no branch may depend on a single answer: a wrong guess
//! every few keys would cost more than the walk. So the sums of an entry ask between the multiplications of the next,
//! a slice at a time. When 64 keys or the last of the entry have asked, those that passed are appended to a queue
//! without a branch, and what they will read of the second table is asked for. An entry later they read it. What passes
//! that too, about two keys in a thousand, waits until some entries have gathered, and is settled by its top 64 bits.
//!
//! The walk keeps the vector ports busy and hardly any other, so what can be done one key at a time is.

use core::hint::black_box;

use super::bits::Bits;
use super::many::{Judge, Level, Tops, tops, words};
use super::{Hit, Leading, Orbit, SLICES, Visitor};
use crate::Fe;

/// Entries whose keys are settled together.
const ENTRIES: usize = 16;
/// The most keys of an entry: nine sums in both signs of at most eight lanes.
const MOST: usize = SLICES * 16;
/// Keys that are appended together, at most.
const CHUNK: usize = 64;
/// How many of them are appended without a branch; of 64 keys with 7 % that pass, more do in 4 of 100 cases.
const SLOTS: usize = 8;

/// The words of some sums of an entry, and zeros for the keys that are none.
#[repr(C, align(64))]
struct Chunk {
    words: [u32; CHUNK],
    none: [u32; 16],
}

/// What is remembered of the keys that passed the first table.
struct Pending<L: Leading> {
    /// The words of the entry visited last.
    entry: [Chunk; 3],
    /// The words of the keys that passed, with room for what is no key, and the number of each: entry, sum and place.
    words: [u32; ENTRIES * MOST + CHUNK],
    numbers: [u16; ENTRIES * MOST + CHUNK],
    /// Places in `words` of those that passed the second table too.
    passed: [u32; ENTRIES * MOST + 16],
    /// For each entry its number and tops. Number 0 is no entry, and its keys are none.
    indexes: [u32; ENTRIES],
    tops: [Tops<L>; ENTRIES],
}

/// The visitor that asks the tables.
pub(super) struct Dense<'a, L: Leading> {
    judge: Judge<'a>,
    pending: Box<Pending<L>>,
    /// The place of the entry visited last in `pending`.
    slot: usize,
    /// Which keys of the chunk passed so far.
    mask: u64,
    /// Words appended, those that were when the entry was visited, and those for which the second table was read.
    end: usize,
    ready: usize,
    read: usize,
    /// How many of these passed.
    passed: usize,
    coarse: Level<L>,
    fine: Level<L>,
}

impl<'a, L: Leading> Dense<'a, L> {
    /// Keys of a sum, and of an entry.
    const KEYS: usize = 2 * L::N;
    const ALL: usize = SLICES * Self::KEYS;
    /// Sums of a chunk.
    const SUMS: usize = CHUNK / Self::KEYS;

    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn new(bits: &'a Bits, step: u64, hits: &'a mut Vec<Hit>) -> Self {
        // SAFETY: the caller's.
        let (coarse, fine) = unsafe { (Level::new(bits.coarse()), Level::new(bits.fine())) };
        // SAFETY: the caller's.
        let top = unsafe { L::splat(&L::constant(Fe::ZERO)).tops() };
        let pending = Box::new(Pending {
            entry: [const { Chunk { words: [0; CHUNK], none: [0; 16] } }; 3],
            words: [0; ENTRIES * MOST + CHUNK],
            numbers: [0; ENTRIES * MOST + CHUNK],
            passed: [0; ENTRIES * MOST + 16],
            indexes: [0; ENTRIES],
            tops: [[[[top; 2]; 2]; 3]; ENTRIES],
        });
        let judge = Judge::new(bits, step, hits);
        Dense { judge, pending, slot: 0, mask: 0, end: 0, ready: 0, read: 0, passed: 0, coarse, fine }
    }

    /// Where the words of a sum lie.
    #[inline(always)]
    fn at(&mut self, sum: usize) -> *mut u32 {
        // SAFETY: within the chunk's words.
        unsafe { self.pending.entry[sum / Self::SUMS].words.as_mut_ptr().add(sum % Self::SUMS * Self::KEYS) }
    }

    /// One sum of the entry visited last: both signs in all lanes ask the first table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        // SAFETY: the caller's; the table is borrowed.
        unsafe {
            let word = L::word_load(self.at(sum));
            let passed = L::word_signs(self.coarse.ask::<1>(word, u32::MAX));
            self.mask |= u64::from(passed) << (sum % Self::SUMS * Self::KEYS);
        }
        if sum % Self::SUMS == Self::SUMS - 1 || sum == SLICES - 1 {
            self.append(sum / Self::SUMS);
        }
    }

    /// Appends the keys of a chunk that passed.
    #[inline(always)]
    fn append(&mut self, chunk: usize) {
        debug_assert!(self.end + CHUNK <= self.pending.words.len());
        let mut mask = core::mem::take(&mut self.mask);
        let count = mask.count_ones() as usize;
        let first = self.slot * Self::ALL + chunk * CHUNK;
        let words = (&raw const self.pending.entry[chunk]).cast::<u32>();
        let mut one = |at: usize| {
            // Where no key is left this is CHUNK, whose word is zero.
            let place = mask.trailing_zeros() as usize;
            mask &= mask.wrapping_sub(1);
            // SAFETY: at most CHUNK, and a chunk has more words; a chunk appends as many at most, for which there is
            // room after those of all entries.
            unsafe {
                let word = *words.add(place);
                // What is no key asks for the first entry, which does no harm; any other would cost as much as a key's.
                self.judge.bits.prefetch(word);
                *self.pending.words.get_unchecked_mut(self.end + at) = word;
                *self.pending.numbers.get_unchecked_mut(self.end + at) = (first + place) as u16;
            }
        };
        for at in 0..SLOTS {
            one(at);
        }
        if count > SLOTS {
            for at in SLOTS..count {
                one(at);
            }
        }
        self.end += count;
    }

    /// Reads the second table for some keys for which it was asked an entry ago or earlier, where there are any.
    #[inline(always)]
    unsafe fn read(&mut self) {
        // SAFETY: the caller's; the table is borrowed; `read` is at most `end` and `passed` at most `read`, with room
        // for a vector after both.
        unsafe {
            let word = L::word_load(self.pending.words.as_ptr().add(self.read));
            let count = (self.ready - self.read).min(Self::KEYS);
            let passed = L::word_signs(self.fine.ask::<2>(word, (1 << count) - 1));
            let places = L::word_add(L::word_places(), L::word_splat(self.read as u32));
            self.passed += L::word_append(places, passed, self.pending.passed.as_mut_ptr().add(self.passed));
            self.read += count;
        }
    }

    /// Settles all keys of the entries so far and begins with the first again.
    #[inline(always)]
    fn settle(&mut self) {
        settle(&mut self.judge, &mut self.pending, self.read, self.passed, self.end);
        (self.slot, self.end, self.ready, self.read, self.passed) = (0, 0, 0, 0, 0);
    }
}

/// Decides the keys up to `end`: of those from `read` on the second table was not read, and `passed` of the others
/// passed it. Apart from `Dense`, whose fields can so stay in registers.
#[cold]
#[inline(never)]
fn settle<L: Leading>(
    judge: &mut Judge<'_>,
    pending: &mut Pending<L>,
    read: usize,
    mut passed: usize,
    end: usize,
) {
    for at in read..end {
        pending.passed[passed] = at as u32;
        passed += judge.bits.may_hold(pending.words[at]) as usize;
    }
    for &at in &pending.passed[..passed] {
        let number = pending.numbers[at as usize] as usize;
        let (entry, key) = (number / Dense::<L>::ALL, number % Dense::<L>::ALL);
        let (sum, place) = (key / Dense::<L>::KEYS, key % Dense::<L>::KEYS);
        let index = pending.indexes[entry];
        if index != 0 {
            judge.decide::<L>(index, sum, place as u32, &pending.tops[entry]);
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
            if slice == 5 {
                self.read();
            }
            product
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        self.slot += 1;
        self.ready = self.end;
        if self.slot == ENTRIES {
            self.settle();
        }
        // SAFETY: the caller's.
        unsafe {
            let tops = tops(orbit);
            *self.pending.indexes.get_unchecked_mut(self.slot) = index;
            *self.pending.tops.get_unchecked_mut(self.slot) = tops;
            for (sum, words) in words::<L>(&tops).into_iter().enumerate() {
                L::word_store(words, self.at(sum));
            }
        }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {
        // A loop, not nine copies: once a group there is no hurry.
        for sum in 0..black_box(SLICES) {
            // SAFETY: the caller's.
            unsafe { self.ask(sum) }
        }
        self.settle();
    }

    fn exact(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        self.judge.exact(lane, index, minus, orbit, x);
    }
}
