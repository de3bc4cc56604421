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
//! ever formed, only their leading bits. A search that needs all of x forms them and the nine sums in full (`x::all_bits`).
//!
//! Cost an entry: prefix product 1 M, its undoing 2 M, n 2 M + 2 S, U V W 3 M, beta n^2 2 M, the leading bits of six
//! terms and of six with beta, each a fifth of a product; 18 keys.
//!
//! Where c^3 = t^3 for some entry, or the centre meets the step's point or infinity, the formulas do not hold;
//! that lane's group is then done point by point with complete additions (`exact`).
//!
//! A search for a hash needs whole points, not words of x: `points` visits those of the same groups.

mod exact;
mod lanewise;
mod place;
mod points;
mod table;
mod visit;
mod x;

pub use place::{Hit, KEYS_PER_CENTRE, KEYS_PER_ENTRY, Place};
pub use points::{Block, KEYS_PER_POINT, Places, Points};
pub use table::Table;
pub use x::{Bits, Range, Sieve};

use crate::Fe;
pub use crate::field::term::{Equation, Term};
use crate::group::Point;
use lanewise::Lanewise;
use table::Entries;
use warpsmith_simd::compile_for;

enum Walker<'t> {
    Portable(Lanewise<'t, Fe>),
    #[cfg(target_arch = "x86_64")]
    Ifma(Box<Lanewise<'t, crate::field::ifma::Fe8>>),
}

/// Parallel walkers: lane l starts at the l-th point given and goes on by (2 half + 1) G a step.
pub struct Walk<'t> {
    kind: Walker<'t>,
    step: u64,
}

impl<'t> Walk<'t> {
    /// Walkers at the given starts, one for each of the table's lanes.
    pub fn new(table: &'t Table, starts: &[Point]) -> Walk<'t> {
        // SAFETY: a table exists only for an instruction set this machine has.
        let kind = unsafe {
            match &table.0 {
                table::ByLanes::Portable(t) => Walker::Portable(Lanewise::new(t, starts)),
                #[cfg(target_arch = "x86_64")]
                table::ByLanes::Ifma(t) => Walker::Ifma(Box::new(new_ifma(t, starts))),
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
        // SAFETY: `Walker::Ifma` exists only where AVX-512 IFMA does.
        unsafe {
            match &self.kind {
                Walker::Portable(walk) => walk.centres(),
                #[cfg(target_arch = "x86_64")]
                Walker::Ifma(walk) => centres_ifma(walk),
            }
        }
    }

    /// Puts a lane's next centre elsewhere: its walk ends there and another begins.
    pub fn put(&mut self, lane: usize, centre: Point) {
        // SAFETY: `Walker::Ifma` exists only where AVX-512 IFMA does.
        unsafe {
            match &mut self.kind {
                Walker::Portable(walk) => walk.place(lane, centre),
                #[cfg(target_arch = "x86_64")]
                Walker::Ifma(walk) => put_ifma(walk, lane, centre),
            }
        }
    }

    /// Walks one group in every lane, appends what passes the sieve to `hits`, and returns the number of
    /// keys tested, each once.
    pub fn group(&mut self, sieve: &Sieve, hits: &mut Vec<Hit>) -> u64 {
        // SAFETY: `Walker::Ifma` exists only where AVX-512 IFMA does.
        let keys = unsafe {
            match &mut self.kind {
                Walker::Portable(walk) => x::run(walk, sieve, self.step, hits),
                #[cfg(target_arch = "x86_64")]
                Walker::Ifma(walk) => run_ifma(walk, sieve, self.step, hits),
            }
        };
        self.step += 1;
        keys
    }

    /// Walks one group in every lane, hands its points to `visitor`, eight at a time, and returns the number of
    /// keys they stand for, each once: [`KEYS_PER_POINT`] a point, or one where the visitor wants no relatives.
    pub fn points<V: Points>(&mut self, visitor: &mut V) -> u64 {
        // SAFETY: `Walker::Ifma` exists only where AVX-512 IFMA does.
        let keys = unsafe {
            match &mut self.kind {
                Walker::Portable(walk) => walk.points(self.step, visitor),
                #[cfg(target_arch = "x86_64")]
                Walker::Ifma(walk) => points_ifma(walk, self.step, visitor),
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
        unsafe { x::run(walk, sieve, step, hits) }
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
