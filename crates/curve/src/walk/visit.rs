//! What a walk hands to those who look at its keys, and what it asks of them.

use crate::Fe;
use crate::field::lanes::Lanes;
use crate::field::leading::{Leading, SUMS};

/// What the keys around one entry are made of: T0 = n^2 U - c, T1 = n^2 V - t, T2 = n^2 W.
pub(crate) struct Orbit<L> {
    /// n^2 of the plus and the minus side, and the same times beta; raw.
    pub(super) squares: [[L; 2]; 2],
    /// U, V, W; raw.
    pub(super) factors: [L; 3],
    /// -c and -t, and the same times beta; tight.
    pub(super) addends: [[L; 2]; 2],
}

/// Tops of T0, T1, T2: [term][times 1, times beta][side].
pub(crate) type Tops<L> = [[[<L as Leading>::Tops; 2]; 2]; 3];

impl<L: Lanes> Orbit<L> {
    /// T0, T1, T2 of one side; tight.
    #[inline(always)]
    pub(super) unsafe fn terms(&self, side: usize) -> [L; 3] {
        let (square, [u, v, w], [c, t]) = (self.squares[0][side], self.factors, self.addends[0]);
        // SAFETY: the caller's.
        unsafe { [square.mul_add(u, c), square.mul_add(v, t), square.mul(w)] }
    }
}

impl<L: Leading> Orbit<L> {
    /// Their tops.
    #[inline(always)]
    pub(super) unsafe fn tops(&self) -> Tops<L> {
        // SAFETY: the caller's.
        unsafe {
            let none = L::splat(&L::constant(Fe::ZERO));
            let [a, b] = self.addends;
            [
                self.term_tops(self.factors[0], [a[0], b[0]]),
                self.term_tops(self.factors[1], [a[1], b[1]]),
                self.term_tops(self.factors[2], [none, none]),
            ]
        }
    }

    /// Those of one.
    #[inline(always)]
    unsafe fn term_tops(&self, factor: L, [a, b]: [L; 2]) -> [[L::Tops; 2]; 2] {
        let [s, image] = self.squares;
        // SAFETY: the caller's.
        unsafe {
            let (a, b) = (a.tops(), b.tops());
            [
                [s[0].product_tops(factor, a), s[1].product_tops(factor, a)],
                [image[0].product_tops(factor, b), image[1].product_tops(factor, b)],
            ]
        }
    }
}

/// Slices of work an entry leaves room for: one for each of its sums.
pub(crate) const SLICES: usize = SUMS;

/// What is done with the keys of a group.
pub(crate) trait Visitor<L: Lanes> {
    /// Whether it reads leading bits, for which squares are multiplied by beta too.
    const LEADING: bool = true;
    /// A group begins; its centres are `c`. Lanes in `skip` (bit mask) are done by `one_by_one` instead.
    unsafe fn centre(&mut self, c: L, skip: u32);
    /// The keys around one entry.
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>);
    /// Called once for each slice 0..SLICES between the multiplications of every entry, before its `orbit`: for work
    /// that has time, so that its waiting is filled with multiplications. Hands on the product that was just formed.
    #[inline(always)]
    unsafe fn between(&mut self, _slice: usize, product: L) -> L {
        product
    }
    /// After how many entries there is a pause, at the latest.
    const PAUSE: usize = usize::MAX;
    /// A pause, of which there is one after the last entry too: for work that calls functions, before which the walk has
    /// to store what it keeps in registers.
    #[inline(always)]
    unsafe fn pause(&mut self) {}
    /// The last entry of the group was visited.
    #[inline(always)]
    unsafe fn finish(&mut self) {}
    /// Who takes the points of lanes the formulas do not hold for. Not the visitor itself, where it is to keep things in
    /// registers: what is handed to a function that is called lies in memory.
    fn one_by_one(&mut self) -> impl OneByOne;
}

/// What is done with points one by one.
pub(crate) trait OneByOne {
    /// One point, whose three images are to be tested.
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe);
}

impl<E: OneByOne> OneByOne for &mut E {
    fn point(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        (**self).point(lane, index, minus, orbit, x);
    }
}
