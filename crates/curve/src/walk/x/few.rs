//! The sieve for a few prefixes: sums of top words, then, for what those let pass, the top 64 bits.

use core::marker::PhantomData;

use super::bits::SLACK;
use super::finds::Finds;
use super::range::Range;
use super::sums::{sums, top, top64};
use crate::Fe;
use crate::field::leading::Leading;
use crate::walk::visit::{OneByOne, Orbit, Tops, Visitor};

/// The visitor that tests words.
pub(super) struct Few<'a, 'b, L: Leading> {
    ranges: &'a [Range],
    finds: &'a mut Finds<'b>,
    skip: u32,
    lanes: PhantomData<L>,
}

impl<'a, 'b, L: Leading> Few<'a, 'b, L> {
    pub fn new(ranges: &'a [Range], finds: &'a mut Finds<'b>) -> Self {
        Few { ranges, finds, skip: 0, lanes: PhantomData }
    }

    /// Whether any of the words may belong to a key in a range.
    #[inline(always)]
    unsafe fn any(&self, words: &[L::Words; 9]) -> bool {
        let mut any = false;
        for range in self.ranges {
            let (base, width) = range.widened();
            // SAFETY: the caller's.
            unsafe {
                let base = L::word_splat(base);
                let mut least = L::word_sub(words[0], base);
                for &w in &words[1..] {
                    least = L::word_min(least, L::word_sub(w, base));
                }
                any |= L::word_any_at_most(least, width);
            }
        }
        any
    }

    /// Whether this word may.
    fn accepts(&self, word: u32) -> bool {
        self.ranges.iter().any(|r| {
            let (base, width) = r.widened();
            word.wrapping_sub(base) <= width
        })
    }

    /// The range in which an x whose top 64 bits are within `slack` of `value` may lie.
    fn range_near(&self, value: u64, slack: u64) -> Option<Range> {
        self.ranges.iter().copied().find(|r| r.holds(value, slack))
    }

    /// beta^2 = -1 - beta.
    #[inline(always)]
    unsafe fn third(a: L::Words, b: L::Words) -> L::Words {
        // SAFETY: the caller's.
        unsafe { L::word_sub(L::word_splat(0), L::word_add(a, b)) }
    }

    /// The words of a term times 1, beta and beta^2. A function, not a closure: closures do not inherit the
    /// instruction set, and every operation in one becomes a call.
    #[inline(always)]
    unsafe fn images([a, b]: &[[L::Tops; 2]; 2]) -> [L::Words; 3] {
        // SAFETY: the caller's.
        unsafe {
            let (a, b) = (L::tops_words(a[0], a[1]), L::tops_words(b[0], b[1]));
            [a, b, Self::third(a, b)]
        }
    }

    /// Looks at each key of an entry of which some word was accepted.
    #[cold]
    #[inline(never)]
    fn sort_out(&mut self, index: u32, words: &[L::Words; 9], tops: &Tops<L>) {
        let skip = self.skip;
        for (sum, words) in words.iter().enumerate() {
            for place in (0..2 * L::N).filter(|place| skip >> (place / 2) & 1 == 0) {
                // SAFETY: words exist only where their instruction set does.
                if !self.accepts(unsafe { L::word(words, place / 2, place % 2) }) {
                    continue;
                }
                let top = top::<L>(sum, place, tops);
                if let Some(range) = self.range_near(top, SLACK) {
                    self.finds.near(index, sum, place, range, top);
                }
            }
        }
    }
}

impl<L: Leading> Visitor<L> for Few<'_, '_, L> {
    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        // SAFETY: the caller's.
        unsafe {
            self.skip = skip;
            for lane in (0..L::N).filter(|l| skip >> l & 1 == 0) {
                self.point(lane as u32, 0, false, 0, c.lane(lane));
            }
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        // SAFETY: the caller's.
        unsafe {
            let tops = orbit.tops();
            let [t0, t1, t2] = &tops;
            let words = sums::<L>(&[Self::images(t0), Self::images(t1), Self::images(t2)]);
            if self.any(&words) {
                self.sort_out(index, &words, &tops);
            }
        }
    }

    fn one_by_one(&mut self) -> impl OneByOne {
        self
    }
}

impl<L: Leading> OneByOne for Few<'_, '_, L> {
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        let mut image = x;
        for j in 0..3 {
            if self.range_near(top64(image), 1).is_some() {
                self.finds.certain(lane, index, minus, orbit, j);
            }
            image = image.mul(Fe::BETA);
        }
    }
}
