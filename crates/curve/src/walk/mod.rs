//! The walk: keys around a centre, eighteen for each table entry, for 10 M + 2 S and the tops of 12 products.
//!
//! Let C = (c, yc) be the centre and i*G = (t, y) a table entry, beta the cube root of unity of the
//! endomorphism. The six points C + s * lambda^k * i*G (sign s, orbit k = 0, 1, 2) have the denominators
//! c - beta^k t, whose product is c^3 - t^3: one inverse serves all six, and all the inverses of a group come
//! from one inversion (Montgomery). With v = 1/(c^3 - t^3), n = (y -+ yc) v and
//! 1/(c - beta^k t) = v (c^2 + beta^k c t + beta^2k t^2):
//!
//! ```text
//! x_k = n^2 (c^2 + beta^k c t + beta^2k t^2)^2 - c - beta^k t = T0 + beta^k T1 + beta^2k T2,
//! T0 = n^2 U - c    U = c^4 + 2 c t^3
//! T1 = n^2 V - t    V = t^4 + 2 c^3 t
//! T2 = n^2 W        W = 3 c^2 t^2
//! ```
//!
//! Each point has three images (lambda^j times it has x beta^j), so with p = j + k and q = j + 2k modulo 3 the
//! nine keys of a sign are beta^j T0 + beta^p T1 + beta^q T2, one for each (p, q). A prefix search reads only
//! their top words, and those are sums of words of T0, T1, T2 and of their products with beta: neither x nor these are
//! ever formed, only their leading bits. A search that needs all of x forms them and the nine sums in full (`full`).
//!
//! Cost an entry: prefix product 1 M, its undoing 2 M, n 2 M + 2 S, U V W 3 M, beta n^2 2 M, the leading bits of six
//! terms and of six with beta, each a fifth of a product; 18 keys.
//!
//! Where c^3 = t^3 for some entry, or the centre meets the step's point or infinity, the formulas do not hold;
//! that lane's group is then done point by point with complete additions (`exact`).
//!
//! A search for a hash needs whole points, not words of x: `points` visits those of the same groups.

mod bits;
mod dense;
mod exact;
mod finds;
mod full;
mod many;
mod pages;
mod points;
mod settle;
mod sieve;
mod sparse;
mod table;
mod words;

pub use bits::Bits;
pub use full::{Equation, Term};
pub use points::{Block, KEYS_PER_POINT, Places, Points};
pub use sieve::{Range, Sieve};
pub use table::Table;

use crate::field::lanes::{self, Lanes};
use crate::field::leading::{Leading, SUMS};
use crate::group::Point;
use crate::{Affine, Fe, Scalar};
use table::Entries;
use warpsmith_simd::compile_for;

/// Where a key lies in a walk. The key itself is lambda^image * (origin + offset), or minus that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The parallel walker.
    pub lane: u32,
    /// The group of that walker.
    pub step: u64,
    /// The table entry; 0 is the centre itself.
    pub index: u32,
    /// Whether the entry is subtracted.
    pub minus: bool,
    /// The power of lambda on the entry.
    pub orbit: u8,
    /// The power of lambda on the sum.
    pub image: u8,
    /// Whether the key is the negative of that: another text where y counts, the same where only x does.
    pub negate: bool,
}

impl Place {
    /// What is added to the origin's scalar before the image: the centre's way plus or minus lambda^orbit * index.
    /// `half` is the number of table entries, `stride` the distance of neighbouring lanes in steps.
    pub fn offset(&self, half: u32, stride: u64) -> Scalar {
        let steps = self.lane as u128 * stride as u128 + self.step as u128;
        let centre = Scalar::from_u128(steps * (2 * half as u128 + 1));
        let entry = Scalar::lambda_power(self.orbit).mul(Scalar::from_u64(self.index as u64));
        if self.minus { centre.sub(entry) } else { centre.add(entry) }
    }
}

