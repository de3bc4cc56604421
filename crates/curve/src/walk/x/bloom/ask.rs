//! What both sieves for many prefixes share: the words of an entry's keys, and the end of a candidate.

use core::ops::Range;

use crate::Fe;
use crate::field::bloom::Marked;
use crate::field::leading::{Leading, SUMS};
use crate::walk::visit::{OneByOne, Tops};
use crate::walk::x::bits::{Bits, SLACK};
use crate::walk::x::finds::Finds;
use crate::walk::x::sums::{sums, top, top64};

/// The words of one term times 1, beta and beta^2.
#[inline(always)]
unsafe fn term_words<L: Leading>([a, b]: &[[L::Tops; 2]; 2]) -> [L::Words; 3] {
    // SAFETY: the caller's.
    unsafe {
        // beta^2 = -1 - beta. The word of -s is the complement of that of s, or one more where the rest of s is zero.
        let s = L::tops_words(L::tops_add(a[0], b[0]), L::tops_add(a[1], b[1]));
        [L::tops_words(a[0], a[1]), L::tops_words(b[0], b[1]), L::word_sub(L::word_splat(u32::MAX), s)]
    }
}

/// The words of an entry's nine keys of either side in all lanes.
///
/// # Safety
/// As for all of [`Leading`].
#[inline(always)]
pub(super) unsafe fn words<L: Leading>([t0, t1, t2]: &Tops<L>) -> [L::Words; SUMS] {
    // SAFETY: the caller's.
    unsafe { sums::<L>(&[term_words::<L>(t0), term_words::<L>(t1), term_words::<L>(t2)]) }
}

/// A table with entries some bytes apart, and how it is asked.
#[derive(Clone, Copy)]
pub(super) struct Level<L: Leading, const STRIDE: usize> {
    table: *const u8,
    /// By how much a word is shifted to be the number of its entry.
    shift: u32,
    asker: L::Asker,
}

impl<L: Leading, const STRIDE: usize> Level<L, STRIDE> {
    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn new(Marked { table, log2 }: Marked<STRIDE>) -> Self {
        // SAFETY: the caller's.
        Level { table, shift: 32 - log2, asker: unsafe { L::asker::<STRIDE>(log2) } }
    }

    /// Begins to fetch what a word will read.
    #[inline(always)]
    pub fn fetch(&self, word: u32) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = self.table.wrapping_add((word >> self.shift) as usize * STRIDE);
            // SAFETY: a hint.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (word, self.shift);
    }

    /// Asks this level: bit i is set where the word in place i passes.
    ///
    /// # Safety
    /// As for all of [`Leading`]; the table must still exist, with entries `STRIDE` bytes apart.
    #[inline(always)]
    pub unsafe fn ask(&self, words: L::Words, asking: u32) -> u32 {
        // SAFETY: the caller's.
        unsafe { L::word_ask::<STRIDE>(words, self.table, &self.asker, asking) }
    }
}

/// Where what passed the tables ends: in the hits, or nowhere.
pub(in crate::walk::x) struct Judge<'a, 'b> {
    pub bits: &'a Bits,
    finds: &'a mut Finds<'b>,
    skip: u32,
}

impl<'a, 'b> Judge<'a, 'b> {
    pub fn new(bits: &'a Bits, finds: &'a mut Finds<'b>) -> Self {
        Judge { bits, finds, skip: 0 }
    }

    /// See [`crate::walk::visit::Visitor::centre`].
    ///
    /// # Safety
    /// As for all of [`Leading`].
    #[inline(always)]
    pub unsafe fn centre<L: Leading>(&mut self, c: L, skip: u32) {
        self.skip = skip;
        for lane in (0..L::N).filter(|l| skip >> l & 1 == 0) {
            // SAFETY: the caller's.
            self.point(lane as u32, 0, false, 0, unsafe { c.lane(lane) });
        }
    }

    /// Decides a key that passed the first two tables: the one in the given place of the words of a sum, with this top.
    /// Entry 0 is none.
    pub fn decide(&mut self, index: u32, sum: usize, place: usize, top: u64) {
        if index != 0
            && self.skip >> (place / 2) & 1 == 0
            && self.bits.near(top)
            && let Some(range) = self.bits.range_near(top, SLACK)
        {
            self.finds.near(index, sum, place, range, top);
        }
    }

    /// Asks both tables for keys of an entry, one by one, and decides those that pass: for `which` of the keys that pass the
    /// first, in their order.
    ///
    /// # Safety
    /// As for all of [`Leading`]; the first table must be that of the judge's own set.
    #[inline(always)]
    pub(super) unsafe fn look_again<L: Leading, const STRIDE: usize>(
        &mut self,
        first: &Level<L, STRIDE>,
        index: u32,
        tops: &Tops<L>,
        which: Range<usize>,
    ) {
        let mut number = 0;
        // SAFETY: the caller's, here and below.
        for (sum, words) in unsafe { words::<L>(tops) }.iter().enumerate() {
            // SAFETY: the table is borrowed with the set.
            let mut passed = unsafe { first.ask(*words, u32::MAX) };
            while passed != 0 {
                let place = passed.trailing_zeros() as usize;
                passed &= passed - 1;
                number += 1;
                if !which.contains(&(number - 1)) {
                    continue;
                }
                // SAFETY: words exist only where their instruction set does.
                let word = unsafe { L::word(words, place / 2, place % 2) };
                if self.bits.may_hold(word) {
                    self.decide(index, sum, place, top::<L>(sum, place, tops));
                }
            }
        }
    }
}

impl OneByOne for Judge<'_, '_> {
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        let mut image = x;
        for j in 0..3 {
            if self.bits.holds_exactly(top64(image)) {
                self.finds.certain(lane, index, minus, orbit, j);
            }
            image = image.mul(Fe::BETA);
        }
    }
}
