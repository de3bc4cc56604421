//! Eight field elements in AVX-512 registers: five limbs of 52 bits, multiplied by IFMA.
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

mod leading;

use core::arch::x86_64::*;

use super::Fe;
use super::lanes::Lanes;
use crate::field::term::Term;

const MASK52: i64 = (1 << 52) - 1;
const MASK48: i64 = (1 << 48) - 1;
/// 2^256 mod p.
const FOLD_256: i64 = 0x1_0000_03d1;
/// 2^260 mod p.
const FOLD_260: i64 = FOLD_256 << 4;

/// Eight elements; see the module for the bounds of the limbs.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Fe8([__m512i; 5]);

/// Ten columns of a product: column k has weight 2^(52 k).
type Columns = [__m512i; 10];

// SAFETY: plain integers, for which zero is a value.
const NOTHING: Columns = unsafe { core::mem::zeroed() };

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

impl Fe8 {
    #[inline(always)]
    unsafe fn limbs(&self) -> [[u64; 8]; 5] {
        // SAFETY: both are 320 bytes of plain integers.
        unsafe { core::mem::transmute(*self) }
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
        // SAFETY: an element exists only where AVX-512 is present.
        let limbs = unsafe { self.limbs() };
        for lane in 0..8 {
            assert!(limbs[..4].iter().all(|l| l[lane] >> 52 == 0), "limb over 52 bits");
            assert!(limbs[4][lane] < top, "top limb {:x} not below {top:x}", limbs[4][lane]);
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
            // SAFETY: AVX-512F is present where this is called.
            *limb = unsafe { _mm512_and_si512(*limb, _mm512_set1_epi64(MASK52)) };
        }
        self
    }

    /// The columns of a tight addend.
    #[inline(always)]
    unsafe fn columns(self) -> Columns {
        // SAFETY: as the caller's.
        let Fe8([a, b, c, d, e]) = unsafe { self.check_tight() };
        let [.., f, g, h, i, j] = NOTHING;
        [a, b, c, d, e, f, g, h, i, j]
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

/// Adds what exceeds 52 bits of each limb to the next, and leaves it standing; signed, so that a negative limb borrows.
#[inline(always)]
unsafe fn carry_raw(mut l: [__m512i; 5]) -> Fe8 {
    for i in 0..4 {
        // SAFETY: AVX-512F is present where this is called.
        l[i + 1] = unsafe { _mm512_add_epi64(l[i + 1], _mm512_srai_epi64::<52>(l[i])) };
    }
    Fe8(l)
}

/// Moves it into the next.
#[inline(always)]
unsafe fn carry(l: [__m512i; 5]) -> Fe8 {
    // SAFETY: as above.
    unsafe { carry_raw(l).masked() }
}

/// Columns of loose * loose to a raw element. A column is at most 5 low and 5 high parts and an addend:
/// below 11 * 2^52 < 2^56.
#[inline(always)]
unsafe fn reduce_raw(mut c: Columns) -> Fe8 {
    // SAFETY: AVX-512F and IFMA are present where this is called.
    unsafe {
        // Columns 5..9 become digits; their bits from 52 up stay in place but are not read by IFMA.
        for k in 5..9 {
            c[k + 1] = _mm512_add_epi64(c[k + 1], _mm512_srli_epi64::<52>(c[k]));
        }
        // Column 9 is below 2^50 + 2^5: two top limbs below 2^51 give high parts below 2^50.
        // 2^260 = FOLD_260: columns 0..4 gain a low and a high part each, below 2^57 in all.
        let fold = kept(FOLD_260);
        let zero = _mm512_setzero_si512();
        for k in 0..5 {
            c[k] = _mm512_madd52lo_epu64(c[k], c[k + 5], fold);
        }
        for k in 0..4 {
            c[k + 1] = _mm512_madd52hi_epu64(c[k + 1], c[k + 5], fold);
        }
        // Weight 2^260: below 2^(50 + 37 - 52) = 2^35 and a little.
        let over = _mm512_madd52hi_epu64(zero, c[9], fold);
        // All that lies at 2^256 and above: (over << 4) + (c4 >> 48) < 2^40; times FOLD_256 below 2^73.
        let top = _mm512_add_epi64(_mm512_slli_epi64::<4>(over), _mm512_srli_epi64::<48>(c[4]));
        let fold = _mm512_set1_epi64(FOLD_256);
        let l0 = _mm512_madd52lo_epu64(c[0], top, fold);
        let l1 = _mm512_madd52hi_epu64(c[1], top, fold);
        let l4 = _mm512_and_si512(c[4], _mm512_set1_epi64(MASK48));
        // Limb 3 hands on less than 2^(57-52) + 1: the top limb ends below 2^48 + 2^6.
        carry_raw([l0, l1, c[2], c[3], l4])
    }
}

/// The same to a tight element.
#[inline(always)]
unsafe fn reduce(c: Columns) -> Fe8 {
    // SAFETY: as above.
    unsafe { reduce_raw(c).masked().check_tight() }
}

/// The columns of a product of factors, on top of `c`.
#[inline(always)]
unsafe fn product(mut c: Columns, a: Fe8, b: Fe8) -> Columns {
    // SAFETY: AVX-512 IFMA is present where this is called.
    unsafe {
        let (a, b) = (a.check_factor().0, b.check_factor().0);
        for i in 0..5 {
            for j in 0..5 {
                c[i + j] = _mm512_madd52lo_epu64(c[i + j], a[i], b[j]);
            }
            for j in 0..5 {
                c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a[i], b[j]);
            }
        }
        c
    }
}

/// Those of a square.
#[inline(always)]
unsafe fn square(a: Fe8) -> Columns {
    // SAFETY: AVX-512 IFMA is present where this is called.
    unsafe {
        let a = a.check_factor().0;
        let mut c = NOTHING;
        // Products of different limbs once; a factor doubled would no longer fit 52 bits, so the sums are.
        for i in 0..5 {
            for j in i + 1..5 {
                c[i + j] = _mm512_madd52lo_epu64(c[i + j], a[i], a[j]);
                c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a[i], a[j]);
            }
        }
        for column in &mut c[1..9] {
            *column = _mm512_add_epi64(*column, *column);
        }
        for i in 0..5 {
            c[2 * i] = _mm512_madd52lo_epu64(c[2 * i], a[i], a[i]);
            c[2 * i + 1] = _mm512_madd52hi_epu64(c[2 * i + 1], a[i], a[i]);
        }
        c
    }
}

