//! Registers of 512 bits: eight words of 64 bits, or sixteen of 32.
//!
//! # Safety
//! The rule is in the head of `lanes`: AVX-512 F and BW are present wherever these are called.

use core::arch::x86_64::*;

use super::{Word32, Word64};

impl Word64 for __m512i {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn load(from: &[u64; 8], _: usize) -> __m512i {
        // SAFETY: see the module's head; the array is as large as the register.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u64; 8], _: usize) {
        // SAFETY: see the module's head; the array is as large as the register.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    unsafe fn splat(word: u64) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_set1_epi64(word as i64) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_xor_si512(self, b) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head. Bit 4a + 2b + c of the immediate is the result.
        unsafe { _mm512_ternarylogic_epi64::<0b1001_0110>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn xor_not_and(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_ternarylogic_epi64::<0b1101_0010>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> __m512i {
        // SAFETY: see the module's head. With a constant it becomes the immediate form.
        unsafe { _mm512_rolv_epi64(self, _mm512_set1_epi64(by as i64)) }
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> __m512i {
        // SAFETY: see the module's head.
        unsafe {
            let order = _mm512_set4_epi64(
                0x0809_0a0b_0c0d_0e0f,
                0x0001_0203_0405_0607,
                0x0809_0a0b_0c0d_0e0f,
                0x0001_0203_0405_0607,
            );
            _mm512_shuffle_epi8(self, order)
        }
    }
    #[inline(always)]
    unsafe fn four_bytes_on(self, next: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_or_si512(_mm512_slli_epi64::<32>(self), _mm512_srli_epi64::<32>(next)) }
    }
}

impl Word32 for __m512i {
    const N: usize = 16;

    #[inline(always)]
    unsafe fn load(from: &[u32; 16], _: usize) -> __m512i {
        // SAFETY: see the module's head; the array is as large as the register.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u32; 16], _: usize) {
        // SAFETY: see the module's head; the array is as large as the register.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    unsafe fn splat(word: u32) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_set1_epi32(word as i32) }
    }
    #[inline(always)]
    unsafe fn add(self, b: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_add_epi32(self, b) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_xor_si512(self, b) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head. Bit 4a + 2b + c of each immediate is the result for the bits a, b, c.
        unsafe { _mm512_ternarylogic_epi32::<0b1001_0110>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn choose(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_ternarylogic_epi32::<0b1100_1010>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn majority(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_ternarylogic_epi32::<0b1110_1000>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn or_not_xor(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_ternarylogic_epi32::<0b0101_1001>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn xor_or_not(self, b: __m512i, c: __m512i) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_ternarylogic_epi32::<0b0010_1101>(self, b, c) }
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> __m512i {
        // SAFETY: see the module's head. With a constant it becomes the immediate form.
        unsafe { _mm512_rolv_epi32(self, _mm512_set1_epi32(by as i32)) }
    }
    #[inline(always)]
    unsafe fn shift_right(self, by: u32) -> __m512i {
        // SAFETY: see the module's head.
        unsafe { _mm512_srlv_epi32(self, _mm512_set1_epi32(by as i32)) }
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> __m512i {
        // SAFETY: see the module's head.
        unsafe {
            let order = _mm512_set4_epi64(
                0x0c0d_0e0f_0809_0a0b,
                0x0405_0607_0001_0203,
                0x0c0d_0e0f_0809_0a0b,
                0x0405_0607_0001_0203,
            );
            _mm512_shuffle_epi8(self, order)
        }
    }
}
