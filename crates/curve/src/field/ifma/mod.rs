//! Field elements side by side in vector registers: five limbs of 52 bits, multiplied by IFMA.
//!
//! `vpmadd52luq`/`vpmadd52huq` read the low 52 bits of each factor and add the low or high 52 bits of the
//! product to a 64-bit sum. Bounds of a limb vector [l0..l4], value sum l_i * 2^(52 i):
//!
//! - *tight*: l0..l3 < 2^52, l4 < 2^48 + 2^6, so the value is below 2^256 + 2^214;
//! - *loose*: l0..l3 < 2^52, l4 < 2^51;
//! - *raw*: l4 as of a loose element, and the low 52 bits of l0..l3; what these have above was added to the next limb and
//!   left standing, since IFMA does not read it.
//!
//! Debug builds check them at every operation. See `lanes` for the safety rule of all methods here.
//!
//! [`Limbs`] is written once over [`Register`]: eight elements in registers of 512 bits (`zmm`), four in those of 256 (`ymm`).

mod leading;
mod register;
mod ymm;
mod zmm;

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::ops::Range;

use super::Fe;
use super::lanes::Lanes;
use crate::field::term::Term;
pub use register::Register;
pub use ymm::{Encoding, Evex, Vex, Ymm};
pub use zmm::Zmm;

const MASK52: i64 = (1 << 52) - 1;
const MASK48: i64 = (1 << 48) - 1;
/// 2^256 mod p.
const FOLD_256: i64 = 0x1_0000_03d1;
/// 2^260 mod p.
const FOLD_260: i64 = FOLD_256 << 4;

/// Elements side by side; see the module for the bounds of the limbs.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Limbs<R>([R; 5]);

/// Eight elements.
pub type Fe8 = Limbs<Zmm>;
/// Four elements.
pub type Fe4<E> = Limbs<Ymm<E>>;

/// Ten columns of a product: column k has weight 2^(52 k).
type Columns<R> = [R; 10];

/// Splits a 256-bit value into limbs of 52 bits.
const fn split52(l: [u64; 4]) -> [u64; 5] {
    const M: u64 = MASK52 as u64;
    [
        l[0] & M,
        (l[0] >> 52 | l[1] << 12) & M,
        (l[1] >> 40 | l[2] << 24) & M,
        (l[2] >> 28 | l[3] << 36) & M,
        l[3] >> 16,
    ]
}

impl<R: Register> Limbs<R> {
    /// The limbs of one lane.
    #[inline(always)]
    fn limbs(&self, lane: usize) -> [u64; 5] {
        assert!(lane < R::N);
        // SAFETY: five times N plain integers.
        core::array::from_fn(|i| unsafe { *(&raw const self.0[i]).cast::<u64>().add(lane) })
    }

    #[inline(always)]
    unsafe fn check(self, top: u64) -> Self {
        if cfg!(debug_assertions) {
            self.assert_bounds(top);
        }
        self
    }

    /// Apart from `check`: a walk has hundreds of these, and in place each would cost the compiler a second.
    #[inline(never)]
    fn assert_bounds(&self, top: u64) {
        for lane in 0..R::N {
            let limbs = self.limbs(lane);
            assert!(limbs[..4].iter().all(|l| l >> 52 == 0), "limb over 52 bits");
            assert!(limbs[4] < top, "top limb {:x} not below {top:x}", limbs[4]);
        }
    }

    #[inline(always)]
    unsafe fn check_tight(self) -> Self {
        // SAFETY: as the caller's.
        unsafe { self.check((1 << 48) + (1 << 6)) }
    }

    #[inline(always)]
    unsafe fn check_loose(self) -> Self {
        // SAFETY: as the caller's.
        unsafe { self.check(1 << 51) }
    }

    /// The same element, its limbs without what was left standing.
    #[inline(always)]
    unsafe fn masked(mut self) -> Self {
        for limb in &mut self.0[..4] {
            // SAFETY: as the caller's.
            *limb = unsafe { limb.and(R::splat(MASK52)) };
        }
        self
    }

    /// The columns of a tight addend.
    #[inline(always)]
    unsafe fn columns(self) -> Columns<R> {
        // SAFETY: as the caller's.
        unsafe {
            let Limbs([a, b, c, d, e]) = self.check_tight();
            let [.., f, g, h, i, j] = nothing();
            [a, b, c, d, e, f, g, h, i, j]
        }
    }

    /// Checks a factor: tight, loose or raw.
    #[inline(always)]
    unsafe fn check_factor(self) -> Self {
        if cfg!(debug_assertions) {
            // SAFETY: the caller's.
            unsafe { self.masked().check_loose() };
        }
        self
    }
}

