//! The sieve for a few prefixes: sums of top words, then, for what those let pass, the top 64 bits.

use core::marker::PhantomData;

use super::bits::SLACK;
use super::settle::top;
use super::sieve::Range;
use super::{Hit, Leading, OneByOne, Orbit, Place, Tops, Visitor};
use crate::Fe;

/// The visitor that tests words.
pub(super) struct Words<'a, L: Leading> {
    ranges: &'a [Range],
    step: u64,
    hits: &'a mut Vec<Hit>,
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

impl<'a, L: Leading> Words<'a, L> {
    pub fn new(ranges: &'a [Range], step: u64, hits: &'a mut Vec<Hit>) -> Self {
        Words { ranges, step, hits, skip: 0, lanes: PhantomData }
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

    /// Whether an x whose top 64 bits are within `slack` of `value` may.
    fn confirms(&self, value: u64, slack: u64) -> bool {
        self.ranges.iter().any(|r| r.holds(value, slack))
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
                let (lane, side) = (place / 2, place % 2);
                // SAFETY: words exist only where their instruction set does.
                if self.accepts(unsafe { L::word(words, lane, side) })
                    && self.confirms(top::<L>(sum, place, tops), SLACK)
                {
                    let (p, q) = (sum / 3, sum % 3);
                    let (orbit, image) = (((q + 3 - p) % 3) as u8, image_of(p, q) as u8);
                    self.push(lane as u32, index, side == 1, orbit, image);
                }
            }
        }
    }

    fn push(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, image: u8) {
        let place = Place { lane, step: self.step, index, minus, orbit, image, negate: false };
        self.hits.push(Hit { place, x: None });
    }
}

impl<L: Leading> Visitor<L> for Words<'_, L> {
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

impl<L: Leading> OneByOne for Words<'_, L> {
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        let mut image = x;
        for j in 0..3 {
            if self.confirms(top64(image), 1) {
                self.push(lane, index, minus, orbit, j);
            }
            image = image.mul(Fe::BETA);
        }
    }
}
