//! The table i*G, i = 1..half, with the powers of x the walk multiplies by; shared by all walkers.

#[cfg(target_arch = "x86_64")]
use warpsmith_simd::Ifma256;
use warpsmith_simd::Simd;

use crate::field::dispatch::Registers;
#[cfg(all(target_arch = "x86_64", feature = "evex"))]
use crate::field::ifma::Evex;
#[cfg(target_arch = "x86_64")]
use crate::field::ifma::{Fe4, Fe8, Vex};
use crate::field::lanes::Lanes;
use crate::group::{self, Affine};
use crate::{Fe, Scalar};

/// One entry i*G = (t, y).
pub(crate) struct Entry<L: Lanes> {
    pub minus_t: L::Constant,
    pub minus_beta_t: L::Constant,
    pub t2: L::Constant,
    pub minus_t3: L::Constant,
    pub t4: L::Constant,
    pub y: L::Constant,
}

/// The entries for one kind of lanes.
pub(crate) struct Entries<L: Lanes> {
    /// The entries and the step as points, for groups that are done one by one.
    pub points: Vec<Affine>,
    pub step: Affine,
    pub entries: Vec<Entry<L>>,
    /// The way from one centre to the next: (2 half + 1) G, but for tables of other points.
    pub step_x: L::Constant,
    pub step_y: L::Constant,
}

impl<L: Lanes> Entries<L> {
    fn new(points: Vec<Affine>, step: Affine) -> Entries<L> {
        let entry = |point: &Affine| {
            let (t, y) = (point.x, point.y);
            let t2 = t.square();
            Entry {
                minus_t: L::constant(t.negate()),
                minus_beta_t: L::constant(t.mul(Fe::BETA).negate()),
                t2: L::constant(t2),
                minus_t3: L::constant(t2.mul(t).negate()),
                t4: L::constant(t2.square()),
                y: L::constant(y),
            }
        };
        let entries = points.iter().map(entry).collect();
        Entries { entries, step_x: L::constant(step.x), step_y: L::constant(step.y), points, step }
    }

    /// The number of entries.
    pub fn half(&self) -> u32 {
        self.entries.len() as u32
    }
}

pub(crate) enum ByLanes {
    Portable(Entries<Fe>),
    #[cfg(target_arch = "x86_64")]
    Eight(Entries<Fe8>),
    #[cfg(target_arch = "x86_64")]
    Four(Entries<Fe4<Vex>>),
    #[cfg(all(target_arch = "x86_64", feature = "evex"))]
    FourEvex(Entries<Fe4<Evex>>),
}

/// The table of one walk shape and instruction set.
pub struct Table(pub(crate) ByLanes);

impl Table {
    /// A table of `half` entries, 1 to 2^20, for an instruction set this machine must have.
    pub fn new(simd: Simd, half: u32) -> Table {
        Table::of(simd, Affine::G, half)
    }

    /// The same of multiples of another point, which may be one of any curve y^2 = x^3 + b over the field: nothing here
    /// reads b. For tests in groups so small that all their elements are tried; `2 half + 1` is less than their order.
    #[doc(hidden)]
    pub fn of(simd: Simd, generator: Affine, half: u32) -> Table {
        assert!((1..=1 << 20).contains(&half), "a table has 1 to 2^20 entries, not {half}");
        // i*G is neither G's opposite nor infinity for i < half < n - 1.
        let next =
            |point: &Affine| Some(point.plus(generator).expect("a small multiple of G is not its opposite"));
        let points = std::iter::successors(Some(generator), next).take(half as usize).collect();
        let steps = Scalar::from_u64(2 * u64::from(half) + 1);
        let step = group::multiply(steps, Some(generator)).expect("a small multiple of G is not infinity");
        Table::of_points(simd, points, step)
    }

    /// A table of any points, none of which is another or its opposite: a group is then what lies these ways from its centre, and
    /// `step` the way from one centre to the next.
    pub fn of_points(simd: Simd, points: Vec<Affine>, step: Affine) -> Table {
        assert!(simd.is_available(), "this machine has no {simd}");
        assert!((1..=1 << 20).contains(&points.len()), "a table has 1 to 2^20 entries, not {}", points.len());
        Table(match Registers::of(simd) {
            #[cfg(target_arch = "x86_64")]
            Registers::Zmm => ByLanes::Eight(Entries::new(points, step)),
            #[cfg(target_arch = "x86_64")]
            Registers::Ymm(Ifma256::Vex) => ByLanes::Four(Entries::new(points, step)),
            #[cfg(all(target_arch = "x86_64", feature = "evex"))]
            Registers::Ymm(Ifma256::Evex) => ByLanes::FourEvex(Entries::new(points, step)),
            _ => ByLanes::Portable(Entries::new(points, step)),
        })
    }

    /// The number of entries.
    pub fn half(&self) -> u32 {
        match &self.0 {
            ByLanes::Portable(t) => t.half(),
            #[cfg(target_arch = "x86_64")]
            ByLanes::Eight(t) => t.half(),
            #[cfg(target_arch = "x86_64")]
            ByLanes::Four(t) => t.half(),
            #[cfg(all(target_arch = "x86_64", feature = "evex"))]
            ByLanes::FourEvex(t) => t.half(),
        }
    }

    /// The instruction set it was made for.
    pub fn simd(&self) -> Simd {
        match &self.0 {
            ByLanes::Portable(_) => Simd::Portable,
            #[cfg(target_arch = "x86_64")]
            ByLanes::Eight(_) => Simd::Avx512Ifma,
            #[cfg(target_arch = "x86_64")]
            ByLanes::Four(_) => Simd::AvxIfma,
            #[cfg(all(target_arch = "x86_64", feature = "evex"))]
            ByLanes::FourEvex(_) => Simd::AvxIfma,
        }
    }
}
