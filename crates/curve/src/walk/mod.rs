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
#[cfg(all(target_arch = "x86_64", feature = "evex"))]
use crate::field::ifma::Evex;
#[cfg(target_arch = "x86_64")]
use crate::field::ifma::{Fe4, Fe8, Vex};
pub use crate::field::term::{Equation, Term};
use crate::group::Point;
use lanewise::Lanewise;
use points::TakeBlock;
use table::ByLanes;

/// The same code as the portable walk, compiled for an instruction set.
macro_rules! compile_walk {
    ($module:ident, $set:ident, $lanes:ty) => {
        #[cfg(target_arch = "x86_64")]
        mod $module {
            use super::*;
            use table::Entries;
            use warpsmith_simd::compile_for;

            compile_for! { $set
                pub unsafe fn new<'t>(table: &'t Entries<$lanes>, starts: &[Point]) -> Box<Lanewise<'t, $lanes>> {
                    // SAFETY: the caller checked the instruction set, here and below.
                    Box::new(unsafe { Lanewise::new(table, starts) })
                }
            }
            compile_for! { $set
                pub unsafe fn centres(walk: &Lanewise<'_, $lanes>) -> Vec<Point> {
                    // SAFETY: as above.
                    unsafe { walk.centres() }
                }
            }
            compile_for! { $set
                pub unsafe fn place(walk: &mut Lanewise<'_, $lanes>, lane: usize, centre: Point) {
                    // SAFETY: as above.
                    unsafe { walk.place(lane, centre) }
                }
            }
            compile_for! { $set
                pub unsafe fn run(walk: &mut Lanewise<'_, $lanes>, sieve: &Sieve, step: u64, hits: &mut Vec<Hit>) -> u64 {
                    // SAFETY: as above.
                    unsafe { x::run(walk, sieve, step, hits) }
                }
            }
            compile_for! { $set
                pub unsafe fn points<const Y: bool, const RELATIVES: bool>(
                    walk: &mut Lanewise<'_, $lanes>,
                    step: u64,
                    take_block: &mut TakeBlock<'_>,
                ) -> u64 {
                    // SAFETY: as above.
                    unsafe { walk.points::<Y, RELATIVES>(step, take_block) }
                }
            }
        }
    };
}

compile_walk!(eight, avx512ifma, Fe8);
compile_walk!(four, avxifma, Fe4<Vex>);
#[cfg(feature = "evex")]
compile_walk!(four_evex, evexifma, Fe4<Evex>);

enum Walker<'t> {
    Portable(Lanewise<'t, Fe>),
    #[cfg(target_arch = "x86_64")]
    Eight(Box<Lanewise<'t, Fe8>>),
    #[cfg(target_arch = "x86_64")]
    Four(Box<Lanewise<'t, Fe4<Vex>>>),
    #[cfg(all(target_arch = "x86_64", feature = "evex"))]
    FourEvex(Box<Lanewise<'t, Fe4<Evex>>>),
}

/// Calls what was compiled for the walker's lanes, or does the same with the portable ones.
macro_rules! by_lanes {
    ($walker:expr, $function:ident $(::<$($constant:literal),*>)? ($($argument:expr),*), |$walk:ident| $portable:expr) => {
        // SAFETY: a walker exists only for an instruction set this machine has.
        unsafe {
            match $walker {
                Walker::Portable($walk) => $portable,
                #[cfg(target_arch = "x86_64")]
                Walker::Eight(walk) => eight::$function$(::<$($constant),*>)?(walk, $($argument),*),
                #[cfg(target_arch = "x86_64")]
                Walker::Four(walk) => four::$function$(::<$($constant),*>)?(walk, $($argument),*),
                #[cfg(all(target_arch = "x86_64", feature = "evex"))]
                Walker::FourEvex(walk) => four_evex::$function$(::<$($constant),*>)?(walk, $($argument),*),
            }
        }
    };
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
                ByLanes::Portable(t) => Walker::Portable(Lanewise::new(t, starts)),
                #[cfg(target_arch = "x86_64")]
                ByLanes::Eight(t) => Walker::Eight(eight::new(t, starts)),
                #[cfg(target_arch = "x86_64")]
                ByLanes::Four(t) => Walker::Four(four::new(t, starts)),
                #[cfg(all(target_arch = "x86_64", feature = "evex"))]
                ByLanes::FourEvex(t) => Walker::FourEvex(four_evex::new(t, starts)),
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
        by_lanes!(&self.kind, centres(), |walk| walk.centres())
    }

    /// Puts a lane's next centre elsewhere: its walk ends there and another begins.
    pub fn put(&mut self, lane: usize, centre: Point) {
        by_lanes!(&mut self.kind, place(lane, centre), |walk| walk.place(lane, centre))
    }

    /// Walks one group in every lane, appends what passes the sieve to `hits`, and returns the number of
    /// keys tested, each once.
    pub fn group(&mut self, sieve: &Sieve, hits: &mut Vec<Hit>) -> u64 {
        let step = self.step;
        self.step += 1;
        by_lanes!(&mut self.kind, run(sieve, step, hits), |walk| x::run(walk, sieve, step, hits))
    }

    /// Walks one group in every lane, hands its points to `visitor`, eight at a time, and returns the number of
    /// keys they stand for, each once: [`KEYS_PER_POINT`] a point, or one where the visitor wants no relatives.
    pub fn points<V: Points>(&mut self, visitor: &mut V) -> u64 {
        self.blocks(V::Y, V::RELATIVES, &mut |block| visitor.points(block))
    }

    /// Walks one group in every lane and hands over its points, eight at a time.
    fn blocks(&mut self, y: bool, relatives: bool, take: &mut TakeBlock<'_>) -> u64 {
        let (step, kind) = (self.step, &mut self.kind);
        self.step += 1;
        match (relatives, y) {
            (true, true) => {
                by_lanes!(kind, points::<true, true>(step, take), |walk| walk
                    .points::<true, true>(step, take))
            }
            (true, false) => {
                by_lanes!(kind, points::<false, true>(step, take), |walk| walk
                    .points::<false, true>(step, take))
            }
            // Whoever wants single keys without y gets it all the same.
            (false, _) => {
                by_lanes!(kind, points::<true, false>(step, take), |walk| walk
                    .points::<true, false>(step, take))
            }
        }
    }
}
