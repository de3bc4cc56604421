//! The sieve that reads all of x: masks and linear equations over its bits, for suffixes and what may stand
//! anywhere.

use core::marker::PhantomData;

use crate::Fe;
use crate::field::lanes::Lanes;
use crate::field::term::Term;
use crate::walk::place::{Hit, Place};
use crate::walk::visit::{OneByOne, Orbit, Visitor};

/// The visitor that forms every x.
pub(super) struct AllBits<'a, L> {
    terms: &'a [Term],
    step: u64,
    hits: &'a mut Vec<Hit>,
    skip: u32,
    lanes: PhantomData<L>,
}

impl<'a, L: Lanes> AllBits<'a, L> {
    pub fn new(terms: &'a [Term], step: u64, hits: &'a mut Vec<Hit>) -> Self {
        AllBits { terms, step, hits, skip: 0, lanes: PhantomData }
    }

    /// x, beta x and beta^2 x of a tight element, tight: 2 M.
    #[inline(always)]
    unsafe fn images(x: L) -> [L; 3] {
        // SAFETY: the caller's.
        unsafe {
            let image = x.mul(L::splat(&L::constant(Fe::BETA)));
            let square = image.mul(L::splat(&L::constant(Fe::BETA)));
            [x, image, square]
        }
    }
}

impl<L: Lanes> Visitor<L> for AllBits<'_, L> {
    const LEADING: bool = false;

    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        self.skip = skip;
        for lane in (0..L::N).filter(|l| skip >> l & 1 == 0) {
            // SAFETY: the caller's.
            self.point(lane as u32, 0, false, 0, unsafe { c.lane(lane) });
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        // SAFETY: the caller's.
        unsafe {
            for side in 0..2 {
                let [t0, t1, t2] = orbit.terms(side);
                let (t0, t1, t2) = (Self::images(t0), Self::images(t1), Self::images(t2));
                for at in 0..9 {
                    let (p, q) = (at / 3, at % 3);
                    let j = (2 * p + 3 - q) % 3;
                    let x = t1[p].add(t2[q]).add(t0[j]);
                    let wide = x.wide();
                    let mut passed = 0;
                    for term in self.terms {
                        passed |= L::wide_accepts(&wide, term);
                    }
                    passed &= !self.skip;
                    while passed != 0 {
                        let lane = passed.trailing_zeros();
                        passed &= passed - 1;
                        let place = Place {
                            lane,
                            step: self.step,
                            index,
                            minus: side == 1,
                            orbit: ((q + 3 - p) % 3) as u8,
                            image: j as u8,
                            negate: false,
                        };
                        let x = x.lane(lane as usize).canonical();
                        self.hits.push(Hit { place, x: Some(x) });
                    }
                }
            }
        }
    }

    fn one_by_one(&mut self) -> impl OneByOne {
        self
    }
}

impl<L: Lanes> OneByOne for AllBits<'_, L> {
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        let mut x = x.canonical();
        for image in 0..3 {
            let words = x.to_words();
            if self.terms.iter().any(|t| t.accepts(&words)) {
                let place = Place { lane, step: self.step, index, minus, orbit, image, negate: false };
                self.hits.push(Hit { place, x: Some(x) });
            }
            x = x.mul(Fe::BETA).canonical();
        }
    }
}