/// Columns of zero.
#[inline(always)]
unsafe fn nothing<R: Register>() -> Columns<R> {
    // SAFETY: the caller's, here and in all functions below.
    unsafe { [R::splat(0); 10] }
}

/// Adds what exceeds 52 bits of each limb to the next, and leaves it standing. A limb is negative only where the register
/// can borrow.
#[inline(always)]
unsafe fn carry_raw<R: Register>(mut l: [R; 5]) -> Limbs<R> {
    for i in 0..4 {
        // SAFETY: the caller's.
        l[i + 1] = unsafe { l[i + 1].add(l[i].above_52()) };
    }
    Limbs(l)
}

/// Moves it into the next.
#[inline(always)]
unsafe fn carry<R: Register>(l: [R; 5]) -> Limbs<R> {
    // SAFETY: as above.
    unsafe { carry_raw(l).masked() }
}

/// Columns of loose * loose to a raw element. A column is at most 5 low and 5 high parts and an addend:
/// below 11 * 2^52 < 2^56.
#[inline(always)]
unsafe fn reduce_raw<R: Register>(mut c: Columns<R>) -> Limbs<R> {
    // SAFETY: the caller's.
    unsafe {
        // Columns 5..9 become digits; their bits from 52 up stay in place but are not read by IFMA.
        for k in 5..9 {
            c[k + 1] = c[k + 1].add(c[k].down(52));
        }
        // Column 9 is below 2^50 + 2^5: two top limbs below 2^51 give high parts below 2^50.
        // 2^260 = FOLD_260: columns 0..4 gain a low and a high part each, below 2^57 in all.
        let fold = R::kept(FOLD_260);
        for k in 0..5 {
            c[k] = c[k].add_low(c[k + 5], fold);
        }
        for k in 0..4 {
            c[k + 1] = c[k + 1].add_high(c[k + 5], fold);
        }
        // Weight 2^260: below 2^(50 + 37 - 52) = 2^35 and a little.
        let over = R::splat(0).add_high(c[9], fold);
        // All that lies at 2^256 and above: (over << 4) + (c4 >> 48) < 2^40; times FOLD_256 below 2^73.
        let top = over.up(4).add(c[4].down(48));
        let fold = R::splat(FOLD_256);
        let l0 = c[0].add_low(top, fold);
        let l1 = c[1].add_high(top, fold);
        let l4 = c[4].and(R::splat(MASK48));
        // Limb 3 hands on less than 2^(57-52) + 1: the top limb ends below 2^48 + 2^6.
        carry_raw([l0, l1, c[2], c[3], l4])
    }
}

/// The same to a tight element.
#[inline(always)]
unsafe fn reduce<R: Register>(c: Columns<R>) -> Limbs<R> {
    // SAFETY: as above.
    unsafe { reduce_raw(c).masked().check_tight() }
}

/// The columns of a product of factors, on top of `c`.
#[inline(always)]
unsafe fn product<R: Register>(mut c: Columns<R>, a: Limbs<R>, b: Limbs<R>) -> Columns<R> {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (a.check_factor().0, b.check_factor().0);
        for i in 0..5 {
            for j in 0..5 {
                c[i + j] = c[i + j].add_low(a[i], b[j]);
            }
            for j in 0..5 {
                c[i + j + 1] = c[i + j + 1].add_high(a[i], b[j]);
            }
        }
        c
    }
}

/// Those of a square.
#[inline(always)]
unsafe fn square<R: Register>(a: Limbs<R>) -> Columns<R> {
    // SAFETY: the caller's.
    unsafe {
        let a = a.check_factor().0;
        let mut c = nothing::<R>();
        // Products of different limbs once; a factor doubled would no longer fit 52 bits, so the sums are.
        for i in 0..5 {
            for j in i + 1..5 {
                c[i + j] = c[i + j].add_low(a[i], a[j]);
                c[i + j + 1] = c[i + j + 1].add_high(a[i], a[j]);
            }
        }
        for column in &mut c[1..9] {
            *column = column.add(*column);
        }
        for i in 0..5 {
            c[2 * i] = c[2 * i].add_low(a[i], a[i]);
            c[2 * i + 1] = c[2 * i + 1].add_high(a[i], a[i]);
        }
        c
    }
}

/// The sums of limbs.
#[inline(always)]
unsafe fn sums<R: Register>(a: Limbs<R>, b: Limbs<R>) -> [R; 5] {
    let (mut l, Limbs(b)) = (a.0, b);
    for i in 0..5 {
        // SAFETY: the caller's.
        l[i] = unsafe { l[i].add(b[i]) };
    }
    l
}

