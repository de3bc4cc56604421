//! The sieve for a few prefixes: sums of top words, then, for what those let pass, the top 64 bits.

use core::marker::PhantomData;

use super::bits::SLACK;
use super::finds::Finds;
use super::settle::top;
use super::sieve::Range;
use super::{Leading, OneByOne, Orbit, Tops, Visitor};
use crate::Fe;

/// The visitor that tests words.
pub(super) struct Words<'a, 'b, L: Leading> {
    ranges: &'a [Range],
    finds: &'a mut Finds<'b>,
    skip: u32,
    lanes: PhantomData<L>,
}

/// The factor of T0 for each (p, q), p * 3 + q: j = p - k with k = q - p, modulo 3.
pub(super) const fn image_of(p: usize, q: usize) -> usize {
    (2 * p + 3 - q) % 3
}

/// The powers of beta on T0, T1, T2 in a sum.
pub(super) const fn powers(sum: usize) -> [usize; 3] {
    let (p, q) = (sum / 3, sum % 3);
    [image_of(p, q), p, q]
}

/// The words of the nine keys from those of T0, T1, T2 times 1, beta, beta^2.
///
/// # Safety
/// As for all of [`Leading`].
#[inline(always)]
pub(super) unsafe fn sums<L: Leading>([t0, t1, t2]: &[[L::Words; 3]; 3]) -> [L::Words; 9] {
    let mut words = [t0[0]; 9];
    for p in 0..3 {
        for q in 0..3 {
            // SAFETY: the caller's.
            words[p * 3 + q] = unsafe { L::word_add(L::word_add(t1[p], t2[q]), t0[image_of(p, q)]) };
        }
    }
    words
}

/// The top 64 bits of x: 2^64 x/p rounded down, off by less than one.
pub(super) fn top64(x: Fe) -> u64 {
    x.to_words()[0]
}

impl<'a, 'b, L: Leading> Words<'a, 'b, L> {
    pub fn new(ranges: &'a [Range], finds: &'a mut Finds<'b>) -> Self {
        Words { ranges, finds, skip: 0, lanes: PhantomData }
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

impl<L: Leading> Visitor<L> for Words<'_, '_, L> {
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

impl<L: Leading> OneByOne for Words<'_, '_, L> {
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
