//! The sieve for many prefixes, up to millions, whose first table lets some percent of all keys pass.
//!
//! Every key asks a table that is too large for the first-level cache, and some percent of them a second one that is too
//! large for any private cache. Neither may be waited for, and no branch may depend on a single answer: a wrong guess
//! every few keys would cost more than the walk. Nor may anything be called between two entries: what the walk keeps in
//! registers would have to be stored for it, even if it is called next to never. So all of it is a pipeline without
//! branches, and what is rare waits for the next pause of the walk:
//!
//! 1. the sums of an entry ask the first table between the multiplications of the next entry, one a slice;
//! 2. at the end of that entry the numbers and words of the first sixteen keys that passed are picked out. An entry of
//!    which more did, one of a thousand, is noted;
//! 3. between the multiplications of the entry after that, what these words will read of the second table is fetched;
//! 4. at the end of one more entry, when it has surely come, they read it. Keys that pass, about two in a thousand of all,
//!    are listed;
//! 5. in the pause their top 64 bits are computed, eight at a time, and the third table beside the second is asked, then
//!    the ranges; and entries that were noted are looked at again.

use core::hint::black_box;
use core::ops::Range;

use super::ask::{Judge, Level, words};
use super::exact_top::{ExactTop, TOGETHER};
use crate::field::leading::{LISTED, Leading, Listed, SUMS};
use crate::walk::visit::{OneByOne, Orbit, SLICES, Tops, Visitor};
use crate::walk::x::sums::top;

/// Entries of which the tops are kept: those visited since the last pause, and the three before, whose keys had not read
/// the second table.
const KEPT: usize = 16;
/// Entries between two pauses.
const PAUSE: usize = KEPT - 3;

/// Entries of which the keys that passed the first table are kept, some more than needed: a power of two.
const FOUND: usize = 4;

/// The first keys of an entry that passed the first table.
#[repr(C, align(64))]
struct Found {
    words: [u32; 16],
    keys: [u8; 16],
    /// In which places there is one.
    places: u32,
}

/// What is remembered of some entries and their keys.
#[repr(C, align(64))]
struct Pending<L: Leading> {
    tops: [Tops<L>; KEPT],
    /// The words of the entry visited last, and zeros.
    words: [L::Words; SUMS + 1],
    /// The numbers of these entries. Zero is none, and its keys are none.
    index: [u32; KEPT],
    /// Of the entry visited last but one, and of those before it whose keys have not read the second table.
    found: [Found; FOUND],
    /// Keys that passed the second table, and where the tops of their entries are.
    list: Listed,
    /// Where the tops are of entries of which more keys passed the first table than were picked out; with room for one
    /// that is none.
    more: [u8; PAUSE + 1],
}

/// The visitor that asks the tables.
///
/// Nothing outside the loop gets to see it, so that all its numbers can be in registers; what has to lie in memory, since it
/// is looked up by a number or handed to functions, lies elsewhere.
pub(in crate::walk::x) struct Dense<'a, 'b, 'c, L: Leading> {
    judge: &'a mut Judge<'b, 'c>,
    pending: Box<Pending<L>>,
    /// Entries visited.
    count: usize,
    /// Which words of the last one passed the first table, as far as they have asked.
    passed: L::Answers,
    /// How many were at the last pause.
    settled: usize,
    /// How many keys passed the second table since the last pause, of which the first are listed, and how many entries
    /// were noted.
    listed: usize,
    noted: usize,
    coarse: Level<L, 1>,
    fine: Level<L, 8>,
}

impl<'a, 'b, 'c, L: ExactTop> Dense<'a, 'b, 'c, L> {
    /// Keys of a sum.
    const KEYS: usize = 2 * L::N;
    /// Words for which the second table is asked for in a slice, so that it is for all of them in the first eight.
    const FETCHED: usize = L::FIRST.div_ceil(8);

    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn new(judge: &'a mut Judge<'b, 'c>) -> Self {
        // SAFETY: the caller's.
        let (coarse, fine) = unsafe { (Level::new(judge.bits.coarse()), Level::new(judge.bits.fine())) };
        let (pending, passed) = (Pending::new(), L::Answers::default());
        Dense { judge, pending, count: 0, settled: 0, passed, listed: 0, noted: 0, coarse, fine }
    }

