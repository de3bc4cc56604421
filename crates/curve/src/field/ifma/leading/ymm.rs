//! Leading bits of four elements.

use core::arch::x86_64::*;

use super::{product_tops, tops_lane, word};
use crate::field::bloom::{MARKS, WITHIN, after};
use crate::field::ifma::{Encoding, Fe4, Register, Ymm};
use crate::field::leading::{self, Leading, Listed, SUMS};

/// The answers of an entry's sums, eight bits each.
#[derive(Clone, Copy, Default)]
pub struct Answers {
    /// Of the first eight.
    eight: u64,
    /// Of the last.
    last: u64,
}

/// The words in which a bit is set, by their highest bits.
#[inline(always)]
unsafe fn places(bits: u32) -> __m256i {
    // SAFETY: see the module `lanes`, here and below.
    unsafe {
        _mm256_sllv_epi32(_mm256_set1_epi32(bits as i32), _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24))
    }
}

/// Bit i is set where word i is zero.
#[inline(always)]
unsafe fn zero_words(of: __m256i) -> u32 {
    // SAFETY: as above.
    unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(of, _mm256_setzero_si256()))) as u32 }
}

impl<E: Encoding> Leading for Fe4<E> {
    type Words = Ymm<E>;
    type Tops = Ymm<E>;
    /// By how much words are shifted to be numbers of entries, and to begin with the bits of their marks.
    type Asker = [__m256i; 2];
    type Answers = Answers;

    /// Three and a half pass of an entry's 72 with a table as full as they get; of one entry of a hundred more than eight.
    const FIRST: usize = 8;

    #[inline(always)]
    unsafe fn tops(self) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { self.check_tight().0[4] }
    }
    #[inline(always)]
    unsafe fn product_tops(self, factor: Self, addend: Ymm<E>) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { product_tops(self, factor, addend) }
    }
    #[inline(always)]
    unsafe fn tops_add(a: Ymm<E>, b: Ymm<E>) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { a.add(b) }
    }
    #[inline(always)]
    unsafe fn tops_lane(a: &Ymm<E>, lane: usize) -> u64 {
        // SAFETY: as above.
        unsafe { tops_lane(a, lane) }
    }
    #[inline(always)]
    unsafe fn tops_words(plus: Ymm<E>, minus: Ymm<E>) -> Ymm<E> {
        // SAFETY: as above. Bits 16..48 of minus go to the upper half, and below them those of plus.
        unsafe { Ymm::new(_mm256_blend_epi32::<0b1010_1010>(plus.down(16).0, minus.up(16).0)) }
    }
    #[inline(always)]
    unsafe fn word_splat(word: u32) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_set1_epi32(word as i32)) }
    }
    #[inline(always)]
    unsafe fn word_add(a: Ymm<E>, b: Ymm<E>) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_add_epi32(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn word_sub(a: Ymm<E>, b: Ymm<E>) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_sub_epi32(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn word_min(a: Ymm<E>, b: Ymm<E>) -> Ymm<E> {
        // SAFETY: as above.
        unsafe { Ymm::new(_mm256_min_epu32(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn word_any_at_most(a: Ymm<E>, limit: u32) -> bool {
        // SAFETY: as above.
        unsafe {
            // AVX2 compares signed numbers only: at most is what the smaller of both is.
            let at_most = _mm256_cmpeq_epi32(_mm256_min_epu32(a.0, _mm256_set1_epi32(limit as i32)), a.0);
            _mm256_movemask_epi8(at_most) != 0
        }
    }
    #[inline(always)]
    unsafe fn word_load(from: *const u32) -> Ymm<E> {
        // SAFETY: as above; the caller has that many.
        unsafe { Ymm::load(from.cast()) }
    }
    #[inline(always)]
    unsafe fn asker<const STRIDE: usize>(log2: u32) -> [__m256i; 2] {
        let lowest = 32 - after(STRIDE) - log2;
        // SAFETY: as above.
        unsafe { [_mm256_set1_epi32(32 - log2 as i32), _mm256_set1_epi32(lowest as i32)] }
    }
    #[inline(always)]
    unsafe fn word_ask<const STRIDE: usize>(
        a: Ymm<E>,
        table: *const u8,
        [at, lowest]: &[__m256i; 2],
        asking: u32,
    ) -> u32 {
        // SAFETY: as above; the table has an entry for every number, and there is a mark for all ten bits.
        unsafe {
            let at = _mm256_srlv_epi32(a.0, *at);
            let (none, places) = (_mm256_setzero_si256(), places(asking));
            let entry = match STRIDE {
                1 => _mm256_mask_i32gather_epi32::<1>(none, table.cast(), at, places),
                4 => _mm256_mask_i32gather_epi32::<4>(none, table.cast(), at, places),
                _ => _mm256_mask_i32gather_epi32::<8>(none, table.cast(), at, places),
            };
            let ten = _mm256_and_si256(_mm256_srlv_epi32(a.0, *lowest), _mm256_set1_epi32((1 << WITHIN) - 1));
            let marks = _mm256_i32gather_epi32::<4>(MARKS.as_ptr().cast(), ten);
            zero_words(_mm256_and_si256(entry, marks)) & asking
        }
    }
    #[inline(always)]
    unsafe fn answer(mut to: Answers, sum: usize, passed: u32) -> Answers {
        match sum {
            0 => to.eight = passed.into(),
            8 => to.last = passed.into(),
            _ => to.eight |= u64::from(passed) << (8 * sum),
        }
        to
    }
    #[inline(always)]
    unsafe fn word_first(
        words: &[Ymm<E>; SUMS + 1],
        Answers { eight, last }: Answers,
        keys: &mut [u8; 16],
        found: &mut [u32; 16],
    ) -> u32 {
        // The first 64, then the others and, for ever, the number after all keys.
        let (mut left, mut later, mut first) = (eight, last | 1 << 8, 0);
        for i in 0..Self::FIRST {
            // Without a branch: when the first 64 are done, the others.
            let done = left == 0;
            (left, first) = if done { (later, 64) } else { (left, first) };
            later = if done { 1 << 8 } else { later };
            let key = first + left.trailing_zeros();
            left &= left - 1;
            keys[i] = key as u8;
            // SAFETY: as above; a key's number is below that of all words.
            found[i] = unsafe { *words.as_ptr().cast::<u32>().add(key as usize) };
        }
        eight.count_ones() + last.count_ones()
    }
    #[inline(always)]
    unsafe fn key_append(list: &mut Listed, listed: usize, keys: &[u8; 16], held: u32, slot: u8) {
        leading::append(list, listed, &keys[..Self::FIRST], held, slot);
    }
    #[inline(always)]
    unsafe fn word(a: &Ymm<E>, lane: usize, side: usize) -> u32 {
        word(a, lane, side)
    }
}
