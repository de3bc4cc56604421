//! The sieve for some prefixes, up to some ten thousand: the first table lets few entries pass.
//!
//! Between the multiplications of the next entry, a slice at a time, the nine sums of an entry ask the table, which
//! takes load ports and time the multiplications leave free. Only whether any of the keys passed is looked at. An entry
//! of which one did is noted without a branch: a wrong guess would throw away what the processor has begun of the next
//! one, which costs more than all the asking. When the group is done the entries noted ask again, sum by sum, and their
//! keys go on to the second table and to the ranges.

use core::hint::black_box;

use super::ask::{Judge, Level, words};
use crate::Fe;
use crate::field::leading::Leading;
use crate::walk::visit::{OneByOne, Orbit, SLICES, Tops, Visitor};
use crate::walk::x::bits::Bits;
use crate::walk::x::finds::Finds;

/// An entry of which a key passed. Number 0 is no entry.
struct Noted<L: Leading> {
    index: u32,
    tops: Tops<L>,
}

/// The visitor that asks the table.
pub(in crate::walk::x) struct Sparse<'a, 'b, L: Leading> {
    judge: Judge<'a, 'b>,
    /// How many entries were noted; the one visited last follows, and there is room for all of the group.
    count: usize,
    noted: Vec<Noted<L>>,
    /// Its words, and in which places a key of the sums that have asked passed.
    words: [L::Words; SLICES],
    passed: u32,
    coarse: Level<L, 4>,
}

impl<'a, 'b, L: Leading> Sparse<'a, 'b, L> {
    /// For groups of as many entries.
    ///
    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn new(entries: usize, bits: &'a Bits, finds: &'a mut Finds<'b>) -> Self {
        let judge = Judge::new(bits, finds);
        // SAFETY: the caller's.
        let (coarse, word, top) =
            unsafe { (Level::new(bits.coarse()), L::word_splat(0), L::splat(&L::constant(Fe::ZERO)).tops()) };
        // Memory that is not written is not taken.
        let mut noted = Vec::with_capacity(entries + 2);
        noted.push(Noted { index: 0, tops: [[[top; 2]; 2]; 3] });
        Sparse { judge, count: 0, noted, words: [word; SLICES], passed: 0, coarse }
    }

    /// One sum of the entry visited last asks the table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        // SAFETY: the caller's; the table is borrowed.
        unsafe { self.passed |= self.coarse.ask(self.words[sum], u32::MAX) }
    }

    /// Keeps the note of the entry visited last where a key of it passed.
    #[inline(always)]
    fn keep(&mut self) {
        self.count += (self.passed != 0) as usize;
        self.passed = 0;
    }
}

impl<L: Leading> Visitor<L> for Sparse<'_, '_, L> {
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
        // SAFETY: the caller's; with the one that is none, no more were noted than entries visited, and there is room
        // for one more than the group has.
        unsafe {
            self.keep();
            debug_assert!(self.count < self.noted.capacity());
            let tops = orbit.tops();
            self.noted.as_mut_ptr().add(self.count).write(Noted { index, tops });
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
        // SAFETY: the caller's; so many were written.
        unsafe {
            self.keep();
            self.noted.set_len(self.count);
        }
        for Noted { index, tops } in self.noted.iter().filter(|noted| noted.index != 0) {
            // SAFETY: the caller's; the table is that of the set.
            unsafe { self.judge.look_again(&self.coarse, *index, tops, 0..usize::MAX) }
        }
    }

    fn one_by_one(&mut self) -> impl OneByOne {
        &mut self.judge
    }
}
