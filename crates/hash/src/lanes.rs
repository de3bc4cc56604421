//! Words side by side: the seam between a hash and an instruction set.
//!
//! A hash is written once over [`Word64`]; `u64` itself is the portable word of one message.
//!
//! # Safety
//! Every method of an implementation for an instruction set may be called only where that set is present and
//! only from code compiled for it: [`crate::Lanes`] is the proof. They are `inline(always)` so that they become
//! part of such code.

/// A 64-bit word of each of N messages. See the module's safety rules.
pub(crate) trait Word64: Copy {
    /// Messages side by side; divides 8.
    const N: usize;

    /// The words from `at` on.
    unsafe fn load(from: &[u64; 8], at: usize) -> Self;
    /// Writes the words from `at` on.
    unsafe fn store(self, to: &mut [u64; 8], at: usize);
    /// The same word for all messages.
    unsafe fn splat(word: u64) -> Self;
    /// `self ^ b`.
    unsafe fn xor(self, b: Self) -> Self;
    /// `self ^ b ^ c`.
    unsafe fn xor3(self, b: Self, c: Self) -> Self;
    /// `self ^ (!b & c)`.
    unsafe fn xor_not_and(self, b: Self, c: Self) -> Self;
    /// Rotation to the left; `by` is a constant below 64 wherever it matters.
    unsafe fn rotate_left(self, by: u32) -> Self;
    /// The bytes of each word in reverse.
    unsafe fn swap_bytes(self) -> Self;
    /// The low half of this word, then the high half of the next: with words most significant first, the word
    /// that begins four bytes later.
    unsafe fn four_bytes_on(self, next: Self) -> Self;
}

impl Word64 for u64 {
    const N: usize = 1;

    #[inline(always)]
    unsafe fn load(from: &[u64; 8], at: usize) -> u64 {
        from[at]
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u64; 8], at: usize) {
        to[at] = self;
    }
    #[inline(always)]
    unsafe fn splat(word: u64) -> u64 {
        word
    }
    #[inline(always)]
    unsafe fn xor(self, b: u64) -> u64 {
        self ^ b
    }
    #[inline(always)]
    unsafe fn xor3(self, b: u64, c: u64) -> u64 {
        self ^ b ^ c
    }
    #[inline(always)]
    unsafe fn xor_not_and(self, b: u64, c: u64) -> u64 {
        self ^ (!b & c)
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> u64 {
        u64::rotate_left(self, by)
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> u64 {
        u64::swap_bytes(self)
    }
    #[inline(always)]
    unsafe fn four_bytes_on(self, next: u64) -> u64 {
        self << 32 | next >> 32
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use core::arch::x86_64::*;

    use super::Word64;

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
            // SAFETY: see the module's head.
            unsafe {
                match by {
                    // Whole bytes: one shuffle instead of two shifts and an or.
                    8 => _mm256_shuffle_epi8(
                        self,
                        _mm256_setr_epi8(
                            7, 0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14, 7, 0, 1, 2, 3, 4, 5, 6, 15,
                            8, 9, 10, 11, 12, 13, 14,
                        ),
                    ),
                    56 => _mm256_shuffle_epi8(
                        self,
                        _mm256_setr_epi8(
                            1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15, 8, 1, 2, 3, 4, 5, 6, 7, 0, 9,
                            10, 11, 12, 13, 14, 15, 8,
                        ),
                    ),
                    // Shifts by a register; with a constant they become the immediate form.
                    _ => _mm256_or_si256(
                        _mm256_sll_epi64(self, _mm_cvtsi32_si128(by as i32)),
                        _mm256_srl_epi64(self, _mm_cvtsi32_si128(64 - by as i32)),
                    ),
                }
            }
        }
        #[inline(always)]
        unsafe fn swap_bytes(self) -> __m256i {
            // SAFETY: see the module's head.
            unsafe {
                let order = _mm256_setr_epi8(
                    7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13,
                    12, 11, 10, 9, 8,
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
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use core::arch::x86_64::*;

    use super::Word64;

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
}