    /// One sum of the entry visited last: both signs in all lanes ask the first table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        // SAFETY: the caller's; the table is borrowed.
        unsafe {
            let passed = self.coarse.ask(self.pending.words[sum], u32::MAX);
            self.passed = L::answer(self.passed, sum, passed);
        }
    }

    /// Picks out the keys of the entry visited last that passed.
    #[inline(always)]
    unsafe fn pick(&mut self) {
        debug_assert!(self.noted < self.pending.more.len());
        let Pending { words: all, found, more, .. } = &mut *self.pending;
        let Found { words, keys, places } = &mut found[self.count % FOUND];
        // SAFETY: the caller's; no more are noted than entries are visited between two pauses.
        unsafe {
            let count = L::word_first(all, self.passed, keys, words);
            *places = (1 << count.min(L::FIRST as u32)) - 1;
            *more.get_unchecked_mut(self.noted) = (self.count % KEPT) as u8;
            self.noted += (count > L::FIRST as u32) as usize;
        }
    }

    /// Asks for what some of the words picked out last will read of the second table.
    #[inline(always)]
    fn fetch(&mut self, slice: usize) {
        let found = &self.pending.found[self.count.wrapping_sub(1) % FOUND];
        for i in slice * Self::FETCHED..((slice + 1) * Self::FETCHED).min(L::FIRST) {
            self.fine.fetch(found.words[i]);
        }
    }

    /// Those of the entry before read it, and the keys that pass are listed.
    #[inline(always)]
    unsafe fn read(&mut self) {
        let entry = self.count.wrapping_sub(2);
        let found = &self.pending.found[entry % FOUND];
        let mut held = 0;
        // SAFETY: the caller's; the table is borrowed. What has no room in the list is left out.
        unsafe {
            for i in (0..L::FIRST).step_by(Self::KEYS) {
                let words = L::word_load(found.words.as_ptr().add(i));
                held |= self.fine.ask(words, found.places >> i) << i;
            }
            L::key_append(&mut self.pending.list, self.listed, &found.keys, held, (entry % KEPT) as u8);
        }
        self.listed += held.count_ones() as usize;
    }

    /// Asks the third table for the keys that are listed, and all of them for the other keys of entries noted.
    #[inline(always)]
    unsafe fn settle(&mut self) {
        let pending = &*self.pending;
        let Listed { keys, slots } = &pending.list;
        // Of more keys than the list has room for nothing is taken from it.
        let listed = if self.listed <= LISTED { self.listed } else { 0 };
        // The first eight in any case: mostly there are some, and seldom more.
        let mut first = 0;
        while first == 0 || first < listed {
            let (keys, slots) = (keys[first..].first_chunk(), slots[first..].first_chunk());
            let (keys, slots) = (keys.expect("so many at a time"), slots.expect("as many"));
            // SAFETY: the caller's; slots are numbers of tops.
            let mut passed = unsafe { L::near(keys, slots, listed - first, &pending.tops, self.judge.bits) };
            while passed != 0 {
                let i = passed.trailing_zeros() as usize;
                passed &= passed - 1;
                let (sum, place) = (keys[i] as usize / Self::KEYS, keys[i] as usize % Self::KEYS);
                let (index, tops) = (pending.index[slots[i] as usize], &pending.tops[slots[i] as usize]);
                self.judge.decide(index, sum, place, top::<L>(sum, place, tops));
            }
            first += TOGETHER;
        }
        if self.listed > LISTED {
            // Then the keys picked out of the entries that have read since the last pause ask one by one.
            for count in self.settled..self.count {
                // SAFETY: the caller's.
                unsafe { self.look_again(count.wrapping_sub(2) % KEPT, 0..L::FIRST) }
            }
        }
        for noted in 0..self.noted {
            // SAFETY: the caller's.
            unsafe { self.look_again(self.pending.more[noted] as usize, L::FIRST..usize::MAX) }
        }
        (self.listed, self.noted, self.settled) = (0, 0, self.count);
    }

    /// Some keys of an entry that passed the first table ask the others one by one.
    #[inline(always)]
    unsafe fn look_again(&mut self, slot: usize, which: Range<usize>) {
        let (index, tops) = (self.pending.index[slot], &self.pending.tops[slot]);
        // SAFETY: the caller's; the table is that of the set.
        unsafe { self.judge.look_again(&self.coarse, index, tops, which) }
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

impl<L: ExactTop> Visitor<L> for Dense<'_, '_, '_, L> {
    const PAUSE: usize = PAUSE;

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
            self.fetch(slice);
            product
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        // SAFETY: the caller's.
        unsafe {
            self.read();
            self.pick();
            self.count += 1;
            let tops = orbit.tops();
            self.pending.tops[self.count % KEPT] = tops;
            self.pending.index[self.count % KEPT] = index;
            self.pending.words[..SUMS].copy_from_slice(&words::<L>(&tops));
        }
    }

    #[inline(always)]
    unsafe fn pause(&mut self) {
        // SAFETY: the caller's.
        unsafe { self.settle() }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {
        // Loops, not copies: once a group there is no hurry.
        for sum in 0..black_box(SLICES) {
            // SAFETY: the caller's.
            unsafe { self.ask(sum) }
        }
        // The last three entries, and none after them.
        for _ in 0..black_box(3) {
            // SAFETY: the caller's.
            unsafe {
                self.read();
                self.pick();
            }
            self.count += 1;
            self.passed = L::Answers::default();
        }
        for _ in 0..black_box(1) {
            // SAFETY: the caller's.
            unsafe { self.settle() }
        }
    }

    fn one_by_one(&mut self) -> impl OneByOne {
        &mut *self.judge
    }
}
