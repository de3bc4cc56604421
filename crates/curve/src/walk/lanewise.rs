//! The walk itself: a group of keys in every lane, by the formulas in the head of this folder.

use super::exact;
use super::place::{KEYS_PER_CENTRE, KEYS_PER_ENTRY, Place};
use super::table::Entries;
use super::visit::{Orbit, Visitor};
use crate::field::lanes::{self, Lanes};
use crate::group::{self, Point};
use crate::{Affine, Fe};

/// The state of N parallel walkers over one table.
pub(super) struct Lanewise<'t, L: Lanes> {
    pub table: &'t Entries<L>,
    pub x: L,
    pub y: L,
    /// Lanes whose centre is the point at infinity.
    infinite: u32,
    /// Prefix products, one an entry.
    pub before: Vec<L>,
}

impl<'t, L: Lanes> Lanewise<'t, L> {
    /// # Safety
    /// As for all of [`Lanes`].
    #[inline(always)]
    pub unsafe fn new(table: &'t Entries<L>, starts: &[Point]) -> Self {
        assert_eq!(starts.len(), L::N);
        // SAFETY: the caller's.
        unsafe {
            let one = L::splat(&L::constant(Fe::ONE));
            let mut walk = Lanewise { table, x: one, y: one, infinite: 0, before: Vec::new() };
            for (lane, &start) in starts.iter().enumerate() {
                walk.place(lane, start);
            }
            walk.before.resize(table.entries.len(), one);
            walk
        }
    }

    /// Puts one lane's centre somewhere.
    #[inline(always)]
    pub unsafe fn place(&mut self, lane: usize, point: Point) {
        // A lane at infinity holds some point of the curve, so that the other lanes' arithmetic is undisturbed.
        let Affine { x, y } = point.unwrap_or(Affine::G);
        // SAFETY: the caller's.
        unsafe {
            self.x = self.x.with_lane(lane, x);
            self.y = self.y.with_lane(lane, y);
        }
        self.infinite = self.infinite & !(1 << lane) | u32::from(point.is_none()) << lane;
    }

    #[inline(always)]
    unsafe fn centre(&self, lane: usize) -> Point {
        // SAFETY: the caller's.
        let at = unsafe { Affine { x: self.x.lane(lane), y: self.y.lane(lane) } };
        (self.infinite >> lane & 1 == 0).then_some(at)
    }

    #[inline(always)]
    pub unsafe fn centres(&self) -> Vec<Point> {
        let mut centres = Vec::with_capacity(L::N);
        for lane in 0..L::N {
            // SAFETY: the caller's.
            centres.push(unsafe { self.centre(lane) });
        }
        centres
    }

    /// The x of one key of the group around `centres`, with an inversion of its own. Its lane must not have left the
    /// formulas, and it must not be the centre.
    #[inline(always)]
    pub unsafe fn x_of(&self, centres: (L, L), place: &Place) -> Fe {
        let (lane, entry) = (place.lane as usize, &self.table.entries[place.index as usize - 1]);
        // SAFETY: the caller's.
        let (centre, t, y) = unsafe {
            let centre = Affine { x: centres.0.lane(lane), y: centres.1.lane(lane) };
            (centre, L::splat(&entry.minus_t).lane(0).negate(), L::splat(&entry.y).lane(0))
        };
        let entry = Affine { x: t, y: if place.minus { y.negate() } else { y } };
        let sum = centre.plus(entry.endomorphism(place.orbit)).expect("the centre is no entry's opposite");
        sum.endomorphism(place.image).x.canonical()
    }

    /// The inverses of a group's products, and the lanes that leave the formulas: those whose product vanishes
    /// or whose centre is infinity. Their inverse means nothing.
    #[inline(always)]
    pub unsafe fn invert(&self, product: L) -> (L, u32) {
        // SAFETY: the caller's.
        unsafe {
            let mut skip = self.infinite;
            let inverse = lanes::invert(product, &mut skip);
            (inverse, skip)
        }
    }

    /// Moves the centres one step on: one affine addition with the inverse of its denominator. Returns the
    /// lanes in `skip` with the centres they had, for the caller to put where they belong.
    #[inline(always)]
    pub unsafe fn advance(&mut self, inverse: L, skip: u32) -> Vec<(usize, Point)> {
        // SAFETY: the caller's.
        unsafe {
            let (c, yc) = (self.x, self.y);
            let one = L::splat(&L::constant(Fe::ONE));
            let slope = L::splat(&self.table.step_y).sub(yc).mul(inverse);
            let x = slope.square().sub(c).sub(L::splat(&self.table.step_x)).mul(one);
            let y = slope.mul(c.sub(x)).sub(yc).mul(one);
            let left = (0..L::N).filter(|l| skip >> l & 1 == 1).map(|l| (l, self.centre(l))).collect();
            (self.x, self.y) = (x, y);
            left
        }
    }