/// A key that passed the sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Where it lies.
    pub place: Place,
    /// Its x coordinate, where the sieve formed it.
    pub x: Option<Fe>,
}

/// Keys tested with one table entry: six points, three images each.
pub const KEYS_PER_ENTRY: u64 = 18;
/// Keys tested at a centre: three images.
pub const KEYS_PER_CENTRE: u64 = 3;

/// What the keys around one entry are made of: T0 = n^2 U - c, T1 = n^2 V - t, T2 = n^2 W.
pub(crate) struct Orbit<L> {
    /// n^2 of the plus and the minus side, and the same times beta; raw.
    squares: [[L; 2]; 2],
    /// U, V, W; raw.
    factors: [L; 3],
    /// -c and -t, and the same times beta; tight.
    addends: [[L; 2]; 2],
}

/// Tops of T0, T1, T2: [term][times 1, times beta][side].
type Tops<L> = [[[<L as Leading>::Tops; 2]; 2]; 3];

impl<L: Lanes> Orbit<L> {
    /// T0, T1, T2 of one side; tight.
    #[inline(always)]
    unsafe fn terms(&self, side: usize) -> [L; 3] {
        let (square, [u, v, w], [c, t]) = (self.squares[0][side], self.factors, self.addends[0]);
        // SAFETY: the caller's.
        unsafe { [square.mul_add(u, c), square.mul_add(v, t), square.mul(w)] }
    }
}