/// The sums of limbs.
#[inline(always)]
unsafe fn sums(a: Fe8, b: Fe8) -> [__m512i; 5] {
    let (mut l, Fe8(b)) = (a.0, b);
    for i in 0..5 {
        // SAFETY: AVX-512F is present where this is called.
        l[i] = unsafe { _mm512_add_epi64(l[i], b[i]) };
    }
    l
}

/// Four limbs of 64 bits, least significant first, as five of 52: below 2^256, so tight.
#[inline(always)]
unsafe fn split(l: [__m512i; 4]) -> Fe8 {
    // SAFETY: AVX-512F is present where this is called.
    unsafe {
        let mask = _mm512_set1_epi64(MASK52);
        let l1 = _mm512_or_si512(_mm512_slli_epi64::<12>(l[1]), _mm512_srli_epi64::<52>(l[0]));
        let l2 = _mm512_or_si512(_mm512_slli_epi64::<24>(l[2]), _mm512_srli_epi64::<40>(l[1]));
        let l3 = _mm512_or_si512(_mm512_slli_epi64::<36>(l[3]), _mm512_srli_epi64::<28>(l[2]));
        Fe8([
            _mm512_and_si512(l[0], mask),
            _mm512_and_si512(l1, mask),
            _mm512_and_si512(l2, mask),
            _mm512_and_si512(l3, mask),
            _mm512_srli_epi64::<16>(l[3]),
        ])
        .check_tight()
    }
}

/// A number in all lanes, of which the compiler does not know what it is. A loop that runs out of registers would read
/// numbers it knows from memory at each use before anything else; this one it keeps if it is used often.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn kept(number: i64) -> __m512i {
    let mut x = _mm512_set1_epi64(number);
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(zmm_reg) x, options(pure, nomem, nostack, preserves_flags)) }
    x
}

/// See [`Lanes::now`]. Registers of this kind may be named only in code for AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn formed(mut x: __m512i) -> __m512i {
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(zmm_reg) x, options(nomem, nostack, preserves_flags)) }
    x
}

impl Lanes for Fe8 {
    const N: usize = 8;
    type Constant = [u64; 5];
    type Wide = [__m512i; 4];

    fn constant(value: Fe) -> [u64; 5] {
        split52(value.0)
    }

