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
//! 4. at its end they read it. Keys that pass, about two in a thousand of all, are listed;
//! 5. in the pause their top 64 bits are computed and the third table beside the second is asked, then the ranges, and
//!    entries that were noted are looked at again.

use core::hint::black_box;

use super::bits::Bits;
use super::many::{Judge, Level, top, words};
use super::{Hit, Leading, Orbit, SLICES, Tops, Visitor};
use crate::Fe;
use crate::field::leading::SUMS;

/// Entries of which the tops are kept: those visited since the last pause, and the two before, whose keys had not read
/// the second table.
const KEPT: usize = 16;
/// Entries between two pauses.
const PAUSE: usize = KEPT - 2;
/// Keys that can be listed until then.
const LISTED: usize = PAUSE * 16;

/// The first keys of an entry that passed the first table.
#[repr(C, align(64))]
struct Found {
    words: [u32; 16],
    keys: [u8; 16],
    /// How many did in all.
    count: u32,
}

/// What is remembered of some entries and their keys.
#[repr(C, align(64))]
struct Pending<L: Leading> {
    tops: [Tops<L>; KEPT],
    /// The numbers of these entries. Zero is none, and its keys are none.
    index: [u32; KEPT],
    /// Of the entry visited last but one, and of the one before that.
    found: [Found; 2],
    /// Keys that passed the second table, and where the tops of their entries are; with room for a vector at the end.
    keys: [u8; LISTED + 16],
    slots: [u8; LISTED + 16],
    /// Where the tops are of entries of which more keys passed than were picked out; with room for one that is none.
    more: [u8; PAUSE + 1],
}

/// The visitor that asks the tables.
pub(super) struct Dense<'a, L: Leading> {
    judge: Judge<'a>,
    pending: Box<Pending<L>>,
    /// Entries visited.
    count: usize,
    /// The words of the last one, and zeros; and which of them passed the first table, as far as they have asked.
    words: [L::Words; SUMS + 1],
    passed: [u16; SUMS],
    /// How many keys are listed, and how many entries noted.
    listed: usize,
    noted: usize,
    coarse: Level<L, 1>,
    fine: Level<L, 8>,
}

impl<'a, L: Leading> Dense<'a, L> {
    /// Keys of a sum.
    const KEYS: usize = 2 * L::N;
    /// Words for which the second table is asked for in a slice, so that it is for all of them in the first eight.
    const FETCHED: usize = L::FIRST.div_ceil(8);

    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn new(bits: &'a Bits, step: u64, hits: &'a mut Vec<Hit>) -> Self {
        // SAFETY: the caller's.
        let (coarse, fine, word) =
            unsafe { (Level::new(bits.coarse()), Level::new(bits.fine()), L::word_splat(0)) };
        let judge = Judge::new(bits, step, hits);
        let (words, passed) = ([word; SUMS + 1], [0; SUMS]);
        Dense { judge, pending: Pending::new(), count: 0, words, passed, listed: 0, noted: 0, coarse, fine }
    }

    /// One sum of the entry visited last: both signs in all lanes ask the first table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        // SAFETY: the caller's; the table is borrowed.
        self.passed[sum] = unsafe { self.coarse.ask(self.words[sum], u32::MAX) } as u16;
    }

    /// Picks out the keys of the entry visited last that passed.
    #[inline(always)]
    unsafe fn pick(&mut self) {
        debug_assert!(self.noted < self.pending.more.len());
        let Found { words, keys, count } = &mut self.pending.found[self.count % 2];
        // SAFETY: the caller's; no more are noted than entries are visited between two pauses.
        unsafe {
            *count = L::word_first(&self.words, &self.passed, keys, words);
            *self.pending.more.get_unchecked_mut(self.noted) = (self.count % KEPT) as u8;
            self.noted += (*count > L::FIRST as u32) as usize;
        }
    }

    /// Asks for what some of the words picked out last will read of the second table.
    #[inline(always)]
    fn fetch(&mut self, slice: usize) {
        let found = &self.pending.found[self.count.wrapping_sub(1) % 2];
        for i in slice * Self::FETCHED..((slice + 1) * Self::FETCHED).min(L::FIRST) {
            self.judge.bits.prefetch(found.words[i]);
        }
    }

    /// These words read it, and the keys that pass are listed.
    #[inline(always)]
    unsafe fn read(&mut self) {
        debug_assert!(self.listed <= LISTED);
        let entry = self.count.wrapping_sub(1);
        let found = &self.pending.found[entry % 2];
        let asking = (1 << found.count.min(L::FIRST as u32)) - 1;
        let mut held = 0;
        // SAFETY: the caller's; the table is borrowed; between two pauses no more are listed than there is room for, and
        // a vector fits after these.
        unsafe {
            for i in (0..L::FIRST).step_by(Self::KEYS) {
                let words = L::word_load(found.words.as_ptr().add(i));
                held |= self.fine.ask(words, asking >> i) << i;
            }
            let (keys, slots) = (self.pending.keys.as_mut_ptr(), self.pending.slots.as_mut_ptr());
            slots.add(self.listed).cast::<[u8; 16]>().write([(entry % KEPT) as u8; 16]);
            self.listed += L::key_append(&found.keys, held, keys.add(self.listed));
        }
    }

    /// Asks the third table for the keys that are listed, and all of them for the other keys of entries noted.
    #[inline(always)]
    unsafe fn settle(&mut self) {
        let pending = &*self.pending;
        for (&key, &slot) in pending.keys.iter().zip(&pending.slots).take(self.listed) {
            let (sum, place, slot) = (key as usize / Self::KEYS, key as usize % Self::KEYS, slot as usize);
            let top = top::<L>(sum, place, &pending.tops[slot]);
            if self.judge.bits.near(top) {
                self.judge.decide(pending.index[slot], sum, place, top);
            }
        }
        for &slot in &pending.more[..self.noted] {
            let (index, tops) = (pending.index[slot as usize], &pending.tops[slot as usize]);
            // SAFETY: the caller's; the table is that of the set.
            unsafe { self.judge.look_again(&self.coarse, index, tops, L::FIRST) }
        }
        (self.listed, self.noted) = (0, 0);
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
            self.words[..SUMS].copy_from_slice(&words::<L>(&tops));
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
        // The last two entries, and none after them.
        for _ in 0..black_box(2) {
            // SAFETY: the caller's.
            unsafe {
                self.read();
                self.pick();
            }
            self.count += 1;
            self.passed = [0; SUMS];
        }
        for _ in 0..black_box(1) {
            // SAFETY: the caller's.
            unsafe { self.settle() }
        }
    }

    fn exact(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        self.judge.exact(lane, index, minus, orbit, x);
    }
}