/// A multiple of p, 2^(208 + `bits`) less `less`, in limbs of which each but the last has borrowed of the next.
#[inline(always)]
unsafe fn multiple_of_p<R: Register>(bits: u32, less: i64) -> [R; 5] {
    let whole = R::BORROW << 52;
    // SAFETY: the caller's.
    unsafe {
        let middle = R::splat(whole - R::BORROW);
        [R::splat(whole - less), middle, middle, middle, R::splat((1 << bits) - R::BORROW)]
    }
}

/// Four limbs of 64 bits, least significant first, as five of 52: below 2^256, so tight.
#[inline(always)]
unsafe fn split<R: Register>(l: [R; 4]) -> Limbs<R> {
    // SAFETY: the caller's.
    unsafe {
        let mask = R::splat(MASK52);
        Limbs([
            l[0].and(mask),
            l[1].up(12).or(l[0].down(52)).and(mask),
            l[2].up(24).or(l[1].down(40)).and(mask),
            l[3].up(36).or(l[2].down(28)).and(mask),
            l[3].down(16),
        ])
        .check_tight()
    }
}

/// The places of N lanes among eight. All eight begin at the first, and no time is spent on a number that is zero: 6 % of the
/// walk over points with y.
#[inline(always)]
fn places<R: Register>(at: usize) -> Range<usize> {
    debug_assert!(at.is_multiple_of(R::N) && at < 8);
    let first = if R::N == 8 { 0 } else { at };
    first..first + R::N
}

impl<R: Register> Lanes for Limbs<R> {
    const N: usize = R::N;
    type Constant = [u64; 5];
    type Wide = [R; 4];

    fn constant(value: Fe) -> [u64; 5] {
        split52(value.0)
    }

    #[inline(always)]
    unsafe fn splat(value: &[u64; 5]) -> Self {
        // SAFETY: see the module `lanes`, here and below.
        unsafe {
            Limbs([
                R::splat(value[0] as i64),
                R::splat(value[1] as i64),
                R::splat(value[2] as i64),
                R::splat(value[3] as i64),
                R::splat(value[4] as i64),
            ])
        }
    }

    unsafe fn lane(&self, lane: usize) -> Fe {
        let l = self.limbs(lane);
        // Bits from 256 up, at most 2^3 of them, fold back in.
        let low = Fe([
            l[0] | l[1] << 52,
            l[1] >> 12 | l[2] << 40,
            l[2] >> 24 | l[3] << 28,
            l[3] >> 36 | l[4] << 16,
        ]);
        low.add(Fe::from_u64((l[4] >> 48) * FOLD_256 as u64))
    }

    unsafe fn with_lane(mut self, lane: usize, value: Fe) -> Self {
        assert!(lane < R::N);
        for (limb, v) in self.0.iter_mut().zip(split52(value.0)) {
            // SAFETY: N plain integers.
            unsafe { (&raw mut *limb).cast::<u64>().add(lane).write(v) }
        }
        self
    }