impl<L: Leading> Orbit<L> {
    /// Their tops.
    #[inline(always)]
    unsafe fn tops(&self) -> Tops<L> {
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

/// The state of N parallel walkers over one table.
struct Lanewise<'t, L: Lanes> {
    table: &'t Entries<L>,
    x: L,
    y: L,
    /// Lanes whose centre is the point at infinity.
    infinite: u32,
    /// Prefix products, one an entry.
    before: Vec<L>,
}

impl<'t, L: Lanes> Lanewise<'t, L> {
    /// # Safety
    /// As for all of [`Lanes`].
    #[inline(always)]
    unsafe fn new(table: &'t Entries<L>, starts: &[Point]) -> Self {
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
    unsafe fn place(&mut self, lane: usize, point: Point) {
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
    unsafe fn centres(&self) -> Vec<Point> {
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
    unsafe fn x_of(&self, centres: (L, L), place: &Place) -> Fe {
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
    unsafe fn invert(&self, product: L) -> (L, u32) {
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
    unsafe fn advance(&mut self, inverse: L, skip: u32) -> Vec<(usize, Point)> {
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
    unsafe fn group<V: Visitor<L>>(&mut self, visitor: &mut V) -> u64 {
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
                let (generator, half) = (table.generator, table.half());
                keys += exact::group(generator, half, lane as u32, centre, &mut visitor.one_by_one());
                self.place(lane, exact::next(generator, half, centre));
            }
            keys
        }
    }
}

enum Kind<'t> {
    Portable(Lanewise<'t, Fe>),
    #[cfg(target_arch = "x86_64")]
    Ifma(Box<Lanewise<'t, crate::field::ifma::Fe8>>),
}

/// Parallel walkers: lane l starts at the l-th point given and goes on by (2 half + 1) G a step.
pub struct Walk<'t> {
    kind: Kind<'t>,
    step: u64,
}

impl<'t> Walk<'t> {
    /// Walkers at the given starts, one for each of the table's lanes.
    pub fn new(table: &'t Table, starts: &[Point]) -> Walk<'t> {
        // SAFETY: a table exists only for an instruction set this machine has.
        let kind = unsafe {
            match &table.0 {
                table::Kind::Portable(t) => Kind::Portable(Lanewise::new(t, starts)),
                #[cfg(target_arch = "x86_64")]
                table::Kind::Ifma(t) => Kind::Ifma(Box::new(new_ifma(t, starts))),
            }
        };
        Walk { kind, step: 0 }
    }

    /// Groups walked so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The centres of the groups that are walked next, one a lane.
    pub fn centres(&self) -> Vec<Point> {
        // SAFETY: `Kind::Ifma` exists only where AVX-512 IFMA does.
        unsafe {
            match &self.kind {
                Kind::Portable(walk) => walk.centres(),
                #[cfg(target_arch = "x86_64")]
                Kind::Ifma(walk) => centres_ifma(walk),
            }
        }
    }

    /// Puts a lane's next centre elsewhere, as a fault of the machine would: for tests of what must notice it.
    #[doc(hidden)]
    pub fn put(&mut self, lane: usize, centre: Point) {
        // SAFETY: `Kind::Ifma` exists only where AVX-512 IFMA does.
        unsafe {
            match &mut self.kind {
                Kind::Portable(walk) => walk.place(lane, centre),
                #[cfg(target_arch = "x86_64")]
                Kind::Ifma(walk) => put_ifma(walk, lane, centre),
            }
        }
    }

    /// Walks one group in every lane, appends what passes the sieve to `hits`, and returns the number of
    /// keys tested, each once.
    pub fn group(&mut self, sieve: &Sieve, hits: &mut Vec<Hit>) -> u64 {
        // SAFETY: `Kind::Ifma` exists only where AVX-512 IFMA does.
        let keys = unsafe {
            match &mut self.kind {
                Kind::Portable(walk) => sieve::run(walk, sieve, self.step, hits),
                #[cfg(target_arch = "x86_64")]
                Kind::Ifma(walk) => run_ifma(walk, sieve, self.step, hits),
            }
        };
        self.step += 1;
        keys
    }

    /// Walks one group in every lane, hands its points to `visitor`, eight at a time, and returns the number of
    /// keys they stand for, each once: [`KEYS_PER_POINT`] a point, or one where the visitor wants no relatives.
    pub fn points<V: Points>(&mut self, visitor: &mut V) -> u64 {
        // SAFETY: `Kind::Ifma` exists only where AVX-512 IFMA does.
        let keys = unsafe {
            match &mut self.kind {
                Kind::Portable(walk) => walk.points(self.step, visitor),
                #[cfg(target_arch = "x86_64")]
                Kind::Ifma(walk) => points_ifma(walk, self.step, visitor),
            }
        };
        self.step += 1;
        keys
    }
}

compile_for! { avx512ifma
    /// The same code as the portable walk, compiled for AVX-512 IFMA.
    unsafe fn run_ifma(
        walk: &mut Lanewise<'_, crate::field::ifma::Fe8>,
        sieve: &Sieve,
        step: u64,
        hits: &mut Vec<Hit>,
    ) -> u64 {
        // SAFETY: the caller checked the instruction set.
        unsafe { sieve::run(walk, sieve, step, hits) }
    }
}

compile_for! { avx512ifma
    unsafe fn points_ifma<V: Points>(
        walk: &mut Lanewise<'_, crate::field::ifma::Fe8>,
        step: u64,
        visitor: &mut V,
    ) -> u64 {
        // SAFETY: the caller checked the instruction set.
        unsafe { walk.points(step, visitor) }
    }
}

compile_for! { avx512ifma
    unsafe fn centres_ifma(walk: &Lanewise<'_, crate::field::ifma::Fe8>) -> Vec<Point> {
        // SAFETY: the caller checked the instruction set.
        unsafe { walk.centres() }
    }
}

compile_for! { avx512ifma
    unsafe fn put_ifma(walk: &mut Lanewise<'_, crate::field::ifma::Fe8>, lane: usize, centre: Point) {
        // SAFETY: the caller checked the instruction set.
        unsafe { walk.place(lane, centre) }
    }
}

compile_for! { avx512ifma
    unsafe fn new_ifma<'t>(
        table: &'t Entries<crate::field::ifma::Fe8>,
        starts: &[Point],
    ) -> Lanewise<'t, crate::field::ifma::Fe8> {
        // SAFETY: the caller checked the instruction set.
        unsafe { Lanewise::new(table, starts) }
    }
}
