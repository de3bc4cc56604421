//! Registers of 256 bits: four words of 64 bits, or eight of 32.
//!
//! # Safety
//! The rule is in the head of `lanes`: AVX2 is present wherever these are called.

use core::arch::x86_64::*;

use super::{Word32, Word64};

impl Word64 for __m256i {
    const N: usize = 4;

    #[inline(always)]
    unsafe fn load(from: &[u64; 8], at: usize) -> __m256i {
        let from: &[u64] = &from[at..at + 4];
        // SAFETY: see the module's head; four words are there to be read.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u64; 8], at: usize) {
        let to: &mut [u64] = &mut to[at..at + 4];
        // SAFETY: see the module's head; four words are there to be written.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    unsafe fn splat(word: u64) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_set1_epi64x(word as i64) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_xor_si256(self, b) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_xor_si256(_mm256_xor_si256(self, b), c) }
    }
    #[inline(always)]
    unsafe fn xor_not_and(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_xor_si256(self, _mm256_andnot_si256(b, c)) }
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> __m256i {
        // SAFETY: see the module's head. With a constant the shifts take the immediate form.
        unsafe {
            _mm256_or_si256(
                _mm256_sll_epi64(self, _mm_cvtsi32_si128(by as i32)),
                _mm256_srl_epi64(self, _mm_cvtsi32_si128(64 - by as i32)),
            )
        }
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> __m256i {
        // SAFETY: see the module's head.
        unsafe {
            let order = _mm256_setr_epi8(
                7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12,
                11, 10, 9, 8,
            );
            _mm256_shuffle_epi8(self, order)
        }
    }
    #[inline(always)]
    unsafe fn four_bytes_on(self, next: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_or_si256(_mm256_slli_epi64::<32>(self), _mm256_srli_epi64::<32>(next)) }
    }
}

impl Word32 for __m256i {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn load(from: &[u32; 16], at: usize) -> __m256i {
        let from: &[u32] = &from[at..at + 8];
        // SAFETY: see the module's head; eight words are there to be read.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u32; 16], at: usize) {
        let to: &mut [u32] = &mut to[at..at + 8];
        // SAFETY: see the module's head; eight words are there to be written.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    unsafe fn splat(word: u32) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_set1_epi32(word as i32) }
    }
    #[inline(always)]
    unsafe fn add(self, b: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_add_epi32(self, b) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_xor_si256(self, b) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_xor_si256(_mm256_xor_si256(self, b), c) }
    }
    #[inline(always)]
    unsafe fn choose(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_xor_si256(c, _mm256_and_si256(self, _mm256_xor_si256(b, c))) }
    }
    #[inline(always)]
    unsafe fn majority(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_or_si256(_mm256_and_si256(self, b), _mm256_and_si256(c, _mm256_or_si256(self, b))) }
    }
    #[inline(always)]
    unsafe fn or_not_xor(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head. a | !b is the complement of !a & b.
        unsafe {
            let neither = _mm256_andnot_si256(self, b);
            _mm256_xor_si256(neither, _mm256_xor_si256(c, _mm256_set1_epi32(-1)))
        }
    }
    #[inline(always)]
    unsafe fn xor_or_not(self, b: __m256i, c: __m256i) -> __m256i {
        // SAFETY: see the module's head. b | !c is the complement of !b & c.
        unsafe {
            let neither = _mm256_andnot_si256(b, c);
            _mm256_xor_si256(neither, _mm256_xor_si256(self, _mm256_set1_epi32(-1)))
        }
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> __m256i {
        // SAFETY: see the module's head. With a constant the shifts take the immediate form.
        unsafe {
            _mm256_or_si256(
                _mm256_sll_epi32(self, _mm_cvtsi32_si128(by as i32)),
                _mm256_srl_epi32(self, _mm_cvtsi32_si128(32 - by as i32)),
            )
        }
    }
    #[inline(always)]
    unsafe fn shift_right(self, by: u32) -> __m256i {
        // SAFETY: see the module's head.
        unsafe { _mm256_srl_epi32(self, _mm_cvtsi32_si128(by as i32)) }
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> __m256i {
        // SAFETY: see the module's head.
        unsafe {
            let order = _mm256_setr_epi8(
                3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8,
                15, 14, 13, 12,
            );
            _mm256_shuffle_epi8(self, order)
        }
    }
}