    #[inline(always)]
    unsafe fn splat(value: &[u64; 5]) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe {
            Fe8([
                _mm512_set1_epi64(value[0] as i64),
                _mm512_set1_epi64(value[1] as i64),
                _mm512_set1_epi64(value[2] as i64),
                _mm512_set1_epi64(value[3] as i64),
                _mm512_set1_epi64(value[4] as i64),
            ])
        }
    }

    unsafe fn lane(&self, lane: usize) -> Fe {
        // SAFETY: see the module `lanes`.
        let limbs = unsafe { self.limbs() };
        let l: [u64; 5] = core::array::from_fn(|i| limbs[i][lane]);
        // Bits from 256 up, at most 2^3 of them, fold back in.
        let low = Fe([
            l[0] | l[1] << 52,
            l[1] >> 12 | l[2] << 40,
            l[2] >> 24 | l[3] << 28,
            l[3] >> 36 | l[4] << 16,
        ]);
        low.add(Fe::from_u64((l[4] >> 48) * FOLD_256 as u64))
    }

    unsafe fn with_lane(self, lane: usize, value: Fe) -> Fe8 {
        // SAFETY: see the module `lanes`; the array is the register's bytes.
        unsafe {
            let mut limbs = self.limbs();
            for (limb, v) in limbs.iter_mut().zip(split52(value.0)) {
                limb[lane] = v;
            }
            core::mem::transmute(limbs)
        }
    }

    #[inline(always)]
    unsafe fn fetch(of: &Fe) {
        // SAFETY: see the module `lanes`; asking for memory that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(of.0.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn gather(from: &[&Fe; 8]) -> Fe8 {
        // SAFETY: see the module `lanes`; an element is four limbs of 64 bits.
        unsafe {
            // Elements i and i + 4 in one register, limb by limb.
            let mut rows = [_mm512_setzero_si512(); 4];
            for i in 0..4 {
                let low = _mm256_loadu_si256(from[i].0.as_ptr().cast());
                let high = _mm256_loadu_si256(from[i + 4].0.as_ptr().cast());
                rows[i] = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            }
            // Limbs 0 and 2, then 1 and 3, of elements 0, 1, 4, 5 and of 2, 3, 6, 7.
            let (even, even_on) =
                (_mm512_unpacklo_epi64(rows[0], rows[1]), _mm512_unpacklo_epi64(rows[2], rows[3]));
            let (odd, odd_on) =
                (_mm512_unpackhi_epi64(rows[0], rows[1]), _mm512_unpackhi_epi64(rows[2], rows[3]));
            let first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
            let second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
            split([
                _mm512_permutex2var_epi64(even, first, even_on),
                _mm512_permutex2var_epi64(odd, first, odd_on),
                _mm512_permutex2var_epi64(even, second, even_on),
                _mm512_permutex2var_epi64(odd, second, odd_on),
            ])
        }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { reduce(product(NOTHING, self, other)) }
    }
    #[inline(always)]
    unsafe fn mul_raw(self, other: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { reduce_raw(product(NOTHING, self, other)) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Fe8, addend: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { reduce(product(addend.columns(), self, factor)) }
    }
    #[inline(always)]
    unsafe fn mul_add_raw(self, factor: Fe8, addend: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { reduce_raw(product(addend.columns(), self, factor)) }
    }

    #[inline(always)]
    unsafe fn square(self) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { reduce(square(self)) }
    }
    #[inline(always)]
    unsafe fn square_raw(self) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { reduce_raw(square(self)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { carry(sums(self.check_loose(), other.check_loose())).check_loose() }
    }

    #[inline(always)]
    unsafe fn add_raw(self, other: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe { carry_raw(sums(self.check_tight(), other.check_tight())) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Fe8) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe {
            let (a, b) = (self.check_loose().0, other.check_tight().0);
            // 2p = 2^257 - 2 FOLD_256 exceeds a tight value, so the result is positive.
            carry([
                _mm512_add_epi64(_mm512_sub_epi64(a[0], b[0]), _mm512_set1_epi64(-2 * FOLD_256)),
                _mm512_sub_epi64(a[1], b[1]),
                _mm512_sub_epi64(a[2], b[2]),
                _mm512_sub_epi64(a[3], b[3]),
                _mm512_add_epi64(_mm512_sub_epi64(a[4], b[4]), _mm512_set1_epi64(1 << 49)),
            ])
            .check_loose()
        }
    }

    #[inline(always)]
    unsafe fn add_or_sub(self, other: Fe8, minus: u32) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe {
            let (a, b, minus) = (self.check_tight().0, other.check_tight().0, minus as u8);
            let mut l = a;
            for i in 0..5 {
                l[i] = _mm512_mask_sub_epi64(_mm512_add_epi64(a[i], b[i]), minus, a[i], b[i]);
            }
            // As for `sub`, 2p more where it is a difference.
            l[0] = _mm512_mask_add_epi64(l[0], minus, l[0], _mm512_set1_epi64(-2 * FOLD_256));
            l[4] = _mm512_mask_add_epi64(l[4], minus, l[4], _mm512_set1_epi64(1 << 49));
            carry(l).check_loose()
        }
    }

    #[inline(always)]
    unsafe fn tighten(self) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe {
            // Bits from 256 up, below 2^3, fold in: less than 2^36, so the top limb ends below 2^48 + 1.
            let mut l = self.check_loose().0;
            l[0] = _mm512_madd52lo_epu64(l[0], _mm512_srli_epi64::<48>(l[4]), _mm512_set1_epi64(FOLD_256));
            l[4] = _mm512_and_si512(l[4], _mm512_set1_epi64(MASK48));
            carry(l).check_tight()
        }
    }

    #[inline(always)]
    unsafe fn negate(self) -> Fe8 {
        // SAFETY: see the module `lanes`.
        unsafe {
            // 8p = 2^259 - 8 FOLD_256, which a top limb below 2^51 - 1 cannot reach: the result is positive, and
            // at most 8p, whose own top limb is 2^51 - 1.
            let a = self.check((1 << 51) - 1).0;
            let zero = _mm512_setzero_si512();
            carry([
                _mm512_sub_epi64(_mm512_set1_epi64(-8 * FOLD_256), a[0]),
                _mm512_sub_epi64(zero, a[1]),
                _mm512_sub_epi64(zero, a[2]),
                _mm512_sub_epi64(zero, a[3]),
                _mm512_sub_epi64(_mm512_set1_epi64(1 << 51), a[4]),
            ])
            .check_loose()
        }
    }

    #[inline(always)]
    unsafe fn now(self) -> Fe8 {
        let [a, b, c, d, e] = self.0;
        // SAFETY: see the module `lanes`. The carries of all limbs end in the last.
        unsafe { Fe8([a, b, c, d, formed(e)]) }
    }

    unsafe fn any_zero(self) -> bool {
        // SAFETY: see the module `lanes`.
        (0..8).any(|lane| unsafe { self.lane(lane) }.is_zero())
    }

    #[inline(always)]
    unsafe fn wide(self) -> [__m512i; 4] {
        // SAFETY: see the module `lanes`.
        unsafe {
            // The value is now below 2^256 + 2^36.
            let l = self.tighten().0;
            // It is p or more exactly when adding 2^256 - p reaches 2^256; what is left then is the residue.
            let mut u = l;
            u[0] = _mm512_add_epi64(u[0], _mm512_set1_epi64(FOLD_256));
            let u = carry(u).0;
            let over = _mm512_test_epi64_mask(u[4], _mm512_set1_epi64(1 << 48));
            let mut r = l;
            for i in 0..5 {
                r[i] = _mm512_mask_blend_epi64(over, l[i], u[i]);
            }
            [
                _mm512_or_si512(_mm512_slli_epi64::<16>(r[4]), _mm512_srli_epi64::<36>(r[3])),
                _mm512_or_si512(_mm512_slli_epi64::<28>(r[3]), _mm512_srli_epi64::<24>(r[2])),
                _mm512_or_si512(_mm512_slli_epi64::<40>(r[2]), _mm512_srli_epi64::<12>(r[1])),
                _mm512_or_si512(_mm512_slli_epi64::<52>(r[1]), r[0]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn wide_store(x: &[__m512i; 4], to: &mut [[u64; 8]; 4], at: usize) {
        debug_assert_eq!(at, 0);
        for (to, word) in to.iter_mut().zip(x) {
            // SAFETY: see the module `lanes`; the array is as large as the register.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), *word) }
        }
    }

    #[inline(always)]
    unsafe fn wide_load(from: &[[u64; 8]; 4], at: usize) -> Fe8 {
        debug_assert_eq!(at, 0);
        // SAFETY: see the module `lanes`; the arrays are as large as the registers.
        unsafe {
            split([
                _mm512_loadu_si512(from[3].as_ptr().cast()),
                _mm512_loadu_si512(from[2].as_ptr().cast()),
                _mm512_loadu_si512(from[1].as_ptr().cast()),
                _mm512_loadu_si512(from[0].as_ptr().cast()),
            ])
        }
    }

    #[inline(always)]
    unsafe fn wide_accepts(x: &[__m512i; 4], term: &Term) -> u32 {
        // SAFETY: see the module `lanes`.
        unsafe {
            let mut wrong = _mm512_setzero_si512();
            for i in 0..4 {
                if term.mask[i] != 0 {
                    let differs = _mm512_xor_si512(x[i], _mm512_set1_epi64(term.value[i] as i64));
                    let mask = _mm512_set1_epi64(term.mask[i] as i64);
                    wrong = _mm512_or_si512(wrong, _mm512_and_si512(differs, mask));
                }
            }
            let mut right = _mm512_testn_epi64_mask(wrong, wrong);
            for equation in &term.equations {
                if right == 0 {
                    break;
                }
                let mut bits = _mm512_setzero_si512();
                for i in 0..4 {
                    let mask = _mm512_set1_epi64(equation.mask[i] as i64);
                    bits = _mm512_xor_si512(bits, _mm512_and_si512(x[i], mask));
                }
                let odd = _mm512_test_epi64_mask(_mm512_popcnt_epi64(bits), _mm512_set1_epi64(1));
                right &= if equation.odd { odd } else { !odd };
            }
            right as u32
        }
    }
}
