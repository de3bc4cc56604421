//! Sieves: which keys of a walk are worth a second look. Numbers only; the engine makes them from patterns.
//!
//! A sieve may let a key pass that nobody asked for, never hold one back.

mod all_bits;
mod bits;
mod bloom;
mod few;
mod finds;
mod pages;
mod range;
mod sums;

pub use bits::Bits;
pub use range::Range;

use super::lanewise::Lanewise;
use super::place::Hit;
use super::visit::{OneByOne, Orbit, Visitor};
use crate::Fe;
use crate::field::lanes::Lanes;
use crate::field::term::Term;
use all_bits::AllBits;
use bloom::exact_top::ExactTop;
use bloom::{Dense, Judge, Sparse};
use few::Few;
use finds::Finds;

/// What a walk looks for. Each thread should have a copy; what is large is shared by all of them (see [`Bits`]).
#[derive(Clone, Default)]
pub struct Sieve {
    /// Ranges of the top bits, each compared in turn: for a few.
    pub ranges: Vec<Range>,
    /// Ranges of the top bits as a bitmap: for many.
    pub bits: Option<Bits>,
    /// Conditions on all of x.
    pub terms: Vec<Term>,
}

impl Sieve {
    /// Whether an x known in full passes: the reference for a device's answers.
    pub fn may_hold(&self, x: Fe) -> bool {
        let words = x.to_words();
        self.ranges.iter().any(|r| r.holds(words[0], 1))
            || self.bits.as_ref().is_some_and(|b| b.holds(words[0], 1))
            || self.terms.iter().any(|t| t.accepts(&words))
    }
}

/// Two visitors of one walk.
struct Both<A, B>(A, B);

impl<L: Lanes, A: Visitor<L>, B: Visitor<L>> Visitor<L> for Both<A, B> {
    const LEADING: bool = A::LEADING || B::LEADING;
    const PAUSE: usize = if A::PAUSE < B::PAUSE { A::PAUSE } else { B::PAUSE };

    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        // SAFETY: the caller's.
        unsafe {
            self.0.centre(c, skip);
            self.1.centre(c, skip);
        }
    }
    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        // SAFETY: the caller's.
        unsafe {
            self.0.orbit(index, orbit);
            self.1.orbit(index, orbit);
        }
    }
    #[inline(always)]
    unsafe fn between(&mut self, slice: usize, product: L) -> L {
        // SAFETY: the caller's.
        unsafe { self.1.between(slice, self.0.between(slice, product)) }
    }
    #[inline(always)]
    unsafe fn pause(&mut self) {
        // SAFETY: the caller's.
        unsafe {
            self.0.pause();
            self.1.pause();
        }
    }
    #[inline(always)]
    unsafe fn finish(&mut self) {
        // SAFETY: the caller's.
        unsafe {
            self.0.finish();
            self.1.finish();
        }
    }
    fn one_by_one(&mut self) -> impl OneByOne {
        Both(self.0.one_by_one(), self.1.one_by_one())
    }
}

impl<A: OneByOne, B: OneByOne> OneByOne for Both<A, B> {
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        self.0.point(lane, index, minus, orbit, x);
        self.1.point(lane, index, minus, orbit, x);
    }
}

/// Walks one group with the visitors the sieve calls for.
///
/// # Safety
/// As for all of [`Lanes`].
#[inline(always)]
pub(super) unsafe fn run<L: ExactTop>(
    walk: &mut Lanewise<'_, L>,
    sieve: &Sieve,
    step: u64,
    hits: &mut Vec<Hit>,
) -> u64 {
    let first = hits.len();
    let centres = (walk.x, walk.y);
    let mut finds = Finds::new(step, hits);
    let mut full_hits = Vec::new();
    let entries = walk.table.entries.len();
    // SAFETY: the caller's.
    let keys = unsafe {
        match (&sieve.bits, &sieve.terms[..]) {
            (None, []) => walk.group(&mut Few::new(&sieve.ranges, &mut finds)),
            (Some(bits), []) if bits.is_sparse() => {
                walk.group(&mut Sparse::<L>::new(entries, bits, &mut finds))
            }
            (Some(bits), []) => walk.group(&mut Dense::<L>::new(&mut Judge::new(bits, &mut finds))),
            (None, terms) => walk.group(&mut Both(
                Few::new(&sieve.ranges, &mut finds),
                AllBits::new(terms, step, &mut full_hits),
            )),
            (Some(bits), terms) if bits.is_sparse() => walk.group(&mut Both(
                Sparse::<L>::new(entries, bits, &mut finds),
                AllBits::new(terms, step, &mut full_hits),
            )),
            (Some(bits), terms) => walk.group(&mut Both(
                Dense::<L>::new(&mut Judge::new(bits, &mut finds)),
                AllBits::new(terms, step, &mut full_hits),
            )),
        }
    };
    for place in finds.doubtful() {
        // SAFETY: the caller's; the place is of this group, in a lane for which the formulas hold.
        let x = unsafe { walk.x_of(centres, &place) };
        if sieve.may_hold(x) {
            hits.push(Hit { place, x: Some(x) });
        }
    }
    // A key both visitors accept is one hit; the one that knows x is kept.
    if !full_hits.is_empty() {
        hits.append(&mut full_hits);
        hits[first..].sort_by_key(|h| (h.place, h.x.is_none()));
        let mut seen = None;
        let mut at = 0;
        hits.retain(|h| {
            at += 1;
            at <= first || seen.replace(h.place) != Some(h.place)
        });
    }
    keys
}