    #[inline(always)]
    unsafe fn fetch(of: &Fe) {
        // SAFETY: as above; asking for memory that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(of.0.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn gather(from: &[&Fe; 8]) -> Self {
        // SAFETY: as above.
        unsafe { split(R::gather(from)) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { reduce(product(nothing(), self, other)) }
    }
    #[inline(always)]
    unsafe fn mul_raw(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { reduce_raw(product(nothing(), self, other)) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: as above.
        unsafe { reduce(product(addend.columns(), self, factor)) }
    }
    #[inline(always)]
    unsafe fn mul_add_raw(self, factor: Self, addend: Self) -> Self {
        // SAFETY: as above.
        unsafe { reduce_raw(product(addend.columns(), self, factor)) }
    }

    #[inline(always)]
    unsafe fn square(self) -> Self {
        // SAFETY: as above.
        unsafe { reduce(square(self)) }
    }
    #[inline(always)]
    unsafe fn square_raw(self) -> Self {
        // SAFETY: as above.
        unsafe { reduce_raw(square(self)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { carry(sums(self.check_loose(), other.check_loose())).check_loose() }
    }

    #[inline(always)]
    unsafe fn add_raw(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { carry_raw(sums(self.check_tight(), other.check_tight())) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let (a, b) = (self.check_loose().0, other.check_tight().0);
            // 2p = 2^257 - 2 FOLD_256 exceeds a tight value, so the result is positive.
            let mut l = multiple_of_p(49, 2 * FOLD_256);
            for i in 0..5 {
                l[i] = a[i].sub(b[i]).add(l[i]);
            }
            carry(l).check_loose()
        }
    }

    #[inline(always)]
    unsafe fn add_or_sub(self, other: Self, minus: u32) -> Self {
        // SAFETY: as above.
        unsafe {
            let (a, b, minus) = (self.check_tight().0, other.check_tight().0, R::lanes(minus));
            // As for `sub`, 2p more where it is a difference.
            let mut l = multiple_of_p::<R>(49, 2 * FOLD_256);
            for i in 0..5 {
                l[i] = R::select(minus, a[i].sub(b[i]).add(l[i]), a[i].add(b[i]));
            }
            carry(l).check_loose()
        }
    }

    #[inline(always)]
    unsafe fn tighten(self) -> Self {
        // SAFETY: as above.
        unsafe {
            // Bits from 256 up, below 2^3, fold in: less than 2^36, so the top limb ends below 2^48 + 1.
            let mut l = self.check_loose().0;
            l[0] = l[0].add_low(l[4].down(48), R::splat(FOLD_256));
            l[4] = l[4].and(R::splat(MASK48));
            carry(l).check_tight()
        }
    }

    #[inline(always)]
    unsafe fn negate(self) -> Self {
        // SAFETY: as above.
        unsafe {
            // 8p = 2^259 - 8 FOLD_256, which a top limb below 2^51 - 1 cannot reach: the result is positive, and
            // at most 8p, whose own top limb is 2^51 - 1.
            let a = self.check((1 << 51) - 1).0;
            let mut l = multiple_of_p::<R>(51, 8 * FOLD_256);
            for i in 0..5 {
                l[i] = l[i].sub(a[i]);
            }
            carry(l).check_loose()
        }
    }

    #[inline(always)]
    unsafe fn now(self) -> Self {
        let [a, b, c, d, e] = self.0;
        // SAFETY: as above. The carries of all limbs end in the last.
        unsafe { Limbs([a, b, c, d, e.formed()]) }
    }

    unsafe fn any_zero(self) -> bool {
        // SAFETY: as above.
        (0..R::N).any(|lane| unsafe { self.lane(lane) }.is_zero())
    }

    #[inline(always)]
    unsafe fn wide(self) -> [R; 4] {
        // SAFETY: as above.
        unsafe {
            // The value is now below 2^256 + 2^36.
            let l = self.tighten().0;
            // It is p or more exactly when adding 2^256 - p reaches 2^256; what is left then is the residue.
            let mut u = l;
            u[0] = u[0].add(R::splat(FOLD_256));
            let u = carry(u).0;
            let over = u[4].with_bit(48);
            let mut r = l;
            for i in 0..5 {
                r[i] = R::select(over, u[i], l[i]);
            }
            [
                r[4].up(16).or(r[3].down(36)),
                r[3].up(28).or(r[2].down(24)),
                r[2].up(40).or(r[1].down(12)),
                r[1].up(52).or(r[0]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn wide_store(x: &[R; 4], to: &mut [[u64; 8]; 4], at: usize) {
        for (to, word) in to.iter_mut().zip(x) {
            // SAFETY: as above; the slice has so many.
            unsafe { word.store(to[places::<R>(at)].as_mut_ptr()) }
        }
    }

    #[inline(always)]
    unsafe fn wide_load(from: &[[u64; 8]; 4], at: usize) -> Self {
        // SAFETY: as above; the slices have so many.
        unsafe {
            split([
                R::load(from[3][places::<R>(at)].as_ptr()),
                R::load(from[2][places::<R>(at)].as_ptr()),
                R::load(from[1][places::<R>(at)].as_ptr()),
                R::load(from[0][places::<R>(at)].as_ptr()),
            ])
        }
    }

    #[inline(always)]
    unsafe fn wide_accepts(x: &[R; 4], term: &Term) -> u32 {
        // SAFETY: as above.
        unsafe {
            let mut wrong = R::splat(0);
            for i in 0..4 {
                if term.mask[i] != 0 {
                    let differs = x[i].xor(R::splat(term.value[i] as i64));
                    wrong = wrong.or(differs.and(R::splat(term.mask[i] as i64)));
                }
            }
            let mut right = wrong.zeros();
            for equation in &term.equations {
                if right == 0 {
                    break;
                }
                let mut bits = R::splat(0);
                for i in 0..4 {
                    bits = bits.xor(x[i].and(R::splat(equation.mask[i] as i64)));
                }
                let odd = bits.odd();
                right &= if equation.odd { odd } else { !odd };
            }
            right
        }
    }
}
