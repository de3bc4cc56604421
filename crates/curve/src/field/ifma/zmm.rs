//! Registers of 512 bits: AVX-512 IFMA.

use core::arch::x86_64::*;

use super::register::Register;
use crate::Fe;

/// Eight numbers.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Zmm(pub(crate) __m512i);

/// See [`Register::kept`]. Registers of this kind may be named only in code for AVX-512, here and below.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn kept(number: i64) -> __m512i {
    let mut x = _mm512_set1_epi64(number);
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(zmm_reg) x, options(pure, nomem, nostack, preserves_flags)) }
    x
}

#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn formed(mut x: __m512i) -> __m512i {
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(zmm_reg) x, options(nomem, nostack, preserves_flags)) }
    x
}

impl Register for Zmm {
    const N: usize = 8;
    const BORROW: i64 = 0;
    type Mask = __mmask8;

    #[inline(always)]
    unsafe fn splat(number: i64) -> Zmm {
        // SAFETY: see the module `lanes`, here and below.
        unsafe { Zmm(_mm512_set1_epi64(number)) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_add_epi64(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_sub_epi64(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn and(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_and_si512(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn or(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_or_si512(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_xor_si512(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn up(self, bits: u32) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_sllv_epi64(self.0, _mm512_set1_epi64(bits.into()))) }
    }
    #[inline(always)]
    unsafe fn down(self, bits: u32) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_srlv_epi64(self.0, _mm512_set1_epi64(bits.into()))) }
    }
    #[inline(always)]
    unsafe fn above_52(self) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_srai_epi64::<52>(self.0)) }
    }
    #[inline(always)]
    unsafe fn add_low(self, a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_madd52lo_epu64(self.0, a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn add_high(self, a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_madd52hi_epu64(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    unsafe fn lanes(bits: u32) -> __mmask8 {
        bits as u8
    }
    #[inline(always)]
    unsafe fn with_bit(self, bit: u32) -> __mmask8 {
        // SAFETY: as above.
        unsafe { _mm512_test_epi64_mask(self.0, _mm512_set1_epi64(1 << bit)) }
    }
    #[inline(always)]
    unsafe fn select(lanes: __mmask8, yes: Zmm, no: Zmm) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(_mm512_mask_blend_epi64(lanes, no.0, yes.0)) }
    }
    #[inline(always)]
    unsafe fn zeros(self) -> u32 {
        // SAFETY: as above.
        unsafe { _mm512_testn_epi64_mask(self.0, self.0).into() }
    }
    #[inline(always)]
    unsafe fn odd(self) -> u32 {
        // SAFETY: as above.
        unsafe { _mm512_test_epi64_mask(_mm512_popcnt_epi64(self.0), _mm512_set1_epi64(1)).into() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u64) -> Zmm {
        // SAFETY: as above; the caller has so many.
        unsafe { Zmm(_mm512_loadu_si512(from.cast())) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: as above; the caller has room.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn gather(from: &[&Fe; 8]) -> [Zmm; 4] {
        // SAFETY: as above; an element is four limbs of 64 bits.
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
            [
                Zmm(_mm512_permutex2var_epi64(even, first, even_on)),
                Zmm(_mm512_permutex2var_epi64(odd, first, odd_on)),
                Zmm(_mm512_permutex2var_epi64(even, second, even_on)),
                Zmm(_mm512_permutex2var_epi64(odd, second, odd_on)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn kept(number: i64) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(kept(number)) }
    }
    #[inline(always)]
    unsafe fn formed(self) -> Zmm {
        // SAFETY: as above.
        unsafe { Zmm(formed(self.0)) }
    }
}