    /// Visits every key of one group in every lane and moves the centres on. Returns how many keys those were.
    #[inline(always)]
    pub unsafe fn group<V: Visitor<L>>(&mut self, visitor: &mut V) -> u64 {
        let table = self.table;
        // SAFETY: the caller's, throughout.
        unsafe {
            let (c, yc) = (self.x, self.y);
            let c2 = c.square();
            let c3 = c2.mul(c);
            let one = L::splat(&L::constant(Fe::ONE));
            // Denominators of the entries in two interleaved chains of products, each 1 M an entry: two,
            // because one chain would wait for its own latency.
            let mut chain = [one, one];
            for (i, (entry, before)) in table.entries.iter().zip(&mut self.before).enumerate() {
                let d = c3.add_raw(L::splat(&entry.minus_t3));
                *before = chain[i & 1];
                chain[i & 1] = chain[i & 1].mul_raw(d);
            }
            let step_x = L::splat(&table.step_x);
            let d_step = step_x.sub(c);
            let both = chain[0].mul(chain[1]);
            let (inverse, skip) = self.invert(both.mul(d_step));

            visitor.centre(c, skip);
            let inv_step = inverse.mul(both);
            let rest = inverse.mul(d_step);
            let mut undo = [rest.mul_raw(chain[1]), rest.mul_raw(chain[0])];

            let zero = L::splat(&L::constant(Fe::ZERO));
            let beta = L::splat(&L::constant(Fe::BETA));
            let minus_c = zero.sub(c).mul(one);
            let minus_beta_c = minus_c.mul(beta);
            let minus_yc = zero.sub(yc).mul(one);
            let minus_2c = minus_c.add(minus_c);
            let minus_c3 = zero.sub(c3).mul(one);
            let minus_twice_c3 = minus_c3.add(minus_c3);
            let thrice_c2 = c2.add(c2).add(c2);
            let c4 = c2.square();
            let mut end = table.entries.len();
            while end > 0 {
                let span = end.saturating_sub(V::PAUSE)..end;
                let entries = table.entries[span.clone()].iter().zip(&self.before[span.clone()]);
                for (i, (entry, before)) in span.clone().zip(entries).rev() {
                    let (minus_t, minus_t3) = (L::splat(&entry.minus_t), L::splat(&entry.minus_t3));
                    let d = c3.add_raw(minus_t3);
                    let v = visitor.between(0, undo[i & 1].mul_raw(*before));
                    undo[i & 1] = visitor.between(1, undo[i & 1].mul_raw(d));
                    let y = L::splat(&entry.y);
                    let n_plus = y.add_raw(minus_yc).mul_raw(v);
                    let n_minus = visitor.between(2, y.add_raw(yc).mul_raw(v));
                    let n_plus = n_plus.square_raw();
                    let n_minus = visitor.between(3, n_minus.square_raw());
                    let u = visitor.between(4, minus_2c.mul_add_raw(minus_t3, c4));
                    let t4 = L::splat(&entry.t4);
                    let vv = visitor.between(5, minus_twice_c3.mul_add_raw(minus_t, t4));
                    let w = visitor.between(6, thrice_c2.mul_raw(L::splat(&entry.t2)));
                    let squares = [n_plus, n_minus];
                    let images = if V::LEADING {
                        let plus = visitor.between(7, n_plus.mul_raw(beta));
                        [plus, visitor.between(8, n_minus.mul_raw(beta))]
                    } else {
                        squares
                    };
                    let addends = [[minus_c, minus_t], [minus_beta_c, L::splat(&entry.minus_beta_t)]];
                    let orbit = Orbit { squares: [squares, images], factors: [u, vv, w], addends };
                    visitor.orbit(i as u32 + 1, &orbit);
                }
                visitor.pause();
                end = span.start;
            }
            visitor.finish();

            let exact = self.advance(inv_step, skip);
            let mut keys =
                (L::N - exact.len()) as u64 * (KEYS_PER_CENTRE + KEYS_PER_ENTRY * table.entries.len() as u64);
            for (lane, centre) in exact {
                keys += exact::group(&table.points, lane as u32, centre, &mut visitor.one_by_one());
                self.place(lane, group::add(centre, Some(table.step)));
            }
            keys
        }
    }
}
