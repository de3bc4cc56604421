//! Registers of 256 bits: AVX2 and products of 52 bits, which processors have in two encodings.
//!
//! AVX-IFMA's own is VEX, of processors without AVX-512. Those with AVX-512 IFMA and VL have the same products in EVEX. All
//! else is AVX2 in both, and so are the registers, of which there are sixteen: what is tested and timed with one encoding is
//! the program that runs with the other. So EVEX is written in assembly: code compiled for AVX-512 would use its masks, its
//! ternary logic and its other sixteen registers.

use core::arch::x86_64::*;
use core::marker::PhantomData;

use super::register::Register;
use crate::Fe;

/// How products are encoded.
pub trait Encoding: Copy + Send + Sync {
    /// Adds the low 52 bits of the products of the low 52 bits to a sum.
    ///
    /// # Safety
    /// See the module `lanes`; the processor has this encoding.
    unsafe fn add_low(sum: __m256i, a: __m256i, b: __m256i) -> __m256i;
    /// Adds the high 52 bits of them.
    ///
    /// # Safety
    /// As above.
    unsafe fn add_high(sum: __m256i, a: __m256i, b: __m256i) -> __m256i;
}

/// Of AVX-IFMA.
#[derive(Clone, Copy)]
pub struct Vex;

/// Of AVX-512 IFMA and VL.
#[derive(Clone, Copy)]
pub struct Evex;

impl Encoding for Vex {
    #[inline(always)]
    unsafe fn add_low(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller's.
        unsafe { _mm256_madd52lo_avx_epu64(sum, a, b) }
    }
    #[inline(always)]
    unsafe fn add_high(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller's.
        unsafe { _mm256_madd52hi_avx_epu64(sum, a, b) }
    }
}

/// Registers of this kind may be named only in code for AVX, here and below.
#[target_feature(enable = "avx")]
#[inline]
unsafe fn evex_low(mut sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's; nothing but registers.
    unsafe {
        core::arch::asm!("{{evex}} vpmadd52luq {0}, {1}, {2}", inout(ymm_reg) sum, in(ymm_reg) a, in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags))
    }
    sum
}

#[target_feature(enable = "avx")]
#[inline]
unsafe fn evex_high(mut sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("{{evex}} vpmadd52huq {0}, {1}, {2}", inout(ymm_reg) sum, in(ymm_reg) a, in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags))
    }
    sum
}

impl Encoding for Evex {
    #[inline(always)]
    unsafe fn add_low(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller's.
        unsafe { evex_low(sum, a, b) }
    }
    #[inline(always)]
    unsafe fn add_high(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller's.
        unsafe { evex_high(sum, a, b) }
    }
}

/// Four numbers.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Ymm<E>(pub(crate) __m256i, PhantomData<E>);

/// See [`Register::kept`].
#[target_feature(enable = "avx")]
#[inline]
unsafe fn kept(number: i64) -> __m256i {
    let mut x = _mm256_set1_epi64x(number);
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(ymm_reg) x, options(pure, nomem, nostack, preserves_flags)) }
    x
}

#[target_feature(enable = "avx")]
#[inline]
unsafe fn formed(mut x: __m256i) -> __m256i {
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags)) }
    x
}

/// Bit l is the highest bit of lane l.
#[inline(always)]
unsafe fn signs(of: __m256i) -> u32 {
    // SAFETY: see the module `lanes`.
    unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(of)) as u32 }
}

impl<E> Ymm<E> {
    #[inline(always)]
    pub(super) fn new(of: __m256i) -> Ymm<E> {
        Ymm(of, PhantomData)
    }
}

impl<E: Encoding> Register for Ymm<E> {
    const N: usize = 4;
    /// AVX2 moves 64-bit numbers down without their sign only. A limb of a difference is above -2^52, and of four whole
    /// ones 2^53 is borrowed, less the two that the limb before has borrowed.
    const BORROW: i64 = 2;
    /// The highest bit of a lane decides.
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn splat(number: i64) -> Self {
        // SAFETY: see the module `lanes`, here and below.
        unsafe { Ymm::new(_mm256_set1_epi64x(number)) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_add_epi64(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_sub_epi64(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_and_si256(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_or_si256(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_xor_si256(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn up(self, bits: u32) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_sllv_epi64(self.0, _mm256_set1_epi64x(bits.into()))) }
    }
    #[inline(always)]
    unsafe fn down(self, bits: u32) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_srlv_epi64(self.0, _mm256_set1_epi64x(bits.into()))) }
    }
    #[inline(always)]
    unsafe fn above_52(self) -> Self {
        // SAFETY: as above.
        unsafe { self.down(52) }
    }
    #[inline(always)]
    unsafe fn add_low(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(E::add_low(self.0, a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn add_high(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(E::add_high(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    unsafe fn lanes(bits: u32) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_sllv_epi64(_mm256_set1_epi64x(bits.into()), _mm256_setr_epi64x(63, 62, 61, 60)) }
    }
    #[inline(always)]
    unsafe fn with_bit(self, bit: u32) -> __m256i {
        // SAFETY: as above.
        unsafe { self.up(63 - bit).0 }
    }
    #[inline(always)]
    unsafe fn select(lanes: __m256i, yes: Self, no: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let (no, yes) = (_mm256_castsi256_pd(no.0), _mm256_castsi256_pd(yes.0));
            Ymm::new(_mm256_castpd_si256(_mm256_blendv_pd(no, yes, _mm256_castsi256_pd(lanes))))
        }
    }
    #[inline(always)]
    unsafe fn zeros(self) -> u32 {
        // SAFETY: as above.
        unsafe { signs(_mm256_cmpeq_epi64(self.0, _mm256_setzero_si256())) }
    }
    #[inline(always)]
    unsafe fn odd(self) -> u32 {
        // SAFETY: as above.
        unsafe {
            // The sum modulo two of all bits ends in the highest.
            let mut bits = self;
            for by in [32, 16, 8, 4, 2, 1] {
                bits = bits.xor(bits.up(by));
            }
            signs(bits.0)
        }
    }

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: as above; the caller has so many.
        unsafe { Ymm::new(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: as above; the caller has room.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn gather(from: &[&Fe; 8]) -> [Self; 4] {
        // SAFETY: as above; an element is four limbs of 64 bits.
        unsafe {
            let mut rows = [_mm256_setzero_si256(); 4];
            for i in 0..4 {
                rows[i] = _mm256_loadu_si256(from[i].0.as_ptr().cast());
            }
            // Limbs 0 and 2, then 1 and 3, of elements 0 and 1 and of 2 and 3.
            let (even, even_on) =
                (_mm256_unpacklo_epi64(rows[0], rows[1]), _mm256_unpacklo_epi64(rows[2], rows[3]));
            let (odd, odd_on) =
                (_mm256_unpackhi_epi64(rows[0], rows[1]), _mm256_unpackhi_epi64(rows[2], rows[3]));
            [
                Ymm::new(_mm256_permute2x128_si256::<0x20>(even, even_on)),
                Ymm::new(_mm256_permute2x128_si256::<0x20>(odd, odd_on)),
                Ymm::new(_mm256_permute2x128_si256::<0x31>(even, even_on)),
                Ymm::new(_mm256_permute2x128_si256::<0x31>(odd, odd_on)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn kept(number: i64) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(kept(number)) }
    }
    #[inline(always)]
    unsafe fn formed(self) -> Self {
        // SAFETY: as above.
        unsafe { Ymm::new(formed(self.0)) }
    }
}
